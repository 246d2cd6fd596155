"""Tables of rules: what a pass does with a node, by its row or by the kind of its row."""
from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from jitad.tape.types import Primitive

Rule = TypeVar("Rule")


class Rules(Generic[Rule]):
    """A rule for each of some rows and kinds of row; calling the table registers one for names of either."""

    def __init__(self) -> None:
        self.by_name: dict[str, Rule] = {}

    def __call__(self, *names: str) -> Callable[[Rule], Rule]:
        def register(rule: Rule) -> Rule:
            self.by_name.update(dict.fromkeys(names, rule))
            return rule
        return register

    def of(self, prim: Primitive) -> Rule | None:
        """The rule of the row itself, else that of its kind."""
        return self.by_name.get(prim.name) or self.by_name.get(prim.kind)
