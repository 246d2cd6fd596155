"""What a signal handler raises comes through, whatever is being done then."""
import signal

import numpy as np
import pytest

from jitad import jit_grad


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
