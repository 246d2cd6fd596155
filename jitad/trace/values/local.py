"""`LocalArray`: an array that recorded code makes, concrete until a traced value is stored in it.

What recorded code gets from ``np.zeros`` and its like computes with real memory, as NumPy does, for as long as nothing
traced is stored there. From then on the array and all its views are traced: windows on one `Storage`.

It is no subclass of `numpy.ndarray`, though ``isinstance`` says so: compiled code finds the memory of a subclass
without asking, and would read what was there before. Here every access asks. Memory that was handed out to a library
(`__array__`) is watched: while somebody holds it, nothing traced can be stored.
"""
from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitad.errors import MutationError
from jitad.tape.builder import Builder, Value
from jitad.trace import ufuncs
from jitad.trace.arrays.indexing import is_view
from jitad.trace.arrays.storage import Storage, constant
from jitad.trace.arrays.windows import window_of
from jitad.trace.dispatch import as_value, builder_in, call, not_mutable, noted_line, plain, refused, stand_in
from jitad.trace.values.flat import FlatElements
from jitad.trace.values.pairs import Complex
from jitad.trace.values.tracer import Tracer

__all__ = ["LocalArray", "LocalMemory", "local", "memories"]

KINDS = "biufc"
memories = itertools.count(1)                            # a number for each, in their order


class _Owner(np.ndarray):
    """The owner of local memory. A chain of bases is shortened by NumPy only among arrays of one type, so that the
    views of a plain array on an owner keep that array alive."""

    memory: weakref.ref[LocalMemory]


class LocalMemory:
    """Concrete elements, and the storage that follows them once something traced is stored."""

    __slots__ = ("__weakref__", "exports", "imaginary", "owner", "serial", "start", "storage")

    def __init__(self, array: np.ndarray):
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        self.owner: Any = np.ndarray.__new__(_Owner, array.shape, array.dtype, order=order)
        self.owner[...] = array
        self.owner.memory = weakref.ref(self)
        self.serial = next(memories)
        self.start = self.owner.__array_interface__["data"][0]
        self.exports: list[weakref.ref[np.ndarray]] = []
        self.storage: Storage | None = None                        # of the real parts, if the elements are complex
        self.imaginary: Storage | None = None

    def view(self, like: np.ndarray, start: int) -> np.ndarray:
        """The view of the owner that is to it as `like` is to the address `start`."""
        offset = like.__array_interface__["data"][0] - start
        array = np.ndarray(like.shape, like.dtype, self.owner, offset if like.size else 0, like.strides)
        array.flags.writeable = like.flags.writeable
        return array

    def hand_out(self, array: np.ndarray) -> np.ndarray:
        """A view for others, which is watched with all views that they take of it."""
        handed = self.view(array, self.start)
        self.exports = [r for r in self.exports if r() is not None]
        self.exports.append(weakref.ref(handed))
        return handed

    def trace(self, builder: Builder) -> None:
        """From now on the elements are on the tape."""
        if any(ref() is not None for ref in self.exports):
            gc.collect(0)
        if any(ref() is not None for ref in self.exports):
            raise MutationError(
                f"a traced value is stored, at {builder.where()}, in an array whose memory is shared with an array or "
                "a buffer that a library function made; make the array that is written a copy: a = a.copy()")
        owner = np.asarray(self.owner)
        owner = owner if owner.flags.c_contiguous else owner.T
        parts = (owner.real, owner.imag) if owner.dtype.kind == "c" else (owner,)
        self.storage, *rest = [Storage(constant(builder, np.ascontiguousarray(p)), plain=True) for p in parts]
        self.imaginary = rest[0] if rest else None


def local(result: Any) -> Any:
    """What recorded code gets for a concrete result: its arrays as local arrays."""
    kind = type(result)
    if kind is np.ndarray:
        return _local_array(result)
    if isinstance(result, np.ndarray) and (memory := _memory_of(result)) is not None:
        return memory.hand_out(result.view(np.ndarray)).view(kind)
    if kind is list:
        return [local(r) for r in result]
    if isinstance(result, tuple) and any(isinstance(r, np.ndarray) for r in result):
        items = map(local, result)
        return tuple(items) if kind is tuple else tuple.__new__(kind, items)
    return result


def _base(array: np.ndarray) -> Any:
    base: Any = array
    while not isinstance(base, _Owner) and isinstance(base.base, np.ndarray):
        base = base.base
    return base


