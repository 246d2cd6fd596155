"""Failures that user code catches: both ways are compiled code, in whatever order they are met."""
from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.linalg import LinAlgError

import jitad
from jitad import jit, jit_grad
from jitad.trace.catching import may_be_caught
from tests.helpers.failures import (
    ALSO_BAD,
    ALSO_GOOD,
    BAD,
    EYE,
    GOOD,
    B,
    caught_outside,
    follows,
    log_det,
    matrix,
    raised_again,
    singular,
    slope,
)
from tests.helpers.public import compiling, fresh  # noqa: F401

# --- each function, in both orders ---------------------------------------------------------------

OPERATIONS = {
    "cholesky": lambda x: np.linalg.cholesky(matrix(x)),
    "cholesky upper": lambda x: np.linalg.cholesky(matrix(x), upper=True),
    "scipy cholesky": lambda x: scipy.linalg.cholesky(matrix(x), lower=True),
    "solve of a definite matrix": lambda x: scipy.linalg.solve(matrix(x), B, assume_a="pos"),
    "cho_factor": lambda x: scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix(x)), B),
    "solve": lambda x: np.linalg.solve(singular(x), B),
    "solve of a matrix": lambda x: np.linalg.solve(singular(x), EYE),
    "inv": lambda x: np.linalg.inv(singular(x)),
    "scipy inv": lambda x: scipy.linalg.inv(singular(x)),
    "scipy solve": lambda x: scipy.linalg.solve(singular(x), B),
    "solve_triangular": lambda x: scipy.linalg.solve_triangular(
        np.tril(np.ones((3, 3))) * np.array([1.0, (x[0] < 1.5) * x[2], 1.0]), B, lower=True),
    "matrix_power": lambda x: np.linalg.matrix_power(singular(x), -2),
    "batch": lambda x: np.linalg.cholesky(np.stack([EYE, matrix(x)])),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_failure_that_is_caught(operation: Any) -> None:
    def f(x: Any) -> Any:
        try:
            y = operation(x)
        except LinAlgError:
            return -x[1] ** 2
        return np.sum(y * y) + x[1]
    follows(f, [GOOD, BAD, ALSO_GOOD, ALSO_BAD])


@pytest.mark.parametrize("operation", [
    lambda a: np.linalg.eigvalsh(a), lambda a: np.linalg.svd(a, compute_uv=False),
    lambda a: np.linalg.pinv(a), lambda a: np.linalg.lstsq(a, B, rcond=None)[0]],
    ids=["eigvalsh", "svd", "pinv", "lstsq"])
def test_what_does_not_converge(operation: Any) -> None:
    def f(x: Any) -> Any:
        try:
            return np.sum(operation(EYE * x[0] + np.diag([0.0, 1.0, 2.0])) ** 2)
        except LinAlgError:
            return -x[1] ** 2
    nan = np.array([np.nan, 0.3, 1.5])
    for order in ([GOOD, nan], [nan, GOOD]):
        jitad.cache.clear()
        g = jit_grad(f)
        for x in (*order, *order):
            expected = f(x)
            np.testing.assert_allclose(g.value(x), expected, rtol=1e-12)
            if x is GOOD:
                np.testing.assert_allclose(g(x), slope(f, x), rtol=1e-6, atol=1e-6)
            elif np.isfinite(expected):
                np.testing.assert_allclose(g(x), [0.0, -0.6, 0.0])


# --- the forms of try --------------------------------------------------------------------------------

def caught_inside(a: Any) -> Any:
    try:
        return log_det(a)
    except LinAlgError:
        return None


def helper_catches(x: Any) -> Any:
    found = caught_inside(matrix(x))
    return x[1] * x[2] if found is None else found


def by_any(x: Any) -> Any:
    try:
        return log_det(matrix(x))
    except Exception:
        return x[2] ** 2


def bare(x: Any) -> Any:
    try:
        return log_det(matrix(x))
    except:  # noqa: E722
        return x[2] ** 2


def with_else_and_finally(x: Any) -> Any:
    total = x[1]
    try:
        lower = np.linalg.cholesky(matrix(x))
    except LinAlgError:
        total = total * 2.0
    else:
        total = total + np.sum(lower)
    finally:
        total = total * x[2]
    return total


