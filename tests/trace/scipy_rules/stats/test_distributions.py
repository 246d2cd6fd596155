"""Distributions in recorded code: however they were imported, frozen or not; SciPy itself is left alone."""
from __future__ import annotations

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.stats
import scipy.stats as st
from scipy import stats
from scipy.stats import bernoulli, multivariate_normal, norm

import jitad
from jitad import jit
from jitad.cache.keys.identity import unwrap
from jitad.errors import CaptureError, MutationError, UnsupportedOperationError
from jitad.trace.record import record
from tests.helpers.recorded import Recorded

x3 = np.array([0.5, -1.0, 2.0])
log_normal = st.norm.logpdf
prior = st.norm(1.0, scale=2.0)
given = st.norm(0.5, 2.0)
counts = st.poisson(3)
plane = st.multivariate_normal(np.array([1.0, 0.0, 2.0]), np.diag([1.0, 2.0, 3.0]))
family = {"wide": st.cauchy, "narrow": norm}
kinds = (st.laplace, st.logistic)
standard = functools.partial(st.norm.logpdf, loc=1.0)


class Model:
    noise = st.t(4.0)

    def __init__(self, scale):
        self.prior = st.gamma(2.0, scale=scale)
        self.family = st.expon

    def logp(self, x):
        return self.prior.logpdf(x * x) + self.family.logpdf(x * x, scale=0.5) + self.noise.logpdf(x)


class Slope(st.rv_continuous):
    def _pdf(self, x, a):
        return a * np.exp(-a * x)


model = Model(3.0)


def from_within(x):
    from scipy.stats import norm as inner
    return inner.logpdf(x)


def by_default(x, d=st.norm, frozen=given):
    return d.logpdf(x) + frozen.logpdf(x)


@pytest.mark.parametrize("f", [
    lambda x: scipy.stats.norm.logpdf(x), lambda x: st.norm.logpdf(x), lambda x: stats.norm.logpdf(x),
    lambda x: norm.logpdf(x), lambda x: log_normal(x), lambda x: standard(x), from_within, by_default,
    lambda x: norm.logpdf(x, 1.0, scale=x * x + 1.0), lambda x: norm.logpdf(x=x, loc=x, scale=2),
    lambda x: norm(x[0], scale=2.0).logpdf(x), lambda x: norm(loc=x).cdf(0.3), lambda x: norm.freeze(x).logsf(1.0),
    lambda x: prior.logpdf(x), lambda x: prior.dist.logpdf(x), lambda x: prior.sf(x) + prior.mean(),
    lambda x: counts.logpmf(np.arange(3)) * x, lambda x: multivariate_normal(x, 2.0).logpdf([0.0, 1.0, 2.0]),
    lambda x: plane.logpdf(x) + plane.entropy(), lambda x: plane.pdf(x) * plane.mean,
    lambda x: family["wide"].logpdf(x) + family["narrow"].logcdf(x), lambda x: sum(k.logpdf(x) for k in kinds),
    lambda x: bernoulli(0.3).logpmf(1) * x, lambda x: bernoulli.logpmf([1, 0, 1], np.abs(x) / 3),
    lambda x: model.logp(x), lambda x: list(map(norm.logpdf, x))[1], lambda x: x * norm.ppf(0.9) * prior.isf(0.2),
    lambda x: x * prior.args[0] * prior.kwds["scale"], lambda x: norm.std(x, x * x), lambda x: x * norm(2, 3).median(),
])
def test_however_it_is_reached(f):
    Recorded(f, x3)


def test_questions_about_types(monkeypatch):
    def f(x):
        assert isinstance(norm, st.rv_continuous) and not isinstance(norm, st.rv_discrete)
        assert type(norm) is type(st.norm) and type(prior) is type(norm(x)) and type(prior) is not type(norm)
        assert norm is st.norm and norm is scipy.stats.norm and norm is not st.cauchy and norm is family["narrow"]
        assert callable(norm) and norm.name == "norm" and norm.numargs == 0 and {norm: 1}[st.norm] == 1
        assert "norm_gen" in repr(norm) and hasattr(norm, "fit") and not hasattr(norm, "logpmf")
        return x

    Recorded(f, x3)


def test_parameters_of_captured_frozen_distributions_are_captures(monkeypatch):
    r = Recorded(lambda x: prior.logpdf(x) + model.logp(x) + plane.logpdf(x), x3)
    monkeypatch.setitem(globals(), "prior", st.norm(0.3, scale=0.7))
    monkeypatch.setattr(model, "prior", st.gamma(2.5, scale=0.1))
    monkeypatch.setitem(globals(), "plane", st.multivariate_normal(np.ones(3), np.eye(3)))
    r.same(x3)
    for other in (st.cauchy(0.3, scale=0.7), st.norm(0.3, 0.7), st.norm(0.3, scale=np.ones(3)), None):
        monkeypatch.setitem(globals(), "prior", other)
        r.changed(x3)


def test_another_distribution_is_seen(monkeypatch):
    r = Recorded(lambda x: norm.logpdf(x) + log_normal(x) + family["wide"].logpdf(x), x3)
    for name, other in (("norm", st.cauchy), ("log_normal", st.norm.logcdf), ("log_normal", st.laplace.logpdf),
                        ("family", {"wide": st.norm})):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, other)
            r.changed(x3)
    r.same(x3)
    r = Recorded(lambda x: x * norm.entropy(), x3)
    monkeypatch.setitem(globals(), "norm", st.vonmises)
    r.changed(x3)


