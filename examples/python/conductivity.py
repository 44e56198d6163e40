"""Finds the conductivity of a plate from pictures of its temperature.

    python examples/python/conductivity.py [--size 24] [--steps 10] [--iterations 400] [--device cpu]

The heat equation in steps, its gradient by lockstep.grad, Adam on the logarithm of the conductivity. Prints the loss, the
conductivity as a picture and its largest error.
"""
import argparse

import numpy as np

import lockstep as ls


@ls.kernel
def heat(at, t: ls.Grid[ls.f64, 2], q: ls.Grid[ls.f64, 2], out: ls.Out[ls.f64, 2]):
    """Heat flows between neighbours by the mean of their conductivities exp(q)."""
    def flux(to):
        return (ls.exp(q[at]) + ls.exp(q[to])) * (t[to] - t[at])

    out[at] = t[at] + 0.05 * (flux(at.x(+1)) + flux(at.x(-1)) + flux(at.y(+1)) + flux(at.y(-1)))


def run(device, start, q, steps):
    states = [start]
    for _ in range(steps):
        states.append(ls.empty(start.shape, ls.f64, device))
        heat[device, start.shape](states[-2], q, states[-1])
    return states


def loss_of(device, start, q, seen):
    """Half the squared distance to the pictures, and its gradient by q."""
    states, slope = run(device, start, q, len(seen)), ls.grad(heat)
    seed, gradient, loss = np.zeros(start.shape), np.zeros(start.shape), 0.0
    for n in range(len(seen), 0, -1):
        miss = states[n].numpy() - seen[n - 1]
        loss += 0.5 * float((miss * miss).sum())
        found = slope[device, start.shape](t=states[n - 1], q=q, out_cotangent=ls.asarray(seed + miss, device, copy=None))
        gradient += found["q"].numpy()
        seed = found["t"].numpy().copy()
    return loss, gradient


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device, n = ls.Device(options.device), options.size
    y, x = np.mgrid[:n, :n]
    start = ls.asarray(np.random.default_rng(1).random((n, n)), device, copy=True)
    truth = np.where(np.hypot(y - 0.42 * n, x - 0.54 * n) < n / 4, 0.7, 0.0)
    upload = lambda values: ls.asarray(np.ascontiguousarray(values), device, copy=True)
    seen = [s.numpy().copy() for s in run(device, start, upload(truth), options.steps)[1:]]
    q, first, second = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for k in range(1, options.iterations + 1):
        loss, slope = loss_of(device, start, upload(q), seen)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope ** 2
        q -= 0.05 * (first / (1 - 0.9 ** k)) / (np.sqrt(second / (1 - 0.99 ** k)) + 1e-12)
    for row in q[::2]:
        print("".join(" .:-=+*#"[int(np.clip(v * 10, 0, 7))] for v in row))
    worst = np.abs(np.expm1(q - truth)).max()
    print(f"loss {loss:.3g}, conductivity within {100 * worst:.2g} % everywhere")
    return worst


if __name__ == "__main__":
    main()
