"""Every error that must be clear: its class, what it says, the user's file and line, and what to do."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import jitad
from jitad import cache, jit, jit_grad
from tests.helpers.public import fresh, x3

__all__ = ["fresh"]


def text_of(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def raised(error, call, *args, line=None, **kwargs):
    """The text of the error that the call raises, which names a line of this file: `line` if given."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    text = text_of(caught.value)
    assert f"test_errors.py:{line or ''}" in text, text
    return text


def test_every_class_is_exported_and_has_its_place():
    from jitad import errors

    classes = [c for c in vars(errors).values() if isinstance(c, type) and c.__module__ == errors.__name__]
    for c in classes:
        assert getattr(jitad, c.__name__) is c and c.__name__ in jitad.__all__ and c.__doc__
        assert issubclass(c, jitad.JitadError) or issubclass(c, UserWarning)
    assert issubclass(jitad.TapeMismatchWarning, UserWarning)


# --- what the function returns ---------------------------------------------------------------

@pytest.mark.parametrize(("function", "what", "cure"), [
    (lambda x: x * 2, r"shape (3,)", "np.sum"),
    (lambda x: np.sum(x, keepdims=True), r"shape (1,)", "np.sum"),
    (lambda x: (np.sum(x), 1.0), "2 values", "scalar"),
    (lambda x: {"a": np.sum(x)}, "container", "scalar"),
    (lambda x: np.sum(x) > 1, "boolean", "real scalar"),
    (lambda x: True, "boolean", "real scalar"),
    (lambda x: None, "None", "return statement"),
    (lambda x: "text", "str", "return"),
    (lambda x: x3, r"shape (3,)", "np.sum"),
    (lambda x: 1j, "complex", "return its .real"),
])
def test_outputs_that_have_no_gradient(function, what, cure):
    text = raised(jitad.OutputError, jit_grad(function), x3)
    assert what in text and cure in text and "<lambda>" in text


def test_jit_refuses_results_that_are_not_data():
    for function, what in ((lambda x: {"a": x, "name": "text"}, "result['name']"), (lambda x: None, "None")):
        assert what in raised(jitad.OutputError, jit(function), x3)


# --- arguments -------------------------------------------------------------------------------

class Thing:
    pass


UNDIFFERENTIABLE = [
    (True, "boolean", "argnums"), (np.array([True, False]), "boolean", "argnums"), (np.True_, "boolean", "argnums"),
    ("text", "a string", "argnums"), (None, "None", "argnums"), (Thing(), "a Thing", "argnums"),
    ({"a": x3, "b": "text"}, "`x['b']`", "argnums"), (np.sum, "cannot be differentiated", "argnums"),
]
UNUSABLE = [
    (np.clongdouble(1), np.dtype("G").name, "complex128"), (np.array([1.0, None]), "object array", "astype(float)"),
    (x3.astype("f2"), "float16", "convert"), (x3.astype(np.longdouble), np.dtype(np.longdouble).name, "convert"),
    (np.float16(2), "float16", "convert"), (np.array(["a"]), "<U1", "convert"),
    (np.array(["2020-01-01"], "M8[D]"), "datetime64", "convert"), (2**70, "64 bits", "float"),
    (x3[:, None].view(np.matrix), "matrix", "np.asarray"),
    (np.ma.masked_array(x3), "MaskedArray", "np.asarray"),
]


@pytest.mark.parametrize(("value", "what", "cure"), UNDIFFERENTIABLE + UNUSABLE,
                         ids=[str(i) for i in range(len(UNDIFFERENTIABLE + UNUSABLE))])
def test_arguments_that_cannot_be_differentiated(value, what, cure):
    g = jit_grad(lambda x, y: 0.0)
    text = raised(jitad.ArgumentTypeError, g, value, 1.0)
    assert what in text and cure in text and "`x" in text


@pytest.mark.parametrize(("value", "what", "cure"), UNUSABLE, ids=[str(i) for i in range(len(UNUSABLE))])
def test_arguments_that_cannot_be_data(value, what, cure):
    g = jit_grad(lambda x, y: np.sum(x))
    text = raised(jitad.ArgumentTypeError, g, x3, value)
    assert what in text and cure in text and "`y" in text
    text = raised(jitad.ArgumentTypeError, g, x3, {"k": [value]})
    assert what in text and "`y['k'][0]" in text


