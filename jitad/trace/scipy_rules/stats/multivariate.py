"""The multivariate distributions of scipy.stats that have rules: densities by Cholesky factors.

Definitions are those of SciPy's documentation (Anderson, An Introduction to Multivariate Statistical Analysis, 2003,
for the normal and Wishart; Kotz and Nadarajah, Multivariate t Distributions and Their Applications, 2004). Shapes are
checked as SciPy does and with its errors. What the values decide becomes a guard where SciPy raises for it. A
covariance that is not positive definite raises LinAlgError; SciPy, which factors by eigenvalues, also refuses what is
singular to 10 digits.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.tape.builder import Value
from jitad.trace.arrays.indexing import boxed
from jitad.trace.attempts import require_finite
from jitad.trace.dispatch import as_value, builder_in, call
from jitad.trace.scipy_rules.stats.definite import PositiveMatrix, Semidefinite, is_definite, refusal, solved
from jitad.trace.scipy_rules.stats.family import LOG2, LOG_2PI, Rule, where
from jitad.trace.scipy_rules.stats.shapes import finite_df, log_t_constant

RULES: dict[str, dict[str, Rule]] = {}


def rule(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as the rule of ``distribution.method``."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        distribution, method = name.split(".")
        RULES.setdefault(distribution, {})[method] = Rule(inspect.signature(impl), impl)
        return impl
    return enter


def exponential(name: str, log_density: Callable[..., Any]) -> None:
    """Enter the density whose logarithm is known."""
    rule(name)(_with_signature(log_density))


def _with_signature(log_density: Callable[..., Any]) -> Callable[..., Any]:
    def density(*args: Any, **kwargs: Any) -> Any:
        return np.exp(log_density(*args, **kwargs))

    density.__signature__ = inspect.signature(log_density)          # type: ignore[attr-defined]
    return density


def floats(*operands: Any) -> list[Any]:
    """Operands in float64: traced ones as values, the others as arrays; None stays."""
    builder = builder_in(*operands)
    return [o if o is None else cast(as_value(builder, o), np.float64) if builder_in(o) is not None
            else np.asarray(o, np.float64) for o in operands]


def squeezed(out: Any) -> Any:
    """Without axes of length 1, as SciPy returns it."""
    return np.squeeze(out) if np.ndim(out) else out


# --- location and a positive definite matrix -------------------------------------------------------

def _dimension(mean: Any, cov: Any) -> int:
    if mean is not None:
        return int(np.size(mean))
    return int(cov.shape[0]) if np.ndim(cov) >= 2 else 1


def location_and_matrix(mean: Any, cov: Any, name: str) -> tuple[Any, Any]:
    """(vector, matrix) as SciPy makes them of what was given; a plain number or vector stays what it is."""
    dim = _dimension(mean, cov)
    mean = np.zeros(dim) if mean is None else mean
    if dim == 1:
        mean, cov = mean.reshape(1), cov.reshape(1, 1)
    if mean.ndim != 1 or mean.shape[0] != dim:
        raise ValueError(f"Array '{name}' must be a vector of length {dim}.")
    if cov.ndim > 2:
        raise ValueError(f"Array 'cov' must be at most two-dimensional, but cov.ndim = {cov.ndim}")
    if cov.ndim == 2 and cov.shape[0] != cov.shape[1]:
        raise ValueError("Array 'cov' must be square if it is two dimensional, "
                         f"but cov.shape = {cov.shape}.")
    if cov.ndim and cov.shape[0] != dim:
        raise ValueError(f"Dimension mismatch: array 'cov' is of shape {cov.shape}, "
                         f"but '{name}' is a vector of length {dim}.")
    if cov.ndim < 2 and isinstance(cov, Value):
        cov = cov * np.eye(dim) if not cov.ndim else call(np.diag, cov)
    return mean, cov


def deviation(x: Any, mean: Any) -> Any:
    """x - mean with the last axis along the dimensions; vectors of points for one dimension are columns."""
    if x.ndim == 1 and mean.shape[0] == 1:
        x = x.reshape(-1, 1)
    return x - mean


@rule("multivariate_normal.logpdf")
def _normal(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    x, mean, cov = floats(x, mean, 1 if cov is None else cov)
    mean, cov = location_and_matrix(mean, cov, "mean")
    dev = deviation(x, mean)
    matrix = (Semidefinite if allow_singular else PositiveMatrix)(cov, mean.shape[0])
    return squeezed(-0.5 * (mean.shape[0] * LOG_2PI + matrix.log_det + matrix.squares(dev)))


exponential("multivariate_normal.pdf", _normal)


@rule("multivariate_normal.entropy")
def _normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    mean, cov = floats(mean, 1 if cov is None else cov)
    mean, cov = location_and_matrix(mean, cov, "mean")
    return 0.5 * (mean.shape[0] * (LOG_2PI + 1.0) + PositiveMatrix(cov, mean.shape[0]).log_det)


def _log_ratio(x: Any, dim: int) -> Any:
    """``gammaln(x + dim / 2) - gammaln(x) - dim / 2 log(2 pi x)`` without cancellation: whole steps by the recurrence
    (DLMF 5.5.1), a half one by its series."""
    steps = np.arange(dim // 2) + 0.5 * (dim % 2)
    whole = np.sum(np.log1p(steps / x)) - dim // 2 * LOG_2PI if dim > 1 else 0.0
    return whole + log_t_constant(2.0 * x) if dim % 2 else whole


@rule("multivariate_t.logpdf")
def _student(x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = True) -> Any:
    """Unless frozen, of singular matrices too, as SciPy has it: of what of the point is in the support, the dimension
    being that of the space. Which matrix is singular is a branch, on whether it has a Cholesky factor less `SINGULAR`.
    """
    df = 1.0 if df is None else df
    if df <= 0:
        raise ValueError("'df' must be greater than zero.")
    if np.isnan(df):
        raise ValueError("'df' is 'nan' but must be greater than zero or 'np.inf'.")
    x, loc, shape, df = floats(x, loc, 1 if shape is None else shape, df)
    loc, shape = location_and_matrix(loc, shape, "loc")
    dim, df = loc.shape[0], finite_df(df)
    dev, full = deviation(x, loc), PositiveMatrix if is_definite(shape) else Semidefinite
    matrix = full(shape, dim)
    if isinstance(matrix, Semidefinite):
        if not allow_singular and matrix.rest > 0:
            raise refusal(np.zeros(1))
        log_det, squares = matrix.log_pdet, matrix.seen(dev)
    else:
        log_det, squares = matrix.log_det, matrix.squares(dev)
    tail = 0.5 * (df + dim) * np.log1p(squares / df)
    return squeezed(_log_ratio(0.5 * df, dim) - 0.5 * log_det - tail)


exponential("multivariate_t.pdf", _student)


# --- Dirichlet and multinomial ---------------------------------------------------------------------

def _alpha(alpha: Any) -> Any:
    if np.min(alpha) <= 0:
        raise ValueError("All parameters must be greater than 0")
    if np.ndim(alpha) != 1:
        raise ValueError("Parameter vector 'a' must be one dimensional, "
                         f"but a.shape = {alpha.shape}.")
    return alpha


def _on_the_simplex(x: Any, alpha: Any) -> Any:
    """x with the last component, checked as SciPy does."""
    if x.shape[0] not in (alpha.shape[0] - 1, alpha.shape[0]):
        raise ValueError("Vector 'x' must have either the same number of entries as, or one entry fewer than, "
                         f"parameter vector 'a', but alpha.shape = {alpha.shape} and x.shape = {x.shape}.")
    if x.shape[0] != alpha.shape[0]:
        if x.ndim > 2:
            raise ValueError("The input must be one dimensional or a two dimensional matrix containing the entries.")
        x = np.concatenate([x, (1.0 - np.sum(x, axis=0))[None]])
    if np.min(x) < 0:
        raise ValueError("Each entry in 'x' must be greater than or equal to zero.")
    if np.max(x) > 1:
        raise ValueError("Each entry in 'x' must be smaller or equal one.")
    if np.any((x.T == 0) & (alpha < 1)):
        raise ValueError("Each entry in 'x' must be greater than zero if its alpha is less than one.")
    if np.any(np.absolute(np.sum(x, axis=0) - 1.0) > 1e-9):
        raise ValueError("The input vector 'x' must lie within the normal simplex.")
    return x


def _log_beta(alpha: Any) -> Any:
    return np.sum(sp.gammaln(alpha)) - sp.gammaln(np.sum(alpha))


@rule("dirichlet.logpdf")
def _dirichlet(x: Any, alpha: Any) -> Any:
    x, alpha = floats(x, alpha)
    x = _on_the_simplex(x, _alpha(alpha))
    return squeezed(np.sum(sp.xlogy(alpha - 1.0, x.T), axis=-1) - _log_beta(alpha))


exponential("dirichlet.pdf", _dirichlet)


@rule("dirichlet.mean")
def _dirichlet_mean(alpha: Any) -> Any:
    alpha = _alpha(*floats(alpha))
    return squeezed(alpha / np.sum(alpha))


@rule("dirichlet.var")
def _dirichlet_var(alpha: Any) -> Any:
    alpha = _alpha(*floats(alpha))
    total = np.sum(alpha)
    return squeezed(alpha * (total - alpha) / (total * total * (total + 1.0)))


@rule("dirichlet.entropy")
def _dirichlet_entropy(alpha: Any) -> Any:
    alpha = _alpha(*floats(alpha))
    total = np.sum(alpha)
    return (_log_beta(alpha) + (total - alpha.shape[0]) * sp.psi(total) - np.sum((alpha - 1.0) * sp.psi(alpha)))


@rule("multinomial.logpmf")
def _multinomial(x: Any, n: Any, p: Any) -> Any:
    """Where probabilities do not sum to 1 to 15 digits the last one is adjusted, as in SciPy before 1.18."""
    narrow = getattr(p, "dtype", None) == np.float32
    x, n, p = floats(x, n, p)
    if not np.ndim(x):
        raise ValueError("x must be an array.")
    if x.shape[-1] != p.shape[-1]:
        raise ValueError(f"Size of each quantile should be size of p: received {x.shape[-1]}, "
                         f"but expected {p.shape[-1]}.")
    n = np.trunc(n)
    eps = 10.0 * np.finfo(np.float32 if narrow else np.float64).eps
    rest = 1.0 - np.sum(p[..., :-1], axis=-1)
    last = where(np.absolute(1.0 - np.sum(p, axis=-1)) > eps, rest, p[..., -1])
    p = np.concatenate([p[..., :-1], np.expand_dims(last, -1)], axis=-1)
    wrong = np.any((p < 0) | (p > 1) | (p != p), axis=-1) | (n < 0)
    off = np.any((np.trunc(x) != x) | (x < 0), axis=-1) | (np.sum(x, axis=-1) != n)
    result = sp.gammaln(n + 1.0) + np.sum(sp.xlogy(x, p) - sp.gammaln(x + 1.0), axis=-1)
    result = where(wrong, np.nan, where(off, -np.inf, result))
    return boxed(result) if isinstance(result, Value) else result


exponential("multinomial.pmf", _multinomial)


# --- Wishart ---------------------------------------------------------------------------------------

def scale_matrix(df: Any, scale: Any) -> tuple[Any, Any, int]:
    """(df, scale matrix, dimension), checked as SciPy does."""
    df, scale = floats(df, 1.0 if scale is None else scale)
    if scale.ndim == 0:
        scale = scale.reshape(1, 1)
    elif scale.ndim == 1:
        scale = np.diag(scale)
    if scale.ndim != 2 or scale.shape[0] != scale.shape[1]:
        raise ValueError(f"Array 'scale' must be square if it is two dimensional, but scale.scale = {scale.shape}.")
    dim = scale.shape[0]
    if df is None:
        df = np.float64(dim)
    if np.ndim(df):
        raise ValueError("Degrees of freedom must be a scalar.")
    if df <= dim - 1:
        raise ValueError("Degrees of freedom must be greater than the dimension of scale matrix minus 1.")
    return df, scale, dim


def points(x: Any, dim: int) -> Any:
    """The points as matrices along leading axes."""
    if x.ndim == 0:
        x = x * np.eye(dim)
    elif x.ndim == 1:
        x = x.reshape(-1, 1, 1) if dim == 1 else np.diag(x)
    elif x.ndim == 3:
        x = np.moveaxis(x, -1, 0)
    if x.ndim > 3 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Quantiles must be square if they are two dimensional, but x.shape = {x.shape}.")
    if x.shape[-1] != dim:
        raise ValueError(f"Quantiles have incompatible dimensions: should be {(dim, dim)}, got {x.shape[-2:]}.")
    return x


def log_det_of(factor: Any) -> Any:
    return 2.0 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


@rule("wishart.logpdf")
def _wishart(x: Any, df: Any, scale: Any) -> Any:
    (x,) = floats(x)
    df, scale, dim = scale_matrix(df, scale)
    require_finite(True, x, scale)
    root, factor = np.linalg.cholesky(points(x, dim)), np.linalg.cholesky(scale)
    if root.ndim == 3:
        parts = np.moveaxis(root, 0, 1).reshape(dim, -1)
        ratio = solved(factor, parts).reshape(dim, root.shape[0], dim)
        squares = np.sum(np.square(ratio), axis=(0, 2))
    else:
        squares = np.sum(np.square(solved(factor, root)))
    half = 0.5 * df
    log_gamma = 0.25 * dim * (dim - 1) * np.log(np.pi) + np.sum(sp.gammaln(half - 0.5 * np.arange(dim)))
    return squeezed((half - 0.5 * (dim + 1)) * log_det_of(root) - 0.5 * squares - half * dim * LOG2
                     - half * log_det_of(factor) - log_gamma)


exponential("wishart.pdf", _wishart)


@rule("wishart.mean")
def _wishart_mean(df: Any, scale: Any) -> Any:
    df, scale, _ = scale_matrix(df, scale)
    return squeezed(df * scale)


@rule("wishart.var")
def _wishart_var(df: Any, scale: Any) -> Any:
    df, scale, _ = scale_matrix(df, scale)
    diagonal = np.diag(scale)
    return squeezed(df * (scale * scale + np.outer(diagonal, diagonal)))
