"""Neighbours by scipy.spatial's trees: their numbers are constants, their distances are not."""
from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.spatial import KDTree, cKDTree

from jitad import jit, value_and_grad
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import agrees

POINTS = np.random.default_rng(0).normal(size=(20, 2))
X = np.random.default_rng(3).normal(size=(6, 2))
TREE, BOX = cKDTree(POINTS), KDTree(POINTS % 1.0, boxsize=1.0)

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def test_distances_to_neighbours():
    def near(x, points):
        d, i = TREE.query(x, k=3)
        wrapped, _ = BOX.query(x % 1.0, p=1)
        within, _ = TREE.query(x, k=[1, 5], p=np.inf, distance_upper_bound=1.0)
        inner, j = KDTree(points).query(x[0], k=4)
        ball = sum(np.sum((x[1] - POINTS[n]) ** 4) for n in TREE.query_ball_point(x[1], 1.0))
        pairs = sum(np.sum((points[a] - points[b]) ** 2) for a, b in sorted(KDTree(points).query_pairs(0.3)))
        counts = TREE.query_ball_point(x, 0.5, return_length=True)
        return (np.sum(d * np.arange(3)) + np.sum((POINTS[i] * x[:, None]) ** 2) + np.sum(wrapped) + ball + pairs
                + np.sum(np.exp(-within)) + np.sum(inner**3) + np.sum(points[j]) + np.sum(counts) + TREE.n)
    agrees(near, X, POINTS)


def test_other_neighbours_are_seen():
    nearest = jit(lambda x: TREE.query(x)[1])
    balls = jit(lambda x: np.sum(x) * len(TREE.query_ball_point(x, 0.7)))
    for x in X:
        assert nearest(x) == TREE.query(x)[1]
        assert balls(x) == np.sum(x) * len(TREE.query_ball_point(x, 0.7))


def test_what_trees_refuse():
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.spatial\.cKDTree\.count_neighbors at .*test_trees"):
        jit(lambda a: a * TREE.count_neighbors(TREE, 0.5))(1.0)
    with pytest.raises(ValueError, match="must consist of vectors of length 2"):
        jit(lambda x: TREE.query(x)[0])(np.ones(3))


def test_c_functions_in_threads():
    """What SciPy has made for one thread's data is not taken for another's."""
    def energy(p):
        tree = cKDTree(p.reshape(6, 2))
        matrix = sparse.diags([p[:6] + 3.0, -np.ones(5), -np.ones(5)], [0, 1, -1], format="csc")
        return np.sum(tree.query(POINTS[:3])[0]) + eigsh(matrix, k=1, return_eigenvectors=False)[0]
    bound = value_and_grad(energy).bind()
    starts = np.random.default_rng(4).uniform(0.5, 1.5, (3, 12))
    expected = [bound(p) for p in starts]
    made = bound.cfunc(starts[0])
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(made.address)
    found = []

    def run(k):
        x, gradient, value = starts[k].copy(), np.zeros(12), np.zeros(1)
        for _ in range(40):
            status = call(12, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, made.data)
            found.append((status, value[0] == expected[k][0], np.array_equal(gradient, expected[k][1])))
    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
    finally:
        sys.setswitchinterval(before)
    assert found == [(0, True, True)] * 120
