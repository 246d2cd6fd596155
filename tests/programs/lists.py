"""Python lists and tuples of traced numbers, where NumPy takes arrays."""
from __future__ import annotations

import math

import numpy as np
import scipy.linalg as sla
import scipy.special as sp
from numpy import exp, maximum
from scipy.special import logsumexp

from tests.programs.table import P3, Table

rows = Table()
A = np.arange(6.0).reshape(2, 3) / 3
v2, v3 = np.array([0.3, -0.4]), np.array([1.0, 2.0, -0.5])
ints = np.array([1, 2, 3])

rows("exp of a list", lambda x: np.exp([x[0], x[1]]))
rows("exp of a tuple, imported", lambda x: exp((x[0], 2.0)))
rows("sin of a nested list", lambda x: np.sin([[x[0], x[1]], [0.0, x[2]]]))
rows("log of a comprehension", lambda x: np.log([v * v + 1 for v in x]))
rows("array minus a list", lambda x: v2 - [x[0], x[1]])
rows("list minus an array", lambda x: [x[0], x[1]] - v2)
rows("array of the function minus a list", lambda x: np.array([1.0, 2.0]) - [x[0], x[1]])
rows("array of zeros plus a tuple", lambda x: np.zeros(2) + (x[0], x[1]))
rows("array times a list of rows", lambda x: np.ones((2, 2)) * [[x[0]], [x[1]]])
rows("array matmul a list", lambda x: A @ [x[0], x[1], x[2]])
rows("list matmul an array", lambda x: [x[0], x[1]] @ A)
rows("eye matmul a list", lambda x: np.eye(3) @ [x[0], x[1], x[2]])
rows("traced matmul a list of numbers", lambda x: x @ [1.0, 2.0, 3.0])
rows("maximum of zero and a list", lambda x: np.maximum(0, [x[0], x[1]]))
rows("maximum imported", lambda x: maximum([x[0], x[2]], 0.2))
rows("minimum of two lists", lambda x: np.minimum([x[0], x[1]], [x[2], x[2]]))
rows("hypot of lists", lambda x: np.hypot([x[0], x[1]], [1.0, 2.0]))
rows("arctan2 of a list and a number", lambda x: np.arctan2([x[0], x[1]], 2.0))
rows("power of a list", lambda x: np.power([x[0], x[2]], 2))
rows("add of list and tuple", lambda x: np.add([x[0], x[1]], (x[2], 1)))
rows("multiply by keyword where of lists", lambda x: np.multiply([x[0], x[1]], v2, dtype=float))
rows("square in a helper alias", lambda x: (lambda f: f([x[0], x[1]]))(np.square))
rows("map of a ufunc over rows", lambda x: sum(map(np.sum, [np.exp([a, a]) for a in x])))
rows("logaddexp of lists", lambda x: np.logaddexp([x[0], x[1]], [x[1], x[2]]))
rows("logaddexp.reduce of a list", lambda x: np.logaddexp.reduce([x[0], x[1], x[2]]))
rows("add.reduce of a list", lambda x: np.add.reduce([x[0], x[1] * 2]))
rows("multiply.outer of lists", lambda x: np.multiply.outer([x[0], x[1]], [1.0, x[2]]))
rows("add.accumulate of a list", lambda x: np.add.accumulate([x[0], x[1], x[2]]))
rows("comparison of a list", lambda x: np.where(np.greater([x[0], x[1]], 0), 1.0, x[2]))
rows("isfinite of a list", lambda x: x.sum() if np.all(np.isfinite([x[0], x[1]])) else 0.0)
rows("sum of a list", lambda x: np.sum([x[0], x[1] ** 2]))
rows("sum of a generator list", lambda x: np.sum([np.exp(v) for v in x]))
rows("mean of a list of rows", lambda x: np.mean([x, 2 * x], axis=0))
rows("dot of lists", lambda x: np.dot([x[0], x[1]], [x[1], x[2]]))
rows("dot of a list and an array", lambda x: np.dot(A, [x[0], x[1], 1.0]))
rows("cross of lists", lambda x: np.cross([x[0], 0, 0], [0, x[1], 1.0]))
rows("outer of lists", lambda x: np.outer([x[0], x[1]], [1, 2]))
rows("linalg.norm of a list", lambda x: np.linalg.norm([x[0], x[1]]))
rows("linalg.det of nested lists", lambda x: np.linalg.det([[x[0], 1.0], [x[1], x[2]]]))
rows("linalg.solve of nested lists", lambda x: np.linalg.solve([[2.0, x[0]], [x[0], 3.0]], [x[1], x[2]]))
rows("linalg.inv of nested lists", lambda x: np.linalg.inv([[2.0, x[0]], [x[1], 3.0]]))
rows("linalg.eigvalsh of nested lists", lambda x: np.linalg.eigvalsh([[2.0, x[0]], [x[0], 3.0]]))
rows("scipy.linalg.solve of lists", lambda x: sla.solve([[2.0, x[0]], [x[0], 3.0]], [1.0, x[2]]))
rows("scipy.linalg.expm of lists", lambda x: sla.expm([[0.0, x[0]], [-x[0], 0.0]]))
rows("block_diag of lists", lambda x: sla.block_diag([[x[0]]], [[x[1], 1.0]]))
rows("toeplitz of a list", lambda x: sla.toeplitz([x[0], x[1], x[2]]))
rows("logsumexp of a list", lambda x: logsumexp([x[0], x[1]]))
rows("logsumexp of a list with weights", lambda x: logsumexp([x[0], x[1]], b=[0.3, 0.7]))
rows("gammaln of a list", lambda x: sp.gammaln([x[0] ** 2 + 1, 2.0]))
rows("expit of a nested tuple", lambda x: sp.expit(((x[0], x[1]),)))
rows("xlogy of an array and a list", lambda x: sp.xlogy(v3 ** 2, [x[0] ** 2, x[1] ** 2, 1.0]))
rows("softmax of a list", lambda x: sp.softmax([x[0], x[1], 0.0]))
rows("where of lists", lambda x: np.where([True, False], [x[0], x[1]], [0.0, x[2]]))
rows("clip of a list", lambda x: np.clip([x[0], x[1]], -0.7, 0.7))
rows("concatenate of a list and numbers", lambda x: np.concatenate(([x[0]], x[1:], [1.0])))
rows("append of a list", lambda x: np.append(x, [x[0], 2.0]))
rows("insert of a list", lambda x: np.insert(x, 1, [x[0], 2.0]))
rows("stack of lists", lambda x: np.stack([[x[0], x[1]], [x[1], x[2]]]))
rows("vstack of lists", lambda x: np.vstack(([x[0], x[1]], [1.0, 2.0])))
rows("column_stack of a list and an array", lambda x: np.column_stack(([x[0], x[1]], v2)))
rows("r_ of numbers", lambda x: np.r_[x[0], 1.0, x[1:]])
rows("c_ of lists", lambda x: np.c_[[x[0], x[1]], v2])
rows("diag of a list", lambda x: np.diag([x[0], x[1]]))
rows("cumsum of a list", lambda x: np.cumsum([x[0], x[1], x[2]]))
rows("diff of a list", lambda x: np.diff([x[0], x[1], x[2]]))
rows("interp of a list of values", lambda x: np.interp([0.5, 1.5], [0.0, 1.0, 2.0], [x[0], x[1], x[2]]))
rows("trapezoid of a list", lambda x: np.trapezoid([x[0], x[1], x[2]]))
rows("polyval of a list", lambda x: np.polyval([x[0], x[1], x[2]], v3))
rows("polyval of a tuple at a traced point", lambda x: np.polyval((1.0, -2.0, 3.0), x))
rows("einsum of lists", lambda x: np.einsum("i,i->", [x[0], x[1]], [1.0, x[2]]))
rows("tensordot of lists", lambda x: np.tensordot([x[0], x[1]], [1.0, x[2]], axes=1))
rows("convolve of lists", lambda x: np.convolve([x[0], x[1]], [1.0, 0.5, x[2]]))
rows("var of a list", lambda x: np.var([x[0], x[1], 1.0], ddof=1))
rows("average with weights from a list", lambda x: np.average(v2, weights=[x[0] ** 2, x[1] ** 2]))
rows("prod of a list", lambda x: np.prod([x[0], x[1]]))
rows("max of a list", lambda x: np.max([x[0], x[1], x[2]]))
rows("median of a list", lambda x: np.median([x[0], x[1], x[2]]))
rows("sort of a list", lambda x: np.sort([x[0], x[1], x[2]]))
rows("array of a nested list with dtype", lambda x: np.array([[x[0], 1], [2, x[1]]], dtype=float))
rows("asarray of a list of arrays", lambda x: np.asarray([x, x * 2]))
rows("array of map", lambda x: np.array(list(map(lambda v: v ** 2, x))))
rows("fromiter", lambda x: np.fromiter((v * 2 for v in x), dtype=float))
rows("list repeated", lambda x: np.array([x[0]] * 3))
rows("list concatenated", lambda x: np.array([x[0], x[1]] + [1.0, 2.0]))
rows("list sorted", lambda x: np.array(sorted([x[0], x[1], x[2]])))
rows("list reversed", lambda x: np.array([x[0], x[1]][::-1]))
rows("min of a list by Python", lambda x: min([x[0], x[1], x[2]]) ** 2)
rows("math.hypot of unpacked", lambda x: math.hypot(*x))
rows("math.dist of lists", lambda x: math.dist([x[0], x[1]], [0.0, 1.0]))
rows("math.prod of a list", lambda x: math.prod([x[0], x[1]]))
rows("sum of products by zip", lambda x: sum(a * b for a, b in zip(x, v3)))
rows("stored list", lambda x: _stored(x))
rows("stored row of list", lambda x: _rows(x))
rows("augmented with a list", lambda x: _augmented(x))
rows("ints captured minus list", lambda x: ints - [x[0], x[1], x[2]])
rows("list compared", lambda x: np.sum(np.where(v3 > [x[0], x[1], x[2]], v3, 0.0) * x))
rows("sqrt of list positive", lambda x: np.sqrt([x[0], x[1]]).sum(), P3)
rows("traced plus a list of arrays", lambda x: x + [v3, v3])
rows("piecewise constants", lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v ** 2]))
rows("select of lists", lambda x: np.select([x < 0, x > 1], [x ** 2, 3 * x], default=0.0))


def _stored(x):
    a = np.zeros(3)
    a[:2] = [x[0], x[1]]
    return a


def _rows(x):
    a = np.zeros((2, 2))
    a[0] = x[0], x[1]
    a[1, :] = [1.0, x[2]]
    return a


def _augmented(x):
    a = np.ones(2)
    a += [x[0], x[1]]
    a *= (x[2], 2.0)
    return a
