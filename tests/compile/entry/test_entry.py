"""The built-in function around a kernel: which arguments it takes, what it returns, and what it leaves behind."""
from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import numpy as np
import pytest

from jitad import cache, jit, jit_grad
from jitad.compile.duration import estimated_time
from jitad.compile.entry import kernel as runtime
from jitad.compile.entry import layout as entry_layout
from jitad.compile.entry.arguments import argument_type, layout_of
from jitad.compile.entry.call import python_function
from jitad.compile.entry.emit import WORTH_RELEASING
from jitad.compile.entry.kernel import Kernel
from jitad.compile.entry.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.entry.layout import UnknownLayout, layout
from jitad.compile.llvm.native import load_code
from jitad.compile.loops import DTYPE_TAGS
from jitad.primitives.core import alias
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Builder
from jitad.trace.leaves import aval_of


def kernel_of(f, *inputs) -> Kernel:
    """The kernel of `f`, a function of values of a builder, for inputs like these."""
    builder = Builder()
    outputs = f(*(builder.input(aval_of(x), f"x{i}") for i, x in enumerate(inputs)))
    return Kernel(builder.finish(outputs), tuple(map(argument_type, inputs)))


def copies(*values):
    return [alias(v, slot=i) for i, v in enumerate(values)]


class Float(float):
    pass


class Int(int):
    pass


class Strong(np.float64):
    pass


class Long(np.longlong):
    pass


class Array(np.ndarray):
    pass


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return raw[1:].view(array.dtype).reshape(array.shape)


def frozen(array):
    array.setflags(write=False)
    return array


BASE = np.arange(1.0, 13.0)
SERVED = {
    "float": 1.5, "int": -7, "true": True, "false": False, "least": -2**63, "greatest": 2**63 - 1, "nan": float("nan"),
    **{f"np.{name}": np.dtype(name).type(1) for name in DTYPE_TAGS},
    "np.longlong": np.longlong(-3), "np.uintc": np.uintc(2**32 - 1),
    **{f"{name}[3]": np.array([0, 1, 100]).astype(name) for name in DTYPE_TAGS},
    "longlong[3]": np.array([5, -6, 7], np.longlong), "metadata[3]": np.zeros(3, np.dtype("f8", metadata={"a": 1})),
    "read-only[3]": frozen(np.ones(3)), "[4]": np.ones(4), "0-d": np.array(2.5), "0-d int": np.array(3),
    "[2,3]": BASE[:6].reshape(2, 3), "[3,2]": BASE[:6].reshape(3, 2), "F[2,3]": BASE[:6].reshape(3, 2).T,
    "A[2,3]": BASE.reshape(2, 6)[:, ::2], "reversed[3]": BASE[2::-1],
    "repeated[2,3]": np.broadcast_to(BASE[:3], (2, 3)),
    "[1,1]": np.ones((1, 1)), "[0,3]": np.ones((0, 3)), "[3,0]": np.ones((3, 0)), "[1,2,1,3]": np.ones((1, 2, 1, 3)),
    "A[2,2,2,2]": np.arange(64.0).reshape(2, 4, 2, 4)[:, ::2, :, 1::2],
    "unaligned[3]": unaligned(BASE[:3]), "unaligned[2,2]": unaligned(BASE[:4].reshape(2, 2)).T,
}
REFUSED = {
    "text": "1.0", "None": None, "object": object(), "list": [1.0, 2.0, 3.0], "large": 2**63, "small": -2**63 - 1,
    "complex": 1j, "np.complex128": np.complex128(1), "complex[3]": np.ones(3, complex),
    "object[3]": np.ones(3, object), "uint64[3]": np.ones(3, "u8"),
    "big-endian[3]": np.ones(3, ">f8"), "big-endian int[3]": np.ones(3, ">i8"), "float16[3]": np.ones(3, np.float16),
    "long double[3]": np.ones(3, np.longdouble), "np.float16": np.float16(1), "dates[3]": np.ones(3, "M8[s]"),
    "records[3]": np.ones(3, [("a", "f8")]), "bytes[3]": np.ones(3, "S8"), "class": float,
    "np.uint64": np.uint64(1), "np.str_": np.str_("1"), "timedelta": np.timedelta64(1, "s"), "Array list": [BASE[:3]],
    "Float": Float(2.5), "Int": Int(4), "Strong": Strong(3.0), "Long": Long(3), "Array[3]": BASE[:3].view(Array),
}


