#!/usr/bin/env python3
"""Rows with a target on one NVIDIA GPU: their times in one run, and counters of the longest kernel of each.

    bench/limits.py [--program build/bin/lockstep] --commit HASH --out bench/results/limits-h200.json
    bench/limits.py --from bench/results/limits-h200.json --docs docs/performance.md [--check]

Counters are Nsight Compute's (`ncu` of the CUDA toolkit, with permission to read them). Needs Python's standard library.
"""
import argparse
import csv
import io
import json
import re
import shutil
import subprocess

import marked

# Title, case, size, target in ms; a pattern of the names of its kernels.
ROWS = [
    ("rollouts, 5 × 1 × 256 × 50", "forecast.rollout.chosen", "5x1x256x50", 0.038, "rollout|cluster|forecast"),
    ("rollouts, 5 × 1 × 512 × 50", "forecast.rollout.chosen", "5x1x512x50", 0.056, "rollout|cluster|forecast"),
    ("rollouts, 5 × 1 × 1024 × 50", "forecast.rollout.chosen", "5x1x1024x50", 0.45, "rollout|cluster|forecast"),
    ("rollouts, 5 × 16 × 256 × 50", "forecast.rollout.chosen", "5x16x256x50", 0.12, "rollout|cluster|forecast"),
    ("rollouts, 5 × 16 × 512 × 50", "forecast.rollout.chosen", "5x16x512x50", 0.40, "rollout|cluster|forecast"),
    ("GRU sequence, 50 × 1 × 256, forward", "forecast.gru.forward", "50x1x256", 0.10, "gru|forecast"),
    ("GRU sequence, 50 × 1 × 256, with backward", "forecast.gru.gradient", "50x1x256", 0.30, "gru|forecast|matmul|gather|sum"),
    ("GRU sequence, 50 × 8 × 512, forward", "forecast.gru.forward", "50x8x512", 0.10, "gru|forecast"),
    ("GRU sequence, 50 × 8 × 512, with backward", "forecast.gru.gradient", "50x8x512", 0.30, "gru|forecast|matmul|gather|sum"),
    ("`pde` trajectory 256³, a level", "pde.trajectory.16", "256x256x256", 0.22, "pde"),
    ("`pde` fused 256³, periodic", "pde.fused.periodic", "256x256x256", None, "pde"),
    ("`pde` fused 256³, mixed walls", "pde.fused.mixed", "256x256x256", None, "pde"),
    ("`pde` fused 256³, order 4", "pde.fused.order4", "256x256x256", None, "pde"),
    ("matrix product f32, 4096³", "primitives.matmul", "4096x4096x4096", 2.988, "matmul"),
    ("matrix product f32, 1024³", "primitives.matmul.wide_64", "1024x1024x1024", 0.0767, "matmul"),
    ("matrix product f64, 4096³", "primitives.matmul.f64", "4096x4096x4096", 2.749, "tensor_product"),
    ("matrix product f32, 1 × 4096 × 4096", "primitives.matmul", "1x4096x4096", None, "matmul"),
    ("matrix product f32, 64 × 65,536 × 64", "primitives.matmul", "64x65536x64", None, "matmul"),
    ("4,096 transforms of 1,024, f32", "fft.c2c", "4096x1024", 0.030, "fft"),
    ("LES step 256²", "flow.step.rk2.smagorinsky", "256x256", 0.010, "flow|fft"),
    ("LES step 1024²", "flow.step.rk2.smagorinsky", "1024x1024", 0.033, "flow|fft"),
    ("LES step 4096²", "flow.step.rk2.smagorinsky", "4096x4096", 0.740, "flow|fft"),
    ("LES step 8192²", "flow.step.rk2.smagorinsky", "8192x8192", 3.8, "flow|fft"),
    ("sky view factors 1024²", "urban.svf.all.plants", "1024x1024", 4.5, "urban"),
    ("sum of 2²⁰, launched by itself", "primitives.sum", "1048576", 0.0065, "primitives"),
    ("inclusive scan of 2²⁸", "primitives.inclusive_scan", "268435456", None, "primitives"),
    ("sort of 2²⁶ u32", "primitives.sort.u32", "67108864", None, "primitives"),
]
STALLS = ("long_scoreboard", "short_scoreboard", "barrier", "membar", "wait", "math_pipe_throttle", "lg_throttle", "mio_throttle",
          "branch_resolving", "sleeping", "not_selected", "dispatch_stall", "tex_throttle", "drain", "no_instruction")
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "µs": "gpu__time_duration.sum",
    "DRAM": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "L1, shared": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "issue slots": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "fma": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "groups": "launch__grid_size",
}
SHARES = ("DRAM", "L2", "L1, shared", "issue slots", "fma", "warps")


