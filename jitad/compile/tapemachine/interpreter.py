"""The interpreter of the tape machine, as LLVM IR: one case for each op-code, forward and reverse.

A program is a row of *runs*: `count` operations of one op-code that do not read one another. The results of a run lie
side by side in memory; its operands are places in that memory, those of the first operand for all operations, then
those of the second. Long runs go through loops that work in vector lanes, short ones through loops that do not.

Every value has eight bytes: floats are float64, integers and booleans int64. A cotangent that is structurally zero is
-0.0: to add it changes nothing, and no sum of others is -0.0, for which each gets +0.0 added.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.fork_guard import gate
from jitad.compile.llvm.ir import DOUBLE, INT32, INT64
from jitad.compile.llvm.native import Native
from jitad.compile.llvm.object_cache import compile_cached
from jitad.compile.tapemachine.lane import Lane, live, loop, taken
from jitad.compile.tapemachine.opcodes import Code, LongSum, Mixture, OpCode

PLACES, MEMORY = INT32.as_pointer(), DOUBLE.as_pointer()
LONG = 6                  # cheap operations from which a run goes through vector lanes
ALONE = 2                 # the same of others
LANES = 8                 # a multiple of them is computed, so programs and memories end with as many unused ones
BLOCK = 128               # cotangents that are computed before they are added
FORWARD, REVERSE = "jitad_forward", "jitad_reverse"


@dataclass(frozen=True)
class Interpreter:
    """The machine code for some op-codes. `forward(runs, count, words, memory, first)` and
    `reverse(runs, count, words' end, memory, cotangents, memory's end)` take addresses, release the GIL and are
    re-entrant."""

    native: Native
    forward: Callable[..., int]
    reverse: Callable[..., int]


def interpreter(codes: tuple[Code, ...]) -> Interpreter:
    """The interpreter of these op-codes, which are numbered in this order; compiled once."""
    with gate:
        return _interpreter(codes)


@lru_cache(maxsize=32)
def _interpreter(codes: tuple[Code, ...]) -> Interpreter:
    module = ir.Module()
    _sweep(module, codes, FORWARD, reverse=False)
    _sweep(module, codes, REVERSE, reverse=True)
    native = compile_cached(module, "(tape machine)")
    word, address = ctypes.c_int64, ctypes.c_void_p
    return Interpreter(native, native.function(FORWARD, address, word, address, address, word),
                       native.function(REVERSE, address, word, address, address, address, word))


def _function(module: ir.Module, name: str, kinds: Sequence[ir.Type], alone: bool) -> tuple[ir.IRFunction, IRBuilder]:
    function = ir.IRFunction(module, INT64, kinds, name, linkage="internal" if alone else "",
                           attributes="nounwind noinline" if alone else "nounwind", apart=alone)
    return function, IRBuilder(function, function.append_basic_block("entry"))


def _sweep(module: ir.Module, codes: Sequence[Code], name: str, reverse: bool) -> None:
    """All runs, in order or from the last to the first."""
    function, b = _function(module, name, [PLACES, INT64, PLACES, MEMORY, *([MEMORY] if reverse else []), INT64], False)
    runs, count, places, memory, *cotangents, first = function.args
    head, body, out, done = (function.append_basic_block(n) for n in ("head", "body", "next", "done"))
    begin = b.block
    b.branch(head)
    b.position_at_end(head)
    left, at, to = b.phi(INT64), b.phi(PLACES), b.phi(INT64)
    for phi, value in ((left, count), (at, places), (to, first)):
        phi.add_incoming(value, begin)
    b.cbranch(b.icmp_signed(">", left, INT64(0)), body, done)
    b.position_at_end(body)
    number_of_run = b.sub(left, INT64(1)) if reverse else b.sub(count, left)
    run = b.gep(runs, [b.mul(number_of_run, INT64(2))])
    size = b.sext(b.load(b.gep(run, [INT64(1)])), INT64)
    blocks = [function.append_basic_block("case") for _ in codes]
    b.switch(b.load(run), blocks, done)
    ends = []
    for number, (code, block) in enumerate(zip(codes, blocks, strict=True)):
        b.position_at_end(block)
        words, results = (size, INT64(1)) if isinstance(code, LongSum) else (b.mul(size, INT64(code.columns)), size)
        own = b.gep(at, [b.neg(words)]) if reverse else at
        start = b.sub(to, results) if reverse else to
        if isinstance(code, LongSum):
            _sum(b, own, size, memory, cotangents[0] if reverse else None, start)
        elif not reverse or code.carries:
            _case(b, code, number, own, size, memory, cotangents[0] if reverse else None, start)
        ends.append((b.block, own if reverse else b.gep(at, [words]), start if reverse else b.add(to, results)))
        b.branch(out)
    b.position_at_end(out)
    after, following = b.phi(PLACES), b.phi(INT64)
    for block, value, place in ends:
        after.add_incoming(value, block)
        following.add_incoming(place, block)
    left.add_incoming(b.sub(left, INT64(1)), out)
    at.add_incoming(after, out)
    to.add_incoming(following, out)
    b.branch(head)
    b.position_at_end(done)
    b.ret(INT64(0))


def _case(b: IRBuilder, code: OpCode | Mixture, number: int, places: Any, size: Any, memory: Any, cotangents: Any,
          start: Any) -> None:
    """One run. Long ones have a function of their own, in which LLVM knows what does not overlap."""
    out = b.gep(memory, [start])
    mine: Any = b.gep(cotangents, [start]) if cotangents is not None else None

    def long() -> None:
        if cotangents is None:
            b.call(_forward_run(b.module, code, number), [places, size, memory, out])
        else:
            b.call(_reverse_run(b.module, code, number), [places, size, memory, out, cotangents, mine])
    lane = Lane(b, code, places, size, memory, out, inline=False)
    back = lambda i: lane.add_all(i, mine, cotangents, lane.parts(i, mine))
    if code.lonely:
        return loop(b, INT64(0), size, lane.result if mine is None else back)
    one_by_one, in_lanes, after = (b.function.append_basic_block(n) for n in ("short", "long", "after"))
    b.cbranch(b.icmp_signed("<", size, INT64(LONG if code.cheap else ALONE)), one_by_one, in_lanes)
    b.position_at_end(in_lanes)
    long()
    b.branch(after)
    b.position_at_end(one_by_one)
    loop(b, INT64(0), size, lane.result if mine is None else back)
    b.branch(after)
    b.position_at_end(after)


def _sum(b: IRBuilder, places: Any, size: Any, memory: Any, cotangents: Any, start: Any) -> None:
    """One chain. In reverse every term gets the cotangent of the sum."""
    def term(i: Any) -> tuple[Any, Any]:
        word = b.load(b.gep(places, [i]))
        minus = b.icmp_signed("<", word, INT32(0))
        return minus, b.sext(b.select(minus, b.not_(word), word), INT64)

    if cotangents is None:
        total = b.load(b.gep(memory, [b.sext(b.load(places), INT64)]))
        slot = b.gep(memory, [start])
        b.store(_added(b, total, size, lambda i: _signed(b, *term(i), memory)), slot)
        return
    mine = b.gep(cotangents, [start])
    word = b.load(mine)
    b.store(DOUBLE(-0.0), mine)
    used, after = b.function.append_basic_block("used"), b.function.append_basic_block("after")
    b.cbranch(live(b, word), used, after)
    b.position_at_end(used)

    def add(i: Any) -> None:
        minus, place = term(i)
        address = b.gep(cotangents, [place])
        b.store(b.fadd(b.fadd(b.load(address), DOUBLE(0.0)), b.select(minus, b.fneg(word), word)), address)
    loop(b, INT64(0), size, add)
    b.branch(after)
    b.position_at_end(after)


def _signed(b: IRBuilder, minus: Any, place: Any, memory: Any) -> Any:
    value = b.load(b.gep(memory, [place]))
    return b.select(minus, b.fneg(value), value)


def _added(b: IRBuilder, first: Any, size: Any, term: Callable[[Any], Any]) -> Any:
    """`first` and the terms from 1 on, one after the other."""
    slot = b.slot(DOUBLE)
    b.store(first, slot)
    loop(b, INT64(1), size, lambda i: b.store(b.fadd(b.load(slot), term(i)), slot))
    return b.load(slot)


def _filled(b: IRBuilder, size: Any) -> Any:
    """The next multiple of the lanes."""
    return b.and_(b.add(size, INT64(LANES - 1)), INT64(-LANES))


def _forward_run(module: ir.Module, code: OpCode | Mixture, number: int) -> ir.IRFunction:
    function, b = _function(module, f"jitad_forward_{number}", [PLACES, INT64, MEMORY, MEMORY], True)
    places, size, memory, out = function.args
    lane = Lane(b, code, places, size, memory, out)
    loop(b, INT64(0), _filled(b, size), lane.result, lanes=True)
    b.ret(INT64(0))
    return function


def _reverse_run(module: ir.Module, code: OpCode | Mixture, number: int) -> ir.IRFunction:
    """Blocks of contributions in vector lanes, then added one by one: places may come twice."""
    function, b = _function(module, f"jitad_reverse_{number}", [PLACES, INT64, MEMORY, MEMORY, MEMORY, MEMORY], True)
    places, size, memory, out, cotangents, mine = function.args
    lane = Lane(b, code, places, size, memory, out)
    buffers: list[Any] = [b.bitcast(b.alloca(ir.array(DOUBLE, BLOCK)), MEMORY) if t else None for t in taken(code)]

    def block(start: Any) -> None:
        rest = b.sub(size, start)
        length = b.select(b.icmp_signed("<", rest, INT64(BLOCK)), rest, INT64(BLOCK))

        def compute(i: Any) -> None:
            for part, buffer in zip(lane.parts(b.add(start, i), mine), buffers, strict=True):
                if part is not None:
                    lane.keep(part, b.gep(buffer, [i]))

        def add(i: Any) -> None:
            parts = [buffer and (b.load(b.gep(buffer, [i])), None) for buffer in buffers]
            lane.add_all(b.add(start, i), mine, cotangents, parts)
        loop(b, INT64(0), _filled(b, length), compute, lanes=True)
        loop(b, INT64(0), length, add)
    loop(b, INT64(0), size, block, BLOCK)
    b.ret(INT64(0))
    return function
