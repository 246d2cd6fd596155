"""Variables of loops whose steps branch: which object they are, whether they are assigned, and of which class."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.trace.record import record

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
DATA = [np.array(x) for x in (
    [1.0, 2, 3, 4, 5], [5.0, 4, 3, 2, 1], [-1.0, 2, -3, 4, -5], [-1.0] * 5, [9.0, -9, 9, -9, 0])]


def none_before_the_first(x):
    w, s = None, 0.0
    for v in x:
        if w is None:
            s += 1
        if v > 2:
            w = v
    return s


def none_of_another_name(x):
    w, s = None, 0.0
    for v in x:
        p = w
        if p is None:
            s += 1
        if v > 2:
            w = v
    return s


def none_in_the_first_step(x):
    s = 0.0
    for i in range(5):
        if i == 0:
            w = None
        if x[i] > 3:
            w = x[i]
        s += 1.0 if w is None else w
    return s


def none_told_by_a_helper(x):
    def missing(w):
        return w is None
    w, s = None, 0.0
    for v in x:
        if missing(w):
            s += 1
        if v > 2:
            w = v
    return s


def none_that_matches(x):
    w, s = None, 0.0
    for v in x:
        match w:
            case None:
                s += 1
            case _:
                s += 2
        if v > 2:
            w = v
    return s


def one_of_two_dicts(x):
    a, b = {"k": 1.0}, {"k": 2.0}
    current = a
    for v in x:
        if v > 2:
            current = b
    current["k"] = 9.0
    return a, b


def one_of_two_lists(x):
    a, b = [1.0, 2.0], [3.0, 4.0]
    current = a
    for v in x:
        if v > 2:
            current = b
        current[0] = current[0] + v
    return a, b


def two_names_of_one_list(x):
    p = [0.0]
    q = p
    for v in x:
        if v > 2:
            p = [v]
        else:
            q = p
    q[0] = q[0] + 100
    return p, q


def one_number_told_by_is(x):
    a, s = x[0], 0.0
    current = a
    for v in x:
        if v > 2:
            current = v
        if current is a:
            s += 1
    return s


def set_in_some_steps(x):
    w = -1.0
    for v in x:
        if v > 2:
            w = v
        elif v > 0:
            w = (v, v)
    return w[0] if isinstance(w, tuple) else w


def deleted(x):
    w, s = 1.0, 0.0
    for v in x:
        if v > 4:
            w = 1.0
        try:
            s += w
        except NameError:
            s += 100
        if v > 2:
            w = 1.0
            del w
            w = 2.0
    return s


def class_of_a_number(x):
    w, s = 0, 0.0
    for v in x:
        if isinstance(w, int):
            s += 1
        if v > 2:
            w = float(np.float64(v) * 0 + 3.5)
    return s


def narrow_integers(x):
    k, s = np.int8(100), 0.0
    for v in x:
        k = k + np.int8(20) if v > 2 else k
        s += k
    return s


def no_steps_at_all(x):
    w, t = None, x[0]
    while t < 4:
        w = t * 2
        t = t + 0.7
        if t > 3:
            t += 0.1
    return -1.0 if w is None else w


PROGRAMS = [none_before_the_first, none_of_another_name, none_in_the_first_step, none_told_by_a_helper,
            none_that_matches, one_of_two_dicts, one_of_two_lists, two_names_of_one_list, one_number_told_by_is,
            set_in_some_steps, deleted, class_of_a_number, narrow_integers, no_steps_at_all]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_variables_are_what_python_has(f):
    g = jitad.jit(f)
    for x in DATA:
        expected, found = f(x), g(x)
        for a, b in zip(_numbers(found), _numbers(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


def _numbers(found):
    if isinstance(found, dict):
        return _numbers(list(found.values()))
    return [n for part in found for n in _numbers(part)] if isinstance(found, (list, tuple)) else [found]


def test_what_only_a_branch_assigns_does_not_end_the_loop():
    """The loop inside sees the variables of the one around it, those that are not set yet among them."""
    def f(x):
        s = 0.0
        for u in x:
            if u > 0:
                k = 0
                while abs(s) > 1.0 and k < 5:
                    s *= 0.7
                    k += 1
            else:
                w = s * u
                s = s + 0.1 * w
            s = s + u
        return s
    g, rng = jitad.jit(f), np.random.default_rng(0)
    for _ in range(6):
        x = 2 * rng.normal(size=9)
        np.testing.assert_allclose(g(x), f(x), rtol=1e-12)
    loops = record(unwrap(f), (DATA[2],)).loops
    assert len(loops) == 2 and not any(known.unfit for known in loops.values())


def test_arrays_of_steps_stay_read_only():
    """Where NumPy refuses the store, after the loop too; where only some steps give such an array, it decides."""
    def program(both):
        def f(x):
            s, rows = 0.0, []
            for _ in range(4):
                if s > x[0]:
                    s = s + 1.0
                    v = np.broadcast_to(s, (2,))
                else:
                    s = s + x[1]
                    v = np.broadcast_to(s, (2,)) if both else x * s
                rows.append(np.broadcast_to(s, (2,)))
            v[1:] = 2.0
            return np.sum(v) + np.sum(rows)
        return f

    read_only = 0
    for f in map(program, (True, False)):
        g = jitad.jit(f)
        for x in (np.array([0.5, 3.0]), np.array([5.0, 0.5])):
            try:
                expected = f(x)
            except ValueError as error:
                read_only += 1
                with pytest.raises(ValueError, match=str(error)):
                    g(x)
            else:
                assert g(x) == pytest.approx(expected, rel=1e-14)
    assert read_only == 3
