"""Functions of complex values, for the tests with the interpreter and with kernels, and how they are run."""
from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy import special

from jitad import jit, jit_grad
from jitad.call.build.specialize import build

H = 1e-6


def interpreted(transformed, *args):
    """What a decorated function gives by the reference interpreter; nothing is compiled."""
    arguments = transformed.subject.arguments(args, {})
    entry = build(transformed.subject.target, transformed.subject.request, arguments)
    return entry.interpret([*arguments.inputs, *(entry.captured(transformed.subject.target) or ())])


def valued(function, *args):
    return interpreted(jit(function), *args)


def gradient(function, *args, argnums=0):
    return interpreted(jit_grad(function, argnums=argnums), *args)


def weighed(result):
    """A number that depends on all real and imaginary parts of a result: it is differentiable, and real."""
    if isinstance(result, (tuple, list)):
        return sum(weighed(r) for r in result)
    weights = np.cos(1.0 + np.arange(np.size(result))).reshape(np.shape(result))
    other = np.sin(2.0 + np.arange(np.size(result))).reshape(np.shape(result))
    if np.iscomplexobj(result):
        return np.sum(np.real(result) * weights) + np.sum(np.imag(result) * other)
    return np.sum(result * weights)


def differences(function, x):
    """The gradient of a real function of a real or complex array: d/dRe + 1j d/dIm."""
    found = np.zeros(x.shape, x.dtype)
    for place in np.ndindex(x.shape):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            step = np.zeros(x.shape, x.dtype)
            step[place] = H * unit
            found[place] += unit * (function(x + step) - function(x - step)) / (2 * H)
    return found


