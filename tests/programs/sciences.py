"""Models and snippets of tutorials: NumPy's and SciPy's, autograd's, statsmodels', emcee's, lmfit's."""
from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial

import numpy as np
import scipy
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.stats as stats
from numpy import exp, pi, sqrt
from scipy.spatial.distance import cdist
from scipy.special import erf, expit, gammaln, logsumexp, xlogy

from tests.programs.table import P3, Table

rows = Table()
rng = np.random.default_rng(5)
t = np.linspace(0.0, 2.0, 12)
y = np.sin(3 * t) + 0.1 * rng.normal(size=12)
yerr = 0.1 + 0.05 * rng.random(12)
X = np.column_stack([np.ones(12), t, t ** 2])
labels = (rng.random(12) < 0.5).astype(int)
counts = rng.poisson(3.0, 12)
group = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2])
B3 = np.array([0.3, -0.2, 0.1])


# --- emcee: a line, a Gaussian process, and priors with minus infinity ---------------------------

def log_likelihood(theta, x, y, yerr):
    m, b, log_f = theta
    model = m * x + b
    sigma2 = yerr ** 2 + model ** 2 * np.exp(2 * log_f)
    return -0.5 * np.sum((y - model) ** 2 / sigma2 + np.log(sigma2))


def log_prior(theta):
    m, b, log_f = theta
    if -5.0 < m < 5.5 and 0.0 < b + 5 < 10.0 and -10.0 < log_f < 1.0:
        return 0.0
    return -np.inf


def log_probability(theta, x, y, yerr):
    lp = log_prior(theta)
    if not np.isfinite(lp):
        return -np.inf
    return lp + log_likelihood(theta, x, y, yerr)


rows("emcee line", log_probability, np.array([0.3, 0.2, -1.0]), t, y, yerr)
rows("emcee line, captured data", lambda theta: log_probability(theta, t, y, yerr), np.array([0.3, 0.2, -1.0]))
rows("emcee by args", partial(log_probability, x=t, y=y, yerr=yerr), np.array([0.3, 0.2, -1.0]))


def lnprob_gauss(x, mu, icov):
    diff = x - mu
    return -np.dot(diff, np.dot(icov, diff)) / 2.0


rows("emcee multivariate normal", lnprob_gauss, B3, np.ones(3), np.diag(P3))


@rows.of(np.array([0.2, 0.5, -0.3]))
def gaussian_process(p):
    amp, scale, jitter = np.exp(p)
    d = t[:, None] - t[None, :]
    K = amp * np.exp(-0.5 * d ** 2 / scale ** 2)
    K[np.diag_indices_from(K)] += yerr ** 2 + jitter
    L = np.linalg.cholesky(K)
    alpha = scipy.linalg.cho_solve((L, True), y)
    return -0.5 * y @ alpha - np.sum(np.log(np.diag(L))) - 0.5 * len(y) * np.log(2 * np.pi)


@rows.of(np.array([0.2, 0.5, -0.3]))
def gaussian_process_with_failures(p):
    K = np.exp(-0.5 * cdist(t[:, None], t[:, None]) ** 2 / np.exp(p[0])) + np.exp(p[1]) * np.eye(12)
    try:
        L = scipy.linalg.cholesky(K, lower=True)
    except np.linalg.LinAlgError:
        return -np.inf
    z = scipy.linalg.solve_triangular(L, y, lower=True)
    return -0.5 * np.sum(z ** 2) - np.log(np.diag(L)).sum() + stats.norm.logpdf(p).sum()


# --- lmfit and scipy.optimize --------------------------------------------------------------------

def gaussian(x, amp=1.0, cen=0.0, wid=1.0):
    """1-d gaussian: gaussian(x, amp, cen, wid)"""
    return (amp / (sqrt(2 * pi) * wid)) * exp(-(x - cen) ** 2 / (2 * wid ** 2))


