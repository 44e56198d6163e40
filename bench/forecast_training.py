#!/usr/bin/env python3
"""What jumps in weight space gain: steps and seconds to equal validation loss, against every control.

usage: forecast_training.py PROGRAM --data DIR [--tasks xor,mnist] [--seeds N] [--out FILE.json]
       forecast_training.py --from FILE.json [--docs docs/forecast-jumps.md] [--check]

1. Constant learning rate, as the literature on predicted weights trains: the target is the mean validation loss of plain
   training after all steps; how many steps does each trainer take to reach it? Overhead (held-out passes, fits) is added
   in gradient steps. Seeds that do not reach it count with all steps, which favours them; their number is reported.
2. Decay, tuned: plain training along a cosine to 5 %, over budgets of 1/4 to 3/4 of the steps, the rate chosen for each
   budget; the smallest budget whose mean loss is below the same target.
3. On top of that: every trainer at half of the steps, cosine, with the rate tuned for plain training at this budget.

Means with 95 % confidence intervals (Student's t over seeds). Jumps reset or halve Adam's moments, or keep them: each of these
rules has its own controls, jumps that move nothing and jumps in a random direction, and is compared with them seed by seed.
CPU seconds are of step 3: the program's, with its start, divided by the seeds; no evaluations between the first and the last step.
--docs writes the tables between the marks of the document; --check says whether they are there already.
"""
import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile

import marked

# Student's t, two-sided 95 %, by degrees of freedom; the next lower entry where there is none.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201,
       12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 24: 2.064, 29: 2.045, 39: 2.023}
TASKS = {"xor": dict(steps=240, every=5, rate=0.01, warm_up=20, spacing=5),
         "mnist": dict(steps=240, every=20, rate=1e-3, warm_up=40, spacing=5)}
RULES = ("keep", "decay", "reset")
TRAINERS = {"plain": ["--trainer", "plain"]}
for rule in RULES:
    TRAINERS[f"jumps, moments {rule}"] = ["--trainer", "predictive", "--moments", rule]
    for control in ("zero", "random"):
        TRAINERS[f"{control}, moments {rule}"] = ["--trainer", "predictive", "--control", control, "--moments", rule]
for control in ("lr", "ema", "lawa"):
    TRAINERS[f"control {control}"] = ["--trainer", "predictive", "--control", control]
TRAINERS["control ema"] += ["--ema-decay", "0.95"]
FACTORS = (2, 3)  # of the rate, from the start: the strongest simple alternative
MARKS = "<!-- predictive-cpu -->", "<!-- /predictive-cpu -->"


def interval(values):
    """Mean and half of the 95 % confidence interval, None of one value."""
    n, mean = len(values), sum(values) / len(values)
    if n < 2:
        return mean, None
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    return mean, T95[max(d for d in T95 if d <= n - 1)] * deviation / math.sqrt(n)


def matched(values):
    """What jumps change against zero and random jumps with the same rule for the moments, seed by seed."""
    return [{"rule": rule, "against": control,
             "difference": interval([a - b for a, b in zip(values[f"jumps, moments {rule}"], values[f"{control}, moments {rule}"])])}
            for rule in RULES for control in ("zero", "random")]


