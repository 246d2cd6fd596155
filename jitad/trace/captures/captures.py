"""Captures: what a function reads that is not an argument.

The way of a captured value. Recorded is not the user's function but a copy of it: the same code, with a view for
its globals, new cells and new defaults. A read through one of them ends in `Captures.take(value, path)`, where
`path` says how the function got there (global `cfg`, attribute `sigma`), and `take` decides:

* an array or float becomes an input of the tape; the code gets a tracer;
* a user's function is copied in turn (and guarded by its code), a bound method, partial or lru_cache taken apart;
* modules, instances of users' classes, dicts become stand-ins that come back to `take`, one step further down
  the path, when something is read through them; lists and tuples are copied item by item at once;
* a class is handed as it is once all that its methods read is guarded, or else as a stand-in;
* anything else is guarded by value, or, where that is impossible, replaced by a `Poison` that raises when used;
* what the user has declared `static` is used as it is, and guarded by identity.

Every step is noted in the `Plan`. A compiled tape keeps the plan, not the values: on later calls it walks the
same paths, compares the guards and passes the inputs. After the run, `finish` looks for rebindings that went past
the views (`global x`, `nonlocal x`, `items.append`) and refuses them.
"""
from __future__ import annotations

import builtins
import enum
import functools
import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path, Plan
from jitad.cache.keys.guards import GUARDED_ARRAYS, Unguardable, is_atom
from jitad.cache.keys.identity import code_key
from jitad.errors import CaptureError, MutationError
from jitad.tape.builder import Value
from jitad.tape.types import Where
from jitad.trace.captures import policy
from jitad.trace.captures.asked import Asked
from jitad.trace.captures.attributes import Attributes
from jitad.trace.captures.bytecode import WholeGuards, asks_identity
from jitad.trace.captures.collected import TAKERS, is_dispatching, take_dispatching, take_records
from jitad.trace.captures.containers import STATIC, frozen_copy, has_changed, take_list, take_set, take_tuple
from jitad.trace.captures.copies import Copies, GlobalsView
from jitad.trace.captures.extremes import extremes
from jitad.trace.captures.introspection import VIEWS, Identities, explaining, hashing
from jitad.trace.captures.libraries.objects import library_object, take_vectorized
from jitad.trace.captures.nested import CaptureView, Nested
from jitad.trace.captures.objects.classes import Classes, is_copy, original_of
from jitad.trace.captures.objects.standins import DictView, ModuleView, ObjectView, Poison, object_view, state_of
from jitad.trace.captures.standard import Outlet, is_changing, note_states
from jitad.trace.captures.wrappers import take_cached, take_method, take_partial
from jitad.trace.impure import Impure
from jitad.trace.leaves import packed_all, refusal
from jitad.trace.pytree import TreeDef, unflatten
from jitad.trace.scipy_rules.stats import distributions
from jitad.trace.values.kinds import KINDS
from jitad.trace.where import user_line

__all__ = ["Captures"]

_LRU = type(functools.lru_cache(lambda: None))
_DICTS = (dict, OrderedDict, defaultdict)


