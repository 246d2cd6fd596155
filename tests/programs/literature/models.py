"""More programs in the style of the literature that call SciPy's solvers, filters and sparse matrices."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy import integrate, interpolate, optimize, signal, stats
from scipy.sparse import linalg as sparse_linalg

from tests.programs.literature.solvers import EXACTLY, program

RNG = np.random.default_rng(7)
GROWN = np.array([0.14, 0.2, 0.27, 0.36, 0.45])


@program(-0.5, -0.9, -0.7, -2.3)
def a_chemostat(p):
    """Monod's growth on what flows in."""
    fastest, half, share, dilution = np.exp(p)

    def rates(z, t):
        growth = fastest * z[1] / (half + z[1])
        return [(growth - dilution) * z[0], dilution * (2.0 - z[1]) - growth * z[0] / share]
    cells = integrate.odeint(rates, [0.1, 1.5], np.linspace(0.0, 5.0, 6), rtol=1e-9, atol=1e-11)[1:, 0]
    return np.sum(stats.norm.logpdf(GROWN, cells, 0.05))


@program(1.1, 1.3, 0.8)
def predators_that_are_let_out(p):
    """Predators fall to a level, where half as many again are let out."""
    rates = lambda t, z, a, b: np.array([z[0] * (a - z[1]), z[1] * (b * z[0] - 1)])
    low = lambda t, z, a, b: z[1] - 0.4
    low.terminal, low.direction = True, -1
    first = integrate.solve_ivp(rates, (0, 20), [p[2], 1.2], args=(p[0], p[1]), events=low, **EXACTLY)
    at, left = first.t[-1], first.y[:, -1] * np.array([1.0, 1.5])
    later = integrate.solve_ivp(rates, (at, at + 2.0), left, args=(p[0], p[1]), **EXACTLY).y[:, -1]
    return -np.sum((np.log(later) - np.array([0.3, -0.4])) ** 2) - 0.5 * (at - 3.0) ** 2


EPOCHS = np.linspace(0.0, 30.0, 8)
SPEEDS = 4 * np.sin(EPOCHS / 2.1) + RNG.normal(size=8)


@program(4.0, -1.0, 0.5, 2.56, 1.2)
def an_eccentric_orbit(p):
    """Kepler's equation within a bracket, of epochs modulo the period."""
    e, period = 1 / (1 + np.exp(-p[1])), np.exp(p[3])
    mean = np.mod(2 * np.pi * (EPOCHS - p[4]) / period, 2 * np.pi)
    E = np.array([optimize.brentq(lambda E, m: E - e * np.sin(E) - m, 0.0, 2 * np.pi, (m,), 1e-14) for m in mean])
    true = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
    return -0.5 * np.sum((SPEEDS - p[0] * (np.cos(true + p[2]) + e * np.cos(p[2]))) ** 2)


@program(-1.0, -0.7, -0.1)
def options_by_a_characteristic_function(p):
    """Probabilities of a variance-gamma price, by Gil-Pelaez's integral."""
    sigma, nu, theta = np.exp(p[0]), np.exp(p[1]), p[2]
    phi = lambda u: (1 - 1j * u * theta * nu + 0.5 * sigma**2 * nu * u * u) ** (-1 / nu)
    below = lambda k: 0.5 - integrate.quad(lambda u: np.real(np.exp(-1j * u * k) * phi(u) / (1j * u)), 1e-8, 60.0,
                                           limit=400, epsabs=1e-9)[0] / np.pi
    return np.log(1 - below(-0.1)) + np.log(1 - below(0.05))


STRIKES = np.array([80.0, 95.0, 100.0, 105.0, 125.0])


@program(-0.1, 0.3, 0.2)
def implied_volatilities(p):
    """Black and Scholes's formula, turned round."""
    def call(k, v):
        d = (np.log(100.0 / k) + v * v / 4) / (v * np.sqrt(0.5))
        return 100.0 * stats.norm.cdf(d) - k * stats.norm.cdf(d - v * np.sqrt(0.5))
    away = np.log(STRIKES / 100)
    prices = call(STRIKES, 0.2 + p[0] * away + p[1] * away**2) + 0.01 * p[2]
    found = [optimize.brentq(lambda v, k, c: call(k, v) - c, 1e-4, 3.0, args) for args in zip(STRIKES, prices)]
    return -np.sum((np.array(found) - 0.21) ** 2) / 0.0002


