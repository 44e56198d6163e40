#!/usr/bin/env python3
"""Checks the Python wheel as its users get it; exit code 1 with a line for each finding.

usage: check_wheel.py [--wheel FILE] [--python PYTHON]... [--scratch FOLDER] [--out FOLDER]

Without --wheel one is built by `pip wheel` from a fresh clone of this repository with the first PYTHON (default: the one that runs
this), which takes the time of a whole build; the build backend and auditwheel are those of build_requirements.txt. Checked are its size, what its
libraries need of the system (check_elf.py, auditwheel, and abi3audit where it is installed), their search paths
and stacks, and that it runs in an empty environment of each PYTHON: NumPy alone is installed in addition, from pip.
--out keeps the wheel, with the platform tag that auditwheel finds.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import check_elf

LIMIT_MB = 40
MANYLINUX = "manylinux_{}_{}_x86_64".format(*check_elf.NEWEST["GLIBC"])
OF_THE_SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z)\.so\.\d+|ld-linux-x86-64\.so\.2")

RUNS = '''
import sys, numpy as np, lockstep as ls
from lockstep import flow, forecast, pde, solve, urban
assert "site-packages" in ls.__file__, ls.__file__
@ls.kernel
def heat(at, t: ls.Grid[ls.f32, 2], out: ls.Out[ls.f32, 2], a: ls.f32):
    out[at] = ls.fma(a, t[at.x(+1)] + t[at.x(-1)] - 2 * t[at], t[at])
x = np.random.default_rng(1).random((16, 16), "f4")
assert ls.verify(heat, (x, np.zeros_like(x), 0.1), against="interp", device="cpu")
city = np.pad(np.full((4, 4), 9, "f4"), 6)
shade = urban.shadows(city, azimuth=200, altitude=40, pixel_size=1.0, device="cpu")["shadow_buildings"]
assert 0 < shade.mean() < 1
s = np.linspace(0, 4, 20)
fit = solve.least_squares(lambda p, x, y: p[0] * ls.exp(-p[1] * x) - y, [1, 1], args=(s, 3 * np.exp(-0.5 * s)))
np.testing.assert_allclose(fit.x, [3, 0.5], rtol=1e-6)
system = pde.System(1)
u = system.field("u")
system.residual("burgers", system.dt(u) + system.at(u) * system.dx(u) - 0.01 * system.laplacian(u))
loss = pde.Loss(system, pde.Mesh(32, spacing=1 / 32, dt=1e-3))
assert loss({"u": tuple(np.sin(np.arange(32, dtype="f4") + k) for k in range(3))}, device="cpu") > 0
run = flow.Simulation(32, dt=1e-3, device="cpu").set_vorticity(flow.initial_field(32, seed=7))
assert np.isfinite(run.advance(2).vorticity()[0]).all()
steps = np.arange(100.0)
assert forecast.curve(steps, 2 * (steps + 1) ** -0.3 + 0.5, horizon=1000)["advice"]
print("python", sys.version.split()[0], "runs all parts")
'''


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"check_wheel: {' '.join(map(str, command[:6]))}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def tools_for(python, scratch):
    """The programs of an environment with the build backend and auditwheel."""
    run(python, "-m", "venv", scratch / "builder")
    tools = scratch / "builder" / "bin"
    listed = pathlib.Path(__file__).with_name("build_requirements.txt")
    run(tools / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--require-hashes", "-r", listed)
    return tools


def build(tools, scratch):
    """With the build folder, the compiler's name and the headers of other trees, so that ccache knows what they have compiled."""
    root = pathlib.Path(__file__).resolve().parents[1]
    run("git", "clone", "--quiet", root, scratch / "clone")
    run("sh", "-c", f"'{root}/scripts/fetch_wgpu.sh' build || true", cwd=scratch / "clone")
    run(tools / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-C", "build-dir=build", "-w", scratch / "wheels",
        scratch / "clone", env={**os.environ, "CXX": "c++"})
    return next((scratch / "wheels").glob("lockstep-*.whl"))


