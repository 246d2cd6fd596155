"""What is known to be cheaper than what a profile shows."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitad.compile.plan.fuse import FusionPlan
from jitad.tape.tape import dependent
from jitad.tape.types import DerivedWhere, Node

MUCH = 0.05                  # of the time: what takes less is not spoken of
LONG = 32                    # steps from which a loop should run in vector lanes

CHEAPER = {
    "inv": "np.linalg.solve(A, b) is faster than np.linalg.inv(A) @ b, and more precise",
    "inv_factored": "np.linalg.solve(A, b) is faster than np.linalg.inv(A) @ b, and more precise",
    "det": "where the logarithm is wanted, np.linalg.slogdet(A)[1] does not overflow",
    "det_factored": "where the logarithm is wanted, np.linalg.slogdet(A)[1] does not overflow",
    "solve": "if A is symmetric and positive definite, one np.linalg.cholesky serves the solution and the determinant",
    "pinv": "np.linalg.solve, or lstsq, where only the product with the pseudo-inverse is used",
    "expm": "scipy.sparse.linalg.expm_multiply(A, b) does what expm(A) @ b does without the matrix",
    "pow": "a power that is a whole number in the code, x**3, is multiplications",
    "argsort": "an order that does not depend on what is differentiated can be computed once, outside",
}
"""By the name of a row, which the user's own line asks for."""


def advice(plan: FusionPlan, seconds: Sequence[float], lanes: Sequence[int], varying: set[int], name: str) -> list[str]:
    """Hints on the groups that take a good part of the time; `varying` are the places of the inputs that are
    differentiated."""
    whole = sum(seconds)
    found: dict[str, None] = {}
    nodes = plan.tape.nodes
    changing = dependent(nodes, [plan.tape.inputs[place] for place in varying])
    for group, time, width in zip(plan.groups, seconds, lanes, strict=True):
        if not whole or time < MUCH * whole:
            continue
        made = [root.node for root in group.roots if isinstance(root.node, int)]
        done = [*made, *(n for root in group.roots for n, _ in root.evaluated if n not in plan.materialised)]
        for number in done:
            found.update(dict.fromkeys(_cheaper(nodes[number])))
        if made and changing.isdisjoint(made) and len(varying) < len(plan.tape.inputs):
            found[f"{_place(nodes[made[0]])}depends on data alone and is {time / whole:.0%} of the time: "
                  f"`{name}.bind(...)` computes it once"] = None
        if group.kind == "loop" and group.length >= LONG and width == 1:
            found[f"{_place(nodes[made[0]]) if made else ''}a loop of {group.length} steps runs one step after the "
                  "other: it reads or writes at computed places, or calls a function that has no vector form"] = None
    return list(found)


def _cheaper(node: Node) -> Iterator[str]:
    if str(node.prim) in CHEAPER and not isinstance(node.where, DerivedWhere):
        yield f"{_place(node)}{CHEAPER[str(node.prim)]}"


def _place(node: Node) -> str:
    if node.where is None:
        return ""
    return f"{node.where.filename.rsplit('/', 1)[-1]}:{node.where.line}: "
