"""The pages of the site: their examples run as they are printed, and every public name has its place in the reference.

That links and references lead somewhere is checked when the site is built, `make docs`.
"""
from __future__ import annotations

import pickle
import re
import runpy

import numpy as np
import pytest

import jitad
from jitad.__main__ import main
from tests.helpers.sources import ROOT

SITE = ROOT / "notebooks"
PAGES = [path for path in sorted(SITE.rglob("*.md")) if "```python" in path.read_text()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_examples_run_as_they_are_printed(path, tmp_path, monkeypatch):
    """Tutorials make the picture that they show."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = path.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "page.py").write_text("\n".join(blocks))
    runpy.run_path(str(tmp_path / "page.py"))
    for picture in re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE):
        assert (tmp_path / picture).exists() and (path.parent / picture).stat().st_size < 100_000


def test_the_reference_has_every_public_name():
    listed = [name for folder in ("reference", "errors") for page in (SITE / folder).glob("*.md")
              for name in re.findall(r"^::: (.*)$", page.read_text(), re.MULTILINE)]
    shown = {name.rpartition(".")[2] for name in listed}
    aliases = {"__version__", "grad", "SavedTape"}        # of `jit_grad`; what `load` returns
    assert not set(jitad.__all__) - shown - aliases


ERRORS = {name: kind for name, kind in vars(jitad.errors).items() if isinstance(kind, type) and kind.__module__ ==
          "jitad.errors"}


def test_every_error_has_a_page_of_the_site_with_the_way_out(capsys):
    assert {path.stem for path in (SITE / "errors").glob("*.md")} == set(ERRORS)
    nav = (ROOT / "mkdocs.yml").read_text()
    for name, kind in ERRORS.items():
        assert f"errors/{name}.md" in nav
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
