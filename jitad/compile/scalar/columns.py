"""The `loop` and `sum` of scalar expressions as LLVM IR: inside of functions that are called once for each element."""
from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from jitad.compile.llvm.builder import FREE_ORDER, IRBuilder
from jitad.compile.llvm.ir import DOUBLE, INT64, Global, Module, array
from jitad.tape.expr import Expr, Repeat, Terms

Build = Callable[[Expr, Mapping[Expr, Any]], Any]     # an expression, with the values of further ones


def build_loop(builder: IRBuilder, body: Repeat, first: list[Any], build: Build) -> list[Any]:
    """The values of the variables after the last step."""
    before = builder.block
    head, inside, done = (builder.append_basic_block(n) for n in ("loop", "inside", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    values = [builder.phi(DOUBLE) for _ in first]
    for phi, value in zip(values, first, strict=True):
        phi.add_incoming(value, before)
    known = dict(zip(body.variables, values, strict=True))
    builder.cbranch(build(body.condition, known), inside, done)
    builder.position_at_end(inside)
    following = [build(e, known) for e in body.following]
    for phi, value in zip(values, following, strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(done)
    return values


def build_sum(builder: IRBuilder, body: Terms, build: Build) -> list[Any]:
    """The sums of the terms, in vector lanes."""
    before, count = builder.block, len(body.columns[0])
    tables = [_table(builder.module, column) for column in body.columns]
    inside, done = builder.append_basic_block("terms"), builder.append_basic_block("done")
    builder.branch(inside)
    builder.position_at_end(inside)
    index = builder.phi(INT64)
    index.add_incoming(INT64(0), before)
    totals = [builder.phi(DOUBLE) for _ in body.terms]
    values = [builder.load(builder.gep(t, [INT64(0), index], inbounds=True)) for t in tables]
    known = dict(zip(body.variables, values, strict=True))
    sums = [builder.fadd(t, build(e, known), flags=FREE_ORDER) for t, e in zip(totals, body.terms, strict=True)]
    after = builder.add(index, INT64(1), flags="nsw")
    index.add_incoming(after, builder.block)
    for total, value in zip(totals, sums, strict=True):
        total.add_incoming(DOUBLE(0.0), before)
        total.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", after, INT64(count)), inside, done)
    builder.position_at_end(done)
    return sums


def _table(module: Module, column: tuple[float, ...]) -> Global:
    name = f"jitad.column.{sha256(struct.pack(f'{len(column)}d', *column)).hexdigest()[:32]}"
    return module.globals.get(name) or module.constant(name, array(DOUBLE, len(column))(column))
