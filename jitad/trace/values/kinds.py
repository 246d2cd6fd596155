"""The classes of numbers and arrays as recorded code sees them: ``float(x)``, ``np.float64(x)``, ``np.ndarray.sum(x)``
of traced ones.

Python takes nothing but its own floats from a ``__float__``, and NumPy makes its scalars itself, so that a class that
converts has a stand-in: called with something traced, it gives a traced number, its methods take traced values, and in
all else it is the class itself, as a dtype, for ``isinstance``, in comparisons, as a key and as a base. Code that finds
a class in another way, by ``x.__class__`` or ``x.dtype.type``, and compares by ``is``, gets the classes as they are
(`tells_kinds` in `captures.bytecode`).
"""
from __future__ import annotations

from types import new_class
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, noted_line, plain
from jitad.trace.values.pairs import Complex, pair
from jitad.trace.values.seen import as_python, one_of, stood_for
from jitad.trace.values.unbound import DESCRIPTORS, unbound

__all__ = ["KINDS", "KIND_NAMES"]


class NumberKind(type):
    """The class of such a stand-in."""

    jitad_kind: type

    def __new__(mcls, name: str, bases: tuple[type, ...], names: dict[str, Any], **more: Any) -> Any:
        real = tuple(base.jitad_kind if isinstance(base, NumberKind) else base for base in bases)
        if "jitad_kind" in names or not any(isinstance(base, NumberKind) for base in bases):
            return super().__new__(mcls, name, bases, names)
        return new_class(name, real, more, lambda made: made.update(names))

    def __getattribute__(cls, name: str) -> Any:
        found = type.__getattribute__(cls, name)
        return unbound(found) or found if type(found) in DESCRIPTORS else found

    def __getattr__(cls, name: str) -> Any:
        found = getattr(type.__getattribute__(cls, "jitad_kind"), name)
        return unbound(found) or found

    @property
    def jitad_current(cls) -> type:
        """For rules, the class."""
        return cls.jitad_kind

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and hasattr(type(args[0]), "jitad_array"):      # data with labels
            args = (args[0].jitad_array,)
        given = args
        args = plain(args)
        builder = builder_in(args)
        kind = cls.jitad_kind
        if kind is np.poly1d:
            return kind(*(as_value(builder, x) if builder_in(x) is not None else x for x in args), **kwargs)
        if builder is not None:
            with noted_line(builder):
                if kind in (int, np.ndarray):
                    return kind(*given, **kwargs)
                return _python(kind, args) if kind in (float, complex) else _numpys(kind, *args)
        if kind in (float, complex) and len(args) == 1 and not isinstance(args[0], (str, bytes, int, float, complex)):
            converted = _own(given[0], f"__{kind.__name__}__")
            if converted is not None:
                return as_python(converted)
        return kind(*given, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        if issubclass(type(instance), Value) and hasattr(instance, "boxed"):
            return issubclass(stood_for(instance), cls.jitad_kind)
        return isinstance(instance, cls.jitad_kind)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(getattr(subclass, "jitad_kind", subclass), cls.jitad_kind)

    def __eq__(cls, other: object) -> bool:
        return cls.jitad_kind is getattr(other, "jitad_kind", other)

    def __hash__(cls) -> int:
        return hash(cls.jitad_kind)

    def __repr__(cls) -> str:
        return repr(cls.jitad_kind)


def _own(thing: Any, name: str) -> Any:
    """What an object's conversion in Python gives, if that is traced."""
    method = getattr(type(thing), name, None)
    if method is None or isinstance(thing, (np.ndarray, np.generic)) or hasattr(type(thing), "jitad_current"):
        return None
    if not hasattr(method, "__code__"):
        return None
    result = method(thing)
    return result if isinstance(result, Value) else None


def _python(kind: type, args: tuple[Any, ...]) -> Any:
    """``float(x)``, ``complex(x)``, ``complex(a, b)``."""
    if len(args) == 1:
        return as_python(args[0], kind)
    if len(args) != 2 or kind is float:
        raise TypeError(f"{kind.__name__} expected at most {1 if kind is float else 2} arguments, got {len(args)}")
    builder = builder_in(args)
    real, imaginary = (as_python(as_value(builder, x)) for x in args)
    if isinstance(real, Complex) or isinstance(imaginary, Complex):
        return real + imaginary * 1j
    return pair(as_python(real, float), as_python(imaginary, float))


def _numpys(kind: type, value: Any, *rest: Any) -> Any:
    """``np.float64(x)`` and its like: a number of a number, an array of an array or list."""
    if rest:
        raise TypeError(f"{kind.__name__} takes one number")
    x = as_value(builder_in(value), value)
    result = x.astype(kind, copy=False) if x.ndim else one_of(x).astype(kind)
    if x.ndim or not getattr(result, "boxed", False):
        return result
    if isinstance(result, Complex):
        return Complex(_number(result.re), _number(result.im))
    return _number(result)


def _number(x: Any) -> Any:
    number: Any = x.builder.value(x.number)
    number.weak = number.boxed = False
    return number


def _array(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return np.ndarray.__new__(getattr(cls, "jitad_kind", cls), *args, **kwargs)


def _kind(cls: type) -> NumberKind:
    bases = () if cls in (np.bool_, np.ndarray) else (cls,)
    names: dict[str, Any] = {"__new__": _array} if cls is np.ndarray else (
        {} if cls is np.poly1d else {"dtype": np.dtype(cls)})
    made = NumberKind(cls.__name__, bases, {"__slots__": (), "jitad_kind": cls, **names})
    made.__module__, made.__qualname__, made.__doc__ = cls.__module__, cls.__qualname__, cls.__doc__
    return made


KINDS: dict[Any, NumberKind] = {cls: _kind(cls) for cls in (
    int, float, complex, np.ndarray, np.float64, np.float32, np.complex128, np.complex64, np.bool_, np.int64, np.int32,
    np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.poly1d)}
KIND_NAMES = frozenset({"int", "float", "complex", *(
    name for name, value in vars(np).items() if isinstance(value, type) and value in KINDS)})
