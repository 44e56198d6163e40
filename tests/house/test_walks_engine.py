"""The guides of docs/extending to an operation, a back end and a pass, carried out together on one scratch copy.

An operation changes the language, so that the engine is compiled again: the interpreter, the CPU and the new back end, without CUDA and
WebGPU, which the tests of the build itself have.
"""
import os
import re
import subprocess
import sys

import walk

OPERATION, BACK_END, PASS = "logistic", "relay", "absorb"
WITHOUT = ("src/device/cuda/", "src/device/webgpu/")
CASES = ("engine.copy", "engine.dispatch.2d", "engine.graph_launch", "engine.shared_scan")


def insert(source, name, code):
    """A row goes behind the last row of its kind, a body before the end of its namespace."""
    text = walk.read(source, name)
    if name.endswith(".def"):
        return walk.behind_last(text, re.escape(code[:code.index("(") + 1]), code)
    at = text.rindex("}  // namespace")
    return text[:at] + code + "\n" + text[at:]


def edits_of(source):
    operation = {name: insert(source, name, code) for name, code in walk.blocks(walk.guide(source, "operation"))}
    assert len(operation) == 2 and all(OPERATION in text for text in operation.values()), f"the guide names {sorted(operation)}"
    edits = dict(operation)
    for name in ("back_end", "pass"):
        walk.carry_out(source, walk.guide(source, name), edits)
    return edits


def compile_tests(scratch, made, names):
    """The objects of single test files, with the flags that the build has for their program."""
    objects = []
    for name in names:
        objects.append(os.path.join(made, os.path.basename(name) + ".o"))
        subprocess.run(["c++", "-std=c++20", "-O0", "-c", name, "-o", objects[-1], "-Iinclude", "-Isrc", "-Itests", "-Itests/fuzz"],
                       cwd=scratch, check=True)
    return objects


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not walk.is_tree(source):
        print("skipped: not a git working tree")
        return walk.SKIPPED
    edits = edits_of(source)
    work = os.path.join(build, "house", "engine")
    scratch, made = os.path.join(work, "source"), os.path.join(work, "build")
    walk.copy_tracked(source, scratch, edits, WITHOUT)
    walk.check_house(scratch, edits)
    walk.configure(scratch, made, "-DLOCKSTEP_UNITY=ON", "-DLOCKSTEP_UNITY_FILES=40", "-DLOCKSTEP_PYTHON=OFF", f"-DLOCKSTEP_NEW_OPERATION={OPERATION}")
    walk.build(made, "engine_walk", "fuzz_support")
    environment = {"LOCKSTEP_CACHE_DIR": os.path.join(work, "cache")}
    devices = ("interp", "cpu", BACK_END)
    failed = walk.proven(
        os.path.join(made, "bin", "engine_walk"), [f"{device}=math.{OPERATION}" for device in devices] + [f"{BACK_END}={case}" for case in CASES],
        environment, [rf"^{device}: math\.{OPERATION}.* passes$" for device in devices] + [rf"^{BACK_END}: {case}.* passes$" for case in CASES])

    objects = compile_tests(scratch, made, [f"tests/compile/passes/{name}_test.cpp" for name in (PASS, "modes")])
    program = os.path.join(work, "test_pass")
    assert walk.link_as(made, "test_passes", objects, program), "no libraries to link with"
    failed |= walk.proven(program, [f"--gtest_filter={PASS.capitalize()}.*:Pipeline.*:*/nothing:*/{PASS}"], environment,
                          [rf"OK \] {PASS.capitalize()}\.", rf"OK \] .*Modes.*/{PASS}"])
    return failed


if __name__ == "__main__":
    sys.exit(main())
