"""Opaque Python in compiled code: what it gets and gives, what it raises, threads, how long it lives."""
from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from jitad import (
    CaptureError,
    ConcretizationError,
    OutputError,
    TapeFileError,
    UnsupportedOperationError,
    batch,
    cache,
    grad,
    hessian,
    hvp,
    jacobian,
    jit,
    jit_grad,
    jvp,
    primitive,
    scan,
    stop_gradient,
)
from jitad.compile.emit.python import emit_python
from jitad.compile.lower.lower import program_of
from jitad.compile.routines.opaque import taken
from jitad.testing.checks import check_grads
from tests.helpers.public import compiling, fresh, x3  # noqa: F401

grid = np.linspace(-4.0, 4.0, 4001)


@primitive(opaque=True, vjp=lambda ct, y, x: ct * np.cos(x))
def table(x):
    return np.interp(x, grid, np.sin(grid))


@primitive(opaque=True, vjp=primitive(lambda ct, y, x: 2 * ct * x, opaque=True))
def square(x):
    return np.asarray(x) ** 2


@primitive(opaque=True)
def without_rules(x):
    return x * 2.0


class Raises:
    """A function that can be told to raise next time."""

    def __init__(self):
        self.next, self.calls = None, 0

    def __call__(self, x):
        self.calls += 1
        if self.next is not None:
            error, self.next = self.next, None
            raise error
        return x + 1.0


def raising():
    told = Raises()
    return told, primitive(told, opaque=True, vjp=lambda ct, y, x: ct)


# --- values and derivatives ------------------------------------------------------------------------

def test_value_and_gradient():
    y = np.interp(x3, grid, np.sin(grid))
    np.testing.assert_array_equal(jit(table)(x3), y)
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(table(x) * x))(x3), y + x3 * np.cos(x3))
    np.testing.assert_allclose(jacobian(table, mode="forward")(x3), np.diag(np.cos(x3)))
    np.testing.assert_allclose(hessian(lambda x: np.sum(table(x)))(x3), np.diag(-np.sin(x3)))


def test_what_the_function_gets():
    seen = []

    @primitive(opaque=True, vjp=lambda ct, y, *inputs: (None,) * 7)
    def f(a, b, c, d, e, tree, text):
        seen.append((a, b, c, d, e, tree, text))
        return 1.5
    args = (x3, 2.0, np.float64(3.0), np.array(4.0), np.arange(3), {"p": (np.ones((2, 2)), True)})
    g = jit(lambda *args: f(*args, "text"))
    for _ in range(2):
        assert g(*args) == 1.5
    assert len(seen) == 3                                     # once when it was recorded
    for a, b, c, d, e, tree, text in seen:
        np.testing.assert_array_equal(a, x3)
        assert not a.flags.writeable and not tree["p"][0].flags.writeable
        assert type(b) is float and type(c) is np.float64 and type(d) is np.ndarray and d.shape == ()
        assert (b, c, d[()]) == (2.0, 3.0, 4.0) and e.dtype == np.int64 and tree["p"][1] is True and text == "text"
        np.testing.assert_array_equal(tree["p"][0], np.ones((2, 2)))
    seen[1][0].copy()                                         # what it was given stays, after the call too
    np.testing.assert_array_equal(seen[1][0], x3)


def test_what_the_function_gives():
    @primitive(opaque=True)
    def f(x):
        return {"m": np.outer(x, x), "n": len(x), "b": x > 1.5, "f": np.float32(0.5), "e": np.zeros(0)}
    found = jit(lambda x: f(x))(x3)
    np.testing.assert_array_equal(found["m"], np.outer(x3, x3))
    np.testing.assert_array_equal(found["b"], [False, True, True])
    assert found["n"] == 3 and found["f"] == 0.5 and found["e"].shape == (0,)
    assert found["b"].dtype == bool and np.asarray(found["n"]).dtype == np.int64


