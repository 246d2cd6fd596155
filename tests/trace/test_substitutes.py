"""Replacements of functions in Python that do not dispatch."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.trace.substitutes import SUBSTITUTES, substitute


def original(x, scale=1.0, policy="all"):
    return scale * np.asarray(x)


def test_options_that_a_rule_lacks_are_refused_but_at_their_defaults():
    """As those of libraries that are newer than the rule."""
    substitute(original)(lambda x, scale=1.0: scale * x)
    try:
        assert jitad.jit(lambda x: original(x, policy="all"))(2.0) == 2.0
        assert jitad.jit(lambda x: original(x, scale=3.0))(2.0) == 6.0
        with pytest.raises(jitad.UnsupportedOperationError, match=r"original with policy='some' at .*; leave the opt"):
            jitad.jit(lambda x: original(x, policy="some"))(2.0)
    finally:
        del SUBSTITUTES[original]
