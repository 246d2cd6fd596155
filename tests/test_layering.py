"""Imports go strictly downward and never in a circle, rooms keep what is theirs, and importing jitad is light."""
from __future__ import annotations

import ast
import subprocess
import sys

from tests.helpers.light import LINALG
from tests.helpers.sources import FILES, FLOORS, MODULES, ROOT, circles, graph, imports, parsed, private_uses, room_of

STRANGERS = [("compile", "trace")]                  # rooms on different floors that do not know each other either
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# The same inside the large rooms, of their folders and files.
INSIDE = {
    "trace": [
        ["attempts", "impure", "leaves", "pytree", "reasons", "where"], ["catching", "dispatch"],
        ["arrays", "substitutes", "ufuncs"], ["values"], ["recorder"], ["loop_body", "templates", "watched"],
        ["numpy_rules"], ["complexes", "scipy_rules"], ["captures"], ["steps"], ["record"],
    ],
    "compile": [
        ["llvm", "loops", "math", "sparse"], ["duration", "plan", "scalar"], ["lower", "routines"], ["parallel"],
        ["emit", "outline", "reference"],
        ["entry"], ["tapemachine"],
    ],
}


def test_every_room_has_a_floor():
    assert {room_of(module) for module in MODULES} == set(FLOOR)


def test_imports_go_strictly_downward():
    wrong = []
    for module, path in MODULES.items():
        room = room_of(module)
        for target, line in imports(path, "jitad"):
            other = room_of(target)
            if other != room and (FLOOR[other] >= FLOOR[room] or (room, other) in STRANGERS):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_imports_inside_a_room_go_strictly_downward():
    for room, floors in INSIDE.items():
        floor = {part: floor for floor, parts in enumerate(floors) for part in parts}
        inside = {module: module.split(".")[2] for module in MODULES if module.startswith(f"jitad.{room}.")}
        assert set(inside.values()) == set(floor)
        wrong = [f"{MODULES[module].relative_to(ROOT)}:{line} imports {target}" for module, part in inside.items()
                 for target, line in imports(MODULES[module], "jitad")
                 if inside.get(target, part) != part and floor[inside[target]] >= floor[part]]
        assert not wrong, "\n".join(wrong)


def test_no_circle_of_imports():
    found = circles(graph())
    assert not found, "\n".join(map(str, found))


def test_private_names_stay_in_their_file():
    wrong = [f"{path.relative_to(ROOT)}:{line} uses {name}" for path in FILES for name, line in private_uses(path)]
    assert not wrong, "\n".join(wrong)


def test_primitives_are_made_in_their_room():
    """All but the leaves of a tape, which are made beside the type."""
    made = [f"{path.relative_to(ROOT)}:{node.lineno}" for module, path in MODULES.items()
            if room_of(module) != "primitives" and module != "jitad.tape.types" and "Primitive(" in path.read_text()
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Primitive"]
    assert not made


def test_numba_lives_in_one_room():
    for module, path in MODULES.items():
        found = {target.split(".")[0] for target, _ in imports(path, "numba", "llvmlite")}
        assert not found or room_of(module) == "compile", f"{path.relative_to(ROOT)} imports {found}"


def test_importing_jitad_is_light():
    heavy = (*LINALG, "numba", "scipy.stats", "scipy.optimize", "nutpie", "pandas")
    code = f"import jitad, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
