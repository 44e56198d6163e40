"""The table of `flow pipeline`: where the stages run, sizes, strides and precisions; errors, drifts, seconds by stage.

    python3 bench/flow_pipeline.py build/bin/lockstep --out DIR [--device cuda:0] [--places cpu,mixed,device]
        [--sizes 256,512,1024] [--strides 1,5,10] [--precisions f32,f64] [--steps 100] [--overlap auto|on|off]

One process for each size, whose metrics are in DIR/<size>_<places>; those that are there already are not run again, so that a
table can be made in several goes and on several machines. Writes DIR/table.json and DIR/table.md of all that lie there. The
flow is McWilliams' with Smagorinsky's closure, Heun's method and one time step for all sizes.
"""
import argparse
import json
import os
import subprocess
import sys

STAGES = ["simulate", "encode", "learn", "rollout", "decode"]


def settings(dt, steps):
    return ["--closure", "smagorinsky", "--integrator", "rk2", "--nu", "1e-4", "--dt", str(dt), "--steps", str(steps),
            "--rank", "0.99"]


def run_size(a, n):
    overlap = "" if a.overlap == "auto" else f"_overlap_{a.overlap}"
    folder = os.path.join(a.out, f"{n}_{a.places.replace(',', '_')}{overlap}")
    if os.path.exists(os.path.join(folder, "metrics.json")):
        return
    command = [a.program, "flow", "pipeline", "--device", a.device, "--sizes", n, "--strides", a.strides, "--precisions",
               a.precisions, "--places", a.places, "--overlap", a.overlap, "--quiet", "--out", folder] + settings(a.dt, a.steps)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"{n}: {done.stderr.strip()}", file=sys.stderr)


def rows_of(out):
    rows = []
    for folder in sorted(os.listdir(out)):
        metrics = os.path.join(out, folder, "metrics.json")
        if os.path.exists(metrics):
            with open(metrics) as file:
                rows += [row(run) for run in json.load(file)["runs"]]
    return sorted(rows, key=lambda r: (r["n"], r["stride"], r["precision"], r["place"]))


def row(run):
    fields = run["fields"]["held_out"]
    model, seconds = fields["surrogate"], run["wall_seconds"]
    return {"n": run["n"][0], "stride": run["stride"], "precision": run["precision"], "place": run["place"],
            "device": run["device"], "steps": run["steps"], "frames": run["frames"], "train_frames": run["train_frames"],
            "latent_size": run["latent_size"], "relative_l2": model["relative_l2"], "correlation": model["correlation"],
            "persistence": fields["persistence"]["relative_l2"], "codec": fields["codec"]["relative_l2"],
            "horizon": run["fields"]["horizon"], "energy_drift": model["energy_drift"],
            "enstrophy_drift": model["enstrophy_drift"],
            "seconds": {stage: seconds.get("flow." + stage) for stage in STAGES}, "all_seconds": run["seconds"],
            "overlapped": run["overlapped"],
            "bytes_to_device": sum(t["bytes_to_device"] for t in run["counted_transfers"]),
            "bytes_from_device": sum(t["bytes_from_device"] for t in run["counted_transfers"]),
            "peak_device_bytes": run["peak_device_bytes"]}


def markdown(rows):
    lines = ["| n | stride | precision | place | L2 | correlation | persistence | dE/E | dZ/Z | "
             + " | ".join(STAGES) + " | all (s) | at once |", "|---" * (11 + len(STAGES)) + "|"]
    for r in rows:
        numbers = [f"{r['relative_l2']:.3g}", f"{r['correlation']:.4f}", f"{r['persistence']:.3g}",
                   f"{r['energy_drift']:+.2g}", f"{r['enstrophy_drift']:+.2g}"]
        numbers += [f"{r['seconds'][s]:.3g}" if r["seconds"][s] is not None else "–" for s in STAGES]
        numbers += [f"{r['all_seconds']:.3g}", "yes" if r["overlapped"] else "no"]
        lines.append(f"| {r['n']} | {r['stride']} | {r['precision']} | {r['place']} ({r['device']}) | "
                     + " | ".join(numbers) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--places", default="cpu,mixed,device")
    parser.add_argument("--sizes", default="256,512,1024")
    parser.add_argument("--strides", default="1,5,10")
    parser.add_argument("--precisions", default="f32,f64")
    parser.add_argument("--overlap", default="auto", choices=["auto", "on", "off"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--dt", type=float, default=4e-4)
    a = parser.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for n in a.sizes.split(","):
        run_size(a, n)
    rows = rows_of(a.out)
    with open(os.path.join(a.out, "table.json"), "w") as file:
        json.dump({"settings": settings(a.dt, a.steps), "rows": rows}, file, indent=1)
    with open(os.path.join(a.out, "table.md"), "w") as file:
        file.write(markdown(rows))
    print(markdown(rows), end="")


if __name__ == "__main__":
    main()
