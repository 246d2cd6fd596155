"""The ufuncs of scipy.special, as `ufuncs`, without the nine tenths of that package that take the time to import.

Afterwards ``import scipy.special`` is as ever, and finds the same ufuncs.
"""
from __future__ import annotations

import sys
import threading
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "scipy.special"


class _Stub(ModuleType):
    """In the place of the package while its ufuncs are loaded. Another thread that meets it there gets the package."""

    def __init__(self, folder: str) -> None:
        super().__init__(NAME)
        self.__path__ = [folder]
        self._jitad_done, self._jitad_thread = threading.Event(), threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or threading.get_ident() == self._jitad_thread:
            raise AttributeError(name)
        self._jitad_done.wait()
        return getattr(import_module(NAME), name)


def load(module: str) -> Any:
    """``scipy.special.<module>`` alone, an extension module."""
    if NAME in sys.modules or f"{NAME}.{module}" in sys.modules:
        return import_module(f"{NAME}.{module}")
    import scipy

    stub = sys.modules.setdefault(NAME, _Stub(str(Path(scipy.__file__).parent / "special")))
    try:
        return import_module(f"{NAME}.{module}")
    except (ImportError, AttributeError):
        sys.modules.pop(NAME, None)
        return import_module(f"{NAME}.{module}")
    finally:
        if sys.modules.get(NAME) is stub:
            del sys.modules[NAME]
        if isinstance(stub, _Stub):
            stub._jitad_done.set()


ufuncs = load("_ufuncs")
