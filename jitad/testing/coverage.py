"""What jitad does with every public function of NumPy and SciPy: the table in COVERAGE.md, made from the code.

``python -m jitad coverage`` prints it; with the name of a file it is written there. A name is

* **differentiated**: there is a rule, and derivatives flow through it;
* **constant**: its value is an integer, a truth value, a shape, a dtype or made of plain arguments, so that none flow;
* **refused**: of a traced value it raises `UnsupportedOperationError`.

>>> standing_of("numpy", "exp"), standing_of("numpy", "argmax"), standing_of("scipy.linalg", "qz")
(('differentiated', ''), ('constant', ''), ('refused', 'triangular forms'))
"""
from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

import jitad.trace.record  # noqa: F401  (fills the tables)
from jitad.trace import reasons, ufuncs
from jitad.trace.captures.libraries import functions as library
from jitad.trace.dispatch import FUNCTIONS
from jitad.trace.numpy_rules.shapes.grids import INDEXERS
from jitad.trace.scipy_rules.classes import CLASSES, name_of_class
from jitad.trace.scipy_rules.sparse.values import PARTS
from jitad.trace.scipy_rules.stats.distributions import is_library_distribution
from jitad.trace.scipy_rules.stats.standing import distributions, standing
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.values.kinds import KINDS
from jitad.trace.values.tracer import Tracer

__all__ = ["NAMESPACES", "UNCLAIMED", "methods", "public", "standing_of", "table", "versions"]

NAMESPACES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.polynomial", *(f"numpy.polynomial.{name}" for name in (
    "polynomial", "chebyshev", "legendre", "laguerre", "hermite", "hermite_e")), "scipy.special", "scipy.linalg",
    "scipy.integrate", "scipy.interpolate", "scipy.signal", "scipy.ndimage", "scipy.spatial.distance", "scipy.stats")
UNCLAIMED = "unclaimed"
DIFFERENTIATED, CONSTANT, REFUSED = "differentiated", "constant", "refused"

# Functions with a rule whose values have no derivatives.
_CONSTANT = {
    "numpy": """all allclose any argmax argmin argpartition argsort argwhere array_equal array_equiv bartlett
        bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor blackman broadcast can_cast ceil common_type
        count_nonzero diag_indices diag_indices_from digitize einsum_path empty empty_like equal eye fix flatnonzero
        floor floor_divide greater greater_equal hamming hanning heaviside histogram_bin_edges identity indices invert
        iscomplex iscomplexobj isclose isfinite isin isinf isnan isneginf isposinf isreal isrealobj isscalar less
        less_equal lexsort logical_and logical_not logical_or logical_xor min_scalar_type nanargmax nanargmin ndim
        nonzero not_equal ones ones_like ravel_multi_index result_type rint searchsorted shape sign signbit size tri
        tril_indices tril_indices_from triu_indices triu_indices_from trunc unravel_index zeros zeros_like around
        round mgrid ogrid""",
    "numpy.linalg": "matrix_rank",
    "scipy.special": "gammasgn",
    "numpy.polynomial": "set_default_printstyle",
    **{f"numpy.polynomial.{family}": names for family, names in {
        "chebyshev": "chebgauss chebpts1 chebpts2", "legendre": "leggauss", "laguerre": "laggauss",
        "hermite": "hermgauss", "hermite_e": "hermegauss"}.items()},
}


def public(module: str) -> dict[str, Any]:
    """The public callables of a namespace by name."""
    home = import_module(module)
    found = {name: getattr(home, name) for name in sorted(dir(home)) if not name.startswith("_")}
    known = {name: v for name, v in found.items()
             if id(v) in INDEXERS or (callable(v) and not isinstance(v, ModuleType))}
    declared = getattr(home, "__all__", None)
    return known if declared is None else {n: v for n, v in known.items() if n in declared or _is_rule(v)}


def _is_rule(value: Any) -> bool:
    """Whether recorded code has a meaning for a function."""
    if isinstance(value, np.ufunc):
        return value in ufuncs.COMPOSED or ufuncs.row_of(value) is not None
    if id(value) in INDEXERS or library.is_followed_function(value) or is_library_distribution(value):
        return True
    if isinstance(value, type) and name_of_class(value) in CLASSES:
        return True
    try:
        return value in FUNCTIONS or SUBSTITUTES.get(value) is not None
    except TypeError:                                               # it cannot be a key
        return False


def standing_of(module: str, name: str) -> tuple[str, str]:
    """The standing of a public name, and for a refused one the key of its reason in `jitad.trace.reasons.WHY`."""
    value = getattr(import_module(module), name)
    if name in _CONSTANT.get(module, "").split():
        return CONSTANT, ""
    if isinstance(value, type) and value in KINDS:       # a class of numbers, which converts
        return DIFFERENTIATED if issubclass(value, np.inexact) else CONSTANT, ""
    if isinstance(value, type) and library.is_followed_module(value.__module__):
        return DIFFERENTIATED, ""
    why = reasons.why(module, name)
    if (_is_rule(value) or name in reasons.THROUGH.get(module, "").split()) and why not in reasons.FINAL:
        return DIFFERENTIATED, ""
    if why is not None:
        return REFUSED, why
    if name in reasons.PLAIN.get(module, "").split() or isinstance(value, type):
        return CONSTANT, ""
    return UNCLAIMED, "no rule yet"


