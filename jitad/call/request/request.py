"""One call, taken apart: leaves of the arguments, their structure, signature and names."""
from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from jitad.cache.keys.identity import Target
from jitad.cache.keys.signature import Leaf, Signature, describe, leaf_difference
from jitad.call.request.axes import Axes
from jitad.call.request.changes import Change, changes
from jitad.errors import ArgumentTypeError
from jitad.trace.leaves import as_plain, is_dynamic, packed_all, refusal
from jitad.trace.pytree import TreeDef, bare, count_leaves, flatten, shown, unflatten
from jitad.trace.where import user_line

# What may be asked of a function, and the parts of the answer (see `jitad.call.build.derive`).
PARTS = {
    "value": ("value",),
    "grad": ("gradient",),
    "value_and_grad": ("scalar", "gradient"),
    "grad_with_aux": ("gradient", "aux"),
    "value_and_grad_with_aux": ("scalar_and_aux", "gradient"),
    "jacobian": ("jacobian",),
    "value_and_jacobian": ("value", "jacobian"),
    "hessian": ("hessian",),
    "value_gradient_and_hessian": ("scalar", "gradient", "hessian"),
    "hvp": ("hvp",),
    "sparse_jacobian": ("sparse_jacobian",),
    "value_and_sparse_jacobian": ("value", "sparse_jacobian"),
    "sparse_hessian": ("sparse_hessian",),
    "value_gradient_and_sparse_hessian": ("scalar", "gradient", "sparse_hessian"),
    "derivative": ("derivative",),
    "value_and_derivative": ("value", "derivative"),
    "second_derivative": ("second_derivative",),
    "value_derivative_and_second_derivative": ("value", "derivative", "second_derivative"),
    "vjp": ("cotangents",),
    "jvp": ("value", "tangents"),
    "pushforward": ("tangents",),
}
# What an error calls the answer, by the derivative of the highest order: its last part that is one.
WORDS = {"gradient": "gradient", "jacobian": "Jacobian", "sparse_jacobian": "Jacobian", "hessian": "Hessian",
         "sparse_hessian": "Hessian", "hvp": "Hessian", "derivative": "derivative", "second_derivative": "derivative",
         "cotangents": "pullback", "tangents": "tangent"}
