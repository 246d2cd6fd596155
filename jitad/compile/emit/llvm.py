"""The second emitter: a program as one LLVM function, several times faster to compile.

The function takes raw pointers (inputs by pointer, with strides in bytes where they are
not contiguous; numbers by value; outputs and scalar results by pointer) and returns the
status. It is called by the entry in the same module (`jitad.compile.entry.emit`), or by a C callback
(`jitad.compile.entry.callback`).
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.compile.emit.calls import emit_calls
from jitad.compile.emit.loop_hints import NO_LANES, Hint, loop_hints
from jitad.compile.emit.parts import emit_parts
from jitad.compile.emit.transpose import emit_transpose
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import CONTRACT, FREE_ORDER, IRBuilder
from jitad.compile.llvm.ir import BOOL, INT8, INT32, INT64, RAW
from jitad.compile.llvm.object_cache import compile_once
from jitad.compile.llvm.workspace import given, part, taken
from jitad.compile.loops import (
    STATUS_MEMORY,
    Accumulator,
    Assign,
    Buffer,
    CallRoutine,
    Calls,
    Combine,
    Fill,
    Let,
    Loop,
    Note,
    Portions,
    Program,
    Return,
    SetElement,
    Statement,
    Stop,
    Transpose,
    Update,
)
from jitad.compile.routines.table import build_routine
from jitad.compile.scalar.expressions import TYPES, build, constant
from jitad.tape.expr import Expr

MEMORY: dict[str, ir.Type] = {**TYPES, "b1": INT8}
PIECE = "jitad_piece"         # the function of a piece that is compiled by itself
STACK_BYTES = 32768           # work arrays live on the stack, the small ones first, up to this size in all
LINE, APART = 64, 192         # a line of the cache; further bytes, so that large arrays do not all begin a page
READABLE = 64                 # constants of more elements are written as bytes
# Enough for sums in vector lanes. With "nsz" LLVM also takes x - x and 0 * x within a sum for 0, of infinite x too.
NUMPY_SIZE = {"f8": 8, "f4": 4, "i8": 8, "i4": 4, "u4": 4, "i2": 2, "u2": 2, "i1": 1, "u1": 1, "b1": 1}


def parameter_types(program: Program) -> list[ir.Type]:
    """What the kernel of `program` takes; it returns the status, an int64."""
    kinds: list[ir.Type] = []
    for p in program.parameters:
        if isinstance(p, Buffer):
            kinds.append(MEMORY[p.dtype].as_pointer())
            kinds += [INT64] * (len(p.shape) if p.order == "A" else 0)
        else:
            kinds.append(MEMORY[p[1]])
    kinds += [MEMORY[b.dtype].as_pointer() for b in program.outputs]
    kinds += [MEMORY[r.dtype].as_pointer() for r in program.results]
    return kinds


def emit_llvm(program: Program, module: ir.Module, name: str, piece: bool = False,
              constants: Mapping[str, tuple[Buffer, Any]] | None = None) -> ir.IRFunction:
    """Build the kernel of `program` in `module`; or a `piece` of one, which is called from there alone, and knows the
    `constants` that are in the module."""
    function = ir.IRFunction(module, INT64, parameter_types(program), name, "internal" if piece else "",
                             "nounwind noinline" if piece else "", apart=True)
    _Emitter(program, function, constants or {}).run()
    return function


class _Emitter:
    def __init__(self, program: Program, function: ir.IRFunction, constants: Mapping[str, tuple[Buffer, Any]]):
        self.program, self.function = program, function
        self.slots = IRBuilder(function, function.append_basic_block("entry"))       # for what is on the stack
        self.body = function.append_basic_block("body")
        self.builder = IRBuilder(function, self.body)
        self.buffers: dict[str, Buffer] = {name: b for name, (b, _) in constants.items()}
        self.pointers: dict[str, Any] = {name: pointer for name, (_, pointer) in constants.items()}
        self.strides: dict[str, list[Any]] = {}
        self.variables: dict[str, Any] = {}
        self.accumulators: dict[str, Any] = {}
        self.names = self._Names(self)
        self.exits: list[Any] = []                                  # where the loops around end
        self.around: list[str] = []                                 # the variables of the loops around
        self.depth = 0                                              # loops around the present position
        self.short = not program.straight
        self.owned: list[Any] = []                                  # memory to free

    def run(self) -> None:
        arguments = iter(self.function.args)
        self._parameters(arguments)
        results = list(arguments)
        self._memory()
        self._statements(self.program.body)
        for pointer, result in zip(results, self.program.results, strict=True):
            self.builder.store(self._to_memory(self.value(result), result.dtype), pointer)
        self._leave(INT64(0))
        self.slots.branch(self.body)

    def _parameters(self, arguments: Any) -> None:
        for p in self.program.parameters:
            if isinstance(p, Buffer):
                self.buffers[p.name], self.pointers[p.name] = p, next(arguments)
                if p.order == "A":
                    self.strides[p.name] = [next(arguments) for _ in p.shape]
                elif p.order == "F":
                    steps = [NUMPY_SIZE[p.dtype] * math.prod(p.shape[:d]) for d in range(len(p.shape))]
                    self.strides[p.name] = [INT64(s) for s in steps]
            else:
                self.variables[p[0]] = self._from_memory(next(arguments), p[1])
        for b in self.program.outputs:
            self.buffers[b.name], self.pointers[b.name] = b, next(arguments)

    def _memory(self) -> None:
        """Constants are globals. Work arrays that are never in use together may share a *place*, so places are what
        is apart. Small ones lie on the stack, the others in memory of this call."""
        places: dict[tuple[str, int], int] = {}
        for b in self.program.buffers:
            self.buffers[b.name] = b
            if b.kind == "constant":
                self.pointers[b.name] = self._constant(b)
            else:
                size = -(-max(b.size, 1) * NUMPY_SIZE[b.dtype] // LINE) * LINE
                places[b.dtype, b.offset] = max(places.get((b.dtype, b.offset), 0), size)
        starts: dict[tuple[str, int], Any] = {}
        room = STACK_BYTES
        large: list[tuple[tuple[str, int], int]] = []
        for place, size in sorted(places.items(), key=lambda item: item[1]):
            if size <= room:
                room -= size
                starts[place] = self.slots.alloca(ir.array(INT8, size), align=LINE)
            else:
                large.append((place, size + APART))
        if large:
            block, offset = self._taken(sum(size for _, size in large)), 0
            for place, size in large:
                starts[place] = part(self.builder, block, offset)
                offset += size
        for b in self.program.buffers:
            if b.kind != "constant":
                self.pointers[b.name] = self.builder.bitcast(starts[b.dtype, b.offset], MEMORY[b.dtype].as_pointer())

    def _taken(self, size: int) -> Any:
        block = taken(self.builder, size)
        self._unless(self.builder.icmp_unsigned("!=", block, RAW(None)), INT64(STATUS_MEMORY))
        self.owned.append(block)
        return block

    def _constant(self, b: Buffer) -> Any:
        assert b.value is not None
        kind = MEMORY[b.dtype]
        flat = b.value.ravel().astype(np.uint8 if b.dtype == "b1" else b.value.dtype)
        if flat.size <= READABLE:
            content = ir.array(kind, max(flat.size, 1))(flat.tolist() or [0])
        else:                                           # as bytes: a constant for each element takes long to write
            content = ir.array(INT8, flat.nbytes)(flat.tobytes())
        module = self.function.module
        variable = module.constant(module.unique(b.name), content, align=64)
        return self.builder.bitcast(variable, kind.as_pointer())

    # --- scalars -----------------------------------------------------------------------------
    def value(self, e: Expr) -> Any:
        inline = self.depth > 0 or self.short
        return build(self.builder, e, self.names, load=self._load, inline=inline, apart=True)

    class _Names(dict):
        """Variables by name, accumulators read where they stand."""

        def __init__(self, emitter: _Emitter):
            self.emitter = emitter

        def __getitem__(self, name: str) -> Any:
            slot = self.emitter.accumulators.get(name)
            return self.emitter.variables[name] if slot is None else self.emitter.builder.load(slot)

    def _load(self, builder: IRBuilder, e: Expr, indices: list[Any]) -> Any:
        return self._from_memory(builder.load(self._address(e.args[0], indices)), e.dtype)

    def _address(self, name: str, indices: list[Any]) -> Any:
        pointer, strides = self.pointers[name], self.strides.get(name)
        if strides is None:
            if not indices or getattr(indices[0], "constant", None) == 0:
                return pointer
            return self.builder.gep(pointer, indices, inbounds=True)
        offset: Any = INT64(0)
        for index, stride in zip(indices, strides, strict=True):
            offset = self.builder.add(offset, self.builder.mul(index, stride))
        raw = self.builder.bitcast(pointer, RAW)
        return self.builder.bitcast(self.builder.gep(raw, [offset]), pointer.type)

    def _from_memory(self, value: Any, dtype: str) -> Any:
        return self.builder.icmp_unsigned("!=", value, value.type(0)) if dtype == "b1" else value

    def _to_memory(self, value: Any, dtype: str) -> Any:
        return self.builder.zext(value, MEMORY["b1"]) if dtype == "b1" and value.type is BOOL else value

    # --- statements --------------------------------------------------------------------------
    def _statements(self, body: Iterable[Statement]) -> None:
        for s in body:
            if not isinstance(s, Note):
                getattr(self, f"_{type(s).__name__.lower()}")(s)

    def _let(self, s: Let) -> None:
        self.variables[s.name] = self.value(s.expr)

    def _accumulator(self, s: Accumulator) -> None:
        first = self.value(s.first)
        slot = self.accumulators.get(s.name)
        if slot is None:
            slot = self.accumulators[s.name] = self.slots.alloca(first.type)
        self.builder.store(first, slot)

    def _assign(self, s: Assign) -> None:
        self.builder.store(self.value(s.expr), self.accumulators[s.name])

    def _combine(self, s: Combine) -> None:
        slot = self.accumulators[s.name]
        self.builder.store(self._combined(s.op, self.builder.load(slot), self.value(s.expr), s.expr.dtype), slot)

    def _combined(self, op: str, total: Any, term: Any, dtype: str) -> Any:
        if op in ("add", "add_in_order"):
            if isinstance(total.type, ir.Integer):
                return self.builder.add(total, term)
            return self.builder.fadd(total, term, flags=FREE_ORDER if op == "add" else CONTRACT)
        if op == "and":
            return self.builder.and_(total, term)
        if op == "or":
            return self.builder.or_(total, term)
        if isinstance(total.type, ir.Integer):
            compare = self.builder.icmp_unsigned if dtype[0] == "u" else self.builder.icmp_signed
            return self.builder.select(compare(">" if op == "max" else "<", total, term), total, term)
        extremum = self.function.module.intrinsic("maximum" if op == "max" else "minimum", total.type, 2)
        return self.builder.call(extremum, [total, term])

    def _setelement(self, s: SetElement) -> None:
        value = self._to_memory(self.value(s.expr), self.buffers[s.buffer].dtype)
        self.builder.store(value, self._address(s.buffer, [self.value(i) for i in s.index]))

    def _update(self, s: Update) -> None:
        dtype = self.buffers[s.buffer].dtype
        term = self.value(s.expr)
        address = self._address(s.buffer, [self.value(i) for i in s.index])
        old = self._from_memory(self.builder.load(address), dtype)
        op = "add_in_order" if s.op == "add" else s.op
        self.builder.store(self._to_memory(self._combined(op, old, term, dtype), dtype), address)

    def _fill(self, s: Fill) -> None:
        b = self.buffers[s.buffer]
        number = constant(Expr("const", (s.number,), b.dtype)) if b.dtype != "b1" else INT8(bool(s.number))

        def body(index: Any) -> None:
            self.builder.store(number, self._address(s.buffer, [index]))
        self._counted(INT64(0), INT64(b.size), 1, body, loop_hints(Loop("i", 0, b.size, []), inside=True))

    def _loop(self, s: Loop) -> None:
        def body(index: Any) -> None:
            self.variables[s.variable] = index
            self.around.append(s.variable)
            self._statements(s.body)
            self.around.pop()
        hints = loop_hints(s, inside=any(v != "block" for v in self.around))
        self._counted(self._bound(s.start), self._bound(s.stop), s.step, body, hints)

    def _bound(self, bound: Expr | int) -> Any:
        return INT64(bound) if isinstance(bound, int) else self.value(bound)

    def _counted(self, start: Any, stop: Any, step: int, body: Any, hints: Sequence[Hint] = ()) -> None:
        """``for index in range(start, stop, step): body(index)``."""
        before = self.builder.block
        head, inside, done = (self.function.append_basic_block(n) for n in ("loop", "inside", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        index = self.builder.phi(INT64)
        index.add_incoming(start, before)
        self.builder.cbranch(self.builder.icmp_signed("<", index, stop), inside, done)
        self.builder.position_at_end(inside)
        tiny = NO_LANES in hints
        self.depth += not tiny
        self.exits.append(done)
        body(index)
        self.exits.pop()
        self.depth -= not tiny
        following = self.builder.add(index, INT64(step), flags="nsw")
        index.add_incoming(following, self.builder.block)
        self.builder.branch(head, self._marked(hints) if hints else "")
        self.builder.position_at_end(done)

    def _marked(self, hints: Sequence[Hint]) -> str:
        """Hints for LLVM at a loop."""
        kinds = {bool: BOOL, int: INT32}
        listed: list[list[Any]] = [[f"llvm.loop.{name}", *([] if value is None else [kinds[type(value)](value)])]
                                   for name, value in hints]
        return self.function.module.loop_hints(*listed)

    def _transpose(self, s: Transpose) -> None:
        source = self._address(s.source, [self.value(s.source_start)])
        target = self._address(s.target, [self.value(s.target_start)])
        emit_transpose(self.builder, s, source, target, self._counted)

    def _callroutine(self, s: CallRoutine) -> None:
        given = [self.pointers[b] for b in s.buffers]
        if s.pieces:
            given = [self.builder.gep(p, [self.value(first)]) for p, (first, _) in zip(given, s.pieces, strict=True)]
        status = build_routine(self, s.routine, given, s.numbers)
        self._unless(self.builder.icmp_signed("==", status, INT64(0)), status)

    def _calls(self, s: Calls) -> None:
        pieces = [self._piece(program) for program in s.pieces]
        sizes = {name: NUMPY_SIZE[b.dtype] for name, b in self.buffers.items()}
        emit_calls(self.builder, s, pieces, self.pointers, sizes, self._unless)

    def _piece(self, program: Program) -> Any:
        """One that may be of use elsewhere is compiled by itself, once; others in the kernel."""
        module = self.function.module
        if not program.general:
            return emit_llvm(program, module, module.unique("jitad_piece"), piece=True)
        own = ir.Module()
        kind = emit_llvm(program, own, PIECE).type.pointee
        module.held.append(compile_once(own, "(piece)"))
        return ir.function_at(module.held[-1].address(PIECE), kind)

    def _portions(self, s: Portions) -> None:
        def arguments(p: Buffer | tuple[str, str]) -> list[Any]:
            if isinstance(p, Buffer):
                return [self.pointers[p.name], *(self.strides[p.name] if p.order == "A" else [])]
            return [self._to_memory(self.value(Expr("var", (p[0],), p[1])), p[1])]

        def emit(program: Program, module: ir.Module, name: str) -> ir.IRFunction:
            known = {name: (b, self.pointers[name]) for name, b in self.buffers.items() if b.kind == "constant"}
            return emit_llvm(program, module, name, piece=True, constants=known)
        status = emit_parts(self.builder, s, self.buffers, arguments, emit)
        self._unless(self.builder.icmp_signed("==", status, INT64(0)), status)

    def _stop(self, s: Stop) -> None:
        further = self.function.append_basic_block("further")
        self.builder.cbranch(self.value(s.condition), further, self.exits[-1])
        self.builder.position_at_end(further)

    def _return(self, s: Return) -> None:
        self._unless(self.value(s.condition), INT64(s.status))

    def _unless(self, condition: Any, status: Any) -> None:
        fine, failed = self.function.append_basic_block("fine"), self.function.append_basic_block("failed")
        self.builder.cbranch(condition, fine, failed)
        self.builder.position_at_end(failed)
        self._leave(status)
        self.builder.position_at_end(fine)

    def _leave(self, status: Any) -> None:
        for block in self.owned:
            given(self.builder, block)
        self.builder.ret(status)
