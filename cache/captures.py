"""Reading captured values on the warm path: a plan of what a function reads, compiled into one small getter.

A `Plan` is what a compiled tape keeps: paths, and snapshots of what was found there, never the values. The
getter that it compiles for one function at hand is bound to that function's own cells and globals, so it belongs
with the function (in its memo), not with the tape.
"""

from __future__ import annotations

import functools
import keyword
from collections.abc import Callable, Hashable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from .guards import freeze, is_atom, settled, show
from .identity import Target, code_key, unwrap
from .paths import FUNCTION_STEPS, Path, Step, item_key, take
from .signature import Leaf, describe, leaf_difference

__all__ = ["Fetch", "Path", "Plan", "Read", "Source", "Step"]

Fetch = Callable[[], "tuple[Any, ...] | None"]
PREFIX = "_jitad_"
_MISSING = object()


class Read(NamedTuple):
    """One captured value: `kind` is "input" (`known` is its `Leaf`) or "guard" (`known` is its snapshot)."""

    path: Path
    kind: str
    known: Hashable


class Source(NamedTuple):
    """Generated statements: after `lines`, the variables `inputs` hold the inputs.

    They need the objects in `bound` by name, and have to run in a function whose globals are `namespace`, those
    of the user's function: reading a global is cheapest there, and finds a builtin where no global hides it.
    All their own names start with `PREFIX`.
    """

    lines: tuple[str, ...]
    inputs: tuple[str, ...]
    bound: dict[str, object]
    namespace: dict[str, Any]


class Plan:
    """Ordered reads of captured values, made by `add` while recording and then only looked at.

    `code`, if given, is the `code_key` of the top function, which then has to match too.

    >>> scale = 2.0
    >>> def f(x):
    ...     return scale * x
    >>> f.__globals__["scale"] = scale
    >>> plan = Plan()
    >>> plan.add(Path.of(("global", "scale")), "input", scale)
    0
    >>> fetch = plan.compile(unwrap(f))
    >>> fetch()
    (2.0,)
    """

    __slots__ = ("_inputs", "code", "reads")

    def __init__(self, code: str | None = None) -> None:
        self.code = code
        self.reads: dict[tuple[Path, str], Read] = {}
        self._inputs: list[Path] = []

    def add(self, path: Path, kind: str, value: object) -> int:
        """Note that `value` was read at `path`; return the place of an input among the inputs, -1 for a guard.

        A path that goes on from a function other than the top one (its globals, cells, ...) needs a guard on
        that function first. Adding the same read again changes nothing.

        Raises `Unguardable` for a guard on a value without snapshot, `ValueError` for another kind or when the
        guard on the function in between is missing.
        """
        for i, step in enumerate(path[1:], 1):
            if step.kind in FUNCTION_STEPS and (Path(path[:i]), "guard") not in self.reads:
                raise ValueError(f"no guard yet on the function in between: {Path(path[:i])}")
        if kind not in ("input", "guard"):
            raise ValueError(f"a read is an input or a guard, not {kind!r}")
        if (path, kind) not in self.reads:
            known: Hashable = describe(value) if kind == "input" else freeze(value)
            self.reads[path, kind] = Read(path, kind, known)
            if kind == "input":
                self._inputs.append(path)
        return self._inputs.index(path) if kind == "input" else -1

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The paths of the inputs, in the order in which `fetch` returns them."""
        return tuple(self._inputs)

    @property
    def guards(self) -> tuple[Path, ...]:
        """The paths of the guards."""
        return tuple(read.path for read in self.reads.values() if read.kind == "guard")

    # --- on disk -------------------------------------------------------------------------------------------------

    def to_json(self) -> Any:
        """Return the plan as what `json` can write, good for another process.

        Raises `Unstorable` when a guard means nothing there (an instance or local class, say).
        """
        from .encoding import encode

        reads = [[encode(read.path), read.kind, encode(read.known)] for read in self.reads.values()]
        return {"code": self.code, "reads": reads}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Return the plan that `to_json` has written.

        Raises `Unstorable` when it guards something that is not in this process, or that is made otherwise by
        now, so that it matches nothing here; `ValueError` for what `to_json` has not written.
        """
        from .encoding import decode

        try:
            plan = cls(data["code"])
            reads = [Read(decode(path), kind, decode(known)) for path, kind, known in data["reads"]]
        except (LookupError, AttributeError) as error:
            raise ValueError(f"not a plan: {error!r}") from None
        for read in reads:
            if not isinstance(read.path, Path) or read.kind not in ("input", "guard"):
                raise ValueError(f"not a read: {read!r}")
            plan.reads[read.path, read.kind] = read
        plan._inputs = [read.path for read in reads if read.kind == "input"]
        return plan

    # --- the slow path: look, compare, say -----------------------------------------------------------------------

    def matches(self, target: Target) -> bool:
        """Whether `target` captures what was recorded: equal guards, inputs of the same kind, shape and dtype."""
        return self._current(target) is not None

    def changes(self, target: Target) -> list[str]:
        """Say in words what `target` captures otherwise, one line for each cause.

        A value that is only reached through another changed one is not mentioned.
        """
        if not self._same_code(target):
            return ["the code of the function has changed"]
        lines: list[str] = []
        changed: list[Path] = []
        for read, value, same in self._look(target):
            if same or any(read.path[: len(path)] == path for path in changed):
                continue
            changed.append(read.path)
            lines.append(_change(read, value))
        return lines

    def _same_code(self, target: Target) -> bool:
        return self.code is None or self.code == code_key(target.function)

    def _look(self, target: Target, found: dict[Path, Any] | None = None) -> Iterator[tuple[Read, Any, bool]]:
        """Yield each read with the present value (or `_MISSING`) and whether it is as it was; fill `found`."""
        found = {} if found is None else found
        found[Path()] = target
        for read in self.reads.values():
            value = _walk(read.path, found)
            yield read, value, value is not _MISSING and _same(read, value)

    def _current(self, target: Target) -> dict[Path, Any] | None:
        """Return every value on the way to a read, or None unless all are as they were."""
        found: dict[Path, Any] = {}
        if not self._same_code(target):
            return None
        return found if all(same for _, _, same in self._look(target, found)) else None

    # --- the warm path: compile ----------------------------------------------------------------------------------

    def compile(self, target: Target) -> Fetch | None:
        """Return `fetch() -> tuple of inputs` for `target`, or None if it does not match.

        `fetch` returns None once a guard fails: a value has changed, or is equal but another object where
        comparing would cost too much (functions), or has gone. It never raises. It checks neither type nor
        shape of inputs. When it returns None, `compile` again tells whether the plan still fits.
        """
        source = self.generate(target)
        if source is None:
            return None
        body = [*source.lines, f"return ({''.join(f'{name}, ' for name in source.inputs)})"]
        bound = {**source.bound, f"{PREFIX}error": Exception}
        head = f"def fetch({', '.join(bound)}):\n try:\n  "
        code = _compiled(head + "\n  ".join(body) + f"\n except {PREFIX}error:\n  return None\n")
        return FunctionType(code, source.namespace, "fetch", tuple(bound.values()))

    def generate(self, target: Target, fail: str = "return None") -> Source | None:
        """Return the statements of `fetch`, for use inside another generated function, or None if no match.

        `fail` is the statement for a failed guard. The statements may raise anything, which means the same as
        a failed guard.
        """
        values = self._current(target)
        if values is None:
            return None
        namespace = target.function.__globals__
        writer = _Writer(values, namespace, fail)
        writer.check_top(target)
        for read in self.reads.values():
            name = writer.read(read.path)
            if read.kind == "guard":
                writer.guard(read.path, name, read.known)
        inputs = tuple(writer.names[path] for path in self._inputs)
        return Source(tuple(writer.lines), inputs, writer.bound, namespace)