def wrong_library(file, inside):
    """Libraries that a shared library needs and that neither the wheel nor every system has."""
    for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-W", "-d", file)):
        if name not in inside and not OF_THE_SYSTEM.fullmatch(name):
            yield f"{file.name} needs {name}, which is not in the wheel"


def wrong_contents(wheel, scratch):
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    if size > LIMIT_MB:
        yield f"{size:.1f} MB: expected at most {LIMIT_MB}"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch / "contents")
    libraries = [f for f in (scratch / "contents").rglob("*.so*") if f.is_file()]
    for file in libraries:
        yield from wrong_library(file, {f.name for f in libraries})
    for file in check_elf.elf_files(str(scratch / "contents")):
        yield from (f"{os.path.basename(file)}: {wrong}" for wrong in check_elf.findings_of(file, installed=True))
    module, = (f for f in libraries if f.name.startswith("_core"))
    names = [line.split()[-1].partition("@")[0] for line in run("readelf", "-W", "--dyn-syms", module).splitlines()
             if re.search(r"\b(GLOBAL|WEAK|UNIQUE)\b", line) and " UND " not in line]
    if names != ["PyInit__core"]:
        yield f"{module.name} gives away {len(names)} names, such as {names[:3]}: expected PyInit__core alone"


def platform_tag(tools, wheel):
    """That of the oldest systems that it runs on, by auditwheel; empty where there is none."""
    shown = run(tools / "auditwheel", "show", wheel, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    return next(iter(re.findall(r"manylinux_\d+_\d+_x86_64", shown)), "")


def keep(wheel, tools, tag, folder):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(wheel, folder)
    run(tools / "python", "-m", "wheel", "tags", "--remove", "--platform-tag", tag, folder / wheel.name)


def wrong_abi(wheel):
    """abi3audit, where this interpreter has it."""
    tool = pathlib.Path(sys.executable).parent / "abi3audit"
    if "abi3" not in wheel.name or not tool.exists():
        print(f"abi3audit: left out ({'not installed' if 'abi3' in wheel.name else 'not an abi3 wheel'})")
    else:
        run(tool, "--strict", wheel)
        print("abi3audit: ok")


def try_with(python, wheel, scratch):
    place = scratch / f"venv-{pathlib.Path(python).resolve().name}"
    run(python, "-m", "venv", place)
    own = place / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", wheel)  # no hash: NumPy as the user's pip gives it
    bare = {"HOME": str(scratch), "PATH": f"{place}/bin", "LOCKSTEP_CACHE_DIR": str(scratch / "cache")}
    print(run(own, "-c", RUNS, env=bare, cwd=scratch).strip())
    for program in ([own, "-m", "lockstep"], [place / "bin" / "lockstep"]):
        if "cpu" not in run(*program, "devices", env=bare, cwd=scratch):
            yield f"{' '.join(map(str, program))} devices: expected the CPU among them"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--python", action="append")
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    pythons = options.python or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="lockstep-wheel-", dir=options.scratch) as folder:
        scratch = pathlib.Path(folder)
        tools = tools_for(pythons[0], scratch)
        wheel = options.wheel or build(tools, scratch)
        tag = platform_tag(tools, wheel)
        print(f"auditwheel: {tag or 'no manylinux tag'}")
        wrong = [*wrong_contents(wheel, scratch)]
        if not tag or check_elf.links_for_others() and int(tag.split("_")[2]) > check_elf.NEWEST["GLIBC"][1]:
            wrong.append(f"auditwheel: {tag or 'no manylinux tag'}: expected {MANYLINUX} or lower")
        wrong_abi(wheel)
        for python in pythons:
            wrong += try_with(python, wheel, scratch)
        if options.out and not wrong:
            keep(wheel, tools, tag, options.out)
    for line in wrong:
        print("check_wheel:", line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
