"""The table of the trace room's tests (label, function, shapes of its arguments) and a minimal recorder."""
from __future__ import annotations

import copy
import operator
import warnings

import numpy as np
import pytest
import scipy.linalg
from scipy import special

import jitad.primitives
import jitad.trace.record  # noqa: F401  (fills the tables)
from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Where
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.values.tracer import Tracer

solve_triangular = SUBSTITUTES[scipy.linalg.solve_triangular]
cho_factor, cho_solve = SUBSTITUTES[scipy.linalg.cho_factor], SUBSTITUTES[scipy.linalg.cho_solve]


class LineBuilder(Builder):
    """A minimal recorder: every node comes from line 7 of model.py."""

    def __init__(self) -> None:
        super().__init__(wrap=Tracer)

    def where(self, depth: int = 1) -> Where:
        return Where("/home/user/model.py", 7, "logp")

    def decide(self, value: object) -> bool:
        """Every question of a rule is answered yes: there are no numbers to look at."""
        return True


def flat(result):
    return [r for part in result for r in flat(part)] if isinstance(result, (list, tuple)) else [result]


def traced(*args):
    builder = LineBuilder()
    return [builder.input(Aval(np.shape(a), np.asarray(a).dtype, type(a) in (int, float)), f"x{i}")
            for i, a in enumerate(args)]


def tape_of(function, *args) -> Tape:
    inputs = traced(*args)
    builder = inputs[0].builder
    outputs = [r if isinstance(r, Tracer) else builder.const(r) for r in flat(function(*inputs))]
    return builder.finish(outputs)


def gradients(tape: Tape, args, weights):
    builder = Builder()
    inputs = [builder.input(tape.nodes[i].aval, f"x{i}") for i in tape.inputs]
    outputs = builder.replay(tape, inputs)
    seeds = [builder.const(w) for w in weights]
    return evaluate(builder.finish(pullback(builder, outputs, seeds, inputs)), *args)


# --- the table: label, function, shapes ----------------------------------------------------------
V, M, S, T3 = (5,), (3, 4), (3, 3), (2, 3, 4)

