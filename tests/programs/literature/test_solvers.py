"""Values and derivatives of the programs of the literature, against the plain code and its differences."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import value_and_grad
import tests.programs.literature.models  # noqa: F401 (enters its programs)
from tests.programs.literature.solvers import PROGRAMS
from tests.programs.table import interpreted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, at = PROGRAMS[name]
    value, gradient = interpreted(value_and_grad(function), (at,))
    np.testing.assert_allclose(value, function(at), rtol=1e-6)
    toward = np.random.default_rng(len(name)).normal(size=at.shape)
    step = 1e-4
    near, far = ((function(at + s * toward) - function(at - s * toward)) / (2 * s) for s in (step, 2 * step))
    np.testing.assert_allclose(gradient @ toward, (4 * near - far) / 3, rtol=2e-5, atol=2e-5)


def test_there_are_thirty_five():
    assert len(PROGRAMS) >= 35
