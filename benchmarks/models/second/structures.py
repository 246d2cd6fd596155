"""Posteriors with groups, tables, pairs and places. JAX takes the same source."""

import numpy as np
from scipy import special
from scipy.special import expit

from benchmarks.models.model import Array, Data


def item_table(theta: Array, y: Array) -> float:
    """Two-parameter item response on the whole table. theta = abilities, difficulties, log discriminations."""
    persons, items = y.shape
    ability = theta[:persons]
    difficulty = theta[persons:persons + items]
    log_a = theta[persons + items:]
    eta = np.exp(log_a) * (ability[:, None] - difficulty)
    lp = np.sum(y * eta - np.logaddexp(0, eta))
    return lp - 0.5 * (np.sum(ability**2) + np.sum(difficulty**2) / 4 + np.sum(log_a**2) / 0.25)


def make_item_table(rng: np.random.Generator) -> tuple[Array, Data]:
    """200 persons, 25 items."""
    theta = np.concatenate([rng.normal(size=200), rng.normal(size=25), 0.3 * rng.normal(size=25)])
    eta = np.exp(theta[225:]) * (theta[:200, None] - theta[200:225])
    return theta, ((rng.random((200, 25)) < expit(eta)).astype(float),)


def network(theta: Array, i: Array, j: Array, tie: Array) -> float:
    """Latent positions in the plane; ties are likelier between near nodes. theta = positions, intercept."""
    z, alpha = theta[:-1].reshape(-1, 2), theta[-1]
    distance = np.sqrt(np.sum((z[i] - z[j]) ** 2, axis=1))
    eta = alpha - distance
    return np.sum(tie * eta - np.log1p(np.exp(eta))) - 0.5 * np.sum(z**2) - 0.5 * alpha**2 / 4


def make_network(rng: np.random.Generator) -> tuple[Array, Data]:
    """60 nodes, all 1,770 pairs."""
    z = rng.normal(size=(60, 2))
    i, j = np.triu_indices(60, 1)
    eta = 1.0 - np.sqrt(np.sum((z[i] - z[j]) ** 2, axis=1))
    return np.append(z.ravel(), 1.0), (i, j, (rng.random(len(i)) < expit(eta)).astype(float))


def topics(theta: Array, document: Array, word: Array, count: Array) -> float:
    """Words of documents from three topics. theta = logits of topics by document, of words by topic."""
    documents, words, k = 40, 150, 3
    mix = theta[:documents * k].reshape(documents, k)
    vocabulary = theta[documents * k:].reshape(k, words)
    mix = np.exp(mix - special.logsumexp(mix, axis=1, keepdims=True))
    vocabulary = np.exp(vocabulary - special.logsumexp(vocabulary, axis=1, keepdims=True))
    p = np.sum(mix[document] * vocabulary[:, word].T, axis=1)
    return np.sum(count * np.log(p)) - 0.5 * np.sum(theta**2)


def make_topics(rng: np.random.Generator) -> tuple[Array, Data]:
    """40 documents, 150 words, those 2,000 or so pairs that occur."""
    p = rng.dirichlet(np.full(3, 0.5), size=40) @ rng.dirichlet(np.full(150, 0.2), size=3)
    counts = np.array([rng.multinomial(150, row) for row in p])
    document, word = np.nonzero(counts)
    return 0.5 * rng.normal(size=40 * 3 + 3 * 150), (document, word, counts[document, word].astype(float))


def capture_recapture(theta: Array, y: Array, first: Array, last: Array) -> float:
    """Cormack-Jolly-Seber with survival and capture by occasion; chi is the chance of not being seen again.
    theta = logits of survival, of capture."""
    occasions = y.shape[1]
    phi, p = expit(theta[:occasions - 1]), expit(theta[occasions - 1:])
    chi = [1.0]
    for t in range(occasions - 2, -1, -1):
        chi.append(1 - phi[t] + phi[t] * (1 - p[t]) * chi[-1])
    unseen = np.log(np.array(chi[::-1]))
    t = np.arange(1, occasions)
    alive = (t > first[:, None]) & (t <= last[:, None])
    seen = y[:, 1:] * np.log(p) + (1 - y[:, 1:]) * np.log(1 - p) + np.log(phi)
    return np.sum(np.where(alive, seen, 0.0)) + np.sum(unseen[last]) - 0.5 * theta @ theta


def make_capture_recapture(rng: np.random.Generator) -> tuple[Array, Data]:
    """300 animals, 8 occasions."""
    first = rng.integers(0, 7, size=300)
    y = np.zeros((300, 8))
    for animal in range(300):
        y[animal, first[animal]] = 1
        for t in range(first[animal] + 1, 8):
            if rng.random() > 0.75:
                break
            y[animal, t] = rng.random() < 0.5
    last = 7 - np.argmax(y[:, ::-1], axis=1)
    return 0.5 * rng.normal(size=14), (y, first, last)