def methods() -> dict[str, str]:
    """The standing of the methods, attributes and operators of arrays."""
    found = {}
    for name in sorted({n for n in dir(np.ndarray) if not n.startswith("_")} | set(_OPERATORS)):
        member = getattr(Tracer, name, None)
        made = getattr(member.fget if isinstance(member, property) else member, "__qualname__", "")
        refusing = member is None or made.startswith(("refused_method", "refused_property", "concrete", "float_of"))
        found[name] = REFUSED if refusing else CONSTANT if name in _METADATA else DIFFERENTIATED
    return found


_METADATA = """all any argmax argmin argpartition argsort dtype itemsize nbytes ndim nonzero searchsorted shape size
__bool__ __eq__ __floordiv__ __ge__ __gt__ __index__ __int__ __invert__ __le__ __len__ __lt__ __ne__ __and__ __or__
__xor__ __lshift__ __rshift__""".split()
_OPERATORS = [f"__{name}__" for name in """abs add and bool complex contains divmod eq float floordiv ge getitem gt iadd
idivmod index int invert isub imul itruediv iter le len lshift lt matmul mod mul ne neg or pos pow round rshift setitem
sub truediv xor""".split() if hasattr(np.ndarray, f"__{name}__")]


def versions() -> str:
    """The versions that decide on the names: ``NumPy 2.4.0, SciPy 1.17.0``."""
    import scipy

    return f"NumPy {np.__version__}, SciPy {scipy.__version__}"


def table() -> str:
    """The whole table in Markdown."""
    parts = [_HEAD.format(versions=versions())]
    for module in NAMESPACES:
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, value in public(module).items():
            if not is_library_distribution(value):
                standing_, why = standing_of(module, name)
                groups[REFUSED if standing_ == UNCLAIMED else standing_, why].append(name)
        parts.append(f"## {module}\n\n" + "\n\n".join(
            _group(kind, why, groups[kind, why]) for kind, why in sorted(groups, key=_order)))
        if module == "numpy":
            parts.append(_methods())
    return "\n\n".join([*parts, _densities(), _sparse()])


_HEAD = """# What is differentiated, what is constant, what is refused

Made from the code by `python -m jitad coverage COVERAGE.md`, for {versions}.

**Differentiated**: compiled, and derivatives flow. **Constant**: integers, truth values, shapes, dtypes, and what is
made of plain arguments; no derivative flows, and a branch on a traced one is guarded. **Refused**: an error that names
the function, your line and the way out; nothing is frozen silently. Names are used in any spelling: the tests call what
is differentiated as an attribute, by an imported name, by an alias, as a method where there is one, and with each
option given as what it is when left out, with flags, axes and numbers at other values, and with each text that is
documented. Other functions run as they are, and raise where they need a number.
"""


def _order(key: tuple[str, str]) -> tuple[int, str]:
    return (DIFFERENTIATED, CONSTANT, REFUSED).index(key[0]), key[1]


def _group(kind: str, why: str, names: Iterable[str]) -> str:
    text = textwrap.fill(" ".join(names), 118)
    reason = f", {why} ({reasons.WHY[why]})" if kind == REFUSED else ""
    return textwrap.fill(f"**{kind}**{reason}:", 118) + f"\n```\n{text}\n```"


def _sparse() -> str:
    kinds = ", ".join(f"`{name}_array`, `{name}_matrix`" for name in PARTS)
    text = (f"**Differentiated**: {kinds}, captured or made of traced elements at constant places, also by `diags`, "
            "`diags_array`, `spdiags`, `kron`, `kronsum`, `bmat`, `block_array`, `block_diag`, `hstack`, `vstack`, "
            "`tril`, `triu`; sums and products of them, with numbers, vectors and matrices; `.T`, `.multiply`, "
            "`.power`, `.diagonal`, `.trace`, `.sum`, `.toarray`, conversions; `spsolve`, `factorized` and `splu` of "
            "scipy.sparse.linalg with `.solve`, `.L.diagonal()`, `.U.diagonal()`. **Refused**: other formats and "
            "operations.")
    return "## scipy.sparse\n\n" + textwrap.fill(text, 118) + "\n"


def _methods() -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, kind in methods().items():
        groups[kind].append(name)
    return "## numpy.ndarray\n\n" + "\n\n".join(
        f"**{kind}**:\n```\n{textwrap.fill(' '.join(groups[kind]), 118)}\n```" for kind in (
            DIFFERENTIATED, CONSTANT, REFUSED))


def _densities() -> str:
    """The distributions by the methods that have a rule."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, distribution in distributions().items():
        have = (m for m, kind in standing(distribution).items() if kind == DIFFERENTIATED and m != "freeze")
        groups[tuple(sorted(have))].append(name)
    lines = [textwrap.fill(f"**{', '.join(have) or 'no method'}**: {' '.join(names)}", 118)
             for have, names in sorted(groups.items(), key=lambda g: -len(g[0]))]
    return ("### Distributions\n\nDifferentiated methods, with `loc` and `scale` and frozen or not; other methods are "
            "refused of traced values, `rvs` always.\n\n" + "\n\n".join(lines))
