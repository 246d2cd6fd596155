"""Pickles: those of version 0.1.0 are read, and those of today name one function of the package alone."""
from __future__ import annotations

import base64
import json
import pickle
import pickletools
import sys
from pathlib import Path

import numpy as np
import pytest

import jitad
from tests.call import pickled_functions
from tests.helpers.public import fresh, same

__all__ = ["fresh"]

OLD = {name: base64.b64decode(text) for name, text in json.loads(
    (Path(__file__).parent / "old_pickles.json").read_text()).items()}
x = np.array([1.0, 2.0])
rows = np.array([[1.0, 2.0], [3.0, 4.0]])

# What is read is called so, and gives that.
CALLS = {
    "decorated": (lambda g: g(x, 2.0), 6 * x**2),
    "options": (lambda g: g(x, 2.0)[1], 9.0),
    "sibling": (lambda g: g(x, 2.0)[0], 18.0),
    "tier": (lambda g: g(x, 2.0), 6 * x**2),
    "plain": (lambda g: g(x, 2.0), 2 * x**2),
    "batch": (lambda g: g(rows, 2.0), 6 * rows**2),
    "batch sibling": (lambda g: g(rows, 2.0)[0], np.array([18.0, 182.0])),
    "jacobian": (lambda g: g(x, 2.0), np.diag(4 * x)),
    "sparse jacobian": (lambda g: g(x, 2.0).toarray(), np.diag(4 * x)),
    "hessian": (lambda g: g(x, 2.0), np.diag(12 * x)),
    "hvp": (lambda g: g(x, 2.0, np.ones(2)), 12 * x),
    "compiled": (lambda g: g(x, 2.0), 6 * x**2),
    "bound": (lambda g: g(x), 6 * x**2),
    "instance": (lambda model: model.logp(x), 6 * x),
    "method": (lambda g: g(x), 6 * x),
    "compiled method": (lambda g: g(x), 6 * x),
    "text": (lambda text: float("return" in text), 1.0),
    "signature": (lambda signature: float(len(signature.leaves)), 2.0),
    "vjp pullback": (lambda pullback: pullback(np.ones(2))[0], 4 * x),
    "linearize": (lambda push: push(np.ones(2), 0.0), 4 * x),
    "elementwise": (lambda f: f(np.array([1.0, -1.0])), np.array([1.0, -2.0])),
    "custom": (lambda f: jitad.grad(f)(x), 3 * x**2),
    "checkpoint": (lambda f: jitad.grad(f)(x, 2.0), 6 * x**2),
    "lazy jacobian": (lambda g: g(x, 2.0) @ np.ones(2), 4 * x),
    "lazy hessian": (lambda g: g(x, 2.0) @ np.ones(2), 12 * x),
    "primitive": (lambda f: jitad.grad(lambda x: np.sum(f(x)))(x), 3 * x**2),
    "opaque": (lambda f: f(x), x**3),
    "implicit": (lambda f: jitad.grad(lambda a: np.sum(f(a)))(x), 0.5 / np.sqrt(x)),
}


@pytest.fixture(autouse=True)
def functions(monkeypatch):
    monkeypatch.setitem(sys.modules, "pickled_functions", pickled_functions)
    monkeypatch.setattr(pickled_functions, "__name__", "pickled_functions")


def test_all_are_looked_at():
    assert set(CALLS) == set(OLD)


@pytest.mark.parametrize("name", CALLS)
def test_pickles_of_the_version_before_are_read(name):
    call, expected = CALLS[name]
    found = pickle.loads(OLD[name])
    same(call(found), expected)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"text", "signature"}))
def test_pickles_name_one_place(name):
    call, expected = CALLS[name]
    written = pickle.dumps(pickle.loads(OLD[name]), protocol=2)
    names = {argument for operation, argument, _ in pickletools.genops(written) if operation.name == "GLOBAL"}
    assert {n for n in names if n.startswith("jitad")} <= {"jitad restored"}
    same(call(pickle.loads(written)), expected)
