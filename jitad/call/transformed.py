"""What the decorators return: a callable that compiles on the first call and remembers."""
from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jitad import cache
from jitad.cache.contents import ShapeChurnWarning
from jitad.cache.keys.identity import Target, code_key, unwrap
from jitad.cache.keys.signature import Signature
from jitad.call import stored
from jitad.call.background import under_way
from jitad.call.build.entry import Entry, TapeNeeded, build, differentiated
from jitad.call.build.machine import check_tier
from jitad.call.memory import MISSED, Bound, Remembered, attempt, either, falling_back, sibling
from jitad.call.messages import calling, crowd_message, issue, name_after, report
from jitad.call.methods import Methods
from jitad.call.request.parameters import Parameters
from jitad.call.request.request import DEFAULTS, Arguments, Request, Settings, checked_tier, differences, take_apart
from jitad.call.request.results import write_out
from jitad.compile.entry.kernel_errors import weakly
from jitad.compile.llvm.fork_guard import gate
from jitad.errors import ArgumentTypeError, CaptureError, MutationError
from jitad.tape.display import Text
from jitad.trace.recorder import uncollected
from jitad.trace.where import user_line

REMEMBERED = 16  # kernels that a function can call without asking the cache
RECENT = 4       # of these, how many are tried before a call is taken apart


