"""A partial is another function than what it is made of, though it shares its code and the arguments of a call."""
from functools import partial

import numpy as np
import pytest

from jitad import CaptureError, cache, jit, jit_grad


def defaults(x, y=2.0):
    return x * x * y


def keyword_only(x, *, y=2.0):
    return x * x * y


def rest(x, *y):
    return x * x * (y[0] if y else 2.0)


def named(x, **y):
    return x * x * y.get("y", 2.0)


class Model:
    def method(self, x, y=2.0):
        return x * x * y

    def __call__(self, x, y=2.0):
        return 3.0 * x * x * y


@pytest.mark.parametrize("f", [defaults, keyword_only, named, Model().method, Model()])
def test_bound_keywords_are_not_mixed_up_with_defaults(f):
    cache.clear()
    functions = [f, partial(f, y=5.0), partial(partial(f, y=5.0), y=7.0)]
    for g in functions + functions[::-1]:
        assert jit(g)(3.0) == g(3.0)


@pytest.mark.parametrize("f", [defaults, rest, Model().method])
def test_bound_arguments_are_not_mixed_up_with_given_ones(f):
    cache.clear()
    assert jit_grad(f)(3.0) == 12.0
    bound = partial(f, 5.0)
    assert jit(bound)(3.0) == bound(3.0) == 75.0
    assert jit_grad(f)(3.0) == 12.0


def test_the_cache_on_disk_knows_partials(tmp_path, monkeypatch):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_persistent", None)
    cache.configure(disk=True)
    try:
        for f, gradient in [(defaults, 12.0), (partial(defaults, y=5.0), 30.0), (partial(rest, 5.0), 25.0)] * 2:
            cache.store.clear()
            assert jit_grad(f)(3.0) == gradient
    finally:
        cache.configure(disk=False)
        cache.clear()


def test_keywords_added_to_a_partial_later_are_refused():
    bound = partial(defaults, y=np.float64(5.0))
    g = jit_grad(bound)
    assert g(3.0) == 30.0
    bound.keywords["y"] = np.float64(6.0)
    assert g(3.0) == 36.0
    bound.keywords["z"] = 1.0
    with pytest.raises(CaptureError, match=r"partial under `defaults` has other keywords than when .*test_partials.*"):
        g(3.0)
    del bound.keywords["z"]
    assert g(3.0) == 36.0
    del bound.keywords["y"]
    with pytest.raises(CaptureError, match="transform a new partial"):
        g(3.0)
