"""Arrays that have two names, where loops branch and where an integer that picks is computed."""
from __future__ import annotations

import numpy as np
import pytest

import jitad

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
DATA = [np.array([1.0, -2, 3, -4]), np.array([-1.0, 2, -3, 4])]


class Holder:
    pass


def an_element_of_a_row(x):
    m = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            if x[j] > 0:
                m[i][j] += x[j] * x[i]
    return np.sum(m * m)


def a_row_with_a_name(x):
    a = np.zeros((4, 2))
    for k in range(4):
        row = a[k]
        row += x[k]
        if x[k] > 0:
            row *= x[k]
    return np.sum(a * a)


def rows_that_are_walked(x):
    a = np.zeros((4, 2))
    for row, u in zip(a, x, strict=True):
        row[0] = u
        if u > 0:
            row[1] = u
    return np.sum(a * a)


def walked_and_written_ahead(x):
    a, s = np.ones(4), 0.0
    for k, u in enumerate(a):
        if x[k] > 0:
            a[3] = x[k]
        s = s + u
    return s


def counters_written_ahead(x):
    h, s = np.arange(4), 0.0
    for k in h:
        if x[k] > 0:
            h[3] = 0
        s = s + k * x[k]
    return s


def walked_in_a_list(x):
    a, b, s = np.ones(4), np.ones(4), 0.0
    for k, r in enumerate([a, b, a, b]):
        if x[k] > 0:
            a[0] = -1.0
        s = s + r[0]
    return s


def kept_in_a_list(x):
    a, rows = np.zeros(3), []
    for k in range(4):
        if x[k] > 0:
            a[0] = x[k]
        rows.append(a)
    return np.sum(rows[0])


def written_after_it_is_kept(x):
    a, rows = x * 1, []
    for k in range(4):
        if x[k] > 0:
            a = a * 2
        rows.append(a)
    a[0] = 100.0
    return np.sum(rows[-1]) + np.sum(rows[0])


def written_after_the_loop(x):
    o, s = Holder(), 0.0
    o.a = np.zeros(4)
    for k in range(4):
        b = o.a
        if x[k] > 0:
            s = s + 1
    b[0] = x[0]
    return np.sum(o.a) + s


def read_after_the_loop(x):
    o, s = Holder(), 0.0
    o.a = x * 2
    for k in range(4):
        b = o.a
        if x[k] > 0:
            s = s + 1
    o.a[0] = 5.0
    return np.sum(b) + s


def carried_and_written(x):
    o, v, s = Holder(), x * 1, 0.0
    o.a = x * 2
    for k in range(4):
        if x[k] > 0:
            v[0] = 3.0
        s = s + v[0]
        v = o.a
    return np.sum(o.a) + s


def returned_and_written(x):
    o = Holder()
    o.a = x * 2

    def pick():
        for k in range(4):
            if x[k] > 0:
                return o.a[1:]
        return o.a
    r = pick()
    r[0] = 9.0
    return np.sum(o.a)


def two_in_a_tuple(x):
    both, s = (x * 1, x * 2), 0.0
    for k in range(6):
        _, b = both
        if x[k % 4] > 0:
            both = (b, b)
        s = s + np.sum(both[0]) - np.sum(both[1] ** 2)
    both[0][0] = 5.0
    return s + np.sum(both[1])


def one_by_way_of_another(x):
    a, b, c, s = x * 1, x * 2, x * 3, 0.0
    for k in range(8):
        if x[k % 4] > 2.5:
            b = a
        if x[k % 4] < -1:
            c = a
            a = a * 2
        if k > 4:
            c[0] = 50.0
        s = s + b[0]
    return s + np.sum(c)


def written_when_it_is_left(x):
    a = x * 1
    for k in range(4):
        proposed = a * 1.1 + k
        if x[k] > 0:
            a = proposed
    a[0] = 100.0
    return np.sum(proposed) + a[1]


def one_array_before_it(x):
    before = a = x * 1
    s = 0.0
    for k in range(4):
        if x[k] > 2.5:
            a = a * 1.5
        a[0] += x[k]
        s = s + np.sum(before)
    return s + np.sum(a)


def accepted(x):
    a, s = x * 1, 0.0
    for k in range(6):
        proposed = a + np.sin(k) * x
        if np.sum(proposed) > 0.3 * k:
            a = proposed
        s = s + np.sum(a ** 2)
    return s


def until_it_stays(x):
    v = np.zeros(4)
    while True:
        new = 0.5 * v + np.tanh(x)
        if np.max(np.abs(new - v)) < 1e-3:
            break
        v = new
    return np.sum(v)


