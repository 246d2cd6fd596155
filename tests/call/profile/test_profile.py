"""`g.profile`: what it says of a function's parts and lines follows from the function; times are of its own clock."""
from __future__ import annotations

import inspect
import io
import re

import numpy as np
import pytest
import rich.console

import jitad
from jitad.call.profile.hints import CHEAPER
from jitad.call.profile.profile import Profile
from jitad.errors import UnsupportedOperationError


def model(theta, X, y, steps):
    eta = X @ theta
    fit = y @ eta - np.sum(np.logaddexp(0.0, eta))
    S = np.eye(3) + 0.1 * np.outer(theta[:3], theta[:3])
    h = 0.1
    for k in range(len(steps)):
        h = np.tanh(theta[0] * h + steps[k])
    return fit + np.linalg.slogdet(S)[1] + h


FIRST = inspect.getsourcelines(model)[1]
COMPUTING = [FIRST + n for n in (1, 2, 3, 6, 7)]


@pytest.fixture(scope="module")
def found() -> Profile:
    rng = np.random.default_rng(0)
    return jitad.value_and_grad(model).profile(
        rng.normal(size=8), rng.normal(size=(500, 8)), rng.normal(size=500), rng.normal(size=300))


def test_times_of_parts_and_of_lines_sum_to_the_whole(found):
    assert found.seconds == sum(part.seconds for part in found.parts) > 0.0
    assert sum(row.seconds for row in found.lines) == pytest.approx(found.seconds)
    assert all(part.seconds >= 0.0 and sum(part.shares.values()) == pytest.approx(1.0) for part in found.parts)
    assert found.call_seconds > 0.0 and found.runs >= 5


def test_every_line_that_computes_is_in_the_table_with_both_sweeps(found):
    rows = {row.line: row for row in found.lines if row.file == __file__}
    assert sorted(rows) == COMPUTING
    assert rows[FIRST + 1].text == "eta = X @ theta"
    assert all(rows[line].forward > 0.0 for line in COMPUTING)
    assert all(rows[line].reverse > 0.0 for line in COMPUTING[1:4])
    assert rows[FIRST + 6].forward_bytes == 300 * 8 * 2 and not rows[FIRST + 6].reverse_bytes     # h and 1 - h**2


def test_parts_say_what_shares_a_loop_what_is_called_and_what_is_moved(found):
    both, = (part for part in found.parts if part.kind == "loop" and part.steps == 500)
    names = " ".join(both.operations)
    assert "logaddexp" in names and "expit" in names              # forward and reverse sweep in one
    assert {where.line for where in both.places} == {FIRST + 1, FIRST + 2}
    assert both.nbytes >= 8 * (500 * 8 + 500)                     # X and y at least
    loops = [part for part in found.parts if part.kind == "scan"]
    assert [part.steps for part in loops] == [300, 300] and {part.lanes for part in loops} == {1}
    assert next(part.routines for part in found.parts if part.kind == "call") == ("factor",)


def test_lanes_are_those_of_the_machine_code():
    part, = jitad.jit(lambda x: np.sum(np.exp(x))).profile(np.linspace(0.0, 1.0, 1000)).parts
    assert part.lanes > 1
    part, = jitad.jit(lambda x, k: np.sum(x[k] ** 2)).profile(np.ones(1000), np.arange(100) // 3).parts
    assert part.kind == "loop"


def test_it_shows_itself_as_text_tables_and_html(found):
    text = str(found)
    assert "in the kernel" in text and re.search(r"test_profile.py:\d+ .*eta = X @ theta", text)
    console = rich.console.Console(width=200, record=True, file=io.StringIO())
    console.print(found)
    assert "eta = X @ theta" in console.export_text()
    page = found._repr_html_()
    assert page.count("rgba(") == 3 * len(found.lines) and "h = 0.1" in page     # all lines, in colour what computes


def test_hints_know_what_is_cheaper():
    def powers(x, p, y):
        return np.sum(x ** p * np.sort(y))
    hints = jitad.value_and_grad(powers).profile(np.ones(99), 2.5, np.sin(np.arange(99.0))).hints
    line = f"test_profile.py:{inspect.getsourcelines(powers)[1] + 1}: "
    assert {f"{line}{CHEAPER[name]}" for name in ("argsort", "pow")} < set(hints)
    assert any(hint.startswith(f"{line}depends on data alone") and "`powers.bind(...)`" in hint for hint in hints)


def test_calls_are_not_touched_and_errors_are_those_of_a_call():
    gradient = jitad.jit_grad(lambda A: np.sum(np.linalg.cholesky(A)))
    with pytest.raises(np.linalg.LinAlgError):
        gradient.profile(-np.eye(2))
    before = gradient(np.eye(2))
    compiles = jitad.cache.info(gradient).compiles
    gradient.profile(np.eye(2))
    assert np.array_equal(gradient(np.eye(2)), before) and jitad.cache.info(gradient).compiles == compiles


def test_what_has_no_kernel_is_refused():
    on_machine = jitad.jit_grad(np.prod).compile(np.ones(3), tier="machine").function
    with pytest.raises(UnsupportedOperationError, match="too long and irregular"):
        on_machine.profile(np.ones(3))
