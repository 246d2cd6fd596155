"""The main job: two real posteriors, written in plain NumPy, sampled with compiled gradients.

Run ``python -m jitad demo`` (or ``make demo``). It samples

* a logistic regression of malignancy on 30 standardised features of 569 breast tumours, and
* the eight-schools model, non-centred,

with nutpie's NUTS, prints what a gradient costs and what the sampler found, and saves a
picture of both posteriors to ``demo-posterior.png``. The exit status is 1 if a compiled
gradient disagrees with finite differences or if the chains have not mixed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jitad import cache, jit_grad

PICTURE = "demo-posterior.png"
MAX_RHAT = 1.02
MAX_GRADIENT_ERROR = 1e-6

SCHOOLS = ["Choate", "Deerfield", "Phillips Andover", "Phillips Exeter", "Hotchkiss", "Lawrenceville", "St. Paul's",
           "Mt. Hermon"]  # fmt: skip
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


# --- the models: nothing but NumPy ---------------------------------------------------------


@jit_grad
def logistic(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> Any:
    """Bernoulli likelihood, logit link; theta = [intercept, coefficients], X (n, d), y (n,) of 0 and 1."""
    intercept, beta = theta[0], theta[1:]
    eta = intercept + X @ beta
    prior = -0.5 * (intercept / 2.5) ** 2 - 0.5 * np.sum(beta**2)
    return prior + y @ eta - np.sum(np.logaddexp(0.0, eta))


@jit_grad
def eight_schools(theta: np.ndarray, y: np.ndarray, sigma: np.ndarray) -> Any:
    """Effects mu + tau * eta with mu ~ N(0, 5), tau ~ HalfCauchy(5), eta ~ N(0, 1); theta = [mu, log tau, eta]."""
    mu, log_tau, eta = theta[0], theta[1], theta[2:]
    tau = np.exp(log_tau)
    prior = -0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2) + log_tau - 0.5 * np.sum(eta**2)
    return prior - 0.5 * np.sum(((y - mu - tau * eta) / sigma) ** 2)


def school_variables(theta: np.ndarray) -> dict[str, Any]:
    """What the trace of the eight schools stores."""
    tau = np.exp(theta[1])
    return {"mu": theta[0], "tau": tau, "effect": theta[0] + tau * theta[2:]}


@dataclass
class Model:
    """A log density with its data, and how its trace is laid out."""

    title: str
    logp: Any
    parameters: Mapping[str, tuple[int, ...]]
    data: tuple[np.ndarray, ...]
    options: dict[str, Any] = field(default_factory=dict)
    nuts: dict[str, Any] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.parameters.values())


def models() -> list[Model]:
    """The two posteriors of the demonstration."""
    from sklearn.datasets import load_breast_cancer

    tumours = load_breast_cancer()
    X = (tumours.data - tumours.data.mean(0)) / tumours.data.std(0)
    malignant = (tumours.target == 0).astype(float)
    features = {"dims": {"beta": ["feature"]}, "coords": {"feature": [str(name) for name in tumours.feature_names]}}
    schools = {"transform": school_variables, "dims": {"effect": ["school"]}, "coords": {"school": SCHOOLS}}
    return [
        Model("Logistic regression", logistic, {"intercept": (), "beta": (X.shape[1],)}, (X, malignant), features),
        Model("Eight schools", eight_schools, {"mu": (), "log_tau": (), "eta": (8,)}, (EFFECTS, ERRORS), schools,
              {"target_accept": 0.95}),
    ]  # fmt: skip


# --- what a gradient costs -------------------------------------------------------------------


def interpreter_gradient(compiled: Any, *args: Any) -> Any:
    """The same gradient tape run node by node in NumPy."""
    return compiled.interpret(*args)


def finite_differences(f: Callable[..., Any], theta: np.ndarray, *data: Any) -> np.ndarray:
    """Fourth-order central differences of ``f`` in ``theta``, (d,) -> (d,)."""
    gradient = np.empty_like(theta)
    for i, x in enumerate(theta):
        h = 1e-3 * max(1.0, abs(x))
        near, far = (np.eye(1, theta.size, i)[0] * step for step in (h, 2 * h))
        first = f(theta + near, *data) - f(theta - near, *data)
        second = f(theta + far, *data) - f(theta - far, *data)
        gradient[i] = (8 * first - second) / (12 * h)
    return gradient


def seconds(call: Callable[[], Any], budget: float = 0.3) -> float:
    """Best time of one call, over repetitions that last about ``budget`` seconds."""
    call()
    begin = time.perf_counter()
    call()
    number = max(1, int(budget / 10 / max(time.perf_counter() - begin, 1e-7)))
    best = float("inf")
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(number):
            call()
        best = min(best, (time.perf_counter() - begin) / number)
    return best


@dataclass
class Cost:
    """Seconds for the first call and per gradient, and the worst relative error of the compiled one."""

    first: float
    compiled: float
    interpreter: float
    differences: float
    error: float


def measure(model: Model) -> Cost:
    """Compile, check against finite differences at random points, and time the three ways."""
    rng = np.random.default_rng(20)
    theta = 0.3 * rng.standard_normal(model.dim)
    begin = time.perf_counter()
    compiled = model.logp.compile(theta, *model.data)
    compiled(theta, *model.data)
    first = time.perf_counter() - begin
    plain = model.logp.__wrapped__
    errors = []
    for point in (theta, np.zeros(model.dim), rng.standard_normal(model.dim)):
        expected = finite_differences(plain, point, *model.data)
        errors.append(np.max(np.abs(compiled(point, *model.data) - expected)) / np.max(np.abs(expected)))
    return Cost(
        first=first,
        compiled=seconds(lambda: compiled(theta, *model.data)),
        interpreter=seconds(lambda: interpreter_gradient(compiled, theta, *model.data)),
        differences=seconds(lambda: finite_differences(plain, theta, *model.data)),
        error=float(np.max(errors)),  # NaN stays NaN, and fails
    )


# --- sampling --------------------------------------------------------------------------------


@dataclass
class Run:
    """A sampled posterior: ArviZ's trace and summary, wall time, gradients, the worst R-hat."""

    trace: Any
    summary: Any
    wall: float
    gradients: int
    divergences: int

    @property
    def rhat(self) -> float:
        return float(self.summary["r_hat"].to_numpy().max())  # NaN stays NaN, and fails


