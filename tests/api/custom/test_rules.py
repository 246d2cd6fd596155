"""Rules of the user's own: `primitive`, `custom_gradient`, `stop_gradient`, `checkpoint`, in every transformation."""
from __future__ import annotations

import pickle
import sys
import types

import numpy as np
import pytest

import jitad
from jitad import (
    UnsupportedOperationError,
    batch,
    cache,
    checkpoint,
    custom_gradient,
    derivative,
    fori_loop,
    grad,
    hessian,
    jacobian,
    jit,
    jit_grad,
    jvp,
    primitive,
    scan,
    stop_gradient,
    vjp,
)
from jitad.compile.lower.lower import program_of
from jitad.testing.checks import check_grads
from tests.helpers.public import compiling, fresh, x3  # noqa: F401

scale = np.array([2.0, 3.0, 0.5])


@primitive(vjp=lambda ct, y, x: ct * y * scale)
def scaled_exp(x):
    return np.exp(x * scale)


@primitive(jvp=lambda dots, y, x, z: dots[0] * y * z + dots[1] * y * x)
def exp_of_product(x, z):
    return np.exp(x * z)


@primitive(vjp=lambda ct, y, x, z: (ct[0] * z + ct[1], ct[0] * x))
def product_and_next(x, z):
    return x * z, x + 1


@primitive(vjp=lambda ct, y, x: 10.0 * ct)
def tenfold(x):
    """Wrong by a factor of ten, so that the rule shows."""
    return np.sin(x)


@custom_gradient
def log1pexp(x):
    e = np.exp(x)
    return np.log1p(e), lambda ct: ct * (1 - 1 / (1 + e))


# --- values ------------------------------------------------------------------------------------

def test_outside_of_compiled_code_it_is_the_function():
    assert tenfold(0.5) == np.sin(0.5)
    assert tenfold.__name__ == "tenfold" and "Wrong" in tenfold.__doc__
    assert repr(tenfold) == "<jitad primitive tenfold>"
    assert log1pexp(0.0) == np.log(2.0)


def test_the_rule_makes_the_derivative_in_every_mode():
    tens = np.full(3, 10.0)
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(tenfold(x)))(x3), tens)
    np.testing.assert_allclose(jit(tenfold)(x3), np.sin(x3))
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(jacobian(tenfold, mode=mode)(x3), np.diag(tens))
    np.testing.assert_allclose(jvp(tenfold, (x3,), (np.array([1.0, 0.0, 2.0]),))[1], [10.0, 0.0, 20.0])
    np.testing.assert_allclose(vjp(tenfold, x3)[1](np.ones(3))[0], tens)
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(tenfold(x) ** 2))(x3), 20 * np.sin(x3))
    np.testing.assert_allclose(hessian(lambda x: np.sum(tenfold(x) ** 2))(x3), np.diag([200.0] * 3))
    assert derivative(tenfold)(0.3) == 10.0


@pytest.mark.parametrize("f", [
    lambda x: scaled_exp(x) * x, lambda x: exp_of_product(x, x * x) + exp_of_product(2 * x, 0.3),
    lambda x: product_and_next(x, x * x)[0] * product_and_next(x, scale)[1], lambda x: log1pexp(x) * x,
    lambda x: checkpoint_layer(checkpoint_layer(x))], ids="vjp jvp tuple custom_gradient checkpoint".split())
def test_derivatives_of_both_orders_and_modes(f):
    check_grads(f, (np.array([0.3, -0.2, 0.5]),), order=2)


def test_a_third_derivative_through_a_rule():
    cubed = primitive(lambda x: x**3, vjp=lambda ct, y, x: 3 * ct * y / x)
    assert np.isclose(grad(grad(grad(cubed)))(2.0), 6.0)


def test_rules_for_trees_and_data():
    @primitive(vjp=lambda ct, y, p, k, name: ({"a": ct * k, "b": 2 * ct * p["b"]}, None, None))
    def f(p, k, name):
        return p["a"] * k + p["b"] ** 2 + len(name)
    found = jit_grad(lambda p: f(p, 3, "ab"))({"a": 1.0, "b": 4.0})
    assert found == {"a": 3.0, "b": 8.0}


def test_defaults_and_keywords_are_inputs():
    @primitive(vjp=lambda ct, y, x, power: (ct * power * y / x, None))
    def raised(x, power=2.0):
        return x**power
    assert np.isclose(jit_grad(lambda x: raised(x))(3.0), 6.0)
    assert np.isclose(jit_grad(lambda x: raised(power=3.0, x=x))(2.0), 12.0)


def test_a_result_with_integers_keeps_them():
    @primitive(vjp=lambda ct, y, x: 7.0 * ct[0])
    def f(x):
        return x * 2, np.argmax(x)
    value, place = jit(f)(x3)
    np.testing.assert_array_equal(value, 2 * x3)
    assert place == 2
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(f(x)[0]) + f(x)[1])(x3), [7.0] * 3)


def test_none_is_a_strong_zero():
    @primitive(vjp=lambda ct, y, x, z: (None, ct))
    def f(x, z):
        return x + z
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(f(np.sqrt(x), x)))(np.zeros(3)), np.ones(3))


