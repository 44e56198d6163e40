#!/usr/bin/env python3
"""What jumps in weight space gain in PyTorch, on language models and XOR, against every control.

usage: forecast_torch.py --task charlm-transformer|charlm-gru|gpt2-small|xor --out FILE.json [--data DIR] [--budget SECONDS]
       forecast_torch.py --picture FILE.json [FILE.json ...] --out PICTURE.png

The steps of forecast_training.py: constant rate, a target that plain training reaches at the end, steps and seconds of
each trainer to it; plain training along cosines with the rate tuned for shorter budgets; every trainer at half of the
steps with that rate. Seconds are wall clock of the training loop with all that trainers do and without evaluations; plain
training is the bare loop, which never waits for a loss. The number of steps is what fits into the budget. FILE.json is
written after each run, and a command that finds it continues from there.
"""
import argparse
import json
import math
import os
import sys
import time

import torch

import forecast_problems as problems
from forecast_training import interval, pm
from lockstep._errors import InputError
from lockstep.forecast.torch import PredictiveTrainer

TRAINERS = {"plain": None, **{f"jumps-{rule}": dict(moments=rule) for rule in ("keep", "decay", "reset")},
            **{control: dict(control=control) for control in ("zero", "random", "lr", "ema", "lawa")}}
TRAINERS["ema"]["ema_decay"] = 0.95
TRAINERS.update({f"mlp-{rule}": dict(moments=rule, directions="mlp") for rule in ("keep", "reset")})
SHARES, FACTORS = (0.25, 0.5, 0.75), (1, 2, 4, 8)


