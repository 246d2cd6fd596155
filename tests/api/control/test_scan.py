"""Loops on the tape: `jitad.scan` and `jitad.fori_loop` against the Python loops that they stand for."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.passes.differentiate.modes import one, pullback, pushforward
from jitad.passes.optimise.rewrites import optimise
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record
from tests.api.control.running import close, compiled, plain

rng = np.random.default_rng(7)
X = rng.normal(size=(6, 3))
Y = rng.normal(size=9)
W = rng.normal(size=(3, 3)) / 2
SPD = W @ W.T + np.eye(3)


def garch(theta, y):
    def step(carry, ys):
        h, total = carry
        now, before = ys
        h = theta[0] + theta[1] * before**2 + theta[2] * h
        return (h, total + np.log(h) + now**2 / h), None
    return jitad.scan(step, (0.5, 0.0), (y[1:], y[:-1]))[0][1]


def counted(theta, y):
    def step(i, carry):
        h, total = carry
        h = theta[0] + theta[1] * y[i - 1] ** 2 + theta[2] * h
        return h, total + np.log(h) + y[i] ** 2 / h + 0.1 * i * h
    return jitad.fori_loop(1, len(y), step, (0.5, 0.0))[1]


def vectors(w, x):
    def step(state, row):
        state = np.tanh(w @ state + row)
        return state, state * row[0]
    last, rows = jitad.scan(step, np.ones(3), x)
    return np.sum(rows**2) + last[1]


def backwards(w, x):
    def step(state, row):
        state = np.tanh(w @ state + row)
        return state, np.exp(state[0])
    last, rows = jitad.scan(step, w[0], x, reverse=True)
    return np.sum(rows * np.arange(len(x))) + np.sum(last)


def markov(log_a, x):
    def step(alpha, row):
        return logsumexp(alpha[:, None] + log_a, axis=0) + row, None
    return logsumexp(jitad.scan(step, x[0], x[1:])[0])


def kalman(q, x):
    def step(carry, row):
        mean, cov, total = carry
        mean, cov = W @ mean, W @ cov @ W.T + q * np.eye(3)
        root = np.linalg.cholesky(cov + SPD)
        white = np.linalg.solve(root, row - mean)
        gain = np.linalg.solve(cov + SPD, cov).T
        total = total - 0.5 * white @ white - np.sum(np.log(np.diag(root))) - 0.01 * np.linalg.slogdet(cov + SPD)[1]
        return (mean + gain @ (row - mean), cov - gain @ cov, total), np.linalg.inv(cov + SPD)[0, 1]
    (_, cov, total), rows = jitad.scan(step, (np.zeros(3), np.eye(3), 0.0), x)
    return total + np.linalg.det(cov) + np.sum(rows)


def nested(theta, x):
    def outer(total, row):
        def inner(i, value):
            return np.sin(value * theta[0]) + row[i] * theta[1]
        value = jitad.fori_loop(0, 3, inner, total)
        return total + value**2, value
    total, rows = jitad.scan(outer, theta[2], x)
    return total + np.sum(np.exp(rows))


def large(v, x):
    """More elements than are written out."""
    grid = np.linspace(0.1, 1.0, 80)

    def step(state, row):
        state = state * np.cos(grid * row[0]) + np.sum(np.sqrt(1.0 + state**2)) / 80 * v[0]
        return state, state @ grid
    last, rows = jitad.scan(step, v[1] * np.ones(80), x)
    return np.sum(last) + np.sum(rows**2)


def matrices(v, x):
    """Factorizations of matrices that are not written out."""
    base = 12.0 * np.eye(10) + np.outer(np.arange(10), np.arange(10)) / 100

    def step(c, row):
        solved = np.linalg.solve(base + v[0] * np.outer(c, c), c + row[1])
        return solved, solved[3] * row[0]
    last, rows = jitad.scan(step, v[1] * np.linspace(0.5, 1.0, 10), x)
    return np.sum(last) + np.sum(rows)


def carried_matrix(a, x):
    def step(m, row):
        m = a @ m * 0.5 + row[:, None] * m.T
        return m, np.max(m)
    last, rows = jitad.scan(step, np.eye(3), x)
    return np.sum(last) + np.sum(rows)


def swapped(theta, x):
    def step(carry, row):
        a, b, unused = carry
        return (b, a * theta[0] + row[0], unused + a), (a, b * theta[1])
    (a, b, _), (first, _) = jitad.scan(step, (theta[1], theta[2], 0.0), x)
    return a * b + np.sum(first**2)


def masked(theta, x):
    def step(s, row):
        s = np.where(row[0] > 0, s * theta[0] + np.sqrt(np.where(row[0] > 0, 1.0 + row[0], 1.0)), s - theta[1])
        return s, np.maximum(s, theta[2])
    last, rows = jitad.scan(step, 0.3, x)
    return last + np.sum(rows)


def gathered(theta, x):
    index = np.array([2, 0, 1, 1, 2, 0])

    def step(s, both):
        row, k = both
        return s * theta[k] + row[k], np.exp(s) * theta[(k + 1) % 3]
    last, rows = jitad.scan(step, 0.5, (x, index))
    return last + np.sum(rows)


T3 = np.array([0.3, 0.2, 0.5])
PROGRAMS = [(garch, T3, Y), (counted, T3, Y), (vectors, W, X), (backwards, W, X), (markov, W, X), (kalman, 0.3, X),
            (nested, T3, X), (large, T3, X), (matrices, T3, X), (carried_matrix, W, X), (swapped, T3, X),
            (masked, T3, X), (gathered, T3, X)]
programs = pytest.mark.parametrize(("f", "p", "x"), PROGRAMS, ids=lambda v: getattr(v, "__name__", None))


def fresh(inputs):
    return [np.array(v, dtype=float) if np.ndim(v) else float(v) for v in inputs]


class Sweep:
    """A program on a builder, with its derivatives."""

    def __init__(self, f, *args):
        recording = record(unwrap(f), args)
        self.builder, self.inputs = recording.builder, [*recording.argument_inputs, *recording.captured_inputs]
        self.args, (self.y,) = [*args, *recording.captured], recording.outputs
        self.wrt = self.inputs[:len(args)]
        self.ts = [self.builder.input(v.aval, f"t{i}") for i, v in enumerate(self.wrt)]
        self.directions = [np.asarray(np.cos(np.arange(1.0, 1.0 + v.aval.size)).reshape(v.shape)) for v in self.wrt]

    def gradient(self):
        return pullback(self.builder, [self.y], [one(self.y)], self.wrt)

    def run(self, outputs, args=None, fast=True):
        tape = self.builder.finish(outputs)
        inputs = fresh([*(args or self.args), *self.directions][:len(tape.inputs)])
        values = evaluate(tape, *inputs)
        if fast:
            better = optimise(tape)
            better.check()
            for made in (evaluate(better, *inputs), compiled(better, inputs), plain(better, inputs)):
                for a, b in zip(made, values, strict=True):
                    close(a, b, 1e-9)
        return values

    def difference(self, outputs, h=1e-5):
        """The derivative of outputs in the directions."""
        n = len(self.wrt)
        moved = [[a + s * h * d for a, d in zip(self.args, self.directions, strict=False)] + self.args[n:]
                 for s in (1, -1)]
        up, down = (self.run(outputs, m, fast=False) for m in moved)
        return [(u - d) / (2 * h) for u, d in zip(up, down, strict=True)]


@programs
def test_value_and_gradient(f, p, x):
    sweep = Sweep(f, p, x)
    gradient = sweep.gradient()
    y, *found = sweep.run([sweep.y, *gradient])
    close(y, f(p, x))                                      # outside of a recording: a Python loop
    along = sum(np.sum(g * t) for g, t in zip(found, sweep.directions, strict=True))
    close(along, sweep.difference([sweep.y])[0], 1e-7)


@programs
def test_forward_mode(f, p, x):
    sweep = Sweep(f, p, x)
    forward = pushforward(sweep.builder, [sweep.y], sweep.wrt, sweep.ts)
    gradient = sweep.gradient()
    along, *found = sweep.run([*forward, *gradient])
    close(along, sum(np.sum(g * t) for g, t in zip(found, sweep.directions, strict=True)))


@programs
def test_second_order(f, p, x):
    sweep = Sweep(f, p, x)
    gradient = sweep.gradient()
    expected = sweep.difference(gradient, 1e-6)
    twice = pullback(sweep.builder, gradient, sweep.ts, sweep.wrt)
    mixed = pushforward(sweep.builder, gradient, sweep.wrt, sweep.ts)
    found = sweep.run([*twice, *mixed], fast=f in (garch, nested, swapped))
    for a, b, e in zip(found[:2], found[2:], expected, strict=True):
        close(a, b, 1e-9)
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5 * (1 + np.max(np.abs(e))))
