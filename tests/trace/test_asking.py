"""What recorded code asks of its values: their class in a `match`, their text, and what it prints."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import jitad
from jitad import jit, jit_grad, scan
from tests.helpers.public import compiling, fresh  # noqa: F401


def by_class(x):
    match x:
        case int():
            return x * 2
        case float() | np.float32():
            return x * 5
        case np.ndarray():
            return np.sum(x) * 7
        case _:
            return x * 100


@pytest.mark.parametrize("x", [3, 1.5, np.float64(1.5), np.float32(1.5), np.array(1.5), np.array([1.5, 2.0])])
def test_class_patterns(x):
    assert jit(by_class)(x) == by_class(x)


def test_class_patterns_with_values_and_within_others():
    def nested(x, n):
        match (x, {"n": n}):
            case (float(v), {"n": int(k)}) if v > 1:
                return v * k
            case (float(), _):
                return x * 10.0
    for x in (1.5, 0.5):
        assert jit(nested)(x, 3) == nested(x, 3)


def test_value_and_sequence_patterns():
    def by_value(x):
        match x:
            case 1.0:
                return x * 2
            case [a, b]:
                return a * b
            case _:
                return x * 3
    for x in (1.0, 2.0, [3.0, 4.0]):
        assert jit(by_value)(x) == by_value(x)


@pytest.mark.parametrize("text", [str, repr, format, lambda x: f"{x}", lambda x: f"{x!r}", lambda x: f"{x:.3f}",
                                  lambda x: f"{[x]}", "{:.1f}".format])
def test_a_text_is_that_of_the_number(text):
    def by_text(x):
        return x * len(text(x))
    g = jit_grad(by_text)
    for x in (1.5, 1.5, -1.25, 123456.789, np.nan):
        assert g(x) == len(text(x))


def test_the_text_of_arrays_and_numpy_numbers():
    def by_text(x):
        return np.sum(x) * len(str(x)) + x[0] * len(repr(x[0]))
    for x in (np.array([1.5, 2.0]), np.array([-0.0, 0.125]), np.array([0.0, 0.125])):
        np.testing.assert_allclose(jit(by_text)(x), by_text(x))


def test_errors_of_the_function_say_the_number():
    def checked(x):
        if x < 0:
            raise ValueError(f"negative: {x}, {x:.1f}, {x!r}")
        return x * 2
    g = jit_grad(checked)
    assert g(1.0) == 2
    for x in (-1.25, np.float64(-2.5)):
        with pytest.raises(ValueError) as expected:
            checked(x)
        with pytest.raises(ValueError) as caught:
            g(x)
        assert str(caught.value) == str(expected.value)


def test_what_is_printed_does_not_matter_to_the_tape(capsys):
    def printing(x):
        print("x is", x, end="!")
        return x * 2.0
    g = jit_grad(printing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with compiling(1):
            assert g(1.5) == g(2.5) == 2
    assert capsys.readouterr().out == "x is 1.5!"


def test_in_the_body_of_a_loop_there_is_no_text(capsys):
    def body(carry, x):
        print(carry)
        return carry + len(str(x)), None
    with pytest.raises(jitad.ConcretizationError, match="body of a scan"):
        jit(lambda xs: scan(body, 0.0, xs)[0])(np.ones(3))
    assert "traced" in capsys.readouterr().out
