"""Finds how particles were displaced from the density that they leave on a mesh.

    python examples/python/particle_mesh.py [--size 24] [--iterations 150] [--device cpu]

One kernel interpolates a mesh at the particles. Its gradient by the mesh, for seeds that are the masses, is the transfer of the
particles to the mesh; its gradient by the positions, for a mesh of slopes, is that of a loss of the density. Both are exact
sums: the same bits for any number of threads, without atomic additions of floats. Prints a derivative next to a central
difference, and the displacement next to the truth.
"""
import argparse

import numpy as np

import lockstep as ls

TRUTH = np.array([0.9, 0.5, 0.6, -0.8])  # amplitude and phase of a wave along x and along y


@ls.kernel
def displace(at, rest: ls.Grid[ls.f64, 2], wave: ls.Grid[ls.f64, 1], size: ls.f64, x: ls.Out[ls.f64, 2]):
    for axis in range(2):
        q = rest[at.x, axis]
        x[at.x, axis] = q + wave[2 * axis] * ls.sin(q * (2 * np.pi) / size + wave[2 * axis + 1])


@ls.kernel
def interpolate(at, mesh: ls.Grid[ls.f64, 2], x: ls.Grid[ls.f64, 2], value: ls.Out[ls.f64, 1]):
    """Quadratic splines on a periodic mesh; positions x, y in cells."""
    cell, weight = [], []
    for axis in range(2):
        nearest = ls.rint(x[at.x, axis])
        d = x[at.x, axis] - nearest
        cell.append(ls.cast(ls.i32, nearest))
        weight.append((0.5 * (0.5 - d) ** 2, 0.75 - d * d, 0.5 * (0.5 + d) ** 2))
    value[at] = sum(weight[1][j] * weight[0][i] * mesh.periodic()[cell[1] + (j - 1), cell[0] + (i - 1)]
                    for j in range(3) for i in range(3))


class Transfer:
    def __init__(self, device, size):
        self.device, self.size = device, size
        y, x = np.mgrid[:2 * size, :2 * size] / 2 + 0.25  # four particles in a cell
        self.rest = ls.asarray(np.stack([x.ravel(), y.ravel()], 1), device, copy=True)
        self.mass = ls.asarray(np.full(len(self.rest), 0.25), device, copy=True)

    def place(self, wave):
        x = ls.empty(self.rest.shape, ls.f64, self.device)
        displace[self.device, len(self.mass)](self.rest, ls.asarray(wave, self.device, copy=True), self.size, x)
        return x

    def density(self, x):
        """The particles' masses on the mesh: the transpose of the interpolation."""
        mesh = ls.zeros((self.size, self.size), ls.f64, self.device)
        back = ls.grad(interpolate, inputs=("mesh",))[self.device, len(self.mass)]
        return back(mesh=mesh, x=x, value_cotangent=self.mass)["mesh"].numpy()

    def loss(self, wave, seen):
        """Half the squared distance of the densities, and its gradient by the wave."""
        x = self.place(wave)
        miss = self.density(x) - seen
        back = ls.grad(interpolate, inputs=("x",))[self.device, len(self.mass)]
        by_x = back(mesh=ls.asarray(miss, self.device, copy=True), x=x, value_cotangent=self.mass)["x"]
        found = ls.grad(displace, inputs=("wave",))[self.device, len(self.mass)](
            rest=self.rest, wave=ls.asarray(wave, self.device, copy=True), size=self.size, x_cotangent=by_x)
        return 0.5 * (miss ** 2).sum(), found["wave"].numpy().copy()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    transfer = Transfer(ls.Device(options.device), options.size)
    seen = transfer.density(transfer.place(TRUTH)).copy()

    q, step = np.array([0.4, 0.0, 0.3, 0.0]), 1e-6 * np.eye(4)[1]
    slope = transfer.loss(q, seen)[1]
    difference = (transfer.loss(q + step, seen)[0] - transfer.loss(q - step, seen)[0]) / 2e-6
    error = abs(slope[1] / difference - 1)
    print(f"one component: gradient {slope[1]:.9g}, central difference {difference:.9g}")
    again = Transfer(ls.Device("interp"), options.size).loss(q, seen)[1]
    same = again.tobytes() == slope.tobytes()
    print("the interpreter gives", "the same bits" if same else "OTHER BITS")

    first, second = 0, 0
    for k in range(1, options.iterations + 1):
        loss, slope = transfer.loss(q, seen)
        first, second = 0.8 * first + 0.2 * slope, 0.95 * second + 0.05 * slope ** 2
        rate = 0.05 * (1 + np.cos(np.pi * k / options.iterations))
        q -= rate * (first / (1 - 0.8 ** k)) / (np.sqrt(second / (1 - 0.95 ** k)) + 1e-300)
    for axis, found, truth in zip("xy", q.reshape(2, 2), TRUTH.reshape(2, 2)):
        print(f"along {axis}: amplitude {found[0]:.6f} of {truth[0]:g}, phase {found[1]:.6f} of {truth[1]:g}")
    print(f"loss {loss:.3g}")
    return error if same else np.inf, np.abs(q - TRUTH).max()


if __name__ == "__main__":
    main()
