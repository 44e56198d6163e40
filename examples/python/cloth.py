"""A cloth learns its stiffness from how it falls.

    python examples/python/cloth.py [--size 8] [--steps 60] [--iterations 60] [--device cpu]

Masses and springs, one launch for each step of time; a `lockstep.Tape` keeps the launches and gives the derivatives of the loss
by both stiffnesses through all steps. Prints a derivative next to a central difference and the stiffness next to the truth.
"""
import argparse

import numpy as np

import lockstep as ls

DT, GRAVITY, DRAG = 0.02, 9.81, 0.4
NEAR, DIAGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))


@ls.kernel
def step(at, x: ls.Grid[ls.f64, 3], v: ls.Grid[ls.f64, 3], x_next: ls.Out[ls.f64, 3], v_next: ls.Out[ls.f64, 3],
         stretch: ls.f64, shear: ls.f64):
    """Masses of 1 at distances of 1; arrays are [axis, row, column]. The ends of the first row are pinned."""
    n = x.size(2)
    here = [x[c, at] for c in range(3)]
    force = [0.0, 0.0, -GRAVITY]
    for springs, stiffness, rest in ((NEAR, stretch, 1.0), (DIAGONAL, shear, 2.0 ** 0.5)):
        for i, j in springs:
            inside = (at.x + i >= 0) & (at.x + i < n) & (at.y + j >= 0) & (at.y + j < n)
            d = [x[c, at.x(i).y(j)] - here[c] for c in range(3)]
            # Outside, the read gives the mass itself: its distance of 0 would make the derivative of the root infinite.
            length = ls.sqrt(ls.where(inside, d[0] * d[0] + d[1] * d[1] + d[2] * d[2], 1.0))
            pull = ls.where(inside, stiffness * (1.0 - rest / length), 0.0)
            force = [f + pull * a for f, a in zip(force, d)]
    pinned = (at.y == 0) & ((at.x == 0) | (at.x == n - 1))
    for c in range(3):
        speed = ls.where(pinned, 0.0, (v[c, at] + DT * force[c]) * (1.0 - DRAG * DT))
        v_next[c, at] = speed
        x_next[c, at] = here[c] + DT * speed


class Cloth:
    def __init__(self, device, size, steps):
        self.device, self.size, self.steps = device, size, steps
        rows, columns = np.mgrid[:size, :size]
        self.flat = np.stack([columns, rows, np.zeros((size, size))]).astype("f8")

    def fall(self, stretch, shear):
        """Positions after each step."""
        shape, frames = self.flat.shape, [ls.asarray(self.flat, self.device, copy=True)]
        speed = ls.zeros(shape, ls.f64, self.device)
        for _ in range(self.steps):
            x, v = ls.empty(shape, ls.f64, self.device), ls.empty(shape, ls.f64, self.device)
            step[self.device, shape[1:]](frames[-1], speed, x, v, stretch, shear)
            frames.append(x)
            speed = v
        return frames[1:]

    def loss(self, stretch, shear, seen):
        return sum(0.5 * ((x.numpy() - s) ** 2).mean() for x, s in zip(self.fall(stretch, shear), seen))

    def slopes(self, stretch, shear, seen):
        with ls.Tape() as tape:
            unknown = tape.number(stretch), tape.number(shear)
            frames = self.fall(*unknown)
        return tape.gradient({x: (x.numpy() - s) / s.size for x, s in zip(frames, seen)}, unknown)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    cloth, truth = Cloth(ls.Device(options.device), options.size, options.steps), np.array([300.0, 60.0])
    seen = [x.numpy().copy() for x in cloth.fall(*truth)]

    guess = np.array([150.0, 150.0])
    slope = cloth.slopes(*guess, seen)[1]
    difference = (cloth.loss(150, 150.001, seen) - cloth.loss(150, 149.999, seen)) / 0.002
    error = abs(slope / difference - 1)
    print(f"one component: gradient {slope:.9g}, central difference {difference:.9g}")

    q, first, second = np.log(guess), 0, 0
    for k in range(1, options.iterations + 1):
        slope = np.exp(q) * cloth.slopes(*np.exp(q), seen)
        first, second = 0.8 * first + 0.2 * slope, 0.95 * second + 0.05 * slope ** 2
        rate = 0.1 * (1 + np.cos(np.pi * k / options.iterations))
        q -= rate * (first / (1 - 0.8 ** k)) / (np.sqrt(second / (1 - 0.95 ** k)) + 1e-300)
    found = np.exp(q)
    print(f"stretch {found[0]:.4f} of {truth[0]:g}, shear {found[1]:.4f} of {truth[1]:g}, loss {cloth.loss(*found, seen):.3g}")
    return error, np.abs(found / truth - 1).max()


if __name__ == "__main__":
    main()
