"""The code of a function with marks in its loops: where one is entered, where a step begins, where it is left.

Marks are calls of an object that the copy of the code has among its constants (`Marks` in `trace.steps.marks`). They
are put into the source, as Python's own parser reads it, so that the rest is compiled by Python itself and every line
keeps its number. A function whose source is not at hand, or is not what its code was made of, has no marks.
"""
from __future__ import annotations
import __future__

import ast
import linecache
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from jitad.trace.steps.certain import Choice, choice_of, read_elsewhere, reason, surely_assigned

__all__ = ["SourceLoop", "Place", "loops_around", "loops_in", "marked", "rewritten"]

_MARKS = ".marks"                                        # stands for the object until the code is made
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp, ast.ListComp, ast.SetComp,
           ast.DictComp)
_WALKS = ("enumerate", "zip", "reversed")
_WHOLE = frozenset({"locals", "exec", "eval", "vars", "dir", "globals"})    # that see variables as a whole


Place = tuple[str, int, int]                             # file, line, column


class SourceLoop(NamedTuple):
    """A loop of the source: where it stands, the variables that a step may assign, those that it walks with, those
    whose object it may change (by ``append``, by a store, by ``+=``), and why it cannot have marks, if it cannot."""

    where: Place
    names: tuple[str, ...]
    targets: tuple[str, ...]
    changed: tuple[str, ...]
    augmented: tuple[str, ...]
    refused: str
    first: frozenset[str] = frozenset()                  # the variables that a step assigns before it reads them
    elsewhere: frozenset[str] = frozenset()              # those that are read outside of the steps

    @property
    def changeable(self) -> tuple[str, ...]:
        """The variables whose object may change."""
        return self.changed + self.augmented


class _Source(NamedTuple):
    number: int                                          # of the statement of the file in which the function is
    node: Any
    flags: int
    loops: tuple[tuple[Any, SourceLoop], ...]                  # the node with what is known of it


def _parsed(code: CodeType) -> list[ast.stmt]:
    return ast.parse("".join(linecache.getlines(code.co_filename))).body


@lru_cache(maxsize=512)
def _source(code: CodeType) -> _Source | None:
    """The source of a function; None where it is not at hand, or another."""
    try:
        statements = _parsed(code)
    except (SyntaxError, ValueError):
        return None
    first, flags = code.co_firstlineno, code.co_flags & _FUTURE
    for number, statement in enumerate(statements):
        if _first_line(statement) <= first <= (statement.end_lineno or 0) and _found(
                _compiled(statements, number, code, flags), code, True):
            nodes = [node for node in ast.walk(statement) if isinstance(node, (ast.FunctionDef, ast.Lambda))
                     and _first_line(node) == first and getattr(node, "name", "<lambda>") == code.co_name]
            if len(nodes) == 1:
                return _Source(number, nodes[0], flags, tuple(_loops_of(nodes[0], code)))
    return None


