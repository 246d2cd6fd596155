"""What is asked of a function, computed on the builder that holds what it did: the parts of a `Request`.

The same code serves a kernel of its own, whose outputs the parts become, and a derivative that recorded code asks for,
on the tape of that recording.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jitad.call.build.outputs import computed_at, pair_of, scalar_output
from jitad.call.build.sparse import sparse_hessian, sparse_jacobian
from jitad.passes.differentiate.modes import one, pullback, pushforward
from jitad.passes.differentiate.tangents import Tangents
from jitad.errors import ArgumentTypeError, OutputError
from jitad.primitives.core import cast, full
from jitad.primitives.index import reshape, tril
from jitad.primitives.view import spread, transpose
from jitad.call.request.request import PARTS, Request
from jitad.call.request.results import Form, Frame, Result, block_form, frame_of, gradient_form, value_form
from jitad.call.request.sparse import Matrix
from jitad.tape.builder import Builder, Value
from jitad.trace.values.pairs import form_of, is_packed, packed_real, seen_aval
from jitad.trace.leaves import is_complex
from jitad.trace.pytree import TreeDef, bare, count_leaves, flatten, shown, unflatten
from jitad.trace.where import user_line

# Parts for which complex numbers have no convention here: as arguments, as arguments or results.
BY_ONE = frozenset({"derivative", "second_derivative"})
SPARSE = frozenset({"sparse_jacobian", "sparse_hessian"})


@dataclass(frozen=True)
class Part:
    """One of the things asked for: its values from left to right, with label and form, and their frame."""

    values: list[Value]
    labels: list[str]
    forms: list[Form]
    frame: Frame


@dataclass(frozen=True)
class Argument:
    """An argument to differentiate: its leaves on the tape, their structure and names, and the caller's own leaves,
    which say what form a derivative has."""

    values: tuple[Value, ...]
    tree: TreeDef
    names: tuple[str, ...]
    leaves: tuple[Any, ...]


@dataclass(frozen=True)
class Derivation:
    """A function on a builder: `outputs` with their structure, `weak` where they are Python numbers; the arguments with
    respect to which it is differentiated; the seeds with their structure, if the request has some."""

    builder: Builder
    request: Request
    name: str
    outputs: tuple[Value, ...]
    structure: TreeDef
    weak: tuple[bool, ...]
    arguments: tuple[Argument, ...]
    seeds: tuple[Value, ...] = ()
    seed_tree: TreeDef | None = None
    packed_seeds: tuple[bool, ...] = ()                    # which of them are complex
    standing_in: tuple[Value, ...] | None = None           # for gradients that the tape does not compute
    given: Mapping[int, Any] = field(default_factory=dict)  # what the inputs are now, for sparse matrices

    def parts(self) -> tuple[list[Value], list[str], Result]:
        """All that is asked for: values, labels, and how they are returned."""
        self._check_real()
        found = [getattr(self, f"_{part}")() for part in PARTS[self.request.what]]
        frame = found[0].frame if len(found) == 1 else (None, tuple(p.frame for p in found))
        return ([v for p in found for v in p.values], [label for p in found for label in p.labels],
                Result(tuple(form for p in found for form in p.forms), frame))

    def _check_real(self) -> None:
        """Raise `OutputError` for derivatives that complex numbers have no convention for here."""
        highest = self.request.highest
        if highest in BY_ONE and any(map(is_complex, self.leaves)):
            raise OutputError(f"a {self.request.word} of `{self.name}` with respect to a complex number is not "
                              f"supported (called at {user_line()}); use jacobian, which has d/dRe and d/dIm, or jvp")
        if highest in SPARSE and (any(map(is_complex, self.leaves)) or any(map(is_packed, self.outputs))):
            raise OutputError(f"a sparse {self.request.word} of `{self.name}` with complex arguments or results is "
                              f"not supported (called at {user_line()}); leave out sparse=True, or pass and return real "
                              "and imaginary parts")

    # --- what there is -----------------------------------------------------------------------------
    @cached_property
    def wrt(self) -> list[Value]:
        return [v for argument in self.arguments for v in argument.values]

    @cached_property
    def names(self) -> list[str]:
        return [n for argument in self.arguments for n in argument.names]

    @cached_property
    def leaves(self) -> list[Any]:
        return [leaf for argument in self.arguments for leaf in argument.leaves]

    def like_arguments(self, below: Frame = None) -> Frame:
        """The frame of what has the structure of the differentiated arguments."""
        frames = tuple(frame_of(argument.tree, below) for argument in self.arguments)
        return (None, frames) if isinstance(self.request.argnums, tuple) else frames[0]

    @cached_property
    def scalar(self) -> Value:
        outputs, structure = self.outputs, self.structure
        if self.request.has_aux:
            outputs, structure = outputs[:self._first], self._pair[0]
        return scalar_output(outputs, structure, self.name, self.request.word)

    @cached_property
    def _pair(self) -> tuple[TreeDef, TreeDef]:
        return pair_of(self.outputs, self.structure, self.name)

    @property
    def _first(self) -> int:
        """How many outputs belong to what is differentiated."""
        return count_leaves(self._pair[0])

    @cached_property
    def gradients(self) -> list[Value]:
        if self.standing_in is not None:
            return [*self.standing_in]
        return pullback(self.builder, [self.scalar], [one(self.scalar)], self.wrt) if self.wrt else []

    @cached_property
    def floats(self) -> tuple[Value, ...]:
        """The outputs, which must be floats; raises `OutputError`."""
        for value, path in zip(self.outputs, self.paths, strict=True):
            if value.dtype.kind != "f":
                kind = "boolean" if value.dtype.kind == "b" else "integers"
                raise OutputError(f"`{self.name}` returned {kind} ({path}, {value.aval}){computed_at(self.outputs)}; "
                                  f"a {self.request.word} needs floats: convert with astype(float), or return "
                                  "the floats alone")
        return self.outputs

    @cached_property
    def paths(self) -> list[str]:
        return flatten(unflatten(self.structure, self.outputs), "result")[1]

    # --- the parts ---------------------------------------------------------------------------------
    def _value(self) -> Part:
        labels = ["value"] if len(self.outputs) == 1 else [f"value_{i}" for i in range(len(self.outputs))]
        forms = [value_form(v, weak) for v, weak in zip(self.outputs, self.weak, strict=True)]
        return Part(list(self.outputs), labels, forms, frame_of(self.structure))

    def _scalar(self) -> Part:
        return Part([self.scalar], ["value"], [value_form(self.scalar)], None)

    def _aux(self) -> Part:
        self.scalar  # noqa: B018  (raises for what is no pair of a scalar and something)
        values, weak = self.outputs[self._first:], self.weak[self._first:]
        return Part([*values], [f"aux_{i}" for i in range(len(values))], [*map(value_form, values, weak)],
                    frame_of(self._pair[1]))

    def _scalar_and_aux(self) -> Part:
        value, aux = self._scalar(), self._aux()
        return Part([*value.values, *aux.values], [*value.labels, *aux.labels], [*value.forms, *aux.forms],
                    (None, (value.frame, aux.frame)))

    def _gradient(self) -> Part:
        return self._like_arguments(self.gradients, "grad")

    def _like_arguments(self, values: list[Value], label: str) -> Part:
        return Part(values, [f"{label}_{name}" for name in self.names], [gradient_form(leaf) for leaf in self.leaves],
                    self.like_arguments())

    def _cotangents(self) -> Part:
        seeds = self._seeds(self.floats, [*map(is_packed, self.outputs)], self.structure, self.paths, "the result")
        found = pullback(self.builder, self.floats, seeds, self.wrt) if self.wrt else []
        return self._like_arguments(found, "ct")

    def _tangents(self) -> Part:
        return self._like_outputs(pushforward(self.builder, self.floats, self.wrt, self._directions()), "tangent")

    def _like_outputs(self, values: list[Value], label: str) -> Part:
        forms = [value_form(o if is_packed(o) else v) for o, v in zip(self.outputs, values, strict=True)]
        return Part(values, [f"{label}_{path}" for path in self.paths], forms,
                    frame_of(self.structure))

    def _hvp(self) -> Part:
        directions = self._directions()
        return self._like_arguments(
            pushforward(self.builder, self.gradients, self.wrt, directions) if self.wrt else [], "hvp")

    def _derivative(self) -> Part:
        return self._like_outputs(self._slopes, "derivative")

    @cached_property
    def _slopes(self) -> list[Value]:
        if [v.shape for v in self.wrt] != [()]:
            shown = ", ".join(f"`{n}`: {v.aval}" for n, v in zip(self.names, self.wrt, strict=True)) or "nothing"
            raise ArgumentTypeError(f"a derivative is with respect to one number; `{self.name}` was given {shown} "
                                    f"(called at {user_line()}); use jacobian, or jit_grad of a scalar function")
        return pushforward(self.builder, self.floats, self.wrt, [one(self.wrt[0])])

    def _second_derivative(self) -> Part:
        return self._like_outputs(
            pushforward(self.builder, self._slopes, self.wrt, [one(self.wrt[0])]), "second_derivative")

    def _jacobian(self) -> Part:
        outputs, wrt = self.floats, self.wrt
        forward = self.request.mode == "forward" or (
            self.request.mode != "reverse" and _size(wrt) <= _size(outputs))
        blocks = _by_columns(self.builder, outputs, wrt) if forward else _by_rows(self.builder, outputs, wrt)
        return self._blocks(blocks, list(outputs), self.paths, "jacobian", frame_of(self.structure,
                                                                                   self.like_arguments()))

    def _hessian(self) -> Part:
        blocks = _second(self.builder, self.gradients, self.wrt) if self.wrt else []
        return self._blocks(blocks, self.wrt, self.names, "hessian", self.like_arguments(self.like_arguments()))

    def _sparse_jacobian(self) -> Part:
        return self._sparse(sparse_jacobian(self.builder, self.floats, self.wrt, self.request.mode, self.given),
                            "jacobian")

    def _sparse_hessian(self) -> Part:
        return self._sparse(sparse_hessian(self.builder, self.gradients, self.wrt, self.given), "hessian")

    def _sparse(self, found: tuple[Value, Matrix], label: str) -> Part:
        return Part([found[0]], [label], [("array", "")], (found[1], (None,)))

    def _blocks(self, blocks: list[list[Value]], rows: list[Value], names: list[str], label: str,
                frame: Frame) -> Part:
        """A block of the shapes of its row and its column. Of a complex row, the parts are packed in the last dimension;
        of a complex column they stand there."""
        values, forms = [], []
        for row, line in zip(rows, blocks, strict=True):
            for block, column, leaf in zip(line, self.wrt, self.leaves, strict=True):
                value, shape = cast(block, column.dtype), (*row.shape, *column.shape)
                if is_packed(row):
                    at = row.ndim - 1
                    value = transpose(value, (*range(at), *range(at + 1, len(shape)), at))
                values.append(value)
                forms.append(form_of(value) if is_packed(row) else block_form(shape, leaf))
        return Part(values, [f"{label}_{a}_{b}" for a in names for b in self.names], forms, frame)

    # --- seeds -------------------------------------------------------------------------------------
    def _directions(self) -> list[Value]:
        names, like = self.names, [argument.tree for argument in self.arguments]
        wanted = like[0]
        if isinstance(self.request.argnums, tuple):
            wanted = flatten(tuple(unflatten(a.tree, a.values) for a in self.arguments), "")[2]
        return self._seeds(self.wrt, [*map(is_complex, self.leaves)], wanted, names,
                           "the argument" + "s" * (len(self.arguments) > 1))

    def _seeds(self, like: Sequence[Value], packed: Sequence[bool], tree: TreeDef, paths: Sequence[str],
               what: str) -> list[Value]:
        """The seeds, which must be as the values `like` are, some of them complex; raises `ArgumentTypeError`."""
        seed = self.request.seed_name
        if self.seed_tree != tree:
            raise ArgumentTypeError(f"`{seed}` for `{self.name}` has another structure than {what}: "
                                    f"{_shown(self.seed_tree)} instead of {shown(tree)} (called at {user_line()})")
        found = []
        for given, given_packed, value, wanted, path in zip(self.seeds, self.packed_seeds, like, packed, paths,
                                                            strict=True):
            shape, expected = seen_aval(given, given_packed), seen_aval(value, wanted)
            if shape.shape != expected.shape:
                raise ArgumentTypeError(f"`{seed}` for {path} of `{self.name}` has shape {shape.shape}, not "
                                        f"{expected.shape} (called at {user_line()})")
            if given_packed > wanted or (given.dtype != value.dtype and not given.aval.weak):
                raise ArgumentTypeError(
                    f"`{seed}` for {path} of `{self.name}` has dtype {shape.dtype}, not {expected.dtype} "
                    f"(called at {user_line()}); convert it with astype")
            given = cast(given, value.dtype)
            found.append(packed_real(given) if wanted > given_packed else given)
        return found


def _shown(tree: TreeDef | None) -> str:
    return "nothing" if tree is None else shown(tree)


def _size(values: Sequence[Value]) -> int:
    return sum(v.aval.size for v in values)


# --- many directions at once -------------------------------------------------------------------------

def unit_cotangents(value: Value) -> tuple[Value, int | None]:
    """Every unit vector of the space of `value`, along a new first dimension, and how many; of a lone number 1 itself,
    and None."""
    shape, size = value.shape, value.aval.size
    if size == 1:
        return one(value), None
    steps, stride = [], size
    for d, n in enumerate(shape):
        stride //= max(n, 1)
        steps.append((d, stride))
    index = ((0, tuple(steps)), *((0, ((d, 1),)) for d in range(len(shape))))
    return spread(one(value), (size, *shape), index), size


def _unit_tangents(value: Value) -> tuple[Value | Tangents, int | None]:
    """The same for tangents, which need not be a matrix yet."""
    size = value.aval.size
    return (one(value), None) if size == 1 else (Tangents.unit(one(value)), size)


def _by_columns(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value]) -> list[list[Value]]:
    """The blocks of the Jacobian, a row of them for each output: forward, all directions of an argument at once."""
    columns = []
    for value in wrt:
        if value.aval.size == 0:
            columns.append([full(o, 0, (*o.shape, *value.shape), o.dtype) for o in outputs])
            continue
        seed, length = _unit_tangents(value)
        found = pushforward(builder, outputs, [value], [seed], length)
        columns.append([_column(t, value, length) for t in found])
    return [[column[i] for column in columns] for i in range(len(outputs))]


def _column(rows: Value, value: Value, length: int | None) -> Value:
    """The direction as the last dimensions."""
    if length is None:
        return reshape(rows, (*rows.shape, *value.shape))
    moved = transpose(rows, (*range(1, rows.ndim), 0))
    return reshape(moved, (*moved.shape[:-1], *value.shape))


def _by_rows(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value]) -> list[list[Value]]:
    """The same in reverse, all elements of an output at once."""
    blocks = []
    for output in outputs:
        shape = output.shape
        if output.aval.size == 0 or not wrt:
            blocks.append([full(w, 0, (*shape, *w.shape), w.dtype) for w in wrt])
            continue
        seed, length = unit_cotangents(output)
        blocks.append([reshape(ct, (*shape, *w.shape)) for ct, w in zip(
            pullback(builder, [output], [seed], wrt, length), wrt, strict=True)])
    return blocks


def _second(builder: Builder, gradients: Sequence[Value], wrt: Sequence[Value]) -> list[list[Value]]:
    """The blocks of the Hessian: forward over reverse. A block below the diagonal is computed, its mirror image is its
    transpose."""
    blocks: list[list[Any]] = [[None] * len(wrt) for _ in wrt]
    for j, value in enumerate(wrt):
        if value.aval.size == 0:
            for i, other in enumerate(wrt):
                blocks[i][j] = full(other, 0, (*other.shape, *value.shape), other.dtype)
                blocks[j][i] = full(value, 0, (*value.shape, *other.shape), value.dtype)
            continue
        seed, length = _unit_tangents(value)
        later = [i for i in range(j, len(wrt)) if blocks[i][j] is None]
        found = pushforward(builder, [gradients[i] for i in later], [value], [seed], length)
        for i, rows in zip(later, found, strict=True):
            if i == j:
                blocks[j][j] = _mirrored(rows, value, length)
            else:
                blocks[i][j] = _column(rows, value, length)
                blocks[j][i] = reshape(rows, (*value.shape, *wrt[i].shape))
    return blocks


def _mirrored(rows: Value, value: Value, length: int | None) -> Value:
    """A diagonal block, exactly symmetric."""
    shape = (*value.shape, *value.shape)
    if length is None:
        return reshape(rows, shape)
    square = reshape(rows, (length, length))
    return reshape(tril(square, k=0) + transpose(tril(square, k=-1), (1, 0)), shape)


__all__ = ["Argument", "Derivation", "unit_cotangents"]