@pytest.mark.parametrize("value", [Thing(), lambda t: t, Thing], ids=["object", "lambda", "class"])
def test_functions_and_objects_are_to_be_captured(value):
    text = raised(jitad.ArgumentTypeError, jit_grad(lambda x, y: np.sum(x)), x3, value)
    assert "`y`" in text and "capture" in text


def test_argnums_out_of_range():
    for argnums in (2, -3, (0, 5)):
        text = raised(jitad.ArgumentTypeError, jit_grad(lambda x, y: np.sum(x), argnums=argnums), x3, 1.0)
        assert "argument" in text and "2 positional" in text
    for argnums in ("x", 1.5, True, (0, 0), (), None, (0, "x")):
        assert "argnums" in raised(jitad.ArgumentTypeError, jit_grad, lambda x: x, argnums)


def test_what_is_no_function():
    for f in (3, "text", [np.sum]):
        raised(jitad.ArgumentTypeError, jit_grad, f)
    raised(jitad.ArgumentTypeError, jit_grad(), 3)


# --- what the function does ------------------------------------------------------------------

CONCRETE = [
    lambda x: {x[0]: 1.0}[x[0]],
]


@pytest.mark.parametrize("function", CONCRETE)
def test_concrete_values_are_refused(function):
    text = raised(jitad.ConcretizationError, jit_grad(function), x3, line=function.__code__.co_firstlineno)
    assert any(word in text for word in ("np.", "use ", "pass ", "instead", "leave", "without")), text


UNKNOWN = [
    (lambda x: np.sum(special.struve(1, x)), "struve"),
    (lambda x: np.max(x * 1j).real, "complex"), (lambda x: np.sum(x.astype("f2")), "float16"),
]


@pytest.mark.parametrize(("function", "what"), UNKNOWN, ids=[w for _, w in UNKNOWN])
def test_what_has_no_rule_is_named(function, what):
    text = raised(jitad.UnsupportedOperationError, jit_grad(function), x3, line=function.__code__.co_firstlineno)
    assert what in text


MISFITS = [
    lambda x: np.sum(x + np.ones(7)), lambda x: np.sum(x @ np.ones((2, 5))), lambda x: np.sum(x.reshape(5, 5)),
    lambda x: x[10], lambda x: np.sum(np.concatenate([x, np.ones((2, 2))])), lambda x: np.sum(x, axis=3),
    lambda x: x[0, 0], lambda x: x.nothing, lambda x: undefined, lambda x: np.sum(x) / (1 // 0),  # noqa: F821
]


@pytest.mark.parametrize("function", MISFITS)
def test_errors_of_the_function_are_pythons_and_numpys(function):
    with pytest.raises(Exception, match=r".") as plain:
        function(x3)
    with pytest.raises(type(plain.value)) as caught:
        jit_grad(function)(x3)
    expected = str(plain.value).replace("numpy.ndarray", "")
    assert str(caught.value) == str(plain.value) or expected.split("'")[-2] in str(caught.value)
    lines = [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("test_errors.py")]
    assert function.__code__.co_firstlineno in lines or f"test_errors.py:{function.__code__.co_firstlineno}" in text_of(
        caught.value)


def test_impure_functions_are_refused():
    import time

    rng = np.random.default_rng(0)
    for function in (lambda x: np.sum(x) * rng.normal(), lambda x: np.sum(x) * np.random.rand(),
                     lambda x: np.sum(x) * time.time()):
        text = raised(jitad.CaptureError, jit_grad(function), x3, line=function.__code__.co_firstlineno)
        assert "argument" in text


def test_a_traced_value_that_gets_away():
    kept = []

    def f(x):
        kept.append(x * 2)
        return np.sum(x)

    raised((jitad.MutationError, jitad.LeakedTracerError, jitad.CaptureError), jit_grad(f), x3)

    class Box:
        pass

    box = Box()

    def g(x):
        box.kept = x * 2
        return np.sum(x)

    raised((jitad.MutationError, jitad.LeakedTracerError, jitad.CaptureError), jit_grad(g), x3)
    assert not hasattr(box, "kept")


# --- errors of a warm call -------------------------------------------------------------------

def test_an_index_out_of_range_on_a_warm_call():
    g = jit_grad(lambda x, i: np.sum(x[i] ** 2))
    np.testing.assert_array_equal(g(x3, np.array([0, 2])), [2.0, 0, 6])
    for _ in range(2):
        for i in ([0, 3], [-4, 0], [10**15, 0]):
            with pytest.raises(IndexError, match="out of bounds") as caught:
                g(x3, np.array(i))
            wrong = next(n for n in i if not -3 <= n < 3)
            assert str(caught.value) == f"index {wrong} is out of bounds for axis 0 with size 3"
            assert "test_errors.py:" in text_of(caught.value)
        np.testing.assert_array_equal(g(x3, np.array([-1, 1])), [0.0, 4, 6])
    assert cache.info().compiles == 1


def test_an_indefinite_matrix_on_a_warm_call():
    g = jit_grad(lambda a: np.sum(np.log(np.diag(np.linalg.cholesky(a)))))
    good, bad = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])
    expected = np.linalg.inv(good) / 2
    for a in (good, bad, good, bad, good):
        if a is good:
            np.testing.assert_allclose((g(a) + g(a).T) / 2, expected, rtol=1e-10)
            continue
        with pytest.raises(np.linalg.LinAlgError, match="positive definite") as caught:
            g(a)
        assert "test_errors.py:" in text_of(caught.value)
    solve = jit_grad(lambda a: np.sum(np.linalg.solve(a, np.ones(2))))
    solve(good)
    with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
        solve(np.ones((2, 2)))
    x = np.linalg.solve(good, [1, 1])
    np.testing.assert_allclose(solve(good), -np.outer(x, x), rtol=1e-10)


