"""Scalar expressions: the arithmetic of the loop language.

An `Expr` is one scalar operation applied to other expressions. The emitters
print or build them, `jitad.compile.math` writes its expansions in them. Operations are
those a machine has: nothing here knows of arrays, tapes or numba.

dtypes are tags: ``"f8"`` float64, ``"f4"`` float32, ``"i8"`` int64, ``"b1"`` bool.

================= ======================= =======================================
op                arguments               result
================= ======================= =======================================
const             Python number           a literal
var               name                    a local variable of the loop program
load              buffer name, indices    an element of a buffer
add sub mul div   a, b                    same dtype as the arguments
neg abs sqrt      a                       floats (neg, abs: ints too)
floor ceil trunc  a                       floats
rint              a                       floats, ties to even
copysign fmod     a, b                    floats
lt le gt ge eq ne a, b                    b1 (ordered comparisons; ne unordered)
and or xor        a, b                    b1 and i8
not               a                       b1
shl ashr lshr     i8, i8                  i8
floordiv mod min  i8, i8 (not negative)   i8, arithmetic of indices
select            b1, a, b                dtype of a
bits              f8                      i8, the same 64 bits
unbits            i8                      f8, the same 64 bits
cast              a                       the dtype of the Expr (C conversion)
loop              `Repeat`, first, ...    several f8, of which `carried` is one
sum               `Terms`                 several f8, of which `carried` is one
carried           loop or sum, place      f8
(any other name)  a, ...                  a math function, see `jitad.compile.math`
================= ======================= =======================================
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
Operand = "Expr | float | int | bool"


class Expr:
    """One scalar operation; immutable. Build with the functions and operators below."""

    __slots__ = ("op", "args", "dtype")

    def __init__(self, op: str, args: Sequence[Any], dtype: str):
        self.op, self.args, self.dtype = op, tuple(args), dtype

    def _like(self, value: Any) -> Expr:
        return value if isinstance(value, Expr) else const(value, self.dtype)

    def _binary(self, op: str, other: Any, swap: bool = False) -> Expr:
        other = self._like(other)
        a, b = (other, self) if swap else (self, other)
        return Expr(op, (a, b), "b1" if op in COMPARISONS else self.dtype)

    def __add__(self, o: Any) -> Expr: return self._binary("add", o)
    def __radd__(self, o: Any) -> Expr: return self._binary("add", o, True)
    def __sub__(self, o: Any) -> Expr: return self._binary("sub", o)
    def __rsub__(self, o: Any) -> Expr: return self._binary("sub", o, True)
    def __mul__(self, o: Any) -> Expr: return self._binary("mul", o)
    def __rmul__(self, o: Any) -> Expr: return self._binary("mul", o, True)
    def __truediv__(self, o: Any) -> Expr: return self._binary("div", o)
    def __rtruediv__(self, o: Any) -> Expr: return self._binary("div", o, True)
    def __and__(self, o: Any) -> Expr: return self._binary("and", o)
    def __or__(self, o: Any) -> Expr: return self._binary("or", o)
    def __xor__(self, o: Any) -> Expr: return self._binary("xor", o)
    def __lshift__(self, o: Any) -> Expr: return self._binary("shl", o)
    def __rshift__(self, o: Any) -> Expr: return self._binary("ashr", o)
    def __lt__(self, o: Any) -> Expr: return self._binary("lt", o)
    def __le__(self, o: Any) -> Expr: return self._binary("le", o)
    def __gt__(self, o: Any) -> Expr: return self._binary("gt", o)
    def __ge__(self, o: Any) -> Expr: return self._binary("ge", o)
    def eq(self, o: Any) -> Expr: return self._binary("eq", o)
    def ne(self, o: Any) -> Expr: return self._binary("ne", o)
    def __neg__(self) -> Expr: return Expr("neg", (self,), self.dtype)
    def __abs__(self) -> Expr: return Expr("abs", (self,), self.dtype)
    def __invert__(self) -> Expr: return Expr("not", (self,), self.dtype)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


def const(value: float | int | bool, dtype: str = "f8") -> Expr:
    return Expr("const", (value,), dtype)


def var(name: str, dtype: str) -> Expr:
    return Expr("var", (name,), dtype)


def load(buffer: str, indices: Sequence[Expr], dtype: str) -> Expr:
    return Expr("load", (buffer, *indices), dtype)


def call(op: str, *args: Expr, dtype: str | None = None) -> Expr:
    """`op` by name; the result has the first argument's dtype unless one is given."""
    if dtype is None:
        dtype = "b1" if op in COMPARISONS else args[0].dtype
    return Expr(op, args, dtype)


def select(condition: Expr, a: Any, b: Any) -> Expr:
    """`a` where `condition`, else `b`; numbers take the dtype of the other branch."""
    if not isinstance(a, Expr):
        a = const(a, b.dtype if isinstance(b, Expr) else "f8")
    return Expr("select", (condition, a, a._like(b)), a.dtype)


def bits(x: Expr) -> Expr: return Expr("bits", (x,), "i8")
def unbits(i: Expr) -> Expr: return Expr("unbits", (i,), "f8")
def cast(x: Expr, dtype: str) -> Expr: return x if x.dtype == dtype else Expr("cast", (x,), dtype)


@dataclass(frozen=True, eq=False)
class Repeat:
    """While `condition` holds of the `variables`, they become `following`, all at once."""

    variables: tuple[Expr, ...]
    condition: Expr
    following: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Terms:
    """`terms` in two variables, which take the values of two columns of numbers; they are summed, in any order."""

    variables: tuple[Expr, Expr]
    columns: tuple[tuple[float, ...], tuple[float, ...]]
    terms: tuple[Expr, ...]


def repeat(first: Sequence[Any], condition: Callable[..., Expr], step: Callable[..., Sequence[Any]]) -> list[Expr]:
    """`first`, taken through `step` for as long as `condition` holds; all float64."""
    variables = tuple(Expr("var", (f"carried_{i}",), "f8") for i in range(len(first)))
    as_is = const(0.0)._like
    body = Repeat(variables, condition(*variables), tuple(as_is(e) for e in step(*variables)))
    loop = Expr("loop", (body, *map(as_is, first)), "f8")
    return [Expr("carried", (loop, i), "f8") for i in range(len(first))]


def sum_over(columns: Any, terms: Callable[[Expr, Expr], Sequence[Any]]) -> list[Expr]:
    """The sums of ``terms(a, b)`` over the rows of two columns of numbers."""
    variables = (Expr("var", ("column_0",), "f8"), Expr("var", ("column_1",), "f8"))
    found = tuple(terms(*variables))
    total = Expr("sum", (Terms(variables, columns, found),), "f8")
    return [Expr("carried", (total, i), "f8") for i in range(len(found))]
