"""Convolutions, trends, smoothing, other rates and spectra of scipy.signal."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import signal

from jitad import jit
from tests.helpers.solvers import together

RNG = np.random.default_rng(4)
LINE, KERNEL = RNG.normal(size=12), RNG.normal(size=4)
PLANE, MASK = RNG.normal(size=(6, 7)), RNG.normal(size=(3, 4))
X, Y = RNG.normal(size=41), RNG.normal(size=38)
MODES = ("full", "same", "valid")

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def test_lines():
    together([*(lambda x, k, f=f, m=m: f(x, k, m) for f, m in product(
        (signal.convolve, signal.correlate, signal.fftconvolve, signal.oaconvolve), MODES)),
        *(lambda x, k, f=f, m=m: f(k, x, m) for f, m in product((signal.convolve, signal.correlate), MODES)),
        lambda x, k: signal.correlate(x, k, method="fft")], LINE, KERNEL)


def test_planes():
    together([*(lambda x, k, f=f, m=m: f(x, k[:2, :3], m) for f, m in product(
        (signal.convolve, signal.correlate, signal.fftconvolve), MODES)),
        lambda x, k: signal.fftconvolve(x, k[:1, :3], axes=1), lambda x, k: signal.fftconvolve(x, k[:, :1], axes=[0])],
        PLANE, MASK)


def test_planes_beyond_their_edges():
    together([*(lambda x, k, c, f=f, m=m, b=b: f(x, k, m, b, c) for f, m, b in product(
        (signal.convolve2d, signal.correlate2d), MODES[:2], ("fill", "wrap", "symm"))),
        *(lambda x, k, c, f=f: f(k, x, "valid") for f in (signal.convolve2d, signal.correlate2d))], PLANE, MASK, 0.5)


def test_smoothing_and_other_rates():
    together([lambda x: signal.detrend(x, bp=[10, 25]), lambda x: signal.detrend(x, type="constant"),
              *(lambda x, m=m: signal.savgol_filter(x, 7, 2, mode=m) for m in ("mirror", "interp", "wrap")),
              lambda x: signal.savgol_filter(x, 6, 3, 1, 0.5), lambda x: np.abs(signal.hilbert(x)),
              lambda x: signal.hilbert(x, 30).imag, *(lambda x, n=n: signal.resample(x, n) for n in (20, 41, 60)),
              lambda x: signal.resample(x, 20, window="hamming"), lambda x: signal.upfirdn(x[:5], x, 3, 2),
              lambda x: signal.resample_poly(x, 3, 2), lambda x: signal.decimate(x, 2),
              lambda x: signal.decimate(x, 3, ftype="fir")], X)


def parts(found):
    return np.concatenate([np.ravel(found.real), np.ravel(found.imag)])


def test_spectra():
    cut = {"nperseg": 16, "detrend": "linear"}
    together([lambda x, y: signal.welch(x, 2.0, **cut)[1], lambda x, y: parts(signal.csd(x, y, nperseg=15, nfft=20)[1]),
              lambda x, y: signal.welch(x, window="hamming", average="median", nperseg=12, return_onesided=False)[1],
              lambda x, y: signal.periodogram(x, nfft=50, scaling="spectrum")[1],
              lambda x, y: signal.coherence(x[:38], y, nperseg=10)[1], lambda x, y: parts(signal.stft(x, **cut)[2]),
              lambda x, y: signal.spectrogram(np.stack([x, x * x]), axis=1, nperseg=8, mode="magnitude")[2],
              lambda x, y: signal.spectrogram(np.stack([y, y * y]).T, axis=0, **cut)[2]], X, Y)


def test_frequencies_and_times_are_those_of_scipy():
    for found, expected in zip(jit(lambda x: signal.stft(x, 3.0, nperseg=10))(X)[:2],
                               signal.stft(X, 3.0, nperseg=10)[:2], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: signal.convolve(x, np.eye(2)), "same dimensionality"),
    (lambda x: signal.convolve(x, x, "some"), "Acceptable mode flags"),
    (lambda x: signal.convolve2d(x, x), "must both be 2-D"),
    (lambda x: signal.savgol_filter(x[:5], 7, 2), "less than or equal to the size of x"),
    (lambda x: signal.welch(x, nperseg=8, noverlap=8), "noverlap must be less"),
    (lambda x: signal.welch(x, nperseg=8, detrend=np.sin), r"scipy.signal.welch with a function .*test_convolutions"),
    (lambda x: signal.convolve(x + 1j, x), r"scipy.signal.convolve of complex arrays at .*test_convolutions")])
def test_what_is_refused(call, message):
    with pytest.raises(Exception, match=message):
        jit(call)(X)