OPERATORS = [
    ("add", lambda x, y: x + y, (M, (4,))), ("radd number", lambda x: 2 + x, (M,)),
    ("sub", lambda x, y: x - y, (M, M)), ("rsub", lambda x: 1.5 - x, (V,)), ("mul", lambda x, y: x * y, (M, (3, 1))),
    ("div", lambda x, y: x / y, (M, M)), ("rdiv", lambda x: 2 / x, (V,)),
    ("array - x", lambda x: np.arange(5) - x, (V,)),
    ("array @ x", lambda x: np.arange(15.0).reshape(3, 5) @ x, (V,)), ("x @ array", lambda x: x @ np.eye(5), (V,)),
    ("float64 * x", lambda x: np.float64(2) * x, (V,)), ("float32 * x", lambda x: np.float32(2) * x, (V,)),
    ("list + x", lambda x: np.ones(5).tolist() + x, (V,)), ("pow 2", lambda x: x ** 2, (M,)),
    ("pow 0.5", lambda x: x ** 0.5, (M,)), ("pow 3", lambda x: x ** 3, (M,)), ("pow -1", lambda x: x ** -1.0, (M,)),
    ("pow 0", lambda x: x ** 0, (M,)), ("pow -2.5", lambda x: x ** -2.5, (M,)), ("rpow", lambda x: 2.0 ** x, (V,)),
    ("pow array", lambda x: x ** np.array([0, 1, 2, 3, 4]), (V,)), ("pow x", lambda x, y: x ** (y * 1.0), (V, V)),
    ("neg", lambda x: -x, (V,)), ("pos", lambda x: +x, (V,)), ("abs", lambda x: abs(-x), (V,)),
    ("floordiv", lambda x: x // 0.7, (V,)), ("mod", lambda x: x % 0.7, (V,)),
    ("int floordiv", lambda x: x // 2, (V,)), ("int mod", lambda x: -x % 3, (V,)),
    ("divmod", lambda x: divmod(x, 2), (V,)), ("lt", lambda x, y: x < y, (V, V)), ("ge", lambda x: x >= 1, (V,)),
    ("eq", lambda x: x == x, (V,)), ("ne", lambda x: x != 1, (V,)), ("eq None", lambda x: operator.eq(x, None), (V,)),
    ("ne str", lambda x: x != "a", (V,)), ("and", lambda x: (x > 1) & (x < 2), (V,)),
    ("invert", lambda x: ~(x > 1), (V,)), ("xor", lambda x: (x > 1) ^ True, (V,)),
    ("bool + bool", lambda x: (x > 1) + (x > 0), (V,)), ("sum()", lambda x: sum(x), (V,)),
    ("in-place on numbers", lambda x: operator.iadd(x.sum(), 2.0), (V,)),
    ("iter", lambda x: [2 * r for r in x], (M,)), ("unpack", lambda x: (lambda a, *b: a * b[-1])(*x), (M,)),
    ("len", lambda x: x * len(x), (M,)), ("round", lambda x: round(x[0], 1), (V,)),
    ("deepcopy", lambda x: copy.deepcopy(x) * copy.copy(x), (V,)),
]

UFUNCS = [
    *((u.__name__, u, (M,)) for u in (
        np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.square, np.absolute,
        np.fabs, np.sign, np.sin, np.cos, np.tan, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.rint,
        np.floor, np.ceil, np.trunc, np.isnan, np.isfinite, np.negative, np.positive, np.conjugate, np.degrees,
        np.deg2rad, np.logical_not, np.signbit, special.gammaln, special.digamma, special.erf, special.erfc,
        special.ndtr, special.log_ndtr, special.expit, special.log_expit, special.entr)),
    *((u.__name__, u, (M, (4,))) for u in (
        np.hypot, np.arctan2, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.float_power,
        np.copysign, np.fmod, np.logical_and, np.greater_equal, special.xlogy, special.xlog1py)),
    ("power", lambda x, y: np.power(x, 1.0 * y), (M, (4,))), ("reciprocal", lambda x: np.reciprocal(x * 1.0), (M,)),
    ("arcsin", lambda x: np.arcsin(x / 5), (M,)), ("arccos", lambda x: np.arccos(x / 5), (M,)),
    ("arctanh", lambda x: np.arctanh(x / 5), (M,)), ("arccosh", lambda x: np.arccosh(x + 1), (M,)),
    ("logit", lambda x: special.logit(x / 5), (M,)),
    ("polygamma", lambda x: SUBSTITUTES[special.polygamma](2, x), (M,)), ("modf", np.modf, (V,)),
    ("dtype=", lambda x: np.add(x, 1, dtype=np.float64), (M,)), ("add.reduce", np.add.reduce, (M,)),
    ("multiply.reduce", lambda x: np.multiply.reduce(x, axis=1), (M,)), ("maximum.reduce", np.maximum.reduce, (M,)),
    ("minimum.reduce", lambda x: np.minimum.reduce(x, axis=None, keepdims=True), (M,)),
    ("logaddexp.reduce", lambda x: np.logaddexp.reduce(x, axis=1), (M,)),
    ("add.accumulate", np.add.accumulate, (M,)),
    ("multiply.accumulate", lambda x: np.multiply.accumulate(x, axis=1), (M,)),
    ("logaddexp.accumulate", np.logaddexp.accumulate, (V,)), ("maximum.accumulate", np.maximum.accumulate, (V,)),
    ("outer", np.multiply.outer, (M, V)), ("subtract.outer", lambda x: np.subtract.outer(x, np.arange(3)), (V,)),
    ("vecdot", np.vecdot, (M, M)), ("matvec", np.matvec, (M, (4,))), ("vecmat", np.vecmat, ((3,), M)),
]

ELEMENTWISE = [
    ("where", lambda x, y: np.where(x > 1, x, y), (M, (4,))),
    ("where number", lambda x: np.where(x > 1, np.log(x), 0), (M,)),
    ("where const", lambda x: np.where(np.array([True, False, True]), x, -1.0), ((3,),)),
    ("select", lambda x: np.select([x < 1, x < 2], [x * 2, x * 3], 7), (V,)),
    ("clip", lambda x: np.clip(x, 0.8, 2), (M,)), ("clip method", lambda x: x.clip(max=2), (M,)),
    ("clip none", lambda x: np.clip(x, None, 1.9), (M,)), ("round", lambda x: np.round(x, 1), (M,)),
    ("round method", lambda x: x.round(), (M,)), ("nan_to_num", np.nan_to_num, (M,)),
    ("isclose", lambda x: np.isclose(x, x + 1e-9), (M,)), ("allclose", lambda x: np.allclose(x, x), (M,)),
    ("real", np.real, (M,)), ("imag", np.imag, (M,)), ("conj", lambda x: x.conj(), (M,)), ("copy", np.copy, (M,)),
    ("astype", lambda x: x.astype(np.float32), (M,)), ("astype int", lambda x: x.astype(int), (M,)),
    ("sinc", np.sinc, (V,)), ("fix", np.fix, (V,)),
    ("shape", lambda x: x * np.shape(x)[1] * np.ndim(x) * np.size(x), (M,)),
    ("result_type", lambda x: x.astype(np.result_type(x, np.float32)), (M,)),
    ("zeros_like", lambda x: np.zeros_like(x) + x, (M,)),
    ("ones_like", lambda x: np.ones_like(x, dtype=np.float32), (M,)),
    ("full_like", lambda x: np.full_like(x, 2.5), (M,)), ("full_like x", lambda x: np.full_like(x, x[0, 0]), (M,)),
    ("full", lambda x: SUBSTITUTES[np.full]((2, 3), x[0, 0]), (M,)),
    ("attributes", lambda x: x * (x.size + x.ndim + x.itemsize + x.nbytes), (M,)),
    ("iscomplexobj", lambda x: x * np.iscomplexobj(x), (M,)), ("isreal", np.isreal, (M,)),
]

SHAPE = [
    ("reshape", lambda x: np.reshape(x, (2, -1)), (M,)), ("reshape method", lambda x: x.reshape(4, 3), (M,)),
    ("reshape F", lambda x: x.reshape((2, 6), order="F"), (M,)),
    ("reshape unit", lambda x: x.reshape(1, 3, 1, 4), (M,)), ("reshape empty", lambda x: x.reshape(0, 3), ((0, 4),)),
    ("reshape 0-d", lambda x: x.reshape(1, 1), ((),)), ("ravel", np.ravel, (T3,)),
    ("ravel F", lambda x: np.ravel(x, "F"), (M,)), ("flatten", lambda x: x.flatten(), (M,)),
    ("transpose", np.transpose, (T3,)), ("transpose axes", lambda x: np.transpose(x, (-1, 0, 1)), (T3,)),
    ("transpose method", lambda x: x.transpose(1, 0, 2), (T3,)), ("T", lambda x: x.T, (T3,)),
    ("mT", lambda x: x.mT, (T3,)), ("matrix_transpose", np.matrix_transpose, (T3,)),
    ("swapaxes", lambda x: np.swapaxes(x, 0, -1), (T3,)),
    ("moveaxis", lambda x: np.moveaxis(x, [0, 1], [-1, 0]), (T3,)), ("rollaxis", lambda x: np.rollaxis(x, 2), (T3,)),
    ("expand_dims", lambda x: np.expand_dims(x, (0, -1)), (M,)), ("squeeze", np.squeeze, ((1, 3, 1),)),
    ("squeeze axis", lambda x: x.squeeze(-1), ((1, 3, 1),)),
    ("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4)), ((3, 1),)),
    ("broadcast_arrays", lambda x, y: np.broadcast_arrays(x, y, 1.0), ((3, 1), (4,))), ("flip", np.flip, (T3,)),
    ("flip axis", lambda x: np.flip(x, (0, -1)), (T3,)), ("fliplr", np.fliplr, (M,)), ("flipud", np.flipud, (M,)),
    ("rot90", np.rot90, (M,)), ("roll", lambda x: np.roll(x, 2), (M,)),
    ("roll axis", lambda x: np.roll(x, (1, -2), (0, 1)), (M,)), ("repeat", lambda x: np.repeat(x, 2), (M,)),
    ("repeat axis", lambda x: x.repeat(3, axis=-1), (M,)),
    ("repeat counts", lambda x: np.repeat(x, [2, 0, 1], axis=0), (M,)),
    ("tile", lambda x: np.tile(x, (2, 1, 3)), (M,)), ("tile 1", lambda x: np.tile(x, 2), (M,)),
    ("split", lambda x: np.split(x, 2, axis=1), (M,)), ("split at", lambda x: np.split(x, [1, 4]), (V,)),
    ("array_split", lambda x: np.array_split(x, 3), (V,)), ("hsplit", lambda x: np.hsplit(x, 2), (M,)),
    ("vsplit", lambda x: np.vsplit(x, 3), (M,)), ("unstack", lambda x: np.unstack(x, axis=1), (M,)),
    ("dsplit", lambda x: np.dsplit(x, 2), (T3,)),
    ("atleast", lambda x: [np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)], (V,)),
    ("atleast 0-d", lambda x: [np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)], ((),)),
    ("concatenate", lambda x, y: np.concatenate([x, y], axis=-1), (M, (3, 2))),
    ("concatenate x", np.concatenate, (M,)),
    ("concatenate const", lambda x: np.concatenate([np.arange(2), x, [7.5]]), (V,)),
    ("concatenate None", lambda x: np.concatenate([x, x], axis=None), (M,)),
    ("stack", lambda x, y: np.stack([x, y], axis=-1), (M, M)),
    ("stack numbers", lambda x: np.stack([x[0], 1.0, 2]), (V,)),
    ("hstack", lambda x: np.hstack([x, 1.0, x[0]]), (V,)), ("hstack 2", lambda x: np.hstack([x, x]), (M,)),
    ("vstack", lambda x: np.vstack([x, x]), (V,)), ("dstack", lambda x: np.dstack([x, x]), (M,)),
    ("array of numbers", lambda x: SUBSTITUTES[np.array]([[x[0], 1.0], [2, x[1]]]), (V,)),
    ("asarray of rows", lambda x: SUBSTITUTES[np.asarray]([x[0], 2 * x[1]], dtype=np.float64), (M,)),
    ("column_stack", lambda x, y: np.column_stack([x, y]), ((3,), M)), ("append", lambda x: np.append(x, 1.0), (V,)),
    ("append axis", lambda x: np.append(x, np.ones((1, 4)), axis=0), (M,)),
    ("append nested", lambda x: np.append(x, [x[0], 3.0]), (V,)),
    ("block", lambda x: np.block([[x, np.ones((3, 1))], [x[:1], np.ones((1, 1))]]), (M,)),
    ("pad", lambda x: np.pad(x, ((1, 0), (2, 1)), constant_values=3), (M,)),
    ("diag 1", lambda x: np.diag(x, -1), (V,)), ("diag 2", lambda x: np.diag(x, 1), (M,)),
    ("diagflat", np.diagflat, (V,)), ("diagonal", lambda x: x.diagonal(1, 0, -1), (T3,)), ("tril", np.tril, (T3,)),
    ("triu", lambda x: np.triu(x, 1), (M,)), ("tril 1-d", np.tril, (V,)), ("trace", np.trace, (T3,)),
    ("trace method", lambda x: x.trace(offset=1), (M,)), ("linalg.trace", np.linalg.trace, (T3,)),
    ("linalg.diagonal", np.linalg.diagonal, (T3,)),
]

OPTIONS = ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)}, {"axis": (-1, 1), "keepdims": True},
           {"axis": ()}, {"keepdims": True})
