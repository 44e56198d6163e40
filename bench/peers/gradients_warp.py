"""Gradients through loops, updates in place and counters: of lockstep, of Warp (PyPI warp-lang, on the CPU), and exact.

    PYTHONPATH=build/python python bench/peers/gradients_warp.py [--out FILE]
    python bench/peers/gradients_warp.py --from bench/results/gradients-warp-cpu.json --docs docs/gradients.md [--check]

Prints one row for each point of each kernel. Exits with 1 where lockstep differs from the closed form. --docs writes the table of
stored results between its marks, --check compares it.
"""
import argparse
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import marked  # noqa: E402

MARKS = "<!-- gradients-warp-cpu -->", "<!-- /gradients-warp-cpu -->"


def kernels_here():
    import lockstep as ls

    @ls.kernel
    def nested(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f64, 1]):
        v = ls.var(0 * x[at] + 1)
        for i in ls.for_(n[at]):
            for _ in ls.for_(i + 1):
                v.set(v * x[at])
        y[at] = +v

    @ls.kernel
    def update(at, x: ls.InOut[ls.f64, 1]):
        x[at] = x[at] * x[at]

    @ls.kernel
    def overwritten(at, x: ls.InOut[ls.f64, 1], y: ls.Out[ls.f64, 1]):
        y[at] = x[at] * x[at]
        x[at] = 3 * x[at]

    @ls.kernel
    def accumulated(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 1], y: ls.InOut[ls.f64, 1]):
        for _ in ls.for_(n[at]):
            y[at] = y[at] * x[at] + x[at]

    @ls.kernel
    def halving(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
        v = ls.var(x[at])
        with ls.while_(lambda: v > 1):
            v.set(0.5 * v)
        y[at] = v * v

    @ls.kernel
    def leaving(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f64, 1]):
        v = ls.var(x[at])
        for _ in ls.for_(n[at]):
            with ls.if_(v > 4):
                ls.break_()
            v.set(v * v)
        y[at] = +v

    @ls.kernel
    def slots(at, x: ls.Grid[ls.f64, 1], count: ls.InOut[ls.i32, 1], y: ls.Out[ls.f64, 1]):
        y[count.atomic_add(0, 1)] = x[at] * x[at]

    return locals()


def kernels_of_warp():
    import warp as wp
    F64, I32 = wp.array(dtype=wp.float64), wp.array(dtype=wp.int32)

    @wp.kernel
    def nested(x: F64, n: I32, y: F64):
        i = wp.tid()
        v = wp.float64(1.0)
        for a in range(n[i]):
            for b in range(a + 1):
                v = v * x[i]
        y[i] = v

    @wp.kernel
    def update(x: F64):
        i = wp.tid()
        x[i] = x[i] * x[i]

    @wp.kernel
    def overwritten(x: F64, y: F64):
        i = wp.tid()
        y[i] = x[i] * x[i]
        x[i] = wp.float64(3.0) * x[i]

    @wp.kernel
    def accumulated(x: F64, n: I32, y: F64):
        i = wp.tid()
        for a in range(n[i]):
            y[i] = y[i] * x[i] + x[i]

    @wp.kernel
    def halving(x: F64, y: F64):
        i = wp.tid()
        v = x[i]
        while v > wp.float64(1.0):
            v = v * wp.float64(0.5)
        y[i] = v * v

    @wp.kernel
    def leaving(x: F64, n: I32, y: F64):
        i = wp.tid()
        v = x[i]
        for a in range(n[i]):
            if v > wp.float64(4.0):
                break
            v = v * v
        y[i] = v

    @wp.kernel
    def slots(x: F64, count: I32, y: F64):
        i = wp.tid()
        y[wp.atomic_add(count, 0, 1)] = x[i] * x[i]

    return locals()


def horner(x, n):
    """The derivative of x + x^2 + … + x^n."""
    return sum(k * x ** (k - 1) for k in range(1, n + 1))


def halvings(x):
    count = 0
    while x / 2 ** count > 1:
        count += 1
    return count


