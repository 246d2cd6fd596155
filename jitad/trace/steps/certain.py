"""What the source of a function says for certain of the variables of a loop.

On placeholders a variable is what it is at the head of any step. So nothing may depend on which object it is, on
whether it is assigned already, or on what was there before: where the source leaves that open, the loop is Python's.
"""
from __future__ import annotations

import ast
from typing import Any

__all__ = ["read_elsewhere", "reason", "surely_assigned"]


def reason(function: Any, loop: Any, names: set[str]) -> str:
    """Why a loop, which assigns these names, cannot be walked; empty if nothing speaks against it."""
    inside = set(map(id, ast.walk(loop)))
    for node in ast.walk(function):
        within = id(node) in inside
        if within and isinstance(node, ast.Delete) and any(isinstance(t, ast.Name) for t in node.targets):
            return "it deletes a variable"
        if isinstance(node, ast.Match):
            return "the function matches patterns"
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            sides = [node.left, *node.comparators]
            named = any(isinstance(n, ast.Name) and n.id in names for side in sides for n in ast.walk(side))
            if named and (within or not any(isinstance(side, ast.Constant) for side in sides)):
                return "one of its variables is told by `is`"
    return ""


def surely_assigned(loop: Any) -> frozenset[str]:
    """The variables that a step assigns before anything of it reads them."""
    read, found = _read(loop.test) if isinstance(loop, ast.While) else set(), set()
    for statement in loop.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        read |= _read(statement)
        found |= {n.id for target in targets for n in _plain(target)} - read
    return frozenset(found)


def _plain(target: Any) -> list[Any]:
    """The names of a target that is made of names."""
    if isinstance(target, ast.Name):
        return [target]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    return [n for part in parts for n in _plain(part)]


def read_elsewhere(function: Any, loop: Any, cells: tuple[str, ...]) -> frozenset[str]:
    """The variables that are read outside of the steps of a loop: by other statements, or by functions that hold
    them."""
    steps = [*loop.body, *([loop.test] if isinstance(loop, ast.While) else [])]
    inside = {id(node) for step in steps for node in ast.walk(step)}
    return frozenset(cells).union(_names(n) for n in ast.walk(function) if id(n) not in inside and _reads(n))


def _read(statement: Any) -> set[str]:
    return {_names(node) for node in ast.walk(statement) if _reads(node)}


def _reads(node: Any) -> bool:
    return (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)) or (
        isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name))


def _names(node: Any) -> str:
    return str(node.id if isinstance(node, ast.Name) else node.target.id)