def time_jump(trainer, problem, rounds=9):
    """Median milliseconds of a snapshot, a fit of five of them and a move."""
    def timed(work):
        seconds = []
        for _ in range(rounds):
            problem.synchronise()
            begin = time.perf_counter()
            work()
            problem.synchronise()
            seconds.append(time.perf_counter() - begin)
        return 1e3 * sorted(seconds)[rounds // 2]

    with torch.no_grad():
        for _ in range(5):
            for p in problem.parameters:
                p.add_(1e-3 * torch.randn_like(p))
            trainer._path.push()
        found = {"fit": timed(trainer._fit), "move": timed(lambda: trainer._move(4.0))}
        found["restore"] = timed(trainer._path.restore_newest)
        found["snapshot"] = timed(trainer._path.push)
        found["anchor"] = timed(trainer._keep_anchor)
    return found


class Bench:
    def __init__(self, arguments):
        self.a = arguments
        self.begin = time.perf_counter()
        self.problem = problems.problem_of(arguments.task, arguments)
        spec, self.trainers = self.problem.spec, self._trainers()
        spec["spacing"] = arguments.spacing or spec["spacing"]
        self.found = {"settings": {k: spec[k] for k in sorted(spec)}, "parameters": self.problem.count,
                      "tokens": self.problem.words, "device": self._device(), "torch": torch.__version__,
                      "graphs": self.problem.graphs is not None, "seeds": arguments.seeds,
                      "tuning_seeds": arguments.tuning_seeds, "budget": arguments.budget}
        self.runs, self.steps, self.seconds_before = {}, 0, 0.0
        if os.path.exists(arguments.out):
            with open(arguments.out, encoding="utf-8") as file:
                kept = json.load(file)
            for name in ("settings", "tokens", "device", "seeds", "tuning_seeds"):
                if kept.get(name) != self.found[name]:
                    sys.exit(f"forecast_torch.py: {arguments.out} holds runs of {name} {kept.get(name)}, not "
                             f"{self.found[name]}")
            self.runs, self.steps, self.seconds_before = kept["runs"], kept["steps"], kept["seconds"]
            self.prepare()
            self.found.update({k: kept[k] for k in ("step_seconds", "jump_milliseconds") if k in kept})
        else:
            self.prepare()
            self.steps = self._steps()
        self.found["steps"] = self.steps

    def prepare(self):
        """A few jumps that no run counts, so that no trainer's first one loads the device's code; and what the parts of a
        jump take on GPT-2."""
        problem = self.problem
        for name in self.trainers:
            problem.initialise(0)
            trainer = self._trainer(name, self._optimizer(1e-6), spacing=1, warm_up=1, correct=1, horizons=(1,))
            for _ in range(12 if trainer else 0):
                trainer.step(problem.gradient)
        if self.a.task == "gpt2-small":
            trainer = PredictiveTrainer(problem.parameters, self._optimizer(1e-6), problem.held_out, bf16_snapshots=True)
            self.found["jump_milliseconds"] = time_jump(trainer, problem)

    def _trainers(self):
        if self.a.controls == "all":
            return TRAINERS
        chosen = ["plain", *self.a.controls.split(",")]
        unknown = [name for name in chosen if name not in TRAINERS]
        if unknown:
            sys.exit(f"forecast_torch.py: controls {unknown}, expected all or some of {list(TRAINERS)}")
        return {name: TRAINERS[name] for name in chosen}

    def _device(self):
        return torch.cuda.get_device_name() if self.problem.device.type == "cuda" else "cpu"

    def _steps(self):
        """As many as fit into the budget, a multiple of 40."""
        problem = self.problem
        problem.initialise(0)
        optimizer = self._optimizer(0.0)
        problem.gradient(), optimizer.step()
        problem.synchronise()
        begin = time.perf_counter()
        for _ in range(10):
            problem.gradient(), optimizer.step()
        problem.synchronise()
        step = (time.perf_counter() - begin) / 10
        self.found["step_seconds"] = step
        runs = 1.5 * len(self.trainers) * self.a.seeds + sum(SHARES) * len(FACTORS) * self.a.tuning_seeds
        # A third goes to overheads and evaluations.
        fits = int(0.66 * self.a.budget / (step * runs)) // 40 * 40
        return max(40, min(fits, problem.spec["steps"]))

    def _optimizer(self, rate):
        spec = self.problem.spec
        return torch.optim.AdamW(self.problem.parameters, lr=rate, betas=(0.9, 0.95 if spec["clip"] else 0.999),
                                 weight_decay=spec["weight_decay"], fused=self.problem.device.type == "cuda")

    def _trainer(self, name, optimizer, **changes):
        spec, options = self.problem.spec, self.trainers[name]
        if options is None:
            return None
        p = spec["spacing"]
        held_windows = spec["held"] * spec["batch"]
        return PredictiveTrainer(self.problem.parameters, optimizer, self.problem.held_out, **{**dict(
            snapshots=5, spacing=p, warm_up=spec.get("warm_up") or max(self.steps // 6, spec["lr_warm_up"] + 5), correct=p,
            horizons=(p, 2 * p, 4 * p, 8 * p), held_out_cost=held_windows / spec["batch"] / 3,
            bf16_snapshots=spec["bf16"]), **options, **changes})

    def _rate(self, step, steps, rate, cosine):
        rate *= min(1.0, (step + 1) / max(self.problem.spec["lr_warm_up"], 1))
        return rate * (0.05 + 0.95 * (1 + math.cos(math.pi * step / steps)) / 2) if cosine else rate

    def train(self, name, seed, steps, rate, cosine, every):
        """{curve: [[step, validation loss, seconds, overhead in steps], ...], ...}; a run that was done is not repeated."""
        key = f"{name}|{seed}|{steps}|{rate:g}|{'cosine' if cosine else 'constant'}|{every}"
        if key in self.runs:
            return self.runs[key]
        if time.perf_counter() - self.begin > 1.5 * self.a.budget:
            raise TimeoutError
        problem = self.problem
        problem.initialise(seed)
        optimizer, batches = self._optimizer(rate), problem.batches(seed, steps)
        trainer = self._trainer(name, optimizer)
        curve, seconds, diverged = [], 0.0, None
        problem.synchronise()
        begin = time.perf_counter()
        try:
            for step in range(steps):
                for group in optimizer.param_groups:
                    group["lr"] = self._rate(step, steps, rate, cosine)
                problem.starts.copy_(batches[step])
                if trainer is None:
                    problem.gradient()
                    optimizer.step()
                else:
                    trainer.step(problem.gradient)
                if (step + 1) % every == 0 or step + 1 == steps:
                    problem.synchronise()
                    seconds += time.perf_counter() - begin
                    curve.append([step + 1, self._validate(trainer), seconds, trainer.totals.overhead_steps if trainer else 0.0])
                    begin = time.perf_counter()
        except InputError as error:
            diverged = str(error)
        totals = vars(trainer.totals) if trainer else {}
        last = curve[-1][1] if curve and not diverged else math.log(problem.spec["vocabulary"])
        run = {"curve": curve, "val_loss": last if math.isfinite(last) else math.log(problem.spec["vocabulary"]),
               "seconds": seconds, "diverged": diverged, **{k: v for k, v in totals.items() if k != "steps"}}
        self.runs[key] = run
        self.write()
        return run

    def _validate(self, trainer):
        if trainer is None:
            return self.problem.validate()
        with trainer.evaluating():
            return self.problem.validate()

    # ── the three parts ──

    def constant(self):
        spec, every = self.problem.spec, max(self.steps // 40, 1)
        runs = {name: [] for name in self.trainers}
        for seed in range(self.a.seeds):
            for name in self.trainers:
                runs[name].append(self.train(name, seed, self.steps, spec["rate"], False, every))
        target = interval([r["val_loss"] for r in runs["plain"]])[0]
        rows = []
        for name, of_seeds in runs.items():
            hits = [next((p for p in r["curve"] if p[1] <= target), None) for r in of_seeds]
            ends = [[self.steps, None, r["seconds"], r.get("overhead_steps", 0.0)] if hit is None else hit
                    for hit, r in zip(hits, of_seeds)]
            row = {"trainer": name, "missed": hits.count(None), "steps_to_target": interval([e[0] for e in ends]),
                   "with_overhead": interval([e[0] + e[3] for e in ends]), "seconds_to_target": interval([e[2] for e in ends]),
                   "final_val_loss": interval([r["val_loss"] for r in of_seeds]),
                   "diverged": sum(r["diverged"] is not None for r in of_seeds)}
            for part in ("jumps", "accepted", "gain_steps", "overhead_steps", "overhead_seconds", "rollbacks"):
                row[part] = interval([r.get(part, 0.0) for r in of_seeds])[0]
            row["seconds"] = interval([r["seconds"] for r in of_seeds])
            rows.append(row)
        return target, rows

    def tuned(self, target):
        rows = []
        for share in sorted(SHARES, key=lambda s: s != 0.5):  # the half first: what follows needs it
            budget, best = int(self.steps * share), None
            for factor in FACTORS:
                rate = self.problem.spec["rate"] * factor
                runs = [self.train("plain", s, budget, rate, True, budget) for s in range(self.a.tuning_seeds)]
                loss = interval([r["val_loss"] for r in runs])
                if best is None or loss[0] < best["val_loss"][0]:
                    best = {"budget": budget, "share": share, "rate": rate, "val_loss": loss, "reaches": loss[0] <= target,
                            "seconds": interval([r["seconds"] for r in runs])}
            rows.append(best)
        return sorted(rows, key=lambda r: r["budget"])

    def decayed(self, rate):
        budget, rows, plain = self.steps // 2, [], None
        for name in self.trainers:
            runs = [self.train(name, seed, budget, rate, True, budget) for seed in range(self.a.seeds)]
            losses = [r["val_loss"] for r in runs]
            plain = plain or losses
            row = {"trainer": name, "val_loss": interval(losses), "seconds": interval([r["seconds"] for r in runs]),
                   "minus_plain": interval([a - b for a, b in zip(losses, plain)]),
                   "diverged": sum(r["diverged"] is not None for r in runs)}
            for part in ("jumps", "accepted", "overhead_steps", "overhead_seconds"):
                row[part] = interval([r.get(part, 0.0) for r in runs])[0]
            rows.append(row)
        return budget, rows

    def run(self):
        try:
            self.found["target"], self.found["constant"] = self.constant()
            self.found["tuned"] = self.tuned(self.found["target"])
            rate = next(r["rate"] for r in self.found["tuned"] if r["share"] == 0.5)
            self.found["decayed_rate"] = rate
            self.found["decayed_steps"], self.found["decayed"] = self.decayed(rate)
        except TimeoutError:
            print("forecast_torch.py: the budget is spent; the same command continues", file=sys.stderr)
        self.write()

    def write(self):
        spent = time.perf_counter() - self.begin + self.seconds_before
        command = f"bench/forecast_torch.py --task {self.a.task} --budget {self.a.budget:g} --seeds {self.a.seeds}" + \
            (f" --spacing {self.a.spacing}" if self.a.spacing else "") + \
            (f" --controls {self.a.controls}" if self.a.controls != "all" else "")
        head = json.dumps({"command": command, "task": self.a.task, **self.found, "seconds": spent}, indent=1, default=float)
        rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, default=float)}" for k, v in self.runs.items())
        with open(self.a.out + ".part", "w", encoding="utf-8") as file:
            file.write(f'{head[:-2]},\n "runs": {{\n{rows}\n }}\n}}\n')
        os.replace(self.a.out + ".part", self.a.out)


def markdown(found):
    lines = []
    if "constant" in found:
        lines += [f"{found['task']}, {found['parameters']} parameters, {found['device']}, constant rate "
                  f"{found['settings']['rate']:g}, {found['steps']} steps: to a validation loss of {found['target']:.4g}", "",
                  "| trainer | steps | with overhead | seconds | missed | loss at the end | jumps kept |", "|---|---|---|---|---|---|---|"]
        lines += [f"| {r['trainer']} | {pm(r['steps_to_target'])} | {pm(r['with_overhead'])} | {pm(r['seconds_to_target'], 3)} | "
                  f"{r['missed']} | {pm(r['final_val_loss'])} | {r['accepted']:.1f} of {r['jumps']:.1f} |" for r in found["constant"]]
    if "tuned" in found:
        lines += ["", "| steps, cosine | tuned rate | validation loss | reaches it | seconds |", "|---|---|---|---|---|"]
        lines += [f"| {r['budget']} | {r['rate']:g} | {pm(r['val_loss'])} | {'yes' if r['reaches'] else 'no'} | "
                  f"{pm(r['seconds'], 3)} |" for r in found["tuned"]]
    if "decayed" in found:
        lines += ["", f"| trainer, {found['decayed_steps']} steps, cosine, {found['decayed_rate']:g} | validation loss | minus plain | "
                  "seconds | jumps kept |", "|---|---|---|---|---|"]
        lines += [f"| {r['trainer']} | {pm(r['val_loss'])} | {pm(r['minus_plain'], 2)} | {pm(r['seconds'], 3)} | "
                  f"{r['accepted']:.1f} of {r['jumps']:.1f} |" for r in found["decayed"]]
    return "\n".join(lines) + "\n"


def draw(files, out):
    """Validation loss of the constant-rate runs by seconds: mean and range over seeds."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, len(files), figsize=(6 * len(files), 4.2), squeeze=False)
    for ax, file in zip(axes[0], files):
        with open(file, encoding="utf-8") as opened:
            found = json.load(opened)
        names = [r["trainer"] for r in found["constant"]]
        for k, name in enumerate(names):
            curves = [r["curve"] for key, r in found["runs"].items()
                      if key.startswith(name + "|") and "|constant|" in key and not r["diverged"]]
            if not curves:
                continue
            points = list(zip(*curves))
            seconds = [sum(p[2] for p in at) / len(at) for at in points]
            ax.plot(seconds, [sum(p[1] for p in at) / len(at) for at in points], color=f"C{k}" if k else "black", label=name,
                    linewidth=2 if k == 0 else 1.2)
            ax.fill_between(seconds, [min(p[1] for p in at) for at in points], [max(p[1] for p in at) for at in points],
                            color=f"C{k}" if k else "black", alpha=0.08, linewidth=0)
        ax.axhline(found["target"], color="grey", linestyle=":", linewidth=1)
        ax.set(title=f"{found['task']}, {found['seeds']} seeds, {found['device']}", xlabel="seconds of training, overhead and all",
               ylabel="validation loss", ylim=(0.97 * found["target"], 1.5 * found["target"]))
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=list(problems.SPECS))
    parser.add_argument("--data", default=".", help="folder of tinyshakespeare.txt")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget", type=float, default=120, help="seconds, from which the number of steps follows")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tuning-seeds", type=int, default=3)
    parser.add_argument("--controls", default="all", help="all, or names of trainers, by commas")
    parser.add_argument("--spacing", type=int, default=0, help="steps between snapshots; 0: the task's own")
    parser.add_argument("--tokens", choices=("bpe", "bytes"), default="bpe", help="of gpt2-small")
    parser.add_argument("--vocabulary", type=int, default=0, help="of the BPE; 0: as many as the network has")
    parser.add_argument("--text-bytes", type=int, default=24_000_000, help="of gpt2-small's Python sources")
    parser.add_argument("--eager", action="store_true", help="no CUDA graphs")
    parser.add_argument("--tiny", action="store_true", help="networks of a few thousand parameters")
    parser.add_argument("--picture", nargs="+", default=[], metavar="FILE.json")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    if arguments.picture:
        draw(arguments.picture, arguments.out)
        return
    if not arguments.task:
        parser.error("--task or --picture")
    # f32 is f32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    bench = Bench(arguments)
    bench.run()
    with open(arguments.out, encoding="utf-8") as file:
        print(markdown(json.load(file)))


if __name__ == "__main__":
    main()