def same(got, expected, rtol=1e-13, atol=1e-14):
    """Equal in value, shape and dtype; containers item by item."""
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(g, e, rtol, atol)
        return
    assert np.shape(got) == np.shape(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def local_array(z, w, x):
    a = np.zeros((2, 3), complex)
    a[0] = z
    a[1, 0] = x[0]
    a[1, 1:] += 2j * w[:2]
    b = a[:, 1]
    b *= 1 + 1j
    a.real += x
    return a


def listed(z, w, x):
    return np.array([x[0] + 1j * x[1], 2.0, w[2], 3j])


def branched(z, w, x):
    return z * 2j if abs(z[0]) < 100 and (z == z).all() else w


def iterated(z, w, x):
    total = z[0]
    for i in range(4):
        total = total * total * 0.3 + w[i % 3]
    return total


def elementwise(name):
    return lambda z, w, x: getattr(np, name)(0.4 * z)


ELEMENTWISE = {name: elementwise(name) for name in (
    "exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan sinh cosh tanh arcsin arccos arctan "
    "arcsinh arccosh arctanh absolute sign negative positive conjugate").split()}
ARITHMETIC = {
    "z + w": lambda z, w, x: z + w, "z - w": lambda z, w, x: z - w, "z * w": lambda z, w, x: z * w,
    "z / w": lambda z, w, x: z / w, "z ** w": lambda z, w, x: z ** w, "z + x": lambda z, w, x: z + x,
    "x - z": lambda z, w, x: x - z, "x * z": lambda z, w, x: x * z, "z / x": lambda z, w, x: z / x,
    "x / z": lambda z, w, x: x / z, "x ** z": lambda z, w, x: abs(x) ** z, "z ** x": lambda z, w, x: z ** x,
    "z ** 2": lambda z, w, x: z ** 2, "z ** 3": lambda z, w, x: z ** 3, "z ** -2": lambda z, w, x: z ** -2,
    "z ** 0.5": lambda z, w, x: z ** 0.5, "z ** 1j": lambda z, w, x: z ** 1j, "2 ** z": lambda z, w, x: 2.0 ** z,
    "1j * x": lambda z, w, x: 1j * x, "x / 1j": lambda z, w, x: x / 2j, "constant": lambda z, w, x: x * (0.5 - 2j) + z,
    "array": lambda z, w, x: x * np.array([1j, 2.0, 3 - 1j]), "exp(1j x)": lambda z, w, x: np.exp(1j * 2.0 * x),
    "real": lambda z, w, x: np.exp(1j * x).real, "imag": lambda z, w, x: (z * w).imag,
    "angle": lambda z, w, x: np.angle(z), "degrees": lambda z, w, x: np.angle(z, deg=True),
    "abs": lambda z, w, x: abs(z),
    "modulus": lambda z, w, x: np.abs(z) ** 2, "conj": lambda z, w, x: z.conj() * w, "unary": lambda z, w, x: -z + (+w),
    "astype": lambda z, w, x: x.astype(complex) * w, "float_power": lambda z, w, x: np.float_power(z, 2),
    "add.outer": lambda z, w, x: np.add.outer(z, x), "add.reduce": lambda z, w, x: np.add.reduce(z)}
STRUCTURE = {
    "sum": lambda z, w, x: z.sum(), "mean": lambda z, w, x: np.mean(z), "prod": lambda z, w, x: np.prod(z),
    "prod axis": lambda z, w, x: np.prod(np.outer(z, w), axis=0, keepdims=True), "cumsum": lambda z, w, x: z.cumsum(),
    "cumprod": lambda z, w, x: np.cumprod(z), "var": lambda z, w, x: np.var(z), "std": lambda z, w, x: z.std(),
    "index": lambda z, w, x: z[1], "slice": lambda z, w, x: z[::-1], "gather": lambda z, w, x: z[np.array([2, 0, 2])],
    "mask": lambda z, w, x: z[np.array([True, False, True])], "reshape": lambda z, w, x: z.reshape(3, 1) * w,
    "T": lambda z, w, x: np.outer(z, x).T, "iterate": lambda z, w, x: [a * b for a, b in zip(z, w, strict=True)],
    "concatenate": lambda z, w, x: np.concatenate([z, x, [1j]]), "stack": lambda z, w, x: np.stack([x, z], axis=1),
    "where": lambda z, w, x: np.where(x > 0, z, 2j), "where real": lambda z, w, x: np.where(x > 0, z, x),
    "take": lambda z, w, x: np.take(z, [0, 2]), "roll": lambda z, w, x: np.roll(z, 1),
    "diff": lambda z, w, x: np.diff(z),
    "tile": lambda z, w, x: np.tile(z, 2), "repeat": lambda z, w, x: np.repeat(z, 2),
    "broadcast": lambda z, w, x: np.broadcast_to(z, (2, 3)) * x, "trapezoid": lambda z, w, x: np.trapezoid(z, dx=0.5),
    "pad": lambda z, w, x: np.pad(z, 1), "append": lambda z, w, x: np.append(z, x),
    "full": lambda z, w, x: np.full(2, z[0]),
    "select": lambda z, w, x: np.select([x > 0, x < -1], [z, w], 1j), "diag": lambda z, w, x: np.diag(z),
    "split": lambda z, w, x: np.array_split(z, 2), "real and imag": lambda z, w, x: np.real(z) * np.imag(w),
    "local array": local_array, "list": listed, "branch": branched, "loop": iterated,
    "nan_to_num": lambda z, w, x: np.nan_to_num(z), "sinc": lambda z, w, x: np.sinc(z),
    "average": lambda z, w, x: np.average(z, weights=np.array([1.0, 2.0, 3.0]))}


def square(z, w, x):
    return np.outer(z, w) + np.diag(np.array([3.0, 4j, 5 - 1j])) + 1j * x


def positive(z, w, x):
    return np.outer(z, z.conj()) + np.outer(w, w.conj()) + 2.0 * np.eye(3)


PRODUCTS = {
    "z @ w": lambda z, w, x: z @ w, "x @ z": lambda z, w, x: x @ z, "dot": lambda z, w, x: np.dot(square(z, w, x), z),
    "vdot": lambda z, w, x: np.vdot(z, w), "vdot real": lambda z, w, x: np.vdot(z, x),
    "inner": lambda z, w, x: np.inner(z, w), "vecdot": lambda z, w, x: np.vecdot(z, w),
    "outer": lambda z, w, x: np.outer(z, x), "kron": lambda z, w, x: np.kron(z, w),
    "matmul": lambda z, w, x: square(z, w, x) @ square(w, z, x),
    "einsum": lambda z, w, x: np.einsum("i,j,i->j", z, w, x),
    "einsum 3": lambda z, w, x: np.einsum("i,i,i->", z, w, z), "tensordot": lambda z, w, x: np.tensordot(z, w, 1),
    "cross": lambda z, w, x: np.cross(z, w), "convolve": lambda z, w, x: np.convolve(z, w),
    "correlate": lambda z, w, x: np.correlate(z, w, "full"), "trace": lambda z, w, x: np.trace(square(z, w, x)),
    "solve": lambda z, w, x: np.linalg.solve(square(z, w, x), z),
    "solve matrix": lambda z, w, x: np.linalg.solve(square(z, w, x), np.outer(x, w)),
    "solve real": lambda z, w, x: np.linalg.solve(np.diag(np.array([1.0, 2.0, 3.0])) + np.outer(x, x), z),
    "inv": lambda z, w, x: np.linalg.inv(square(z, w, x)), "det": lambda z, w, x: np.linalg.det(square(z, w, x)),
    "slogdet": lambda z, w, x: np.linalg.slogdet(square(z, w, x))[0],
    "log det": lambda z, w, x: np.linalg.slogdet(np.kron(np.eye(2), square(z, w, x)))[1],
    "cholesky": lambda z, w, x: np.linalg.cholesky(positive(z, w, x)),
    "cholesky upper": lambda z, w, x: np.linalg.cholesky(positive(z, w, x), upper=True),
    "pinv": lambda z, w, x: np.linalg.pinv(square(z, w, x)[:, :2]), "norm": lambda z, w, x: np.linalg.norm(z),
    "norm 1": lambda z, w, x: np.linalg.norm(square(z, w, x), 1),
    "norms": lambda z, w, x: np.linalg.norm(square(z, w, x), axis=0),
    "eigvalsh": lambda z, w, x: np.linalg.eigvalsh(positive(z, w, x)),
    "eigvalsh upper": lambda z, w, x: np.linalg.eigvalsh(square(z, w, x), "U"),
    "svdvals": lambda z, w, x: np.linalg.svdvals(square(z, w, x)),
    "svd values": lambda z, w, x: np.linalg.svd(square(z, w, x)[:, :2], compute_uv=False),
    "matrix_power": lambda z, w, x: np.linalg.matrix_power(square(z, w, x), 3),
    "matrix_power -1": lambda z, w, x: np.linalg.matrix_power(square(z, w, x), -1),
    "eigh": lambda z, w, x: np.linalg.eigh(positive(z, w, x)),
    "eigh upper": lambda z, w, x: np.linalg.eigh(square(z, w, x), "U"),
    "svd": lambda z, w, x: np.linalg.svd(square(z, w, x)),
    "svd wide": lambda z, w, x: np.linalg.svd(square(z, w, x)[:2], full_matrices=False),
    "svd tall": lambda z, w, x: np.linalg.svd(square(z, w, x)[:, :2], False),
    "eig": lambda z, w, x: np.linalg.eig(square(z, w, x)),
    "eigvals": lambda z, w, x: np.linalg.eigvals(square(z, w, x)),
    "eig of reals": lambda z, w, x: np.linalg.eig(np.outer(x, x[::-1]) + np.diag(x, 1)[:3, :3]),
    "roots": lambda z, w, x: np.roots(np.concatenate([x, z.real, [0.0]])), "cond": lambda z, w, x: np.linalg.cond(
        square(z, w, x)), "norm 2": lambda z, w, x: np.linalg.norm(square(z, w, x), 2, keepdims=True),
    "norm nuc": lambda z, w, x: np.linalg.norm(np.stack([square(z, w, x)] * 2), "nuc", axis=(-2, -1)),
    "lstsq": lambda z, w, x: np.linalg.lstsq(square(z, w, x)[:, :2], z)[:2],
    "scipy expm": lambda z, w, x: scipy.linalg.expm(0.3 * square(z, w, x)),
    "scipy sqrtm": lambda z, w, x: scipy.linalg.sqrtm(positive(z, w, x) + 0.3j * square(z, w, x)),
    "scipy logm": lambda z, w, x: scipy.linalg.logm(positive(z, w, x) + 0.3j * square(z, w, x)),
    "scipy solve": lambda z, w, x: scipy.linalg.solve(square(z, w, x), z),
    "scipy svd": lambda z, w, x: scipy.linalg.svd(square(z, w, x), compute_uv=False),
    "scipy eig": lambda z, w, x: scipy.linalg.eig(np.outer(x, x[::-1]) + np.diag(x)), "scipy norm": lambda z, w, x: (
        scipy.linalg.norm(square(z, w, x))),
    "multi_dot": lambda z, w, x: np.linalg.multi_dot([z, square(z, w, x), x])}
def near_and_far(z):
    """Small, usual and large arguments, in all quadrants."""
    return np.concatenate([0.1 * z, z, -2 * z, z.conj() * 1j, 30 * z[:1] + 20j * z[:1].real ** 2])


ERRORS = {name: lambda z, w, x, name=name: getattr(special, name)(near_and_far(z)[:12]) for name in ("erf", "erfc")}
ERRORS["wofz"] = lambda z, w, x: special.wofz(near_and_far(0.7 * z))
ERRORS["erfcx"] = lambda z, w, x: special.erfcx(z[:2])
FAMILIES = {"errors": ERRORS, "elementwise": ELEMENTWISE,
            "arithmetic": ARITHMETIC, "structure": STRUCTURE, "products": PRODUCTS}


def of_real(case):
    """The case as a function of one real vector."""
    def function(t):
        return case(t[:3] + 1j * t[3:6], t[6:9] - 0.5j * t[:3], t[9:])
    return function


POINT = np.array([0.7, -1.2, 0.4, 0.9, 0.3, -0.8, -0.6, 1.5, 0.8, 0.5, -1.1, 1.3])
OTHER = np.array([-0.3, 0.8, 1.1, 0.5, -1.4, 0.6, 1.2, -0.7, 0.4, -0.9, 1.6, 0.7])
