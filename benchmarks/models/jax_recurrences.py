"""The recurrences of `recurrences` for JAX, by `lax.scan`: unrolled, their first call would take minutes."""

from collections.abc import Callable
from typing import Any


def garch() -> Callable[..., Any]:
    """As `recurrences.garch`."""
    import jax
    import jax.numpy as jnp

    def logp(theta: Any, y: Any) -> Any:
        mu, omega, alpha, beta = theta[0], jnp.exp(theta[1]), theta[2], theta[3]

        def step(h: Any, y_t: Any) -> tuple[Any, Any]:
            return omega + alpha * (y_t - mu) ** 2 + beta * h, h

        _, h = jax.lax.scan(step, jnp.exp(theta[4]), y)
        return -0.5 * jnp.sum(jnp.log(h) + (y - mu) ** 2 / h)

    return logp


def hmm() -> Callable[..., Any]:
    """As `recurrences.hmm`."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    def logp(theta: Any, y: Any) -> Any:
        logits = theta[:9].reshape(3, 3)
        transition = logits - logsumexp(logits, axis=1, keepdims=True)
        emission = -0.5 * ((y[:, None] - theta[9:12]) / jnp.exp(theta[12])) ** 2 - theta[12]

        def step(alpha: Any, e: Any) -> tuple[Any, None]:
            return logsumexp(alpha[:, None] + transition, axis=0) + e, None

        return logsumexp(jax.lax.scan(step, emission[0] - jnp.log(3.0), emission[1:])[0])

    return logp
