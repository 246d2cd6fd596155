"""Reading captured values in a call: a plan of what a function reads, and the statements that read it.

A `Plan` is what a compiled tape keeps: paths, and snapshots of what was found there, never the values. The
statements that it generates for one function at hand are bound to that function's own cells and globals, so they
belong with the function (in its memo), not with the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .computed import fill
from .getters import Writer
from .guards import freeze, show
from .identity import Same, Target, code_key
from .paths import FUNCTION_STEPS, Path, Step, take
from .places import Place, places
from .signature import Leaf, describe, leaf_difference

__all__ = ["Path", "Plan", "Read", "Source", "Step"]

_MISSING = object()
_KNOWN: dict[str, Callable[[Any], Hashable]] = {"input": describe, "guard": freeze, "same": Same}


class Read(NamedTuple):
    """One captured value: `kind` is "input" (`known` is its `Leaf`), "guard" (its snapshot) or "same" (its `Same`)."""

    path: Path
    kind: str
    known: Hashable


class Source(NamedTuple):
    """Generated statements: after `lines`, the variables `inputs` hold the inputs, and `objects` what was asked for.

    They need the objects in `bound` by name, and have to run in a function whose globals are `namespace`, those
    of the user's function: reading a global is cheapest there, and finds a builtin where no global hides it.
    All their own names start with `getters.PREFIX`.
    """

    lines: tuple[str, ...]
    inputs: tuple[str, ...]
    bound: dict[str, object]
    namespace: dict[str, Any]
    objects: dict[Path, str]


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
    >>> plan.values(Target(f))
    (2.0,)
    >>> plan.generate(Target(f), fail="return None").inputs
    ('_jitad_v0',)
    """

    __slots__ = ("_inputs", "code", "reads")

    def __init__(self, code: str | None = None) -> None:
        self.code = code
        self.reads: dict[tuple[Path, str], Read] = {}
        self._inputs: list[Path] = []

    def add(self, path: Path, kind: str, value: object) -> int:
        """Note that `value` was read at `path`; return the place of an input among the inputs, -1 for a guard.

        A "guard" compares by value, "same" by identity: it holds as long as the very same object is found there,
        whatever becomes of its content. Such a plan means nothing to another process. An object that cannot be
        referenced weakly (a list, say) lives as long as the plan.

        A path that goes on from a function other than the top one (its globals, cells, ...) needs a guard on
        that function first. Adding the same read again changes nothing.

        Raises `Unguardable` for a guard on a value without snapshot, `ValueError` for another kind or when the
        guard on the function in between is missing.
        """
        for i, step in enumerate(path[1:], 1):
            if step.kind in FUNCTION_STEPS and (Path(path[:i]), "guard") not in self.reads:
                raise ValueError(f"no guard yet on the function in between: {Path(path[:i])}")
        if kind not in _KNOWN:
            raise ValueError(f"a read is an input or a guard, not {kind!r}")
        if (path, kind) not in self.reads:
            self.reads[path, kind] = Read(path, kind, _KNOWN[kind](value))
            if kind == "input":
                self._inputs.append(path)
        return self._inputs.index(path) if kind == "input" else -1

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The paths of the inputs, in the order in which `values` returns them."""
        return tuple(self._inputs)

    @property
    def guards(self) -> tuple[Path, ...]:
        """The paths of the guards."""
        return tuple(read.path for read in self.reads.values() if read.kind != "input")

    # --- on disk -------------------------------------------------------------------------------------------------

    def to_json(self) -> Any:
        """Return the plan as what `json` can write, good for another process.

        Raises `Unstorable` when a guard means nothing there (an instance or local class, say).
        """
        from .encoding import Unstorable, encode

        for read in self.reads.values():
            if read.kind == "same":
                raise Unstorable(read.known)
        reads = [[encode(read.path), read.kind, encode(read.known)] for read in self.reads.values()]
        return {"code": self.code, "reads": reads}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Return the plan that `to_json` has written.

        Raises `Unstorable` when it guards something that is not in this process, or that is made otherwise by
        now, so that it matches nothing here; `ValueError` for what `to_json` has not written.
        """
        from .encoding import Unstorable, decode

        try:
            plan = cls(data["code"])
            reads = [Read(decode(path), kind, decode(known)) for path, kind, known in data["reads"]]
        except Unstorable:
            raise
        except (LookupError, TypeError) as error:
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

    def values(self, target: Target) -> tuple[Any, ...] | None:
        """Return the inputs as they are now; None if `target` does not match."""
        found = self._current(target)
        return None if found is None else tuple([found[path] for path in self._inputs])

    def found(self, target: Target, paths: Iterable[Path]) -> list[Any]:
        """Return what is at `paths` now; None where there is nothing."""
        known: dict[Path, Any] = {Path(): target}
        return [None if (value := _walk(path, known)) is _MISSING else value for path in paths]

    # --- a call: generated code ----------------------------------------------------------------------------------

    def generate(self, target: Target, fail: str, objects: Sequence[Path] = ()) -> Source | None:
        """Return statements that read the inputs of `target`, for use in a generated function; None if no match.

        `fail` is the statement for a failed guard: a value has changed, or is equal but another object where
        comparing would cost too much (functions), or has gone. The statements may raise anything, which means the
        same. They check neither type nor shape of inputs. `objects` are paths of which only the object itself counts.
        """
        values = self._current(target)
        if values is None:
            return None
        namespace = target.function.__globals__
        writer = Writer(values, namespace, fail)
        writer.check_top(target)
        for read in self.reads.values():
            name = writer.read(read.path)
            if read.kind == "guard":
                writer.guard(read.path, name, read.known)
            elif read.kind == "same":
                writer.same(name, read.known)
        found = {path: writer.read(path) for path in objects}
        inputs = tuple(writer.names[path] for path in self._inputs)
        return Source(tuple(writer.lines), inputs, writer.bound, namespace, found)

    def places(self, target: Target) -> tuple[Place, ...] | None:
        """Return the places that tell as long as they keep their objects that the guards hold; None if
        there are inputs, or something that no place tells, or no match."""
        unbound = target.shape == (False, 0, ()) and target.callable_type is None and not target.partials
        if not unbound or any(read.kind != "guard" for read in self.reads.values()):
            return None
        values = self._current(target)
        return None if values is None else places([read.path for read in self.reads.values()], values, target.function)


