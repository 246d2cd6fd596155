"""What of SciPy may be imported before it is used."""
from __future__ import annotations

from importlib.metadata import version

# From 1.18 on SciPy's ufuncs import its linear algebra themselves.
LINALG = ("scipy.linalg",) if tuple(map(int, version("scipy").split(".")[:2])) < (1, 18) else ()
