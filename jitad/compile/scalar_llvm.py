"""Scalar expressions as LLVM IR.

`build` walks an `Expr` graph without recursion and builds each object once. A math
function becomes an internal function of the module, expanded once and marked
`alwaysinline`, so that loops around the call vectorise.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from llvmlite import ir

from .cython_special import is_special
from .scalar import COMPARISONS, Expr, call, var
from .scalar_loops import build_loop, build_sum
from .special_calls import special_call
from .special_routines import ROUTINES
from .vectormath import EXPANSIONS

DOUBLE, FLOAT, INT64, BOOL = ir.DoubleType(), ir.FloatType(), ir.IntType(64), ir.IntType(1)
NARROW = {f"{sign}{size}": ir.IntType(8 * size) for sign in "iu" for size in (1, 2, 4)}
TYPES: dict[str, ir.Type] = {"f8": DOUBLE, "f4": FLOAT, "i8": INT64, "b1": BOOL, **NARROW}
CONTRACT = ("contract",)
FREE_ORDER = ("reassoc", "contract")      # of the terms of a sum
FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
INT_OPS = {"add": "add", "sub": "sub", "mul": "mul", "div": "sdiv"}
BIT_OPS = {"and": "and_", "or": "or_", "xor": "xor", "shl": "shl", "ashr": "ashr", "lshr": "lshr"}
INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
              "abs": "fabs", "copysign": "copysign"}
SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
LEAVES = frozenset({"const", "var"})
Expansions = Mapping[str, Callable[..., Expr]]
Loader = Callable[[ir.IRBuilder, Expr, list[Any]], Any]


def build(builder: ir.IRBuilder, expr: Expr, variables: Mapping[str, Any], expand: Expansions = EXPANSIONS,
          memo: dict[Expr, Any] | None = None, load: Loader | None = None, inline: bool = True,
          apart: bool = False) -> Any:
    """The value of `expr` at the builder's position.

    `memo` may be shared by calls whose code dominates one another's. `load` builds
    the `load` operation from the expression and the values of its indices. Without `inline`
    math functions stay calls: less code, for what runs once. `apart`: two products that are added are
    rounded first, so that they cancel where NumPy's do. (The math functions count on fused operations.)
    """
    memo = {} if memo is None else memo
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        operands = () if node.op in LEAVES else [a for a in node.args if isinstance(a, Expr)]
        missing = [a for a in operands if a not in memo]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if node.op == "var":
            memo[node] = variables[node.args[0]]
        elif node.op == "load" and load is not None:
            memo[node] = load(builder, node, [memo[a] for a in operands])
        elif node.op in ("loop", "sum"):
            def within(e: Expr, known: Mapping[Expr, Any], memo: dict[Expr, Any] = memo) -> Any:
                return build(builder, e, variables, expand, {**memo, **known}, load, inline, apart)
            body, first = node.args[0], [memo[a] for a in operands]
            memo[node] = build_loop(builder, body, first, within) if first else build_sum(builder, body, within)
        elif node.op == "carried":
            memo[node] = memo[node.args[0]][node.args[1]]
        else:
            memo[node] = operation(builder, node, [memo[a] for a in operands], expand, inline, apart)
    return memo[expr]


def operation(builder: ir.IRBuilder, node: Expr, values: list[Any], expand: Expansions, inline: bool,
              apart: bool) -> Any:
    """One operation on built operands."""
    op, dtype = node.op, node.dtype
    if op == "const":
        return constant(node)
    if op == "cast":
        return conversion(builder, values[0], node.args[0].dtype, dtype)
    if op == "select":
        return builder.select(*values)
    if op in ("bits", "unbits"):
        return builder.bitcast(values[0], TYPES[dtype])
    if op in COMPARISONS:
        return comparison(builder, op, node.args[0].dtype, *values)
    if op in BIT_OPS:
        return getattr(builder, BIT_OPS[op])(*values)
    if op == "not":
        return builder.not_(values[0])
    if dtype in ("f8", "f4"):
        if op in FLOAT_OPS:
            return getattr(builder, FLOAT_OPS[op])(*values, flags=() if apart and _products(op, values) else CONTRACT)
        if op == "neg":
            return builder.fneg(values[0])
        if op in INTRINSICS:
            kind = TYPES[dtype]
            signature = ir.FunctionType(kind, [kind] * len(values))
            return builder.call(builder.module.declare_intrinsic(f"llvm.{INTRINSICS[op]}", [kind], signature), values)
        if op == "fmod":
            return builder.frem(*values)
        if op in expand:
            return math_call(builder, node, values, expand, inline)
        if op in ROUTINES:
            return math_call(builder, node, values, {**expand, **ROUTINES}, inline)
        if is_special(op):
            wide = [conversion(builder, v, a.dtype, "f8" if a.dtype[0] == "f" else "i8")
                    for v, a in zip(values, node.args, strict=True)]
            return conversion(builder, special_call(builder, op, wide), "f8", dtype)
    elif op in INT_OPS:
        return getattr(builder, INT_OPS[op])(*values)
    if op in ("floordiv", "mod"):          # of an index, which is not negative
        return builder.udiv(*values) if op == "floordiv" else builder.urem(*values)
    if op == "min":
        return builder.select(builder.icmp_signed("<", *values), *values)
    if op == "neg":
        return builder.neg(values[0])
    if op == "abs":
        return builder.select(builder.icmp_signed("<", values[0], INT64(0)), builder.neg(values[0]), values[0])
    raise NotImplementedError(f"no LLVM code for the operation {op!r} of dtype {dtype}")


def _products(op: str, values: list[Any]) -> bool:
    """Whether two products are added: ``x * x - y * y`` is zero for equal x and y, and its square root not NaN."""
    return op in ("add", "sub") and all(getattr(v, "opname", "") == "fmul" for v in values)


def constant(node: Expr) -> ir.Constant:
    """A literal; integers may be written signed or unsigned."""
    value, kind = node.args[0], TYPES[node.dtype]
    if isinstance(kind, ir.IntType):
        return ir.Constant(kind, int(bool(value)) if kind == BOOL else wrapped(int(value), kind.width))
    return ir.Constant(kind, float(value))


def wrapped(value: int, width: int) -> int:
    """The signed integer of the same low bits."""
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


def comparison(builder: ir.IRBuilder, op: str, dtype: str, a: Any, b: Any) -> Any:
    """Ordered comparisons of floats, except that NaN is unequal to all."""
    symbol = SYMBOLS[op]
    if dtype[0] != "f":
        return (builder.icmp_signed if dtype[0] == "i" else builder.icmp_unsigned)(symbol, a, b)
    return (builder.fcmp_unordered if op == "ne" else builder.fcmp_ordered)(symbol, a, b)


def conversion(builder: ir.IRBuilder, value: Any, source: str, target: str) -> Any:
    """A C conversion between dtypes."""
    kind = TYPES[target]
    if source == target:
        return value
    signed = source[0] == "i"
    if target == "b1":
        zero = ir.Constant(value.type, 0)
        return builder.fcmp_unordered("!=", value, zero) if source[0] == "f" else builder.icmp_signed("!=", value, zero)
    if source[0] == "f" and target[0] == "f":
        return builder.fpext(value, kind) if target == "f8" else builder.fptrunc(value, kind)
    if source[0] == "f":
        return builder.fptosi(value, kind) if target[0] == "i" else builder.fptoui(value, kind)
    if target[0] == "f":
        return builder.sitofp(value, kind) if signed else builder.uitofp(value, kind)
    if kind.width > value.type.width:
        return builder.sext(value, kind) if signed else builder.zext(value, kind)
    return builder.trunc(value, kind) if kind.width < value.type.width else value


def math_call(builder: ir.IRBuilder, node: Expr, values: list[Any], expand: Expansions, inline: bool) -> Any:
    """A call of a math function in float64, whatever the dtype of the node."""
    values = [conversion(builder, v, a.dtype, "f8") for v, a in zip(values, node.args, strict=True)]
    function = expanded_function(builder.module, node.op, len(values), expand, inline)
    return conversion(builder, builder.call(function, values), "f8", node.dtype)


def expanded_function(module: ir.Module, op: str, arity: int, expand: Expansions, inline: bool) -> ir.Function:
    """The expansion of `op` as a function of the module that the optimiser inlines everywhere, or nowhere."""
    inlined = inline and op not in ROUTINES
    name = f"jitad.{op}" if inlined else f"jitad.{op}.call"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE] * arity), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline" if inlined else "noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = {f"x{i}": argument for i, argument in enumerate(function.args)}
    result = build(builder, expansion(expand[op], arity), arguments, expand, inline=inline or op in ROUTINES)
    if getattr(result, "opname", "") == "fmul":
        result.flags = []              # rounded, and infinite where it overflows, before it meets the user's arithmetic
    builder.ret(result)
    return function


@cache
def expansion(function: Callable[..., Expr], arity: int) -> Expr:
    """`function` of the float64 variables x0, x1, ..."""
    return function(*(var(f"x{i}", "f8") for i in range(arity)))


def call_by_name(builder: ir.IRBuilder, op: str, values: list[Any]) -> Any:
    """`op` of float64 values."""
    names = [f"x{i}" for i in range(len(values))]
    return build(builder, call(op, *(var(n, "f8") for n in names)), dict(zip(names, values, strict=True)))
