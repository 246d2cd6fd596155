"""scipy.sparse.linalg's eigenvalues and singular values: `eigsh`, `svds`, `eigs`.

`eigsh` is ARPACK's, with the derivatives of simple eigenvalues (`jitad.primitives.factors.iterative`). Singular values
of A are the largest eigenvalues of ``[[0, A], [A^T, 0]]``, whose vectors are those of both sides (Golub and Van Loan,
Matrix Computations, section 8.6.1), up to their signs, which SciPy leaves open too. With a second matrix, and where a
matrix is not symmetric, it is made a full one, of which LAPACK finds all eigenvalues; SciPy's choice is made of them.
Values that `eigsh` is asked for without vectors come in the order in which ARPACK leaves them; those of `eigs`, which
has no fixed order in SciPy, the first asked first.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.factors.iterative import EigenPairs
from jitad.tape.builder import Value
from jitad.trace.dispatch import refused, stopped
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.sparse.build import maker
from jitad.trace.scipy_rules.sparse.iterative import double, plain_parts, square_matrix
from jitad.trace.scipy_rules.sparse.operators import LARGEST, Operator
from jitad.trace.scipy_rules.sparse.patterns import Places
from jitad.trace.scipy_rules.sparse.solve import setting
from jitad.trace.scipy_rules.sparse.values import TracedSparse, as_sparse, is_sparse, made_of
from jitad.trace.substitutes import SUBSTITUTES

__all__: list[str] = []

MODULE = "scipy.sparse.linalg"
NUMBERS: dict[str, Callable[[Any], Any]] = {"LM": abs, "SM": abs, "LR": np.real, "SR": np.real, "LI": np.imag,
                                            "SI": np.imag, "LA": np.real, "SA": np.real}
# What rises along eigenvalues that come without vectors and without a shift; for others, the values themselves do.
LEFT: dict[str, Callable[[Any], Any]] = {"LM": abs, "SM": lambda x: -abs(x), "SA": lambda x: -x}


def _full(matrix: TracedSparse, name: str) -> Any:
    if matrix.shape[0] > LARGEST:
        raise refused(this_recorder(), f"{name} of {matrix.shape[0]} rows, as a full matrix", "use eigsh of one "
                      "symmetric matrix")
    return matrix.toarray()


def _some(values: Any, vectors: Any, k: int, which: str, sigma: Any, with_vectors: bool, rising: bool) -> Any:
    """The k eigenvalues that are asked for, and their vectors: in the order of all, or the first asked first."""
    n = values.shape[0]
    if not 0 < k < n:
        raise ValueError(f"k={k} must be between 1 and the order of the square matrix minus 1, {n - 1}")
    if which not in NUMBERS:
        raise ValueError(f"which must be one of {' '.join(NUMBERS)}")
    number: Any = abs(1.0 / (values - sigma)) if sigma is not None else NUMBERS[which](values)
    number = abs(number) if which in ("LI", "SI") else number
    order: Any = np.argsort(stopped(number if which[0] == "S" and sigma is None else -number))[:k]
    places = np.sort(order) if rising else order
    found = values[places]
    return (found, vectors[:, places]) if with_vectors else found


def _as_left(values: Any, which: str, sigma: Any) -> Any:
    """Rising eigenvalues, in the order in which ARPACK leaves them where no vectors are asked for."""
    if sigma is not None or which not in LEFT:
        return values
    return values[np.argsort(stopped(LEFT[which](values)))]


@maker("eigsh", MODULE)
def eigsh(A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
          maxiter: Any = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
          mode: str = "normal", rng: Any = None) -> Any:
    name = f"{MODULE}.eigsh"
    for given, what in ((Minv, "Minv="), (OPinv, "OPinv="), (mode != "normal" or None, "mode=")):
        if given is not None:
            raise refused(this_recorder(), f"{name} with {what}", "leave it out, or use scipy.linalg.eigh")
    matrix = square_matrix(A, name)
    if M is not None:
        from scipy.linalg import eigh

        values, vectors = SUBSTITUTES[eigh](_full(matrix, name), _full(square_matrix(M, name), name))
        found = _some(values, vectors, k, which, setting(sigma), return_eigenvectors, rising=True)
        return found if return_eigenvectors else _as_left(found, which, sigma)
    options = {"sigma": setting(sigma), "which": which, "ncv": ncv, "maxiter": maxiter, "tol": setting(tol)}
    if v0 is not None:
        options["v0"] = this_recorder().decide_all(v0) if isinstance(v0, Value) else v0
    pairs = EigenPairs(matrix.shape[0], *plain_parts(matrix), k, options)
    data, value = double(matrix.elements), this_recorder().value
    values = value(pairs.values(data).number)
    return (values, value(pairs.vectors(data).number)) if return_eigenvectors else _as_left(values, which, sigma)


@maker("eigs", MODULE)
def eigs(A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
         maxiter: Any = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
         OPpart: Any = None, rng: Any = None) -> Any:
    name = f"{MODULE}.eigs"
    for given, what in ((Minv, "Minv="), (OPinv, "OPinv="), (OPpart, "OPpart=")):
        if given is not None:
            raise refused(this_recorder(), f"{name} with {what}", "leave it out, or use scipy.linalg.eig")
    whole = _full(square_matrix(A, name), name)
    if M is None:
        values, vectors = np.linalg.eig(whole)
    else:                                                # M is positive definite; a vector v has v^H M v = 1
        second = _full(square_matrix(M, name), name)
        values, vectors = np.linalg.eig(np.linalg.solve(second, whole))
        vectors = vectors / np.sqrt(np.sum(np.conj(vectors) * (second @ vectors), axis=0).real)
    return _some(values + 0j, vectors + 0j, k, which, setting(sigma), return_eigenvectors, rising=False)


@maker("svds", MODULE)
def svds(A: Any, k: int = 6, ncv: Any = None, tol: float = 0, which: str = "LM", v0: Any = None, maxiter: Any = None,
         return_singular_vectors: Any = True, solver: str = "arpack", rng: Any = None, options: Any = None,
         random_state: Any = None) -> Any:
    name = f"{MODULE}.svds"
    if which != "LM" or solver not in ("arpack", "lobpcg", "propack"):
        raise refused(this_recorder(), f"{name} with which={which!r}, solver={solver!r}", "use numpy.linalg.svd")
    A = A.matrix if type(A) is Operator else A
    if type(A) is TracedSparse or is_sparse(A):
        matrix = as_sparse(as_sparse(A).asformat("coo"))
        places, elements = matrix.places, matrix.elements
    else:
        dense = lifted(A)
        places, elements = Places(dense.shape, *(i.reshape(-1) for i in np.indices(dense.shape))), dense.reshape(-1)
    m, n = places.shape
    if not 0 < k < min(m, n):
        raise ValueError("`k` must be an integer satisfying `0 < k < min(A.shape)`.")
    both = Places((m + n, m + n), *(np.concatenate(p) for p in (
        (places.rows, m + places.columns), (m + places.columns, places.rows))))
    whole = square_matrix(made_of("coo", True, both, np.concatenate([elements, elements])), name)
    pairs = EigenPairs(m + n, *plain_parts(whole), k, {"which": "LA", "maxiter": maxiter, "tol": setting(tol)})
    data, value = double(whole.elements), this_recorder().value
    values: Any = value(pairs.values(data).number)
    if return_singular_vectors is False:
        return values
    vectors: Any = np.sqrt(2.0) * value(pairs.vectors(data).number)
    kept = {"u": (True, False), "vh": (False, True)}.get(return_singular_vectors, (True, True))
    return vectors[:m] if kept[0] else None, values, vectors[m:].T if kept[1] else None
