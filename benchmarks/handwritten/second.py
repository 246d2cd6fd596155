"""Value and gradient of models of the second set: structures with groups, pairs, tables, and two series.

As in ``densities``: each kernel takes ``(theta, *data)`` and returns ``(value, gradient)``. Quantities by group are
gathered in a loop that vectorises, and their cotangents scattered in one that does not.
"""

import numpy as np
from numba import carray

from benchmarks.handwritten.lowlevel import BUFFER, loop, piece, stack_buffer, widen
from benchmarks.handwritten.vectormath import exp, lgamma_from_one, log, softplus_and_expit

Array = np.ndarray
Result = tuple[float, Array]


@loop
def item_table(theta: Array, y: Array) -> Result:
    """A row of the table at a time; what belongs to items is summed in the gradient itself."""
    widen()
    persons, items = y.shape
    ability, difficulty = theta[:persons], theta[persons : persons + items]
    log_a = theta[persons + items :]
    grad = np.zeros(persons + 2 * items)
    by_ability, by_difficulty, by_a = grad[:persons], grad[persons : persons + items], grad[persons + items :]
    a = carray(stack_buffer(), (BUFFER,))
    for i in range(items):
        a[i] = exp(log_a[i])
    value = 0.0
    for p in range(persons):
        total, at, row = 0.0, ability[p], y[p]
        for i in range(items):
            distance = at - difficulty[i]
            eta = a[i] * distance
            softplus, chance = softplus_and_expit(eta)
            r = row[i] - chance
            value += row[i] * eta - softplus
            total += r * a[i]
            by_difficulty[i] -= r * a[i]
            by_a[i] += r * eta
        by_ability[p] = total - at
        value -= 0.5 * at * at
    for i in range(items):
        value -= 0.125 * difficulty[i] * difficulty[i] + 2.0 * log_a[i] * log_a[i]
        by_difficulty[i] -= 0.25 * difficulty[i]
        by_a[i] -= 4.0 * log_a[i]
    return value, grad


@loop
def network(theta: Array, i: Array, j: Array, tie: Array) -> Result:
    """Blocks of pairs: distances and forces, then the forces to their nodes."""
    widen()
    size, alpha = theta.shape[0], theta[theta.shape[0] - 1]
    grad = np.zeros(size)
    fx, fy = carray(stack_buffer(), (BUFFER,)), carray(stack_buffer(), (BUFFER,))
    value = total = 0.0
    for start in range(0, i.shape[0], BUFFER):
        end = min(start + BUFFER, i.shape[0])
        i_here, j_here, tie_here = i[start:end], j[start:end], tie[start:end]
        for k in range(end - start):
            a, b = np.uint64(i_here[k]), np.uint64(j_here[k])
            dx, dy = theta[2 * a] - theta[2 * b], theta[2 * a + 1] - theta[2 * b + 1]
            distance = np.sqrt(dx * dx + dy * dy)
            eta = alpha - distance
            softplus, chance = softplus_and_expit(eta)
            value += tie_here[k] * eta - softplus
            r = tie_here[k] - chance
            total += r
            r /= distance
            fx[k], fy[k] = r * dx, r * dy
        for k in range(end - start):
            a, b = np.uint64(i_here[k]), np.uint64(j_here[k])
            grad[2 * a] -= fx[k]
            grad[2 * a + 1] -= fy[k]
            grad[2 * b] += fx[k]
            grad[2 * b + 1] += fy[k]
    for k in range(size - 1):
        value -= 0.5 * theta[k] * theta[k]
        grad[k] -= theta[k]
    grad[size - 1] = total - 0.25 * alpha
    return value - 0.125 * alpha * alpha, grad


@piece
def _softmax(row: Array, out: Array) -> None:
    top = -np.inf
    for k in range(row.shape[0]):
        top = max(top, row[k])
    total = 0.0
    for k in range(row.shape[0]):
        out[k] = exp(row[k] - top)
        total += out[k]
    total = 1.0 / total
    for k in range(row.shape[0]):
        out[k] *= total


@piece
def _back_through_softmax(theta: Array, p: Array, ct: Array) -> float:
    """ct becomes the cotangent of the logits, prior included; returns the prior."""
    mean = prior = 0.0
    for k in range(p.shape[0]):
        mean += ct[k] * p[k]
        prior += theta[k] * theta[k]
    for k in range(p.shape[0]):
        ct[k] = p[k] * (ct[k] - mean) - theta[k]
    return 0.5 * prior


