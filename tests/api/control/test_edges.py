"""Loops at the edges: lengths, dtypes, offsets, zeros, what the optimiser removes, `while_loop` and `cond`."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.errors import ConcretizationError, TapeError, UnsupportedOperationError
from jitad.passes.differentiate.modes import one, pullback, pushforward
from jitad.passes.optimise.rewrites import optimise, size
from jitad.primitives.core import cast
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.scan import Form, loop
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from tests.api.control.running import close, compiled, plain

F8, F4, I8, B1 = map(np.dtype, ("f8", "f4", "i8", "?"))
rng = np.random.default_rng(3)
Y = rng.normal(size=12)


def body_of(function, *avals):
    builder = Builder()
    values = [builder.input(Aval(*a), f"x{i}") for i, a in enumerate(avals)]
    return builder.finish(function(*values))


def same_everywhere(tape, *inputs, rtol=1e-12):
    """The values of the interpreter, which the kernel and the source of the optimised tape give too."""
    values = evaluate(tape.check(), *inputs)
    better = optimise(tape)
    for made in (evaluate(better, *inputs), compiled(better, inputs), plain(better, inputs)):
        for a, b, o in zip(made, values, tape.outputs, strict=True):
            assert np.asarray(b).dtype == tape.nodes[o].aval.dtype
            close(a, b, rtol)
    return values


def scans(tape):
    return [Form.of(n) for n in tape.nodes if n.prim.kind == "scan"]


# --- the primitive -------------------------------------------------------------------------------

@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("length", "offset", "step"), [(0, 0, 1), (1, 3, 1), (5, 2, 2), (4, 11, -3), (12, 0, 1),
                                                        (6, 7, 0)])
def test_offsets_steps_and_lengths(length, offset, step, reverse):
    builder = Builder()
    y, start = builder.input(Aval((12,), F8), "y"), builder.input(Aval((), F8), "start")
    body = body_of(lambda c, e, t: [TABLE["sin"](c) + e * cast(t, F8), c * e], ((), F8), ((), F8), ((), I8))
    (last,), (rows,) = loop(builder, body, [start], [(y, offset, step)], [], length, counter=True, reverse=reverse)
    total = last + reduce_sum(rows, (0,))
    tape = builder.finish([last, rows, *pullback(builder, [total], [one(total)], [y, start])])
    c, expected = 0.4, np.zeros(length)
    for t in range(length)[::-1] if reverse else range(length):
        c, expected[t] = np.sin(c) + Y[offset + step * t] * t, c * Y[offset + step * t]
    found = same_everywhere(tape, Y, 0.4)
    close(found[0], c)
    close(found[1], expected)
    value = lambda y, s: sum(np.sum(v) for v in evaluate(tape, y, s)[:2])
    close(found[3], (value(Y, 0.4 + 1e-6) - value(Y, 0.4 - 1e-6)) / 2e-6, 1e-7)
    direction = np.cos(np.arange(12.0))
    close(found[2] @ direction, (value(Y + 1e-6 * direction, 0.4) - value(Y - 1e-6 * direction, 0.4)) / 2e-6, 1e-7)


def test_several_offsets_of_one_array():
    builder = Builder()
    y, phi = builder.input(Aval((12,), F8), "y"), builder.input(Aval((2,), F8), "phi")
    first, second = (TABLE["mul"](builder.const(1.0), v) for v in (_item(phi, 0), _item(phi, 1)))
    body = body_of(lambda s, now, before, older, a, b: [s + TABLE["square"](now - a * before - b * older)],
                   *[((), F8)] * 6)
    (total,), _ = loop(builder, body, [builder.const(0.0)], [(y, 2, 1), (y, 1, 1), (y, 0, 1)], [first, second], 10)
    tape = builder.finish([total, *pullback(builder, [total], [one(total)], [y, phi])])
    p = np.array([0.5, -0.3])
    value, by_y, by_phi = same_everywhere(tape, Y, p)
    error = Y[2:] - p[0] * Y[1:-1] - p[1] * Y[:-2]
    close(value, error @ error)
    expected = np.zeros(12)
    expected[2:] += 2 * error
    expected[1:-1] -= 2 * p[0] * error
    expected[:-2] -= 2 * p[1] * error
    close(by_y, expected)
    close(by_phi, [-2 * error @ Y[1:-1], -2 * error @ Y[:-2]])
    assert not scans(optimise(tape))                       # nothing in it is a recurrence


def _item(x, i):
    from jitad.primitives.view import slice_dims
    return slice_dims(x, (i,))


def test_dtypes():
    builder = Builder()
    x = builder.input(Aval((5,), F4), "x")
    body = body_of(lambda c, n, seen, e: [c * e + cast(n, F4), n + 3, TABLE["logical_or"](seen, e > 0.9), n, seen],
                   ((), F4), ((), I8), ((), B1), ((), F4))
    init = [builder.const(np.float32(0.5)), builder.const(1), builder.const(np.bool_(False))]
    finals, stacks = loop(builder, body, init, [(x, 0, 1)], [], 5)
    gradient = pullback(builder, [finals[0]], [one(finals[0])], [x])
    tape = builder.finish([*finals, *stacks, *gradient])
    values = same_everywhere(tape, np.linspace(0.5, 1.0, 5, dtype="f4"), rtol=1e-6)
    assert values[1] == 16 and values[2] and list(values[3]) == [1, 4, 7, 10, 13] and not values[4].any()


def test_a_body_that_does_not_fit_is_refused():
    builder = Builder()
    x = builder.input(Aval((5,), F8), "x")
    body = body_of(lambda c, e: [c + e], ((), F8), ((), F8))
    for init, length, offset in ((builder.const(1), 5, 0), (builder.const(1.0), 6, 0), (builder.const(1.0), 5, -1)):
        with pytest.raises(ValueError, match="scan"):
            loop(builder, body, [init], [(x, offset, 1)], [], length)
    vector = builder.const(np.zeros(2))
    with pytest.raises((ValueError, TapeError)):
        loop(builder, body, [vector], [(x, 0, 1)], [], 5)


def test_text():
    text = str(jitad.jit(lambda x: jitad.scan(lambda c, e: (c + e, None), 0.0, x)[0] * jitad.fori_loop(
        0, 3, lambda i, c: np.sin(c) * i, 0.5)).compile(Y).tape)
    assert "scan t = 0 .. 2: init = 0.5" in text and "\n" in text and "Node(" not in text


# --- what the optimiser does ---------------------------------------------------------------------

def taped(f, *args):
    return f.compile(*args).tape


def test_what_is_not_used_goes():
    def f(x):
        def step(carry, e):
            a, b, c = carry
            return (a * e + 1.0, np.exp(b) + a, c), (np.log(np.abs(b)), c + a)
        return jitad.scan(step, (1.0, 0.5, x[0]), x)[0][0]
    (form,) = scans(taped(jitad.jit(f), Y))
    assert form.carries == 1 and form.stacks == 0 and size(form.body) <= 5


def test_invariants_and_dear_rows_are_hoisted():
    def f(x, s):
        return jitad.scan(lambda c, e: (c * np.exp(-s) + np.tanh(e) / s, None), 0.0, x)[0]
    tape = taped(jitad.jit(f), Y, 0.7)
    (form,) = scans(tape)
    assert {n.prim.name for n in form.body.nodes} == {"input", "mul", "add"}
    assert [n.aval.shape for n in tape.nodes if n.prim.name == "tanh"] == [(12,)]


def test_likelihoods_leave_the_recurrence():
    def f(x, a):
        def step(carry, e):
            h, total = carry
            h = 0.5 + a * h
            return (h, total - np.log(h) - e / h), None
        return jitad.scan(step, (1.0, 0.0), x)[0][1]
    forward, backward = scans(taped(jitad.grad(f, argnums=1), Y, 0.3))
    for form in (forward, backward):
        assert {n.prim.name for n in form.body.nodes} <= {"input", "const", "mul", "add", "sub", "neg"}


def test_value_and_gradient_share_the_forward_loop():
    f = jitad.value_and_grad(lambda a: np.sum(jitad.scan(lambda c, e: (np.sin(c * a + e),) * 2, 0.1, Y)[1]))
    assert len(scans(taped(f, 0.3))) == 2


def test_zero_cotangents_do_not_meet_infinities():
    """The last root would be of zero, but nothing depends on it."""
    f = jitad.value_and_grad(lambda x: np.sum(jitad.scan(lambda c, e: (np.sqrt(e - c), c), 0.0, x)[1]))
    value, gradient = f(np.array([4.0, 3.0, 1.0]))
    close(value, 3.0)
    close(gradient, [0.25 - 0.125, 0.5, 0.0])
    g = jitad.grad(lambda x: np.sum(jitad.scan(lambda c, e: (c + np.where(e > 0, np.log(e), 0.0), c), 0.0, x)[1]))
    close(g(np.array([2.0, 0.0, 1.0])), [1.0, 0.0, 0.0])


# --- the public functions ------------------------------------------------------------------------

def test_trees_and_weak_numbers():
    def f(x):
        def step(carry, e):
            return {"n": carry["n"] + 1, "sum": carry["sum"] + e["v"] * carry["n"]}, (carry["sum"], None)
        carry, (rows, nothing) = jitad.scan(step, {"n": 0, "sum": 0.0}, {"v": x})
        assert nothing is None
        return carry, rows
    (plain_carry, plain_rows), (carry, rows) = f(Y), jitad.jit(f)(Y)
    assert carry["n"] == plain_carry["n"] == 12
    close(carry["sum"], plain_carry["sum"])
    close(rows, plain_rows)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_short_loops(n):
    jitad.cache.clear()
    f = lambda x: jitad.scan(lambda c, e: (c * e, np.sin(c)), 2.0, x)
    for a, b in zip(f(Y[:n]), jitad.jit(f)(Y[:n]), strict=True):
        assert np.shape(a) == np.shape(b)
        close(a, b)
    g = lambda x: jitad.fori_loop(0, n, lambda i, c: c * x[i], 2.0)
    close(jitad.jit(g)(Y), g(Y))
    assert np.isfinite(jitad.grad(g)(Y)).all()


def test_loops_over_counters_with_computed_places():
    def f(x):
        return jitad.fori_loop(0, 6, lambda i, c: c + x[2 * i + 1] * x[-1 - i] * x[(i * i) % 12], 0.0)
    close(jitad.jit(f)(Y), f(Y))
    g = jitad.grad(f)(Y)
    expected = [(f(Y + d) - f(Y - d)) / 2e-6 for d in np.eye(12) * 1e-6]
    close(g, expected, 1e-7)


def test_gradients_inside_of_loops_and_the_other_way():
    slope = jitad.grad(lambda v, a: a * np.sin(v))

    def descent(a):
        return jitad.fori_loop(0, 20, lambda i, v: v - 0.1 * slope(v, a), 1.0)
    plain_value = 1.0
    for _ in range(20):
        plain_value -= 0.1 * 0.7 * np.cos(plain_value)
    close(jitad.jit(descent)(0.7), plain_value)
    close(jitad.grad(descent)(0.7), (jitad.jit(descent)(0.7 + 1e-6) - jitad.jit(descent)(0.7 - 1e-6)) / 2e-6, 1e-7)


def test_errors_say_what_to_do():
    with pytest.raises(TypeError, match="structure"):
        jitad.jit(lambda x: jitad.scan(lambda c, e: ((c, c), None), 0.0, x))(Y)
    with pytest.raises(TypeError, match="shape"):
        jitad.jit(lambda x: jitad.scan(lambda c, e: (c[:2], None), x, x))(Y)
    with pytest.raises(ValueError, match="lengths differ"):
        jitad.scan(lambda c, e: (c, None), 0.0, (Y, Y[1:]))
    with pytest.raises(ConcretizationError, match="scan or loop"):
        jitad.jit(lambda x: jitad.scan(lambda c, e: (c + 1 if e > 0 else c, None), 0.0, x))(Y)
    with pytest.raises(TypeError, match="carry, y"):
        jitad.jit(lambda x: jitad.scan(lambda c, e: c, 0.0, x))(Y)


def newton(a):
    return jitad.while_loop(lambda c: np.abs(c[0] ** 2 - a) > 1e-10, lambda c: (0.5 * (c[0] + a / c[0]), c[1] + 1),
                            (1.0, 0))


def test_while_loops():
    f = jitad.jit(newton)
    for a in (2.0, 1e6, 1.0):
        root, count = f(a)
        close(root, np.sqrt(a))
        assert count == newton(a)[1]
    g = jitad.grad(lambda a: newton(a)[0])
    for a in (2.0, 1e6):                             # in reverse too, by one kernel
        close(g(a), 0.5 / np.sqrt(a), 1e-9)
    assert jitad.cache.info(g).compiles == 1
    with pytest.raises(UnsupportedOperationError, match="fori_loop"):
        jitad.grad(lambda a: jitad.fori_loop(0, 3, lambda i, s: s + newton(a + s)[0], 0.0))(2.0)


def test_while_loops_of_more_steps_than_there_is_memory_for():
    def f(x, n):
        return jitad.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, 0.999 * c[1] + x), (0, 0.0))[1]
    g = jitad.grad(f)
    for n in (3, 900, 5000, 0, 2000):
        close(g(0.5, n), (1 - 0.999**n) / 0.001, 1e-9)
    assert jitad.cache.info(g).compiles == 2


def test_forward_mode_through_while_loops():
    builder = Builder()
    a, t = builder.input(Aval((), F8), "a"), builder.input(Aval((), F8), "t")
    body = body_of(lambda go, c, a: [TABLE["abs"](c * c - a) > 1e-6, (c + a / c) * 0.5], ((), B1), ((), F8), ((), F8))
    init = [builder.const(np.bool_(True)), builder.const(1.0)]
    (_, root), _ = loop(builder, body, init, [], [a], 1 << 40, until=True)
    (tangent,) = pushforward(builder, [root], [a], [t])
    value, slope = same_everywhere(builder.finish([root, tangent]), 5.0, 1.0)
    close(value, np.sqrt(5.0), 1e-9)
    close(slope, 0.5 / np.sqrt(5.0), 1e-6)


def test_only_the_branch_that_is_taken_is_computed():
    def f(x):
        return jitad.cond(x[0] > 0, lambda v: np.sum(np.linalg.cholesky(np.outer(v, v) + v[0] * np.eye(3)))
                          * np.ones(3), np.exp, x)
    x = np.array([0.3, 0.2, 0.1])
    for point in (x, -x, x[::-1]):
        close(jitad.jit(f)(point), f(point))
        total = lambda v: float(np.sum(f(v)))
        expected = [(total(point + d) - total(point - d)) / 2e-6 for d in np.eye(3) * 1e-6]
        close(jitad.grad(lambda v: np.sum(f(v)))(point), expected, 1e-7)


def test_cheap_branches_are_selected():
    g = jitad.value_and_grad(lambda x: np.sum(jitad.cond(x[0] > 0, lambda: np.sqrt(x), lambda: 2 * x)))
    assert not scans(taped(g, Y[:2]))
    close(g(np.array([1.0, 4.0]))[1], [0.5, 0.25])
    close(g(np.array([-1.0, 0.0]))[1], [2.0, 2.0])        # not the slope of the root at 0
    assert jitad.cond(False, lambda: 1, lambda: 2) == 2


def test_values_that_leave_the_body_by_the_back_door():
    def f(x):
        kept = []
        jitad.scan(lambda c, e: (kept.append(c * e) or c, None), 0.0, x)
        return kept[0]

    def g(x):
        out = np.zeros(5)

        def step(i, c):
            out[i] = c * x[i]
            return c + 1.0
        jitad.fori_loop(0, 5, step, 0.5)
        return out.sum()
    for function in (f, g):
        with pytest.raises(jitad.LeakedTracerError, match="return it from the body"):
            jitad.jit(function)(Y)


@pytest.mark.parametrize(("n", "reverse"), [(32, False), (70, True), (1100, False)])
def test_checkpoints(n, reverse):
    x = np.sin(np.arange(n * 2.0)).reshape(n, 2)

    def f(a, x, checkpoint):
        def step(c, e):
            c = np.tanh(c * a + e[0]) + 0.1 * c
            return c, np.exp(c) * e[1]
        last, rows = jitad.scan(step, 0.3, x, reverse=reverse, checkpoint=checkpoint)
        return last + np.sum(rows * np.arange(n))
    jitad.cache.clear()
    g = jitad.value_and_grad(f, argnums=(0, 1))
    (expected, by_expected) = g(0.4, x, False)
    jitad.cache.clear()
    (value, by) = g(0.4, x, True)
    close(value, expected)
    close(by[0], by_expected[0])
    close(by[1], by_expected[1])
    sizes = [n.aval.size for t in (g.compile(0.4, x, True).tape,) for n in t.nodes if n.prim.kind == "pick"]
    assert n <= 32 or sum(sizes) < 3 * n + 200 + 64 * 3


@pytest.mark.parametrize("loop", [
    lambda x: jitad.fori_loop(0, 3, lambda i, c: np.sum(c) + x, 1.0),
    lambda x: jitad.scan(lambda c, v: (np.sum(c) + x, v), 1.0, x)[0],
    lambda x: jitad.while_loop(lambda c: np.sum(c) < 9, lambda c: np.sum(c) + x, 1.0),
    lambda x: jitad.fori_loop(0, 3, lambda i, c: np.stack([c, c]), x),
])
def test_a_carry_that_grows_is_refused(loop):
    """A first value that was made as large as the second would be another: its sum is."""
    message = r"init.* has shape .* keeps its shape \(at .*test_edges.py:\d+\): start with"
    with pytest.raises(TypeError, match=message):
        jitad.jit(loop)(np.array([0.5, 1.5, 2.5]))


def test_branches_of_different_shapes_are_refused():
    with pytest.raises(TypeError, match=r"branches of cond .* shapes \(\) and \(2,\) \(at .*test_edges.py"):
        jitad.jit(lambda x: jitad.cond(x[0] > 0, lambda: 0.0, lambda: x))(np.ones(2))
