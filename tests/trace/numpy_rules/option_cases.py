"""Expressions in `x`, `y`, `z` for the tests of options, with the arguments on which they are tried."""
from __future__ import annotations

import numpy as np

rng = np.random.default_rng(3)
cube = rng.normal(size=(2, 3, 4)) + 0.3
KINDS = {
    "float64": cube, "float32": cube.astype(np.float32), "int64": (4 * cube).astype(np.int64),
    "int32": (4 * cube).astype(np.int32), "int8": (9 * cube).astype(np.int8), "bool": cube > 0,
    "no dimensions": np.array(1.5), "empty": np.zeros((0, 3)), "number": 0.7, "whole number": 3,
    "numpy number": np.float32(1.5), "Fortran": np.asfortranarray(cube), "transposed": cube.T,
    "strided": np.repeat(cube, 2, -1)[:, ::-1, ::2]}
FLAT = {"number", "whole number", "numpy number"}

AXES = ("", "axis=0", "axis=-1", "axis=(0, 2)", "axis=()", "axis=(-1, 0)", "axis=None", "axis=3", "axis=(0, 0)")
MASK = "np.array([True, False, True, True])"
REDUCTIONS = {
    "sum": ["dtype='f4'", "dtype=int", "initial=2.5", f"where={MASK}", "initial=1.5, where=x > 0"],
    "prod": ["dtype='f4'", "initial=2.5", "where=x > 0"], "max": ["initial=0.5", f"initial=0.5, where={MASK}"],
    "min": ["initial=0", "initial=0.5, where=x > 0", f"where={MASK}"], "mean": ["dtype='f4'", f"where={MASK}"],
    "var": ["ddof=1", "dtype='f4'", "mean=np.mean(x)", "correction=1"], "std": ["ddof=1", f"where={MASK}"],
    "any": [f"where={MASK}"], "all": [f"where={MASK}"], "ptp": [], "count_nonzero": [], "argmax": [], "argmin": [],
    "nansum": ["initial=2.0", f"where={MASK}"], "nanmean": [], "nanvar": ["ddof=1"], "nanstd": [], "nanmax": [],
    "nanmin": [], "nanprod": [], "median": [], "nanmedian": [], "average": [], "linalg.norm": []}

EACH = """
cumsum(x)  cumsum(x, axis=-1)  cumsum(x, axis=0, dtype='f4')  cumprod(x)  cumulative_sum(x, axis=0)
cumulative_sum(x, axis=0, include_initial=True)  nancumsum(x, axis=0)  diff(x)  diff(x, n=2, axis=0)  diff(x, n=0)
diff(x, prepend=0)  ediff1d(x)  clip(x, 0, 1)  clip(x, 0.2, None)  clip(x, min=0)  round(x, 1)  where(x > 0, x, 0)
where(x > 0, x, 1.5)  where(x)  sort(x)  sort(x, axis=None)  argsort(x, axis=0)  abs(x)  sign(x)  square(x)
multiply(x, 2)  multiply(x, 2.5)  true_divide(x, 2)  floor_divide(x, 2)  remainder(x, 2)  power(x, 2)  power(2.0, x)
negative(x)  multiply(x, np.float32(2))  multiply(x, np.int8(2))  add(x, np.arange(4))  greater(x, 0)  divmod(x, 2)
maximum(x, 0.5)  fmin(x, 0)  logical_not(x)  add(x, 1, dtype='f4')  add(x, 1, where=True, casting='same_kind')
nan_to_num(x)  isclose(x, x)  interp(x, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0])  digitize(x, [0, 1, 2])  trapezoid(x)
quantile(x, 0.3)  quantile(x, [0.2, 0.5], axis=0)  percentile(x, 30, axis=-1, keepdims=True)  unique(x)
reshape(x, -1)  reshape(x, -1, order='F')  transpose(x)  swapaxes(x, 0, -1)  moveaxis(x, 0, -1)  expand_dims(x, (0, -1))
squeeze(x)  atleast_3d(x)  flip(x)  flip(x, 0)  roll(x, 1)  roll(x, (1, 2), axis=(0, -1))  rot90(x)  repeat(x, 2)
repeat(x, 2, axis=-1)  tile(x, 2)  concatenate([x, x])  concatenate([x, x], axis=-1, dtype='f4')  stack([x, x], axis=-1)
stack([[x, x], [x, x]])  hstack([x, x])  column_stack([x, x])  append(x, 1)  insert(x, 0, 5)  delete(x, 0)  split(x, 2)
tril(x)  diag(x)  trace(x)  resize(x, (2, 2))  take(x, 0)  take(x, [0, -1], axis=0)  compress([True], x)
select([x > 0], [x], default=1.5)  zeros_like(x)  full_like(x, 2.5)  array([x, 1.5])  asarray(x, dtype='f4')
kron(x, [1, 2])  outer(x, [1, 2])  dot(x, 2)  vdot(x, x)  tensordot(x, x, 0)  einsum('...i->...', x)
einsum('...i,...i', x, x)  gradient(x)  unwrap(x)  cov(x)  i0(x)  ldexp(x, 2)  modf(x)  fabs(x)  isin(x, [1, 2])
pad(x, 1)  pad(x, 1, 'edge')  polyval([1, 2], x)  polyval([1.5, 2], x)  vander(x, 3)  polyint(x)  polyder(x)
add.reduce(x)  add.reduce(x, axis=None)  multiply.reduce(x, axis=-1, keepdims=True)  maximum.reduce(x)
logical_or.reduce(x)  logical_xor.reduce(x)  subtract.reduce(x)  fmax.reduce(x, axis=None)  add.accumulate(x)
multiply.accumulate(x, axis=-1)  minimum.accumulate(x)  subtract.accumulate(x)  add.outer(x, [1, 2])
subtract.outer([1.0, 2.0], x)  add.reduceat(x, [0, 1])  maximum.reduceat(x, [1, 0, 1])  asarray_chkfinite(x)
"""
EACH_TABLE = ["np." + e.strip() for line in EACH.strip().splitlines() for e in line.split("  ")]