@loop
def topics(theta: Array, document: Array, word: Array, count: Array) -> Result:
    """Two tables of probabilities, one pass over the words, two tables back."""
    widen()
    documents, words, k = 40, 150, 3
    p, grad = np.empty(theta.shape[0]), np.zeros(theta.shape[0])
    split = documents * k
    for d in range(documents):
        _softmax(theta[k * d : k * d + k], p[k * d : k * d + k])
    for topic in range(k):
        first = split + topic * words
        _softmax(theta[first : first + words], p[first : first + words])
    value = 0.0
    for c in range(count.shape[0]):
        d, w = 3 * np.uint64(document[c]), np.uint64(split) + np.uint64(word[c])
        m0, m1, m2 = p[d], p[d + 1], p[d + 2]
        v0, v1, v2 = p[w], p[w + words], p[w + 2 * words]
        total = m0 * v0 + m1 * v1 + m2 * v2
        value += count[c] * log(total)
        r = count[c] / total
        grad[d] += r * v0
        grad[d + 1] += r * v1
        grad[d + 2] += r * v2
        grad[w] += r * m0
        grad[w + words] += r * m1
        grad[w + 2 * words] += r * m2
    for d in range(documents):
        here = slice(k * d, k * d + k)
        value -= _back_through_softmax(theta[here], p[here], grad[here])
    for topic in range(k):
        here = slice(split + topic * words, split + (topic + 1) * words)
        value -= _back_through_softmax(theta[here], p[here], grad[here])
    return value, grad


@loop
def capture_recapture(theta: Array, y: Array, first: Array, last: Array) -> Result:
    """Counts by occasion in one pass over the animals, the recursion of chi there and back."""
    n, occasions = y.shape
    steps = occasions - 1
    phi, p, chi = np.empty(steps), np.empty(steps), np.ones(occasions)
    alive, seen, ct = np.zeros(steps), np.zeros(steps), np.zeros(occasions)
    for t in range(steps):
        phi[t], p[t] = 1.0 / (1.0 + exp(-theta[t])), 1.0 / (1.0 + exp(-theta[steps + t]))
    for animal in range(n):
        for t in range(first[animal], last[animal]):
            alive[t] += 1.0
            seen[t] += y[animal, t + 1]
        ct[last[animal]] += 1.0
    for t in range(steps - 1, -1, -1):
        chi[t] = 1.0 - phi[t] + phi[t] * (1.0 - p[t]) * chi[t + 1]
    value, grad, below = 0.0, np.empty(2 * steps), 0.0
    for t in range(steps):
        value += seen[t] * log(p[t]) + (alive[t] - seen[t]) * log(1.0 - p[t]) + alive[t] * log(phi[t])
        value += ct[t] * log(chi[t]) - 0.5 * (theta[t] * theta[t] + theta[steps + t] * theta[steps + t])
        below += ct[t] / chi[t]
        by_phi = below * ((1.0 - p[t]) * chi[t + 1] - 1.0)
        by_p = -below * phi[t] * chi[t + 1]
        below *= phi[t] * (1.0 - p[t])
        grad[t] = (alive[t] + by_phi * phi[t]) * (1.0 - phi[t]) - theta[t]
        grad[steps + t] = seen[t] - alive[t] * p[t] + by_p * p[t] * (1.0 - p[t]) - theta[steps + t]
    return value, grad


@loop
def areas(theta: Array, node1: Array, node2: Array, y: Array, expected: Array, x: Array) -> Result:
    """The areas, then the borders."""
    widen()
    n = y.shape[0]
    phi, noise, b0, b1 = theta[:n], theta[n : 2 * n], theta[2 * n], theta[2 * n + 1]
    s_phi, s_noise = np.exp(theta[2 * n + 2]), np.exp(theta[2 * n + 3])
    grad = np.empty(2 * n + 4)
    by_phi, by_noise = grad[:n], grad[n : 2 * n]
    value = level = slope = d_phi = d_noise = total = 0.0
    for k in range(n):
        eta = log(expected[k]) + b0 + b1 * x[k] + s_phi * phi[k] + s_noise * noise[k]
        rate = exp(eta)
        r = y[k] - rate
        value += y[k] * eta - rate - 0.5 * noise[k] * noise[k]
        level += r
        slope += r * x[k]
        d_phi += r * phi[k]
        d_noise += r * noise[k]
        total += phi[k]
        by_phi[k] = r * s_phi
        by_noise[k] = r * s_noise - noise[k]
    scale = 1.0 / (0.001 * n) ** 2
    for k in range(n):
        by_phi[k] -= total * scale
    squares = 0.0
    for k in range(node1.shape[0]):
        a, b = np.uint64(node1[k]), np.uint64(node2[k])
        d = phi[a] - phi[b]
        squares += d * d
        by_phi[a] -= d
        by_phi[b] += d
    grad[2 * n], grad[2 * n + 1] = level - b0, slope - b1
    grad[2 * n + 2] = 1.0 + s_phi * d_phi - s_phi * s_phi
    grad[2 * n + 3] = 1.0 + s_noise * d_noise - s_noise * s_noise
    value -= 0.5 * (squares + total * total * scale + b0 * b0 + b1 * b1 + s_phi * s_phi + s_noise * s_noise)
    return value + theta[2 * n + 2] + theta[2 * n + 3], grad