REDUCTIONS = [
    *((f"{f.__name__} {o}", lambda x, f=f, o=o: f(x, **o), (T3,)) for f in (
        np.sum, np.prod, np.max, np.amin, np.mean, np.var, np.std, np.any, np.all) for o in OPTIONS
      if not (f is np.std and o.get("axis") == ())),
    *((f"{name} method", lambda x, name=name: getattr(x, name)(), (M,)) for name in (
        "sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "cumsum", "cumprod")),
    *((f"{f.__name__} 0-d", f, ((),)) for f in (np.sum, np.prod, np.max, np.mean, np.any, np.cumsum)),
    *((f"{f.__name__} empty", f, ((0, 3),)) for f in (np.sum, np.prod, np.any, np.all, np.cumsum)),
    ("max empty axis", lambda x: np.max(x, axis=1), ((0, 3),)),
    ("sum dtype", lambda x: np.sum(x, dtype=np.float32), (M,)),
    ("sum where", lambda x: np.sum(x, axis=0, where=x > 1, initial=2), (M,)),
    ("sum where const", lambda x: x.sum(where=[True, False, True, True]), (M,)),
    ("prod where", lambda x: np.prod(x, axis=0, where=x > 1, initial=2), (M,)),
    ("max where", lambda x: np.max(x, axis=1, where=x < 2, initial=0.5), (M,)),
    ("min initial", lambda x: np.min(x, initial=100, axis=0), ((0, 3),)),
    ("mean where", lambda x: x.mean(where=x > 0.5), (M,)), ("var ddof", lambda x: np.var(x, axis=1, ddof=1), (M,)),
    ("std correction", lambda x: np.std(x, correction=1), (M,)),
    ("var where", lambda x: x.var(axis=0, where=x > 0.5), (M,)),
    ("var mean", lambda x: np.var(x, mean=x.mean()), (M,)),
    ("mean dtype", lambda x: np.mean(x, dtype=np.float64), (M,)),
    ("mean int", lambda x: (10 * x).astype(int).mean(), (M,)),
    ("any where", lambda x: np.any(x > 2, axis=0, where=x < 2.5), (M,)),
    ("count_nonzero", lambda x: np.count_nonzero(x > 1, axis=1), (M,)),
    ("average", lambda x: np.average(x, axis=1), (M,)),
    ("average w", lambda x, y: np.average(x, axis=1, weights=y), (M, (4,))),
    ("average ww", lambda x, y: np.average(x, weights=y, returned=True), (M, M)),
    ("ptp", lambda x: np.ptp(x, axis=0), (M,)), ("cumsum axis", lambda x: np.cumsum(x, axis=-2), (T3,)),
    ("cumprod axis", lambda x: np.cumprod(x, axis=1), (M,)),
    ("cumulative_sum", lambda x: np.cumulative_sum(x, include_initial=True), (V,)),
    ("cumulative_prod", lambda x: np.cumulative_prod(x, axis=0, include_initial=True), (M,)),
    ("diff", np.diff, (M,)), ("diff n axis", lambda x: np.diff(x, n=2, axis=0), (M,)),
    ("diff prepend", lambda x: np.diff(x, prepend=0, append=[9.0]), (V,)),
    ("trapezoid", lambda x: np.trapezoid(x, dx=0.5), (M,)),
    ("trapezoid x", lambda x, y: np.trapezoid(x, y), (M, (4,))),
    *((f"logsumexp {o}", lambda x, o=o: SUBSTITUTES[special.logsumexp](x, **o), (T3,)) for o in OPTIONS),
    ("logsumexp b", lambda x, y: SUBSTITUTES[special.logsumexp](x, b=y, axis=1), (M, M)),
    ("logsumexp b const", lambda x: SUBSTITUTES[special.logsumexp](x, b=[1, 0, 2, 3], axis=1), (M,)),
    ("softmax", lambda x: SUBSTITUTES[special.softmax](x, axis=1), (M,)),
    ("log_softmax", SUBSTITUTES[special.log_softmax], (M,)),
]

PRODUCTS = [
    *((f"matmul {a}@{b}", operator.matmul, (a, b)) for a, b in (
        ((4,), (4,)), (M, (4,)), ((3,), M), (M, (4, 2)), (T3, (4, 2)), (T3, (2, 4, 3)), ((5, 1, 3, 4), (2, 4, 2)),
        ((4,), (2, 4, 3)), (T3, (4,)), ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((1, 1), (1, 1)))),
    *((f"dot {a}.{b}", np.dot, (a, b)) for a, b in (((4,), (4,)), (M, (4,)), (T3, (4, 2)), (T3, (5, 4, 2)), ((), M))),
    ("dot method", lambda x, y: x.dot(y), (M, (4, 2))), ("inner", np.inner, (M, (2, 4))),
    ("outer", np.outer, (M, V)), ("vdot", np.vdot, (M, M)), ("tensordot", np.tensordot, (T3, (3, 4, 2))),
    ("kron", np.kron, (M, (2, 2))), ("tensordot 0", lambda x, y: np.tensordot(x, y, 0), (V, M)),
    ("kron 1-2", np.kron, (V, (2, 2))),
    ("tensordot axes", lambda x, y: np.tensordot(x, y, ([0, -1], [1, 0])), (T3, (4, 2, 5))),
    ("multi_dot", lambda x, y: np.linalg.multi_dot([x, y, x]), (M, (4, 3))),
    ("linalg.vecdot", np.linalg.vecdot, (M, M)), ("matrix_power", lambda x: np.linalg.matrix_power(x, 5), (S,)),
    *((f"einsum {spec}", lambda *xs, spec=spec: np.einsum(spec, *xs), shapes) for spec, shapes in (
        ("ij,jk->ik", (M, (4, 2))), ("ij,jk", (M, (4, 2))), ("ii", (S,)), ("ii->i", (S,)), ("ij->ji", (M,)),
        ("ij->", (M,)), ("i,i", (V, V)), ("i,j->ij", (V, (3,))), ("ij,jk,kl->il", (M, (4, 2), (2, 5))),
        ("...ij,...jk->...ik", (T3, (4, 2))), ("...i->...", (T3,)), ("i...,i...", (M, M)),
        ("bi,bij,bj->b", ((2, 3), T3, (2, 4))), ("ij,ij->ij", (M, (1, 4))), ("iij,j->i", ((3, 3, 4), (4,))),
        ("ij,kl->", (M, (2, 2))), ("a b , b c -> c a", (M, (4, 2))), (",i", ((), V)), ("i,ij->j", ((1,), M)))),
    ("einsum lists", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), (M, (4, 2))),
    ("einsum lists implicit", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], optimize=True), (M, (4, 2))),
    ("einsum const", lambda x: np.einsum("ij,j->i", np.arange(15).reshape(3, 5), x), (V,)),
]