v, w, p = rng.normal(size=6) + 2, rng.normal(size=6), np.abs(rng.normal(size=6)) + 0.5
m, n = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
ints, f4, up = np.array([3, 1, 2, 5, 7, 4]), (rng.normal(size=6) + 2).astype(np.float32), np.cumsum(p)
M = np.abs(rng.normal(size=(4, 6))) + 0.1
A, B, C, S, T, u = (rng.normal(size=s) for s in ((3, 4), (4, 5), (5, 2), (3, 3), (2, 3, 4), (4,)))
q, q2, VI = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), np.diag([1.0, 2.0, 3.0])

STATISTICS = [
    ("np.cov(x)", m), ("np.cov(x)", v), ("np.cov(x, y)", v, w), ("np.cov(x, rowvar=False)", m),
    ("np.cov(x, bias=True)", m),
    ("np.cov(x, ddof=0, aweights=y)", m, p), ("np.cov(x, aweights=y)", m, p),
    ("np.cov(x, fweights=[1, 2, 3, 1, 1, 2], aweights=y)", m, p), ("np.cov(x, dtype=np.float32)", f4),
    ("np.cov(x, ddof=1.5)", m), ("np.cov(x, aweights=-y)", m, p), ("np.corrcoef(x)", m), ("np.corrcoef(x, y)", v, w),
    ("np.corrcoef(x)", v), ("np.gradient(x)", v), ("np.gradient(x, 2.0)", m), ("np.gradient(x, 0.5, y)", m, up),
    ("np.gradient(x, y, axis=1, edge_order=2)", m, up), ("np.gradient(x, axis=-1, edge_order=2)", m),
    ("np.gradient(x, np.arange(6.0))", v), ("np.gradient(x)", ints), ("np.gradient(x, edge_order=3)", v),
    ("np.gradient(x[:1])", v), ("np.gradient(x, 1.0, 2.0, 3.0)", m), ("np.unwrap(5 * x, axis=0)", m),
    ("np.unwrap(3 * x, discont=4)", v), ("np.unwrap(3 * x, period=4)", ints), ("np.unwrap(3 * x, period=y)", v, 4.5)]

