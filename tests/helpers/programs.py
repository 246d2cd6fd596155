"""Random programs of primitives, and the comparison of their kernels with the interpreter."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from jitad.passes.differentiate.modes import pullback
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.core import cast, select
from jitad.primitives.index import reshape
from jitad.primitives.reduce import contract, reduce_sum
from jitad.primitives.view import broadcast_to, diagonal, expand_dims, slice_dims, transpose
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval
from jitad.testing import rules as checks

Choose = Callable[[int], int]                 # a number below the argument
SIZE_LIMIT = 12000
UNARY = ("neg", "sin", "tanh", "expit", "abs", "arctan", "square", "cosh", "log1p", "exp")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "arctan2", "add", "mul")


@dataclass
class Random:
    """A program in the making: `values` may be used by the next operation."""

    choose: Choose
    dtype: str = "float64"
    builder: Builder = field(default_factory=Builder)
    values: list[Value] = field(default_factory=list)
    inputs: list[np.ndarray] = field(default_factory=list)
    long: int = 0

    def __post_init__(self) -> None:
        self.dtype = "float32" if self.choose(8) == 7 else "float64"
        self.long = (0, 0, 700, 1031, 3000)[self.choose(5)]
        self.rng = np.random.default_rng(self.choose(1 << 16))

    # --- choices -----------------------------------------------------------------------------
    def some(self, sequence: Sequence[Any]) -> Any:
        return sequence[self.choose(len(sequence))]

    def value(self) -> Value:
        """One of the latest values, more often than not."""
        n = len(self.values)
        return self.values[n - 1 - min(self.choose(n), self.choose(n))]

    def length(self) -> int:
        if self.long and self.choose(3) == 0:
            return self.long
        return self.some((3, 2, 4, 1, 5, 6, 0)) if self.choose(8) else 0

    def shape(self, ndim: int) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(ndim):
            n = self.length()
            shape.append(n if math.prod(shape) * n <= SIZE_LIMIT else 2)
        return tuple(shape)

    # --- inputs ------------------------------------------------------------------------------
    def input(self, array: np.ndarray) -> Value:
        self.inputs.append(array)
        return self.builder.input(Aval(array.shape, array.dtype), f"x{len(self.inputs) - 1}")

    def floats(self, shape: tuple[int, ...]) -> Value:
        return self.input(np.asarray(self.rng.uniform(-1.5, 1.5, shape)).astype(self.dtype))

    def bools(self, shape: tuple[int, ...]) -> Value:
        return self.input(np.asarray(self.rng.uniform(size=shape) < 0.6))

    def indices(self, shape: tuple[int, ...], length: int) -> Value:
        kind = self.some(("int64", "int64", "int32", "uint16", "int8"))
        top = min(length, np.iinfo(kind).max)
        low = -top if np.dtype(kind).kind == "i" and self.choose(2) else 0
        array = np.asarray(self.rng.integers(low, top, shape)).astype(kind)
        return self.builder.const(array) if self.choose(3) == 0 else self.input(array)

    # --- operations --------------------------------------------------------------------------
    def unary(self) -> Value:
        name, x = self.some(UNARY), self.value()
        if name == "log1p":
            x = TABLE["square"](x)
        elif name in ("exp", "cosh", "square"):
            x = TABLE["tanh"](x)
        return TABLE[name](x)

    def binary(self) -> Value:
        name, x = self.some(BINARY), self.value()
        y = self.partner(x)
        if name in ("div", "arctan2"):          # away from zero, whose sign NumPy does not always tell
            y = TABLE["square"](y) + 0.5
        result = TABLE[name](x, y) if self.choose(2) or name in ("div", "arctan2") else TABLE[name](y, x)
        return TABLE["tanh"](result) if name == "mul" and self.choose(2) else result

    def partner(self, x: Value) -> Value:
        """A value that broadcasts against `x`."""
        known = [v for v in self.values if _fits(v.shape, x.shape)]
        if known and self.choose(4):
            return self.some(known)
        first = self.choose(x.ndim + 1)
        return self.floats(tuple(1 if self.choose(3) == 0 else n for n in x.shape[first:]))

    def where(self) -> Value:
        x = self.value()
        return select(self.bools(x.shape) if self.choose(2) else x < self.floats(x.shape), x, self.partner(x))

    def sliced(self) -> Value:
        x = self.value()
        entries: list[Any] = []
        for n in x.shape:
            start, stop = sorted((self.choose(n + 1), self.choose(n + 1)))
            entries.append(self.some((
                slice(None), slice(start, stop), slice(None, None, -1), slice(start, None, 2),
                slice(None, None, -2), self.choose(n) - (n if self.choose(2) else 0) if n else slice(None))))
            if isinstance(entries[-1], int):
                entries[-1] %= n
            if self.choose(6) == 0:
                entries.append(None)
        return slice_dims(x, tuple(entries))

    def transposed(self) -> Value:
        x = self.value()
        axes = list(range(x.ndim))
        for d in range(x.ndim - 1):
            other = d + self.choose(x.ndim - d)
            axes[d], axes[other] = axes[other], axes[d]
        return transpose(x, tuple(axes))

    def broadcast(self) -> Value:
        x = self.value()
        if x.ndim > 2:
            return expand_dims(x, (self.choose(x.ndim),))
        return broadcast_to(x, (*self.shape(1), *x.shape))

    def diagonal(self) -> Value:
        x = self.value()
        if x.ndim < 2:
            return x
        first = self.choose(x.ndim)
        second = (first + 1 + self.choose(x.ndim - 1)) % x.ndim
        return diagonal(x, self.choose(3) - 1, first, second)

    def reduced(self) -> Value:
        x = self.value()
        axes = tuple(d for d in range(x.ndim) if self.choose(2))
        name = self.some(("reduce_sum", "reduce_sum", "reduce_max", "reduce_min"))
        if name == "reduce_sum" or any(x.shape[d] == 0 for d in axes):
            return reduce_sum(x, axes)
        return TABLE[name](x, axes=axes)

    def gathered(self) -> Value:
        x = self.value()
        axes = [d for d in range(x.ndim) if x.shape[d]]
        if not axes:
            return x
        first = self.some(axes)
        others = [d for d in axes if d != first]
        chosen = (first, self.some(others)) if others and self.choose(3) == 0 else (first,)
        shape = self.shape(1 + self.choose(2))
        index = [self.indices(shape, x.shape[d]) for d in chosen]
        return TABLE["gather"](x, *index, axes=chosen)

    def scattered(self) -> Value:
        x = self.value()
        if x.ndim == 0:
            return x
        leading = 1 + (x.ndim > 1 and self.choose(3) == 0)
        target = self.length() or 3
        axis = self.choose(x.ndim - leading + 1)
        rest = list(x.shape[leading:])
        shape = (*rest[:axis], target, *rest[axis:])
        return TABLE["scatter"](x, self.indices(x.shape[:leading], target), axes=(axis,), shape=shape)

    def joined(self) -> Value:
        x = self.value()
        if x.ndim == 0:
            x = expand_dims(x, (0,))
        axis = self.choose(x.ndim)
        alike = [v for v in self.values if v.ndim == x.ndim and all(
            a == b or d == axis for d, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)))]
        parts = [x] + [self.some([*alike, x]) for _ in range(1 + self.choose(2))]
        return TABLE["concatenate"](*parts, axis=axis)

    def contracted(self) -> Value:
        x, y = self.value(), self.value()
        left, right = "ijkl"[:x.ndim], ""
        for n in y.shape:
            same = [c for c, m in zip(left, x.shape, strict=True) if m == n and c not in right]
            right += self.some(same) if same and self.choose(3) else "mnop"[len(right)]
        letters = list(dict.fromkeys(left + right))
        out = [c for c in letters if self.choose(2)]
        if self.choose(2):
            out.reverse()
        return TABLE["tanh"](contract(x, y, f"{left},{right}->{''.join(out[:4])}"))

    def accumulated(self) -> Value:
        x = self.value()
        return TABLE["cumsum"](x, axis=self.choose(x.ndim), reverse=bool(self.choose(2))) if x.ndim else x

    def triangle(self) -> Value:
        x = self.value()
        return TABLE[self.some(("tril", "triu"))](x, k=self.choose(4) - 2) if x.ndim > 1 else x

    def reshaped(self) -> Value:
        x = self.value()
        n, size = 1 + self.choose(5), x.aval.size
        if self.choose(2) or size % n:
            return reshape(x, (size,))
        return reshape(x, (n, size // n) if self.choose(2) else (size // n, n))

    def number(self) -> Value:
        """Something of an integer or boolean input."""
        n = self.rng.integers(-3, 4, self.shape(1 + self.choose(2)))
        kind = self.some(("int64", "int8", "uint8", "int32", "bool"))
        return cast(self.input(n.astype(kind)), self.dtype)

    OPERATIONS = (unary, unary, binary, binary, binary, where, sliced, transposed, broadcast, diagonal, reduced,
                  reduced, gathered, scattered, joined, contracted, contracted, accumulated, triangle, reshaped, number)

    # --- the whole ---------------------------------------------------------------------------
    def build(self, length: int) -> Tape:
        """A tape of values and the pullback of one of them."""
        for _ in range(1 + self.choose(3)):
            self.values.append(self.floats(self.shape(self.choose(4))))
        for _ in range(length):
            made = self.some(self.OPERATIONS)(self)
            if made.ndim <= 4 and made.aval.size <= SIZE_LIMIT:
                self.values.append(made)
        y = self.values[-1]
        wrt = [self.builder.value(i) for i in self.builder.inputs if self.builder.nodes[i].aval.dtype.kind == "f"]
        outputs = [self.value() for _ in range(self.choose(3))] + [y]
        if self.choose(3):
            ct = self.floats(y.shape) if self.choose(2) else broadcast_to(
                self.builder.const(np.asarray(1, self.dtype)), y.shape)
            outputs += pullback(self.builder, [y], [ct], wrt)
        return self.builder.finish(outputs)


def _fits(small: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(small) <= len(shape) and all(a in (1, b) for a, b in zip(small[::-1], shape[::-1], strict=False))


# --- comparison ------------------------------------------------------------------------------------

def argument(x: Any) -> Any:
    """What a caller passes: arrays as they are, 0-d ones as NumPy scalars."""
    x = np.asarray(x)
    return x if x.ndim else x[()]


def run(tape: Tape, inputs: Sequence[Any]) -> tuple[Kernel, list[Any]]:
    """The kernel of the optimised tape, and its outputs."""
    kernel = Kernel(optimise(tape), tuple(argument_type(argument(x)) for x in inputs))
    return kernel, call(kernel, inputs)


def call(kernel: Kernel, inputs: Sequence[Any]) -> list[Any]:
    outputs = kernel.call(*map(argument, inputs))
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def scale_of(tape: Tape, inputs: Sequence[Any]) -> float:
    """The largest finite magnitude of any intermediate value, at least 1: what rounding errors are relative to."""
    numbers = [i for i, n in enumerate(tape.nodes) if n.aval.size and n.aval.dtype.kind == "f"]
    whole = Tape(tape.nodes, tape.inputs, tuple(numbers), tape.names)
    largest = 1.0
    for value in evaluate(whole, *inputs):
        finite = np.abs(value[np.isfinite(value)], dtype=np.float64)
        largest = max(largest, float(finite.max(initial=0.0)))
    return largest


def compare(what: str, outputs: Sequence[Any], expected: Sequence[np.ndarray], rtol: float, scale: float = 1.0) -> None:
    assert len(outputs) == len(expected)
    for i, (g, e) in enumerate(zip(outputs, expected, strict=True)):
        if e.ndim:
            checks.require(g.dtype == e.dtype, what, f"output {i} is {g.dtype}, expected {e.dtype}")
        exact = e.dtype.kind != "f"
        checks.close(what, f"output {i}", g, e, 0.0 if exact else rtol, 0.0 if exact else rtol * scale)


def sweep_outputs(sweep: Callable[..., Any], kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[Any]:
    """What a sweep of Python or numba puts into fresh arrays and returns."""
    avals = [kernel.tape.nodes[o].aval for o in kernel.tape.outputs]
    arrays = [np.full(a.shape, 77, a.dtype) for a in avals if a.ndim]
    with np.errstate(all="ignore"):
        status, *numbers = sweep(*map(argument, inputs), *arrays)
    assert status == 0
    made, scalars = iter(arrays), iter(numbers)
    return [next(made) if a.ndim else next(scalars) for a in avals]
