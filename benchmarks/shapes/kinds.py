"""The functions and sizes that are swept, by kind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)


@dataclass
class Case:
    """A function of the arguments, of which the first is differentiated. `by_hand` gives value and gradient by NumPy's
    products; `jax` is the same function for JAX's namespace, with another name for NumPy in front."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    by_hand: Callable[..., Any] | None = None
    jax: Callable[..., Any] | None = None
    single: bool = False
    in_jax: Callable[[], Any] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.jax is not None and jax_module() is not None:
            self.in_jax = _jax_call(self.jax, self.arguments)


@cache
def jax_module() -> Any:
    """JAX for float64, or None where it is not installed."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    return jax


def _jax_call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    jax = jax_module()
    compiled = jax.jit(jax.value_and_grad(lambda *a: function(jax.numpy, *a)))
    rest = [jax.numpy.asarray(a) for a in arguments[1:]]
    return lambda: [np.asarray(x) for x in compiled(arguments[0], *rest)]


def _of(function: Callable[..., Any], name: str, *arguments: Any) -> Case:
    """A case whose function takes the namespace first."""
    return Case(name, lambda *a: function(np, *a), arguments, jax=function)


def elementwise() -> Iterator[Case]:
    """Sums over arrays of many lengths."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        x, y = rng.normal(size=n), rng.normal(size=n)
        yield _of(lambda np, x, y: np.sum((y - x) ** 2), f"squares {n}", x, y)
        yield _of(lambda np, x, y: np.sum(np.log1p(np.exp(x * y))), f"logistic {n}", x, y)
        yield _of(lambda np, x: np.sum(np.diff(x) ** 2), f"differences {n}", x)


def products() -> Iterator[Case]:
    """``X @ B`` with few columns and many, X by rows, by columns and strided, in both precisions."""
    rng = np.random.default_rng(1)

    def by_hand(B: np.ndarray, X: np.ndarray) -> Any:
        R = X @ B
        return np.vdot(R, R), 2 * (X.T @ R)

    for rows, inner in ((30, 30), (200, 500), (1_000, 50), (3_000, 6), (100_000, 20)):
        for columns in (1, 2, 3, 5, 8, 12, 16, 25, 34, 64):
            for order, dtype in (("C", "f8"), ("F", "f8"), ("strided", "f8"), ("C", "f4")):
                if rows > 3_000 and (order == "strided" or columns > 16):
                    continue
                wide, B = (rng.normal(size=s).astype(dtype) for s in ((2 * rows, inner), (inner, columns)))
                X = wide[::2] if order == "strided" else np.array(wide[:rows], order="F" if order == "F" else "C")
                name = f"({rows}, {inner}) @ ({inner}, {columns}) {order} {dtype}"
                yield Case(name, lambda B, X: np.sum((X @ B) ** 2), (B, X), by_hand, single=dtype == "f4")


def rows() -> Iterator[Case]:
    """Reductions of short rows."""
    rng = np.random.default_rng(2)
    for k in (2, 3, 4, 5, 7, 8, 12, 16, 25, 34, 64):
        x = rng.normal(size=(24_000 // k, k))
        yield _of(lambda np, x: np.sum(np.log(np.sum(np.exp(x), axis=1))), f"log sum exp, rows of {k}", x)
        yield _of(lambda np, x: np.sum(np.sqrt(np.sum(x * x, axis=1))), f"norms, rows of {k}", x)
        yield _of(lambda np, x: np.sum(np.max(x, axis=1)), f"extrema, rows of {k}", x)


def groups() -> Iterator[Case]:
    """Varying effects: looked up by rows, and computed before that."""
    rng = np.random.default_rng(3)
    n = 20_000
    for count in (2, 10, 100, 500, 1_000, 10_000, 100_000):
        q, j, y = rng.normal(size=count + 2), rng.integers(0, count, n), rng.normal(size=n)
        yield _of(lambda np, q, j, y: np.sum((y - q[j]) ** 2), f"{count} groups", q, j, y)
        yield _of(lambda np, q, j, y: np.sum((y - (q[-2] + np.exp(q[-1]) * q[:-2])[j]) ** 2),
                  f"{count} groups, computed", q, j, y)


def small_matrices() -> Iterator[Case]:
    """Many small products at once."""
    rng = np.random.default_rng(4)
    for side in (2, 3, 4, 6, 8, 12):
        a, b = rng.normal(size=(2, 2_000, side, side))
        yield _of(lambda np, a, b: np.sum((a @ b) ** 2), f"2000 products of side {side}", a, b)


def factors() -> Iterator[Case]:
    """Cholesky factors."""
    rng = np.random.default_rng(5)
    for side in (10, 30, 100, 300, 1_000):
        m = rng.normal(size=(side, side))
        yield _of(lambda np, a: np.sum(np.log(np.diag(np.linalg.cholesky(a)))), f"Cholesky {side}",
                  m @ m.T + side * np.eye(side))


def orders() -> Iterator[Case]:
    """Sorted, and accumulated."""
    rng = np.random.default_rng(6)
    for n in SIZES[:-1]:
        x = rng.normal(size=n)
        yield _of(lambda np, x: np.sum(np.sort(x) * x), f"sort {n}", x)
        yield _of(lambda np, x: np.median(x), f"median {n}", x)
        yield _of(lambda np, x: np.sum(np.cumsum(x) * x), f"running sums {n}", x)


KINDS: dict[str, Callable[[], Iterator[Case]]] = {
    kind.__name__: kind for kind in (elementwise, products, rows, groups, small_matrices, factors, orders)}
