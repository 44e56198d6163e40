#!/usr/bin/env python3
"""Measures one machine: parity of every case, then the benchmark rows that docs/performance.md quotes.

usage: bench/measure.py [--program build/bin/lockstep] [--device auto] [--commit HASH] [--cases engine,primitives,urban]
                        [--peer NAME=COMMAND ...] --out bench/results/DEVICE.json

A peer is a command that prints JSON lines; it runs in the same call, after ours and before ours again, so that the
figures are next to each other. Needs nothing but Python's standard library.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time


def run_json(command):
    """Runs a command whose stdout is one JSON document; gives it with the exit code."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return json.loads(done.stdout), done.returncode
    except json.JSONDecodeError:
        return {"error": done.stderr.strip()[-500:]}, done.returncode


def machine():
    facts = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "system": platform.platform()}
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            facts["processor"] = next(line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        facts["gpu"] = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pass
    return facts


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--commit", default="")
    parser.add_argument("--cases", default="engine,primitives,urban")
    parser.add_argument("--against", default="cpu", help="what `verify` compares with")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()

    result = {"commit": options.commit or commit(), "time": time.strftime("%Y-%m-%dT%H:%M:%S"), "machine": machine(), "commands": []}

    def lockstep(*arguments):
        command = [options.program, *arguments, "--device", options.device, "--json"]
        result["commands"].append(" ".join(command))
        return run_json(command)

    verify, code = lockstep("verify", "--against", options.against)
    result["verify"] = {"exit": code, **{k: verify.get(k) for k in ("device", "against", "passed", "failed", "skipped", "error") if k in verify}}
    result["verify"]["worst"] = [c for c in verify.get("cases", []) if c["differing_bits"]][:40]
    prefixes = options.cases.split(",")
    result["bench"] = []
    for turn in range(2 if options.peer else 1):
        for prefix in prefixes:
            bench, code = lockstep("bench", prefix)
            result["bench"].append({"turn": turn, "cases": prefix, "exit": code, **bench})
        if turn == 0:
            for peer in options.peer:
                name, command = peer.split("=", 1)
                done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
                result.setdefault("peers", {})[name] = rows or {"error": done.stderr.strip()[-500:]}
    result["startup"], _ = lockstep("bench", "startup")

    beside = options.out + ".part"
    with open(beside, "w") as out:
        json.dump(result, out, indent=1)
    os.replace(beside, options.out)
    print(f"{options.out}: verify {result['verify'].get('passed')} passed, {result['verify'].get('failed')} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
