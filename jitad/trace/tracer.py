"""`Tracer`: what the user's code sees in place of its arrays and numbers while it is recorded."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.view import Map, view
from jitad.tape import Aval, Builder, Value
from jitad.trace import ufuncs
from jitad.trace.dispatch import call, not_concrete, noted_line, plain, refused
from jitad.trace.storage import Storage
from jitad.trace.viewing import through_view
from jitad.trace.windows import Window, through_map

_SCALARS = (int, float, complex, np.generic)


def _operable(other: Any) -> bool:
    """Whether an operator takes `other` as an array or a number (else Python asks `other` itself)."""
    if isinstance(other, (Tracer, np.ndarray, *_SCALARS, list, tuple)):
        return True
    return hasattr(other, "__array__") and getattr(other, "__array_priority__", 0) <= 0 and not isinstance(other, str)


def _number(x: Any) -> Any:
    """A Python bool counts as an int in arithmetic; weak operands are Python's."""
    if isinstance(x, Tracer) and x.dtype.kind == "b":
        return x._as_weak(cast(x, np.int64))
    return int(x) if type(x) is bool else x


def _binary(ufunc: np.ufunc, swap: bool = False, logic: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Tracer, other: Any) -> Any:
        other = plain(other)
        if not _operable(other):
            return NotImplemented
        a, b = (other, self) if swap else (self, other)
        with noted_line(self.builder):
            if not (self.weak and ufuncs.is_weak(other)):
                return ufuncs.apply_ufunc(ufunc, a, b)
            result = ufuncs.apply_ufunc(ufunc, a, b) if logic else ufuncs.apply_ufunc(ufunc, _number(a), _number(b))
        return tuple(map(self._as_weak, result)) if isinstance(result, tuple) else self._as_weak(result)
    return operator


def _power(swap: bool = False) -> Callable[[Any, Any], Any]:
    general = _binary(np.power, swap)

    def operator(self: Tracer, other: Any, modulo: Any = None) -> Any:
        if swap or type(other) not in (int, float) or self.dtype.kind != "f":
            if not swap and self.weak and type(other) is int and other < 0:
                return general(self._as_weak(cast(self, np.float64)), other)        # as Python's int
            return general(self, other)
        short = {2.0: np.square, 0.5: np.sqrt, 1.0: np.positive, -1.0: np.reciprocal}.get(other)
        if short is None:
            return general(self, other)
        result = ufuncs.apply_ufunc(short, self)
        return self._as_weak(result) if self.weak else result
    return operator


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def operator(self: Tracer) -> Any:
        with noted_line(self.builder):
            result = ufuncs.apply_ufunc(ufunc, _number(self) if self.weak else self)
        return self._as_weak(result) if self.weak else result
    return operator


def _compare(ufunc: np.ufunc, unlike: bool) -> Callable[[Any, Any], Any]:
    """``==`` and ``!=``; None and strings are never equal, as in NumPy."""
    general = _binary(ufunc, logic=True)

    def operator(self: Tracer, other: Any) -> Any:
        if other is None or isinstance(other, (str, bytes)):
            return np.full(self.shape, unlike) if self.ndim else unlike
        return general(self, other)
    return operator


