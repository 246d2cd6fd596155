"""Random programs: the value is NumPy's, and the derivative that of differences, at points of different branches.

``pytest tests/fuzz --programs N --first SEED`` tries as many as you like.
"""
from __future__ import annotations

import pytest

from jitad import cache

from .run import try_one

FEW = 48


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("--first"), metafunc.config.getoption("--programs") or FEW
        metafunc.parametrize("seed", range(first, first + count))


def test_a_program_is_numpys_or_refused(seed: int) -> None:
    cache.clear()
    verdict, text = try_one(seed)
    assert verdict.kind != "different", f"{verdict.words}\n{text}"
    if verdict.kind == "refused":
        assert " at " in verdict.words, "an error of ours says where"
