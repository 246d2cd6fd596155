"""The page of a machine: facts, and checks that are right here, and told where they are not."""
from __future__ import annotations

import sys

from jitad import cache
from jitad.__main__ import main
from jitad.testing import doctor


def test_all_is_well_here(capsys):
    disk = cache.configuration().disk
    assert main(["doctor"]) == 0
    page = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{page}" for name in (*doctor.facts(), *doctor.CHECKS))
    assert page.count("right, ") == len(doctor.CHECKS) and "All is well" in page
    assert cache.configuration().disk is disk


def test_what_fails_is_named_and_the_rest_goes_on(capsys, monkeypatch):
    def wrong():
        raise ValueError("3 is not 4")

    monkeypatch.setattr(doctor, "CHECKS", {"sums": wrong, "nothing": lambda: None})
    assert main(["doctor"]) == 1
    page = capsys.readouterr().out
    assert "sums FAILED: ValueError: 3 is not 4" in " ".join(page.split())
    assert page.count("right, ") == 1 and "1 of 2 checks failed" in page
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "150"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    assert main(["doctor"]) == 1
    page = capsys.readouterr().out
    assert page.count("╰") >= 2 and "FAILED: ValueError: 3 is not 4" in page and "1 of 2 checks failed" in page


def test_facts_where_there_is_no_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("JITAD_DISK_CACHE", raising=False)
    assert doctor.facts()["disk cache"].endswith("none, not made yet")
    monkeypatch.setenv("JITAD_DISK_CACHE", "0")
    assert "off" in doctor.facts()["disk cache"]
