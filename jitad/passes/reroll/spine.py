"""What re-rolling looks at: the *spine* of a recording, as arrays.

Views and constants are folded away: an operand is a *reference* ``(source, view)``, where the source is no view and
`view` is the number of a map in a table (0: the source itself). So ``y[t - 1]`` and ``y[t]``, which two iterations of
a loop share, are references to y, and what is left on the spine is what an iteration computes. Nodes of the spine
that do the same (primitive, params, type of the result) have the same *token*.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from jitad.primitives.view import Map, Term, compose
from jitad.tape.tape import needed
from jitad.tape.types import Node

HEAVY, DEAR = 20, 100  # rows on numbers that a factorization takes to compile; the cost of a row that is one

Form = tuple[tuple[int, ...], tuple[tuple[Term, ...], ...]]         # the shape and the terms of a map
Ref = tuple[int, int]                                               # (source, view)


class Views:
    """Maps by number. Maps of one *form* differ in their offsets alone."""

    def __init__(self) -> None:
        self.forms: list[Form | None] = [None]
        self.form: list[int] = [0]
        self.offsets: list[tuple[int, ...]] = [()]
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._forms: dict[Form, int] = {}

    def intern(self, shape: tuple[int, ...], index: Map) -> int:
        terms = tuple([t for _, t in index])
        form = self._forms.get((shape, terms))
        if form is None:
            form = self._forms[shape, terms] = len(self.forms)
            self.forms.append((shape, terms))
        offsets = tuple([o for o, _ in index])
        number = self._known.get((form, offsets))
        if number is None:
            number = self._known[form, offsets] = len(self.form)
            self.form.append(form)
            self.offsets.append(offsets)
        return number

    def parts(self, number: int) -> tuple[tuple[int, ...], Map]:
        """The shape and the map of view `number`, which is not 0."""
        shape, terms = self.forms[self.form[number]]                # type: ignore[misc]
        return shape, tuple(zip(self.offsets[number], terms, strict=True))

    def through(self, number: int, shape: tuple[int, ...], inner: Map) -> int:
        """View `number` of a view: of `inner`, whose result has `shape`."""
        if not number:
            return self.intern(shape, normal(inner, shape))
        shape, outer = self.parts(number)
        return self.intern(shape, normal(compose(outer, inner), shape))


def normal(index: Map, shape: tuple[int, ...]) -> Map:
    return tuple((offset, tuple(t for t in terms if shape[t[0]] != 1)) for offset, terms in index)


class Spine:
    """The live nodes but views, constants and inputs, in order; `place` is a node's position among them or -1.

    `source` and `view` have the operands of all, those of position m from `start[m]` to `start[m + 1]`; `last` is
    the last position that reads a node of the spine (the number of positions for what is wanted after all).
    """

    def __init__(self, nodes: Sequence[Node], wanted: Iterable[int]):
        self.nodes = nodes
        self.views = Views()
        ends = list(wanted)
        self._refs(needed(nodes, ends))
        operands = [nodes[number].inputs for number in self.members]
        self.start = np.zeros(len(operands) + 1, np.int64)
        np.cumsum([len(inputs) for inputs in operands], out=self.start[1:])
        read = np.fromiter(chain.from_iterable(operands), np.int64, int(self.start[-1]))
        self.member = np.array(self.members, np.int64)
        self.source, self.view = np.array(self._source, np.int64)[read], np.array(self._view, np.int64)[read]
        weights = [HEAVY if (prim := nodes[n].prim).cost >= DEAR and not prim.elementwise else 1 for n in self.members]
        self.weight = np.zeros(len(operands) + 1, np.int64)         # of all before a position
        np.cumsum(weights, out=self.weight[1:])
        self.place = np.full(len(nodes) + 1, -1, np.int64)
        self.place[self.member] = np.arange(len(self.members))
        self.last = np.full(len(self.members) + 1, -1, np.int64)
        readers = np.repeat(np.arange(len(self.members)), np.diff(self.start))
        self.last[self.place[self.source]] = readers                # in order, so that the last one stays
        self.last[self.place[[self._source[e] for e in ends]]] = len(self.members)

    def _refs(self, live: bytearray) -> None:
        self.members: list[int] = []
        self._source = source = list(range(len(self.nodes)))
        self._view = view = [0] * len(self.nodes)
        tokens: list[int] = []
        known: dict[Any, int] = {}
        alike: dict[Any, int] = {}                                  # of nodes without params, by the type itself
        for number, node in enumerate(self.nodes):
            if not live[number]:
                continue
            prim = node.prim
            kind = prim.kind
            if kind == "view":
                params, below = node.params, node.inputs[0]
                source[number] = source[below]
                if view[below]:
                    within = self.views.parts(view[below])[1]
                    index = compose(params["index"], within)
                    view[number] = self.views.intern(params["shape"], normal(index, params["shape"]))
                else:
                    view[number] = self.views.intern(params["shape"], params["index"])
            elif kind != "const" and kind != "input":
                self.members.append(number)
                token = None if node.params else alike.get((prim, id(node.aval), len(node.inputs)))
                if token is None:
                    aval, items = node.aval, tuple(sorted(node.params.items()))
                    key = (prim, items, aval.shape, aval.dtype.num, len(node.inputs))
                    token = known.setdefault(key, len(known))
                    if not items:
                        alike[prim, id(aval), len(node.inputs)] = token
                tokens.append(token)
        self.tokens = np.array(tokens, np.int64)

    def between(self, begin: int, stop: int) -> int:
        """How much there is to compile from position `begin` to `stop`, in rows on numbers."""
        return int(self.weight[stop] - self.weight[begin])

    def ref(self, number: int) -> Ref:
        """The reference that node `number` is."""
        return self._source[number], self._view[number]
