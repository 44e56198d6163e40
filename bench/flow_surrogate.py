#!/usr/bin/env python3
"""Errors of the linear surrogate next to a coarse simulation of equal cost and to extrapolations that cost nothing.

usage: flow_surrogate.py [--sizes 128,256] [--seeds N] [--out FILE.json]
       flow_surrogate.py --from FILE.json --costs --out FILE.json
       flow_surrogate.py --from FILE.json [--docs docs/flow.md] [--check]

Truth: McWilliams' decaying flow on n x n points with Smagorinsky's closure, nu = 1e-4, f32, after a spin-up of 1; then 100
frames 0.01 apart. The surrogate learns from the first 50 (codec v2 with 99 % of the enstrophy, all singular vectors) and
predicts the other 50. A coarse simulation starts from the last training frame, whose modes beyond those that the coarse
grid keeps are dropped; it has the same closure, with its own width, and the largest step that divides a frame and is stable
at the start (Heun's method: cfl times the largest kept k dx at most 1). Its 50 frames are brought to n x n by their Fourier
modes (exact interpolation) and compared there.

Costs are processor seconds of one thread on the CPU, medians of several measurements in turns: of the surrogate rollout and
decoding; of the coarse simulation restriction, all steps, its fields, and once more the surrogate's decoding in the place of
the interpolation, since both are the inverse transforms of the same 50 fields of n x n points (the NumPy interpolation of
this script takes longer). What the surrogate learnt from (50 frames of truth, encoding, learning) is not charged. The coarse
simulation of equal cost is the one with the most modes among those that cost at most what the surrogate with one delay does;
errors have no part in the choice.

Means with 95 % confidence intervals (Student's t over seeds); differences are paired by seed. Needs the Python module.
--costs measures the costs of a file again. --docs writes the tables between the marks of the document; --check says whether they are there already.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import tempfile
import time

import marked

# Student's t, two-sided 95 %, by degrees of freedom; the next lower entry where there is none.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 14: 2.145, 19: 2.093, 23: 2.069, 29: 2.045, 39: 2.023}
VISCOSITY, SPIN_UP, FRAME_TIME, TRAIN, HELD_OUT = 1e-4, 1.0, 0.01, 50, 50
LEADS = (1, 5, 10, 15, 25, 50)  # frames
# Points of the coarse grid along an axis, of n, and what keeps its products from aliasing.
CANDIDATES = [(share, dealias) for share in (1 / 4, 3 / 8, 1 / 2, 3 / 4) for dealias in ("two-thirds", "padded")][:-1]
SURROGATES = {"ridge": {}, "ridge, 4 delays": {"delays": 4}, "dmd": {"method": "dmd"}}
MARKS = "<!-- surrogate-cpu -->", "<!-- /surrogate-cpu -->"


def interval(values):
    """Mean and half of the 95 % confidence interval."""
    n, mean = len(values), sum(values) / len(values)
    return mean, T95[max(d for d in T95 if d <= n - 1)] * statistics.stdev(values) / math.sqrt(n)


def resampled(field, n):
    """The field's Fourier modes on n x n points; those that either grid has at its Nyquist number are dropped."""
    import numpy
    m = field.shape[-1]
    keep = min(m, n) // 2
    kept = numpy.fft.fft(numpy.fft.rfft(field)[..., :keep], axis=-2)
    spectrum = numpy.zeros((*field.shape[:-2], n, keep), kept.dtype)
    spectrum[..., :keep, :] = kept[..., :keep, :]
    spectrum[..., -keep + 1:, :] = kept[..., -keep + 1:, :]
    return numpy.fft.irfft(numpy.fft.ifft(spectrum, axis=-2), n) * (n / m) ** 2


def kept_modes(points, dealias):
    """The largest wavenumber of a grid along an axis."""
    return (points - 1) // 3 if dealias == "two-thirds" else points // 2 - 1


def lowest(field, kept):
    """The Fourier modes with both wavenumbers at most `kept`."""
    import numpy
    spectrum = numpy.fft.rfft2(field)
    n = field.shape[-1]
    beyond = numpy.abs(numpy.fft.fftfreq(n, 1 / n)) > kept
    spectrum[..., beyond, :] = 0
    spectrum[..., kept + 1:] = 0
    return numpy.fft.irfft2(spectrum, (n, n))


def errors(predicted, truth):
    """Relative L2 by frame."""
    import numpy
    return [float(numpy.linalg.norm(p.astype(float) - t) / numpy.linalg.norm(t.astype(float)))
            for p, t in zip(predicted, truth)]


