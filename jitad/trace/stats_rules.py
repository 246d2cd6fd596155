"""All rules for scipy.stats: `RULES[distribution][method]`, and how they can be listed."""
from __future__ import annotations

from jitad.trace import stats_continuous, stats_discrete, stats_multivariate, stats_shapes
from jitad.trace.stats_family import FAMILIES, Rule

__all__ = ["RULES", "stats_continuous", "stats_discrete", "stats_shapes"]

RULES: dict[str, dict[str, Rule]] = {name: family.rules() for name, family in FAMILIES.items()}
RULES.update(stats_multivariate.RULES)