def _in_place(operator: Callable[[Any, Any], Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Numbers, which are immutable, are rebound; arrays change under all their names."""
    def in_place(self: Tracer, other: Any) -> Any:
        result = operator(self, other)
        if not (self.ndim or self.boxed) or result is NotImplemented:
            return result
        from jitad.trace.assign import assign_result

        with noted_line(self.builder):
            assign_result(self, ufunc, result, (self, other))
        return self
    return in_place


def _method(function: Any) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return call(function, self, *args, **kwargs)
    method.__doc__ = f"As ``numpy.{function.__name__}``."
    return method


def _refused_method(name: str, advice: str) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise refused(self, f"the array method .{name}()", advice)
    return method


def _refused_property(name: str) -> property:
    def getter(self: Tracer) -> NoReturn:
        raise refused(self, f"the array attribute .{name}", "use the array itself")
    return property(getter)


def _concrete(what: str, advice: str) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise not_concrete(self, what, advice)
    return method


_MATH = ("use NumPy's function in place of math's (np.exp for math.exp), leave out the conversion, or "
         "pass the number in as a string or another static value")
_BRANCH = "use np.where(condition, a, b), np.maximum(a, b), np.all or np.any for the choice"


class Tracer(Value):
    """A node of a recording that behaves as the NumPy array (or number) it stands for.

    It is no `numpy.ndarray` and no `float`: ``isinstance`` says so. `weak` marks what Python
    numbers would be here (they do not raise NumPy's precision); `boxed` marks an array of no
    dimensions, which in-place operators would change for all its names.

    An array that is written, or of which there are views, is a window on a `storage` that it shares
    with its views; its node is then what the window shows at the moment. `frozen` says why NumPy
    would not let this array be written.
    """

    __slots__ = ("_fixed", "_seen", "boxed", "frozen", "storage", "weak", "window")
    __array_priority__ = 1000.0

    def __init__(self, builder: Builder, number: int):
        self.builder, self._fixed = builder, number
        self.weak = builder.nodes[number].aval.weak
        self.boxed = False
        self.storage: Storage | None = None
        self.frozen = ""

    @property
    def number(self) -> int:                                        # type: ignore[override]
        storage = self.storage
        if storage is not None and self._seen != storage.version:
            self._fixed, self._seen = storage.read(self.window), storage.version
        return self._fixed

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
        handle = object.__new__(Tracer)
        handle.builder, handle.storage, handle.window = self.builder, self.home, window
        handle._fixed, handle._seen = -1, -1
        handle.weak, handle.boxed, handle.frozen = False, not window.shape, self.frozen
        return handle

    def derived(self, shape: tuple[int, ...], index: Map) -> Tracer:
        """The view of this array with this index map."""
        storage = self.home
        handle = self.window_on(through_map(self.window, shape, index))
        if storage.clean:
            handle._fixed, handle._seen = view(self, shape, index).number, storage.version
        return handle

    def detached(self) -> Tracer:
        """A copy that shares nothing with this array."""
        handle = Tracer(self.builder, self.number)
        handle.weak, handle.boxed = self.weak, self.boxed
        if owner_of(handle) and (self.ndim or self.boxed):
            handle.settle_in(Storage(handle))
        return handle

    def _as_weak(self, result: Any) -> Any:
        result.weak = True
        return result

    @property
    def aval(self) -> Aval:
        if self.storage is not None:
            return Aval(self.window.shape, self.storage.dtype)
        aval = self.builder.nodes[self._fixed].aval
        return aval if aval.weak == self.weak else replace(aval, weak=self.weak)

    def __repr__(self) -> str:
        return f"<traced {self.aval}>"

    # --- NumPy's protocols ---------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from jitad.trace.dispatch import builder_in

        with noted_line(builder_in(inputs, kwargs)):
            return ufuncs.array_ufunc(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    __array__ = _concrete("np.asarray (or a function that calls it)",
                          "use NumPy's functions and methods on the value itself, np.stack instead of np.array([...]), "
                          "np.take(a, i) instead of a[i], np.where or np.concatenate instead of a[j] = x")
    __contains__ = _concrete("in", _BRANCH)
    __float__ = _concrete("float() or a function of math", _MATH)
    __complex__ = _concrete("complex()", _MATH)
    __hash__ = _concrete("hash()", "do not use traced values as keys or with functools.lru_cache")
    item = _concrete("item()", _MATH)
    tolist = _concrete("tolist()", _MATH)

    # --- control flow: the number is looked up, and the tape depends on it ---------------
    def __bool__(self) -> bool:
        if self.size != 1:
            bool(np.empty(self.shape))                    # NumPy's own error or warning
            return False
        truth = self if self.dtype == np.bool_ else np.not_equal(self, 0)
        return self.builder.decide(truth.reshape(()))

    def __int__(self) -> int:
        if self.size != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self.builder.decide(self.reshape(()).astype(np.int64))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.builder.decide(self)

    def __format__(self, spec: str) -> str:
        if spec:
            raise not_concrete(self, f"formatting with {spec!r}", "print the value without a format")
        return repr(self)

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
        from jitad.trace.indexing import getitem

        with noted_line(self.builder):
            return getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        from jitad.trace.assign import setitem

        with noted_line(self.builder):
            setitem(self, index, value)

    def __delitem__(self, index: Any) -> None:
        raise ValueError("cannot delete array elements")

    # --- operators -----------------------------------------------------------------------
    __add__, __radd__ = _binary(np.add), _binary(np.add, True)
    __sub__, __rsub__ = _binary(np.subtract), _binary(np.subtract, True)
    __mul__, __rmul__ = _binary(np.multiply), _binary(np.multiply, True)
    __truediv__, __rtruediv__ = _binary(np.true_divide), _binary(np.true_divide, True)
    __floordiv__, __rfloordiv__ = _binary(np.floor_divide), _binary(np.floor_divide, True)
    __mod__, __rmod__ = _binary(np.remainder), _binary(np.remainder, True)
    __divmod__, __rdivmod__ = _binary(np.divmod), _binary(np.divmod, True)
    __matmul__, __rmatmul__ = _binary(np.matmul), _binary(np.matmul, True)
    __pow__, __rpow__ = _power(), _power(True)
    __and__, __rand__ = _binary(np.bitwise_and, logic=True), _binary(np.bitwise_and, True, logic=True)
    __or__, __ror__ = _binary(np.bitwise_or, logic=True), _binary(np.bitwise_or, True, logic=True)
    __xor__, __rxor__ = _binary(np.bitwise_xor, logic=True), _binary(np.bitwise_xor, True, logic=True)
    __lshift__, __rlshift__ = _binary(np.left_shift), _binary(np.left_shift, True)
    __rshift__, __rrshift__ = _binary(np.right_shift), _binary(np.right_shift, True)
    __neg__, __pos__, __abs__ = _unary(np.negative), _unary(np.positive), _unary(np.absolute)
    __invert__ = _unary(np.invert)
    __lt__, __le__ = _binary(np.less), _binary(np.less_equal)
    __gt__, __ge__ = _binary(np.greater), _binary(np.greater_equal)
    __eq__, __ne__ = _compare(np.equal, False), _compare(np.not_equal, True)       # type: ignore[assignment]
    __iadd__, __isub__ = _in_place(__add__, np.add), _in_place(__sub__, np.subtract)
    __imul__, __itruediv__ = _in_place(__mul__, np.multiply), _in_place(__truediv__, np.true_divide)
    __ifloordiv__, __imod__ = _in_place(__floordiv__, np.floor_divide), _in_place(__mod__, np.remainder)
    __ipow__, __imatmul__ = _in_place(__pow__, np.power), _in_place(__matmul__, np.matmul)
    __iand__, __ior__ = _in_place(__and__, np.bitwise_and), _in_place(__or__, np.bitwise_or)
    __ixor__, __ilshift__ = _in_place(__xor__, np.bitwise_xor), _in_place(__lshift__, np.left_shift)
    __irshift__ = _in_place(__rshift__, np.right_shift)

    def __round__(self, ndigits: int | None = None) -> Any:
        if self.ndim:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        if ndigits is not None:
            result = call(np.round, self, ndigits)
            return self._as_weak(result) if self.weak else result
        return self._as_weak(cast(ufuncs.apply_ufunc(np.rint, self), np.int64))

    def __copy__(self) -> Any:
        return self.detached() if self.ndim or self.boxed else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    # --- methods -------------------------------------------------------------------------
    sum, prod, mean, std, var = map(_method, (np.sum, np.prod, np.mean, np.std, np.var))
    max, min, any, all = map(_method, (np.max, np.min, np.any, np.all))
    cumsum, cumprod, round, clip = map(_method, (np.cumsum, np.cumprod, np.round, np.clip))
    ravel, squeeze, swapaxes, repeat = map(_method, (np.ravel, np.squeeze, np.swapaxes, np.repeat))
    dot, diagonal, trace, take = map(_method, (np.dot, np.diagonal, np.trace, np.take))
    put = _method(np.put)

    def copy(self, order: str = "C") -> Any:
        result = self.detached()
        if result.ndim or result.boxed:
            result.settle_in(Storage(result, plain=order == "C"))
        return result

    def flatten(self, order: str = "C") -> Any:
        return call(np.ravel, self, order).detached()

    def fill(self, value: Any) -> None:
        self[...] = value

    def conj(self) -> Any:
        return ufuncs.apply_ufunc(np.conjugate, self)

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
            return result
        if self.ndim or self.boxed:
            return self.detached() if copy else self
        result = self.builder.value(self.number)
        result.weak = False                                         # type: ignore[attr-defined]
        return result

    for _name in ("argmax", "argmin", "argsort", "argpartition", "searchsorted", "nonzero", "choose", "compress",
                  "view", "tobytes", "tofile", "dump", "dumps", "byteswap", "getfield", "to_device"):
        locals()[_name] = _refused_method(_name, "compute it outside the function and pass the result in")
    for _name in ("sort", "partition", "resize", "itemset", "setfield", "setflags"):
        locals()[_name] = _refused_method(_name, "it works in place; make a new array instead")
    for _name in ("flat", "data", "base", "strides", "flags", "ctypes", "device"):
        locals()[_name] = _refused_property(_name)
    del _name


def owner_of(x: Tracer) -> str:
    """Whose array this is, if it is not the recorded function's own: an argument or a captured one."""
    kind = x.node.prim.name
    if kind == "alias":
        return "an argument of a differentiated function"
    if kind != "input":
        return ""
    builder: Any = x.builder
    if x.number not in builder.inputs:
        return "a carry or an element of a loop"
    name = builder.names[builder.inputs.index(x.number)]
    captures = getattr(builder, "captures", None)
    captured = captures is not None and any(v.number == x.number for v in captures.inputs)
    return f"the captured array `{name}`" if captured else f"the argument `{name}`"
