"""The math expansions against mpmath and, at special points, against NumPy and SciPy.

Every expansion runs twice: compiled by numba, where a*b+c becomes one instruction if the machine has it, and
through the NumPy evaluator, where it never does.
"""
from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numba
import numpy as np
import pytest
from llvmlite import binding

from jitad import jit
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.native import compile_module
from jitad.compile.math import explog as vectormath_explog
from jitad.compile.math.table import EXPANSIONS
from jitad.compile.reference import scalar as scalar_numpy
from jitad.compile.scalar import expressions as scalar_llvm
from jitad.tape.expr import call, cast, const, select, var
from tests.compile.math.reference import (
    BINARY,
    CASES,
    FOUR_ULP,
    POSITIVE,
    RNG,
    SIX_ULP,
    SPECIAL,
    TINY,
    UNARY,
    compiled,
    largest_error,
    reference,
    run,
    seed,
    spread,
    ulp_error,
    uniform,
)
from tests.helpers.numba_math import intrinsic


@pytest.fixture(autouse=True)
def points_of_this_test(request: pytest.FixtureRequest) -> None:
    seed(request.node.name)


@pytest.mark.parametrize("way", ["numba", "numpy"])
@pytest.mark.parametrize("name", UNARY)
def test_accuracy(name: str, way: str) -> None:
    error, where = largest_error(name, run(name, way, reference(name)[0]))
    allowed = 6 if name in SIX_ULP and way == "numpy" else 4 if name in FOUR_ULP | SIX_ULP else 2
    assert error <= allowed, f"{name}({where!r}) is {error:.2f} ulp off"


def test_the_accuracy_test_notices_a_wrong_coefficient(monkeypatch) -> None:
    wrong = [c * (1 + 1e-12) if i == 1 else c for i, c in enumerate(vectormath_explog.EXP)]
    monkeypatch.setattr(vectormath_explog, "EXP", wrong)
    assert largest_error("exp", run("exp", "numpy", reference("exp")[0]))[0] > 2


