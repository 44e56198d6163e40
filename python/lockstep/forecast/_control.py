"""When to jump and how far: fits of paths, bandit, monitor, corrector. The numbers of src/forecast/predict, in NumPy."""
import math

import numpy as np

FEATURES = 6  # 1, share explained, cosine of the last two differences, slope, last reward, age
CALM, CAUTION, WARNING, CRITICAL = range(4)


def growth_of(coefficients):
    """Largest |eigenvalue| of the recursion d(t + 1) = sum_j c_j d(t - j)."""
    p = len(coefficients)
    if p == 0:
        return 0.0
    companion = np.eye(p, k=-1)
    companion[0] = coefficients
    return float(np.abs(np.linalg.eigvals(companion)).max())


def solve_ridge(a, b, shift):
    """x of (a + shift I) x = b, a symmetric; zeros where that is singular."""
    try:
        root = np.linalg.cholesky(a + shift * np.eye(len(b)))
    except np.linalg.LinAlgError:
        return np.zeros(len(b))
    x = np.linalg.solve(root.T, np.linalg.solve(root, b))
    return x if np.isfinite(x).all() else np.zeros(len(b))


def fit_path(gram, order, ridge, max_growth):
    """(coefficients, share explained): the next difference as a combination of the last ones, newest first.

    gram: (n, n) products of the differences of equally spaced snapshots, newest first. Ridge regression of each
    difference on the `order` before it; for noiseless linear dynamics of as many modes, dynamic mode decomposition.
    """
    n = len(gram)
    if n < 1 or not gram[0, 0] > 0:
        return np.zeros(0), 0.0
    if n == 1:
        return np.ones(1), 0.0
    p = min(max(order, 1), n - 1)
    a = sum(gram[i + 1:i + 1 + p, i + 1:i + 1 + p] for i in range(n - p))
    b = sum(gram[i, i + 1:i + 1 + p] for i in range(n - p))
    energy = sum(gram[i, i] for i in range(n - p))
    c = solve_ridge(a, b, ridge * np.trace(a) / p)
    explained = float(np.clip((2 * c @ b - c @ a @ c) / energy, 0, 1)) if energy > 0 else 0.0
    growth = growth_of(c)
    if growth > max_growth:
        c = c * (max_growth / growth) ** np.arange(1, p + 1)
    return c, explained


def extrapolate(coefficients, count, intervals):
    """The move over `intervals` spacings as factors of the `count` differences."""
    p, total = len(coefficients), np.zeros(count)
    if p == 0:
        return total
    last, left = np.eye(p), intervals
    while left > 0:
        following = coefficients @ last
        total[:p] += min(left, 1.0) * following
        last = np.vstack([following, last[:-1]])
        left -= 1
    return total


class Bandit:
    """LinUCB (Li et al., WWW 2010). Arm 0 does nothing, for a reward of 0."""

    def __init__(self, arms, exploration):
        self.exploration = exploration
        self.matrices = np.stack([np.eye(FEATURES)] * arms)
        self.sums = np.zeros((arms, FEATURES))

    def choose(self, x):
        best, highest = 0, 0.0
        for arm in range(1, len(self.sums)):
            mean = np.linalg.solve(self.matrices[arm], self.sums[arm]) @ x
            score = mean + self.exploration * math.sqrt(max(x @ np.linalg.solve(self.matrices[arm], x), 0))
            if score > highest:
                best, highest = arm, score
        return best

    def learn(self, arm, x, reward):
        self.matrices[arm] += np.outer(x, x)
        self.sums[arm] += reward * x


class Monitor:
    """Divergence by a short average of the losses against their running mean, and by predictions that were too good."""

    memory, recent_weight, baseline, calm_stretch = 0.99, 0.3, 50, 50
    limits = ((6.0, CRITICAL), (3.0, WARNING), (2.1, CAUTION))

    def __init__(self):
        self.begin_anew()

    def begin_anew(self):
        self.mean = self.variance = self.recent = 0.0
        self.losses = self.calm = self.warnings = 0

    def _escalate(self, verdict):
        if verdict == CALM:
            self.calm += 1
            if self.calm >= self.calm_stretch:
                self.warnings = 0
            return verdict
        self.calm = 0
        if verdict == WARNING:
            self.warnings += 1
            if self.warnings >= 3:
                verdict = CRITICAL
        if verdict == CRITICAL:
            self.warnings = 0
        return verdict

    def observe_loss(self, loss):
        if not math.isfinite(loss):
            return self._escalate(CRITICAL)
        self.recent = loss if self.losses == 0 else self.recent + self.recent_weight * (loss - self.recent)
        verdict = CALM
        if self.losses >= self.baseline:
            deviation = max(math.sqrt(max(self.variance, 0)), 1e-3 * abs(self.mean), 1e-300)
            above = (self.recent - self.mean) / deviation
            verdict = next((v for limit, v in self.limits if above > limit), CALM)
        if verdict != CRITICAL:
            self.losses += 1
            weight, away = max(1 - self.memory, 1 / self.losses), loss - self.mean
            self.mean += weight * away
            self.variance = (1 - weight) * (self.variance + weight * away * away)
        return self._escalate(verdict)

    def observe_prediction(self, predicted, measured, before):
        if not math.isfinite(measured):
            return self._escalate(CRITICAL)
        if measured <= predicted:
            return CALM
        missed = (measured - predicted) / max(abs(measured), 1e-300)
        if missed > 0.5 and not measured < before:
            return self._escalate(WARNING)
        return CAUTION if missed > 0.2 else CALM


class Corrector:
    """What predictions missed, as shares of the loss, from the nearest earlier cases and a linear model."""

    most_entries, neighbours, most, fade, model_fade = 1000, 10, 0.2, 0.95, 0.98

    def __init__(self, doubt):
        self.doubt = doubt
        self.entries = []  # (step, residual, features)
        self.matrix, self.sum = np.zeros((FEATURES, FEATURES)), np.zeros(FEATURES)

    def correction(self, step, x):
        if not self.entries:
            return 0.0
        near = sorted(((-float(x @ f / math.sqrt(x @ x * (f @ f))), k) for k, (_, _, f) in enumerate(self.entries)))
        total, weights = 0.0, self.doubt
        for minus_cosine, k in near[:self.neighbours]:
            when, residual, _ = self.entries[k]
            weight = max(-minus_cosine, 0) * self.fade ** ((step - when) / 100)
            total += weight * residual
            weights += weight
        linear = solve_ridge(self.matrix, self.sum, 1 + self.doubt) @ x
        mean = total / weights if weights > 0 else 0.0
        return float(np.clip(0.7 * mean + 0.3 * linear, -self.most, self.most))

    def learn(self, step, x, residual):
        if not math.isfinite(residual):
            return
        self.entries = self.entries[-self.most_entries + 1:] + [(step, residual, np.array(x))]
        self.matrix = self.model_fade * self.matrix + np.outer(x, x)
        self.sum = self.model_fade * self.sum + residual * x
