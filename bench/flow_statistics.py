"""Statistics of long runs of `flow run` compared with what theory and published simulations have.

    python3 bench/flow_statistics.py build/bin/lockstep CASE [--n N] [--device cpu] [--precision f32] [--scale S]
        [--nu V] [--data FOLDER] [--json FILE]

CASE: inverse   forced at k = n/5 with drag: E(k) ~ k^-5/3, energy to large scales (Kraichnan 1967)
      direct    forced at k = 4 with drag: Z(k) ~ k^-1 or steeper, enstrophy to small scales
      kolmogorov  the force sin 4y at Re = 40 (Chandler and Kerswell 2013): means of energy, input and dissipation
      filtered  filtered turbulence of FOLDER/turbulence_ic_<n>.mat for ten turnover times on n and on 512 points (--reference),
                spectra next to each other
--scale multiplies the length of a run. Prints one line of JSON; --json puts it into a list in FILE.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy


def flow(a, options, folder):
    command = [a.program, "flow", "run", "--device", a.device, "--precision", a.precision, "--format", "npz", "--json",
               "--quiet", "--out", folder] + [str(o) for o in options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return numpy.load(os.path.join(folder, "run.npz")), json.loads(done.stdout), " ".join(["flow run"] + [str(o) for o in options])


def slope(k, spectrum, low, high):
    inside = (k >= low) & (k <= high)
    return float(numpy.polyfit(numpy.log(k[inside]), numpy.log(spectrum[inside]), 1)[0])


def late(run, name, share=0.5):
    values = run[name]
    return values[int(len(values) * (1 - share)):].mean(0)


def cascade(a, folder, ring, drag, dt, time, hyper_rate):
    n = a.n
    kept = (n - 1) // 3
    steps = int(time * a.scale / dt)
    run, result, command = flow(a, ["--n", n, "--ic", "noise", "--nu", 0, "--integrator", "rk4", "--dt", dt, "--steps", steps,
                                    "--forcing", f"stochastic:{ring},1", "--drag", drag, "--hyper",
                                    f"{hyper_rate / (2 * kept * kept) ** 4:.3e},4", "--save-every",
                                    max(1, steps // 60)], folder)
    k = run["k"]
    return run, k, {"n": n, "steps": steps, "energy": result["energy"], "forcing": ring,
                    "command": command}


def inverse(a, folder):
    ring = a.n // 5
    run, k, facts = cascade(a, folder, ring, 0.15, 0.35 / a.n, 20, 300)
    low, high = 6, int(0.7 * ring)
    flux = late(run, "energy_flux")
    return facts | {"range": [low, high], "slope_E": slope(k, late(run, "energy_spectrum"), low, high),
                    "theory_E": -5 / 3, "energy_flux_there": float(flux[low:high].mean()),
                    "energy_flux_beyond": float(flux[int(1.2 * ring)])}


def direct(a, folder):
    run, k, facts = cascade(a, folder, 4, 0.1, 0.35 / a.n, 40, 300)
    low, high = 8, int(a.n / 3 * 0.4)
    return facts | {"range": [low, high], "slope_Z": slope(k, late(run, "enstrophy_spectrum"), low, high),
                    "theory_Z": -1, "enstrophy_flux_there": float(late(run, "enstrophy_flux")[low:high].mean()),
                    "enstrophy_input": 16, "energy_flux_there": float(late(run, "energy_flux")[low:high].mean())}


def kolmogorov(a, folder):
    reynolds, dt = 40, 1.28 / a.n
    steps = int(1500 * a.scale / dt)
    run, _, command = flow(a, ["--n", a.n, "--ic", "noise", "--nu", 1 / reynolds, "--integrator", "rk4", "--dt", dt,
                               "--steps", steps, "--forcing", "kolmogorov:4,1", "--history-every", max(1, steps // 20000)],
                           folder)
    begin = run["history_time"] > 100
    mean = {name: float(run["history_" + name][begin].mean()) for name in ("energy", "energy_forcing", "energy_viscous")}
    laminar = reynolds / (2 * 4 ** 2)
    d = -run["history_energy_viscous"][begin] / laminar
    return {"n": a.n, "reynolds": reynolds, "time": steps * dt, "mean_energy_over_laminar": mean["energy"] / (
        reynolds ** 2 / (4 * 4 ** 4)), "mean_input_over_laminar": mean["energy_forcing"] / laminar,
        "mean_dissipation_over_laminar": float(d.mean()), "deviation": float(d.std()), "largest": float(d.max()),
        "command": command}


def spread(field, n):
    """The same modes on n points."""
    m = field.shape[0]
    spectrum = numpy.fft.fft2(field)
    large = numpy.zeros((n, n), complex)
    index = numpy.fft.fftfreq(m, 1 / m).astype(int)
    inside = numpy.abs(index) < m // 2
    index = index[inside]
    large[numpy.ix_(index, index)] = spectrum[numpy.ix_(inside.nonzero()[0], inside.nonzero()[0])]
    return numpy.fft.ifft2(large).real * (n / m) ** 2


def filtered(a, folder):
    """Both runs begin with the modes that n points keep."""
    source = os.path.join(a.data, f"turbulence_ic_{a.n}.mat")
    first = flow(a, ["--ic", source, "--steps", 1, "--dt", 1e-5], folder)[0]["omega"][0]
    turnover = 2 * math.pi / float(numpy.sqrt((first ** 2).mean()))
    time, runs, commands = 10 * turnover * a.scale, {}, []
    for n in (a.n, a.reference):
        path = os.path.join(folder, f"start_{n}.npz")
        numpy.savez(path, omega=first if n == a.n else spread(first, n))
        steps = math.ceil(time / a.cfl_time * n / 10) * 10
        runs[n], _, command = flow(a, ["--ic", path, "--nu", a.nu, "--integrator", "rk4", "--dt", time / steps, "--steps",
                                       steps, "--save-every", steps // 10], os.path.join(folder, str(n)))
        commands.append(command)
    coarse, fine = runs[a.n]["energy_spectrum"], runs[a.reference]["energy_spectrum"]
    kept = (a.n - 1) // 3
    error = numpy.abs(coarse[:, 1:kept + 1] / fine[:, 1:kept + 1] - 1)
    within = [int(numpy.argmax(row > 0.1)) if (row > 0.1).any() else kept for row in error]
    over_time = coarse[1:, 1:kept + 1].mean(0) / fine[1:, 1:kept + 1].mean(0) - 1
    return {"n": a.n, "reference": a.reference, "nu": a.nu, "turnover": turnover, "turnovers": 10 * a.scale, "kept": kept,
            "k_within_10_percent_by_turnover": within,
            "largest_error": {str(q): float(error[-1, :q].max()) for q in (8, 16, 24, 32, 42, 64, 85) if q <= kept},
            "largest_error_of_means_over_time": {str(q): float(numpy.abs(over_time[:q]).max())
                                                 for q in (8, 16, 24, 32, 42, 64, 85) if q <= kept},
            "enstrophy": [float(r["enstrophy"][-1]) for r in runs.values()], "commands": commands}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("case", choices=["inverse", "direct", "kolmogorov", "filtered"])
    parser.add_argument("--n", type=int, default=256)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--nu", type=float, default=1e-3)
    parser.add_argument("--reference", type=int, default=512, help="filtered: points of the finer run")
    parser.add_argument("--cfl-time", type=float, default=0.3, help="filtered: dt times n")
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA", "."))
    parser.add_argument("--json")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {"case": a.case} | globals()[a.case](a, folder)
    print(json.dumps(result))
    if a.json:
        rows = json.load(open(a.json)) if os.path.exists(a.json) else []
        rows = [r for r in rows if (r["case"], r["n"]) != (result["case"], result["n"])] + [result]
        with open(a.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