rows("lmfit gaussian", lambda p: np.sum((y - gaussian(t, *p)) ** 2), np.array([1.0, 0.5, 0.7]))
rows("lmfit gaussian by keyword", lambda p: gaussian(t, amp=p[0], cen=p[1], wid=p[2]), np.array([1.0, 0.5, 0.7]))
rows("lmfit params in a dict", lambda p: np.sum(((y - gaussian(t, **p)) / yerr) ** 2), {"amp": 1.0, "cen": 0.5, "wid": 0.7})


def residual(pars, x, data=None, eps=None):
    """Model decaying sine and subtract data."""
    vals = OrderedDict(zip(("amp", "phase", "freq", "decay"), pars))
    model = vals["amp"] * np.sin(vals["phase"] + x * vals["freq"]) * np.exp(-x * x * vals["decay"])
    if data is None:
        return model
    if eps is None:
        return model - data
    return (model - data) / eps


rows("lmfit residual without data", residual, np.array([1.0, 0.1, 3.0, 0.05]), t)
rows("lmfit residual with data", lambda p: residual(p, t, y), np.array([1.0, 0.1, 3.0, 0.05]))
rows("lmfit residual with errors", lambda p: np.sum(residual(p, t, data=y, eps=yerr) ** 2), np.array([1.0, 0.1, 3.0, 0.05]))
rows("lorentzian as a complex pole", lambda p: np.imag(p[0] / (t - p[1] - 0.3j)), P3)
rows("lorentzian and peaks", lambda p: sum(a / (1 + ((t - c) / 0.3) ** 2) for a, c in zip(p, [0.2, 0.9, 1.5])), P3)
rows("step function by erf", lambda p: 0.5 * p[0] * (1 + erf((t - p[1]) / p[2])), P3)
rows("powerlaw, exponential", lambda p: p[0] * (t + 1) ** p[1] + np.exp(-t / p[2]), P3)
rows("rosenbrock", lambda x: sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0), np.array([1.3, 0.7, 0.8, 1.9]))
rows("scipy rosen", lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0, axis=0), np.array([1.3, 0.7, 0.8]))
rows("himmelblau", lambda v: (v[0] ** 2 + v[1] - 11) ** 2 + (v[0] + v[1] ** 2 - 7) ** 2, np.array([1.0, 2.0]))
rows("ackley", lambda v: -20 * np.exp(-0.2 * np.sqrt(0.5 * (v ** 2).sum())) - np.exp(0.5 * np.cos(2 * np.pi * v).sum()) + np.e + 20, np.array([0.5, 0.2]))
rows("bounds by a transform", lambda u: np.sum((y - (1 + 3 / (1 + np.exp(-u[0]))) * t) ** 2), B3)
rows("huber by where", lambda b: np.sum(np.where(np.abs(y - X @ b) < 0.3, 0.5 * (y - X @ b) ** 2, 0.3 * (np.abs(y - X @ b) - 0.15))), B3)
rows("soft l1", lambda b: np.sum(2 * ((1 + (y - X @ b) ** 2) ** 0.5 - 1)), B3)
rows("penalty with a norm", lambda b: np.linalg.norm(y - X @ b) ** 2 + 0.1 * np.linalg.norm(b, 1), B3)

# --- statsmodels: likelihoods of a class -----------------------------------------------------------


class GenericLikelihoodModel:
    def __init__(self, endog, exog=None):
        self.endog, self.exog = endog, exog
        self.nobs = len(endog)

    def nloglikeobs(self, params):
        raise NotImplementedError

    def loglike(self, params):
        return -self.nloglikeobs(params).sum(0)


class Probit(GenericLikelihoodModel):
    def loglike(self, params):
        q = 2 * self.endog - 1
        return stats.norm.logcdf(q * np.dot(self.exog, params)).sum()


class NegBin(GenericLikelihoodModel):
    def nloglikeobs(self, params):
        alpha, beta = np.exp(params[-1]), params[:-1]
        mu = np.exp(np.dot(self.exog[:, :2], beta))
        size = 1 / alpha
        prob = size / (size + mu)
        coeff = gammaln(size + self.endog) - gammaln(self.endog + 1) - gammaln(size)
        return -(coeff + size * np.log(prob) + self.endog * np.log(1 - prob))


