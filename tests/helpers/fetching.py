"""Captured values read by the statements that a shortcut runs."""
from __future__ import annotations

from jitad.cache.keys.getters import PREFIX
from jitad.call.rungs.generated import function_of


def fetch_of(plan, target):
    """A function that returns the inputs of `target` as a tuple, None once a guard fails; None if the plan does not
    match."""
    source = plan.generate(target, fail="return None")
    if source is None:
        return None
    lines = ["try:", *(f"    {line}" for line in source.lines), "    pass", f"except {PREFIX}error:", "    return None",
             f"return ({''.join(f'{name}, ' for name in source.inputs)})"]
    return function_of("", lines, {**source.bound, f"{PREFIX}error": Exception}, source.namespace)