def test_an_indefinite_matrix_on_the_first_call():
    g = jit_grad(lambda a: np.sum(np.linalg.cholesky(a)))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        g(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert np.isfinite(g(np.eye(2))).all()


# --- after an error everything is as before --------------------------------------------------

def test_errors_leave_the_cache_and_the_arguments_unchanged():
    mode = {"raise": KeyboardInterrupt}

    def f(x):
        if mode["raise"] is not None:
            raise mode["raise"]
        return np.sum(x * x)

    g = jit_grad(f)
    x = x3.copy()
    for error in (KeyboardInterrupt, ValueError, SystemExit, RecursionError):
        mode["raise"] = error
        for _ in range(2):
            with pytest.raises(error):
                g(x)
    info = cache.info(g)
    assert (info.compiles, info.currsize) == (0, 0)
    np.testing.assert_array_equal(x, x3)
    mode["raise"] = None
    np.testing.assert_array_equal(g(x), 2 * x3)
    from jitad.trace.recorder import current

    assert current() is None


def test_recursion():
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    np.testing.assert_allclose(jit_grad(lambda x: np.sum(power(x, 4)))(x3), 4 * x3**3)

    def forever(x):
        return forever(x) + 1

    with pytest.raises(RecursionError):
        jit_grad(forever)(x3)


def test_inside_a_recording_errors_are_as_clear():
    inner = jit_grad(lambda x: x * 2)
    text = raised(jitad.OutputError, jit_grad(lambda x: np.sum(inner(x))), x3)
    assert "np.sum" in text
    nothing = jit_grad(lambda x: None)
    raised(jitad.JitadError, jit_grad(lambda x: np.sum(nothing(x))), x3)
    g = jit_grad(lambda x, y: np.sum(x), argnums=1)
    for function in (lambda x: np.sum(g(x, "text")), lambda x: np.sum(g(x, True)), lambda x: np.sum(g(x, x > 1))):
        assert "cannot be differentiated" in raised(jitad.ArgumentTypeError, jit_grad(function), x3)
    raised(jitad.ArgumentTypeError, jit_grad(lambda x: np.sum(jit_grad(lambda z: z, argnums=3)(x))), x3)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        jit_grad(lambda x: np.sum(g(x)))(x3)
    assert "returns instead" in raised(jitad.MutationError, jit_grad(lambda x: np.sum(g(x, x, out=np.zeros(3)))), x3)
