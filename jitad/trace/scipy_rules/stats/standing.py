"""What becomes of every distribution of scipy.stats and of its methods."""
from __future__ import annotations

from typing import Any

from jitad.trace.scipy_rules.stats.distributions import family_name, is_library_distribution
from jitad.trace.scipy_rules.stats.rules import RULES

__all__ = ["distributions", "standing"]


def distributions() -> dict[str, Any]:
    """The distributions of scipy.stats by name."""
    import scipy.stats

    found = {name: getattr(scipy.stats, name) for name in dir(scipy.stats) if not name.startswith("_")}
    return {name: value for name, value in found.items() if is_library_distribution(value)}


def standing(distribution: Any) -> dict[str, str]:
    """What recorded code may do with each method: "differentiated", "refused" (of traced values) or "impure".

    >>> import scipy.stats
    >>> methods = standing(scipy.stats.norm)
    >>> methods["logpdf"], methods["fit"], methods["rvs"]
    ('differentiated', 'refused', 'impure')
    """
    rules = RULES.get(family_name(distribution), {})
    names = [n for n in dir(type(distribution)) if not n.startswith("_") and callable(getattr(type(distribution), n))]
    return {n: "impure" if n == "rvs" else "differentiated" if n in rules or n == "freeze" else "refused"
            for n in names}
