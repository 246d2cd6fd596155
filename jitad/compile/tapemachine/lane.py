"""One operation of the tape machine, as LLVM IR: loads, the scalar code, stores."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import BOOL, DOUBLE, FLOAT, INT32, INT64, Module
from jitad.compile.loops import tag
from jitad.compile.scalar.expressions import TYPES, build
from jitad.compile.tapemachine.opcodes import Contribution, Mixture, OpCode
from jitad.tape.expr import Expr

WORDS = INT64.as_pointer()
NOTHING = -2**63          # the bits of -0.0, a cotangent that is structurally zero


def live(b: IRBuilder, word: Any) -> Any:
    """Whether a cotangent is not structurally zero."""
    return b.icmp_signed("!=", b.bitcast(word, INT64), INT64(NOTHING))


def loop(b: IRBuilder, start: Any, stop: Any, body: Callable[[Any], None], step: int = 1,
          lanes: bool = False) -> None:
    """``for i in range(start, stop, step)``, at least once; in vector lanes or strictly one by one."""
    before, inside, done = b.block, b.function.append_basic_block("loop"), b.function.append_basic_block("end")
    b.branch(inside)
    b.position_at_end(inside)
    index = b.phi(INT64)
    index.add_incoming(start, before)
    body(index)
    following = b.add(index, INT64(step), flags="nsw")
    index.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, stop), inside, done, _hints(b.module, lanes))
    b.position_at_end(done)


def _hints(module: Module, lanes: bool) -> str:
    """LLVM shall not unroll the loop, and may vectorise it only with `lanes`."""
    return module.loop_hints(("llvm.loop.unroll.disable",), ("llvm.loop.interleave.count", INT32(1)) if lanes else (
        "llvm.loop.vectorize.enable", BOOL(0)))


def taken(code: OpCode | Mixture) -> list[bool]:
    """Which operands get something in reverse."""
    return [True] * code.arity if isinstance(code, Mixture) else [c is not None for c in code.reverse]


@dataclass
class Lane:
    """One operation of a run."""

    b: IRBuilder
    code: OpCode | Mixture
    places: Any
    size: Any
    memory: Any
    out: Any
    inline: bool = True

    def result(self, i: Any) -> None:
        """Compute it and store it."""
        values = self._operands(i)
        memo: dict[Expr, Any] = {}
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
        counted = live(b, word)
        values = self._operands(i)
        values["y"] = self._load(b.gep(self.out, [i]), tag(self.code.dtype))
        values["ct"] = b.fptrunc(word, FLOAT) if self.code.dtype == np.float32 else word
        memo: dict[Expr, Any] = {}
        if isinstance(self.code, OpCode):
            return [part and self._part(part, values, memo, counted) for part in self.code.reverse]
        yes, no = BOOL(1), BOOL(0)
        rows = [[(self._built(part.value, values, memo), self._built(part.mask, values, memo) if part.mask else yes)
                 if part else (DOUBLE(0.0), no) for part in (*code.reverse, None)[:2]] for code in self.code.codes]
        found: list[Any] = []
        for column in zip(*rows, strict=True):
            factor, counts = (self._chosen(i, x) for x in zip(*column, strict=True))
            found.append((b.fmul(word, factor), b.and_(counted, counts)))
        return found

    def _part(self, part: Contribution, values: dict[str, Any], memo: dict[Expr, Any], counted: Any) -> Any:
        b = self.b
        if part.same:
            return values["ct"], None
        value = self._built(part.value, values, memo)
        if part.factor:
            value = b.fmul(values["ct"], value)
        return value, counted if part.mask is None else b.and_(counted, self._built(part.mask, values, memo))

    def _chosen(self, i: Any, values: Sequence[Any]) -> Any:
        """That of the op-code which the last column names."""
        b = self.b
        which = b.load(b.gep(self.places, [b.add(b.mul(self.size, INT64(self.code.arity)), i)]))
        found = values[0]
        for number, value in enumerate(values[1:], 1):
            if value.text in (values[0].text, found.text):
                continue
            found = b.select(b.icmp_signed("==", which, INT32(number)), value, found,
                             f", !unpredictable !{b.module.note()}")
        return found

    def keep(self, part: tuple[Any, Any], address: Any) -> None:
        """Store a contribution, to be added later."""
        b, (value, counts) = self.b, part
        if value.type is FLOAT:
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
                if value.type is DOUBLE:
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
        if kind is BOOL:
            return b.icmp_signed("!=", value, INT64(0))
        return value if kind is INT64 else b.trunc(value, kind)

    def _store(self, value: Any, dtype: str, address: Any) -> None:
        b = self.b
        if dtype[0] == "f":
            b.store(value if dtype == "f8" else b.fpext(value, DOUBLE), address)
            return
        if value.type is not INT64:
            value = b.sext(value, INT64) if dtype[0] == "i" else b.zext(value, INT64)
        b.store(value, b.bitcast(address, WORDS))
