"""The data types of the whole library: `Aval` (shape and dtype of a value), `Primitive` (one row of the table of
operations), `Node` (one application of a primitive) and what they are made of.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jitad.tape.expr import Expr

TABLE: dict[str, Primitive] = {}                         # of all rows by name, filled by `jitad.primitives`


@dataclass(frozen=True, slots=True)
class Aval:
    """Shape and dtype of a value. `weak` marks what came from a Python number and
    so, as in NumPy, does not raise the precision of what it meets."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        short = {"float64": "f8", "float32": "f4", "int64": "i8", "bool": "b1"}.get(self.dtype.name, self.dtype.name)
        if self.dtype == object:
            return f"bundle of {self.shape[0]}"
        return f"{short}[{','.join(map(str, self.shape))}]"


class Where(NamedTuple):
    """A line of the user's code."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    def derived(self) -> Where:
        """The same for a node of the derivative."""
        return DerivedWhere(*self)


class DerivedWhere(Where):
    """The line that a node of a derivative belongs to."""

    __slots__ = ()

    def derived(self) -> Where:
        return self


class Guard(NamedTuple):
    """The tape is right only while node `node` (0-d) has the value `expected`, as it had when the code at
    `where` asked for it."""

    node: int
    expected: bool | int
    where: Where | None


class Constant:
    """An array on the tape, compared by content so that equal constants are one node."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any):
        array = np.array(value)
        array.setflags(write=False)
        self.value = array
        self._key = (array.shape, array.dtype.str, array.tobytes())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    def __repr__(self) -> str:
        if self.value.size == 1:
            return repr(self.value.item())
        return f"<{self.value.dtype}{list(self.value.shape)}>"


@dataclass(eq=False)
class Primitive:
    """One row of the table: all that is known of an operation.

    `evaluate(*arrays, **params)` is the meaning; `infer(*avals, **params)` the
    result's `Aval`; `vjp(ct, y, *inputs, **params)` gives a cotangent (or None)
    for each input; `jvp(tangents, y, *inputs, **params)` the tangent, where
    absent tangents are None. `partials(y, *inputs)`, for elementwise rows, stands
    for both. `samples(rng)` yields `(inputs, params)` for the derived tests.
    `batch(prim, operands, length, **params)`, for rows of kind ``call``, applies the row to
    a batch: `operands` are pairs of a value and whether its first dimension is the batch's
    (without it, a loop over the batch does; other kinds have the rules of `jitad.passes.batching.rules`).
    Without any trait a row is of kind ``call``, and nothing is taken for granted of it.
    """

    name: str
    evaluate: Callable[..., Any]
    infer: Callable[..., Aval]
    kind: str = "call"
    vjp: Callable[..., Sequence[Any]] | None = None
    jvp: Callable[..., Any] | None = None
    partials: Callable[..., Any] | None = None
    scalar: Callable[..., Expr] | None = None
    ufunc: np.ufunc | None = None
    cost: int = 1                                        # of one element, in additions
    batch: Callable[..., Any] | None = None
    core: int = 2                                        # last dimensions of an operand of one example, of matrices
    samples: Callable[[np.random.Generator], list[tuple[tuple[Any, ...], dict[str, Any]]]] | None = None

    # --- how operands come on the tape ---
    enter: Callable[..., int] | None = None              # `(builder, prim, operands, params)`: the node, if operands
    #                                                      are cast and broadcast before; see `primitives.core`
    resolve: Callable[..., tuple[np.dtype[Any], ...]] | None = None   # loop dtypes of an elementwise row, if no `ufunc`

    # --- traits of the operation ---
    can_fail: bool | Callable[[Node], bool] = True       # whether evaluating it may raise, for some numbers
    virtual: bool = False                                # computed element by element, where it is read
    moves: bool = False                                  # its elements are operands' elements, sums of them, and zeros
    adds: bool = False                                   # its elements are sums of operands' elements, may be weighted
    tame: bool | Callable[..., bool] = False             # derivatives are finite where it is: or whether, for arrays of
    #                                                      the operands that are constants (else None)
    unbounded: bool = False                              # a derivative is not finite where an operand is not
    leaf: bool = False                                   # computes nothing
    shows: bool = False                                  # every element is one of the operand's, by its place alone
    loops: bool = False                                  # runs a tape, its param `body`, step by step
    picks: bool = False                                  # takes the output numbered by its param `index` out of a loop
    mapped: bool = False                                 # its param `index` is an index map (see `primitives.view`)
    indexed: bool = False                                # all operands but the first are integer arrays of places
    stores: bool = False                                 # the second operand is stored in the first one, at places
    #                                                      that the others have
    shape_only: bool = False                             # of its operands only the shapes matter
    stops: bool = False                                  # has no derivative, whatever its operands have
    instead: Callable[..., Any] | None = None            # `(builder, inputs, params)`: the same value, of rows that
    #                                                      matter to differentiation alone, once that is over
    overflows: bool = False                              # may be infinite for finite numbers of usual size
    commutes: bool = False                               # the order of its two operands does not matter
    separable: bool | Callable[[Sequence[bool]], bool] = False   # a batch at once costs what its examples cost: or
    #                                                      whether, for which operands are a batch

    # --- how the compiler makes it ---
    rearranges: bool = False                             # each element is one of the first operand's
    scatters: bool = False                               # its operand's elements are added up in an array of zeros
    counting: bool = False                               # elements depend on more than the operands' at the same place
    storable: bool = False                               # virtual, but stored where it is read often

    # --- what is known of the result ---
    accumulate: str = ""                                 # the operation by which it gathers up elements
    identity: float | bool = 0                           # the result over nothing, of a reduction
    lower: bool = False                                  # of a triangle, that it is the lower one
    below: Callable[..., int] | None = None              # `(*inputs, **params)`: integers are in 0 .. below - 1
    distinct: bool = False                               # its integers are all different along the last axis
    given: bool = False                                  # an array from outside, or what stands for one
    trusts: str = ""                                     # why it must not be in a file: what it is, or is made of

    # --- how a compiled routine is called ---
    numbers: Callable[..., tuple[float, ...]] | None = None  # `(*avals, aval)`: the lengths that it is given
    sides: Callable[..., tuple[float, ...]] | None = None    # the same as `(shapes, params)`, of a routine of matrices

    factored: Callable[[Mapping[str, Any], bool], tuple[Primitive, dict[str, Any]] | None] | None = None
    #                                                      `(params, transposed)`: the row, and its params, that does
    #                                                      the same with the factors of a matrix, or of its transpose
    values: Primitive | None = None                      # the row that gives but the first column of the result

    # --- what the derived tests must know ---
    fixed: tuple[int, ...] = ()                          # inputs without a derivative
    refuses: bool = False                                # a second derivative may be refused
    symmetric: tuple[int, ...] = ()                      # inputs that are moved as symmetric matrices only
    pointer: bool = False                                # its code computes in float64 and rounds

    def __post_init__(self) -> None:
        if self.name in TABLE:
            raise ValueError(f"the primitive {self.name!r} has a row already")
        TABLE[self.name] = self
        self.elementwise = self.kind == "elementwise"    # one element of each operand makes one of the result

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """Apply to values (at least one) and arrays; without any value, evaluate."""
        builder = builder_of(operands)
        if builder is None:
            return self.evaluate(*map(np.asarray, operands), **params)
        if self.enter is not None:
            return builder.value(self.enter(builder, self, operands, params))
        return builder.value(builder.apply(self, [builder.lift(o).number for o in operands], params))


