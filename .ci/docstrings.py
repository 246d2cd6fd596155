"""On the site, examples in docstrings that have no heading "Examples" are code, where Markdown sees quotations."""
from __future__ import annotations

import re
from typing import Any

from griffe import Extension

# Lines from one that begins with >>> to the next empty one, at the indentation of the docstring.
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).+)*", re.MULTILINE)
HEADING = re.compile(r"^Examples\n-+$", re.MULTILINE)


class Examples(Extension):
    """Puts fences around the examples."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring and not HEADING.search(text := obj.docstring.value):
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)

    def on_package(self, *, pkg: Any, **kwargs: Any) -> None:
        """A package that stands at the top is no object of another one."""
        self.on_object(obj=pkg)
