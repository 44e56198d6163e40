#!/usr/bin/env python3
"""The cost of several suns an hour: a day of `urban run` with parts of about ten minutes and with one sun an hour.

    python3 bench/urban_substeps.py [--program build/bin/lockstep] [--device cuda:0] [--size 512] [--rounds 5] [--out FILE.json]

21 June over the sample city with trees at 59.3 degrees north, Tmrt, UTCI and shadow to .npy. One warm run of each first, then rounds
in alternating order; the table has medians and, of the ratios, the smallest and the largest of the rounds.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

PARTS = {"one": "1", "parts": "auto"}


def weather(path):
    """24 hours of a clear day, times the ends of intervals."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("time,Ta,RH,wind,Kglobal\n")
        for hour in range(1, 25):
            course = math.cos(2 * math.pi * (hour - 15) / 24)
            stamp = "2015-06-22T00:00" if hour == 24 else "2015-06-21T%02d:00" % hour
            file.write("%s,%.1f,%.0f,2,%.0f\n" % (stamp, 18 + 6 * course, 60 - 20 * course, max(0.0, 560 * math.cos(2 * math.pi * (hour - 12.5) / 24) + 260)))


def run(options, folder, parts):
    command = [options.program, "urban", "run", *(word for grid in ("dsm", "dem", "cdsm") for word in ("--" + grid, os.path.join(folder, grid + ".tif"))),
               "--weather", os.path.join(folder, "day.csv"), "--utc-offset", "1", "--device", options.device,
               "--substeps", PARTS[parts], "--format", "npy", "--no-pictures", "--out", os.path.join(folder, parts), "--json", "--quiet"]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    metrics = found["metrics"]
    return {"process_s": seconds, "series_s": metrics["timestep_wall_time_s"] * found["steps"], "parts": found["substeps"],
            "device_ms": sum(metrics["stage_time_ms"].values()) - metrics["stage_time_ms"].get("sky", 0), **metrics["stage_time_ms"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out")
    options = parser.parse_args()
    found = {name: [] for name in PARTS}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.program, "urban", "sample", "--size", str(options.size), "--seed", "7", "--out", folder, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        weather(os.path.join(folder, "day.csv"))
        for name in PARTS:
            run(options, folder, name)
        for k in range(options.rounds):
            for name in sorted(PARTS, reverse=k % 2 == 1):
                found[name].append(run(options, folder, name))
    medians = {name: {key: statistics.median(r[key] for r in rounds) for key in rounds[0]} for name, rounds in found.items()}
    print(f"{'':12} {'one':>10} {'parts':>10} {'ratio':>7}  of the rounds")
    for key in found["one"][0]:
        ratios = [b[key] / a[key] for a, b in zip(found["one"], found["parts"]) if a[key]]
        if ratios:
            print(f"{key:12} {medians['one'][key]:10.4g} {medians['parts'][key]:10.4g} {statistics.median(ratios):7.3f}  {min(ratios):.3f} to {max(ratios):.3f}")
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"command": "bench/urban_substeps.py", "device": options.device, "size": options.size, "rounds": found, "medians": medians}, file, indent=1)


if __name__ == "__main__":
    main()
