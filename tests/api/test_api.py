"""The public face: what a user may pass, and that nothing compiles that need not."""
from __future__ import annotations

import collections
import dataclasses
import inspect
import warnings

import numpy as np
import pytest

import jitad
from jitad import cache, grad, jit, jit_grad, value_and_grad
from tests.helpers.public import compiling, fresh, quadratic, same, x3, y3

__all__ = ["fresh"]


# --- which arguments -------------------------------------------------------------------------

def test_argnums():
    dx, dy = 2 * x3 * y3, x3**2
    for argnums, expected in ((0, dx), (1, dy), (-1, dy), (-2, dx), (np.int64(1), dy)):
        same(jit_grad(quadratic, argnums=argnums)(x3, y3), expected)
    for argnums in ((0, 1), [0, 1], (0, -1)):
        got = jit_grad(quadratic, argnums=argnums)(x3, y3)
        assert type(got) is tuple
        same(got[0], dx), same(got[1], dy)
    (only,) = jit_grad(quadratic, argnums=(1,))(x3, y3)
    same(only, dy)
    value, (a, b) = value_and_grad(quadratic, argnums=(1, 0))(x3, y3)
    same(value, float(np.sum(x3 * x3 * y3))), same(a, dy), same(b, dx)
    same(jit_grad(lambda x, n: np.sum(x) * n, argnums=-1)(x3, 2), 6.0)            # an int, cast


def test_decorators_with_and_without_arguments():
    @jit_grad
    def f(x):
        """Documented."""
        return np.sum(x**3)

    @jit_grad(argnums=1)
    def g(x, y):
        return np.sum(x * y)

    @value_and_grad()
    def h(x):
        return np.sum(x**3)

    @jit()
    def j(x):
        return x + 1

    same(f(x3), 3 * x3**2), same(g(x3, y3), x3), same(h(x3)[1], 3 * x3**2), same(j(x3), x3 + 1)
    assert (f.__name__, f.__doc__, f.__module__) == ("f", "Documented.", __name__)
    assert list(inspect.signature(g).parameters) == ["x", "y"]
    assert grad is jit_grad
    assert "grad" in repr(f) and "f" in repr(f)


def test_value_and_value_and_grad_of_a_gradient():
    g = jit_grad(quadratic)
    with compiling(3):
        same(g(x3, y3), 2 * x3 * y3)
        same(g.value(x3, y3), 32.0 + 6 * 9 + 4 - 32 + 20)
        value, gradient = g.value_and_grad(x3, y3)
        same(value, 78.0), same(gradient, 2 * x3 * y3)
    assert g.value is g.value and g.value.value is g.value
    same(jit(quadratic).value_and_grad(x3, y3)[1], 2 * x3 * y3)


def test_keywords_cold_and_warm():
    @jit_grad
    def f(theta, X, y=2.0, *, power=1.0):
        return np.sum(theta * X) * y + np.sum(theta) * power

    same(f(theta=x3, X=y3), 2 * y3 + 1)
    with compiling(2):
        for _ in range(2):
            same(f(x3, X=y3, y=3.0), 3 * y3 + 1)
            same(f(x3, y=3.0, X=y3), 3 * y3 + 1)
            same(f(x3, y3, 3.0), 3 * y3 + 1)
            same(f(X=y3, theta=x3, y=3.0), 3 * y3 + 1)
        for power in (2.0, 5.0):
            same(f(x3, y3, power=power), 2 * y3 + power)
    with compiling(1):                                    # leaves out a default in between
        same(jit_grad(lambda x, a=1.0, b=2.0: np.sum(x) * a * b)(x3, b=5.0), np.full(3, 5.0))


def test_a_keyword_named_like_a_global_of_a_helper(monkeypatch):
    monkeypatch.setitem(globals(), "scale", 10.0)

    def helper(x):
        return x * scale  # noqa: F821

    @jit_grad
    def f(x, scale):
        return np.sum(helper(x)) * scale

    for s in (2.0, 3.0):
        same(f(x3, scale=s), np.full(3, 10 * s))


