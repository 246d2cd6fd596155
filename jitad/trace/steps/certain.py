"""What the source of a function says for certain of the variables of a loop.

On placeholders a variable is what it is at the head of any step. So nothing may depend on which object it is, on
whether it is assigned already, or on what was there before: where the source leaves that open, the loop is Python's.
"""
from __future__ import annotations

import ast
from typing import Any, NamedTuple

__all__ = ["Choice", "choice_of", "read_elsewhere", "reason", "surely_assigned"]

_PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod,
          ast.FloorDiv, ast.USub, ast.UAdd, ast.Load)    # of what is computed without harm where it is not wanted


class Choice(NamedTuple):
    """A branch that does nothing but assign: the variables, and what they are on its two sides."""

    test: Any
    names: tuple[str, ...]
    yes: tuple[Any, ...]
    no: tuple[Any, ...]
    body: list[Any]
    orelse: list[Any]


def choice_of(node: Any) -> Choice | None:
    """An ``if`` statement as a choice, or ``x = a if test else b``; None of anything else."""
    sides: list[list[Any]]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
        sides = [[ast.copy_location(ast.Assign(node.targets, value), node)]
                 for value in (node.value.body, node.value.orelse)]
        test = node.value.test
    elif isinstance(node, ast.If):
        test, sides = node.test, [node.body, node.orelse]
    else:
        return None
    yes, no = map(_assignments, sides)
    if yes is None or no is None or not {**yes, **no}:
        return None
    names = tuple({**yes, **no})
    values = lambda side: tuple(side.get(name, ast.Name(name, ast.Load())) for name in names)
    return Choice(test, names, values(yes), values(no), sides[0], sides[1] or [ast.copy_location(ast.Pass(), node)])


def _assignments(statements: list[Any]) -> dict[str, Any] | None:
    """What variables are assigned, each once, and of what was there before; None if something else is done."""
    found: dict[str, Any] = {}
    for statement in statements:
        if isinstance(statement, ast.Pass):
            continue
        target, value = _assigned(statement)
        if target is None or not all(isinstance(part, _PLAIN) for part in ast.walk(value)) or not (
                {target, *_read(value)}.isdisjoint(found)):
            return None
        found[target] = value
    return found


def _assigned(statement: Any) -> tuple[str | None, Any]:
    """The variable that a statement assigns, and what; of ``x += a`` it is ``x + a``."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        return name, ast.copy_location(ast.BinOp(
            ast.copy_location(ast.Name(name, ast.Load()), statement), statement.op, statement.value), statement)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, statement.value
    return None, None


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
