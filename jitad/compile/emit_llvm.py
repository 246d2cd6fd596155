"""The second emitter: a program as one LLVM function, several times faster to compile.

The function takes raw pointers (inputs by pointer, with strides in bytes where they are
not contiguous; numbers by value; outputs and scalar results by pointer) and returns the
status. It is called by the entry in the same module (`entry_llvm`), or by a C callback
(`callback`).
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir

from jitad.compile.emit_transpose import emit_transpose
from jitad.compile.interleave import paired
from jitad.compile.loops import (
    STATUS_MEMORY,
    TINY,
    Accumulator,
    Assign,
    Buffer,
    Call,
    Combine,
    Fill,
    Let,
    Loop,
    Note,
    Program,
    Return,
    Statement,
    Stop,
    Store,
    Transpose,
    Update,
)
from jitad.compile.routines import build_routine
from jitad.compile.scalar import Expr
from jitad.compile.scalar_llvm import BOOL, FREE_ORDER, INT64, TYPES, build, constant

MEMORY: dict[str, ir.Type] = {**TYPES, "b1": ir.IntType(8)}
STACK_BYTES = 32768           # work arrays up to this size in all live on the stack
READABLE = 64                 # constants of more elements are written as bytes
# Enough for sums in vector lanes. With "nsz" LLVM also takes x - x and 0 * x within a sum for 0, of infinite x too.
NUMPY_SIZE = {"f8": 8, "f4": 4, "i8": 8, "i4": 4, "u4": 4, "i2": 2, "u2": 2, "i1": 1, "u1": 1, "b1": 1}


def function_type(program: Program) -> ir.FunctionType:
    """The C signature of the kernel of `program`."""
    kinds: list[ir.Type] = []
    for p in program.parameters:
        if isinstance(p, Buffer):
            kinds.append(MEMORY[p.dtype].as_pointer())
            kinds += [INT64] * (len(p.shape) if p.order == "A" else 0)
        else:
            kinds.append(MEMORY[p[1]])
    kinds += [MEMORY[b.dtype].as_pointer() for b in program.outputs]
    kinds += [MEMORY[r.dtype].as_pointer() for r in program.results]
    return ir.FunctionType(INT64, kinds)


def emit_llvm(program: Program, module: ir.Module, name: str) -> ir.Function:
    """Build the kernel of `program` in `module`."""
    function = ir.Function(module, function_type(program), name)
    for argument in function.args:
        if isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")
    _Emitter(program, function).run()
    return function


class _Emitter:
    def __init__(self, program: Program, function: ir.Function):
        self.program, self.function = program, function
        self.entry = function.append_basic_block("entry")
        self.builder = ir.IRBuilder(function.append_basic_block("body"))
        self.slots = ir.IRBuilder(self.entry)                       # allocas go to the entry block
        self.buffers: dict[str, Buffer] = {}
        self.pointers: dict[str, Any] = {}
        self.strides: dict[str, list[Any]] = {}
        self.variables: dict[str, Any] = {}
        self.accumulators: dict[str, Any] = {}
        self.exits: list[Any] = []                                  # where the loops around end
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
        self.slots.branch(self.function.blocks[1])

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
        """Constants are globals; small work arrays lie on the stack, large ones in memory of this call."""
        work = [b for b in self.program.buffers if b.kind == "work"]
        on_stack = sum(b.size * NUMPY_SIZE[b.dtype] for b in work) <= STACK_BYTES
        for b in self.program.buffers:
            self.buffers[b.name] = b
            if b.kind == "constant":
                self.pointers[b.name] = self._constant(b)
            elif on_stack:
                slot = self.slots.alloca(ir.ArrayType(MEMORY[b.dtype], max(b.size, 1)), name=b.name)
                slot.align = 64
                self.pointers[b.name] = self.slots.bitcast(slot, MEMORY[b.dtype].as_pointer())
        if not on_stack:
            for dtype, size in self.program.workspace.items():
                base = self._allocate(size * NUMPY_SIZE[dtype], MEMORY[dtype])
                for b in work:
                    if b.dtype == dtype:
                        self.pointers[b.name] = self.builder.gep(base, [INT64(b.offset)])

    def _allocate(self, size: int, kind: ir.Type) -> Any:
        module = self.function.module
        raw = ir.IntType(8).as_pointer()
        malloc = module.globals.get("malloc") or ir.Function(module, ir.FunctionType(raw, [INT64]), "malloc")
        malloc.return_value.add_attribute("noalias")
        memory = self.builder.call(malloc, [INT64(size)])
        self.owned.append(memory)
        self._unless(self.builder.icmp_unsigned("!=", memory, raw(None)), INT64(STATUS_MEMORY))
        return self.builder.bitcast(memory, kind.as_pointer())

    def _constant(self, b: Buffer) -> Any:
        assert b.value is not None
        kind = MEMORY[b.dtype]
        flat = b.value.ravel().astype(np.uint8 if b.dtype == "b1" else b.value.dtype)
        if flat.size <= READABLE:
            array = ir.ArrayType(kind, max(flat.size, 1))
            content = ir.Constant(array, [ir.Constant(kind, v) for v in flat.tolist() or [0]])
        else:                                           # as bytes: a constant for each element takes long to write
            array = ir.ArrayType(ir.IntType(8), flat.nbytes)
            content = ir.Constant(array, bytearray(flat.tobytes()))
        variable = ir.GlobalVariable(self.function.module, array, self.function.module.get_unique_name(b.name))
        variable.linkage, variable.global_constant, variable.align = "internal", True, 64
        variable.initializer = content
        return self.builder.bitcast(variable, kind.as_pointer())

    # --- scalars -----------------------------------------------------------------------------
    def value(self, e: Expr) -> Any:
        inline = self.depth > 0 or self.short
        return build(self.builder, e, self._Names(self), load=self._load, inline=inline, apart=True)

    class _Names(dict):
        """Variables by name, accumulators read where they stand."""

        def __init__(self, emitter: _Emitter):
            self.emitter = emitter

        def __getitem__(self, name: str) -> Any:
            slot = self.emitter.accumulators.get(name)
            return self.emitter.variables[name] if slot is None else self.emitter.builder.load(slot)

    def _load(self, builder: ir.IRBuilder, e: Expr, indices: list[Any]) -> Any:
        return self._from_memory(builder.load(self._address(e.args[0], indices)), e.dtype)

    def _address(self, name: str, indices: list[Any]) -> Any:
        pointer, strides = self.pointers[name], self.strides.get(name)
        if strides is None:
            return self.builder.gep(pointer, indices or [INT64(0)], inbounds=True)
        offset: Any = INT64(0)
        for index, stride in zip(indices, strides, strict=True):
            offset = self.builder.add(offset, self.builder.mul(index, stride))
        raw = self.builder.bitcast(pointer, ir.IntType(8).as_pointer())
        return self.builder.bitcast(self.builder.gep(raw, [offset]), pointer.type)

    def _from_memory(self, value: Any, dtype: str) -> Any:
        return self.builder.icmp_unsigned("!=", value, ir.Constant(value.type, 0)) if dtype == "b1" else value

    def _to_memory(self, value: Any, dtype: str) -> Any:
        return self.builder.zext(value, MEMORY["b1"]) if dtype == "b1" and value.type == BOOL else value

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
            slot = self.accumulators[s.name] = self.slots.alloca(first.type, name=s.name)
        self.builder.store(first, slot)

    def _assign(self, s: Assign) -> None:
        self.builder.store(self.value(s.expr), self.accumulators[s.name])

    def _combine(self, s: Combine) -> None:
        slot = self.accumulators[s.name]
        self.builder.store(self._combined(s.op, self.builder.load(slot), self.value(s.expr), s.expr.dtype), slot)

    def _combined(self, op: str, total: Any, term: Any, dtype: str) -> Any:
        if op in ("add", "add_in_order"):
            if isinstance(total.type, ir.IntType):
                return self.builder.add(total, term)
            return self.builder.fadd(total, term, flags=FREE_ORDER if op == "add" else ("contract",))
        if op == "and":
            return self.builder.and_(total, term)
        if op == "or":
            return self.builder.or_(total, term)
        if isinstance(total.type, ir.IntType):
            compare = self.builder.icmp_unsigned if dtype[0] == "u" else self.builder.icmp_signed
            return self.builder.select(compare(">" if op == "max" else "<", total, term), total, term)
        kind = total.type
        extremum = self.function.module.declare_intrinsic(
            "llvm.maximum" if op == "max" else "llvm.minimum", [kind], ir.FunctionType(kind, [kind, kind]))
        return self.builder.call(extremum, [total, term])

    def _store(self, s: Store) -> None:
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
        number = constant(Expr("const", (s.number,), b.dtype)) if b.dtype != "b1" else ir.Constant(
            MEMORY["b1"], int(bool(s.number)))

        def body(index: Any) -> None:
            self.builder.store(number, self._address(s.buffer, [index]))
        self.loop(INT64(0), INT64(b.size), 1, body)

    def _loop(self, s: Loop) -> None:
        def body(index: Any) -> None:
            self.variables[s.variable] = index
            self._statements(s.body)
        self.loop(self._bound(s.start), self._bound(s.stop), s.step, body, paired(s))

    def _bound(self, bound: Expr | int) -> Any:
        return INT64(bound) if isinstance(bound, int) else self.value(bound)

    def loop(self, start: Any, stop: Any, step: int, body: Any, pairs: bool = False) -> None:
        """``for index in range(start, stop, step): body(index)``; `pairs` of vectors where LLVM vectorises."""
        before = self.builder.block
        head, inside, done = (self.function.append_basic_block(n) for n in ("loop", "inside", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        index = self.builder.phi(INT64)
        index.add_incoming(start, before)
        self.builder.cbranch(self.builder.icmp_signed("<", index, stop), inside, done)
        self.builder.position_at_end(inside)
        tiny = all(isinstance(b, ir.Constant) for b in (start, stop)) and stop.constant - start.constant < TINY * step
        self.depth += not tiny
        self.exits.append(done)
        body(index)
        self.exits.pop()
        self.depth -= not tiny
        following = self.builder.add(index, INT64(step), flags=("nsw",))
        index.add_incoming(following, self.builder.block)
        back = self.builder.branch(head)
        if tiny:             # considering it takes LLVM long when the body is
            back.set_metadata("llvm.loop", self._mark("llvm.loop.vectorize.enable", BOOL(0)))
        elif pairs:
            back.set_metadata("llvm.loop", self._mark("llvm.loop.interleave.count", ir.IntType(32)(2)))
        self.builder.position_at_end(done)

    def _mark(self, name: str, value: Any) -> Any:
        """A hint for LLVM at a loop."""
        module = self.function.module
        hint = module.add_metadata([ir.MetaDataString(module, name), value])
        mark = module.add_metadata([ir.MetaDataString(module, f"loop {len(module.metadata)}"), hint])
        mark.operands = (mark, hint)                                # a loop's mark names itself
        return mark

    def _transpose(self, s: Transpose) -> None:
        emit_transpose(self, s)

    def _call(self, s: Call) -> None:
        status = build_routine(self, s.routine, [self.pointers[b] for b in s.buffers], s.numbers)
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
        if self.owned:
            module = self.function.module
            raw = ir.IntType(8).as_pointer()
            free = module.globals.get("free") or ir.Function(module, ir.FunctionType(ir.VoidType(), [raw]), "free")
            for memory in self.owned:
                self.builder.call(free, [memory])
        self.builder.ret(status)
