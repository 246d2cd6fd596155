"""`g.bind(X, y)`: a function of the differentiated arguments alone, at the cost of the bare kernel."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitad.call.build.batch import WaysDiffer
from jitad.call.build.bound import BoundTape, refuse, snapshot
from jitad.call.build.specialization import Specialization
from jitad.call.build.specialize import complete
from jitad.call.family import FunctionFamily
from jitad.call.ladder import Called, Run
from jitad.call.pickling import restored
from jitad.call.request.request import Arguments
from jitad.call.request.results import bare
from jitad.call.request.subject import Subject
from jitad.call.rungs.generated import from_leaves
from jitad.call.rungs.shortcut import Shortcut, with_fallback
from jitad.compile.llvm.fork_guard import gate
from jitad.errors import SignatureError, UnsupportedOperationError
from jitad.passes.split.prologue import Split
from jitad.tape.display import Text
from jitad.tape.tape import Tape
from jitad.trace.leaves import is_complex
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.where import user_line

TAPES = 16           # bound tapes that a function and its siblings have


class BoundFunction(Called):
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

    __slots__ = ("__jitad_transform__", "__name__", "__weakref__", "_free", "_siblings", "_tapes", "_transformed",
                 "data", "keywords")

    def __init__(self, transformed: FunctionFamily, data: tuple[Any, ...], keywords: dict[str, Any],
                 tapes: dict[Specialization, BoundTape] | None = None):
        self._transformed, self.data, self.keywords = transformed, data, keywords
        self._free = transformed.subject.parameters.free(transformed.subject.request, len(data), keywords)
        wanted = len(transformed.subject.parameters.names(len(data) + len(self._free))) - len(self._free)
        if len(data) > wanted:
            raise TypeError(f"{transformed.__name__}() has {wanted} arguments besides those that stay free, and "
                            f"{len(data)} were bound (at {user_line()}); leave out those that are differentiated")
        self._tapes = {} if tapes is None else tapes      # those of the family, the latest last
        self._siblings: dict[str, BoundFunction] = {}
        self.__name__ = transformed.__name__
        self.__jitad_transform__ = ("bound", self._free, *transformed.__jitad_transform__)
        self.begin("the bound function")

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
        return self._siblings.get(name) or self._siblings.setdefault(
            name, BoundFunction(transformed, self.data, self.keywords, self._tapes))

    @property
    def __wrapped__(self) -> Any:
        return self._transformed.__wrapped__

    @property
    def subject(self) -> Subject:
        return self._transformed.subject

    def compile(self, /, *args: Any, **kwargs: Any) -> BoundFunction:
        """Compile for arguments like these; computes nothing but what depends on the data alone. Returns itself."""
        arguments = self._arguments(args, kwargs)
        with gate:
            bound = self._tape_of(arguments)
            if bound is not None:
                self._remember(bound, arguments)
        return self

    def tape(self, /, *args: Any, **kwargs: Any) -> Text:
        """What is computed in each call, as text."""
        return self._split(args, kwargs).main.page()

    def prologue(self, /, *args: Any, **kwargs: Any) -> Text:
        """What was computed once, of the data alone, as text."""
        return self._split(args, kwargs).prologue.page()

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Split:
        bound = self._tape_of(self._arguments(args, kwargs))
        if bound is None:
            raise SignatureError(f"`{self.__name__}` is not compiled for these arguments: it runs on the tape machine "
                                 f"or has complex ones (called at {user_line()})")
        return bound.split

    def cfunc(self, /, *args: Any, **kwargs: Any) -> Any:
        """The value and gradient as a C function, for an argument like this: see `CompiledTape.cfunc`."""
        return c_function(self._transformed, self._arguments(args, kwargs))

    # --- calls ---------------------------------------------------------------------------------
    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All positional arguments. Raises `TypeError` unless the free ones are given."""
        names = self.subject.parameters.names(len(self.data) + len(self._free))
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

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """A call taken apart, with the bound data in it."""
        return self.subject.arguments(self._filled(args, kwargs), self.keywords)

    def _inside(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._transformed(*self._filled(args, kwargs), **self.keywords)

    def _given_to_shortcuts(self, arguments: Arguments, args: tuple[Any, ...],
                            kwargs: dict[str, Any]) -> tuple[bool, Sequence[Any], dict[str, Any]]:
        return False, [arguments.args[place] for place in self._free], {}

    def _prepared(self, arguments: Arguments) -> Run:
        self._require_unchanged()
        try:
            bound = self._tape_of(arguments)
        except WaysDiffer:                               # examples of a batch, which are called one by one
            bound = None
        if bound is None:
            return lambda: self._transformed(*arguments.args, **arguments.kwargs)
        self._remember(bound, arguments)
        return lambda: bound.run(arguments)

    def _remember(self, bound: BoundTape, arguments: Arguments) -> None:
        """Let the next call of this kind go straight to the kernel."""
        if bound.specialization.asked or any(
                known.specialization is bound.specialization for known in self.shortcuts):
            return                                       # what is compared by ``is`` is looked at in each call
        known, result = Shortcut(self, arguments.signature, bound.specialization), bound.specialization.result
        structures = [arguments.structures[place] for place in self._free]
        if result.plain and len(bound.free) == len(self._free) and all(map(bare, structures)):
            known.strict = bound.strict                  # arguments and results are the kernel's own
            known.entry = lambda fallback: bound.kernel.function(bound.data, fallback)
            known.call = known.entry(self.fallback)
        else:
            leaves = [arguments.leaves[i] for place in self._free for i in arguments.span(place)]
            known.strict = from_leaves(structures, leaves, bound.strict, result) or refuse
            known.call = with_fallback(known.strict, self.fallback, self.writes)
        self._prefer(known)

    def _prefer(self, known: Shortcut) -> None:
        self.put_first(known)

    def _tape_of(self, arguments: Arguments) -> BoundTape | None:
        """The tape for arguments with the bound data among them, made if there is none; None where there is to be
        none."""
        transformed = self._transformed
        if any(map(is_complex, arguments.leaves)):
            return None
        with gate:
            specialization = transformed.specialized(arguments)
            if specialization.machine is not None or specialization.passing:
                return None
            known = self._tapes.get(specialization)
            if known is not None:
                return known
            complete(specialization, transformed.subject.target, arguments)
            captured = specialization.captured(transformed.subject.target)
            if captured is None:
                raise SignatureError(f"what `{self.__name__}` captures has changed while it was compiled (called at "
                                     f"{user_line()}); bind the data again")
            while len(self._tapes) >= TAPES:
                self._tapes.pop(next(iter(self._tapes)))
            made = BoundTape(specialization, arguments, captured, self._leaves(arguments))
            return self._tapes.setdefault(specialization, made)

    def _leaves(self, arguments: Arguments) -> tuple[int, ...]:
        """The numbers of the kernel's inputs that vary."""
        numbers = {leaf: i for i, leaf in enumerate(n for n, d in enumerate(arguments.dynamic) if d)}
        return tuple(numbers[leaf] for place in self._free for leaf in arguments.span(place) if leaf in numbers)

    def _require_unchanged(self) -> None:
        """Raise `SignatureError` if captured values have changed since they were bound: what is compiled now would
        see others than what was compiled before."""
        for specialization, bound in list(self._tapes.items()):
            now = specialization.captured(self.subject.target)
            if now is None or not all(map(_same, bound.captured, now)):
                raise SignatureError(
                    f"what `{self.__name__}` captures has changed since it was bound, and this call needs to be "
                    f"compiled (called at {user_line()}); bind the data again")

    # --- inside a recording, pickles, text -----------------------------------------------------
    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code: there the bound data are captured values."""
        names = self.subject.parameters.names(len(self.data) + len(self._free))
        given = dict(zip(self._free, args, strict=False))
        given.update({p: kwargs.pop(names[p]) for p in self._free if p not in given and names[p] in kwargs})
        rest = iter(view.copy_of(self.data, "data"))
        filled = tuple(given[i] if i in given else next(rest) for i in range(len(names)))
        return self._transformed.__jitad_nested__(view, filled, {**view.copy_of(self.keywords, "keywords"), **kwargs})

    def __reduce__(self) -> Any:
        return restored, ("bound", self._transformed, self.data, self.keywords)

    def __repr__(self) -> str:
        return f"{self._transformed!r} with its data bound".replace("<", "", 1).replace(">", "", 1).join("<>")


def bind(transformed: FunctionFamily, args: Iterable[Any], kwargs: dict[str, Any]) -> BoundFunction:
    """`transformed` with its data bound, copies of `args` and `kwargs`."""
    copies: dict[int, Any] = {}                          # one of each array
    bound = BoundFunction(transformed, tuple(_copied(v, copies) for v in args),
                          {k: _copied(v, copies) for k, v in kwargs.items()})
    _check_surplus(bound, kwargs)
    return bound


def _check_surplus(bound: BoundFunction, kwargs: dict[str, Any]) -> None:
    """Raise `TypeError` for data that the function has no parameters for, or that are given twice."""
    subject, name = bound.subject, bound.__name__
    count = len(bound.data) + len(bound._free) - bool(subject.request.seed_name)
    try:
        subject.parameters.signature.bind_partial(*(None,) * count, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}.bind() cannot bind these data: {error}; {len(bound.data)} are given by position, and "
                        f"{len(bound._free)} of the arguments stay free (called at {user_line()})") from None


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    leaves, tree = leaves_of(value)
    return unflatten(tree, [copies.setdefault(id(leaf), snapshot(leaf)) for leaf in leaves])


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def bound_density(function: FunctionFamily, arguments: Arguments) -> tuple[BoundFunction, np.ndarray]:
    """The value and gradient by the one vector that a C function is for, everything else bound, and the vector. Raises
    `SignatureError` where there is no such vector."""
    if function.subject.request.seed_name:
        raise SignatureError(f"a C function is for a value and its gradient; `{function.__name__}` was compiled "
                             f"for {function.subject.request.what}")
    if function.subject.request.has_aux:
        raise SignatureError(f"a C function is for a value and its gradient; `{function.__name__}` returns more with "
                             "them: leave out has_aux=True, and what goes with it")
    transformed: FunctionFamily = function.value_and_grad
    place: Any = transformed.subject.request.argnums
    leaf = arguments.leaves[arguments.span(place)[0]] if isinstance(place, int) and arguments.counts[
        place] == 1 else None
    several = bool(transformed.subject.request.batch)
    if not isinstance(leaf, np.ndarray) or (leaf.ndim != 1 and not several) or leaf.dtype != np.float64:
        raise SignatureError(f"a C function needs one float64 vector to differentiate; `{transformed.__name__}` is "
                             f"differentiated by argument {place}; use ravel and reshape, or argnums=")
    place %= len(arguments.args)
    return bind(transformed, (*arguments.args[:place], *arguments.args[place + 1:]), arguments.kwargs), leaf


def c_function(function: FunctionFamily, arguments: Arguments) -> Any:
    """The C function of `CompiledTape.cfunc`, for arguments like these."""
    from jitad.compile.entry.callback import Callback, PythonCallback

    bound, leaf = bound_density(function, arguments)
    transformed = bound._transformed
    arguments = bound._arguments((leaf,), {})
    with gate:
        specialization = transformed.specialized(arguments)
        tape = bound._tape_of(arguments)
        dtype = (specialization.machine.outputs[0][1] if specialization.machine else specialization.output(0)).dtype
        if dtype != np.float64:
            raise SignatureError(f"a C function needs a float64 value; `{transformed.__name__}` returns {dtype}")
        if tape is None:
            return PythonCallback(leaf.size, bound)
        if transformed.subject.request.batch and specialization.output(1).shape != leaf.shape:
            raise SignatureError(f"a C function needs gradients as large as the array that varies: `out_axes` of "
                                 f"`{transformed.__name__}` must be as its in_axes")
        return Callback(tape.split.main, [leaf, *tape.data], bound, specialization.name,
                        specialization.request.parallel)


def tape_and_inputs(bound: BoundFunction, leaf: np.ndarray) -> tuple[Tape, list[Any]]:
    """What a bound function computes of a vector, and the tape's inputs, the vector first."""
    with gate:
        tape = bound._tape_of(bound._arguments((leaf,), {}))
    if tape is None:
        raise UnsupportedOperationError(f"`{bound.__name__}` runs on the tape machine and has no code of its own")
    return tape.split.main, [leaf, *tape.data]


def c_values(bound: BoundFunction, leaf: np.ndarray, kept: int) -> Any:
    """What a bound function gives of a vector, `kept` numbers of float64, as a C function: see `Expansion`."""
    from jitad.compile.entry.expansion import Expansion, PythonExpansion

    arguments = bound._arguments((leaf,), {})
    with gate:
        specialization = bound._transformed.specialized(arguments)
        tape = bound._tape_of(arguments)
        if tape is None or specialization.output(0).dtype != np.float64:
            return PythonExpansion(leaf.size, kept, bound)
        return Expansion(tape.split.main, [leaf, *tape.data], bound, specialization.request.parallel)
