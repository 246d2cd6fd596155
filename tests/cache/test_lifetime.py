"""What entries keep alive, and for how long: nothing of the caller's, and code that is gone not for ever."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from jitad import cache
from jitad.cache.contents import ORPHANS
from jitad.cache.keys.captures import Path, Plan
from jitad.cache.keys.identity import code_key, living_codes, unwrap
from jitad.cache.keys.signature import Signature
from jitad.cache.memory import Store
from tests.cache.memos import Memo
from tests.helpers.fetching import fetch_of


class Entry:
    """As jitad's: the plan of what was captured and the signature of what was passed."""

    def __init__(self, plan, signature):
        self.plan, self.signature = plan, signature


def remember(store, f, *arguments):
    """A call of a decorated function, but for the kernel: find or record, compile the getter, keep it in a memo."""
    target, owner = unwrap(f), code_key(f)
    signature = Signature.of(arguments)

    def record():
        plan = Plan(owner)
        for i, cell in enumerate(f.__closure__ or ()):
            plan.add(Path.of(("cell", i, f.__code__.co_freevars[i])), "input", cell.cell_contents)
        store.note_miss(owner, ["first call"])
        return Entry(plan, signature)

    entry = store.get_or_build(owner, signature, record, accept=lambda e: e.plan.matches(target))
    memo = Memo()
    memo.function, memo.counters = f, store.attach(owner, memo, entry)
    fetch = fetch_of(entry.plan, target)
    assert store.publish(owner, signature, entry, memo, lambda: setattr(memo, "entry", fetch))
    return memo


def test_ten_thousand_closures_over_large_arrays_stay_flat():
    store, argument = Store(), np.zeros(3)

    def use(n):
        array = np.empty(131_072)  # 1 MiB
        memo = remember(store, lambda x: x @ array, argument)
        assert memo.entry()[0] is array and memo.function is not None
        return weakref.ref(array)

    for n in range(100):
        use(n)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n in range(1000):
            use(n)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000, "less than a tenth of one of the arrays"
    for n in range(9000):
        last = use(n)
    gc.collect()
    assert last() is None and store.info()[1:4] == (1, 1, 1) and store.info().hits == 10_099


def test_an_entry_keeps_neither_function_nor_captures_nor_arguments():
    store = Store()

    def make(array):
        return lambda x: x @ array

    array, argument = np.zeros(3), np.zeros(3)
    f = make(array)
    memo = remember(store, f, argument)
    alive = [weakref.ref(thing) for thing in (f, array, argument, memo)]
    del f, array, argument, memo
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4 and store.info().currsize == 1


def test_counts_outlive_memos():
    store = Store()
    entry = store.get_or_build("f", 1, object)
    for _ in range(3):
        memo = Memo()
        store.attach("f", memo, entry).hits += 2
        del memo
    assert store.info("f").hits == 6
    store.resize(1)
    store.get_or_build("g", 1, object)
    assert store.info("f")[:4] == (6, 1, 1, 0) and store.info().hits == 6


def define(source):
    names = {}
    exec(source, names)
    return names["f"]


@pytest.mark.usefixtures("own_store")
def test_a_few_entries_are_kept_of_code_that_is_gone():
    cache.store.gone = cache._gone
    alive = [define(f"def f(x): return x * {n}.0") for n in range(20)]
    for f in alive:
        remember(cache.store, f, 1.0)
    for n in range(300):
        remember(cache.store, define(f"def f(x): return x + {n}"), 1.0)
    gc.collect()
    remember(cache.store, define("def f(x): return x"), 1.0)
    assert cache.info().currsize <= len(alive) + ORPHANS + 1
    assert all(cache.store.entries(code_key(f)) for f in alive), "those of living code are not touched"


@pytest.mark.usefixtures("own_store")
def test_code_defined_again_from_the_same_source_hits():
    cache.store.gone = cache._gone
    for n in range(24):
        remember(cache.store, define("def f(x): return x - 1"), 1.0)
        remember(cache.store, define(f"def f(x): return x / {n % 8}"), 1.0)
        gc.collect()
    assert cache.info().compiles == 9


@pytest.mark.usefixtures("own_store")
def test_a_lambda_made_again_in_a_loop_hits_however_long_the_loop():
    cache.store.gone = cache._gone
    for n in range(2 * ORPHANS):
        remember(cache.store, define(f"def f(x): return x ** {n}"), 1.0)
        remember(cache.store, lambda x: x, 1.0)
    assert cache.info().compiles == 2 * ORPHANS + 1


@pytest.mark.usefixtures("own_store")
def test_when_there_is_too_much_code_that_is_gone_goes_first():
    cache.store.gone = cache._gone
    cache.configure(maxsize=4)
    remember(cache.store, define("def f(x): return x"), 1.0)
    used = [define(f"def f(x): return x * {n}.0") for n in range(3)]
    for f in used:
        remember(cache.store, f, 1.0)
    remember(cache.store, define("def f(x): return x"), 1.0)  # used last, but nobody has it any more
    gc.collect()
    remember(cache.store, used[0], np.zeros(2))
    assert [len(cache.store.entries(code_key(f))) for f in used] == [2, 1, 1]


def test_owners_that_are_not_code_count_as_living():
    gone = code_key(define("def f(x): return 'gone'"))
    f = define("def f(x): return 'here'")
    gc.collect()
    owners = ["f", 3, ("a", 1), code_key(f), f"gradient of {code_key(f)}", gone, f"gradient of {gone}"]
    assert cache._gone(owners) == {gone, f"gradient of {gone}"}
    assert code_key(f) in living_codes() and gone not in living_codes()


def test_dropped_entries_are_let_go_of_at_once():
    store, entries = Store(maxsize=1), []

    class Large:
        pass

    def build():
        entry = Large()
        entries.append(weakref.ref(entry))
        return entry

    store.note_miss("f", ["first"])
    for n in range(3):
        store.get_or_build("f", n, build)
    assert [ref() is None for ref in entries] == [True, True, False]
    store.clear()
    assert entries[-1]() is None
