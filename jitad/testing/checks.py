"""For users' own tests: are these derivatives right, is this rule, is what the cache serves what a fresh run gives?

    from jitad.testing import check_grads, check_rule, assert_same_as_fresh

Each raises `CheckFailure`, an `AssertionError`, that names the function and shows the worst component.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitad.api.transforms import checked_argnums, jit
from jitad.api.vjp_jvp import jvp, linearize, vjp
from jitad.call.build.specialize import build
from jitad.call.compiled import CompiledTape
from jitad.call.transformed import Transformed
from jitad.errors import ArgumentTypeError, TapeMismatchWarning
from jitad.tape.types import TABLE, Primitive
from jitad.testing.differences import slope
from jitad.testing.rules import (
    Case,
    CheckFailure,
    cases,
    check_adjoint,
    check_broadcast,
    check_directions,
    check_forward,
    check_second_order,
    check_value,
)
from jitad.testing.rules import build as tape_of
from jitad.testing.scalar import check_scalar
from jitad.trace.pytree import flatten, leaves_of, unflatten
from jitad.trace.where import user_line

__all__ = ["CheckFailure", "assert_same_as_fresh", "check_grads", "check_rule"]

MODES = ("forward", "reverse")
DIRECTIONS = 3               # along one alone a wrong derivative may be right
APART = 0x9E3779B9           # beside the seed, so that directions are no numbers of which users make their points
ROUGH = 1e-3                 # relative error of differences that is put down to them at most


def check_grads(f: Callable[..., Any], args: Sequence[Any], order: int = 2, modes: Sequence[str] = MODES, *,
                argnums: int | Sequence[int] | None = None, rtol: float | None = None, seed: int = 0) -> None:
    """Check the derivatives of `f` at `args` against differences, and forward against reverse mode.

    Derivatives in three random directions are compared, element by element, with the complex step where the function
    allows that, else with central differences, Richardson-extrapolated. Reverse mode is compared with it by the inner
    product ``<ct, J t> == <J^T ct, t>``. For an `order` above one the same is done for the derivatives, each of both
    modes.

    Parameters
    ----------
    f
        Plain NumPy code that returns floats: a number, an array, or a tree of them.
    args
        A tuple of its arguments, at a point where it is smooth.
    order
        Up to which order: 1, 2, ...
    modes
        ``"forward"``, ``"reverse"`` or both.
    argnums
        Which arguments to differentiate; by default all that are made of floats.
    rtol
        The relative error that is allowed; by default 1e-6, and 2e-3 with float32 (or more, where differences cannot
        be that good).
    seed
        Of the random directions.

    Raises
    ------
    CheckFailure
        With the function's name, mode and order, and index, both values and relative error of the worst component.

    Examples
    --------
    >>> import numpy as np
    >>> check_grads(lambda x, a: np.sin(x) * a, (np.array([1.0, 2.0]), 3.0), order=1)
    """
    _check_options(args, order, modes)
    name = getattr(f, "__name__", type(f).__name__)
    places = checked_argnums(argnums) if argnums is not None else tuple(
        i for i, a in enumerate(args) if _floating(a))
    places = places if isinstance(places, tuple) else (places,)
    if not places:
        raise ArgumentTypeError(f"none of the arguments of `{name}` is made of floats (called at {user_line()})")
    args = tuple(args)
    places = tuple(p % len(args) for p in places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TapeMismatchWarning)     # another point than the one before is no surprise here
        _Check(name, places, tuple(modes), rtol, np.random.default_rng((APART, seed))).run(f, args, order, "")


def _check_options(args: Any, order: Any, modes: Any) -> None:
    if not isinstance(args, (tuple, list)):
        raise ArgumentTypeError(f"args must be a tuple of arguments, not {type(args).__name__} (at {user_line()})")
    if not isinstance(order, int) or order < 1:
        raise ArgumentTypeError(f"order must be 1 or more, not {order!r} (at {user_line()})")
    if isinstance(modes, str) or not modes or not set(modes) <= set(MODES):
        raise ArgumentTypeError(f'modes must be some of ("forward", "reverse"), not {modes!r} (at {user_line()})')


def _floating(value: Any) -> bool:
    leaves, _ = leaves_of(value)
    return bool(leaves) and all(getattr(np.asarray(x), "dtype", np.dtype(object)).kind == "f" for x in leaves)


@dataclass
class _Check:
    """One run of `check_grads`."""

    name: str
    places: tuple[int, ...]
    modes: tuple[str, ...]
    rtol: float | None
    rng: np.random.Generator

    def run(self, f: Callable[..., Any], args: tuple[Any, ...], order: int, above: str) -> None:
        for _ in range(DIRECTIONS):
            tangents = tuple(self._random(args[p]) for p in self.places)
            expected = slope(f, args, self.places, tangents)
            if "forward" in self.modes:
                self._forward(f, args, tangents, expected, above)
            if "reverse" in self.modes:
                self._reverse(f, args, tangents, expected, above)
        if order > 1:
            for mode, derived in self._derived(f, args).items():
                self.run(jit(derived), args, order - 1, _order(mode, above))

    def _random(self, like: Any) -> Any:
        """A tree of random numbers like another."""
        leaves, tree = leaves_of(like)
        return unflatten(tree, [np.asarray(self.rng.normal(size=np.shape(x)), _dtype(x)) if isinstance(x, np.ndarray)
                                else _dtype(x).type(self.rng.normal()) if isinstance(x, np.generic)
                                else float(self.rng.normal()) for x in leaves])

    def _derived(self, f: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Callable[..., Any]]:
        """The derivatives as functions of the arguments, in fixed directions."""
        places, tangents = self.places, tuple(self._random(args[p]) for p in self.places)
        ct = self._random(f(*_as_floats(args, places)))

        def forward(*point: Any) -> Any:
            return linearize(f, *point, argnums=places)[1](*(
                _in_precision_of(point[p], t) for p, t in zip(places, tangents, strict=True)))

        def reverse(*point: Any) -> Any:
            value, pullback = vjp(f, *point, argnums=places)
            return pullback(_in_precision_of(value, ct))
        return {mode: derived for mode, derived in (("forward", forward), ("reverse", reverse)) if mode in self.modes}

    def _forward(self, f: Any, args: tuple[Any, ...], tangents: tuple[Any, ...], expected: Any, above: str) -> None:
        every = [None] * len(args)
        for place, t in zip(self.places, tangents, strict=True):
            every[place] = t
        got = jvp(f, args, every)[1]
        self._compare(got, expected.value, expected.error, _order("forward", above), "the tangent", "result",
                      expected.note)

    def _reverse(self, f: Any, args: tuple[Any, ...], tangents: tuple[Any, ...], expected: Any, above: str) -> None:
        ct = self._random(f(*_as_floats(args, self.places)))
        got = vjp(f, *args, argnums=self.places)[1](ct)
        left, right = _dot(got, tangents), _dot(ct, expected.value)
        scale = np.sqrt(_dot(got, got) * _dot(tangents, tangents)) + np.sqrt(_dot(ct, ct) * _dot(
            expected.value, expected.value))
        error = np.sqrt(_dot(ct, ct)) * max(map(_largest, expected.error), default=0.0)
        allowed = self._allowed(got) * scale + min(10 * error, ROUGH * scale) + 1e-13
        if abs(left - right) <= allowed:
            return
        self._components(f, args, ct, got, _order("reverse", above))
        raise CheckFailure(f"`{self.name}`: {_order('reverse', above)} mode does not fit the differences: "
                           f"<J^T ct, t> = {left!r}, <ct, J t> = {right!r}{expected.note}")

    def _components(self, f: Any, args: tuple[Any, ...], ct: Any, got: Any, mode: str) -> None:
        """Raise for the worst component of a pullback, one by one."""
        def weighted(*point: Any) -> Any:
            return np.asarray(_inner(ct, f(*point)))
        places = self.places
        for k, place in enumerate(places):
            leaves, tree = leaves_of(args[place])
            found, errors = [], []
            for n, leaf in enumerate(leaves):
                values, bounds = np.zeros(np.shape(leaf)), np.zeros(np.shape(leaf))
                for at in np.ndindex(np.shape(leaf)):
                    unit = [np.zeros(np.shape(x)) for x in leaves]
                    unit[n][at] = 1.0
                    one = slope(weighted, args, (place,), (unflatten(tree, unit),))
                    values[at], bounds[at] = leaves_of(one.value)[0][0], _largest(one.error[0])
                found.append(values)
                errors.append(bounds)
            self._compare(got[k], unflatten(tree, found), errors, mode, "the cotangent", f"argument {place}")

    def _compare(self, got: Any, expected: Any, errors: Sequence[Any], mode: str, what: str, prefix: str,
                 note: str = "") -> None:
        leaves, paths, _ = flatten(got, prefix)
        worst: tuple[float, str] = (0.0, "")
        rtol = self._allowed(got)
        for leaf, path, wanted, error in zip(leaves, paths, leaves_of(expected)[0], errors, strict=True):
            a, b = np.asarray(leaf, np.float64), np.asarray(wanted, np.float64)
            if a.shape != b.shape:
                raise CheckFailure(f"`{self.name}`: {mode} mode: {what} has shape {a.shape}, not {b.shape}")
            if not a.size:
                continue
            scale = max(float(np.abs(b[np.isfinite(b)]).max(initial=0.0)), 1e-300)
            gap = _gap(a, b)
            excess = gap / (rtol * scale + np.minimum(10 * np.asarray(error), ROUGH * scale) + 1e-13)
            place = np.unravel_index(int(np.argmax(excess)), a.shape)
            if excess[place] > max(worst[0], 1.0):
                relative = gap[place] / max(abs(b[place]), 1e-300)
                index = f"[{', '.join(map(str, place))}]" if place else ""
                worst = float(excess[place]), (f"{path}{index} is {float(a[place])!r}, differences give "
                                               f"{float(b[place])!r} (relative error {relative:.2g})")
        if worst[1]:
            raise CheckFailure(f"`{self.name}`: {mode} mode: {what} is wrong; worst component: {worst[1]}{note}")

    def _allowed(self, got: Any) -> float:
        if self.rtol is not None:
            return self.rtol
        return 2e-3 if any(_dtype(x) == np.float32 for x in leaves_of(got)[0]) else 1e-6


def _gap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The distance of each element; NaN equals NaN, infinities their like."""
    with np.errstate(invalid="ignore"):
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(gap), np.inf, gap)


