#!/usr/bin/env python3
"""Sliding windows of 20 poses by Lockstep's Smoother and by GTSAM's fixed-lag smoothers, in turn within the same minutes.

  pip install gtsam
  ninja -C build bench_solve_window
  bench/peers/window_beside_gtsam.py --build build --frames 1500 --repeat 5 --out bench/results/window-cpu.json
Two scenes: edges to the poses 1, 2 and 5 frames before, and `landmarks`, 12 of which a frame sees. Of each run the median of a frame's
milliseconds and of its milliseconds of CPU time past the first 40 frames; printed and kept are all repetitions, and how far the last
poses are apart. CPU time is what counts where others use the machine.
"""
import argparse
import json
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

SCENES = {"poses": [], "landmarks": ["landmarks"]}
HERE = pathlib.Path(__file__).resolve().parent


def lines_of(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def times_of(line):
    return [float(v) for v in re.search(r"([\d.]+) ms(?: a frame)?, ([\d.]+) ms of CPU", line).groups()]


def place_of(line):
    return [float(v) for v in re.search(r"last at ([-\d.]+) ([-\d.]+) ([-\d.]+)", line).groups()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--frames", type=int, default=1500)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has gtsam")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    kept = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in SCENES.items():
            scene, runs = pathlib.Path(folder, name), []
            for _ in range(given.repeat):
                ours = lines_of([given.build / "bin/bench_solve_window", given.frames, scene, *kind])
                peers = lines_of([given.python, HERE.parent / "window/gtsam_window.py", scene])
                run = {"lockstep": times_of(next(line for line in ours if line.startswith("all: ")))}
                run.update({line.split(":")[0]: times_of(line) for line in peers})
                at = place_of(ours[-1])
                run["apart"] = {line.split(":")[0]: max(abs(a - b) for a, b in zip(at, place_of(line))) for line in peers}
                runs.append(run)
            kept[name] = runs
    print("| scene | smoother | CPU ms a frame: median (least to most) | ms a frame | last pose apart |")
    print("|---|---|---|---|---|")
    for name, runs in kept.items():
        for who in ("lockstep", "incremental", "batch"):
            wall, cpu = zip(*(run[who] for run in runs))
            apart = "" if who == "lockstep" else f"{max(run['apart'][who] for run in runs):.1g}"
            print(f"| {name} | {who} | {statistics.median(cpu):.3f} ({min(cpu):.3f} to {max(cpu):.3f}) | {statistics.median(wall):.3f} | {apart} |")
    if given.out:
        commit = lines_of(["git", "-C", HERE, "rev-parse", "--short=12", "HEAD"])[0]
        gtsam = lines_of([given.python, "-c", "import importlib.metadata as m; print(m.version('gtsam'))"])[0]
        note = {"commit": commit, "gtsam": gtsam, "frames": given.frames, "machine": f"two cores ({platform.machine()}) that others used too: CPU time counts",
                "columns": ["ms a frame", "ms of CPU a frame"], "command": "bench/peers/window_beside_gtsam.py", "runs": kept}
        given.out.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
