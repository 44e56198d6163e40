#!/usr/bin/env python3
"""Writes src/verify/measured_errors.inc: the largest error of each output of each case that is not held to equal bits.

usage: measure_errors.py lockstep [--webgpu REPORT.json]… [CASE…]

Runs `lockstep verify --against reference` on the CPU and `verify --device webgpu --against cpu` on the software adapter,
over the small sizes; REPORT.json are JSON documents of `verify --device webgpu --against cpu` from other adapters. With
cases, only their rows are replaced. `verify` accepts ten times these errors.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).resolve().parent.parent / "src/verify/measured_errors.inc"
ROW = re.compile(r'\{"(?P<case>[^"]+)", \{\{(?P<reference>[^}]*)\}, \{(?P<webgpu>[^}]*)\}\}\},')
NO_BOUND = "kAny"
PAIRS = ("reference", "webgpu")


def verify(program, device, against, cases):
    command = [program, "verify", *cases, "--device", device, "--against", against, "--json", "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"measure_errors.py: {' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)


def number(value):
    return {"nan": float("nan"), "inf": float("inf")}.get(value, value)


def largest(report, pair, table):
    fresh = set()
    for row in report["cases"]:
        if row["bound"].startswith("bits"):
            continue
        key = (row["case"], pair)
        if key not in fresh:
            table[key] = [] if key not in table or pair == "reference" else table[key]
            fresh.add(key)
        errors = table[key]
        for n, error in enumerate(map(number, row["relative_max"])):
            if n == len(errors):
                errors.append(0.0)
            if error > errors[n]:
                errors[n] = error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--webgpu", action="append", default=[])
    options = parser.parse_args()

    table = {}
    if TABLE.exists() and options.cases:
        for row in ROW.finditer(TABLE.read_text()):
            for pair in PAIRS:
                table[row["case"], pair] = [float("inf") if e == NO_BOUND else float(e) for e in row[pair].split(", ") if e]
        named = tuple(options.cases)
        table = {key: errors for key, errors in table.items() if not key[0].startswith(named)}
    largest(verify(options.lockstep, "cpu", "reference", options.cases), "reference", table)
    largest(verify(options.lockstep, "webgpu", "cpu", options.cases), "webgpu", table)
    for report in options.webgpu:
        largest(json.loads(pathlib.Path(report).read_text()), "webgpu", table)

    def text(error):
        return NO_BOUND if error == float("inf") else f"{error:.2g}"

    def row(case):
        return ", ".join(f"{{{', '.join(map(text, table.get((case, pair), [])))}}}" for pair in PAIRS)
    lines = [f'{{"{case}", {{{row(case)}}}}},' for case in sorted({case for case, _ in table})]
    TABLE.write_text("// Written by scripts/measure_errors.py: {case, {errors of the reference, errors of WebGPU}}.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
