"""The guides of docs/extending to an optimiser, a closure, a boundary rule and a sky model, carried out together on one scratch copy.

Each changes at most five files. What includes a changed file of src is compiled again and linked before the libraries of the
build, whose own definitions of the same names are then left out. Enumerators that a public header gets at
the end of a list leave other objects as they are.
"""
import glob
import os
import re
import subprocess
import sys

import walk

GUIDES = ("optimiser", "closure", "boundary_rule", "sky_model")
TESTS = ("tests/house/walk_names.cpp", "tests/optimize/lion_test.cpp", "tests/flow/terms_test.cpp", "tests/pde/reference_test.cpp",
         "tests/pde/transport_test.cpp", "tests/urban/radiation/radiation_test.cpp")
FILTER = "Names.*:Lion.*:Terms.Vorticity*:Reference.GradientsEqual*:Transport.EveryBoundary*:Sky.*:*flow_rhs_vorticity*"
MARKS = (r"OK \] Names\.", r"OK \] Lion\.StepsAreTheFormula", r"OK \] Terms\.VorticityClosure", r"OK \] Reference\.GradientsEqualComplexSteps",
         r"OK \] Transport\.", r"OK \] Sky\.Overcast", r"OK \] .*flow_rhs_vorticity")
INCLUDE = re.compile(r'^#include "(\S+)"', re.M)


def units_of(build):
    """The sources that the build compiles as one file, whose calls the linker does not see; by a name."""
    units = {}
    for path in glob.glob(os.path.join(build, "src", "*", "CMakeFiles", "*", "Unity", "*.cxx")):
        name = "_".join(os.path.relpath(path, os.path.join(build, "src")).removesuffix(".cxx").split("/"))
        units[name] = [f"src/{source}" for source in re.findall(r'"\S+?/src/(\S+)"', walk.read(path))]
    return units


def affected(scratch, build, changed):
    """The sources of src to compile, by unit: the changed ones with their companions, and those that include a changed file."""
    texts = {}
    for folder, _, files in os.walk(os.path.join(scratch, "src")):
        for name in files:
            if name.endswith((".cpp", ".hpp")):
                path = os.path.relpath(os.path.join(folder, name), scratch)
                texts[path] = set(INCLUDE.findall(walk.read(scratch, path)))
    hit = {name for name in changed if name.startswith("src/")}
    while more := {name for name, included in texts.items() if any(f"src/{i}" in hit for i in included)} - hit:
        hit |= more
    units = units_of(build)
    hit |= {name for together in units.values() if not changed.keys().isdisjoint(together) for name in together}
    by_unit = {unit: [name for name in together if name in hit] for unit, together in units.items()}
    alone = {name for name in hit if name.endswith(".cpp")} - {name for together in by_unit.values() for name in together}
    by_unit |= {name.replace("/", "_"): [name] for name in sorted(alone)}
    return {unit: sources for unit, sources in by_unit.items() if sources}


def compile_all(scratch, work, units):
    """An object of each unit, whose sources are compiled as one file; two at a time."""
    objects, running = [], []
    for name, sources in units.items():
        path = os.path.join(work, f"{name}.cpp")
        walk.write(path, "".join(f'#include "{source}"\n' for source in sources).encode())
        objects.append(path + ".o")
        if len(running) == 2:
            assert running.pop(0).wait() == 0
        running.append(subprocess.Popen(
            ["c++", "-std=c++20", "-O0", "-w", "-fPIC", "-ffunction-sections", "-DFMT_SHARED", "-I.", "-Iinclude", "-Isrc", "-Itests",
             "-Itests/pde", "-isystem", "/usr/include/eigen3", *(f'-DLOCKSTEP_{name}="{scratch}"' for name in ("SOURCE_DIR", "TEST_DATA")), "-c", path, "-o", objects[-1]],
            cwd=scratch))
    assert all(one.wait() == 0 for one in running)
    return objects


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not walk.is_tree(source):
        print("skipped: not a git working tree")
        return walk.SKIPPED
    edits = {}
    for name in GUIDES:
        own = {}
        walk.carry_out(source, walk.guide(source, name), own)
        assert 0 < len(own) <= 5 and not edits.keys() & own.keys(), f"{name} changes {sorted(own)}: at most five files"
        edits |= own
    work = os.path.join(build, "house", "models")
    scratch = os.path.join(work, "source")
    walk.copy_tracked(source, scratch, edits)
    walk.check_house(scratch, edits)
    units = {f"src_{library}": sources for library, sources in affected(scratch, build, edits).items()}
    units |= {os.path.basename(name).removesuffix(".cpp"): [name] for name in TESTS}
    objects = compile_all(scratch, work, units)
    program = os.path.join(work, "test_models")
    if not walk.link_as(build, "test_verify", [*objects, None], program, ["-Wl,-z,muldefs"]):
        print("skipped: this build has no test_verify")
        return walk.SKIPPED
    return walk.proven(program, [f"--gtest_filter={FILTER}"],
                       {"LOCKSTEP_CACHE_DIR": os.path.join(work, "cache"), "LOCKSTEP_TEST_DEVICES": "cpu,interp", "LOCKSTEP_CPU_CODE": "quick"}, MARKS)


if __name__ == "__main__":
    sys.exit(main())
