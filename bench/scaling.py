#!/usr/bin/env python3
"""Strong and weak scaling of the commands that work over ranks, with a comparison of the results' bits.

usage: bench/scaling.py [--program build/bin/lockstep] [--launch "mpirun -n {ranks}" | --threads] [--device cpu] [--ranks 1,2,4]
                        [--what urban,flow,slabs,pde,solve,train] [--size N] [--grid N] [--members M] [--steps N] [--planes N]
                        [--observations N] [--examples N] [--cores N] [--rounds 3] [--out FILE.json]

Strong: the same problem on more ranks; weak: a problem per rank that stays the same. urban: six hours of a square sample city of
--size pixels (weak: its area grows with the ranks). flow: --members of --grid² a rank (strong: as many as the most ranks have). slabs: one flow of
--grid², divided (strong alone). pde: loss and gradients of --planes planes of 64² cells (weak: for each rank). solve: six steps of a bundle
adjustment of --observations in 8 parts (weak: as many observations and parts a rank). train: --steps of a network on batches of --examples in 8
parts (weak likewise). --cores: threads of a rank.
Rounds alternate between the numbers of ranks; each first run is a warm-up. Times are those of the whole process, so they hold reading,
planning and writing; cpu_s is the processor time of all ranks. --launch "" and --threads: ranks of one process. Standard library alone.
"""
import argparse
import array
import csv
import hashlib
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

import measure

HOURS = range(10, 16)
STAGES = {"flow": "flow.steps", "slabs": "flow.steps", "pde": "pde.loss"}  # that ranks share
PARTS = 8


def make_city(options, folder, size):
    place = os.path.join(folder, f"city{size}")
    if not os.path.exists(place):
        subprocess.run([options.program, "urban", "sample", "--size", str(size), "--seed", "7", "--format", "npy", "--no-pictures", "--quiet",
                        "--out", place], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(place, "day.csv"), "w", encoding="utf-8") as file:
            file.write("time,Ta,RH,wind,Kglobal\n" + "".join(f"2026-06-21T{h:02}:00,24,45,2,{300 + 30 * h}\n" for h in HOURS))
    return place


def npy(kind, shape, numbers):
    """The bytes of an array file: kind f or i of 4 bytes."""
    header = f"{{'descr': '<{kind}4', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array(kind, numbers).tobytes()


def make_frames(folder, planes, side=64):
    """Random fields of three levels as `pde loss` reads them."""
    path = os.path.join(folder, f"frames{planes}.npz")
    if os.path.exists(path):
        return path
    chance, cells = random.Random(1), planes * side * side
    with zipfile.ZipFile(path, "w") as file:
        for level in range(3):
            for name, leading in ((f"sigma{level}", ()), (f"u{level}", (3,))):
                shape = (*leading, planes, side, side)
                file.writestr(name + ".npy", npy("f", shape, (chance.uniform(-1, 1) for _ in range(cells * (3 if leading else 1)))))
    return path


def make_task(folder):
    """2048 random points of 64 numbers in ten classes, for a network with two hidden layers of 512."""
    place = os.path.join(folder, "task.toml")
    if not os.path.exists(place):
        chance = random.Random(7)
        with zipfile.ZipFile(os.path.join(folder, "points.npz"), "w") as file:
            file.writestr("inputs.npy", npy("f", (2048, 64), (chance.uniform(-1, 1) for _ in range(2048 * 64))))
            file.writestr("targets.npy", npy("i", (2048,), (chance.randrange(10) for _ in range(2048))))
        layers = "".join(f'[[layers]]\nkind = "dense"\nunits = {units}\n' + ('activation = "relu"\n' if units > 10 else "") for units in (512, 512, 10))
        with open(place, "w", encoding="utf-8") as file:
            file.write('data = "points.npz"\nbatch = 64\n[optimizer]\nmethod = "adam"\nrate = 0.001\n' + layers)
    return place


def words_of(options, folder, what, kind, ranks):
    """The command of a problem, and its name: equal names have equal results."""
    most = max(options.ranks)
    if what == "pde":
        planes = options.planes * (ranks if kind == "weak" else 1)
        return ["pde", "loss", make_frames(folder, planes), "--spacing", "0.1,0.1,0.1", "--dt", "0.05"], f"pde, {planes} planes"
    if what in ("flow", "slabs"):
        members = 1 if what == "slabs" else options.members * (ranks if kind == "weak" else most)
        return ["flow", "run", "--n", str(options.grid), "--ensemble", str(members), "--steps", str(options.steps), "--dt", "0.001", "--closure", "smagorinsky",
                "--format", "npz"], f"{what}, {members} members"
    times = ranks if kind == "weak" else 1
    if what == "solve":
        observations = options.observations * times
        return ["solve", "bal", "--synthetic", f"{max(8, observations // 500)},{observations}", "--linear", "schur-pcg", "--parts", str(PARTS * times),
                "--max-iterations", "6", "--function-tolerance", "0"], f"solve, {observations} observations"
    if what == "train":
        return ["forecast", "train", make_task(folder), "--batch", str(options.examples * times), "--parts", str(PARTS * times), "--steps", str(options.steps),
                "--evaluate-every", str(options.steps)], f"train, batches of {options.examples * times}"
    size = round(options.size * ranks ** 0.5 / 64) * 64 if kind == "weak" else options.size
    city = make_city(options, folder, size)
    return ["urban", "run", "--dsm", f"{city}/dsm.npy", "--dem", f"{city}/dem.npy", "--cdsm", f"{city}/cdsm.npy", "--pixel-size", "1", "--latitude",
            "57.7", "--longitude", "12", "--weather", f"{city}/day.csv", "--utc-offset", "1", "--outputs", "tmrt", "--format", "npy",
            "--no-pictures"], f"urban, {size} x {size}"


