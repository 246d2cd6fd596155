"""Neighbours by scipy.spatial's trees: their numbers are constants, their distances are not."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import KDTree, cKDTree

from jitad import jit
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
