"""The bridge to nutpie: sampling through the C pointer, the layout of the trace, the errors."""

import dataclasses
import gc
import sys

import numpy as np
import pytest

import jitad
from jitad import jit_grad
from jitad.compile.routines.opaque import taken
from jitad.errors import OutputError, SamplerError, SignatureError, StartError
from jitad.integrations.nutpie import _fill, from_logp

nutpie = pytest.importorskip("nutpie")

Y = np.array([1.2, 0.7, 2.1, 1.6, 0.4])
SIGMA = np.array([0.5, 1.0, 2.0, 1.0, 0.7])


def normal(theta, y, sigma):
    """Known errors and a N(0, 1) prior: the posterior of theta[0] is normal in closed form."""
    return -0.5 * np.sum(((y - theta[0]) / sigma) ** 2) - 0.5 * theta[0] ** 2


def standard(theta):
    return -0.5 * np.sum(theta**2)


def draw(model, **options):
    settings = {"draws": 1000, "tune": 500, "chains": 2, "cores": 2, "seed": 5, "progress_bar": False}
    return nutpie.sample(model, **(settings | options))


def test_posterior_agrees_with_closed_form():
    trace = draw(from_logp(normal, {"mu": ()}, (Y, SIGMA)), draws=4000)
    precision = 1 + np.sum(SIGMA**-2.0)
    mean = np.sum(Y * SIGMA**-2.0) / precision
    mu = trace.posterior["mu"].to_numpy()
    assert mu.shape == (2, 4000)
    # the standard error is about 0.02 of the posterior sd
    assert abs(mu.mean() - mean) * np.sqrt(precision) < 0.1
    assert abs(mu.std() * np.sqrt(precision) - 1) < 0.1


def test_blocks_lie_in_theta_in_order_and_in_c_order():
    centre = np.arange(8.0) * 10

    def logp(theta, centre):
        return -0.5 * np.sum((theta - centre) ** 2)

    model = from_logp(logp, {"a": (), "b": 3, "c": (2, 2)}, (centre,), start=centre, dims={"c": ["row", "column"]},
                      coords={"row": ["x", "y"]})
    posterior = draw(model).posterior
    assert abs(posterior["a"].mean() - 0) < 1
    assert np.allclose(posterior["b"].mean(("chain", "draw")), [10, 20, 30], atol=1)
    assert np.allclose(posterior["c"].mean(("chain", "draw")), [[40, 50], [60, 70]], atol=1)
    assert posterior["c"].dims == ("chain", "draw", "row", "column")
    assert list(posterior["row"].to_numpy()) == ["x", "y"]
    assert list(posterior["column"].to_numpy()) == [0, 1]
    assert (model.n_dim, model.shapes) == (8, {"a": (), "b": (3,), "c": (2, 2)})


def test_transform_decides_what_is_stored():
    model = from_logp(standard, {"mu": (), "log_tau": (), "eta": (4,)},
                      transform=lambda t: {"tau": np.exp(t[1]), "effect": (t[0] + t[2:]).reshape(2, 2)})
    trace = draw(model, store_unconstrained=True)
    assert set(trace.posterior.data_vars) == {"tau", "effect"}
    flat = trace.sample_stats["unconstrained_draw"].to_numpy()
    np.testing.assert_allclose(trace.posterior["tau"], np.exp(flat[..., 1]), rtol=1e-14)      # compiled, both of them
    np.testing.assert_array_equal(trace.posterior["effect"].to_numpy().reshape(2, -1, 4),
                                  flat[..., :1] + flat[..., 2:])
    names = list(trace.sample_stats["unconstrained_parameter"].to_numpy())
    assert names == ["mu", "log_tau", "eta[0]", "eta[1]", "eta[2]", "eta[3]"]


def test_gradient_that_nutpie_saw_is_the_gradient():
    trace = draw(from_logp(normal, {"mu": ()}, (Y, SIGMA)), draws=50, store_gradient=True, store_unconstrained=True)
    theta = trace.sample_stats["unconstrained_draw"].to_numpy().reshape(-1)
    seen = trace.sample_stats["gradient"].to_numpy().reshape(-1)
    assert np.allclose(seen, np.sum((Y - theta[:, None]) / SIGMA**2, axis=1) - theta, rtol=1e-10, atol=1e-12)


def test_non_finite_values_are_recoverable():
    """A density on x > 0: where it is NaN the trajectory ends, and the sampler goes on."""

    def logp(theta):
        return np.sum(5 * np.log(theta) - theta)

    x = draw(from_logp(logp, {"x": (1,)}, start=[6.0])).posterior["x"].to_numpy()
    assert np.all(x > 0)
    assert abs(x.mean() - 6) < 1


def test_decorated_function_and_what_the_model_keeps_alive():
    """A jitted function is accepted, and the model alone keeps alive what the pointer needs."""
    model = from_logp(jit_grad(lambda theta, y: -0.5 * np.sum((theta - y) ** 2)), {"x": (5,)}, (Y.copy(),))
    gc.collect()
    assert np.allclose(draw(model).posterior["x"].mean(("chain", "draw")), Y, atol=0.3)


