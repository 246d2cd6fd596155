"""Copies of functions: the same code, with globals, cells and defaults that are captures of a recording."""
from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType
from typing import Any, NoReturn

from jitad.cache.keys.captures import Path
from jitad.errors import CaptureError, MutationError
from jitad.tape.types import Where
from jitad.trace.captures.bytecode import codes_in, compares_identity, global_names, hashes, tells_kinds
from jitad.trace.captures.notes import Notes
from jitad.trace.captures.standard import note
from jitad.trace.where import user_line

__all__ = ["Copies", "GlobalsView"]

_EMPTY = object()
_FOR_TRACEBACKS = ("__loader__", "__spec__")  # linecache reads them to print the source of a frame


class GlobalsView(dict):
    """The globals of a copied function: each name is taken when it is first read."""

    jitad_recorded = True

    def __init__(self, captures: Notes, function: FunctionType, path: Path) -> None:
        super().__init__(__builtins__=captures.builtins)
        self.captures, self.path = captures, path
        self.real = function.__globals__
        self.real_builtins: dict[str, Any] = function.__builtins__  # type: ignore[attr-defined]
        self.given: dict[str, Any] = {"__builtins__": captures.builtins}

    def __missing__(self, name: str) -> Any:
        if name in _FOR_TRACEBACKS and name in self.real:
            return self.real[name]
        if name in self.real:
            taken = self.captures.take(self.real[name], self.path.step("global", name))
        elif name in self.real_builtins:
            taken = self.captures.builtin(self.real_builtins[name], name, self.path.step("global", name))
        else:
            self.captures.missing.add(name)
            raise KeyError(name)
        self.given[name] = taken
        dict.__setitem__(self, name, taken)
        return taken

    def __bool__(self) -> bool:
        return True  # linecache asks, when a traceback through the copied function is printed

    def __contains__(self, name: object) -> bool:
        known = super().__contains__(name) or name in self.real
        if not known and isinstance(name, str) and not name.startswith("__"):
            self.captures.missing.add(name)
        return known

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401

    def __setitem__(self, name: str, value: Any) -> None:
        raise MutationError(f"globals()[{name!r}] is assigned at {user_line()} while the function is recorded; "
                            "return the new value instead.")

    def _whole(self, *args: Any) -> NoReturn:
        raise CaptureError(f"globals() is used as a whole at {user_line()}; read the names that are needed")

    def items(self) -> Any:
        """Of a recording that is over, those of the user's function: what writes tracebacks looks at them."""
        return self._whole() if self.captures.recorder.active else self.real.items()

    __iter__ = __len__ = keys = values = copy = update = _whole     # type: ignore[assignment]

    def rebound(self) -> list[str]:
        """Names that a ``global`` statement has assigned or deleted."""
        now = dict(dict.items(self))
        now.pop("__warningregistry__", None)  # where Python notes which warnings it has shown
        return [n for n in {**now, **self.given} if now.get(n, _EMPTY) is not self.given.get(n, _EMPTY)]