probit, negbin = Probit(labels, X), NegBin(counts, X)
rows("statsmodels probit, captured", lambda b: probit.loglike(b), B3)
rows("statsmodels probit, a method", probit.loglike, B3)
rows("statsmodels probit, made inside", lambda b: Probit(labels, X).loglike(b), B3)
rows("statsmodels negative binomial", lambda b: negbin.loglike(b), B3)
rows("ols", lambda b: np.sum((y - X.dot(b)) ** 2) / (2 * len(y)), B3)
rows("logit", lambda b: np.sum(labels * (X @ b) - np.log1p(np.exp(X @ b))), B3)
rows("logit with expit and xlogy", lambda b: np.sum(xlogy(labels, expit(X @ b)) + xlogy(1 - labels, 1 - expit(X @ b))), B3)
rows("poisson", lambda b: np.sum(stats.poisson.logpmf(counts, np.exp(X @ b))), B3)
rows("poisson by hand", lambda b: np.sum(counts * (X @ b) - np.exp(X @ b) - gammaln(counts + 1)), B3)
rows("gamma glm", lambda b: np.sum(stats.gamma.logpdf(np.abs(y) + 0.1, a=2.0, scale=np.exp(X @ b) / 2.0)), B3)
rows("weighted least squares", lambda b: np.sum(1 / yerr ** 2 * (y - np.polyval(b, t)) ** 2), B3)
rows("hierarchical by index", lambda b: stats.norm.logpdf(y, b[group], 0.3).sum() + stats.norm.logpdf(b, 0, 1).sum(), B3)
rows("student t errors", lambda b: stats.t.logpdf(y, df=4, loc=X @ b, scale=0.2).sum(), B3)
rows("mixture by logsumexp", lambda p: logsumexp(np.stack([np.log(0.3) + stats.norm.logpdf(y, p[0], 0.3), np.log(0.7) + stats.norm.logpdf(y, p[1], p[2])]), axis=0).sum(), P3)
rows("ar(1)", lambda p: stats.norm.logpdf(y[1:], p[0] + p[1] * y[:-1], p[2]).sum(), P3)
rows("softmax regression", lambda W: np.mean(logsumexp(X @ W, axis=1) - (X @ W)[np.arange(12), group]), rng.normal(size=(3, 3)))
rows("beta binomial", lambda p: stats.betabinom.logpmf(counts, 20, p[0], p[1]).sum(), P3)
rows("dirichlet", lambda p: stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), p), P3)
rows("multivariate normal frozen", lambda m: stats.multivariate_normal(mean=m, cov=np.diag(P3)).logpdf(X).sum(), B3)


@rows.of(np.array([0.05, 0.1, 0.8]))
def garch(p):
    omega, alpha, beta = p
    s2 = np.empty_like(y)
    s2[0] = np.var(y)
    for i in range(1, len(y)):
        s2[i] = omega + alpha * y[i - 1] ** 2 + beta * s2[i - 1]
    return -0.5 * np.sum(np.log(2 * np.pi * s2) + y ** 2 / s2)


@rows.of(np.array([0.5, 0.3, 0.2]))
def local_level_by_lists(p):
    a, P, ll, filtered = 0.0, 1.0, 0.0, []
    for z in y:
        F = P + p[0]
        v = z - a
        ll -= 0.5 * (math.log(2 * math.pi * F) + v * v / F)
        K = P / F
        a, P = a + K * v, P * (1 - K) + p[1]
        filtered.append(a)
    return ll + p[2] * np.mean(filtered)


@rows.of(np.array([0.2, 0.4, 0.1]))
def hidden_markov(p):
    trans = np.array([[1 - expit(p[0]), expit(p[0])], [expit(p[1]), 1 - expit(p[1])]])
    log_alpha = np.log([0.5, 0.5]) + np.array([stats.norm.logpdf(y[0], m, 1.0) for m in (p[2], 1.0)])
    for obs in y[1:]:
        log_alpha = logsumexp(log_alpha[:, None] + np.log(trans), axis=0) + stats.norm.logpdf(obs, [p[2], 1.0], 1.0)
    return logsumexp(log_alpha)


