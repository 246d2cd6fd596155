"""What a call is about: the user's function, what is asked of it, and how it may be called."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jitad import cache
from jitad.cache.keys.identity import Target, code_key, unwrap
from jitad.cache.keys.signature import Signature
from jitad.call.request.operands import calling, is_foreign, signature_of
from jitad.call.request.parameters import Parameters
from jitad.call.request.request import Arguments, Request, Settings, take_apart
from jitad.errors import ArgumentTypeError, CaptureError
from jitad.trace.where import user_line


class Subject:
    """A user's function, `given`, with a request and settings.

    `plain` is what is recorded, `target` the Python function that it runs, `inner` the transformed function that was
    given, if it is one; `foreign` says that it is a library's, `own_out` that the user's has a parameter `out`.
    """

    def __init__(self, given: Callable[..., Any], request: Request, settings: Settings, name: str, qualname: str):
        self.given, self.request, self.settings, self.name, self.qualname = given, request, settings, name, qualname
        self.inner = _transformed_in(given)
        self.foreign = self.inner is None and is_foreign(given)
        self.plain = calling(given) if self.foreign or self.inner is not None else given
        self._look()

    def _look(self) -> None:
        """Find the Python function that a call runs, and its parameters."""
        plain, given = self.plain, self.given
        try:
            self.target: Target = replace(unwrap(plain), static=self.settings.static)
            signature = signature_of(given, plain)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{error}; wrap it in a function or lambda (at {user_line()})") from None
        self.parameters = Parameters(signature, self.request)
        self.own_out = "out" in signature.parameters and not self.foreign

    @property
    def owner(self) -> str:
        """The name in the cache, which is that of the function."""
        return code_key(self.target.function) if self.inner is None else f"gradient of {owner_of(self.inner)}"

    @property
    def settled(self) -> Request:
        """The request, with what is configured now where the function's own settings leave it open."""
        parallel = self.settings.parallel
        return replace(self.request, parallel=cache.configuration().parallel if parallel is None else parallel)

    def key(self, signature: Signature) -> Any:
        """The key under which the cache has specializations for a signature."""
        return self.settled, self.settings.static, self.target.shape, signature

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """A call taken apart."""
        if self.target.stale:
            raise CaptureError(f"the functools.partial under `{self.name}` has other keywords than when it was "
                               f"transformed (called at {user_line()}); transform a new partial instead")
        if self.target.recalled:
            self._look()
        args, kwargs = self.parameters.bind(args, kwargs, self.qualname)
        return take_apart(self.target, self.request, args, kwargs, self.parameters.names(len(args)))


def _transformed_in(function: Any) -> Any:
    """The transformed function under `function`, if that is one or a partial of one; or what else recorded code calls
    in a way of its own."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(type(function), "__jitad_nested__") else None


def owner_of(f: Any) -> str:
    """The cache's owner of a user's function or its decorated form."""
    subject = getattr(f, "subject", None)
    if isinstance(subject, Subject):
        return subject.owner
    if hasattr(type(f), "__jitad_nested__"):
        return f"{f.__jitad_transform__[0]} {owner_of(f.__wrapped__)}"
    return code_key(unwrap(calling(f) if is_foreign(f) else f).function)
