"""Some programs of `control` for JAX, by `lax.scan` and `where`."""

from collections.abc import Callable
from typing import Any


def tank() -> Callable[..., Any]:
    """As `control.tank`."""
    import jax
    import jax.numpy as jnp

    def f(p: Any, rain: Any) -> Any:
        def step(s: Any, r: Any) -> tuple[Any, Any]:
            s = s + r - p[2] * s
            s = jnp.where(s < 0, 0.0, s)
            q = jnp.where(s > p[1], p[0] * (s - p[1]), 0.0)
            return s - q, (q - 0.3) ** 2

        return jnp.sum(jax.lax.scan(step, 1.0, rain)[1])

    return f


def threshold() -> Callable[..., Any]:
    """As `control.threshold`."""
    import jax
    import jax.numpy as jnp

    def f(p: Any, e: Any) -> Any:
        def step(x: Any, u: Any) -> tuple[Any, Any]:
            x = jnp.where(x > 0, p[1], p[2]) * x + u
            return x, x * x

        return jnp.sum(jax.lax.scan(step, p[0], e)[1])

    return f


def neuron() -> Callable[..., Any]:
    """As `control.neuron`."""
    import jax
    import jax.numpy as jnp

    def f(p: Any, current: Any) -> Any:
        def step(v: Any, i: Any) -> tuple[Any, Any]:
            v = v + 0.1 * (p[0] * i - v)
            spike = v > p[1]
            paid = jnp.where(spike, (v - p[1]) * p[2], 0.0)
            v = jnp.where(spike, 0.0, v)
            return v, paid + 0.01 * v * v

        return jnp.sum(jax.lax.scan(step, 0.0, current)[1])

    return f
