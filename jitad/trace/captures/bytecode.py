"""Guards for user code that runs as it is, not as a copy: the methods of instances that recorded code makes.

What such code captures cannot be handed to it, so everything that it might read is guarded by value, found in
the bytecode without running it. An array there is refused.
"""
from __future__ import annotations

import dis
import enum
import functools
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.trace.captures.policy import is_user_class, is_user_function, is_user_module
from jitad.trace.captures.standard import note
from jitad.trace.values.kinds import KIND_NAMES, KINDS
from jitad.trace.values.truths import NUMPYS, PYTHONS
from jitad.trace.where import is_library_file

__all__ = ["KINDS_TOLD", "WholeGuards", "asks_identity", "codes_in", "compares_identity", "global_names", "has_code",
           "hashes", "tells_kinds", "truths_asked"]

_GLOBAL_OPS = {dis.opmap[name]: shift for name, shift in (               # by how much their argument is shifted
    ("LOAD_GLOBAL", 1), ("LOAD_NAME", 0), ("LOAD_FROM_DICT_OR_GLOBALS", 0)) if name in dis.opmap}
_SET_OPS = frozenset(dis.opmap[name] for name in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))
_EXTENDED, _IS = dis.opmap["EXTENDED_ARG"], dis.opmap["IS_OP"]
_IDENTITIES = frozenset({"is_", "is_not"})
_ASKS = "asks for type(...) in the methods of a class that the function makes use of: ask isinstance there"
_SETS = frozenset({"set", "frozenset", "__hash__"})
_EMPTY_CELL = CellType()
KINDS_TOLD = "classes of numbers"
_PLAIN_ATTRIBUTES = (str, int, bool, type(None), float, complex, bytes, enum.Enum)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions, classes and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@functools.lru_cache(maxsize=1024)
def global_names(code: CodeType, class_bodies_only: bool = False) -> tuple[str, ...]:
    """The names that the code, and the code inside it, reads from the globals."""
    names: dict[str, None] = {}
    for inner in codes_in(code):
        if class_bodies_only and inner.co_flags & 0x1:  # CO_OPTIMIZED: a function
            continue
        number, words = 0, inner.co_code                # by the bytes: `dis` takes a second for ten thousand lines
        for op, low in zip(words[::2], words[1::2], strict=True):
            number |= low
            if op in _GLOBAL_OPS:
                names[inner.co_names[number >> _GLOBAL_OPS[op]]] = None
            number = number << 8 if op == _EXTENDED else 0
    return tuple(names)


def _asks_identity(code: CodeType) -> bool:
    """Whether a look at its instructions is worth it: there may be an ``is``, or its function of `operator`."""
    texts = (c for c in code.co_consts if type(c) is str)
    return _IS in code.co_code[::2] or not _IDENTITIES.isdisjoint(
        [*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars, *texts])


@functools.lru_cache(maxsize=1024)
def compares_identity(code: CodeType) -> bool:
    """Whether the code has an ``is`` between things of which neither is a constant, nor a class asked for by name."""
    for inner in filter(_asks_identity, codes_in(code)):
        before: Any = None
        for instruction in dis.get_instructions(inner):
            if instruction.opname == "IS_OP" and not (before is not None and (
                    before.opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT")) or (
                    before.argval in ("__class__", "NotImplemented", "Ellipsis")))):
                return True
            if instruction.argval in ("is_", "is_not"):              # of `operator`
                return True
            before = instruction
    return False


@functools.lru_cache(maxsize=1024)
def hashes(code: CodeType) -> bool:
    """Whether results may depend on how texts are hashed in this process: by the order of sets, which the code makes or
    goes through."""
    for inner in codes_in(code):
        may = not _SET_OPS.isdisjoint(inner.co_code[::2]) or any(type(c) is frozenset for c in inner.co_consts)
        found = list(dis.get_instructions(inner)) if may else []
        for instruction, then in zip(found, [*found[1:], *found[-1:]], strict=True):
            constant = type(instruction.argval) is frozenset and then.opname != "CONTAINS_OP"
            if constant or instruction.opcode in _SET_OPS:
                return True
        if not _SETS.isdisjoint(inner.co_names):
            return True
    return False


@functools.lru_cache(maxsize=1024)
def finds_classes(code: CodeType) -> bool:
    """Whether the code compares by ``is`` and may find a class without asking ``type``, as by ``x.dtype.type``."""
    inside = list(codes_in(code))
    if any("__instancecheck__" in inner.co_names for inner in inside):
        return True
    if not compares_identity(code):
        return False
    return any("__class__" in (c for c in inner.co_consts if type(c) is str) for inner in inside) or any(
        instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and instruction.argval in ("type", "__class__")
        for inner in inside for instruction in dis.get_instructions(inner))


