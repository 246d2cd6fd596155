"""The sources as the tests of their shape read them: modules, imports, private names, functions."""
from __future__ import annotations

import ast
import functools
import gc
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
    ["api"], ["testing", "constraints", "distributed"], ["inference"], ["integrations"], ["__init__"], ["demo"],
    ["__main__"],
]


def module_of(path: Path) -> str:
    """The dotted name under which a file is imported; `cache/` is installed as `jitad.cache`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("jitad", *parts) if parts[0] == "cache" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}
ALL_MODULES = {module_of(path): path for path in ALL_FILES}


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, made without collecting garbage. It is not to be kept: whatever runs later in the
    same process would go through its nodes at each collection."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def statements(block: ast.AST) -> Iterator[ast.stmt]:
    """All statements, however deep, and not what they are made of: a tenth of what `ast.walk` visits."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(block, name, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


@functools.cache
def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(node for node in statements(parsed(path)) if isinstance(node, (ast.Import, ast.ImportFrom)))


def room_of(module: str) -> str:
    """The folder of `jitad/` in which a module is, or the file if it is beside the folders."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path, *packages: str) -> Iterator[tuple[str, int]]:
    """(module, line) of every import of these packages in a file, inside functions and for type checkers too."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        else:
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
def private(path: Path) -> tuple[frozenset[str], tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    """The private names that a file defines (variables, functions, classes, attributes), and with their lines those
    that it imports of jitad and those that it reads as attributes."""
    names, imported, read = set(), [], []
    for node in ast.walk(parsed(path)):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            read.append((node.attr, node.lineno))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)                     # slots and fields that are named in text
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "jitad"):
            imported += [(alias.name, node.lineno) for alias in node.names]
    return (frozenset(filter(is_private, names)),
            *(tuple(use for use in uses if is_private(use[0])) for uses in (imported, read)))


def private_uses(path: Path) -> list[tuple[str, int]]:
    """(name, line) of the private names that a file takes from another: by import, or as an attribute."""
    own, imported, read = private(path)
    elsewhere = frozenset().union(*(private(other)[0] for other in FILES)) - own
    return [*imported, *(use for use in read if use[0] in elsewhere)]


@functools.cache
def definitions(path: Path) -> tuple[tuple[type, str, int, int], ...]:
    """Kind, name, line and lines of body of each class and function in a file."""
    return tuple((type(node), node.name, node.lineno, body_length(node)) for node in statements(parsed(path))
                 if isinstance(node, (*FUNCTIONS, ast.ClassDef)))


def body_length(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Lines of a body without its docstring."""
    body = definition.body
    start = body[1] if ast.get_docstring(definition) is not None and len(body) > 1 else body[0]
    return definition.end_lineno - start.lineno + 1
