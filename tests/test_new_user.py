"""What a new user runs into: ends of quantiles, corrupted files, interrupts, objects that convert themselves."""

import copy
import pickle
import signal

import numpy as np
import pytest
from scipy import stats

import jitad
from jitad import TapeFileError, UnsupportedOperationError, jit, jit_grad

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_quantiles_have_a_derivative_by_the_scale(method):
    q = np.array([0.3, 0.5, 0.8])
    law = getattr(stats.norm, method)
    by_location, by_scale = jit_grad(lambda loc, scale: np.sum(law(q, loc, scale)), argnums=(0, 1))(0.2, 1.3)
    assert by_location == 3.0
    assert by_scale == pytest.approx(np.sum(law(q)), rel=1e-14)


def test_quantiles_at_the_ends_are_those_of_scipy():
    q = np.array([-0.1, 0.0, 0.3, 1.0, 1.1, np.nan])
    cases = [(stats.norm, (0.2, 1.3)), (stats.norm, (0.2, -1.0)), (stats.gamma, (-2.0, 0.0, 1.0)),
             (stats.uniform, (1.0, 2.0)), (stats.beta, (2.0, 3.0, 1.0, 2.0))]
    for law, parameters in cases:
        got = jit(lambda q, *p, law=law: (law.ppf(q, *p), law.isf(q, *p)))(q, *parameters)
        np.testing.assert_allclose(got, (law.ppf(q, *parameters), law.isf(q, *parameters)), rtol=1e-12)


def test_the_fraction_moves_with_the_number_at_whole_numbers_too():
    x = np.array([1.5, -1.5, 0.0, -0.0, 3.0, -3.0, np.inf, -np.inf])
    parts = jit(lambda x: np.modf(x))(x)
    for got, expected in zip(parts, np.modf(x), strict=True):
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(np.modf(x)[0]))(x), [1, 1, 1, 1, 1, 1, 0, 0])


def test_a_file_whose_directory_points_before_its_start_is_a_broken_file(tmp_path):
    path = tmp_path / "square.tape"
    jit_grad(lambda x: x * x).compile(1.0).save(path)
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 12:end + 16] = (len(data) * 2).to_bytes(4, "little")          # the size of the directory
    path.write_bytes(bytes(data))
    with pytest.raises(TapeFileError, match="holds no tape"):
        jitad.load(path)
    with pytest.raises(FileNotFoundError):
        jitad.load(tmp_path / "none.tape")


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


def test_a_c_function_is_not_pickled():
    cfunc = jit_grad(lambda x: np.sum(x * x)).compile(np.ones(2)).cfunc
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="belongs to its process"):
            attempt(cfunc)


class Threshold:
    """An object whose truth and number depend on a captured float."""

    def __init__(self, level):
        self.level = level

    def __bool__(self):
        return self.level > 1

    def __float__(self):
        return self.level


def test_the_truth_of_a_captured_object_is_a_branch():
    threshold = Threshold(2.0)
    g = jit_grad(lambda x: x * x if threshold else x)
    assert g(3.0) == 6.0
    threshold.level = 0.5
    assert g(3.0) == 1.0


def test_a_captured_object_that_turns_itself_into_a_number_is_refused():
    threshold = Threshold(2.0)
    with pytest.raises(jitad.ConcretizationError, match=r"float\(\) .* at .*test_new_user.py"):
        jit_grad(lambda x: x * float(threshold))(3.0)


class Series:
    """Looks like a column of a table: an array by request, without arithmetic of its own."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_a_captured_object_that_turns_itself_into_an_array_is_refused():
    series = Series([1.0, 2.0])
    with pytest.raises(UnsupportedOperationError,
                       match=r"operand of type Series, whose __array__ .* at .*test_new_user.py.* pass the array"):
        jit_grad(lambda x: np.sum(x * series))(np.ones(2))


@pytest.mark.parametrize("loop", [
    lambda x: jitad.fori_loop(0, 3, lambda i, c: np.sum(c) + x, 1.0),
    lambda x: jitad.scan(lambda c, v: (np.sum(c) + x, v), 1.0, x)[0],
    lambda x: jitad.while_loop(lambda c: np.sum(c) < 9, lambda c: np.sum(c) + x, 1.0),
    lambda x: jitad.fori_loop(0, 3, lambda i, c: np.stack([c, c]), x),
])
def test_a_carry_that_grows_is_refused(loop):
    """A first value that was made as large as the second would be another: its sum is."""
    message = r"init.* has shape .* keeps its shape \(at .*test_new_user.py:\d+\): start with"
    with pytest.raises(TypeError, match=message):
        jit(loop)(np.array([0.5, 1.5, 2.5]))


def test_branches_of_different_shapes_are_refused():
    with pytest.raises(TypeError, match=r"branches of cond .* shapes \(\) and \(2,\) \(at .*test_new_user.py"):
        jit(lambda x: jitad.cond(x[0] > 0, lambda: 0.0, lambda: x))(np.ones(2))
