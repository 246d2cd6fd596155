"""A function together with what is asked of it, and its family: the same with other requests, and in recorded code."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jitad import cache
from jitad.call.build.nested import differentiated
from jitad.call.messages import issue, name_after
from jitad.call.methods import BoundForms, Methods
from jitad.call.pickling import restores
from jitad.call.request.request import DEFAULTS, Request, Settings
from jitad.call.request.subject import Subject, owner_of
from jitad.call.rungs.anew import Provisional
from jitad.errors import CaptureError, MutationError
from jitad.trace.recorder import current
from jitad.trace.where import user_line


class sibling:
    """A property that is computed once, as by `functools.cached_property`; but who is found to be its own sibling is
    not kept: it would be a cycle."""

    def __init__(self, find: Callable[[Any], Any]):
        self._find, self.__doc__, self.__name__ = find, find.__doc__, find.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        found = self._find(instance)
        if found is not instance:
            instance.__dict__[self.__name__] = found
        return found


class FunctionFamily(Provisional, Methods):
    """A user's function, what is asked of it, and its siblings, of which more or other is asked."""

    def __init__(self, function: Callable[..., Any], request: Request, settings: Settings = DEFAULTS):
        name_after(self, function)
        self._subject = subject = Subject(function, request, settings, self.__name__, self.__qualname__)
        self.__wrapped__ = subject.plain
        self.__jitad_transform__ = (request.what, request.argnums, request.mode, repr(request.batch))
        self.begin("the function")
        self.siblings: dict[str | Request, FunctionFamily] = {}
        self._classes = BoundForms()
        self._attribute: str | None = None
        self._origin: tuple[Any, str] | None = None
        self._recorder = None if (recorder := current()) is None else weakref.ref(recorder)

    # --- siblings ------------------------------------------------------------------------------
    def related(self, name: str, request: Request) -> Any:
        """The same with another request, under a name by which pickles find it."""
        known = self.siblings.get(name)
        if known is None:
            known = type(self)(self.subject.given, request, self.subject.settings)
            known._origin = (weakref.ref(self), name)
            known = self.siblings.setdefault(name, known)
        return known

    def asked_for(self, what: str) -> Any:
        """The same where `what` is asked of the function."""
        request = self.subject.request
        return self if request.what == what else self.related(what, replace(request, what=what))

    @sibling
    def value(self) -> Any:
        """The compiled function itself: ``g.value(*args) -> float``.

        >>> import numpy as np, jitad
        >>> jitad.jit_grad(lambda x: np.sum(x * x)).value(np.array([1.0, 2.0]))
        5.0
        """
        return self.asked_for("value")

    @sibling
    def value_and_grad(self) -> Any:
        """Value and gradient from one sweep: ``g.value_and_grad(*args) -> (float, gradient)``, and
        ``((float, aux), gradient)`` with ``has_aux=True``.

        >>> import numpy as np, jitad
        >>> jitad.jit_grad(lambda x: np.sum(x * x)).value_and_grad(np.array([1.0, 2.0]))
        (5.0, array([2., 4.]))
        """
        return self.asked_for("value_and_grad_with_aux" if self.subject.request.has_aux else "value_and_grad")

    # --- inside a recording --------------------------------------------------------------------
    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._on_tape(view.recorder, view.copy_of(self.__wrapped__), args, kwargs)

    def _inside(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code, but not through its captures: only a function made there is safe."""
        if not self._made_here(recorder):
            raise CaptureError(
                f"`{self.__name__}` was reached in a way that cannot be followed while a function is recorded "
                f"(at {user_line()}); call it by its global name or capture it in a closure")
        return self._on_tape(recorder, self.__wrapped__, args, kwargs)

    def _made_here(self, recorder: Any) -> bool:
        """Whether the function, under all that it was transformed by, is one that the recording knows: made in it, or a
        library's that it has found."""
        from jitad.trace.captures.copies import GlobalsView
        from jitad.trace.captures.nested import Nested

        inner, target = self.subject.inner, self.subject.target
        if isinstance(inner, FunctionFamily):
            return inner._made_here(recorder)
        if self.subject.foreign:
            return self._recorder is not None and self._recorder() is recorder
        return isinstance(target.function.__globals__, GlobalsView) or isinstance(target.self, Nested)

    def _on_tape(self, recorder: Any, function: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """The same on the tape of the recording."""
        request = self.subject.request
        if "out" in kwargs and not self.subject.own_out:
            raise MutationError(f"out= of `{self.__name__}` at {user_line()}, in a function that is recorded, would "
                                "change an array in place; use what it returns instead")
        args, kwargs = self.subject.parameters.bind(args, kwargs, self.__qualname__)
        if request.what == "value":
            return function(*args, **kwargs)
        return differentiated(recorder, request, function, args, kwargs, self.__name__)


def restored_as(word: str, cls: type[FunctionFamily]) -> None:
    """Pickle functions of a class under `word`."""
    cls._pickled_as = word
    restores(word)(lambda function, request, settings: cls(function, Request.of(*request), Settings(*settings)))


cache.set_resolver(owner_of)
cache.set_warner(issue)
