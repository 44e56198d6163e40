#!/usr/bin/env python3
"""Times of the Python module: import, launches, traced kernels, asarray, losses in PyTorch and JAX; one JSON object.

usage: python bench/python_module.py [--device cpu|cuda:0] [--cells 64] [--parts import,launch,trace,asarray,heat,torch,jax]
                                     [--peer] [--json FILE]

Each figure is the least, the median and the largest of several runs. A launch is next to that of the C++ case engine.launch
of the same run, the heat step next to engine.heat, the losses (cells^3, f32, gradients by all twelve arrays) next to the engine
alone; --peer adds the same loss written in torch, compiled by torch.compile, and in jax.
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time


def spread(values, digits=4):
    return {"min": round(min(values), digits), "median": round(statistics.median(values), digits), "max": round(max(values), digits)}


def repeated(work, runs, scale):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * scale)
    return spread(times)


def of_import(_):
    code = "import time; t = time.perf_counter(); import lockstep; print(time.perf_counter() - t)"
    all_of_it = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
                 for _ in range(7)]
    beyond = [float(subprocess.run([sys.executable, "-c", "import numpy; " + code], capture_output=True, text=True,
                                   check=True).stdout) for _ in range(7)]
    return {"import_s": spread(all_of_it), "import_after_numpy_s": spread(beyond)}


def of_launch(options):
    import lockstep as ls

    @ls.kernel
    def nothing(at, out: ls.Out[ls.u32, 1]):
        with ls.if_(at.x < -1):
            out[at] = 0

    device, count = ls.Device(options.device), 2000
    out = ls.zeros((1,), ls.u32, device)
    launch = nothing[device, 1]

    def launches():
        for _ in range(count):
            launch(out)
        device.synchronize()

    launches()
    python = repeated(launches, 9, 1e6 / count)
    rows = [row for _ in range(3) for row in ls.bench("engine.launch", device=device)]
    native = [1e3 * row["min_ms" if "min_ms" in row else "median_ms"] for row in rows]
    return {"launch_us": python, "cpp_launch_us": spread(native),
            "over_cpp_us": round(python["median"] - statistics.median(native), 3)}


def of_trace(options):
    import lockstep as ls
    device = ls.Device(options.device)
    now, nxt = ls.zeros((16, 16, 16), ls.f32, device), ls.zeros((16, 16, 16), ls.f32, device)
    traced, first, later = [], [], []
    for k in range(5):
        def body(at, t: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3], a: ls.f32):
            out[at] = ls.fma(a, t[at.x(+1)] + t[at.x(-1)] - (2 + k) * t[at], t[at])  # noqa: B023

        heat = ls.kernel(body)
        traced.append(heat)
        begin = time.perf_counter()
        heat.trace(now, nxt, 0.1, extent=(16, 16, 16))
        first.append(1e3 * (time.perf_counter() - begin))
    launch = traced[0][device, (16, 16, 16)]
    launch(now, nxt, 0.1)
    device.synchronize()
    for _ in range(9):
        begin = time.perf_counter()
        for _ in range(500):
            launch(now, nxt, 0.1)
        later.append(1e6 / 500 * (time.perf_counter() - begin))
        device.synchronize()
    return {"trace_ms": spread(first), "next_call_us": spread(later)}


def of_asarray(options):
    import numpy as np

    import lockstep as ls
    x = np.zeros(64, "f4")
    for _ in range(1000):
        ls.asarray(x, "cpu")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = repeated(lambda: [ls.asarray(x, "cpu") is None for _ in range(options.arrays // 10)], 10, 1e7 / options.arrays)
    return {"asarray_us": took, "arrays": options.arrays,
            "grown_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}


def of_heat(options):
    import numpy as np

    import lockstep as ls

    @ls.kernel
    def heat(at, t: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3], a: ls.f32):
        # The order in which GCC evaluates engine.heat, hence its IR (tests/python/test_kernels.py).
        zm, zp, ym, yp, xm, xp = (t[p] for p in (at.z(-1), at.z(+1), at.y(-1), at.y(+1), at.x(-1), at.x(+1)))
        total, here = xp + xm + yp + ym + zp + zm, t[at]
        out[at] = ls.fma(a, total - 6 * t[at], here)

    n = options.heat_cells
    now = np.random.default_rng(1).random((n, n, n), "f4")
    ratios, ours, native = [], [], []
    for _ in range(3):
        mine = ls.bench(heat, (now, np.zeros_like(now), 0.1), extent=now.shape, device=options.device)
        row, = [r for r in ls.bench("engine.heat", sizes=[f"{n}x{n}x{n}"], device=options.device) if r["case"] == "engine.heat"]
        ours.append(mine["median_ms"])
        native.append(row["median_ms"])
        ratios.append(ours[-1] / native[-1])
    return {"heat_cells": n, "heat_ms": spread(ours), "cpp_heat_ms": spread(native), "heat_over_cpp": spread(ratios)}


def fields_of(n, random):
    return [random((n, n, n)) for _ in range(3)] + [random((3, n, n, n)) for _ in range(3)]


def of_torch(options):
    import torch

    import lockstep.torch as hooks
    where = "cuda" if options.device.startswith("cuda") else "cpu"
    n = options.cells
    given = [t.to(where).requires_grad_() for t in fields_of(n, lambda s: torch.randn(s))]
    evaluate = hooks.transport_loss(spacing=(1 / n,) * 3, dt=1e-3)
    wait = torch.cuda.synchronize if where == "cuda" else lambda: None
    count = 20 if where == "cuda" else 3

    def step(function):
        for t in given:
            t.grad = None
        function(*given).backward()

    def steps(function):
        for _ in range(count):
            step(function)
        wait()

    steps(evaluate)
    found = {"cells": n, "torch": torch.__version__, "torch_ms": repeated(lambda: steps(evaluate), 7, 1e3 / count)}
    host = []
    for _ in range(7):  # what the host does meanwhile
        wait()
        begin = time.perf_counter()
        step(evaluate)
        host.append(1e3 * (time.perf_counter() - begin))
    wait()
    found["torch_host_ms"] = spread(host)
    small = [t.to(where).requires_grad_() for t in fields_of(8, lambda s: torch.randn(s))]
    little = hooks.transport_loss(spacing=(1 / 8,) * 3, dt=1e-3)

    def calls():
        for _ in range(200):
            torch.autograd.grad(little(*small), small)
        wait()

    calls()
    found["torch_small_us"] = repeated(calls, 5, 1e6 / 200)
    if options.peer:
        other = torch.compile(transport_in(lambda f, by, axis: torch.roll(f, by, axis), 1 / n, 1e-3))
        begin = time.perf_counter()
        steps(other)
        found["torch_compile_first_s"] = round(time.perf_counter() - begin, 1)
        found["torch_compile_ms"] = repeated(lambda: steps(other), 7, 1e3 / count)
    return found


def transport_in(roll, h, dt):
    """The transport loss by another framework's roll."""
    def evaluate(s0, s1, s2, u0, u1, u2):
        def d(f, axis):
            return (roll(f, -1, -1 - axis) - roll(f, 1, -1 - axis)) / (2 * h)

        rs = (s2 - s0) / (2 * dt) + sum(u1[a] * d(s1, a) + s1 * d(u1[a], a) for a in range(3))
        ru = [(u2[c] - u0[c]) / (2 * dt) + sum(u1[a] * d(u1[c], a) for a in range(3)) for c in range(3)]
        return (rs ** 2).mean() + sum((r ** 2).mean() for r in ru)

    return evaluate


