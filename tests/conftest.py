"""Fixtures of several folders."""
from __future__ import annotations

import pytest

from jitad import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a disk cache that is on, and empty."""
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_persistent", None)
    cache.configure(disk=True)
    cache.clear()
    yield tmp_path / "cache"
    cache.configure(disk=False)
    cache.clear()
