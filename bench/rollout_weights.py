#!/usr/bin/env python3
"""What narrow recurrent weights cost a rollout: `--weights f32|bf16|fp8` against the same model in f64.

usage: rollout_weights.py LOCKSTEP [--log LOG.csv] [--hidden 256,512] [--seeds N] [--steps Y] [--out FILE.json]

Models of 5 members: random ones as the published initialisation has them, the same with U doubled, whose states move more,
and ensembles that `forecast observe` taught LOG. Relative errors of the losses of all members and steps: largest and root
mean square, the worst of the seeds.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np


def model(hidden, seed, gain, inputs=64, members=5, states=32):
    draws, s = np.random.default_rng(seed), np.sqrt(2 / (inputs + hidden))
    arrays = {}
    for gate in "zrh":
        arrays["W_" + gate] = draws.uniform(-s, s, (members, hidden, inputs))
        arrays["U_" + gate] = gain * draws.uniform(-s, s, (members, hidden, hidden))
        arrays["b_" + gate] = np.zeros((members, hidden))
    arrays["w"] = draws.uniform(-0.01, 0.01, hidden + states)
    arrays["features"] = np.concatenate([[2.0], draws.uniform(-1, 1, inputs - 1)])
    return {k: v.astype(np.float32) for k, v in arrays.items()}


class Program:
    def __init__(self, path, steps):
        self.path, self.steps = path, steps

    def run(self, *arguments):
        done = subprocess.run([self.path, "forecast", *arguments, "--device", "cpu", "--quiet"], check=True,
                              capture_output=True, text=True)
        return done.stdout

    def losses(self, arrays, folder, weights):
        path = os.path.join(folder, "model.npz")
        np.savez(path, **arrays)
        found = json.loads(self.run("rollout", path, "--steps", str(self.steps), "--weights", weights, "--json"))
        return np.array([m["trajectory"] for m in found["members"]]), found["memory"]

    def taught(self, log, hidden, seed, folder):
        path = os.path.join(folder, "taught.npz")
        self.run("observe", log, "--hidden", str(hidden), "--seed", str(seed), "--out", path)
        with np.load(path) as file:
            return {k: file[k] for k in file.files}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep")
    parser.add_argument("--log", default="tests/forecast/data/full_log.csv")
    parser.add_argument("--hidden", default="256,512")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    program, rows = Program(a.lockstep, a.steps), []
    with tempfile.TemporaryDirectory() as folder:
        for hidden in map(int, a.hidden.split(",")):
            kinds = {"random": lambda seed: model(hidden, seed, 1), "random, U doubled": lambda seed: model(hidden, seed, 2),
                     "trained": lambda seed: program.taught(a.log, hidden, seed, folder)}
            for kind, make in kinds.items():
                worst, memory = {}, {}
                for seed in range(a.seeds):
                    arrays = make(seed)
                    exact, _ = program.losses({k: v.astype(np.float64) for k, v in arrays.items()}, folder, "f32")
                    for name in ("f32", "bf16", "fp8"):
                        found, used = program.losses(arrays, folder, name)
                        error = found / exact - 1
                        now = (float(np.abs(error).max()), float(np.sqrt((error ** 2).mean())))
                        worst[name] = tuple(map(max, worst.get(name, (0.0, 0.0)), now))
                        memory[name] = used["weights"]
                for name, (largest, mean) in worst.items():
                    rows.append({"hidden": hidden, "model": kind, "weights": name, "largest": largest, "rms": mean,
                                 "weight_bytes": memory[name]})
                    print(f"H {hidden:5}  {kind:18}  {name:5}  largest {largest:.2e}  rms {mean:.2e}  "
                          f"{memory[name]} bytes", flush=True)
    if a.out:
        with open(a.out, "w", encoding="utf-8") as file:
            json.dump({"command": "bench/rollout_weights.py", "seeds": a.seeds, "steps": a.steps, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