@pytest.mark.parametrize("name", SERVED)
def test_every_kind_of_argument_is_taken_by_its_own_kernel_alone(name):
    value = SERVED[name]
    kernel = kernel_of(copies, value)
    for other, x in (*SERVED.items(), *REFUSED.items()):
        like = other in SERVED and argument_type(x) == kernel.kinds[0] and np.shape(x) == np.shape(value)
        if not like:
            with pytest.raises(SignatureMiss):
                kernel.call(x)
            continue
        result = kernel.call(x)
        np.testing.assert_array_equal(result, x)
        assert type(result) is (np.ndarray if np.ndim(x) else type(np.asarray(x).item()))
        assert not np.ndim(x) or (result.dtype == x.dtype and result.flags.carray and result.flags.owndata)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_kernel_takes_has_no_kind(name):
    if name in ("large", "small"):
        assert argument_type(REFUSED[name]).kind == "int"
    else:
        with pytest.raises(TypeError, match="no kernel takes"):
            argument_type(REFUSED[name])


def test_kinds():
    layouts = {"float": "number", "[2,3]": "C", "F[2,3]": "F", "A[2,3]": "A", "reversed[3]": "A", "0-d": "C"}
    assert {name: layout_of(argument_type(SERVED[name])) for name in layouts} == layouts
    assert argument_type(np.float64(1)) != argument_type(1.0)
    assert argument_type(np.longlong(1)) == argument_type(np.int64(1))
    assert argument_type(SERVED["read-only[3]"]) == argument_type(np.ones(3))
    with pytest.raises(TypeError, match="x0 is f8"):
        Kernel(kernel_of(copies, np.ones(3)).tape, (argument_type(np.ones(3, np.float32)),)).call  # noqa: B018
    with pytest.raises(TypeError, match="a number of dtype f8"):
        Kernel(kernel_of(copies, 1.0).tape, (argument_type(1),)).call  # noqa: B018


def test_the_number_of_arguments():
    kernel = kernel_of(copies, 1.0, np.ones(2)).call
    for wrong in ((), (1.0,), (1.0, np.ones(2), 1.0), (np.ones(2), 1.0)):
        with pytest.raises(SignatureMiss):
            kernel(*wrong)
    with pytest.raises(SignatureMiss):
        kernel(1.0, x1=np.ones(2))


def test_results():
    arrays = [np.array([[0, 1, 2], [3, 4, 5]]).astype(name) for name in DTYPE_TAGS]
    numbers = [np.dtype(name).type(1) for name in DTYPE_TAGS]
    mixed = [x for pair in zip(arrays, numbers, strict=True) for x in pair]
    result = kernel_of(copies, *mixed).call(*mixed)
    assert type(result) is tuple and len(result) == len(mixed)
    for got, x in zip(result, mixed, strict=True):
        assert type(got) is (np.ndarray if np.ndim(x) else type(x.item()))
        np.testing.assert_array_equal(got, x)
    assert kernel_of(lambda x: [], 1.0).call(2.0) == ()
    assert kernel_of(lambda x: [x + 1.0, x * 2.0], 1.0).call(2.0) == (3.0, 4.0)
    one, two = kernel_of(lambda x: [x, x], np.ones(2)).call(np.ones(2))
    assert one is not two and one.base is None


def test_thirty_parameters():
    inputs = [x for i in range(10) for x in (np.full(i + 1, 1.0 + i), 2.0 + i, np.int64(i))]
    assert len(inputs) == 30
    kernel = kernel_of(lambda *v: [a * b + c * 1.0 for a, b, c in zip(v[::3], v[1::3], v[2::3], strict=True)], *inputs)
    for got, a, b, c in zip(kernel.call(*inputs), inputs[::3], inputs[1::3], inputs[2::3], strict=True):
        np.testing.assert_array_equal(got, a * b + c)
    for place in range(30):
        with pytest.raises(SignatureMiss):
            kernel.call(*inputs[:place], "", *inputs[place + 1:])


# --- what is left behind -------------------------------------------------------------------------------

