"""The series for JAX, which compiles a Python loop step by step."""

from collections.abc import Callable
from typing import Any

Density = Callable[..., Any]


def arma() -> Density:
    import jax
    import jax.numpy as np

    def density(theta: Any, y: Any) -> Any:
        mu, phi, ma, sigma = theta[0], np.tanh(theta[1]), np.tanh(theta[2]), np.exp(theta[3])

        def step(err: Any, pair: Any) -> Any:
            err = pair[1] - (mu + phi * (pair[0] - mu) + ma * err)
            return err, err

        _, errors = jax.lax.scan(step, y[0] - mu, (y[:-1], y[1:]))
        squares = ((y[0] - mu) / sigma) ** 2 + np.sum((errors / sigma) ** 2)
        return -0.5 * squares - y.shape[0] * np.log(sigma) - 0.5 * np.sum(theta**2)
    return density


def volatility() -> Density:
    import jax
    import jax.numpy as np

    def density(theta: Any, y: Any) -> Any:
        mu, phi, sigma, z = theta[0], np.tanh(theta[1]), np.exp(theta[2]), theta[3:]

        def step(h: Any, z: Any) -> Any:
            h = mu + phi * (h - mu) + sigma * z
            return h, h

        first = mu + sigma / np.sqrt(1 - phi**2) * z[0]
        h = np.append(first, jax.lax.scan(step, first, z[1:])[1])
        return np.sum(-0.5 * h - 0.5 * y**2 * np.exp(-h)) - 0.5 * np.sum(z**2) - 0.5 * np.sum(theta[:3] ** 2)
    return density


def hidden_counts() -> Density:
    import jax
    import jax.numpy as np

    def density(theta: Any, y: Any) -> Any:
        G = np.exp(theta[:16].reshape(4, 4))
        P = G / G.sum(axis=1, keepdims=True)
        log_rate = np.log(np.cumsum(np.exp(theta[16:])))
        like = np.exp(y[:, None] * log_rate - np.exp(log_rate))

        def step(alpha: Any, like: Any) -> Any:
            alpha = (alpha @ P) * like
            scale = np.sum(alpha)
            return alpha / scale, np.log(scale)

        first = like[0] / 4
        _, logs = jax.lax.scan(step, first / first.sum(), like[1:])
        return np.log(first.sum()) + np.sum(logs) - 0.5 * np.sum(theta**2)
    return density


def trend() -> Density:
    import jax
    import jax.numpy as np

    def density(theta: Any, y: Any) -> Any:
        H, Q1, Q2 = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])

        def step(state: Any, y: Any) -> Any:
            a, b, p11, p12, p22 = state
            F = p11 + H
            v = y - a
            k1, k2 = p11 / F, p12 / F
            a, b = a + k1 * v, b + k2 * v
            p11, p12, p22 = p11 - k1 * p11, p12 - k1 * p12, p22 - k2 * p12
            return (a + b, b, p11 + 2 * p12 + p22 + Q1, p12 + p22, p22 + Q2), np.log(F) + v * v / F

        _, terms = jax.lax.scan(step, (y[0], 0.0, 10.0, 0.0, 1.0), y)
        return -0.5 * np.sum(terms) - 0.5 * np.sum(theta**2) / 9
    return density


def renewal() -> Density:
    import jax
    import jax.numpy as np

    def density(theta: Any, interval: Any, y: Any) -> Any:
        seed, sd = np.exp(theta[0]), np.exp(theta[-1])
        R = np.exp(np.cumsum(sd * theta[1:-1]))

        def step(last: Any, r: Any) -> Any:
            new = r * np.dot(interval, last)
            return np.append(last[1:], new), new

        _, mean = jax.lax.scan(step, np.full(interval.shape, seed), R)
        return (np.sum(y * np.log(mean) - mean) - 0.5 * np.sum(theta[1:-1] ** 2) - 0.5 * (theta[0] - 2) ** 2
                - sd / 0.1)
    return density