def test_misfit_calls_are_pythons_type_errors_cold_and_warm():
    def f(x, /, y, *, k=0.0):
        return np.sum(x * y)

    def g(x):
        return np.sum(x)

    def h(x, **options):
        return np.sum(x)

    for plain in (f, g, h):
        made = jit_grad(plain)
        for _ in range(2):
            for args, kwargs in (((), {}), ((x3, y3, x3), {}), ((x3, y3), {"bogus": 1}), ((x3,), {"y": y3, "x": x3}),
                                 ((x3,), {"bogus": 1, "y": y3}), ((), {"x": x3, "y": y3, "z": 1})):
                try:
                    plain(*args, **kwargs)
                except TypeError as error:
                    with pytest.raises(TypeError) as caught:
                        made(*args, **kwargs)
                    assert str(caught.value) == str(error)
                else:
                    same(made(*args, **kwargs), np.ones(3))
            assert made(x3, *([y3] if plain is f else [])) is not None


def test_variadic_functions():
    def f(*xs, **options):
        return np.sum(xs[0] * xs[-1]) * options.get("scale", 1.0)

    g = jit_grad(f, argnums=(0, 1))
    a, b = g(x3, y3)
    same(a, y3), same(b, x3)
    a, b = g(x3, y3, scale=2.0)
    same(a, 2 * y3)
    with compiling(0):
        same(g(x3, x3, scale=3.0)[1], 3 * x3)
    same(jit_grad(lambda self, args, kwargs: np.sum(self * args * kwargs))(self=x3, args=y3, kwargs=2.0), 2 * y3)


# --- out= ------------------------------------------------------------------------------------

def test_out():
    g = jit_grad(quadratic)
    buffer = np.full(3, np.nan)
    for scale in (1.0, 2.0):
        assert g(scale * x3, y3, out=buffer) is buffer
        same(buffer, 2 * scale * x3 * y3)
    value, got = g.value_and_grad(x3, y=y3, out=buffer)
    assert value == 78.0 and got is buffer
    x = x3.copy()
    assert g(x, y3, out=x) is x                           # overlaps the input
    same(x, 2 * x3 * y3)
    strided = np.zeros((3, 2))
    g(x3, y3, out=strided[:, 1])
    same(strided[:, 1], 2 * x3 * y3)
    assert not strided[:, 0].any()
    zero = np.zeros(())
    assert jit_grad(lambda t: t * t)(3.0, out=zero) is zero and zero == 6.0


def test_out_of_trees():
    g = jit_grad(lambda p: np.sum(p["a"] * x3) + p["b"][0] ** 2)
    p = {"a": x3, "b": (3.0,)}
    out = {"a": np.zeros(3), "b": (np.zeros(()),)}
    assert g(p, out=out) is out
    same(out["a"], x3)
    assert out["b"][0] == 6.0
    for wrong in ({"a": np.zeros(3)}, {"a": np.zeros(3), "b": [np.zeros(())]}, np.zeros(3)):
        with pytest.raises(jitad.SignatureError, match="structure"):
            g(p, out=wrong)


def test_wrong_buffers_are_refused_and_left_alone():
    g = jit_grad(quadratic)
    readonly = np.zeros(3)
    readonly.flags.writeable = False
    for _ in range(2):                                    # cold and warm
        for wrong in (np.zeros(4), np.zeros((3, 1)), np.zeros(3, "f4"), readonly, 1.0):
            with pytest.raises(jitad.SignatureError, match=r"out= of `quadratic` must be .*\(3,\) and dtype float64.*"
                                                           r"test_api.py:\d+") as caught:
                g(x3, y3, out=wrong)
            assert "not a" in str(caught.value)
            assert not isinstance(wrong, np.ndarray) or not wrong.any()


def test_a_function_may_have_its_own_out():
    same(jit_grad(lambda x, out: np.sum(x * out))(x3, out=y3), y3)


