"""Other processes: pickles, fork and spawn, forks while threads compile, processes that share a disk or are killed."""
from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from jitad import cache, jit_grad, value_and_grad
from jitad.compile.llvm.fork_guard import Gate, gate
from tests.cache.processes import start, wait
from tests.call import stored_cases
from tests.call.stored_cases import CASES, x3

ROOT = Path(__file__).parents[2]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@jit_grad
def cube(x):
    return np.sum(x**3)


@value_and_grad
def split(x):
    return np.sum(x * x) if x[0] > 0 else np.sum(x)


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()


def run(code, *args, **environment):
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "PYTHONPATH": str(ROOT), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- pickles -------------------------------------------------------------------------------------------------------


def test_importable_functions_pickle_by_name():
    for g in (cube, cube.value, cube.value_and_grad):
        again = pickle.loads(pickle.dumps(g))
        assert again is g and repr(again(x3)) == repr(g(x3))
    assert len(pickle.dumps(cube)) < 100


def test_settings_travel_with_what_is_pickled_by_value():
    g = jit_grad(stored_cases.helper, argnums=(0,), on_mismatch="error", static=("MODE",))
    again = pickle.loads(pickle.dumps(g))
    assert again.subject.settings == g.subject.settings and again.subject.request == g.subject.request


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
def test_compiled_tapes_pickle_with_what_they_were_made_for():
    for x in (x3, -x3):                                   # two ways through the branches
        compiled = split.compile(x)
        again = pickle.loads(pickle.dumps(compiled))
        assert str(again.tape) == str(compiled.tape) and again.signature == compiled.signature
        assert repr(again(x)) == repr(compiled(x)) and repr(again.interpret(x)) == repr(compiled(x))
    with pytest.raises(AttributeError, match=r"local object|<lambda>"):
        pickle.dumps(jit_grad(lambda x: np.sum(x)).compile(x3))


def test_cloudpickle_takes_the_rest(tmp_path):
    scale = 2.0
    g = jit_grad(lambda x: np.sum(x * x) * scale)
    file = tmp_path / "pickle"
    file.write_bytes(cloudpickle.dumps([g, g.value_and_grad, g.compile(x3)]))
    code = ("import pickle, sys, numpy as np; x = np.array([1.0, 2.0, 3.0])\n"
            "print([g(x) for g in pickle.load(open(sys.argv[1], 'rb'))])")
    assert run(code, str(file)) == repr([g(x3), g.value_and_grad(x3), g(x3)])


MAIN = """
import multiprocessing, pickle, sys, numpy as np, cloudpickle
from jitad import jit_grad

@jit_grad
def f(x):
    return np.sum(x**3)

def call(x):
    return f(x)

if __name__ == "__main__":
    x = np.arange(3.0)
    assert pickle.loads(pickle.dumps(f)) is f and pickle.loads(cloudpickle.dumps(f)) is not f
    for method in ("fork", "spawn"):
        f(x)
        with multiprocessing.get_context(method).Pool(1) as pool:
            results = [*pool.map(f, [x]), *pool.map(call, [x]), *pool.map(f.compile(x), [x])]
            assert all(np.array_equal(r, 3 * x**2) for r in results), results
    print("fine")
"""


@needs_fork
def test_functions_of_a_script_work_in_forked_and_spawned_children(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "fine", done.stderr


def test_spawned_children_get_functions_by_name():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (got,) = pool.map_async(cube.value_and_grad, [x3]).get(60)
    assert repr(got) == repr(cube.value_and_grad(x3))


def test_a_c_function_is_not_pickled():
    cfunc = jit_grad(lambda x: np.sum(x * x)).compile(np.ones(2)).cfunc
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="belongs to its process"):
            attempt(cfunc)


# --- forks ----------------------------------------------------------------------------------------------------------


def forked(work, timeout=60.0):
    """Run `work` in a forked child; whether it ended well, and in time."""
    try:
        return wait(start(work), timeout) == 0
    except AssertionError:
        return False


def new_function(text):
    space = {"np": np}
    exec(f"def f(x): return {text}", space)
    return jit_grad(space["f"])


