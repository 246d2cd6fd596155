"""Where NaN and infinity come from: `check_finite` and `debug_nonfinite` name the first operation and its line."""
from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import jitad
from jitad import NonFiniteError, debug_nonfinite, jit, jit_grad, value_and_grad
from jitad.call.compiled import CompiledTape
from jitad.call.transformed import Transformed
from tests.helpers.public import fresh  # noqa: F401

x = np.array([1.0, 0.0, 4.0])
factors = np.array([1.0, np.inf, 2.0])


def at(function, line):
    """The place `line` lines below the first of a function, as messages write it."""
    return re.escape(f"{__file__}:{function.__code__.co_firstlineno + line}")


def refused(g, *args, match, **kwargs):
    with pytest.raises(NonFiniteError, match=match) as caught:
        g.check_finite(*args, **kwargs)
    assert isinstance(caught.value, FloatingPointError) and isinstance(caught.value, jitad.JitadError)
    return str(caught.value)


def logs(x):
    scaled = 2 * x
    y = np.log(scaled)
    return np.sum(y - 1)


def roots(x):
    shifted = x + 0.0
    return np.sum(np.sqrt(shifted))


# --- forward -------------------------------------------------------------------------------------

def test_nothing_is_said_of_finite_results():
    assert jit_grad(logs).check_finite(x + 1) is None
    assert jit(lambda x: [x, {"a": x > 0}]).check_finite(x) is None


def test_the_first_operation_its_operand_and_its_line():
    text = refused(jit_grad(logs), x, match=at(logs, 2))
    assert text.startswith("the value of `logs`") and "is -inf. It arises in `log`" in text
    assert "log(0.0) = -inf at [1]" in text and "np.where" in text


def test_part_of_a_value_of_arrays():
    def several(x):
        return [x, {"a": np.log(x)}]
    assert "part 1 of the value of `several`" in refused(jit(several), x, match=at(several, 1))


def test_overflow_is_told_from_a_bad_domain():
    def overflowing(x):
        return np.sum(np.exp(1000 * x))
    assert "exp(1000.0) = inf at [0]; rescale" in refused(jit_grad(overflowing), x, match=at(overflowing, 1))


def test_zero_over_zero_of_finite_operands():
    def ratio(x):
        return np.sum(x * 0) / np.sum(x - x)
    assert "div(0.0, 0.0) = nan" in refused(value_and_grad(ratio), x, match=at(ratio, 1))


def test_linear_algebra_shows_the_matrix():
    def logdet(A):
        return np.linalg.slogdet(A)[1]
    assert "[[0., 0.], [0., 0.]]" in refused(jit(logdet), np.zeros((2, 2)), match=at(logdet, 1))


def test_an_element_is_followed_through_views_and_products():
    def far(x):
        y = np.log(x).reshape(2, 3).T
        z = y[::-1] @ np.ones(2)
        return np.exp(z)[0]
    found = refused(jit(far), np.array([1.0, 2.0, 3.0, -4.0, 5.0, -6.0]), match=at(far, 1))
    assert "log(-6.0) = nan at [5]" in found


def test_float32():
    assert "log(-1.0)" in refused(jit_grad(logs), -np.full(2, 0.5, np.float32), match=at(logs, 2))


# --- what is not to blame ------------------------------------------------------------------------

def test_what_an_untaken_branch_gives_is_no_cause():
    def guarded(x):
        return np.sum(np.where(x > 0, np.log(x), 0.0))
    assert jit_grad(guarded).check_finite(x) is None

    def mixed(x, y):
        inside = np.sum(np.where(x > 0, np.log(x), 0.0))
        return inside + np.log(y)
    assert "log(-2.0)" in refused(jit_grad(mixed), x, -2.0, match=at(mixed, 2))


def test_an_infinity_of_which_zero_is_made_is_no_cause():
    def fine(x, y):
        return np.sum(np.exp(np.log(x))) + np.log(y)
    g = jit_grad(fine, argnums=1)
    assert g.check_finite(x, 2.0) is None
    assert "log(-2.0)" in refused(g, x, -2.0, match=at(fine, 1))


# --- what came in --------------------------------------------------------------------------------

def test_an_argument_that_has_it_from_the_start():
    text = refused(jit_grad(logs), np.array([1.0, np.nan]), match="Argument `x` is itself nan at \\[1\\]")
    assert "pass finite values" in text
    nested = jit_grad(lambda p: p["a"] * np.sum(p["b"]))
    refused(nested, {"a": 1.0, "b": np.array([[1.0, np.inf]])}, match=r"Argument `p\['b'\]` is itself inf at \[0, 1\]")


def test_a_captured_array_that_has_it_from_the_start():
    refused(jit_grad(lambda x: np.sum(x * factors)), x, match=r"The captured `factors` is itself inf at \[1\]")


def test_a_constant():
    def out_of_range(x):
        return x if x > 0 else -np.inf
    assert "is -inf. It is a constant of the code" in refused(jit_grad(out_of_range), -1.0, match=at(out_of_range, 0))

    def used(x):
        return np.sum(x) * np.inf
    assert "constant of the code, used at" in refused(jit_grad(used), x + 1, match=at(used, 1))


# --- reverse -------------------------------------------------------------------------------------

def test_the_gradient_of_an_operation():
    text = refused(jit_grad(roots), x, match=r"in the gradient of `sqrt` at " + at(roots, 2))
    assert "the gradient with respect to `x` of `roots`" in text and "is inf at [1]" in text
    assert "sqrt(0.0) = 0.0 at [1]" in text


