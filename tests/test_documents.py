"""The documents are complete and true: folders, paths, the model that is followed through, the examples of README."""
from __future__ import annotations

import linecache
import re
import runpy
import warnings

import numpy as np
import pytest

from jitad.call.build import specialize
from jitad.compile.lower.lower import program_of
from jitad.compile.plan.fuse import fuse
from jitad.compile.plan.prepare import prepare
from jitad.passes.optimise.rewrites import optimised
from tests.helpers.sources import FLOORS, MODULES, ROOT

ARCHITECTURE, CONTRIBUTING, README = ((ROOT / name).read_text() for name in (
    "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"))
DOCUMENTS = {"ARCHITECTURE.md": ARCHITECTURE, "CONTRIBUTING.md": CONTRIBUTING, "README.md": README}
ROOTS = ("", "jitad", "jitad/call")                       # from which paths are named
FOLDERS = {path.parent.relative_to(ROOT).as_posix() + "/" for path in MODULES.values()}


def block(kind: str) -> str:
    """The code block of ARCHITECTURE.md that begins with ``kind``."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", ARCHITECTURE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, kind
    return found[0]


def table_of(text: str) -> list[str]:
    """The folders in the first column of a table."""
    return re.findall(r"^\| `((?:jitad|cache)/[\w/]*)` \|", text, re.MULTILINE)


# --- folders and paths ---------------------------------------------------------------------------

def test_the_map_has_every_folder_once():
    named = table_of(ARCHITECTURE)
    assert sorted(named) == sorted(FOLDERS - {"jitad/"})


def test_the_picture_has_the_floors_that_the_imports_have():
    picture = next(b for b in re.findall(r"^```\n(.*?)^```$", ARCHITECTURE, re.DOTALL | re.MULTILINE) if "demo" in b)
    lines = [set(re.sub(r"\(.*?\)", "", line).split()) for line in reversed(picture.splitlines())]
    floors = [set(floor) - {"__init__"} for floor in FLOORS]
    assert [line for line in lines if line] == [floor for floor in [*floors[:-2], floors[-2] | floors[-1]] if floor]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_is_named_exists(name):
    paths = set(re.findall(r"\b(?:jitad|cache|tests|benchmarks|notebooks)/[\w./]*\w/?", DOCUMENTS[name]))
    short = re.findall(r"`((?:api|call|compile|tape|trace|passes|rungs|build)/[\w/]+\.?\w*/?)`", DOCUMENTS[name])
    missing = [p for p in {*paths, *short} if not any((ROOT / root / p).exists() for root in ROOTS)]
    assert paths and not missing


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_names_of_code_that_stand_in_the_documents_exist(name):
    """Functions that are said to be in a file."""
    for function, path in re.findall(r"\(?`([\w.]+)` (?:in|of)\s+`([\w/]+\.py)`", DOCUMENTS[name]):
        file = next(ROOT / root / path for root in ROOTS if (ROOT / root / path).exists())
        assert re.search(rf"\b{function.rsplit('.')[-1]}\b", file.read_text()), (function, path)


def test_the_examples_of_readme_run_as_they_are_printed(tmp_path):
    """One after the other, as a reader would type them."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 1
    (tmp_path / "readme.py").write_text("\n".join(blocks))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                   # that chains of 1,000 draws diverge now and then
        found = runpy.run_path(str(tmp_path / "readme.py"))
    assert found["gradient"].shape == (5,) and found["trace"].posterior["theta"].shape[2:] == (5,)


# --- the model -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def stages():
    """The model of ARCHITECTURE.md through all stages, by the names of the blocks."""
    text = block("python")
    linecache.cache["/home/user/line.py"] = (len(text), None, text.splitlines(True), "/home/user/line.py")
    space = {"__name__": "line"}
    exec(compile(text, "/home/user/line.py", "exec"), space)
    function, args = space["misfit"], (np.zeros(2), np.linspace(0.0, 1.0, 50), np.linspace(1.0, 3.0, 50))
    subject = function.subject
    arguments = subject.arguments(args, {})
    recording = specialize.recorded(subject.target, subject.request, arguments)
    recorded = str(recording.builder.finish(recording.outputs))
    outputs, labels, _ = specialize.requested(recording, subject.request, arguments, "misfit")
    tape, layouts = optimised(recording.builder, outputs, labels), ("C",) * 3
    plan = fuse(prepare(tape, layouts), layouts)
    groups = [f"{group.kind}{f' {group.length}' if group.length else ''}: " + ", ".join(
        f"{root.kind} %{root.node}" for root in group.roots) for group in plan.groups]
    return {"tape recorded": recorded, "tape differentiated": str(recording.builder.finish(outputs, labels)),
            "tape optimised": str(tape), "plan": "\n".join(groups),
            "program": "\n".join(map(str, program_of(tape, layouts).body)),
            "source": str(function.compile(*args).source)}


def plain(text: str) -> str:
    return re.sub(r"[ ]+", " ", text)


@pytest.mark.parametrize("kind", [
    "tape recorded", "tape differentiated", "tape optimised", "plan", "program", "source"])
def test_the_model_goes_through_as_it_is_told(stages, kind):
    """Every line of the block is what the stage gives, in its order."""
    made, at = plain(stages[kind]), 0
    for line in block(kind).splitlines():
        line = plain(line.removesuffix("...")).strip()
        assert line in made[at:], line
        at = made.index(line, at)
