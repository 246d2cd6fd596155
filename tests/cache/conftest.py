"""Fixtures of the tests of the cache."""
import pytest

from jitad import cache
from jitad.cache.memory import Store


@pytest.fixture
def own_store(monkeypatch):
    """The functions of `cache` on a store of their own, with the configuration of a new process."""
    store = Store()
    store.warn = cache.store.warn
    monkeypatch.setattr(cache, "store", store)
    monkeypatch.setattr(cache, "_configuration", cache.initial(store.limits))
    monkeypatch.setattr(cache, "_warn", None)
    return store