NORMS = [
    ("norm", np.linalg.norm, (M,)), ("norm 1-d", np.linalg.norm, (V,)),
    *((f"norm {p}", lambda x, p=p: np.linalg.norm(x, p, axis=-1, keepdims=True), (M,))
      for p in (1, 2, np.inf, -np.inf, 0, 3, 2.5)),
    *((f"norm {p}", lambda x, p=p: np.linalg.norm(x, p), (M,)) for p in ("fro", 1, -1, np.inf, -np.inf)),
    ("norm axes", lambda x: np.linalg.norm(x, 1, axis=(2, 0), keepdims=True), (T3,)),
    ("vector_norm", lambda x: np.linalg.vector_norm(x, axis=(0, 2)), (T3,)),
    ("matrix_norm", np.linalg.matrix_norm, (T3,)),
]


def spd(x):
    return x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1]) * 3


SOLVERS = [
    ("cholesky", lambda x: np.linalg.cholesky(spd(x)), (S,)),
    ("cholesky batch", lambda x: np.linalg.cholesky(spd(x)), (T3,)),
    ("cholesky upper", lambda x: np.linalg.cholesky(spd(x), upper=True), (S,)),
    ("solve", lambda x, y: np.linalg.solve(spd(x), y), (S, (3, 2))),
    ("solve vector", lambda x, y: np.linalg.solve(spd(x), y), (S, (3,))),
    ("solve batch", lambda x, y: np.linalg.solve(spd(x), y), (T3, (3, 2))),
    ("inv", lambda x: np.linalg.inv(spd(x)), (S,)), ("det", lambda x: np.linalg.det(spd(x)), (T3,)),
    ("slogdet", lambda x: tuple(np.linalg.slogdet(spd(x))), (S,)),
    ("slogdet field", lambda x: np.linalg.slogdet(spd(x)).logabsdet, (S,)),
    ("matrix_power -2", lambda x: np.linalg.matrix_power(spd(x), -2), (S,)),
    ("scipy cholesky", lambda x: SUBSTITUTES[scipy.linalg.cholesky](spd(x)), (S,)),
    ("scipy cholesky lower", lambda x: SUBSTITUTES[scipy.linalg.cholesky](spd(x), lower=True), (S,)),
    ("solve_triangular", lambda x, y: solve_triangular(spd(x), y, lower=True), (S, (3,))),
    ("solve_triangular T", lambda x, y: solve_triangular(spd(x), y, trans="T"), (S, (3, 2))),
    ("solve_triangular unit", lambda x, y: solve_triangular(spd(x), y, unit_diagonal=True), (S, (3,))),
    ("cho_solve", lambda x, y: cho_solve(cho_factor(spd(x), lower=True), y), (S, (3,))),
    ("cho_solve upper", lambda x, y: cho_solve(cho_factor(spd(x)), y), (S, (3, 2))),
    ("scipy solve", lambda x, y: SUBSTITUTES[scipy.linalg.solve](spd(x), y, assume_a="pos"), (S, (3,))),
    ("scipy inv", lambda x: SUBSTITUTES[scipy.linalg.inv](spd(x)), (S,)),
    ("scipy det", lambda x: SUBSTITUTES[scipy.linalg.det](spd(x)), (S,)),
]

