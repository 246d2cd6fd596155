"""Complex intermediates, arguments, captures and results: values as NumPy's, derivatives against differences."""
from __future__ import annotations

import cmath

import numpy as np
import pytest
import scipy.linalg

import jitad
from jitad import hvp, jit, jit_grad, jvp, vjp
from jitad.errors import ArgumentTypeError, MutationError, OutputError, UnsupportedOperationError
from tests.helpers.cases.complex import (
    FAMILIES,
    OTHER,
    POINT,
    differences,
    gradient,
    interpreted,
    of_real,
    same,
    valued,
    weighed,
)

CASES = [pytest.param(case, id=f"{family}: {name}") for family, cases in FAMILIES.items()
         for name, case in cases.items()]
z3 = np.array([1 + 2j, -0.5 + 1j, 0.3 - 0.7j])


@pytest.mark.parametrize("case", CASES)
def test_values_are_numpys(case):
    f = of_real(case)
    same(valued(f, POINT), f(POINT), 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    f = of_real(case)
    np.testing.assert_allclose(gradient(lambda t: weighed(f(t)), POINT), differences(lambda t: weighed(f(t)), POINT),
                               rtol=2e-8, atol=2e-8)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "arcsin", "absolute"])
def test_second_derivatives(name):
    f = of_real(FAMILIES["elementwise"][name])
    slope = jit_grad(lambda t: weighed(f(t)))
    found = interpreted(jit_grad(lambda t: np.sum(slope(t) * np.cos(t))), POINT)
    np.testing.assert_allclose(found, differences(lambda t: np.sum(gradient(
        lambda s: weighed(f(s)), t) * np.cos(t)), POINT), rtol=1e-6, atol=1e-6)


# --- branch cuts, zeros and infinities ----------------------------------------------------------------

EDGES = [-2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 1.0, 2.0]
GRID = np.array([complex(a, b) for a in EDGES for b in EDGES])
UNARY = ("exp log log2 log10 log1p expm1 sqrt square reciprocal sign conjugate absolute sin cos tan sinh cosh tanh "
         "arcsin arccos arctan arcsinh arccosh arctanh isnan isinf isfinite logical_not").split()
BINARY = {
    "*": lambda z, w, x: z * w, "/": lambda z, w, x: z / w, "**": lambda z, w, x: z ** w,
    "z x": lambda z, w, x: z * x, "x z": lambda z, w, x: x * z, "z/x": lambda z, w, x: z / x,
    "x/z": lambda z, w, x: x / z, "-2z": lambda z, w, x: -2.0 * z, "x-z": lambda z, w, x: x - z,
    "z+x": lambda z, w, x: z + x, "1/z": lambda z, w, x: 1 / z, "z**x": lambda z, w, x: z ** x,
    "sqrt(-2z)": lambda z, w, x: np.sqrt(-2.0 * z), "sqrt(z/x)": lambda z, w, x: np.sqrt(z / x),
    "sqrt(x(1+0j))": lambda z, w, x: np.sqrt(x * (1 + 0j)), "log(x+0j)": lambda z, w, x: np.log(x + 0j),
    "sqrt(x-0j)": lambda z, w, x: np.sqrt(x.astype(complex)), "angle": lambda z, w, x: np.angle(-z),
    "==": lambda z, w, x: z == w, "!=": lambda z, w, x: z != x, "and": lambda z, w, x: np.logical_and(z, x)}


def unary(name):
    return lambda z, w, x: getattr(np, name)(z)


ALL = {**{name: unary(name) for name in UNARY}, **BINARY}


def edges():
    rng = np.random.default_rng(3)
    return GRID, rng.permutation(GRID), rng.permutation(GRID.real)


def equal_at_edges(got, expected, name):
    with np.errstate(all="ignore"):
        close = np.isclose(got, expected, 2e-14, 2e-15) | (got == expected) | (np.isnan(got) & np.isnan(expected))
    assert close.all(), (name, GRID[~close][:3], got[~close][:3], expected[~close][:3])


@pytest.mark.parametrize("name", list(ALL))
def test_branch_cuts_are_numpys(name):
    with np.errstate(all="ignore"):
        expected = ALL[name](*edges())
    equal_at_edges(valued(ALL[name], *edges()), expected, name)


def test_kernels_have_the_same_branch_cuts():
    functions = list(ALL.values())

    def all_of_them(z, w, x):
        return [f(z, w, x) for f in functions]
    with np.errstate(all="ignore"):
        expected = all_of_them(*edges())
    for name, got, want in zip(ALL, jit(all_of_them)(*edges()), expected, strict=True):
        equal_at_edges(got, want, name)


