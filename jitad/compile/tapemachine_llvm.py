"""The interpreter of the tape machine, as LLVM IR: one case for each op-code, forward and reverse.

A program is a row of *runs*: `count` operations of one op-code that do not read one another. The results of a run lie
side by side in memory; its operands are places in that memory, those of the first operand for all operations, then
those of the second. Long runs go through loops that work in vector lanes, short ones through loops that do not.

Every value has eight bytes: floats are float64, integers and booleans int64. A cotangent that is structurally zero is
-0.0: to add it changes nothing, and no sum of others is -0.0, for which each gets +0.0 added.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from jitad.compile.loops import tag
from jitad.compile.native import Native, compile_module
from jitad.compile.scalar import Expr
from jitad.compile.scalar_llvm import BOOL, DOUBLE, FLOAT, INT64, TYPES, build
from jitad.compile.tapemachine_opcodes import Contribution, Mixture, OpCode

@dataclass(frozen=True)
class Chain:
    """A sum of many numbers, in order. A run is one; its count is that of the terms, of which those that are taken away
    are given by the complement of their places."""

    columns: int = 0
    carries: bool = True
    cheap: bool = True

    def __str__(self) -> str:
        return "sums (f8, ...) -> f8"


Code = OpCode | Mixture | Chain
CHAIN = Chain()
INT32 = ir.IntType(32)
PLACES, MEMORY, WORDS = INT32.as_pointer(), DOUBLE.as_pointer(), INT64.as_pointer()
LONG = 6                  # cheap operations from which a run goes through vector lanes
ALONE = 2                 # the same of others
LANES = 8                 # a multiple of them is computed, so programs and memories end with as many unused ones
BLOCK = 128               # cotangents that are computed before they are added
NOTHING = -2**63          # the bits of -0.0
FORWARD, REVERSE = "jitad_forward", "jitad_reverse"


@dataclass(frozen=True)
class Interpreter:
    """The machine code for some op-codes. `forward(runs, count, words, memory, first)` and
    `reverse(runs, count, words' end, memory, cotangents, memory's end)` take addresses, release the GIL and are
    re-entrant."""

    native: Native
    forward: Callable[..., int]
    reverse: Callable[..., int]


_lock = threading.Lock()


def interpreter(codes: tuple[Code, ...]) -> Interpreter:
    """The interpreter of these op-codes, which are numbered in this order; compiled once."""
    with _lock:
        return _interpreter(codes)


@lru_cache(maxsize=32)
def _interpreter(codes: tuple[Code, ...]) -> Interpreter:
    import ctypes

    module = ir.Module(name="jitad_tape_machine")
    _sweep(module, codes, FORWARD, reverse=False)
    _sweep(module, codes, REVERSE, reverse=True)
    native = compile_module(module)
    word, address = ctypes.c_int64, ctypes.c_void_p
    return Interpreter(native, native.function(FORWARD, address, word, address, address, word),
                       native.function(REVERSE, address, word, address, address, address, word))


def _function(module: ir.Module, name: str, kinds: Sequence[ir.Type], alone: bool) -> tuple[ir.Function, ir.IRBuilder]:
    function = ir.Function(module, ir.FunctionType(INT64, kinds), name)
    function.attributes.add("nounwind")
    if alone:
        function.linkage = "internal"
        function.attributes.add("noinline")
    for argument in function.args:
        if alone and isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


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
    switch = b.switch(b.load(run), done)
    ends = []
    for number, code in enumerate(codes):
        block = function.append_basic_block(f"case{number}")
        switch.add_case(INT32(number), block)
        b.position_at_end(block)
        words, results = (size, INT64(1)) if isinstance(code, Chain) else (b.mul(size, INT64(code.columns)), size)
        own = b.gep(at, [b.neg(words)]) if reverse else at
        start = b.sub(to, results) if reverse else to
        if isinstance(code, Chain):
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


def _case(b: ir.IRBuilder, code: Code, number: int, places: Any, size: Any, memory: Any, cotangents: Any,
          start: Any) -> None:
    """One run. Long ones have a function of their own, in which LLVM knows what does not overlap."""
    out = b.gep(memory, [start])
    mine = b.gep(cotangents, [start]) if cotangents is not None else None

    def long() -> None:
        if cotangents is None:
            b.call(_forward_run(b.module, code, number), [places, size, memory, out])
        else:
            b.call(_reverse_run(b.module, code, number), [places, size, memory, out, cotangents, mine])
    one_by_one, in_lanes, after = (b.function.append_basic_block(n) for n in ("short", "long", "after"))
    b.cbranch(b.icmp_signed("<", size, INT64(LONG if code.cheap else ALONE)), one_by_one, in_lanes)
    b.position_at_end(in_lanes)
    long()
    b.branch(after)
    b.position_at_end(one_by_one)
    lane = _Lane(b, code, places, size, memory, out, inline=False)
    _loop(b, INT64(0), size, lane.result if mine is None else (
        lambda i: lane.add_all(i, mine, cotangents, lane.parts(i, mine))))
    b.branch(after)
    b.position_at_end(after)


def _sum(b: ir.IRBuilder, places: Any, size: Any, memory: Any, cotangents: Any, start: Any) -> None:
    """One chain. In reverse every term gets the cotangent of the sum."""
    def term(i: Any) -> tuple[Any, Any]:
        word = b.load(b.gep(places, [i]))
        taken = b.icmp_signed("<", word, INT32(0))
        return taken, b.sext(b.select(taken, b.not_(word), word), INT64)

    if cotangents is None:
        total = b.load(b.gep(memory, [b.sext(b.load(places), INT64)]))
        slot = b.gep(memory, [start])
        b.store(_added(b, total, size, lambda i: _signed(b, *term(i), memory)), slot)
        return
    mine = b.gep(cotangents, [start])
    word = b.load(mine)
    b.store(DOUBLE(-0.0), mine)
    used, after = b.function.append_basic_block("used"), b.function.append_basic_block("after")
    b.cbranch(_live(b, word), used, after)
    b.position_at_end(used)

    def add(i: Any) -> None:
        taken, place = term(i)
        address = b.gep(cotangents, [place])
        b.store(b.fadd(b.fadd(b.load(address), DOUBLE(0.0)), b.select(taken, b.fneg(word), word)), address)
    _loop(b, INT64(0), size, add)
    b.branch(after)
    b.position_at_end(after)


def _signed(b: ir.IRBuilder, taken: Any, place: Any, memory: Any) -> Any:
    value = b.load(b.gep(memory, [place]))
    return b.select(taken, b.fneg(value), value)


def _added(b: ir.IRBuilder, first: Any, size: Any, term: Callable[[Any], Any]) -> Any:
    """`first` and the terms from 1 on, one after the other."""
    slot = None
    with b.goto_entry_block():
        slot = b.alloca(DOUBLE)
    b.store(first, slot)
    _loop(b, INT64(1), size, lambda i: b.store(b.fadd(b.load(slot), term(i)), slot))
    return b.load(slot)


def _live(b: ir.IRBuilder, word: Any) -> Any:
    """Whether a cotangent is not structurally zero."""
    return b.icmp_signed("!=", b.bitcast(word, INT64), INT64(NOTHING))


def _filled(b: ir.IRBuilder, size: Any) -> Any:
    """The next multiple of the lanes."""
    return b.and_(b.add(size, INT64(LANES - 1)), INT64(-LANES))


def _forward_run(module: ir.Module, code: Code, number: int) -> ir.Function:
    function, b = _function(module, f"jitad_forward_{number}", [PLACES, INT64, MEMORY, MEMORY], True)
    places, size, memory, out = function.args
    lane = _Lane(b, code, places, size, memory, out)
    _loop(b, INT64(0), _filled(b, size), lane.result, lanes=True)
    b.ret(INT64(0))
    return function


def _reverse_run(module: ir.Module, code: Code, number: int) -> ir.Function:
    """Blocks of contributions in vector lanes, then added one by one: places may come twice."""
    function, b = _function(module, f"jitad_reverse_{number}", [PLACES, INT64, MEMORY, MEMORY, MEMORY, MEMORY], True)
    places, size, memory, out, cotangents, mine = function.args
    lane = _Lane(b, code, places, size, memory, out)
    buffers = [b.bitcast(b.alloca(ir.ArrayType(DOUBLE, BLOCK)), MEMORY) if t else None for t in _taken(code)]

    def block(start: Any) -> None:
        rest = b.sub(size, start)
        length = b.select(b.icmp_signed("<", rest, INT64(BLOCK)), rest, INT64(BLOCK))

        def compute(i: Any) -> None:
            for part, buffer in zip(lane.parts(b.add(start, i), mine), buffers, strict=True):
                if buffer is not None:
                    lane.keep(part, b.gep(buffer, [i]))

        def add(i: Any) -> None:
            parts = [buffer and (b.load(b.gep(buffer, [i])), None) for buffer in buffers]
            lane.add_all(b.add(start, i), mine, cotangents, parts)
        _loop(b, INT64(0), _filled(b, length), compute, lanes=True)
        _loop(b, INT64(0), length, add)
    _loop(b, INT64(0), size, block, BLOCK)
    b.ret(INT64(0))
    return function


def _loop(b: ir.IRBuilder, start: Any, stop: Any, body: Callable[[Any], None], step: int = 1,
          lanes: bool = False) -> None:
    """``for i in range(start, stop, step)``, at least once; in vector lanes or strictly one by one."""
    before, inside, done = b.block, b.function.append_basic_block("loop"), b.function.append_basic_block("end")
    b.branch(inside)
    b.position_at_end(inside)
    index = b.phi(INT64)
    index.add_incoming(start, before)
    body(index)
    following = b.add(index, INT64(step), flags=("nsw",))
    index.add_incoming(following, b.block)
    back = b.cbranch(b.icmp_signed("<", following, stop), inside, done)
    back.set_metadata("llvm.loop", _mark(b.module, lanes))
    b.position_at_end(done)


def _mark(module: ir.Module, lanes: bool) -> Any:
    """The mark of a loop: LLVM shall not unroll it, and vectorise it only with `lanes`."""
    hints = [["llvm.loop.unroll.disable"]]
    hints += [["llvm.loop.vectorize.enable", BOOL(1)], ["llvm.loop.interleave.count", INT32(1)]] if lanes else [
        ["llvm.loop.vectorize.enable", BOOL(0)]]
    known = [module.add_metadata([ir.MetaDataString(module, name), *values]) for name, *values in hints]
    mark = module.add_metadata([ir.MetaDataString(module, f"loop {len(module.metadata)}"), *known])
    mark.operands = (mark, *known)                              # a loop's mark names itself
    return mark


def _taken(code: Code) -> list[bool]:
    """Which operands get something in reverse."""
    return [True] * code.arity if isinstance(code, Mixture) else [c is not None for c in code.reverse]


@dataclass
class _Lane:
    """One operation of a run."""

    b: ir.IRBuilder
    code: Code
    places: Any
    size: Any
    memory: Any
    out: Any
    inline: bool = True

    def result(self, i: Any) -> None:
        """Compute it and store it."""
        values, memo = self._operands(i), {}
        if isinstance(self.code, OpCode):
            found = self._built(self.code.forward, values, memo)
        else:
            found = self._chosen(i, [self._built(code.forward, values, memo) for code in self.code.codes])
        self._store(found, tag(self.code.dtype), self.b.gep(self.out, [i]))

    def parts(self, i: Any, mine: Any) -> list[tuple[Any, Any] | None]:
        """What it contributes to the cotangents of its operands: values, and the conditions under which they count
        (None: they may be added as they are)."""
        b = self.b
        word = b.load(b.gep(mine, [i]))
        live = _live(b, word)
        values = self._operands(i)
        values["y"] = self._load(b.gep(self.out, [i]), tag(self.code.dtype))
        values["ct"] = b.fptrunc(word, FLOAT) if self.code.dtype == np.float32 else word
        memo: dict[Expr, Any] = {}
        if isinstance(self.code, OpCode):
            return [part and self._part(part, values, memo, live) for part in self.code.reverse]
        yes, no = BOOL(1), BOOL(0)
        rows = [[(self._built(part.value, values, memo), self._built(part.mask, values, memo) if part.mask else yes)
                 if part else (DOUBLE(0.0), no) for part in (*code.reverse, None)[:2]] for code in self.code.codes]
        found: list[Any] = []
        for column in zip(*rows, strict=True):
            factor, counts = (self._chosen(i, x) for x in zip(*column, strict=True))
            found.append((b.fmul(word, factor), b.and_(live, counts)))
        return found

    def _part(self, part: Contribution, values: dict[str, Any], memo: dict[Expr, Any], live: Any) -> Any:
        b = self.b
        if part.same:
            return values["ct"], None
        value = self._built(part.value, values, memo)
        if part.factor:
            value = b.fmul(values["ct"], value)
        return value, live if part.mask is None else b.and_(live, self._built(part.mask, values, memo))

    def _chosen(self, i: Any, values: Sequence[Any]) -> Any:
        """That of the op-code which the last column names."""
        b = self.b
        which = b.load(b.gep(self.places, [b.add(b.mul(self.size, INT64(self.code.arity)), i)]))
        found = values[0]
        for number, value in enumerate(values[1:], 1):
            if value is values[0] or value == found:
                continue
            found = b.select(b.icmp_signed("==", which, INT32(number)), value, found)
            found.set_metadata("unpredictable", b.module.add_metadata([]))
        return found

    def keep(self, part: tuple[Any, Any], address: Any) -> None:
        """Store a contribution, to be added later."""
        b, (value, counts) = self.b, part
        if value.type == FLOAT:
            value = b.fpext(value, DOUBLE)
        if counts is not None:
            value = b.select(counts, b.fadd(value, DOUBLE(0.0)), DOUBLE(-0.0))
        b.store(value, address)

    def add_all(self, i: Any, mine: Any, cotangents: Any, parts: Sequence[Any]) -> None:
        """Add them; its own cotangent becomes that of the next call."""
        b = self.b
        b.store(DOUBLE(-0.0), b.gep(mine, [i]))
        for operand, part in enumerate(parts):
            if part is None:
                continue
            value, counts = part
            address = b.gep(cotangents, [self._place(i, operand)])
            before = old = b.load(address)
            if counts is not None:
                old = b.fadd(old, DOUBLE(0.0))                 # so that the sum is no -0.0
            if self.code.dtypes[operand] == "float32":
                if value.type == DOUBLE:
                    value = b.fptrunc(value, FLOAT)
                total = b.fpext(b.fadd(b.fptrunc(old, FLOAT), value), DOUBLE)
            else:
                total = b.fadd(old, value)
            b.store(total if counts is None else b.select(counts, total, before), address)

    def _built(self, expr: Expr, values: dict[str, Any], memo: dict[Expr, Any]) -> Any:
        return build(self.b, expr, values, memo=memo, inline=self.inline, apart=True)

    def _operands(self, i: Any) -> dict[str, Any]:
        return {f"x{k}": self._load(self.b.gep(self.memory, [self._place(i, k)]), tag(np.dtype(dtype)))
                for k, dtype in enumerate(self.code.dtypes)}

    def _place(self, i: Any, operand: int) -> Any:
        b = self.b
        first = b.mul(self.size, INT64(operand)) if operand else INT64(0)
        return b.sext(b.load(b.gep(self.places, [b.add(first, i)])), INT64)

    def _load(self, address: Any, dtype: str) -> Any:
        b = self.b
        if dtype[0] == "f":
            value = b.load(address)
            return value if dtype == "f8" else b.fptrunc(value, FLOAT)
        value = b.load(b.bitcast(address, WORDS))
        kind = TYPES[dtype]
        if kind == BOOL:
            return b.icmp_signed("!=", value, INT64(0))
        return value if kind == INT64 else b.trunc(value, kind)

    def _store(self, value: Any, dtype: str, address: Any) -> None:
        b = self.b
        if dtype[0] == "f":
            b.store(value if dtype == "f8" else b.fpext(value, DOUBLE), address)
            return
        if value.type != INT64:
            value = b.sext(value, INT64) if dtype[0] == "i" else b.zext(value, INT64)
        b.store(value, b.bitcast(address, WORDS))
