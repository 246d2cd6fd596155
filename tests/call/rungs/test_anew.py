"""Transforms that are applied anew in each call have the shortcut of the code, bound to the function at hand."""
from __future__ import annotations

import copy
import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import jitad
from jitad import cache, jit_grad, value_and_grad

Q = np.array([0.5, -1.0, 2.0])


def energy(q, data, power=2):
    return np.sum((data - q[0]) ** power) + q @ q


class Model:
    def __init__(self, data, power=2):
        self.data, self.power = data, power

    def energy(self, q):
        return np.sum((self.data - q[0]) ** self.power) + q @ q


def closure(data, power):
    return lambda q: np.sum((data - q[0]) ** power) + q @ q


def calling(data, power):
    return lambda q: energy(q, data, power)


def calling_local(data, power):
    def loss(q):
        return np.sum((data - q[0]) ** power)
    return lambda q: loss(q) + q @ q


def calling_method(data, power):
    model = Model(data, power)
    return lambda q: model.energy(q)


def default(data, power):
    def loss(q, data=data, *, power=power):
        return np.sum((data - q[0]) ** power) + q @ q
    return loss


def method(data, power):
    return Model(data, power).energy


def partial(data, power):
    return functools.partial(energy, data=data, power=power)


def partial_place(data, power):
    def loss(data, q):
        return np.sum((data - q[0]) ** power) + q @ q
    return functools.partial(loss, data)


def abroad(data, power):
    return energy_of(data, power, lambda e, q: e + q @ q)


def energy_of(data, power, combine):
    return lambda q: combine(np.sum((data - q[0]) ** power), q)


MAKERS = [closure, calling, calling_local, calling_method, default, method, partial, partial_place, abroad]


def expected(data, power):
    gradient = 2 * Q
    gradient[0] -= np.sum(power * (data - Q[0]) ** (power - 1))
    return np.sum((data - Q[0]) ** power) + Q @ Q, gradient


def is_lazy(g):
    return "_given" in vars(g)


def served(f, data, power):
    """Whether an unbound shortcut serves the call, whose result is right in any case."""
    g = value_and_grad(f)
    quick = is_lazy(g)
    value, gradient = g(Q)
    np.testing.assert_allclose(value, expected(data, power)[0])
    np.testing.assert_allclose(gradient, expected(data, power)[1])
    return quick and is_lazy(g)


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_another_function_of_the_code_is_served_with_its_own_captures(make):
    rng = np.random.default_rng(0)

    def call(size, power):
        data = rng.normal(size=size)
        return served(make(data, power), data, power)
    call(4, 2)
    assert call(4, 2), "bound to what it reads"
    assert not call(5, 2), "another shape is another tape"
    assert not call(4, 3), "another power too"
    known = cache.info(make(np.zeros(4), 2)).compiles
    assert all(call(*case) for case in [(4, 2), (5, 2), (4, 3)] * 3), "each is remembered"
    assert cache.info(make(np.zeros(4), 2)).compiles == known


def same(a, b):
    return lambda q: np.sum(q * a) + (np.sum(q) if a is b else 0.0)


def pair(a, b):
    def loss(a, b, q):
        return np.sum(q * a) - np.sum(q * b)
    return functools.partial(loss, a, b)


def twice(f, g):
    return lambda q: f(q) - g(q)


def scaled(by):
    return lambda q: np.sum(q * by)


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
@pytest.mark.parametrize("make", [same, pair, lambda a, b: twice(scaled(a), scaled(b))])
def test_what_was_one_object_and_is_two_is_told_apart(make):
    a, b = np.ones(3), np.full(3, 5.0)
    for first, second in [(a, a), (a, b), (b, a), (a, a), (b, b), (a, b)]:
        f = make(first, second)
        value, gradient = value_and_grad(f)(Q)
        assert value == f(Q)
        np.testing.assert_allclose(gradient, [f(Q + step) - f(Q) for step in np.eye(3)])


def changing(weight):
    calls = [lambda x: x, np.square, np.exp]
    return lambda q, which=0: np.sum(calls[which](q) * weight[0]) * len(weight)


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
def test_guards_hold_for_the_function_at_hand():
    for weight in [(1.0,), (2.0,), (1.0, 1.0), (3,), (True,), (2.0,)]:
        f = changing(weight)
        assert value_and_grad(f)(Q)[0] == pytest.approx(f(Q))
        f.__defaults__ = (1,)
        assert value_and_grad(f)(Q)[0] == pytest.approx(f(Q))


def test_a_transform_is_itself_in_all_other_respects():
    data = np.arange(4.0)
    value_and_grad(closure(data, 2))(Q)
    f = closure(data, 2)
    f.__doc__ = "Energy."
    g = value_and_grad(f)
    assert is_lazy(g) and g.__doc__ == "Energy." and g.__module__ == __name__ and is_lazy(g)
    assert g.__name__ == "<lambda>" and g.__wrapped__ is f and not is_lazy(g)
    assert not hasattr(value_and_grad(f), "nothing")
    for ask in (lambda g: g.value(Q), lambda g: g.value_and_grad(Q)[0], lambda g: g.compile(Q)(Q)[0],
                lambda g: g.bind()(Q)[0], lambda g: jitad.jit(lambda q: g(q)[0])(Q), lambda g: copy.copy(g)(Q)[0]):
        g = value_and_grad(f)
        assert is_lazy(g)
        np.testing.assert_allclose(ask(g), expected(data, 2)[0])
    g, out = jit_grad(f), np.empty(3)
    np.testing.assert_array_equal(g(Q, out=out), g(Q))
    assert out[1] == 2 * Q[1]


