"""The benchmarks as pytest-benchmark sees them. Results are checked, timings never are.

``pytest benchmarks`` times everything and ends with tables of ratios; ``pytest benchmarks --benchmark-disable`` runs
each benchmark once.
"""

import itertools
import json
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    batches,
    compare,
    densities,
    gp,
    hessians,
    loops,
    memory,
    tape_machine,
)
from benchmarks.checks import assert_same, check_derivative
from benchmarks.control import __main__ as control
from benchmarks.engines.makers import MAKERS, available, first_call, installed
from benchmarks.engines.overhead import IMPORTS, four_arrays_grad, import_time, overhead_engines, small_arguments
from benchmarks.handwritten import recurrences, vectormath
from benchmarks.loops import LOOPS
from benchmarks.models.model import Model
from benchmarks.models.outside import ratios_in
from benchmarks.models.second.table import SECOND
from benchmarks.models.table import MODELS
from benchmarks.sampling.ours import POSTERIORS, posterior
from benchmarks.shapes import __main__ as shapes
from benchmarks.shapes import cores
from benchmarks.shapes.kinds import KINDS
from benchmarks.timing import calls_within


def by_hand(model: Model, theta: Any, data: Any) -> Any:
    """The result of the hand-written kernel, which each of our own models has."""
    assert model.numba_value_and_grad is not None
    return model.numba_value_and_grad(theta, *data)


Benchmark = Any  # pytest_benchmark's fixture has no public type

ENGINES = available()
COMPILERS = [name for name in ("jitad", "jax") if name in ENGINES]
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
needs_jitad = pytest.mark.skipif(not installed("jitad"), reason="jitad is not installed")


@pytest.mark.parametrize("model", [model for model in {**MODELS, **SECOND}.values() if model.numba_value_and_grad],
                         ids=lambda model: model.name)
def test_handwritten_is_the_derivative(model: Model) -> None:
    """The yardstick agrees with the log density and with central differences along random directions."""
    theta, data = model.problem()
    check_derivative(model.logp, theta, data, by_hand(model, theta, data))


@pytest.mark.parametrize("name", LOOPS)
def test_handwritten_loop_is_the_derivative(name: str) -> None:
    """The same for the recurrences, over a short series, and jitad agrees."""
    density, kernel, make, _ = LOOPS[name]
    theta, *data = make(40)
    value, grad = getattr(recurrences, kernel)(theta, *data)
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
    if name not in available(model):
        return                                   # PyTensor and CasADi have some of the models only
    engine = MAKERS[name](model, theta, data)
    assert_same(engine.call(), by_hand(model, theta, data), 1e-8)
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
    """Record, differentiate, compile, run. JAX's are seconds that only a table of times is worth."""
    if name == "jax" and not benchmark.enabled and model.name != next(iter(MODELS)):
        return
    theta, data = model.problem()
    expected = by_hand(model, theta, data)  # numba has compiled something before
    benchmark.group = f"{model.name} (first call)"
    benchmark.extra_info["engine"] = name
    result = benchmark.pedantic(
        lambda call: call(), setup=lambda: ((first_call(name, model, theta, data),), {}), rounds=3
    )
    assert_same(result, expected)


def once(*calls: Callable[..., Any], **settings: Any) -> list[float]:
    """In the place of a timer: each call runs once."""
    for call in calls:
        asked = [p for p in signature(call).parameters.values() if p.default is p.empty]
        call(*[1 for _ in asked])                                    # how often, where it wants to know
    return [1.0 for _ in calls]


def first(table: dict[str, Any], count: int = 1) -> dict[str, Any]:
    return dict(list(table.items())[:count])


@needs_jitad
def test_other_benchmarks_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmarks that stand alone, with little to do, so that none rots."""
    monkeypatch.setattr(hessians, "best", once)
    monkeypatch.setattr(hessians, "PROBLEMS", first(hessians.PROBLEMS))
    hessians.main()
    monkeypatch.setattr(batches, "best", once)
    problems = first(batches.problems())
    monkeypatch.setattr(batches, "problems", lambda: problems)
    batches.main()
    name = next(iter(densities.PAIRS))
    densities.ratio(name, rounds=1)
    gp.measure(8, rounds=1)
    control.main(["tank", "neuron", "first_passage", "--draws", "3", "--rounds", "1"])
    loops.main(["garch", "--rounds", "1"])
    if Path("/proc/self/clear_refs").exists():
        memory.main(2000)
    monkeypatch.setattr(tape_machine, "best", lambda call, seconds=0.0: once(call)[0])
    tape_machine.main(300)
    monkeypatch.setattr(shapes, "ROUNDS", 1)
    monkeypatch.setattr(shapes, "KINDS", {"rows": lambda: itertools.islice(KINDS["rows"](), 1),
                                          "products": lambda: itertools.islice(KINDS["products"](), 1)})
    shapes.main(["--all"])
    monkeypatch.setattr(cores, "ROUNDS", 1)
    monkeypatch.setattr(cores, "problems", lambda size, made=cores.problems: first(made(size)))
    cores.main([2], size=30_000)
    printed = capsys.readouterr().out
    assert all(word in printed for word in (
        *hessians.PROBLEMS, *problems, "garch", "first_passage", "window", "logistic, 30,000 x 20", "of 2 fall short"))


OUTSIDE = """
import numpy as np
def load(data): return (np.array(data["y"], float), data["power"])
def init(data, rng): return rng.normal(size=2)
def logp(q, y, power): return -0.5 * np.sum((y - q[0] - q[1] * y) ** power)
def make_jax():
    import jax.numpy as jnp
    return lambda q, y, power: -0.5 * jnp.sum((y - q[0] - q[1] * y) ** power)
"""


@needs_jitad
def test_table_with_models_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    """The command line: models and data from folders, Stan's times from a table, the results in a file."""
    (tmp_path / "line.py").write_text(OUTSIDE)
    (tmp_path / "line.json").write_text(json.dumps({"y": [0.5, 1.0, 2.0], "power": 2}))
    (tmp_path / "peers.md").write_text("text\n| model | JAX/Stan |\n|---|---|\n| line | 4.0 |\n| none | - |\n")
    assert ratios_in(tmp_path / "peers.md", "JAX/Stan") == {"line": 4.0}
    monkeypatch.setattr(compare, "overheads", list)
    monkeypatch.setattr(compare, "RESULTS", tmp_path / "RESULTS.md")
    folder = str(tmp_path)
    compare.main(["line", "eight_schools", "--models", folder, "--data", folder, "--stan", folder + "/peers.md",
                  "--rounds", "3", "--first-rounds", "1", "--write"])
    assert (tmp_path / "RESULTS.md").read_text().count("| line ") == 1
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row.strip("-")] == ["model", "line", "eight_schools", "geometric mean"]


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


@needs_jitad
@pytest.mark.parametrize("name", POSTERIORS)
def test_posteriors_have_the_gradient_of_their_density(name: str) -> None:
    post = posterior(name)
    theta = np.full(post.dim, 0.2)
    check_derivative(post.density.function, theta, post.observed.values, post.value_and_grad(theta))
