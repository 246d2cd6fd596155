"""`numpy.vectorize` in recorded code: the function's ways through its branches, over all elements.

As NumPy's, it gives the function Python numbers, and its results get the dtype of the first one unless `otypes` says
another; where that depends on the way an element takes, `otypes` is asked for.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.errors import MutationError, UnsupportedOperationError
from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, plain
from jitad.trace.numpy_rules.elements.branches import Mapped, over_elements
from jitad.trace.numpy_rules.elements.signatures import over_parts
from jitad.trace.pytree import unflatten
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.where import user_line

__all__ = ["Vectorized"]


class Vectorized:
    """An instance of `numpy.vectorize` in recorded code."""

    def __init__(self, pyfunc: Any = np._NoValue, otypes: Any = None, doc: Any = None, excluded: Any = None,
                 cache: bool = False, signature: Any = None) -> None:
        self.pyfunc, self.options = pyfunc, {"otypes": otypes, "excluded": excluded, "signature": signature}
        self.otypes = np.vectorize(lambda x: x, otypes=otypes).otypes            # and NumPy's errors

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is np._NoValue:                        # a decorator with options
            self.pyfunc = args[0]
            return self
        args, kwargs = plain(args), plain(kwargs)
        recorder: Any = builder_in(args, kwargs)
        if recorder is None:
            given = {k: v for k, v in self.options.items() if v is not None}
            return np.vectorize(self.pyfunc, **given)(*args, **kwargs)
        function, args = self._positional(args, kwargs)
        if self.options["signature"]:
            return self._of_parts(function, args)
        values = [as_value(recorder, x) if np.ndim(x) or isinstance(x, Value) else x for x in args]
        if self.otypes is None and 0 in np.broadcast_shapes(*(np.shape(x) if not isinstance(x, Value) else x.shape
                                                              for x in values)):
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        values = [self._widened(x) if isinstance(x, Value) else x for x in values]
        made = over_elements(recorder, function, values, self._name, weak=True)
        results, tree = made.results()
        if self.otypes is not None and len(results) != len(self.otypes):
            raise ValueError(f"`{self._name}` gives {len(results)} results and otypes says {len(self.otypes)} (called "
                             f"at {user_line()})")
        with recorder.plain():
            arrays = [cast(v, self._dtype(made, i)) for i, v in enumerate(results)]
        return unflatten(tree, [_boxed(recorder, v) for v in arrays])

    def __delattr__(self, name: str) -> None:
        raise MutationError(f"`.{name}` of the vectorized function `{self._name}` would be deleted at {user_line()}; a "
                            "function that is recorded must not change what it captures")

    @property
    def _name(self) -> str:
        return str(getattr(self.pyfunc, "__name__", "vectorize"))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """The function of those arguments that it is to run over, and these: not the excluded ones."""
        excluded = set(self.options["excluded"] or ())
        if not excluded and not kwargs:
            return self.pyfunc, args
        places = [i for i in range(len(args)) if i not in excluded]
        names = [name for name in kwargs if name not in excluded]

        def function(*given: Any) -> Any:
            positional = list(args)
            for place, value in zip(places, given, strict=False):
                positional[place] = value
            return self.pyfunc(*positional, **{**kwargs, **dict(zip(names, given[len(places):], strict=True))})
        return function, (*(args[i] for i in places), *(kwargs[name] for name in names))

    def _of_parts(self, function: Any, args: tuple[Any, ...]) -> Any:
        results, several = over_parts(function, self.options["signature"], args)
        if self.otypes is not None:
            results = [x.astype(t) for x, t in zip(results, self.otypes, strict=True)]
        return tuple(results) if several else results[0]

    def _widened(self, x: Any) -> Any:
        """Elements are Python numbers, which have one precision."""
        if x.dtype == np.float32 and self.otypes is None:
            raise self._refused("of float32", "say otypes=, or use jitad.elementwise, which computes in float32")
        return cast(x, {"f": np.float64, "b": np.bool_}.get(x.dtype.kind, np.int64))

    def _dtype(self, made: Mapped, number: int) -> np.dtype[Any]:
        if self.otypes is not None:
            return np.dtype(self.otypes[number])
        kinds = made.kinds(number)
        if len(kinds) > 1:
            raise self._refused(
                f"gives {' or '.join(sorted(map(str, kinds)))}, by the way through `{self._name}`; NumPy takes what "
                "the first element gives", "return one type on each way, or say otypes=[float]")
        return next(iter(kinds))

    def _refused(self, what: str, advice: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(f"numpy.vectorize {what}, at {user_line()}, has no rule; {advice}")


def _boxed(recorder: Any, value: Value) -> Any:
    made = recorder.value(value.number)
    made.boxed = not value.ndim
    return made


SUBSTITUTES[np.vectorize] = Vectorized
