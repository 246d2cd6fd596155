"""The benchmarks as pytest-benchmark sees them. Results are checked, timings never are.

``pytest benchmarks`` times everything and ends with tables of ratios; ``pytest benchmarks --benchmark-disable`` runs
each benchmark once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks import handwritten_loops, vectormath
from benchmarks.engines import MAKERS, assert_same, available, calls_within, first_call, installed
from benchmarks.loops import LOOPS
from benchmarks.models import MODELS, Model
from benchmarks.overhead import IMPORTS, four_arrays_grad, import_time, overhead_engines, small_arguments

Benchmark = Any  # pytest_benchmark's fixture has no public type

ENGINES = available()
COMPILERS = [name for name in ("jitad", "jax") if name in ENGINES]
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
needs_jitad = pytest.mark.skipif(not installed("jitad"), reason="jitad is not installed")


@each_model
def test_handwritten_is_the_derivative(model: Model) -> None:
    """The yardstick agrees with the log density and with central differences along random directions."""
    theta, data = model.problem()
    value, grad = model.numba_value_and_grad(theta, *data)
    np.testing.assert_allclose(value, model.logp(theta, *data), rtol=1e-12)
    rng = np.random.default_rng(3)
    step = 1e-5
    for _ in range(3):
        v = rng.normal(size=theta.shape)
        v /= np.linalg.norm(v)
        slope = (model.logp(theta + step * v, *data) - model.logp(theta - step * v, *data)) / (2 * step)
        np.testing.assert_allclose(grad @ v, slope, rtol=1e-6, atol=1e-7 * float(np.linalg.norm(grad)))


@pytest.mark.parametrize("name", LOOPS)
def test_handwritten_loop_is_the_derivative(name: str) -> None:
    """The same for the recurrences, over a short series, and jitad agrees."""
    density, kernel, make, _ = LOOPS[name]
    theta, *data = make(40)
    value, grad = getattr(handwritten_loops, kernel)(theta, *data)
    np.testing.assert_allclose(value, density(theta, *data), rtol=1e-12)
    step = 1e-5
    for v in np.eye(len(theta)):
        slope = (density(theta + step * v, *data) - density(theta - step * v, *data)) / (2 * step)
        np.testing.assert_allclose(grad @ v, slope, rtol=1e-6, atol=1e-7 * float(np.linalg.norm(grad)))
    if installed("jitad"):
        from jitad import value_and_grad

        assert_same(value_and_grad(density)(theta, *data), (value, grad))


@pytest.mark.parametrize(
    ("ours", "numpys", "low", "high"),
    [
        (vectormath.exp, np.exp, -700.0, 700.0),
        (vectormath.log, lambda x: np.log(x), 1e-3, 1e3),
        (vectormath.log1p_unit, np.log1p, 0.0, 1.0),
    ],
    ids=["exp", "log", "log1p_unit"],
)
def test_vector_math(ours: Callable[[float], float], numpys: Callable[[Any], Any], low: float, high: float) -> None:
    """The functions of the yardstick are good to 2 ulp."""
    x = np.random.default_rng(5).uniform(low, high, size=2000)
    np.testing.assert_array_max_ulp(np.array([ours(a) for a in x]), numpys(x), maxulp=2)


@pytest.mark.parametrize("name", ENGINES)
@each_model
def test_value_and_grad(benchmark: Benchmark, model: Model, name: str) -> None:
    """A warm call, after its result has been compared with the hand-written one."""
    theta, data = model.problem()
    engine = MAKERS[name](model, theta, data)
    assert_same(engine.call(), model.numba_value_and_grad(theta, *data))
    benchmark.group = model.name
    benchmark.extra_info["engine"] = name
    if name == "jitad C":  # pytest-benchmark times a compiled loop of many calls; the table of ratios divides
        calls = calls_within(engine, 1e-3) if benchmark.enabled else 1
        benchmark.extra_info["calls"] = calls
        benchmark(engine.run, calls)
    else:
        benchmark(engine.call)


@pytest.mark.parametrize("name", COMPILERS)
@each_model
def test_first_call(benchmark: Benchmark, model: Model, name: str) -> None:
    """Record, differentiate, compile, run."""
    theta, data = model.problem()
    expected = model.numba_value_and_grad(theta, *data)  # numba has compiled something before
    benchmark.group = f"{model.name} (first call)"
    benchmark.extra_info["engine"] = name
    result = benchmark.pedantic(
        lambda call: call(), setup=lambda: ((first_call(name, model, theta, data),), {}), rounds=3
    )
    assert_same(result, expected)


@needs_jitad
@pytest.mark.parametrize("index", [0, 1], ids=["kernel", "call"])
def test_overhead(benchmark: Benchmark, index: int) -> None:
    """A warm call with four small arrays, and its bare kernel."""
    engines = overhead_engines()
    np.testing.assert_allclose(engines[1].call(), four_arrays_grad(*small_arguments()), rtol=1e-12)
    benchmark.group = "overhead of a call"
    benchmark.extra_info["engine"] = engines[index].name
    benchmark(engines[index].call)


@pytest.mark.parametrize("modules", [m for m in IMPORTS if m != "jitad" or installed("jitad")])
def test_import(benchmark: Benchmark, modules: str) -> None:
    """Import in a new process: pytest-benchmark's table shows the whole process, the one of ratios the import alone."""
    benchmark.group = "import"
    benchmark.extra_info["engine"] = modules
    times: list[float] = []
    benchmark.pedantic(lambda: times.append(import_time(modules)), rounds=5)
    benchmark.extra_info["seconds"] = min(times)
    assert times