def test_without_rules_it_is_data():
    assert jit_grad(lambda x: x * without_rules(stop_gradient(x)))(3.0) == 6.0
    np.testing.assert_array_equal(jit_grad(lambda x, y: np.sum(x * without_rules(y)))(x3, x3), 2 * x3)
    for attempt in (lambda: jit_grad(lambda x: without_rules(x))(3.0), lambda: jvp(without_rules, (3.0,), (1.0,))):
        with pytest.raises(UnsupportedOperationError, match=r"`without_rules` at .*test_opaque.py:\d+ is opaque.*"
                                                            "vjp= or jvp=.*stop_gradient"):
            attempt()


def test_an_opaque_rule_has_no_second_derivative():
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(square(x) * x))(x3), 3 * x3**2)
    with pytest.raises(UnsupportedOperationError, match=r"is opaque Python, which has no derivative of its own"):
        grad(grad(square))(1.0)


def test_a_solver_of_differential_equations():
    """y' = -k y; the rule is the adjoint equation, solved by SciPy as well: dy(1)/dk = -y(1)."""
    def solve(k, y0):
        return solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [y0], rtol=1e-10, atol=1e-12).y[0, -1]

    def adjoint(ct, y, k, y0):
        back = solve_ivp(lambda t, s: [-k * s[0], k * s[1], s[1] * s[0]], (1.0, 0.0), [y, ct, 0.0],
                         rtol=1e-10, atol=1e-12).y[:, -1]
        return back[2], back[1]
    f = primitive(solve, vjp=primitive(adjoint, opaque=True), opaque=True)
    dk, dy = jit_grad(lambda k, y0: f(k, y0), argnums=(0, 1))(0.7, 2.0)
    assert np.isclose(dk, -2 * np.exp(-0.7), rtol=1e-7) and np.isclose(dy, np.exp(-0.7), rtol=1e-7)


# --- in other transformations ------------------------------------------------------------------------

def test_in_loops_batches_and_branches():
    def scanned(x):
        return scan(lambda c, t: (c + square(t * c), None), 1.0, x)[0]
    def plain(x):
        c = 1.0
        for i in range(3):
            c = c + (x[i] * c) ** 2
        return c
    np.testing.assert_allclose(jit_grad(scanned)(x3 / 4), jit_grad(plain)(x3 / 4))
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(batch(jit_grad(lambda x: np.sum(square(x) * x)))(x), 3 * x**2)
    def branch(x):
        return square(x) if square(x) > 4.0 else -square(x)
    g = jit_grad(branch)
    assert [g(1.0), g(3.0), g(1.5)] == [-2.0, 6.0, -3.0]


def test_a_loop_shows_what_it_returns_by_ones():
    @primitive(opaque=True)
    def picky(x):
        if x == 1.0:
            raise ValueError("not one")
        return x
    with pytest.raises(ConcretizationError, match=r"`picky` at .* called with ones.*raised ValueError: not one"):
        jit(lambda x: scan(lambda c, t: (c + picky(t), None), 0.0, x)[0])(2 * x3)


def test_check_grads_and_the_interpreter():
    check_grads(table, (0.4,), order=1, rtol=1e-4)
    compiled = jit_grad(lambda x: np.sum(square(x) * x)).compile(x3)
    from jitad.tape.evaluate import evaluate
    np.testing.assert_allclose(evaluate(compiled.tape, x3)[0], 3 * x3**2)


def test_generated_source_runs_as_plain_python():
    tape = jit_grad(lambda x: np.sum(square(x) * x)).compile(x3).tape
    space = {}
    exec(emit_python(program_of(tape, ("C",))), space)
    out = np.empty(3)
    assert space["sweep"](x3, out) == (0,)
    np.testing.assert_allclose(out, 3 * x3**2)