class Bench:
    def __init__(self, arguments):
        self.a = arguments

    @staticmethod
    def cpu_seconds():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def train(self, task, trainer, seeds, **options):
        """Runs of all seeds: result members, `curve` of (step, validation loss)."""
        spec = TASKS[task]
        with tempfile.TemporaryDirectory() as folder:
            command = [self.a.program, "forecast", "train", task, "--device", self.a.device, "--threads", "1", "--json",
                       "--quiet", "--seeds", str(seeds), "--out", folder, *TRAINERS[trainer]]
            if task != "xor":
                command += ["--data", self.a.data]
            if trainer != "plain":
                command += ["--warm-up", str(spec["warm_up"])]
                if trainer not in ("control lr", "control ema"):
                    command += ["--spacing", str(spec["spacing"])]
                if trainer not in ("control lr", "control ema", "control lawa"):
                    command += ["--correct", "5", "--horizons", "5,10,20,40"]
            for name, value in options.items():
                command += [f"--{name.replace('_', '-')}", str(value)]
            before = self.cpu_seconds()
            done = subprocess.run(command, capture_output=True, text=True)
            used = (self.cpu_seconds() - before) / seeds
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}\n{done.stderr}")
            runs = {r["seed"]: r for r in json.loads(done.stdout)["runs"]}
            for run in runs.values():
                run["curve"], run["cpu_seconds"] = [], used
            with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as log:
                for line in log:
                    row = json.loads(line)
                    if row.get("val_loss") is not None:
                        runs[row["seed"]]["curve"].append((row["step"], row["val_loss"]))
        return list(runs.values())

    def constant(self, task):
        spec, n = TASKS[task], self.a.seeds
        common = dict(steps=spec["steps"], schedule="constant", rate=spec["rate"], evaluate_every=spec["every"])
        runs = {name: self.train(task, name, n, **common) for name in TRAINERS}
        for factor in FACTORS:
            runs[f"plain, rate x {factor}"] = self.train(task, "plain", n, **common | {"rate": factor * spec["rate"]})
        target = interval([r["val_loss"] for r in runs["plain"]])[0]
        rows, costs = [], {}
        for name, all_runs in runs.items():
            steps, overhead, missed, best = [], [], 0, []
            for run in all_runs:
                hit = next((s for s, loss in run["curve"] if loss <= target), None)
                missed += hit is None
                reached = spec["steps"] if hit is None else hit
                # Overhead grows evenly with the steps.
                share = run.get("overhead_steps", 0.0) * reached / spec["steps"]
                steps.append(reached)
                overhead.append(reached + share)
                best.append(run["val_loss"])
            costs[name] = overhead
            rows.append({"trainer": name, "steps_to_target": interval(steps),
                         "cost_minus_plain": interval([a - b for a, b in zip(overhead, costs["plain"])]),
                         "with_overhead": interval(overhead), "missed": missed, "final_val_loss": interval(best),
                         "jumps": interval([r["jumps"] for r in all_runs])[0],
                         "accepted": interval([r["accepted"] for r in all_runs])[0],
                         "gain_steps": interval([r.get("gain_steps", 0.0) for r in all_runs])[0],
                         "rollbacks": sum(r.get("rollbacks", 0) for r in all_runs)})
        return target, rows, matched(costs)

    def tuned(self, task, target):
        spec = TASKS[task]
        rows, chosen = [], {}
        for share in (0.25, 0.375, 0.5, 0.75):
            budget = int(spec["steps"] * share)
            best = None
            for factor in (2, 4, 8, 16):
                runs = self.train(task, "plain", self.a.tuning_seeds, steps=budget, schedule="cosine",
                                  rate=spec["rate"] * factor, evaluate_every=budget)
                loss = interval([r["val_loss"] for r in runs])
                if best is None or loss[0] < best["val_loss"][0]:
                    best = {"budget": budget, "rate": spec["rate"] * factor, "val_loss": loss,
                            "reaches": loss[0] <= target}
            rows.append(best)
            chosen[share] = best["rate"]
        return rows, chosen

    def decayed(self, task, rate):
        spec = TASKS[task]
        budget = spec["steps"] // 2
        rows, plain, of = [], None, {}
        for name in TRAINERS:
            runs = self.train(task, name, self.a.seeds, steps=budget, schedule="cosine", rate=rate,
                              evaluate_every=budget)
            losses = of[name] = [r["val_loss"] for r in runs]
            plain = plain or losses
            rows.append({"trainer": name, "val_loss": interval(losses),
                         "minus_plain": interval([a - b for a, b in zip(losses, plain)]),
                         "accuracy": interval([r["accuracy"] for r in runs]),
                         "cpu_seconds": runs[0]["cpu_seconds"], "seconds": interval([r["seconds"] for r in runs]),
                         "overhead_steps": interval([r.get("overhead_steps", 0.0) for r in runs])[0],
                         "overhead_seconds": interval([r.get("overhead_seconds", 0.0) for r in runs])[0],
                         "accepted": interval([r["accepted"] for r in runs])[0]})
        return budget, rows, matched(of)


def pm(pair, digits=4):
    return f"{pair[0]:.{digits}g}" + ("" if pair[1] is None else f" ± {pair[1]:.2g}")