@loop
def tournament(theta: Array, winner: Array, loser: Array, home: Array) -> Result:
    """As network, with one number for each team."""
    widen()
    teams, n = theta.shape[0] - 2, home.shape[0]
    advantage, sd = theta[teams], np.exp(theta[teams + 1])
    grad = np.zeros(teams + 2)
    push = carray(stack_buffer(), (BUFFER,))
    value = total = 0.0
    for start in range(0, n, BUFFER):
        end = min(start + BUFFER, n)
        up, down, home_here = winner[start:end], loser[start:end], home[start:end]
        for k in range(end - start):
            margin = theta[np.uint64(up[k])] - theta[np.uint64(down[k])] + advantage * home_here[k]
            softplus, chance = softplus_and_expit(-margin)
            value -= softplus
            total += chance * home_here[k]
            push[k] = chance
        for k in range(end - start):
            grad[np.uint64(up[k])] += push[k]
            grad[np.uint64(down[k])] -= push[k]
    precision, squares = 1.0 / (sd * sd), 0.0
    for k in range(teams):
        squares += theta[k] * theta[k]
        grad[k] -= theta[k] * precision
    grad[teams] = total - advantage
    grad[teams + 1] = squares * precision - teams - sd * sd
    return value - 0.5 * (squares * precision + advantage * advantage + sd * sd) - teams * theta[teams + 1], grad


@loop
def zero_inflated(theta: Array, X: Array, Z: Array, y: Array) -> Result:
    """One pass over four and two columns."""
    value = 0.0
    a0 = a1 = a2 = a3 = b0 = b1 = 0.0
    for i in range(y.shape[0]):
        eta = X[i, 0] * theta[0] + X[i, 1] * theta[1] + X[i, 2] * theta[2] + X[i, 3] * theta[3]
        logit = Z[i, 0] * theta[4] + Z[i, 1] * theta[5]
        rate = exp(eta)
        softplus, share = softplus_and_expit(logit)
        if y[i] == 0.0:
            here, weight = softplus_and_expit(logit + rate)
            value += here - rate - softplus
            d_eta, d_logit = (weight - 1.0) * rate, weight - share
        else:
            value += y[i] * eta - rate - lgamma_from_one(y[i] + 1.0) - softplus
            d_eta, d_logit = y[i] - rate, -share
        a0 += d_eta * X[i, 0]
        a1 += d_eta * X[i, 1]
        a2 += d_eta * X[i, 2]
        a3 += d_eta * X[i, 3]
        b0 += d_logit * Z[i, 0]
        b1 += d_logit * Z[i, 1]
    grad = np.empty(6)
    grad[0], grad[1], grad[2], grad[3], grad[4], grad[5] = a0, a1, a2, a3, b0, b1
    for k in range(6):
        value -= 0.5 * theta[k] * theta[k]
        grad[k] -= theta[k]
    return value, grad


@loop
def occupancy(theta: Array, X: Array, W: Array, y: Array) -> Result:
    """A site at a time."""
    visits = W.shape[1]
    value = a0 = a1 = a2 = level = slope = 0.0
    for i in range(X.shape[0]):
        psi = 1.0 / (1.0 + exp(-(X[i, 0] * theta[0] + X[i, 1] * theta[1] + X[i, 2] * theta[2])))
        product, found, here, by_x = 1.0, 0.0, 0.0, 0.0
        for v in range(visits):
            p = 1.0 / (1.0 + exp(-(theta[3] + theta[4] * W[i, v])))
            product *= p if y[i, v] == 1.0 else 1.0 - p
            found += y[i, v]
            r = y[i, v] - p
            here += r
            by_x += r * W[i, v]
        never = 1.0 if found == 0.0 else 0.0
        total = psi * product + (1.0 - psi) * never
        value += log(total)
        weight = psi * product / total
        d = (product - never) / total * psi * (1.0 - psi)
        level += weight * here
        slope += weight * by_x
        a0 += d * X[i, 0]
        a1 += d * X[i, 1]
        a2 += d * X[i, 2]
    grad = np.empty(5)
    grad[0], grad[1], grad[2], grad[3], grad[4] = a0, a1, a2, level, slope
    for k in range(5):
        value -= 0.5 * theta[k] * theta[k]
        grad[k] -= theta[k]
    return value, grad
