"""Calls of SciPy's functions with their options: expression and arguments. See `test_options`."""
from __future__ import annotations

import numpy as np

rng = np.random.default_rng(3)
v, w, p = rng.normal(size=6), rng.normal(size=6), rng.uniform(0.3, 2.0, 6)
m, q = rng.normal(size=(3, 4)), rng.uniform(0.3, 2.0, (3, 4))

S = "scipy.stats."
SAMPLES = [
    (f"{S}zscore(x)", v), (f"{S}zscore(x, axis=1, ddof=1)", m), (f"{S}zscore(x, axis=None)", m),
    (f"{S}zmap(x, y)", v, w), (f"{S}gzscore(x, ddof=1)", p), (f"{S}gstd(x, axis=1)", q), (f"{S}gmean(x)", p),
    (f"{S}gmean(x, axis=1, weights=[1, 2, 1.5, 1])", q), (f"{S}gmean(x, axis=None)", q),
    (f"{S}hmean(x, axis=1, keepdims=True)", q), (f"{S}hmean(x, weights=y)", p, v**2), (f"{S}pmean(x, 2.5)", p),
    (f"{S}pmean(x, -1, axis=1)", q), (f"{S}sem(x)", v), (f"{S}sem(x, axis=None, ddof=0)", m), (f"{S}skew(x)", v),
    (f"{S}skew(x, axis=1, bias=False)", m), (f"{S}kurtosis(x, fisher=False)", v),
    (f"{S}kurtosis(x, axis=None, bias=False)", m), (f"{S}kurtosis(x, 1, True, False)", m), (f"{S}moment(x, 3)", v),
    (f"{S}moment(x, 4, axis=1, center=y)", m, 0.2), (f"{S}moment(x)", v), (f"{S}variation(x, axis=1, ddof=1)", q),
    (f"{S}iqr(x)", v), (f"{S}iqr(x, axis=1, rng=(10, 80), scale='normal')", m), (f"{S}entropy(x)", p),
    (f"{S}entropy(x, y, base=2)", p, v**2), (f"{S}entropy(x, axis=1)", q), (f"{S}entropy(x, base=-1)", p),
    (f"{S}median_abs_deviation(x, scale='normal')", v), (f"{S}median_abs_deviation(x, axis=1, center=np.mean)", m),
    (f"{S}circmean(x)", 7 * p), (f"{S}circmean(x, high=180, low=-180, axis=1)", 90 * q), (f"{S}circvar(x)", p),
    (f"{S}circstd(x, high=24, axis=1)", 4 * q), (f"{S}circstd(x, normalize=True)", p), (f"{S}boxcox(x, y)", p, 0.3),
    (f"{S}boxcox(x, 0.0)", p), (f"{S}boxcox_llf(x, y)", 0.4, p), (f"{S}boxcox_llf(x, y)", -0.05, p),
    (f"{S}yeojohnson(x, y)", v, 1.3), (f"{S}yeojohnson(x, 2.0)", v), (f"{S}yeojohnson_llf(x, y)", 0.4, v),
    (f"{S}zscore(x)", v.astype("f4"))]

L = "scipy.linalg."
r = np.diag([1.0, 2.0, 3.5, 5.0]) + 0.2 * rng.normal(size=(4, 4))
g = rng.normal(size=(4, 4))
MATRICES = [
    ("[np.real(part) for part in np.linalg.eig(x)]", r), ("[np.real(part) for part in np.linalg.eig(x)]", g),
    ("np.real(np.linalg.eigvals(x))", r.astype("f4")), ("np.real(np.linalg.eigvals(np.stack([x, 2 * x])))", g),
    ("np.linalg.eig(x)", g[:3]), ("np.abs(np.roots(x))", v),
    ("np.roots(x)", np.zeros(2)), (f"np.real({L}eig(x)[0]), np.imag({L}eig(x)[1])", r),
    (f"np.imag({L}eigvals(x))", g),
    (f"np.abs({L}eig(x, right=False))", g), (f"{L}eigvals(x)", g[:3]), (f"{L}logm(x)", r @ r.T),
    (f"{L}logm(x)", r), (f"{L}fractional_matrix_power(x, y)", r, 0.3), (f"{L}signm(x)", r), (f"{L}cosm(x)", g),
    (f"{L}sinm(x)", g), (f"{L}tanm(x)", 0.4 * g), (f"{L}coshm(x)", g), (f"{L}sinhm(x)", g), (f"{L}tanhm(x)", g)]
STRUCTURED = [
    (f"{L}companion(x)", p), (f"{L}companion(x)", p[:1]), (f"{L}companion(x)", np.array([0.0, 1.0, 2.0])),
    *((f"{L}convolution_matrix(x, {n}, '{mode}')", v) for n in (3, 9) for mode in ("full", "same", "valid")),
    (f"{L}convolution_matrix(x, 0)", v), (f"{L}khatri_rao(x, y)", m, q), (f"{L}khatri_rao(x, y)", m, q[:, :2]),
    (f"{L}leslie(x, y)", p, p[:5] / 3), (f"{L}leslie(x, y)", p, p), (f"{L}fiedler(x)", v),
    (f"{L}solve_toeplitz(x, y)", p + 4 * np.eye(6)[0], w),
    (f"{L}solve_toeplitz((x, z), y)", p + 4 * np.eye(6)[0], w, p),
    (f"{L}solve_toeplitz([3.0, 1, 0, 0, 0, 0.5], x)", v), (f"{L}matmul_toeplitz((x, y), z)", v, w[:3], m.T[:3]),
    (f"{L}eigvalsh_tridiagonal(x, y)", v, p[:5]), (f"{L}pinvh(x)", r @ r.T)]

E = "scipy.special."
far = np.array([0.0, -0.3, 2.0, -7.5, 40.0, 1e4])
SPECIAL = [
    (f"{E}voigt_profile(x, y, z)", v, 0.7, p), (f"{E}voigt_profile(x, 1.3, y)", far, 0.2),
    (f"{E}voigt_profile(x, y, 0.0)", v, p), (f"{E}voigt_profile(x, 0.0, y)", v, 0.4),
    (f"{E}voigt_profile(x, y, 1e-6)", far[:4], 0.9), (f"np.real({E}wofz(x)), np.imag({E}wofz(x))", far)]
F = "scipy.fft."
TRANSFORMS = [
    *((f"{F}{name}(x, {kind}, norm={norm!r})", u) for name in ("dct", "idct", "dst", "idst") for kind in (1, 4)
      for norm, u in ((None, v), ("ortho", m), ("forward", v[:5]))),
    (f"{F}dctn(x)", m), (f"{F}idctn(x, norm='ortho')", m), (f"{F}dstn(x, 3, axes=0)", m),
    (f"{F}idstn(x, axes=(0, 1))", m),
    (f"{F}dct(x, 1)", v[:1]), (f"{F}dct(x, 4)", v.astype("f4"))]
TABLE = SAMPLES + MATRICES + STRUCTURED + SPECIAL + TRANSFORMS
