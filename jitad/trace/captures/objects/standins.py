"""Stand-ins: what recorded code gets in place of captured modules, objects, classes and dicts.

Each knows the thing it stands for, the path on which it was reached, and the `Captures` of the recording. A
read through it is noted there under the path one step further; a write raises `MutationError`.
"""
from __future__ import annotations

import copy
import operator
import sys
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, NoReturn

import optree

from jitad.cache.keys.captures import Path
from jitad.errors import CaptureError, MutationError
from jitad.tape.builder import Value
from jitad.trace.captures.objects import lookup
from jitad.trace.captures.objects.classes import original_of
from jitad.trace.captures.objects.copying import copier
from jitad.trace.pytree import NAMESPACE
from jitad.trace.where import user_line

__all__ = ["DictView", "ModuleView", "ObjectView", "Poison", "mutation", "object_view", "state_of",
           "view_super"]


def mutation(what: str) -> MutationError:
    return MutationError(f"{what} is changed at {user_line(3)} while the function is recorded. The change would be "
                         "lost in later calls, which run compiled code; return the new value instead.")


# --- what cannot be followed ----------------------------------------------------------------

def _raising(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise object.__getattribute__(self, "_jitad_error")()


class Poison:
    """A captured value that can be neither an input nor a guard: the first use of it raises, but for `is`, of which
    Python does not tell the object."""

    __slots__ = ("_jitad_error",)

    def __init__(self, error: Callable[[], Exception]) -> None:
        object.__setattr__(self, "_jitad_error", error)


_OPERATORS = """add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand
or ror xor rxor lt le gt ge eq ne neg pos abs invert bool int float complex index len iter next contains getitem setitem
delitem call enter exit array array_ufunc array_function str format round hash""".split()

for _name in ("__getattribute__", "__setattr__", *(f"__{op}__" for op in _OPERATORS)):
    setattr(Poison, _name, _raising)


# --- modules --------------------------------------------------------------------------------

class ModuleView(ModuleType):
    """A module in recorded code: SciPy functions are replaced by traceable ones, impure ones refused; reads of a
    user's module are captures."""

    def __init__(self, captures: Any, module: ModuleType, path: Path | None) -> None:
        super().__init__(module.__name__, module.__doc__)
        set_ = super().__setattr__
        for name in ("__package__", "__spec__", "__loader__"):
            set_(name, getattr(module, name, None))
        set_("_jitad_state", (captures, module, path))

    def __getattr__(self, name: str) -> Any:
        captures, module, path = self._jitad_state
        value = captures.module_attribute(module, path, name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise mutation(f"attribute `{name}` of module `{self.__name__}`")

    def __delattr__(self, name: str) -> None:
        raise mutation(f"attribute `{name}` of module `{self.__name__}`")

    @property
    def __dict__(self) -> Any:                           # type: ignore[override]
        captures, module, path = self._jitad_state
        return captures.module_attribute(module, path, "__dict__")

    def __dir__(self) -> list[str]:
        return dir(self._jitad_state[1])


# --- objects --------------------------------------------------------------------------------

class ObjectView:
    """An instance of a user's class in recorded code; methods and properties run as copies on the stand-in."""

    __slots__ = ("_jitad_state",)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise CaptureError(f"an instance is made by `type(x)(...)` of a captured object at {user_line(2)}; name the "
                           "class instead")

    def __getattribute__(self, name: str) -> Any:
        captures, value, path = object.__getattribute__(self, "_jitad_state")
        if name == "__class__":
            if "__class__" in _caller(2).f_code.co_names:  # read as an attribute, not by isinstance
                return captures.take(type(value), path.step("type"))
            return type(value)
        if name in ("__copy__", "__deepcopy__") and not hasattr(type(value), name):
            return copier(captures, self, value, path, name)
        if captures.is_static(at := path.step("attr", name)):
            return captures.take(getattr(value, name), at)
        return lookup.attribute(captures, self, value, path, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise mutation(f"`{state_of(self)[2].step('attr', name).expression()}`")

    def __delattr__(self, name: str) -> None:
        raise mutation(f"`{state_of(self)[2].step('attr', name).expression()}`")

    def __copy__(self) -> Any:
        return ObjectView.__getattribute__(self, "__copy__")()

    def __eq__(self, other: object) -> bool:
        captures, value, path = state_of(self)
        same = value is captures.original(other)
        if same and not isinstance(other, ObjectView):
            raise captures.error(path, "is compared with itself, found in another way, which cannot be watched")
        if not (same and state_of(other)[2] == path):
            _named(captures, self, other)
        return same

    def __hash__(self) -> int:
        _named(state_of(self)[0], self)
        return object.__hash__(state_of(self)[1])

    def __repr__(self) -> str:
        captures, value, path = state_of(self)
        return object.__repr__(captures.static(value, path))       # which has its place in memory


def state_of(view: Any) -> tuple[Any, Any, Path]:
    """(captures, value, path) of the stand-in for an object."""
    return object.__getattribute__(view, "_jitad_state")


def _caller(depth: int) -> FrameType:
    return sys._getframe(depth)


_VIEW_CLASSES: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
_SPECIAL = [f"__{op}__" for op in _OPERATORS if op not in ("array_ufunc", "array_function")] + [
    "__iadd__", "__isub__", "__imul__", "__reversed__", "__divmod__", "__repr__",
    "__copy__"]


def object_view(captures: Any, value: Any, path: Path) -> ObjectView:
    """The stand-in for an instance; its class has the special methods that the instance's class has."""
    cls = type(value)
    view_class = _VIEW_CLASSES.get(cls)
    if view_class is None:
        names: dict[str, Any] = {"__jitad_class__": weakref.ref(cls)}
        for name in _SPECIAL:
            owner = next((c for c in cls.__mro__ if name in vars(c)), object)
            if owner is not object:
                names[name] = None if vars(owner)[name] is None else _forward(name)
        if "__dataclass_fields__" in dir(cls):
            names["__dataclass_fields__"] = cls.__dataclass_fields__  # type: ignore[attr-defined]
        view_class = _VIEW_CLASSES[cls] = type(cls.__name__, (ObjectView,), {"__slots__": (), **names})
    view: ObjectView = object.__new__(view_class)
    object.__setattr__(view, "_jitad_state", (captures, value, path))
    return view


def _forward(name: str) -> Callable[..., Any]:
    converted = _CONVERTED.get(name)

    def special(self: Any, *args: Any, **kwargs: Any) -> Any:
        captures, value, path = state_of(self)
        result = lookup.special(captures, self, value, path, name)(*args, **kwargs)
        return converted(result) if converted is not None and isinstance(result, Value) else result

    return special


# What Python takes nothing but its own numbers from.
_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "__bool__": bool, "__float__": float, "__int__": int, "__len__": operator.index, "__index__": operator.index}


# --- super ---------------------------------------------------------------------------------

class _SuperView:
    """What ``super()`` gives in a method that runs on a stand-in."""

    __slots__ = ("_jitad_super",)

    def __init__(self, cls: type, view: ObjectView) -> None:
        object.__setattr__(self, "_jitad_super", (cls, view))

    def __getattribute__(self, name: str) -> Any:
        cls, view = object.__getattribute__(self, "_jitad_super")
        captures, value, path = state_of(view)
        return lookup.super_attribute(captures, view, cls, value, path, name)


def view_super(*args: Any) -> Any:
    """The builtin ``super`` for recorded code."""
    if not args:
        frame = sys._getframe(1)
        code, names = frame.f_code, frame.f_locals
        if "__class__" not in names or not code.co_argcount:
            raise RuntimeError("super(): no arguments")
        args = (names["__class__"], names[code.co_varnames[0]])
    cls, *rest = args
    if rest and isinstance(rest[0], ObjectView):
        return _SuperView(original_of(cls), rest[0])
    return super(cls, *rest)  # type: ignore[misc]


# --- dicts ----------------------------------------------------------------------------------

def _named(captures: Any, *objects: Any) -> Any:
    """Note that it counts which objects these are, as of keys; return what the first stands for."""
    for thing in objects:
        if isinstance(thing, ObjectView):
            _, value, path = state_of(thing)
            captures.static(value, path)
    return captures.original(objects[0])


class DictView(dict):
    """A captured dict in recorded code: each item is a capture when it is read; going through the keys guards them."""

    def __init__(self, captures: Any, value: dict[Any, Any], path: Path) -> None:
        self._jitad_state = (captures, value, path)
        self._jitad_taken: set[Any] = set()
        # C code that goes past the methods below must not find an empty dict.
        poison = Poison(lambda: CaptureError(f"the captured dict {path} is read at {user_line(3)} in a way that "
                                             "cannot be followed; pass it as an argument"))
        super().__init__(dict.fromkeys(value, poison))

    @property                                                       # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._jitad_state[1])

    def _keys(self) -> tuple[Any, ...]:
        captures, value, path = self._jitad_state
        keys = tuple(value)
        captures.guard(keys, path.step("keys"))
        return keys

    def __getitem__(self, key: Any) -> Any:
        captures, value, path = self._jitad_state
        key = _named(captures, key)
        if key not in self._jitad_taken:
            if key not in value:
                self._keys()
                if hasattr(type(value), "__missing__"):
                    raise mutation(f"the missing item {key!r} of `{path.expression()}`")
                raise KeyError(key)
            super().__setitem__(key, captures.take(value[key], path.step("item", key)))
            self._jitad_taken.add(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        captures, value, _ = self._jitad_state
        if _named(captures, key) in value:
            return self[key]
        self._keys()
        return default

    def __contains__(self, key: Any) -> bool:
        return _named(self._jitad_state[0], key) in dict.fromkeys(self._keys())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __bool__(self) -> bool:
        return bool(self._keys())

    def copy(self) -> dict[Any, Any]:
        return self._fresh({key: self[key] for key in self._keys()})

    def _fresh(self, items: dict[Any, Any]) -> Any:
        """A dict of the recording, of the kind that this is."""
        captures, value, path = self._jitad_state
        if isinstance(value, defaultdict):
            return defaultdict(captures.take(value.default_factory, path.step("attr", "default_factory")), items)
        return OrderedDict(items) if isinstance(value, OrderedDict) else items

    def __copy__(self) -> dict[Any, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return self._fresh({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def keys(self) -> Any:
        return dict.fromkeys(self._keys()).keys()

    def values(self) -> Any:
        return self.copy().values()

    def items(self) -> Any:
        return self.copy().items()

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        return self.copy() != other

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __repr__(self) -> str:
        return repr(self.copy())

    __hash__ = None  # type: ignore[assignment]


def _no_change(self: DictView, *args: Any, **kwargs: Any) -> NoReturn:
    raise mutation(f"the captured dict `{self._jitad_state[2].expression()}`")


for _name in "__setitem__ __delitem__ __ior__ update pop popitem clear setdefault".split():
    setattr(DictView, _name, _no_change)


def _flatten(view: Any) -> tuple[list[Any], Any, Any]:
    keys = view._keys()
    return [view[key] for key in keys], keys, keys


def _unflatten(keys: Any, values: Any) -> Any:
    return dict(zip(keys, values, strict=True))


optree.register_pytree_node(DictView, _flatten, _unflatten, namespace=NAMESPACE)
