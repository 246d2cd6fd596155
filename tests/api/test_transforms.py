"""What may be decorated and how transformations nest; compiled tapes and their C functions."""
from __future__ import annotations

import copy
import ctypes
import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

import jitad
from jitad import cache, jit, jit_grad, value_and_grad
from tests.helpers.public import compiling, fresh, quadratic, same, x3, y3

__all__ = ["fresh"]


# --- methods and callables -------------------------------------------------------------------

class Model:
    def __init__(self, scale, data):
        self.scale, self.data = scale, data

    @jit_grad
    def logp(self, theta):
        return -0.5 * self.scale * np.sum((self.data - theta) ** 2)

    @jit_grad
    @staticmethod
    def outer_static(x):
        return np.sum(x * x)

    @staticmethod
    @jit_grad
    def inner_static(x):
        return np.sum(x * x)

    factor = 3.0

    @jit_grad
    @classmethod
    def outer_class(cls, x):
        return cls.factor * np.sum(x)

    @jit_grad
    @jit_grad
    def second(self, t):
        return self.scale * t**3


class Child(Model):
    factor = 5.0

    @jit_grad
    def logp(self, theta):
        return 2 * np.sum(theta)

    def parents(self, theta):
        return super().logp(theta)


def test_methods():
    a, b = Model(1.0, x3), Model(2.0, y3)
    with compiling(1):
        for theta in (np.zeros(3), np.ones(3)):
            same(a.logp(theta), a.data - theta)
            same(b.logp(theta=theta), 2 * (b.data - theta))
        a.scale, a.data = 7.0, y3
        same(a.logp(np.zeros(3)), 7 * y3)
        a.data[...] = 1.0
        same(a.logp(np.zeros(3)), np.full(3, 7.0))
        y3[:] = [4, 5, 6]
        twin, deep = copy.copy(a), copy.deepcopy(a)
        a.scale, twin.scale = 1.0, 2.0
        same(a.logp(np.zeros(3)), y3), same(twin.logp(np.zeros(3)), 2 * y3), same(deep.logp(np.zeros(3)), 7 * y3)
        same(pickle.loads(pickle.dumps(a)).logp(np.zeros(3)), y3)
    assert a.logp is a.logp and a.logp is not b.logp
    same(a.logp.value(np.zeros(3)), -0.5 * 77.0)
    same(a.second(2.0), 12.0), same(Model(5.0, 0).second(2.0), 60.0)


def test_static_and_class_methods_and_inheritance():
    m, c = Model(1.0, x3), Child(1.0, x3)
    for home in (Model, m, Child, c):
        same(home.outer_static(x3), 2 * x3), same(home.inner_static(x3), 2 * x3)
        for _ in range(2):
            same(home.outer_class(x3), np.full(3, 5.0 if home in (Child, c) else 3.0))
    assert Child.outer_class is Child.outer_class
    same(c.logp(x3), np.full(3, 2.0)), same(c.parents(np.zeros(3)), x3)


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    @jit_grad
    def f(self, x):
        return self.k * np.sum(x)

    def __call__(self, x):
        return self.k * np.sum(x * x)


def test_callables():
    s = Slotted(2.0)
    same(s.f(x3), np.full(3, 2.0))
    g = jit_grad(s)
    same(g(x3), 4 * x3)
    s.k = 3.0
    with compiling(0):
        same(g(x3), 6 * x3), same(s.f(x3), np.full(3, 3.0))
    assert "Slotted" in repr(g)
    p = functools.partial(quadratic, y=y3)
    same(jit_grad(p)(x3), 2 * x3 * y3), same(jit_grad(functools.partial(quadratic, x3))(y3), x3**2)
    same(jit_grad(functools.partial(jit_grad(lambda k, t: k * t**3, argnums=1), 2.0))(1.0), 12.0)
    same(jit_grad(s.__call__)(x3), 6 * x3)


def test_attributes_of_what_is_wrapped_do_not_leak():
    class Holder:
        def __init__(self):
            self.value, self.compile, self._value, self._warm, self._known = 1, 2, 3, 4, 5

        def __call__(self, x):
            return np.sum(x * x)

    g = jit_grad(Holder())
    same(g(x3), 2 * x3), same(g.value(x3), 14.0)
    cube = jit_grad(lambda t: t**3)
    assert cube.value_and_grad(2.0) == (8.0, 12.0)
    assert jit_grad(cube).value_and_grad(2.0) == (12.0, 12.0)