def bench(program, case, size):
    command = [program, "bench", case, "--whole-names", "--sizes", size, "--device", "cuda", "--no-fallback", "--no-reference", "--json"]
    rows = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)["results"]
    if len(rows) != 1:
        raise LookupError(f"{case} {size}: {len(rows)} rows")
    return rows[0]


def counters(program, case, size, names):
    """Of the kernel whose launches take longest in a few operations; its share of their time."""
    wanted = list(METRICS.values()) + [STALL.format(s) for s in STALLS]
    command = ["ncu", "--csv", "--page", "raw", "--metrics", ",".join(wanted), "--kernel-name", f"regex:{names}", "--launch-skip", "20",
               "--launch-count", "24", program, "bench", case, "--whole-names", "--sizes", size, "--device", "cuda", "--no-reference",
               "--iterations", "30", "--warmup", "1", "--quiet"]
    text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    lines = [line for line in text.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        return {"error": text.strip()[-300:]}
    kernels = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[:1] + lines[2:]))):
        number = {k: float((row.get(metric) or "nan").replace(",", "")) for k, metric in METRICS.items()}
        number["stall"] = {s: float((row.get(STALL.format(s)) or "nan").replace(",", "")) for s in STALLS}
        kernels.setdefault(re.sub(r"\(.*", "", row["Kernel Name"]), []).append(number)
    units = dict(zip(lines[0][1:-1].split('","'), lines[1][1:-1].split('","')))
    scale = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3}[units[METRICS["µs"]]]
    total = {name: scale * sum(n["µs"] for n in found) for name, found in kernels.items()}
    longest = max(total, key=total.get)
    found = kernels[longest]
    mean = {k: sum(n[k] for n in found) / len(found) for k in METRICS}
    mean["µs"] *= scale
    stall = {s: sum(n["stall"][s] for n in found) / len(found) for s in STALLS}
    first = sorted((s for s in STALLS if stall[s] == stall[s]), key=stall.get, reverse=True)[:2]
    return {"kernel": longest, "share": round(total[longest] / sum(total.values()), 3), "launches": len(found),
            **{k: float(f"{v:.4g}") for k, v in mean.items()}, "stalls": {s: float(f"{stall[s]:.3g}") for s in first}}


def measure(options):
    rows = []
    for what, case, size, target, names in ROWS:
        if options.only and not re.search(options.only, case):
            continue
        row = {"what": what, "case": case, "size": size, "target": target}
        try:
            found = bench(options.program, case, size)
            row.update(ms=found["median_ms"], p95=found["p95_ms"], share_of_copy=found["share_of_copy"])
            if shutil.which("ncu"):
                row["counters"] = counters(options.program, case, size, names)
        except (LookupError, subprocess.CalledProcessError, KeyError) as error:
            row["error"] = str(error)
        print(json.dumps(row, ensure_ascii=False), flush=True)
        rows.append(row)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return {"gpu": gpu, "commit": options.commit, "command": "bench/limits.py", "rows": rows}


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(result):
    lines = ["| row | ms (p95) | target | longest kernel, its share, µs | " + " | ".join(f"{s}, %" for s in SHARES) +
             " | registers, groups | warps wait for |", "|---" * (6 + len(SHARES)) + "|"]
    for row in result["rows"]:
        c = row.get("counters", {})
        cells = [row["what"], f"{number(row['ms'])} ({number(row['p95'])})", number(row["target"]) if row["target"] else ""]
        if "kernel" in c:
            kernel = c["kernel"].removeprefix("kernel_").replace("_", "\\_")
            cells += [f"{kernel}, {100 * c['share']:.0f} %, {number(c['µs'])}"] + [f"{c[s]:.0f}" for s in SHARES]
            cells += [f"{c['registers']:.0f}, {c['groups']:.0f}", ", ".join(s.replace("_", " ") for s in c["stalls"])]
        else:
            cells += [""] * (3 + len(SHARES))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/lockstep")
    parser.add_argument("--commit", default="")
    parser.add_argument("--only", default="", help="cases that match this expression")
    marked.add_options(parser)
    options = parser.parse_args()
    if options.out:
        options.out.write_text(json.dumps(measure(options), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    marked.place_stored(options, table)


if __name__ == "__main__":
    main()
