"""ArviZ's InferenceData of draws, made when it is first looked at: to import ArviZ takes longer than most samplings."""
from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from jitad.inference.draws import Draws

_one_at_a_time = threading.RLock()
OPERATORS = ("__add__", "__contains__", "__delattr__", "__delitem__", "__dir__", "__eq__", "__format__", "__ne__",
             "__reduce__", "__reduce_ex__", "__repr__", "__setattr__", "__setitem__", "__str__")


def require_arviz() -> None:
    """Raise `ModuleNotFoundError` unless ArviZ is installed; it is not imported."""
    if importlib.util.find_spec("arviz") is None:
        raise ModuleNotFoundError("InferenceData needs ArviZ, which is not installed: pip install 'arviz<1'; `draws` "
                                  "gives NumPy arrays without it", name="arviz")


class Trace(Mapping[str, Any]):
    """Draws that become ArviZ's InferenceData, their class and all, as soon as anything of them is asked."""

    def __init__(self, draws: Draws):
        object.__setattr__(self, "_draws", draws)

    def __getattribute__(self, name: str) -> Any:
        return getattr(_looked_at(self), name)

    def __getitem__(self, name: str) -> Any:
        return _looked_at(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_looked_at(self))

    def __len__(self) -> int:
        return len(_looked_at(self))


def _looked_at(trace: Any) -> Any:
    """`trace` itself, which is InferenceData from now on."""
    with _one_at_a_time:
        if type(trace) is Trace:
            found = object.__getattribute__(trace, "_draws").arviz()
            object.__getattribute__(trace, "__dict__").clear()
            object.__getattribute__(trace, "__dict__").update(vars(found))
            object.__setattr__(trace, "__class__", type(found))
    return trace


def _operator(name: str) -> Any:
    def operator(self: Any, *args: Any) -> Any:
        return getattr(_looked_at(self), name)(*args)
    operator.__name__ = operator.__qualname__ = name
    return operator


for _name in OPERATORS:
    setattr(Trace, _name, _operator(_name))
