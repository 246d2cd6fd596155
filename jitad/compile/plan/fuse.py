"""Fusion: which values exist in memory, and which roots share loops.

Roots whose longest dimension has the same length share a *group*, one loop over
that axis in blocks, if what they read is there in time: from earlier groups, or
from the same group at the same place of the axis. Inside a group, roots with the
same loops form a *phase*; a root that needs the finished inner loops of another
comes in a later phase. Forward and reverse sweep of a sum meet in one group by
themselves, because the seed is known.

Departing from named axes: an axis is known by its length and by the index with
which a value is read, so that nothing needs to be unified beforehand.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jitad.compile.plan.index import Affine, Indices
from jitad.compile.plan.prepare import wrapped
from jitad.compile.plan.pull import Pull, Survey
from jitad.compile.plan.roots import Check, Root, adds_up, check_root, roots_of, sums, views_of
from jitad.passes.optimise.crossed import private
from jitad.tape.expr import COMPARISONS, Expr
from jitad.tape.tape import Tape
from jitad.tape.types import Node

DEAR = 4          # cost from which a value is stored rather than computed twice
LONG = 32         # length from which a loop is worth vectorising
DEEP = 60         # operations nested in one expression


@dataclass(eq=False)
class Group:
    """Roots that run together. `kind`: ``loop`` over `length`, ``scalar``, ``call``, ``running`` or ``scan``."""

    kind: str
    length: int = 0
    roots: list[Root] = field(default_factory=list)

    def phases(self) -> list[list[Root]]:
        """The roots by phase, in order."""
        found: dict[Any, list[Root]] = {}
        for root in sorted(self.roots, key=lambda r: r.level):
            found.setdefault(root.phase, []).append(root)
        return list(found.values())


@dataclass(eq=False)
class FusionPlan:
    """What `fuse` decides."""

    tape: Tape
    materialised: set[int]
    roots: dict[Any, list[Root]]
    groups: list[Group]


def fuse(tape: Tape, layouts: tuple[str, ...]) -> FusionPlan:
    """The plan of a prepared tape; `layouts` as for `prepare`."""
    summed = sums(tape)
    absorbed = _absorbed(tape, summed)
    materialised = _forced(tape) - absorbed
    plan = _Planner(tape, layouts, materialised, summed).run()
    for _ in range(8):
        more = _worth_storing(plan, absorbed) - materialised
        if not more:
            break
        materialised = materialised | more
        plan = _Planner(tape, layouts, materialised, summed, _untouched(plan, more)).run()
    return plan


def _untouched(plan: FusionPlan, more: set[int]) -> dict[Any, list[Root]]:
    """The roots that need not be analysed again when `more` exists in memory."""
    return {key: roots for key, roots in plan.roots.items() if all(
        more.isdisjoint([number for number, _ in root.evaluated]) for root in roots)}


def _absorbed(tape: Tape, summed: dict[int, list[int]]) -> set[int]:
    """Nodes inside a sum, which have no value of their own."""
    absorbed: set[int] = set()
    for number, leaves in summed.items():
        stack = [i for i in tape.nodes[number].inputs if i not in leaves]
        absorbed.update(i for i in leaves if private(tape, i) and adds_up(tape.nodes[i]))
        while stack:
            i = stack.pop()
            absorbed.add(i)
            stack.extend(j for j in tape.nodes[i].inputs if j not in leaves)
    return absorbed


def _forced(tape: Tape) -> set[int]:
    """The values that must exist: scalars, what cannot be computed element by element, outputs,
    operands of calls, and what is read out of order."""
    forced = {o for o in tape.outputs if not tape.nodes[o].is_input}
    depth = [0] * len(tape.nodes)
    for number, node in enumerate(tape.nodes):
        kind = node.prim.kind
        if not node.prim.virtual or (node.elementwise and node.aval.ndim == 0):
            forced.add(number)
        if kind == "call":
            forced.update(i for i in node.inputs if not tape.nodes[i].is_input)
        if node.body is not None:
            forced.update(views_of(tape, i)[-1] for i in node.inputs)
        if node.prim.accumulate in ("max", "min") and node.prim.below is None:      # not of places
            forced.update(_compared(tape, node.inputs[0]))
        if node.prim.rearranges and node.index_map is None and _takes_time(tape.nodes[node.inputs[0]]):
            forced.add(node.inputs[0])
        if _compares(node):
            forced.update(_read_twice(tape, number))
        if kind == "search":
            forced.add(views_of(tape, node.inputs[0])[-1])
        depth[number] = 1 + max((depth[i] for i in node.inputs if i not in forced), default=0)
        if depth[number] > DEEP and node.elementwise:
            forced.add(number)
    forced.update(sums(tape))
    forced.update(g.node for g in tape.guards)
    return {n for n in forced if not tape.nodes[n].is_leaf}


def _takes_time(node: Node) -> bool:
    """Whether an element of a virtual node is more than one of another."""
    return not node.is_leaf and (node.prim.storable or node.prim.cost > 0)


def _compares(node: Node) -> bool:
    return node.prim.name in COMPARISONS


def _read_twice(tape: Tape, number: int) -> list[int]:
    """The values of which a comparison reads elements at two places, also inside of expressions: an element that is
    computed again, in another order, may have another last bit, and would not be equal to itself."""
    ways: dict[int, set[int]] = {}
    seen: set[int] = set()
    stack = list(tape.nodes[number].inputs)
    while stack and len(seen) < DEEP:
        way = stack.pop()
        source = views_of(tape, way)[-1]
        ways.setdefault(source, set()).add(way)
        if source not in seen and tape.nodes[source].elementwise and tape.nodes[source].aval.ndim:
            stack.extend(tape.nodes[source].inputs)
        seen.add(source)
    return [source for source, found in ways.items() if len(found) > 1 and _takes_time(tape.nodes[source])]


def _compared(tape: Tape, number: int) -> list[int]:
    """The source of `number`, of which an extremum is taken, if it is compared with something too: with the
    extremum, perhaps, to which an element computed again, with another last bit, would not be equal."""
    source = views_of(tape, number)[-1]
    stack = [source] if tape.nodes[source].elementwise else []
    while stack:
        for user in tape.uses[stack.pop()]:
            if _compares(tape.nodes[user]):
                return [source]
            if tape.nodes[user].prim.rearranges:
                stack.append(user)
    return []


class _Planner:
    def __init__(self, tape: Tape, layouts: tuple[str, ...], materialised: set[int],
                 summed: dict[int, list[int]], known: dict[Any, list[Root]] | None = None):
        self.known = known or {}            # roots of an earlier plan, which read the same here
        self.value_axes: dict[Root, int | None] = {}
        self.columns_first = {i for i, layout in zip(tape.inputs, layouts, strict=True) if layout == "F"}
        self.tape, self.materialised, self.summed = tape, materialised, summed
        self.groups: list[Group] = []
        self.roots: dict[Any, list[Root]] = {}

    def run(self) -> FusionPlan:
        for number in sorted(self.materialised):
            if self.tape.nodes[number].picks is not None:
                self.roots[number] = self.roots[self.tape.nodes[number].inputs[0]]
                continue
            known = self.known.get(number)
            pending = known or roots_of(self.tape, number, self.summed.get(number))
            self.roots[number] = []
            for root in pending:
                self._read(root, known is not None)
                self._put_in_group(root)
            self.roots[number] = pending
        return FusionPlan(self.tape, self.materialised, self.roots, self.groups)

    def _read(self, root: Root, known: bool) -> None:
        """Make sure of what the root reads; of checks, that they are there."""
        if not known:
            self._analyse(root)
            return
        root.level = 0
        for number, _ in root.reads:
            if isinstance(number, tuple):
                self._check(number[1], number[2])

    def _analyse(self, root: Root) -> None:
        """Find out what the root reads, and at which indices."""
        if root.kind in ("call", "scan"):
            return
        pull = Survey(self.tape, self.materialised, self._check)
        at = root.at({d: f"d{d}" for d in root.looped})
        root.value(pull, at)
        root.target(pull, at)
        if root.factor is not None:
            root.factor(pull, at)
        root.reads, root.evaluated = list(pull.reads), list(pull.memo)
        root.order = self._order(root)
        if root.kind == "running":
            axis = self.tape.nodes[root.node].params["axis"]      # type: ignore[index]
            root.order = (*(d for d in root.order if d != axis), axis)
        elif root.order:
            longest = max(root.extents[d] for d in root.order)
            root.axis = next(d for d in root.order if root.extents[d] == longest)

    def _check(self, number: int, length: int) -> Check:
        check: Check = ("check", number, length)
        if check not in self.roots:
            known = self.known.get(check)
            self.roots[check] = known or [check_root(check, self.tape)]
            root, = self.roots[check]
            self._read(root, known is not None)
            self._put_in_group(root)
        return check

    def _order(self, root: Root) -> tuple[int, ...]:
        """Loops in the storage order of the largest array that is read with most of the variables."""
        looped = root.looped
        if len(looped) < 2:
            return looped
        best: tuple[int, int] = (1, 0)
        order: list[int] = []
        for number, at in root.reads:
            if isinstance(number, tuple):
                continue
            walk = reversed(at) if number in self.columns_first else at
            names = list(dict.fromkeys(v for i in walk if isinstance(i, Affine) for v, _ in i.terms))
            size = (len(names), self.tape.nodes[number].aval.size)
            if size[0] > 1 and size > best:
                best, order = size, [int(v[1:]) for v in names]
        return tuple([d for d in looped if d not in order] + order)

    def _put_in_group(self, root: Root) -> None:
        kind = root.kind if root.kind in ("call", "running", "scan") else "loop" if root.order else "scalar"
        length = root.extents[root.axis] if root.axis is not None else 0
        earliest = 0
        for number, at in root.reads:
            for made in self.roots.get(number, ()):
                if made.group >= earliest:
                    same = (kind == "scalar" and self.groups[made.group].kind == "scalar") or self._pointwise(
                        made, root, at) or self._checked_there(made, root)
                    earliest = made.group if same else made.group + 1
        for made in root.after:
            together = kind == "scalar" and self.groups[made.group].kind == "scalar"
            earliest = max(earliest, made.group if together else made.group + 1)
        for place in range(earliest, len(self.groups)):
            group = self.groups[place]
            if group.kind == kind and group.length == length and kind in ("loop", "scalar"):
                break
        else:
            place = len(self.groups)
            self.groups.append(Group(kind, length))
        root.group = place
        self.groups[place].roots.append(root)
        root.separate = root.op == "add" and root.kind == "update" and self._scattered(root)
        root.level = self._level(root)

    def _pointwise(self, made: Root, reader: Root, at: Indices) -> bool:
        """Whether `reader` needs of `made` only what the same step of a common axis makes."""
        if made.axis is None or reader.axis is None or made.kind not in ("map", "reduce") or not at:
            return False
        if made.extents[made.axis] != reader.extents[reader.axis] or len(self.roots.get(made.node, [made])) > 1:
            return False
        place = self._value_axis(made)
        index = at[place] if place is not None and place < len(at) else None
        return isinstance(index, Affine) and index.is_variable(f"d{reader.axis}")

    def _checked_there(self, made: Root, reader: Root) -> bool:
        """Whether `made` checks an index array of which `reader` takes just the element of the same step."""
        if made.kind != "check" or made.axis is None or reader.axis is None or (
                made.extents[made.axis] != reader.extents[reader.axis]):
            return False
        index = made.node[1]                                        # type: ignore[index]
        used = [at[made.axis] for number, at in reader.evaluated if number == index or (
            self.tape.nodes[number].prim is wrapped and index in self.tape.nodes[number].inputs)]
        return bool(used) and all(isinstance(i, Affine) and i.is_variable(f"d{reader.axis}") for i in used)

    def _value_axis(self, made: Root) -> int | None:
        """The axis of the made value that is the root's own, if it has it."""
        if made not in self.value_axes:
            pull = Pull(self.tape, self.materialised, _placeholder)
            target = made.target(pull, made.at({d: f"d{d}" for d in made.looped}))
            self.value_axes[made] = next((place for place, index in enumerate(target) if isinstance(
                index, Affine) and index.is_variable(f"d{made.axis}")), None)
        return self.value_axes[made]

    def _scattered(self, root: Root) -> bool:
        """Whether the target's index is computed: such a loop does not vectorise and would keep others from it."""
        pull = Pull(self.tape, self.materialised, _placeholder)
        target = root.target(pull, root.at({d: f"d{d}" for d in root.looped}))
        return not all(isinstance(i, Affine) for i in target) and max(root.extents, default=0) >= LONG

    def _level(self, root: Root) -> int:
        level = 0
        if root.axis is None:
            return level
        for number, at in root.reads:
            for made in self.roots.get(number, ()):
                if made.group != root.group or made is root:
                    continue
                level = max(level, made.level)
                root.level = made.level
                if made.kind != "map" or made.phase != root.phase or not _same_step(made, root, at):
                    level = max(level, made.level + 1)
        return level


