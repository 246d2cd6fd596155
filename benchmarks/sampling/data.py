"""The data of the posteriors, the same for all libraries. Imports NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np


def eight_schools(rng: Any) -> tuple[Any, ...]:
    return (np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
            np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]))


def logistic(rng: Any) -> tuple[Any, ...]:
    x = rng.normal(size=(1000, 5))
    return x, (rng.random(1000) < 1 / (1 + np.exp(-x @ np.array([1.0, -1.0, 0.5, 0.0, 2.0])))).astype(float)


def slopes(rng: Any) -> tuple[Any, ...]:
    group, x = rng.integers(0, 40, 1000), rng.normal(size=1000)
    return rng.normal(size=40)[group] + rng.normal(size=40)[group] * x + rng.normal(size=1000), x, group


def mixture(rng: Any) -> tuple[Any, ...]:
    return (np.concatenate([rng.normal(-3, 1, 300), rng.normal(0, 0.7, 200), rng.normal(4, 1, 500)]),)


def garch(rng: Any) -> tuple[Any, ...]:
    return (rng.normal(size=500),)


def poisson(rng: Any) -> tuple[Any, ...]:
    group, x = np.repeat(np.arange(50), 10), rng.normal(size=500)
    return rng.poisson(np.exp(0.5 + 0.7 * rng.normal(size=50)[group] + 0.3 * x)).astype(float), x, group


def process(rng: Any) -> tuple[Any, ...]:
    x = np.sort(rng.uniform(0, 10, 60))
    return np.sin(x) + 0.2 * rng.normal(size=60), (x[:, None] - x) ** 2


def items(rng: Any) -> tuple[Any, ...]:
    person, item = (index.ravel() for index in np.indices((100, 20)))
    easy = np.exp(0.3 * rng.normal(size=20))[item] * (rng.normal(size=100)[person] - rng.normal(size=20)[item])
    return (rng.random(2000) < 1 / (1 + np.exp(-easy))).astype(float), person, item


MAKERS = {"eight schools": eight_schools, "logistic": logistic, "correlated slopes": slopes, "mixture": mixture,
          "GARCH": garch, "Poisson": poisson, "Gaussian process": process, "items": items}


def data(name: str) -> tuple[Any, ...]:
    return MAKERS[name](np.random.default_rng(list(MAKERS).index(name)))