class Copies:
    """The copied functions of one recording, and what they could change."""

    def __init__(self, captures: Notes) -> None:
        self.captures = captures
        self.homes: dict[Any, tuple[GlobalsView, Path]] = {}
        self.cells: list[tuple[CellType, Any, str]] = []
        self.originals: dict[int, FunctionType] = {}
        self._functions: dict[Path, FunctionType] = {}
        self._copies: dict[Any, tuple[FunctionType, FunctionType]] = {}

    def rebound(self) -> Iterator[str]:
        """The variables that the copies have assigned by ``global`` and ``nonlocal``."""
        for view, _ in self.homes.values():
            yield from (f"global `{name}`" for name in view.rebound())
        for cell, given, name in self.cells:
            if contents(cell) is not given:
                yield f"nonlocal `{name}`"

    def where_stored(self, what: str) -> Where | None:
        """The first line of the copies that assigns or deletes what `rebound` names."""
        kind, _, name = what.partition(" ")
        wanted = {"global": ("STORE_GLOBAL", "DELETE_GLOBAL"), "nonlocal": ("STORE_DEREF", "DELETE_DEREF"),
                  "attribute": ("STORE_ATTR", "DELETE_ATTR")}.get(kind, ())
        for code in (inner for function in self.originals.values() for inner in codes_in(function.__code__)):
            line = None
            for instruction in dis.get_instructions(code):
                line = instruction.positions.lineno if instruction.positions else line
                if instruction.opname in wanted and f"`{instruction.argval}`" == name.split(" of ")[0]:
                    return Where(code.co_filename, line or code.co_firstlineno, code.co_name)
        return None

    def compare_identity(self) -> bool:
        return any(compares_identity(function.__code__) for function in self.originals.values())

    def telling_kinds(self) -> str:
        """The name of a copy that may tell classes of numbers by ``is``."""
        held = [value for value, _ in self.captures.taken.values() if type(value) is type]
        return next((f.__qualname__ for f in self.originals.values() if tells_kinds(f.__code__, held)), "")

    def release(self) -> None:
        """Break the cycles between views and functions, so that what was captured is freed at once."""
        for view, _ in self.homes.values():
            dict.clear(view)
            view.given.clear()
        self.homes.clear()
        self.cells.clear()
        self._copies.clear()
        self._functions.clear()

    def copy(self, function: FunctionType, path: Path, given: int = 0, keywords: Mapping[str, Any] | None = None,
              ) -> FunctionType:
        """A copy with the same code whose globals, cells and defaults are captures. With `keywords` (the top
        function), only those defaults are taken that `given` positional arguments and `keywords` leave open."""
        for length in range(len(path)):  # recursion: back to the copy on the way here
            if self._functions.get(above := Path(path[:length])) is function:
                return self._copies[above][1]
        home = self._home(function, path)
        bare = not (function.__defaults__ or function.__kwdefaults__ or function.__dict__)
        # Without captures of its own, a function is the same wherever it is found.
        key: Any = id(function) if bare and not function.__closure__ and "__name__" in home.real else path
        if key in self._copies:
            return self._copies[key][1]
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copy = FunctionType(self.captures.recorder.marks.code(function.__code__), home, function.__name__, None, cells)
        copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
        copy.__annotations__ = dict(function.__annotations__)
        self._copies[key] = (function, copy)
        if hashes(function.__code__):
            note(self.captures, "hashes of texts")
        self.originals[id(copy)] = function
        if key is path:
            self.captures.met(function, path)
        if bare or path:
            self._functions[path] = function
            self._copies[path] = (function, copy)
        self._fill_cells(function, cells, path)
        self._fill_defaults(function, copy, path, given, keywords)
        for name in global_names(function.__code__, class_bodies_only=True):
            if name in home.real:  # class bodies look into the dict itself before Python 3.13
                home[name]
        for name, value in function.__dict__.items() if path else ():
            at = path.step("attr", name)
            copy.__dict__[name] = (self.captures.poison(at, "cannot be followed") if name == "__wrapped__"
                                   else self.captures.take(value, at))
        self.captures.attributes.hold(copy, path)
        return copy

    def _home(self, function: FunctionType, path: Path) -> GlobalsView:
        """The view of the function's globals, shared by functions of one module: its name is guarded for each."""
        names = function.__globals__
        key: Any = id(names) if "__name__" in names else path
        if key not in self.homes:
            self.homes[key] = (GlobalsView(self.captures, function, path), path)
        view, first = self.homes[key]
        if first != path:
            for at in (first, path):
                self.captures.guard(names["__name__"], at.step("global", "__name__"))
        return view

    def _fill_cells(self, function: FunctionType, cells: tuple[CellType, ...], path: Path) -> None:
        names = function.__code__.co_freevars
        for i, (new, old) in enumerate(zip(cells, function.__closure__ or (), strict=True)):
            value = contents(old)
            if value is _EMPTY:
                continue
            new.cell_contents = self.captures.take(value, path.step("cell", i, names[i]))
            self.cells.append((new, new.cell_contents, names[i]))

    def _fill_defaults(self, function: FunctionType, copy: FunctionType, path: Path, given: int,
                       keywords: Mapping[str, Any] | None) -> None:
        code = function.__code__
        defaults, first = function.__defaults__ or (), code.co_argcount - len(function.__defaults__ or ())
        open_ = lambda i, name: keywords is None or (i >= given and name not in keywords)
        take = lambda value, *step: self.captures.take(value, path.step(*step))
        copy.__defaults__ = tuple(
            take(value, "default", i, name) if open_(first + i, name) else value
            for i, (value, name) in enumerate(zip(defaults, code.co_varnames[first:code.co_argcount], strict=True))
        ) or None
        copy.__kwdefaults__ = {
            name: take(value, "kwdefault", name) if keywords is None or name not in keywords else value
            for name, value in (function.__kwdefaults__ or {}).items()} or None


def contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY
