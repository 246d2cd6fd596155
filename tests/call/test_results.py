"""The public face: results are fresh and right, and follow what is captured."""
from __future__ import annotations

import collections
import dataclasses
import enum
import warnings

import numpy as np
import pytest

import jitad
from jitad import cache, jit, jit_grad, value_and_grad
from tests.helpers.public import compiling, fresh, quadratic, same, x3, y3

__all__ = ["fresh"]


# --- results are fresh, right, and follow what is captured -----------------------------------

def test_results_never_share_memory():
    g = jit_grad(lambda x, y: np.sum(x * y), argnums=(0, 1))
    for _ in range(2):
        dx, dy = g(x3, y3)
        again, _ = g(x3, y3)
        assert not any(np.shares_memory(a, b) for a, b in ((dx, y3), (dy, x3), (dx, dy), (dx, again), (dx, x3)))
        assert dx.flags.writeable
    same_input = jit(lambda x: (x, x, x[:2], x.reshape(3, 1)))
    for _ in range(2):
        got = same_input(x3)
        assert not any(np.shares_memory(a, b) for i, a in enumerate(got) for b in (x3, *got[:i]))
    square, _ = jit_grad(lambda x, y: np.sum(x * y), argnums=(0, 1))(x3, x3)
    same(square, x3)
    captured = jit(lambda: y3)()
    assert not np.shares_memory(captured, y3)


def test_results_of_trivial_functions():
    assert jit_grad(lambda x: x)(2.0) == 1.0
    assert value_and_grad(lambda x: 3.0)(2.0) == (3.0, 0.0)
    assert value_and_grad(lambda x: 3)(2.0) == (3.0, 0.0)
    same(jit_grad(lambda x: 3)(x3), np.zeros(3))
    same(jit(lambda x: x)(x3), x3)
    for value in (3, 2.5, 7):
        same(jit(lambda x: x)(value), value)
    assert jit(lambda x: x > 1)(2.0) is True and jit(lambda x: x > 1)(np.float64(2)) is np.True_
    same(jit(lambda n: n * 2)(3), 6), same(jit(lambda n: n * 2)(np.int64(3)), np.int64(6))
    same(jit(lambda x: 4)(1.0), 4)
    same(jit(lambda: 2.5)(), 2.5)


SCALE, TABLE = 2.0, np.array([1.0, 1.0, 1.0])


def test_captures_are_seen_and_compile_nothing(monkeypatch):
    offset = np.ones(3)
    config = type("Config", (), {})()
    config.rate = 1.0

    @jit_grad
    def f(x):
        return np.sum(x * x * TABLE) * SCALE + np.sum(x * offset) * config.rate

    def expected(x):
        return 2 * x * TABLE * SCALE + offset * config.rate

    with compiling(1):
        same(f(x3), expected(x3))
        offset[0] = 5.0
        same(f(x3), expected(x3))
        config.rate = -3.0
        same(f(x3), expected(x3))
        offset = np.array([7.0, 8.0, 9.0])
        same(f(x3), expected(x3))
        monkeypatch.setitem(globals(), "SCALE", 11.0)
        monkeypatch.setitem(globals(), "TABLE", np.array([0.0, 1.0, 2.0]))
        for x in (x3, y3):
            same(f(x), expected(x))


@dataclasses.dataclass
class WithMethods:
    w: object

    def scaled(self):
        return self.w * SCALE

    @property
    def doubled(self):
        return SCALE * self.w


class Tuple(collections.namedtuple("Tuple", "w")):
    def scaled(self):
        return self.w * SCALE


class Kind(enum.Enum):
    A = 1

    def scaled(self):
        return SCALE


def test_methods_of_arguments_never_freeze_what_they_read(monkeypatch):
    """They run as they are: what they read is guarded by value."""
    cases = [(jit(lambda p, x: np.sum(p.scaled() * x)), WithMethods(y3)),
             (jit(lambda p, x: p.doubled @ x), WithMethods(y3)),
             (jit(lambda p, x: np.sum(p.scaled() * x)), Tuple(y3)),
             (jit(lambda p, x: np.sum(p.scaled() * y3 * x)), Kind.A)]
    for scale in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        for f, p in cases:
            same(f(p, x3), float(scale * 32)), same(f(p, x3), float(scale * 32))