def suppressed(x: Any) -> Any:
    total = x[1]
    with contextlib.suppress(LinAlgError):
        total = total + log_det(matrix(x))
    return total * x[2]


def raised_on(x: Any) -> Any:
    try:
        return log_det(matrix(x))
    except LinAlgError:
        if x[2] > 100.0:
            return x[1]
        raise


def another_class(x: Any) -> Any:
    try:
        return log_det(matrix(x))
    except KeyError:
        return x[1]


def nested(x: Any) -> Any:
    try:
        try:
            return log_det(matrix(x))
        except LinAlgError:
            return log_det(matrix(x / 2.0))
    except LinAlgError:
        return x[1] ** 2


def cleaned_up(x: Any) -> Any:
    with np.errstate(all="ignore"):
        lower = np.linalg.cholesky(matrix(x))
    return np.sum(lower)


@pytest.mark.parametrize("f", [helper_catches, caught_outside, by_any, bare, with_else_and_finally, suppressed],
                         ids=lambda f: f.__name__)
def test_forms_of_try(f: Any) -> None:
    follows(f, [GOOD, BAD, ALSO_GOOD, ALSO_BAD])


@pytest.mark.parametrize("f", [raised_again, raised_on, another_class, cleaned_up], ids=lambda f: f.__name__)
def test_what_is_raised_after_all(f: Any) -> None:
    follows(f, [GOOD, BAD, ALSO_GOOD, ALSO_BAD], ways=1)


def test_three_ways() -> None:
    follows(nested, [GOOD, np.array([1.2, 0.3, 1.5]), BAD, ALSO_GOOD], ways=3)


def test_a_failure_that_nothing_catches_after_one_that_is_caught() -> None:
    def f(x: Any) -> Any:
        try:
            first = log_det(matrix(x))
        except LinAlgError:
            first = x[1]
        return first + np.sum(np.linalg.solve(EYE * x[2], B))
    follows(f, [GOOD, BAD, GOOD * [1, 1, 0], BAD * [1, 1, 0]])


def test_a_failure_before_the_try_is_not_caught_by_it() -> None:
    def f(x: Any) -> Any:
        lower = np.linalg.cholesky(matrix(x))
        try:
            return np.sum(np.linalg.cholesky(lower @ lower.T))
        except LinAlgError:
            return x[1]
    for order in ([GOOD, BAD], [BAD, GOOD]):
        g = jit_grad(f)
        for x in order:
            if x is BAD:
                with pytest.raises(LinAlgError, match="not positive definite"):
                    g(x)
            else:
                np.testing.assert_allclose(g(x), slope(f, x), rtol=1e-6, atol=1e-6)
        jitad.cache.clear()


def unread(x: Any) -> Any:
    np.linalg.cholesky(matrix(x))
    return x[1] ** 2


def unread_and_caught(x: Any) -> Any:
    try:
        np.linalg.cholesky(matrix(x))
    except LinAlgError:
        return -x[2] ** 2
    return x[1] ** 2


def test_a_factor_that_nothing_reads_fails_all_the_same() -> None:
    follows(unread, [GOOD, BAD, ALSO_GOOD, ALSO_BAD], ways=1)
    follows(unread_and_caught, [GOOD, BAD, ALSO_GOOD, ALSO_BAD])


# --- loops ---------------------------------------------------------------------------------------------

def jitter(x: Any) -> Any:
    a = matrix(x)
    for k in range(6):
        try:
            lower = np.linalg.cholesky(a + 10.0 ** (k - 3) * EYE)
            break
        except LinAlgError:
            continue
    else:
        return -np.inf
    return np.sum(np.log(np.diag(lower))) + x[1]


def test_jitter_until_it_succeeds() -> None:
    points = [np.array([a, 0.3, 1.5]) for a in (0.2, 0.74, 0.3, 0.75, 1.0, 5.0)]
    ways = 4                                             # k = 0, 2, 3 and 4
    for order in (points, points[::-1]):
        jitad.cache.clear()
        g = jit_grad(jitter)
        with compiling(ways):
            for x in (*order, *order):
                value, gradient = g.value_and_grad(x)
                np.testing.assert_allclose(value, jitter(x), rtol=1e-12)
                np.testing.assert_allclose(gradient, slope(jitter, x), rtol=1e-6, atol=1e-6)
    assert g.value(np.array([1e3, 0.3, 1.5])) == -np.inf and not g(np.array([1e3, 0.3, 1.5])).any()


