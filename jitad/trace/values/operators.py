"""The operators and methods of `Tracer`, made from NumPy's functions."""
from __future__ import annotations

import dis
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.view import shown
from jitad.tape.builder import Value
from jitad.trace import ufuncs
from jitad.trace.dispatch import beyond, call, not_concrete, noted_line, plain, refused, repeated
from jitad.trace.values.seen import absent, shown_class, stood_for, text_of
from jitad.trace.where import is_library_file

_FLOAT64 = np.dtype(np.float64)
_SHORT_POWERS = {2.0: np.square, 0.5: np.sqrt, 1.0: np.positive, -1.0: np.reciprocal}
_SCALARS = (int, float, complex, np.generic)


def operable(other: Any) -> bool:
    """Whether an operator takes `other` as an array or a number (else Python asks `other` itself)."""
    if isinstance(other, (Value, np.ndarray, *_SCALARS, list, tuple)):
        return True
    return hasattr(other, "__array__") and getattr(other, "__array_priority__", 0) <= 0 and not isinstance(other, str)


def _number(x: Any) -> Any:
    """A Python bool counts as an int in arithmetic; weak operands are Python's."""
    if isinstance(x, Value) and x.dtype.kind == "b":
        return x.as_weak(cast(x, np.int64))  # type: ignore[attr-defined]
    return int(x) if type(x) is bool else x


def _is_float64_number(x: Any) -> bool:
    if x.storage is not None or x.weak:
        return False
    aval = x.builder.nodes[x.fixed].aval
    return not aval.shape and aval.dtype is _FLOAT64


def on_a_number(ufunc: np.ufunc, x: Any) -> Any:
    """``ufunc(x)`` of one float64 number, by the same short way; None if it is something else."""
    row = ufuncs.row_of(ufunc)
    if row is None or ufunc in ufuncs.COMPOSED or not _is_float64_number(x):
        return None
    return x.builder.on_numbers(row, (x.fixed,))


def element_of(x: Any, i: int) -> Any:
    """``x[i]`` of a vector, by the same short way; None if it is something else."""
    builder = x.builder
    shape = builder.nodes[x.fixed].aval.shape
    if len(shape) != 1 or not -shape[0] <= i < shape[0]:
        return None
    return builder.value(shown(builder, x.fixed, (), (((i if i >= 0 else i + shape[0]), ()),)))


def binary(ufunc: np.ufunc, swap: bool = False, logic: bool = False) -> Callable[[Any, Any], Any]:
    row: Any = None

    def operator(self: Any, other: Any) -> Any:
        nonlocal row
        # Two float64 numbers, or one and a Python float: what long loops are made of, without any further question.
        if self.storage is None and not self.weak and not self.boxed:
            builder, number = self.builder, -1
            aval = builder.nodes[self.fixed].aval
            if not aval.shape and aval.dtype is _FLOAT64:
                if type(other) is float:
                    number = builder.number(other)
                elif type(other) is type(self) and other.builder is builder and not other.boxed and (
                        _is_float64_number(other)):
                    number = other.fixed
            if number >= 0:
                row = row or ufuncs.row_of(ufunc)
                if row is not None:
                    return builder.on_numbers(row, (number, self.fixed) if swap else (self.fixed, number))
        short = ufuncs.usual(self, ufunc, (other, self) if swap else (self, other))
        return _in_general(ufunc, self, other, swap, logic) if short is None else short
    return operator


def _in_general(ufunc: np.ufunc, self: Any, other: Any, swap: bool, logic: bool) -> Any:
    other = plain(other)
    if not operable(other):
        return NotImplemented
    a, b = (other, self) if swap else (self, other)
    with noted_line(self.builder):
        if not (self.weak and ufuncs.is_weak(other)):
            return repeated(ufunc, partial(ufuncs.apply_ufunc, ufunc), (a, b), {})
        result = ufuncs.apply_ufunc(ufunc, a, b) if logic else ufuncs.apply_ufunc(ufunc, _number(a), _number(b))
    return tuple(map(self.as_weak, result)) if isinstance(result, tuple) else self.as_weak(result)


