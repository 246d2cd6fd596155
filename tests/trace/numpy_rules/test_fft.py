"""Fourier transforms, numpy.fft and scipy.fft, convolutions: values as theirs, derivatives by adjoints."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.fft

import jitad
from jitad import cache, jit, jit_grad
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from jitad.compile.routines.small_fft import convolution_length, factors, roots
from jitad.errors import UnsupportedOperationError
from jitad.tape.builder import Builder
from jitad.tape.types import TABLE, Aval
from tests.helpers.cases.complex import differences, gradient, same, valued, weighed

RNG = np.random.default_rng(5)
X = RNG.normal(size=(6, 7))
Z = X + 1j * RNG.normal(size=X.shape)
NORMS = (None, "backward", "ortho", "forward")
LINES = "fft ifft rfft irfft hfft ihfft".split()
SEVERAL = "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()
REAL_ONLY = ("rfft", "ihfft", "rfft2", "rfftn")


def all_lines(module, name, x):
    return [getattr(module, name)(x, n, axis, norm) for n, axis, norm in itertools.product(
        (None, 1, 4, 9), (-1, 0), NORMS)]


def all_several(module, name, x):
    shapes = [(None, None), ((5, 9), (0, 1)), ((5, 9), (-1, -2)), (None, (1, 0)),
              ((4, 8), None if "n" in name else (0, 1))]
    return [getattr(module, name)(x, s, **({} if axes is None else {"axes": axes}), norm=norm)
            for (s, axes), norm in itertools.product(shapes, NORMS)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("module", [np.fft, scipy.fft], ids=["numpy", "scipy"])
@pytest.mark.parametrize("name", LINES + SEVERAL)
def test_values(module, name):
    every = all_lines if name in LINES else all_several
    data = [X, X.astype(np.float32)] + ([] if name in REAL_ONLY else [Z, Z.astype(np.complex64)])
    if module is np.fft:
        data.append(np.arange(42).reshape(6, 7))
    for x in data:
        rtol = 2e-6 if x.dtype.name in ("float32", "complex64") else 1e-13
        same(valued(lambda x: every(module, name, x), x), every(module, name, x), rtol, 40 * rtol)


@pytest.mark.parametrize("name", LINES + SEVERAL)
def test_gradients(name):
    f = getattr(np.fft, name)
    for x in [X[:2, :5]] + ([] if name in REAL_ONLY else [Z[:2, :5]]):
        def total(x):
            return weighed(np.abs(f(x, norm="ortho")) ** 2) if x.dtype.kind == "f" else weighed(f(x)) ** 2
        np.testing.assert_allclose(gradient(total, x), differences(total, x), rtol=1e-7, atol=1e-7)


def test_hand_picked_values():
    def f(x):
        return (np.fft.fft(x), np.fft.rfft(x), np.fft.irfft(np.fft.rfft(x)), np.fft.fft(1j * x), np.fft.fft(x, 2),
                np.fft.fft(x, 1), np.fft.ifft(x, norm="forward"), np.abs(np.fft.fft(x)) ** 2)
    got = valued(f, np.array([1.0, 2.0, 3.0, 4.0]))
    same(got, (np.array([10, -2 + 2j, -2, -2 - 2j]), np.array([10, -2 + 2j, -2 + 0j]), np.array([1.0, 2, 3, 4]),
               np.array([10j, -2 - 2j, -2j, 2 - 2j]), np.array([3, -1 + 0j]), np.array([1 + 0j]),
               np.array([10, -2 - 2j, -2, -2 + 2j]), np.array([100.0, 8, 4, 8])), 1e-15, 1e-14)


def test_shifts_and_frequencies():
    def f(x, z):
        shifted = [getattr(m, n)(v, axes) for m in (np.fft, scipy.fft) for n in ("fftshift", "ifftshift")
                   for v in (x, z) for axes in (None, 0, (0, 1), -1)]
        return [*shifted, np.fft.fftfreq(7, 0.5) * x, np.fft.rfftfreq(12) * x]
    same(valued(f, X, Z), f(X, Z))


def test_cosine_and_sine_transforms():
    def f(x):
        return [getattr(scipy.fft, name)(x, kind, n, axis, norm) for name, kind, n, axis, norm in itertools.product(
            ("dct", "idct", "dst", "idst"), (2, 3), (None, 1, 2, 5, 10), (-1, 0), NORMS)]
    same(valued(f, X), f(X), 1e-13, 1e-13)
    for name in ("dct", "idct", "dst", "idst"):
        def total(x, name=name):
            return weighed(getattr(scipy.fft, name)(x)) ** 2
        np.testing.assert_allclose(gradient(total, X[:2]), differences(total, X[:2]), rtol=1e-7, atol=1e-7)


# --- convolutions --------------------------------------------------------------------------------------------

SIZES = [(9, 4), (4, 9), (5, 5), (1, 6), (6, 1), (8, 3), (1, 1)]


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_convolutions(n, m):
    def f(a, v):
        pairs = [(a, v), (v, a), (a + 2j * a, v), (1j * a, v - 1j * v), ([2j], v), (a, [1.0, 2.0])]
        modes = ("full", "same", "valid")
        return [g(p, q, mode) for g in (np.convolve, np.correlate) for p, q in pairs for mode in modes]
    a, v = RNG.normal(size=n), RNG.normal(size=m)
    same(valued(f, a, v), f(a, v))
    total = lambda a, v: sum(weighed(y) for y in f(a, v)) ** 2
    da, dv = gradient(total, a, v, argnums=(0, 1))
    np.testing.assert_allclose(da, differences(lambda a: total(a, v), a), rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(dv, differences(lambda v: total(a, v), v), rtol=1e-6, atol=1e-5)


def test_convolutions_of_integers_and_in_a_kernel():
    same(valued(lambda k: np.convolve(k, [1, 2]), np.arange(4)), np.array([0, 1, 4, 7, 6]))
    f = jit_grad(lambda a, v: np.sum(np.convolve(a, v, "same") ** 2), argnums=(0, 1))
    a, v = RNG.normal(size=50), RNG.normal(size=7)
    f(a + 1, v)
    y = np.convolve(a, v, "same")
    same(f(a, v), (np.correlate(np.pad(2 * y, 3), v, "valid"), np.correlate(np.pad(a, 3), 2 * y, "valid")[::-1]), 1e-12)


def test_nothing_lies_beyond_the_ends_of_a_convolution():
    """A zero there would make NaN of an infinite weight, and of its derivative."""
    inf = np.inf

    def several(a, v):
        return [f(a, v, mode) for f in (np.convolve, np.correlate) for mode in ("full", "same", "valid")]
    a, v = np.array([1.0, 2.0, 3.0]), np.array([1.0, -inf])
    wanted = ([1, -inf, -inf, -inf], [1, -inf, -inf], [-inf, -inf],
              [-inf, -inf, -inf, 3], [-inf, -inf, -inf], [-inf, -inf])
    for evaluated in (valued(several, a, v), jit(several)(a, v), valued(lambda a: several(a, v), a)):
        for got, expected in zip(evaluated, wanted, strict=True):
            np.testing.assert_array_equal(got, expected)
    finite = lambda y: np.sum(np.where(np.isfinite(y), y, 0.0))
    by_a, by_v = jit_grad(lambda a, v: sum(map(finite, several(a, v)[::3])), argnums=(0, 1))(a, v)
    np.testing.assert_array_equal(by_a, [1, 0, 1])                      # "full"
    np.testing.assert_array_equal(by_v, [4, 0])


# --- kernels ---------------------------------------------------------------------------------------------------

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 18, 26, 34, 60, 77, 97, 128, 250, 512]


def kernel(lengths, dtype):
    """The transforms of each length, two lines at a time, as one kernel, with the data for it."""
    builder, data, expected = Builder(), [], []

    def enter(name, x, **params):
        value = builder.input(Aval(x.shape, x.dtype), f"x{len(data)}")
        data.append(x)
        expected.append(TABLE[name].evaluate(x.astype(float), **params))
        return TABLE[name](value, **params)
    outputs = []
    for n in lengths:
        outputs.append(enter("dft" if n % 3 else "idft", RNG.normal(size=(2, n, 2)).astype(dtype)))
        outputs.append(enter("rdft", RNG.normal(size=(2, n)).astype(dtype)))
        outputs.append(enter("irdft", RNG.normal(size=(2, n // 2 + 1, 2)).astype(dtype), n=n))
    return Kernel(builder.finish(outputs), tuple(map(argument_type, data))).call, data, expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lengths", [LENGTHS[::2], LENGTHS[1::2]], ids=lambda ns: f"to {ns[-1]}")
def test_kernels_are_as_accurate_as_pocketfft(lengths, dtype):
    """Relative to the norm of the result: a few roundings of its dtype."""
    lengths = lengths if dtype == np.float64 else lengths[2::3]
    call, data, expected = kernel(lengths, dtype)
    for n, got, want in zip(np.repeat(lengths, 3), call(*data), expected, strict=True):
        error = np.linalg.norm(got - want) / np.linalg.norm(want)
        assert error <= (1.5e-16 * (np.log2(n) + 3) if dtype == np.float64 else 1e-7), (n, error)


def test_long_transforms_take_their_roots_as_products():
    n = 1 << 14
    call, data, expected = kernel([n], np.float64)
    for got, want in zip(call(*data), expected, strict=True):
        assert np.linalg.norm(got - want) <= 1.5e-15 * np.linalg.norm(want)


def test_pieces_of_the_routines():
    assert factors(1) == [] and factors(4096) == [8, 8, 8, 8] and factors(2048) == [8, 8, 8, 4]
    assert factors(16) == [4, 4] and factors(2 * 3 * 13) == [2, 3, 13] and factors(17) is None
    assert convolution_length(17) == 36 and convolution_length(1009) == 2048
    k = np.arange(360)
    assert roots(k, 360)[[0, 90, 180, 270]].tolist() == [1, -1j, -1, 1j]
    np.testing.assert_allclose(roots(k, 360), np.exp(-2j * np.pi * k / 360), atol=5e-16)


def test_a_program_of_transforms_and_its_gradient():
    def f(x, z, w):
        power = np.abs(np.fft.rfft(x, axis=0)) ** 2
        smooth = np.fft.irfft(np.fft.rfft(x, 8) * w, 8)
        return (np.sum(power * np.arange(4.0)[:, None]) + np.sum(smooth ** 3) + np.sum(np.angle(np.fft.fft2(z)))
                + np.sum(np.abs(np.fft.ifftn(z * np.exp(1j * x)))) + np.sum(scipy.fft.dct(x) ** 2) + np.sum(
                    np.fft.hfft(z, norm="ortho") * 0.1))
    cache.clear()
    g = jit_grad(f, argnums=(0, 1, 2))
    w = np.array([1, 2j, 0.5, -1, 1j])
    g(X, Z, w)
    x, z = X[::-1].copy(), np.conj(Z)
    same(g(x, z, w * 2), gradient(f, x, z, w * 2, argnums=(0, 1, 2)), 1e-11, 1e-11)
    for x in (X, X.T.copy().T, X[:, ::-1]):                         # in other layouts
        same(jit(lambda x: np.fft.fft(x))(x), np.fft.fft(x), 1e-13, 1e-13)


def test_second_derivatives():
    x = X[0]
    found = jitad.hessian(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(x)
    np.testing.assert_allclose(found, 14 * np.eye(7), atol=1e-12)


# --- errors ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("function", [
    lambda x: np.fft.fft(x, 0), lambda x: np.fft.fft(x, 2, axis=3), lambda x: np.fft.fft(x, norm="unitary"),
    lambda x: np.fft.rfft(1j * x), lambda x: np.fft.irfft(x[:, :1]), lambda x: np.fft.fft2(x, (1, 2), (0,)),
    lambda x: np.convolve(x, x), lambda x: np.correlate(x[0, 0], x[0]),
    lambda x: np.convolve(x[0], x[0, :0]), lambda x: np.correlate(x[0], x[0], "odd"),
    lambda x: scipy.fft.dct(x, norm="odd")])
def test_the_errors_are_numpys(function):
    with pytest.raises(Exception) as expected:
        function(X)
    with pytest.raises(expected.type) as got:
        valued(function, X)
    assert str(got.value).split("'")[0] == str(expected.value).split("'")[0]


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: scipy.fft.dct(1j * x), "scipy.fft.dct of complex values"),
    (lambda x: scipy.fft.dst(1j * x), "scipy.fft.dst of complex values"), (lambda x: scipy.fft.fft(x, plan=1), "plan="),
    (lambda x: scipy.fft.fft2(x, plan=1), "plan=")])
def test_refused(function, words):
    with pytest.raises(UnsupportedOperationError, match=words):
        valued(function, X)
