"""Tests compile afresh, whatever earlier runs left on the disk; those of the disk cache turn it on."""
import gc
import importlib.util
import os
import shutil

import pytest

os.environ["JITAD_DISK_CACHE"] = "0"
gc.disable()    # until all tests are collected

# These bridges are tested in environments of their own: `make pymc`, a part of `make test`, and `make torch`.
collect_ignore = [path for name in ("pytensor", "torch") if importlib.util.find_spec(name) is None for path in (
    f"tests/integrations/test_{name}.py", f"jitad/integrations/{name}.py")]
# Shared libraries are linked by a C compiler, which is not needed otherwise.
collect_ignore += [] if shutil.which(os.environ.get("CC", "cc")) else ["tests/integrations/test_bridgestan.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random programs `tests/fuzz` tries, and from which seed on."""
    parser.addoption("--programs", type=int, default=0, help="random programs to try (0: the few of make test)")
    parser.addoption("--first", type=int, default=0, help="seed of the first random program")


def pytest_collection_finish() -> None:
    """What is there before the first test stays; collecting garbage need not look at it each time, nor as often as in
    a program that keeps less."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
