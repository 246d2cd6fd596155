"""What samples are summed up by: `statistics`, exact sums, histograms, kernel densities."""
from __future__ import annotations

import math
import statistics
from statistics import NormalDist

import numpy as np
from scipy import linalg, stats

from tests.programs.table import P3, Table

rows = Table()
rng = np.random.default_rng(2)
a, b = rng.normal(size=(2, 12))
w = rng.uniform(0.5, 1.5, 12)
points = np.stack([a, b])
known = NormalDist(1.0, 2.0)
levels = [1.0, 2.0, 2.0, 5.0]
kde, plane = stats.gaussian_kde(a), stats.gaussian_kde(points, bw_method=0.6, weights=w)
box = [[-2.0, 2.0], [-2.5, 2.5]]

rows("fsum of an array", lambda x: math.fsum(x * x), P3)
rows("fsum of a list", lambda x: math.fsum([x[0], 2.0 * x[1], 3.0]), P3)
rows("fsum of a generator", lambda x: math.fsum(v * v for v in x), P3)
rows("fsum of what cancels", lambda x: math.fsum([1e16 * x[0], x[1], -1e16 * x[0], 1e-3]), P3, smooth=False)
rows("fsum of an infinity", lambda x: math.fsum([math.inf, x[0]]), P3, smooth=False)
rows("fsum of nothing", lambda x: math.fsum(v for v in x if v > 9) + x[0], P3)
rows("covariance", lambda x: statistics.covariance(x, [1.0, 2.0, 4.0]), P3)
rows("covariance of data", lambda x: statistics.covariance(levels, [1, 2, 3, 5]) * x[0], P3)
rows("correlation", lambda x: statistics.correlation(list(x), [1.0, 2.0, 4.0]), P3)
rows("slope", lambda x: statistics.linear_regression([1.0, 2.0, 4.0], x).slope, P3)
rows("slope and intercept", lambda x: sum(statistics.linear_regression(x, [1.0, 2.0, 4.0])), P3)
rows("proportional slope", lambda x: statistics.linear_regression(x, x ** 2, proportional=True)[0], P3)
rows("mode", lambda x: statistics.mode([x[0], x[1], x[1], x[2]]), P3)
rows("mode of data", lambda x: statistics.mode(levels) * x, P3)
rows("multimode", lambda x: statistics.multimode([x[0], x[1], x[0], x[1], x[2]]), P3)
rows("median of a class", lambda x: statistics.median_grouped([x[0], x[1], x[1], x[2]], 0.5), P3)
rows("median of a class of data", lambda x: statistics.median_grouped(levels, interval=x[0]), P3)
rows("mean of a generator", lambda x: statistics.mean(v * v for v in x), P3)
rows("stdev of a map", lambda x: statistics.stdev(map(math.log, x)), P3)
rows("mean of a dict's values", lambda x: statistics.fmean({"a": x[0], "b": x[2]}.values()), P3)
rows("normal density", lambda x: NormalDist(x[0], x[1]).pdf(x[2]), P3)
rows("normal likelihood", lambda x: sum(math.log(NormalDist(x[0], x[1]).pdf(v)) for v in levels), P3)
rows("normal quantile", lambda x: statistics.NormalDist(x[0], x[1]).inv_cdf(0.3), P3)
rows("normal quantiles", lambda x: statistics.NormalDist(x[0], x[1]).quantiles(n=5), P3)
rows("sum of normals", lambda x: (NormalDist(x[0], x[1]) * 2 + NormalDist(0.5, x[2])).stdev, P3)
rows("overlap of normals", lambda x: NormalDist(x[0], x[1]).overlap(known), P3)
rows("normal from samples", lambda x: NormalDist.from_samples(x).variance, P3)
rows("captured normal", lambda x: known.cdf(x[0]) + known.zscore(x[1]) * known.mean + known.stdev, P3)
rows("shifted captured normal", lambda x: (known * x[0] + x[1]).cdf(x[2]), P3)
rows("weighted histogram", lambda x: np.histogram(a, 5, weights=w * x[0])[0] ** 2, P3)
rows("weighted histogram2d", lambda x: np.histogram2d(a, b, bins=4, weights=w * x[0])[0] ** 2, P3)
rows("histogram2d in a range", lambda x: np.histogram2d(a, b, bins=[3, 4], range=box, weights=w * x[1])[0], P3)
rows("histogram2d as a density", lambda x: np.histogram2d(a, b, 3, box, True, w * x[0] + 1.0)[0], P3)
rows("histogram2d by edges", lambda x: np.histogram2d(a, b, [np.arange(-3.0, 4.0), np.arange(-2.0, 3.0)], weights=w * x[0])[0], P3)
rows("histogram2d by common edges", lambda x: np.histogram2d(a * x[0], b, np.arange(-3.0, 4.0), weights=w * x[0])[0], P3)
rows("histogramdd", lambda x: np.histogramdd(points.T, bins=(3, 2), weights=w * x[2])[0], P3)
rows("histogramdd of coordinates", lambda x: np.histogramdd([a * x[0], b, w], 3, weights=w * x[1])[0], P3)
rows("edges of histogram2d", lambda x: np.histogram2d(a * x[0], b, 3)[1:], P3)
rows("kernel density", lambda x: np.log(kde(x)), P3)
rows("log of a kernel density", lambda x: kde.logpdf(x).sum() + kde.pdf(x[0]), P3)
rows("kernel density in the plane", lambda x: plane.logpdf(np.array([x, x ** 2])), P3)
rows("kernel density at one point", lambda x: plane.evaluate(x[:2]), P3)
rows("kernel density of traced data", lambda x: stats.gaussian_kde(a * x[0])(x), P3)
rows("bandwidths", lambda x: [stats.gaussian_kde(a * x[0], how).logpdf(x[1:]) for how in ("silverman", 0.3, x[2])], P3)
rows("kernel density with weights", lambda x: stats.gaussian_kde(points, weights=w * x[0] + 1.0).pdf(points[:, :2]), P3)
rows("kernel density made inside", lambda x: stats.gaussian_kde(a).logpdf(x), P3)
rows("integral of a kernel density", lambda x: kde.integrate_box_1d(x[0], x[2]), P3)
rows("attributes of a kernel density", lambda x: x * plane.factor + plane.n + plane.d + plane.neff + plane.inv_cov[0, 1], P3)
rows("argument of numbers", lambda x: np.angle(x - 1.0) * x, P3)
rows.refused("fsum of opposite infinities", lambda x: math.fsum([math.inf * x[0], -math.inf]), P3, raises=ValueError, says=("inf in fsum",))
rows.refused("samples of a normal", lambda x: NormalDist(x[0], 1.0).samples(3)[0], P3, says=("draws random numbers", "samples.py"))
rows.refused("a kernel density drawn", lambda x: kde.resample(3)[0, 0] * x[0], P3, says=("gaussian_kde.resample", "np.linalg.cholesky(kde.covariance) @ z", "samples.py"))
rows("what the refusal says instead of drawing", lambda x: (lambda k: k.dataset[:, [0, 2]] + np.linalg.cholesky(k.covariance) @ np.array([[0.3, -1.0]]))(
    stats.gaussian_kde(a * x[0])), P3)
