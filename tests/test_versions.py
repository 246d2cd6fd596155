"""What is needed of NumPy and SciPy is there in the lowest versions that are allowed, and in the newest ones tried."""
from __future__ import annotations

import ast
import tomllib

import pytest

from tests.helpers.sources import ALL_FILES, ROOT, parsed

LOWEST = {"numpy": "2.4", "scipy": "1.17", "numba": "0.64"}
# Public names that differ between NumPy 2.2 with SciPy 1.16, older than the lowest, and NumPy 2.5 with SciPy 1.18.
CHANGED = {
    "numpy": "in1d row_stack trapz", "numpy.strings": "slice", "numpy.linalg": "linalg", "numpy.fft": "helper",
    "scipy": "odr", "scipy.linalg": "kron", "scipy.special": "clpmn lpmn lpn sph_harm",
    "scipy.stats": "Logistic estimated_cdf matrix_t spearmanrho find_repeats",
    "scipy.sparse": "expand_dims matrix_transpose permute_dims swapaxes", "scipy.optimize": "elementwise",
    "scipy.sparse.linalg": "funm_multiply_krylov", "scipy.signal": "whittaker_henderson",
    "scipy.spatial.distance": "kulczynski1 sokalmichener"}


def needed(tree: ast.Module) -> set[str]:
    """The full names of NumPy and SciPy that a file reads as attributes or imports."""
    homes: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            homes.update({a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                          for a in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            homes.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
            found |= {f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in homes:
            found |= {".".join([homes[node.id], *parts[:n]]) for n in range(1, len(parts) + 1)}
    return {name for name in found if name.startswith(("numpy.", "scipy."))}


def test_no_name_is_needed_that_a_version_lacks():
    changed = {f"{home}.{name}" for home, names in CHANGED.items() for name in names.split()}
    wrong = {f"{path.relative_to(ROOT)}: {name}" for path in ALL_FILES for name in needed(parsed(path)) & changed}
    assert not wrong, f"ask for these by getattr, and do without where there is none: {sorted(wrong)}"


def test_names_are_found():
    text = "import numpy as np, scipy.stats\nfrom scipy import odr as o\ndef f(x):\n    return np.linalg.norm(o.ODR(x))"
    assert needed(ast.parse(text)) == {"numpy.linalg", "numpy.linalg.norm", "scipy.odr", "scipy.odr.ODR"}


@pytest.mark.parametrize("name", LOWEST)
def test_the_lowest_versions_are_those_of_the_package(name):
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"{name}>={LOWEST[name]}" in lowest
