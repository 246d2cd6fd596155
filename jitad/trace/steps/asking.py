"""The code of a function with calls in place of ``a is b``, put into the source as `trace.steps.rewrite` puts marks.
"""
from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType
from typing import Any

from jitad.trace.steps.rewrite import rewritten

__all__ = ["asking"]

_MARK = ".asked"                                         # stands for what is called until the code is made


def asking(code: CodeType, asked: Any) -> CodeType | None:
    """The code that asks `asked` (see `trace.captures.asked`); None where its source is not at hand."""
    found = _asking(code)
    return None if found is None else _with(found, asked)


@lru_cache(maxsize=512)
def _asking(code: CodeType) -> CodeType | None:
    """The code with calls in place of ``is``; None where its source is not at hand."""
    writer = _Questions()
    found = rewritten(code, writer.change)
    return found if writer.whole else None


class _Questions(ast.NodeTransformer):
    whole = True                                         # whether each ``is`` of two things was replaced

    def change(self, function: Any) -> None:
        body = function.body
        function.body = self.visit(body) if isinstance(function, ast.Lambda) else [*map(self.visit, body)]

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if not any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return node
        sides = [node.left, *node.comparators]
        if len(sides) > 2:
            self.whole = False
        if len(sides) > 2 or any(isinstance(side, ast.Constant) for side in sides):
            return node
        method = "is_" if isinstance(node.ops[0], ast.Is) else "is_not"
        return ast.copy_location(ast.Call(ast.Attribute(ast.Constant(_MARK), method, ast.Load()), sides, []), node)


def _with(code: CodeType, asked: Any) -> CodeType:
    return code.replace(co_consts=tuple(
        asked if c == _MARK else _with(c, asked) if isinstance(c, CodeType) else c for c in code.co_consts))
