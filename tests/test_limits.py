"""Nothing grows without bound: folders, families of files, files, functions; a word names one thing."""
from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict

from tests.helpers.sources import ALL_FILES, FILES, FUNCTIONS, MODULES, ROOT, definitions, module_of, room_of

FOLDERS = {folder.relative_to(ROOT).as_posix(): [path for path in ALL_FILES if path.parent == folder
                                                 and path.name != "__init__.py"]
           for folder in sorted({path.parent for path in ALL_FILES})}


def test_few_files_stand_beside_the_rooms():
    assert len(FOLDERS["jitad"]) <= 5


def test_a_folder_can_be_seen_at_a_glance():
    assert not {folder: len(files) for folder, files in FOLDERS.items() if len(files) > 16}


def test_a_family_of_files_is_a_folder():
    """Three files whose names begin with the same word, the word `test` aside."""
    families = [(folder, word) for folder, files in FOLDERS.items() for word, number in Counter(
        path.stem.removeprefix("test_").strip("_").split("_")[0] for path in files).items() if number > 2]
    assert not families


def test_no_file_is_longer_than_can_be_read():
    assert not [str(path.relative_to(ROOT)) for path in ALL_FILES if path.read_text().count("\n") > 400]


def test_no_function_is_longer_than_a_page():
    long = [f"{path.relative_to(ROOT)}:{line} {name}" for path in FILES
            for kind, name, line, length in definitions(path) if kind in FUNCTIONS and length > 50]
    assert not long


def test_a_class_name_stands_in_one_file():
    places = defaultdict(set)
    for path in FILES:
        for kind, name, *_ in definitions(path):
            if kind is ast.ClassDef:
                places[name].add(module_of(path))
    assert not {name: sorted(modules) for name, modules in places.items() if len(modules) > 1}


def test_rows_are_seldom_asked_who_they_are():
    """What differs between rows is a trait on the row; few places may ask for one row by its name, kind or identity."""
    asked = re.compile(r"prim\.name\b|prim\.kind\b|\bprim is\b|prim not in|prim in ")
    found = {module: len(asked.findall(path.read_text())) for module, path in MODULES.items()
             if room_of(module) != "primitives"}
    assert sum(found.values()) <= 60, {module: n for module, n in found.items() if n}


def test_the_wheel_holds_every_package():
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert packages == sorted({module_of(path) for path in FILES if path.name == "__init__.py"})