TIERS = ("kernel", "machine")          # compiled code, or the tape machine for what is too long to compile
SEEDS = {"hvp": "v", "vjp": "ct", "jvp": "tangents", "pushforward": "tangents"}


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a function, a key of `PARTS`; with respect to which arguments; in which mode, for Jacobians;
    for batches of examples along which axes, the outermost batch first; on which of `TIERS`, if that is not to be
    chosen by what the function does; whether on several cores, which `Subject.settled` fills in.

    What has a name in `SEEDS` takes one more positional argument, the last: the vector, cotangent or tangents."""

    what: str
    argnums: int | tuple[int, ...] = 0
    mode: str = ""
    batch: tuple[Axes, ...] = ()
    tier: str = ""
    parallel: bool = False

    def __setstate__(self, state: list[Any]) -> None:
        """Pickles of earlier versions lack the last fields."""
        for n, known in enumerate(fields(self)):
            object.__setattr__(self, known.name, state[n] if n < len(state) else known.default)

    @property
    def parts(self) -> tuple[Any, ...]:
        """As plain values, from which `of` makes it again."""
        batch = tuple((axes.in_axes, axes.out_axes) for axes in self.batch)
        return self.what, self.argnums, self.mode, batch, self.tier

    @classmethod
    def of(cls, what: str, argnums: int | tuple[int, ...], mode: str, batch: Sequence[tuple[Any, Any]],
           tier: str) -> Request:
        return cls(what, argnums, mode, tuple(Axes.of(*axes) for axes in batch), tier)

    @property
    def places(self) -> tuple[int, ...]:
        if self.what == "value":
            return ()
        return self.argnums if isinstance(self.argnums, tuple) else (self.argnums,)

    @property
    def seed_name(self) -> str:
        """The name of the seed, empty if there is none."""
        return SEEDS.get(self.what, "")

    @property
    def highest(self) -> str:
        """The derivative of the highest order that is a part of the answer; else the last part."""
        parts = PARTS[self.what]
        return next((part for part in reversed(parts) if part in WORDS), parts[-1])

    @property
    def word(self) -> str:
        """What an error calls the derivative that is asked for."""
        return WORDS.get(self.highest, "gradient")

    @property
    def sparse(self) -> bool:
        """Whether a sparse matrix is part of the answer."""
        return self.highest.startswith("sparse")

    @property
    def has_aux(self) -> bool:
        """Whether the function returns a pair, of which the first is differentiated, and the second comes as it is."""
        return self.what.endswith("_with_aux")

    @property
    def without_value(self) -> bool:
        """Whether the gradient is asked for, and not the value, which the same sweep gives."""
        return PARTS[self.what][0] == "gradient"

    @property
    def position(self) -> int | None:
        """Where in the answer the derivative of the highest order is; None if it is all of it."""
        parts = PARTS[self.what]
        return parts.index(self.highest) if len(parts) > 1 else None


class Settings(NamedTuple):
    """What the user chose for one function: how to meet a mismatch (None: as configured), which captured names stand
    for themselves, whether to compile in the background, and whether to run on several cores (None: as configured)."""

    on_mismatch: str | None = None
    static: tuple[str, ...] = ()
    background: bool = False
    parallel: bool | None = None


DEFAULTS = Settings()


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, positional ones first.

    `leaves` has every leaf, `dynamic` says which are inputs of the tape; `names` are the leaves' paths, `positional`
    the arguments' names, `counts` how many leaves each argument has. Integer leaves of differentiated arguments are
    float64 already, and none has a subclass; `given` are the leaves as they came, `passed` the arguments themselves,
    without a seed.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: tuple[Any, ...]
    dynamic: tuple[bool, ...]
    names: tuple[str, ...]
    positional: tuple[str, ...]
    structures: tuple[TreeDef, ...]
    counts: tuple[int, ...]
    signature: Signature
    given: tuple[Any, ...]
    passed: tuple[Any, ...]

    @property
    def inputs(self) -> list[Any]:
        return packed_all(leaf for leaf, d in zip(self.leaves, self.dynamic, strict=True) if d)

    @cached_property
    def changes(self) -> list[Change]:
        """How the leaves were made of those that were given, if a shortcut can do it."""
        return changes(self.given, self.leaves)

    def span(self, place: int) -> range:
        """The numbers of the leaves of an argument."""
        start = sum(self.counts[:place])
        return range(start, start + self.counts[place])


def bind(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any],
         name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keyword arguments in their places; a call that does not fit raises `TypeError` as Python would."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        _complain(signature, args, kwargs, name)
        raise
    return bound.args, bound.kwargs


def _complain(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], name: str) -> None:
    """Raise Python's own `TypeError` for a call that does not fit."""
    plain = [p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else None)
             for p in signature.parameters.values()]
    made: dict[str, Any] = {}
    exec(f"def call{inspect.Signature(plain)}: pass", made)
    made["call"].__qualname__ = name
    made["call"](*args, **kwargs)


def take_apart(target: Target, request: Request, args: tuple[Any, ...], kwargs: dict[str, Any],
               names: list[str]) -> Arguments:
    """The `Arguments` of a bound call; `names` are those of `args`.

    Raises `ArgumentTypeError` for a leaf that cannot be on a tape, or cannot be differentiated.
    """
    function = target.function
    given = len(args) - bool(request.seed_name)
    check_places(request, given, function.__qualname__)
    new_args, leaves, given_leaves, paths, structures, counts = [], [], [], [], [], []
    places = {place % given for place in request.places}
    for place, (value, name) in enumerate((*zip(args, names, strict=True), *((v, k) for k, v in kwargs.items()))):
        below, below_paths, structure = flatten(value, name)
        take = partial(_seed, what=request.seed_name) if request.seed_name and place == given else partial(
            _leaf, active=place in places)
        given_leaves += below
        below = [take(leaf, path, name=function.__qualname__) for leaf, path in zip(below, below_paths, strict=True)]
        new_args.append((below, structure))
        leaves += below
        paths += below_paths
        structures.append(structure)
        counts.append(len(below))
    rebuilt = [unflatten(structure, below) for below, structure in new_args]
    signature = Signature.of(leaves, structure=(tuple(structures), tuple(kwargs)))
    return Arguments(tuple(rebuilt[:len(args)]), dict(zip(kwargs, rebuilt[len(args):], strict=True)), tuple(leaves),
                     tuple(map(is_dynamic, leaves)), tuple(paths), tuple(names), tuple(structures), tuple(counts),
                     signature, tuple(given_leaves), (*args[:given], *kwargs.values()))


