"""Python code called from a kernel: a C function that takes the GIL.

The kernel passes the addresses of the result and the operands; the Python function gets copies of the operands, which
nobody may write to, and its result is copied back. What it raises is kept by the thread while the kernel stops with
`STATUS_PYTHON`, and raised again where the kernel was called (`jitad.compile.entry.relay`).
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.compile.llvm.ir import INT64, RAW, FunctionType, array
from jitad.compile.loops import STATUS_OK
from jitad.primitives.custom import Code, opaque

STATUS_PYTHON = 6          # a Python function has raised
_SERVICE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_codes: weakref.WeakValueDictionary[int, Code] = weakref.WeakValueDictionary()    # by the address of their service
_lock = threading.Lock()


class _Pending(threading.local):
    error: BaseException | None = None


_pending = _Pending()


def taken() -> BaseException | None:
    """The exception with which Python code that a kernel of this thread called has ended, once."""
    error, _pending.error = _pending.error, None
    return error


def address_of(code: Code) -> int:
    """The C function of `code`, which lives as long as that does."""
    with _lock:
        if code.entry is None:
            code.entry = _SERVICE(_service(weakref.ref(code), [_memory(a.shape, a.dtype) for a in code.operands]))
        address = ctypes.cast(code.entry, ctypes.c_void_p).value or 0
        _codes[address] = code
    return address


def _service(reference: Callable[[], Code | None], operands: list[Any]) -> Callable[[int], int]:
    words = ctypes.c_void_p * (len(operands) + 1)

    def serve(block: int) -> int:
        try:
            code = reference()
            assert code is not None
            out, *addresses = words.from_address(block)
            result = code.serve([take(a) for take, a in zip(operands, addresses, strict=True)])
            if code.size:
                ctypes.memmove(out or 0, result.tobytes(), result.nbytes)
        except BaseException as error:
            _pending.error = error
            return STATUS_PYTHON
        return STATUS_OK
    return serve


def _memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[int], np.ndarray]:
    """What copies an array of this type from an address; nobody may write to the copy."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not size:
        return lambda address: np.zeros(shape, dtype)
    if len(shape) == 1:
        return lambda address: np.frombuffer(ctypes.string_at(address, size), dtype)
    return lambda address: np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)


def emit(emitter: Any, pointers: list[Any], address: int) -> Any:
    """LLVM code for the call; the value is the status."""
    builder, kind = emitter.builder, array(RAW, len(pointers))
    block = emitter.slots.alloca(kind)
    for place, pointer in enumerate(pointers):
        builder.store(builder.bitcast(pointer, RAW), builder.gep(block, [INT64(0), INT64(place)]))
    function = builder.inttoptr(INT64(address), FunctionType(INT64, [RAW]).as_pointer())
    return builder.call(function, [builder.bitcast(block, RAW)])


def call_by_address(out: Any, *rest: Any) -> int:
    """The same in generated Python source: result, operands, address."""
    *operands, address = rest
    code = _codes[address]
    out[...] = code.serve([np.array(x).reshape(a.shape) for x, a in zip(operands, code.operands, strict=True)])
    return STATUS_OK


opaque.sides = lambda shapes, params: (address_of(params["code"]),)
