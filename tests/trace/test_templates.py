"""Rules that are written again from a template put on the tape what they put there when they run."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.special
import scipy.stats

import jitad.trace.record  # noqa: F401  (fills the tables)
from jitad.trace import templates
from jitad.trace.recorder import Recorder
from jitad.trace.scipy_rules.stats import distributions
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.values.tracer import Tracer
from tests.helpers.cases.functions import TABLE, flat
from tests.helpers.cases.stats import METHODS, MOMENTS, shape_names

NEVER = 10**9


def operands(x):
    """Arrays of one type that are made in different ways: rules that look at the way must see the difference."""
    yield x
    yield x * 1.5
    yield x * 1.25
    if not x.ndim or not x.size:
        return
    yield x[::-1]
    yield np.concatenate([x[1:], x[:1] * 2.0])
    written = x.copy()
    written[0] = x[-1]
    yield written
    yield x.reshape(-1).reshape(x.shape)
    yield np.hypot(x, x * 2.0)
    yield np.concatenate([x, x * 0.5])[:len(x)]
    yield x * 0.0 + np.arange(float(x.size)).reshape(x.shape)


def recorded(function, shapes, calls, monkeypatch):
    """What is on the tape after `function` was called with all operands, with templates after so many calls."""
    monkeypatch.setattr(templates, "CALLS", calls)
    templates.forget()
    recorder, rng = Recorder(), np.random.default_rng(0)
    made = [list(operands(recorder.traced_input(rng.uniform(0.3, 2.9, s), f"x{i}"))) for i, s in enumerate(shapes)]
    results = []
    for args in zip(*made, strict=False):
        try:
            results.append([(r.number, r.weak, r.boxed, r.frozen, r.storage is None) if type(r) is Tracer else type(r)
                            for r in flat(function(*args))])
        except Exception as error:
            results.append((type(error), str(error), getattr(error, "__notes__", ())))
    nodes = [(n.prim.name, n.inputs, tuple(sorted(n.params.items())), n.aval, n.where) for n in recorder.nodes]
    used = sum(type(known) is templates.Template for known in templates._KNOWN.values())
    return (nodes, results, sorted(recorder.guards.values())), used


DENSITIES = [(f"{name}.{method}", getattr(distributions.stand_in(getattr(scipy.stats, name)), method),
              ((5,),) * (len(shape_names(name)) + (method not in MOMENTS))) for name, method in METHODS[::3]]


@pytest.mark.parametrize("table", [TABLE[::3], TABLE[1::3], TABLE[2::3], DENSITIES])
def test_the_tape_is_the_same(table, monkeypatch):
    used = 0
    for label, function, shapes in table:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (nodes, *rest), count = recorded(function, shapes, 0, monkeypatch)
            (expected, *others), _ = recorded(function, shapes, NEVER, monkeypatch)
        assert nodes == expected, label
        assert rest == others, label
        used += count
    assert used > 20


def test_nodes_have_the_line_of_their_own_call(monkeypatch):
    monkeypatch.setattr(templates, "CALLS", 0)
    recorder, softmax = Recorder(), SUBSTITUTES[scipy.special.softmax]
    x = recorder.traced_input(np.ones(3), "x")

    def f():
        return [softmax(x * 2.0),
                softmax(x * 3.0),
                softmax(x * 2.0)]                                   # nodes that are there have their first line
    first, second, third = f()
    lines = [n.where.line - f.__code__.co_firstlineno for n in recorder.nodes if n.prim.name == "exp"]
    assert lines == [1, 2]
    assert first.number == third.number != second.number


def test_zeros_of_either_sign_are_two_options(monkeypatch):
    monkeypatch.setattr(templates, "CALLS", 0)
    recorder = Recorder()
    x = recorder.traced_input(np.array([np.nan, 1.0]), "x")
    signs = [np.signbit(recorder.concrete(np.nan_to_num(x, nan=zero).number)[0]) for zero in (0.0, -0.0, 0.0, -0.0)]
    assert signs == [False, True, False, True]


def test_a_rule_that_asks_for_a_value_runs_each_time(monkeypatch):
    monkeypatch.setattr(templates, "CALLS", 0)
    recorder = Recorder()
    x = recorder.traced_input(np.array([[1.0, -1.0, 2.0], [3.0, 1.0, 1.0]]), "x")
    lengths = [np.flatnonzero(x[i] > 0.0).size for i in (0, 1, 0, 1)]
    assert lengths == [2, 3, 2, 3]
    assert sorted(guard.expected for guard in recorder.guards.values()) == [2, 3]
