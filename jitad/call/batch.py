"""What `batch` returns: a transformed function of many examples."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from jitad import cache
from jitad.cache.keys.signature import Signature
from jitad.call.build.batch import WaysDiffer, example_of
from jitad.call.build.entry import Entry
from jitad.call.build.inside import batched_on
from jitad.call.messages import issue
from jitad.call.request.request import Arguments
from jitad.call.transformed import Transformed, owner_of
from jitad.errors import TapeMismatchError, TapeMismatchWarning
from jitad.tape.types import Guard
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.where import user_line

KEPT = 16            # signatures for which it is remembered that the examples took different ways


class BatchedFunction(Transformed):
    """A function together with what is asked of it for every example of a batch. Made by `batch`."""

    @cached_property
    def _single(self) -> Transformed:
        """The same of one example."""
        request = replace(self._request, batch=self._request.batch[1:])
        settings = self._settings._replace(on_mismatch="silent")
        return (BatchedFunction if request.batch else Transformed)(self._given, request, settings)

    @cached_property
    def _apart(self) -> dict[Signature, Guard]:
        """Where calls of a signature were found to take different ways."""
        return {}

    def check_finite(self, /, *args: Any, **kwargs: Any) -> None:
        """Raise `NonFiniteError` if an example has a NaN or an infinity. As `Transformed.check_finite` otherwise."""
        arguments = self._arguments(args, kwargs)
        places, length = self._places(arguments)
        for number in range(length):
            one = example_of(arguments, places, number)
            self._single.check_finite(*one.args, **one.kwargs)

    # --- examples that do not agree --------------------------------------------------------------
    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return super()._slow(args, kwargs)
        except WaysDiffer as miss:
            return self._one_by_one(self._arguments(args, kwargs), miss.guard)

    def _entry(self, arguments: Arguments) -> Entry:
        guard = self._apart.get(arguments.signature)
        if guard is not None:
            entry = cache.store.get(owner_of(self), self._key(arguments.signature),
                                    lambda entry: self._serves(entry, arguments))
            if entry is None:
                raise WaysDiffer(guard)
            return entry
        return super()._entry(arguments)

    def _places(self, arguments: Arguments) -> tuple[list[int | None], int]:
        return self._request.batch[0].of_call(arguments.args, arguments.kwargs, arguments.positional, self.__name__)

    def _one_by_one(self, arguments: Arguments, guard: Guard) -> Any:
        """The examples in turn, each by the way that it takes."""
        if arguments.signature not in self._apart:
            text = f"the examples of a batch for `{self.__name__}` take different ways at {guard.where}"
            advice = "choose between values by np.where, which is no branch"
            if self._on_mismatch == "error":
                raise TapeMismatchError(f"{text} (called at {user_line()}); {advice}")
            if self._on_mismatch == "warn":
                issue(f"{text}; they are computed one after the other: right, but slower; {advice}",
                      TapeMismatchWarning)
            while len(self._apart) >= KEPT:
                self._apart.pop(next(iter(self._apart)))
            self._apart[arguments.signature] = guard
        places, length = self._places(arguments)
        results = []
        for number in range(length):
            one = example_of(arguments, places, number)
            results.append(self._single(*one.args, **one.kwargs))
        leaves, tree = zip(*map(leaves_of, results), strict=True)
        ends = self._request.batch[0].of_result(results[0], self.__name__)
        return unflatten(tree[0], [column[0] if end is None else np.stack(column, end)
                                   for column, end in zip(zip(*leaves, strict=True), ends, strict=True)])

    # --- inside a recording ------------------------------------------------------------------------
    def _on_tape(self, recorder: Any, function: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        if "out" in kwargs and not self._own_out:
            return super()._on_tape(recorder, function, args, kwargs)      # refuses it
        args, kwargs = self._parameters.bind(args, kwargs, self.__qualname__)

        def one(given: Any, named: dict[str, Any]) -> Any:
            return super(BatchedFunction, self)._on_tape(recorder, function, tuple(given), named)
        return batched_on(recorder, self._request.batch, one, args, kwargs, self._parameters.names(len(args)),
                          self.__name__)

    def __repr__(self) -> str:
        what = self._request.what
        return f"<jitad batch of {'' if what == 'value' else f'{what} of '}{self.__qualname__}>"
