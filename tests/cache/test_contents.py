"""The store: counts, what is evicted and cleared, memos that forget, nothing kept alive."""

import gc
import weakref

import pytest

from jitad.cache.memory import Store
from tests.cache.memos import Memo, publish


def test_counts_per_owner_and_in_total():
    store, memo = Store(), Memo()
    counters = store.attach("f", memo)
    store.get_or_build("f", 1, object)
    store.get_or_build("g", 1, object)
    counters.hits += 5
    assert store.info("f")[:4] == (5, 1, 1, 1) and store.info()[:4] == (5, 2, 2, 2)
    store.clear("f")
    assert store.info("f")[:4] == (0, 0, 0, 0) and store.info()[:4] == (0, 1, 1, 1)
    counters.hits += 1
    assert store.info("f").hits == 1, "the counters stay in use after a clear"
    store.clear()
    assert store.info()[:4] == (0, 0, 0, 0) and store.info("unknown")[:4] == (0, 0, 0, 0)


def test_eviction_takes_the_least_recently_used_and_its_memo():
    store, memos = Store(maxsize=2), {k: Memo() for k in "abc"}
    assert publish(store, "f", "a", memos["a"]) and publish(store, "f", "b", memos["b"])
    store.get("f", "a")
    publish(store, "g", "c", memos["c"])
    assert memos["b"].entry is None and memos["a"].entry and memos["c"].entry
    assert store.info().currsize == 2 and [k for k, _ in store.entries("f")] == ["a"]


def test_warm_hits_past_the_store_keep_an_entry_from_eviction():
    store, hot, cold = Store(maxsize=2), Memo(), Memo()
    publish(store, "hot", "k", hot)
    publish(store, "cold", "k", cold)
    store.attach("hot", hot).hits += 1000
    store.get_or_build("new", "k", object)
    assert hot.entry is not None and cold.entry is None


def test_resize_keeps_the_latest():
    store, memo = Store(), Memo()
    publish(store, "f", 0, memo)
    for i in range(1, 5):
        store.get_or_build("f", i, object)
    store.resize(2)
    assert sorted(k for k, _ in store.entries("f")) == [3, 4] and memo.entry is None
    assert store.info()[3:] == (2, 2)
    store.get_or_build("f", 5, object)
    assert sorted(k for k, _ in store.entries("f")) == [4, 5]


@pytest.mark.parametrize("maxsize, error", [(0, ValueError), (-1, ValueError), (2.5, TypeError), (None, TypeError)])
def test_bad_sizes_are_refused(maxsize, error):
    with pytest.raises(error):
        Store(maxsize)
    store = Store()
    with pytest.raises(error):
        store.resize(maxsize)
    assert store.get_or_build("f", "k", lambda: 1) == 1 and store.info().maxsize == 1024


def test_clear_makes_memos_forget():
    store, f, g = Store(), Memo(), Memo()
    publish(store, "f", "k", f)
    publish(store, "g", "k", g)
    store.clear("f")
    assert f.entry is None and g.entry is not None
    store.clear()
    assert g.entry is None


def test_a_cleared_entry_is_not_remembered():
    store, memo = Store(), Memo()
    entry = store.get_or_build("f", "k", object)
    store.clear()
    assert not store.publish("f", "k", entry, memo, lambda: setattr(memo, "entry", entry))
    assert memo.entry is None


def test_finaliser_of_an_entry_may_clear_the_store():
    store = Store(maxsize=1)

    class Entry:
        def __del__(self):
            store.clear()

    store.get_or_build("f", 1, Entry)
    store.get_or_build("f", 2, object)
    assert store.info().currsize <= 1


def test_nothing_keeps_memos_and_their_functions_alive():
    store = Store()

    def user():
        pass

    memo = Memo()
    memo.function = user
    publish(store, "f", "k", memo)
    alive = weakref.ref(user), weakref.ref(memo)
    del user, memo
    gc.collect()
    assert [r() for r in alive] == [None, None]
    assert store.info().currsize == 1, "the entry stays for the function made again"


def test_records_of_owners_without_anything_do_not_pile_up():
    store = Store(maxsize=2)
    for i in range(5000):
        store.get_or_build(("f", i), "k", object)
    assert len(store.records) < 2000
    assert store.info()[:4] == (0, 5000, 5000, 2)


def test_misses_are_kept_with_reasons():
    store = Store()
    for i in range(40):
        store.note_miss("f", [f"reason {i}"])
    misses = store.misses("f")
    assert misses[-1][:2] == (40, ("reason 39",)) and len(misses) == 16
    store.clear("f")
    assert store.misses("f") == () == store.misses("unknown")
