"""Tests compile afresh, whatever earlier runs left on the disk; those of the disk cache turn it on."""
import os

import pytest

os.environ["JITAD_DISK_CACHE"] = "0"


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random programs `tests/fuzz` tries, and from which seed on."""
    parser.addoption("--programs", type=int, default=0, help="random programs to try (0: the few of make test)")
    parser.addoption("--first", type=int, default=0, help="seed of the first random program")
