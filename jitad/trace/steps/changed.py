"""Objects that the steps of a loop change: arrays that are written, lists that grow."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.arrays.storage import Storage
from jitad.trace.captures.objects.standins import Poison
from jitad.trace.dispatch import plain
from jitad.trace.pytree import leaves_of
from jitad.trace.steps.held import leaves_in, taken
from jitad.trace.steps.known import WHOLE
from jitad.trace.steps.variant import Cell, Ends, Holders
from jitad.trace.values.local import LocalArray

__all__ = ["Growing", "Grown", "Stored", "cell_of", "containers", "holders_of", "identity_of", "is_array",
           "notice", "one_of_each", "shared", "storage_of"]


@dataclass(eq=False)
class Stored:
    """An array that is written: in each step its storage holds the placeholder of `cell` at first."""

    storage: Storage
    cell: Cell


@dataclass(eq=False)
class Grown:
    """A list that grows: what stands for it in a step, and the numbers that the steps of the call have appended."""

    name: str
    real: list[Any]
    stand_in: Growing
    numbers: list[list[Any]] = field(default_factory=list)


class Growing(list):
    """A list in a step of a loop: things can be appended, and that is all."""

    def __init__(self, refuse: Callable[[], None], keep: Callable[[Any], None]) -> None:
        super().__init__()
        self.refuse, self.keep = refuse, keep
        self.things: list[Any] = []                      # what the step has appended

    def rows(self) -> list[Ends]:
        """What has been appended, as it is at the end of the step."""
        found = []
        for thing in self.things:
            leaves, tree = leaves_of(thing)
            for leaf in leaves:
                self.keep(leaf)
            found.append((tree, [plain(leaf) for leaf in leaves]))
        return found


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Growing, *args: Any, **kwargs: Any) -> Any:
        self.refuse()
    return method


def _append(self: Growing, x: Any) -> None:
    for leaf in leaves_of(x)[0]:
        self.keep(leaf)
    self.things.append(x)


Growing.append = _append                                 # type: ignore[method-assign, assignment]
for _name in """__getitem__ __setitem__ __delitem__ __len__ __iter__ __reversed__ __contains__ __add__ __iadd__ __mul__
__imul__ __rmul__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __repr__ clear copy count
extend index insert pop remove
reverse sort""".split():
    setattr(Growing, _name, _refusing(_name))
Growing.__hash__ = None                                  # type: ignore[assignment]


def is_array(thing: Any) -> bool:
    """Whether a variable holds an array that can be written."""
    return type(thing) is LocalArray or (
        type(thing) is not Poison and isinstance(thing, Value) and hasattr(thing, "storage") and bool(thing.ndim))


def storage_of(recorder: Any, array: Any, trace: bool = False) -> Storage | None:
    """The memory of an array, if it is on the tape; with `trace` it is put there."""
    if type(array) is LocalArray:
        if array.memory.storage is None and trace and array.array.dtype.kind in "fiub":
            array.memory.trace(recorder)
        return None if array.memory.imaginary is not None else array.memory.storage     # type: ignore[no-any-return]
    if not is_array(array):
        return None
    return array.home if trace else array.storage        # type: ignore[no-any-return]


def identity_of(thing: Any) -> int | None:
    """What tells arrays apart that can be written: two variables with one identity are one array, or share elements."""
    if type(thing) is LocalArray:
        return id(thing.memory if thing.memory.storage is None else thing.memory.storage)
    if type(thing) is Poison or not isinstance(thing, Value) or getattr(thing, "is_number", True):
        return None
    storage = getattr(thing, "storage", None)
    if storage is not None:
        return None if storage.owner else id(storage)
    return None if thing.node.prim.given and thing.number in thing.builder.inputs else id(thing)


def containers(value: Any) -> list[Any]:
    """The lists, dicts and sets that a value is, or has in it."""
    if not issubclass(type(value), (list, tuple, dict, set)):    # a `Poison` is asked nothing
        return []
    inside = [] if isinstance(value, set) else value.values() if isinstance(value, dict) else value
    return [*([] if isinstance(value, tuple) else [value]), *(x for part in inside for x in containers(part))]


def one_of_each(run: Any, held: list[Any]) -> list[Any]:
    """Of variables that no step assigns those that are needed, so that each container that is written is in one."""
    needed: list[Any] = []
    kept = {id(x) for slot in run.slots if slot.kept for x in slot.objects}
    count = sum(len(slot.objects) for slot in run.slots if slot.kept)
    for slot in sorted(held, key=lambda slot: -len(slot.objects)):
        ours = {id(x) for x in slot.objects}
        if not ours <= kept:
            needed.append(slot)
            count += len(ours)
            kept |= ours
    others = {id(x) for slot in run.slots if not slot.kept for x in slot.objects}
    if count > len(kept) or not others.isdisjoint(kept):
        run.marks.unfit(run.known, "one list, dict or object has several names")
    return needed


def holders_of(run: Any, names: dict[str, Any], after: Any) -> Holders:
    """What holds the containers at the end of a step, if each goes on in one variable alone."""
    refuse = lambda: run.marks.unfit(run.known, "one list, dict or set has several names")
    appended = {id(x) for grown in run.grown for thing in grown.stand_in.things for x in containers(thing)}
    found = Holders()
    of: dict[int, str] = {}                              # the variable that a container is
    reached = {*map(id, after.held)}
    for slot in sorted(run.slots, key=lambda slot: slot.fresh):
        value = names.get(slot.name)
        objects = containers(value) if slot.fresh else taken(value).objects if slot.objects else []
        if objects and slot.fresh and of.get(id(value)):
            found.twins[slot.name] = of[id(value)]
            continue
        ours = {id(x) for x in (slot.objects if slot.kept else ())}
        if any(id(x) in of or (id(x) in reached and id(x) not in ours) for x in objects):
            refuse()
        of |= {id(x): slot.name if x is value else "" for x in objects}
        if slot.objects and (slot.kept or not slot.alone):
            found.stays[slot.name] = slot.stays(objects)
            if slot.kept and not found.stays[slot.name]:
                refuse()
            if slot.written and not slot.kept:
                run.hold({slot.name: {WHOLE}})
        if not appended.isdisjoint(map(id, objects)):
            found.appended.add(slot.name)
        if slot.written:
            found.written.add(slot.name)
    return found


def notice(run: Any, names: dict[str, Any], after: Any) -> None:
    """Something has changed that can be reached from the variables."""
    ids = after.changed(run.before)
    held: dict[str, set[int]] = {}
    for name, thing in names.items():
        if not name.startswith(".") and ids.intersection(map(id, taken(thing).objects)):
            grows = type(thing) is list and name in run.known.loop.changed and (
                len(after.pictures[id(thing)]) > len(run.before.pictures[id(thing)]))
            if grows and name not in run.known.stored | {*run.known.held}:
                run.known.stored.add(name)
                run.marks.start_over()
            held[name] = {WHOLE}
    if held:
        run.hold(held)
    run.changes([n for n in run.known.loop.changeable if is_array(names.get(n))])


def shared(names: dict[str, Any]) -> set[int]:
    """The identities that several variables have."""
    found: dict[int, int] = {}
    for name, value in names.items():
        if not name.startswith(".") and type(value) is not Poison:
            for thing in leaves_in(value):
                one = identity_of(thing)
                if one is not None:
                    found[one] = found.get(one, 0) + 1
    return {one for one, count in found.items() if count > 1}


def cell_of(recorder: Any, storage: Storage) -> Cell:
    first = Value(recorder, storage.read(storage.whole))
    return Cell(Aval(storage.shape, storage.dtype), True, first, recorder.concrete(first.number))