def _memory_of(array: np.ndarray) -> LocalMemory | None:
    """The local memory of which a concrete array is a view."""
    base = _base(array)
    return base.memory() if isinstance(base, _Owner) else None


def _local_array(array: np.ndarray) -> Any:
    memory, base = _memory_of(array), _base(array)
    if memory is not None:
        return LocalArray(memory, array) if array.dtype == base.dtype else memory.hand_out(array)
    if not array.flags.writeable or not array.dtype.isnative or array.dtype.kind not in KINDS:
        return array
    if type(base) is np.ndarray and base.base is None and base.dtype == array.dtype and array.size and (
            base.flags.c_contiguous or base.flags.f_contiguous):
        memory = LocalMemory(base)
        return LocalArray(memory, memory.view(array, base.__array_interface__["data"][0]))
    memory = LocalMemory(np.array(array, order="K"))
    return LocalArray(memory, memory.owner.view(np.ndarray))


class LocalArray:
    """See the module. `array` is the real array; `traced` what stands for it once its memory is traced."""

    __slots__ = ("__weakref__", "array", "memory", "traced")
    __array_priority__ = 0.0
    __hash__ = None  # type: ignore[assignment]
    __class__ = property(lambda self: np.ndarray)  # type: ignore[assignment]

    def __init__(self, memory: LocalMemory, array: np.ndarray):
        self.memory, self.array = memory, array
        self.traced: Tracer | None = None

    @property
    def jitad_current(self) -> Any:
        """The traced value or the concrete array that it is now."""
        storage = self.memory.storage
        if storage is None:
            return self.array
        if self.traced is None:
            imaginary = self.memory.imaginary
            self.traced = self._window(storage)
            if imaginary is not None:
                self.traced = Complex(self.traced, self._window(imaginary))
        return self.traced

    def _window(self, storage: Storage) -> Tracer:
        whole = Tracer(storage.builder, storage.base)
        whole.settle_in(storage)
        traced = whole.window_on(window_of(self.array, self.memory.start, self.array.itemsize))
        if not self.array.flags.writeable:
            traced.frozen = "assignment destination is read-only"
        return traced

    def written_by(self, *things: Any) -> Any:
        """What to write into: traced if one of `things` is."""
        builder = builder_in(things)
        if builder is not None and self.memory.storage is None and self.array.flags.writeable:
            self.memory.trace(builder)
        return self.jitad_current

    # --- NumPy's protocols -------------------------------------------------------------------
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.memory.storage is not None:
            return np.asarray(self.jitad_current)                   # raises
        array = self.array
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            return array.astype(dtype or array.dtype)
        return self.memory.hand_out(array)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", ())
        if method == "at":
            return _at(ufunc, inputs)
        inputs, kwargs = plain(inputs), plain(kwargs)
        builder = builder_in(inputs, kwargs, plain(out))
        if builder is None:
            if any(o is not None for o in out):
                kwargs["out"] = plain(tuple(out))
                getattr(ufunc, method)(*inputs, **kwargs)
                return out[0] if len(out) == 1 else out
            return local(getattr(ufunc, method)(*inputs, **kwargs))
        with noted_line(builder):
            return ufuncs.array_ufunc(ufunc, method, *inputs, out=out, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return on_arrays(function, args, kwargs)

    # --- items -------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Any:
        current, index = self.jitad_current, plain(index)
        if isinstance(current, Value) or builder_in(index) is None:
            return local(current[index])
        if is_view(index) and self.array.flags.writeable and stand_in(self.array.shape)[tuple(
                0 if isinstance(e, Value) else e for e in (index if type(index) is tuple else (index,)))].ndim:
            return self.written_by(index)[index]         # of which all writes are known
        return on_tape(builder_in(index), current)[index]

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __setitem__(self, index: Any, value: Any) -> None:
        index, value = plain(index), plain(value)
        self.written_by(index, value)[index] = value

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:                                           # type: ignore[attr-defined]
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))                  # type: ignore[arg-type]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self.copy()                                          # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()                                          # type: ignore[attr-defined]

    @property
    def flat(self) -> Any:
        return FlatElements(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        FlatElements(self)[:] = value

    @property
    def base(self) -> Any:
        """The array that owns the elements, if this is a view (another object each time)."""
        array: Any = self.array
        whole = array.base is self.memory.owner and array.shape == self.memory.owner.shape
        return None if whole else LocalArray(self.memory, self.memory.owner.view(np.ndarray))


def on_tape(builder: Any, array: np.ndarray) -> Any:
    """A concrete array as a constant of the tape."""
    return as_value(builder, array) if array.dtype.kind == "c" else constant(builder, array)


def _at(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> None:
    """``ufunc.at(a, indices, b)``."""
    array, *rest = inputs
    rest = plain(rest)
    target = array.written_by(*rest) if type(array) is LocalArray else array
    if isinstance(target, Value):
        ufuncs.array_ufunc(ufunc, "at", target, *rest)
    elif builder_in(rest) is not None:
        raise not_mutable(builder_in(rest), f"numpy.{ufunc.__name__}.at", "copy the array first: a = np.array(a)")
    else:
        ufunc.at(target, *rest)


WRITERS: frozenset[Any] = frozenset({np.copyto, np.fill_diagonal, np.put, np.place, np.putmask, np.put_along_axis})


def on_arrays(function: Any, args: Any, kwargs: Any) -> Any:
    """A function of NumPy on local arrays, some of which may be traced."""
    if function in WRITERS:
        target, rest = args[0] if args else None, (args[1:], kwargs)
        if type(target) is LocalArray:
            args = (target.written_by(*map(plain, rest)), *args[1:])
    given = kwargs.get("out")
    args, kwargs = plain(args), plain(kwargs)
    if builder_in(args, kwargs) is not None:
        return call(function, *args, **(kwargs if given is None else {**kwargs, "out": given}))
    result = function(*args, **kwargs)
    return given if given is not None and result is kwargs["out"] else local(result)


# --- everything else is that of the array ----------------------------------------------------------

IN_PLACE = frozenset("sort partition fill put resize itemset setfield setflags byteswap".split())


def _method(name: str) -> Callable[..., Any]:
    def method(self: LocalArray, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = plain(args), plain(kwargs)
        current = self.written_by(args, kwargs) if name in IN_PLACE else self.jitad_current
        if current is self.array and (builder := builder_in(args, kwargs)) is not None:
            current = on_tape(builder, current)
        return local(getattr(current, name)(*args, **kwargs))
    method.__name__ = name
    return method


def _operator(name: str) -> Callable[..., Any]:
    def operator(self: LocalArray, *args: Any) -> Any:
        current, args = self.jitad_current, plain(args)
        if args and type(args[0]) in (list, tuple) and (builder := builder_in(args[0])) is not None:
            args = (as_value(builder, args[0]),)
        function = getattr(type(current), name, None)
        return NotImplemented if function is None else local(function(current, *args))
    return operator


def _in_place(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def in_place(self: LocalArray, other: Any) -> Any:
        other = plain(other)
        if self.memory.storage is None and builder_in(other) is not None:
            return self.__array_ufunc__(ufunc, "__call__", self, other, out=(self,))
        current = self.jitad_current
        result = getattr(type(current), name)(current, other)
        return self if result is current else result
    return in_place


def _property(name: str) -> property:
    def getter(self: LocalArray) -> Any:
        current = self.jitad_current
        if name in ("data", "ctypes") and current is self.array:
            current = np.asarray(self)
        return local(getattr(current, name))

    def setter(self: LocalArray, value: Any) -> None:
        if name in ("real", "imag") and self.array.dtype.kind == "c":
            setattr(self.written_by(plain(value)), name, plain(value))
            return
        if self.memory.storage is not None and name != "shape":
            raise refused(self.jitad_current, f"setting .{name} of a traced array", "use a.reshape or a.astype")
        setattr(self.array, name, plain(value))
        self.traced = None
    return property(getter, setter)


_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "pow": np.power,
           "floordiv": np.floor_divide, "mod": np.remainder, "matmul": np.matmul, "and": np.bitwise_and,
           "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift}
_BARE = """neg pos abs invert lt le gt ge eq ne bool float int complex index len divmod rdivmod str repr format
delitem reduce""".split()


def _complete() -> None:
    """Give `LocalArray` what else an array has."""
    for short, ufunc in _UFUNCS.items():
        setattr(LocalArray, f"__i{short}__", _in_place(f"__i{short}__", ufunc))
    for short in [*_UFUNCS, *(f"r{s}" for s in _UFUNCS), *_BARE]:
        setattr(LocalArray, f"__{short}__", _operator(f"__{short}__"))
    for name, member in vars(np.ndarray).items():
        if not name.startswith("__") and name not in vars(LocalArray):
            setattr(LocalArray, name, _method(name) if callable(member) else _property(name))


_complete()
