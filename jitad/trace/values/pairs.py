"""Complex numbers while a function is recorded: pairs of traced real values.

No tape has a complex dtype. A `Complex` is what the user's code sees in place of a complex array or number: two
tracers of one shape and dtype, its real and its imaginary part. Structural and linear functions act on both parts
(`complexes.parts`), arithmetic has its formulas (`complexes.ufuncs`); what has neither is refused by name, since a
pair has no node of its own. A complex argument, captured array or result is one real array on the tape, *packed*: its
last dimension has the real and the imaginary part.
"""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.primitives.core import alias, cast, full
from jitad.primitives.index import concatenate
from jitad.primitives.view import broadcast_to, expand_dims, slice_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Aval, seen_through
from jitad.trace.dispatch import COMPLEX, as_value, builder_in, call, noted_line, plain, refused
from jitad.trace.leaves import is_complex
from jitad.trace.values.tracer import Tracer

__all__ = ["Complex", "as_complex", "constant", "form_of", "is_packed", "is_zero", "output_of", "pack",
           "packed_real", "pair", "parts_of", "seen_aval", "unpacked"]

ADVICE = "take its .real, .imag, np.abs or np.angle first, or write it with functions that have a rule"


class Complex(Tracer):
    """A complex array or number: the tracers `re` and `im`."""

    __slots__ = ("im", "re")
    jitad_parts = True

    def __init__(self, re: Any, im: Any):
        self.builder, self.re, self.im = re.builder, re, im
        self.boxed, self.frozen = re.boxed, re.frozen

    # --- what a pair does not have ------------------------------------------------------------
    def _no_node(self) -> UnsupportedOperationError:
        return refused(self.builder, "a complex value in this operation", ADVICE)

    @property
    def number(self) -> int:                                        # type: ignore[override]
        raise self._no_node()

    @property
    def fixed(self) -> int:                                        # type: ignore[override]
        raise self._no_node()

    @property
    def home(self) -> Any:
        raise self._no_node()

    @property
    def storage(self) -> Any:                                       # type: ignore[override]
        """That of the real part; it says that this is no plain number."""
        return self.re.home

    # --- what it is ------------------------------------------------------------------------------
    @property
    def weak(self) -> bool:                                         # type: ignore[override]
        return self.re.weak and self.im.weak

    @weak.setter
    def weak(self, value: bool) -> None:
        self.re.weak = self.im.weak = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.re.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.re.shape = self.im.shape = shape

    @property
    def aval(self) -> Aval:
        return Aval(self.re.shape, complex_dtype(self.re.dtype), self.weak)

    @property
    def real(self) -> Any:
        return self.re

    @real.setter
    def real(self, value: Any) -> None:
        self.re[...] = value

    @property
    def imag(self) -> Any:
        return self.im

    @imag.setter
    def imag(self, value: Any) -> None:
        self.im[...] = value

    @property
    def T(self) -> Any:
        return self._both(lambda part: part.T)

    @property
    def mT(self) -> Any:
        return self._both(lambda part: part.mT)

    def _both(self, function: Any) -> Any:
        return Complex(function(self.re), function(self.im))

    def detached(self) -> Any:
        return self._both(lambda part: part.detached())

    def copy(self, order: str = "C") -> Any:
        return self._both(lambda part: part.copy(order))

    def conj(self) -> Any:
        return np.conjugate(self)

    conjugate = conj

    def astype(self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        """As ``ndarray.astype``: to a real dtype the imaginary part is lost, with NumPy's warning."""
        dtype = np.dtype(dtype)
        if not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(f"Cannot cast array data from {self.dtype!r} to {dtype!r} according to the rule "
                            f"{casting!r}")
        if dtype.kind == "b":
            return np.not_equal(self, 0)
        if dtype.kind == "c":
            half = real_dtype(checked_dtype(self, dtype))
            return self._both(lambda part: part.astype(half, order, "unsafe", subok, copy))
        warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
                      stacklevel=2)
        return self.re.astype(dtype)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        raise refused(self.builder, "the array method .view() of a complex array",
                      "use .real and .imag, np.stack of both for an array with both")

    # --- elements --------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Any:
        return self._both(lambda part: part[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        re, im = parts_of(self.builder, plain(value))
        self.re[index] = re
        self.im[index] = im

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = call(np.sort, self, axis, kind, order, stable=stable)

    def assign(self, ufunc: np.ufunc, result: Any, operands: tuple[Any, ...]) -> None:
        """Store what an operation gave, as ``a += b`` does."""
        re, im = parts_of(self.builder, result)
        ones = tuple(np.ones(np.shape(o)) for o in operands)        # for NumPy's own message about shapes
        self.re.assign(ufunc, cast(re, self.re.dtype), ones)
        self.im.assign(ufunc, cast(im, self.im.dtype), ones)

    # --- numbers ---------------------------------------------------------------------------------
    def __bool__(self) -> bool:
        if self.size != 1:
            return super().__bool__()
        return bool(np.not_equal(self, 0).reshape(()))

    def __int__(self) -> int:
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'complex'")

    def __index__(self) -> int:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")

    def __repr__(self) -> str:
        return f"<traced {self.aval}>"

    def __str__(self) -> str:
        raise refused(self.builder, "the text of a complex value", "print its .real and .imag")

    def __format__(self, spec: str) -> str:
        raise refused(self.builder, "the text of a complex value", "print its .real and .imag")

    def __round__(self, ndigits: int | None = None) -> Any:
        raise TypeError("type complex doesn't define __round__ method")


# --- dtypes --------------------------------------------------------------------------------------

def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts have `dtype`."""
    return np.dtype(np.complex64 if dtype == np.float32 else np.complex128)


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts."""
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def checked_dtype(x: Value, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A complex dtype, if it is one of those that can be pairs."""
    if dtype not in (np.complex64, np.complex128):
        raise refused(x, f"dtype {dtype}", "use complex128 or complex64")
    return dtype


def _key(part: Any) -> Any:
    if part.aval.weak:
        return {"f": 1.0, "i": 1}.get(part.dtype.kind, part.dtype)
    return part.dtype


# --- making pairs --------------------------------------------------------------------------------

def pair(re: Any, im: Any) -> Complex:
    """The complex value with these parts, at least one of which is traced; shapes and dtypes as ``re + 1j * im``."""
    builder = builder_in(re, im)
    re, im = as_value(builder, re), as_value(builder, im)
    half = real_dtype(np.result_type(1j, _key(re), _key(im)))
    shape = re.shape if re.shape == im.shape else np.broadcast_shapes(re.shape, im.shape)
    weak, array = re.aval.weak and im.aval.weak, getattr(re, "boxed", False) or getattr(im, "boxed", False)
    result = Complex(*(_part(x, half, shape) for x in (re, im)))
    for part in (result.re, result.im):
        part.weak, part.boxed = weak, array and not shape
    result.boxed = array and not shape
    return result


def _part(x: Any, half: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """`x` as a part; a number gets a handle of its own."""
    part = broadcast_to(cast(x, half), shape)
    return part if shape else part.builder.value(part.number)


def constant(builder: Builder, value: Any) -> Complex:
    """A complex number or array on the tape; a Python number is weak."""
    if type(value) is complex:
        return Complex(builder.const(value.real, weak=True), builder.const(value.imag, weak=True))
    array = np.asarray(value)
    half = real_dtype(array.dtype)
    if array.dtype not in (np.complex64, np.complex128):
        raise refused(builder, f"an operand of dtype {array.dtype}", "use complex128 or complex64")
    return Complex(builder.const(array.real.astype(half)), builder.const(array.imag.astype(half)))


def parts_of(builder: Builder | None, value: Any) -> tuple[Any, Any]:
    """Real and imaginary part of anything that can be an operand; of what is real, the number 0."""
    value = plain(value)
    if isinstance(value, (list, tuple)):
        value = as_value(builder, value) if builder_in(value) is not None else np.asarray(value)
    if isinstance(value, Complex):
        return value.re, value.im
    if is_complex(value):
        value = constant(builder, value)                            # type: ignore[arg-type]
        return value.re, value.im
    return value if isinstance(value, Value) else as_value(builder, value), as_value(builder, 0.0)


def as_complex(x: Any, dtype: Any) -> Complex:
    """`x`, real or complex, in a complex dtype: the meaning of a cast."""
    half = real_dtype(checked_dtype(x, np.dtype(dtype)))
    if isinstance(x, Complex):
        return Complex(*(_part(part, half, x.shape) for part in (x.re, x.im)))
    re = x.builder.value(cast(x, half).number)
    re.weak, re.boxed = False, x.boxed
    return Complex(re, full(re, 0.0, re.shape, half))


def is_zero(x: Any) -> bool:
    """Whether a part is the constant 0, wherever it is broadcast to."""
    value = seen_through(x.builder.nodes, x.node).constant
    return value is not None and value.size == 1 and not value.any()


# --- packed --------------------------------------------------------------------------------------

def pack(z: Complex) -> Value:
    """One real value with the parts along a new last dimension."""
    with noted_line(z.builder):
        parts = [expand_dims(part, (part.ndim,)) for part in (z.re, z.im)]
        return concatenate(*parts, axis=parts[0].ndim - 1)


def unpacked(packed: Any, value: Any) -> Complex:
    """The complex input `value` that is packed in a traced array; its parts are views of that array."""
    result = Complex(packed[..., 0], packed[..., 1])
    if not result.ndim and not isinstance(value, np.ndarray):
        result = Complex(packed[0], packed[1])
        result.weak = type(value) is complex
    return result


RESULT = -1                                   # the slot of aliases that stand for complex results


def output_of(z: Complex) -> Value:
    """A complex result, packed; `form_of` tells it from a real array."""
    return alias(pack(z), slot=RESULT)


def is_packed(value: Value) -> bool:
    """Whether a result is complex: made by `output_of`."""
    node = value.node
    return node.prim is alias and node.params["slot"] == RESULT


def form_of(value: Value) -> tuple[str, str]:
    """How a complex result is returned: form and dtype, as in `jitad.call.request.results`."""
    return "complex" if value.ndim > 1 else "complex number", complex_dtype(value.dtype).name


def packed_real(x: Value) -> Value:
    """A real value packed as the complex one that it is."""
    return concatenate(expand_dims(x, (x.ndim,)), full(x, 0.0, (*x.shape, 1), x.dtype), axis=x.ndim)


def seen_aval(value: Value, packed: bool) -> Aval:
    """Shape and dtype of a value on the tape as the user knows them."""
    return Aval(value.shape[:-1], complex_dtype(value.dtype)) if packed else value.aval


def split_packed(packed: Value) -> Complex:
    """The same for a value that is nobody's array, the result of a row."""
    whole = (slice(None),) * (packed.ndim - 1)
    return Complex(*(slice_dims(packed, (*whole, i)) for i in (0, 1)))


COMPLEX.constant = constant
