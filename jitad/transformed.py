"""What the decorators return: a callable that compiles on the first call and remembers."""
from __future__ import annotations

import functools
import inspect
import operator
import sys
import warnings
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from jitad import cache, stored
from jitad.cache.identity import Target, code_key, unwrap
from jitad.cache.signature import Signature
from jitad.display import Text
from jitad.entry import Entry, TapeNeeded, build, differentiated, write_out
from jitad.errors import ArgumentTypeError, CaptureError, MutationError, TapeMismatchError, TapeMismatchWarning
from jitad.request import Arguments, Request, Settings, bind, differences, take_apart
from jitad.trace.where import is_library_file, user_line

REMEMBERED = 16  # kernels that a function can call without asking the cache
RECENT = 4       # of these, how many are tried before a call is taken apart


class Transformed:
    """A function together with what is asked of it. Made by `jit_grad`, `value_and_grad` and `jit`.

    Calling it gives that; `value` and `value_and_grad` ask for more of the same function.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], request: Request, settings: Settings = Settings()):
        from jitad.compile.kernel_errors import Miss

        _name_after(self, function)
        inner = _transformed_in(function)
        plain = _calling(function) if inner is not None else function
        try:
            self._target = unwrap(plain)
            self._signature = inspect.signature(plain.__func__ if isinstance(plain, classmethod) else function)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{error}; wrap it in a function or lambda (at {user_line()})") from None
        self.__wrapped__ = plain
        self._given, self._inner = function, inner
        self.__jitad_transform__ = (request.what, request.argnums)
        self._request, self._settings = request, settings
        self._miss = (Miss, TypeError, OverflowError)       # beyond 64 bits
        self._warm: Callable[..., Any] | None = None
        self._known: tuple[_Remembered, ...] = ()            # latest first
        self._own_out = "out" in self._signature.parameters
        self._siblings: dict[str, Transformed] = {}
        self._classes = _Bound()
        self._attribute: str | None = None
        self._origin: tuple[Any, str] | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                return self._warm(*args)                 # type: ignore[misc]
            if self._own_out or "out" not in kwargs:
                return self._warm(*args, **kwargs)       # type: ignore[misc]
        except self._miss:
            pass
        if "out" in kwargs and not self._own_out:
            out = kwargs.pop("out")
            return write_out(self(*args, **kwargs), out, self._request, self.__name__)
        return self._slow(args, kwargs)

    # --- the family ----------------------------------------------------------------------------
    def _sibling(self, what: str) -> Transformed:
        known = self._siblings.get(what)
        if known is None:
            known = Transformed(self._given, Request(what, self._request.argnums), self._settings)
            known._origin = (weakref.ref(self), what)
            known = self._siblings.setdefault(what, known)
        return known

    @property
    def value(self) -> Transformed:
        """The compiled function itself: ``g.value(*args) -> float``."""
        return self if self._request.what == "value" else self._sibling("value")

    @property
    def value_and_grad(self) -> Transformed:
        """Value and gradient from one sweep: ``g.value_and_grad(*args) -> (float, gradient)``."""
        return self if self._request.what == "value_and_grad" else self._sibling("value_and_grad")

    def compile(self, /, *args: Any, **kwargs: Any) -> Any:
        """The `CompiledTape` for arguments like these.

        Raises what a call would raise; computes nothing.
        """
        from jitad.compiled import CompiledTape

        arguments = self._arguments(args, kwargs)
        return CompiledTape(self, self._complete(arguments), arguments)

    def tape(self, /, *args: Any, **kwargs: Any) -> Text:
        """The optimised tape for arguments like these, as text."""
        return Text(self._complete(self._arguments(args, kwargs)).tape.format())

    def source(self, /, *args: Any, **kwargs: Any) -> Text:
        """The generated code for arguments like these, as Python source."""
        return self.compile(*args, **kwargs).source

    # --- the slow path -------------------------------------------------------------------------
    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        args, kwargs = bind(self._signature, args, kwargs, self.__qualname__)
        return take_apart(self._target, self._request, args, kwargs, self._positional(len(args)))

    def _positional(self, count: int) -> list[str]:
        """The names of the first `count` positional arguments."""
        names: list[str] = []
        for p in self._signature.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
        return names[:count]

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from jitad.trace.recorder import current

        recorder = current()
        if recorder is not None:
            return self._inside(recorder, args, kwargs)
        for known in self._known[1:RECENT]:
            try:
                result = known.warm(*args, **kwargs)     # type: ignore[misc]
            except self._miss:
                continue
            self._publish(known)
            return result
        arguments = self._arguments(args, kwargs)
        for known in self._known:
            try:
                if known.signature == arguments.signature:
                    return known.warm(*arguments.args, **arguments.kwargs)   # type: ignore[misc]
            except self._miss:
                continue
        entry = self._entry(arguments)
        captured = entry.captured(self._target)
        while captured is None:                          # changed by another thread since the entry was chosen
            entry = self._entry(arguments)
            captured = entry.captured(self._target)
        inputs = [*arguments.inputs, *captured]
        try:
            self._remember(entry, arguments, inputs)
            return entry.run(inputs)
        except TapeNeeded:
            entry.complete(self._target, arguments)
            return entry.run(inputs)

    def _complete(self, arguments: Arguments) -> Entry:
        """The entry for these arguments, with its tape."""
        entry = self._entry(arguments)
        entry.complete(self._target, arguments)
        return entry

    def _entry(self, arguments: Arguments) -> Entry:
        owner = owner_of(self)
        key = (self._request, arguments.signature)

        def make() -> Entry:
            reasons = self._reasons(owner, arguments)
            if reasons:
                _report(self.__name__, reasons, self._settings.on_mismatch or cache.configuration().on_mismatch)
            entry = stored.load(self._target, self._request, arguments) or build(
                self._target, self._request, arguments)
            cache.store.note_miss(owner, reasons)
            return entry
        return cache.store.get_or_build(owner, key, make, accept=lambda entry: self._serves(entry, arguments))

    def _serves(self, entry: Entry, arguments: Arguments) -> bool:
        """Whether the captures are those of the entry, and the call takes its way through the code."""
        captured = entry.captured(self._target)
        return captured is not None and entry.missed([*arguments.inputs, *captured]) is None

    def _changes(self, entry: Entry, arguments: Arguments) -> list[str]:
        """What an entry of the same signature does not have in common with this call, in words."""
        captured = entry.captured(self._target)
        if captured is None:
            return entry.plan.changes(self._target)
        guard = entry.missed([*arguments.inputs, *captured])
        return [] if guard is None else [f"another way is taken at {guard.where}"]

    def _reasons(self, owner: str, arguments: Arguments) -> list[str]:
        """How this call differs from the closest that the function has seen, the latest if several are as close; empty
        for the first."""
        entries = [entry for _, entry in cache.store.entries(owner) if entry.request == self._request]
        entries = [*dict.fromkeys([known.entry for known in self._known if known.entry in entries] + entries)]
        ways = [self._changes(entry, arguments) for entry in entries if entry.signature == arguments.signature] or [
            differences(arguments, self._positional(len(e.structures) - len(e.keywords)), e) for e in entries]
        return min(ways, key=len, default=[])

    def _remember(self, entry: Entry, arguments: Arguments, inputs: list[Any]) -> None:
        """Let the next call of this kind go straight to the kernel."""
        from jitad.warm import warm_function

        known = _Remembered(self, arguments.signature, entry)
        kernel = entry.kernel(inputs)
        if not kernel.saved:
            kernel.saved = True
            cache.store.touch_size(entry)
            stored.save(entry, self._target, arguments, kernel)
        counters = cache.store.attach(owner_of(self), known, entry)
        known.warm = warm_function(entry, kernel, self._target, counters, arguments.leaves,
                                   self._keyword_names(len(arguments.args)))
        if known.warm is not None:
            self._publish(known)

    def _publish(self, known: _Remembered) -> None:
        """Make `known` the first to be tried, unless the cache has dropped its entry meanwhile."""
        def action() -> None:
            others = [k for k in self._known if k is not known and k.warm is not None]
            self._known = (known, *others[:REMEMBERED - 1])
            ways = [k.warm for k in self._known if k.entry.guarded and k.signature == known.signature]
            self._warm = _either(ways) if known.entry.guarded and len(ways) > 1 else known.warm
        cache.store.publish(owner_of(self), (self._request, known.signature), known.entry, known, action)

    def _keyword_names(self, count: int) -> list[str | None]:
        """The names by which the first `count` positional arguments may be passed, None where there is none."""
        names = [p.name if p.kind is p.POSITIONAL_OR_KEYWORD else None for p in self._signature.parameters.values()]
        return [*names, *[None] * count][:count]

    # --- inside a recording --------------------------------------------------------------------
    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._on_tape(view.recorder, view.copy_of(self.__wrapped__), args, kwargs)

    def _inside(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code, but not through its captures: only a function made there is safe."""
        from jitad.trace.copies import GlobalsView

        if not isinstance(self._target.function.__globals__, GlobalsView):
            raise CaptureError(
                f"`{self.__name__}` was reached in a way that cannot be followed while a function is recorded "
                f"(at {user_line()}); call it by its global name or capture it in a closure")
        return self._on_tape(recorder, self.__wrapped__, args, kwargs)

    def _on_tape(self, recorder: Any, function: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """The same on the tape of the recording."""
        request = self._request
        if "out" in kwargs and not self._own_out:
            raise MutationError(f"out= of `{self.__name__}` at {user_line()}, in a function that is recorded, would "
                                "change an array in place; use what it returns instead")
        args, kwargs = bind(self._signature, args, kwargs, self.__qualname__)
        if request.what == "value":
            return function(*args, **kwargs)
        return differentiated(recorder, request, function, args, kwargs, self.__name__)

    # --- methods, pickles, text ----------------------------------------------------------------
    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        given = self._given
        if isinstance(given, classmethod):
            instance = type(instance) if owner is None else owner
        elif instance is None or isinstance(given, staticmethod) or not hasattr(given, "__get__"):
            return self
        memo, key = self._memo(instance)
        known = memo.get(key)
        if known is None or known._origin[0] is not instance:
            bound = given.__get__(None, instance) if isinstance(given, classmethod) else given.__get__(instance, owner)
            known = memo[key] = Transformed(bound, self._request, self._settings)
            known._origin = (instance, self._attribute or self.__name__)
        return known

    def _memo(self, instance: Any) -> tuple[Any, Any]:
        """Where the bound form for an instance or class is kept, and under what. Slotted instances have no place."""
        if isinstance(instance, type):
            return self._classes, instance
        holder = getattr(instance, "__dict__", None)
        if not isinstance(holder, dict):
            return {}, self
        memo = holder.get("_jitad_bound")
        return memo if memo is not None else holder.setdefault("_jitad_bound", _Bound()), self

    def __reduce__(self) -> Any:
        return Transformed, (self.__wrapped__, self._request)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name where there is one: the decorator stands between a function and its own name."""
        home, name = self._origin or (None, "")
        home = home() if isinstance(home, weakref.ref) else home
        if home is not None:
            return getattr, (home, name)
        if self.__module__ != "__main__" and _named(self.__module__, self.__qualname__) is self:
            return self.__qualname__
        return Transformed, (self._given, self._request, self._settings)

    def __repr__(self) -> str:
        return f"<jitad {self._request.what} of {self.__qualname__}>"


class _Remembered:
    """An entry that `home` calls without asking the cache, until the cache drops it. Holds `home` weakly: no cycles, so
    that a function made in a loop goes, with the arrays that it captures, as soon as it is no longer used."""

    warm: Callable[..., Any] | None = None

    def __init__(self, home: Transformed, signature: Signature, entry: Entry):
        self.home, self.signature, self.entry = weakref.ref(home), signature, entry

    def forget(self) -> None:
        """Called by the cache: the entry is gone."""
        home = self.home()
        if home is not None:
            home._warm = None
        self.warm = None


class _Bound(weakref.WeakKeyDictionary):
    """The bound forms of decorated methods: an instance's by method, a method's by class. Copies and pickles of the
    instance start with none."""

    def __reduce__(self) -> Any:
        return _Bound, ()

    def __deepcopy__(self, memo: Any) -> _Bound:
        return _Bound()


def _name_after(transformed: Transformed, function: Any) -> None:
    """Name, documentation and module of `function`, or of what a partial or an object with ``__call__`` is made of."""
    attributes = ("__dict__",) if isinstance(function, FunctionType) else ()
    functools.update_wrapper(transformed, function, updated=attributes)
    while isinstance(function, functools.partial):
        function = function.func
    kind = function if hasattr(function, "__qualname__") else type(function)
    transformed.__name__, transformed.__qualname__ = kind.__name__, kind.__qualname__
    transformed.__module__ = kind.__module__


def _named(module: str, name: str) -> Any:
    """What a module has under a dotted name, or None."""
    try:
        return operator.attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


def _transformed_in(function: Any) -> Transformed | None:
    """The transformed function under `function`, if that is one or a partial of one."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if isinstance(function, Transformed) else None


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that calls a transformed one: what is recorded for a gradient of a gradient."""
    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)
    return call


def _either(ways: list[Any]) -> Callable[..., Any]:
    """Ways through one function's branches, tried in turn: each kernel knows whether it is on its way."""
    from jitad.compile.kernel_errors import Miss, StatusMiss

    def warm(*args: Any, **kwargs: Any) -> Any:
        for way in ways:
            try:
                return way(*args, **kwargs)
            except StatusMiss:
                continue
        raise Miss
    return warm


def _report(name: str, reasons: list[str], how: str) -> None:
    """Say at the user's line that a known function is compiled again, as `how` asks: warn, error or silent."""
    text = "; ".join(reasons)
    if how == "error":
        raise TapeMismatchError(f"`{name}` would be compiled again (called at {user_line()}): {text}; pass what it was "
                                'compiled for, or choose on_mismatch="warn"')
    if how == "warn":
        _issue(f"`{name}` is compiled again: {text}", TapeMismatchWarning)


def _issue(message: str, category: type[Warning]) -> None:
    """Warn at the user's line."""
    level, frame = 1, sys._getframe(0)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back           # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)


def owner_of(f: Any) -> str:
    """The cache's owner of a user's function or its decorated form."""
    if isinstance(f, Transformed):
        return code_key(f._target.function) if f._inner is None else f"gradient of {owner_of(f._inner)}"
    target: Target = unwrap(f)
    return code_key(target.function)


cache.set_resolver(owner_of)
cache.set_warner(_issue)