def repeating(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``*``: of a list, tuple or text and a number it is the sequence so many times, as in Python."""
    def product(self: Any, other: Any) -> Any:
        if type(other) not in (list, tuple, str, bytes) or self.ndim or self.boxed:
            return operator(self, other)
        if self.dtype.kind not in ("iub" if self.weak else "iu"):
            raise TypeError(f"can't multiply sequence by non-int of type '{shown_class(stood_for(self))}'")
        return other * int(self)
    return product


def power(swap: bool = False) -> Callable[[Any, Any], Any]:
    general = binary(np.power, swap)

    def operator(self: Any, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return _power_modulo(self, other, modulo)
        if swap or type(other) not in (int, float) or self.dtype.kind != "f":
            if not swap and self.weak and type(other) is int and other < 0:
                return general(self.as_weak(cast(self, np.float64)), other)        # as Python's int
            if not swap and self.dtype.kind == "b" and type(other) is int and other == 2 and not self.weak:
                return ufuncs.apply_ufunc(np.square, self)
            return general(self, other)
        short = _SHORT_POWERS.get(other)
        if short is None or (short is np.sqrt and not (self.ndim or self.boxed)):    # of numbers it is a power
            return general(self, other)
        if _is_float64_number(self):
            return self.builder.on_numbers(ufuncs.row_of(short), (self.fixed,))
        result = ufuncs.usual(self, short, (self,))
        if result is not None:
            return result
        result = ufuncs.apply_ufunc(short, self)
        return self.as_weak(result) if self.weak else result
    return operator


def _power_modulo(x: Any, exponent: Any, modulo: Any) -> Any:
    """``pow(x, exponent, modulo)``, which is for Python's whole numbers; on them depends the tape."""
    numbers = [x, exponent, modulo]
    if any(isinstance(n, Value) and not (n.weak and n.dtype.kind in "ib") for n in numbers):    # type: ignore[attr-defined]
        raise TypeError("pow() 3rd argument not allowed unless all arguments are integers")
    return pow(*(int(n) for n in numbers))


def unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        short = ufuncs.usual(self, ufunc, (self,))
        if short is not None:
            return short
        with noted_line(self.builder):
            result = ufuncs.apply_ufunc(ufunc, _number(self) if self.weak else self)
        return self.as_weak(result) if self.weak else result
    return operator


def compare(ufunc: np.ufunc, unlike: bool) -> Callable[[Any, Any], Any]:
    """``==`` and ``!=``; None and strings are never equal, as in NumPy."""
    general = binary(ufunc, logic=True)

    def operator(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, (str, bytes)):
            return np.full(self.shape, unlike) if self.ndim else unlike
        result = general(self, other)
        if not unlike and isinstance(other, Value):
            self.builder.compared = (result, self, other, instruction(1))
        return result
    return operator


def instruction(depth: int) -> tuple[int, int]:
    """Which one of the recorded code is being done, when an operator `depth` frames above is at work for it."""
    frame = sys._getframe(depth + 1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__.replace("operators", "truths"):
        frame = frame.f_back
    return id(frame), frame.f_lasti


def equal_as_one(truth: Any) -> bool:
    """Whether `truth` says that two are equal, is asked by what compares them within lists, tuples and the like, in the
    same instruction, and they are one object: for Python, which asks that first, it then does not matter whether they
    are equal. For numbers it matters where they are NaN."""
    recorder, compared = truth.builder, getattr(truth.builder, "compared", None)
    if compared is None or compared[0] is not truth or compared[3] != instruction(2) or recorder.captures is None:
        return False
    a, b = compared[1:3]
    if a is b or _is_operand(b):                             # lists would not have asked; or are not what is compared
        return False
    if truth.size == 1 and (recorder.decide(truth.reshape(())) or not (
            recorder.decide(np.not_equal(a, a).reshape(())) and recorder.decide(np.not_equal(b, b).reshape(())))):
        return False
    return recorder.captures.asked.is_same(a, b)


def _is_operand(value: Any) -> bool:
    """Whether the variable with this value is compared itself, and not what it is in: from Python 3.13 on, the
    instruction that compares for ``if x == y`` asks for the truth, too."""
    frame = sys._getframe(3)
    done = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti and i.opname != "EXTENDED_ARG"]
    if done[-1].opname != "COMPARE_OP" or not done[-2].opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
        return False
    names = done[-2].argval
    return frame.f_locals.get(names if isinstance(names, str) else names[-1]) is value


def in_place(operator: Callable[[Any, Any], Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Numbers, which are immutable, are rebound; arrays change under all their names."""
    def operation(self: Any, other: Any) -> Any:
        result = operator(self, other)
        if not (self.ndim or self.boxed) or result is NotImplemented:
            return result
        with noted_line(self.builder):
            self.assign(ufunc, result, (self, other))
        return self
    return operation


def method(function: Any) -> Callable[..., Any]:
    def call_it(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(function, self, *args, **kwargs)
    call_it.__doc__ = f"As ``numpy.{function.__name__}``."
    return call_it


def check_whole(x: Any, convert: Callable[[float], int]) -> None:
    """Raise what `convert` to an integer raises where there is none near the number `x`; which numbers are refused, and
    how, is guarded."""
    if x.dtype.kind != "f":
        return

    def refuse(number: float) -> NoReturn:
        convert(number)
        raise beyond(x, f"{convert.__name__}()")

    recorder, bad = x.recorder, np.logical_not(np.less(np.absolute(x), 2.0**63))
    explorer = getattr(recorder, "explorer", None)
    if explorer is not None and explorer.depends(bad.number):
        explorer.forbid(bad, refuse, [x])
    elif recorder.decide(bad):
        refuse(math.nan if recorder.decide(np.isnan(x)) else math.inf if recorder.decide(np.isinf(x)) else 2.0**63)


def round_of(self: Any, ndigits: int | None = None) -> Any:
    """``__round__``: of a Python float by its exact value, of NumPy's by ``np.round``."""
    if self.ndim:
        raise TypeError("type numpy.ndarray doesn't define __round__ method")
    if ndigits is not None:
        pythons = self.weak and self.dtype.kind == "f"
        result = call(round if pythons else np.round, self, ndigits)
        return self.as_weak(result) if self.weak else result
    if self.dtype.kind in "iu":
        return self.as_weak(self.builder.value(self.number))
    check_whole(self, round)
    return self.as_weak(cast(ufuncs.apply_ufunc(np.rint, self), np.int64))


def refused_method(name: str, advice: str) -> Callable[..., Any]:
    def call_it(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise refused(self, f"the array method .{name}()", advice)
    return call_it


def refused_property(name: str) -> property:
    def getter(self: Any) -> NoReturn:
        raise refused(self, f"the array attribute .{name}", "use the array itself")
    return property(getter)


def float_of(self: Any) -> float:
    """``__float__``, which Python's own code asks: refused, but for the text that ``"%.3f" % x`` makes."""
    frame = sys._getframe(1)
    code, at = frame.f_code.co_code, frame.f_lasti
    if at >= 0 and code[at] == _BINARY and code[at + 1] in _REMAINDERS:
        return text_of(self, float) if self.size == 1 else float(np.empty(self.shape))
    raise not_concrete(self, "float() or a function of math", _MATH)


_BINARY, _REMAINDERS = dis.opmap["BINARY_OP"], (6, 19)              # % and %=
_MATH = ("use NumPy's function in place of math's (np.exp for math.exp), leave out the conversion, or "
         "pass the number in as a string or another static value")


def hash_of(self: Any) -> int:
    """Of whole numbers, as keys and in sets, on which the tape then depends."""
    if self.dtype.kind == "i" and self.is_number and not is_library_file(sys._getframe(1).f_code.co_filename):
        return hash(int(self))
    raise not_concrete(self, "hash() or a look-up", "whole numbers can be keys and in sets; in the place of others "
                       "use an int(x) or a text, f'{x:.3f}', and compare with lists: x in [1.0, 2.0]")


def concrete(what: str, advice: str) -> Callable[..., Any]:
    def call_it(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise not_concrete(self, what, advice)
    return call_it


class Arithmetic:
    """The operators of traced values."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return absent(self, name)

    __add__, __radd__ = binary(np.add), binary(np.add, True)
    __sub__, __rsub__ = binary(np.subtract), binary(np.subtract, True)
    __mul__, __rmul__ = repeating(binary(np.multiply)), repeating(binary(np.multiply, True))
    __truediv__, __rtruediv__ = binary(np.true_divide), binary(np.true_divide, True)
    __floordiv__, __rfloordiv__ = binary(np.floor_divide), binary(np.floor_divide, True)
    __mod__, __rmod__ = binary(np.remainder), binary(np.remainder, True)
    __divmod__, __rdivmod__ = binary(np.divmod), binary(np.divmod, True)
    __matmul__, __rmatmul__ = binary(np.matmul), binary(np.matmul, True)
    __pow__, __rpow__ = power(), power(True)
    __and__, __rand__ = binary(np.bitwise_and, logic=True), binary(np.bitwise_and, True, logic=True)
    __or__, __ror__ = binary(np.bitwise_or, logic=True), binary(np.bitwise_or, True, logic=True)
    __xor__, __rxor__ = binary(np.bitwise_xor, logic=True), binary(np.bitwise_xor, True, logic=True)
    __lshift__, __rlshift__ = binary(np.left_shift), binary(np.left_shift, True)
    __rshift__, __rrshift__ = binary(np.right_shift), binary(np.right_shift, True)
    __neg__, __pos__, __abs__ = unary(np.negative), unary(np.positive), unary(np.absolute)
    __invert__ = unary(np.invert)
    __lt__, __le__ = binary(np.less), binary(np.less_equal)
    __gt__, __ge__ = binary(np.greater), binary(np.greater_equal)
    __eq__, __ne__ = compare(np.equal, False), compare(np.not_equal, True)       # type: ignore[assignment]
    __iadd__, __isub__ = in_place(__add__, np.add), in_place(__sub__, np.subtract)
    __imul__, __itruediv__ = in_place(__mul__, np.multiply), in_place(__truediv__, np.true_divide)
    __ifloordiv__, __imod__ = in_place(__floordiv__, np.floor_divide), in_place(__mod__, np.remainder)
    __ipow__, __imatmul__ = in_place(__pow__, np.power), in_place(__matmul__, np.matmul)
    __iand__, __ior__ = in_place(__and__, np.bitwise_and), in_place(__or__, np.bitwise_or)
    __ixor__, __ilshift__ = in_place(__xor__, np.bitwise_xor), in_place(__lshift__, np.left_shift)
    __irshift__ = in_place(__rshift__, np.right_shift)
