"""Programs in the style of the literature that call SciPy's solvers, each a function of one vector of parameters."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, special, stats
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial import cKDTree

PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {}
RNG = np.random.default_rng(17)
EXACTLY = {"rtol": 1e-9, "atol": 1e-11}


def program(*at: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = (function, np.array(at))
        return function
    return enter


TIMES = np.array([0.5, 1.0, 2.0, 4.0])
SEEN = np.array([3.1, 4.2, 3.9, 2.2])


@program(1.2, 0.3, 2.0)
def one_compartment_by_mouth(p):
    """A dose absorbed and eliminated, with a second dose on the way."""
    ka, ke, volume = p
    rates = lambda t, y: [-ka * y[0], ka * y[0] - ke * y[1]]
    first = integrate.solve_ivp(rates, (0.0, 1.5), [10.0, 0.0], t_eval=[0.5, 1.0, 1.5], **EXACTLY).y
    later = integrate.solve_ivp(rates, (1.5, 4.0), [first[0, -1] + 5.0, first[1, -1]], t_eval=[2.0, 4.0], **EXACTLY).y
    levels = np.concatenate([first[1, :2], later[1]]) / volume
    return np.sum(stats.norm.logpdf(np.log(SEEN), np.log(levels), 0.2))


@program(0.6, 0.25, 0.01)
def an_epidemic_with_counts(p):
    """SIR with Poisson counts of the infected."""
    def sir(y, t, beta, gamma):
        infected = beta * y[0] * y[1]
        return [-infected, infected - gamma * y[1], gamma * y[1]]
    y = integrate.odeint(sir, [1.0 - p[2], p[2], 0.0], np.linspace(0.0, 20.0, 6), args=(p[0], p[1]), rtol=1e-10, atol=1e-12)
    return np.sum(stats.poisson.logpmf(np.array([9, 40, 130, 190, 170]), 1000 * y[1:, 1]))


@program(0.3, 1.1, 0.4)
def a_radial_velocity(p):
    """Kepler's equation at each epoch."""
    e, amplitude, phase = p
    mean = np.linspace(0.1, 6.0, 7) + phase
    anomaly = optimize.newton(lambda E: E - e * np.sin(E) - mean, mean, fprime=lambda E: 1 - e * np.cos(E), tol=1e-12)
    true = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(anomaly / 2), np.sqrt(1 - e) * np.cos(anomaly / 2))
    return np.sum((amplitude * (np.cos(true + phase) + e * np.cos(phase)) - np.cos(mean)) ** 2)


@program(0.1, 0.4, 0.3)
def a_transit_of_a_darkened_star(p):
    """The light that a small planet hides, by the mean brightness below it."""
    radius, u, impact = p
    def hidden(x):
        distance = np.sqrt(x * x + impact * impact)
        inner = lambda s: 1 - u * (1 - np.sqrt(1 - np.clip((distance + radius * s) ** 2, 0.0, 0.99)))
        return radius**2 * integrate.fixed_quad(inner, -1.0, 1.0, n=5)[0] / 2 / (1 - u / 3)
    return sum((1.0 - hidden(x) - 0.99) ** 2 for x in (-0.5, 0.0, 0.5)) * 1e4


@program(1.0, 0.7, 0.2)
def a_dimerised_chain(p):
    """Tight binding: the energy of the filled half of the levels."""
    t1, t2, defect = p
    hopping = np.where(np.arange(11) % 2 == 0, t1, t2)
    site = defect * (np.arange(12) == 5)
    chain = sp.diags([site, -hopping, -hopping], [0, 1, -1]).tocsr()
    return np.sum(sparse_linalg.eigsh(chain, k=3, which="SA", return_eigenvectors=False)) + linalg.eigvalsh_tridiagonal(
        site, -hopping)[0]


