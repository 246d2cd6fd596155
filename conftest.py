"""Tests compile afresh, whatever earlier runs left on the disk; those of the disk cache turn it on."""
import importlib.util
import os

import pytest

os.environ["JITAD_DISK_CACHE"] = "0"

# The bridge to PyTensor is tested in an environment of its own: `make pymc`, a part of `make test`.
if importlib.util.find_spec("pytensor") is None:
    collect_ignore = ["tests/integrations/test_pytensor.py", "jitad/integrations/pytensor.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random programs `tests/fuzz` tries, and from which seed on."""
    parser.addoption("--programs", type=int, default=0, help="random programs to try (0: the few of make test)")
    parser.addoption("--first", type=int, default=0, help="seed of the first random program")
