"""The blocks of a page run one after the other in an empty folder, and print what the page shows.

usage: run_page.py PAGE.md | --list

Blocks `sh` are scripts of bash, blocks `python` run in one interpreter, blocks `toml` are sketches that are solved, or tasks
that are trained. A block `text`
behind one of them is its output: `…` is any text, and any lines if it is alone on its line. `examples` is the folder of the tree.
--list checks that every block of README and docs has a kind and is run here, run or compiled by a test that names its page, or
listed with the reason. Blocks `none` are formulas and tables, and a block `text` follows the block that prints it.
"""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.S | re.M)
PROGRAMS = ("sh", "bash", "cpp", "python", "cmake", "html", "js", "toml", "dockerfile")
# Makes the files that a page takes as given, in Python or as commands.
FRAMES = """import numpy as np
rng = np.random.default_rng(5)
frames = {f"{name}{level}": rng.normal(size=(*components, 12, 12, 12)) for level in range(3) for name, components in (("sigma", ()), ("u", (3,)))}
np.savez("frames.npz", **frames)
np.savez("run.npz", sigma=rng.normal(size=(4, 12, 12, 12)), u=rng.normal(size=(4, 3, 12, 12, 12)))
"""
LOGS = """import json
import numpy as np
rng, steps = np.random.default_rng(5), np.arange(0, 8000, 100)
losses = 0.2 + 2 * (1 + steps / 300) ** -0.8 + 0.01 * rng.normal(size=steps.size)
open("log.csv", "w").writelines(["step,loss\\n", *(f"{s},{v:.5f}\\n" for s, v in zip(steps, losses))])
open("log.jsonl", "w").writelines(json.dumps({"step": int(s), "loss": float(v)}) + "\\n" for s, v in zip(steps, losses))
runs = [end + 2 * (1 + steps / 300) ** -0.8 for end in (0.2, 0.3, 0.4, 0.5)]
np.savez("digits.npz", inputs=rng.normal(size=(64, 20)).astype("f4"), targets=rng.integers(0, 10, 64).astype("i4"))
open("sweep.csv", "w").writelines(["step,a,b,c,d\\n", *(",".join(map(str, row)) + "\\n" for row in zip(steps, *runs))])
"""
GIVEN = {"docs/mesh.md": "lockstep solve mesh icosphere:3 --energy smooth --max-iterations 1 --out scan.ply",
         "docs/pde.md": FRAMES, "docs/forecast.md": LOGS,
         "docs/records.md": "for name in BEFORE AFTER RESULTS; do lockstep flow run --n 16 --steps 4 --out $name --quiet; done"}
# Pages that run_page.py runs, by tests tutorial_* and page_*.
PAGES = ("docs/tutorials/*.md", "README.md", "docs/mesh.md", "docs/sketch.md", "docs/urban-from-umep.md", "docs/urban-runs.md", "docs/pde.md",
         "docs/forecast.md", "docs/records.md")
# Blocks of those that are not run, by their beginning; a block of several commands may have single lines here.
NOT_RUN = {
    "README.md": {"./run": "they install packages and build", "python3 -m venv": "it builds; install_consumer and install_portable, check_wheel.py",
                  "lockstep bench engine.copy urban --device cuda": "it needs a GPU"},
    "docs/tutorials/kernel_cpp.md": {"# CMakeLists.txt": "install_consumer builds such a project"},
    "docs/cluster.md": {"lockstep urban run … --device cuda:all": "inputs are left out; cli_ranks", "#!/bin/bash": "it needs a cluster",
                        "mpirun -n 4 lockstep": "data of others, and MPI; the tests of ranks",
                        "mpirun -n 4 python3 planes.py": "MPI; tests/python/test_guides.py", "torchrun --nproc-per-node 2 train.py": "PyTorch; tests/python/test_guides.py",
                        "FROM debian:12-slim": "it needs a container engine and the network"},
    "docs/records.md": {"lockstep reproduce RESULTS --device cuda": "it needs a GPU"},
    "docs/numerics.md": {"ulp_sweep": "it takes an hour; the tests of math run a sample"},
    "docs/pde.md": {"lockstep pde study": "it takes minutes, or a GPU; cli_pde", "lockstep pde example": "it takes minutes; the tests of pde and cli_pde"},
    "docs/python.md": {"scripts/packages.sh run": "it installs and builds; check_wheel.py"},
    "docs/solve.md": {"lockstep solve nist Misra1a.dat": "files of others; cli_solve runs each where LOCKSTEP_DATA has them",
                      "lockstep solve g2o city.g2o": "files of others; the tests of the doctor make such ones"},
    "docs/urban-fields.md": {"lockstep urban run": "weather of others; cli_options_series makes such a file"},
    "docs/urban-model.md": {"lockstep urban validate": "data of others; SeriesRun.Kronenhuset* where LOCKSTEP_DATA has them"},
    "docs/web.md": {"scripts/packages.sh web": "it installs; the lane wasm of ./test"},
}
# Pages whose blocks of a kind another test runs or compiles: the test names the page.
ELSEWHERE = {
    "tests/house/test_guides.py": ("cpp", ("language", "gradients", "cluster", "fft", "pde", "solve", "solve-smoothing")),
    "tests/house/CMakeLists.txt": ("cpp", ("tutorials/kernel_cpp", "solve-from-ceres")),
    "tests/python/test_guides.py": ("python", ("python", "cluster", "solve-from-gtsam", "solve-from-scipy", "solve-smoothing", "urban")),
    "tests/web/guide.test.mjs": ("html js", ("web",)),
    "tests/cli/test_planner_day.py": ("sh", ("urban",)),
    "tests/cli/test_urban_results.py": ("sh", ("urban-results",)),
}