@needs_fork
def test_a_child_goes_on_with_what_is_there():
    cube(x3)

    def work():
        assert cache.info(cube).compiles == 1
        np.testing.assert_array_equal(cube(x3), 3 * x3**2)
        assert cache.info(cube)[:3] == (1, 1, 1)
        np.testing.assert_array_equal(new_function("np.sum(x) * 5")(x3), np.full(3, 5.0))

    assert forked(work)


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_while_other_threads_compile():
    stop, errors = threading.Event(), []

    def compile_all_the_time(j):
        n = 0
        while not stop.is_set():
            n += 1
            try:
                new_function(f"np.sum(np.exp(x * {n}.0)) + {j}")(x3)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=compile_all_the_time, args=(j,)) for j in range(2)]
    for thread in threads:
        thread.start()
    try:
        for k in range(6):
            time.sleep(0.02)
            g = new_function(f"np.sum(np.sin(x)) * {k + 2}")
            assert forked(lambda g=g, k=k: np.testing.assert_allclose(g(x3), (k + 2) * np.cos(x3)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors


@needs_fork
def test_the_first_compile_of_a_process_and_a_fork():
    """The other thread is importing what compiles, and holds the locks of the imports."""
    code = """if 1:
        import threading, time, numpy as np
        from tests.call import test_processes as t
        from jitad import jit_grad
        x = np.ones(3)
        thread = threading.Thread(target=lambda: t.cube(x))
        thread.start()
        time.sleep(0.03)
        assert t.forked(lambda: t.cube(x), 30) and t.forked(lambda: t.split(x), 30)
        thread.join()
        print("fine")"""
    assert run(code, JITAD_DISK_CACHE="0") == "fine"


@needs_fork
def test_locks_that_dead_threads_hold_are_new_in_the_child():
    cube(x3)
    (entry,) = [e for owner in cache.store.owners() for _, e in cache.store.entries(owner)]
    held, done = threading.Event(), threading.Event()

    def hold():
        with entry.lock, cache.store.lock:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert forked(lambda: cube(x3) is None or cube(np.ones((3, 1))[:, 0]) is None or cube(x3), 20)
    finally:
        done.set()
        thread.join()


def test_the_gate():
    door = Gate(wait=0.2)
    order = []
    inside, leave = threading.Event(), threading.Event()

    def work():
        with door, door:
            inside.set()
            leave.wait(10)
            order.append("left")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    start = time.monotonic()
    door.before()                                         # waits in vain
    assert 0.15 < time.monotonic() - start < 5
    door.after_in_parent()
    leave.set()
    with door:                                            # whoever is inside may fork
        door.before()
        order.append("closed")
        door.after_in_parent()
    thread.join()
    door.before()
    late = threading.Thread(target=lambda: door.__enter__() or order.append("late") or door.__exit__())
    late.start()
    time.sleep(0.05)
    assert "late" not in order
    door.after_in_parent()
    late.join()
    assert sorted(order) == ["closed", "late", "left"] and not door._inside
    assert isinstance(gate, Gate) and not gate._inside


# --- processes that share a disk -------------------------------------------------------------------------------------

SOME = ("logistic", "F order", "way 1", "way 2", "captures", "trees", "made")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_persistent", None)
    cache.configure(disk=True, on_mismatch="silent")
    yield tmp_path / "cache"
    cache.configure(disk=False, on_mismatch="warn")
    cache.clear()


def check_folder(folder, expected):
    """Every entry is whole, and gives what it should."""
    names = [file.name for file in folder.iterdir() if file.name.endswith(".jitad")]
    store = cache.persistent_store().disk
    assert len(list(store.entries())) == len(names)
    for case, result in expected.items():
        assert stored_cases.outcome(case) == result


@needs_fork
def test_processes_race_on_an_empty_folder(folder):
    expected = {case: stored_cases.outcome(case) for case in SOME}
    cache.clear()
    cache.persistent_store().disk.clear()

    def race():
        assert all(stored_cases.outcome(case) == expected[case] for case in SOME[:4])

    assert [wait(child) for child in [start(race) for _ in range(20)]] == [0] * 20
    check_folder(folder, expected)
    assert cache.info(stored_cases.logistic).compiles == 0


@needs_fork
def test_a_process_killed_at_any_instant_leaves_a_valid_folder(folder):
    expected = {case: stored_cases.outcome(case) for case in SOME}
    disk = cache.persistent_store().disk
    cache.clear()
    for n in range(15):
        disk.clear()
        child = os.fork()
        if child == 0:
            try:
                for case in SOME:
                    CASES[case]()
            finally:
                os._exit(0)
        time.sleep(0.02 + 0.05 * n)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if n % 5 == 4:
            cache.clear()
            check_folder(folder, expected)
            cache.clear()