rows("kernel densities integrated", lambda x: (lambda k: [k.integrate_gaussian(x[1], x[2]), k.integrate_box_1d(0.0, x[1]), k.integrate_kde(kde)])(
    stats.gaussian_kde(a * x[0])), P3)
rows("kernel densities of two dimensions", lambda x: (lambda k: [k.marginal(1)(x), k.marginal([-1, 0]).logpdf(points[:, :2]), k.integrate_gaussian(x[:2], np.eye(2)),
                                                                 k.integrate_kde(plane)])(stats.gaussian_kde(points * x[0])), P3)
rows("a function for the bandwidth", lambda x: stats.gaussian_kde(a * x[0], lambda k: k.scotts_factor() * x[1] + k.n ** -0.5)(x), P3)

tall = np.array([[0.5, 1.0], [2.0, -0.3], [-1.0, 0.7], [0.2, 3.0]])
rows("a box of two dimensions", lambda x: stats.gaussian_kde(points * x[0]).integrate_box([-1.0, -0.5], [0.5, x[1]]), P3)
rows("lu of a tall matrix", lambda x: [*linalg.lu(tall * x[0] + x[1]), linalg.lu_factor(tall - x[2])], P3)
rows("lu of a wide matrix", lambda x: [*linalg.lu(tall.T * x[0] + x[1]), linalg.lu_factor(tall.T - x[2])], P3)
rows("lu of many, permuted", lambda x: linalg.lu(np.stack([tall * x[0], tall - x[1]]), permute_l=True), P3)