def sample(model: Model) -> Run:
    """Four chains of NUTS, the gradient called through its C pointer."""
    import arviz
    import nutpie

    from jitad.integrations.nutpie import from_logp

    target = from_logp(model.logp, model.parameters, model.data, **model.options)
    begin = time.perf_counter()
    trace = nutpie.sample(target, draws=1000, tune=1000, chains=4, seed=11, progress_bar=False, **model.nuts)
    wall = time.perf_counter() - begin
    gradients = int(trace.sample_stats.n_steps.sum()) + int(trace.warmup_sample_stats.n_steps.sum())
    summary = arviz.summary(trace, round_to="none", hdi_prob=0.9)
    return Run(trace, summary, wall, gradients, int(trace.sample_stats.diverging.sum()))


# --- output ----------------------------------------------------------------------------------


def pretty(time_: float) -> str:
    """``2.5e-6`` -> ``'2.50 us'``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if time_ >= scale:
            return f"{time_ / scale:.3g} {unit}"
    return f"{time_ * 1e9:.3g} ns"


def _table(title: str) -> Any:
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)


def costs_table(costs: Mapping[str, Cost]) -> Any:
    """One row a model: what a gradient costs, by three ways."""
    table = _table("Time per gradient")
    table.add_column("model")
    for column in ("compiled", "interpreter", "finite differences", "first call", "error of compiled"):
        table.add_column(column, justify="right")
    for title, cost in costs.items():
        table.add_row(
            title,
            pretty(cost.compiled),
            f"{pretty(cost.interpreter)} ({cost.interpreter / cost.compiled:,.0f}x)",
            f"{pretty(cost.differences)} ({cost.differences / cost.compiled:,.0f}x)",
            pretty(cost.first),
            f"{cost.error:.1e}",
        )
    return table


def runs_table(runs: Mapping[str, Run]) -> Any:
    """One row a model: how the sampling went."""
    table = _table("Sampling: 4 chains of 1,000 draws after 1,000 of warm-up")
    table.add_column("model")
    for column in ("wall time", "gradients", "gradients/s", "divergences", "worst R-hat", "least ESS"):
        table.add_column(column, justify="right")
    for title, run in runs.items():
        table.add_row(
            title,
            pretty(run.wall),
            f"{run.gradients:,}",
            f"{run.gradients / run.wall:,.0f}",
            str(run.divergences),
            f"{run.rhat:.3f}",
            f"{run.summary['ess_bulk'].min():,.0f}",
        )
    return table


def summary_table(title: str, run: Run, rows: int = 10) -> Any:
    """Posterior of the variables; of many, those furthest from zero in standard deviations."""
    frame = run.summary
    if len(frame) > rows:
        distance = (frame["mean"] / frame["sd"]).abs()
        title += f": the {rows} of {len(frame)} furthest from zero"
        frame = frame.loc[distance.sort_values(ascending=False).index[:rows]]
    table = _table(title)
    table.add_column("variable")
    for column in ("mean", "sd", "HDI 5 %", "HDI 95 %", "ESS bulk", "ESS tail", "R-hat"):
        table.add_column(column, justify="right")
    for name, row in frame.iterrows():
        low, high = (row[column] for column in frame.columns if column.startswith("hdi_"))
        table.add_row(
            str(name).replace("[", r"\["),
            *(f"{value:.2f}" for value in (row["mean"], row["sd"], low, high)),
            *(f"{value:,.0f}" for value in (row["ess_bulk"], row["ess_tail"])),
            f"{row['r_hat']:.3f}",
        )
    return table


def cache_table() -> Any:
    """The counters of the cache."""
    info = cache.info()
    names = ("hits", "misses", "compiles", "currsize", "maxsize")
    table = _table("Cache")
    for name in names:
        table.add_column(name, justify="right")
    table.add_row(*(str(getattr(info, name)) for name in names))
    return table


# --- the picture -----------------------------------------------------------------------------


def forest(axis: Any, draws: np.ndarray, labels: list[str], color: str) -> None:
    """Median, 50 % and 90 % intervals of each row of ``draws`` (k, n), in the order given."""
    low, first, median, third, high = np.quantile(draws, [0.05, 0.25, 0.5, 0.75, 0.95], axis=1)
    position = np.arange(len(labels))[::-1]
    axis.axvline(0, color="0.75", linewidth=1, zorder=0)
    axis.hlines(position, low, high, color=color, linewidth=1.2)
    axis.hlines(position, first, third, color=color, linewidth=4)
    axis.plot(median, position, "o", color="white", markeredgecolor=color, markersize=5)
    axis.set_yticks(position, labels)
    axis.set_ylim(-0.7, len(labels) - 0.3)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def picture(runs: Mapping[str, Run], path: Path) -> None:
    """Forest plots of the coefficients and of the school effects, and the joint of mu and tau."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    logistic_run, schools_run = runs.values()
    figure = Figure(figsize=(13.5, 8.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplot_mosaic([["beta", "effect"], ["beta", "scale"]], width_ratios=[1.2, 1])

    beta = logistic_run.trace.posterior["beta"].stack(draw_=("chain", "draw")).transpose("feature", ...)
    order = np.argsort(-np.median(beta.to_numpy(), axis=1))
    forest(axes["beta"], beta.to_numpy()[order], [str(beta["feature"].to_numpy()[i]) for i in order], "tab:blue")
    axes["beta"].set_title("Malignancy of a tumour: logistic regression, 569 x 30", loc="left", fontweight="bold")
    axes["beta"].set_xlabel("log odds per standard deviation of the feature")

    effect = schools_run.trace.posterior["effect"].stack(draw_=("chain", "draw")).transpose("school", ...).to_numpy()
    forest(axes["effect"], effect, SCHOOLS, "tab:orange")
    axes["effect"].plot(EFFECTS, np.arange(8)[::-1] + 0.28, "x", color="0.35", markersize=6, label="observed")
    axes["effect"].set_title("Eight schools: effects of coaching", loc="left", fontweight="bold")
    axes["effect"].set_xlabel("points in the test (crosses: as observed)")

    mu, tau = (schools_run.trace.posterior[name].to_numpy().ravel() for name in ("mu", "tau"))
    axes["scale"].plot(mu, tau, ".", color="tab:orange", alpha=0.25, markersize=4, markeredgewidth=0)
    axes["scale"].set_yscale("log")
    axes["scale"].set_ylim(float(np.quantile(tau, 0.01)))
    axes["scale"].set_title("Eight schools: their mean and spread", loc="left", fontweight="bold")
    axes["scale"].set_xlabel("mean effect mu (the lowest 1 % of tau lie below)")
    axes["scale"].set_ylabel("standard deviation tau")
    for side in ("top", "right"):
        axes["scale"].spines[side].set_visible(False)
    figure.suptitle("Posteriors by NUTS (dot: median, bars: 50 % and 90 % intervals)", x=0.01, ha="left")
    figure.savefig(path, dpi=130)


# --- the job ---------------------------------------------------------------------------------


def failures(costs: Mapping[str, Cost], runs: Mapping[str, Run]) -> list[str]:
    """What went wrong, in words; empty if all is well."""
    bad = [f"{title}: the compiled gradient is off finite differences by {cost.error:.1e} (at most "
           f"{MAX_GRADIENT_ERROR:.0e})" for title, cost in costs.items()
           if not cost.error <= MAX_GRADIENT_ERROR]  # fmt: skip
    bad += [f"{title}: the worst R-hat is {run.rhat:.3f} (at most {MAX_RHAT})" for title, run in runs.items()
            if not run.rhat <= MAX_RHAT]  # fmt: skip
    return bad


def main() -> int:
    """Measure, sample, show; the exit status."""
    begin = time.perf_counter()
    warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing", category=FutureWarning)
    try:
        import arviz  # noqa: F401
        import matplotlib  # noqa: F401
        import nutpie  # noqa: F401
        import sklearn  # noqa: F401
        from rich.console import Console
    except ModuleNotFoundError as error:
        print(f"The demonstration needs {error.name}: run `make demo`, or pip install 'jitad[demo]'.", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 110)
    costs, runs = {}, {}
    for model in models():
        console.print(f"[bold]{model.title}[/]: {model.dim} parameters, data {[a.shape for a in model.data]}")
        costs[model.title] = measure(model)
        runs[model.title] = sample(model)
    console.print()
    for title, run in runs.items():
        console.print(summary_table(title, run), "")
    console.print(costs_table(costs), "", runs_table(runs), "", cache_table(), "")
    path = Path(PICTURE).resolve()
    picture(runs, path)
    console.print(f"Picture: {path}", soft_wrap=True)
    console.print(f"All in {time.perf_counter() - begin:.1f} s.")
    bad = failures(costs, runs)
    for line in bad:
        console.print(f"[bold red]Failed[/] {line}")
    return 1 if bad else 0