def of_jax(options):
    import jax
    import numpy as np

    import lockstep.jax as hooks
    from lockstep import pde
    n = options.cells
    rng = np.random.default_rng(1)
    given = [jax.device_put(a) for a in fields_of(n, lambda s: rng.standard_normal(s, "f4"))]
    loss = pde.Loss(pde.transport(3), pde.Mesh((n, n, n), 1 / n, 1e-3))
    function = jax.jit(jax.value_and_grad(lambda *a: hooks.pde_loss(loss, *a), argnums=tuple(range(6))))
    count = 20 if options.device.startswith("cuda") else 3

    def steps(function):
        for _ in range(count):
            value = function(*given)
        jax.block_until_ready(value)

    steps(function)
    found = {"cells": n, "jax": jax.__version__, "jax_ms": repeated(lambda: steps(function), 7, 1e3 / count)}
    if options.peer:
        other = jax.jit(jax.value_and_grad(transport_in(jax.numpy.roll, 1 / n, 1e-3), argnums=tuple(range(6))))
        steps(other)
        found["jax_jit_ms"] = repeated(lambda: steps(other), 7, 1e3 / count)
    return found


PARTS = {"import": of_import, "launch": of_launch, "trace": of_trace, "asarray": of_asarray, "heat": of_heat, "torch": of_torch,
         "jax": of_jax}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--heat-cells", type=int, default=256)
    parser.add_argument("--arrays", type=int, default=100_000)
    parser.add_argument("--parts", default="import,launch,trace,asarray")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"parts {', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}")
    found = {"device": options.device, "python": sys.version.split()[0]}
    for part in options.parts.split(","):
        found.update(PARTS[part](options))
        print(json.dumps(found), file=sys.stderr, flush=True)
    text = json.dumps(found, indent=1)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