@pytest.mark.parametrize("way", ["numba", "numpy"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, way: str) -> None:
    """Zeros (with sign), infinities and NaN as the reference has them; finite values to 4 ulp."""
    with np.errstate(all="ignore"):
        expected = CASES[name][1](SPECIAL)
    got = run(name, way, SPECIAL)
    if name == "lgamma":  # SciPy overflows at subnormal arguments, where the value is 744.44
        expected[np.abs(SPECIAL) == TINY] = 744.4400719213812
    if name == "erfcinv":  # by mpmath; SciPy halves the smallest number to 0
        expected[SPECIAL == TINY] = 27.213293210812949
    if name in ("i1", "i1e"):  # half of the smallest number, which SciPy rounds up
        expected[np.abs(SPECIAL) == TINY] = 0.0
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    exact = np.isinf(expected) | (expected == 0)
    np.testing.assert_array_equal(got[exact], expected[exact])
    np.testing.assert_array_equal(np.signbit(got[exact]), np.signbit(expected[exact]))
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("way", ["numba", "numpy"])
@pytest.mark.parametrize("name", sorted(POSITIVE))
def test_gamma_functions_of_negative_arguments(name: str, way: str) -> None:
    """The error is absolute near the zeros: a few times 2**-52."""
    x = -np.concatenate([uniform(0, 10), uniform(0, 200, 100), 10.0 ** uniform(-300, -1, 100), np.arange(1, 12) + 1e-9,
                         [2.4570247382208006, 2.747682646727413, 0.5040830082644554]])
    got = run(name, way, x)
    with mp.workprec(180):
        exact = [CASES[name][0](mp.mpf(float(v))) for v in x]
        errors = [abs(mp.mpf(float(g)) - e) / max(1, abs(e)) for g, e in zip(got, exact, strict=True)]
    assert max(errors) < {"digamma": 16, "lgamma": 8}[name] * 2.0**-52


@pytest.mark.parametrize("way", ["numba", "numpy"])
def test_logaddexp(way: str) -> None:
    """To 2 ulp of the result or of the larger argument."""
    a = np.concatenate([uniform(-800, 800), uniform(-3, 3), spread(-320, 308)])
    b = np.concatenate([uniform(-800, 800), uniform(-3, 3), spread(-320, 308)])
    got = run("logaddexp", way, a, b)
    with mp.workprec(180):
        for x, y, g in zip(a, b, got, strict=True):
            exact = max(x, y) + mp.log1p(mp.exp(-abs(mp.mpf(float(x)) - mp.mpf(float(y)))))
            assert abs(mp.mpf(float(g)) - exact) <= 2 * max(math.ulp(float(exact)), math.ulp(max(x, y)))


@pytest.mark.parametrize("way", ["numba", "numpy"])
def test_betaln(way: str) -> None:
    """To 8 * 2**-52 of the larger of 4 and the value, also where gamma functions of large arguments cancel; less below
    0, where a + b is rounded near a pole."""
    a, b = 10.0 ** uniform(-3, 12), 10.0 ** uniform(-3, 12)
    a[::5] = -uniform(0, 30, a[::5].size)
    got = run("betaln", way, a, b)
    with mp.workprec(240):
        for x, y, g in zip(map(mp.mpf, a), map(mp.mpf, b), got, strict=True):
            exact = mp.re(mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y))
            pole = abs(x + y - mp.nint(x + y)) if x < 0 else 1
            assert abs(g - exact) <= 8 * 2.0**-52 * max(4, abs(exact), abs(x + y) / pole if x + y < 0 else 0)


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Arguments whose results are normal numbers."""
    x = np.concatenate([uniform(0, 10), np.exp(uniform(-700, 700)), uniform(0.7, 1.45)])
    if name == "pow":
        y = uniform(-1, 1, x.size) * np.minimum(700 / np.abs(np.log(x)), 1e18)
        return x, np.where(np.arange(x.size) % 5, y, np.rint(y))
    return RNG.choice([-1, 1], x.size) * x, np.clip(x, 1e-290, 1e290) * spread(-3, 3, x.size)[: x.size]


@pytest.mark.parametrize("way", ["numba", "numpy"])
@pytest.mark.parametrize(("name", "exact"), [("arctan2", mp.atan2), ("hypot", mp.hypot), ("pow", mp.power)])
def test_accuracy_of_two_arguments(name: str, exact: Callable[..., Any], way: str) -> None:
    x, y = pairs(name)
    got = run(name, way, x, y)
    with mp.workprec(180):
        errors = [ulp_error(g, exact(mp.mpf(float(a)), mp.mpf(float(b)))) for a, b, g in zip(x, y, got, strict=True)]
    assert max(errors) < 2


@pytest.mark.parametrize("way", ["numba", "numpy"])
@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two_arguments(name: str, way: str) -> None:
    points = np.concatenate([SPECIAL, [3.0, 2.5, -2.5, 1e300, 1e-300, 2.0**53 + 1, 0.999]])
    a, b = (v.ravel() for v in np.meshgrid(points, points))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    got = run(name, way, a, b)
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=TINY)
    signed = ~np.isnan(expected)
    if name != "logaddexp":
        np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(expected[signed]))


def test_exact_powers_are_exact() -> None:
    base, exponent = (v.ravel() for v in np.meshgrid(np.arange(1.0, 30), np.arange(0.0, 11)))
    np.testing.assert_array_equal(run("pow", "numba", base, exponent), base**exponent)
    np.testing.assert_array_equal(run("cbrt", "numba", np.arange(99.0) ** 3), np.arange(99.0))
    np.testing.assert_array_equal(run("log2", "numba", 2.0 ** np.arange(-1074, 1024)), np.arange(-1074.0, 1024))


@pytest.mark.parametrize("name", UNARY)
def test_loops_vectorise(name: str) -> None:
    """The machine code works on several doubles at once and calls no function."""
    compiled(name, 1)(np.ones(3), np.ones(3))
    code = "".join(compiled(name, 1).inspect_llvm().values())
    assert re.search(r"fmul contract <\d+ x double>", code)
    assert not re.search(rf"call [^\n]*@(jitad\.)?{name}\(", code)


def loop_module(name: str, arity: int) -> ir.Module:
    """void loop(double* x..., double* out, int64 n), as LLVM IR."""
    module = ir.Module()
    function = ir.IRFunction(module, ir.VOID, [ir.DOUBLE.as_pointer()] * (arity + 1) + [ir.INT64], "loop")
    entry, body, leave = (function.append_basic_block() for _ in range(3))
    builder = IRBuilder(function, entry)
    builder.branch(body)
    builder.position_at_end(body)
    i = builder.phi(ir.INT64)
    *inputs, out, n = function.args
    value = scalar_llvm.call_by_name(builder, name, [builder.load(builder.gep(p, [i])) for p in inputs])
    builder.store(value, builder.gep(out, [i]))
    following = builder.add(i, ir.INT64(1))
    i.add_incoming(ir.INT64(0), entry)
    i.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, n), body, leave)
    builder.position_at_end(leave)
    builder.ret_void()
    return module


@pytest.mark.parametrize(("triple", "features", "lanes"), [("x86_64-unknown-linux-gnu", "+avx2,+fma", 4),
                                                          ("aarch64-linux-gnu", "+neon", 2)])
@pytest.mark.parametrize("name", EXPANSIONS)
def test_loops_vectorise_for_other_machines(name: str, triple: str, features: str, lanes: int) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this llvmlite has no target {triple}")
    machine = target.create_target_machine(features=features, opt=3)
    module = binding.parse_assembly(str(loop_module(name, 1 if name in UNARY else 2)))
    module.triple, module.data_layout = triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    assert f"<{lanes} x double>" in str(module)


def test_intrinsics_take_other_types() -> None:
    log1p, logaddexp = intrinsic("log1p"), intrinsic("logaddexp")

    @numba.njit
    def values(f4: Any, i8: Any, b1: Any) -> Any:
        return log1p(f4), log1p(i8), log1p(b1), logaddexp(f4, 2.0)

    single, *doubles = values(np.float32(0.5), 3, True)
    assert single == np.float32(math.log1p(0.5))
    np.testing.assert_allclose(doubles, [np.log1p(3.0), np.log1p(1.0), np.logaddexp(0.5, 2.0)], rtol=1e-15)


def call_built(expr: Any, *values: float) -> float:
    """The float64 `expr` of float64 variables x0 and x1, compiled by `scalar_llvm.build`."""
    module = ir.Module()
    function = ir.IRFunction(module, ir.DOUBLE, [ir.DOUBLE] * 2, "built")
    builder = IRBuilder(function, function.append_basic_block())
    builder.ret(scalar_llvm.build(builder, expr, {f"x{i}": x for i, x in enumerate(function.args)}))
    native = compile_module(module, level=1)
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(native.address("built"))(*values)


def test_every_machine_operation_is_built() -> None:
    a, b = var("x0", "f8"), var("x1", "f8")
    i, f = cast(a, "i8"), cast(b, "f4")
    total = const(0.0)
    roundings = [call(name, b) for name in ("floor", "ceil", "trunc", "rint")]
    for term in [*roundings, a / b, -a, abs(b), call("sqrt", a), call("copysign", a, b), call("fmod", a, b),
                 call("fmod", a, b), call("arctan2", a, b), cast(call("exp", f), "f8"),
                 cast(f * f, "f8"), cast(i * 3 - i / 2 + abs(-i), "f8"), cast((i << 3) ^ (i >> 1) | 8, "f8"),
                 cast(call("lshr", -i, const(60, "i8")), "f8"), select(a < b, a, b), select(~(a >= b), a, b),
                 select(a.ne(b) & cast(i, "b1"), 1.0, a), cast(cast(b, "b1"), "f8"), cast(a < b, "f8")]:
        total = total * 0.5 + term
    x = (3.25, -1.75)
    expected = scalar_numpy.evaluate(total, {"x0": x[0], "x1": x[1]})
    assert call_built(total, *x) == pytest.approx(float(expected), rel=1e-7)


def test_deep_and_shared_expressions() -> None:
    """Neither Python's recursion limit nor the number of paths through the graph matters."""
    x = var("x0", "f8")
    deep = x
    for _ in range(3000):
        deep = deep + 1.0
    for _ in range(60):
        deep = (deep + deep) * 0.5
    assert call_built(deep, 1.0, 0.0) == 3001.0
    with pytest.raises(NotImplementedError, match="median"):
        call_built(call("median", cast(x, "i8")), 1.0, 0.0)


def test_a_result_overflows_before_it_meets_the_arithmetic_around_it() -> None:
    """The last product of an expansion is no part of a fused operation: infinity less infinity is NaN."""
    def f(x: Any) -> Any:
        return -x - np.exp(-x), -x - np.exp2(-x), -x - np.cosh(x), np.exp(800.0 + x - x) - np.exp(900.0 + x - x)

    with np.errstate(all="ignore"):
        for x in (np.full(19, -np.inf), np.linspace(-3.0, 2.0, 19)):
            for got, expected in zip(jit(f)(x), f(x), strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-14)
            assert np.isnan(jit(f)(np.full(3, -np.inf))[0]).all()