def _same_step(made: Root, reader: Root, at: Indices) -> bool:
    """Whether `reader` reads, at every step of loops that both share, just the element that `made` makes there."""
    wanted = {d: f"d{reader.order[p]}" for p, d in enumerate(made.order)}
    return all(isinstance(index, Affine) and (index.is_variable(wanted[d]) if d in wanted else not index.terms)
               for d, index in enumerate(at))


def _placeholder(number: int, at: Indices) -> Expr:
    return Expr("load", (f"%{number}",), "i8")


def _costs(plan: FusionPlan) -> list[int]:
    """For each virtual node the cost of computing one element from what exists."""
    cost = [0] * len(plan.tape.nodes)
    for number, node in enumerate(plan.tape.nodes):
        if node.prim.virtual and not node.is_leaf:
            cost[number] = node.prim.cost + sum(cost[i] for i in node.inputs if i not in plan.materialised)
    return cost


def _worth_storing(plan: FusionPlan, absorbed: set[int]) -> set[int]:
    """Virtual nodes that would be computed in several phases, or again and again inside a loop that
    they do not depend on."""
    tape, cost = plan.tape, _costs(plan)
    repeated = _repeated(plan, cost)
    contexts: list[set[Any]] = [set() for _ in tape.nodes]
    chosen: set[int] = set()
    own: dict[int, set[Any]] = {}
    for number, roots in plan.roots.items():
        phases = {(r.group, r.phase) for r in roots}
        if isinstance(number, int):
            own[number] = phases
        else:
            contexts[number[1]] |= phases
    separate = any(r.separate for roots in plan.roots.values() for r in roots)
    for number in range(len(tape.nodes) - 1, -1, -1):
        node = tape.nodes[number]
        if number in own or node.is_leaf:
            continue
        for user in tape.uses[number]:
            if user in chosen:
                contexts[number].add(("stored", node.aval.shape))
            else:
                contexts[number] |= own[user] if user in own else contexts[user]
        if not node.prim.storable or number in plan.materialised or number in absorbed:
            continue
        dear = cost[number] >= DEAR and len(contexts[number]) > 1
        if node.prim is wrapped:                                    # a block of places is cheap, an array is not
            dear = node.aval.ndim == 1 and len(contexts[number]) > len({group for group, _ in contexts[number]}) == 1
        scattered = separate and cost[number] and any(r.separate for u in tape.uses[number] for r in plan.roots.get(
            u, _absorbing(plan, u)))
        if dear or number in repeated or scattered:
            chosen.add(number)
    return chosen


