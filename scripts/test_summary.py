#!/usr/bin/env python3
"""What a run of ./test did: lanes, skipped tests with their reasons, totals. Exit code 1 where CI misses a lane.

usage: test_summary.py BUILD [--sanitizers BUILD/asan] [--partial]

Reads CTest's LastTest.log of each build folder. With CI set in the environment, every lane but those of real GPUs is
required, and only tests may be skipped that need such a GPU, what their device has not, a framework of Python, or test
data where LOCKSTEP_DATA is not set; --partial (a chosen subset of tests) requires nothing.
"""
import argparse
import os
import re
import subprocess
import sys

# A lane ran where all of its tests did. Each test is a regular expression over names that CTest knows.
LANES = {
    "CPU": ["device_cpu", "verify", "fuzz_cpu"],
    "interpreter": ["interp", "fuzz_passes"],
    "software WebGPU": ["device_webgpu", "fuzz_webgpu"],
    "NVRTC": ["compile_cuda"],
    "golden data": ["urban_model", "solve_graphs"],
    "ThreadSanitizer": ["threads", "threads_cuda", "threads_factors"],
    "command line": ["cli_.*"],
    "source tree": ["house_.*"],
    "wasm32": ["wasm"],
}
# Lanes that CI does not miss where the environment switches them off.
UNWANTED = {"wasm32"} if os.environ.get("LOCKSTEP_WASM") == "off" else set()
NEEDS_GPU = re.compile(r"no CUDA|no NVIDIA|CUDA driver|libcuda|no GPU|fuzz_cuda|real GPU", re.I)
# Limits of a device by its nature (docs/support.md lists them), and tests that another one of the same case holds.
CANNOT = re.compile(r"has no f64|no 64-bit integers|bytes of shared (memory|arrays)|no plain reference"
                    r"|the interpreter (takes too long|alone is too slow)|no CPU back end|without LLVM"
                    r"|run by \S+ only|may not mount|too quick to be killed|every kind of device is there|LOCKSTEP_WASM=off", re.I)
# Frameworks that the Python module works with and that Debian does not have, or not new enough.
FRAMEWORK = re.compile(r"^(torch|jax|cupy|a torch with custom_op) is not installed", re.I)
NEEDS_DATA = re.compile(r"is absent|is not here|test data|no /", re.I)


WHOLE_SKIP = re.compile(r"^(skipped|not run):|: SKIPPED$", re.I)


def excused(why):
    # ./test sets LOCKSTEP_DATA where the folder of test data is: there nothing of it may be missing.
    patterns = [NEEDS_GPU, CANNOT, FRAMEWORK] + ([] if os.environ.get("LOCKSTEP_DATA") else [NEEDS_DATA])
    return any(pattern.search(why) for pattern in patterns)


class Test:
    def __init__(self, name, output, verdict):
        self.name, self.passed = name, "Passed" in verdict
        # CTest 3.25 logs a test that gave its SKIP_RETURN_CODE as passed: its last line says that it was not run.
        self.skipped_whole = "Skip" in verdict or bool(WHOLE_SKIP.search(last_line(output)))
        self.skips = skips_of(name, output)
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


def lane_findings(tests):
    """Lane → why it did not run whole, or an empty text."""
    findings = {}
    for lane, patterns in LANES.items():
        missing = []
        for pattern in patterns:
            matching = [t for t in tests if re.fullmatch(pattern, t.name)]
            if not matching:
                missing.append(f"no test {pattern}")
            for test in matching:
                if test.skipped_whole:
                    missing.append(f"{test.name} was skipped ({test.skips[0][1]})")
                    continue
                missing += [f"{who}: {why}" for who, why in test.skips
                            if not excused(why) and (lane != "golden data" or NEEDS_DATA.search(why))]
        findings[lane] = "; ".join(missing[:3])
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--sanitizers")
    parser.add_argument("--partial", action="store_true")
    options = parser.parse_args()
    tests = read_log(options.build)
    lanes = lane_findings(tests)
    if options.sanitizers:
        checked = read_log(options.sanitizers)
        lanes["ASan and UBSan"] = "" if checked else "it did not run"
        tests += checked
    skips = [skip for test in tests for skip in test.skips]
    required = bool(os.environ.get("CI")) and not options.partial

    print("== lanes")
    for lane, why in lanes.items():
        print(f"  {lane:<16} {'ran' if not why else 'NOT WHOLE: ' + why}")
    by_reason = {}
    for who, why in skips:
        by_reason.setdefault(why, []).append(who)
    if by_reason:
        print("== skipped")
    for why, who in sorted(by_reason.items()):
        print(f"  {why}: {', '.join(who[:4])}{f' and {len(who) - 4} more' if len(who) > 4 else ''}")

    faults = [f"lane {lane}: {why}" for lane, why in lanes.items() if why and lane not in UNWANTED] if required else []
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
