#!/usr/bin/env python3
"""Predicts how work over ranks scales from a few measured numbers, and compares with what bench/scaling.py measured.

usage: bench/model.py [--measured FILE.json] [--ranks 1,2,4,…,1024] [--serial S] [--unit S] [--units N] [--latency S] [--bandwidth B/S]
                      [--bytes B] [--rounds R]

A run is: serial seconds that every number of ranks has (reading, planning, writing), `units` of `unit` seconds that ranks take as they
become free (tiles, members), and `rounds` all-reduces of `bytes` along the fixed tree:

    T(K) = serial + unit · ceil(units / K) + rounds · (2 latency ceil(log2 K) + 2 bytes (K - 1) / K / bandwidth)

Units that are one measured time make the ceiling exact; the tail of the last units is what limits strong scaling. Weak scaling has
units · K of them. --measured takes `serial` and the shared seconds from the row of one rank, where bench/scaling.py stored them, else from
the first two (strong), predicts the other rows and prints the error of each; of bench/results/ranks-h200x2.json it predicts what two GPUs
gave from one. Standard library alone.
"""
import argparse
import json
import math


def seconds(ranks, units, unit, serial, latency=0.0, bandwidth=math.inf, size=0, rounds=0):
    reduce = 2 * latency * math.ceil(math.log2(ranks)) + 2 * size * (ranks - 1) / ranks / bandwidth if ranks > 1 else 0
    return serial + unit * math.ceil(units / ranks) + rounds * reduce


def fit(rows):
    """Serial and parallel seconds from the first two numbers of ranks of a strong series: T = serial + work / K."""
    a, b = rows[0], rows[1]
    work = (a["seconds"] - b["seconds"]) / (1 / a["ranks"] - 1 / b["ranks"])
    return max(a["seconds"] - work / a["ranks"], 0.0), work


def parts(rows):
    """Serial seconds and those that ranks share, and which rows they come from: the first one where it says how long its shared work
    took, else the first two."""
    first = rows[0]
    work = first.get("unit_seconds", 0)
    if work and first["ranks"] == 1:
        return max(first["seconds"] - work, 0.0), work, rows[:1]
    return (*fit(rows), rows[:2])


def compare(path):
    with open(path, encoding="utf-8") as file:
        measured = json.load(file)
    if "rows" not in measured:
        return compare_stored(measured)
    measured = measured["rows"]
    print(f"{'what':<6} {'kind':<7} {'ranks':>5} {'measured':>10} {'predicted':>10} {'error':>7}")
    for what in sorted({row["what"] for row in measured}):
        strong = [row for row in measured if (row["what"], row["kind"]) == (what, "strong")]
        if len(strong) < 2:
            continue
        serial, work, given = parts(strong)
        for row in measured:
            if row["what"] != what:
                continue
            if row["kind"] == "strong":
                predicted = serial + work / row["ranks"]
                note = "  (given)" if row in given else ""
            else:
                # Each rank has the first row's work; the serial part grows with the problem.
                first = next(r for r in measured if (r["what"], r["kind"]) == (what, "weak"))
                share = serial / (serial + work / strong[0]["ranks"])
                predicted = first["seconds"] * (1 - share + share * row["ranks"] / first["ranks"])
                note = "  (given)" if row is first else ""
            print(line(what, row["kind"], row["ranks"], predicted, row["seconds"]) + note)


def line(what, kind, ranks, predicted, measured):
    return f"{what:<6} {kind:<7} {ranks:>5} {measured:>9.4g}s {predicted:>9.4g}s {100 * (predicted / measured - 1):>6.1f}%"


def compare_stored(stored):
    """The numbers of bench/results/ranks-h200x2.json: sums of 256 MiB from the times of the smaller ones, steps and whole processes on two
    GPUs from the steps and the process on one."""
    print(f"{'what':<6} {'kind':<7} {'ranks':>5} {'measured':>10} {'predicted':>10} {'error':>7}")
    sums = {int(name.split()[0]): milliseconds / 1e3 for name, milliseconds in stored["all_reduce_ms"].items() if name.endswith(" MiB")}
    sizes = sorted(sums)
    mib = 2 ** 20
    bandwidth = (sizes[1] - sizes[0]) * mib / (sums[sizes[1]] - sums[sizes[0]])
    latency = (sums[sizes[0]] - sizes[0] * mib / bandwidth) / 2
    for size in sizes:
        predicted = seconds(2, 0, 0, 0, latency, bandwidth, size * mib, 1)
        print(line("sum", f"{size}MiB", 2, predicted, sums[size]) + ("" if size > sizes[1] else "  (given)"))
    steps = stored["flow_steps_per_s_of_64_members_512"]
    unit = 1 / steps["1 GPU"] / 64
    for name, rate in steps.items():
        if name != "1 GPU":
            print(line("step", name.split()[-1], 2, seconds(2, 64, unit, 0), 1 / rate))
    one, two = (sum(stored["whole_process_s"]["flow strong"][ranks]) / 2 for ranks in "12")
    work = 3000 * 64 * unit  # steps and members of the stored command, 32 a rank
    print(line("flow", "strong", 2, one - work / 2, two))


def predict(options):
    costs = dict(unit=options.unit, serial=options.serial, latency=options.latency, bandwidth=options.bandwidth, size=options.bytes,
                 rounds=options.rounds)
    one = seconds(1, options.units, **costs)
    print(f"{'ranks':>6} {'strong':>10} {'speed-up':>9} {'efficiency':>10}   {'weak':>10} {'efficiency':>10}")
    for ranks in options.ranks:
        strong = seconds(ranks, options.units, **costs)
        weak = seconds(ranks, options.units * ranks, **costs)
        print(f"{ranks:>6} {strong:>9.3f}s {one / strong:>9.2f} {one / strong / ranks:>10.3f}   {weak:>9.3f}s {one / weak:>10.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured")
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=[2 ** k for k in range(11)])
    parser.add_argument("--serial", type=float, default=2.0)
    parser.add_argument("--unit", type=float, default=1.0)
    parser.add_argument("--units", type=int, default=4096)
    parser.add_argument("--latency", type=float, default=20e-6)
    parser.add_argument("--bandwidth", type=float, default=150e9)
    parser.add_argument("--bytes", type=float, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args()
    if options.measured:
        compare(options.measured)
    else:
        predict(options)


if __name__ == "__main__":
    main()
