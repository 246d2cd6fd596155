"""Imports go strictly downward, numba lives in one room, and nothing grows without bound."""
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted([*ROOT.glob("jitad/**/*.py"), *ROOT.glob("cache/**/*.py")])

# The rooms from the ground up; a room may import from those before it.
ROOMS = ["version", "errors", "cache", "tape", "primitives", "passes", "trace", "compile", "call", "export", "api",
         "testing", "__init__", "integrations", "demo", "__main__"]
UPWARD = {
    ("jitad.call.compiled", "export"): "a compiled tape draws and saves itself when asked",
}
LONG_FILES = {"jitad/trace/captures/captures.py"}
LONG_FUNCTIONS: dict[str, str] = {}
NUMBA_OUTSIDE = {"jitad/integrations/nutpie.py": "a C function that copies a vector, made once when first needed"}


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("jitad", *parts) if parts[0] == "cache" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def room_of(module):
    """The room of a dotted module."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path):
    """(module, line) of every import in a file, those inside functions too; not those for type checkers alone."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            yield from ((a.name, node.lineno) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[:len(package.split(".")) - node.level + 1]) if node.level else ""
            name = ".".join(filter(None, [base, node.module]))
            for a in node.names:                          # a name may be a module
                yield (f"{name}.{a.name}" if is_module(f"{name}.{a.name}") else name), node.lineno
        for child in ast.iter_child_nodes(node):
            yield from visit(child)
    return list(visit(ast.parse(path.read_text())))


def is_module(name):
    parts = name.split(".")
    base = ROOT / "cache" if parts[:2] == ["jitad", "cache"] else ROOT / "jitad"
    rest = parts[2:] if parts[:2] == ["jitad", "cache"] else parts[1:]
    place = base.joinpath(*rest)
    return parts[0] == "jitad" and (place.with_suffix(".py").exists() or (place / "__init__.py").exists())


def test_imports_go_strictly_downward():
    wrong, used = [], set()
    for path in FILES:
        module = module_of(path)
        room = room_of(module)
        assert room in ROOMS, f"where does {module} belong? Add it to ROOMS"
        for target, line in imports(path):
            if target.split(".")[0] != "jitad" or room_of(target) == room:
                continue
            if (module, room_of(target)) in UPWARD:
                used.add((module, room_of(target)))
            elif room_of(target) not in ROOMS or ROOMS.index(room_of(target)) > ROOMS.index(room):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {target}")
    assert not wrong, "\n".join(wrong)
    assert used == set(UPWARD), "an exception that is no longer needed"


@pytest.mark.parametrize(("room", "stranger"), [
    ("compile", "trace"), ("trace", "passes"), ("passes", "trace")])
def test_rooms_that_do_not_know_each_other(room, stranger):
    for path in FILES:
        if room_of(module_of(path)) == room:
            assert stranger not in {room_of(t) for t, _ in imports(path) if t.startswith("jitad")}


def test_the_cache_knows_nothing_else_of_jitad():
    for path in ROOT.glob("cache/**/*.py"):
        assert {room_of(t) for t, _ in imports(path) if t.split(".")[0] == "jitad"} <= {"cache"}


def test_numba_lives_in_one_room():
    for path in FILES:
        found = {t.split(".")[0] for t, _ in imports(path)} & {"numba", "llvmlite"}
        name = path.relative_to(ROOT).as_posix()
        assert not found or name.startswith("jitad/compile/") or name in NUMBA_OUTSIDE, f"{name} imports {found}"


def test_importing_jitad_is_light():
    heavy = ("numba", "scipy.linalg", "scipy.stats", "scipy.optimize", "nutpie", "pandas")
    code = f"import jitad, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_no_file_is_longer_than_can_be_read():
    files = [*FILES, *ROOT.glob("benchmarks/*.py")]
    long = {str(p.relative_to(ROOT)) for p in files if p.read_text().count("\n") > 400}
    assert long <= LONG_FILES


def length(function):
    """Lines of a function without its docstring."""
    body = function.body
    first = body[0]
    doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if doc else 0)


def test_no_function_is_longer_than_a_page():
    long = {f"{p.relative_to(ROOT)}:{n.name}" for p in FILES for n in ast.walk(ast.parse(p.read_text()))
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and length(n) > 60}
    assert long == set(LONG_FUNCTIONS)
