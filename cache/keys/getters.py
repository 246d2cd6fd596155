"""The code of a getter: statements that read captured values and check guards, as fast as can be written."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Hashable
from types import FunctionType, MethodType
from typing import Any

from .computed import written
from .guards import freeze, is_atom, settled
from .identity import Target, unwrap
from .paths import FUNCTION_STEPS, Path, Step, item_key, registered
from .process import STATES

__all__ = ["PREFIX", "Writer"]

PREFIX = "_jitad_"
UNROLLED = 16  # items of a container that are worth a check of their own
_SCALAR = frozenset({int, str, bytes})
_REMADE = frozenset({float, complex, range})


class Writer:
    """Writes the statements of one getter: each step once, functions on the way bound as they are now."""

    def __init__(self, values: dict[Path, Any], namespace: dict[str, Any], fail: str) -> None:
        self.values = values
        self.namespace = namespace
        self.fail = fail
        self.lines: list[str] = []
        self.names: dict[Path, str] = {}
        self.bound: dict[str, object] = {}
        self._bound_names: dict[int, str] = {}
        self._pinned: set[Path] = {Path()}

    def bind(self, value: object) -> str:
        """Name an object that the getter holds."""
        name = self._bound_names.get(id(value))
        if name is None:
            name = self._bound_names[id(value)] = f"{PREFIX}b{len(self.bound)}"
            self.bound[name] = value
        return name

    def unless(self, condition: str) -> None:
        """Fail where the condition holds."""
        self.lines.append(f"if {condition}: {self.fail}")

    def check_top(self, target: Target) -> None:
        """The code of a function can be replaced in place (reloading tools do so), a class's __call__ too."""
        function = self.bind(target.function)
        self.unless(self.other_code(target.function))
        for partial, (inner, args, home), count in target.partials:
            name = self.bind(partial)
            self.unless(f"{self.bind(len)}({self.bind(home)}) != {count} or {name}.func is not {self.bind(inner)}")
            self.unless(f"{name}.args is not {self.bind(args)} or {name}.keywords is not {self.bind(home)}")
        if target.callable_type is not None:
            self.unless(f"{self.bind(target.self)}.__class__.__call__ is not {function}")

    def other_code(self, function: FunctionType) -> str:
        return f"{self.bind(function)}.__code__ is not {self.bind(function.__code__)}"

    def read(self, path: Path) -> str:
        """Return the variable that holds the value at `path`, writing the steps to it if need be."""
        name = self.names.get(path)
        if name is None:
            expression = self.expression(path.parent, path[-1])
            name = self.names[path] = f"{PREFIX}v{len(self.names)}"
            self.lines.append(f"{name} = {expression}")
        return name

    def expression(self, parent: Path, step: Step) -> str:
        kind, key, _ = step
        if kind in FUNCTION_STEPS:
            self.pin(parent)
            start = self.values[parent]
            return self.from_function(start if isinstance(start, Target) else unwrap(start), kind, key)
        value = self.read(parent)
        if kind == "attr":
            return f"{value}.{key}" if _is_name(key) else f"{self.bind(getattr)}({value}, {key!r})"
        if kind == "item":
            return f"{value}[{repr(key) if type(key) in (int, str, bytes, bool) else self.bind(item_key(key))}]"
        if kind == "has":
            return f"{self.bind(hasattr)}({value}, {key!r})"
        if kind == "one":
            return f"{value} is {self.read(key)}"                                          # type: ignore[arg-type]
        if kind == "made":
            function = value if key.function is None else self.bind(key.function)           # type: ignore[attr-defined]
            args, kwargs = (written(form, self.read, self.bind) for form in key[1:])        # type: ignore[index]
            return f"{function}(*{args}, **{kwargs})"
        if kind == "apart":
            names = [value, *(self.read(other) for other in key)]                          # type: ignore[attr-defined]
            identities = ", ".join(f"{self.bind(id)}({name})" for name in names)
            return f"{self.bind(len)}({{{identities}}}) == {len(names)}"
        return f"{self.bind({'keys': tuple, 'type': type, 'len': len, 'registered': registered}[kind])}({value})"

    def from_function(self, target: Target, kind: str, key: Any) -> str:
        function = target.function
        if kind == "global":
            if function.__globals__ is self.namespace and _is_name(key) and not key.startswith(PREFIX):
                return key
            names = self.bind(function.__globals__)
            if key in function.__globals__:
                return f"{names}[{key!r}]"
            self.unless(f"{key!r} in {names}")  # would hide the builtin
            return f"{self.bind(function.__builtins__)}[{key!r}]"  # type: ignore[attr-defined]
        if kind == "cell":
            return f"{self.bind(function.__closure__[key])}.cell_contents"  # type: ignore[index]
        if kind in ("default", "kwdefault"):
            return f"{self.bind(function)}.__{kind}s__[{key!r}]"
        if kind == "keyword":
            return f"{self.bind(target.keywords[key])}[{key!r}]"
        if kind == "class":
            return self.bind(item_key(key))
        if kind == "module":
            return self.bind(sys.modules[key])
        if kind == "process":
            return f"{self.bind(STATES[key])}()"
        return self.bind(target.self if kind == "self" else target.args[key])

    def pin(self, path: Path) -> None:
        """Make sure that the callable at `path` is the very one whose cells and globals are bound."""
        if path not in self._pinned:
            self._pinned.add(path)
            name, value = self.read(path), self.values[path]
            if isinstance(value, MethodType):  # a new object at each look-up
                parts = (f"{name}.{a} is not {self.bind(getattr(value, a))}" for a in ("__func__", "__self__"))
                self.unless(" or ".join(parts))
            else:
                self.unless(f"{name} is not {self.bind(value)}")

    def guard(self, path: Path, name: str, known: Hashable) -> None:
        """Write the cheapest check that tells a change of the value at `path`."""
        value = self.values[path]
        functions = settled(value)
        if path[-1].kind == "keys":
            self.keys(name, value, known, bool(functions))
        elif functions is None:
            self.compare(name, value, known)
        elif functions or isinstance(value, MethodType):
            self.pin(path)
            for function in functions:
                self.unless(self.other_code(function))
        elif type(value) in _SCALAR:
            kind, mine = self.bind(type(value)), self.bind(value)
            self.unless(f"{name} is not {mine} and ({name}.__class__ is not {kind} or {name} != {mine})")
        elif is_atom(value) and type(value) not in _REMADE:
            self.unless(f"{name} is not {self.bind(value)}")
        else:
            self.unless(f"{name} is not {self.bind(value)} and {self.bind(freeze)}({name}) != {self.bind(known)}")

    def same(self, name: str, known: Any) -> None:
        """Write the check that the very same living object is found. The getter does not keep it alive."""
        self.unless(f"{name} is not {self.bind(known.get)}() or {name} is None")

    def keys(self, name: str, value: tuple[Any, ...], known: Hashable, functions: bool) -> None:
        """The keys come as a new tuple each time, so that its items are compared. A function has to be the same one,
        since another of the same code is another key."""
        other = f"{self.bind(freeze)}({name}) != {self.bind(known)}"
        if functions:
            self.unless(f"{name} != {self.bind(value)} or {other}")
            return
        same = [f"{self.bind(len)}({name}) == {len(value)}"]
        same += [f"{name}[{i}] is {self.bind(item)}" for i, item in enumerate(value)]
        quick = len(value) <= UNROLLED and all(map(is_atom, value))
        self.unless(f"not ({' and '.join(same)}) and {other}" if quick else other)

    def compare(self, name: str, value: Any, known: Hashable) -> None:
        """A mutable value: its content is compared at each call, item by item by identity where that says all."""
        kind = type(value)
        same: list[str] = []
        if kind is list and len(value) <= UNROLLED and all(map(is_atom, value)):
            same = [f"{self.bind(len)}({name}) == {len(value)}"]
            same += [f"{name}[{i}] is {self.bind(item)}" for i, item in enumerate(value)]
        elif kind is dict and len(value) <= UNROLLED and all(type(k) is str and is_atom(v) for k, v in value.items()):
            same = [f"[*{name}] == {self.bind(list(value))}"]
            same += [f"{name}[{key!r}] is {self.bind(item)}" for key, item in value.items()]
        shortcut = f"not ({name}.__class__ is {self.bind(kind)} and {' and '.join(same)}) and " if same else ""
        self.unless(f"{shortcut}{self.bind(freeze)}({name}) != {self.bind(known)}")


def _is_name(key: object) -> bool:
    return isinstance(key, str) and key.isidentifier() and not keyword.iskeyword(key)
