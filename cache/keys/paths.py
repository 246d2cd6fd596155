"""Where a function finds what it captures: small immutable paths from the function to a value, with their words."""

from __future__ import annotations

import abc
import sys
from collections.abc import Hashable
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple

from .computed import show_call
from .identity import Same, Target, unwrap
from .process import STATES

__all__ = ["FUNCTION_STEPS", "Path", "Step", "item_key", "take"]

FUNCTION_STEPS = frozenset({"global", "cell", "default", "kwdefault", "self", "partial", "keyword", "class",
                            "module", "process"})
VALUE_STEPS = frozenset({"attr", "item", "type", "len", "keys", "has", "apart", "one", "registered", "made"})


class Step(NamedTuple):
    """One step of a path. From a function (the top one, or one reached by earlier steps) lead

    `global` (name), `cell` (index), `default` (index), `kwdefault` (name), `self`, `partial` (index of a bound
    argument), `keyword` (name of a bound keyword), `class` (the class of an argument, itself), `module` (an imported
    one, by name), `process` (its state, by name, see `STATES`); from any value lead
    `attr` (name), `item` (key), `type`, `len`, `keys` (the tuple of what iteration gives), `has` (whether it has the
    attribute of this name), `apart` (whether it and what is found at these paths are different objects), `one` (whether
    it is the object at that path).
    `registered` are the classes that are registered with an abstract one, `made` is what a call (`Call`) gives.
    `label` is the name to show where the key is an index.

    A key that counts by identity (a function as key of a dict, say) is held as `Same`, so that it may die.
    """

    kind: str
    key: Hashable = None
    label: str = ""


class Path(tuple[Step, ...]):
    """Immutable sequence of steps from the top function to a value; its `str` reads as words in a message.

    Raises `ValueError` for a kind of step that does not exist, or a first step that does not start at a function.

    >>> str(Path.of(("global", "cfg"), ("attr", "sigma")))
    'global `cfg.sigma`'
    >>> print(Path.of(("global", "helper")).step("cell", 0, "X"))
    `X` captured from the enclosing function, read by `helper`
    """

    __slots__ = ()

    @classmethod
    def of(cls, *steps: tuple[Any, ...]) -> Path:
        """Build a path from (kind, key, label) tuples, of which key and label may be left out."""
        path = cls()
        for step in steps:
            path = path.step(*step)
        return path

    def step(self, kind: str, key: Hashable = None, label: str = "") -> Path:
        """Return the path that goes one step further."""
        if kind not in FUNCTION_STEPS and (kind not in VALUE_STEPS or not self):
            raise ValueError(f"a path cannot {'go on' if self else 'start'} with a step {kind!r}")
        if kind in ("item", "class") and _is_mortal(key):
            key = Same(key)
        return Path((*self, Step(kind, key, label)))

    @property
    def parent(self) -> Path:
        """The path without its last step."""
        return Path(self[:-1])

    def expression(self) -> str:
        """Return the path the way one would write it inside the function that reads it: `data['X']`."""
        text = ""
        for kind, key, label in self:
            if kind in FUNCTION_STEPS:
                text = label or (str(key) if isinstance(key, str) else "self" if kind == "self" else f"{kind} {key}")
            elif kind == "attr":
                text = f"{text}.{key}"
            elif kind == "item":
                text = f"{text}[{key!r}]"
            elif kind == "one":
                text = f"{text} is {key.expression()}"                                     # type: ignore[attr-defined]
            elif kind == "made":
                text = show_call(text, key)                                                # type: ignore[arg-type]
            elif kind == "has":
                text = f"hasattr({text}, {key!r})"
            else:
                text = f"{'list' if kind == 'keys' else kind}({text})"
        return text

    def __str__(self) -> str:
        starts = [i for i, step in enumerate(self) if step.kind in FUNCTION_STEPS]
        if not starts:
            return "the function itself"
        words = _WORDS[self[starts[-1]].kind].format(f"`{self.expression()}`")
        if starts[-1] == len(self) - 1 and self[-1].kind == "self":
            words = "`self`"
        reader = Path(self[: starts[-1]])
        return f"{words}, read by `{reader.expression()}`" if reader else words


def _is_mortal(key: object) -> bool:
    """Whether a key is a user's function or class, or an instance that is equal to nothing but itself."""
    if isinstance(key, (FunctionType, type)):
        return isinstance(key, FunctionType) or bool(key.__flags__ & _HEAP_TYPE)
    kind = type(key)
    return bool(kind.__flags__ & _HEAP_TYPE) and kind.__hash__ is object.__hash__ and not isinstance(key, Enum)


_HEAP_TYPE = 1 << 9

_WORDS = {
    "global": "global {}",
    "cell": "{} captured from the enclosing function",
    "default": "default {}",
    "kwdefault": "default {}",
    "self": "attribute {}",
    "partial": "bound {}",
    "keyword": "bound keyword {}",
    "class": "class {}",
    "module": "{}",
    "process": "{} of the process",
}


def take(value: object, step: Step) -> Any:
    """Go one step from a value, or from a `Target`; raises whatever the look-up raises.

    >>> take({"a": 1}, Step("item", "a"))
    1
    """
    kind, key, _ = step
    if kind == "attr":
        return getattr(value, key)  # type: ignore[call-overload]
    if kind == "item":
        return value[item_key(key)]  # type: ignore[index]
    if kind == "type":
        return type(value)
    if kind == "len":
        return len(value)  # type: ignore[arg-type]
    if kind == "keys":
        return tuple(value)  # type: ignore[arg-type]
    if kind == "registered":
        return registered(value)
    if kind == "has":
        return hasattr(value, key)  # type: ignore[arg-type]
    target = value if isinstance(value, Target) else unwrap(value)  # type: ignore[arg-type]
    return _from_function(target, kind, key)


def registered(cls: Any) -> tuple[type, ...]:
    """The classes that are registered with an abstract class."""
    living = (reference() for reference in abc._get_dump(cls)[0])  # type: ignore[attr-defined]
    return tuple(sorted(filter(None, living), key=lambda c: (c.__module__, c.__qualname__)))


def item_key(key: Hashable) -> Any:
    """The key that a step of kind `item` means.

    Raises `KeyError` for an object that is dead.
    """
    if not isinstance(key, Same):
        return key
    living = key.get()
    if living is None:
        raise KeyError(key)
    return living


def _from_function(target: Target, kind: str, key: Any) -> Any:
    function = target.function
    if kind == "class":
        return item_key(key)
    if kind == "module":
        return sys.modules[key]
    if kind == "process":
        return STATES[key]()
    if kind == "global":
        names = function.__globals__
        return names[key] if key in names else function.__builtins__[key]  # type: ignore[attr-defined]
    if kind == "cell":
        return function.__closure__[key].cell_contents  # type: ignore[index]
    if kind == "default":
        return function.__defaults__[key]  # type: ignore[index]
    if kind == "kwdefault":
        return function.__kwdefaults__[key]  # type: ignore[index]
    if kind == "partial":
        return target.args[key]
    if kind == "keyword":
        return target.keywords[key][key]
    if target.self is None:
        raise AttributeError("the function is not bound")
    return target.self