class Transformed(Methods):
    """A function together with what is asked of it. Made by `jit_grad`, `jit`, `jacobian`, `hessian` and their like.

    Calling it gives that; `value` and `value_and_grad` ask for more of the same function.
    """

    __slots__ = ("_call",)
    _call: Callable[..., Any]          # what Python calls; as a slot that is `__call__`, without a detour
    __call__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], request: Request, settings: Settings = DEFAULTS):
        name_after(self, function)
        check_tier(request, self.__name__)
        inner = _transformed_in(function)
        self.__wrapped__ = calling(function) if inner is not None else function
        self._given, self._inner = function, inner
        self.__jitad_transform__ = (request.what, request.argnums, request.mode, repr(request.batch))
        self._request, self._settings = request, settings
        self._look()
        self._call = self._cold = weakly(self, "the function")
        self._known: tuple[Remembered, ...] = ()            # latest first
        self._siblings: dict[str | Request, Transformed] = {}
        self._classes = Bound()
        self._attribute: str | None = None
        self._origin: tuple[Any, str] | None = None

    def _look(self) -> None:
        """Find the Python function that a call runs, and its parameters."""
        plain = self.__wrapped__
        try:
            self._target = replace(unwrap(plain), static=self._settings.static)
            signature = inspect.signature(plain.__func__ if isinstance(plain, classmethod) else self._given)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{error}; wrap it in a function or lambda (at {user_line()})") from None
        self._parameters = Parameters(signature, self._request)
        self._own_out = "out" in signature.parameters

    def _otherwise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that the kernel at hand does not serve."""
        if "out" in kwargs and not self._own_out:
            out = kwargs.pop("out")
            return write_out(self(*args, **kwargs), out, self._request.valued, self.__name__)
        return self._slow(args, kwargs)

    # --- the family ----------------------------------------------------------------------------
    def _sibling(self, what: str) -> Transformed:
        known = self._siblings.get(what)
        if known is None:
            known = type(self)(self._given, replace(self._request, what=what), self._settings)
            known._origin = (weakref.ref(self), what)
            known = self._siblings.setdefault(what, known)
        return known

    def asked(self, request: Request) -> Transformed:
        """Something of what this gives: a derivative of the derivative."""
        known = self._siblings.get(request)
        return known or self._siblings.setdefault(request, Transformed(self, request, self._settings))

    @sibling
    def value(self) -> Transformed:
        """The compiled function itself: ``g.value(*args) -> float``."""
        return self if self._request.what == "value" else self._sibling("value")

    @sibling
    def value_and_grad(self) -> Transformed:
        """Value and gradient from one sweep: ``g.value_and_grad(*args) -> (float, gradient)``."""
        return self if self._request.what == "value_and_grad" else self._sibling("value_and_grad")

    def compile(self, /, *args: Any, **kwargs: Any) -> Any:
        """The `CompiledTape` for arguments like these; on another tier with ``tier="kernel"`` or ``tier="machine"``
        (unless the function itself has a parameter of that name).

        Raises what a call would raise; `ArgumentTypeError` for another tier, `UnsupportedOperationError` for one that
        has no form of what is asked for. Computes nothing.
        """
        from jitad.call.compiled import CompiledTape

        if "tier" in kwargs and "tier" not in self._parameters.signature.parameters:
            return self._on_tier(kwargs.pop("tier")).compile(*args, **kwargs)
        arguments = self._arguments(args, kwargs)
        with gate:
            entry = self._entry(arguments)
            if entry.machine is None:
                entry.complete(self._target, arguments)
        return CompiledTape(self, entry, arguments)

    def _on_tier(self, tier: str | None) -> Transformed:
        """The same on a tier."""
        request = replace(self._request, tier=checked_tier(tier))
        known = self if request == self._request else self._siblings.get(request.tier)
        if known is None:
            known = type(self)(self._given, request, self._settings)
            known._origin = (weakref.ref(self), request.tier)
            known = self._siblings.setdefault(request.tier, known)
        return known

    def bind(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function of its differentiated arguments alone (for `jit`, of the first), with these for the others.

        A `BoundFunction`, which is called at the cost of the bare kernel. The data are copied; what depends on them
        alone is computed once.
        """
        from jitad.call.bound import bind

        return bind(self, args, kwargs)

    def tape(self, /, *args: Any, **kwargs: Any) -> Text:
        """The optimised tape for arguments like these, as text.

        >>> import numpy as np, jitad
        >>> jitad.jit_grad(lambda x: np.sum(x * x)).tape(np.zeros(2))
        %0 : f8[2] = input x ...
        ...
        return grad_x=%3
        """
        return Text(self._complete(self._arguments(args, kwargs)).tape.format())

    def source(self, /, *args: Any, **kwargs: Any) -> Text:
        """The generated code for arguments like these, as Python source."""
        return self.compile(*args, **kwargs).source

    def check_finite(self, /, *args: Any, **kwargs: Any) -> None:
        """Raise `NonFiniteError` if value or gradient for these arguments has a NaN or an infinity.

        The error names the first operation that made one of finite numbers, with your line, or the argument that had
        it from the start. See `jitad.debug_nonfinite`.

        >>> import numpy as np, jitad
        >>> jitad.jit_grad(lambda x: np.sum(np.log(x))).check_finite(np.array([1.0, np.inf]))
        Traceback (most recent call last):
        jitad.errors.NonFiniteError: the value of ... Argument `x` is itself inf at [1]; pass finite values
        """
        from jitad.call.nonfinite import require_finite

        asked = self.value_and_grad if self._request.what == "grad" else self
        require_finite(asked, asked(*args, **kwargs), args, kwargs)

    # --- the slow path -------------------------------------------------------------------------
    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        if self._target.stale:
            raise CaptureError(f"the functools.partial under `{self.__name__}` has other keywords than when it was "
                               f"transformed (called at {user_line()}); transform a new partial instead")
        if self._target.recalled:
            self._look()
        args, kwargs = self._parameters.bind(args, kwargs, self.__qualname__)
        return take_apart(self._target, self._request, args, kwargs, self._parameters.names(len(args)))

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from jitad.trace.recorder import current

        recorder = current()
        if recorder is not None:
            return self._inside(recorder, args, kwargs)
        for known in self._known[1:RECENT]:
            result = attempt(known.warm, args, kwargs)
            if result is not MISSED:
                self._publish(known)
                return result
        arguments = self._arguments(args, kwargs)
        for known in self._known:
            fits = known.signature == arguments.signature
            result = attempt(known.warm, arguments.args, arguments.kwargs) if fits else MISSED
            if result is not MISSED:
                return result
        with gate, uncollected():
            entry, inputs = self._ready(arguments)
        if entry.machine is None and (entry.passing or (self._settings.background and not entry.has_kernel(inputs))):
            return entry.interpret(inputs)
        try:
            return entry.run(inputs)
        except TapeNeeded:
            entry.complete(self._target, arguments)
            return entry.run(inputs)

    def _ready(self, arguments: Arguments) -> tuple[Entry, list[Any]]:
        """The entry that serves a call, compiled and remembered, and the inputs of its kernel."""
        entry = self._entry(arguments)
        captured = entry.captured(self._target)
        while captured is None:                          # changed by another thread since the entry was chosen
            entry = self._entry(arguments)
            captured = entry.captured(self._target)
        inputs = [*arguments.inputs, *captured]
        if not entry.passing and not (self._settings.background and under_way(entry, inputs)):
            try:
                self._remember(entry, arguments, inputs)
            except TapeNeeded:
                entry.complete(self._target, arguments)
                self._remember(entry, arguments, inputs)
        return entry, inputs

    def _complete(self, arguments: Arguments) -> Entry:
        """The entry for these arguments, with its tape."""
        with gate:
            entry = self._entry(arguments)
            entry.complete(self._target, arguments)
        return entry

    def _key(self, signature: Signature) -> Any:
        """The key under which the cache has entries for a signature."""
        return self._request, self._settings.static, self._target.shape, signature

    def _entry(self, arguments: Arguments) -> Entry:
        owner, key = owner_of(self), self._key(arguments.signature)
        accept = lambda entry: self._serves(entry, arguments)
        ways = self._ways(owner, key)
        if len(ways) >= cache.configuration().ways:
            return cache.store.get(owner, key, accept) or self._passing(owner, ways, arguments)

        def make() -> Entry:
            reasons = self._reasons(owner, arguments)
            how = self._on_mismatch
            if reasons and how == "error":
                report(self.__name__, reasons, how)
            entry = stored.load(self._target, self._request, arguments) or build(
                self._target, self._request, arguments)
            cache.store.note_miss(owner, reasons)
            if reasons:
                report(self.__name__, reasons, how)
            return entry
        return cache.store.get_or_build(owner, key, make, accept=accept)

    @property
    def _on_mismatch(self) -> str:
        return self._settings.on_mismatch or cache.configuration().on_mismatch

    def _ways(self, owner: str, key: Any) -> list[Entry]:
        """The entries that differ in nothing but the way through the branches; not looked at closely while there are
        few."""
        found = [entry for known, entry in cache.store.entries(owner) if entry.guarded and known == key]
        if len(found) < cache.configuration().ways:
            return found
        return [entry for entry in found if entry.captured(self._target) is not None]

    def _passing(self, owner: str, ways: list[Entry], arguments: Arguments) -> Entry:
        """An entry for one call, which takes a way beyond those that are compiled."""
        reasons = self._reasons(owner, arguments)
        if self._on_mismatch == "error":
            report(self.__name__, reasons, "error")
        entry = build(self._target, self._request, arguments)
        entry.passing = True
        cache.store.note_miss(owner, reasons, building=False)
        if not any(way.crowded for way in ways):
            ways[0].crowded = True
            issue(crowd_message(self.__name__, len(ways), entry.guards), ShapeChurnWarning)
        return entry

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
        if guard is None:
            return []
        return [f"another way is taken {f'at {guard.where}' if guard.where else 'through the branches'}"]

    def _reasons(self, owner: str, arguments: Arguments) -> list[str]:
        """How this call differs from the closest that the function has seen, the latest if several are as close; empty
        for the first."""
        entries = [entry for key, entry in cache.store.entries(owner) if key == self._key(entry.signature)]
        entries = [*dict.fromkeys([known.entry for known in self._known if known.entry in entries] + entries)]
        ways = [self._changes(entry, arguments) for entry in entries if entry.signature == arguments.signature] or [
            differences(arguments, self._parameters.names(len(e.structures) - len(e.keywords)), e) for e in entries]
        return min(ways, key=len, default=[])

    def _remember(self, entry: Entry, arguments: Arguments, inputs: list[Any]) -> None:
        """Let the next call of this kind go straight to the kernel."""
        from jitad.call.warm import direct_function, warm_function

        owner, known = owner_of(self), Remembered(self, arguments.signature, entry)
        if not entry.has_kernel(inputs):
            stored.load_kernels(entry, self._target, arguments)
        kernel = entry.kernel(inputs)
        if not kernel.saved:
            kernel.saved = True
            if entry.loaded:
                entry.loaded = False
                cache.store.note_compile(owner)
            cache.store.touch_size(entry)
            stored.save(entry, self._target, arguments, kernel)
        counters = cache.store.attach(owner, known, entry)
        known.warm = warm_function(entry, kernel, self._target, counters, arguments.leaves,
                                   self._parameters.keywords(len(arguments.args)),
                                   self._parameters.loose(entry.keywords))
        if known.warm is not None:
            call = falling_back(known.warm, self._cold, self._own_out)
            known.call = direct_function(entry, kernel, self._target, counters, arguments.leaves, call) or call
            self._publish(known)

    def _publish(self, known: Remembered) -> None:
        """Make `known` the first to be tried, unless the cache has dropped its entry meanwhile."""
        def action() -> None:
            others = [k for k in self._known if k is not known and k.warm is not None]
            self._known = (known, *others[:REMEMBERED - 1])
            ways = [k.warm for k in self._known if k.guarded and k.signature == known.signature]
            self._call = known.call or self._cold
            if known.guarded and len(ways) > 1:
                self._call = falling_back(either(ways), self._cold, self._own_out)
        cache.store.publish(owner_of(self), self._key(known.signature), known.entry, known, action)

    # --- inside a recording --------------------------------------------------------------------
    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._on_tape(view.recorder, view.copy_of(self.__wrapped__), args, kwargs)

    def _inside(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code, but not through its captures: only a function made there is safe."""
        from jitad.trace.captures.copies import GlobalsView

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
        args, kwargs = self._parameters.bind(args, kwargs, self.__qualname__)
        if request.what == "value":
            return function(*args, **kwargs)
        return differentiated(recorder, request, function, args, kwargs, self.__name__)

    # --- text ----------------------------------------------------------------------------------
    def __repr__(self) -> str:
        return f"<jitad {self._request.what} of {self.__qualname__}>"


Transformed.__call__ = Transformed._call                              # type: ignore[method-assign]


def _transformed_in(function: Any) -> Any:
    """The transformed function under `function`, if that is one or a partial of one; or what else recorded code calls
    in a way of its own."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(type(function), "__jitad_nested__") else None


def owner_of(f: Any) -> str:
    """The cache's owner of a user's function or its decorated form."""
    if isinstance(f, Transformed):
        return code_key(f._target.function) if f._inner is None else f"gradient of {owner_of(f._inner)}"
    if hasattr(type(f), "__jitad_nested__"):
        return f"{f.__jitad_transform__[0]} {owner_of(f.__wrapped__)}"
    target: Target = unwrap(f)
    return code_key(target.function)


cache.set_resolver(owner_of)
cache.set_warner(issue)