def test_value_first_where_both_are_not_finite():
    assert refused(value_and_grad(logs), -x, match="log").startswith("the value of")


def test_the_second_derivative():
    inner = jit_grad(lambda y: y ** 1.5)

    def curvature(y):
        return inner(y) * 2.0
    refused(jit_grad(curvature), 0.0, match="gradient with respect to `y` of `curvature`")


# --- loops ---------------------------------------------------------------------------------------

def smoothed(x):
    h = 1.0
    for t in range(400):
        h = 0.5 * h + np.sqrt(x[t])
    return h


def test_the_step_of_a_loop():
    data = np.ones(400)
    data[317] = -1
    text = refused(jit_grad(smoothed), data, match=at(smoothed, 3))
    assert "in step 317 (counted from 0) of the loop" in text and "sqrt(-1.0) = nan" in text


def test_the_step_of_a_loop_in_reverse():
    data = np.ones(400)
    data[317] = 0
    text = refused(jit_grad(smoothed), data, match="in the gradient of `sqrt` at " + at(smoothed, 3))
    assert "is inf at [317]" in text and "in step 317" in text


def test_what_is_carried_is_followed_to_the_step_where_it_arose():
    def growing(a):
        for _ in range(500):
            a = a * a + 0.5
        return a
    assert "in step 11 (counted from 0)" in refused(jit_grad(growing), 1.0, match=at(growing, 2))


def test_scan_and_loops_in_loops():
    def body(carry, row):
        def inside(c, z):
            return c + np.log(z), None
        return jitad.scan(inside, carry, row)[0], carry

    def nested(rows):
        return jitad.scan(body, 0.0, rows)[0]
    rows = np.ones((5, 4))
    rows[3, 2] = -1.0
    text = refused(jit_grad(nested), rows, match=r"in step 3 .* in step 2 .* log\(-1.0\)")
    assert re.search(at(body, 2), text)
    rows[3, 2] = np.nan
    refused(jit_grad(nested), rows, match=r"Argument `rows` is itself nan at \[3, 2\]")


# --- the context ---------------------------------------------------------------------------------

def test_every_call_within_is_looked_at_and_none_outside():
    g, compiled = jit_grad(roots), jit_grad(roots).compile(x)
    assert g(x)[1] == np.inf
    with debug_nonfinite():
        np.testing.assert_array_equal(g(x + 1), 0.5 / np.sqrt(x + 1))
        for call in (g, g.value_and_grad, compiled):
            with pytest.raises(NonFiniteError, match=at(roots, 2)):
                call(x)
        with pytest.raises(NonFiniteError, match=at(roots, 2)):
            g(x, out=np.empty(3))
        with debug_nonfinite():
            pass
        with pytest.raises(NonFiniteError):
            g(x=x)
    assert g(x)[1] == np.inf
    assert Transformed.__call__ is Transformed._call
    assert CompiledTape.__call__.__module__ == "jitad.call.compiled"


def test_the_value_alone_may_be_infinite_where_only_the_gradient_is_asked_for():
    def shifted(x):
        return np.sum(x) + np.log(0.0 * x[0])
    with debug_nonfinite():
        with pytest.raises(NonFiniteError, match=at(shifted, 1)):
            jit_grad(shifted)(x)
        assert jit_grad(lambda y: y + 1e308 + 1e308)(1e308) == 1.0


def test_functions_called_while_another_is_recorded():
    inner = jit_grad(lambda y: y ** 3)
    with debug_nonfinite():
        assert jit_grad(lambda y: inner(y) * 2)(1.0) == 12.0


def test_other_threads_are_left_alone():
    g, found = jit_grad(roots), []
    g(x)
    with debug_nonfinite():
        thread = threading.Thread(target=lambda: found.append(g(x)))
        thread.start()
        thread.join()
    assert found[0][1] == np.inf


def test_methods_and_keywords():
    class Model:
        scale = 2.0

        @jit_grad
        def logp(self, x):
            return np.sum(np.log(self.scale * x))
    with pytest.raises(NonFiniteError, match="log"):
        Model().logp.check_finite(x=x)


def test_what_only_the_compiled_order_of_sums_makes_infinite():
    from jitad.call.nonfinite import require_finite

    with pytest.raises(NonFiniteError, match=r"one by one did not.*rescale"):
        require_finite(jit(lambda x: np.sum(x)), np.inf, (x,), {})


@pytest.mark.parametrize(("transform", "words"), [
    (jitad.hvp, "the product with the Hessian for `x` of"), (jitad.hessian, "the block `x_x` of the Hessian of"),
    (jitad.derivative, "the derivative of `result` of"),
    (jitad.second_derivative, "the second derivative of `result` of"),
    (jitad.jacobian, "the block `result_x` of the Jacobian of")], ids=lambda x: getattr(x, "__name__", ""))
def test_every_derivative_has_its_words(transform, words):
    g = transform(lambda x: np.sqrt(x))
    text = refused(g, 0.0, *([1.0] if transform is jitad.hvp else []), match="sqrt")
    assert text.startswith(words)


def test_products_of_derivatives_and_batches():
    with debug_nonfinite(), pytest.raises(NonFiniteError, match=at(roots, 2)):
        jitad.hvp(roots)(x, np.ones(3))
    with debug_nonfinite(), pytest.raises(NonFiniteError, match=r"example 1 of a batch.*in the gradient of `sqrt`"):
        jitad.batch(jit_grad(roots))(np.stack([x + 1, x, x]))
