"""``is`` of arguments: what Python says for this call, in value and derivative; code that asks nothing pays nothing."""
from __future__ import annotations

import linecache
import operator
from dataclasses import dataclass

import numpy as np
import pytest

import jitad

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
P, Q, DATA, MISSING = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), object()
HALF, PAIR, TEXT, SAME = 2.5, (P, Q), "ab", "".join(["a", "b"])


@dataclass
class Two:
    a: object
    b: object


TWO = Two(1.0, 2.0)


def leaves(a, b):
    return np.sum(a * b) * (10.0 if a is b else 1.0)


def captured(a):
    return np.sum(a) * (10.0 if a is DATA else 1.0)


def inside(p):
    return np.sum(p["x"]) * (10.0 if p["x"] is not p["y"][0] else 1.0)


def sentinel(a, b=MISSING):
    return np.sum(a) * (10.0 if b is MISSING else 1.0)


def by_operator(a, b):
    return np.sum(a) * (10.0 if operator.is_(a, b) else 1.0)


def containers(a, b):
    return np.sum(a[0]) * (10.0 if a is b else 1.0)


def instances(c):
    return c.a * c.b * (10.0 if c is TWO else 1.0)


def elsewhere(a, b):
    same = lambda u: u is b
    return np.sum(a) * sum(1.0 for v in (a, DATA) if same(v))


def texts(a, m, n):
    return np.sum(a) * (10.0 if m is n else 1.0)


def in_a_loop(x, a, b):
    s = 0.0
    for v in x:
        if v > 1.5:
            s = s + (10.0 if a is b else v)
    return s


CALLS = {
    leaves: [(P, P), (P, Q), (HALF, HALF), (HALF, float("2.5"))], captured: [(P,), (DATA,)],
    inside: [({"x": P, "y": [P]},), ({"x": P, "y": [Q]},)], sentinel: [(P,), (P, Q), (P, P)],
    by_operator: [(P, P), (P, Q)], containers: [(PAIR, PAIR), (PAIR, (P, Q))], instances: [(TWO,), (Two(1.0, 2.0),)],
    elsewhere: [(P, Q), (P, P), (P, DATA), (DATA, DATA)], texts: [(P, TEXT, TEXT), (P, TEXT, SAME)],
    in_a_loop: [(P, P, P), (P, P, Q)]}


@pytest.mark.parametrize("f", CALLS, ids=lambda f: f.__name__)
def test_calls_in_turn(f):
    compiled = jitad.jit(f)
    for args in [*CALLS[f], *CALLS[f], *CALLS[f][::-1]]:
        np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-12)
    assert jitad.cache.info(f).compiles <= len(CALLS[f])


def test_derivatives_know_one_object_apart():
    gradients, first = jitad.jit_grad(leaves, argnums=(0, 1)), jitad.jit_grad(leaves)
    for b in (P, Q, P):
        k = 10.0 if b is P else 1.0
        np.testing.assert_allclose(gradients(P, b), (k * b, k * P))
        np.testing.assert_allclose(first(P, b), k * b)
    inner = jitad.jit(lambda x: np.sum(jitad.jit_grad(leaves)(x, x)))
    np.testing.assert_allclose(inner(P), 10 * np.sum(P))


def test_examples_of_a_batch_are_objects_of_their_own():
    X = np.arange(6.0).reshape(2, 3)
    each = jitad.batch(jitad.jit(leaves))
    np.testing.assert_allclose(each(X, X), [leaves(a, b) for a, b in zip(X, X, strict=True)])
    shared = jitad.batch(jitad.jit(lambda x, a, b: np.sum(x) * (10.0 if a is b else 1.0)), in_axes=(0, None, None))
    for b, k in ((P, 10), (Q, 1), (P, 10)):
        np.testing.assert_allclose(shared(X, P, b), k * X.sum(1))


def test_bound_data():
    g = jitad.jit_grad(lambda t, a, b: np.sum(t * a) * (10.0 if a is b else 1.0))
    np.testing.assert_allclose(g.bind(P, P)(Q), 10 * P)
    np.testing.assert_allclose(g.bind(P, Q)(Q), P)
    free = jitad.jit_grad(leaves, argnums=(0, 1)).bind()
    for b, k in ((P, 10), (Q, 1), (P, 10)):
        np.testing.assert_allclose(free(P, b)[0], k * b)


def test_the_warning_names_what_was_asked():
    g = jitad.jit(lambda a, p: np.sum(a) * (2.0 if a is p["x"] else 1.0))
    g(P, {"x": Q})
    with pytest.warns(jitad.TapeMismatchWarning, match=r"`a is p\['x'\]`: False -> True"):
        g(P, {"x": P})


def test_a_file_cannot_tell(tmp_path):
    with pytest.raises(jitad.TapeFileError, match="compares arguments by `is`"):
        jitad.jit(leaves).compile(P, Q).save(tmp_path / "tape")


def test_without_source():
    text = "def f(a, b):\n    return np.sum(a) * (2.0 if a is b else 1.0)\n"
    assert not linecache.getlines("<nowhere>")
    namespace = {"np": np}
    exec(compile(text, "<nowhere>", "exec"), namespace)
    g = jitad.jit(namespace["f"])
    assert g(P, Q) == 6.0
    with pytest.raises(jitad.CaptureError, match=r"source is not at hand, and two arguments of `f` are one object"):
        g(P, P)
    assert g(P, Q) == 6.0


def test_code_that_asks_nothing_is_called_without_python():
    plain, asking = jitad.jit(lambda a, b: a @ b), jitad.jit(lambda a, b: a @ b if a is not b else 0.0)
    for g in (plain, asking):
        g(P, Q)
    assert type(plain._call).__name__ == "builtin_function_or_method" and type(asking._call).__name__ == "function"
