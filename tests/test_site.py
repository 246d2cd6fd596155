"""The pages of the site: their examples run as they are printed, and every public name has its place in the reference.

That links and references lead somewhere is checked when the site is built, `make docs`.
"""
from __future__ import annotations

import re
import runpy

import pytest

import jitad
from tests.helpers.sources import ROOT

SITE = ROOT / "notebooks"
PAGES = [path for path in sorted(SITE.rglob("*.md")) if "```python" in path.read_text()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_examples_run_as_they_are_printed(path, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "page.py").write_text("\n".join(blocks))
    runpy.run_path(str(tmp_path / "page.py"))


def test_the_reference_has_every_public_name():
    listed = [name for page in (SITE / "reference").glob("*.md")
              for name in re.findall(r"^::: (.*)$", page.read_text(), re.MULTILINE)]
    shown = {name.rpartition(".")[2] for name in listed}
    shown |= {name for name in dir(jitad.errors) if "jitad.errors" in listed}
    aliases = {"__version__", "grad", "SavedTape"}        # of `jit_grad`; what `load` returns
    assert not set(jitad.__all__) - shown - aliases