def test_a_function_no_longer_used_goes_at_once():
    def make():
        data = np.ones(3)
        return jit_grad(lambda x: np.sum(x * data)), weakref.ref(data)

    g, alive = make()
    same(g(x3), np.ones(3)), same(g(x3), np.ones(3)), same(g.value(x3), 6.0)
    gc.collect()                                             # what recording has left
    gc.disable()
    try:
        del g
        assert alive() is None
    finally:
        gc.enable()


decorated = jit_grad(quadratic)


@value_and_grad
def importable(x):
    return np.sum(x * x)


def test_pickle_by_name():
    for original in (importable, importable.value, Model(2.0, x3).logp):
        again = pickle.loads(pickle.dumps(original))
        assert str(again(x3)) == str(original(x3))
    assert pickle.loads(pickle.dumps(importable)) is importable
    same(pickle.loads(pickle.dumps(decorated))(x3, y3), 2 * x3 * y3)
    assert copy.deepcopy(importable) is importable


# --- nested use ------------------------------------------------------------------------------

def test_nested_transformations():
    cube = jit_grad(lambda t: t**3)
    same(jit_grad(cube)(2.0), 12.0), same(jit_grad(jit_grad(cube))(2.0), 6.0)
    calls = jit_grad(lambda t: t * cube(t) + cube.value(t))                  # t (3 t^2) + t^3
    same(calls(2.0), 48.0)
    both = jit_grad(lambda t: (lambda v, g: v * g)(*cube.value_and_grad(t)))  # 3 t^5
    same(both(2.0), 240.0)
    jitted = jit(lambda x: np.exp(x) * 2)
    same(jit_grad(lambda x: np.sum(jitted(x) * x))(x3), 2 * np.exp(x3) * (1 + x3))
    inside = jit_grad(lambda t: jit_grad(lambda s: s**3 * t)(t))             # 3 t^3
    same(inside(2.0), 36.0)
    compiled = cube.compile(1.0)
    same(jit_grad(lambda t: compiled(t) * t)(2.0), 36.0)                     # 3 t^3
    tree = jit_grad(lambda t: jit_grad(lambda p: p["a"] ** 3 * p["b"][0])({"b": (5,), "a": t})["a"])
    same(tree(2.0), 60.0)                                                    # 15 t^2
    pair = jit_grad(lambda t: jit_grad(lambda a, b: a * a * b, argnums=(0, -1))(t, t)[1])
    same(pair(3.0), 6.0)


def test_perturbation_confusion():
    same(jit_grad(lambda x: x * jit_grad(lambda y: x + y)(1.0))(3.0), 1.0)
    same(jit_grad(lambda x: jit_grad(lambda y: x * y)(x) * x)(3.0), 6.0)
    inner = jit_grad(lambda y, x: x * y)
    same(jit_grad(lambda x: x * inner(2.0, x))(3.0), 6.0)
    same(jit_grad(lambda x: x * inner(x, x))(3.0), 6.0)


def test_higher_derivatives_against_closed_forms():
    def f(x):
        return np.sin(x) * np.exp(-x / 2)

    first, second, third = jit_grad(f), jit_grad(jit_grad(f)), jit_grad(jit_grad(jit_grad(f)))
    for t in (0.3, -1.2):
        s, c, e = np.sin(t), np.cos(t), np.exp(-t / 2)
        np.testing.assert_allclose([first(t), second(t), third(t)],
                                   [(c - s / 2) * e, (-c - 0.75 * s) * e, (-0.25 * c + 1.375 * s) * e], rtol=1e-12)
    product = jit_grad(lambda x: np.sum(jit_grad(lambda z: np.sum(z**4))(x) * y3))
    same(product(x3), 12 * x3**2 * y3)


# --- compiled tapes --------------------------------------------------------------------------

def test_compiled_tape_shows_what_it_is():
    g = jit_grad(quadratic)
    with compiling(1):
        compiled = g.compile(x3, y=y3)
        same(compiled(2 * x3, y3), 4 * x3 * y3), same(g(x3, y3), 2 * x3 * y3)
        same(compiled.kernel(x3, y3), 2 * x3 * y3)
        same(compiled.interpret(x3, y3), 2 * x3 * y3)
    assert "float64" in str(compiled.signature) and len(compiled.tape) > 3
    assert "quadratic" in repr(compiled) and "(3,)" in repr(compiled)
    assert str(g.source(x3, y3)) == repr(g.source(x3, y3)) == str(compiled.source) and "def " in compiled.source
    text = g.tape(x3, y3)
    assert "input x" in text and "input y" in text and "test_transforms.py:" in text and "return grad_x=" in text
    with pytest.raises(jitad.SignatureError, match="signature"):
        compiled.interpret(np.zeros(4), np.zeros(4))