def verdict(pair):
    """Of a difference whose interval excludes zero."""
    if pair[1] is None or abs(pair[0]) <= pair[1]:
        return "no difference"
    return "better" if pair[0] < 0 else "worse"


def matched_table(title, rows, digits):
    lines = [f"| {title} | against zero jumps | | against random jumps | |", "|---|---|---|---|---|"]
    for rule in RULES:
        cells = [rule]
        for control in ("zero", "random"):
            pair = next(r["difference"] for r in rows if (r["rule"], r["against"]) == (rule, control))
            cells += [pm(pair, digits), verdict(pair)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def markdown(task, found):
    lines = [f"**{task}**, constant rate {found['settings']['rate']:g}, {found['settings']['steps']} steps: to a validation loss of "
             f"{found['target']:.4g}", "",
             "| trainer | steps | cost | cost less plain's | missed | loss at the end | jumps kept |", "|---|---|---|---|---|---|---|"]
    for r in found["constant"]:
        lines.append(f"| {r['trainer']} | {pm(r['steps_to_target'])} | {pm(r['with_overhead'])} | {pm(r['cost_minus_plain'], 3)} | "
                     f"{r['missed']} | {pm(r['final_val_loss'])} | {r['accepted']:.1f} of {r['jumps']:.1f} |")
    lines += ["", *matched_table("cost of jumps, moments", found["constant_matched"], 3)]
    lines += ["", "| steps, cosine | tuned rate | validation loss | reaches it |", "|---|---|---|---|"]
    for r in found["tuned"]:
        lines.append(f"| {r['budget']} | {r['rate']:g} | {pm(r['val_loss'])} | {'yes' if r['reaches'] else 'no'} |")
    lines += ["", f"| trainer, {found['decayed_steps']} steps, cosine, tuned | validation loss | minus plain | CPU seconds |",
              "|---|---|---|---|"]
    for r in found["decayed"]:
        lines.append(f"| {r['trainer']} | {pm(r['val_loss'])} | {pm(r['minus_plain'], 2)} | {r['cpu_seconds']:.2f} |")
    lines += ["", *matched_table("loss with jumps, moments", found["decayed_matched"], 2)]
    return "\n".join(lines) + "\n"


def document(result):
    head = f"{result['seeds']} seeds, means ± 95 % confidence; {result['machine']}, {result['threads']} thread, commit {result['commit']}.\n\n"
    return head + "\n".join(markdown(task, found) for task, found in result["tasks"].items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--data", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tasks", default="xor,mnist")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tuning-seeds", type=int, default=5)
    parser.add_argument("--out", default="")
    parser.add_argument("--from", dest="source", default="")
    parser.add_argument("--docs", default="")
    parser.add_argument("--check", action="store_true")
    a = parser.parse_args()
    if a.source:
        with open(a.source, encoding="utf-8") as file:
            result = json.load(file)
    else:
        result = run(a)
    if a.docs:
        marked.place(document(result), MARKS, a.docs, a.source, a.check)


def run(a):
    bench = Bench(a)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
    result = {"command": f"bench/forecast_training.py lockstep --data DIR --tasks {a.tasks} --seeds {a.seeds} "
              f"--tuning-seeds {a.tuning_seeds}", "device": a.device, "commit": commit,
              "machine": platform.processor() or platform.machine(), "threads": 1, "seeds": a.seeds, "tasks": {}}
    for task in a.tasks.split(","):
        target, constant, constant_matched = bench.constant(task)
        tuned, chosen = bench.tuned(task, target)
        budget, decayed, decayed_matched = bench.decayed(task, chosen[0.5])
        found = {"settings": TASKS[task], "target": target, "constant": constant, "constant_matched": constant_matched,
                 "tuned": tuned, "decayed_steps": budget, "decayed": decayed, "decayed_matched": decayed_matched}
        result["tasks"][task] = found
        print(markdown(task, found))
        if a.out:
            with open(a.out + ".part", "w", encoding="utf-8") as file:
                json.dump(result, file, indent=1)
                file.write("\n")
            os.replace(a.out + ".part", a.out)
    return result


if __name__ == "__main__":
    main()