def test_an_input_that_stands_still_has_no_tangent_to_spoil_others():
    """Not zero times infinity."""
    @primitive(jvp=lambda dots, y, x, z: dots[0] + dots[1] / z)
    def f(x, z):
        return x + np.log(z)
    assert derivative(lambda x: f(x, 0.0 * x + 1.0))(1.0) == 1.0
    tangent = jvp(lambda x, z: f(x, z), (1.0, 0.0), (1.0, None))[1]
    assert tangent == 1.0


def test_what_the_function_captures_is_differentiated_as_ever():
    def outer(x, a):
        f = primitive(lambda t: t * a, vjp=lambda ct, y, t: 100 * ct)
        return f(x)
    assert jit_grad(outer, argnums=(0, 1))(2.0, 3.0) == (100.0, 2.0)
    def with_pullback(x, a):
        f = custom_gradient(lambda t: (t * a * a, lambda ct: 100 * ct))
        return f(x)
    assert jit_grad(with_pullback, argnums=(0, 1))(2.0, 3.0) == (100.0, 12.0)


def test_a_rule_that_is_not_linear_serves_reverse_mode():
    clipped = primitive(lambda x: x, vjp=lambda ct, y, x: np.clip(ct, -1, 1))
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(5 * clipped(x)))(x3), np.ones(3))
    with pytest.raises(UnsupportedOperationError, match=r"not linear in its cotangent.*forward mode.*give.*jvp="):
        jvp(lambda x: clipped(x), (x3,), (x3,))


def test_a_loop_with_a_rule_needs_no_reverse_of_the_loop():
    def step(y):
        return y - (y * y - 2) / (2 * y)
    @primitive(vjp=lambda ct, y, a: ct / (2 * y))
    def root(a):
        return jitad.while_loop(lambda y: np.abs(y * y - a) > 1e-12, lambda y: 0.5 * (y + a / y), 1.0 + a)
    assert np.isclose(jit_grad(root)(9.0), 1 / 6)
    assert np.isclose(step(2.0**0.5), 2.0**0.5)


def test_stop_gradient_of_values_and_trees():
    assert jit_grad(lambda x: x * stop_gradient(x))(3.0) == 3.0
    assert jit_grad(lambda x: stop_gradient({"a": [x, "text", 2]})["a"][0] * x)(3.0) == 3.0
    plain = {"a": x3}
    assert stop_gradient(plain) is plain
    assert jvp(lambda x: stop_gradient(x) + x, (3.0,), (1.0,))[1] == 1.0


def test_stop_gradient_keeps_what_has_no_rule_out_of_the_derivative():
    opaque = primitive(lambda x: np.floor(x) + 0.5, opaque=True)
    assert jit_grad(lambda x: x * opaque(stop_gradient(x)))(2.2) == 2.5


# --- in other transformations --------------------------------------------------------------------

def test_in_a_batch():
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    f = lambda x: np.sum(exp_of_product(x, x[::-1]) + product_and_next(x, scaled_exp(x))[0])
    expected = np.stack([jit_grad(f)(row) for row in x])
    np.testing.assert_allclose(batch(jit_grad(f))(x), expected, rtol=1e-12)
    shared = batch(jit_grad(lambda x, z: np.sum(exp_of_product(x, z))), in_axes=(0, None))(x, x3)
    np.testing.assert_allclose(shared, x3 * np.exp(x * x3))
    shared = batch(jit_grad(lambda x, z: np.sum(exp_of_product(x, z)), argnums=1), in_axes=(0, None))(x, x3)
    np.testing.assert_allclose(shared, x * np.exp(x * x3))


def test_in_loops():
    x = np.linspace(0.1, 0.9, 6)
    def scanned(x):
        return scan(lambda c, t: (c + tenfold(t * c), None), 1.0, x)[0]
    def python_loop(x):
        c = 1.0
        for i in range(6):
            c = c + tenfold(x[i] * c)
        return c
    def counted(x):
        return fori_loop(0, 6, lambda i, c: c + tenfold(x[i] * c), 1.0)
    def by_hand(x):
        states, c = [], 1.0
        for t in x:
            states.append(c)
            c += np.sin(t * c)
        bar, found = 1.0, np.zeros(6)
        for i in reversed(range(6)):
            found[i] = bar * 10 * states[i]
            bar = bar + bar * 10 * x[i]
        return found
    for f in (scanned, python_loop, counted):
        np.testing.assert_allclose(jit_grad(f)(x), by_hand(x), rtol=1e-12)


def test_rules_in_rules():
    outer = primitive(lambda x: tenfold(x) * 2, vjp=lambda ct, y, x: ct * tenfold(x))
    assert np.isclose(jit_grad(outer)(0.4), np.sin(0.4))
    assert np.isclose(grad(grad(outer))(0.4), 10.0)


def test_a_transformed_primitive_can_be_transformed():
    assert np.isclose(grad(grad(exp_of_product), argnums=1)(0.5, 2.0), np.exp(1.0) * 2.0)


def test_float32_stays():
    x = x3.astype(np.float32)
    found = jit_grad(lambda x: np.sum(tenfold(x) * x))(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.sin(x) + 10 * x, rtol=1e-5)


