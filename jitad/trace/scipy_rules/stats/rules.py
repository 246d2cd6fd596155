"""All rules for scipy.stats, as `RULES[distribution][method]`, and what becomes of every method there is."""
from __future__ import annotations

from typing import Any

from jitad.trace.scipy_rules.stats import (
    continuous,
    discrete,
    multivariate,
    shapes,
)
from jitad.trace.scipy_rules.stats.family import FAMILIES, Rule

__all__ = ["RULES", "distributions", "standing", "continuous", "discrete", "shapes"]

RULES: dict[str, dict[str, Rule]] = {name: family.rules() for name, family in FAMILIES.items()}
RULES.update(multivariate.RULES)


def distributions() -> dict[str, Any]:
    """The distributions of scipy.stats by name."""
    import scipy.stats

    from jitad.trace.scipy_rules.stats.distributions import is_library_distribution

    found = {name: getattr(scipy.stats, name) for name in dir(scipy.stats) if not name.startswith("_")}
    return {name: value for name, value in found.items() if is_library_distribution(value)}


def standing(distribution: Any) -> dict[str, str]:
    """What recorded code may do with each method: "differentiated", "refused" (of traced values) or "impure".

    >>> import scipy.stats
    >>> methods = standing(scipy.stats.norm)
    >>> methods["logpdf"], methods["fit"], methods["rvs"]
    ('differentiated', 'refused', 'impure')
    """
    from jitad.trace.scipy_rules.stats.distributions import family_name

    rules = RULES.get(family_name(distribution), {})
    names = [n for n in dir(type(distribution)) if not n.startswith("_") and callable(getattr(type(distribution), n))]
    return {n: "impure" if n == "rvs" else "differentiated" if n in rules or n == "freeze" else "refused"
            for n in names}
