#!/usr/bin/env python3
"""Compile time of long straight-line code on the CPU: seconds of processor time until a kernel is ready; one JSON object.

usage: python bench/compile_time.py [--lengths 4000,16000,50000] [--rounds 3] [--json FILE]

Each kernel is a chain of multiply-adds with one constant or with distinct ones. The figure is the user time of its first launch
with an empty kernel cache, the least of the rounds, for both values of LOCKSTEP_CPU_CODE.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile


def measure(length, distinct):
    """Processor seconds of one kernel's tracing, compilation and first launch; in a process of its own."""
    import numpy as np

    import lockstep as ls

    @ls.kernel
    def chain(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
        a = x[at]
        b = a * 0.001
        for k in range(length):
            a = ls.fma(a, b, 1 + k / 8192 if distinct else 1.5)
        out[at] = a

    x = np.linspace(0, 1, 64, dtype="f4")
    out = np.zeros_like(x)
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    chain["cpu", x.shape](x, out)
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - begin


def ready(length, distinct, code):
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, LOCKSTEP_CACHE_DIR=cache, LOCKSTEP_CPU_CODE=code)
        command = [sys.executable, __file__, "--one", f"{length},{int(distinct)}"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="4000,16000,50000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        length, distinct = map(int, options.one.split(","))
        print(measure(length, distinct))
        return
    rows = [
        {
            "multiply_adds": int(length),
            "constants": "distinct" if distinct else "one",
            "code": code,
            "seconds": round(min(ready(int(length), distinct, code) for _ in range(options.rounds)), 3),
        }
        for length in options.lengths.split(",")
        for distinct in (False, True)
        for code in ("fast", "quick")
    ]
    text = json.dumps({"cpu_compile_time": rows}, indent=1)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
