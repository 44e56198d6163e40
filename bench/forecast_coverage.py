#!/usr/bin/env python3
"""Shares of later values that the bands of `forecast curve` hold, for other shares than 80 %.

usage: bench/forecast_coverage.py [--data tests/forecast/data] [--commit HASH] --out bench/results/forecast/coverage.json

Needs the package (PYTHONPATH=build/python). The runs are those that no constant was chosen by.
"""
import argparse
import csv
import json
import pathlib
import subprocess

import numpy as np
from lockstep import forecast

SHARES = [0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99]
SEEN = {"15 %": 22, "25 %": 37, "40 %": 60, "60 %": 90}


def read(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))[1:]
    values = np.array(rows, float)
    return values[:, 0], list(values[:, 1:].T)


def held(steps, losses, seen, share):
    """How many later values are in the band, and of how many."""
    later = losses[seen:]
    found = forecast.curve(steps[:seen], losses[:seen], horizon=float(steps[-1]), points=len(later), coverage=share)
    low, high = (np.array([row[key] for row in found["prediction"]]) for key in ("low", "high"))
    return int(((later >= low) & (later <= high)).sum()), len(later)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("tests/forecast/data"))
    parser.add_argument("--commit", default="")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    commit = options.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    runs = [(steps, losses) for name in ("held_out.csv", "held_out_more.csv")
            for steps, columns in [read(options.data / name)] for losses in columns]
    rows = []
    for seen, count in SEEN.items():
        for share in SHARES:
            counts = np.array([held(steps, losses, count, share) for steps, losses in runs]).sum(0)
            rows.append({"seen": seen, "share": share, "held": round(counts[0] / counts[1], 3)})
        print(seen, *(f"{row['held']:.2f}" for row in rows[-len(SHARES):]), sep=" | ")
    options.out.write_text(json.dumps({"commit": commit, "device": "cpu", "command": "bench/forecast_coverage.py", "runs": len(runs), "rows": rows}, indent=1) + "\n")


main()