def _order(mode: str, above: str) -> str:
    return f"{mode} of {above}" if above else mode


def _dtype(leaf: Any) -> np.dtype[Any]:
    dtype = np.asarray(leaf).dtype
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def _in_precision_of(like: Any, tree: Any) -> Any:
    """The tree with the dtypes of another, which may be traced."""
    leaves, structure = leaves_of(tree)
    return unflatten(structure, [x if isinstance(x, float) or x.dtype == y.dtype else x.astype(y.dtype)
                                 for x, y in zip(leaves, leaves_of(like)[0], strict=True)])


def _as_floats(args: tuple[Any, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    def change(leaf: Any) -> Any:
        return leaf if np.asarray(leaf).dtype.kind == "f" else np.asarray(leaf, np.float64)[()]
    return tuple(unflatten(leaves_of(a)[1], [change(x) for x in leaves_of(a)[0]]) if i in places else a
                 for i, a in enumerate(args))


def _inner(a: Any, b: Any) -> Any:
    return sum(np.sum(np.asarray(x, np.float64) * y) for x, y in zip(leaves_of(a)[0], leaves_of(b)[0], strict=True))


def _dot(a: Any, b: Any) -> float:
    return float(_inner(a, b))


def _largest(values: Any) -> float:
    return float(np.max(np.abs(values), initial=0.0))


# --- rows --------------------------------------------------------------------------------------------------

def check_rule(primitive: Primitive | str) -> None:
    """Run the tests that follow from a row of the table of primitives, on the row's own samples.

    Values against `infer` and the ufunc; vjp against jvp; both against differences; second derivatives by every pair of
    modes; many directions at once; for elementwise rows broadcasting and empty arrays; for rows of ufuncs the scalar
    code at special values.

    Raises `CheckFailure` with the row, the check and the worst component, also for a row without samples; and
    `ArgumentTypeError` for what is no row.

    >>> check_rule("tanh")
    """
    import jitad.primitives  # noqa: F401  (fills the table)

    row = TABLE.get(primitive) if isinstance(primitive, str) else primitive
    if not isinstance(row, Primitive):
        raise ArgumentTypeError(f"{primitive!r} is no row of the table of primitives (at {user_line()})")
    for case in cases(row):
        tape_of(case).check()
        for check in (check_value, check_adjoint):
            check(case)
            check(case.astype(np.float32))
        for check in (check_forward, check_second_order, check_directions):
            check(case)
    if row.kind == "elementwise":
        case = cases(row)[0]
        empty = Case(row, tuple(np.zeros((0,), a.dtype) for a in case.inputs), case.params)
        check_value(empty)
        check_adjoint(empty)
        if len(case.inputs) > 1 and case.inputs[0].ndim == 2:
            cuts: list[Callable[[np.ndarray], np.ndarray]] = [lambda a: a, lambda a: a[0], lambda a: a[:, :1]]
            for cut in cuts:
                check_broadcast(case, [cuts[0], *[cut] * (len(case.inputs) - 1)])
    if row.ufunc is not None and row.scalar is not None:
        check_scalar(row, "f8")


# --- the cache -----------------------------------------------------------------------------------------------

def assert_same_as_fresh(g: Callable[..., Any], args_list: Iterable[Sequence[Any]], rtol: float = 1e-9) -> None:
    """Check that a compiled function gives, for each tuple of arguments, what a fresh recording gives.

    `g` is called as it is, with all that it remembers; the same function is recorded anew for these arguments, and its
    tape is run by the interpreter, one NumPy call for each operation. Structures, types, shapes and dtypes must be the
    same; values within `rtol` of the largest of the array, NaN and infinities included.

    Raises `CheckFailure` with the number of the arguments and the worst component, and `ArgumentTypeError` if `g` is
    not a function that jitad compiled.

    >>> import numpy as np, jitad
    >>> g = jitad.jit_grad(lambda x: np.sum(x**2 if x[0] > 0 else x))
    >>> assert_same_as_fresh(g, [(np.array([1.0, 2.0]),), (np.array([-1.0, 2.0]),), (np.array([3.0]),)])
    """
    transformed = g.function if isinstance(g, CompiledTape) else g
    if not isinstance(transformed, Transformed):
        raise ArgumentTypeError(f"{g!r} is not a function that jitad compiled (at {user_line()})")
    for number, args in enumerate(args_list):
        if not isinstance(args, (tuple, list)):
            raise ArgumentTypeError(f"entry {number} of args_list is no tuple of arguments (at {user_line()})")
        arguments = transformed.subject.arguments(tuple(args), {})
        entry = build(transformed.subject.target, replace(transformed.subject.request, tier="kernel"), arguments)
        expected = entry.interpret([*arguments.inputs, *(entry.captured(transformed.subject.target) or ())])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TapeMismatchWarning)
            got = g(*args)
        _same(got, expected, rtol, f"`{transformed.__name__}`, arguments {number}")


def _same(got: Any, expected: Any, rtol: float, what: str) -> None:
    leaves, paths, tree = flatten(got, "result")
    wanted, wanted_tree = leaves_of(expected)
    if tree != wanted_tree:
        raise CheckFailure(f"{what}: the result has another structure than a fresh recording gives: {got!r} instead of "
                           f"{expected!r}")
    for a, b, path in zip(leaves, wanted, paths, strict=True):
        kind = (type(a), np.shape(a), np.asarray(a).dtype)
        if kind != (type(b), np.shape(b), np.asarray(b).dtype):
            raise CheckFailure(f"{what}: {path} is a {kind[0].__name__} of shape {kind[1]} and dtype {kind[2]}; a "
                               f"fresh recording gives a {type(b).__name__} of shape {np.shape(b)} and dtype "
                               f"{np.asarray(b).dtype}")
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        scale = float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
        gap = _gap(x, y)
        if gap.size and gap.max() > rtol * scale:
            place = np.unravel_index(int(np.argmax(gap)), gap.shape)
            index = f"[{', '.join(map(str, place))}]" if place else ""
            relative = gap[place] / max(abs(y[place]), 1e-300)
            raise CheckFailure(f"{what}: worst component: {path}{index} is {float(x[place])!r}, a fresh recording "
                               f"gives {float(y[place])!r} (relative error {relative:.2g})")
