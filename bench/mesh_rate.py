#!/usr/bin/env python3
"""L-BFGS iterations a second on a sheet of 10,000 vertices, the page "Meshes" on a native device: JSON on stdout.

usage: bench/mesh_rate.py PROGRAM DEVICE [ROUNDS]      (build/bin/lockstep webgpu:0)

The first iteration, which compiles the kernels, is left out. Exit code 1 where a stage fell back to the processor.
"""
import json
import statistics
import subprocess
import sys

OPTIONS = ["solve", "mesh", "grid:100x100", "--energy", "bend", "--rest-scale", "1.05", "--fix", "boundary", "--handle", "5050+=0,0,0.2",
           "--method", "lbfgs", "--iterations", "400", "--precision", "f32", "--no-fallback", "--json", "--quiet"]


def main(program, device, rounds="3"):
    rates = []
    for _ in range(int(rounds)):
        run = json.loads(subprocess.run([program, *OPTIONS, "--device", device], stdout=subprocess.PIPE, check=True).stdout)
        first, last = run["trace"][0], run["trace"][-1]
        rates.append((last["iteration"] - first["iteration"]) / (last["seconds"] - first["seconds"]))
    print(json.dumps({"command": " ".join(["lockstep", *OPTIONS, "--device", device]), "device": run["device"], "version": run["version"],
                      "vertices": run["vertices"], "iterations": run["iterations"], "final_cost": run["final_cost"],
                      "iterations_a_second": round(statistics.median(rates), 1), "rounds": [round(rate, 1) for rate in rates]}, indent=1))
    return 1 if run["fallbacks"] else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