def test_hand_picked_values():
    def f(x):
        i = 1j * x
        return np.exp(i), i * i, np.sqrt(-x + 0j), np.log(-x + 0j), abs(3 * x + 4 * i), (1 + i) / (1 - i), i ** 2
    got = valued(f, 1.0)
    same(got, (cmath.exp(1j), -1 + 0j, 1j, 1j * np.pi, 5.0, 1j, -1 + 0j), 1e-15, 1e-16)


def test_the_square_of_an_infinite_modulus_is_infinite():
    z = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1.0), 3 + 4j])
    same(valued(lambda z: np.abs(z) ** 2, z), np.array([np.inf, np.inf, np.nan, 25.0]))
    same(gradient(lambda z: np.sum(np.abs(z[3:]) ** 2), z)[3:], np.array([6 + 8j]))


def test_no_overflow_in_between():
    x = np.array([1e300, -1e-300, 3e200])
    def f(x):
        return np.abs(x + 1j * x), (x + 1j * x) / (2 * x + 1j * x), np.sqrt(x * (1 + 1j))
    same(valued(f, x), f(x), 1e-13, 0)


def test_the_slope_of_the_modulus_at_zero_is_zero():
    assert gradient(lambda x: np.sum(np.abs(x * (1 + 1j))), np.zeros(3)).tolist() == [0, 0, 0]
    assert gradient(lambda z: np.sum(np.abs(z)), np.zeros(2, complex)).tolist() == [0, 0]
    assert gradient(lambda x: np.sum(np.abs(np.exp(1j * x) - 1) ** 2), np.zeros(2)).tolist() == [0, 0]


# --- dtypes and questions --------------------------------------------------------------------------------

def test_dtypes():
    def f(x, y, n):
        assert (x * 1j).dtype == np.complex64 and (y * 1j).dtype == np.complex128 and (x[0] * 1j).dtype == np.complex64
        assert (x + 1j * y).dtype == np.complex128 and (n * 1j).dtype == np.complex128
        return x * 1j, x[0] * 1j, n * 1j, x * np.complex128(1j), (x * 1j).astype(complex), np.abs(x * 1j), (x * 2j).real
    args = (np.float32([1, 2]), np.array([1.0, 2.0]), np.array([1, 2]))
    same(valued(f, *args), f(*args))


def test_it_is_what_it_stands_for():
    def f(x):
        z = x * 1j
        assert isinstance(z, np.ndarray) and isinstance(z[0], complex) and isinstance(z[0], np.complex128)
        assert type(z) is np.ndarray and type(z[0]) is np.complex128
        assert np.iscomplexobj(z) and not np.isrealobj(z) and not np.iscomplexobj(z.real) and np.ndim(z) == 1
        assert z.shape == (3,) and z.ndim == 1 and z.size == 3 and len(z) == 3 and z.itemsize == 16 and z.nbytes == 48
        assert np.isscalar(z[0]) and np.result_type(z, np.float32) is np.dtype(complex)
        return np.iscomplex(z), np.isreal(z), np.isclose(z, 1j), np.allclose(z, z), np.any(z), np.array_equal(z, z)
    x = np.array([0.0, 1.0, 2.0])
    same(valued(f, x), f(x))


def test_branches_are_guarded():
    @jit_grad
    def f(x):
        z = np.exp(1j * x)
        return np.sum(z.real if z[0] == 1 else z.imag)
    x = np.array([0.0, 0.5])
    same(f(x), -np.sin(x))
    with pytest.warns(jitad.TapeMismatchWarning, match="another way"):
        same(f(x + 1), np.cos(x + 1))


# --- arguments, captures, results ----------------------------------------------------------------------------

def test_the_gradient_of_a_complex_argument_is_the_direction_of_steepest_ascent():
    def f(z, a):
        return np.sum(np.abs(z * a) ** 2) + np.real(z[0] * (2 + 3j)) + np.sum(np.angle(z))
    a = np.array([1j, 2 - 1j, 0.5])
    got = gradient(f, z3, a)
    assert got.dtype == complex
    np.testing.assert_allclose(got, differences(lambda z: f(z, a), z3), rtol=1e-8)
    same(gradient(lambda z: np.real(z[0] * (2 + 3j)), z3), np.array([2 - 3j, 0, 0]))       # df = Re(conj(g) dz)
    same(gradient(lambda z: np.sum(np.abs(z) ** 2), z3), 2 * z3)