# --- exceptions ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("error", [
    KeyError("k"), TypeError("t"), OverflowError("o"), KeyboardInterrupt(), SystemExit(3), np.linalg.LinAlgError("l")],
    ids=lambda e: type(e).__name__)
def test_exceptions_come_through_once(error):
    told, f = raising()
    g = jit_grad(lambda x: np.sum(f(x) * x))
    g(x3)
    told.next, told.calls = error, 0
    with pytest.raises(type(error)) as caught:
        g(x3)
    assert caught.value is error and told.calls == 1
    assert any(entry.name == "__call__" for entry in caught.traceback)
    np.testing.assert_allclose(g(x3), 2 * x3 + 1)
    assert taken() is None


def test_an_exception_at_the_first_call_leaves_nothing():
    told, f = raising()
    told.next = ValueError("first")
    g = jit_grad(lambda x: f(x) * x)
    with pytest.raises(ValueError, match=r"first"):
        g(1.0)
    assert cache.info().currsize == 0
    assert g(1.0) == 3.0


def test_another_shape_or_dtype_is_an_error():
    given = [2.0]
    f = primitive(lambda x: given[0], opaque=True)
    g = jit(lambda x: f(x) + 1.0)
    assert g(1.0) == 3.0
    given[0] = 3                                             # an integer that a float holds
    assert g(1.0) == 4.0
    given[0] = np.ones(3)
    with pytest.raises(OutputError, match=r"`<lambda>`, called at .*test_opaque.py:\d+, returned float64 of shape "
                                          r"\(3,\); when it was recorded it returned float64 of shape \(\)"):
        g(1.0)
    given[0] = 1 + 2j
    with pytest.raises(OutputError, match=r"returned complex128"):
        g(1.0)
    given[0] = (1.0, 2.0)
    with pytest.raises(OutputError, match=r"another structure than when it was recorded: 2 values for 1"):
        g(1.0)


def test_results_that_cannot_be():
    for wrong in ("text", None, 1j, np.array(["a"])):
        f = primitive(lambda x, _, wrong=wrong: wrong, opaque=True)
        with pytest.raises(OutputError, match=r"is opaque Python and returned a"):
            jit(lambda x: f(x, 0))(1.0)                                                  # noqa: B023
    f = primitive(lambda x: (x, 2**60), opaque=True)
    with pytest.raises(OutputError, match=r"integer beyond 2\*\*53"):
        jit(lambda x: f(x)[0])(1.0)


def test_made_in_the_recorded_function_it_is_refused():
    def f(x):
        inner = primitive(lambda t: t, opaque=True)
        return inner(x)
    with pytest.raises(CaptureError, match=r"was made in the function that is recorded.*make it outside"):
        jit(f)(1.0)


# --- the C function, threads, life --------------------------------------------------------------------

def c_function(compiled):
    import ctypes
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    function = kind(compiled.cfunc.address)

    def call(x):
        gradient, value = np.empty_like(x), np.empty(1)
        status = function(len(x), x.ctypes.data, gradient.ctypes.data, value.ctypes.data, compiled.cfunc.data)
        return status, value[0], gradient
    return call


def test_through_the_c_function(capsys):
    told, f = raising()
    compiled = jit_grad(lambda x: np.sum(f(x) * x)).compile(x3)
    call = c_function(compiled)
    status, value, gradient = call(x3)
    assert status == 0 and value == np.sum((x3 + 1) * x3)
    np.testing.assert_allclose(gradient, 2 * x3 + 1)
    told.next, told.calls = ValueError("no density here"), 0
    assert call(x3)[0] > 0 and told.calls == 1               # a point without density
    told.next = KeyboardInterrupt()
    assert call(x3)[0] < 0 and told.calls == 2
    assert "KeyboardInterrupt" in capsys.readouterr().err
    assert call(x3)[0] == 0


