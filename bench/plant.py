#!/usr/bin/env python3
"""What `urban plant` costs compared with a whole run of every candidate.

usage: plant.py [--program build/bin/lockstep] [--device cpu] [--threads 0] [--size 512] [--trees 30] [--spacing 22] [--search exact,lazy]
                [--peer "python3 bench/peers/plant_solweig.py"] [--out FILE.json]

A hot day of 24 hours over the sample city, trees of 10 m with crowns of 6 m, hours of UTCI above 38. Each search is one process after a
warm run of one hour; its time and the processor time of all its threads are those of the process, without the runs before and after.
"whole" is the time of the steps of one run of the grid, times the evaluations of plain greedy search: a run a candidate and tree.
The peer gets the folder of the city and the day, and prints what one evaluation on the whole raster takes: with its sky view factors
("prepare") and without ("steps" alone); times the same evaluations, over ours, both in processor time.
"""
import argparse
import json
import os
import pathlib
import resource
import shlex
import subprocess
import tempfile
import time

from urban_substeps import weather

SPECIES = "10,3,6"


class Bench:
    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.words = ["--pixel-size", "1", "--lat", "57.7", "--lon", "11.97", "--utc-offset", "1", "--weather", str(folder / "day.csv")]
        for grid in ("dsm", "dem", "cdsm", "tdsm"):
            self.words += ["--" + grid, str(folder / "city" / (grid + ".npy"))]
        weather(folder / "day.csv", warmth=(27, 9), humidity=(42, 14), wind=1.5)
        subprocess.run([given.program, "urban", "sample", "--size", str(given.size), "--format", "npy", "--no-pictures", "--quiet", "--out",
                        folder / "city"], check=True, stdout=subprocess.DEVNULL)

    def run(self, command, *more):
        """The document, seconds of the process, and its processor time."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.perf_counter()
        done = subprocess.run([self.given.program, "urban", command, *self.words, *more, "--no-pictures", "--format", "npy", "--device", self.given.device,
                               "--threads", str(self.given.threads), "--json", "--quiet", "--out", self.folder / command], capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit(done.stderr)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return json.loads(done.stdout), seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime

    def peer(self):
        done = subprocess.run([*shlex.split(self.given.peer), self.folder / "city", self.folder / "day.csv"], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def plant(self, trees, search, spacing, *more):
        return self.run("plant", "--trees", str(trees), "--species", SPECIES, "--spacing", str(spacing), "--objective", "hours>38", "--search", search,
                        "--no-before-after", *more)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--search", default="exact,lazy")
    parser.add_argument("--peer")
    parser.add_argument("--out")
    for name, value in (("threads", 0), ("size", 512), ("trees", 30), ("spacing", 22)):
        parser.add_argument("--" + name, type=int, default=value)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(given, pathlib.Path(place))
        hour = ("--from", "2015-06-21T13:00", "--to", "2015-06-21T13:00")
        bench.run("run", "--outputs", "utci", "--no-video", *hour)
        bench.plant(1, "lazy", given.size // 3, *hour)
        whole, _, _ = bench.run("run", "--outputs", "utci", "--no-video")
        step_s = sum(stage["seconds"] for stage in whole["stages"] if stage["stage"] in ("urban.svf", "urban.step"))
        found = {"device": whole["device"], "size": given.size, "trees": given.trees, "whole_run_s": step_s, "searches": {}}
        for search in given.search.split(","):
            told, seconds, cpu_s = bench.plant(given.trees, search, given.spacing)
            candidates, placed = len(told["candidates"]), len(told["trees"])
            plain = sum(candidates - k for k in range(placed))
            found["searches"][search] = {"candidates": candidates, "placed": placed, "seconds": seconds, "processor_s": cpu_s,
                                         "evaluations": told["evaluations"], "plain_evaluations": plain, "evaluated_share": told["evaluated_share"],
                                         "raised": told["raised"], "gain": told["trees"][-1]["total"], "whole_s": plain * step_s,
                                         "whole_over_search": plain * step_s / seconds}
        if given.peer:
            found["peer"] = peer = bench.peer()
            for search in found["searches"].values():
                for kind, each in (("steps", peer["steps_processor_s"]), ("whole", peer["steps_processor_s"] + peer["prepare_processor_s"])):
                    search["peer_%s_over_search" % kind] = search["plain_evaluations"] * each / search["processor_s"]
    print(json.dumps(found, indent=2))
    if given.out:
        os.makedirs(os.path.dirname(given.out) or ".", exist_ok=True)
        with open(given.out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)


if __name__ == "__main__":
    main()
