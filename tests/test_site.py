"""The pages of the site: their examples run as they are printed, and every public name has its place in the reference.

That links and references lead somewhere is checked when the site is built, `make docs`.
"""
from __future__ import annotations

import ast
import json
import pickle
import re

import numpy as np
import pytest

import jitad
from jitad.__main__ import main
from tests.helpers.sources import ROOT

SITE = ROOT / "notebooks"
NAV = (ROOT / "mkdocs.yml").read_text()
NOTEBOOKS = [path for path in sorted(SITE.glob("*.ipynb")) if "import pymc" not in path.read_text()]     # `make pymc`
PAGES = [path for path in sorted(SITE.rglob("*.md")) if "```python" in path.read_text()] + NOTEBOOKS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_examples_run_as_they_are_printed(path, tmp_path, monkeypatch):
    """Tutorials make the picture that they show. Notebooks run here as well, where their imports are done already."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = path.read_text()
    if path in NOTEBOOKS:
        blocks = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    else:
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "page.py").write_text("\n".join(blocks))
    code = compile((tmp_path / "page.py").read_text(), str(tmp_path / "page.py"), "exec")
    exec(code, {"__name__": "page"})                     # no such module: other processes get its functions whole
    for picture in re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE):
        assert (tmp_path / picture).exists() and (path.parent / picture).stat().st_size < 100_000


@pytest.mark.parametrize("path", [*sorted((SITE / "tutorials").glob("*.md")), *NOTEBOOKS], ids=lambda path: path.stem)
def test_a_tutorial_begins_with_a_question_and_ends_with_a_picture_and_what_to_try_next(path):
    text = path.read_text()
    if path in NOTEBOOKS:
        cells = json.loads(text)["cells"]
        first, last = ("".join(cells[number]["source"]) for number in (0, -1))
        assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code"), "with its outputs"
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        assert any("image/png" in output.get("data", ()) for output in outputs) and len(text) < 200_000
    else:
        first, last = text[:text.index("```")], text.split("\n![")[1]
    assert "?" in first and "**What to try next.**" in last
    assert f"{path.relative_to(SITE)}\n" in NAV


def test_the_reference_has_every_public_name():
    listed = [name for folder in ("reference", "errors") for page in (SITE / folder).glob("*.md")
              for name in re.findall(r"^::: (.*)$", page.read_text(), re.MULTILINE)]
    shown = {name.rpartition(".")[2] for name in listed}
    aliases = {"__version__", "grad", "SavedTape"}        # of `jit_grad`; what `load` returns
    assert not set(jitad.__all__) - shown - aliases


def definitions(tree):
    """Functions and classes with their docstrings, by name."""
    return {node.name: (node, ast.get_docstring(node) or "") for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def shown(target):
    """What the reference shows for a line `::: target`: names within it, and their docstrings."""
    parts, rest = target.split("."), []
    while not (path := next((p for p in (ROOT / "/".join(parts) / "__init__.py", (ROOT / "/".join(parts)).with_suffix(
            ".py")) if p.exists()), None)):
        rest.insert(0, parts.pop())
    tree = ast.parse(path.read_text())
    found = {"": (tree, ast.get_docstring(tree) or "")} if not rest else {}
    found |= {name: pair for name, pair in definitions(tree).items() if not rest or name == rest[0]}
    for name, (node, _) in list(found.items()):
        if name and isinstance(node, ast.ClassDef):
            found |= {f"{name}.{member}": pair for member, pair in definitions(node).items()}
    hidden = [re.compile(rule[1:]) for rule in json.loads(re.search(r"filters: (.*)", NAV)[1])]
    return {name: text for name, (_, text) in found.items()
            if not any(rule.search(part) for rule in hidden for part in name.split("."))}


def code_of(docstring):
    return "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) (.*)$", docstring, re.MULTILINE))


@pytest.mark.parametrize("page", sorted((SITE / "reference").glob("*.md")), ids=lambda path: path.stem)
def test_all_that_the_reference_shows_is_used_in_an_example_there(page):
    """Functions have one of their own; what belongs to a class is used in one on the same page."""
    text = page.read_text()
    names = {name: docstring for target in re.findall(r"^::: (.*)$", text, re.MULTILINE)
             for name, docstring in shown(target).items()}
    examples = "\n".join([*map(code_of, names.values()), *re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)])
    makers = {name: re.search(r"[Mm]ade by `+(?:g\.)?(\w+)", docstring) for name, docstring in names.items()}
    assert not [name for name, docstring in names.items() if name and not code_of(docstring) and not re.search(
        rf"\.{name.rpartition('.')[2]}\b" if "." in name else rf"\b{made[1]}\(" if (made := makers[name]) else
        rf"\b{name}\(", examples)]


ERRORS = {name: kind for name, kind in vars(jitad.errors).items() if isinstance(kind, type) and kind.__module__ ==
          "jitad.errors"}


def test_every_error_has_a_page_of_the_site_with_the_way_out(capsys):
    assert {path.stem for path in (SITE / "errors").glob("*.md")} == set(ERRORS)
    for name, kind in ERRORS.items():
        assert f"errors/{name}.md" in NAV
        assert "Way out" in kind.__doc__ or kind.__doc__.count("\n") >= 4
        assert main(["explain", name]) == 0
        assert " ".join(capsys.readouterr().out.split()) == f"{name}: {' '.join(kind.__doc__.split())}"
    assert main(["explain"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ERRORS)
    assert main(["explain", "Nothing"]) == 1


def test_errors_and_warnings_say_where_they_are_explained():
    def written_to(x):
        x[0] = 0.0
        return np.sum(x)
    with pytest.raises(jitad.MutationError) as caught:
        jitad.grad(written_to)(np.ones(3))
    assert caught.value.__notes__[0] == "see: python -m jitad explain MutationError"
    plain = jitad.MutationError("text")
    assert pickle.loads(pickle.dumps(plain)).__notes__ == plain.__notes__ == caught.value.__notes__[:1]
    squares = jitad.jit(lambda x: x * x)
    squares(np.ones(2))
    with pytest.warns(jitad.TapeMismatchWarning, match=r"\(see: python -m jitad explain TapeMismatchWarning\)$"):
        squares(np.ones(3))
