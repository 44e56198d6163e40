"""The guides of docs/extending to an application (with its kernel) and a file format, carried out together on one scratch copy.

They change nothing below them: their objects are linked with the libraries of the build.
"""
import os
import subprocess
import sys

import walk

NAME = "cooling"
CASES = f"*{NAME}*"


def edits_of(source):
    edits = dict(walk.blocks(walk.guide(source, "application")))
    lists = walk.read(source, "CMakeLists.txt")
    edits["CMakeLists.txt"] = walk.behind_last(lists, r"lockstep_application\(", edits["CMakeLists.txt"])
    assert edits["CMakeLists.txt"].count("\n") == lists.count("\n") + 1, "one line"
    form = dict(walk.blocks(walk.guide(source, "file_format")))
    form["src/io/CMakeLists.txt"] = walk.behind_last(walk.read(source, "src/io/CMakeLists.txt"), r"    arrays/", form["src/io/CMakeLists.txt"])
    return edits, form


def new_application(build, made, work, environment):
    """0 where its own test and its case among all cases pass; None where the build has nothing to link with."""
    assert f"LOCKSTEP_APPLICATION({NAME})" in walk.read(made, "generated", "applications.def")
    objects = {"own": [f"src/{NAME}/CMakeFiles/lockstep_{NAME}.dir/{NAME}.cpp.o", f"src/{NAME}/CMakeFiles/lockstep_{NAME}.dir/cases.cpp.o"],
               "registry": ["apps/CMakeFiles/lockstep_registry.dir/registry.cpp.o"],
               "command": [f"apps/cli/CMakeFiles/lockstep_cli.dir/{NAME}/{NAME}.cpp.o"],
               "test": [f"tests/{NAME}/CMakeFiles/test_{NAME}.dir/{NAME}_test.cpp.o"]}
    walk.build(made, *sum(objects.values(), []))
    built = {part: [os.path.join(made, name) for name in names] for part, names in objects.items()}
    failed = 0
    for program, tests, parts in ((f"test_{NAME}", "*", built["own"] + built["test"]),
                                  ("all_cases", CASES, built["own"] + built["registry"] + [None])):
        out = os.path.join(work, program)
        if not walk.link_as(build, "test_verify", parts, out):
            return None
        failed |= walk.proven(out, [f"--gtest_filter={tests}"], environment, [r"\[  PASSED  \] [1-9]"])
    return failed


def new_format(build, scratch, work, form):
    tests = sorted(name for name in form if name.startswith("tests/"))
    sources = sorted(name for name in form if name.startswith("src/") and name.endswith(".cpp"))
    assert tests and sources, f"the guide names {sorted(form)}"
    objects = []
    for name in sources + tests:
        objects.append(os.path.join(work, os.path.basename(name) + ".o"))
        subprocess.run(["c++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-c", name, "-o", objects[-1], "-Iinclude", "-Isrc", "-Itests"],
                       cwd=scratch, check=True)
    out = os.path.join(work, "test_format")
    if not walk.link_as(build, "test_io_fuzz", objects, out):
        return None
    return walk.proven(out, [], {}, [r"\[  PASSED  \] 3 tests"])


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not walk.is_tree(source):
        print("skipped: not a git working tree")
        return walk.SKIPPED
    application, form = edits_of(source)
    work = os.path.join(build, "house", "above")
    scratch, made = os.path.join(work, "source"), os.path.join(work, "build")
    walk.copy_tracked(source, scratch, application | form)
    walk.check_house(scratch, application | form)
    walk.configure(scratch, made, "-DLOCKSTEP_UNITY=OFF", "-DLOCKSTEP_PYTHON=OFF")
    environment = {"LOCKSTEP_CACHE_DIR": os.path.join(work, "cache"), "LOCKSTEP_TEST_DEVICES": "cpu,interp"}
    done = [new_application(build, made, work, environment), new_format(build, scratch, work, form)]
    if None in done:
        print("skipped: this build has no test_verify or no test_io_fuzz")
    return max(filter(None, done), default=walk.SKIPPED if None in done else 0)


if __name__ == "__main__":
    sys.exit(main())
