"""The limits of the store: count, bytes, policies, the limit of one function and its warning; `configure`."""

import warnings

import pytest

from jitad import cache
from jitad.cache.memory import ShapeChurnWarning, Store
from tests.cache.memos import Memo, publish, run_all


class Sized:
    def __init__(self, nbytes):
        self.nbytes = nbytes


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def fill(store, owner, *keys, nbytes=0):
    for key in keys:
        store.get_or_build(owner, key, lambda: Sized(nbytes))


def keys(store, *owners):
    return sorted(key for owner in owners or store.owners() for key, _ in store.entries(owner))


# --- bytes ----------------------------------------------------------------------------------------------------------


def test_bytes_are_bounded():
    store, memo = Store(maxbytes=100), Memo()
    entry = store.get_or_build("f", "first", lambda: Sized(40))
    assert store.publish("f", "first", entry, memo, lambda: setattr(memo, "entry", entry))
    fill(store, "f", "second", nbytes=50)
    assert keys(store) == ["first", "second"]
    fill(store, "g", "third", nbytes=30)
    assert keys(store) == ["second", "third"] and memo.entry is None
    assert sum(row.nbytes for row in store.report()) == 80


def test_an_entry_larger_than_the_bound_stays_alone():
    store = Store(maxbytes=100)
    fill(store, "f", "small", nbytes=60)
    fill(store, "f", "huge", nbytes=500)
    assert keys(store) == ["huge"], "dropping it too would compile at each call"
    fill(store, "f", "next", nbytes=1)
    assert keys(store) == ["next"]


def test_entries_that_grow_push_others_out_but_not_themselves():
    store = Store(maxbytes=100)
    grown = store.get_or_build("f", "grown", lambda: Sized(10))
    fill(store, "f", "a", "b", nbytes=40)
    grown.nbytes = 70
    assert keys(store) == ["a", "b", "grown"]
    store.touch_size(grown)
    assert keys(store) == ["grown"]
    store.touch_size(Sized(1000)), store.touch_size(grown)
    assert keys(store) == ["grown"]


def test_the_measure_of_an_entry_can_be_given():
    store = Store(maxbytes=10)
    store.size_of = len
    store.get_or_build("f", 1, lambda: "12345")
    store.get_or_build("f", 2, lambda: "123456")
    assert keys(store) == [2]


# --- policies -------------------------------------------------------------------------------------------------------


def test_lfu_drops_what_is_used_least_often_warm_calls_included():
    store, memo = Store(maxsize=3, policy="lfu"), Memo()
    hot = store.get_or_build("f", "hot", lambda: Sized(0))
    counters = store.attach("f", memo, hot)
    counters.hits += 1000
    fill(store, "f", "warm", "warm", "cold")
    fill(store, "f", "new")
    assert keys(store) == ["hot", "new", "warm"]
    fill(store, "f", "newer")
    assert keys(store) == ["hot", "newer", "warm"], "the newest is spared once"
    assert store.info("f").hits == 1001


def test_lru_sees_warm_hits_of_each_entry():
    store, memo = Store(maxsize=2), Memo()
    first = store.get_or_build("f", "first", lambda: Sized(0))
    fill(store, "f", "second")
    store.attach("f", memo, first).hits += 1
    fill(store, "f", "third")
    assert keys(store) == ["first", "third"]


def test_ttl_drops_what_has_not_been_used_for_long():
    clock = Clock()
    store, memos = Store(policy="ttl", ttl=10, clock=clock), [Memo(), Memo()]
    for name, memo in zip("ab", memos, strict=True):
        publish(store, "f", name, memo)
    warm = store.attach("f", memos[1], memos[1].entry)
    clock.now = 6
    fill(store, "f", "c")
    clock.now = 11
    warm.hits += 1
    assert store.info().currsize == 2 and keys(store) == ["b", "c"] and memos[0].entry is None
    clock.now = 17
    assert store.get("f", "c") is None and store.get("f", "b") is memos[1].entry
    clock.now = 100
    assert store.get_or_build("f", "b", lambda: "again") == "again" and keys(store) == ["b"]
    assert store.info("f")[:3] == (2, 4, 4)
    clock.now = 200
    assert store.report()[0].entries == 0