# (what, kernel, points, whole numbers by point or None, the exact derivative of the sum of all that is written)
CASES = [
    ("nested loops", "nested", [1.1, 0.9, 1.3, 0.7], [0, 1, 2, 3],
     lambda x, n: n * (n + 1) / 2 * x ** (n * (n + 1) / 2 - 1)),
    ("update in place", "update", [0.3, 2.0], None, lambda x, _: 2 * x),
    ("read, then written", "overwritten", [0.3, 2.0], None, lambda x, _: 2 * x + 3),
    ("accumulated in memory", "accumulated", [1.1, 0.9, 1.3], [1, 2, 3], horner),
    ("while", "halving", [0.7, 3.0, 17.0], None, lambda x, _: 2 * x / 4.0 ** halvings(x)),
    ("break", "leaving", [1.5, 3.0], [5, 5], lambda x, _: 4 * x ** 3 if x == 1.5 else 2 * x),
    ("slots of a counter", "slots", [0.3, 2.0], [0], lambda x, _: 2 * x),
]


def of_warp(name, kernel, x, n):
    import numpy as np
    import warp as wp
    own = wp.array(x, dtype=wp.float64, requires_grad=True, device="cpu")
    counts = [] if n is None else [wp.array(n, dtype=wp.int32, device="cpu")]
    # Twice as long as it is written, so that a counter that continues counts within it.
    results = [] if name == "update" else [wp.zeros(2 * len(x), dtype=wp.float64, requires_grad=True, device="cpu")]
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=len(x), inputs=[own, *counts, *results], device="cpu")
    seeds = {a: wp.array(np.arange(len(a)) < len(x), dtype=wp.float64, device="cpu") for a in results}
    if name in ("update", "overwritten"):
        seeds[own] = wp.array(np.ones(len(x)), dtype=wp.float64, device="cpu")
    tape.backward(grads=seeds)
    return [float(g) for g in own.grad.numpy()]


def of_lockstep(name, kernel, x, n):
    import lockstep as ls
    import numpy as np
    named = {"x": np.array(x)}
    if n is not None:
        named["count" if name == "slots" else "n"] = np.array(n, np.int32)
    if name == "accumulated":
        named["y"] = np.zeros(len(x))
    for output in {"update": "x", "overwritten": "xy"}.get(name, "y"):
        named[output + "_cotangent"] = np.ones(len(x))
    try:
        return [float(g) for g in ls.grad(kernel, inputs=("x",))["cpu", len(x)](**named)["x"].numpy()]
    except ls.InputError as error:
        if name != "slots" or "old value of an atomic operation" not in str(error):
            raise
        return ["refused"] * len(x)


def measured():
    import warp as wp
    wp.config.quiet = True
    here, there, rows = kernels_here(), kernels_of_warp(), []
    for what, name, x, n, exact in CASES:
        by_point = n if n is not None and len(n) == len(x) else [None] * len(x)
        found, theirs = of_lockstep(name, here[name], x, n), of_warp(name, there[name], x, n)
        for at, count, ours, other in zip(x, by_point, found, theirs):
            rows.append({"kernel": what, "x": at, "exact": exact(at, count), "lockstep": ours, "warp": other})
    return {"warp": wp.__version__, "device": "cpu", "command": "bench/peers/gradients_warp.py", "rows": rows}


def is_exact(row, system):
    return row[system] != "refused" and abs(row[system] - row["exact"]) <= 1e-13 * abs(row["exact"])


def table(result):
    def text(v):
        return v if isinstance(v, str) else f"{v:.9g}"
    lines = [f"| kernel | x | exact | Lockstep | Warp {result['warp']} |", "|---|---|---|---|---|"]
    for row in result["rows"]:
        theirs = text(row["warp"]) if is_exact(row, "warp") else f"**{text(row['warp'])}**"
        lines.append(f"| {row['kernel']} | {row['x']:g} | {text(row['exact'])} | {text(row['lockstep'])} | {theirs} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    result = json.loads(options.source.read_text()) if options.source else measured()
    if options.out:
        rows = ",\n".join("  " + json.dumps(row) for row in result["rows"])
        head = json.dumps({k: v for k, v in result.items() if k != "rows"})
        options.out.write_text(head[:-1] + ', "rows": [\n' + rows + "\n]}\n")
    text = table(result)
    if not options.docs:
        print(text)
    else:
        marked.place(text + "\n", MARKS, options.docs, options.source, options.check)
    return 1 if any(row["lockstep"] != "refused" and not is_exact(row, "lockstep") for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
