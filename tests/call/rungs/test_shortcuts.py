"""The second call of a kind goes by generated code, and gives what the first one gave."""
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

from jitad import grad, value_and_grad
from jitad.errors import ArgumentTypeError, SignatureError

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
Pair = namedtuple("Pair", "a b")


@dataclass
class Parts:
    a: np.ndarray
    rest: dict


class Tagged(np.ndarray):
    pass


A, B = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 4.0])
ARGUMENTS = [
    {"b": A, "a": B}, [A, B], (A, B), Pair(A, B), Parts(A, {"x": B}), {"p": Parts(A, {"x": (B, 2.0)}), 3: [A]},
    OrderedDict(b=A, a=B), np.float64(1.5), np.float32(1.5), np.array(1.5), A.astype("f4"), (), {"a": ()},
    np.arange(3), np.arange(3, dtype=np.uint8), 2, np.int32(2), A.view(Tagged), np.arange(3).view(Tagged),
    A.astype(">f8"),
]


def _leaves(x):
    if isinstance(x, Parts):
        return _leaves(x.a) + _leaves(x.rest)
    if isinstance(x, dict):
        return [leaf for v in x.values() for leaf in _leaves(v)]
    return [leaf for v in x for leaf in _leaves(v)] if isinstance(x, (tuple, list)) else [x]


def _shape(x):
    """Classes, keys in their order, dtypes and elements."""
    if isinstance(x, Parts):
        return Parts, _shape(x.a), _shape(x.rest)
    if isinstance(x, dict):
        return type(x), [(k, _shape(v)) for k, v in x.items()]
    if isinstance(x, (tuple, list)):
        return type(x), [_shape(v) for v in x]
    return type(x), np.asarray(x).dtype, np.shape(x), np.asarray(x).tolist()


def total(p, scale):
    return sum([np.sum(leaf * leaf) for leaf in _leaves(p)], 0.0) * scale


@pytest.mark.parametrize("argument", ARGUMENTS, ids=lambda x: type(x).__name__)
def test_later_calls_give_what_the_first_gave(argument):
    g, both = value_and_grad(total), grad(total, argnums=(0, 1))
    first, pair = g(argument, 2.0), both(argument, 2.0)
    for _ in range(2):
        assert _shape(g(argument, 2.0)) == _shape(first)
        assert _shape(both(argument, 2.0)) == _shape(pair)
    assert [np.asarray(x).tolist() for x in _leaves(first[1])] == [(4.0 * np.asarray(x)).tolist()
                                                                   for x in _leaves(argument)]


def test_of_a_known_kind_no_call_is_taken_apart(monkeypatch):
    g = value_and_grad(lambda x, scale: total(x, scale))  # of code that no test has called before
    kinds = [A, np.arange(3), A.view(Tagged), np.arange(3).view(Tagged)]
    wanted = [_shape(g(x, 2.0)) for x in kinds]
    monkeypatch.setattr("jitad.call.request.subject.take_apart", None)
    assert [_shape(g(x, 2.0)) for x in kinds] == wanted


def test_what_looks_alike_is_refused_as_ever():
    g = grad(total)
    for known in (np.arange(3), A.view(Tagged), 2):
        g(known, 2.0)
        g(known, 2.0)
    with pytest.raises(ArgumentTypeError, match="boolean"):
        g(np.array([True, False, True]), 2.0)
    with pytest.raises(ArgumentTypeError, match="beyond 64 bits"):
        g(2**70, 2.0)
    with pytest.raises(ArgumentTypeError, match="operations are not those of arrays"):
        g(np.matrix(A), 2.0)
    np.testing.assert_array_equal(g(np.arange(4), 2.0), 4.0 * np.arange(4))
    np.testing.assert_array_equal(g(np.arange(3, dtype=">i8"), 2.0), 4.0 * np.arange(3))


def test_out_is_written_by_shortcuts_too():
    g = value_and_grad(total)
    for _ in range(3):
        out = np.empty(3)
        value, same = g(A, 2.0, out=out)
        assert same is out and value == 28.0
        np.testing.assert_array_equal(out, 4.0 * A)
    fixed = np.empty(3)
    fixed.flags.writeable = False
    for wrong in (np.empty(4), np.empty(3, np.float32), fixed, [1.0]):
        with pytest.raises(SignatureError):
            g(A, 2.0, out=wrong)
    tree = {"a": np.empty(3), "b": np.empty(3)}
    for _ in range(2):
        assert g({"a": A, "b": B}, 1.0, out=tree)[1] is tree
        np.testing.assert_array_equal(tree["b"], 2.0 * B)


def test_bound_functions_put_trees_together():
    bound = value_and_grad(total).bind(scale=2.0)
    p = {"p": Parts(A, {"x": (B, 2.0)}), 3: [A]}
    first = _shape(bound(p))
    assert _shape(bound(p)) == first == _shape(value_and_grad(total)(p, 2.0))


@dataclass(frozen=True)
class Frozen:
    a: np.ndarray
    b: np.ndarray


@dataclass
class Counted:
    a: np.ndarray
    b: np.ndarray
    sets = 0

    def __setattr__(self, name, value):
        Counted.sets += 1
        object.__setattr__(self, name, value)


@dataclass(slots=True)
class Slots:
    a: np.ndarray
    b: np.ndarray


def test_gradients_by_dataclass_run_nothing_of_its_own():
    for cls in (Frozen, Counted, Slots):
        given = cls(A, B)
        g, before = grad(lambda p: np.sum(p.a * p.b)), Counted.sets
        for _ in range(3):
            found = g(given)
        assert type(found) is cls and found.a.tolist() == B.tolist() and found.b.tolist() == A.tolist()
        assert Counted.sets == before
