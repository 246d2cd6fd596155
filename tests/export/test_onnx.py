"""Exported models in onnxruntime: every row against the interpreter, every benchmark model in value and gradient."""
from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import jitad
from benchmarks.models.table import MODELS
from jitad import UnsupportedOperationError
from jitad.export.onnx.elementwise import FORMULAS, LOGICAL, OPERATORS
from jitad.export.onnx.export import export
from jitad.export.onnx.graph import rule
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval


def run(path, *inputs):
    """The outputs of a model file by name."""
    onnx.checker.check_model(str(path))
    session = onnxruntime.InferenceSession(str(path))
    names = [i.name for i in session.get_inputs()]
    found = session.run(None, dict(zip(names, map(np.asarray, inputs), strict=True)))
    return dict(zip([o.name for o in session.get_outputs()], found, strict=True))


def tape_of_row(prim, inputs, params):
    builder = Builder()
    values = [builder.input(Aval(np.shape(x), np.asarray(x).dtype), f"x{i}") for i, x in enumerate(inputs)]
    result = builder.value(builder.apply(prim, [v.number for v in values], params))
    if result.aval.dtype == object:
        from jitad.primitives.scan import picked

        places = range(result.shape[0])
        return builder.finish([picked(result, i) for i in places], [f"o{i}" for i in places])
    return builder.finish([result], ["value"])


@pytest.fixture(scope="module")
def exported_rows():
    elementwise = {*OPERATORS, *LOGICAL, *FORMULAS}
    rows = [prim for prim in TABLE.values() if prim.samples is not None and rule.of(prim) is not None and (
        not prim.elementwise or prim.name in {*elementwise, "cast"})]
    assert len(rows) > 90
    return rows


def test_every_row(exported_rows, tmp_path):
    """One model for each row and sample. Formulas are for floats."""
    rng = np.random.default_rng(0)
    for prim in exported_rows:
        for inputs, params in prim.samples(rng):
            tape = tape_of_row(prim, inputs, params)
            export(tape, prim.name, {}, tmp_path / "row.onnx")
            results = run(tmp_path / "row.onnx", *inputs).values()
            for found, expected in zip(results, evaluate(tape, *inputs), strict=True):
                assert found.dtype == expected.dtype and found.shape == expected.shape, (prim, params)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13, err_msg=f"{prim} {params}")


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, -1e-300, 1e300, -1e300, 745.0, -745.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", (
    "log1p expm1 log_expit expit square trunc hypot maximum minimum fmax fmin logaddexp xlogy arctan arcsinh isfinite "
    "cbrt copysign gammaln sign heaviside tanh exp2 arctan2 signbit sinh").split())
def test_special_values(name, tmp_path):
    prim = TABLE[name]
    grids = np.meshgrid(*[SPECIAL] * prim.ufunc.nin, indexing="ij")
    tape = tape_of_row(prim, grids, {})
    export(tape, name, {}, tmp_path / "row.onnx")
    (found,), (expected,) = run(tmp_path / "row.onnx", *grids).values(), evaluate(tape, *grids)
    if expected.dtype == bool:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14 if name == "gammaln" else 1e-320)


@pytest.mark.parametrize("name", list(MODELS))
def test_benchmark_models(name, tmp_path):
    theta, data = MODELS[name].problem()
    gradient = jitad.jit_grad(MODELS[name].logp)
    gradient.compile(theta, *data).to_onnx(tmp_path / "model.onnx")
    point = theta + 0.05
    found = run(tmp_path / "model.onnx", point, *data)
    assert list(found) == ["value", "gradient"]
    value, expected = gradient.value_and_grad(point, *data)
    np.testing.assert_allclose(found["value"], value, rtol=1e-10)
    np.testing.assert_allclose(found["gradient"], expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def test_loops_captures_and_trees(tmp_path):
    scale = np.array([2.0, 3.0])

    def f(p, x):
        h = p["start"]
        for t in range(50):
            h = 0.9 * h + np.sin(x[t]) * p["weight"] * scale[1]
        return h * h

    def at(start, weight, x):
        return jitad.value_and_grad(f)({"start": start, "weight": weight}, x)

    x = np.linspace(0, 1, 50)
    compiled = jitad.jit_grad(f).compile({"start": 1.0, "weight": 2.0}, x)
    assert "scan" in str(jitad.value_and_grad(f).tape({"start": 1.0, "weight": 2.0}, x))
    compiled.to_onnx(tmp_path / "loop.onnx")
    found = run(tmp_path / "loop.onnx", 0.3, -1.0, x + 0.1)
    value, expected = at(0.3, -1.0, x + 0.1)
    np.testing.assert_allclose(found["value"], value)
    np.testing.assert_allclose(found["gradient_p_start"], expected["start"])
    np.testing.assert_allclose(found["gradient_p_weight"], expected["weight"])


def test_another_way_through_the_branches_is_nan(tmp_path):
    gradient = jitad.jit_grad(lambda x: np.sum(x) if x[0] > 0 else np.sum(x * x))
    gradient.compile(np.ones(2)).to_onnx(str(tmp_path / "f.onnx"))
    assert run(tmp_path / "f.onnx", np.array([2.0, 3.0]))["value"] == 5.0
    other = run(tmp_path / "f.onnx", np.array([-2.0, 3.0]))
    assert np.isnan(other["value"]) and np.isnan(other["gradient"]).all()


def test_what_onnx_has_not(tmp_path):
    from scipy import special

    compiled = jitad.jit(lambda x: special.gammainc(2.0, x)).compile(np.ones(2))
    with pytest.raises(UnsupportedOperationError, match=r"`gammainc` at .*test_onnx.py:\d+ has no counterpart in ONNX"):
        compiled.to_onnx(tmp_path / "f.onnx")
    assert not list(tmp_path.iterdir())