def test_arguments_of_every_kind():
    def f(z, s, tree):
        return z * s + tree["a"], s, z.real, tree["b"].imag
    kinds = [z3, z3[::-1], np.stack([z3, z3], 1)[:, 0], z3.astype(np.complex64)]
    with pytest.warns(jitad.TapeMismatchWarning, match="complex64"):
        g = jit(f)
        for z in kinds:
            for _ in range(2):
                same(g(z, 2 - 1j, {"a": 1j, "b": z3}), f(z, 2 - 1j, {"a": 1j, "b": z3}))
    scalar = jit_grad(lambda z: (z * z).imag)
    for z in (1 + 2j, np.complex64(1 + 2j), np.array(1 + 2j)):
        found = interpreted(scalar, z)
        assert type(found) is type(z) and found == np.conj(2 * z) * 1j
    matrix = np.asfortranarray(np.outer(z3, z3))
    same(valued(lambda m: m @ m, matrix), matrix @ matrix)


def test_a_real_array_is_no_complex_one():
    g = jit(lambda z: z * 1j)
    same(g(z3), z3 * 1j)
    pairs = np.stack([z3.real, z3.imag], -1)
    with pytest.warns(jitad.TapeMismatchWarning, match="complex128 -> float64"):
        same(g(pairs), pairs * 1j)
    with pytest.warns(jitad.TapeMismatchWarning, match="Python complex"):
        assert g(2j) == -2
    same(g(z3 + 1), (z3 + 1) * 1j)


def test_gradients_by_real_and_complex_arguments_together():
    def f(z, x):
        return np.sum(np.abs(z + x) ** 2)
    dz, dx = gradient(f, z3, np.ones(3), argnums=(0, 1))
    same((dz, dx), (2 * (z3 + 1), 2 * (z3.real + 1)))


def test_captured_arrays_are_seen_as_they_are_now():
    c, number = z3.copy(), 2j
    f = jit_grad(lambda x: np.sum(np.abs(c * x * number) ** 2))
    x = np.array([1.0, 2.0, 3.0])
    for _ in range(2):
        same(f(x), 8 * np.abs(c) ** 2 * x)
        c[0] = 5j
    assert jitad.cache.info(f).compiles == 1
    number = 1j
    with pytest.warns(jitad.TapeMismatchWarning):
        same(f(x), 2 * np.abs(c) ** 2 * x)


def test_results():
    def f(z):
        return {"array": z * 2, "number": z[0], "single": z[0].astype(np.complex64), "constant": 1j,
                "made": np.ones(2, complex), "like": np.zeros_like(z), "real": z.real, "zero": np.array(z[0])}
    got = jit(f)(z3)
    for name, value in f(z3).items():
        same(got[name], value)
    assert type(got["number"]) is type(got["zero"]) is complex and type(got["single"]) is np.complex64


def test_vjp_and_jvp_are_adjoint_in_the_real_inner_product():
    def f(z):
        return np.exp(z) * z[::-1], np.abs(z)
    dz, ct = np.array([1j, 2.0, -1 + 1j]), (np.array([1 + 1j, 2j, 3.0]), np.array([1.0, 2.0, 3.0]))
    _, pull = vjp(f, z3)
    (back,) = pull(ct) if isinstance(pull(ct), tuple) else (pull(ct),)
    _, push = jvp(f, (z3,), (dz,))
    left = sum(np.sum((np.conj(c) * t).real) for c, t in zip(ct, push, strict=True))
    np.testing.assert_allclose(left, np.sum((np.conj(back) * dz).real), rtol=1e-13)
    g = lambda z: np.sum(np.abs(z) ** 4)
    same(hvp(g)(z3, dz), (lambda h: (gradient(g, z3 + h * dz) - gradient(g, z3 - h * dz)) / (2 * h))(1e-6), 1e-7, 1e-7)


def test_out():
    f = jit_grad(lambda z: np.sum(np.abs(z) ** 2))
    out = np.zeros(3, complex)
    assert f(z3, out=out) is out
    same(out, 2 * z3)


def test_inside_loops_and_batches():
    def total(xs):
        return jitad.scan(lambda c, x: (c + np.exp(1j * x).real, c), 0.0, xs)[0]
    xs = np.linspace(0.1, 1.0, 5)
    same(valued(total, xs), np.cos(xs).sum())
    rows = np.outer(np.arange(1.0, 4.0), xs)
    same(jitad.batch(lambda x: np.abs(np.fft.rfft(x)).sum())(rows), np.abs(np.fft.rfft(rows)).sum(-1))


def test_the_generated_source_runs_as_python():
    f = jit_grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2) + np.exp(1j * x).real.sum())
    compiled = f.compile(np.arange(5.0))
    x = np.linspace(0.0, 1.0, 5)
    same(compiled.step(x), 10 * x - np.sin(x), 1e-12, 1e-12)
    same(compiled(x), 10 * x - np.sin(x), 1e-12, 1e-12)


# --- what is refused ---------------------------------------------------------------------------------------------

