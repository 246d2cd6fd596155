"""The id of a build: other files, other code on the disk."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from jitad.cache.build import files_id
from jitad.compile.llvm.object_cache import build_id


def build(folder: Path, rule: str) -> str:
    (folder / "rules").mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("rules/sine.py", rule), ("rules/notes.txt", rule)):
        (folder / name).write_text(text)
        os.utime(folder / name, ns=(10**18, 10**18))
    return files_id(str(folder))


def test_builds_of_one_size_and_time_are_told_apart(tmp_path: Path) -> None:
    """In two folders, and one put in the place of the other."""
    right, wrong = build(tmp_path / "a", "np.cos(x)"), build(tmp_path / "b", "-np.cos(x"[:9])
    assert right != wrong
    assert right == files_id(str(tmp_path / "a"))
    shutil.rmtree(tmp_path / "a")
    assert build(tmp_path / "a", "np.sin(x)") != right


def test_a_change_of_a_file_changes_the_id_whatever_its_times_say(tmp_path: Path) -> None:
    first = build(tmp_path / "a", "np.cos(x)")
    file = tmp_path / "a" / "rules" / "sine.py"
    file.write_text("np.sin(x)")
    os.utime(file, ns=(10**18, 10**18))
    second = files_id(str(tmp_path / "a"))
    (tmp_path / "a" / "rules" / "notes.txt").write_text("no source")
    assert first != second == files_id(str(tmp_path / "a"))


def test_this_build_has_one() -> None:
    assert build_id() == build_id() and len(build_id()) == 64