def test_the_source_runs_as_python():
    compiled = value_and_grad(lambda x, y: np.sum(np.exp(x) * y) / 2).compile(x3, y3)
    namespace = {}
    exec(compile(str(compiled.source), "<source>", "exec"), namespace)
    assert any(callable(v) for v in namespace.values())


CFUNC = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.POINTER(ctypes.c_double)] * 3, ctypes.c_void_p)


def as_python(pointer, length):
    call = CFUNC(pointer.address)
    double = ctypes.POINTER(ctypes.c_double)

    def f(x, dim=length):
        gradient, value = np.full(length, np.nan), ctypes.c_double()
        status = call(dim, x.ctypes.data_as(double), gradient.ctypes.data_as(double), ctypes.byref(value), pointer.data)
        return status, value.value, gradient
    return f


def test_c_function():
    shift = np.array([1.0, 1.0, 2.0])

    @jit_grad(argnums=-1)
    def f(y, scale, n, theta):
        return np.sum(np.log(theta) * y) * scale + n * np.sum(theta * shift)

    pointer = f.compile(np.array([1, 2, 3]), 2.0, 3, x3).cfunc
    assert isinstance(pointer.address, int) and isinstance(pointer.data, int)
    call = as_python(pointer, 3)
    for x in (x3, y3):
        status, value, gradient = call(x)
        assert status == 0
        np.testing.assert_allclose(value, 2 * np.log(x) @ [1, 2, 3] + 3 * x @ shift, rtol=1e-12)
        np.testing.assert_allclose(gradient, 2 / x * [1, 2, 3] + 3 * shift, rtol=1e-12)
    assert call(x3, dim=4)[0] < 0
    with np.errstate(all="ignore"):
        assert call(np.zeros(3))[0] > 0 and call(-x3)[0] > 0 and call(np.full(3, np.nan))[0] > 0


def test_c_function_binds_data_of_any_kind():
    rest = (True, np.float32(2.5), np.int8(-3), np.array(2.0), np.array([True, False, True]), np.arange(9.0)[::3],
            np.asfortranarray(np.arange(9.0).reshape(3, 3)), np.array([1, 2, 3], "i2"), {"w": y3, "name": "text"})

    def f(x, flag, single, small, zero, mask, strided, fortran, short, tree):
        factor = np.where(flag, 1.0, 2.0) * single * small * zero
        return factor * np.sum(np.where(mask, x * strided, x @ fortran) * short * tree["w"])

    g = jit_grad(f)
    status, value, gradient = as_python(g.compile(x3, *rest).cfunc, 3)(x3)
    assert status == 0
    np.testing.assert_allclose(value, f(x3, *rest), rtol=1e-12)
    np.testing.assert_allclose(gradient, g(x3, *rest), rtol=1e-12)


def test_c_function_has_its_own_data_and_outlives_the_cache():
    data, shift = np.ones(3), np.zeros(3)
    pointer = jit_grad(lambda x, y: np.sum(x * y) + np.sum(x * shift)).compile(x3, data).cfunc
    cache.clear()
    gc.collect()
    call = as_python(pointer, 3)
    same(call(x3)[2], np.ones(3))
    data[:], shift[:] = y3, 10.0
    same(call(x3)[2], np.ones(3))


def test_c_function_needs_one_float64_vector():
    for compiled in (jit_grad(lambda t: t * t).compile(2.0), jit_grad(lambda x: np.sum(x)).compile(np.ones((2, 2))),
                     jit_grad(lambda x: np.sum(x)).compile(x3.astype("f4")),
                     jit_grad(lambda x, y: np.sum(x * y), argnums=(0, 1)).compile(x3, y3)):
        with pytest.raises(jitad.SignatureError, match="vector"):
            compiled.cfunc  # noqa: B018
    with pytest.raises(jitad.SignatureError, match="float64 value"):
        jit_grad(lambda x: np.sum(x.astype("f4"))).compile(x3).cfunc  # noqa: B018
