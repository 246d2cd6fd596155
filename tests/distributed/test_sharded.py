"""Likelihoods in shards on one machine."""
from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pytest

import jitad
from jitad.constraints import real
from jitad.distributed.shards import joined, subtrees, summed

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(37, 2)), RNG.normal(size=37)
SHARDS = list(zip(np.array_split(X, 5), np.array_split(Y, 5), strict=True))
T, V = np.array([0.5, -1.0]), np.array([1.0, 2.0])


def likelihood(theta, x, y):
    return np.sum(np.log1p((y - x @ theta) ** 2))


def prior(theta):
    return -0.5 * np.sum(theta**2)


def whole(theta):
    return likelihood(theta, X, Y) + prior(theta)


F = jitad.sharded(likelihood, SHARDS, prior)


def test_everything_is_that_of_the_sum():
    value, gradient = jitad.value_and_grad(whole)(T)
    assert F(T) == pytest.approx(value)
    np.testing.assert_allclose(F.value_and_grad(T)[1], gradient)
    np.testing.assert_allclose(F.grad(T), gradient)
    hessian = jitad.hessian(whole)(T)
    np.testing.assert_allclose(F.hessian(T), hessian)
    np.testing.assert_allclose(F.hvp(T, V), hessian @ V)
    values, gradients = F.batch(np.stack([T, V, T]))
    assert values[0] == values[2] == pytest.approx(value)
    np.testing.assert_allclose(gradients, [jitad.jit_grad(whole)(t) for t in (T, V, T)])


def test_it_is_called_by_compiled_code_to_second_order():
    np.testing.assert_allclose(jitad.jit_grad(lambda t: np.sin(F(2.0 * t)))(T),
                               jitad.jit_grad(lambda t: np.sin(whole(2.0 * t)))(T))
    np.testing.assert_allclose(jitad.hvp(F)(T, V), jitad.hvp(whole)(T, V))
    value, gradient = jitad.posterior(lambda p: F(p["t"]), dict(t=real(2))).value_and_grad(T)
    assert value == F(T)
    np.testing.assert_array_equal(gradient, F.grad(T))


def test_value_and_gradient_at_a_point_are_one_pass_over_the_shards(tmp_path):
    loads = []

    def loading(k):
        return lambda: (loads.append(k), SHARDS[k])[1]
    streamed = jitad.sharded(likelihood, [loading(k) for k in range(5)])
    streamed(T), streamed.grad(T), streamed.value_and_grad(T)
    assert loads == [0, 1, 2, 3, 4]
    for k, (x, y) in enumerate(SHARDS):
        np.savez(tmp_path / f"{k}.npz", y=y, x=x)
    stored = jitad.sharded(likelihood, [tmp_path / f"{k}.npz" for k in range(5)])
    assert stored(T) == streamed(T)


def test_shards_in_tables_and_stores_are_read_by_the_names_of_the_arguments(tmp_path):
    pyarrow, parquet, zarr = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet", "zarr"))
    paths = [tmp_path / f"{k}{kind}" for k, kind in enumerate((".parquet", ".zarr", ".parquet", ".zarr", ".npz"))]
    for path, (x, y) in zip(paths, SHARDS, strict=True):
        if path.suffix == ".parquet":
            rows = pyarrow.FixedSizeListArray.from_arrays(x.ravel(), 2)
            parquet.write_table(pyarrow.table({"name": ["?"] * len(y), "y": y, "x": rows}), path, row_group_size=3)
        elif path.suffix == ".zarr":
            zarr.save_group(path, x=x, y=y, other=np.ones(3))
        else:
            np.savez(path, x=x, y=y)
    stored, whole = (jitad.sharded(likelihood, shards) for shards in (paths, SHARDS))
    assert stored(T) == whole(T) and stored.grad(V).tobytes() == whole.grad(V).tobytes()
    zarr.save_array(tmp_path / "one.zarr", Y)
    assert jitad.sharded(lambda t, y: t[0] * np.sum(y), [tmp_path / "one.zarr"])(T) == pytest.approx(0.5 * Y.sum())


