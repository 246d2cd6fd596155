"""Random loops on a tape, and the same loops written out."""
from __future__ import annotations

import numpy as np

from jitad.primitives.core import cast, select
from jitad.primitives.reduce import contract, cumsum, reduce_sum
from jitad.primitives.scan import loop, loop_in_chunks
from jitad.primitives.view import broadcast_to, slice_dims, transpose
from jitad.tape.builder import Builder
from jitad.tape.types import TABLE, Aval

F8 = np.dtype("f8")
UNARY = ("sin", "tanh", "exp", "square", "neg", "arctan", "expit", "abs")
BINARY = ("add", "sub", "mul", "add", "mul", "maximum")
SHAPES = ((), (), (3,), (2, 2), (70,))


def bounded(x):
    return TABLE["tanh"](x)


class Random:
    """A random loop; `step` is the same function of values every time it is called."""

    def __init__(self, seed):
        self.seed, rng = seed, np.random.default_rng(seed)
        self.length = int(rng.integers(0, 9))
        self.reverse, self.counter = bool(rng.integers(2)), bool(rng.integers(2))
        kinds = 5 if seed % 3 == 0 else 4
        pick = lambda low, high: [SHAPES[k] for k in rng.integers(0, kinds, rng.integers(low, high))]
        self.carries, self.fixed = pick(1, 4), pick(0, 3)
        self.rows = []
        for shape in pick(0, 3):
            offset, step = int(rng.integers(0, 3)), int(rng.choice([1, 1, 2, -1]))
            self.rows.append((shape, offset + (self.length if step < 0 else 0), step))
        self.arrays = [((self.length * abs(s) + 4, *shape), o, s) for shape, o, s in self.rows]
        shapes = [*self.carries, *(a for a, _, _ in self.arrays), *self.fixed]
        self.inputs = [np.asarray(rng.uniform(-1, 1, s)) for s in shapes]
        self.tangents = [np.asarray(rng.uniform(-1, 1, s)) for s in shapes]
        self.stacks = int(rng.integers(0, 3))

    def step(self, *values):
        rng = np.random.default_rng(self.seed + 1000)
        pool = [cast(v, F8) if v.dtype != F8 else v for v in values]
        for _ in range(int(rng.integers(3, 14))):
            pool.append(self.operation(rng, pool))
        some = lambda shape: self.shaped(pool[-1 - min(rng.integers(len(pool)), rng.integers(len(pool)))], shape)
        carries = [self.carry(rng, v, some(shape)) for v, shape in zip(values, self.carries, strict=False)]
        return [*carries, *(some(SHAPES[rng.integers(4)]) for _ in range(self.stacks))]

    @staticmethod
    def carry(rng, old, new):
        return (old, new, old + new, bounded(old * 0.5 + new))[rng.choice([0, 1, 2, 2, 3, 3])]

    def operation(self, rng, pool):
        some = lambda: pool[-1 - min(rng.integers(len(pool)), rng.integers(len(pool)))]
        kind, x = rng.integers(8), some()
        if kind < 2:
            return bounded(TABLE[UNARY[rng.integers(len(UNARY))]](x))
        if kind == 2 and x.ndim:
            return reduce_sum(x, (int(rng.integers(x.ndim)),)) * 0.5
        if kind == 3 and x.ndim == 2:
            return bounded(contract(x, self.shaped(some(), x.shape), "ij,jk->ki"))
        if kind == 4 and x.ndim:
            return cumsum(x, axis=0, reverse=bool(rng.integers(2))) * 0.1
        if kind == 5:
            y = self.shaped(some(), x.shape)
            return select(TABLE["gt"](x, 0.0), x / (1.5 + TABLE["square"](y)), y)
        if kind == 6 and x.ndim == 2:
            return transpose(x, (1, 0))
        return bounded(TABLE[BINARY[rng.integers(len(BINARY))]](x, self.shaped(some(), x.shape)))

    @staticmethod
    def shaped(x, shape):
        if x.shape == shape:
            return x
        while x.ndim:
            x = slice_dims(x, (x.shape[0] // 2, *(slice(None),) * (x.ndim - 1)))
        return broadcast_to(x, shape)

    # --- two ways to write it ----------------------------------------------------------------
    def sources(self, builder):
        values = [builder.input(Aval(x.shape, F8), f"x{i}") for i, x in enumerate(self.inputs)]
        n, m = len(self.carries), len(self.arrays)
        scanned = [(v, o, s) for v, (_, o, s) in zip(values[n:n + m], self.arrays, strict=True)]
        return values, values[:n], scanned, values[n + m:]

    def as_loop(self, builder, chunks=False):
        values, init, scanned, fixed = self.sources(builder)
        inner = Builder()
        avals = [*self.carries, *(s for s, _, _ in self.rows), *self.fixed]
        places = [inner.input(Aval(s, F8), f"p{i}") for i, s in enumerate(avals)]
        places += [inner.input(Aval((), np.dtype("i8")), "t")] if self.counter else []
        body = inner.finish([inner.lift(v) for v in self.step(*places)])
        if chunks:
            finals, stacks = loop_in_chunks(builder, body, init, scanned, fixed, self.length, self.reverse)
        else:
            finals, stacks = loop(builder, body, init, scanned, fixed, self.length, self.counter, self.reverse)
        return values, self.score([*finals, *stacks])

    def written_out(self, builder):
        values, state, scanned, fixed = self.sources(builder)
        rows = [[None] * self.length for _ in range(self.stacks)]
        for t in reversed(range(self.length)) if self.reverse else range(self.length):
            elements = [slice_dims(v, (o + s * t, *(slice(None),) * (v.ndim - 1))) for v, o, s in scanned]
            counter = [builder.const(t)] if self.counter else []
            results = self.step(*state, *elements, *fixed, *counter)
            state = results[:len(self.carries)]
            for row, value in zip(rows, results[len(self.carries):], strict=True):
                row[t] = value
        total = self.score(state)
        for row in rows:
            for t, value in enumerate(row):
                part = TABLE["sin"](value * (t + 1.0))
                total = total + reduce_sum(part, tuple(range(part.ndim)))
        return values, total

    @staticmethod
    def score(values):
        total = None
        for k, v in enumerate(values):
            part = v
            if v.ndim and v.node.prim.kind == "pick" and k >= _carries(v):
                weights = np.arange(1.0, v.shape[0] + 1).reshape(-1, *(1,) * (v.ndim - 1))
                part = TABLE["sin"](v * weights)
            part = reduce_sum(part, tuple(range(part.ndim)))
            total = part if total is None else total + part
        return total


def _carries(v):
    return v.builder.nodes[v.node.inputs[0]].params["carries"]
