"""The checks for users' own tests: they pass what is right, and show where something is wrong."""
from __future__ import annotations

import copy
import subprocess
import sys
import warnings

import numpy as np
import pytest

import jitad
from jitad import cache, jit, jit_grad, value_and_grad
from jitad.tape.types import TABLE
from jitad.testing.checks import APART, CheckFailure, assert_same_as_fresh, check_grads, check_rule
from jitad.testing.differences import slope
from tests.helpers.public import fresh, quadratic, x3, y3

__all__ = ["fresh"]


@pytest.fixture
def planted(monkeypatch):
    """Put a fault into a row of the table."""
    def plant(name, **changes):
        for attribute, value in changes.items():
            monkeypatch.setattr(TABLE[name], attribute, value)
    yield plant
    cache.clear()


def test_the_module_comes_with_jitad_when_it_is_used():
    code = ("import sys, jitad; early = 'jitad.testing' in sys.modules; jitad.testing.check_rule('tanh'); "
            "print(early, hasattr(jitad, 'nothing'))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    with pytest.raises(AttributeError, match="module 'jitad' has no attribute 'nothing'"):
        jitad.nothing                                     # noqa: B018


# --- check_grads -------------------------------------------------------------------------------------------

def test_right_derivatives_pass():
    check_grads(quadratic, (x3, y3))
    check_grads(lambda p, k: {"a": np.exp(p["x"]) * k, "b": (p["s"] ** 2,)}, ({"x": x3, "s": 2.0}, 3), order=1)
    check_grads(lambda x: np.sum(np.sin(x.astype(float))), (x3.astype("f4"),), order=1)
    check_grads(lambda x, n: x * n, (x3, 2), order=1, argnums=(0, 1))
    check_grads(jit_grad(quadratic), (x3, y3), order=1)   # a derivative of a derivative


@pytest.mark.parametrize("seed", [0, 1])
def test_the_directions_are_no_points(seed):
    """What the scale of the point is nothing to has slope 0 along it: a rule that is always zero passed, as directions
    were made of the same numbers as the point."""
    @jitad.custom_gradient
    def unit(x):
        return x / np.sqrt(np.sum(x * x)), lambda ct: (0.0 * x,)

    point = np.random.default_rng(seed).normal(size=5)
    for mode in ("forward", "reverse"):
        with pytest.raises(CheckFailure, match=f"`unit`: {mode} mode"):
            check_grads(unit, (point,), modes=(mode,), order=1, seed=seed)


def test_every_direction_counts():
    """A derivative that is right along the first direction alone does not pass."""
    first = np.random.default_rng((APART, 0)).normal(size=3)
    half = lambda x: x @ x / 2
    wrong = jitad.primitive(half, jvp=lambda tangents, y, x: (first @ tangents[0]) * (x @ first) / (first @ first))
    np.testing.assert_allclose(jitad.jvp(wrong, (x3,), (first,))[1], x3 @ first)
    check_grads(half, (x3,), order=1)
    with pytest.raises(CheckFailure, match="forward mode"):
        check_grads(wrong, (x3,), modes=("forward",), order=1)


def test_third_order_in_one_mode():
    check_grads(lambda t: t**5, (1.5,), order=3, modes=("forward",))


def test_another_point_is_no_mismatch():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_grads(quadratic, (x3, y3), order=1)
        check_grads(quadratic, (x3[:2], y3[:2]), order=1)


def tanh(x):
    return np.tanh(x) * np.array([1.0, 0.0, 1.0])


@pytest.mark.parametrize(("mode", "what"), [("forward", "the tangent"), ("reverse", "the cotangent")])
def test_a_wrong_rule_shows_the_worst_component(planted, mode, what):
    planted("tanh", partials=lambda y, x: (1 - y * y) * 1.01)
    with pytest.raises(CheckFailure) as caught:
        check_grads(tanh, (x3,), modes=(mode,))
    text = str(caught.value)
    place = "result[0]" if mode == "forward" else "argument 0[0]"
    assert text.startswith(f"`tanh`: {mode} mode: {what} is wrong; worst component: {place} is ")
    got, expected = (float(part.split()[0].strip(",;")) for part in (text.split(f"{place} is ")[1],
                                                                      text.split("differences give ")[1]))
    assert got == pytest.approx(1.01 * expected) and "(relative error 0.01)" in text


def test_modes_that_do_not_fit_each_other(planted):
    planted("cumsum", vjp=lambda ct, y, x, axis, reverse: (TABLE["cumsum"](ct, axis=axis, reverse=reverse),))
    check_grads(lambda x: np.cumsum(x), (x3,), modes=("forward",), order=1)
    with pytest.raises(CheckFailure, match="reverse mode: the cotangent is wrong"):
        check_grads(lambda x: np.cumsum(x), (x3,), modes=("reverse",), order=1)


def test_second_order_finds_what_the_first_does_not(planted):
    planted("log", partials=lambda y, x: 1.0 / TABLE["stop_gradient"](x))
    check_grads(lambda x: np.log(x), (x3,), order=1)
    with pytest.raises(CheckFailure, match="forward of forward mode"):
        check_grads(lambda x: np.log(x), (x3,), order=2)


def test_a_kink_is_said_to_be_one():
    with pytest.raises(CheckFailure, match="the differences did not settle: the function may not be smooth here"):
        check_grads(lambda x: np.where(x > 1, x + 1, x), (x3,), modes=("forward",), order=1)


def test_options_of_check_grads():
    refused = [((x3,), {"order": 0}, "order must be 1 or more, not 0"), (x3, {}, "args must be a tuple"),
               ((x3,), {"modes": "forward"}, "modes must be some of"), ((x3,), {"modes": ("back",)}, "modes must be"),
               ((3,), {}, "none of the arguments of `tanh` is made of floats")]
    for args, options, what in refused:
        with pytest.raises(jitad.ArgumentTypeError, match=what):
            check_grads(tanh, args, **options)


def test_rtol():
    check_grads(tanh, (x3,), order=1, rtol=1e-7)
    f = lambda x: np.where(x > 0, 1.001, 1.0) * np.floor(x) * 0 + x * (1 + 1e-5 * (np.floor(x * 0) + 1))
    check_grads(f, (x3 + 0.5,), order=1)


# --- differences ---------------------------------------------------------------------------------------------

def test_the_complex_step_is_taken_where_it_can_be():
    found = slope(lambda x: np.exp(x) * np.sin(x), (x3,), (0,), (np.ones(3),))
    np.testing.assert_allclose(found.value, np.exp(x3) * (np.sin(x3) + np.cos(x3)), rtol=1e-15)
    assert max(e.max() for e in found.error) < 1e-11


def test_differences_where_it_cannot():
    for f, expected in ((lambda x: np.abs(x) ** 3, 3 * x3**2), (lambda x: np.linalg.norm(x), x3 / np.linalg.norm(x3)),
                        (lambda x: np.exp(np.asarray(x, float)), np.exp(x3))):
        found = slope(f, (x3,), (0,), (np.array([1.0, 0.0, 0.0]),))
        np.testing.assert_allclose(np.ravel(found.value)[0], expected[0], rtol=1e-9)
        assert not found.note


def test_conjugates_do_not_deceive_the_complex_step():
    found = slope(lambda x: np.real(x * np.conj(x)), (x3,), (0,), (np.ones(3),))
    np.testing.assert_allclose(found.value, 2 * x3, rtol=1e-9)


# --- check_rule ------------------------------------------------------------------------------------------------

def test_rows_pass():
    for name in ("tanh", "mul", "reduce_sum", "solve", "gather"):
        check_rule(name)
    check_rule(TABLE["exp"])


def test_rows_with_faults(planted):
    planted("cos", partials=lambda y, x: TABLE["sin"](x))
    with pytest.raises(CheckFailure, match=r"cos\(float64\[2, 3\]\): jvp against finite differences: .* worst at"):
        check_rule("cos")
    bare = copy.copy(TABLE["exp"])
    bare.samples = None
    with pytest.raises(CheckFailure, match="row exp has no samples"):
        check_rule(bare)
    for wrong in ("no such row", np.sin):
        with pytest.raises(jitad.ArgumentTypeError, match="is no row of the table"):
            check_rule(wrong)


# --- assert_same_as_fresh ----------------------------------------------------------------------------------------

def test_what_the_cache_serves_is_what_a_fresh_recording_gives():
    k = np.ones(3)
    g = value_and_grad(lambda x, s: np.sum(x**2 * k * s) if x[0] > 0 else np.sum(x))
    points = [(x3, 2.0), (-x3, 2.0), (x3, 3), (x3[:1], 2.0), (x3, 2.0)]
    assert_same_as_fresh(g, points)
    k[1] = 5
    assert_same_as_fresh(g, points[:2])
    assert_same_as_fresh(jit(lambda p: {"a": p["x"] + 1, "n": p["x"] > 2}), [({"x": x3},), ({"x": 1.0},)])
    assert_same_as_fresh(jit_grad(quadratic).compile(x3, y3), [(y3, x3)])
    assert_same_as_fresh(jit(lambda x: np.log(x)), [(np.array([0.0, -1.0, np.inf, np.nan]),)])


class Stale:
    """A compiled function that goes on to give an old result."""

    def __init__(self, g):
        self.function, self.old = g, {}

    def __call__(self, *args):
        return self.old.setdefault(0, self.function(*args))


def test_a_stale_result_is_found(monkeypatch):
    monkeypatch.setattr("jitad.testing.checks.CompiledTape", Stale)
    with pytest.raises(CheckFailure, match=r"`<lambda>`, arguments 1: worst component: result\[2\] is 6.0, a fresh "
                                           r"recording gives 60.0 \(relative error 0.9\)"):
        assert_same_as_fresh(Stale(jit_grad(lambda x: np.sum(x**2))), [(x3,), (10 * x3,)])
    with pytest.raises(CheckFailure, match=r"result is a ndarray of shape \(3,\) and dtype float64; a fresh recording "
                                           r"gives a ndarray of shape \(2,\)"):
        assert_same_as_fresh(Stale(jit_grad(lambda x: np.sum(x**3))), [(x3,), (x3[:2],)])
    with pytest.raises(CheckFailure, match="another structure"):
        assert_same_as_fresh(Stale(jit(lambda p: p)), [({"a": x3},), ({"b": x3},)])


def test_options_of_assert_same_as_fresh():
    with pytest.raises(jitad.ArgumentTypeError, match="is not a function that jitad compiled"):
        assert_same_as_fresh(quadratic, [(x3, y3)])
    with pytest.raises(jitad.ArgumentTypeError, match="entry 0 of args_list is no tuple"):
        assert_same_as_fresh(jit_grad(tanh), [x3])
