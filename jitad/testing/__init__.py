"""For users' own tests: are these derivatives right, is this rule, is what the cache serves what a fresh run gives?

    from jitad.testing import check_grads, check_rule, assert_same_as_fresh
"""
from jitad.testing.checks import CheckFailure, assert_same_as_fresh, check_grads, check_rule

__all__ = ["CheckFailure", "assert_same_as_fresh", "check_grads", "check_rule"]