def differences(new: Arguments, positional: Sequence[str], old: Any) -> list[str]:
    """How the arguments differ from those of `old`, an entry whose positional arguments have these names: one line for
    each cause."""
    before, now = _by_name([*positional, *old.keywords], old), _by_name([*new.positional, *new.kwargs], new)
    lines = []
    for name in dict.fromkeys([*before, *now]):
        if name not in before or name not in now:
            lines.append(f"argument `{name}`: {_words(*before.get(name, ()))} -> {_words(*now.get(name, ()))}")
            continue
        (structure, leaves, _), (new_structure, new_leaves, paths) = before[name], now[name]
        if structure != new_structure:
            lines.append(f"argument `{name}`: {_words(structure, leaves)} -> {_words(new_structure, new_leaves)}")
            continue
        for path, a, b in zip(paths, leaves, new_leaves, strict=True):
            lines += leaf_difference(f"argument `{path}`", a, b)
    return lines


def _by_name(names: Sequence[str], call: Any) -> dict[str, tuple[TreeDef, Sequence[Leaf], Sequence[str]]]:
    """Structure, leaves and their paths of each argument."""
    found, start = {}, 0
    for name, structure in zip(names, call.structures, strict=True):
        stop = start + count_leaves(structure)
        found[name] = (structure, call.signature.leaves[start:stop], call.names[start:stop])
        start = stop
    return found


def _words(structure: TreeDef | None = None, leaves: Sequence[Leaf] = (), paths: Any = None) -> str:
    if structure is None:
        return "not given"
    return str(leaves[0]) if bare(structure) else shown(structure)


def checked_tier(tier: str | None) -> str:
    """The tier of a request; raises `ArgumentTypeError` for what is none."""
    if tier is not None and tier not in TIERS:
        raise ArgumentTypeError(f'tier must be "kernel" or "machine", not {tier!r} (at {user_line()})')
    return tier or ""


def check_places(request: Request, count: int, name: str) -> None:
    """Raise `ArgumentTypeError` unless there is an argument at each place to differentiate."""
    for place in request.places:
        if not -count <= place < count:
            raise ArgumentTypeError(
                f"`{name}` is to be differentiated with respect to argument {place}, but was called with {count} "
                f"positional argument{'s' * (count != 1)} (called at {user_line()}); pass that argument, or give "
                "argnums=")


def _seed(leaf: Any, path: str, what: str, name: str) -> Any:
    """A leaf of a seed; integers as floats."""
    if not is_dynamic(leaf) or np.asarray(leaf).dtype.kind == "b":
        shown = _described(leaf) if not is_dynamic(leaf) else "boolean"
        raise ArgumentTypeError(f"`{what}` for `{name}` has {shown} at `{path}` (called at {user_line()}); a seed is "
                                "made of floats, as what it is for")
    return _leaf(leaf, path, True, name)


def _leaf(leaf: Any, path: str, active: bool, name: str) -> Any:
    if not is_dynamic(leaf):
        if active:
            raise ArgumentTypeError(f"argument `{path}` of `{name}` is {_described(leaf)} and cannot be differentiated "
                                    f"(called at {user_line()}); choose other arguments with argnums=")
        return _checked_static(leaf, path, name)
    if isinstance(leaf, np.ndarray) and not leaf.dtype.isnative:
        leaf = leaf.astype(leaf.dtype.newbyteorder("="))
    why = refusal(leaf)
    if why is not None:
        raise ArgumentTypeError(f"argument `{path}` of `{name}` {why} (called at {user_line()})")
    leaf = as_plain(leaf)
    if isinstance(leaf, np.ndarray) and not leaf.flags.aligned:
        leaf = np.array(leaf, order="K")
    if active:
        return _differentiable(leaf, path, name)
    return leaf


def _differentiable(leaf: Any, path: str, name: str) -> Any:
    dtype = np.asarray(leaf).dtype
    if dtype.kind == "b":
        raise ArgumentTypeError(f"argument `{path}` of `{name}` is boolean and cannot be differentiated (called at "
                                f"{user_line()}); pass a float, or choose other arguments with argnums=")
    if dtype.kind not in "iu":
        return leaf
    if isinstance(leaf, np.ndarray):
        return leaf.astype(np.float64)
    return float(leaf) if type(leaf) is int else np.float64(leaf)


def _checked_static(leaf: Any, path: str, name: str) -> Any:
    if describe(leaf).kind == "object":
        from jitad.trace.captures.policy import cure

        if (words := cure(leaf)) is not None:
            raise ArgumentTypeError(f"argument `{path}` of `{name}` is {_described(leaf)} (called at {user_line()}): "
                                    f"{words}")
        raise ArgumentTypeError(
            f"argument `{path}` of `{name}` is {_described(leaf)}, which can be neither data nor part of the key "
            f"(called at {user_line()}); let the function capture it instead (a closure or functools.partial)")
    return leaf


def _described(leaf: Any) -> str:
    if leaf is None:
        return "None"
    kind = type(leaf).__name__
    return f"a {kind}" if kind != "str" else "a string"
