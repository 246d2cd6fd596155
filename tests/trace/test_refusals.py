"""What cannot be recorded raises an error that says what, where and what to do."""
from __future__ import annotations

import math
import operator
import warnings

import numpy as np
import pytest
from scipy import special

from jitad import jit
from jitad.errors import ConcretizationError, MutationError, UnsupportedOperationError
from jitad.trace.dispatch import FUNCTIONS
from tests.helpers.cases.functions import traced

CONCRETE = [
    ("float", lambda x: float(x[0])), ("math.exp", lambda x: math.exp(x[0])), ("asarray", np.asarray),
    ("array of", lambda x: np.array([x[0], 1.0])),
    ("complex", lambda x: complex(x[0])), ("array index", lambda x: np.ones(3)[x.astype(int)]),
    ("hash", lambda x: {x[0]: 1}),
    ("SciPy", lambda x: special.logsumexp(x)),
]
REFUSED = [
    ("numpy.spacing", np.spacing),
    (".resize()", lambda x: x.resize((1,))), (".byteswap()", lambda x: x.byteswap()),
    ("scipy.special.struve", lambda x: special.struve(1, x)),
    ("counts", lambda x: np.repeat(x, x.astype(int))),
    ("numpy.linalg.svd", lambda x: np.linalg.svd(x[:, None])),
    ("complex256", lambda x: x * np.clongdouble(1j)), ("object", lambda x: x * np.array([None])),
    ("numpy.power.reduce", np.power.reduce),
    ("float16", lambda x: x.astype("f2")), ("float128", lambda x: x * np.longdouble(2)),
    ("numpy.frexp", np.frexp), ("a traced rcond", lambda x: np.linalg.pinv(x[:, None], x[0])),
    ("traced integer", lambda x: 2 ** x.astype(int)),
    ("a function as mode", lambda x: np.pad(x, 1, lambda *a: None)),
]
MUTATIONS = [
    ("x[0] = 1", lambda x: operator.setitem(x, 0, 1.0)), ("x += 1", lambda x: operator.iadd(x, 1)),
    ("x *= 2", lambda x: operator.imul(x, 2)), ("a += x", lambda x: operator.iadd(np.zeros(3), x)),
    ("add.at", lambda x: np.add.at(x, [0], 1)), ("x[...] += 1", lambda x: operator.iadd(x[0, ...], 1)),
    ("0-d reshape", lambda x: operator.iadd(x[:1].reshape(()), 1)), ("out", lambda x: np.exp(x, out=np.zeros(3))),
    ("sum out", lambda x: np.sum(x, out=np.zeros(()))),
]


@pytest.mark.parametrize(("what", "error", "function"), [
    *((w, ConcretizationError, f) for w, f in CONCRETE), *((w, UnsupportedOperationError, f) for w, f in REFUSED),
    *((w, MutationError, f) for w, f in MUTATIONS)], ids=lambda p: p if isinstance(p, str) else "")
def test_errors_say_what_and_where(what, error, function):
    with pytest.raises(error) as caught:
        function(*traced(np.ones(3)))
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "/home/user/model.py:7" in text
    if error is UnsupportedOperationError:
        assert what in text


@pytest.mark.parametrize("block", [
    lambda: np.errstate(invalid="raise"), lambda: np.errstate(all="call"),
    lambda: warnings.catch_warnings(action="error"), lambda: warnings.simplefilter("error"),
    lambda: warnings.filterwarnings("error", category=RuntimeWarning)])
def test_what_makes_numpy_raise_because_of_values(block):
    def f(x):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            block()
            try:
                return np.sum(np.log(x))
            except (FloatingPointError, RuntimeWarning):
                return x[0]
    with pytest.raises(UnsupportedOperationError, match=r"by which NumPy raises because of values, at .*test_refusals"):
        jit(f)(np.ones(2))


def test_blocks_that_silence_numpy_are_taken():
    def f(x):
        with np.errstate(divide="ignore", invalid="warn"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.log(x[0])
    assert jit(f)(np.array([0.0])) == -np.inf


MISFITS = [
    lambda x: x + np.ones(7), lambda x: x @ np.ones((2, 5)), lambda x: x.reshape(5, 5),
    lambda x: np.concatenate([x, np.ones(2)]), lambda x: np.sum(x, axis=5), lambda x: x[10], lambda x: x[[0, 9]],
    lambda x: np.dot(x, np.ones(2)), lambda x: np.stack([x, x[0]]), lambda x: np.where(x > 0, np.ones(9), x),
    lambda x: np.einsum("ij,jk", x, np.ones((7, 2))), lambda x: x[1, 2, 3], lambda x: x[1.5],
    lambda x: np.linalg.cholesky(x), lambda x: np.transpose(x, (0, 0)), lambda x: np.broadcast_to(x, (2, 2)),
    lambda x: x[np.array([True])], lambda x: np.max(x[:0]), lambda x: x.squeeze(0),
    lambda x: np.linalg.solve(np.eye(3), x[:2]), lambda x: np.inner(x, np.ones(2)),
    lambda x: np.tensordot(x, np.ones((3, 3))), lambda x: np.split(x, 2), lambda x: np.einsum("ij,jk->ii", x, x.T),
    lambda x: x[..., ...],
]


@pytest.mark.parametrize("function", MISFITS)
def test_shape_errors_keep_numpys_message(function):
    x = np.ones((3, 4))
    with pytest.raises(Exception, match=r".") as plain_error:
        function(x)
    with pytest.raises(type(plain_error.value)) as caught:
        function(*traced(x))
    assert str(caught.value) == str(plain_error.value)
    assert any("/home/user/model.py:7" in note for note in caught.value.__notes__)


def test_no_function_of_numpy_falls_through():
    """Every function that NumPy hands over has a rule or is refused; none runs on."""
    x, = traced(np.ones((2, 2)))
    for function in (np.may_share_memory, np.shares_memory):
        assert function not in FUNCTIONS
        with pytest.raises(UnsupportedOperationError):
            function(x, x)