def test_ttl_obeys_the_other_limits_too():
    clock = Clock()
    store = Store(maxsize=2, policy="ttl", ttl=10, clock=clock)
    fill(store, "f", 1, 2, 1, 3)
    assert keys(store) == [1, 3]
    clock.now = 20
    fill(store, "f", 4)
    store.clear()
    assert keys(store) == [] and store.info()[:4] == (0, 0, 0, 0)


def test_time_that_passes_while_the_store_is_at_work():
    """Entries that expire between any two looks at the clock are neither lost nor dropped twice."""
    for step in (0.1, 0.3, 0.5, 1.1, 2.0, 5.0):
        clock = Clock()

        def tick(clock=clock, step=step):
            clock.now += step
            return clock.now

        store = Store(maxsize=4, maxbytes=50, policy="ttl", ttl=3, per_function=3, clock=tick)
        store.warn = lambda owner, message: None
        for n in range(40):
            fill(store, n % 3, n % 7, nbytes=15)
            assert n % 7 in keys(store, n % 3), "the entry in use stays"
            if n % 10 == 9:
                store.limit(store.limits._replace(maxsize=2 + n % 4))
                store.limit(store.limits._replace(policy="lru", ttl=None))
                store.limit(store.limits._replace(policy="ttl", ttl=3))
        assert len(keys(store)) == len(store._order.slots) <= 5
        store.clear()
        assert not store._order.slots and keys(store) == []


@pytest.mark.parametrize("policy", ["lru", "lfu", "ttl"])
def test_a_change_of_policy_keeps_the_entries_and_their_order(policy):
    store = Store()
    fill(store, "f", 1, 2, 3, 1)
    store.limit(store.limits._replace(policy=policy, ttl=60 if policy == "ttl" else None))
    assert keys(store) == [1, 2, 3]
    store.resize(1)
    assert keys(store) == [1]


@pytest.mark.parametrize("policy", ["lru", "lfu", "ttl"])
def test_limits_hold_under_threads(policy):
    store = Store(maxsize=20, maxbytes=300, policy=policy, ttl=0.001 if policy == "ttl" else None, per_function=8)
    store.warn = lambda owner, message: None

    def work(seed):
        for n in range(300):
            key = (n * seed) % 37
            assert store.get_or_build(n % 5, key, lambda: Sized(20)).nbytes == 20
            if n % 50 == 0:
                store.limit(store.limits._replace(maxsize=10 + seed))

    assert run_all(*[lambda i=i: work(i) for i in (1, 3, 5, 7)]) == [None] * 4
    assert store.info().currsize == sum(len(store.entries(o)) for o in store.owners()) <= store.limits.maxsize
    assert store.info().misses == store.info().compiles


# --- the limit of one function --------------------------------------------------------------------------------------


def test_one_function_cannot_evict_the_others():
    store, told = Store(maxsize=50, per_function=10), []
    store.warn = lambda owner, message: told.append((owner, message))
    fill(store, "others", *range(20, 25))
    fill(store, "churn", *range(10))
    assert told == []
    fill(store, "churn", 0, *range(100, 300))
    assert keys(store, "others") == list(range(20, 25)) and keys(store, "churn") == list(range(290, 300))
    assert len(told) == 1 and told[0][0] == "churn"
    for word in ("`churn`", "more than 10 ", "pad", "static", "wider function", "configure(per_function=...)"):
        assert word in told[0][1]
    store.clear("churn")
    fill(store, "churn", *range(11))
    assert len(told) == 2, "a clear starts anew"


def test_the_least_recently_used_of_that_function_goes():
    store = Store(per_function=2)
    store.warn = lambda owner, message: None
    fill(store, "f", "a", "b", "a", "c")
    assert keys(store) == ["a", "c"]


def test_no_limit_for_one_function():
    store = Store(per_function=None)
    fill(store, "f", *range(300))
    assert store.info("f").currsize == 300


def test_a_warning_turned_into_an_error_loses_nothing():
    store = Store(per_function=1)
    fill(store, "f", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ShapeChurnWarning, match="`f` has been compiled"):
            fill(store, "f", 2)
        fill(store, "f", 2, 3)
    assert keys(store) == [3] and store.info()[:3] == (1, 3, 3)