def areas(theta: Array, node1: Array, node2: Array, y: Array, expected: Array, x: Array) -> float:
    """Poisson counts by area with an intrinsic autoregression and noise. theta = field, noise, two coefficients, log
    sds."""
    n = len(y)
    phi, noise, beta = theta[:n], theta[n:2 * n], theta[2 * n:2 * n + 2]
    s_phi, s_noise = np.exp(theta[-2]), np.exp(theta[-1])
    eta = np.log(expected) + beta[0] + beta[1] * x + s_phi * phi + s_noise * noise
    lp = np.sum(y * eta - np.exp(eta)) - 0.5 * np.sum((phi[node1] - phi[node2]) ** 2)
    lp += -0.5 * (np.sum(phi) / (0.001 * n)) ** 2 - 0.5 * np.sum(noise**2) - 0.5 * np.sum(beta**2)
    return lp - 0.5 * (s_phi**2 + s_noise**2) + theta[-2] + theta[-1]


def make_areas(rng: np.random.Generator) -> tuple[Array, Data]:
    """A map of 20 x 20 areas, 760 borders."""
    cell = np.arange(400).reshape(20, 20)
    node1 = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    node2 = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    expected, x = rng.uniform(2, 10, size=400), rng.normal(size=400)
    y = rng.poisson(expected * np.exp(0.2 * x + 0.3 * rng.normal(size=400))).astype(float)
    return np.concatenate([0.1 * rng.normal(size=800), [0.1, 0.2, -1.0, -1.2]]), (node1, node2, y, expected, x)


def occupancy(theta: Array, X: Array, W: Array, y: Array) -> float:
    """Whether a species is there, and is seen if it is. theta = coefficients of both."""
    k = X.shape[1]
    psi = expit(X @ theta[:k])
    p = expit(theta[k] + theta[k + 1] * W)
    seen = np.prod(np.where(y == 1, p, 1 - p), axis=1)
    never = (y.sum(axis=1) == 0) * 1.0
    return np.sum(np.log(psi * seen + (1 - psi) * never)) - 0.5 * np.sum(theta**2)


def make_occupancy(rng: np.random.Generator) -> tuple[Array, Data]:
    """200 sites, 5 visits, 3 covariates."""
    X, W = np.column_stack([np.ones(200), rng.normal(size=(200, 2))]), rng.normal(size=(200, 5))
    theta = np.array([0.3, 0.8, -0.5, -0.4, 0.6])
    there = rng.random(200) < expit(X @ theta[:3])
    y = there[:, None] * (rng.random((200, 5)) < expit(theta[3] + theta[4] * W))
    return theta, (X, W, y.astype(float))


def tournament(theta: Array, winner: Array, loser: Array, home: Array) -> float:
    """Bradley-Terry with an advantage at home. theta = strengths, advantage, log sd of the strengths."""
    strength, advantage, sd = theta[:-2], theta[-2], np.exp(theta[-1])
    margin = strength[winner] - strength[loser] + advantage * home
    lp = -np.logaddexp(0, -margin).sum()
    return lp - 0.5 * np.sum((strength / sd) ** 2) - len(strength) * np.log(sd) - 0.5 * advantage**2 - 0.5 * sd**2


def make_tournament(rng: np.random.Generator) -> tuple[Array, Data]:
    """40 teams, 1,500 matches."""
    strength = rng.normal(size=40)
    a, b = rng.integers(0, 40, size=(2, 1500))
    b = np.where(a == b, (b + 1) % 40, b)
    won = rng.random(1500) < expit(strength[a] - strength[b] + 0.3)
    return np.append(strength, [0.3, 0.1]), (np.where(won, a, b), np.where(won, b, a), np.where(won, 1.0, -1.0))


def pharmacokinetics(theta: Array, subject: Array, t: Array, dose: Array, y: Array) -> float:
    """One compartment, absorbed in first order, parameters by subject. theta = means, log sds, deviations of three
    parameters by subject, log sd of the measurements."""
    mean, spread, sd = theta[0:3], np.exp(theta[3:6]), np.exp(theta[-1])
    z = theta[6:-1].reshape(-1, 3)
    ka, ke, volume = (np.exp(mean + spread * z)).T
    ka, ke, volume = ka[subject] + ke[subject], ke[subject], volume[subject]
    concentration = dose * ka / (volume * (ka - ke)) * (np.exp(-ke * t) - np.exp(-ka * t))
    r = np.log(y) - np.log(concentration)
    return (-0.5 * np.sum(r**2) / sd**2 - len(y) * np.log(sd) - 0.5 * np.sum(z**2) - 0.5 * np.sum(mean**2)
            - 0.5 * np.sum(theta[3:6] ** 2) - sd)