class Handle:
    """Stands for node `number` of `builder`: what a row is applied to. `Value` gives it arithmetic."""

    __slots__ = ("builder", "number")
    builder: Any
    number: int


def builder_of(operands: Sequence[Any]) -> Any:
    """The builder of the first value among operands; None if there is none."""
    for operand in operands:
        if isinstance(operand, Handle):
            return operand.builder
    return None


INPUT = Primitive("input", evaluate=lambda: None, infer=lambda: None, kind="input",           # type: ignore[arg-type,return-value]
                  leaf=True, can_fail=False, virtual=True, tame=True, given=True)
CONST = Primitive("const", evaluate=lambda value: value.value, infer=lambda value: None, kind="const",  # type: ignore[arg-type,return-value]
                  leaf=True, can_fail=False, virtual=True, tame=True, separable=True)

@dataclass(slots=True, eq=False)
class Node:
    """`prim` applied to the nodes numbered `inputs`; `where` is the user's line. Never changed once it is made; not
    `frozen` because that takes a second for a million nodes."""

    prim: Primitive
    inputs: tuple[int, ...]
    params: Mapping[str, Any]
    aval: Aval
    where: Where | None = None

    @property
    def constant(self) -> np.ndarray | None:
        """The array of a constant; None if the node is none."""
        return self.params["value"].value if self.prim is CONST else None

    @property
    def is_input(self) -> bool:
        return self.prim is INPUT

    @property
    def is_leaf(self) -> bool:
        """Whether the node computes nothing: an input or a constant."""
        return self.prim.leaf

    @property
    def index_map(self) -> Any:
        """The map through which a view shows its operand; None if the node is no view."""
        return self.params["index"] if self.prim.mapped and self.prim.shows else None

    @property
    def body(self) -> Any:
        """The tape of one step of a loop; None if the node is no loop."""
        return self.params["body"] if self.prim.loops else None

    @property
    def picks(self) -> int | None:
        """Which output of a loop the node is; None if it is none."""
        return self.params["index"] if self.prim.picks else None

    @property
    def elementwise(self) -> bool:
        return self.prim.elementwise

    @property
    def group(self) -> str:
        """What the node does, for those who look at it: one of the groups that `jitad.tape.display` has colours for."""
        row = self.prim
        return ("given" if row.leaf or row.given else "loop" if row.loops or row.picks else
                "elements" if row.elementwise else "order" if row.rearranges or row.moves or row.shape_only else
                "sums" if row.adds or row.accumulate else "routine")

    @property
    def can_fail(self) -> bool:
        """Whether evaluating the node may raise, for some numbers."""
        found = self.prim.can_fail
        return found if isinstance(found, bool) else found(self)


def seen_through(nodes: Sequence[Node], node: Node) -> Node:
    """What a view, or a view of a view, shows; any other node itself."""
    while node.index_map is not None:
        node = nodes[node.inputs[0]]
    return node
