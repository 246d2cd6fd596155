"""The sources as the tests of their shape read them: modules, imports, private names, functions."""
from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("jitad/**/*.py"), *ROOT.glob("cache/**/*.py")])
ALL_FILES = [*FILES, *sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# From the ground up: a room may import from the floors below its own, not from its neighbours on the same floor.
# Imports inside functions and those for type checkers count as well.
FLOORS = [
    ["errors", "version", "cache"], ["tape"], ["primitives"], ["passes", "trace"], ["compile"], ["call"], ["export"],
    ["api"], ["testing", "constraints"], ["inference"], ["integrations"], ["__init__"], ["demo"], ["__main__"],
]


def module_of(path: Path) -> str:
    """The dotted name under which a file is imported; `cache/` is installed as `jitad.cache`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("jitad", *parts) if parts[0] == "cache" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}
ALL_MODULES = {module_of(path): path for path in ALL_FILES}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def room_of(module: str) -> str:
    """The folder of `jitad/` in which a module is, or the file if it is beside the folders."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path, *packages: str) -> Iterator[tuple[str, int]]:
    """(module, line) of every import of these packages in a file, inside functions and for type checkers too."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(parsed(path)):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found = [name if (name := f"{base}.{alias.name}") in ALL_MODULES else base for alias in node.names]
        yield from ((name, node.lineno) for name in found if name.split(".")[0] in packages)


def graph() -> dict[str, set[str]]:
    """What each module imports of jitad, of the benchmarks and of the tests."""
    return {module: {target for target, _ in imports(path, "jitad", "benchmarks", "tests") if target in ALL_MODULES}
            - {module} for module, path in ALL_MODULES.items()}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that reach one another by imports: the strongly connected parts, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(v: str) -> None:
        order[v] = low[v] = len(order)
        stack.append(v)
        for w in edges[v]:
            if w not in order:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == order[v]:
            part = stack[stack.index(v):]
            del stack[-len(part):]
            if len(part) > 1:
                found.append(sorted(part))

    for v in edges:
        if v not in order:
            visit(v)
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name.strip("_") != ""


@functools.cache
def private_names(path: Path) -> frozenset[str]:
    """The private names that a file defines: variables, functions, classes, attributes."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)                     # slots and fields that are named in text
    return frozenset(filter(is_private, names))


def private_uses(path: Path) -> Iterator[tuple[str, int]]:
    """(name, line) of the private names that a file takes from another: by import, or as an attribute."""
    elsewhere = frozenset().union(*(private_names(other) for other in FILES if other != path)) - private_names(path)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "jitad"):
            yield from ((alias.name, node.lineno) for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and node.attr in elsewhere:
            yield node.attr, node.lineno


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = function.body
    start = body[1] if ast.get_docstring(function) is not None and len(body) > 1 else body[0]
    return function.end_lineno - start.lineno + 1
