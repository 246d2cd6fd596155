"""Scalar expressions as LLVM IR.

`build` walks an `Expr` graph without recursion and builds each object once. A math
function becomes an internal function of the module, written once in a process and marked
`alwaysinline`, so that loops around the call vectorise.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from jitad.compile.llvm.builder import CONTRACT, IRBuilder
from jitad.compile.llvm.cython_special import is_special
from jitad.compile.llvm.ir import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    Global,
    Integer,
    IRConstant,
    IRFunction,
    IRValue,
    Module,
    Product,
    Type,
)
from jitad.compile.math.algorithms import ROUTINES
from jitad.compile.math.table import EXPANSIONS, WHOLE
from jitad.compile.scalar.columns import build_loop, build_sum
from jitad.compile.scalar.special_calls import special_call
from jitad.tape.expr import COMPARISONS, Expr, call, var

NARROW = {f"{sign}{kind.width // 8}": kind for sign in "iu" for kind in (INT8, INT16, INT32)}
TYPES: dict[str, Type] = {"f8": DOUBLE, "f4": FLOAT, "i8": INT64, "b1": BOOL, **NARROW}
FLOATS = ("f8", "f4")
ARITHMETIC = {"add": ("fadd", "add"), "sub": ("fsub", "sub"), "div": ("fdiv", "sdiv")}
BIT_OPS = {op: op for op in ("and", "or", "xor", "shl", "ashr", "lshr")} | {"floordiv": "udiv", "mod": "urem"}
INTRINSICS = ("sqrt", "floor", "ceil", "trunc", "rint", "copysign")
FUNCTIONS: dict[str, Callable[..., Expr]] = {**EXPANSIONS, **ROUTINES, **{f"{op}.whole": f for op, f in WHOLE.items()}}
SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
Loader = Callable[[IRBuilder, Expr, list[Any]], Any]
Emit = Callable[[IRBuilder, Expr, list[Any], bool], IRValue]


def build(builder: IRBuilder, expr: Expr, variables: Mapping[str, Any], memo: dict[Expr, Any] | None = None,
          load: Loader | None = None, inline: bool = True, apart: bool = False) -> Any:
    """The value of `expr` at the builder's position.

    `memo` may be shared by calls whose code dominates one another's. `load` builds
    the `load` operation from the expression and the values of its indices. Without `inline`
    math functions stay calls: less code, for what runs once. `apart`: two products that are added are
    rounded first, so that they cancel where NumPy's do. (The math functions count on fused operations.)
    """
    if memo is None:
        if expr.op == "var":
            return variables[expr.args[0]]
        memo = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        op = node.op
        if op == "var":
            memo[node] = variables[node.args[0]]
            continue
        values, missing = [], []
        for a in node.args:
            if a.__class__ is Expr:
                if a in memo:
                    values.append(memo[a])
                elif a.op == "const":
                    values.append(memo.setdefault(a, constant(a)))
                else:
                    missing.append(a)
        if missing:
            missing.reverse()
            stack += missing
            continue
        stack.pop()
        write = OPERATIONS.get(op)
        if write is not None:
            memo[node] = write(builder, node, values, apart)
        elif op == "load" and load is not None:
            memo[node] = load(builder, node, values)
        elif op in ("loop", "sum"):
            def within(e: Expr, known: Mapping[Expr, Any], memo: dict[Expr, Any] = memo) -> Any:
                return build(builder, e, variables, {**memo, **known}, load, inline, apart)
            body = node.args[0]
            memo[node] = build_loop(builder, body, values, within) if values else build_sum(builder, body, within)
        elif op == "carried":
            memo[node] = memo[node.args[0]][node.args[1]]
        else:
            memo[node] = math_call(builder, node, values, inline)
    return memo[expr]


# --- operations of the machine -------------------------------------------------------------------
def _arithmetic(of_floats: str, of_integers: str) -> Emit:
    def write(builder: IRBuilder, node: Expr, values: list[Any], apart: bool) -> IRValue:
        a, b = values
        if node.dtype not in FLOATS:
            return builder.binary(of_integers, a, b)
        # x * x - y * y is zero for equal x and y, and its square root not NaN
        products = apart and of_floats != "fdiv" and type(a) is Product and type(b) is Product
        return builder.binary(of_floats, a, b, "" if products else CONTRACT)
    return write


def _product(builder: IRBuilder, node: Expr, values: list[Any], apart: bool) -> IRValue:
    a, b = values
    return builder.fmul(a, b, CONTRACT) if node.dtype in FLOATS else builder.mul(a, b)


def _binary(name: str) -> Emit:
    return lambda builder, node, values, apart: builder.binary(name, values[0], values[1])


def _intrinsic(name: str) -> Emit:
    def write(builder: IRBuilder, node: Expr, values: list[Any], apart: bool) -> IRValue:
        return builder.call(builder.module.intrinsic(name, values[0].type, len(values)), values)
    return write


def _negative(builder: IRBuilder, node: Expr, values: list[Any], apart: bool) -> IRValue:
    return (builder.fneg if node.dtype in FLOATS else builder.neg)(*values)


def _magnitude(builder: IRBuilder, node: Expr, values: list[Any], apart: bool) -> IRValue:
    x, = values
    if node.dtype in FLOATS:
        return builder.call(builder.module.intrinsic("fabs", x.type), values)
    return builder.select(builder.icmp_signed("<", x, x.type(0)), builder.neg(x), x)


def constant(node: Expr) -> IRConstant:
    """A literal; integers may be written signed or unsigned."""
    value, kind = node.args[0], TYPES[node.dtype]
    if isinstance(kind, Integer):
        return kind(int(bool(value)) if kind is BOOL else wrapped(int(value), kind.width))
    return kind(float(value))


def wrapped(value: int, width: int) -> int:
    """The signed integer of the same low bits."""
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


def _comparison(op: str) -> Emit:
    """Ordered comparisons of floats, except that NaN is unequal to all."""
    symbol, of_floats = SYMBOLS[op], IRBuilder.fcmp_unordered if op == "ne" else IRBuilder.fcmp_ordered

    def write(builder: IRBuilder, node: Expr, values: list[Any], apart: bool) -> IRValue:
        kind = node.args[0].dtype[0]
        compare = of_floats if kind == "f" else IRBuilder.icmp_signed if kind == "i" else IRBuilder.icmp_unsigned
        return compare(builder, symbol, *values)
    return write


def conversion(builder: IRBuilder, value: IRValue, source: str, target: str) -> IRValue:
    """A C conversion between dtypes."""
    kind = TYPES[target]
    if source == target:
        return value
    if target == "b1":
        zero = value.type(0)
        return builder.fcmp_unordered("!=", value, zero) if source[0] == "f" else builder.icmp_signed("!=", value, zero)
    if source[0] == "f" and target[0] == "f":
        return builder.convert("fpext" if target == "f8" else "fptrunc", value, kind)
    if source[0] == "f":
        return builder.convert("fptosi" if target[0] == "i" else "fptoui", value, kind)
    signed = source[0] == "i"
    if target[0] == "f":
        return builder.convert("sitofp" if signed else "uitofp", value, kind)
    if kind.width > value.type.width:                         # type: ignore[attr-defined]
        return builder.convert("sext" if signed else "zext", value, kind)
    return builder.trunc(value, kind)


OPERATIONS: dict[str, Emit] = {
    "const": lambda builder, node, values, apart: constant(node),
    "cast": lambda builder, node, values, apart: conversion(builder, values[0], node.args[0].dtype, node.dtype),
    "select": lambda builder, node, values, apart: builder.select(*values),
    "bits": lambda builder, node, values, apart: builder.bitcast(values[0], INT64),
    "unbits": lambda builder, node, values, apart: builder.bitcast(values[0], DOUBLE),
    "not": lambda builder, node, values, apart: builder.not_(*values),
    "min": lambda builder, node, values, apart: builder.select(builder.icmp_signed("<", *values), *values),
    "mul": _product, "neg": _negative, "abs": _magnitude, "fmod": _binary("frem"),
    **{op: _arithmetic(*names) for op, names in ARITHMETIC.items()},
    **{op: _binary(name) for op, name in BIT_OPS.items()},
    **{op: _intrinsic(op) for op in INTRINSICS},
    **{op: _comparison(op) for op in COMPARISONS}}


# --- math functions ------------------------------------------------------------------------------
def math_call(builder: IRBuilder, node: Expr, values: list[IRValue], inline: bool) -> IRValue:
    """A call of a math function in float64, whatever the dtype of the node."""
    op, dtype = node.op, node.dtype
    if dtype in FLOATS and op in FUNCTIONS:
        if op in WHOLE and whole(node.args[0]):
            op = f"{op}.whole"
        values = [conversion(builder, v, a.dtype, "f8") for v, a in zip(values, node.args, strict=True)]
        function = expanded_function(builder.module, op, len(values), inline)
        return conversion(builder, builder.call(function, values), "f8", dtype)
    if dtype in FLOATS and is_special(op):
        values = [conversion(builder, v, a.dtype, "f8" if a.dtype[0] == "f" else "i8")
                  for v, a in zip(values, node.args, strict=True)]
        return conversion(builder, special_call(builder, op, values), "f8", dtype)
    raise NotImplementedError(f"no LLVM code for the operation {op!r} of dtype {dtype}")


def whole(e: Expr) -> bool:
    """Whether a number is whole, as it is made of integers."""
    if e.dtype[0] != "f":
        return True
    if e.op in ("add", "sub"):
        return all(map(whole, e.args))
    if e.op == "const":
        return float(e.args[0]).is_integer()
    return e.op == "cast" and whole(e.args[0])


def expanded_function(module: Module, op: str, arity: int, inline: bool) -> Global:
    """The expansion of `op` as a function of the module that the optimiser inlines everywhere, or nowhere."""
    inlined = inline and op not in ROUTINES
    name = f"jitad.{op}" if inlined else f"jitad.{op}.call"
    if name not in module.globals:
        for known in expansion(op, arity, inlined):
            module.globals.setdefault(known.name, known)
    return module.globals[name]


@cache
def expansion(op: str, arity: int, inlined: bool) -> list[Global]:
    """The function for `op` and all it needs, for any module."""
    module = Module()
    function = IRFunction(module, DOUBLE, [DOUBLE] * arity, f"jitad.{op}" if inlined else f"jitad.{op}.call",
                        linkage="internal", attributes="alwaysinline" if inlined else "noinline")
    builder = IRBuilder(function, function.append_basic_block("entry"))
    arguments = {f"x{i}": argument for i, argument in enumerate(function.args)}
    inline = inlined or op in ROUTINES
    body = FUNCTIONS.get(op, partial(call, op))(*(var(name, "f8") for name in arguments))
    memo: dict[Expr, Any] = {}
    if body.op == "mul":               # rounded, and infinite where it overflows, before it meets the user's arithmetic
        a, b = (build(builder, e, arguments, memo, inline=inline) for e in body.args)
        result: IRValue = builder.fmul(a, b)
    else:
        result = build(builder, body, arguments, memo, inline=inline)
    builder.ret(result)
    return [known.finished() for known in module.globals.values()]


def call_by_name(builder: IRBuilder, op: str, values: list[Any]) -> Any:
    """`op` of float64 values."""
    names = [f"x{i}" for i in range(len(values))]
    return build(builder, call(op, *(var(n, "f8") for n in names)), dict(zip(names, values, strict=True)))