GRIDS = [
    ("np.linspace(x, y, 5)", 0.5, 2.0), ("np.linspace(x, 3, 7, endpoint=False, retstep=True)", 0.5),
    ("np.linspace(x, y, 4, axis=-1)", v, w), ("np.linspace(x, 9, 4, dtype=int)", 0.5),
    ("np.linspace(x, y, 1)", 0.5, 2.0),
    ("np.linspace(x, y, 0)", 0.5, 2.0), ("np.linspace(x, 2, 3)", f4), ("np.linspace(x, y, 3)", 1, 2),
    ("np.linspace(x, 1, -1)", 0.5), ("np.logspace(x, 2, 5, base=y)", 0.5, 2.0), ("np.logspace(0, 1, 3, base=x)", p),
    ("np.geomspace(x, 8, 4, endpoint=False)", 0.5), ("np.geomspace(x, y, 4)", p, v), ("np.geomspace(x, -8, 4)", -0.5),
    ("np.geomspace(x, 0.0)", 0.5), ("np.arange(x, 2)", 0.3), ("np.arange(x)", 5), ("np.arange(x, 7, 2)", 1),
    ("np.arange(x, 2, 0.25)", 0.3), ("np.arange(0, 2, x)", 0.3), ("np.arange(stop=x)", 5), ("np.eye(x) * 2.0", 3),
    ("np.tri(x)", 3), ("np.tril_indices(x)", 3), ("np.meshgrid(x, y)", v, w[:3]),
    ("np.meshgrid(x, y, indexing='ij')", v, w[:3]), ("np.meshgrid(x, y, sparse=True, copy=False)", v, w[:3]),
    ("np.meshgrid(x, y, x, indexing='no')", v, w), ("np.meshgrid(x, y, x)", v[:2], w[:3]), ("np.ix_(x, [1.0, 2.0])", v),
    ("x[np.ix_(x[:, 0] > 0, [1, 2])]", m), ("np.ix_(x)", m), ("np.tril_indices_from(x)", m),
    ("np.tril_indices_from(x)", v),
    ("np.triu_indices_from(x, 1)", m), ("np.diag_indices_from(x[:, :4])", m), ("np.r_[x, 1.0, y]", v, w),
    ("np.r_[0:1:5j, x]", v), ("np.r_[x:3:4j]", 0.5), ("np.r_[x:3]", 0.5), ("np.c_[x, y]", v, w),
    ("np.r_['1', x, y]", m, n),
    ("np.r_['0,2,0', x, y]", v, w), ("np.r_['0,3,1', x, y]", v, w), ("np.c_[x, np.ones(6)]", v),
    ("np.c_[x[:, None], y]", v, w),
    ("np.mgrid[0:3, 0:2] * x", 0.5), ("[i[0] * e for i, e in np.ndenumerate(x)]", v),
    ("np.zeros(np.broadcast(x, y).shape) + x", v, m), ("np.fromiter((2 * e for e in x), float, 3)", v),
    ("np.fromiter(range(3), float) * x", 0.5)]

POLYNOMIALS = [
    ("np.polyval(x, y)", v, w), ("np.polyval(np.poly1d([1, 2, 3]), x)", v), ("np.poly1d(x)(y)", v, w),
    ("np.polyadd(x, [1, 2])", v), ("np.polysub([1, 2, 3, 4, 5, 6, 7], x)", v), ("np.polymul(x, y)", v, w),
    ("np.polydiv(x, [1.0, 2])", v), ("np.polydiv(x, y)", v, w[:3]), ("np.polyint(x, 2, [1, 2])", v),
    ("np.polyint(x, 2, 3.0)", v),
    ("np.polyint(x, -1)", v), ("np.polyint(x, 3, [1.0, 2.0])", v), ("np.polyder(x, 3)", v), ("np.polyder(x, -1)", v),
    ("np.poly(x)", v), ("np.poly(np.zeros((2, 2, 2)) * x)", 0.5), ("np.vander(x)", v),
    ("np.vander(x, 3, increasing=True)", v),
    ("np.vander(x, 3)", ints), ("np.vander(x, 0)", v), ("np.vander(x)", m), ("np.polyfit(x, y, 2)", v, w),
    ("np.polyfit(x, y, 1, w=z)", v, w, p), ("np.polyfit(x, y, 1, cov=True)", v, w),
    ("np.polyfit(x, y, 1, cov='unscaled')", v, w),
    ("np.polyfit(x, y.T, 2, full=True)", v, m), ("np.polyfit(x, y, -1)", v, w), ("np.polyfit(x, y[:2], 1)", v, w),
    ("np.polyfit(x, y, 1, w=z[:2])", v, w, p), ("np.polyfit(x[:3], y[:3], 2, cov=True)", v, w),
    ("np.polynomial.polynomial.polyval2d(x, y, z)", v, w, C),
    ("np.polynomial.polynomial.polygrid2d(x, y, z)", v, w[:2], C),
    *((f"np.polynomial.{home}.{prefix}{call}", *args) for home, prefix in (
        ("chebyshev", "cheb"), ("hermite_e", "herme")) for call, args in (
          ("val(x, y)", (v, u)), ("val(x, y)", (m, B)), ("val(x, y, tensor=False)", (v[:5], B)),
          ("der(x, 2, scl=2.0)", (u,)), ("int(x, 2, k=[1, 2.0], lbnd=0.5)", (u,)), ("fit(x, y, 2)", (v, w)),
          ("mul(x, y)", (u, v)), ("fromroots(x)", (u,))))]