def _first_line(node: Any) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _compiled(statements: list[ast.stmt], number: int, code: CodeType, flags: int) -> CodeType:
    """The code of one statement of a module. With it go those that import: a method of what is imported is called in
    another way."""
    kept = [s for n, s in enumerate(statements) if n == number or isinstance(s, (ast.Import, ast.ImportFrom)) or (
        not isinstance(s, _SCOPES) and any(isinstance(i, (ast.Import, ast.ImportFrom)) for i in _within(s)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(ast.Module(kept, []), code.co_filename, "exec", flags, dont_inherit=True)


def _found(within: CodeType, code: CodeType, same: bool) -> CodeType | None:
    """The code of that function among the constants of a module's code."""
    for inner in within.co_consts:
        if isinstance(inner, CodeType):
            alike = inner == code if same else (inner.co_name, inner.co_firstlineno, inner.co_freevars) == (
                code.co_name, code.co_firstlineno, code.co_freevars)
            found = inner if alike else _found(inner, code, same)
            if found is not None:
                return found
    return None


# --- loops -------------------------------------------------------------------------------------

def _loops_of(function: Any, code: CodeType) -> Iterator[tuple[Any, SourceLoop]]:
    """The loops of a function's own body, outer ones first."""
    shared: set[str] = set()
    for node in _within(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            shared |= set(node.names)
    whole = not _WHOLE.isdisjoint(code.co_names) or bool(code.co_flags & 0x2A0)      # a generator, a coroutine
    for node in _within(function):
        if isinstance(node, (ast.For, ast.While)):
            names, changed, augmented = _assigned(node)
            targets = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)] if isinstance(
                node, ast.For) else []
            refused = "its variables are seen as a whole" if whole else ""
            refused = refused or ("it assigns a global" if shared & set(names) else "")
            refused = refused or reason(function, node, {*names, *targets})
            kept = code.co_varnames + code.co_cellvars + code.co_freevars
            yield node, SourceLoop(
                (code.co_filename, node.lineno, node.col_offset), tuple(n for n in names if n not in targets),
                tuple(targets), tuple(n for n in changed if n not in names and n in kept), tuple(augmented), refused,
                surely_assigned(node), read_elsewhere(function, node, code.co_cellvars))


def _within(node: Any) -> Iterator[Any]:
    """The nodes of a scope, those of the scopes in it left out, but with their names."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _within(child)


def _assigned(loop: Any) -> tuple[list[str], list[str], list[str]]:
    """The names that a step may assign, those by which it may change an object, and those that are augmented."""
    augmented: dict[str, None] = {}
    names: dict[str, None] = {}
    changed: dict[str, None] = {}
    for node in _within(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            augmented[node.target.id] = None
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names[(alias.asname or alias.name).partition(".")[0]] = None
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        elif isinstance(node, _SCOPES[4:]):                  # a walrus in a comprehension is the function's
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    names[inner.target.id] = None
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed |= dict.fromkeys(_root(node))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == "append":
            changed[node.value.id] = None
    return list(names), list(changed), list(augmented)


def _root(node: Any) -> Iterator[str]:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def loops_around(code: CodeType, here: tuple[int, int]) -> list[SourceLoop]:
    """The loops of the code within whose steps a place, line and column, is, outer ones first."""
    source = _source(code)
    return [] if source is None else [loop for node, loop in source.loops if _holds(node, here)]


def loops_in(code: CodeType) -> list[SourceLoop]:
    """All loops of the code."""
    source = _source(code)
    return [] if source is None else [loop for _, loop in source.loops]


def _holds(node: Any, here: tuple[int, int]) -> bool:
    parts = [*node.body, *([node.test] if isinstance(node, ast.While) else [])]
    return any((p.lineno, p.col_offset) <= here < (p.end_lineno, p.end_col_offset) for p in parts)


# --- marks ------------------------------------------------------------------------------------

@lru_cache(maxsize=512)
def _marked(code: CodeType) -> CodeType | None:
    source = _source(code)
    if source is None or not source.loops:
        return None
    writer = _Writer({(loop.where[1], loop.where[2]): loop for _, loop in source.loops if not loop.refused})
    return rewritten(code, writer.change)


def rewritten(code: CodeType, change: Callable[[Any], None]) -> CodeType | None:
    """The code of a function after a `change` of its node in the source; None where that is not at hand."""
    source = _source(code)
    if source is None:
        return None
    statements = _parsed(code)
    again = statements[source.number]
    change(next(n for n in ast.walk(again) if type(n) is type(source.node) and (
        n.lineno, n.col_offset) == (source.node.lineno, source.node.col_offset)))           # type: ignore[attr-defined]
    ast.fix_missing_locations(again)
    return _found(_compiled(statements, source.number, code, source.flags), code, False)


def marked(code: CodeType, marks: Any) -> CodeType | None:
    """The code with marks that go to `marks`; None where it has no loop, or no source."""
    found = _marked(code)
    if found is None:
        return None
    return found.replace(co_consts=tuple(marks if c == _MARKS else c for c in found.co_consts))


class _Items(ast.NodeTransformer):
    """Puts calls in place of ``a[i]``: of a list, `i` may be another one in each step."""

    def visit(self, node: Any) -> Any:
        return node if isinstance(node, _SCOPES) else super().visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, (ast.Constant, ast.Slice, ast.Tuple)):
            return node
        return ast.copy_location(ast.Call(
            ast.copy_location(ast.Attribute(ast.Constant(_MARKS), "item", ast.Load()), node), [node.value, node.slice],
            []), node)


class _Writer:
    """Writes marks into the statements of one function."""

    def __init__(self, loops: dict[tuple[int, int], SourceLoop]) -> None:
        self.loops, self.count = loops, 0

    def change(self, function: Any) -> None:
        function.body = [_Items().visit(statement) for statement in self.block(function.body)]

    def block(self, statements: list[Any], within: list[str] | None = None) -> list[Any]:
        """The statements with marks; `within` are the names of the loop whose step they are."""
        result: list[Any] = []
        for statement in statements:
            result += self.one(statement, within)
        return result

    def one(self, node: Any, within: list[str] | None) -> list[Any]:
        if isinstance(node, (ast.For, ast.While)) and (node.lineno, node.col_offset) in self.loops:
            return self._loop(node, self.loops[node.lineno, node.col_offset], within)
        if within and isinstance(node, (ast.Break, ast.Return)):
            return self._leave(node, within[-1])
        if isinstance(node, _SCOPES):
            return [node]
        if (choice := choice_of(node)) is not None:
            return self._choice(node, choice)
        inner = None if isinstance(node, (ast.For, ast.While)) else within
        for name in ("body", "orelse", "finalbody"):
            held = getattr(node, name, None)
            if isinstance(held, list):
                setattr(node, name, self.block(held, inner))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.block(part.body, inner)
        return [node]

    def _loop(self, node: Any, loop: SourceLoop, within: list[str] | None) -> list[Any]:
        self.count += 1
        run = f".loop{self.count}"
        names = [*loop.names, *loop.changed]
        restored = lambda held: f"({', '.join(held)},)" if held else "RUN.nothing"
        test = isinstance(node, ast.While)
        start = self._text(f"RUN = MARKS.enter({loop.where!r}, ITER)", run, node)
        start[0].value.args[1] = ast.Constant(None) if test else self._walked(node.iter)
        head = self._text(f"if RUN.active: {restored(names)} = RUN.heads", run, node)
        if test:
            ends = self._text("if TEST:\n  if RUN.ends(): break\n  continue", run, node)
            ends[0].test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
            head += ends
        returning = any(isinstance(n, ast.Return) for n in _within(node))
        body = self.block(node.body, [*(within or ()), run])
        target = ast.Name(f"{run}t", ast.Store()) if test else node.target
        walk = ast.For(target, self._text("RUN.steps", run, node)[0].value, [*head, *body], [])
        after = self._text(f"if RUN.active: {restored([*names, *loop.targets])} = RUN.finals()", run, node)
        if returning:
            returns = self._text("if RUN.returned():\n  return RUN.result()", run, node)
            after += self.block(returns, within) if within else returns
        if node.orelse:
            after += self._text("if not RUN.broken(): pass", run, node)
            after[-1].body = self.block(node.orelse, within)
        return [*start, ast.copy_location(walk, node), *after]

    def _choice(self, node: Any, choice: Choice) -> list[Any]:
        """A branch that only assigns numbers: where that can be, both are computed and one is chosen."""
        self.count += 1
        made = self._text("RUN = TEST\nRUNv = None\nif MARKS.chooses(RUN):\n"
                          "  with MARKS.sides_of_branch(): RUNv = MARKS.chosen(RUN, YES, NO)\n"
                          "if RUNv is not None: NAMES = RUNv\nelif RUN: YES\nelse: NO", f".if{self.count}", node)
        made[0].value = choice.test
        made[2].body[0].body[0].value.args[1:] = [ast.Tuple(list(side), ast.Load()) for side in (choice.yes, choice.no)]
        made[3].body[0].targets = [ast.Tuple([ast.Name(name, ast.Store()) for name in choice.names], ast.Store())]
        made[3].orelse[0].body, made[3].orelse[0].orelse = choice.body, choice.orelse
        return made

    def _leave(self, node: Any, run: str) -> list[Any]:
        if isinstance(node, ast.Break):
            return self._text("if RUN.breaks(): break\ncontinue", run, node)
        made = self._text("if RUN.returns(VALUE): break\ncontinue", run, node)
        made[0].test.args[0] = node.value or ast.Constant(None)
        return made

    def _walked(self, node: Any) -> Any:
        """What a loop walks; of ``enumerate(x)``, ``zip(x, y)`` and ``reversed(x)`` the parts are kept."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WALKS:
            made = self._text("MARKS.walk()", "", node)[0].value
            made.args = [node.func, *map(self._walked, node.args)]
            made.keywords = node.keywords
            return made
        return node

    @staticmethod
    def _text(text: str, run: str, node: Any) -> list[Any]:
        """Statements at the place of `node`."""
        made = ast.parse(text).body
        for part in (n for statement in made for n in ast.walk(statement)):
            if isinstance(part, ast.Name) and part.id in ("RUN", "RUNv"):
                part.id = run + part.id[3:]
            for field, value in ast.iter_fields(part):
                if isinstance(value, ast.Name) and value.id == "MARKS":
                    setattr(part, field, ast.Constant(_MARKS))
            if "lineno" in part._attributes:
                ast.copy_location(part, node)
                part.end_lineno, part.end_col_offset = part.lineno, part.col_offset    # type: ignore[attr-defined]
        return made
