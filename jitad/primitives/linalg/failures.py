"""Whether an operation fails, as a number on the tape.

Where user code catches what a factorization raises, the failure decides which way the code takes. For each row that
can fail there is one more, ``<name>_fails``, with the same operands and params: True where the row's evaluation raises
LinAlgError. Where that is not `caught`, it raises it too. It has no derivative. `leading` says how many leading
dimensions have an answer each; of the matrices behind them, one that fails is enough.

A `condition` is what a function looks at before it computes, such as SciPy's ``check_finite``: a guard on it sees to it
that a kernel stops there. The evaluation raises what the function raises, but where that is caught and so a branch.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import pointwise
from jitad.primitives.linalg.matrices import Samples, routine_numbers
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive

OWN = ("leading", "caught")                               # params that the row itself does not have
FAILS: dict[Primitive, Primitive] = {}
"""The row that says whether a row fails."""
ROWS = ("cholesky", "solve", "inv", "solve_triangular", "eigh", "svd", "pinv", "orthogonal_factor",
        "solve_banded", "solveh_banded", "heigh", "csvd", "eig")
# Not sqrtm: of what has no real root SciPy's is complex and raises nothing.


def _behind(avals: Sequence[Aval], leading: int) -> list[Aval]:
    return [Aval(a.shape[leading:], a.dtype) for a in avals]


def _failing(row: Primitive) -> Primitive:
    def evaluate(*operands: Any, leading: int, caught: bool, **params: Any) -> Any:
        out = np.zeros(operands[0].shape[:leading], bool)
        for at in np.ndindex(out.shape):
            try:
                row.evaluate(*(x[at] for x in operands), **params)
            except np.linalg.LinAlgError:
                if not caught:
                    raise
                out[at] = True
        return out

    def infer(*avals: Aval, leading: int, caught: bool, **params: Any) -> Aval:
        row.infer(*_behind(avals, leading), **params)
        return Aval(avals[0].shape[:leading], np.dtype(bool))

    def batch(prim: Primitive, operands: Sequence[tuple[Value, bool]], length: int, *, leading: int,
              **params: Any) -> Value:
        rows = (x if batched else broadcast_to(x, (length, *x.shape)) for x, batched in operands)
        return prim(*rows, leading=leading + 1, **params)

    def numbers(shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[float, ...]:
        """How many answers, the elements of the result and of each operand for one, and the numbers of the routine."""
        leading, own = params["leading"], {k: v for k, v in params.items() if k not in OWN}
        behind = [shape[leading:] for shape in shapes]
        result = row.infer(*(Aval(shape, np.dtype(float)) for shape in behind), **own)
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in behind]
        return (int(np.prod(shapes[0][:leading], dtype=np.int64)), result.size, *sizes,
                *routine_numbers(row, behind, own))

    def samples(rng: np.random.Generator) -> Samples:
        found: Samples = []
        for inputs, params in row.samples(rng) if row.samples else []:
            found.append((inputs, {**params, "leading": 0, "caught": True}))
            both = tuple(np.stack([x, np.zeros_like(x)]) for x in inputs)
            found.append((both, {**params, "leading": 1, "caught": True}))
        return found

    return Primitive(f"{row.name}_fails", evaluate=evaluate, infer=infer, batch=batch, cost=row.cost, samples=samples,
                     sides=numbers, can_fail=lambda node: not node.params["caught"])


for _name in ROWS:
    FAILS[TABLE[_name]] = _failing(TABLE[_name])


def may_fail(prim: Primitive, params: Mapping[str, Any]) -> bool:
    """Whether there is something that the row refuses, with these params."""
    return prim in FAILS and params.get("strict", True)


def _condition(fine: Any, text: str) -> Any:
    if text and not np.all(fine):
        raise ValueError(text)
    return fine


condition = pointwise(
    "condition", can_fail=lambda node: bool(node.params["text"]), evaluate=_condition, scalar=lambda fine, text: fine,
    infer=lambda fine, text: Aval(fine.shape, np.dtype(bool)), resolve=lambda key: (np.dtype(bool),) * 2,
    samples=lambda rng: [((np.array(True),), {"text": "not so"}), ((np.array([True, False]),), {"text": ""})])
"""What must hold or an exception is raised: ValueError by the evaluation, if there is a text for it."""


def on_success(prim: Primitive, expected: bool | int) -> bool:
    """Whether a guard that expects this of a node of `prim` says that an operation has not failed."""
    return expected is True if prim is condition else expected is False and prim in SUCCEEDED


SUCCEEDED = frozenset(FAILS.values())

__all__ = ["FAILS", "condition", "may_fail", "on_success"]