def test_bound_kernels_raise_too():
    told, f = raising()
    g = jit_grad(lambda x, y: np.sum(f(x) ** 2 * y)).bind(y=x3)
    np.testing.assert_allclose(g(x3), 2 * (x3 + 1) * x3)
    told.next, told.calls = KeyboardInterrupt(), 0
    with pytest.raises(KeyboardInterrupt):
        g(x3)
    assert told.calls == 1


def test_from_many_threads():
    told = {}
    big = np.linspace(0, 1, 20000)

    @primitive(opaque=True, vjp=lambda ct, y, x: 2 * ct * x)
    def f(x):
        if x[0] < 0:
            raise LookupError(threading.get_ident())
        return x * x
    g = jit_grad(lambda x: np.sum(np.exp(f(x))))
    expected = g(big)

    started = threading.Barrier(4)

    def work():
        started.wait()
        for k in range(20):
            if k % 3:
                np.testing.assert_array_equal(g(big), expected)
            else:
                try:
                    g(big - 1.0)
                except LookupError as error:
                    told.setdefault(threading.get_ident(), set()).add(error.args[0])
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(told) == 4 and all(found == {thread} for thread, found in told.items())


def test_it_may_call_compiled_code_itself():
    inner = jit_grad(lambda x: np.sum(x**3))
    f = primitive(lambda x: inner(np.array([x]))[0], opaque=True, vjp=lambda ct, y, x: 6 * ct * x)
    g = jit_grad(lambda x: f(x) * x)
    for _ in range(2):
        assert np.isclose(g(2.0), 12.0 + 24.0)
    def again(x):
        return recursive(x - 1.0) * x if x > 1 else x
    def recursive(x):
        return float(factorial(x))
    factorial = jit(lambda x: primitive_again(x) + 0.0)
    primitive_again = primitive(again, opaque=True)
    assert factorial(4.0) == 24.0


def test_clearing_the_cache_lets_go_of_the_function():
    def make():
        def f(x):
            return x * 2
        p = primitive(f, opaque=True)
        assert jit(lambda x: scan(lambda c, t: (c + p(t), None), 0.0, x)[0] + p(1.0))(x3) == 14.0
        return weakref.ref(f)
    gone = make()
    gc.collect()
    assert gone() is not None                                # its kernel may run again
    cache.clear()
    gc.collect()
    assert gone() is None


def test_another_function_is_noticed():
    f = primitive(lambda x: x + 1, opaque=True)
    g = jit(lambda x: f(x) * 1.0)
    assert g(1.0) == 2.0
    f = primitive(lambda x: x + 1, opaque=True)              # which might do anything
    with compiling(1):
        assert g(1.0) == 2.0


def test_it_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_persistent", None)
    cache.configure(disk=True)
    try:
        space = {"p": without_rules, "__name__": "cell"}
        exec("f = lambda x: p(x) * x", space)
        assert jit(space["f"])(2.0) == 8.0
        assert not list(cache.persistent_store().disk.entries())
    finally:
        cache.configure(disk=False)
        cache.clear()
    compiled = jit(lambda x: without_rules(x) * 1.0).compile(x3)
    with pytest.raises(TapeFileError, match=r"`opaque` at .* calls Python code, which cannot be in a file"):
        compiled.save(tmp_path / "tape.jitad")


def test_a_rule_of_opaque_gradients_has_second_derivatives_in_both_modes():
    product = primitive(lambda x, v: v * np.exp(x), opaque=True)
    gradient = primitive(lambda x: np.exp(x), opaque=True, vjp=lambda ct, y, x: product(x, ct),
                         jvp=lambda dots, y, x: product(x, dots[0]))
    f = primitive(lambda x: np.sum(np.exp(x)), opaque=True, vjp=lambda ct, y, x: ct * gradient(x))
    x, v = np.array([0.5, -1.0]), np.array([2.0, 1.0])
    np.testing.assert_allclose(hvp(f)(x, v), v * np.exp(x))
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(v * jit_grad(f)(x)))(x), v * np.exp(x))
