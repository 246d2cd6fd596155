"""Whose code a file is."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jitad
import jitad.cache

PROGRAM = """
import numpy as np
import jitad
assert jitad.__file__.startswith({home!r}), jitad.__file__
def f(x):
    x[0] = 1.0
try:
    jitad.jit(f)(np.ones(2))
except jitad.MutationError as error:
    print(str(error).split(" at ")[1].split(",")[0])
"""


def test_an_installation_of_links_is_told_from_the_users_code(tmp_path):
    """As some installers make it: each file is a link to where its packages are kept."""
    for package, at in ((jitad, "jitad"), (jitad.cache, "jitad/cache")):
        root = Path(package.__file__).parent
        for file in root.rglob("*.py"):
            link = tmp_path / at / file.relative_to(root)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(file)
    ran = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
                          + PROGRAM.format(home=str(tmp_path))], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "<string>:7\n", ran.stderr