def test_methods():
    class Model:
        def __init__(self, rate):
            self.rate = rate

        @checkpoint
        def curve(self, x):
            return np.exp(-self.rate * x)

        @custom_gradient
        def line(self, x):
            return self.rate * x, lambda ct: 5.0 * ct
    m = Model(2.0)
    assert m.curve(0.0) == 1.0 and m.line(2.0) == 4.0
    assert np.isclose(jit_grad(lambda x: m.curve(x))(0.5), -2.0 * np.exp(-1.0))
    assert jit_grad(lambda x: m.line(x))(0.5) == 5.0


# --- captures, cache, files ------------------------------------------------------------------------

def test_captures_of_rules_are_inputs():
    factor = np.array([1.0, 2.0, 3.0])
    weight = 2.0
    f = primitive(lambda x: x * weight, vjp=lambda ct, y, x: ct * factor)
    g = jit_grad(lambda x: np.sum(f(x)))
    np.testing.assert_array_equal(g(x3), factor)
    with compiling(0):
        factor[:] = [5.0, 6.0, 7.0]
        np.testing.assert_array_equal(g(x3), [5.0, 6.0, 7.0])
    value = g.value
    assert value(x3) == 12.0
    with compiling(0):
        weight = 3.0
        assert value(x3) == 18.0


def test_another_rule_is_noticed():
    rule = lambda ct, y, x: 2 * ct
    def f(x):
        return primitive_of_global(x)
    primitive_of_global = primitive(lambda x: -x, vjp=rule)
    g = jit_grad(f)
    assert g(1.0) == 2.0
    primitive_of_global = primitive(lambda x: -x, vjp=lambda ct, y, x: 3 * ct)
    assert g(1.0) == 3.0
    primitive_of_global = primitive(lambda x: -x, jvp=lambda dots, y, x: 4 * dots[0])
    assert g(1.0) == 4.0


def test_rules_cost_nothing_where_no_derivative_is_asked():
    for g, nodes in ((jit(tenfold), ["input", "sin"]),
                     (jit_grad(lambda x: np.sum(tenfold(x))), ["input", "const", "view"])):
        tape = g.compile(x3).tape
        assert [node.prim.name for node in tape.nodes] == nodes


def test_plain_rules_are_stored_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_persistent", None)
    cache.configure(disk=True)
    try:
        source = "f = lambda x: p(x) * x"
        rule = primitive(lambda x: x * x, vjp=lambda ct, y, x: 5 * ct)
        space = {"np": np, "__name__": "cell", "p": rule}
        exec(source, space)
        assert jit_grad(space["f"])(2.0) == 14.0
        assert list(cache.persistent_store().disk.entries())
        cache.clear()
        cache._persistent = None
        with compiling(0):
            assert jit_grad(space["f"])(2.0) == 14.0
    finally:
        cache.configure(disk=False)
        cache.clear()


def test_saved(tmp_path):
    g = jit_grad(lambda x: np.sum(tenfold(x) * x))
    g.compile(x3).save(tmp_path / "tape.jitad")
    np.testing.assert_allclose(jitad.load(tmp_path / "tape.jitad")(x3), g(x3))


def test_pickled_by_name(monkeypatch):
    module = types.ModuleType("module_of_primitives")
    module.f = primitive(lambda x: x, vjp=lambda ct, y, x: ct)
    module.f.__module__, module.f.__qualname__ = "module_of_primitives", "f"
    monkeypatch.setitem(sys.modules, "module_of_primitives", module)
    assert pickle.loads(pickle.dumps(module.f)) is module.f


# --- checkpoint ------------------------------------------------------------------------------------

checkpoint_layer = checkpoint(lambda x: np.sin(np.exp(x) * scale))


def chain(layer, turns):
    def f(x):
        for _ in range(turns):
            x = layer(x)
        return np.sum(x)
    return f


def test_checkpoint_saves_memory_and_changes_no_result():
    def layer(x):
        for _ in range(4):
            x = np.tanh(np.cumsum(x) * 1e-2)
        return x
    x = np.linspace(-1, 1, 5000)
    kept, again = (jit_grad(chain(f, 24)) for f in (layer, checkpoint(layer)))
    np.testing.assert_allclose(again(x), kept(x), rtol=1e-12)
    memory = [program_of(g.compile(x).tape, ("C",)).workspace["f8"] for g in (kept, again)]
    assert memory[1] < memory[0] / 2


def test_checkpoint_returns_trees_and_branches():
    @checkpoint
    def f(x, p):
        if x[0] > 0:
            return {"a": np.exp(x) * p["b"], "n": 3, "t": "text"}
        return {"a": -x, "n": 4, "t": "text"}
    def use(x):
        found = f(x, {"b": 2.0})
        assert found["t"] == "text"
        return np.sum(found["a"]) * found["n"]
    np.testing.assert_allclose(jit_grad(use)(x3), 6 * np.exp(x3))
    np.testing.assert_allclose(jit_grad(use)(-x3), [-4.0] * 3)
    assert f(x3, {"b": 1.0})["n"] == 3
