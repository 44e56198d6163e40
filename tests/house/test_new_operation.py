"""CONTRIBUTING's walk "An elementary operation", carried out on a scratch copy and proven.

A row goes behind the last row of its kind, a body before the end of its namespace.
"""
import os
import re
import subprocess
import sys

import walk

OPERATION = "logistic"


def insert(path, code):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".def"):
        kind = code[:code.index("(")]
        rows = list(re.finditer(rf"^{kind}\(.*\n", text, re.M))
        at = rows[-1].end()
    else:
        at = text.rindex("}  // namespace")
    return text[:at] + code + ("" if path.endswith(".def") else "\n") + text[at:]


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not walk.is_tree(source):
        print("skipped: not a git working tree")
        return walk.SKIPPED
    steps = walk.blocks(walk.section(source, "An elementary operation"))
    edits = {name: insert(os.path.join(source, name), code) for name, code in steps}
    assert len(edits) == 2 and all(OPERATION in text for text in edits.values()), f"the walk names {sorted(edits)}"

    work = os.path.join(build, "house", "new_operation")
    scratch = os.path.join(work, "source")
    walk.copy_tracked(source, scratch, edits)
    walk.configure(scratch, os.path.join(work, "build"), "-DLOCKSTEP_UNITY=ON", f"-DLOCKSTEP_NEW_OPERATION={OPERATION}")
    subprocess.run(["cmake", "--build", os.path.join(work, "build"), "--target", "new_operation"], check=True,
                   stdout=subprocess.DEVNULL)
    done = subprocess.run([os.path.join(work, "build", "bin", "new_operation")], text=True, capture_output=True,
                          env=os.environ | {
                              "LOCKSTEP_CACHE_DIR": os.path.join(work, "cache"),
                              "LOCKSTEP_LIBRARY_PATH": os.pathsep.join(
                                  filter(None, [os.environ.get("LOCKSTEP_LIBRARY_PATH"), os.path.join(build, "lib")]))})
    print(done.stdout, done.stderr, sep="")
    for lane in ("interp", "cpu"):
        assert re.search(rf"^{lane}: math\.{OPERATION}.* passes$", done.stdout, re.M), f"{lane} proved nothing"
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