def the_best_so_far(x):
    first = x * 1
    best = a = first
    for k in range(6):
        a = np.sin(a) + 0.3 * x[k % 4]
        if np.sum(a) > np.sum(best):
            best = a
    return np.sum(best ** 2) + np.sum(first)


@pytest.mark.parametrize("f", [accepted, until_it_stays, the_best_so_far], ids=lambda f: f.__name__)
def test_arrays_that_become_one_and_are_not_written(f):
    compiled = jitad.jit(f)
    for x in np.random.default_rng(3).normal(size=(12, 4)):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12)
    assert jitad.cache.info(compiled).compiles <= 3


@pytest.mark.parametrize("f", [
    two_in_a_tuple, one_by_way_of_another, written_when_it_is_left, one_array_before_it,
    an_element_of_a_row, a_row_with_a_name, rows_that_are_walked, walked_and_written_ahead, counters_written_ahead,
    walked_in_a_list, kept_in_a_list, written_after_it_is_kept, written_after_the_loop, read_after_the_loop,
    carried_and_written, returned_and_written], ids=lambda f: f.__name__)
def test_an_array_with_two_names(f):
    compiled = jitad.jit(f)
    for x in DATA:
        np.testing.assert_allclose(compiled(x), f(x.copy()), rtol=1e-12)


def test_an_argument_with_two_names_is_not_written():
    def f(x):
        s = 0.0
        for k in range(4):
            v = x
            if x[k] > 0:
                s = s + x[k]
        v *= 2
        return s + np.sum(x)
    with pytest.raises(jitad.MutationError, match="the argument `x` is written to"):
        jitad.jit(f)(DATA[0])


PICKS = {"row": lambda a, k: a[k], "column": lambda a, k: a[:, k], "part": lambda a, k: a[k, 1:],
         "dots": lambda a, k: a[..., k], "new axis": lambda a, k: a[k, None, 1]}


@pytest.mark.parametrize("make", [lambda x: np.zeros((4, 4)), lambda x: np.outer(x, x)], ids=["zeros", "traced"])
@pytest.mark.parametrize("pick", PICKS.values(), ids=PICKS.keys())
def test_what_a_computed_integer_picks_is_a_view(pick, make):
    """It is written or read, but not both under two names."""
    def written_last(x):
        a = make(x)
        r = pick(a, np.argmax(x))
        r[0] = x[0]
        return np.sum(r)

    def written_first(x):
        a = make(x)
        s = np.sum(pick(a, np.argmax(x)))
        a[0] = x[0]
        return s + np.sum(a)

    def seen_through_the_other(x):
        a = make(x)
        r = pick(a, np.argmax(x))
        r[0] = x[0]
        return np.sum(a)

    def seen_through_the_part(x):
        a = make(x)
        r = pick(a, np.argmax(x))
        a[0] = x[0]
        return np.sum(r)

    for x in DATA:
        for f in (written_last, written_first):
            np.testing.assert_allclose(jitad.jit(f)(x), f(x), rtol=1e-12)
        for f in (seen_through_the_other, seen_through_the_part):
            with pytest.raises(jitad.MutationError, match=r"may or may not share.* or by a computed index"):
                jitad.jit(f)(x)


def test_a_copy_in_each_step_does_not_begin_the_recording_again_without_end():
    def f(x):
        s, k = x[0], 0
        while k < 5 and s < 2.0:
            b = x.copy()
            s = s * 1.5 + b[1]
            k += 1
        return s + np.sum(b)

    g = jitad.jit(f)
    for x in (np.array([0.1, 0.2]), np.array([0.9, 0.5]), np.array([0.01, 0.0])):
        np.testing.assert_allclose(g(x), f(x), rtol=1e-14)


def test_what_may_share_memory_at_the_end_of_a_step_may_share_it_after_the_loop():
    """NumPy decides by the layout of `joined` whether `flat` is a view of it."""
    def f(x):
        s = 0.0
        for i in range(4):
            if x[i] > 0:
                joined = np.hstack([np.outer(x, x), np.outer(x, x)]) * (i + 1.0)
                flat = np.reshape(joined, (-1, 1))
            else:
                s = s + x[i]
        flat[0, 0] = 7.0
        return np.sum(joined) + np.sum(flat) + s

    with pytest.raises(jitad.MutationError, match="may or may not share"):
        jitad.jit(f)(np.array([0.3, -0.2, 1.1, 0.7]))
