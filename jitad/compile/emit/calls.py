"""`Calls` in LLVM: a table of rows, and a loop that takes one after the other to its piece.

A row is words of 64 bits: the number of its piece, then what the piece is given. A place in memory is the number of its
buffer, `SHIFT` bits up, and the offset in bytes below it.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import INT8, INT64, RAW, Pointer
from jitad.compile.loops import Calls

SHIFT = 48


def emit_calls(builder: IRBuilder, s: Calls, pieces: Sequence[ir.IRValue], pointers: Mapping[str, Any],
               sizes: Mapping[str, int], unless: Callable[[Any, Any], None]) -> None:
    """`pointers` are the buffers and `sizes` the bytes of their elements; ``unless(condition, status)`` leaves the
    kernel."""
    function, module = builder.function, builder.module
    names = list(dict.fromkeys(a[0] for _, given in s.rows for a in given if isinstance(a, tuple)))
    bases = builder.slot(ir.array(RAW, max(len(names), 1)))
    for i, name in enumerate(names):
        builder.store(builder.bitcast(pointers[name], RAW), builder.gep(bases, [INT64(0), INT64(i)]))
    numbers = {name: i << SHIFT for i, name in enumerate(names)}
    words: list[int] = []
    for number, given in s.rows:
        words.append(number)
        words += [numbers[a[0]] + a[1] * sizes[a[0]] if isinstance(a, tuple) else a for a in given]
    table = np.array([*words, -1], np.int64)
    memory = module.constant(module.unique("rows"), ir.array(INT8, table.nbytes)(table.tobytes()), align=64)
    rows = builder.bitcast(memory, INT64.as_pointer())
    head, following, done = (function.append_basic_block(n) for n in ("row", "following", "done"))
    before = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    at = builder.phi(INT64)
    at.add_incoming(INT64(0), before)
    cases = [function.append_basic_block("piece") for _ in pieces]
    builder.switch(builder.load(builder.gep(rows, [at])), cases, done)
    ends = []
    for program, piece, case in zip(s.pieces, pieces, cases, strict=True):
        builder.position_at_end(case)
        kinds = piece.type.pointee.kinds
        arguments = []
        for k, kind in enumerate(kinds):
            word = builder.load(builder.gep(rows, [builder.add(at, INT64(k + 1))]))
            if isinstance(kind, Pointer):
                base = builder.load(builder.gep(bases, [INT64(0), builder.lshr(word, INT64(SHIFT))]))
                offset = builder.and_(word, INT64((1 << SHIFT) - 1))
                word = builder.bitcast(builder.gep(base, [offset]), kind)
            arguments.append(word)
        status = builder.call(piece, arguments)
        if program.fails:
            unless(builder.icmp_signed("==", status, INT64(0)), status)
        ends.append((builder.add(at, INT64(len(kinds) + 1)), builder.block))
        builder.branch(following)
    builder.position_at_end(following)
    after = builder.phi(INT64)
    for value, block in ends:
        after.add_incoming(value, block)
    at.add_incoming(after, following)
    builder.branch(head)
    builder.position_at_end(done)
