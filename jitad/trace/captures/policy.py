"""Which captured things are the user's, which are a library's, and which are refused while recording."""
from __future__ import annotations

import builtins
import datetime
import io
import logging
import os
import pathlib
import random
import statistics
import sys
from collections.abc import Callable, MutableMapping
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from jitad.cache.keys.guards import Unguardable, freeze
from jitad.trace.captures.libraries import functions as library
from jitad.trace.captures.standard import LOGGING, OUTLETS, Outlet, outlet_of, reads_state, writing
from jitad.trace.impure import Impure, ImpureClass
from jitad.trace.numpy_rules.shapes.grids import INDEXERS
from jitad.trace.numpy_rules.ufuncs import ufunc_view
from jitad.trace.scipy_rules.stats.distributions import is_distribution, is_library_distribution, stand_in
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.values.unbound import DESCRIPTORS, unbound
from jitad.trace.where import is_library_file

__all__ = [
    "LABELLED", "cure", "has_snapshot", "holds_user_code", "is_followed", "is_followed_in", "is_mutable", "is_numba",
    "is_opaque", "is_user_class", "is_user_function", "is_user_module", "refused", "substitute", "unfollowable",
]

STANDARD = sys.stdlib_module_names
CONSTRAINTS = "jitad.constraints"
LIBRARIES = frozenset({"numpy", "scipy", "jitad", "numba", "optree", "builtins"}) | STANDARD
# Packages of data with labels: what is computed from such data alone, they compute; see `captures.libraries.labelled`.
LABELLED = frozenset({"pandas", "polars", "xarray"})
_NOT_FOLLOWED = LIBRARIES | LABELLED
# Packages whose objects hold their data where Python cannot see it being read.
OPAQUE = LABELLED | {"torch", "jax", "jaxlib", "tensorflow", "h5py", "pyarrow", "sklearn"}

_CURES = {
    **dict.fromkeys(("pandas", "polars"), "use its arrays, by .to_numpy(), outside of the function"),
    "xarray": "use its array, by .to_numpy(), outside of the function",
    **dict.fromkeys("jax jaxlib tensorflow h5py pyarrow".split(), "use np.asarray of it, outside of the function"),
    "torch": "use its array, by .detach().numpy(), outside of the function"}


def _top(name: Any) -> str:
    """The package that a module is of; our own maps of constrained parameters are as if a user had written them."""
    if not isinstance(name, str):
        return "__main__"
    return CONSTRAINTS if name.startswith(CONSTRAINTS) else name.partition(".")[0]


def is_user_module(module: ModuleType) -> bool:
    """Whether reads of this module's attributes are captures."""
    top = _top(module.__name__)
    if top in STANDARD and not is_library_file(getattr(module, "__file__", None) or "<frozen>"):
        return True
    return top not in LIBRARIES


def is_user_function(function: FunctionType) -> bool:
    """Whether a function is the user's, and so runs as a copy that sees traced captures."""
    if library.is_followed_function(function) or _is_of_normal(function):
        return True
    if {_top(function.__module__), _top(function.__globals__.get("__name__"))} - _NOT_FOLLOWED:
        return True
    file = function.__code__.co_filename  # a user's module may have the name of one of Python's
    return not file.startswith("<") and not is_library_file(file) and _top(function.__module__) in STANDARD


def _is_of_normal(function: FunctionType) -> bool:
    """Whether this is a method of ``statistics.NormalDist``."""
    return function.__module__ == "statistics" and function.__qualname__.startswith("NormalDist.")


def holds_user_code(function: FunctionType) -> bool:
    """Whether a library's function was made around a user's (as decorators do), and so is to be copied too."""
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        for item in content.values() if isinstance(content, dict) else (content,):
            if hasattr(type(item), "__jitad_nested__") or (
                    isinstance(item, FunctionType) and item is not function and is_user_function(item)):
                return True
    return False


def is_user_class(cls: type) -> bool:
    """Whether a class is the user's, or of plain NumPy code, and so its methods run as copies."""
    return _top(cls.__module__) not in _NOT_FOLLOWED or library.is_followed_module(cls.__module__) or (
        cls is statistics.NormalDist)


def is_followed(cls: type) -> bool:
    """Whether the instances of a class get a stand-in through which their attributes are read."""
    if is_user_class(cls) or cls is SimpleNamespace:
        return True
    return (cls.__module__, cls.__name__) == ("argparse", "Namespace")


def is_followed_in(module: ModuleType, value: Any) -> bool:
    """Whether what a library's module has runs as a copy, as what is the user's does."""
    if is_user_module(module):
        return False
    return is_user_class(value) if isinstance(value, type) else type(value) is FunctionType and is_user_function(value)


def is_opaque(cls: type) -> bool:
    return _top(cls.__module__) in OPAQUE


def cure(value: Any) -> str | None:
    """How plain arrays are taken out of an object of another library's; None for any other."""
    if isinstance(value, _GENERATORS):
        return "draw outside of the function, and pass what was drawn"
    for base in type(value).__mro__:
        top = _top(base.__module__)
        if top in _CURES:
            return _CURES[top]
        if top in OPAQUE:
            return "take plain arrays out of it, outside of the function"
    return None


