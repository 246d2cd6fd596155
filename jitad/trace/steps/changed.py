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
from jitad.trace.steps.variant import Cell, Ends
from jitad.trace.values.local import LocalArray

__all__ = ["Growing", "Grown", "Stored", "cell_of", "containers", "identity_of", "is_array", "shared", "storage_of"]


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
        self.made: list[Ends] = []


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Growing, *args: Any, **kwargs: Any) -> Any:
        self.refuse()
    return method


def _append(self: Growing, x: Any) -> None:
    leaves, tree = leaves_of(x)
    for leaf in leaves:
        self.keep(leaf)
    self.made.append((tree, [plain(leaf) for leaf in leaves]))


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


def shared(names: dict[str, Any]) -> set[int]:
    """The identities that several variables have."""
    found: dict[int, int] = {}
    for name, value in names.items():
        if not name.startswith(".") and type(value) is not Poison:
            for thing in leaves_of(value)[0] if isinstance(value, (list, tuple, dict)) else (value,):
                one = identity_of(thing)
                if one is not None:
                    found[one] = found.get(one, 0) + 1
    return {one for one, count in found.items() if count > 1}


def cell_of(recorder: Any, storage: Storage) -> Cell:
    first = Value(recorder, storage.read(storage.whole))
    return Cell(Aval(storage.shape, storage.dtype), True, first, recorder.concrete(first.number))