ROD = np.linspace(0, 1, 42)[1:-1]
SECOND = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(40, 40)).tocsc() * 41.0**2


@program(-2.0, 0.1)
def heat_in_a_rod(p):
    """Implicit steps by one factorization, then the steady state of a rod whose conductivity varies."""
    step = sparse_linalg.factorized((sp.identity(40) - 0.02 * np.exp(p[0]) * SECOND).tocsc())
    u = np.sin(np.pi * ROD) + p[1] * ROD * (1 - ROD)
    for _ in range(10):
        u = step(u)
    c = np.exp(p[0] + p[1] * np.cos(np.pi * np.linspace(0, 1, 41)))
    steady = sp.diags([-c[1:-1], c[:-1] + c[1:], -c[1:-1]], [-1, 0, 1], format="csr") * 41.0**2
    return np.sum(stats.norm.logpdf(np.exp(-1.0) * np.sin(np.pi * ROD), u, 0.3)) + np.sum(
        sparse_linalg.spsolve(steady, np.ones(40)) ** 2)


TRACE, RATE = RNG.normal(size=400), 100.0


@program(-1.0, 0.2, 1.3)
def a_seismic_trace(p):
    """Detrended, filtered in a band that is sought, the envelope smoothed: signal against noise."""
    band = [10 / (1 + np.exp(-p[0])), 10 + 30 / (1 + np.exp(-p[1]))]
    sections = signal.butter(4, band, btype="bandpass", fs=RATE, output="sos")
    envelope = np.abs(signal.hilbert(signal.sosfiltfilt(sections, signal.detrend(TRACE * p[2]))))
    power = signal.convolve(envelope**2, np.hanning(21), mode="same")
    return np.log(np.max(power[100:200]) / np.mean(power[200:300]))


KNOTS = np.array([0, 1, 2.5, 4, 6.0, 8])
LIVED, DIED, RISK = RNG.exponential(3, size=20).clip(0.05, 7.9), RNG.uniform(size=20) < 0.7, RNG.normal(size=20)


@program(-1.2, -1.0, -1.1, -0.8, -0.9, -1.0, 0.3)
def survival_with_a_spline(p):
    """Proportional hazards on a baseline whose logarithm is a spline."""
    spline = interpolate.CubicSpline(KNOTS, p[:6], bc_type="natural")
    hazard = np.array([integrate.fixed_quad(lambda u: np.exp(spline(u)), 0, t, n=12)[0] for t in LIVED])
    return np.sum(DIED * (spline(LIVED) + p[6] * RISK)) - np.sum(hazard * np.exp(p[6] * RISK))


RAIN = np.maximum(RNG.normal(1, 2, size=3), 0)


@program(-0.5, -2.0, 0.1)
def a_catchment(p):
    """Two stores, one below the other, fed by rain that is known day by day."""
    k1, k2, share = np.exp(p[0]), np.exp(p[1]), 1 / (1 + np.exp(-p[2]))

    def rates(s, t, rain):
        return np.array([share * rain - k1 * s[0], (1 - share) * rain + 0.2 * k1 * s[0] - k2 * s[1]])
    stores, flows = np.array([1.0, 2.0]), []
    for rain in RAIN:
        stores = integrate.odeint(rates, stores, [0.0, 1.0], args=(rain,), rtol=1e-9, atol=1e-11)[-1]
        flows.append(0.8 * k1 * stores[0] + k2 * stores[1])
    return -np.sum(np.log(np.array(flows)) ** 2)


NOISE = signal.lfilter([1], [1, -0.7], RNG.normal(size=512))


@program(0.8, 0.0, 0.1)
def whittles_likelihood(p):
    """An autoregression, by Welch's spectrum."""
    f, found = signal.welch(NOISE * np.exp(p[2]), fs=1.0, nperseg=64, window="hann")
    model = 2 * np.exp(p[1]) / np.abs(1 - np.tanh(p[0]) * np.exp(-2j * np.pi * f)) ** 2
    return -np.sum(np.log(model[1:-1]) + found[1:-1] / model[1:-1])


