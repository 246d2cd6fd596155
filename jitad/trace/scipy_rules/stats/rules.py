"""All rules for scipy.stats, as `RULES[distribution][method]`."""
from __future__ import annotations

from jitad.trace.scipy_rules.stats import (
    continuous,
    discrete,
    multivariate,
    shapes,
)
from jitad.trace.scipy_rules.stats.family import FAMILIES, Rule

__all__ = ["RULES", "continuous", "discrete", "shapes"]

RULES: dict[str, dict[str, Rule]] = {name: family.rules() for name, family in FAMILIES.items()}
RULES.update(multivariate.RULES)
