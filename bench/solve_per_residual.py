#!/usr/bin/env python3
"""Time per residual over growing problems, on one machine; prints a table in Markdown.

usage: bench/solve_per_residual.py [--program build/bin/lockstep] [--device cpu] [--sizes small|full] [--out FILE]

Springs: cost and gradient in f32 over spheres of 7,680 to 7.9 million edges. Reprojections: cost, gradient, Jacobian
and diagonal in f64 of synthetic bundles with 10,000 to 10 million observations. Rows are medians of `lockstep bench`.
"""
import argparse
import json
import pathlib
import subprocess
import sys

SPRINGS = {str(k): 30 * 4**k for k in range(4, 10)}  # subdivisions: edges
VIEWS = 5
BUNDLES = {f"{cameras}x{points}x{VIEWS}": points * VIEWS
           for cameras, points in ((20, 2000), (63, 20000), (200, 200000), (630, 2000000))}


def rows(given, case, sizes):
    command = [given.program, "bench", case, "--sizes", ",".join(sizes), "--device", given.device, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["results"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", choices=("small", "full"), default="full", help="small: up to 10\u2075")
    parser.add_argument("--out", help="JSON of the rows")
    given = parser.parse_args()
    kept = []
    print("| residuals | what | ns per residual | relative to the middle one |")
    print("|---|---|---|---|")
    for case, sizes in (("solve.springs.gradient", SPRINGS), ("solve.bal.linearize.f64", BUNDLES)):
        chosen = {size: count for size, count in sizes.items() if given.sizes == "full" or count <= 200000}
        found = rows(given, case, list(chosen))
        times = [1e6 * row["median_ms"] / chosen[row["size"]] for row in found]
        middle = sorted(times)[len(times) // 2]
        for row, time in zip(found, times):
            print(f"| {chosen[row['size']]:,} | {case} | {time:.3g} | {time / middle - 1:+.0%} |")
            kept.append({"case": case, "residuals": chosen[row["size"]], "ns": time})
    if given.out:
        pathlib.Path(given.out).write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