def _absorbing(plan: FusionPlan, number: int) -> list[Root]:
    """The roots of the sum into which an absorbed node went that adds at computed places."""
    users = plan.tape.uses[number]
    while users and users[0] not in plan.roots:
        users = plan.tape.uses[users[0]]
    node = plan.tape.nodes[number]
    return plan.roots[users[0]] if users and node.prim.scatters and len(node.inputs) > 1 else []


def _repeated(plan: FusionPlan, cost: list[int]) -> set[int]:
    """Nodes evaluated inside a loop around which their value does not change and that hoisting cannot
    reach, and dear ones that hoisting would leave to a loop that does not run in vector lanes."""
    repeated: set[int] = set()
    for roots in plan.roots.values():
        for root in roots:
            if len(root.order) < 2:
                continue
            names = [f"d{d}" for d in root.order]
            for number, at in root.evaluated:
                node = plan.tape.nodes[number]
                if not (node.elementwise or node.prim.cost >= DEAR) or cost[number] < 2 or number in plan.materialised:
                    continue
                if any(isinstance(i, Expr) for i in at):
                    continue
                used = {v for i in at for v in i.variables}          # type: ignore[union-attr]
                hoisted = used == set(names[:len(used)])
                if used and (not hoisted or (len(used) < len(names) and cost[number] >= DEAR)):
                    repeated.add(number)
    return {n for n in repeated if any(u not in repeated for u in plan.tape.uses[n])}
