"""Programs that call SciPy, against SciPy itself and central differences of the plain code."""
from __future__ import annotations

import numpy as np

from jitad import value_and_grad


def differences(f, args, step=1e-6):
    """Central differences of a scalar function, by each argument."""
    found = []
    for i, a in enumerate(args):
        a = np.asarray(a, float)
        slope = np.zeros(a.shape)
        for j in np.ndindex(a.shape):
            d = np.zeros(a.shape)
            d[j] = step * max(1.0, abs(a[j]))
            ends = (f(*args[:i], a + s * d, *args[i + 1:]) for s in (1, -1))
            high, low = (np.asarray(e, float) for e in ends)
            slope[j] = (high - low) / (2 * d[j])
        found.append(slope)
    return found


def agrees(f, *args, rtol=1e-9, slope_rtol=1e-5, step=1e-6, atol=1e-11, run=lambda g, args: g(*args)):
    """Value and gradient of a scalar function of `args`, compiled or as `run` does, are those of the plain code."""
    value, gradients = run(value_and_grad(f, argnums=tuple(range(len(args)))), args)
    np.testing.assert_allclose(value, f(*args), rtol=rtol, atol=atol)
    for gradient, slope in zip(gradients, differences(f, args, step), strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=slope_rtol, atol=slope_rtol * max(1.0, np.max(np.abs(slope))))


def together(cases, *args, **how):
    """All cases agree: one function of the same arguments, so that there is one kernel to compile."""
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=np.shape(case(*args))) for case in cases]

    def total(*given):
        return sum(np.sum(w * case(*given)) for w, case in zip(weights, cases, strict=True))
    agrees(total, *args, **how)
