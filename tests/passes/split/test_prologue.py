"""What depends on data alone is computed once, and the two tapes together are the one."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import jitad
from jitad.passes.split.prologue import split
from jitad.tape.evaluate import GuardMiss, evaluate
from tests.helpers.public import fresh  # noqa: F401

rng = np.random.default_rng(5)
theta, y = rng.normal(size=3), rng.uniform(1, 5, size=40)
counts = rng.poisson(3.0, size=40)
X = rng.normal(size=(40, 3))


def parts(function, *args, free=(0,), asked=jitad.value_and_grad):
    """The split of a tape, after a comparison of both ways to its outputs."""
    tape = asked(function).compile(*args).tape
    found = split(tape, free)
    bound = [x for i, x in enumerate(args) if i not in free]
    computed = evaluate(found.prologue, *bound)
    outputs = evaluate(found.main, *(args[i] for i in free), *(bound[i] for i in found.kept), *computed)
    for got, expected in zip(outputs, evaluate(tape, *args), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    return found


def names(tape):
    return [node.prim.name for node in tape.nodes if node.prim.kind not in ("input", "const", "view")]


def test_transcendental_work_on_data_moves():
    def poisson(b, X, counts):
        eta = X @ b
        return np.sum(counts * eta - np.exp(eta) - special.gammaln(counts + 1.0))

    found = parts(poisson, theta, X, counts)
    assert "gammaln" in names(found.prologue) and "gammaln" not in names(found.main)


def test_reductions_sorts_and_gathers_of_data_move():
    index = np.arange(40)[::-1].copy()
    found = parts(lambda b, y, index: np.sum((np.sort(y)[index] - b[0]) ** 2) * y.mean(), theta, y, index)
    assert not {"sort", "argsort", "gather"} & {*names(found.main)} and found.kept == ()


def test_factorizations_of_data_move():
    K = np.eye(3) + 0.5
    found = parts(lambda b, K: np.sum(np.linalg.solve(K, b) ** 2) + np.linalg.slogdet(K)[1], theta, K)
    assert found.hoisted >= 1


def test_columns_of_a_matrix_become_contiguous():
    found = parts(lambda b, X: np.sum(np.exp(b[0] * X[:, 0] + b[1] * X[:, 2])), theta, X)
    shapes = [found.main.nodes[i].aval.shape for i in found.main.inputs]
    assert found.kept == () and shapes == [(3,), (40,), (40,)]


def test_cheap_work_on_what_is_read_anyway_stays():
    found = parts(lambda b, y: np.sum(y * np.tanh(b[0] * (y - 1))), theta, y)
    assert found.hoisted == 0 and found.kept == (0,)


def test_cheap_work_on_what_is_read_for_nothing_else_moves():
    found = parts(lambda b, y, z: np.sum((y + z) * np.tanh(b[0] * (y + z))), theta, y, y * 2)
    assert found.hoisted == 1 and found.kept == ()


def test_tables_of_pairs_are_not_stored():
    x = rng.normal(size=400)
    found = parts(lambda b, x: np.sum(np.exp(-b[0] ** 2 * (x[:, None] - x[None, :]) ** 2)), theta, x)
    assert found.hoisted == 0


def test_a_tape_of_data_alone():
    found = parts(lambda b, y: np.sum(np.log(y)) + 0 * b[0], theta, y, asked=jitad.jit)
    assert names(found.prologue)


def test_guards_on_data_go_with_the_prologue():
    def f(b, y):
        scale = 2.0 if y.max() > 3 else 1.0
        return np.sum(scale * b) if b[0] < 10 else np.sum(b)

    tape = jitad.value_and_grad(f).compile(theta, y).tape
    found = split(tape, (0,))
    assert (len(found.prologue.guards), len(found.main.guards)) == (1, 1)
    with pytest.raises(GuardMiss):
        evaluate(found.prologue, np.zeros(40))


def test_nothing_moves_without_hoist():
    tape = jitad.value_and_grad(lambda b, y: np.sum(np.log(y) * b[0])).compile(theta, y).tape
    found = split(tape, (0,), hoist=False)
    assert found.hoisted == 0 and names(found.main) == names(tape) and len(found.prologue) == 1


def test_thin_matrices_of_products_want_columns():
    assert parts(lambda b, X: np.sum(np.exp(X @ b)), theta, X).thin(1) == (True,)
    wide = rng.normal(size=(40, 30))
    assert parts(lambda b, X: np.sum(np.exp(X @ b)), rng.normal(size=30), wide).thin(1) == (False,)
    assert parts(lambda b, X: np.sum(np.exp(X @ b)) + np.sum(X[:, :2] * b[0]), theta, X).thin(1)[0] is False