def test_options_and_errors_are_those_of_the_first_transform():
    f = closure(np.arange(4.0), 2)
    value_and_grad(f)(Q)
    for options in ({"argnums": True}, {"argnums": 0.0}, {"static": "data"}, {"static": 0}, {"tier": ""},
                    {"on_mismatch": ""}, {"compile": None}):
        with pytest.raises(jitad.errors.ArgumentTypeError):
            value_and_grad(f, **options)
    with pytest.raises(jitad.errors.OutputError):
        value_and_grad(lambda q: q)(Q)
    g = value_and_grad(f)
    with pytest.raises(TypeError, match="argument"):
        g(Q, Q)
    with pytest.raises(jitad.errors.ArgumentTypeError):
        value_and_grad(f)(np.array(["a"]))


def test_one_that_stays_gets_all_that_a_function_has():
    data = np.arange(4.0)
    value_and_grad(closure(data, 2))(Q)
    g = value_and_grad(closure(data, 2))
    results = [g(Q)[0] for _ in range(100)]
    assert not is_lazy(g) and set(results) == {results[0]}


def test_clearing_the_cache_takes_unbound_shortcuts():
    data = np.arange(4.0)
    value_and_grad(closure(data, 2))(Q)
    kept = value_and_grad(closure(data, 2))
    kept(Q)
    cache.clear()
    assert not is_lazy(value_and_grad(closure(data, 2)))
    assert kept(Q)[0] == pytest.approx(expected(data, 2)[0])
    assert cache.info(kept).compiles == 1, "compiled again"


def test_an_unbound_shortcut_holds_nothing_of_the_function():
    for make in (closure, calling_local, method, partial):
        data = np.arange(4.0)
        model = Model(data)
        f = make(data, 2) if make is not method else model.energy
        watched = [weakref.ref(x) for x in (data, model, getattr(f, "func", f))]
        value_and_grad(f)(Q)
        value_and_grad(f)(Q)
        del f, data, model
        gc.collect()
        assert watched[0]() is None and watched[1]() is None


def test_threads_apply_transforms_at_once():
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            data = rng.normal(size=4)
            g = value_and_grad(closure(data, 2))
            if abs(g(Q)[0] - expected(data, 2)[0]) > 1e-9 or g.__name__ != "<lambda>":
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


class Kept:
    """Has a decorated function that was one of a known code."""

    def __init__(self):
        self.gradient = jit_grad(energy)


def test_pickles_and_copies():
    data = np.arange(4.0)
    for _ in range(2):
        kept = Kept()
        first = kept.gradient(Q, data)
    assert is_lazy(kept.gradient)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kept)).gradient(Q, data), first)
    np.testing.assert_array_equal(copy.deepcopy(kept).gradient(Q, data), first)


KEY = Model(None)
OTHER = Model(None)
TABLE = {KEY: 2.0, OTHER: 7.0}


def looked_up(model):
    return lambda q: TABLE[KEY] * np.sum(q) + (0.0 if model is None else 1.0)


def test_a_key_is_not_mistaken_for_what_is_captured():
    for model in (KEY, OTHER, KEY, OTHER):
        assert value_and_grad(looked_up(model))(Q)[0] == pytest.approx(2.0 * np.sum(Q) + 1.0)


def cubes(data):
    return lambda q: data * q**3


def sum_of_cubes(data):
    return lambda q: np.sum(data * q**3)


def value_and_product(value, pullback):
    return value, *pullback(V)


V = np.array([1.0, 0.5, -2.0])
PRODUCTS = {
    "jacobian": (lambda d: jitad.jacobian(cubes(d))(Q), lambda d: np.diag(3 * d * Q**2)),
    "forward": (lambda d: jitad.jacobian(cubes(d), mode="forward")(Q), lambda d: np.diag(3 * d * Q**2)),
    "hessian": (lambda d: jitad.hessian(sum_of_cubes(d))(Q), lambda d: np.diag(6 * d * Q)),
    "hvp": (lambda d: jitad.hvp(sum_of_cubes(d))(Q, V), lambda d: 6 * d * Q * V),
    "jit": (lambda d: jitad.jit(cubes(d))(Q), lambda d: d * Q**3),
    "vjp": (lambda d: value_and_product(*jitad.vjp(cubes(d), Q)),
            lambda d: (d * Q**3, 3 * d * Q**2 * V)),
    "jvp": (lambda d: jitad.jvp(cubes(d), (Q,), (V,)), lambda d: (d * Q**3, 3 * d * Q**2 * V)),
    "linearize": (lambda d: jitad.linearize(cubes(d), Q)[1](V), lambda d: 3 * d * Q**2 * V),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_transform_is_served(name, monkeypatch):
    call, wanted = PRODUCTS[name]
    for data in (V, np.full(3, 0.25)):
        np.testing.assert_allclose(call(data), wanted(data), rtol=1e-12)
    monkeypatch.setattr("jitad.call.request.subject.take_apart", None)       # by shortcuts alone from now on
    for data in (Q, np.arange(3.0)):
        np.testing.assert_allclose(call(data), wanted(data), rtol=1e-12)