def test_vonmises_on_the_line_is_another_distribution():
    x = np.array([-4.0, 1.0, 4.0])
    got = jit(lambda x: st.vonmises_line.logpdf(x, 2.0))(x)
    np.testing.assert_allclose(got, st.vonmises_line.logpdf(x, 2.0), rtol=1e-12)
    assert np.isinf(got[[0, 2]]).all()


@pytest.mark.parametrize(("f", "name"), [
    (lambda x: norm.fit(x)[0], "norm.fit"), (lambda x: norm.expect(loc=x[0]), "norm.expect"),
    (lambda x: norm.interval(0.9, x)[0], "norm.interval"), (lambda x: norm(x).interval(0.9)[0], "norm.interval"),
    (lambda x: st.landau.logpdf(x), "landau.logpdf"), (lambda x: st.binom.ppf(x, 5, 0.3), "binom.ppf"),
    (lambda x: st.betabinom.cdf(x, 5, 1.0, 1.0), "betabinom.cdf"), (lambda x: prior.moment(2) * x, "norm.moment"),
    (lambda x: multivariate_normal.cdf(x, np.zeros(3)), "multivariate_normal.cdf"),
    (lambda x: st.levy(x).args[0] * st.levy(x).a, r"attribute \.a of a frozen scipy.stats.levy"),
])
def test_what_has_no_rule_is_refused_by_name(f, name):
    with pytest.raises(UnsupportedOperationError, match=rf"{name}.*test_distributions\.py:\d+"):
        record(unwrap(f), (x3,))


@pytest.mark.parametrize("f", [
    lambda x: x + norm.rvs(), lambda x: x + prior.rvs(3), lambda x: x + norm(x).rvs(), lambda x: x + plane.rvs(),
    lambda x: x + st.norm.random_state.normal(), lambda x: x + multivariate_normal.rvs(),
    lambda x: x + st.levy.rvs(size=3)])
def test_drawing_is_impure(f):
    with pytest.raises(CaptureError, match=r"draws random numbers, at .*test_distributions\.py"):
        record(unwrap(f), (x3,))


def test_wrong_calls_are_type_errors():
    for f in (lambda x: norm.logpdf(x, 1, 2, 3), lambda x: st.gamma.logpdf(x), lambda x: norm(x, 1, 2),
              lambda x: norm.logpdf(x, sigma=2.0), lambda x: st.poisson.logpmf(x, 2.0, scale=2.0)):
        with pytest.raises(TypeError) as caught:
            record(unwrap(f), (x3,))
        assert not isinstance(caught.value, jitad.JitadError)


def test_what_cannot_be_followed_or_written():
    loaded = st.rv_discrete(values=([0, 1], [0.5, 0.5]))
    own = type(st.norm)(a=0.0, name="norm")
    mine, heir = own(), Slope(a=0.0, name="slope")
    steep = heir(2.0)
    for f in (lambda x: loaded.pmf(x), lambda x: own.logpdf(x), lambda x: mine.logpdf(x), lambda x: heir.pdf(x, 2.0),
              lambda x: steep.pdf(x)):
        with pytest.raises(CaptureError, match=r"a distribution of your own.*write its log density"):
            record(unwrap(f), (x3,))

    def write(x):
        norm.badvalue = 3.0
        return x

    with pytest.raises(MutationError, match="badvalue"):
        record(unwrap(write), (x3,))
    assert np.isnan(norm.badvalue)

    def same(x):
        return x if prior is alias else x + 1

    alias = prior
    np.testing.assert_array_equal(jit(same)(x3), x3)
    alias = st.norm(0.0, 1.0)
    np.testing.assert_array_equal(jit(same)(x3), x3 + 1)


def test_a_static_distribution():
    loaded = st.rv_discrete(values=([0, 1], [0.5, 0.5]))
    f = jitad.jit(static=("loaded", "prior", "plane"))(lambda x: prior.logpdf(x) * loaded.pmf(1) + plane.logpdf(x))
    np.testing.assert_allclose(f(x3), prior.logpdf(x3) / 2 + plane.logpdf(x3), rtol=1e-13)


def test_scipy_is_left_alone():
    method, plain = st.norm.logpdf, st.norm.logpdf(0.3)
    seen, done = [], threading.Event()

    def elsewhere():
        while not done.is_set():
            seen.append(st.norm(0.0, 1.0).logpdf(0.3) == plain and isinstance(norm.rvs(), float))

    def f(x):
        norm.logpdf(x)
        raise ValueError("the user's own")

    thread = threading.Thread(target=elsewhere)
    thread.start()
    while not seen:
        pass
    for _ in range(20):
        with pytest.raises(ValueError, match="own"):
            record(unwrap(f), (x3,))
    done.set()
    thread.join()
    assert all(seen) and st.norm.logpdf == method and st.norm.logpdf(0.3) == plain
    assert type(st.norm).__module__.startswith("scipy.") and type(norm(1.0)).__module__.startswith("scipy.")
    assert isinstance(norm.rvs(), float)


def test_plain_arguments_go_to_scipy():
    r = record(unwrap(lambda x: x * norm.cdf(0.3) * st.levy.cdf(2.0) * st.norm.interval(0.9)[1]), (x3,))
    assert {n.prim.name for n in r.builder.nodes} <= {"input", "const", "mul", "view"}


def test_scipy_stats_is_not_imported():
    code = ("import sys, jitad, numpy as np; jitad.jit(lambda x: np.exp(x).sum())(np.ones(2)); "
            "print('scipy.stats' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
