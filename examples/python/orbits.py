"""Finds masses and velocities of planets from where they were seen.

    python examples/python/orbits.py [--iterations 30] [--device cpu]

One lane integrates one copy of the system: leapfrog steps in two loops, bodies in arrays of the lane. Reverse mode
(`lockstep.grad`) gives the slope of the loss through all steps, forward mode (`lockstep.tangent`) a column of the Jacobian for
each lane; Levenberg-Marquardt does the rest. Prints a derivative next to a central difference and the fit next to the truth.
"""
import argparse

import numpy as np

import lockstep as ls

BODIES, SIGHTS, STEPS, DT, SOFT = 3, 24, 8, 0.05, 1e-3
UNKNOWN = 3 * BODIES  # masses, then velocities


@ls.kernel
def orbits(at, start: ls.Grid[ls.f64, 1], unknown: ls.Grid[ls.f64, 2], seen: ls.Out[ls.f64, 3]):
    """seen[copy, time, 2 body + axis]"""
    x, v = ls.local(ls.f64, 2 * BODIES), ls.local(ls.f64, 2 * BODIES)
    for k in range(2 * BODIES):
        x[k] = start[k]
        v[k] = unknown[at.x, BODIES + k]

    def kick():
        for i in range(BODIES):
            for j in range(i):
                dx, dy = x[2 * j] - x[2 * i], x[2 * j + 1] - x[2 * i + 1]
                d2 = dx * dx + dy * dy + SOFT
                pull = 0.5 * DT / (d2 * ls.sqrt(d2))
                for axis, d in enumerate((dx, dy)):
                    v[2 * i + axis] = v[2 * i + axis] + unknown[at.x, j] * pull * d
                    v[2 * j + axis] = v[2 * j + axis] - unknown[at.x, i] * pull * d

    for n in ls.for_(SIGHTS):
        for _ in ls.for_(STEPS):
            kick()
            for k in range(2 * BODIES):
                x[k] = x[k] + DT * v[k]
            kick()
        for k in range(2 * BODIES):
            seen[at.x, n, k] = x[k]


class Fit:
    """Half the squared distance to what was seen, and its derivatives."""

    def __init__(self, device, start, seen=None):
        self.device, self.seen = device, seen
        self.start = ls.asarray(start, device, copy=True)

    def upload(self, values):
        return ls.asarray(np.ascontiguousarray(values), self.device, copy=True)

    def run(self, q):
        found = ls.empty((1, SIGHTS, 2 * BODIES), ls.f64, self.device)
        orbits[self.device, 1](self.start, self.upload(q[None]), found)
        return found.numpy()[0].copy()

    def loss(self, q):
        return 0.5 * ((self.run(q) - self.seen) ** 2).sum()

    def slope(self, q):
        """The gradient of the loss: one launch in reverse mode."""
        backward = ls.grad(orbits, inputs=("unknown",))[self.device, 1]
        seed = self.upload((self.run(q) - self.seen)[None])
        return backward(start=self.start, unknown=self.upload(q[None]), seen_cotangent=seed)["unknown"].numpy()[0]

    def jacobian(self, q):
        """Derivatives of what is seen by the unknowns: one launch in forward mode, with a lane for each."""
        forward = ls.tangent(orbits, inputs=("unknown",))[self.device, UNKNOWN]
        seen = ls.empty((UNKNOWN, SIGHTS, 2 * BODIES), ls.f64, self.device)
        found = forward(start=self.start, unknown=self.upload(np.tile(q, (UNKNOWN, 1))), seen=seen,
                        unknown_tangent=self.upload(np.eye(UNKNOWN)))
        return found["seen"].numpy().reshape(UNKNOWN, -1).T


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    truth = np.array([1.0, 0.06, 0.03, 0.0, -0.04, 0.0, 1.0, -0.74, 0.0])
    fit = Fit(ls.Device(options.device), np.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.8]))
    fit.seen = fit.run(truth)
    q = truth * [1.1, 0.7, 1.5, 1, 1, 1, 0.97, 1.03, 1] + 0.01

    step = 1e-6 * np.eye(UNKNOWN)[1]
    slope, difference = fit.slope(q)[1], (fit.loss(q + step) - fit.loss(q - step)) / 2e-6
    print(f"one component: gradient {slope:.9g}, central difference {difference:.9g}")

    error = abs(slope / difference - 1)
    damping, loss = 1e-3, fit.loss(q)
    for _ in range(options.iterations):
        jacobian, slope = fit.jacobian(q), fit.slope(q)
        squares = jacobian.T @ jacobian
        trial = q - np.linalg.solve(squares + damping * np.diag(np.diag(squares)), slope)
        after = fit.loss(trial)
        if after < loss:
            q, loss, damping = trial, after, damping / 10
        else:
            damping *= 10
    for k in range(BODIES):
        v, w = q[BODIES + 2 * k:][:2], truth[BODIES + 2 * k:][:2]
        print(f"body {k}: mass {q[k]:.6f} of {truth[k]:.6f}, velocity {v[0]:+.6f} {v[1]:+.6f} of {w[0]:+.6f} {w[1]:+.6f}")
    print(f"loss {loss:.3g}")
    return error, np.abs(q - truth).max()


if __name__ == "__main__":
    main()
