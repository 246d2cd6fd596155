"""How a transformed function may be called: the parameters of the user's function, and a seed behind them."""
from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from jitad.call.request.request import Request, bind

Call = tuple[tuple[Any, ...], dict[str, Any]]


class Parameters:
    """The parameters of `signature`; with a request that has a seed, one more positional argument, the last."""

    def __init__(self, signature: inspect.Signature, request: Request):
        self.signature, self.seed = signature, request.seed_name
        while self.seed and self.seed in signature.parameters:
            self.seed += "_"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Call:
        """The arguments in their places; raises `TypeError` as Python would. With a seed, keyword arguments stay by
        keyword, in the order of the parameters."""
        if not self.seed:
            return bind(self.signature, args, kwargs, name)
        if not args:
            raise TypeError(f"{name}() needs `{self.seed}` as its last positional argument")
        bind(self.signature, args[:-1], kwargs, name)
        order = {p: i for i, p in enumerate(self.signature.parameters)}
        return args, dict(sorted(kwargs.items(), key=lambda item: order.get(item[0], len(order))))

    def names(self, count: int) -> list[str]:
        """The names of the first `count` positional arguments, that of the seed last."""
        if self.seed:
            return [*self._names(count - 1), self.seed]
        return self._names(count)

    def _names(self, count: int) -> list[str]:
        names: list[str] = []
        for p in self.signature.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
        return names[:count]

    def keywords(self, count: int) -> list[str | None]:
        """The names by which the first `count` positional arguments may be passed, None where there is none."""
        known = count - bool(self.seed)
        names = [p.name if p.kind is p.POSITIONAL_OR_KEYWORD else None for p in self.signature.parameters.values()]
        return [*[*names, *[None] * known][:known], *[None] * (count - known)]

    def loose(self, keywords: Iterable[str]) -> list[str]:
        """Those of the keywords that no parameter has, in their order, which the function can see."""
        parameters = self.signature.parameters
        return [k for k in keywords if k not in parameters or parameters[k].kind not in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)]

    def free(self, request: Request, bound: int, keywords: Mapping[str, Any]) -> tuple[int, ...]:
        """The places of the arguments that vary where `bound` positional arguments and `keywords` are bound: those that
        are differentiated, or else the first, and the seed."""
        places = request.argnums if isinstance(request.argnums, tuple) else (request.argnums,)
        parameters = self.signature.parameters.values()
        named = sum(p.kind is p.POSITIONAL_OR_KEYWORD and p.name in keywords for p in parameters)
        count = bound + len({*places}) + named
        found = sorted({place % count if -count <= place < 0 else place for place in places})
        return (*found, bound + len(found)) if self.seed else tuple(found)