def test_each_group_has_its_own_try() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for scale in (1.0, 2.0, 4.0):
            try:
                total = total + log_det(matrix(x * scale))
            except LinAlgError:
                total = total - x[1] * scale
        return total
    follows(f, [np.array([a, 0.3, 1.5]) for a in (0.1, 0.2, 0.4, 1.0, 0.15)], ways=4)


def filtered(x: Any) -> Any:
    """A recursion whose state is solved for in each step; fails where x[0] is large."""
    state, p, total = x, EYE, 0.0
    for t in range(60):
        p = EYE * 2.0 + 0.5 * p - x[0] * np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, t / 30.0]])
        lower = np.linalg.cholesky(p)
        state = np.linalg.solve(p, state + B)
        total = total + state @ B + np.sum(np.log(np.diag(lower)))
        p = EYE + 0.1 * lower @ lower.T
    return total


def filtered_or_not(x: Any) -> Any:
    try:
        return filtered(x)
    except LinAlgError:
        return -x[1] ** 2


def test_a_loop_inside_of_a_try_is_still_a_loop() -> None:
    assert len(jit_grad(filtered_or_not).compile(GOOD).tape) < 250
    assert "cholesky_fails" not in jit(filtered_or_not).compile(GOOD).source
    follows(filtered_or_not, [GOOD, np.array([9.0, 0.3, 1.5]), ALSO_GOOD, np.array([8.0, 0.3, 1.5])])


def test_a_failure_of_a_later_step_is_another_way() -> None:
    late = np.array([2.0, 0.3, 1.5])
    with pytest.raises(LinAlgError):
        filtered(late)
    np.linalg.cholesky(EYE * 2.5 - 2.0 * np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))   # step 0
    follows(filtered_or_not, [GOOD, late, ALSO_GOOD])


# --- after a body, of elements or of a loop, that has been recorded ---------------------------------

def _no_number(t: Any) -> Any:
    raise ValueError("no number")


def _tries_mapping(x: Any) -> None:
    with contextlib.suppress(ValueError):
        np.vectorize(_no_number)(x)


BODIES = {
    "vectorize": lambda x: np.vectorize(lambda t: t * t if t > 0 else -t)(x),
    "raises": _tries_mapping,
    "scan": lambda x: jitad.scan(lambda c, v: (c + v, c), 0, x),
    "cond": lambda x: jitad.cond(x[1] > 0, np.sum, np.prod, x),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_caught_after_a_body(body: Any) -> None:
    def f(x: Any) -> Any:
        body(x)
        try:
            return np.sum(np.linalg.cholesky(matrix(x)))
        except LinAlgError:
            return -x[1] ** 2
    follows(f, [GOOD, BAD])


# --- where nothing catches, nothing is asked ---------------------------------------------------------

def test_outside_of_any_try_there_is_no_guard() -> None:
    def f(x: Any) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            lower = np.linalg.cholesky(matrix(x))
        try:
            scale = float(len(lower))
        except LinAlgError:
            scale = 0.0
        return np.sum(lower) * scale
    try:
        assert not jit(f).compile(GOOD).tape.guards
    except LinAlgError:
        pytest.fail("the call's own try is not the function's")


def places(*managers: Any) -> list[bool]:
    """Whether what is raised would be caught: in a try, a handler, an else, a finally, and with these managers."""
    found = []
    try:
        found.append(may_be_caught(CODE))
        raise ValueError
    except ValueError:
        found.append(may_be_caught(CODE))
    try:
        pass
    except ValueError:
        raise
    else:
        found.append(may_be_caught(CODE))
    with contextlib.suppress(ValueError):
        found.append(may_be_caught(CODE))
    with np.errstate(all="ignore"):
        found.append(may_be_caught(CODE))
    with np.errstate(all="ignore"), contextlib.suppress(ValueError):
        found.append(may_be_caught(CODE))
    found += [may_be_caught(CODE) for _ in range(1)] + list(may_be_caught(CODE) for _ in range(1))
    return found


def asked() -> list[bool]:
    return places()


CODE = asked.__code__


def test_what_counts_as_catching() -> None:
    assert asked() == [True, False, False, True, False, True, False, False]
