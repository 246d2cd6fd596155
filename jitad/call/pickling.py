"""What stands in pickles: one name, `jitad.restored`, and plain values, so that classes may move; and where the names
that stand in pickles of version 0.1.0 are now."""
from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

Maker = TypeVar("Maker", bound=Callable[..., Any])
_makers: dict[str, Callable[..., Any]] = {}


def restores(word: str) -> Callable[[Maker], Maker]:
    """Register what makes again what was pickled under a word."""
    def register(make: Maker) -> Maker:
        _makers[word] = make
        return make
    return register


def restored(word: str, *parts: Any) -> Any:
    """What was pickled under `word`, made of its parts."""
    return _makers[word](*parts)


restored.__module__ = "jitad"

FORMER = {                              # modules of version 0.1.0, and where the names that pickles ask of them are now
    "axes": {"Axes": "call.request.axes.Axes"},
    "bound": {"BoundFunction": "call.bound.BoundFunction"},
    "cache.signature": {"Leaf": "cache.keys.signature.Leaf", "Signature": "cache.keys.signature.Signature"},
    "compiled": {"_compiled_for": "call.compiled.compiled_for"},
    "custom": {"Checkpoint": "api.custom.primitive.Checkpoint", "Custom": "api.custom.primitive.Custom",
               "CustomGradient": "api.custom.primitive.CustomGradient"},
    "display": {"Text": "tape.display.Text"},
    "elementwise": {"Elementwise": "api.elementwise.Elementwise"},
    "implicit": {"Implicit": "api.implicit.Implicit"},
    "linear": {"Pullback": "api.vjp_jvp.Pullback", "Pushforward": "api.vjp_jvp.Pushforward"},
    "operators": {"LazyHessian": "api.linear_operators.LazyHessian",
                  "LazyJacobian": "api.linear_operators.LazyJacobian"},
    "request": {"Request": "call.request.request.Request", "Settings": "call.request.request.Settings"},
    "transformed": {"Transformed": "call.transformed.Transformed"},
    "transformed_batch": {"BatchedFunction": "call.batch.BatchedFunction"},
    "transformed_memory": {"Bound": "call.methods.BoundForms"},
    "transformed_sparse": {"Sparse": "call.sparse.SparseFunction"},
}


class FormerModule(ModuleType):
    """A module of version 0.1.0 with the names of `FORMER` alone, each looked up where it is now."""

    def __getattr__(self, name: str) -> Any:
        place = FORMER[self.__name__.partition(".")[2]].get(name)
        if place is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, _, name = place.rpartition(".")
        return getattr(import_module(f"jitad.{module}"), name)


sys.modules.update((f"jitad.{name}", FormerModule(f"jitad.{name}")) for name in FORMER)