class Captures:
    """The captures of one recording; see the module's docstring. `inputs` are the traced inputs and `values` the
    captured values, both in the order of `plan.inputs`."""

    def __init__(self, recorder: Any, target: Any, objects: Sequence[Any] = ()) -> None:
        self.recorder, self.target = recorder, target
        self.plan = Plan(code_key(target.function))
        self.static_names = frozenset(target.static)
        self.inputs: list[Value] = []
        self.values: list[Any] = []
        self.missing: set[str] = set()
        self.attributes = Attributes(self)
        self.views = {**VIEWS, **self.attributes.views, builtins.__import__: self._import, hash: hashing(self),
                      **extremes(self), **(KINDS if recorder.kinds else {})}
        self.asked = Asked(self, objects)
        self.views |= {operator.is_: self.asked.is_, operator.is_not: self.asked.is_not} if objects else {}
        self.builtins = {name: self.seen(value) or value for name, value in vars(builtins).items()}
        self.whole = WholeGuards(self)
        self.copies = Copies(self)
        self.taken: dict[Path, tuple[Any, Any]] = {}
        self.identities = Identities(self, asks_identity(target.function, target.self, *target.args))
        self.classes = Classes(self)
        self.watched: list[tuple[Any, Any, Path]] = []        # copies of lists and sets, and as they were

    # --- running and checking --------------------------------------------------------------------

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the copy of the target on traced arguments."""
        target = self.target
        bound = [] if target.self is None else [self.take(target.self, Path.of(("self",)))]
        bound += [self.take(value, Path.of(("partial", i))) for i, value in enumerate(target.args)]
        keywords = {name: self.take(home[name], Path.of(("keyword", name)))
                    for name, home in target.keywords.items() if name not in kwargs}
        given = {**keywords, **kwargs}
        return self.copies.copy(target.function, Path(), len(bound) + len(args), given)(*bound, *args, **given)

    def argument(self, cls: type) -> None:
        """Follow the methods of an argument's class, which is what its path says."""
        if issubclass(cls, enum.Enum):
            self.whole.argument(cls)
        else:
            self.take(cls, Path.of(("class", cls, cls.__name__)))

    def rebuilt(self, part: tuple[TreeDef | None, Any]) -> Any:
        """An argument of its leaves, its instances being those of copied classes."""
        structure, leaves = part
        return leaves if structure is None else self.classes.as_copies(unflatten(structure, leaves))

    def finish(self) -> None:
        """Raise for changes of captured state that could not be seen when they were made."""
        for what in (*self.copies.rebound(), *self.attributes.changed()):
            raise self._changed(what, self.copies.where_stored(what))
        self.attributes.watch([function.__code__ for function in self.copies.originals.values()])
        for copy, before, path in self.watched:
            if has_changed(copy, before):
                raise self._changed(f"the captured {type(copy).__name__} `{path.expression()}`")
        for words in self.plan.changes(self.target):
            raise self._changed(f"captured state ({words})")
        self.identities.check(self.copies.compare_identity())
        self.asked.finish()
        if self.recorder.kinds and (tells := self.copies.telling_kinds()):
            raise CaptureError(f"`{tells}` compares classes of numbers by `is`, which it reads as `x.__class__` or "
                               "`x.dtype.type`, and cannot be followed; compare dtypes by `==`, or ask isinstance")
        if self.missing:
            raise CaptureError(f"`{self.recorder.function_name}` looks for the global `{min(self.missing)}`, which "
                               "does not exist, and goes on without it; define it (None, say) and test its value.")

    def release(self) -> None:
        """Let go of what was captured; the recording is over and has succeeded."""
        self.copies.release()
        self.views = VIEWS
        self.builtins.update(__import__=builtins.__import__, getattr=getattr, hasattr=hasattr, hash=hash)
        self.taken.clear()
        self.watched.clear()
        self.classes.release()
        del self.attributes, self.copies, self.whole, self.target

    def met(self, value: Any, path: Path) -> None:
        """Remember where an object was found that has a stand-in or copy for each path to it."""
        self.identities.met(value, path)

    def original(self, value: Any) -> Any:
        """What a copy or stand-in stands for; anything else is itself."""
        if isinstance(value, ObjectView):
            return state_of(value)[1]
        if isinstance(value, type):
            return original_of(value)
        if isinstance(value, FunctionType):
            return self.copies.originals.get(id(value), value)
        return distributions.original(value)

    def _changed(self, what: str, where: Where | None = None) -> MutationError:
        at = f", at {where}," if where is not None else ""
        return MutationError(f"{what} is changed by `{self.recorder.function_name}`{at} while it is recorded. The "
                             "change would be lost in later calls, which run compiled code; return the new value "
                             "instead.")

    def error(self, path: Path, why: str, way_out: bool = False) -> CaptureError:
        """The error for what was found at `path`; with `way_out`, `why` says already what to do."""
        static = f"if it never changes, say static=({path.expression()!r},)."
        advice = f"Or, {static}" if way_out else (
            f"Pass it to `{self.recorder.function_name}` as an argument instead, or, {static}")
        fault = CaptureError(f"{path} {why} (at {user_line(2)}). {advice}")
        fault.said = (path, why)  # type: ignore[attr-defined]
        return fault

    # --- notes -----------------------------------------------------------------------------------

    def guard(self, value: Any, path: Path) -> None:
        """Note that `value` was read at `path` and must stay as it is."""
        try:
            self.plan.add(path, "guard", value)
        except Unguardable as fault:
            raise self.error(path, f"cannot be followed: {fault}") from None

    def is_static(self, path: Path) -> bool:
        """Whether the user has declared that this does not change."""
        return bool(self.static_names) and path.expression() in self.static_names

    def static(self, value: Any, path: Path) -> Any:
        """The value as it is, guarded by identity."""
        if isinstance(value, MethodType):  # a new object at each look-up
            for part in ("__self__", "__func__"):
                self.plan.add(path.step("attr", part), "same", getattr(value, part))
        else:
            self.plan.add(path, "same", value)
        return value

    def _input(self, value: Any, path: Path) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.names:
            return take_records(self, value, path)
        if isinstance(value, np.ndarray) and value.dtype.kind in GUARDED_ARRAYS:
            self.guard(value, path)
            return frozen_copy(value)
        if (why := refusal(value)) is not None:
            return self.static(value, path) if self.is_static(path) else self.poison(path, why)
        name = path.expression()
        while name in self.recorder.names:  # an argument, or another function's variable, of the same name
            name += "'"
        self.plan.add(path, "input", value)
        traced = self.recorder.traced_input(value, name)
        self.inputs.append(traced)
        self.values += packed_all([value])
        return self.recorder.seen(traced, value)

    def poison(self, path: Path, why: str, way_out: bool = False) -> Poison:
        return Poison(lambda: self.error(path, why, way_out))

    def seen(self, value: Any) -> Any | None:
        """What recorded code gets for a function that asks what it is given, not for a number; None for any other."""
        if type(value) is FunctionType:
            return explaining(value)
        return self.views.get(value) if type(value) in (BuiltinFunctionType, type) else None

    def stand_in(self, value: Any, name: str) -> Any | None:
        """What recorded code gets in place of something that a library has, under this name; None for itself."""
        note_states(self, value)
        found = self.seen(value) or policy.substitute(value)
        return policy.refused(value, name, user_line) if found is None else found

    def builtin(self, value: Any, name: str, path: Path) -> Any:
        """What a name gives that is found among the builtins."""
        if isinstance(value, FunctionType):                  # put there by the user, or by `site`
            return self.take(value, path)
        self.guard(value, path)
        replaced = self.stand_in(value, name)
        return value if replaced is None else replaced

    # --- take ------------------------------------------------------------------------------------

    def take(self, value: Any, path: Path) -> Any:
        """What recorded code gets for the captured `value` that was found at `path`."""
        if known := self.taken.get(path):
            if known[0] is not value and not isinstance(value, (MethodType, float, np.floating)):
                raise MutationError(f"{path} changed while `{self.recorder.function_name}` was recorded.")
            return known[1]
        if (first := self.identities.first(value, path)) is not None:
            self.taken[path] = self.taken[first]
            return self.taken[path][1]
        try:
            taken = self._take(value, path)
        except CaptureError as fault:
            taken = self.poison(*_said(fault))
        if taken is not value and isinstance(value, (np.ndarray, list, dict, set, tuple, deque, float, np.floating)):
            self.met(value, path)
        self.taken[path] = (value, taken)
        return taken

    def _take(self, value: Any, path: Path) -> Any:
        kind = type(value)
        if isinstance(value, (Value, ObjectView, ModuleView, DictView, Poison)) or is_copy(value):
            if isinstance(value, Value) and value.builder is not self.recorder:
                raise self.recorder.foreign(value)
            return value  # of this recording: a function made inside it captured it
        if hasattr(kind, "jitad_current"):
            return value  # an array that was made in this recording
        if isinstance(value, (np.ndarray, np.floating)) or kind is float:
            return self._input(value, path)
        take = library_object(value)
        if take is not None:
            return take(self, value, path)
        if (stand_in := self.stand_in(value, path.expression())) is not None:
            if isinstance(stand_in, Outlet):
                self.guard(type(value), path.step("type"))
            elif not isinstance(stand_in, Impure):
                (self.guard if policy.has_snapshot(value) else self.static)(value, path)
            return stand_in
        if self.is_static(path) and kind not in STATIC and not isinstance(value, enum.Enum):
            return self.static(value, path)
        if isinstance(value, ModuleType):
            self.guard(value, path)
            return ModuleView(self, value, path)
        if isinstance(value, type):
            return self._class(value, path)
        if hasattr(kind, "__jitad_nested__"):
            return self._transform(value, path)
        if taker := _TAKERS.get(kind):
            return taker(self, value, path)
        if isinstance(value, tuple):
            return take_tuple(self, value, path)
        return self._other(value, path)

    def _other(self, value: Any, path: Path) -> Any:
        cls = type(value)
        if cls is object or cls.__module__ == "dataclasses":  # a mark of its own, told by identity
            self.guard(cls, path.step("type"))
            return value
        if not is_atom(value) and policy.is_followed(cls):
            why, words = policy.unfollowable(cls), policy.cure(value)
            if why is not None:
                return self.poison(path, f"{why}: {words}" if words else why, bool(words))
            self.guard(cls, path.step("type"))
            self.met(value, path)
            return object_view(self, value, path)
        if function := getattr(value, "py_func", None) if policy.is_numba(cls) else None:
            self.guard(cls, path.step("type"))
            return self.take(function, path.step("attr", "py_func"))
        owner = getattr(value, "__self__", None) if cls is BuiltinFunctionType else None
        if isinstance(owner, (np.ndarray, np.ufunc)):
            self.guard(value.__name__, path.step("attr", "__name__"))
            return getattr(self.take(owner, path.step("attr", "__self__")), value.__name__)
        if not (owner is None or isinstance(owner, (type, ModuleType)) or is_atom(owner)):
            return self.poison(path, "is a method that is bound to a captured object")
        self.guard(value, path)
        return value

    def _class(self, cls: type, path: Path) -> Any:
        self.guard(cls, path)
        return self.classes.copy(cls, path) if self.classes.is_copied(cls) else cls

    def _transform(self, value: Any, path: Path) -> Any:
        self.guard(type(value), path.step("type"))
        self.guard(value.__jitad_transform__, path.step("attr", "__jitad_transform__"))
        return Nested(value, CaptureView(self, path))

    # --- containers ------------------------------------------------------------------------------

    def dict_view(self, value: dict[Any, Any], path: Path) -> DictView:
        known = self.taken.get(path)
        if known is None:
            self.guard(type(value), path.step("type"))
            known = self.taken[path] = (value, DictView(self, value, path))
        return known[1]

    # --- callables -------------------------------------------------------------------------------

    def function(self, function: FunctionType, path: Path) -> Any:
        """The copy of a captured function, or the function itself if it is a library's."""
        if self.is_own(function):
            return function
        if is_dispatching(function):
            return take_dispatching(self, function, path)
        self.guard(function, path)
        users = policy.is_user_function(function) or policy.holds_user_code(function)
        copy = self.copies.copy(function, path) if users else function
        self.attributes.found(copy, function, path)
        return copy

    def is_own(self, function: FunctionType) -> bool:
        """Whether a function is a copy, or was made inside a recording."""
        return type(function.__globals__) is GlobalsView

    # --- modules ---------------------------------------------------------------------------------

    def module_attribute(self, module: ModuleType, path: Path | None, name: str) -> Any:
        """What ``module.name`` gives in recorded code; `path` is None for what was imported within it."""
        if path is not None and not hasattr(module, name):
            self.guard(False, path.step("has", name))
        value = getattr(module, name)
        at = path.step("attr", name) if path is not None else None
        if is_changing(module, name, value) or policy.is_followed_in(module, value):
            return self.take(value, at or Path.of(("module", module.__name__), ("attr", name)))
        if policy.is_user_module(module) or policy.is_mutable(value):
            if at is None:
                raise CaptureError(f"`{module.__name__}.{name}` is read at {user_line(2)} through an import inside the "
                                   "function, where its changes cannot be followed; pass it as an argument")
            return self.take(value, at)
        if isinstance(value, ModuleType):
            return ModuleView(self, value, at)
        stand_in = self.stand_in(value, f"{module.__name__}.{name}")
        return value if stand_in is None else stand_in

    def _import(self, name: str, names: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """``__import__`` for recorded code."""
        real = names.real if isinstance(names, GlobalsView) else names
        module = builtins.__import__(name, real, local, fromlist, level)
        if policy.is_user_module(module):
            raise CaptureError(f"module `{module.__name__}` is imported inside the recorded function, at "
                               f"{user_line(2)}, where its reads cannot be followed; import it at the top of the file")
        return ModuleView(self, module, None)

    def copy_of(self, function: Any) -> Any:
        """The noted copy of a function that was made inside this recording: itself."""
        inner = function
        while isinstance(inner, (MethodType, functools.partial)):
            inner = inner.__func__ if isinstance(inner, MethodType) else inner.func
        made_here = isinstance(inner, FunctionType) and type(inner.__globals__) is GlobalsView
        if made_here or isinstance(inner, (Nested, ObjectView)):
            return function
        raise CaptureError(f"{function!r} was reached, at {user_line(2)}, in a way that cannot be followed; use it "
                           "through a global, a closure or an attribute that the recorded function reads itself")


def _said(fault: CaptureError) -> tuple[Any, str]:
    """The path and the reason, for an error that is to be raised where the value is used."""
    return getattr(fault, "said", None) or ("a captured value", str(fault))


_TAKERS: dict[type, Any] = {
    FunctionType: Captures.function, MethodType: take_method, functools.partial: take_partial, _LRU: take_cached,
    list: take_list, tuple: take_tuple, set: take_set, frozenset: take_set,
    np.vectorize: take_vectorized, **dict.fromkeys((*_DICTS, MappingProxyType), Captures.dict_view), **TAKERS,
}
