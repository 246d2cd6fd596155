"""scipy.sparse.linalg's iterative solvers and `expm_multiply`.

`cg` and its kin are SciPy's, to the tolerance that is asked; the derivative is that of the solution, by one more
solution with the same solver to a tight tolerance. `expm_multiply` sums the exponential's series in compiled loops,
which are differentiated as loops are.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast, stop_gradient
from jitad.primitives.factors.iterative import IterativeSystem, Preconditioner
from jitad.primitives.scan import loop
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.dispatch import builder_in, refused
from jitad.trace.loop_body import Body
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.sparse.build import maker, plain_args
from jitad.trace.scipy_rules.sparse.operators import Operator
from jitad.trace.scipy_rules.sparse.patterns import Places, joined
from jitad.trace.scipy_rules.sparse.solve import setting
from jitad.trace.scipy_rules.sparse.values import TracedSparse, as_sparse, is_sparse, made_of

__all__ = ["SOLVERS", "double", "plain_parts", "square_matrix"]

MODULE = "scipy.sparse.linalg"
SOLVERS = "bicg bicgstab cg cgs gcrotmk gmres lgmres minres qmr tfqmr".split()
TERMS, FURTHEST = 28, 3.0          # of the series, for matrices up to this norm: what is left out is below 1e-16


def square_matrix(A: Any, name: str) -> TracedSparse:
    """A matrix in the format CSC, each place once; a dense one with all its places, as that of an operator."""
    A = A.matrix if type(A) is Operator else A
    if not (type(A) is TracedSparse or is_sparse(A)):
        if not isinstance(A, (Value, np.ndarray, list)):
            raise refused(this_recorder(), f"{name} of a {type(A).__name__}", "give the matrix")
        dense = lifted(A)
        if dense.ndim != 2:
            raise ValueError("expected square matrix")
        rows, columns = (i.reshape(-1) for i in np.indices(dense.shape))
        A = made_of("csc", True, Places(dense.shape, rows, columns), dense.reshape(-1))
    matrix = as_sparse(A)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected square matrix (shape={matrix.shape})")
    return as_sparse(matrix.asformat("coo")).asformat("csc")


def plain_parts(matrix: TracedSparse) -> tuple[np.ndarray, np.ndarray]:
    places, _ = matrix.places.ordered(by_columns=True)
    return places.rows, np.concatenate([[0], np.cumsum(np.bincount(places.columns, minlength=matrix.shape[1]))])


def double(x: Any) -> Value:
    return cast(Value(this_recorder(), lifted(x).number), np.float64)


def _solver(name: str) -> None:
    @maker(name, MODULE)
    def rule(A: Any, b: Any, x0: Any = None, *, M: Any = None, callback: Any = None, **options: Any) -> Any:
        whole = f"{MODULE}.{name}"
        if callback is not None:
            raise refused(this_recorder(), f"{whole} with callback=", "leave it out")
        known = {"rtol", "atol", "maxiter", "restart", "m", "outer_k", "k"}
        if set(options) - known:
            raise refused(this_recorder(), f"{whole} with {min(set(options) - known)}=", "leave it out")
        options = {key: setting(value) for key, value in options.items()}
        matrix, right = square_matrix(A, whole), lifted(b)
        n = matrix.shape[0]
        if right.shape not in ((n,), (n, 1)):
            raise ValueError(f"shapes of A {matrix.shape} and b {right.shape} are incompatible")
        preconditioner, parts = _preconditioner(M, whole)
        system = IterativeSystem(n, *plain_parts(matrix), name, options, preconditioner)
        start = np.zeros(n) if x0 is None else lifted(x0).reshape(-1)
        found = system.found(double(matrix.elements), double(right.reshape(-1)), stop_gradient(double(start)),
                             stop_gradient(double(parts)))
        both: Any = this_recorder().value(found.number)
        return both[:n], both[n].astype(int)


def _preconditioner(M: Any, name: str) -> tuple[Preconditioner, Any]:
    """The operator, and what is traced of it."""
    if M is None or not (type(M) in (TracedSparse, Operator) or is_sparse(M) or builder_in(M) is not None):
        return Preconditioner(plain_args(M)), np.zeros(1)
    matrix = square_matrix(M, name)
    return Preconditioner(None, *plain_parts(matrix)), matrix.elements


for _name in SOLVERS:
    _solver(_name)


# --- the exponential of a matrix times a vector ---------------------------------------------------------

@maker("expm_multiply", MODULE)
def expm_multiply(A: Any, B: Any, start: Any = None, stop: Any = None, num: Any = None, endpoint: Any = None,
                  traceA: Any = None) -> Any:
    name = f"{MODULE}.expm_multiply"
    matrix, right = square_matrix(A, name), this_recorder().value(double(B).number)
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise ValueError(f"shapes of matrices A {matrix.shape} and B {right.shape} are incompatible")
    if start is None and stop is None and num is None:
        return _exponential(matrix, 1.0, right)
    if start is None or stop is None or num is None:
        raise refused(this_recorder(), f"{name} with some of start=, stop=, num=", "give all three")
    count = int(num) - (0 if endpoint is False else 1)
    step, states = (stop - start) / count, [_exponential(matrix, start, right)]
    for _ in range(int(num) - 1):
        states.append(_exponential(matrix, step, states[-1]))
    return np.stack(states)


def _exponential(matrix: TracedSparse, time: Any, right: Any) -> Any:
    """``expm(time * matrix) @ right``: as many steps as the norm asks, of so many terms of the series."""
    recorder = this_recorder()
    sizes: Any = joined(np.abs(lifted(matrix.elements)), matrix.places.columns, matrix.shape[1])
    norm: Any = np.max(sizes) * abs(lifted(time))
    steps = 2 ** int(np.ceil(np.log2(np.maximum(norm / FURTHEST, 1.0))))
    numbers = np.tile(np.arange(1.0, TERMS + 1), steps)
    size = lifted(time) / float(steps)
    body = Body(recorder, len(numbers))
    term: Any
    total: Any
    term, total = (body.carry(Aval(right.shape, np.dtype(float)), name) for name in ("term", "total"))
    share: Any
    first: Any
    share, first = (body.element(Value(recorder, lifted(v).number), name) for v, name in (
        (1.0 / numbers, "share"), (numbers == 1, "first")))
    new: Any = (matrix @ np.where(first, total, term)) * (size * share)
    with recorder.plain():
        tape, reads = body.close([Value(recorder, v.number) for v in (new, total + new)])
        begin = Value(recorder, right.number)
        finals, _ = loop(recorder, tape, [begin, begin], body.scanned, reads, len(numbers))
    return recorder.value(finals[1].number)
