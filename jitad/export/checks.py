"""Whether a node that was read from a file can be run, whatever the values of its operands.

Shapes and dtypes say it: what a file declares to be large is not made. A node is tried on zeros, and on smaller ones
where its own would be many; rows whose params hold sizes, which do not shrink with the operands, have a rule here.
"""
from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.errors import TapeFileError
from jitad.primitives.core import loop_dtypes
from jitad.primitives.rules import Rules
from jitad.primitives.scan import Form
from jitad.primitives.view import outside
from jitad.tape.evaluate import evaluate_node
from jitad.tape.types import Aval, Node, Primitive

FEW = 1 << 12                                       # elements of operands and result, multiplied: tried as they are
LEAST = 8                                           # sizes below are as they are, where a node is tried on smaller ones
Shape = tuple[int, ...]


@dataclass
class Trial:
    """What reading one file may still cost, in elements that nodes are tried on."""

    left: int = 1 << 22

    def spend(self, elements: int) -> None:
        self.left -= elements
        if self.left < 0:
            raise TapeFileError("it has more nodes than can be checked")


def check(node: Node, operands: Sequence[Node], trial: Trial) -> None:
    """Raise `TapeFileError`, or what the row raises, unless the node can be run."""
    avals = [operand.aval for operand in operands]
    if node.body is not None:
        _check_scan(node)
    elif node.picks is not None:
        _check_pick(node, operands[0])
    elif not node.is_leaf:
        if any(aval.dtype == object for aval in avals):
            raise TapeFileError(f"`{node.prim}` reads the bundle of a scan")
        _check_params(node)
        if node.elementwise:
            _check_elementwise(node.prim, avals)
        else:
            _check_dtypes(node.prim, avals)
        for source, result, index in _maps(node, avals):
            _check_map(source, result, index)
        for axis in (*node.params.get("axes", ()), *[node.params[k] for k in ("axis",) if k in node.params]):
            if not 0 <= number_in(axis) < max(node.aval.ndim, *(aval.ndim for aval in avals)):
                raise TapeFileError(f"`{node.prim}` along an axis {axis} that is not there")
        if (node.prim.indexed or node.prim.stores) and len(node.params["axes"]) != len(avals) - 1 - node.prim.stores:
            raise TapeFileError(f"`{node.prim}` has not one index for each of its axes")
        _try(node, avals, trial)


def number_in(value: Any) -> int:
    """An integer that was read."""
    if type(value) is not int:
        raise TapeFileError(f"{value!r} stands where a number should")
    return value


# --- trials --------------------------------------------------------------------------------------

def _try(node: Node, avals: Sequence[Aval], trial: Trial) -> None:
    """Run the node on zeros: on as many as it has if these are few, or else by its rule, or on fewer."""
    work = math.prod(max(aval.size, 1) for aval in (*avals, node.aval))
    fits = FITS.of(node.prim)
    if work > FEW and fits is not None:
        if not fits(node.params, node.aval.shape, [aval.shape for aval in avals]):
            raise TapeFileError(f"`{node.prim}` of operands that do not fit {dict(node.params)}")
        return
    if work > FEW:
        large = sorted({n for aval in avals for n in aval.shape if n >= LEAST})
        sizes = {n: LEAST + i for i, n in enumerate(large)}
        avals = [Aval(tuple(sizes.get(n, n) for n in aval.shape), aval.dtype, aval.weak) for aval in avals]
        node = Node(node.prim, node.inputs, node.params, node.prim.infer(*avals, **node.params), node.where)
    trial.spend(sum(aval.size for aval in (*avals, node.aval)) + 1)
    with warnings.catch_warnings(), contextlib.suppress(np.linalg.LinAlgError):         # zeros are singular
        warnings.simplefilter("ignore")
        try:
            _evaluate_everywhere(node, avals, 0)
        except ValueError:                                                               # of what must not be false
            _evaluate_everywhere(node, avals, 1)


def _evaluate_everywhere(node: Node, operands: Sequence[Aval], number: int) -> None:
    """Evaluate a node of operands that are that number everywhere."""
    evaluate_node(node, [np.broadcast_to(np.asarray(number, aval.dtype), aval.shape) for aval in operands])


Params = Mapping[str, Any]
FITS: Rules[Callable[[Params, Shape, list[Shape]], bool]] = Rules()
"""Whether params, the shape of the result and those of the operands fit together."""

