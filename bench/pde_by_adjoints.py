"""Gradients of the loss of a PDE residual, by lockstep.pde and by the adjoint of a kernel that states the same residual.

usage: pde_by_adjoints.py [N=96] [DEVICE=cpu] [REPEATS=9]

The residual is dt_forward(t) - 0.1 laplacian(t), periodic, f32, N^3 cells; the loss is the mean of its squares. The kernel writes r, scaled
so that its output is also the cotangent: a launch forward and one of the adjoint. Both ways run in turn in one process. Printed are JSON rows
with the least and the median processor time of both gradients, and how far the gradients are apart.
"""
import json
import sys
import time

import numpy as np

import lockstep as ls
from lockstep import pde

N = int(sys.argv[1]) if len(sys.argv) > 1 else 96
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
REPEATS = int(sys.argv[3]) if len(sys.argv) > 3 else 9
H, DT, NU = 0.1, 0.05, 0.1


@ls.kernel(differentiable=True)
def residual(at, a: ls.Grid[ls.f32, 3], b: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3]):
    p = a.periodic()
    around = p[at.x(+1)] + p[at.x(-1)] + p[at.y(+1)] + p[at.y(-1)] + p[at.z(+1)] + p[at.z(-1)]
    r = (b[at] - a[at]) * (1 / DT) - (around - 6 * a[at]) * (NU / (H * H))
    out[at] = r * (2 / N**3) ** 0.5


def main():
    random = np.random.default_rng(1)
    a, b = (random.random((N, N, N), dtype="f4") for _ in range(2))
    system = pde.System(3)
    t = system.field("t")
    system.residual("heat", system.dt_forward(t) - NU * system.laplacian(t))
    loss = pde.Loss(system, pde.Mesh((N, N, N), spacing=(H, H, H), dt=DT, boundary="periodic"))
    device = ls.Device(DEVICE)
    a, b = ls.asarray(a, device), ls.asarray(b, device)
    bound = loss.bind({"t": (None, a, b)}, device=device)
    gradient = ls.grad(residual)
    scaled, by_a, by_b = (ls.empty(a.shape, "f4", device) for _ in range(3))
    slope = gradient[device, a.shape]

    def by_pde():
        bound.run()
        return [bound.gradient("t", level) for level in (0, 1)]

    def by_adjoint():
        residual[device, a.shape](a, b, scaled)
        slope(a=a, b=b, out_cotangent=scaled, a_gradient=by_a, b_gradient=by_b)
        return [by_a, by_b]

    runs = {"pde": [], "adjoint": []}
    for _ in range(REPEATS + 1):
        for name, work in ("pde", by_pde), ("adjoint", by_adjoint):
            start = time.process_time()
            found = work()
            device.synchronize()
            runs[name].append((time.process_time() - start, found))
    for name, measured in runs.items():
        times = sorted(seconds for seconds, _ in measured[1:])
        print(json.dumps({"by": name, "cells": N**3, "device": DEVICE, "least_ms": round(1e3 * times[0], 3),
                          "median_ms": round(1e3 * times[len(times) // 2], 3)}))
    ours, theirs = (np.stack([np.asarray(g) for g in runs[name][-1][1]]) for name in ("pde", "adjoint"))
    print(json.dumps({"relative_l2": float(np.linalg.norm(ours - theirs) / np.linalg.norm(ours)), "equal_bits": bool((ours == theirs).all())}))


main()