SAMPLES = [
    *((f"np.pad(x, {width}, '{mode}')", m) for mode in (
        "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "median", "minimum")
      for width in ("(1, 3)", "((5, 0), (0, 9))")),
    ("np.pad(x, 9, 'reflect', reflect_type='odd')", v), ("np.pad(x, (9, 3), 'symmetric', reflect_type='odd')", m),
    ("np.pad(x, 2, 'mean', stat_length=2)", ints), ("np.pad(x, 3, 'linear_ramp', end_values=y)", m, 0.5),
    ("np.pad(x, 1, constant_values=((1, 2), (3, 4)))", m), ("np.pad(x, 1, constant_values=(y, 2))", v, 0.5),
    ("np.pad([1.0, 2], 1, constant_values=x)", 0.5), ("np.pad(x, {-1: 2})", m), ("np.pad(x, 1, 'foo')", v),
    ("np.pad(x, 1, 'edge', constant_values=3)", v), ("np.union1d(x, y)", v, w), ("np.setdiff1d(x, [x[0], 5.0])", v),
    ("np.intersect1d(x, [3, 2, 9])", ints), ("np.setxor1d(x, [3, 2, 9])", ints),
    ("np.apply_over_axes(np.sum, x, [0, -1])", m),
    ("np.asarray_chkfinite(x / 0)", v), ("scipy.integrate.simpson(x, x=y)", v, up),
    ("scipy.integrate.simpson(x[:5], x=y[:5])", v, up),
    ("scipy.integrate.simpson(x, dx=0.3, axis=0)", m), ("scipy.integrate.simpson(x[:2], dx=0.3, axis=0)", m),
    ("scipy.integrate.simpson(x, x=y)", m, np.cumsum(M, 1)), ("scipy.integrate.trapezoid(x, dx=y)", v, 0.3),
    ("scipy.integrate.cumulative_trapezoid(x, y)", v, up),
    ("scipy.integrate.cumulative_trapezoid(x, dx=0.1, initial=0)", m),
    ("scipy.integrate.cumulative_trapezoid(x, initial=1)", m), ("scipy.integrate.romb(x[:5], dx=y)", v, 0.2),
    ("scipy.integrate.romb(x)", v), ("scipy.integrate.fixed_quad(lambda t: np.exp(-x * t ** 2), 0, 1, n=6)[0]", 0.7)]

D = "scipy.spatial.distance."
NAMES = "sqeuclidean euclidean cityblock chebyshev minkowski cosine correlation canberra braycurtis".split()
DISTANCES = [
    *((f"{D}cdist(x, y, '{name}')", q, q2) for name in NAMES), *((f"{D}pdist(x, '{name}')", q) for name in NAMES),
    *((f"{D}{name}(x, y, w=[1.0, 2, 0.5])", q[0], q2[0]) for name in NAMES),
    (f"{D}cdist(x, y, 'minkowski', p=1.5, w=[1.0, 2, 3])", q, q2),
    (f"{D}cdist(x, y, 'seuclidean', V=[1.0, 2, 3])", q, q2),
    (f"{D}cdist(x, y, 'mahalanobis', VI=z)", q, q2, VI), (f"{D}mahalanobis(x, y, z)", q[0], q2[0], VI),
    (f"{D}squareform({D}pdist(x))", q), (f"{D}squareform(np.abs(x - x.T))", q[:3]), (f"{D}squareform(x)", q),
    (f"{D}squareform(x)", q[:3]), (f"{D}squareform(x)", v[:5]), (f"{D}squareform(x, 'tomatrix')", q),
    (f"{D}cdist(x, y)", q, q2[:, :2]),
    (f"{D}cdist(x, y)", q.astype("f"), q2), (f"{D}euclidean(x, y)", q, q2), (f"{D}cdist(x, x)", q[:1])]

EINSUM = [
    ("np.einsum('ij,jk', x, y)", A, B), ("np.einsum('ba', x)", A), ("np.einsum('ii', x)", S),
    ("np.einsum('ii->i', x)", S),
    ("np.einsum('...ii->...i', np.stack([x, x]))", S),
    ("np.einsum('ij,jk,kl->il', x, y, z, optimize='optimal')", A, B, C),
    ("np.einsum('ij,jk,kl->il', x, y, z, optimize=['einsum_path', (1, 2), (0, 1)])", A, B, C),
    ("np.einsum('ij,jk,kl->il', x, y, z, optimize=['einsum_path', (0, 1, 2)])", A, B, C),
    ("np.einsum(x, [0, 1], y, [1, 2])", A, B),
    ("np.einsum(x, [0, 1], y, [1, 2], [2, 0])", A, B), ("np.einsum(x, [Ellipsis, 0], y, [0, 1], [Ellipsis, 1])", A, B),
    ("np.einsum('...j,jk->...k', x, y)", T, B), ("np.einsum('...ij,...j', x, y)", T, u),
    ("np.einsum('i...->...', x)", T),
    ("np.einsum('i,i,i->i', x, x, x)", u), ("np.einsum('i,j,k', x, x, x)", u), ("np.einsum(',i', x, y)", 2.0, u),
    ("np.einsum('ij,ij->i', x, y)", A, A[:1].copy()), ("np.einsum('ij', x, dtype=np.float32)", A),
    ("np.einsum('ij,j', x, y, dtype=np.float32)", A, u), ("np.einsum('ij,jk', x, y)", A.astype("f"), B),
    ("np.einsum('i,i', x, y)", np.arange(4), np.arange(4)), ("np.einsum('ij,jk', x, y)", A, C),
    ("np.einsum('ij,jk->iz', x, y)", A, B),
    ("np.einsum('i,i->ii', x, x)", u), ("np.einsum('ijk', x, y)", T, T), ("np.einsum('i->', x)", np.zeros(0)),
    ("np.einsum('bij,bjk,bkl->bil', x, y, z)", T, np.swapaxes(T, 1, 2).copy(), T),
    ("np.einsum('ij->ji', x, order='F')", A),
    ("np.einsum_path('ij,jk', x, y)[0][1][0] * x", A, B), ("np.einsum('a...,b...->ab...', x, y)", A, B[:, :4].copy())]

METHODS = [
    *((f"np.{name}.reduce(x, axis=0, initial=1, where=x > 0.3)", M) for name in (
        "logaddexp", "hypot", "fmax", "add", "logical_or")),
    *((f"np.{name}.reduce(x, {axis})", M) for name in ("logaddexp", "logaddexp2", "hypot", "true_divide", "subtract")
      for axis in ("axis=1", "axis=-1, keepdims=True", "initial=1.0", "axis=(0, 1)")),
    *((f"np.{name}.accumulate(x, axis=1)", M) for name in (
        "logaddexp", "true_divide", "fmin", "hypot", "logical_and")),
    *((f"np.{name}.reduceat(x, [1, 4, 2, 0], axis=-1)", M) for name in ("add", "multiply", "logaddexp", "subtract")),
    ("np.add.reduce(x, dtype='f4')", M), ("np.exp.reduce(x)", M), ("np.add.reduceat(x, [0, 9])", v),
    ("np.multiply.reduce(x, axis=())", M), ("np.logaddexp.reduce(x, axis=(0, 2))", T),
    ("np.maximum.reduce(x[:, :0], axis=1)", m)]

PYTHON = [
    ("sum(list(x))", v), ("sum([e * e for e in x], 1.0)", v), ("__import__('math').prod(x)", v),
    ("max(x[0], x[1]) * 2", v), ("min(x)", v),
    ("max([x[0], y])", v, 0.5), ("sorted(x, reverse=True)", v), ("[a * b for a, b in zip(x, y)]", v, w),
    ("len(x) * x", m),
    ("(lambda a, *b: a * len(b))(*x)", v), ("[r.sum() for r in x]", m), ("[k * e for k, e in enumerate(x)]", v),
    ("list(reversed(x))", v),
    ("any(x > 100) + all(x > -100)", v), ("list(map(np.sin, x))", v), ("round(x[0], 2)", v), ("pow(x, 2)", v),
    ("__import__('functools').reduce(lambda a, b: a * b, x)", v),
    ("[e for e in __import__('itertools').accumulate(x)]", v)]

TABLE = STATISTICS + GRIDS + POLYNOMIALS + SAMPLES + DISTANCES + EINSUM + METHODS + PYTHON