def _walk(path: Path, found: dict[Path, Any]) -> Any:
    if path not in found:
        start = _walk(path.parent, found)
        try:
            found[path] = _MISSING if start is _MISSING else take(start, path[-1])
        except Exception:  # properties and __getitem__ are user code and may raise anything
            found[path] = _MISSING
    return found[path]


def _same(read: Read, value: object) -> bool:
    try:
        return (describe(value) if read.kind == "input" else freeze(value)) == read.known
    except TypeError:  # has become something without a snapshot
        return False


def _change(read: Read, value: object) -> str:
    if value is _MISSING:
        return f"{read.path}: is not there any more"
    if isinstance(read.known, Leaf):
        return leaf_difference(str(read.path), read.known, describe(value))[0]
    try:
        now = show(freeze(value))
    except TypeError:
        now = f"a {type(value).__qualname__}"
    before = show(read.known)
    return f"{read.path}: {before} -> {now}" if before != now else f"{read.path}: replaced by another {before}"


class _Writer:
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
        return f"{self.bind({'keys': tuple, 'type': type, 'len': len}[kind])}({value})"

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
        if kind == "default":
            return f"{self.bind(function)}.__defaults__[{key}]"
        if kind == "kwdefault":
            return f"{self.bind(function)}.__kwdefaults__[{key!r}]"
        if kind == "keyword":
            return f"{self.bind(target.keywords[key])}[{key!r}]"
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


UNROLLED = 16  # items of a container that are worth a check of their own
_SCALAR = frozenset({int, str, bytes})
_REMADE = frozenset({float, complex, range})


def _is_name(key: object) -> bool:
    return isinstance(key, str) and key.isidentifier() and not keyword.iskeyword(key)


@functools.lru_cache(maxsize=512)
def _compiled(source: str) -> CodeType:
    """Compile a getter's source; equal plans of functions made again share it, whatever objects they bind."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "<captures>", "exec"), namespace)
    return namespace["fetch"].__code__
