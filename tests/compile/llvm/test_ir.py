"""The writer of LLVM assembly: what it writes is parsed, compiled and run."""
from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
from llvmlite import binding

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import CONTRACT, FREE_ORDER, IRBuilder
from jitad.compile.llvm.ir import BOOL, DOUBLE, FLOAT, INT8, INT16, INT32, INT64, VOID, IRFunction, Module, array
from jitad.compile.llvm.native import compile_module
from jitad.compile.scalar.expressions import build, expansion
from jitad.tape.expr import call, const, var

CTYPES = {DOUBLE: ctypes.c_double, FLOAT: ctypes.c_float, INT64: ctypes.c_int64, INT32: ctypes.c_int32,
          INT8: ctypes.c_int8, BOOL: ctypes.c_bool, VOID: None}


def made(result: ir.Type, kinds: list[ir.Type], write: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose body is written by ``write(builder, *arguments)``, compiled."""
    module = Module()
    function = IRFunction(module, result, kinds, "f")
    builder = IRBuilder(function, function.append_basic_block("entry"))
    value = write(builder, *function.args)
    if value is None:
        builder.ret_void()
    else:
        builder.ret(value)
    native = compile_module(module, level=1)
    found = ctypes.CFUNCTYPE(CTYPES[result], *(CTYPES.get(k, ctypes.c_void_p) for k in kinds))(native.address("f"))
    found.native = native                                          # type: ignore[attr-defined]
    return found


def bits(x: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", x))[0]


NUMBERS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e308, 5e-324, 2.2250738585072014e-308, math.inf, -math.inf, math.pi,
           *(struct.unpack("<d", struct.pack("<Q", b))[0] for b in (0x7FF8000000000000, 0xFFF8000000000001,
                                                                   0x7FF8DEADBEEF1234))]


def test_constants_are_exact() -> None:
    """Of all floats the bits, signs of zeros and payloads of NaN too; integers and booleans as they are."""
    out = (ctypes.c_uint64 * len(NUMBERS))()

    def write(b: IRBuilder, p: Any) -> None:
        for place, x in enumerate(NUMBERS):
            b.store(DOUBLE(x), b.gep(p, [INT64(place)]))
    made(VOID, [DOUBLE.as_pointer()], write)(ctypes.addressof(out))
    assert list(out) == [bits(x) for x in NUMBERS]
    for x in (0.1, -0.0, 1e300, 1e-45, math.inf):
        got = made(FLOAT, [], lambda b, x=x: FLOAT(x))()
        assert struct.pack("<f", got) == struct.pack("<f", ctypes.c_float(x).value)
    assert math.isnan(made(FLOAT, [], lambda b: FLOAT(math.nan))())
    for kind, x in ((INT64, -2**63), (INT64, 2**63 - 1), (INT32, -7), (INT8, -128)):
        assert made(kind, [], lambda b, kind=kind, x=x: kind(x))() == x
    assert made(INT8, [], lambda b: INT8(200))() == 200 - 256
    assert [made(BOOL, [], lambda b, x=x: BOOL(x))() for x in (True, False)] == [True, False]


def test_arrays_and_names_of_any_content() -> None:
    """Tables by element and by byte; a name may hold quotes, spaces, umlauts."""
    content = bytes(range(256))

    def write(b: IRBuilder, i: Any) -> Any:
        table = b.module.constant('a "b" \\ ö', array(INT8, 256)(content), align=64)
        numbers = b.module.constant(b.module.unique("n"), array(INT64, 3)([5, -6, 2**62]))
        rows = b.module.constant("rows", array(array(INT16, 2), 2)([[1, 2], [3, 4]]))
        none = b.module.constant("none", array(INT64, 0)([]))
        assert b.module.unique("n") not in b.module.globals
        first = b.zext(b.load(b.gep(table, [INT64(0), i])), INT64)
        second = b.load(b.gep(b.bitcast(numbers, INT64.as_pointer()), [INT64(2)]))
        third = b.sext(b.load(b.gep(rows, [INT64(0), INT64(1), INT64(0)])), INT64)
        assert none.type.pointee.text == "[0 x i64]"
        return b.add(b.add(first, second), third)
    f = made(INT64, [INT64], write)
    assert [f(i) - 2**62 - 3 for i in range(256)] == list(content)
    with pytest.raises(TypeError):
        array(INT64, 2)([1])


@pytest.mark.parametrize(("write", "expected"), [
    (lambda b, x, i: b.fadd(b.fmul(x, x, CONTRACT), b.fdiv(x, DOUBLE(2.0)), FREE_ORDER), 6.25 + 1.25),
    (lambda b, x, i: b.fsub(b.fneg(x), b.binary("frem", x, DOUBLE(2.0))), -3.0),
    (lambda b, x, i: b.sitofp(b.sub(b.mul(i, INT64(5), "nsw"), b.neg(i)), DOUBLE), -42.0),
    (lambda b, x, i: b.sitofp(b.add(b.udiv(INT64(17), INT64(5)), b.urem(INT64(17), INT64(5))), DOUBLE), 5.0),
    (lambda b, x, i: b.sitofp(b.xor(b.or_(b.and_(i, INT64(12)), INT64(1)), b.not_(i)), DOUBLE), 15.0),
    (lambda b, x, i: b.sitofp(b.add(b.shl(i, INT64(2)), b.add(b.ashr(i, INT64(1)), b.lshr(i, INT64(60)))), DOUBLE),
     -28.0 - 4.0 + 15.0),
    (lambda b, x, i: b.sitofp(b.fptosi(b.fpext(b.fptrunc(x, FLOAT), DOUBLE), INT64), DOUBLE), 2.0),
    (lambda b, x, i: b.sitofp(b.sext(b.trunc(i, INT8), INT64), DOUBLE), -7.0),
    (lambda b, x, i: b.sitofp(b.zext(b.trunc(i, INT8), INT64), DOUBLE), 249.0),
    (lambda b, x, i: b.bitcast(b.add(b.bitcast(x, INT64), INT64(1)), DOUBLE), math.nextafter(2.5, 3)),
    (lambda b, x, i: b.call(b.module.intrinsic("copysign", DOUBLE, 2), [x, b.sitofp(i, DOUBLE)]), -2.5)])
def test_arithmetic(write: Callable[..., Any], expected: float) -> None:
    assert made(DOUBLE, [DOUBLE, INT64], write)(2.5, -7) == expected


def test_comparisons() -> None:
    """Signed, unsigned, ordered, unordered; each a bit of the result."""
    def write(b: IRBuilder, x: Any, i: Any) -> Any:
        tests = [compare(symbol, a, c) for compare, a, c in (
            (b.icmp_signed, i, INT64(3)), (b.icmp_unsigned, i, INT64(3)), (b.fcmp_ordered, x, DOUBLE(1.0)),
            (b.fcmp_unordered, x, DOUBLE(1.0))) for symbol in ("<", "<=", ">", ">=", "==", "!=")]
        total: Any = INT64(0)
        for place, test in enumerate(tests):
            total = b.or_(total, b.select(test, INT64(1 << place), INT64(0)))
        return total
    f = made(INT64, [DOUBLE, INT64], write)
    less, more, unordered = 0b100011, 0b101100, 0b111111
    assert f(0.5, -1) == less | more << 6 | less << 12 | less << 18
    assert f(math.nan, 3) == 0b011010 | 0b011010 << 6 | unordered << 18


def test_loops_choices_and_memory() -> None:
    """Phis told afterwards, a slot, a switch, hints at the branch back, calls without a result."""
    def write(b: IRBuilder, n: Any) -> Any:
        slot = b.slot(INT64)
        b.store(INT64(0), slot)
        before, inside, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
        cases = [b.append_basic_block("case") for _ in range(2)]
        after = b.append_basic_block("after")
        b.branch(inside)
        b.position_at_end(inside)
        i = b.phi(INT64)
        i.add_incoming(INT64(0), before)
        b.switch(b.urem(i, INT64(3)), cases, after)
        for amount, block in zip((1, 100), cases, strict=True):
            b.position_at_end(block)
            b.store(b.add(b.load(slot), INT64(amount)), slot)
            b.branch(after)
        b.position_at_end(after)
        following = b.add(i, INT64(1), "nsw")
        i.add_incoming(following, after)
        hints = b.module.loop_hints(("llvm.loop.unroll.disable",), ("llvm.loop.vectorize.enable", BOOL(0)))
        b.cbranch(b.icmp_signed("<", following, n), inside, done, hints)
        b.position_at_end(done)
        with b.goto_block(b.append_basic_block("never")):
            b.ret(INT64(0))
        return b.select(b.icmp_signed("<", n, INT64(0)), INT64(0), b.load(slot),
                        f", !unpredictable !{b.module.note()}")
    assert made(INT64, [INT64], write)(8) == 3 + 300


def test_vectors() -> None:
    def write(b: IRBuilder, p: Any) -> None:
        vectors = b.bitcast(p, ir.vector(DOUBLE, 4).as_pointer())
        x = b.load(vectors, align=8)
        turned = b.shuffle_vector(x, x, [3, 2, 1, 4])
        tens = b.fmul(turned, b.splat(DOUBLE(10.0), 4))
        b.store(b.fadd(tens, ir.vector(DOUBLE, 4)([1.0, 2.0, 3.0, 4.0])), vectors, align=8)
    data = (ctypes.c_double * 4)(1.0, 2.0, 3.0, 4.0)
    made(VOID, [DOUBLE.as_pointer()], write)(ctypes.addressof(data))
    assert list(data) == [41.0, 32.0, 23.0, 14.0]


def test_what_the_parser_cannot_see_is_checked() -> None:
    """To LLVM all pointers are alike."""
    module = Module()
    function = IRFunction(module, VOID, [DOUBLE.as_pointer()], "f")
    b, p = IRBuilder(function, function.append_basic_block()), function.args[0]
    assert ir.Pointer(DOUBLE) == DOUBLE.as_pointer() != INT64.as_pointer()
    b.store(p, b.alloca(ir.Pointer(DOUBLE)))
    with pytest.raises(TypeError, match="i64 stored to double"):
        b.store(INT64(1), p)
    with pytest.raises(TypeError, match="given to"):
        b.call(function, [b.bitcast(p, INT64.as_pointer())])
    with pytest.raises(TypeError, match="given to"):
        b.call(function, [])
    with pytest.raises(ValueError, match="has a 'f'"):
        IRFunction(module, VOID, [], "f")
    with pytest.raises(TypeError):
        VOID(0)


def test_functions_attributes_and_function_pointers() -> None:
    module = Module()
    kinds = [DOUBLE.as_pointer(), DOUBLE.as_pointer()]
    inner = IRFunction(module, VOID, kinds, "jitad_inner", linkage="internal", attributes="noinline nounwind",
                       apart=True)
    b = IRBuilder(inner, inner.append_basic_block())
    b.store(b.load(inner.args[1]), inner.args[0])
    b.ret_void()
    outer = IRFunction(module, INT64, kinds, "outer")
    b = IRBuilder(outer, outer.append_basic_block())
    slot = b.alloca(inner.type, align=8)
    b.store(inner, slot)
    b.call(b.load(slot), outer.args)
    address = b.inttoptr(INT64(0), INT64.as_pointer())
    b.ret(b.select(b.icmp_unsigned("==", address, INT64.as_pointer()(None)), INT64(7), INT64(8)))
    text = str(module)
    assert "define internal void @jitad_inner(ptr noalias %0, ptr noalias %1) noinline nounwind #0 {" in text
    assert "define  i64 @outer(ptr %0, ptr %1)  {" in text
    data, native = (ctypes.c_double * 2)(1.0, 2.0), compile_module(module)
    start = ctypes.addressof(data)
    assert native.function("outer", ctypes.c_void_p, ctypes.c_void_p)(start, start + 8) == 7
    assert data[0] == 2.0


def test_declarations_stand_once() -> None:
    module = Module()
    function = IRFunction(module, DOUBLE, [DOUBLE], "f")
    b = IRBuilder(function, function.append_basic_block())
    roots = [b.call(module.intrinsic("sqrt", kind), [x]) for kind, x in (
        (DOUBLE, function.args[0]), (DOUBLE, DOUBLE(4.0)), (FLOAT, FLOAT(9.0)))]
    for name in ("malloc", "malloc"):
        module.declare(name, ir.RAW, [INT64], before="noalias", after="nounwind")
    b.ret(b.fadd(b.fadd(roots[0], roots[1]), b.fpext(roots[2], DOUBLE)))
    assert str(module).count("declare") == 3
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(compile_module(module).address("f"))(25.0) == 10.0


def test_a_math_function_is_the_same_in_every_module() -> None:
    """Its text is written once in a process, with what it needs, and a module takes it as it is."""
    def used() -> Module:
        module = Module()
        function = IRFunction(module, DOUBLE, [DOUBLE], "f")
        b = IRBuilder(function, function.append_basic_block())
        x = var("x", "f8")
        b.ret(build(b, call("logaddexp", x, const(1.0)) + call("log1p", x), {"x": function.args[0]}))
        return module
    one, other = used(), used()
    assert one.globals["jitad.log1p"] is other.globals["jitad.log1p"] in expansion("log1p", 1, True)
    assert str(one) == str(other)
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(compile_module(other).address("f"))(
        0.5) == pytest.approx(math.log(math.exp(0.5) + math.e) + math.log1p(0.5), rel=1e-15)


def test_pointers_to_other_types_and_hints() -> None:
    """A pointer to something else is no instruction; hints come through the parser."""
    module = Module()
    function = IRFunction(module, VOID, [DOUBLE.as_pointer()], "f")
    block = function.append_basic_block()
    b = IRBuilder(function, block)
    b.branch(loop := b.append_basic_block("loop"))
    b.position_at_end(loop)
    b.store(INT64(1), b.bitcast(function.args[0], INT64.as_pointer()))
    hints = module.loop_hints(("llvm.loop.unroll.disable",), ("llvm.loop.interleave.count", INT32(2)))
    b.branch(loop, hints)
    assert "cast" not in str(module)
    read = str(binding.parse_assembly(str(module)))
    assert "br label %loop1, !llvm.loop !0" in read
    assert "!0 = distinct !{!0, !1, !2}" in read
    assert '!1 = !{!"llvm.loop.unroll.disable"}' in read
    assert '!2 = !{!"llvm.loop.interleave.count", i32 2}' in read
