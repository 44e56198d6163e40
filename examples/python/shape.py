"""Finds a shape from one picture of it: a ray march through a soft solid, differentiated.

    python examples/python/shape.py [--size 32] [--iterations 120] [--device cpu]

The solid is a smooth union of two balls, the picture its light after absorption, dimmed with distance. Rays advance by the
distance to the surface, so the number of their steps depends on the shape. All rays read the same eight numbers; their
gradients are exact sums, with the same bits for any number of threads. Prints a derivative next to a central difference, the
shape next to the truth, and the picture.
"""
import argparse

import numpy as np

import lockstep as ls

SOFT, BLEND, LEAST, FAR = 0.08, 0.3, 0.05, 4.0
TRUTH = np.array([-0.45, 0.2, 1.8, 0.5, 0.5, -0.3, 2.4, 0.65])  # x, y, z, radius of each ball


@ls.kernel
def march(at, shape: ls.Grid[ls.f64, 1], light: ls.Out[ls.f64, 2]):
    def distance(x, y, z):
        ball = []
        for k in (0, 4):
            dx, dy, dz = x - shape[k], y - shape[k + 1], z - shape[k + 2]
            ball.append(ls.sqrt(dx * dx + dy * dy + dz * dz) - shape[k + 3])
        between = ls.sqrt((ball[0] - ball[1]) ** 2 + BLEND * BLEND)
        return 0.5 * (ball[0] + ball[1] - between)

    def of_pixel(i, n):
        return (ls.cast(ls.f64, i) + 0.5) * (2.4 / ls.cast(ls.f64, n)) - 1.2

    x, y = of_pixel(at.x, light.size(1)), of_pixel(at.y, light.size(0))
    z, passed, sum_ = ls.var(0.0, ls.f64), ls.var(1.0, ls.f64), ls.var(0.0, ls.f64)
    with ls.while_(lambda: z < FAR):
        d = distance(x, y, z)
        step = ls.max(0.7 * ls.abs(d), LEAST)
        density = 6.0 * ls.sigmoid(-d / SOFT)
        through = ls.exp(-density * step)
        sum_ += passed * (1 - through) * ls.exp(-0.5 * z)
        passed *= through
        z += step
    light[at] = +sum_


def picture_of(device, q, size):
    light = ls.empty((size, size), ls.f64, device)
    march[device, (size, size)](ls.asarray(q, device, copy=True), light)
    return light.numpy().copy()


def loss_of(device, q, seen):
    """Half the squared distance of the pictures, and its gradient by the shape."""
    miss = picture_of(device, q, len(seen)) - seen
    backward = ls.grad(march)[device, seen.shape]
    found = backward(shape=ls.asarray(q, device, copy=True), light_cotangent=ls.asarray(miss, device, copy=True))
    return 0.5 * (miss ** 2).sum(), found["shape"].numpy().copy()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=120)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    device = ls.Device(options.device)
    seen = picture_of(device, TRUTH, options.size)
    q = TRUTH + [0.2, -0.2, 0.3, -0.15, -0.2, 0.25, -0.3, 0.1]

    slope, step = loss_of(device, q, seen)[1], 1e-6 * np.eye(8)[3]
    difference = (loss_of(device, q + step, seen)[0] - loss_of(device, q - step, seen)[0]) / 2e-6
    error = abs(slope[3] / difference - 1)
    print(f"one component: gradient {slope[3]:.9g}, central difference {difference:.9g}")

    first, second = 0, 0
    for k in range(1, options.iterations + 1):
        loss, slope = loss_of(device, q, seen)
        first, second = 0.8 * first + 0.2 * slope, 0.95 * second + 0.05 * slope ** 2
        rate = 0.03 * (1 + np.cos(np.pi * k / options.iterations))
        q -= rate * (first / (1 - 0.8 ** k)) / (np.sqrt(second / (1 - 0.95 ** k)) + 1e-300)
    for row in picture_of(device, q, options.size)[::2]:
        print("".join(" .:-=+*#"[int(np.clip(v * 16, 0, 7))] for v in row))
    for name, found, truth in zip(("ball 1", "ball 2"), q.reshape(2, 4), TRUTH.reshape(2, 4)):
        print(name + ": x {:.4f} y {:.4f} z {:.4f} radius {:.4f}".format(*found) + " of {:.4f} {:.4f} {:.4f} {:.4f}".format(*truth))
    print(f"loss {loss:.3g}")
    return error, np.abs(q - TRUTH).max()


if __name__ == "__main__":
    main()