def picked():
    """A kernel that stops where an index is out of bounds, with an array among its outputs."""
    return jit(lambda x, i: (x * 2.0, x[i])).compile(np.ones(3), np.array(1)).kernel


def test_status():
    kernel, x = picked(), np.arange(3.0)
    assert kernel(x, np.array(2))[1] == 2.0
    with pytest.raises(StatusMiss):
        kernel(x, np.array(3))
    assert jit(lambda x, i: (x * 2.0, x[i]))(x, np.array(2))[1] == 2.0
    with pytest.raises(IndexError):
        jit(lambda x, i: (x * 2.0, x[i]))(x, np.array(3))


def calls():
    """Calls that end in each of the ways there are; the last ones in exceptions."""
    x, number, i = np.arange(3.0), 1e300, np.array(1)
    mixed = kernel_of(lambda x, y, z, b: [x, y * 1.0, x * y, b, z + z], x, number, 7, True).call
    single, scalar = (kernel_of(lambda x: [x * 1.0], v).call for v in (x, number))
    stopping = picked()
    return [(mixed, (x, number, 2**40, True)), (single, (x,)), (scalar, (number,)), (stopping, (x, i)),
            (mixed, (x, number, 2**70, True)), (single, (number,)), (single, (np.ones(4),)), (scalar, ()),
            (stopping, (x, np.array(5)))]


def run(function, arguments):
    try:
        function(*arguments)
    except (SignatureMiss, StatusMiss):
        return True
    return False


