"""The checks of `jitad.testing`, for the tests of the table."""
from __future__ import annotations

from jitad.testing.rules import (
    Case,
    CaseGraph,
    CheckFailure,
    build,
    cases,
    check_adjoint,
    check_broadcast,
    check_directions,
    check_forward,
    check_second_order,
    check_value,
    close,
    require,
)
from jitad.testing.scalar import SPECIAL, check_scalar, tag

__all__ = [
    "SPECIAL", "Case", "CheckFailure", "CaseGraph", "build", "cases", "check_adjoint", "check_broadcast",
    "check_directions", "check_forward", "check_scalar", "check_second_order", "check_value", "close", "require", "tag",
]