def pattern_of(shown):
    lines = [r"(?:.*\n)*?" if line == "…" else ".*".join(re.escape(p) for p in re.split(" *… *", line.rstrip())) + r" *\n"
             for line in shown.splitlines()]
    return re.compile("".join(lines))


def run_python(code, scope):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "page.py", "exec"), scope)  # noqa: S102
    return out.getvalue()


def run_shell(code, _scope):
    done = subprocess.run(["bash", "-euc", code], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} of\n{code}")
    return done.stdout


def run_toml(code, _scope):
    """A task of training, or a sketch."""
    pathlib.Path("given.toml").write_text(code, encoding="utf-8")
    return run_shell("lockstep forecast train given.toml --steps 4 --out trained" if "[[layers]]" in code else
                     "lockstep solve sketch given.toml --out solved.toml", None)


RUNNERS = {"sh": run_shell, "python": run_python, "toml": run_toml}


def reason_of(name, body):
    return next((reason for start, reason in NOT_RUN.get(name, {}).items() if body.startswith(start)), None)


def pieces(name, body):
    """The block, or its commands one by one without those that are not run."""
    lines = body.splitlines(keepends=True)
    if any(reason_of(name, line) for line in lines):
        return [line for line in lines if not reason_of(name, line)]
    return [body]


def run_blocks(page, name):
    scope, printed, ran = {"__name__": "page"}, [], 0
    given = GIVEN.get(name, "")
    (run_python if given.startswith("import ") else run_shell)(given, {})
    for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind in RUNNERS and not reason_of(name, body):
            printed = [RUNNERS[kind](piece, scope) for piece in pieces(name, body)]
            ran += 1
        elif kind == "text" and printed:
            pattern = pattern_of(body)
            if not any(pattern.fullmatch(text if text.endswith("\n") else text + "\n") for text in printed):
                sys.exit(f"{page}: expected\n{body}\nprinted\n{''.join(printed)}")
            printed = []
        elif kind != "text":
            printed = []
    return ran


def orphans(text):
    """The blocks `text` that do not follow the block of a program."""
    end, last = 0, None
    for block in BLOCK.finditer(text):
        if block[1] == "text" and (last not in PROGRAMS or text[end:block.start()].strip()):
            yield block[2]
        end, last = block.end(), block[1]


def unaccounted():
    """Blocks that no one runs, compiles or excuses, and excuses of no block."""
    own = {page for pattern in PAGES for page in ROOT.glob(pattern)}
    unused = {(name, start) for name, starts in NOT_RUN.items() for start in starts}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/tutorials").glob("*.md"))]:
        name, stem = str(page.relative_to(ROOT)), str(page.relative_to(ROOT)).removeprefix("docs/").removesuffix(".md")
        others = {kind: test for test, (kinds, pages) in ELSEWHERE.items() if stem in pages for kind in kinds.split()}
        for test in set(others.values()):
            if pathlib.Path(name).name not in (ROOT / test).read_text(encoding="utf-8"):
                yield f"{test} does not name {name}"
        for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
            unused -= {(name, start) for start in NOT_RUN.get(name, {}) if any(line.startswith(start) for line in body.splitlines())}
            runs = page in own and (kind in RUNNERS or kind == "cpp" and name == "README.md")
            if kind in PROGRAMS and not (runs or kind in others or reason_of(name, body)):
                yield f"{name}: no test runs the block\n{body}"
            elif kind not in (*PROGRAMS, "text", "none"):
                yield f"{name}: a block of the kind '{kind}': expected one of {', '.join(PROGRAMS)}, text, none\n{body}"
        yield from (f"{name}: no block prints the text\n{body}" for body in orphans(page.read_text(encoding="utf-8")))
    yield from (f"{name}: no block begins with {start!r}" for name, start in sorted(unused))


def main():
    if sys.argv[1:] == ["--list"]:
        for name, starts in NOT_RUN.items():
            for start, reason in starts.items():
                print(f"left out: {name}: {start} …: {reason}")
        found = list(unaccounted())
        sys.exit("\n".join(found) if found else 0)
    page = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.symlink(ROOT / "examples", "examples")
        try:
            ran = run_blocks(page, str(page.relative_to(ROOT)))
        except ModuleNotFoundError as missing:
            if missing.name.startswith("lockstep"):
                raise
            print(f"skipped: {missing.name} is not installed")
            sys.exit(77)
        finally:
            os.chdir("/")
    if ran == 0:
        sys.exit(f"{page}: no block runs")
    print(f"{page.name}: {ran} blocks ran")


if __name__ == "__main__":
    main()
