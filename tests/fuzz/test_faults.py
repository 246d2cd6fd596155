"""Calls with wrong arguments: what plain NumPy raises is raised, and what it does not is a result or an error of ours
that is explained; no fault of our own files comes to the user as it is."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from jitad import JitadError, jit
from jitad.trace.where import is_fault
from tests.programs.table import interpreted

X = np.array([[0.5, 1.5], [2.0, -0.3]])
ODD = ("a", None, 3, -1, 2.5, True, (), [], [1, "b"], {"a": 1}, {1, 2}, slice(0, 1), Ellipsis, np.array("t"), 1j,
       np.zeros((0, 2)), np.zeros((3, 1)), np.array([1, 2]), np.array([True, False]), np.float32(2), float, np.sum,
       lambda v: v, range(2), b"x", np.datetime64("2020-01-01"), np.ones((2, 2, 2)), 10 ** 30, float("nan"))
NAMES = ("axis", "keepdims", "dtype", "out", "where", "k", "n", "ord", "mode", "order", "shape", "initial", "ddof")
FUNCTIONS = [getattr(np, name) for name in """sum mean var max sort argsort cumsum prod median quantile clip where
reshape transpose concatenate stack dot matmul einsum tensordot outer kron diag tril roll repeat tile pad take insert
delete interp convolve polyval trapezoid diff gradient average cov histogram bincount searchsorted unique exp maximum
arctan2 power add floor_divide array asarray zeros_like full linspace meshgrid squeeze expand_dims swapaxes split
broadcast_to atleast_2d nan_to_num select piecewise apply_along_axis vectorize cross""".split() if name in vars(np)]
FUNCTIONS += [np.linalg.norm, np.linalg.solve, np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.eigh,
              np.fft.fft, np.add.reduce, np.multiply.outer, scipy.special.logsumexp, scipy.special.gammaln,
              scipy.special.polygamma, scipy.linalg.expm, scipy.linalg.cho_solve, float, complex, np.float64]
METHODS = "sum reshape astype dot take repeat clip item tolist sort fill copy T flat round __getitem__ nothing".split()


def written(rng):
    """A call with odd arguments, of which at least one is traced."""
    pick = lambda: ODD[rng.integers(len(ODD))]
    args = [pick() for _ in range(rng.integers(0, 3))]
    options = {NAMES[rng.integers(len(NAMES))]: pick() for _ in range(rng.integers(0, 2))}
    place = rng.integers(0, len(args) + 1)
    kind = rng.integers(4)
    if kind == 0:
        name = METHODS[rng.integers(len(METHODS))]
        return lambda x: getattr(x, name)(*args, **options)
    function = FUNCTIONS[rng.integers(len(FUNCTIONS))]
    if kind == 1:
        return lambda x: function([x[0, 0], *args], **options)
    return lambda x: function(*args[:place], x, *args[place:], **options)


def ran(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize("seed", range(6))
def test_wrong_arguments(seed):
    rng = np.random.default_rng(seed)
    warnings.simplefilter("ignore")
    for _ in range(80):
        call = written(rng)
        _, plain = ran(lambda call=call: call(X.copy()))
        _, ours = ran(lambda call=call: interpreted(jit(call), (X,)))
        assert not is_fault(ours) if ours is not None and plain is None else True, (plain, ours)
        assert plain is not None or ours is None or isinstance(ours, JitadError), ours