def processor_seconds(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


class Study:
    def __init__(self, n):
        from lockstep import flow
        self.flow, self.n = flow, n
        self.stride = round(FRAME_TIME * n * 4)  # of the truth
        self.truth = self.simulation(n, FRAME_TIME / self.stride)
        self.coarse = {}  # by points, dealiasing and steps a frame

    def simulation(self, n, dt, dealias="two-thirds"):
        return self.flow.Simulation(n, viscosity=VISCOSITY, closure="smagorinsky", integrator="rk2", dt=dt, dealias=dealias,
                                    precision="f32", device="cpu")

    def frames(self, seed):
        import numpy
        self.truth.set_vorticity(self.flow.initial_field(self.n, "mcwilliams", seed=seed))
        self.truth.advance(round(SPIN_UP / FRAME_TIME) * self.stride)
        found = [self.truth.vorticity()[0]]
        while len(found) < TRAIN + HELD_OUT:
            found.append(self.truth.advance(self.stride).vorticity()[0])
        return numpy.array(found)

    def surrogates(self, frames, folder):
        """Predicted fields by name, those of the codec alone among them; functions that roll out, by name, and that decode."""
        flow, predicted, work = self.flow, {}, {}
        path = lambda name: os.path.join(folder, name)
        encoded = flow.encode(frames, share=0.99, device="cpu")
        encoded.write(path("z.npz"))
        held_out = flow.encode(frames[TRAIN:], share=0.99, device="cpu")
        for k, (name, options) in enumerate(SURROGATES.items()):
            flow.learn(path("z.npz"), path(f"m{k}.npz"), train_share=TRAIN / len(frames), device="cpu", **options)
            flow.rollout(path(f"m{k}.npz"), HELD_OUT, path(f"p{k}.npz"), device="cpu")
            predicted[name] = flow.read(path(f"p{k}.npz"), device="cpu").decode(device="cpu")
            model = flow.learn(encoded.latents(device="cpu"), train_share=TRAIN / len(frames), **options)
            work[name] = lambda model=model: model.rollout(HELD_OUT, device="cpu")
        predicted["codec alone"] = encoded.decode(device="cpu")[TRAIN:]
        return predicted, work, lambda: held_out.decode(device="cpu")

    def coarse_work(self, start, points, dealias):
        """A function that gives the coarse simulation's frames, and its steps a frame."""
        import numpy
        probe = self.simulation(points, FRAME_TIME, dealias).set_vorticity(resampled(start, points))
        substeps = math.ceil(probe.courant[0] * kept_modes(points, dealias) * 2 * math.pi / points)
        if (points, dealias, substeps) not in self.coarse:
            self.coarse[points, dealias, substeps] = self.simulation(points, FRAME_TIME / substeps, dealias)
        simulation = self.coarse[points, dealias, substeps]

        def work():
            simulation.set_vorticity(resampled(start, points))
            return numpy.array([simulation.advance(substeps).vorticity()[0] for _ in range(HELD_OUT)], numpy.float32)
        return work, substeps

    def grids(self):
        return {f"{round(share * self.n)}² {dealias}": (round(share * self.n), dealias) for share, dealias in CANDIDATES}

    def seed(self, seed):
        """Errors of one flow."""
        import numpy
        frames = self.frames(seed).astype(numpy.float64)
        held_out, last = frames[TRAIN:], frames[TRAIN - 1]
        with tempfile.TemporaryDirectory() as folder:
            predicted, _, _ = self.surrogates(frames.astype(numpy.float32), folder)
        steps = numpy.arange(1, HELD_OUT + 1)[:, None, None]
        before, first = frames[TRAIN - 2], frames[TRAIN - 3]
        predicted |= {"persistence": numpy.broadcast_to(last, held_out.shape), "linear": last + steps * (last - before),
                      "quadratic": last + steps * (1.5 * last - 2 * before + 0.5 * first)
                      + steps ** 2 * (0.5 * last - before + 0.5 * first)}
        substeps = {}
        for name, grid in self.grids().items():
            work, substeps[name] = self.coarse_work(last, *grid)
            predicted[name] = resampled(work(), self.n)
        found = {name: errors(p, held_out) for name, p in predicted.items()}
        shown = numpy.array(LEADS) - 1
        resolved = {}  # the same errors in the modes of each coarse grid alone
        for name, grid in self.grids().items():
            truth = lowest(held_out[shown], kept_modes(*grid))
            resolved[name] = {other: errors(lowest(predicted[other][shown], kept_modes(*grid)), truth)
                              for other in (*SURROGATES, "persistence", name)}
        return {"seed": seed, "turnover": 1 / float(numpy.sqrt((last ** 2).mean())), "substeps": substeps,
                "errors": {name: [e[k] for k in shown] for name, e in found.items()}, "resolved": resolved}

    def costs(self, repeats=7):
        """Seconds by name, of the flow of seed 1."""
        import numpy
        frames = self.frames(1)
        with tempfile.TemporaryDirectory() as folder:
            _, work, decode = self.surrogates(frames, folder)
        for name, grid in self.grids().items():
            work[name] = self.coarse_work(frames[TRAIN - 1].astype(numpy.float64), *grid)[0]
        work["decoding"] = decode
        spent = {name: [] for name in work}
        for again in range(repeats + 1):  # the first one compiles
            for name, w in work.items():
                spent[name] += [processor_seconds(w)] if again else []
        found = {name: statistics.median(values) for name, values in spent.items()}
        return {name: s + found["decoding"] * (name != "decoding") for name, s in found.items()}


def model_name():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def grid_of(name):
    return (int(name.split("²")[0]), name.split(" ")[1])


def equal_cost(cost):
    """The coarse simulation of equal cost, and all of them."""
    coarse = [name for name in cost if "²" in name]
    affordable = [name for name in coarse if cost[name] <= cost["ridge"]] or [min(coarse, key=cost.get)]
    return max(affordable, key=lambda name: kept_modes(*grid_of(name))), coarse


def pm(values):
    mean, half = interval(values)
    return f"{mean:.3f} ± {half:.3f}"


def table(n, rows, cost):
    equal, coarse = equal_cost(cost)
    leads = range(len(LEADS))
    turnover = statistics.mean(r["turnover"] for r in rows)
    at = lambda name, k: [r["errors"][name][k] for r in rows]
    resolved = lambda name, k: [r["resolved"][equal][name][k] for r in rows]
    best = min(SURROGATES, key=lambda s: sum(interval(at(s, k))[0] for k in leads))
    line = lambda label, spent, values: f"| {label} | {spent} | " + " | ".join(map(pm, values)) + " |"
    lines = [f"{n}², {len(rows)} seeds, turnover time {turnover:.3f} ({turnover / FRAME_TIME:.0f} frames).",
             f"Relative L2 after 1 to {LEADS[-1]} frames; a cost of 1 is {1e3 * cost['ridge']:.1f} ms for {HELD_OUT} frames, "
             f"{1e3 * cost['decoding']:.1f} ms of them decoding:", "",
             "| | cost | " + " | ".join(str(lead) for lead in LEADS) + " |", "|---" * (2 + len(LEADS)) + "|"]
    for name in [*SURROGATES, "codec alone", "persistence", "linear", "quadratic", *coarse]:
        label = f"**coarse, {name}**" if name == equal else f"coarse, {name}" if name in coarse else name
        spent = f"{cost[name] / cost['ridge']:.2f}" if name in cost else "–"
        lines.append(line(label, spent, [at(name, k) for k in leads]))
    lines += ["", f"Coarse simulation of equal cost ({equal}) less others, paired; and in how many seeds it is closer to the truth:",
              "", "| less | " + " | ".join(str(lead) for lead in LEADS) + " |", "|---" * (1 + len(LEADS)) + "|"]
    for where, values, other in (("", at, best), ("", at, "persistence"), (f", modes of {equal} alone", resolved, best),
                                 (f", modes of {equal} alone", resolved, "persistence")):
        difference = [[a - b for a, b in zip(values(equal, k), values(other, k))] for k in leads]
        lines.append(f"| {other}{where} | " + " | ".join(f"{pm(d)} ({sum(x < 0 for x in d)})" for d in difference) + " |")
    return lines + [""]


def document(result):
    lines = [f"{result['cpu']}, one thread, processor time; costs in units of the surrogate's (`ridge`).", ""]
    for n, rows in result["sizes"].items():
        lines += table(n, rows, result["costs"][n])
    return "\n".join(lines)


def stored(result):
    """The file's text: a line for each seed, numbers of six digits."""
    def rounded(value):
        if isinstance(value, dict):
            return {k: rounded(v) for k, v in value.items()}
        if isinstance(value, list):
            return [rounded(v) for v in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value
    head = rounded({k: v for k, v in result.items() if k != "sizes"})
    sizes = ",\n".join(f'"{n}": [\n' + ",\n".join(json.dumps(rounded(row)) for row in rows) + "\n]"
                       for n, rows in result["sizes"].items())
    return json.dumps(head)[:-1] + ', "sizes": {\n' + sizes + "\n}}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="128,256")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--out")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--docs")
    parser.add_argument("--check", action="store_true")
    a = parser.parse_args()
    result = json.loads(pathlib.Path(a.source).read_text()) if a.source else {
        "cpu": model_name(), "leads": LEADS, "frame_time": FRAME_TIME, "costs": {}, "sizes": {}}
    if a.costs or not a.source:
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # one thread
        result["cpu"] = model_name()
        for n in list(result["sizes"]) or a.sizes.split(","):
            study = Study(int(n))
            result["costs"][n] = study.costs()
            if not a.source:
                result["sizes"][n] = [study.seed(seed) for seed in range(1, a.seeds + 1)]
            if a.out:
                pathlib.Path(a.out).write_text(stored(result))
    text = document(result)
    if not a.docs:
        return print(text)
    marked.place(text, MARKS, a.docs, a.source, a.check)


if __name__ == "__main__":
    main()
