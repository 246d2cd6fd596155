"""What runs on the tape machine and what is compiled, and how that is chosen."""
from __future__ import annotations

import ctypes
import pickle

import numpy as np
import pytest

import jitad
from jitad.call.build import machine as entry_machine
from jitad.compile.tapemachine.machine import MachineKernel
from jitad.errors import ArgumentTypeError, UnsupportedOperationError
from tests.helpers.long_programs import irregular


def test_long_irregular_tapes_run_on_the_machine(monkeypatch):
    x = np.linspace(0.1, 1, 12)
    assert jitad.jit_grad(irregular(300)).compile(x).tier == "kernel"
    monkeypatch.setattr(entry_machine, "STRAIGHT", 100)
    g = jitad.jit_grad(irregular(301))
    compiled = g.compile(x)
    assert compiled.tier == "machine" and "operations on the tape machine" in repr(compiled)
    assert compiled.source.startswith("# tape machine: ")
    np.testing.assert_array_equal(compiled(x), g(x))
    assert "tanh" in str(g.tape(x)) and len(compiled.tape) > 300
    for read in (lambda: compiled.source_file, lambda: compiled.step(x)):
        with pytest.raises(UnsupportedOperationError, match="runs on the tape machine and has no generated code"):
            read()


def test_loops_stay_loops(monkeypatch):
    monkeypatch.setattr(entry_machine, "STRAIGHT", 100)

    def f(x):
        h = x[0]
        for i in range(1, 600):
            h = 0.5 * h + np.tanh(x[i]) * h
        return h
    assert jitad.jit_grad(f).compile(np.linspace(0, 1, 600)).tier == "kernel"


def messages(count):
    """Sums over a tree: the same operations in the same order, on operands without any."""
    def f(x):
        message, parents, r = [0.0] * count, [0] * count, 1
        for i in range(1, count):
            r = (r * 6364136223846793005 + 1442695040888963407) % 2**64
            parents[i] = (r >> 33) % i
        for i in range(count - 1, 0, -1):
            e = np.exp(x[i % 12] + np.tanh(message[i]))
            message[parents[i]] = message[parents[i]] + np.log(e + 1 / e)
        return message[0]
    return f


def test_regular_operations_on_irregular_operands_are_given_up():
    x = np.linspace(0.1, 0.5, 12)
    compiled = jitad.value_and_grad(messages(4000)).compile(x)
    assert compiled.tier == "machine"
    value, gradient = compiled(x)
    f, direction, step = messages(4000), np.cos(np.arange(12)), 1e-6
    assert value == pytest.approx(f(x), rel=1e-12)
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    assert gradient @ direction == pytest.approx(slope, rel=1e-6)


def test_large_arrays_are_for_kernels(monkeypatch):
    monkeypatch.setattr(entry_machine, "STRAIGHT", 50)

    def f(x, y):
        return irregular(200)(x) + np.sum(np.exp(y) * y)
    assert jitad.jit_grad(f).compile(np.ones(12), np.ones(5000)).tier == "kernel"


def test_the_tier_can_be_forced_and_a_wrong_one_is_refused():
    x = np.linspace(0.1, 1, 12)
    g = jitad.value_and_grad(irregular(60))
    machine, kernel = g.compile(x, tier="machine"), g.compile(x)
    assert (machine.tier, kernel.tier, g.compile(x, tier="kernel").tier) == ("machine", "kernel", "kernel")
    np.testing.assert_allclose(machine(x)[1], kernel(x)[1], rtol=1e-12)
    for make in (lambda: g.compile(x, tier="fast"), lambda: jitad.jit(irregular(60), tier="fast"),
                 lambda: jitad.value_and_grad(tier=1)(irregular(60))):
        with pytest.raises(ArgumentTypeError, match='tier must be "kernel" or "machine"'):
            make()
    g = jitad.jit_grad(lambda a: np.linalg.det(a.reshape(2, 2)), tier="machine")
    np.testing.assert_allclose(g(np.arange(4.0)), [3, -2, -1, 0], rtol=1e-14)
    assert jitad.jit(lambda x, tier: x * tier).compile(1.0, tier=2.0)(1.0, 2.0) == 2.0


def module_level(x):
    return x[0] * x[1] + np.exp(x[2])


on_machine = jitad.jit_grad(tier="machine")(module_level)


def test_a_pickle_keeps_the_tier():
    x = np.arange(3.0)
    compiled = jitad.jit_grad(module_level).compile(x, tier="machine")
    again = pickle.loads(pickle.dumps(compiled))
    assert again.tier == "machine"
    np.testing.assert_array_equal(again(x), compiled(x))
    assert on_machine.compile(x).tier == "machine"


def test_nothing_of_it_is_stored_on_the_disk(tmp_path, monkeypatch):
    before = jitad.cache.configuration().disk
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jitad.cache, "_persistent", None)
    jitad.jit_grad(lambda x: module_level(x), tier="machine")(np.ones(3))     # its interpreter may be kept: it is there
    jitad.cache.configure(disk=True)
    try:
        for tier, files in (("machine", 0), ("kernel", 1)):
            jitad.jit_grad(module_level, tier=tier)(np.ones(3))
            assert bool([p for p in tmp_path.rglob("*") if p.is_file()]) == bool(files)
    finally:
        jitad.cache.configure(disk=before)
        jitad.cache._persistent = None


def test_the_cache_counts_its_memory_and_lets_go_of_it(monkeypatch):
    monkeypatch.setattr(entry_machine, "STRAIGHT", 100)
    g = jitad.jit_grad(irregular(310))
    g(np.ones(12))
    entry = g.compile(np.ones(12))._specialization
    assert isinstance(next(iter(entry.kernels.values())), MachineKernel)
    assert entry.nbytes > 16 * entry.machine.program.size
    jitad.cache.clear(g)
    assert jitad.cache.info(g).currsize == 0


def test_as_a_c_function():
    x = np.linspace(0.1, 1, 12)
    compiled = jitad.jit_grad(irregular(62), tier="machine").compile(x)
    made = compiled.cfunc
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(made.address)
    gradient, value = np.empty(12), np.empty(1)
    pointers = gradient.ctypes.data, value.ctypes.data, made.data
    assert function(12, x.ctypes.data, *pointers) == 0
    np.testing.assert_array_equal(gradient, compiled(x))
    assert value[0] == irregular(62)(x)
    assert function(11, x.ctypes.data, *pointers) == -1
    assert function(12, np.full(12, np.nan).ctypes.data, *pointers) == 1