INDEXING = [
    ("x[i]", lambda x: x[-1], (M,)), ("x[i, j]", lambda x: x[1, -2], (M,)), ("x[:, i]", lambda x: x[:, 2], (M,)),
    ("steps", lambda x: x[::-2, 3:0:-1], (M,)), ("None", lambda x: x[None, ..., None, 1], (M,)),
    ("empty slice", lambda x: x[5:], (V,)), ("ellipsis", lambda x: x[..., 0], (T3,)),
    ("x[()]", lambda x: x[()], ((),)), ("integers", lambda x: x[[0, 2, 2, -1]], (V,)),
    ("two arrays", lambda x: x[[0, 1], [2, 3]], (M,)), ("outer arrays", lambda x: x[np.ix_([0, 2], [1, 3])], (M,)),
    ("mixed", lambda x: x[:, [0, 2], 1], (T3,)), ("apart", lambda x: x[[0, 1], :, [2, 3]], (T3,)),
    ("mask", lambda x: x[np.array([True, False, True])], (M,)),
    ("2-d mask", lambda x: x[np.arange(12).reshape(3, 4) > 6], (M,)),
    ("take", lambda x: np.take(x, [[1, 0], [2, 2]], axis=-1), (M,)), ("take flat", lambda x: x.take([3, -1]), (M,)),
    ("take clip", lambda x: np.take(x, [-3, 9], mode="clip"), (V,)),
    ("take wrap", lambda x: np.take(x, [-6, 9], mode="wrap"), (V,)),
    ("traced index", lambda x: x[(x[:3] / 10).astype(int)], (V,)),
    ("traced number", lambda x: x[(x[0] / 10).astype(int), 1:], (M,)),
    ("take of const", lambda x: SUBSTITUTES[np.take](np.arange(7.0), x.astype(int)), (V,)),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.array([[1], [0], [3]]), axis=1), (M,)),
]