# --- trees -----------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "a b")


@dataclasses.dataclass(frozen=True)
class Params:
    weight: object
    inner: object = 2.0


@pytest.mark.parametrize("make", [
    lambda a, b: {"a": a, "b": b}, lambda a, b: (a, b), lambda a, b: [a, b], Point, Params,
    lambda a, b: {"z": [a, {"k": (b,)}]}, lambda a, b: Params(a, Point(b, ())),
    lambda a, b: collections.OrderedDict(b=b, a=a),
], ids=["dict", "tuple", "list", "namedtuple", "dataclass", "nested", "mixed", "ordered"])
def test_a_gradient_has_the_structure_of_its_argument(make):
    from jitad.trace.pytree import leaves_of

    def f(p, x):
        total = 0.0
        for leaf in leaves_plain(p):
            total = total + np.sum(leaf * leaf * x)
        return total

    p = make(y3, 2.0)
    g = jit_grad(f)
    for scale in (1.0, 3.0):
        got = g(p, scale * x3)
        assert type(got) is type(p) and leaves_of(got)[1] == leaves_of(p)[1]
        for new, old in zip(leaves_of(got)[0], leaves_of(p)[0], strict=True):
            same(new, 2 * old * scale * x3 if np.ndim(old) else float(2 * old * scale * np.sum(x3)))
    assert cache.info().compiles == 1


def leaves_plain(p):
    if isinstance(p, dict):
        return [leaf for key in sorted(p) for leaf in leaves_plain(p[key])]
    if isinstance(p, Params):
        return leaves_plain(p.weight) + leaves_plain(p.inner)
    if isinstance(p, (tuple, list)):
        return [leaf for item in p for leaf in leaves_plain(item)]
    return [p]


def test_trees_with_ints_strings_and_none():
    @jit_grad(argnums=(0, 1))
    def f(p, q, config):
        total = np.sum(p["w"] * q[0]) + p["n"] ** 2 * q[1]
        return total * 2 if config["kind"] == "double" else total + (0.0 if config["extra"] is None else 1.0)

    p, q = {"w": x3, "n": 3}, [y3, np.array(2)]
    dp, dq = f(p, q, {"kind": "plain", "extra": None, "k": 1})
    same(dp["w"], y3), same(dp["n"], 12.0)
    same(dq[0], x3), same(dq[1], np.array(9.0))
    same(f(p, q, {"kind": "double", "extra": None, "k": 1})[0]["w"], 2 * y3)
    with compiling(0):
        same(f(p, q, {"kind": "plain", "extra": None, "k": 7})[0]["w"], y3)


def test_trees_without_leaves():
    same_tree = jit_grad(lambda p, x: np.sum(x), argnums=(0, 1))
    for _ in range(2):
        empty, ones = same_tree({"a": ()}, x3)
        assert empty == {"a": ()}
        same(ones, np.ones(3))
    for _ in range(2):
        assert jit_grad(lambda p: 3.0)([]) == []


def test_results_of_jit_are_trees():
    @jit
    def f(x, n):
        return {"twice": 2 * x, "both": (np.sum(x), [x]), "params": Params(x + n, n), "int": np.sum(x > 1), "k": 7.0}

    for scale in (1.0, 2.0):
        got = f(scale * x3, 2.0)
        same(got["twice"], 2 * scale * x3), same(got["both"][1][0], scale * x3)
        same(got["params"].weight, scale * x3 + 2)
        assert type(got["params"]) is Params and got["params"].inner == 2.0 and got["k"] == 7.0
        assert got["both"][0] == 6 * scale and got["int"] == np.sum(scale * x3 > 1)


# --- numbers, dtypes, layouts ----------------------------------------------------------------

