#!/usr/bin/env python3
"""Several suns an hour: what they cost, and how far they are from an hour in parts of a minute.

usage: urban_substeps.py --cost [--program build/bin/lockstep] [--device cuda:0] [--size 512] [--parts 6,12] [--rounds 5] [--out FILE.json]
       urban_substeps.py --error [--program …] [--device cpu] [--size 96] [--seeds 5] [--out FILE.json]
       urban_substeps.py --from FILE.json [--docs docs/urban-model.md] [--check]

21 June over sample cities with trees at 59.3 degrees north, an hourly file of a clear day, Tmrt, UTCI and shadow to .npy.
--cost: parts of an hour compared with one sun an hour; after one warm run of each, rounds in alternating order. The series is the time of all
steps with their outputs, the process all of it. --error: Tmrt of all pixels and hours with the sun up, of cities of several seeds,
against 60 parts. NumPy is needed for --error alone.
--out adds to what FILE.json holds; --docs writes the table between the marks of the document, --check says whether it is there already.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

import marked

MARKS = "<!-- substeps -->", "<!-- /substeps -->"
FINEST, COARSER = 60, (1, 2, 3, 4, 6, 12, 20)
GRIDS = ("dsm", "dem", "cdsm")


def weather(path, warmth=(18, 6), humidity=(60, 20), wind=2):
    """24 hours of a clear day, times the ends of intervals; means and swings of temperature (C) and humidity (%)."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("time,Ta,RH,wind,Kglobal\n")
        for hour in range(1, 25):
            course = math.cos(2 * math.pi * (hour - 15) / 24)
            stamp = "2015-06-22T00:00" if hour == 24 else "2015-06-21T%02d:00" % hour
            file.write("%s,%.1f,%.0f,%g,%.0f\n" % (stamp, warmth[0] + warmth[1] * course, humidity[0] - humidity[1] * course, wind, max(0.0, 560 * math.cos(2 * math.pi * (hour - 12.5) / 24) + 260)))


class City:
    def __init__(self, options, folder, seed):
        self.options, self.folder = options, folder
        subprocess.run([options.program, "urban", "sample", "--size", str(options.size), "--seed", str(seed), "--format", "npy", "--no-pictures",
                        "--out", folder, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        weather(os.path.join(folder, "day.csv"))

    def run(self, parts):
        """The seconds of the process and its document."""
        command = [self.options.program, "urban", "run", *(word for grid in GRIDS for word in ("--" + grid, os.path.join(self.folder, grid + ".npy"))),
                   "--weather", os.path.join(self.folder, "day.csv"), "--utc-offset", "1", "--pixel-size", "1", "--latitude", "59.3", "--longitude", "18",
                   "--device", self.options.device, "--substeps", str(parts), "--format", "npy", "--no-pictures", "--out", self.out(parts), "--json",
                   "--quiet"]
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        if done.returncode:
            sys.exit(done.stderr)
        return seconds, json.loads(done.stdout)

    def out(self, parts):
        return os.path.join(self.folder, "parts-%d" % parts)


def cost(options):
    wanted = [1] + [int(n) for n in options.parts.split(",")]
    rounds = {n: [] for n in wanted}
    with tempfile.TemporaryDirectory() as folder:
        city = City(options, folder, 7)
        for n in wanted:
            _, document = city.run(n)
        for k in range(options.rounds):
            for n in sorted(wanted, reverse=k % 2 == 1):
                seconds, document = city.run(n)
                metrics = document["metrics"]
                rounds[n].append({"process": seconds, "series": metrics["timestep_wall_time_s"] * document["steps"],
                                  **{stage: ms / 1e3 for stage, ms in metrics["stage_time_ms"].items()}})
        record = json.loads(pathlib.Path(city.out(1), "run.json").read_text())
    medians = {n: {key: statistics.median(r[key] for r in rows) for key in rows[0]} for n, rows in rounds.items()}
    ratios = {n: {key: sorted(b[key] / a[key] for a, b in zip(rounds[1], rows)) for key in ("process", "series")} for n, rows in rounds.items()}
    return {"device": device_name(options), "commit": record["program"]["commit"], "size": options.size, "rounds": options.rounds,
            "seconds": medians, "ratio": {n: {key: [statistics.median(v), v[0], v[-1]] for key, v in r.items()} for n, r in ratios.items()}}


def device_name(options):
    found = json.loads(subprocess.run([options.program, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
    listed = found["devices"] if isinstance(found, dict) else found
    return next(d["description"] for d in listed if d["name"].split(":")[0] == options.device.split(":")[0])


def error(options):
    import numpy as np

    def tmrt(city, parts):
        city.run(parts)
        files = sorted(pathlib.Path(city.out(parts), "tmrt").glob("*.npy"))
        return np.stack([np.load(f) for f in files]).astype(np.float64)

    found = {n: [] for n in COARSER}
    for seed in range(1, options.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            city = City(options, folder, seed)
            finest = tmrt(city, FINEST)
            for n in COARSER:
                apart = np.abs(tmrt(city, n) - finest)
                apart = apart[np.nanmax(apart, axis=(1, 2)) > 0]  # hours with the sun up
                found[n].append([float(np.sqrt(np.nanmean(apart**2))), float(np.nanpercentile(apart, 99)), float(np.nanmax(apart))])
    return {"size": options.size, "seeds": options.seeds, "tmrt": {n: [statistics.mean(column) for column in zip(*rows)] for n, rows in found.items()}}


def rounded(value):
    if isinstance(value, dict):
        return {str(k): rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def document(result):
    wide = result["error"]["tmrt"]
    ratio = result["cost"]["ratio"]
    lines = ["| parts of an hour | RMSE, K | 99 % within, K | largest, K | time of the day's steps | of the process |", "|---|---|---|---|---|---|"]
    for n, (rmse, most, largest) in wide.items():
        times = ["%.2f (%.2f to %.2f)" % tuple(ratio[n][key]) if n in ratio and n != "1" else "1" if n == "1" else "" for key in ("series", "process")]
        lines.append(f"| {n} | {rmse:.2f} | {most:.1f} | {largest:.0f} | {times[0]} | {times[1]} |")
    e, c = result["error"], result["cost"]
    source = (f"(`bench/urban_substeps.py`: Tmrt against {FINEST} parts, means over {e['seeds']} sample cities of {e['size']}², hours with the sun up; times as multiples of one sun an"
              f" hour, median and range of {c['rounds']} rounds, {c['size']}², {c['device']}, commit {c['commit'][:8]}.)")
    lines += ["", *textwrap.wrap(source, 120)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--error", action="store_true")
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--device")
    parser.add_argument("--size", type=int)
    parser.add_argument("--parts", default="6,12")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.source:
        if options.cost == options.error:
            parser.error("one of --cost, --error and --from is needed")
        options.device = options.device or ("cuda:0" if options.cost else "cpu")
        options.size = options.size or (512 if options.cost else 96)
        result = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
        result["cost" if options.cost else "error"] = cost(options) if options.cost else error(options)
        text = json.dumps(rounded(result))
        if options.out:
            options.out.write_text(text + "\n")
        return print(text)
    table = document(json.loads(options.source.read_text()))
    if not options.docs:
        return print(table)
    marked.place(table, MARKS, options.docs, options.source, options.check)


if __name__ == "__main__":
    main()
