"""`g.bind(X, y)`: a function of the differentiated arguments alone, at the cost of the bare kernel."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jitad.call.build.batch import WaysDiffer
from jitad.call.build.entry import Entry
from jitad.call.request.request import Arguments
from jitad.call.request.results import bare, write_out
from jitad.call.warm import free_function
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel_errors import KernelMiss, StatusMiss, weakly
from jitad.compile.llvm.fork_guard import gate
from jitad.errors import SignatureError
from jitad.passes.split.prologue import THIN, Split, split
from jitad.tape.display import Text
from jitad.tape.evaluate import evaluate
from jitad.trace.leaves import altered, as_plain, is_complex
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.recorder import uncollected
from jitad.trace.where import user_line

if TYPE_CHECKING:
    from jitad.call.transformed import Transformed
    from jitad.compile.entry.bound import BoundKernel

LINE = 64            # bytes of a line of the processor's cache
WAYS = 16            # entries whose kernels are tried before a call is taken apart


class BoundFunction:
    """A transformed function with its data bound. Made by ``g.bind(*data)``.

    Its arguments are those that are differentiated (for `jit`, the first), in their order. Data are copied when they
    are bound, captured values when the function first runs: later changes of either are not seen. What depends on them
    alone is computed once. Calls with another signature, or that take another way through the function's branches, are
    compiled as those of the transformed function are, with the same warnings.

    >>> import numpy as np, jitad
    >>> g = jitad.jit_grad(lambda theta, y: -0.5 * np.sum((y - theta) ** 2))
    >>> bound = g.bind(np.array([1.0, 2.0]))
    >>> bound(np.zeros(2))
    array([1., 2.])
    >>> bound.value_and_grad(np.zeros(2))
    (-2.5, array([1., 2.]))
    """

    __slots__ = ("__call__", "__jitad_transform__", "__name__", "__weakref__", "_family", "_free", "_tapes",
                 "_transformed", "_ways", "data", "keywords")
    __call__: Callable[..., Any]                          # a slot, so that Python calls the kernel without a detour

    def __init__(self, transformed: Transformed, data: tuple[Any, ...], keywords: dict[str, Any],
                 tapes: dict[Entry, BoundTape] | None = None):
        self._transformed, self.data, self.keywords = transformed, data, keywords
        self._free = transformed._parameters.free(transformed._request, len(data), keywords)
        wanted = len(transformed._parameters.names(len(data) + len(self._free))) - len(self._free)
        if len(data) > wanted:
            raise TypeError(f"{transformed.__name__}() has {wanted} arguments besides those that stay free, and "
                            f"{len(data)} were bound (at {user_line()}); leave out those that are differentiated")
        self._tapes = {} if tapes is None else tapes      # those of the family, the latest last
        self._ways: tuple[_Way, ...] = ()
        self._family: dict[str, BoundFunction] = {}
        self.__name__ = transformed.__name__
        self.__jitad_transform__ = ("bound", self._free, *transformed.__jitad_transform__)
        self.__call__ = weakly(self, "the bound function")

    # --- the family ----------------------------------------------------------------------------
    @property
    def value(self) -> BoundFunction:
        """The bound function itself: ``b.value(theta) -> float``."""
        return self._sibling("value")

    @property
    def value_and_grad(self) -> BoundFunction:
        """Value and gradient from one sweep: ``b.value_and_grad(theta) -> (float, gradient)``."""
        return self._sibling("value_and_grad")

    def _sibling(self, name: str) -> BoundFunction:
        transformed = getattr(self._transformed, name)
        if transformed is self._transformed:
            return self
        return self._family.get(name) or self._family.setdefault(
            name, BoundFunction(transformed, self.data, self.keywords, self._tapes))

    @property
    def __wrapped__(self) -> Any:
        return self._transformed.__wrapped__

    def compile(self, /, *args: Any, **kwargs: Any) -> BoundFunction:
        """Compile for arguments like these; computes nothing but what depends on the data alone. Returns itself."""
        self._way(self.arguments(*args, **kwargs))
        return self

    def tape(self, /, *args: Any, **kwargs: Any) -> Text:
        """What is computed in each call, as text."""
        return Text(self._split(args, kwargs).main.format())

    def prologue(self, /, *args: Any, **kwargs: Any) -> Text:
        """What was computed once, of the data alone, as text."""
        return Text(self._split(args, kwargs).prologue.format())

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Split:
        way = self._way(self.arguments(*args, **kwargs))
        if way is None:
            raise SignatureError(f"`{self.__name__}` is not compiled for these arguments: it runs on the tape machine "
                                 f"or has complex ones (called at {user_line()})")
        return way.bound.split

    def cfunc(self, /, *args: Any, **kwargs: Any) -> Any:
        """The value and gradient as a C function, for an argument like this: see `CompiledTape.cfunc`."""
        return self._transformed.compile(*self._filled(args, kwargs), **self.keywords).cfunc

    # --- calls ---------------------------------------------------------------------------------
    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All positional arguments. Raises `TypeError` unless the free ones are given."""
        names = self._transformed._parameters.names(len(self.data) + len(self._free))
        free = {place: names[place] for place in self._free}
        given = dict(zip(free, args, strict=False))
        given.update({p: kwargs.pop(name) for p, name in free.items() if p not in given and name in kwargs})
        if kwargs or len(args) > len(free) or len(given) < len(free):
            wanted = ", ".join(f"`{name}`" for name in free.values())
            others = "".join(f", `{name}`" for name in kwargs)
            raise TypeError(f"{self.__name__}() with its data bound takes {wanted}; given were {len(args)} positional "
                            f"arguments{others} (called at {user_line()})")
        rest = iter(self.data)
        return tuple(given[i] if i in given else next(rest) for i in range(len(names)))

    def arguments(self, /, *args: Any, **kwargs: Any) -> Arguments:
        """A call taken apart, with the bound data in it."""
        return self._transformed._arguments(self._filled(args, kwargs), self.keywords)

    def _otherwise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the first kernel does not serve."""
        if not kwargs:
            for way in self._ways:
                try:
                    return way.call(*args)
                except (KernelMiss, TypeError, OverflowError):
                    continue
        if "out" in kwargs and not self._transformed._own_out:
            out = kwargs.pop("out")
            return write_out(self(*args, **kwargs), out, self._transformed._request.valued, self.__name__)
        return self._slow(args, kwargs)

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from jitad.trace.recorder import current

        if current() is not None:
            return self._transformed(*self._filled(args, kwargs), **self.keywords)
        arguments = self.arguments(*args, **kwargs)
        self._require_unchanged()
        try:
            way = self._way(arguments)
        except WaysDiffer:                               # examples of a batch, which are called one by one
            way = None
        if way is None:
            return self._transformed(*arguments.args, **arguments.kwargs)
        return way.run(arguments)

    def _way(self, arguments: Arguments) -> _Way | None:
        """The kernel that serves a call, made if there is none; None where there is to be none."""
        with gate:
            bound = self.tape_of(arguments)
            if bound is None:
                return None
            known = next((way for way in self._ways if way.bound is bound), None)
            if known is not None:
                return known
            way = _Way(bound, arguments, self._free)
            caller = way.caller(weakly(self, "the bound function"))
        self._ways = (*self._ways, way)[-WAYS:]
        self.__call__ = caller
        return way

    def tape_of(self, arguments: Arguments) -> BoundTape | None:
        """The tape for arguments with the bound data among them, as `_way`."""
        transformed = self._transformed
        if any(map(is_complex, arguments.leaves)):
            return None
        with gate:
            entry = transformed._entry(arguments)
            if entry.machine is not None or entry.passing:
                return None
            known = self._tapes.get(entry)
            if known is not None:
                return known
            entry.complete(transformed._target, arguments)
            captured = entry.captured(transformed._target)
            if captured is None:
                raise SignatureError(f"what `{self.__name__}` captures has changed while it was compiled (called at "
                                     f"{user_line()}); bind the data again")
            while len(self._tapes) >= WAYS:
                self._tapes.pop(next(iter(self._tapes)))
            made = BoundTape(entry, arguments, captured, self._leaves(arguments))
            return self._tapes.setdefault(entry, made)

    def _leaves(self, arguments: Arguments) -> tuple[int, ...]:
        """The numbers of the kernel's inputs that vary."""
        numbers = {leaf: i for i, leaf in enumerate(n for n, d in enumerate(arguments.dynamic) if d)}
        return tuple(numbers[leaf] for place in self._free for leaf in arguments.span(place) if leaf in numbers)

    def _require_unchanged(self) -> None:
        """Raise `SignatureError` if captured values have changed since they were bound: what is compiled now would
        see others than what was compiled before."""
        for entry, bound in list(self._tapes.items()):
            now = entry.captured(self._transformed._target)
            if now is None or not all(map(_same, bound.captured, now)):
                raise SignatureError(
                    f"what `{self.__name__}` captures has changed since it was bound, and this call needs to be "
                    f"compiled (called at {user_line()}); bind the data again")

    # --- inside a recording, pickles, text -----------------------------------------------------
    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code: there the bound data are captured values."""
        names = self._transformed._parameters.names(len(self.data) + len(self._free))
        given = dict(zip(self._free, args, strict=False))
        given.update({p: kwargs.pop(names[p]) for p in self._free if p not in given and names[p] in kwargs})
        rest = iter(view.copy_of(self.data, "data"))
        filled = tuple(given[i] if i in given else next(rest) for i in range(len(names)))
        return self._transformed.__jitad_nested__(view, filled, {**view.copy_of(self.keywords, "keywords"), **kwargs})

    def __reduce__(self) -> Any:
        return BoundFunction, (self._transformed, self.data, self.keywords)

    def __repr__(self) -> str:
        return f"{self._transformed!r} with its data bound".replace("<", "", 1).replace(">", "", 1).join("<>")


class BoundTape:
    """An entry with everything bound but the inputs `free`: what is computed once, and what is left."""

    def __init__(self, entry: Entry, arguments: Arguments, captured: Sequence[Any], free: tuple[int, ...]):
        self.entry, self.free = entry, free
        given = [snapshot(x) for x in captured]
        self.captured = tuple(given)
        inputs = [*arguments.inputs, *given]
        self.example = [inputs[i] for i in free]
        bound = [x for i, x in enumerate(inputs) if i not in free]
        self.split, computed = self._computed(bound)
        thin = self.split.thin(len(free))
        self.data = tuple(map(_laid_out, [*(bound[i] for i in self.split.kept), *computed], thin))

    def _computed(self, bound: list[Any]) -> tuple[Split, list[Any]]:
        """The tapes, and what the first gives; where it cannot be computed (a factorization fails, say), that is left
        to each call, as it may not be needed on another way."""
        parts = split(self.entry.tape, self.free)
        try:
            return parts, [x if x.ndim else x[()] for x in evaluate(parts.prologue, *bound)]
        except Exception:
            return split(self.entry.tape, self.free, hoist=False), []

    @cached_property
    def kernel(self) -> BoundKernel:
        """The compiled main tape, one for all data of the same kinds."""
        from jitad.compile.entry.bound import BoundKernel

        kinds = tuple(map(argument_type, [*self.example, *self.data]))
        key = (self.free, self.split.hoisted, self.split.kept, kinds)
        with gate, uncollected(), self.entry.lock:
            known = self.entry.bound.get(key)
            if known is None:
                known = self.entry.bound[key] = BoundKernel(self.split.main, kinds, len(self.free), self.entry.name)
        return known


@dataclass(frozen=True)
class _Way:
    """A bound tape, and how it is called: ``call(*free)``, which raises `KernelMiss` for what it does not serve."""

    bound: BoundTape
    arguments: Arguments
    free: tuple[int, ...]

    @cached_property
    def strict(self) -> Callable[..., Any]:
        """The kernel over the leaves of the free arguments."""
        return self.bound.kernel.function(self.bound.data, _refuse)

    @cached_property
    def direct(self) -> bool:
        """Whether arguments and results are the kernel's own."""
        arguments = self.arguments
        return self.bound.entry.result.plain and len(self.bound.free) == len(self.free) and all(
            bare(arguments.structures[place]) for place in self.free)

    @cached_property
    def call(self) -> Callable[..., Any]:
        if self.direct:
            return self.strict
        arguments, result = self.arguments, self.bound.entry.result
        leaves = [arguments.leaves[i] for place in self.free for i in arguments.span(place)]
        made = free_function([arguments.structures[p] for p in self.free], leaves, self.strict,
                             None if result.plain else result.build)
        return made or _refuse

    def caller(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The same, where `otherwise` is called with what it does not serve."""
        self.call                                        # noqa: B018  compiles
        if self.direct:
            return self.bound.kernel.function(self.bound.data, otherwise)
        call = self.call

        def either(*args: Any, **kwargs: Any) -> Any:
            try:
                if not kwargs:
                    return call(*args)
            except (KernelMiss, TypeError, OverflowError):
                pass
            return otherwise(*args, **kwargs)
        return either

    def run(self, arguments: Arguments) -> Any:
        """The result for arguments of the signature; failures are raised as NumPy raises them."""
        entry, inputs = self.bound.entry, arguments.inputs
        try:
            return entry.result.build(self.strict(*(inputs[i] for i in self.bound.free)))
        except StatusMiss:
            pass
        return entry.interpret([*inputs, *self.bound.captured])


# --- pieces ------------------------------------------------------------------------------------------
def bind(transformed: Transformed, args: Iterable[Any], kwargs: dict[str, Any]) -> BoundFunction:
    """`transformed` with its data bound, copies of `args` and `kwargs`."""
    return BoundFunction(transformed, tuple(map(_copied, args)), {k: _copied(v) for k, v in kwargs.items()})


def _copied(value: Any) -> Any:
    leaves, tree = leaves_of(value)
    return unflatten(tree, [snapshot(leaf) for leaf in leaves])


def snapshot(leaf: Any) -> Any:
    """A leaf as it is now. Thin matrices get contiguous columns, in which products along rows run fastest."""
    if not isinstance(leaf, np.ndarray) or altered(type(leaf)):        # these are refused in the call
        return leaf
    leaf = as_plain(leaf)
    thin = leaf.ndim == 2 and leaf.dtype.kind == "f" and 1 < leaf.shape[1] <= min(THIN, leaf.shape[0] // 2)
    return leaf.copy() if leaf.dtype.hasobject else _on_a_line(leaf, "F" if thin else "C")


def _laid_out(x: Any, thin: bool) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    fits = (x.flags.f_contiguous if thin else x.flags.c_contiguous) and x.ctypes.data % LINE == 0
    return x if fits else _on_a_line(x, "F" if thin else "C")


def _on_a_line(x: np.ndarray, order: Literal["C", "F"]) -> np.ndarray:
    """A copy in this order that begins on a cache line. Elsewhere every other vector of eight would lie in two lines,
    and be read twice."""
    memory = np.empty(x.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    made = memory[start:start + x.nbytes].view(x.dtype).reshape(x.shape, order=order)
    made[...] = x
    return made


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise StatusMiss
