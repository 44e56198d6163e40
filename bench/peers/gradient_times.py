"""Times of five kernels and of their gradients: lockstep, Warp, Taichi and torch.compile (PyPI warp-lang, taichi, torch).

    PYTHONPATH=build/python python bench/peers/gradient_times.py SYSTEM [--device cuda] [--threads 2] [--seconds 2] [--out FILE]
    python bench/peers/gradient_times.py --from bench/results/gradients-cpu.json --docs docs/gradients.md [--check]

SYSTEM is lockstep, fast (lockstep in fast numerics), warp, taichi or torch; --out adds its times to the file. Each time is the least
of the launches that fit into --seconds, each of which is waited for. Gradients are by x, for cotangents of 1, in f32. Warp's CPU
kernels use one thread. What each system computes is compared with closed forms or with float64 first.
"""
import argparse
import json
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import marked  # noqa: E402

PASSES = 20


class Sizes:
    """Points along a side of the heat step, and of the other kernels."""

    def __init__(self, device):
        self.device = device
        self.heat, self.gather, self.loops, self.pairs = (1024, 1 << 20, 1 << 18, 1024) if device == "cpu" else (8192, 1 << 24, 1 << 24, 1 << 14)

    def names(self):
        return {"heat": f"heat, {self.heat}²", "gather": f"index array, {self.gather:,}", "newton": f"{PASSES} Newton steps, {self.loops:,}",
                "nested": f"nested loops, {self.loops:,}", "pairs": f"all pairs of {self.pairs:,}"}


def inputs(sizes):
    import numpy as np
    rng = np.random.default_rng(1)
    real = lambda *shape: rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return {"heat": [real(sizes.heat, sizes.heat)], "gather": [real(sizes.gather), rng.integers(0, sizes.gather, sizes.gather).astype(np.int32)],
            "newton": [real(sizes.loops)], "nested": [real(sizes.loops), rng.integers(0, 5, sizes.loops).astype(np.int32)],
            "pairs": [real(sizes.pairs)]}


