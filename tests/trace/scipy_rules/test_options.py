"""Functions of SciPy and their options: value, dtype and shape as SciPy's, derivatives as differences, its errors."""
from __future__ import annotations

import pytest
import scipy.fft
import scipy.linalg
import scipy.special
import scipy.stats  # noqa: F401

from tests.trace.numpy_rules.test_options import check
from tests.trace.scipy_rules.option_cases import TABLE


@pytest.mark.parametrize(("expression", "args"), [(e, args) for e, *args in TABLE], ids=[
    f"{i} {e}" for i, (e, *_) in enumerate(TABLE)])
def test_options(expression, args):
    check(expression, args)
