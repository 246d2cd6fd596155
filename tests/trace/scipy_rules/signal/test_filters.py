"""Recursive filters of scipy.signal: values and derivatives by coefficients, signals and first states."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from jitad import hessian, jacobian, jit, value_and_grad
from tests.helpers.solvers import together

RNG = np.random.default_rng(3)
X, LINES = RNG.normal(size=40), RNG.normal(size=(3, 30))
B, A = signal.butter(3, 0.2)
SOS = signal.butter(4, 0.3, output="sos")

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def with_ones(s):
    """Sections, of which one column is always one."""
    return np.concatenate([s[:, :3], np.ones((s.shape[0], 1)), s[:, 3:]], axis=1)


def test_one_filter_by_coefficients_and_states():
    together([lambda x, b, a: signal.lfilter(b, a, x), lambda x, b, a: signal.lfilter(b, 1.0, x),
              lambda x, b, a: signal.lfilter([1.0], a, x), lambda x, b, a: signal.lfilter(b, [2.0], x, zi=b[1:])[0],
              lambda x, b, a: signal.lfilter(b, a, x, zi=signal.lfilter_zi(b, a) * x[0])[1],
              lambda x, b, a: signal.lfilter(b, a, x, zi=signal.lfiltic(b, a, x[:3], x[3:5]))[0],
              lambda x, b, a: signal.filtfilt(b, a, x), lambda x, b, a: signal.deconvolve(x[:6], a)[0],
              lambda x, b, a: signal.filtfilt(b, a, x, padtype="even", padlen=5),
              lambda x, b, a: signal.filtfilt([0.5], a, x, padtype="constant")], X, B, A)


def test_sections_and_axes():
    together([lambda x, s: signal.sosfilt(with_ones(s), x, axis=0), lambda x, s: signal.sosfiltfilt(with_ones(s), x),
              lambda x, s: signal.sosfilt(SOS, x[0], zi=signal.sosfilt_zi(with_ones(s)) * x[0, 0])[1],
              lambda x, s: signal.lfilter(B, A, x, axis=0), lambda x, s: signal.lfilter(s[0, :3], 2.0, x, axis=0),
              lambda x, s: signal.lfilter(B, A, x, zi=x[:, :1] * B[1:])[1]], LINES, np.delete(SOS, 3, 1))


def test_designs_by_their_frequencies():
    together([lambda w: signal.butter(3, w)[1], lambda w: signal.butter(3, w, "high", output="sos"),
              lambda w: signal.cheby1(5, 1.0, w, output="sos"), lambda w: signal.ellip(3, 1.0, 30.0, w)[0],
              lambda w: np.concatenate(signal.butter(2, [w, 3.0 * w], "band")),
              lambda w: signal.butter(3, [w, 6.0 * w], "band", output="sos", fs=3.0),
              lambda w: signal.ellip(3, 0.5, 40.0, [w, 3.0 * w], "stop", output="sos"),
              lambda w: signal.butter(2, w, fs=1.5)[0],
              lambda w: np.concatenate(signal.cheby2(2, 20.0, np.array([w, 2.0 * w]), "stop")),
              lambda w: np.abs(signal.freqz(*signal.butter(2, w), 16)[1]),
              lambda w: np.real(signal.butter(2, w, output="zpk")[1])], 0.2)


def test_second_derivatives_and_single_precision():
    def loss(c):
        return np.sum(signal.lfilter([1.0], np.concatenate([[1.0], c]), X) ** 2)
    c, step = np.array([-0.5, 0.2]), 1e-6
    slope = value_and_grad(loss)
    by_steps = [(slope(c + d)[1] - slope(c - d)[1]) / (2 * step) for d in step * np.eye(2)]
    np.testing.assert_allclose(hessian(loss)(c), by_steps, rtol=1e-6)
    np.testing.assert_allclose(jacobian(lambda x: signal.sosfilt(SOS, x))(X[:7]), signal.sosfilt(SOS, np.eye(7)).T,
                               atol=1e-12)
    x = X.astype(np.float32)
    y = jit(lambda x: signal.lfilter(B.astype(np.float32), A.astype(np.float32), x))(x)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, signal.lfilter(B, A, x), atol=1e-5)


def test_the_gradient_of_a_filter_is_the_filter_backwards():
    y = RNG.normal(size=X.size)
    _, gradient = value_and_grad(lambda x: np.sum(y * signal.lfilter(B, A, x)))(X)
    np.testing.assert_allclose(gradient, signal.lfilter(B, A, y[::-1])[::-1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: signal.lfilter(B, A, x, zi=np.zeros(5)), "expected"),
    (lambda x: signal.lfilter(B, A[None], x), "1d array"),
    (lambda x: signal.sosfilt(SOS[:, :5], x), "n_sections, 6"),
    (lambda x: signal.filtfilt(B, A, x[:9]), "greater than padlen"),
    (lambda x: signal.filtfilt(B, A, x, method="gust"), r"scipy.signal.filtfilt with method='gust' at .*test_filters"),
    (lambda x: signal.butter(x[:2], 0.3), r"scipy.signal.butter with a traced order"),
    (lambda x: signal.butter(2, 1.0 + x[0] ** 2), "critical frequencies"),
    (lambda x: signal.butter(2, 0.2 + 0.0 * x[0], analog=True, output="sos"), "output='ba'"),
    (lambda x: signal.find_peaks(x), r"scipy.signal.find_peaks at .*test_filters")])
def test_what_is_refused(call, message):
    with pytest.raises(Exception, match=message):
        jit(call)(X)