def test_files_that_lack_something_are_errors_with_their_path(tmp_path, monkeypatch):
    pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    path = tmp_path / "a.parquet"
    for table, words in (({"x": [1.0], "z": [2.0]}, r"a.parquet has x, z, but not y, which the log-likelihood takes"),
                         ({"x": [1.0, 2.0], "y": [None, 1]}, r"1 values of `y` are missing in .*a.parquet"),
                         ({"x": pyarrow.array([[1.0, None]], pyarrow.list_(pyarrow.float64(), 2)), "y": [1.0]},
                          "1 values of `x` are missing")):
        parquet.write_table(pyarrow.table(table), path)
        with pytest.raises(jitad.SignatureError, match=words) as caught:
            jitad.sharded(likelihood, [path])(T)
        assert caught.value.__notes__[-1] == "while shard 0 was loaded"
    for kind, package in (("parquet", "pyarrow"), ("zarr", "zarr")):
        monkeypatch.setitem(sys.modules, f"{package}.parquet" if kind == "parquet" else package, None)
        with pytest.raises(ModuleNotFoundError, match=rf"need {package}, which is not installed: .*jitad\[shards\]"):
            jitad.sharded(likelihood, [tmp_path / f"a.{kind}"])(T)


def test_sums_do_not_depend_on_who_holds_what():
    values = RNG.normal(size=13) * 10.0 ** RNG.integers(-9, 9, size=13)
    leaf = [(np.array(v),) for v in values].__getitem__
    expected = summed((0, 13), leaf)[0]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        owner = rng.integers(0, 4, size=13)
        parts = {}
        for who in range(4):
            spans = subtrees((0, 13), {i for i in range(13) if owner[i] == who})
            parts.update({span: summed(span, leaf) for span in spans})
        assert joined((0, 13), parts)[0] == expected
    assert subtrees((0, 13), set(range(13))) == [(0, 13)]


def test_data_that_are_not_finite_are_named():
    x = X.copy()
    x[9, 1] = np.nan                                         # the second row of the second shard
    wrong = list(zip(np.array_split(x, 5), np.array_split(Y, 5), strict=True))
    with pytest.raises(jitad.NonFiniteError, match=r"shard 1 gives NaN, where `x` is nan in row 1 \(column 1\)"):
        jitad.sharded(likelihood, wrong)(T)
    missing = jitad.sharded(lambda t, x: np.sum(np.where(np.isnan(x), 0.0, t[0] * x)), [np.array([1.0, np.nan])])
    assert missing(T) == 0.5                                 # NaN that is passed over is none of our business
    assert np.isnan(F(np.array([np.nan, 0.0])))              # nor is a point that is not finite
    with pytest.raises(jitad.NonFiniteError, match=r"shard 0: .*log"):
        jitad.sharded(lambda theta, x: np.sum(np.log(theta[0] * x)), [np.zeros(2)]).check_finite(T)


def test_what_a_shard_raises_bears_its_number():
    def load():
        raise OSError("no such file")
    with pytest.raises(OSError, match="no such file") as caught:
        jitad.sharded(likelihood, [SHARDS[0], load])(T)
    assert caught.value.__notes__ == ["while shard 1 was loaded"]
    with pytest.raises(ValueError, match=r"matmul|size") as caught:
        jitad.sharded(likelihood, [SHARDS[0], (np.ones((2, 3)), np.ones(2))])(T)
    assert "in shard 1" in caught.value.__notes__


@pytest.mark.parametrize(("arguments", "words"), [
    ((3, SHARDS), "log_likelihood must be a function, not a int"),
    ((likelihood, SHARDS, 3), "prior must be a function"),
    ((likelihood, np.ones(3)), r"must be a list with the data of each shard, not ndarray"),
    ((likelihood, []), "shards is empty"),
    ((likelihood, ["a.csv"]), r"shard 0 is the path 'a.csv'; known are .npy, .npz, .parquet, .zarr;"),
    ((likelihood, [(X, ["a"])]), "shard 0 has a list in place 1"),
    ((likelihood, [(X, np.array(["a"]))]), "shard 0 has an array of <U1 in place 1"),
    ((likelihood, [{"x": X}]), "shard 0 has x, and the log-likelihood takes x, y"),
])
def test_bad_input_is_an_error_at_once(arguments, words):
    with pytest.raises((jitad.ArgumentTypeError, jitad.SignatureError), match=words):
        jitad.sharded(*arguments)


def test_bad_points_are_errors():
    for call, words in ((lambda: F(1.0), "theta must be an array of float64, not a float"),
                        (lambda: F(np.array(["a"])), "not an array of <U1"),
                        (lambda: F.hvp(T, np.ones(3)), r"v has shape \(3,\), and theta \(2,\)"),
                        (lambda: F.batch(T), r"thetas has shape \(2,\)")):
        with pytest.raises(jitad.ArgumentTypeError, match=words):
            call()
    with pytest.raises(TypeError, match="cannot be pickled; make it where it is used"):
        pickle.dumps(F)