@program(0.02, 1.8, 0.7)
def a_switch_of_the_cell_cycle(p):
    """The low and the high steady state of two proteins."""
    def rates(z):
        return [p[0] + z[0] ** 2 / (0.25 + z[0] ** 2) * p[1] - z[0] * (1 + z[1]),
                0.5 * z[0] / (p[2] + z[0]) - z[1] * 0.8]
    low, high = optimize.fsolve(rates, [0.1, 0.1], xtol=1e-13), optimize.root(rates, [2.0, 0.6], tol=1e-13).x
    return np.log(high[0]) - np.log(low[0]) + high[1] * low[1]


WAGES, CHANCES = np.linspace(10, 60, 51), stats.betabinom.pmf(np.arange(51), 50, 20, 10)


@program(3.2, 2.5)
def the_wage_to_take(p):
    """McCall's search: the value of each offer, as a fixed point."""
    pay, patience = np.exp(p[0]), 1 / (1 + np.exp(-p[1]))
    worth = optimize.fixed_point(lambda v: np.maximum(WAGES / (1 - patience), pay + patience * np.sum(v * CHANCES)),
                                 WAGES / (1 - patience), xtol=1e-12, maxiter=5000)
    return (1 - patience) * (pay + patience * np.sum(worth * CHANCES))


PIPES = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 4), (4, 5), (5, 2), (3, 5)])
INCIDENCE = sp.csr_matrix((np.repeat([1.0, -1.0], 9), (np.tile(np.arange(9), 2), PIPES.T.ravel())), shape=(9, 6))


@program(0.1, -0.2, 0.3, 0.2, -0.1, 0.4, -0.3, 0.1, 0.2, 1.2)
def a_network_of_pipes(p):
    """Pressures by conductances, one of them held, and what flows."""
    conductance = np.exp(p[:9])
    laplacian = (INCIDENCE.T @ sp.diags(conductance) @ INCIDENCE).tocsc()
    pressure = sparse_linalg.spsolve(laplacian[1:, 1:], np.array([0.0, 0.5, 0.0, -1.0, 0.2]) * p[9])
    return -0.5 * np.sum((conductance * (INCIDENCE @ np.concatenate([[0.0], pressure])) - 0.3) ** 2)


DEPTHS = np.linspace(0.1, 2, 8)


@program(0.1, 1.0, 0.5)
def light_through_an_atmosphere(p):
    """What comes out of layers of given depths, over all angles, and of infinite depth at one."""
    source = lambda t: p[1] + p[2] * t
    out = integrate.quad_vec(lambda mu: np.exp(-DEPTHS * np.exp(p[0]) / mu) * source(mu) * mu, 1e-3, 1.0)[0]
    return np.sum(np.log(out)) + integrate.quad(lambda t: source(t) * np.exp(-t / 0.6) / 0.6, 0, np.inf)[0]


COOLING = np.linspace(0, 3, 10)


@program(1.1, 0.05)
def a_calibration_inside_a_density(p):
    """A curve is fitted, by weights that are sought; what it costs, and its rate, have densities."""
    seen, weight = 2 * np.exp(-0.8 * COOLING) + 0.002 * np.cos(9 * COOLING), np.exp(-p[1] * COOLING)
    fall = lambda q: np.exp(-q[1] * COOLING)
    found = optimize.least_squares(
        lambda q: (q[0] * fall(q) + q[2] - seen * p[0]) * weight, [1.0, 1.0, 0.0], xtol=1e-15, ftol=1e-15, gtol=1e-15,
        jac=lambda q: np.stack([fall(q), -q[0] * COOLING * fall(q), np.ones(10)], 1) * weight[:, None])
    return -1e3 * found.cost + stats.norm.logpdf(found.x[1], 0.8, 0.1)


@program(1.0, 1.2, 0.9)
def a_portfolio(p):
    """Shares under a budget, none below 0, as far as the risk allows."""
    covariance = np.array([[1.0, 0.2, 0.1], [0.2, 2.0, 0.3], [0.1, 0.3, 1.5]]) * p[0]
    found = optimize.minimize(lambda w: w @ covariance @ w - w @ np.array([0.1, 0.2, 0.15]) * p[1], np.ones(3) / 3,
                              bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda w: np.sum(w) - p[2]},
                              options={"ftol": 1e-15})
    return stats.norm.logpdf(found.x[0] + 2 * found.x[1], 0.8, 0.2)