TABLE = OPERATORS + UFUNCS + ELEMENTWISE + SHAPE + REDUCTIONS + PRODUCTS + NORMS + SOLVERS + INDEXING


def data(shapes, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return [rng.integers(1, 5, size=s).astype(dtype) for s in shapes]
    wide = [rng.uniform(0.3, 2.9, size=(*s, 2)).astype(dtype) for s in shapes]
    return [w[..., 0] for w in wide]                                # strided


def plain(function, args):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(r) for r in flat(function(*args))]


def check_gradient(function, tape, args, expected):
    rng = np.random.default_rng(1)
    floating = [e.dtype == np.float64 for e in expected]
    if not any(floating):
        return
    weights = [rng.normal(size=e.shape).astype(e.dtype) if f else np.zeros(e.shape, e.dtype)
               for e, f in zip(expected, floating, strict=True)]
    directions = [rng.normal(size=a.shape) for a in args]
    grads = gradients(tape, args, weights)
    found = sum(float(np.sum(g * d)) for g, d in zip(grads, directions, strict=True))
    h = 1e-5

    def objective(t):
        results = plain(function, [a + t * d for a, d in zip(args, directions, strict=True)])
        return sum(float(np.sum(r * w)) for r, w, f in zip(results, weights, floating, strict=True) if f)
    slope = (8 * (objective(h) - objective(-h)) - (objective(2 * h) - objective(-2 * h))) / (12 * h)
    assert found == pytest.approx(slope, rel=2e-6, abs=2e-6)
