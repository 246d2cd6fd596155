"""The models by name: density, data, hand-written kernel."""

import numpy as np

from benchmarks.handwritten import densities as kernels
from benchmarks.handwritten import recurrences as recurrence_kernels
from benchmarks.models import densities, jax_recurrences, recurrences
from benchmarks.models.model import Array, Data, Model


def make_garch(rng: np.random.Generator) -> tuple[Array, Data]:
    """1,000 observations."""
    theta, *data = recurrences.make_garch(1000)
    return theta, tuple(data)


def make_hmm(rng: np.random.Generator) -> tuple[Array, Data]:
    """1,000 observations."""
    theta, *data = recurrences.make_hmm(1000)
    return theta, tuple(data)


MODELS = {
    model.name: model
    for model in (
        Model("logistic_1d", densities.logistic_1d, densities.make_logistic_1d, kernels.logistic_1d),
        Model("glm", densities.logistic, densities.make_glm, kernels.glm),
        Model("varying_intercepts", densities.varying_intercepts, densities.make_varying_intercepts,
              kernels.varying_intercepts),
        Model("eight_schools", densities.eight_schools, densities.make_eight_schools, kernels.eight_schools),
        Model("gp", densities.gp, densities.make_gp, kernels.gp),
        Model("poisson_glmm", densities.poisson_glmm, densities.make_poisson_glmm, kernels.poisson_glmm),
        Model("thin_logistic", densities.logistic, densities.make_thin_logistic, kernels.thin_logistic),
        Model("gauss_mixture", densities.gauss_mixture, densities.make_gauss_mixture, kernels.gauss_mixture),
        Model("linear_regression", densities.linear_regression, densities.make_linear_regression,
              kernels.linear_regression),
        Model("garch", recurrences.garch, make_garch, recurrence_kernels.garch, jax_recurrences.garch),
        Model("hmm", recurrences.hmm, make_hmm, recurrence_kernels.hmm, jax_recurrences.hmm),
    )
}