@program(1.0, 2.0, 0.5)
def a_bar_of_two_materials(p):
    """Finite elements: assembly by element, displacement at the end, and the energy."""
    n = 8
    stiffness = np.where(np.arange(n) < n // 2, p[0], p[1]) * n
    i = np.arange(n)
    data = np.concatenate([stiffness, stiffness, -stiffness, -stiffness])
    rows, columns = np.concatenate([i, i + 1, i, i + 1]), np.concatenate([i, i + 1, i + 1, i])
    whole = sp.coo_matrix((data, (rows, columns)), shape=(n + 1, n + 1)).tocsc() + sp.identity(n + 1) * 1e-3
    load = np.zeros(n + 1)
    load[-1] = p[2]
    u = sparse_linalg.spsolve(whole.tocsc(), load)
    return u[-1] + 0.5 * u @ load + sparse_linalg.cg(whole, load, rtol=1e-13)[0][3]


@program(1.38, 2.1, 0.11)
def a_thin_film(p):
    """The reflectance of a coating, by characteristic matrices, at several wavelengths."""
    n1, n2, thickness = p
    total = 0.0
    for wavelength in (0.45, 0.55, 0.65):
        matrix = np.eye(2, dtype=complex)
        for n, d in ((n1, thickness), (n2, 0.5 * thickness)):
            phase = 2 * np.pi * n * d / wavelength
            matrix = matrix @ np.array([[np.cos(phase), 1j * np.sin(phase) / n], [1j * n * np.sin(phase), np.cos(phase)]])
        b, c = matrix @ np.array([1.0, 1.52])
        total = total + np.abs((b - c) / (b + c)) ** 2
    return total


@program(0.04, 1.0, 3.0)
def stiff_kinetics(p):
    """Three reactions, by Radau's method."""
    def rates(t, y):
        slow, back, fast = p[0] * y[0], 1e2 * p[1] * y[1] * y[2], 1e4 * p[2] * y[1] ** 2
        return [-slow + back, slow - back - fast, fast]
    y = integrate.solve_ivp(rates, (0.0, 10.0), [1.0, 0.0, 0.0], method="Radau", t_eval=[1.0, 10.0], rtol=1e-5,
                            atol=1e-9).y
    return np.sum(y[0]) + 100 * y[1, 0] + y[2, 1]


@program(0.5, 0.8)
def tracking_by_a_filter(p):
    """A Kalman filter, begun with the stationary covariance of a damped motion."""
    q, r = np.exp(p)
    a = np.array([[0.9, 0.5], [0.0, 0.8]])
    noise = q * np.array([[0.05, 0.1], [0.1, 0.25]]) + 1e-3 * np.eye(2)
    spread = linalg.solve_discrete_lyapunov(a, noise)
    state, total = np.zeros(2), 0.0
    for y in (0.4, 0.9, 1.7, 2.1):
        state, spread = a @ state, a @ spread @ a.T + noise
        total = total + stats.norm.logpdf(y, state[0], np.sqrt(spread[0, 0] + r))
        gain = spread[:, 0] / (spread[0, 0] + r)
        state, spread = state + gain * (y - state[0]), spread - np.outer(gain, spread[0])
    return total


@program(12.0, 0.3, 0.7)
def a_seismic_trace(p):
    """Reflections convolved with Ricker's wavelet, filtered forwards and backwards."""
    frequency, first, second = p
    t = np.arange(32) * 0.004 - 0.064
    arg = (np.pi * frequency * t) ** 2
    series = first * (np.arange(40) == 8) + second * (np.arange(40) == 21)
    trace = signal.fftconvolve(series, (1 - 2 * arg) * np.exp(-arg), mode="same")
    b, a = signal.butter(2, 0.4)
    return np.sum(signal.filtfilt(b, a, trace)[::3] ** 2) + np.sum(np.abs(signal.hilbert(trace))[10:20])


@program(1.5, 0.4)
def a_phase_diagram(p):
    """The compositions of two phases in balance, of a regular solution."""
    chi, tilt = p
    slope = lambda x: np.log(x / (1 - x)) + (2.0 + chi) * (1 - 2 * x)
    low = optimize.brentq(slope, 1e-6, 0.3)
    mixed = optimize.root(lambda z: [z[0] + z[1] ** 2 - chi, z[0] * z[1] - tilt], [1.0, 0.4], tol=1e-12).x
    return low + mixed[0] * mixed[1] + mixed[1]


@program(0.7, 1.3, 0.2)
def a_profile_likelihood(p):
    """The rest of the parameters minimized out."""
    x = np.linspace(0.0, 2.0, 9)
    y = p[0] * np.exp(-p[1] * x) + p[2] * x
    inner = lambda q, scale: np.sum((y - q[0] * np.exp(-scale * x) - q[1]) ** 2) + 0.01 * np.sum(q**4)
    found = optimize.minimize(inner, [1.0, 0.0], args=(p[1] + 0.3,), method="BFGS", options={"gtol": 1e-9})
    return found.fun + found.x[0]


@program(1.0, 0.2, 0.6)
def a_spectrum_of_mixtures(p):
    """Shares of known spectra, which are not negative."""
    lines = np.exp(-0.5 * (np.arange(12)[:, None] - np.array([2.0, 5.0, 6.0, 10.0])) ** 2)
    shares, misfit = optimize.nnls(lines, lines @ np.array([p[0], p[1], -p[2], 1.0]) + 0.05 * np.sin(np.arange(12)))
    return np.sum(shares * np.array([1.0, 2.0, 3.0, 4.0])) + misfit


@program(1.7, 0.8)
def a_lens_of_a_singular_sphere(p):
    """A deflection by an integral along the line of sight."""
    density = lambda z: (1.0 + z * z + p[1] ** 2) ** (-p[0])
    return integrate.quad(density, -np.inf, np.inf)[0] + integrate.quad(lambda r: r * density(r), 0.0, p[1])[0]


@program(0.5, 1.0, 1.4, 1.1)
def a_yield_curve(p):
    """Rates between knots by a cubic spline; a bond's price and its duration."""
    curve = interpolate.CubicSpline([0.5, 2.0, 5.0, 10.0], p)
    dates = np.arange(1.0, 8.0)
    worth = np.exp(-dates * curve(dates) / 100)
    return np.sum(3.0 * worth) + 100 * worth[-1] + curve.integrate(1.0, 4.0) + interpolate.PchipInterpolator(
        [0.5, 2.0, 5.0, 10.0], p)(3.0)


@program(0.6, 1.2, -0.4)
def copula_of_two_claims(p):
    """Normal margins bound by a correlation."""
    r = np.tanh(p[0])
    both = stats.multivariate_normal.cdf(np.array([[p[1], p[2]], [0.2, 0.1]]), [0.0, 0.0], [[1.0, r], [r, 1.0]])
    return np.sum(np.log(both)) + stats.multivariate_t.logpdf([0.3, p[2]], [0.0, p[2] / 2], [[1.0, r], [r, 1.0]], 4)


POINTS = RNG.normal(size=(15, 2))


@program(0.3, -0.2, 0.9)
def registration_of_points(p):
    """A rotation and shift, judged by the closest points and by an assignment."""
    moved = POINTS[:6] @ np.array([[np.cos(p[2]), -np.sin(p[2])], [np.sin(p[2]), np.cos(p[2])]]) + p[:2]
    distance, _ = cKDTree(POINTS).query(moved)
    cost = np.sum((moved[:, None] - POINTS[None, :8]) ** 2, axis=-1)
    return np.sum(distance**2) + cost[optimize.linear_sum_assignment(cost)].sum()


@program(9.8, 0.1, 12.0)
def a_throw_with_drag(p):
    """Where a ball comes down."""
    ground = lambda t, y: y[1]
    ground.terminal, ground.direction = True, -1
    def rates(t, y):
        speed = np.sqrt(y[2] ** 2 + y[3] ** 2)
        return [y[2], y[3], -p[1] * speed * y[2], -p[0] - p[1] * speed * y[3]]
    found = integrate.solve_ivp(rates, (0.0, 10.0), [0.0, 0.01, p[2], p[2]], events=ground, **EXACTLY)
    return found.y[0, -1] + found.t[-1]


IMAGE = RNG.random((8, 8))


@program(1.1, 0.4, 0.6)
def a_blurred_image(p):
    """A picture that is blurred, shifted, and compared by its cosine transform."""
    blurred = ndimage.gaussian_filter(p[1] * IMAGE + p[2] * IMAGE.T, 0.8)
    shifted = ndimage.map_coordinates(blurred, [np.full(5, 3.0) + 0.1 * p[0], np.linspace(1.0, 6.0, 5) * p[0]], order=1)
    return np.sum(shifted**2) + np.sum(fft.dctn(blurred, norm="ortho")[:3, :3] ** 2)


@program(0.8, 0.3, 0.5)
def relaxation_of_spins(p):
    """A master equation: the exponential of its generator, and what is left of the start."""
    up, down = p[0] * np.arange(1, 5), p[1] * np.arange(4, 0, -1)
    generator = sp.diags([up, down], [-1, 1]) - sp.diags(np.append(up, 0.0) + np.append(0.0, down))
    state = sparse_linalg.expm_multiply(generator * p[2], np.array([1.0, 0, 0, 0, 0]))
    return state @ np.arange(5.0) + special.kolmogorov(0.7) + np.sum(special.expit(state))