@pytest.mark.parametrize("number", range(9))
def test_reference_counts(number):
    function, arguments = calls()[number]
    watched = [*arguments, function, np.dtype("f8"), np.dtype("i8"), np.ndarray, float, int, bool, True, None, (),
               SignatureMiss, StatusMiss]
    assert run(function, arguments) == (number >= 4)
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(1000):
        run(function, arguments)
    after = [sys.getrefcount(x) for x in watched]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 100


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_nothing_leaks():
    ways, large = calls(), np.ones(2000)
    ways.append((kernel_of(lambda x: [x * 2.0, x * 3.0], large).call, (large,)))
    for turns in (500, 20000):
        before = resident()
        for function, arguments in ways:
            for _ in range(turns // 5 if function is ways[-1][0] else turns):
                run(function, arguments)
    assert resident() - before < 2**20 * 4         # one leaked array of the last kind a call would be 60 MB


def test_memory_errors_give_back_what_was_made():
    kernel = kernel_of(lambda x: [x * 2.0, broadcast_to(x, (2**36, 4096))], np.ones(4096)).call
    x = np.ones(4096)
    tracemalloc.start()
    try:
        for turn in range(60):
            with pytest.raises(MemoryError):
                kernel(x)
            if turn == 10:
                before = tracemalloc.get_traced_memory()[0]
        assert tracemalloc.get_traced_memory()[0] - before < 50 * 4096 * 8 / 4
    finally:
        tracemalloc.stop()


def test_the_function_keeps_its_code_alive_and_no_longer():
    kernel = kernel_of(lambda x: [x * 3.0], np.ones(3))
    call, native = kernel.call, weakref.ref(kernel.native)
    del kernel
    gc.collect()
    assert native() is not None and call(np.ones(3)).tolist() == [3.0, 3.0, 3.0]
    del call
    gc.collect()
    assert native() is None


# --- threads ---------------------------------------------------------------------------------------------

def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.perf_counter() - start


@pytest.mark.parametrize("size", [8, 20_000])
def test_threads(size, record_property):
    def function(x, y):
        return np.sum(np.exp(-x * x) * np.cos(y) + np.sin(x))

    cache.clear(function)
    inputs = [np.random.default_rng(i).normal(size=(2, size)) for i in range(4)]
    compiled = jit_grad(function).compile(*inputs[0])
    assert (estimated_time(compiled._kernel.program) > WORTH_RELEASING) == (size == 20_000)
    kernel, expected = compiled.kernel, [compiled.kernel(*x) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(200):
            if not np.array_equal(kernel(*inputs[i]), expected[i]):
                wrong.append(i)

    one = in_threads(1, work)
    two = in_threads(2, work)
    record_property("throughput of two threads", 2 * one / two)      # a shared machine: no assertion
    in_threads(4, work)
    assert not wrong


def test_another_thread_runs_while_a_large_kernel_does():
    x = np.ones(2_000_000)
    kernel = jit(lambda x: np.sum(np.arctan(np.exp(x)) ** 3.3)).compile(x).kernel
    go, happened = threading.Lock(), []
    go.acquire()

    def other():
        with go:
            happened.append("the other")

    thread = threading.Thread(target=other)
    thread.start()
    time.sleep(0.05)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(30.0)                       # nobody is asked to give the GIL away
    try:
        happened.append("before")
        go.release()
        kernel(x)
        happened.append("after")
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert happened == ["before", "the other", "after"]


# --- where it comes from -----------------------------------------------------------------------------------

PROBE = """
import sys, pathlib
import numpy as np
from jitad import value_and_grad
assert value_and_grad(lambda x: np.sum(x * x))(np.ones(3))[0] == 3.0
if len(sys.argv) > 1:
    from jitad.compile.entry.call import python_function
    from jitad.compile.llvm.native import load_code
    call = python_function(load_code(pathlib.Path(sys.argv[1]).read_bytes()))
    a, b = call(np.arange(3.0), 2.0, np.int32(7))
    assert a.tolist() == [0.0, 2.0, 4.0] and b == 7
print([m for m in ("numba", "scipy.special", "scipy.linalg") if m in sys.modules])
"""


def test_object_code_serves_another_process_without_numba(tmp_path):
    kernel = kernel_of(lambda x, y, i: [x * y, alias(i, slot=0)], np.ones(3), 1.0, np.int32(1))
    again = python_function(load_code(kernel.native.code))
    assert again(np.ones(3), 2.0, np.int32(5))[1] == 5
    assert {type(n) for n in layout()[:-1]} == {int}                # the key is made of offsets
    file = tmp_path / "kernel.o"
    file.write_bytes(kernel.native.code)
    done = subprocess.run([sys.executable, "-c", PROBE, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "numba" not in done.stdout


def test_unknown_layouts_go_through_numba(monkeypatch):
    def unknown():
        raise UnknownLayout("for the test")

    monkeypatch.setattr(runtime, "layout", unknown)
    inputs = (np.ones(3), BASE.reshape(2, 6)[:, ::2], 2.0, 3, True, np.float32(0.5), frozen(np.ones(3)))
    kernel = kernel_of(lambda *v: [v[0] * v[2] + v[6], v[1] * 1.0, v[3] + v[3], v[4], v[5] * v[5]], *inputs)
    assert not type(kernel.call).__name__.startswith("builtin")
    for used in (inputs, (frozen(np.ones(3)), *inputs[1:6], np.ones(3))):
        a, b, *numbers = kernel.call(*used)
        assert a.tolist() == [3.0] * 3 and b.tolist() == inputs[1].tolist() and numbers == [6, True, 0.25]
    for place, wrong in enumerate((np.ones(4), np.ones((2, 3)), np.float64(2.0), 2**70, 1, 0.5, None)):
        with pytest.raises(SignatureMiss):
            kernel.call(*inputs[:place], wrong, *inputs[place + 1:])


def test_wrong_layouts_are_noticed(monkeypatch):
    at = layout()
    for field in ("type", "data", "ndim", "descriptor", "flags"):
        with pytest.raises(UnknownLayout):
            entry_layout._check_arrays(at._replace(**{field: getattr(at, field) - 8}))
    with pytest.raises(UnknownLayout):
        entry_layout._check_arrays(at._replace(shape=at.strides, strides=at.shape))
    for field in ("type", "number"):
        with pytest.raises(UnknownLayout):
            entry_layout._check_numbers(at._replace(**{field: getattr(at, field) - 8}))
    monkeypatch.setattr(entry_layout.sysconfig, "get_config_var", lambda name: 1)
    with pytest.raises(UnknownLayout):
        layout.__wrapped__()


def test_byte_order_spelled_out() -> None:
    """ctypes makes arrays whose dtype says the machine's own byte order; they are served, captured ones too."""
    spelled = np.ctypeslib.as_array((ctypes.c_double * 3)(1.0, 2.0, 3.0))
    assert spelled.dtype.byteorder in "<>"
    double = jit(lambda x: x * spelled)
    np.testing.assert_array_equal(double(np.ones(3)), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(double(spelled), [1.0, 4.0, 9.0])