def make_pharmacokinetics(rng: np.random.Generator) -> tuple[Array, Data]:
    """12 subjects, 10 measurements each."""
    subject, t = np.repeat(np.arange(12), 10), np.tile(np.array([0.25, 0.5, 1, 2, 3.5, 5, 7, 9, 12, 24]), 12)
    dose = np.repeat(rng.uniform(3, 6, size=12), 10)
    y = dose * (np.exp(-0.08 * t) - np.exp(-1.5 * t)) / 0.5 * np.exp(0.1 * rng.normal(size=120))
    return np.concatenate([[0.3, -2.4, -0.7], [-1.0, -1.5, -1.5], rng.normal(size=36), [-1.5]]), (subject, t, dose, y)


def places(theta: Array, X: Array, y: Array) -> float:
    """A Gaussian process with a length scale for each input. theta = log length scales, log sd, log noise."""
    length, sd, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    Z = X / length
    square = np.sum((Z[:, None, :] - Z[None, :, :]) ** 2, axis=-1)
    K = sd**2 * np.exp(-0.5 * square) + noise**2 * np.eye(len(y))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.log(np.diag(L)).sum() - 0.5 * np.sum(theta**2)


def make_places(rng: np.random.Generator) -> tuple[Array, Data]:
    """80 places with three coordinates."""
    X = rng.normal(size=(80, 3))
    return np.array([0.2, 0.4, 1.0, 0.1, -1.2]), (X, np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=80))


def factors(theta: Array, Y: Array) -> float:
    """Factor analysis with the factors integrated out. theta = loadings, log sds."""
    n, p = Y.shape
    loading, sd = theta[:2 * p].reshape(p, 2), np.exp(theta[2 * p:])
    Sigma = loading @ loading.T + np.diag(sd**2)
    L = np.linalg.cholesky(Sigma)
    white = np.linalg.solve(L, Y.T)
    return -0.5 * np.sum(white**2) - n * np.sum(np.log(np.diag(L))) - 0.5 * np.sum(theta**2)


def make_factors(rng: np.random.Generator) -> tuple[Array, Data]:
    """300 persons, 10 tests, 2 factors."""
    loading = rng.normal(size=(10, 2))
    Y = rng.normal(size=(300, 2)) @ loading.T + 0.7 * rng.normal(size=(300, 10))
    return np.concatenate([loading.ravel() + 0.1 * rng.normal(size=20), np.full(10, -0.3)]), (Y,)


def dose_response(theta: Array, study: Array, dose: Array, y: Array, se: Array) -> float:
    """A sigmoid in the dose with effects of studies. theta = log emax, log ed50, log hill, intercepts, log sd, mean."""
    emax, ed50, hill = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])
    mean, sd, e0 = theta[-1], np.exp(theta[-2]), theta[3:-2]
    mu = e0[study] + emax * dose**hill / (ed50**hill + dose**hill)
    return (-0.5 * np.sum(((y - mu) / se) ** 2) - 0.5 * np.sum(((e0 - mean) / sd) ** 2) - len(e0) * np.log(sd)
            - 0.5 * np.sum(theta[:3] ** 2) - 0.5 * mean**2 - sd + theta[-2])


def make_dose_response(rng: np.random.Generator) -> tuple[Array, Data]:
    """30 studies, 150 arms."""
    study, dose = np.repeat(np.arange(30), 5), np.tile(np.array([0.5, 1.0, 2.0, 4.0, 8.0]), 30)
    se = rng.uniform(0.1, 0.3, size=150)
    y = 0.2 * rng.normal(size=30)[study] + 2 * dose / (2 + dose) + se * rng.normal(size=150)
    return np.concatenate([[0.6, 0.7, 0.0], 0.2 * rng.normal(size=30), [-1.5, 0.0]]), (study, dose, y, se)


def crossed(theta: Array, subject: Array, word: Array, X: Array, y: Array) -> float:
    """Response times by subject and word. theta = coefficients, two sets of effects, log sds."""
    k = X.shape[1]
    beta = theta[:k]
    u, w = theta[k:k + 50], theta[k + 50:k + 130]
    log_u, log_w, log_e = theta[-3], theta[-2], theta[-1]
    mu = X @ beta + np.exp(log_u) * u[subject] + np.exp(log_w) * w[word]
    lp = np.sum(-0.5 * ((np.log(y) - mu) / np.exp(log_e)) ** 2 - log_e - np.log(y))
    return lp - 0.5 * (u @ u + w @ w + beta @ beta / 25) - 0.5 * (log_u**2 + log_w**2 + log_e**2)


def make_crossed(rng: np.random.Generator) -> tuple[Array, Data]:
    """50 subjects, 80 words, 3,000 answers, 3 covariates."""
    subject, word = rng.integers(0, 50, size=3000), rng.integers(0, 80, size=3000)
    X = np.column_stack([np.ones(3000), rng.normal(size=(3000, 2))])
    theta = np.concatenate([[6.0, 0.1, -0.05], rng.normal(size=130), [-1.5, -2.0, -1.0]])
    mu = X @ theta[:3] + 0.2 * theta[3:53][subject] + 0.15 * theta[53:133][word]
    return theta, (subject, word, X, np.exp(mu + 0.35 * rng.normal(size=3000)))
