"""All rules for scipy.stats, as `RULES[distribution][method]`."""
from __future__ import annotations

from jitad.trace.scipy_rules.stats import (
    bivariate,
    bounded,
    continuous,
    discrete,
    gammas,
    lifetimes,
    matrices,
    multivariate,
    shapes,
)
from jitad.trace.scipy_rules.stats.family import FAMILIES, Rule

__all__ = ["RULES", "bivariate", "bounded", "continuous", "discrete", "gammas", "lifetimes", "matrices", "shapes"]

RULES: dict[str, dict[str, Rule]] = {name: family.rules() for name, family in FAMILIES.items()}
RULES.update(multivariate.RULES)