def tells_kinds(code: CodeType, held: Iterable[Any] = ()) -> bool:
    """Whether the code may tell by ``is`` a class of numbers or arrays that it has by name, or holds, from one that it
    finds otherwise."""
    named = any(not KIND_NAMES.isdisjoint(inner.co_names) for inner in codes_in(code))
    return (named or any(type(x) is type and x in KINDS for x in held)) and finds_classes(code)


@functools.lru_cache(maxsize=1024)
def _truths_in(code: CodeType) -> frozenset[str]:
    """Which truth values, Python's or NumPy's, the code may tell by ``is``."""
    found: set[str] = set()
    for inner in filter(_asks_identity, codes_in(code)):
        recent: list[dis.Instruction] = []
        for instruction in dis.get_instructions(inner):
            if instruction.opname == "IS_OP" or instruction.argval in ("is_", "is_not"):
                names = inner.co_names if instruction.opname != "IS_OP" else [i.argval for i in recent[-4:]]
                found |= {PYTHONS for i in recent[-4:] if type(i.argval) is bool}
                found |= {NUMPYS for name in names if name in ("True_", "False_")}
            recent.append(instruction)
    return frozenset(found)


def truths_asked(function: FunctionType, *bound: Any) -> frozenset[str]:
    """Which truth values a function, those that it may call, and methods of what is bound to it may tell by ``is``;
    `KINDS_TOLD` among them says that they tell classes of numbers."""
    found: set[str] = set()
    for reached, held in _reached(function, *bound):
        found |= _truths_in(reached.__code__)
        inside = [x for c in held if type(c) in (list, tuple, set, frozenset, dict) for x in (
            c.values() if type(c) is dict else c)]
        if tells_kinds(reached.__code__, [*held, *inside]):
            found.add(KINDS_TOLD)
        if any(isinstance(x, np.bool_) for x in held) and compares_identity(reached.__code__):
            found.add(NUMPYS)
    return frozenset(found)


def asks_identity(function: FunctionType, *bound: Any) -> bool:
    """Whether one of these functions compares by ``is`` what may be captured."""
    return any(compares_identity(reached.__code__) for reached, _ in _reached(function, *bound))


def _reached(function: FunctionType, *bound: Any) -> Iterator[tuple[FunctionType, list[Any]]]:
    """The function, those that it may call, and the methods of what is bound to it, with what they hold."""
    seen: set[int] = set()
    waiting: list[Any] = [function, *bound]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if type(thing) is FunctionType and (thing is function or is_user_function(thing)):
            names, cells = thing.__globals__, thing.__closure__ or ()
            held = [names[name] for name in global_names(thing.__code__) if name in names]
            held += [cell.cell_contents for cell in cells if cell != _EMPTY_CELL]
            held += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
            yield thing, held
            waiting += held
            waiting += [getattr(m, name) for m in held if isinstance(m, ModuleType) and is_user_module(m)
                        for name in thing.__code__.co_names if type(getattr(m, name, None)) is FunctionType]
        elif isinstance(thing, (MethodType, functools.partial)):
            waiting += [thing.__func__, thing.__self__] if isinstance(thing, MethodType) else [thing.func, *thing.args]
        elif isinstance(thing, (staticmethod, classmethod)) or hasattr(type(thing), "__jitad_nested__"):
            waiting.append(thing.__wrapped__)
        elif isinstance(thing, property):
            waiting += [thing.fget]
        elif is_user_class(kind := thing if isinstance(thing, type) else type(thing)):
            waiting += [raw for base in kind.__mro__ if is_user_class(base) for raw in list(vars(base).values())
                        if isinstance(raw, (FunctionType, staticmethod, classmethod, property))]


@functools.lru_cache(maxsize=1024)
def asks_for_types(code: CodeType) -> bool:
    """Whether the code has a use of ``type`` other than ``type(self)``."""
    for inner in codes_in(code):
        may = not _SET_OPS.isdisjoint(inner.co_code[::2]) or any(type(c) is frozenset for c in inner.co_consts)
        found = list(dis.get_instructions(inner)) if may else []
        for use, operand, then in zip(found, found[1:], found[2:], strict=False):
            own = operand.opname.startswith("LOAD_FAST") and operand.argval == (inner.co_varnames or ("",))[0]
            own = own and then.opname.startswith(("PRECALL", "CALL"))
            if use.opname in _GLOBAL_OPS and use.argval == "type" and not own:
                return True
    return False