def test_new_values_of_numbers_never_compile():
    f = jit_grad(lambda x, a, n, flag: np.sum(x) * a * n * np.where(flag, 1.0, -1.0))
    with compiling(1):
        for a, n, flag in ((2.0, 3, True), (-1.5, 7, False), (np.inf, 0, True), (1e300, -4, False)):
            with np.errstate(invalid="ignore"):
                same(f(x3, a, n, flag), np.full(3, a * n * (1.0 if flag else -1.0)))


def test_kinds_of_numbers():
    square = jit_grad(lambda t: t * t)
    for t in (3.0, 3, np.float64(3), np.float32(3), np.array(3.0), np.int32(3), np.array(3)):
        for _ in range(2):
            got = square(t)
            assert got == 6.0
            kind = np.ndarray if isinstance(t, np.ndarray) else float if type(t) in (int, float) else np.generic
            assert isinstance(got, kind)
            assert np.asarray(got).dtype == (np.float32 if np.asarray(t).dtype == np.float32 else np.float64)
    same(jit_grad(lambda x: np.sum(x * x))(np.array([1, 2])), np.array([2.0, 4.0]))
    same(jit_grad(lambda x, b: np.sum(np.where(b, x, 2 * x)))(x3, np.array([True, False, True])), np.array([1.0, 2, 1]))
    same(jit_grad(lambda x, i: np.sum(x[i] ** 2))(x3, np.array([2, 2, 0])), np.array([2.0, 0, 12]))


def test_float32_in_gives_float32_out():
    x = x3.astype("f4")
    value, gradient = value_and_grad(lambda x, s: np.sum(np.exp(x) * 2) * s)(x, 0.5)
    assert (type(value), gradient.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(gradient, np.exp(x), rtol=1e-6)
    value, gradient = value_and_grad(lambda t: t * t)(np.float32(3))
    assert type(value) is type(gradient) is np.float32
    assert jit(lambda x: x + 1)(x).dtype == np.float32
    assert jit_grad(lambda x, y: np.sum(x * y))(x, y3).dtype == np.float32


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,), (0, 3), (3, 0)])
def test_small_and_empty_shapes(shape):
    x = np.full(shape, 2.0)
    value, gradient = value_and_grad(lambda x: np.sum(np.exp(x) * x))(x)
    same(value, float(np.sum(np.exp(x) * x)))
    same(gradient, np.asarray(np.exp(x) * (x + 1)))


def test_layouts_share_a_tape_and_are_right():
    base = np.arange(24.0).reshape(4, 6) + 1
    backwards = base[::-1, ::-2]
    readonly = base[:, :3].copy()
    readonly.flags.writeable = False
    unaligned = np.frombuffer(b"x" + base[:, :3].tobytes(), "u1")[1:].view("f8").reshape(4, 3)
    assert not unaligned.flags.aligned
    swapped = base[:, :3].astype(">f8")
    zero_stride = np.broadcast_to(np.arange(3.0) + 1, (4, 3))
    f = jit_grad(lambda x, w: np.sum(np.sin(x) * w * x))
    w = np.linspace(1, 2, 12).reshape(4, 3)
    with warnings.catch_warnings(), compiling(1):
        warnings.simplefilter("error", jitad.TapeMismatchWarning)
        for x in (base[:, :3].copy(), np.asfortranarray(base[:, :3]), base[:, ::2], backwards, readonly, unaligned,
                  swapped, zero_stride):
            before = np.array(x)
            for _ in range(2):
                same(f(x, w), np.asarray(w * (np.cos(x) * x + np.sin(x)), "f8"))
            np.testing.assert_array_equal(x, before)


def test_memmap_is_an_array_and_other_subclasses_are_not(tmp_path):
    x = np.memmap(tmp_path / "x", "f8", "w+", shape=(3,))
    x[:] = x3
    f = jit_grad(lambda x: np.sum(x * x * x))
    for _ in range(2):
        same(f(x), 3 * x3**2)
        for other in (x3[:, None].view(np.matrix), np.ma.masked_array(x3, [0, 0, 1])):
            with pytest.raises(jitad.ArgumentTypeError, match=r"np\.asarray"):
                f(other)
