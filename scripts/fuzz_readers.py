#!/usr/bin/env python3
"""Fuzzes every reader of files with mutated inputs, in pieces that are stored, so that a run that was stopped continues where it was.

usage: fuzz_readers.py PROGRAM [PROGRAM…] [--count N] [--seed S] [--piece N] [--out FILE.json] [--reader NAME…] [--minutes M]
       fuzz_readers.py --table [--out FILE.json]

PROGRAM: test programs with tests named Fuzz (test_io_fuzz, …), best of a build with AddressSanitizer and all of UBSan:
    cmake --preset asan -DLOCKSTEP_SANITIZE=all && cmake --build build/asan --target test_io_fuzz
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

PASSED = re.compile(r"^(\d+) mutated files, (\d+) still readable", re.M)


def readers(program):
    """Names of the tests that fuzz: those of a suite named Fuzz."""
    suite, found = "", []
    for line in subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout.splitlines():
        if not line.startswith(" "):
            suite = line.split()[0]
        elif "Fuzz" in suite:
            found.append(suite + line.split()[0])
    return found


def run(program, reader, seed, first, count):
    """The inputs that one piece read, how many of them were whole, its seconds, and what was found."""
    environment = dict(os.environ, LOCKSTEP_FUZZ_SEED=str(seed), LOCKSTEP_FUZZ_FILE=str(first), LOCKSTEP_FUZZ_COUNT=str(count))
    start = time.monotonic()
    done = subprocess.run([program, "--gtest_filter=" + reader], capture_output=True, text=True, errors="replace", env=environment, check=False)
    seconds = time.monotonic() - start
    loops = PASSED.findall(done.stdout)
    finding = "" if done.returncode == 0 else f"exit code {done.returncode}: " + (done.stdout + done.stderr)[-2000:]
    return sum(int(read) for read, _ in loops), sum(int(whole) for _, whole in loops), seconds, finding


def table(stored):
    """The stored campaign as rows of Markdown."""
    print("| reader | inputs | still readable | seconds | inputs/s | findings |\n|---|---|---|---|---|---|")
    for name, row in sorted(stored["readers"].items()):
        rate = f"{row['inputs'] / row['seconds']:,.0f}" if row["seconds"] else ""
        print(f"| `{name}` | {row['inputs']:,} | {row['whole']:,} | {row['seconds']:,.0f} | {rate} | {len(row['findings'])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs of each reader")
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--piece", type=int, default=50_000)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bench/results/fuzz_readers.json"))
    parser.add_argument("--reader", nargs="*", help="only these")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begins no piece after so long")
    parser.add_argument("--table", action="store_true", help="print what is stored as a table")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    stored = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {"seed": given.seed, "readers": {}}
    if stored["seed"] != given.seed:
        sys.exit(f"{given.out} has seed {stored['seed']}: expected {given.seed}, or another --out")
    if given.table:
        return table(stored)
    for program in given.programs:
        for reader in readers(program):
            if given.reader and reader not in given.reader:
                continue
            row = stored["readers"].setdefault(reader, {"next": 0, "inputs": 0, "whole": 0, "seconds": 0.0, "findings": []})
            while row["next"] < given.count and time.monotonic() < end:
                count = min(given.piece, given.count - row["next"])
                inputs, whole, seconds, finding = run(program, reader, given.seed, row["next"], count)
                if not finding and inputs == 0:
                    del stored["readers"][reader]  # a test without mutated inputs, or one that was skipped
                    break
                if finding:
                    row["findings"].append({"first": row["next"], "count": count, "text": finding})
                row["next"] += count
                row["inputs"] += inputs
                row["whole"] += whole
                row["seconds"] = round(row["seconds"] + seconds, 1)
                part = given.out.with_suffix(".part")
                part.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
                part.replace(given.out)
            if reader in stored["readers"]:
                print(f"{reader}: {row['inputs']} inputs, {len(row['findings'])} findings", flush=True)
    return any(row["findings"] for row in stored["readers"].values())


if __name__ == "__main__":
    sys.exit(main())