def test_a_lambda_made_again_is_the_same_function():
    def make(k):
        return jit_grad(lambda x: np.sum(x) * k)

    with compiling(1):
        for k in (1.0, 2.0, 3.0):
            same(make(k)(x3), np.full(3, k))


def test_cache_face():
    g, other = jit_grad(quadratic), jit_grad(lambda x: np.sum(x**5))
    g(x3, y3), g(x3, y3), g(x3, y3), other(x3)
    info = cache.info(g)
    assert info == cache.info(quadratic) and all(type(v) is int for v in info)
    assert (info.hits, info.misses, info.compiles, info.currsize) == (2, 1, 1, 1)
    assert cache.info().compiles == 2
    g(x3[:2], y3[:2])
    assert "shape (3,) -> (2,)" in cache.explain(g) and "first call" in cache.explain(quadratic)
    cache.clear(g)
    assert cache.info(g)[:4] == (0, 0, 0, 0) and cache.info(other).currsize == 1
    with compiling(1):
        g(x3, y3)
    cache.clear()
    assert cache.info()[:4] == (0, 0, 0, 0)
    for wrong in (3, "f", [np.sum]):
        with pytest.raises(TypeError):
            cache.info(wrong)
    size = cache.info().maxsize
    try:
        cache.resize(1)
        assert cache.info().maxsize == 1
        with compiling(4):
            for x in (x3, x3[:2], x3, x3[:2]):
                same(other(x), 5 * x**4)
        assert cache.info().currsize == 1
    finally:
        cache.resize(size)


def test_alternating_signatures_compile_once_each():
    g = jit_grad(lambda x: np.sum(x**2))
    with compiling(3):
        for _ in range(3):
            for x in (x3, x3[:2], x3.astype("f4"), x3[::2]):
                same(g(x), 2 * x)
    assert cache.info(g).hits == 9


def test_the_order_of_a_dict_is_part_of_its_structure():
    weigh = jit_grad(lambda p: sum((i + 1) * np.sum(v) for i, v in enumerate(p.values())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jitad.TapeMismatchWarning)
        for _ in range(3):
            assert weigh.value({"a": 1.0, "b": 10.0}) == 21.0
            assert weigh.value({"b": 10.0, "a": 1.0}) == 12.0
            assert weigh.value({"b": 10.0, "a": 1.0}) == 12.0
            assert weigh({"b": 10.0, "a": 1.0}) == {"b": 1.0, "a": 2.0}


def test_recorded_code_that_asks_what_it_holds_gets_numpys_answer():
    def f(x, k):
        right = [isinstance(x, np.ndarray), type(x) is np.ndarray, not isinstance(x, float),
                 isinstance(x[0], np.float64), isinstance(x[0], float), not isinstance(x[0], np.ndarray),
                 isinstance(k, (int, np.integer)), type(k) is int, isinstance(type, type)]
        return np.sum(x) * k if all(right) else np.prod(x)
    assert jit_grad(f).value(np.array([2.0, 3.0]), 2) == 10.0


def test_a_refusal_that_the_function_catches_is_raised_all_the_same():
    def f(x):
        try:
            return {x[0]: 1.0}[x[0]] * x[1]
        except Exception:
            return 0.0 * x[0]
    with pytest.raises(jitad.ConcretizationError):
        jit_grad(f)(np.ones(2))


def test_no_buffer_is_as_if_left_out():
    g = jit_grad(lambda x: np.sum(x * x))
    for _ in range(2):
        same(g(x3, out=None), 2 * x3)
        assert g.value_and_grad(x3, out=None)[0] == np.sum(x3 * x3)


def test_structures_of_many_leaves_are_abbreviated():
    g = jit(lambda xs: sum(xs))
    g([1.0] * 200)
    with pytest.warns(jitad.TapeMismatchWarning, match="with 200 leaves.*with 201 leaves") as caught:
        g([1.0] * 201)
    assert len(str(caught[0].message)) < 400
