"""What a signal handler raises comes through, and what it calls is served, whatever is being done then."""
import signal

import numpy as np
import pytest

from jitad import jit_grad, value_and_grad
from jitad.trace.captures.captures import Captures


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_what_a_signal_handler_raises_while_compiling_comes_through(capfd):
    class Late(Exception):
        pass

    def handler(number, frame):
        raise Late

    before = signal.signal(signal.SIGALRM, handler)
    raised = 0
    try:
        for k in range(12):
            g = jit_grad(lambda x, k=k: np.sum(np.sin(x) * np.exp(x) * np.log1p(x * x)) * k)
            signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.004 * k)
            try:
                g(np.ones(3 + k))
            except Late:
                raised += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            x = np.ones(3 + k)
            slope = np.exp(x) * (np.cos(x) * np.log1p(x * x) + np.sin(x) * (np.log1p(x * x) + 2 * x / (1 + x * x)))
            np.testing.assert_allclose(g(x), slope * k, rtol=1e-12)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert raised >= 2 and "ignored" not in capfd.readouterr().err


x3 = np.array([1.0, 2.0, 3.0])


@jit_grad
def asked(x, y):
    return np.sum(x * x) * y


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_a_handler_calls_while_another_function_is_recorded(monkeypatch):
    seen, struck_at = [], []
    finish = Captures.finish

    def struck(captures):
        struck_at.append(len(seen))
        if len(struck_at) == 1:
            signal.raise_signal(signal.SIGUSR1)
        finish(captures)

    monkeypatch.setattr(Captures, "finish", struck)
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append((asked(x3, 3.0), asked.value(x3, 1.0))))
    try:
        found = value_and_grad(lambda x: np.sum(np.sin(x)))(x3)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found[0] == pytest.approx(np.sum(np.sin(x3)))
    np.testing.assert_allclose(found[1], np.cos(x3))
    assert seen and type(seen[0][0]) is np.ndarray and type(seen[0][1]) is float
    np.testing.assert_allclose(seen[0][0], 6 * x3)
    assert seen[0][1] == 14.0
