"""Captured data with labels: what is computed from them alone runs as data, and is seen as it is in each call."""
import numpy as np
import pandas
import pytest
import xarray

import jitad
from jitad import CaptureError, MutationError, value_and_grad

THETA = np.array([0.5, 0.2, 0.3])


def frame(scale=1.0):
    return pandas.DataFrame({"x": [1.0 * scale, 2.0, np.nan], "y": [2.0, 3.0, 5.0], "g": [0, 1, 0],
                             "t": ["u", "v", "u"]})


def array(scale=1.0):
    return xarray.DataArray(np.arange(6.0).reshape(2, 3) * scale, dims=("a", "b"), coords={"b": list("xyz")})


df, da = frame(), array()
w = np.array([3.0, 2.0, 1.0])


def model(q):
    y = df["y"]
    total = (((y - y.mean()) / y.std() * w).to_numpy() @ q) + y.iloc[0] * q[0] + float(df.x.sum()) * q[1]
    total += np.log(y).values @ q + q[df["g"].to_numpy()].sum() + df.groupby("t")["y"].mean().to_numpy() @ q[:2]
    total += df[df.y > 1.5].shape[0] * q[2] + len(df) * q[0] + df[["x", "y"]].fillna(0.0).to_numpy().sum() * q[1]
    total += pandas.isna(df.x).to_numpy() @ q
    if "y" in df.columns and isinstance(df, pandas.DataFrame) and (df.y > 0).all():
        total += sum(v * r for v, r in zip(y, q, strict=True))
    return total


def labelled(q):
    anomalies = da - da.mean("a")
    total = (anomalies.values @ q).sum() + float(da.max()) * q[0] + np.exp(-da).sum().item() * q[1]
    total += np.sum(da.sel(b="y").to_numpy()) * q[2] + np.asarray(da * 2.0).sum() * q[0] + da.sizes["b"] * q[1]
    return total + sum(row.to_numpy() @ q for row in da)


def check(f, g):
    value, gradient = g(THETA)
    np.testing.assert_allclose(value, float(f(THETA)), rtol=1e-12)
    want = [float(f(THETA + e) - f(THETA - e)) / 2e-3 for e in 1e-3 * np.eye(3)]            # linear in q
    np.testing.assert_allclose(gradient, want, rtol=1e-8)


def test_changes_are_seen():
    """In place, by another object, with other labels, dtype, length: by value or by a way of its own."""
    global df, w
    g = value_and_grad(model, on_mismatch="silent")
    check(model, g)
    compiled = jitad.cache.info().compiles
    df.loc[0, "y"] = 7.0
    check(model, g)
    df = frame(4.0)
    check(model, g)
    w = w + 1.0
    check(model, g)
    assert jitad.cache.info().compiles == compiled
    df = df.assign(g=[2, 2, 1]).sort_values("y", ascending=False)
    check(model, g)
    df.loc[0, "t"] = "w"                                            # another group
    df["y"] = [-2.0, 3.0, 5.0]                                      # another way
    with pytest.raises(ValueError):
        g(THETA)
    df, w = frame(), np.array([3.0, 2.0, 1.0])


def test_arrays_with_dimensions():
    global da
    g = value_and_grad(labelled, on_mismatch="silent")
    check(labelled, g)
    compiled = jitad.cache.info().compiles
    da.values[0, 1] = 9.0
    check(labelled, g)
    da = array(3.0)
    check(labelled, g)
    assert jitad.cache.info().compiles == compiled
    da = array(3.0).astype(int)
    check(labelled, g)
    da = array()


def changing(q):
    df["z"] = df["y"]
    return q.sum()


@pytest.mark.parametrize("f, words", [
    (lambda q: np.sum(df.y * q), ("`df.y` is a Series", ".to_numpy()")),
    (lambda q: np.sum(q[0] * da), ("`da` is a DataArray", ".to_numpy()")),
    (lambda q: np.where(df.y > 1, q, 0).sum(), (".to_numpy()",)),
    (lambda q: np.sum(df.y.sample(2).to_numpy() * q[0]), ("`df.y.sample`", "outside of the function")),
    (lambda q: np.sum(df.y.apply(lambda v: v).to_numpy() * q), ("`df.y.apply`", "outside of the function")),
    (lambda q: np.sum(pandas.Series(w).to_numpy() * q), ("makes a Series", "make it outside")),
    (lambda q: np.sum(df.y.map(np.log).to_numpy() * q), ("outside of the function",)),
    (lambda q: df.y * 2, (".to_numpy()",)),
    (lambda q: df.y.isin(np.ma.array([2.0, 3.0], mask=[True, False])).to_numpy() @ q, ("used with a MaskedArray",)),
])
def test_what_meets_a_traced_value_is_told(f, words):
    with pytest.raises((CaptureError, jitad.JitadError)) as told:
        value_and_grad(f)(THETA)
    for word in (*words, "test_labelled.py"):
        assert word in str(told.value)


def test_a_change_of_the_data_is_refused():
    with pytest.raises(MutationError, match="`df`"):
        value_and_grad(changing)(THETA)
    assert "z" not in df


def test_the_way_out_of_a_meeting():
    check(lambda q: np.sum(df.y.to_numpy() * q), value_and_grad(lambda q: np.sum(df.y.to_numpy() * q)))