REFUSED = [
    (lambda z: z.max().real, "numpy.max of complex values"), (lambda z: z < 1, "numpy.less of complex values"),
    (lambda z: np.maximum(z, 0), "numpy.maximum of complex values"),
    (lambda z: z.view(float), r"\.view\(\) of a complex array"), (lambda z: str(z), "text of a complex value"),
    (lambda z: f"{z[0]}", "text of a complex value"),
    (lambda z: np.linalg.svd(np.diag(z)[:2]), "svd with full_matrices=True"),
    (lambda z: np.linalg.svd(np.diag(z), hermitian=True), "svd of complex matrices with hermitian=True"),
    (lambda z: np.linalg.qr(np.stack([z, z]).T, "complete"), "qr with mode='complete'"),
    (lambda z: scipy.linalg.qr(np.diag(z), pivoting=True), "scipy.linalg.qr with pivoting"),
    (lambda z: np.linalg.pinv(np.diag(z), rcond=1e-3), "pinv of a complex matrix with options"),
    (lambda z: np.average(z.real, weights=z), "numpy.average with complex weights"),
    (lambda z: np.sum(z.real, initial=z[0]), "numpy.sum with complex initial"),
    (lambda z: np.tensordot(z.real, z.real, z), "a complex value in this argument"),
    (lambda z: np.prod(z, initial=2.0), "numpy.prod of complex values"),
    (lambda z: z * np.clongdouble(1j), "an operand of dtype complex"),
    (lambda z: np.var(z, mean=0.0), "numpy.var of complex values"),
    (lambda z: np.dot(a=z, b=z), "numpy.dot of complex values called by keyword"),
    (lambda z: np.einsum(z, [0], z, [0]), "einsum of complex values with lists"),
    (lambda z: np.exp(z, where=np.array([True, False, True])), "where="),
    (lambda z: np.array_equal(z, z, equal_nan=True), "array_equal of complex values with equal_nan"),
    (lambda z: np.full_like(np.ones(3), z), "complex fill value"), (lambda z: z.astype("G"), "dtype"),
    (lambda z: jitad.fori_loop(0, 2, lambda i, c: c * 2, z), "complex"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED)
def test_refused(function, words):
    with pytest.raises(UnsupportedOperationError, match=words):
        valued(function, z3)


@pytest.mark.parametrize(("function", "error", "words"), [
    (lambda z: float(z[0]), UnsupportedOperationError, r"float\(\) of a complex number.*\.real"),
    (lambda z: int(z[0]), TypeError, "int"), (lambda z: np.arange(3)[z[0]], (TypeError, IndexError), "ind"),
    (lambda z: round(z[0]), TypeError, "__round__"), (lambda z: z.__setitem__(0, 1), MutationError, "written"),
    (lambda z: np.linalg.eigvalsh(np.outer(z, z.conj()), "X"), ValueError, "UPLO argument must be 'L' or 'U'"),
    (lambda z: np.zeros(3).__iadd__(z), TypeError, "Cannot cast"), (lambda z: bool(z), ValueError, "ambiguous"),
    (lambda z: np.zeros(3).__setitem__(0, z[0]), UnsupportedOperationError, "complex")])
def test_errors(function, error, words):
    with pytest.raises(error, match=words):
        valued(function, z3)


def test_derivatives_of_complex_results_are_refused():
    for ask in (jit_grad(lambda z: z.sum()), jit_grad(lambda x: np.sum(x * 1j))):
        with pytest.raises(OutputError, match=r"complex value.*return its \.real"):
            interpreted(ask, z3)
    with pytest.raises(ArgumentTypeError, match=r"batch.*is complex"):
        jitad.batch(lambda z: np.abs(z).sum())(np.outer(z3, z3))
    with pytest.raises(OutputError, match="a batch cannot return"):
        jitad.batch(lambda x: x * 1j)(np.ones((2, 2)))


def test_files_and_models_are_refused(tmp_path):
    for compiled in (jit_grad(lambda z: np.abs(z).sum()).compile(z3), jit(lambda x: x * 1j).compile(np.ones(2))):
        with pytest.raises(jitad.TapeFileError, match="complex arguments or results"):
            compiled.save(tmp_path / "tape")
        with pytest.raises(UnsupportedOperationError, match="complex arguments or results"):
            compiled.to_onnx(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_non_finite_numbers_are_found():
    f = jit_grad(lambda z: np.sum(np.log(np.abs(z))))
    with pytest.raises(jitad.NonFiniteError, match="log"):
        f.check_finite(np.array([0.0, 1j]))
    f.check_finite(z3)


def test_a_real_cast_warns_as_numpy_does():
    with pytest.warns(np.exceptions.ComplexWarning):
        same(valued(lambda x: (x * (1 + 1j)).astype(float), OTHER), OTHER)


# --- second derivatives of spectra ------------------------------------------------------------------------------
