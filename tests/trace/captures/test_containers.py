"""Captures inside of containers and modules while recording, as `test_functions` has it for functions."""
from __future__ import annotations

import argparse
import math
from collections import OrderedDict

import numpy as np
import scipy
from scipy import special
from scipy.special import logsumexp

from tests.helpers.recorded import Recorded, user_module, x3

TABLE = {"scale": 2.0, "data": np.ones(3), "mode": "log", "n": 2}


# --- containers ------------------------------------------------------------------------------

def test_dicts(monkeypatch):
    r = Recorded(lambda x: x * TABLE["scale"] + TABLE["data"] + TABLE.get("n", 1), x3)
    monkeypatch.setitem(TABLE, "scale", 9.0)
    TABLE["data"][1] = 4.0
    r.same(x3)
    monkeypatch.setitem(TABLE, "mode", "other")  # never read
    r.same(x3)
    monkeypatch.setitem(TABLE, "n", 3)
    r.changed(x3)


def test_going_through_a_dict_guards_its_keys():
    d = OrderedDict(a=1.0, b=2.0)
    r = Recorded(lambda x: x * sum(d.values()) + len({**d}), x3)
    d["a"] = 5.0
    r.same(x3)
    d["c"] = 1.0
    r.changed(x3)
    e = {"inner": {"w": np.ones(3)}}
    r = Recorded(lambda x: x * e["inner"]["w"] * ("q" in e["inner"] or 2), x3)
    e["inner"]["w"] = np.zeros(3)
    r.same(x3)
    e["inner"]["q"] = 1
    r.changed(x3)


def test_lists_and_tuples():
    items, sizes, pair = [1.0, np.ones(3), "a"], (3, 4), (2.0, "b")
    r = Recorded(lambda x: x * items[0] + items[1] + sizes[0] + pair[0] + len(items), x3)
    items[0] = 5.0
    items[1] = np.arange(3.0)
    pair = (7.0, "b")
    r.same(x3)
    sizes = (4, 4)
    r.changed(x3)
    long = [float(i) for i in range(200)]
    r = Recorded(lambda x: x * np.array(long).sum(), x3)
    assert not r.plan.inputs
    long[3] = -1.0
    r.changed(x3)


def test_namespaces_and_numpy_scalars():
    args = argparse.Namespace(tau=2.0, mode="x")
    tau32 = np.float32(2.0)
    r = Recorded(lambda x: x * args.tau * tau32, x3)
    args.tau = 4.0
    tau32 = np.float32(0.5)
    r.same(x3)
    tau32 = np.float64(0.5)
    r.changed(x3)


# --- modules ---------------------------------------------------------------------------------

def test_user_modules():
    config = user_module(sigma=2.0, mode="a")
    r = Recorded(lambda x: x * config.sigma + config.scaled(x) + (1 if config.mode == "a" else 2), x3)
    config.sigma = 3.0
    r.same(x3)
    config.mode = "b"
    r.changed(x3)
    config.mode = "a"
    r.same(x3)
    config = user_module(sigma=9.0, mode="a")
    r.changed(x3)


def test_substitutes_are_found_everywhere():
    from scipy.linalg import cholesky  # noqa: F401

    def f(x):
        import scipy.special as sp
        from scipy.special import logsumexp as inner
        return logsumexp(x) + special.logsumexp(x) + scipy.special.logsumexp(x) + inner(x) + sp.logsumexp(x)

    Recorded(f, x3)
    table = {"f": logsumexp}
    Recorded(lambda x: table["f"](x), x3)


def test_numpy_stays_real():
    def f(x):
        assert isinstance(2.0, float) and isinstance(np.float64(1), np.floating) and np.pi == math.pi
        assert isinstance(np.zeros(2, np.float64), np.ndarray) and np.linalg.__name__ == "numpy.linalg"
        return x * np.pi + np.full(3, math.e) * np.float64(2)

    assert not Recorded(f, x3).plan.inputs