# --- autograd: networks, closures, containers ------------------------------------------------------

def init_random_params(scale, layer_sizes, rs=np.random.RandomState(0)):
    return [(scale * rs.randn(m, n), scale * rs.randn(n)) for m, n in zip(layer_sizes[:-1], layer_sizes[1:])]


def neural_net_predict(params, inputs):
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs - logsumexp(outputs, axis=1, keepdims=True)


def l2_norm(params):
    return sum(np.sum(W * W) + np.sum(b * b) for W, b in params)


def log_posterior(params, inputs, targets, L2_reg):
    log_prior = -L2_reg * l2_norm(params)
    log_lik = np.sum(neural_net_predict(params, inputs) * targets)
    return log_prior + log_lik


rows("autograd neural net", log_posterior, init_random_params(0.3, [3, 4, 2]), X, np.eye(2)[labels], 0.1)
rows("autograd tanh", lambda x: (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x)), B3)


def taylor_sine(x):
    ans = currterm = x
    i = 0
    while np.abs(currterm) > 0.001:
        currterm = -currterm * x ** 2 / ((2 * i + 3) * (2 * i + 2))
        ans = ans + currterm
        i += 1
    return ans


rows("autograd taylor sine", taylor_sine, 0.9)


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2.0) + 1)


def logistic_predictions(weights, inputs):
    return sigmoid(np.dot(inputs, weights))


def training_loss(weights, inputs=X, targets=labels):
    preds = logistic_predictions(weights, inputs)
    label_probabilities = preds * targets + (1 - preds) * (1 - targets)
    return -np.sum(np.log(label_probabilities))


rows("autograd logistic regression, defaults", training_loss, B3)


def rnn_predict(params, inputs):
    h = np.repeat(params["init hidden"], inputs.shape[1], axis=0)
    output = []
    for x in inputs:
        h = np.tanh(np.dot(x, params["change"]) + np.dot(h, params["recur"]))
        output.append(np.dot(h, params["predict"]))
    return output


rows("autograd rnn", lambda p: np.sum(np.stack(rnn_predict(p, X.reshape(4, 3, 3)[:, :2]))), {
    "init hidden": rng.normal(size=(1, 2)), "change": rng.normal(size=(3, 2)), "recur": rng.normal(size=(2, 2)),
    "predict": rng.normal(size=(2, 1))})


def project(vx, vy):
    """Fluid simulation: the velocity field without divergence."""
    p = np.zeros(vx.shape)
    h = 1.0 / vx.shape[0]
    div = -0.5 * h * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
    for _k in range(3):
        p = (div + np.roll(p, 1, axis=0) + np.roll(p, -1, axis=0) + np.roll(p, 1, axis=1) + np.roll(p, -1, axis=1)) / 4.0
    vx -= 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)) / h
    vy -= 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)) / h
    return vx, vy


rows("autograd fluid", lambda v: sum(np.sum(a ** 2) for a in project(v[0] * 1.0, v[1] * 1.0)), rng.normal(size=(2, 4, 4)))


def black_box_variational(params):
    mean, log_std = params[:3], params[3:]
    samples = rng_draws * np.exp(log_std) + mean
    return np.mean(np.array([lnprob_gauss(s, np.zeros(3), np.eye(3)) for s in samples])) + 0.5 * 3 * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)


rng_draws = rng.normal(size=(4, 3))
rows("autograd variational inference", black_box_variational, rng.normal(size=6))
rows("autograd convolution by strides", lambda w: np.sum(np.stack([y[i:i + 10] for i in range(3)], -1) @ w), B3)
rows("autograd mixture of gaussians", lambda p: np.sum(logsumexp(np.vstack([stats.norm.logpdf(y, m, np.exp(s)) for m, s in zip(p["m"], p["s"])]), axis=0)), {"m": [0.1, 0.5], "s": [0.0, -1.0]})
