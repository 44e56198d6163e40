#!/usr/bin/env python3
"""What a run of ./test did: lanes, skipped tests with their reasons, totals. Exit code 1 where CI misses a lane.

usage: test_summary.py BUILD [--sanitizers BUILD/asan] [--partial]

Reads CTest's own list of tests and its LastTest.log of each build folder: a test of the list that is not in the log, ran
none of its cases, was skipped or skipped a part that a lane is about makes that lane incomplete. With CI set in the
environment, every lane but those of real GPUs is required, and only tests may be skipped that need such a GPU, what their
device has not, a framework of Python, or test data where LOCKSTEP_DATA is not set; --partial (a chosen subset of tests)
requires nothing.
"""
import argparse
import json
import os
import re
import subprocess
import sys

# A lane ran where all of its tests did and none of their parts was skipped for a reason of the lane. Each test is a regular
# expression over names that CTest knows.
LANES = {
    "CPU": ["device_cpu", "verify", "fuzz_cpu"],
    "interpreter": ["interp", "fuzz_passes"],
    "software WebGPU": ["device_webgpu", "fuzz_webgpu"],
    "NVRTC": ["compile_cuda"],
    "golden data": ["urban_.*", "solve_.*", "forecast_train", "cli_solve", "cli_solve_mesh"],
    "ThreadSanitizer": ["threads", "threads_cuda", "threads_factors"],
    "command line": ["cli_.*"],
    "Python module": ["python"],
    "PyTorch on the CPU": ["python", "tutorial_loss"],
    "JAX on the CPU": ["python"],
    "tutorials": ["tutorial_(kernel_python|city|fit|flow)", "page_.*"],
    "films": ["io_video"],
    "QGIS": ["qgis_qgis"],
    "source tree": ["house_.*"],
    "wasm32": ["wasm", "web_.*"],
    "documentation site": ["docs_site"],
}
# Lanes that CI does not miss: switched off by the environment, or programs and frameworks that it may not install.
OPTIONAL = {"PyTorch on the CPU", "JAX on the CPU", "QGIS"} | ({"wasm32"} if os.environ.get("LOCKSTEP_WASM") == "off" else set())
NEEDS_GPU = re.compile(r"no CUDA|no NVIDIA|CUDA driver|libcuda|no GPU|fuzz_cuda|real GPU", re.I)
# Limits of a device by its nature (docs/support.md lists them), and tests that another one of the same case holds.
CANNOT = re.compile(r"has no f64|no 64-bit integers|WGSL has no i64|bytes of shared (memory|arrays)|no plain reference"
                    r"|the interpreter (takes too long|alone is too slow)|no CPU back end|without LLVM"
                    r"|wraps no memory of this process|only the interpreter checks bounds|points take minutes here|minutes in the driver's compiler|run by \S+ only|may not mount|needs root (to give|and setpriv)|too quick to be killed|every kind of device is there|LOCKSTEP_WASM=off|(chromium|mpirun|zsh|fish) is not installed", re.I)
# Frameworks that the Python module works with, and packages that oracles are compared with, that Debian does not have, or not new enough.
FRAMEWORK = re.compile(r"^(torch|jax|cupy|a torch with custom_op|mypy|pvlib|pythermalcomfort|qgis_process|dask) is not installed|^no (rasterio|h5py):"
                       r"|^could not import '(rasterio|xarray|netCDF4|pyproj|pandas|scipy|lmfit)[.\w]*'", re.I)
NEEDS_DATA = re.compile(r"is absent|is not here|test data|no /", re.I)
# Skips that make a lane incomplete even where they are excused.
ABOUT = {"golden data": NEEDS_DATA, "PyTorch on the CPU": re.compile(r"^(a )?torch\b", re.I),
         "JAX on the CPU": re.compile(r"^jax\b", re.I)}
NOTHING_RAN = re.compile(r"^\[  PASSED  \] 0 tests|^(no tests ran|Ran 0 tests)", re.M)


WHOLE_SKIP = re.compile(r"^(skipped|not run):|: SKIPPED$", re.I)


def excused(why):
    # ./test sets LOCKSTEP_DATA where the folder of test data is: there nothing of it may be missing.
    patterns = [NEEDS_GPU, CANNOT, FRAMEWORK] + ([] if os.environ.get("LOCKSTEP_DATA") else [NEEDS_DATA])
    return any(pattern.search(why) for pattern in patterns)


class Test:
    def __init__(self, name, output, verdict):
        # CTest gives the reason alone where a test passes by the text that it prints.
        passed = "Passed" in verdict or "Test Pass Reason:" in verdict
        self.name, self.passed = name, passed and not NOTHING_RAN.search(output)
        self.skips = skips_of(name, output)
        # CTest 3.25 logs a test that gave its SKIP_RETURN_CODE as passed: its last line says that it was not run. GoogleTest
        # ends with 0 where each of its tests was skipped.
        each_skipped = bool(self.skips) and passed and not self.passed
        self.skipped_whole = "Skip" in verdict or bool(WHOLE_SKIP.search(last_line(output))) or each_skipped
        if self.skipped_whole and not self.skips:
            self.skips = [(name, WHOLE_SKIP.sub("", last_line(output)).strip())]


