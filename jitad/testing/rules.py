"""What a row of the table must satisfy, as functions that raise `CheckFailure` with the worst component.

A `Case` is one row with inputs and parameters. The checks build tapes and evaluate them by the reference interpreter;
they use no kernels.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.modes import one, pullback, pushforward
from jitad.passes.differentiate.tangents import Tangents
from jitad.primitives.core import FLOATS
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Primitive

Arrays = Sequence[np.ndarray]


class CheckFailure(AssertionError):
    """A rule is wrong; the message names the row, the check and the worst component."""


@dataclass(frozen=True, eq=False)
class Case:
    """`row` applied to `inputs` with `params`."""

    row: Primitive
    inputs: tuple[np.ndarray, ...]
    params: dict[str, Any]

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.inputs)
        return f"{self.row.name}({shapes}{''.join(f', {k}={v!r}' for k, v in self.params.items())})"

    @property
    def active(self) -> list[int]:
        """The inputs with respect to which there is a derivative; `fixed` of a row has those without one."""
        fixed = self.row.fixed
        return [i for i, a in enumerate(self.inputs) if a.dtype.char in FLOATS and i not in fixed]

    def astype(self, dtype: Any) -> Case:
        """With the floating-point inputs in `dtype`."""
        return replace(self, inputs=tuple(a.astype(dtype) if a.dtype.char in FLOATS else a for a in self.inputs))

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(str(self).encode()))


def cases(row: Primitive) -> list[Case]:
    """The row's own samples."""
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    if row.samples is None:
        raise CheckFailure(f"row {row.name} has no samples")
    return [Case(row, tuple(np.asarray(a) for a in inputs), params) for inputs, params in row.samples(rng)]


# --- comparison ----------------------------------------------------------------------------------

def require(condition: bool, case: object, what: str) -> None:
    if not condition:
        raise CheckFailure(f"{case}: {what}")


def close(case: object, what: str, got: Any, expected: Any, rtol: float, atol: float | None = None) -> None:
    """NaN equals NaN and infinities their like; `atol` is by default `rtol` times the largest finite value or 1."""
    got, expected = np.asarray(got), np.asarray(expected)
    require(got.shape == expected.shape, case, f"{what}: shape {got.shape}, expected {expected.shape}")
    if got.size == 0:
        return
    x, y = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(y)
    scale = max(1.0, float(np.abs(y[finite]).max(initial=0.0)))
    allowed = (rtol * scale if atol is None else atol) + rtol * np.abs(np.where(finite, y, 0.0))
    with np.errstate(invalid="ignore"):
        alike = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.inf)
        error = np.where(finite & np.isfinite(x), np.abs(x - y), alike)
    wrong = error > allowed
    if wrong.any():
        worst = np.unravel_index(int(np.argmax(error - allowed)), error.shape)
        raise CheckFailure(
            f"{case}: {what}: {int(wrong.sum())} of {wrong.size} differ; worst at {list(map(int, worst))}: got "
            f"{got[worst]!r}, expected {expected[worst]!r} (error {error[worst]:.3g}, allowed {allowed[worst]:.3g})")


def dot(a: Arrays, b: Arrays) -> float:
    return float(sum(np.sum(x.astype(np.float64) * y.astype(np.float64)) for x, y in zip(a, b, strict=True)))


# --- tapes ---------------------------------------------------------------------------------------