def has_code(name: str, raw: Any) -> bool:
    """Whether an attribute of a class is code that its author wrote, rather than dataclasses or collections."""
    if isinstance(raw, FunctionType):
        file = raw.__code__.co_filename
        return not is_library_file(file) and not (file.startswith("<") and name.startswith("__"))
    if isinstance(raw, classmethod) and isinstance(raw.__func__, FunctionType):
        return not is_library_file(raw.__func__.__code__.co_filename)
    return isinstance(raw, (property, staticmethod, functools.cached_property, functools.partialmethod)) or hasattr(
        type(raw), "__jitad_nested__") or hasattr(raw, "__wrapped__")


class WholeGuards:
    """Adds the guards for whole functions and classes to the captures of a recording, once for each."""

    def __init__(self, captures: Any) -> None:
        self.captures = captures
        self.done: set[Any] = set()

    def _first(self, value: Any, path: Path) -> bool:
        """Whether this thing is met for the first time; its recursion ends here otherwise."""
        key = (id(value), path[0])
        if key in self.done:
            return False
        self.done.add(key)
        return True

    def function(self, function: FunctionType, path: Path) -> None:
        self.captures.guard(function, path)
        if not is_user_function(function) or not self._first(function, path):
            return
        code, names = function.__code__, function.__globals__
        if compares_identity(code):
            self.captures.asked.unseen = code.co_qualname
        if hashes(code):
            note(self.captures, "hashes of texts")
        for name in global_names(code):
            if name in names:
                self.value(names[name], path.step("global", name))
            elif name == "type" and asks_for_types(code):
                raise self.captures.error(path, _ASKS)
        for i, cell in enumerate(function.__closure__ or ()):
            if code.co_freevars[i] != "__class__":
                self.value(cell.cell_contents, path.step("cell", i, code.co_freevars[i]))
        for i, default in enumerate(function.__defaults__ or ()):
            self.value(default, path.step("default", i))
        for name, default in (function.__kwdefaults__ or {}).items():
            self.value(default, path.step("kwdefault", name))

    def class_(self, cls: type, path: Path) -> None:
        self.captures.guard(cls, path)
        if not self._first(cls, path):
            return
        for i, base in enumerate(cls.__mro__):
            if is_user_class(base) and not issubclass(base, enum.Enum):
                for name, raw in list(vars(base).items()):
                    at = path.step("attr", "__mro__").step("item", i).step("attr", name)
                    self._member(base, name, raw, at)

    def argument(self, cls: type) -> None:
        """Guard what the methods of an argument's class may read."""
        members = [(i, base, *item) for i, base in enumerate(cls.__mro__) if is_user_class(base)
                   for item in list(vars(base).items())]
        path = Path.of(("class", cls, cls.__name__))
        if not any(has_code(name, raw) for _, _, name, raw in members):
            return
        if not issubclass(cls, enum.Enum):
            self.class_(cls, path)
            return
        for i, base, name, raw in members:
            if has_code(name, raw):
                self._member(base, name, raw, path.step("attr", "__mro__").step("item", i).step("attr", name))

    def _member(self, cls: type, name: str, raw: Any, at: Path) -> None:
        generated = "__dataclass_fields__" in vars(cls) or hasattr(cls, "_field_defaults")
        if isinstance(raw, FunctionType):
            file = raw.__code__.co_filename
            if not (generated and (file.startswith("<") or is_library_file(file))):
                self.function(raw, at)
        elif isinstance(raw, staticmethod):
            self.value(raw.__func__, at)
        elif isinstance(raw, classmethod):
            if isinstance(raw.__func__, FunctionType):
                self.function(raw.__func__, at.step("attr", "__func__"))
        elif isinstance(raw, property):
            for part in ("fget", "fset"):
                if isinstance(getattr(raw, part), FunctionType):
                    self.function(getattr(raw, part), at.step("attr", part))
        elif isinstance(raw, functools.cached_property):
            self.value(raw.func, at.step("attr", "func"))
        elif not name.startswith("__") and not name.startswith("_abc") and not hasattr(type(raw), "__get__") \
                and name not in ("_fields", "_field_defaults"):
            self.value(raw, at)

    def value(self, value: Any, path: Path) -> None:
        """Guard something that unfollowed code may read; raises `CaptureError` where that is impossible."""
        if self.captures.is_static(path):
            self.captures.static(value, path)
        elif isinstance(value, FunctionType):
            self.function(value, path)
        elif value is type:
            raise self.captures.error(path, _ASKS)
        elif isinstance(value, type) and is_user_class(value):
            self.class_(value, path)
        elif isinstance(value, ModuleType) and is_user_module(value):
            raise self.captures.error(path, "is a module read by the methods of a class that the function makes "
                                            "instances of, where reads cannot be followed")
        elif hasattr(type(value), "__wrapped__") or hasattr(value, "__wrapped__"):
            self.captures.guard(value, path)
            self.value(value.__wrapped__, path.step("attr", "__wrapped__"))
        else:
            self.captures.guard(value, path)