def test_the_default_warning_has_the_callers_line():
    store = Store(per_function=1)
    with pytest.warns(ShapeChurnWarning) as caught:
        store.get_or_build("f", 1, object), store.get_or_build("f", 2, object)
    assert caught[0].filename == __file__


# --- configure ------------------------------------------------------------------------------------------------------


def test_configure_changes_what_is_given(own_store):
    default = cache.configuration()
    assert default == (1024, 512 * 1024**2, "lru", None, 128, "warn", default.disk, 32, False, None)
    assert cache.configure(maxbytes=None, per_function=7, on_mismatch="error", disk=False) is None
    assert cache.configuration() == (1024, None, "lru", None, 7, "error", False, 32, False, None)
    cache.configure(policy="ttl", ttl=3)
    cache.configure(maxsize=5, ttl=4.5)
    assert cache.configuration()[:5] == (5, None, "ttl", 4.5, 7) == own_store.limits
    cache.configure(policy="lfu")
    assert cache.configuration()[:5] == (5, None, "lfu", None, 7)
    cache.resize(9)
    assert cache.configuration().maxsize == cache.info().maxsize == 9
    assert "on_mismatch='error'" in repr(cache.configuration())


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"maxsize": 0}, ValueError, "maxsize must be at least 1, not 0"),
        ({"maxsize": None}, TypeError, "maxsize must be an integer"),
        ({"maxsize": True}, TypeError, "maxsize must be an integer"),
        ({"maxbytes": -1}, ValueError, "maxbytes must be at least 1"),
        ({"maxbytes": 1e9}, TypeError, "maxbytes must be an integer"),
        ({"per_function": 0}, ValueError, "per_function must be at least 1"),
        ({"per_function": "all"}, TypeError, "per_function must be an integer number of entries, or None"),
        ({"policy": "fifo"}, ValueError, "policy must be one of 'lru', 'lfu', 'ttl', not 'fifo'"),
        ({"policy": ["lru"]}, ValueError, "policy must be one of"),
        ({"policy": "ttl"}, ValueError, "policy='ttl' needs ttl="),
        ({"ttl": 5}, ValueError, "ttl=5 goes with policy='ttl'"),
        ({"policy": "lfu", "ttl": 5}, ValueError, "ttl=5 goes with policy='ttl'"),
        ({"policy": "ttl", "ttl": 0}, ValueError, "positive"),
        ({"policy": "ttl", "ttl": float("nan")}, ValueError, "positive"),
        ({"policy": "ttl", "ttl": "1 h"}, TypeError, "ttl must be a number of seconds"),
        ({"on_mismatch": "raise"}, ValueError, "on_mismatch must be one of 'warn', 'error', 'silent', not 'raise'"),
        ({"ways": 0}, ValueError, "ways must be at least 1"),
        ({"ways": None}, TypeError, "ways must be an integer"),
        ({"disk": 1}, TypeError, "disk must be True or False"),
        ({"size": 1}, TypeError, "size"),
    ],
)
def test_configure_refuses_what_makes_no_sense(own_store, options, error, text):
    before = cache.configuration()
    with pytest.raises(error, match=text.replace("(", r"\(")):
        cache.configure(maxsize=3, **options) if "maxsize" not in options else cache.configure(**options)
    assert cache.configuration() == before and own_store.limits.maxsize == 1024


def test_the_environment_turns_the_disk_off(monkeypatch):
    for value, on in [("0", False), ("off", False), ("False", False), ("1", True), ("", True)]:
        monkeypatch.setenv("JITAD_DISK_CACHE", value)
        assert cache.initial(Store().limits).disk is on
    monkeypatch.delenv("JITAD_DISK_CACHE")
    assert cache.initial(Store().limits).disk is True


def test_warnings_go_through_the_installed_hook(own_store, monkeypatch):
    told = []
    cache.set_warner(lambda message, category: told.append(category))
    cache.configure(per_function=1)
    fill(own_store, "f", 1, 2, 3)
    cache.configure(per_function=2)
    fill(own_store, "f", 4, 5, 6)
    assert told == [ShapeChurnWarning] * 2, "once for each limit"
