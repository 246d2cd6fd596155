"""Every function of scipy.special in compiled code: one kernel of all rows, one of a gradient, from the disk too."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import jitad
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from jitad.compile.llvm import cython_special, ir
from jitad.compile.llvm.native import compile_module, load_code
from jitad.compile.scalar import columns as scalar_loops
from jitad.passes.optimise.rewrites import optimise
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval, Primitive
from jitad.testing.rules import cases
from tests.helpers.source_backend import load_python

ROWS = [row for row in TABLE.values() if row.samples and getattr(row.partials, "__module__", "").startswith(
    "jitad.primitives.special.ufuncs")]
DIFFERENCES = {"jv_order2": 1e-10, "yv_order2": 1e-10, "jv_order1": 1e-11, "yv_order1": 1e-11}


def big_program(rows: list[Primitive], dtype: type) -> tuple[Any, list[np.ndarray]]:
    """The rows on a tape, at samples of theirs."""
    builder, outputs, arguments = Builder(), [], []
    for row in rows:
        case = cases(row)[0].astype(dtype)
        inputs = []
        for array in case.inputs:
            inputs.append(builder.input(Aval(array.shape, array.dtype), f"x{len(arguments)}"))
            arguments.append(array)
        outputs.append(row(*inputs, **case.params))
    return optimise(builder.finish(outputs)), arguments


@pytest.mark.parametrize(("dtype", "rows"), [(np.float64, ROWS), (np.float32, ROWS[::4])], ids=["float64", "float32"])
@pytest.mark.filterwarnings("error")
def test_all_rows_in_one_kernel(dtype: type, rows: list[Primitive]) -> None:
    """Against the interpreter; of float32, computed in float64 and rounded, SciPy's own errors are larger."""
    tape, arguments = big_program(rows, dtype)
    kernel = Kernel(tape, tuple(map(argument_type, arguments)))
    got = kernel.call(*arguments)
    for row, g, e in zip(rows, got, evaluate(tape, *arguments), strict=True):
        assert g.dtype == e.dtype
        rtol = DIFFERENCES.get(row.name, 2e-13) if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(g, e, rtol=rtol, atol=rtol, err_msg=row.name)


def test_columns_are_told_apart_by_their_numbers() -> None:
    """Whose hashes may be the same: two sums of one module must not share a table."""
    one, other = (-1.0,), (-2.0,)
    assert hash(one) == hash(other)
    module = ir.Module()
    assert scalar_loops._table(module, one) is scalar_loops._table(module, one)
    assert scalar_loops._table(module, one) is not scalar_loops._table(module, other)


def test_the_printed_source_of_all_rows_runs() -> None:
    builder = Builder()
    inputs = [builder.input(Aval((), np.dtype(float)), n) for n in ("special_gamma", "x")]
    rows = [TABLE[n] for n in ("gammainc", "gammainc_slope", "sici_1", "kve_order1", "gamma")]
    outputs = [row(*inputs[: len(cases(row)[0].inputs)]) for row in rows]
    tape = builder.finish(outputs)
    kernel = Kernel(tape, (argument_type(1.5), argument_type(1.5)))
    status, *found = load_python(kernel.program)(1.3, 2.1)
    assert status == 0
    np.testing.assert_allclose(found, evaluate(tape, 1.3, 2.1), rtol=1e-13)
    np.testing.assert_allclose(kernel.call(1.3, 2.1), found, rtol=1e-13)


def everything(a, x, p):
    """Some of all families."""
    from scipy.special import betainc, gammainc, kv, logsumexp, ndtri, sici

    return (np.sum(gammainc(a, x) * special.gammaincc(a, 2 * x)) + np.sum(betainc(a, x, p)) + special.stdtr(a, x).sum()
            + np.sum(kv(a, x)) + np.sum(special.ive(a, x)) + np.sum(special.jv(a, x) * sici(x)[0])
            + np.sum(ndtri(p) * special.erfinv(p)) + logsumexp(special.betaln(a, x)) + np.sum(special.zeta(a + 1, x)))


A, X, P = np.linspace(0.4, 6.0, 40), np.linspace(9.0, 2.5, 40), np.linspace(0.05, 0.95, 40)


def test_a_gradient_of_all_families_against_differences() -> None:
    value, gradient = jitad.value_and_grad(everything, argnums=(0, 1, 2))(A, X, P)
    assert value == pytest.approx(everything(A, X, P), rel=1e-12)
    rng = np.random.default_rng(0)
    for place, g in enumerate(gradient):
        direction = rng.normal(size=40) * np.minimum(A, X) * 0.01

        def at(t: float, place: int = place, direction: np.ndarray = direction) -> float:
            arguments = [A, X, P]
            arguments[place] = arguments[place] + t * direction
            return everything(*arguments)

        h = 1e-3
        slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        assert g @ direction == pytest.approx(slope, rel=1e-8)


def test_kernels_run_in_many_threads() -> None:
    gradient = jitad.grad(everything, argnums=0)
    expected, wrong = gradient(A, X, P), []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(gradient(A, X, P), expected):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


SCRIPT = """
import numpy as np, sys
from scipy.special import gammainc, zeta, airy
import jitad

def f(a):
    return np.sum(gammainc(a, 2.0) + airy(a)[0])

print(jitad.grad(f)(np.array([0.5, 3.0])).tolist(), jitad.cache.info().compiles, "numba" in sys.modules)
"""


def test_code_from_the_disk_finds_its_functions(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "JITAD_CACHE_DIR": str(tmp_path / "cache"), "JITAD_DISK_CACHE": "1"}
    first, second = (subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True,
                                    check=True).stdout.split("]") for _ in range(2))
    assert first[0] == second[0]
    assert first[1].split() == ["1", "False"]
    assert second[1].split() == ["0", "False"]


def test_an_object_file_that_names_an_unknown_function_does_not_load() -> None:
    text = ('declare double @"jitad_special_gammainc"(double, double, i32)\n'
            'define double @f(double %x) {\n %y = call double @"jitad_special_gammainc"(double %x, double %x, i32 0)\n'
            ' ret double %y\n}\n')
    cython_special.register("gammainc")
    code = compile_module(text).code
    assert load_code(code).address("f")
    with pytest.raises(KeyError):
        load_code(code.replace(b"jitad_special_gammainc", b"jitad_special_gammaxyz"))


def test_functions_of_cython_special_are_found_by_name() -> None:
    assert all(map(cython_special.is_special, ("special_gammainc", "special_sici_1", "special_eval_legendre")))
    assert not any(map(cython_special.is_special, ("gammainc", "special_sici", "special_sici_x", "special_nothing")))