def run(options, folder, what, kind, ranks, number):
    words, name = words_of(options, folder, what, kind, ranks)
    out = os.path.join(folder, f"{what}-{kind}-{ranks}-{number}")
    os.makedirs(out)
    result = os.path.join(out, {"pde": "gradients.npz", "solve": "solved.txt"}.get(what, ""))
    command = [options.program, *words, "--device", options.device, "--quiet", "--out", result, "--telemetry", out + ".jsonl"]
    if options.cores:
        command += ["--threads", str(options.cores)]
    if options.share_devices:
        command.append("--share-devices")
    if options.launch:
        command = options.launch.format(ranks=ranks).split() + command
    else:
        command += ["--ranks", str(ranks)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, name, out


def results_of(folder):
    """Grids, solved problems and logs of training without their seconds, by their hashes."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if name.endswith((".npy", ".npz", ".txt", "log.csv")):
                with open(path, "rb") as file:
                    data = file.read()
                if name == "log.csv":
                    data = repr([{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(io.StringIO(data.decode()))]).encode()
                found[os.path.relpath(path, folder)] = hashlib.sha256(data).hexdigest()
    return found


def unit_seconds(out, what):
    """Seconds of what ranks share, of all ranks, from their telemetry: by tiles of urban, else by stage."""
    with open(out + ".jsonl", encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    if what in STAGES:
        return {"units": 0, "unit_seconds": sum(e["seconds"] for e in events if e.get("stage") == STAGES[what])}
    ranks = [e for e in events if e.get("event", "").endswith(".rank")]
    return {"units": sum(e["tiles"] for e in ranks), "unit_seconds": sum(e["tile_seconds"] for e in ranks)} if ranks else {}


def measure_kind(options, folder, what, kind):
    times, cpu, results, units = {k: [] for k in options.ranks}, {k: [] for k in options.ranks}, {}, {}
    for number in range(options.rounds + 1):  # the first warms caches up
        for ranks in options.ranks if number % 2 else reversed(options.ranks):
            seconds, cpu_s, name, out = run(options, folder, what, kind, ranks, number)
            if number:
                times[ranks].append(seconds)
                cpu[ranks].append(cpu_s)
            units[ranks] = unit_seconds(out, what)
            found = results_of(out)
            if not found or results.setdefault(name, found) != found:
                sys.exit(f"{name}: the bits of {ranks} ranks differ from those of others")
            shutil.rmtree(out)
    first = statistics.median(times[options.ranks[0]])
    rows = []
    for ranks, seconds in times.items():
        share = ranks / options.ranks[0]
        faster = first / statistics.median(seconds)
        rows.append({"what": what, "kind": kind, "ranks": ranks, "seconds": statistics.median(seconds), "least_s": min(seconds), "most_s": max(seconds),
                     "cpu_s": statistics.median(cpu[ranks]),
                     "speed_up": faster * (share if kind == "weak" else 1), "efficiency": faster / (1 if kind == "weak" else share), **units[ranks]})
        print("{what:<6} {kind:<7} {ranks:>4} ranks {seconds:>9.3f} s ({least_s:.3f} to {most_s:.3f}; processors {cpu_s:.2f} s)  speed-up {speed_up:.2f}  "
              "efficiency {efficiency:.2f}"
              .format(**rows[-1]), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--launch", default="mpirun -n {ranks}")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--share-devices", action="store_true")
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--what", default="urban,flow")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--grid", type=int, default=128)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--planes", type=int, default=64)
    parser.add_argument("--cores", type=int, default=0)
    parser.add_argument("--observations", type=int, default=20000)
    parser.add_argument("--examples", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.threads:
        options.launch = ""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for what in options.what.split(","):
            for kind in ("strong",) if what == "slabs" else ("strong", "weak"):
                rows += measure_kind(options, folder, what, kind)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"commit": measure.commit(), "machine": measure.machine(), "command": sys.argv[1:], "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