def unfollowable(cls: type) -> str | None:
    """Why the attributes of the instances of a class cannot be followed, or None if they can."""
    if any(is_opaque(base) for base in cls.__mro__):
        return f"is a {cls.__name__}, whose data cannot be followed"
    if cls is SimpleNamespace:
        return None
    for base in cls.__mro__[:-1]:
        if not base.__flags__ & (1 << 9):  # Py_TPFLAGS_HEAPTYPE
            return f"is a {cls.__name__}, a kind of {base.__name__} whose content cannot be followed"
        if "__getattribute__" in vars(base):
            return f"is a {cls.__name__}, which has a __getattribute__ of its own"
    return None


def is_numba(cls: type) -> bool:
    return _top(cls.__module__) == "numba"


def has_snapshot(value: Any) -> bool:
    """Whether a value is guarded by what it is, else by identity."""
    try:
        freeze(value)
    except Unguardable:
        return False
    return True


def is_mutable(value: Any) -> bool:
    """Whether an attribute of a library's module may change in place."""
    return isinstance(value, (np.ndarray, list, set, MutableMapping))


def substitute(value: Any) -> Any | None:
    """What stands for a library's callable in recorded code, or None."""
    if not callable(value):
        return INDEXERS.get(id(value))
    if type(value) is np.ufunc:
        return ufunc_view(value)
    if type(value) in DESCRIPTORS:
        return unbound(value)
    try:
        return SUBSTITUTES.get(value)
    except Exception:  # unhashable
        return None


# --- impurity -------------------------------------------------------------------------------

_STATE = "reads the state of the process, or what lies outside of it"
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_RANDOM = ("random", "secrets", "numpy.random", "uuid")
_CLOCKS = ("time",)
_FILES = frozenset({builtins.open, io.open, os.open, os.urandom, os.getenv, os.getpid, os.getcwd, os.listdir,
                    os.scandir, os.stat, os.popen, os.system, os.path.exists, os.path.isfile, os.path.isdir,
                    os.path.getmtime, os.path.getsize, builtins.input, np.load, np.loadtxt, np.genfromtxt, np.fromfile})
_READING = sorted(name for name in {*dir(pathlib.Path)} - {*dir(pathlib.PurePath)} if not name.startswith("_"))
_DYNAMIC = frozenset({builtins.eval, builtins.exec})


def _impurity(value: Any) -> str | None:
    """What a callable does that a recording cannot repeat, or None."""
    if isinstance(value, type):
        if value.__module__.startswith("numpy.random") or issubclass(value, random.Random):
            return "draws random numbers" if value is not np.random.Generator else None
        return _STATE if reads_state(value) else None
    kind = type(value)
    owner = getattr(value, "__self__", None) if kind in (BuiltinFunctionType, MethodType) else value
    if isinstance(owner, _GENERATORS):
        return "draws random numbers"
    if not callable(value):
        return None
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", None) or ""
    if not isinstance(module, str):
        return None
    if any(module == m or module.startswith(m + ".") for m in _RANDOM):
        return "draws random numbers"
    if module in _CLOCKS:
        return "reads the clock"
    if kind in (BuiltinFunctionType, FunctionType) and value in _FILES:
        return "reads what lies outside the program"
    if kind is BuiltinFunctionType and value in _DYNAMIC:
        return "runs code that cannot be followed"
    return _STATE if reads_state(value) else None


def refused(value: Any, name: str, where: Callable[[], Any]) -> Any | None:
    """A callable that raises in place of one that is impure, or has no rule for traced values; None when the value is
    fine."""
    if value is datetime.datetime or value is datetime.date:
        return _refusing(value, ("now", "utcnow", "today"), "reads the clock", where)
    if value is logging.getLogger:
        return outlet_of
    if type(value) is FunctionType and value in LOGGING:
        return writing(value)
    if isinstance(value, OUTLETS):
        return Outlet(value)
    if isinstance(value, pathlib.Path) or (isinstance(value, type) and issubclass(value, pathlib.Path)):
        return _refusing_path(value, where)
    if (hasattr(type(value), "rvs") or is_distribution(value)) and not is_user_class(type(value)):
        return stand_in(value) if is_library_distribution(value) else None
    why = _impurity(value)
    if why is None:
        return library.guarded(value)
    return (ImpureClass if isinstance(value, type) else Impure)(name, why, where, value)


def _refusing(cls: Any, names: tuple[str, ...], why: str, where: Callable[[], Any]) -> type:
    """The class without the methods of these names."""
    class Meta(type(cls)):  # type: ignore[misc]
        def __instancecheck__(self, instance: Any) -> bool:
            return isinstance(instance, cls)

    def refusing(name: str) -> Any:
        return staticmethod(lambda *args, **kwargs: Impure(f"{cls.__name__}.{name}", why, where)())

    return Meta(cls.__name__, (cls,), {name: refusing(name) for name in names if hasattr(cls, name)})


def _refusing_path(path: Any, where: Callable[[], Any]) -> Any:
    """The class of paths, or one of them, without the methods that look at files."""
    def refusing(name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: Impure(f"Path.{name}", "reads what lies outside the program", where)()

    cls = type(pathlib.Path()) if path is pathlib.Path else path if isinstance(path, type) else type(path)
    made = type(cls.__name__, (cls,), {name: refusing(name) for name in _READING})
    return made if isinstance(path, type) else made(path)
