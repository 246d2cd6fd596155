"""Tables of rules: what a pass does with a node, by its row or by the kind of its row."""
from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from jitad.tape.types import Primitive

Rule = TypeVar("Rule")


class Rules(Generic[Rule]):
    """A rule for each of some rows and kinds of row; calling the table registers one for names of either."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def __call__(self, *names: str) -> Callable[[Rule], Rule]:
        def register(rule: Rule) -> Rule:
            self._rules.update(dict.fromkeys(names, rule))
            return rule
        return register

    def of(self, prim: Primitive) -> Rule | None:
        """The rule of the row itself, else that of its kind."""
        return self._rules.get(prim.name) or self._rules.get(prim.kind)