def last_line(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def skips_of(name, output):
    """(test, reason) of GoogleTest's, unittest's and pytest's reports."""
    found, running, lines = [], name, output.splitlines()
    for k, line in enumerate(lines):
        started = re.match(r"\[ RUN      \] (\S+)", line)
        if started:
            running = started.group(1)
        if re.search(r"\.[ch]pp:\d+: Skipped$", line):
            found.append((f"{name}: {running}", lines[k + 1].strip() if k + 1 < len(lines) else ""))
        skipped = re.match(r"(\w+) \(.*\.\.\. skipped ['\"](.*)['\"]$", line)
        pytest = re.match(r"SKIPPED \[(\d+)\] (\S+?):\d*:? ?(.*)$", line)
        if pytest:
            found.append((f"{name}: {os.path.basename(pytest.group(2))}", pytest.group(3)))
        if skipped:
            found.append((f"{name}: {skipped.group(1)}", skipped.group(2)))
    return found


def read_log(build):
    path = os.path.join(build, "Testing", "Temporary", "LastTest.log")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    tests = []
    for block in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        name = block.split("\n", 1)[0].strip()
        output = block.split("Output:\n", 1)[-1].split("<end of output>")[0]
        tests.append(Test(name, output, block.split("<end of output>")[-1]))
    return tests


def listed(build):
    """The names of CTest's own list."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=False)
    return [test["name"] for test in json.loads(shown.stdout)["tests"]] if shown.returncode == 0 else []


def lane_finding(lane, patterns, names, tests):
    """(tests that ran whole, tests of the lane, why it is incomplete)."""
    missing, ran = [], 0
    chosen = [name for name in names if any(re.fullmatch(pattern, name) for pattern in patterns)]
    missing += [f"no test {p}" for p in patterns if not any(re.fullmatch(p, name) for name in names)]
    about = ABOUT.get(lane)
    for name in chosen:
        test = tests.get(name)
        if test is None:
            missing.append(f"{name} did not run")
        elif not test.passed and not test.skipped_whole:
            missing.append(f"{name} failed")
        elif test.skipped_whole:
            missing.append(f"{name} was skipped ({test.skips[0][1]})")
        else:
            whys = [f"{who}: {why}" for who, why in test.skips if (about.search(why) if about else not excused(why))]
            missing += whys
            ran += not whys
    return ran, len(chosen), "; ".join(missing[:3]) + (f"; and {len(missing) - 3} more" if len(missing) > 3 else "")


def lane_findings(names, tests):
    by_name = {test.name: test for test in tests}
    return {lane: lane_finding(lane, patterns, names, by_name) for lane, patterns in LANES.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--sanitizers")
    parser.add_argument("--partial", action="store_true")
    options = parser.parse_args()
    tests = read_log(options.build)
    names = listed(options.build)
    lanes = lane_findings(names, tests)
    unseen = sorted(set(names) - {test.name for test in tests})
    if options.sanitizers:
        checked = read_log(options.sanitizers)
        bad = sum(not test.passed for test in checked)
        lanes["ASan and UBSan"] = len(checked) - bad, len(checked), "" if checked and not bad else f"{bad} failed or it did not run"
        tests += checked
    skips = [skip for test in tests for skip in test.skips]
    required = bool(os.environ.get("CI")) and not options.partial

    print("== lanes")
    for lane, (ran, of, why) in lanes.items():
        print(f"  {lane:<18} {f'{ran} of {of} tests ran' if not why else f'INCOMPLETE, {ran} of {of} ran whole: {why}'}")
    if unseen and not options.partial:
        print(f"== not run: {', '.join(unseen)}")
    by_reason = {}
    for who, why in skips:
        by_reason.setdefault(why, []).append(who)
    if by_reason:
        print("== skipped")
    for why, who in sorted(by_reason.items()):
        print(f"  {why}: {', '.join(who[:4])}{f' and {len(who) - 4} more' if len(who) > 4 else ''}")

    data = bool(os.environ.get("LOCKSTEP_DATA"))
    faults = [f"lane {lane}: {why}" for lane, (_, _, why) in lanes.items()
              if why and lane not in OPTIONAL and (data or lane != "golden data")] if required else []
    faults += [f"{name} is in CTest's list and did not run" for name in unseen] if required else []
    faults += [f"skipped in CI: {who}: {why}" for who, why in skips
               if required and not excused(why)]
    for fault in faults:
        print(f"test: {fault}")
    failed = [t for t in tests if not t.passed and not t.skipped_whole]
    for test in failed:
        print(f"FAILED: {test.name}")
    whole = sum(t.skipped_whole for t in tests)
    print(f"{len(tests) - len(failed) - whole} passed, {len(failed)} failed, {whole} skipped")
    sys.exit(1 if faults or failed else 0)


if __name__ == "__main__":
    main()
