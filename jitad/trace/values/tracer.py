"""`Tracer`: what the user's code sees in place of its arrays and numbers while it is recorded."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.linear import made
from jitad.primitives.view import Map, shown
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Aval
from jitad.trace import ufuncs
from jitad.trace.arrays.assign import assign_result, setitem
from jitad.trace.arrays.indexing import getitem
from jitad.trace.arrays.storage import Storage
from jitad.trace.arrays.viewing import through_view
from jitad.trace.arrays.windows import Window, through_map
from jitad.trace.dispatch import call, noted, noted_line, repeated, strong
from jitad.trace.values.flat import FlatElements
from jitad.trace.values.operators import (
    Arithmetic,
    check_whole,
    concrete,
    element_of,
    equal_as_one,
    float_of,
    hash_of,
    method,
    on_a_number,
    refused_method,
    refused_property,
    round_of,
)
from jitad.trace.values.seen import as_python, listed, owner_of, stood_for, text_of
from jitad.trace.where import is_copied, is_library_file


class Tracer(Arithmetic, Value):
    """A node of a recording that behaves as the NumPy array (or number) it stands for.

    ``isinstance`` and ``type`` in recorded code take it for that (see `captures.introspection`). `weak` marks what
    Python numbers would be here (they do not raise NumPy's precision); `boxed` marks an array of no dimensions, which
    in-place operators would change for all its names.

    An array that is written, or of which there are views, is a window on a `storage` that it shares
    with its views; its node is then what the window shows at the moment. `frozen` says why NumPy
    would not let this array be written.
    """

    __slots__ = ("fixed", "_seen", "boxed", "frozen", "storage", "weak", "window")

    def __init__(self, builder: Builder, number: int):
        self.builder, self.fixed = builder, number
        self.weak = builder.nodes[number].aval.weak
        self.boxed = False
        self.storage: Storage | None = None
        self._seen = 0
        self.frozen = ""

    @property
    def number(self) -> int:                                        # type: ignore[override]
        storage = self.storage
        if storage is not None and self._seen != storage.version:
            self.fixed, self._seen = storage.read(self.window), storage.version
        return self.fixed

    @property
    def home(self) -> Storage:
        """The storage of an array, made when it is first needed."""
        if self.storage is None:
            self.settle_in(Storage(self, owner_of(self)))
        return self.storage                                         # type: ignore[return-value]

    def settle_in(self, storage: Storage) -> None:
        """Be the array that is the whole of a new storage."""
        self.storage, self.window, self._seen = storage, storage.whole, storage.version

    def window_on(self, window: Window) -> Tracer:
        """Another array: a window on the storage of this one."""
        handle = object.__new__(type(self))
        handle.builder, handle.storage, handle.window = self.builder, self.home, window
        handle.fixed, handle._seen = -1, -1
        handle.weak, handle.boxed, handle.frozen = False, not window.shape, self.frozen
        return handle

    def derived(self, shape: tuple[int, ...], index: Map) -> Tracer:
        """The view of this array with this index map; of a number, which shares nothing with it."""
        if self.is_number:
            number: Any = self.builder.value(self.number)
            return self.alone().derived(shape, index) if shape else number
        storage = self.home
        handle = self.window_on(through_map(self.window, shape, index))
        if storage.clean:
            handle.fixed, handle._seen = shown(self.builder, self.number, shape, index), storage.version
        return handle

    @property
    def is_number(self) -> bool:
        """Whether this is a number, as NumPy's scalars are, and not an array of no dimensions."""
        return not self.boxed and not self.shape

    @property
    def __array_priority__(self) -> float:
        if self.weak:
            raise AttributeError(f"{stood_for(self).__name__!r} object has no attribute '__array_priority__'")
        return -1e6 if self.is_number else 0.0

    def alone(self) -> Tracer:
        """A number as an array of no dimensions."""
        array: Any = self.builder.value(self.number)
        array.weak, array.boxed = False, True
        return array

    def detached(self) -> Tracer:
        """A copy that shares nothing with this array."""
        handle = Tracer(self.builder, self.number)
        handle.weak, handle.boxed = False, self.boxed
        if owner_of(handle) and (self.ndim or self.boxed):
            handle.settle_in(Storage(handle))
        return handle

    def laid_out(self, order: str | None) -> Tracer:
        """This array where it lies in C or F order in memory, else a copy, as NumPy makes one; any order will do for
        others. Of a computed matrix the order is not known: it may share its memory with the copy."""
        if order not in ("C", "F") or not self.ndim:
            return self
        known = self.home.plain
        if known and self.window.lies_in(order):
            return self
        copy = self.detached()
        if not known:
            self.home.may_share_with(copy.home)
        return copy

    def as_weak(self, result: Any) -> Any:
        result.weak = True
        return result

    @property
    def aval(self) -> Aval:
        if self.storage is not None:
            return made(self.window.shape, self.storage.dtype)
        aval = self.builder.nodes[self.fixed].aval
        return aval if aval.weak == self.weak else Aval(aval.shape, aval.dtype, self.weak)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.builder.nodes[self.fixed].aval.shape if self.storage is None else self.window.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        if self.is_number:
            raise AttributeError(f"attribute 'shape' of {stood_for(self).__name__!r} objects is not writable")
        alone = self.storage is None
        other = self.reshape(shape)
        if alone and other.storage is not self.storage:
            self.storage = other.storage if other.storage is not None else other.home
        elif other.storage is not self.home:
            raise AttributeError("Incompatible shape for in-place modification. Use `.reshape()` to make a copy.")
        self.window, self.fixed, self._seen = other.window, -1, -1

    @property
    def flat(self) -> FlatElements:
        return FlatElements(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        FlatElements(self)[:] = value

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(np.equal(self, item)))

    def __repr__(self) -> str:
        if is_library_file(sys._getframe(1).f_code.co_filename):
            return f"<traced {self.aval}>"
        return self._text(repr)

    def _text(self, write: Callable[[Any], str]) -> str:
        recorded = hasattr(self.builder, "concrete") and self.recorder.active
        return text_of(self, write) if recorded else f"<traced {self.aval}>"

    # --- NumPy's protocols ---------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            short = on_a_number(ufunc, inputs[0]) if len(inputs) == 1 else None
            if short is None:
                short = ufuncs.usual(self, ufunc, inputs)
            if short is not None:
                return short
        if any(hasattr(type(x), "jitad_array") for x in inputs):    # data with labels, which answer
            return NotImplemented
        with noted_line(self.builder):
            return repeated((ufunc, method), partial(ufuncs.array_ufunc, ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    __array__ = concrete("np.asarray (or a function that calls it)",
                          "use NumPy's functions and methods on the value itself; an array to be filled is to be made "
                          "in the recorded function, by np.zeros or np.array")
    __float__ = float_of
    __sizeof__ = concrete("sys.getsizeof", "use x.nbytes")
    __complex__ = concrete("complex()", "write re + 1j * im instead of complex(re, im)")
    __hash__ = hash_of
    __round__ = round_of

    # --- control flow: the number is looked up, and the tape depends on it ---------------
    @property
    def recorder(self) -> Any:
        return self.builder

    def __bool__(self) -> bool:
        if equal_as_one(self):
            return True
        if self.size != 1:
            bool(np.empty(self.shape))                    # NumPy's own error or warning
            return False
        truth = self if self.dtype == np.bool_ else np.not_equal(self, 0)
        return self.recorder.decide(truth.reshape(()))

    def __int__(self) -> int:
        if self.size != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        value = self.reshape(())
        check_whole(value, int)
        return self.recorder.decide(value.astype(np.int64))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.recorder.decide(self)

    def __str__(self) -> str:
        return self._text(str)

    def __format__(self, spec: str) -> str:
        return self._text(lambda x: format(x, spec))

    @property                                                       # type: ignore[misc]
    def __class__(self) -> type:                                    # type: ignore[override]
        """For the user's code, and for ``case float():`` of a `match` in it, the class of what this stands for."""
        frame = sys._getframe(1)
        return Tracer if is_library_file(frame.f_code.co_filename) and not is_copied(frame) else stood_for(self)

    # --- what NumPy knows without data ---------------------------------------------------
    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        return self.transpose()

    @property
    def mT(self) -> Any:
        return through_view(self, lambda a: a.mT)

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> Any:
        return call(np.imag, self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int and self.storage is None:
            short = element_of(self, index)
            if short is not None:
                return strong(short) if short.weak else short
        try:
            return strong(getitem(self, index))
        except Exception as error:
            noted(self.builder, error)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        with noted_line(self.builder):
            setitem(self, index, value)

    def assign(self, ufunc: np.ufunc, result: Any, operands: tuple[Any, ...]) -> None:
        """Store what an operation gave, as ``a += b`` does."""
        assign_result(self, ufunc, result, operands)

    def __delitem__(self, index: Any) -> None:
        raise ValueError("cannot delete array elements")

    def __copy__(self) -> Any:
        return self.detached() if self.ndim or self.boxed else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    # --- methods -------------------------------------------------------------------------
    tolist = listed

    sum, prod, mean, std, var = map(method, (np.sum, np.prod, np.mean, np.std, np.var))
    max, min, any, all = map(method, (np.max, np.min, np.any, np.all))
    cumsum, cumprod, round, clip = map(method, (np.cumsum, np.cumprod, np.round, np.clip))
    ravel, squeeze, swapaxes, repeat = map(method, (np.ravel, np.squeeze, np.swapaxes, np.repeat))
    dot, diagonal, trace, take = map(method, (np.dot, np.diagonal, np.trace, np.take))
    argmax, argmin, argsort, argpartition = map(method, (np.argmax, np.argmin, np.argsort, np.argpartition))
    put, searchsorted, nonzero, choose = map(method, (np.put, np.searchsorted, np.nonzero, np.choose))

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        return call(np.compress, condition, self, axis, out)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = call(np.sort, self, axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
        self[...] = call(np.partition, self, kth, axis, kind, order)

    def copy(self, order: str = "C") -> Any:
        result = self.detached()
        if result.ndim or result.boxed:
            result.settle_in(Storage(result, plain=order == "C"))
        return result

    def flatten(self, order: str = "C") -> Any:
        return call(np.ravel, self, order).detached()

    def item(self, *index: Any) -> Any:
        """As ``ndarray.item``: one of Python's numbers."""
        if not index:
            return as_python(self)
        place = index[0] if len(index) == 1 else index
        return as_python(self[place] if isinstance(place, tuple) else self.reshape(-1)[place])

    def is_integer(self) -> Any:
        """As ``float.is_integer``."""
        if not self.is_number:
            raise AttributeError("'numpy.ndarray' object has no attribute 'is_integer'")
        return self.as_weak(np.logical_and(np.isfinite(self), np.equal(self, np.floor(self))))

    def fill(self, value: Any) -> None:
        if not self.is_number:                                      # of a number, NumPy fills a copy
            self[...] = value

    def conj(self) -> Any:
        return self

    conjugate = conj

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        return call(np.reshape, self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        return call(np.transpose, self, axes[0] if len(axes) == 1 else axes or None)

    def astype(self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        """As ``ndarray.astype``; the result is never weak."""
        if not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} "
                            f"according to the rule {casting!r}")
        with noted_line(self.builder):
            result = cast(self, dtype)
        if result is not self:
            if self.boxed:
                result.boxed = True                                 # type: ignore[attr-defined]
            return result
        if self.ndim or self.boxed:
            return self.detached() if copy else self.laid_out(order)
        result = self.builder.value(self.number)
        result.weak = False                                         # type: ignore[attr-defined]
        return result

    for _name in ("view", "tobytes", "tofile", "dump", "dumps", "byteswap", "getfield", "to_device"):
        locals()[_name] = refused_method(_name, "compute it outside the function and pass the result in")
    for _name in ("resize", "itemset", "setfield", "setflags"):
        locals()[_name] = refused_method(_name, "it works in place; make a new array instead")
    for _name in ("data", "base", "strides", "flags", "ctypes", "device"):
        locals()[_name] = refused_property(_name)
    del _name