def test_chains_start_around_start():
    model = from_logp(standard, {"x": (3,)}, start=[5.0, 6.0, 7.0], jitter=0.5)
    points = np.array([model.initial_point_func(seed) for seed in range(50)])
    assert np.all(np.abs(points - [5, 6, 7]) <= 0.5) and np.ptp(points[:, 0]) > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parameters": ["x"]}, "map names to shapes"),
        ({"parameters": {}}, "nothing to sample"),
        ({"parameters": {"x": 2.5}}, r"parameters\['x'\] must be a shape"),
        ({"parameters": {"x": "b"}}, r"parameters\['x'\] must be a shape"),
        ({"parameters": {"x": (2.5,)}}, r"parameters\['x'\] must be a shape"),
        ({"parameters": {"x": (-1,)}}, "negative size"),
        ({"start": [1.0, 2.0]}, r"start has shape \(2,\).*shape \(3,\)"),
        ({"data": np.ones(3)}, "data must be a tuple"),
        ({"transform": lambda t: t}, "transform must return a dict"),
        ({"dims": {"y": ["row"]}}, "dims names 'y', which is not stored"),
        ({"dims": {"x": ["row", "column"]}}, "2 names"),
        ({"dims": {"x": ["draw"]}}, "a dimension of 'x' must not be called 'draw'"),
        ({"dims": {"x": ["unconstrained_parameter"]}}, "must not be called 'unconstrained_parameter'"),
        ({"dims": {"x": ["x"]}}, "as is what is stored"),
        ({"dims": {"x": [1]}}, "must be names of dimensions"),
        ({"dims": {"x": None}}, "must be names of dimensions"),
        ({"dims": ["row"]}, "dims must map names"),
        ({"coords": {"chain": [0, 1]}}, "must not be called 'chain'"),
        ({"coords": {"row": "abc"}}, "must be a list of labels"),
        ({"coords": {"row": 3}}, "must be a list of labels"),
        ({"coords": ["a"]}, "coords must map names"),
        ({"dims": {"x": ["row"]}, "coords": {"row": ["a", "b"]}}, "2 labels, but 'x' has 3"),
    ],
)
def test_wrong_arguments_are_named(change, words):
    with pytest.raises(SignatureError, match=words):
        from_logp(**({"logp": standard, "parameters": {"x": (3,)}} | change))


@pytest.mark.parametrize(
    ("logp", "parameters", "options", "error", "words"),
    [
        (lambda t: -t[0] ** 2 - t[5] ** 2, {"x": (3,)}, {}, SignatureError,
         r"vector of 3 numbers, .*x \(3,\).*IndexError.*test_nutpie.py.*sizes fit"),
        (lambda t: -np.sum(t["x"] ** 2), {"x": (3,)}, {}, SignatureError, r"takes a dict .*jitad.posterior"),
        (lambda t: -t[:2] ** 2, {"x": (2,)}, {}, OutputError, r"one real number, not an array of shape \(2,\)"),
        (lambda t: -np.sum(t[:3] ** 2), {"a": (3,), "b": (2,)}, {}, StartError, "does not depend on 'b'"),
        (lambda t: -np.sum(t[:2] ** 2), {"a": (3,)}, {}, StartError, r"does not depend on 'a\[2\]'"),
        (lambda t: np.sum(np.log(t - 9) - t), {"a": (3,)}, {}, StartError, "(?s)not finite .*log.*test_nutpie.py"),
        (standard, {"chain": ()}, {}, SignatureError, "must not be called 'chain'"),
        (standard, {"draw": (2,)}, {}, SignatureError, "must not be called 'draw'"),
        (standard, {"x": ()}, {"transform": lambda t: {"draw": t}}, SignatureError, "must not be called 'draw'"),
    ],
)
def test_what_cannot_be_sampled_is_said_before_the_sampler_has_it(logp, parameters, options, error, words):
    with pytest.raises(error, match=words):
        from_logp(logp, parameters, **options)


def test_transform_is_compiled_and_given_the_data():
    def effects(theta, y, sigma):
        return {"above": y > theta[0], "z": (y - theta[0]) / sigma}
    trace = draw(from_logp(normal, {"mu": ()}, (Y, SIGMA), transform=effects), store_unconstrained=True, draws=50)
    mu = trace.sample_stats["unconstrained_draw"].to_numpy()
    np.testing.assert_allclose(trace.posterior["z"], (Y - mu) / SIGMA, rtol=1e-14)
    np.testing.assert_array_equal(trace.posterior["above"], mu < Y)


def test_what_python_code_raises_in_a_compiled_transform_is_printed_once_and_not_kept(capsys):
    @jitad.primitive(opaque=True)
    def table(x):
        if x[0] > 0.5:
            raise KeyError("no row for it")
        return x + 1.0
    model = from_logp(standard, {"a": 2}, transform=lambda t: {"row": table(t)}, start=[-1.0, 0.5], jitter=0.1)
    row = draw(model, draws=200, chains=1).posterior["row"].to_numpy()
    assert 0.2 < np.isnan(row[..., 0]).mean() < 0.45 and taken() is None
    assert "no row for it" in capsys.readouterr().err


def test_transform_that_is_not_recorded_runs_in_python_and_its_errors_are_nan(capsys):
    def effects(theta):
        if float(theta[0]) > 1.5:
            raise KeyError("too large")
        return {"x": float(theta[0]) + 1}
    trace = draw(from_logp(lambda t: -0.5 * t[0] ** 2, {"t": ()}, transform=effects), store_unconstrained=True)
    t = trace.sample_stats["unconstrained_draw"].to_numpy()[..., 0]
    np.testing.assert_array_equal(trace.posterior["x"], np.where(t > 1.5, np.nan, t + 1))
    assert "too large" in capsys.readouterr().err


def test_missing_nutpie_says_how_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    monkeypatch.delitem(sys.modules, "nutpie.compile_pymc", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        from_logp(standard, {"x": (3,)})


def test_a_nutpie_that_asks_for_more_is_refused():
    @dataclasses.dataclass
    class Newer:
        dims: dict
        surprise: int

    with pytest.raises(SamplerError, match="surprise"):
        _fill(Newer, {"dims": {}})
