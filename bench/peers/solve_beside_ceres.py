#!/usr/bin/env python3
"""Lockstep and Ceres Solver on the same problems, in turn within the same minutes; prints a table in Markdown.

Build both sides where Ceres is installed, then run:
  ninja -C build bench_ceres_side bench_lockstep_side
  bench/peers/solve_beside_ceres.py --build build --data ../shared/data/solve --repeat 5
Both use two threads of the CPU and the same tolerances. A time is the least of all repetitions: of Ceres the
solver alone, of Lockstep minimize() with its kernels in the process; problems with `*` count the building of the
problem too. `first` is Lockstep's first minimisation in a process, kernels from the cache on disk. `--pin 0,1` holds
both to those cores; `--out FILE` keeps all repetitions as JSON; `--limit S` begins no problem after S seconds.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

SMALL = {
    "pnp": "pose of a camera from 30 points *",
    "curve": "fit of 5 parameters to 67 points *",
    "long_curve": "fit of 5 parameters to 100,000 points *",
    "calibration": "camera calibration, 20 views of 54 corners",
    "wide20": "one block of 20 numbers, 400 residuals",
    "wide60": "one block of 60 numbers, 1,200 residuals",
    "incremental": "50 solves up to 2,000 poses in the plane *",
    "carried": "the same, damping or radius carried from solve to solve *",
    "window": "sliding window of 20 frames in the plane, a frame; carried *",
    "loose5000": "5,000 residuals added one by one *",
    "loose100000": "100,000 residuals added one by one *",
}
OURS = {
    "camera14": "camera of 14 parameters, 20 views of 54 corners",
    "marginals": "marginals of 20,000 poses in the plane",  # Ceres' sparse QR does not end in minutes
}


def problems(data):
    for name, title in SMALL.items():
        yield title, [name]
    for path in sorted(pathlib.Path(data, "g2o").glob("*.g2o")):
        yield f"pose graph {path.stem}", ["g2o", str(path)]
    for path in sorted(pathlib.Path(data, "bal").glob("*.txt")):
        yield f"bundle adjustment {path.stem}", ["bal", str(path)]


def run(program, arguments, threads, pin):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    command = (["taskset", "-c", pin] if pin else []) + [program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
    return [float(word) for word in done.stdout.split()]


def milliseconds(seconds):
    return f"{1000 * seconds:.3g}" if seconds < 0.01 else f"{1000 * seconds:.4g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--data", default="../shared/data/solve")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", help="problems whose title has this text")
    parser.add_argument("--pin", help="cores for both, as taskset reads them")
    parser.add_argument("--out", help="JSON of all repetitions")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no problem begins")
    given = parser.parse_args()
    programs = [os.path.join(given.build, "bin", f"bench_{side}_side") for side in ("lockstep", "ceres")]
    begin, kept = time.monotonic(), []
    print("| problem | Lockstep, ms | first, ms | Ceres, ms | Ceres / Lockstep | costs | iterations |")
    print("|---|---|---|---|---|---|---|")
    for title, arguments in problems(given.data):
        if (given.only and given.only not in title) or time.monotonic() - begin > given.limit:
            continue
        runs = [[run(program, arguments, 2, given.pin) for program in programs] for _ in range(given.repeat)]
        kept.append({"problem": title, "runs": runs})
        ours, peer = (min(r[side][0] for r in runs) for side in (0, 1))
        last = runs[-1]
        print(f"| {title} | {milliseconds(ours)} | {milliseconds(min(r[0][3] for r in runs))} | {milliseconds(peer)} "
              f"| {peer / ours:.2f} | {last[0][1]:.8g} / {last[1][1]:.8g} | {last[0][2]:.0f} / {last[1][2]:.0f} |",
              flush=True)
    for name, title in OURS.items():
        if given.only and given.only not in title:
            continue
        runs = [run(programs[0], [name], 2, given.pin) for _ in range(given.repeat)]
        kept.append({"problem": title, "runs": [[r] for r in runs]})
        print(f"| {title} | {milliseconds(min(r[0] for r in runs))} | {milliseconds(min(r[3] for r in runs))} | | | | |")
    if given.out:
        pathlib.Path(given.out).write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
