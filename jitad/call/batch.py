"""What `batch` returns: a transformed function of many examples."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from jitad.cache.keys.signature import Signature
from jitad.call.build.batch import WaysDiffer, example_of
from jitad.call.build.inside import batched_on
from jitad.call.build.specialization import Specialization
from jitad.call.family import restored_as
from jitad.call.messages import issue
from jitad.call.request.request import Arguments
from jitad.call.transformed import Transformed
from jitad.errors import TapeMismatchError, TapeMismatchWarning
from jitad.tape.types import Guard
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.where import user_line

APART = 16           # signatures for which it is remembered that the examples took different ways


class BatchedFunction(Transformed):
    """A function together with what is asked of it for every example of a batch. Made by `batch`."""

    @cached_property
    def _single(self) -> Transformed:
        """The same of one example."""
        request = replace(self.subject.request, batch=self.subject.request.batch[1:])
        settings = self.subject.settings._replace(on_mismatch="silent")
        return (BatchedFunction if request.batch else Transformed)(self.subject.given, request, settings)

    @cached_property
    def _apart(self) -> dict[Signature, Guard]:
        """Where calls of a signature were found to take different ways."""
        return {}

    def check_finite(self, /, *args: Any, **kwargs: Any) -> None:
        """Raise `NonFiniteError` if an example has a NaN or an infinity. As `Transformed.check_finite` otherwise."""
        arguments = self.subject.arguments(args, kwargs)
        places, length = self._places(arguments)
        for number in range(length):
            one = example_of(arguments, places, number)
            self._single.check_finite(*one.args, **one.kwargs)

    # --- examples that do not agree --------------------------------------------------------------
    def _answer(self, arguments: Arguments) -> Any:
        try:
            return super()._answer(arguments)
        except WaysDiffer as miss:
            return self._one_by_one(arguments, miss.guard)

    def specialized(self, arguments: Arguments) -> Specialization:
        guard = self._apart.get(arguments.signature)
        if guard is None:
            return super().specialized(arguments)
        known = self.in_memory(arguments)
        if known is None:
            raise WaysDiffer(guard)
        return known

    def _places(self, arguments: Arguments) -> tuple[list[int | None], int]:
        axes = self.subject.request.batch[0]
        return axes.of_call(arguments.args, arguments.kwargs, arguments.positional, self.__name__)

    def _one_by_one(self, arguments: Arguments, guard: Guard) -> Any:
        """The examples in turn, each by the way that it takes."""
        if arguments.signature not in self._apart:
            text = f"the examples of a batch for `{self.__name__}` take different ways at {guard.where}"
            advice = "choose between values by np.where, which is no branch"
            if self.on_mismatch == "error":
                raise TapeMismatchError(f"{text} (called at {user_line()}); {advice}")
            if self.on_mismatch == "warn":
                issue(f"{text}; they are computed one after the other: right, but slower; {advice}",
                      TapeMismatchWarning)
            while len(self._apart) >= APART:
                self._apart.pop(next(iter(self._apart)))
            self._apart[arguments.signature] = guard
        places, length = self._places(arguments)
        results = []
        for number in range(length):
            one = example_of(arguments, places, number)
            results.append(self._single(*one.args, **one.kwargs))
        leaves, tree = zip(*map(leaves_of, results), strict=True)
        ends = self.subject.request.batch[0].of_result(results[0], self.__name__)
        return unflatten(tree[0], [column[0] if end is None else np.stack(column, end)
                                   for column, end in zip(zip(*leaves, strict=True), ends, strict=True)])

    # --- inside a recording ------------------------------------------------------------------------
    def _on_tape(self, recorder: Any, function: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        subject = self.subject
        if "out" in kwargs and not subject.own_out:
            return super()._on_tape(recorder, function, args, kwargs)      # refuses it
        args, kwargs = subject.parameters.bind(args, kwargs, self.__qualname__)

        def one(given: Any, named: dict[str, Any]) -> Any:
            return super(BatchedFunction, self)._on_tape(recorder, function, tuple(given), named)
        return batched_on(recorder, subject.request.batch, one, args, kwargs, subject.parameters.names(len(args)),
                          self.__name__)

    def __repr__(self) -> str:
        what = self.subject.request.what
        return f"<jitad batch of {'' if what == 'value' else f'{what} of '}{self.__qualname__}>"


restored_as("batch", BatchedFunction)
