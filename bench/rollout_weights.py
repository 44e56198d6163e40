#!/usr/bin/env python3
"""What narrow recurrent weights cost a rollout: U rounded to bf16, or to fp8 (e4m3) with a scale a row, against f32.

usage: rollout_weights.py [--hidden 256,512,1024] [--seeds N] [--steps Y] [--out FILE.json]

Random models of 5 members as the published initialisation has them, and the same with U doubled, whose states move more.
All else is f32 in exact numerics on both sides. Relative errors of the losses of all members and steps: largest and root
mean square, the worst of the seeds.
"""
import argparse
import json

import numpy as np

from lockstep import forecast


def bf16(a):
    bits = a.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def fp8(a):
    """e4m3 of a / scale, round to nearest even; the largest of a row is 448."""
    scale = np.abs(a).max(axis=-1, keepdims=True) / 448
    x = a / scale
    step = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 2.0 ** -9))), -6) - 3)
    return (np.round(x / step) * step * scale).astype(np.float32)


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


def losses(arrays, steps):
    found = forecast.rollout(arrays, steps=steps, device="cpu")
    return np.array([m["trajectory"] for m in found["members"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", default="256,512,1024")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", default="")
    a = parser.parse_args()
    rows = []
    for hidden in map(int, a.hidden.split(",")):
        for gain in (1, 2):
            worst = {}
            for seed in range(a.seeds):
                exact = model(hidden, seed, gain)
                expected = losses(exact, a.steps)
                for name, rounded in (("bf16", bf16), ("fp8", fp8)):
                    narrow = {k: rounded(v) if k.startswith("U_") else v for k, v in exact.items()}
                    error = losses(narrow, a.steps) / expected - 1
                    now = (float(np.abs(error).max()), float(np.sqrt((error ** 2).mean())))
                    worst[name] = tuple(map(max, worst.get(name, (0.0, 0.0)), now))
            for name, (largest, mean) in worst.items():
                rows.append({"hidden": hidden, "gain": gain, "weights": name, "largest": largest, "rms": mean})
                print(f"H {hidden:5}  U x {gain}  {name:5}  largest {largest:.2e}  rms {mean:.2e}", flush=True)
    if a.out:
        with open(a.out, "w", encoding="utf-8") as file:
            json.dump({"command": "bench/rollout_weights.py", "seeds": a.seeds, "steps": a.steps, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