FITS("view", "spread", "update")(lambda params, result, operands: True)                  # their maps say it
FITS("reshape")(lambda params, result, operands: math.prod(operands[0]) == math.prod(map(number_in, result)))
FITS("positions")(lambda params, result, operands: len(operands[0]) == 1 and 0 <= result[0] <= operands[0][0])
FITS("irdft")(lambda params, result, operands: operands[0][-2:] == (params["n"] // 2 + 1, 2))
FITS("solve_banded", "solve_banded_fails")(lambda params, result, operands: True)        # its types say it


@FITS("scatter")
def _fits_scatter(params: Params, result: Shape, operands: list[Shape]) -> bool:
    (x, *index), axes = operands, params["axes"]
    rest = tuple(number_in(n) for d, n in enumerate(result) if d not in axes)
    return len(axes) == len(set(axes)) == len(index) and all(a < len(result) for a in axes) and (
        min(result) >= 0) and all(i == index[0] for i in index) and x == index[0] + rest


# --- params --------------------------------------------------------------------------------------

def _check_params(node: Node) -> None:
    """Raise unless the params are those with which the row is tested, and of their kinds."""
    needed, kinds, _ = _expected(node.prim)
    if not needed <= {*node.params}:
        raise TapeFileError(f"`{node.prim}` has no {', '.join(sorted(needed - {*node.params}))}")
    for name, value in node.params.items():
        if kinds.get(name) and type(value) not in kinds[name]:
            raise TapeFileError(f"`{node.prim}` of {name}={value!r}")


@functools.cache
def _expected(prim: Primitive) -> tuple[frozenset[str], dict[str, set[type]], list[set[str]]]:
    """The params that all samples of a row have, the types of each, and the kinds of dtypes of each operand."""
    samples = prim.samples(np.random.default_rng(0)) if prim.samples else []
    kinds: dict[str, set[type]] = {}
    for _, params in samples:
        for name, value in params.items():
            kinds.setdefault(name, set()).add(type(value))
    dtypes = [{_kind(np.asarray(inputs[place]).dtype) for inputs, _ in samples if place < len(inputs)}
              for place in range(max((len(inputs) for inputs, _ in samples), default=0))]
    needed = frozenset.intersection(*(frozenset(params) for _, params in samples)) if samples else frozenset()
    return needed, kinds, dtypes


# --- structure -----------------------------------------------------------------------------------

def _check_scan(node: Node) -> None:
    """Raise unless the params of a loop are what they should be; that they fit its operands says its row."""
    form = Form.of(node)
    flags = (form.counter, form.reverse, form.until, form.recompute)
    if min(number_in(form.length), number_in(form.carries)) < 0 or any(type(flag) is not bool for flag in flags):
        raise TapeFileError(f"`{node.prim}` of a length, carries or options that there are not")
    for offset, step in form.scanned:
        number_in(offset), number_in(step)
    types = [form.input(0)] * form.until + [form.input(len(form.body.inputs) - 1)] * form.counter
    wanted = [np.dtype(bool)] * form.until + [np.dtype(np.int64)] * form.counter
    if (form.until and not form.carries) or any(a.shape or a.dtype != d for a, d in zip(types, wanted, strict=True)):
        raise TapeFileError(f"`{node.prim}` whose condition or counter is no number")


def _check_pick(node: Node, bundle: Node) -> None:
    form, index = Form.of(bundle) if bundle.body is not None else None, number_in(node.picks)
    if form is None or not 0 <= index < len(form.body.outputs):
        raise TapeFileError(f"`{node.prim}` of what is no output of a loop")
    if (node.aval.shape, node.aval.dtype) != ((found := form.output(index)).shape, found.dtype):
        raise TapeFileError(f"`{node.prim}` says {node.aval}, and the loop gives {found}")


def _check_elementwise(prim: Primitive, operands: Sequence[Aval]) -> None:
    if len({aval.shape for aval in operands}) != 1:
        raise TapeFileError(f"`{prim}` of arrays of different shapes")
    dtypes = tuple(aval.dtype for aval in operands)
    found = loop_dtypes(prim.ufunc, dtypes) if prim.ufunc is not None else prim.resolve and prim.resolve(*dtypes)
    if found and any(a != b for a, b in zip(found, dtypes, strict=False)):
        raise TapeFileError(f"`{prim}` does not compute in {', '.join(map(str, dtypes))}")


def _check_dtypes(prim: Primitive, operands: Sequence[Aval]) -> None:
    """Raise unless a row has code for these dtypes: data of one dtype, of the kinds it is tested with or, where it only
    moves or adds them, of any; and integers where it takes places."""
    kinds = _expected(prim)[2] or [{"f"}]
    free = prim.moves or prim.adds or prim.shape_only
    data = set()
    for place, aval in enumerate(operands):
        known = kinds[min(place, len(kinds) - 1)]
        if place and known == {"int64"} and free:                   # places: of any integers
            known = {aval.dtype.name} if aval.dtype.kind in "iu" else known
        elif free or aval.dtype.kind == "f":
            data.add(aval.dtype)
        if _kind(aval.dtype) not in known and (not free or known == {"int64"}):
            raise TapeFileError(f"`{prim}` does not compute in {aval.dtype}")
    if len(data) > 1 and not prim.shape_only:
        raise TapeFileError(f"`{prim}` of data of {len(data)} dtypes")


def _kind(dtype: np.dtype[Any]) -> str:
    """Floats of both sizes are of a kind, integers are not."""
    return dtype.name if dtype.kind in "iu" else dtype.kind


def _maps(node: Node, operands: Sequence[Aval]) -> Iterable[tuple[tuple[int, ...], tuple[int, ...], Any]]:
    """The index maps of a node, each with the shape that it points into and the shape that it walks."""
    rule = MAPS.of(node.prim)
    return () if rule is None else rule(node.params, node.aval.shape, [aval.shape for aval in operands])


MAPS: Rules[Callable[[Mapping[str, Any], Shape, list[Shape]], Iterable[tuple[Shape, Shape, Any]]]] = Rules()
MAPS("view")(lambda params, result, operands: [(operands[0], result, params["index"])])
MAPS("spread")(lambda params, result, operands: [(result, operands[0], params["index"])])
MAPS("update")(lambda params, result, operands: [
    (operands[0], shape, index) for shape, index in zip(operands[1:], params["indices"], strict=True)])


def _check_map(source: tuple[int, ...], walked: tuple[int, ...], index: Any) -> None:
    """Raise unless every element that the map points at exists."""
    index = tuple((number_in(offset), tuple((number_in(dim), number_in(step)) for dim, step in terms))
                  for offset, terms in index)
    wrong = outside(source, walked, index)
    if wrong:
        raise TapeFileError(wrong)