def _walk(path: Path, found: dict[Path, Any]) -> Any:
    if path not in found:
        start = _walk(path.parent, found)
        if path[-1].kind == "one":
            found[path] = start is _walk(path[-1].key, found)                               # type: ignore[arg-type]
            return found[path]
        if path[-1].kind == "apart":
            objects = [start, *(_walk(other, found) for other in path[-1].key)]             # type: ignore[attr-defined]
            found[path] = len({*map(id, objects)}) == len(objects)
            return found[path]
        try:
            found[path] = _MISSING if start is _MISSING else (
                _made(start, path[-1].key, found) if path[-1].kind == "made" else take(start, path[-1]))
        except Exception:  # properties and __getitem__ are user code and may raise anything
            found[path] = _MISSING
    return found[path]


def _made(start: Any, call: Any, found: dict[Path, Any]) -> Any:
    """What the call gives, the objects at the paths in it being those that are there now."""
    def look(path: Path) -> Any:
        return _walk(path, found)

    function = start if call.function is None else call.function
    return function(*fill(call.args, look), **fill(call.kwargs, look))


def _same(read: Read, value: object) -> bool:
    try:
        return bool(_KNOWN[read.kind](value) == read.known)
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
        now = repr(Same(value)) if read.kind == "same" else f"a {type(value).__qualname__}"
    before = show(read.known)
    return f"{read.path}: {before} -> {now}" if before != now else f"{read.path}: replaced by another {before}"
