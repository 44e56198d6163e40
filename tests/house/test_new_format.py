"""CONTRIBUTING's walk "A file format", carried out on a scratch copy and linked with the build's library of files."""
import os
import subprocess
import sys

import walk


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not walk.is_tree(source):
        print("skipped: not a git working tree")
        return walk.SKIPPED
    edits = dict(walk.blocks(walk.section(source, "A file format")))
    edits["src/io/CMakeLists.txt"] = walk.behind_last(walk.read(source, "src/io/CMakeLists.txt"), r"    arrays/", edits["src/io/CMakeLists.txt"])
    tests = sorted(name for name in edits if name.startswith("tests/"))
    sources = sorted(name for name in edits if name.startswith("src/") and name.endswith(".cpp"))
    assert tests and sources, f"the walk names {sorted(edits)}"

    work = os.path.join(build, "house", "new_format")
    scratch = os.path.join(work, "source")
    walk.copy_tracked(source, scratch, edits)
    walk.check_house(scratch, edits)
    objects = []
    for name in sources + tests:
        objects.append(os.path.join(work, os.path.basename(name) + ".o"))
        subprocess.run(["c++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-c", name, "-o", objects[-1], "-Iinclude", "-Isrc", "-Itests"],
                       cwd=scratch, check=True)
    out = os.path.join(work, "test_format")
    if not walk.link_as(build, "test_io_fuzz", objects, out):
        print("skipped: this build has no test_io_fuzz")
        return walk.SKIPPED
    done = subprocess.run([out], text=True, capture_output=True)
    print(done.stdout[-2000:], done.stderr, sep="")
    assert "[  PASSED  ] 3 tests" in done.stdout, "the walk's tests did not run"
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
