"""CONTRIBUTING's walk "An application", carried out on a scratch copy: checks, lists, its own test, its case among all cases."""
import os
import subprocess
import sys

import walk

NAME = "cooling"
CASES = f"*{NAME}*"


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not walk.is_tree(source):
        print("skipped: not a git working tree")
        return walk.SKIPPED
    edits = dict(walk.blocks(walk.section(source, "An application")))
    lists = walk.read(source, "CMakeLists.txt")
    edits["CMakeLists.txt"] = walk.behind_last(lists, r"lockstep_application\(", edits["CMakeLists.txt"])
    assert edits["CMakeLists.txt"].count("\n") == lists.count("\n") + 1, "one line"

    work = os.path.join(build, "house", "new_application")
    scratch, made = os.path.join(work, "source"), os.path.join(work, "build")
    walk.copy_tracked(source, scratch, edits)
    walk.check_house(scratch, edits)
    walk.configure(scratch, made, "-DLOCKSTEP_UNITY=OFF", "-DLOCKSTEP_PYTHON=OFF")
    assert f"LOCKSTEP_APPLICATION({NAME})" in walk.read(made, "generated", "applications.def")
    objects = {"own": [f"src/{NAME}/CMakeFiles/lockstep_{NAME}.dir/{NAME}.cpp.o", f"src/{NAME}/CMakeFiles/lockstep_{NAME}.dir/cases.cpp.o"],
               "registry": ["apps/CMakeFiles/lockstep_registry.dir/registry.cpp.o"],
               "command": [f"apps/cli/CMakeFiles/lockstep_cli.dir/{NAME}/{NAME}.cpp.o"],
               "test": [f"tests/{NAME}/CMakeFiles/test_{NAME}.dir/{NAME}_test.cpp.o"]}
    subprocess.run(["ninja", "-C", made, *sum(objects.values(), [])], check=True, stdout=subprocess.DEVNULL)
    built = {part: [os.path.join(made, name) for name in names] for part, names in objects.items()}

    environment = os.environ | {"LOCKSTEP_CACHE_DIR": os.path.join(work, "cache"), "LOCKSTEP_TEST_DEVICES": "cpu,interp"}
    for program, list_of in ((f"test_{NAME}", built["own"] + built["test"]), ("all_cases", built["own"] + built["registry"] + [None])):
        out = os.path.join(work, program)
        if not walk.link_as(build, "test_verify", list_of, out):
            print("skipped: this build has no test_verify")
            return walk.SKIPPED
        done = subprocess.run([out, "--gtest_filter=" + ("*" if program != "all_cases" else CASES)], text=True, capture_output=True, env=environment)
        print(done.stdout[-2000:], done.stderr, sep="")
        assert done.returncode == 0 and "[  PASSED  ] 0 tests" not in done.stdout, f"{program} proved nothing"
    return 0


if __name__ == "__main__":
    sys.exit(main())