def expected(name, arrays):
    """Gradients in float64."""
    import numpy as np
    x = arrays[0].astype(np.float64)
    if name == "heat":  # a constant passes a clamped heat step unchanged
        return np.ones_like(x)
    if name == "gather":
        return 2 * x * np.bincount(arrays[1], minlength=len(x))
    if name == "newton":
        return 0.5 / np.sqrt(x)
    if name == "nested":
        p = arrays[1] * (arrays[1] + 1) / 2
        return p * x ** np.maximum(p - 1, 0)
    sums = []  # the sum over i and j of 1 / ((xj - xi)^2 + 0.1) has each pair twice
    for rows in np.array_split(x, max(1, len(x) // 1024)):
        d = x[None] - rows[:, None]
        sums.append((4 * d / (d * d + 0.1) ** 2).sum(1))
    return np.concatenate(sums)


def least(run, seconds):
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return {"ms": round(min(times) * 1e3, 4), "launches": len(times)}


def lockstep(threads, sizes, numerics="exact"):
    """{name: (forward, backward, gradient as an array)} of a system, and its version."""
    import lockstep as ls
    import numpy as np

    @ls.kernel
    def heat(at, x: ls.Grid[ls.f32, 2], y: ls.Out[ls.f32, 2]):
        y[at] = x[at] + 0.1 * (x[at.x(1)] + x[at.x(-1)] + x[at.y(1)] + x[at.y(-1)] - 4 * x[at])

    @ls.kernel
    def gather(at, x: ls.Grid[ls.f32, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f32, 1]):
        y[at] = x[n[at]] * x[n[at]]

    @ls.kernel
    def newton(at, x: ls.Grid[ls.f32, 1], y: ls.Out[ls.f32, 1]):
        v = ls.var(x[at])
        for _ in ls.for_(PASSES):
            v.set(0.5 * (v + x[at] / v))
        y[at] = +v

    @ls.kernel
    def nested(at, x: ls.Grid[ls.f32, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f32, 1]):
        v = ls.var(0 * x[at] + 1)
        for i in ls.for_(n[at]):
            for _ in ls.for_(i + 1):
                v.set(v * x[at])
        y[at] = +v

    @ls.kernel
    def pairs(at, x: ls.Grid[ls.f32, 1], y: ls.Out[ls.f32, 1]):
        total = ls.var(0.0)
        for j in ls.for_(x.size(0)):
            d = x[j] - x[at]
            total += 1 / (d * d + 0.1)
        y[at] = +total

    device, made = ls.Device(sizes.device, threads=threads if sizes.device == "cpu" else 0, numerics=numerics), {}
    waited = lambda launch, arrays, names: (launch(*arrays, **names), device.synchronize())
    for name, kernel in (("heat", heat), ("gather", gather), ("newton", newton), ("nested", nested), ("pairs", pairs)):
        own = [ls.asarray(a, device, copy=True) for a in inputs(sizes)[name]]
        shape = own[0].shape
        y, seed, result = ls.empty(shape, ls.f32, device), ls.asarray(np.ones(shape, np.float32), device, copy=True), ls.empty(shape, ls.f32, device)
        named = dict(zip("xn", own), y_cotangent=seed, x_gradient=result)
        forward, backward = kernel[device, shape], ls.grad(kernel, inputs=("x",))[device, shape]
        made[name] = (lambda f=forward, a=(*own, y): waited(f, a, {}), lambda b=backward, n=named: waited(b, (), n), result.numpy)
    return made, ls.__version__


def warp(threads, sizes):
    import warp as wp
    wp.config.quiet = True
    F32, F32_2, I32 = wp.array(dtype=float), wp.array2d(dtype=float), wp.array(dtype=int)
    SIDE, STEPS, COUNT = sizes.heat, PASSES, sizes.pairs

    @wp.kernel
    def heat(x: F32_2, y: F32_2):
        j, i = wp.tid()
        e, w, s, n = wp.min(i + 1, SIDE - 1), wp.max(i - 1, 0), wp.min(j + 1, SIDE - 1), wp.max(j - 1, 0)
        y[j, i] = x[j, i] + 0.1 * (x[j, e] + x[j, w] + x[s, i] + x[n, i] - 4.0 * x[j, i])

    @wp.kernel
    def gather(x: F32, n: I32, y: F32):
        i = wp.tid()
        y[i] = x[n[i]] * x[n[i]]

    @wp.kernel
    def newton(x: F32, y: F32):
        i = wp.tid()
        v = x[i]
        for _ in range(STEPS):
            v = 0.5 * (v + x[i] / v)
        y[i] = v

    @wp.kernel
    def nested(x: F32, n: I32, y: F32):
        i = wp.tid()
        v = float(1.0)
        for a in range(n[i]):
            for b in range(a + 1):
                v = v * x[i]
        y[i] = v

    @wp.kernel
    def pairs(x: F32, y: F32):
        i = wp.tid()
        total = float(0.0)
        for j in range(COUNT):
            d = x[j] - x[i]
            total += 1.0 / (d * d + 0.1)
        y[i] = total

    made = {}
    for name, kernel in (("heat", heat), ("gather", gather), ("newton", newton), ("nested", nested), ("pairs", pairs)):
        own = [wp.array(a, device=sizes.device) for a in inputs(sizes)[name]]
        y, seed, result = wp.zeros_like(own[0]), wp.full_like(own[0], 1.0), wp.zeros_like(own[0])
        shape, whole = own[0].shape, len(own) == 2

        def forward(k=kernel, d=shape, a=own, y=y):
            wp.launch(k, d, inputs=a, outputs=[y], device=sizes.device)
            wp.synchronize()

        def backward(k=kernel, d=shape, a=own, y=y, seed=seed, result=result, whole=whole):
            result.zero_()
            wp.launch(k, d, inputs=a, outputs=[y], adj_inputs=[result] + [None] * whole, adj_outputs=[seed], adjoint=True,
                      device=sizes.device)
            wp.synchronize()
        made[name] = (forward, backward, result.numpy)
    return made, wp.__version__


def taichi(threads, sizes):
    import taichi as ti
    ti.init(arch=ti.cpu if sizes.device == "cpu" else ti.cuda, cpu_max_num_threads=threads, offline_cache=False, log_level=ti.ERROR)
    made, given = {}, inputs(sizes)
    fields = {name: (ti.field(ti.f32, a[0].shape, needs_grad=True), ti.field(ti.f32, a[0].shape, needs_grad=True),
                     ti.field(ti.i32, a[0].shape)) for name, a in given.items()}
    hx, hy, _ = fields["heat"]
    gx, gy, gn = fields["gather"]
    nx, ny, _ = fields["newton"]
    lx, ly, ln = fields["nested"]
    px, py, _ = fields["pairs"]

    @ti.kernel
    def heat():
        for j, i in hx:
            e, w, s, n = ti.min(i + 1, sizes.heat - 1), ti.max(i - 1, 0), ti.min(j + 1, sizes.heat - 1), ti.max(j - 1, 0)
            hy[j, i] = hx[j, i] + 0.1 * (hx[j, e] + hx[j, w] + hx[s, i] + hx[n, i] - 4 * hx[j, i])

    @ti.kernel
    def gather():
        for i in gx:
            gy[i] = gx[gn[i]] * gx[gn[i]]

    @ti.kernel
    def newton():
        for i in nx:
            v = nx[i]
            for _ in ti.static(range(PASSES)):
                v = 0.5 * (v + nx[i] / v)
            ny[i] = v

    @ti.kernel
    def nested():
        for i in lx:
            v = 1.0
            for a in range(ln[i]):
                for b in range(a + 1):
                    v *= lx[i]
            ly[i] = v

    @ti.kernel
    def pairs():
        for i in px:
            for j in range(sizes.pairs):
                d = px[j] - px[i]
                py[i] += 1 / (d * d + 0.1)

    for name, kernel in (("heat", heat), ("gather", gather), ("newton", newton), ("nested", nested), ("pairs", pairs)):
        x, y, n = fields[name]
        x.from_numpy(given[name][0])
        if len(given[name]) == 2:
            n.from_numpy(given[name][1])
        kernel()

        def forward(k=kernel, y=y, clear=name == "pairs"):
            if clear:
                y.fill(0)
            k()
            ti.sync()

        def backward(k=kernel, x=x, y=y):
            x.grad.fill(0)
            y.grad.fill(1)
            k.grad()
            ti.sync()
        made[name] = (forward, backward, x.grad.to_numpy)
    return made, ".".join(map(str, ti.__version__))


def torch(threads, sizes):
    import torch as t
    t.set_num_threads(threads)
    wait = t.cuda.synchronize if sizes.device == "cuda" else lambda: None

    def heat(x):
        p = t.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        return x + 0.1 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - 4 * x)

    def newton(x):
        v = x
        for _ in range(PASSES):
            v = 0.5 * (v + x / v)
        return v

    def nested(x, n):
        v = t.ones_like(x)
        for a in range(4):
            for _ in range(a + 1):
                v = t.where(a < n, v * x, v)
        return v

    def pairs(x):
        d = x[None] - x[:, None]
        return (1 / (d * d + 0.1)).sum(1)

    made = {}
    for name, f in (("heat", heat), ("gather", lambda x, n: x[n] * x[n]), ("newton", newton), ("nested", nested), ("pairs", pairs)):
        own = [t.from_numpy(a).to(sizes.device) for a in inputs(sizes)[name]]
        own[1:] = [a.long() for a in own[1:]]
        compiled, leaf = t.compile(f), own[0].clone().requires_grad_()
        y, seed, found = compiled(leaf, *own[1:]), t.ones_like(own[0]), []

        def backward(y=y, leaf=leaf, seed=seed, found=found):
            found[:] = t.autograd.grad(y, leaf, seed, retain_graph=True)
            wait()

        def forward(f=compiled, a=own):
            with t.no_grad():
                f(*a)
            wait()
        made[name] = (forward, backward, lambda found=found: found[0].cpu().numpy())
    return made, t.__version__


def fast(threads, sizes):
    return lockstep(threads, sizes, "fast")


SYSTEMS = {"lockstep": lockstep, "fast": fast, "warp": warp, "taichi": taichi, "torch": torch}
TITLES = {"lockstep": "Lockstep", "fast": "Lockstep, fast numerics", "warp": "Warp", "taichi": "Taichi", "torch": "torch.compile"}


def measure(system, threads, seconds, sizes):
    import numpy as np
    made, version = SYSTEMS[system](threads, sizes)
    times = {}
    for name, (forward, backward, result) in made.items():
        exact = expected(name, inputs(sizes)[name])
        try:
            backward()
            apart = float(np.abs(result() - exact).max() / np.abs(exact).max())
            times[name] = {"forward": least(forward, seconds), "gradient": least(backward, seconds), "error": float(f"{apart:.2g}")}
        except Exception as error:  # noqa: BLE001
            times[name] = {"error": str(error).splitlines()[0][:120]}
        print(system, name, times[name], flush=True)
    return {"version": version, "times": times}


def table(result):
    systems = [s for s in SYSTEMS if s in result["systems"]]
    head = [f"{TITLES[s]} {'' if s in ('lockstep', 'fast') else result['systems'][s]['version']}".strip() for s in systems]
    lines = ["| kernel, ms forward / gradient | " + " | ".join(head) + " |", "|---" * (len(systems) + 1) + "|"]
    for name, text in Sizes(result["device"]).names().items():
        cells = []
        for system in systems:
            row = result["systems"][system]["times"][name]
            cells.append("–" if isinstance(row["error"], str) else f"{row['forward']['ms']:.3g} / {row['gradient']['ms']:.3g}" +
                         (" (wrong)" if row["error"] > 1e-3 else ""))
        lines.append(f"| {text} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", nargs="?", choices=SYSTEMS)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--machine", default="two cores (x86_64) that others used too: least of many launches")
    marked.add_options(parser)
    options = parser.parse_args()
    if options.system:
        found = measure(options.system, options.threads, options.seconds, Sizes(options.device))
        if options.out:
            result = json.loads(options.out.read_text()) if options.out.exists() else {"systems": {}}
            result.update(machine=options.machine, device=options.device, threads=options.threads, command="bench/peers/gradient_times.py")
            result["systems"][options.system] = found
            options.out.write_text(json.dumps(result, indent=1) + "\n")
    marked.place_stored(options, table)


if __name__ == "__main__":
    main()