class CaseGraph:
    """A case on a builder, with cotangent `ct` and tangents `ts` as further inputs."""

    def __init__(self, case: Case):
        self.case, self.builder = case, Builder()
        self.xs = [self.input(a, f"x{i}") for i, a in enumerate(case.inputs)]
        self.wrt = [self.xs[i] for i in case.active]
        self.y: Value = case.row(*self.xs, **case.params)
        self.ct = self.builder.input(self.y.aval, "ct")
        self.ts = [self.builder.input(x.aval, f"t{i}") for i, x in enumerate(self.wrt)]

    def input(self, like: np.ndarray, name: str) -> Value:
        return self.builder.input(Aval(like.shape, like.dtype), name)

    def reverse(self) -> list[Value]:
        return pullback(self.builder, [self.y], [self.ct], self.wrt)

    def forward(self) -> list[Value]:
        return pushforward(self.builder, [self.y], self.wrt, self.ts)

    def function(self, outputs: Sequence[Value]) -> Callable[[Arrays, Any, Arrays], list[np.ndarray]]:
        """The outputs as a function of the active inputs, the cotangent and the tangents."""
        tape = self.builder.finish(outputs)

        def call(active: Arrays, ct: Any, ts: Arrays) -> list[np.ndarray]:
            inputs = list(self.case.inputs)
            for i, a in zip(self.case.active, active, strict=True):
                inputs[i] = a
            return evaluate(tape, *inputs, ct, *ts)
        return call

    def directions(self) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Random cotangent and tangents, and the active inputs; tangents keep the symmetry of symmetric inputs."""
        rng = self.case.rng()
        active = [self.case.inputs[i] for i in self.case.active]
        ct = np.asarray(rng.normal(size=self.y.shape)).astype(self.y.dtype)
        ts = [np.asarray(rng.normal(size=a.shape)).astype(a.dtype) for a in active]
        symmetric = self.case.row.symmetric
        ts = [(t + np.swapaxes(t, -1, -2)) / 2 if i in symmetric else t
              for i, t in zip(self.case.active, ts, strict=True)]
        return ct, ts, active


def build(case: Case) -> Tape:
    """Value and pullback of a case on one tape, checked."""
    graph = CaseGraph(case)
    return graph.builder.finish([graph.y, *(graph.reverse() if differentiable(graph) else [])])


def differentiable(graph: CaseGraph) -> bool:
    return bool(graph.wrt) and graph.y.dtype.char in FLOATS


def finite_difference(f: Callable[[Arrays], list[np.ndarray]], x: Arrays, t: Arrays, h: float) -> list[np.ndarray]:
    """The derivative of `f` at `x` in the direction `t`, by the five-point rule: error O(h**4)."""
    def at(s: float) -> list[np.ndarray]:
        return [np.asarray(o, np.float64) for o in f([a + s * b for a, b in zip(x, t, strict=True)])]
    near = [p - m for p, m in zip(at(h), at(-h), strict=True)]
    far = [p - m for p, m in zip(at(2 * h), at(-2 * h), strict=True)]
    return [(8 * n - m) / (12 * h) for n, m in zip(near, far, strict=True)]


def _step(graph: CaseGraph) -> tuple[float, float]:
    """Step and relative tolerance of finite differences for the precision at hand."""
    exact = all(v.dtype == np.float64 for v in (graph.y, *graph.wrt))
    return (4e-4, 2e-8) if exact else (0.05, 1e-4)


# --- the checks ----------------------------------------------------------------------------------

def check_value(case: Case) -> None:
    """Evaluation gives what `infer` says, and what the ufunc gives; the tape gives the same."""
    raw = np.asarray(case.row.evaluate(*case.inputs, **case.params))
    aval = case.row.infer(*(Aval(a.shape, a.dtype) for a in case.inputs), **case.params)
    require((raw.shape, raw.dtype) == (aval.shape, aval.dtype), case,
            f"evaluate gives {raw.dtype}{list(raw.shape)}, infer says {aval}")
    graph = CaseGraph(case)
    value = evaluate(graph.builder.finish([graph.y]), *case.inputs, np.zeros(aval.shape, aval.dtype),
                     *(case.inputs[i] for i in case.active))[0]
    expected = raw if case.row.ufunc is None else np.asarray(case.row.ufunc(*case.inputs))
    if case.row.pointer:                                # which compute in float64 and round
        doubles = (x.astype(np.float64) if x.dtype == np.float32 else x for x in case.inputs)
        expected = np.asarray(case.row.ufunc(*doubles)).astype(expected.dtype)  # type: ignore[misc]
    require(value.dtype == expected.dtype, case, f"the tape's dtype is {value.dtype}, NumPy's {expected.dtype}")
    close(case, "value", value, expected, rtol=0.0)


def check_adjoint(case: Case) -> None:
    """``<ct, J t> == <J^T ct, t>``, and cotangents have the shapes and dtypes of their inputs."""
    graph = CaseGraph(case)
    if not differentiable(graph):
        return
    back, forth = graph.reverse(), graph.forward()
    for i, (g, x) in enumerate(zip(back, graph.wrt, strict=True)):
        require((g.shape, g.dtype) == (x.shape, x.dtype), case, f"cotangent {i} is {g.aval}, its input {x.aval}")
    require((forth[0].shape, forth[0].dtype) == (graph.y.shape, graph.y.dtype), case,
            f"the tangent is {forth[0].aval}, the result {graph.y.aval}")
    ct, ts, active = graph.directions()
    values = graph.function([*back, *forth])(active, ct, ts)
    rtol = 1e-12 if all(v.dtype == np.float64 for v in (graph.y, *graph.wrt)) else 1e-5
    scale = 1.0 + np.sqrt(dot([ct], [ct]) * dot(values[-1:], values[-1:]))
    close(case, "<J^T ct, t> against <ct, J t>", dot(values[:-1], ts), dot([ct], values[-1:]), rtol, rtol * scale)


def check_forward(case: Case) -> None:
    """The jvp against finite differences."""
    graph = CaseGraph(case)
    if not differentiable(graph):
        return
    ct, ts, active = graph.directions()
    value, jvp = graph.function([graph.y]), graph.function(graph.forward())
    h, rtol = _step(graph)
    expected = finite_difference(lambda x: value(x, ct, ts), active, ts, h)
    close(case, "jvp against finite differences", jvp(active, ct, ts)[0], expected[0], rtol)


def check_second_order(case: Case) -> None:
    """The Hessian of <ct, y> times a vector, three ways, against finite differences of the vjp.

    A row whose info has `refuses` must refuse it.
    """
    graph = CaseGraph(case)
    if not differentiable(graph):
        return
    if case.row.refuses:
        try:
            pullback(graph.builder, graph.reverse(), graph.ts, graph.wrt)
        except UnsupportedOperationError:
            return
        require(False, case, "the second derivative exists: take `refuses` away")
    ct, ts, active = graph.directions()
    back = graph.reverse()
    gradient = graph.function(back)
    ways = {
        "vjp of vjp": pullback(graph.builder, back, graph.ts, graph.wrt),
        "jvp of vjp": pushforward(graph.builder, back, graph.wrt, graph.ts),
        "vjp of jvp": pullback(graph.builder, graph.forward(), [graph.ct], graph.wrt),
    }
    h, rtol = _step(graph)
    expected = finite_difference(lambda x: gradient(x, ct, ts), active, ts, h)
    for name, outputs in ways.items():
        for i, (g, e) in enumerate(zip(graph.function(outputs)(active, ct, ts), expected, strict=True)):
            close(case, f"{name}, input {i}, against finite differences of the vjp", g, e, 10 * rtol)


def check_broadcast(case: Case, shapes: Sequence[Callable[[np.ndarray], np.ndarray]]) -> None:
    """Inputs that broadcast against the first: the value is the ufunc's, and the cotangent the sum of that of the
    repeated input."""
    small = tuple(cut(a) for cut, a in zip(shapes, case.inputs, strict=True))
    full = np.broadcast_arrays(*small)
    thin, thick = CaseGraph(replace(case, inputs=small)), CaseGraph(replace(case, inputs=tuple(map(np.copy, full))))
    require(thin.y.shape == full[0].shape, thin.case, f"shape {thin.y.shape}, expected {full[0].shape}")
    ct, ts, active = thin.directions()
    _, _, whole = thick.directions()
    close(thin.case, "value", thin.function([thin.y])(active, ct, ts)[0],
          thick.function([thick.y])(whole, ct, whole)[0], 0.0)
    if not differentiable(thin):
        return
    sums = thick.function(thick.reverse())(whole, ct, whole)
    for i, (g, s, a) in enumerate(zip(thin.function(thin.reverse())(active, ct, ts), sums, active, strict=True)):
        close(thin.case, f"cotangent {i}", g, _sum_to(s, a.shape), 1e-12)


def check_directions(case: Case) -> None:
    """Many directions at once, which are dense or unit vectors, give what each gives alone."""
    graph = CaseGraph(case)
    if not differentiable(graph):
        return
    builder, rng, count = graph.builder, case.rng(), 2
    seeds = [rng.normal(size=(count, *v.shape)).astype(v.dtype) for v in (graph.y, *graph.wrt)]
    many = [builder.input(Aval(s.shape, s.dtype), f"rows{i}") for i, s in enumerate(seeds)]
    back = pullback(builder, [graph.y], many[:1], graph.wrt, count)
    forth = pushforward(builder, [graph.y], graph.wrt, many[1:], count)
    units = [pushforward(builder, [graph.y], [x], [Tangents.unit(one(x))], x.aval.size)[0] for x in graph.wrt]
    single = [*graph.reverse(), *graph.forward()]
    tape = builder.finish([*back, *forth, *units, *single])

    def run(ct: np.ndarray, ts: Arrays) -> list[np.ndarray]:
        return evaluate(tape, *case.inputs, ct, *ts, *seeds)
    rows = [run(seeds[0][i], [s[i] for s in seeds[1:]]) for i in range(count)]
    n = len(back) + 1
    for i, row in enumerate(rows):
        for k, name in enumerate([*(f"cotangent {j}" for j in range(len(back))), "tangent"]):
            close(case, f"{name} of row {i}", row[k][i], row[k - n], 1e-11)
    for j, x in enumerate(graph.wrt):
        for i, place in enumerate(np.ndindex(x.shape)):
            ts = [np.zeros(w.shape, w.dtype) for w in graph.wrt]
            ts[j][place] = 1
            found = run(seeds[0][0], ts)
            close(case, f"unit vector {place} of input {j}", found[n + j][i], found[-1], 1e-11)


def _sum_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    return x.sum(axis=tuple(d for d, n in enumerate(shape) if n == 1), keepdims=True).reshape(shape)
