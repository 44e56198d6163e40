"""CONTRIBUTING's walk "An elementary operation", carried out on a scratch copy and proven.

The code blocks of that section begin with the file that they belong to; a row goes behind the last row of its kind, a body
before the end of its namespace. The scratch copy lies in the build folder and is kept, so that a second run compiles little.
"""
import os
import re
import subprocess
import sys
import textwrap

OPERATION = "logistic"


def section(text, title):
    start = text.index(f"## {title}")
    end = text.find("\n## ", start + 1)
    return text[start:end if end > 0 else len(text)]


def blocks(text):
    """(file, code) of each code block that names its file."""
    for code in re.findall(r"```cpp\n(.*?)^ *```", text, re.S | re.M):
        first, rest = textwrap.dedent(code).split("\n", 1)
        named = re.fullmatch(r"// (\S+)", first)
        if named:
            yield named.group(1), rest


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


def write(path, data):
    """Writes what differs only, so that files keep their times."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    with open(path, "wb") as file:
        file.write(data)


def copy_tracked(source, scratch, edits):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and os.path.isfile(os.path.join(source, name))]
    for name in names:
        if name in edits:
            write(os.path.join(scratch, name), edits[name].encode())
        else:
            with open(os.path.join(source, name), "rb") as file:
                write(os.path.join(scratch, name), file.read())


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if subprocess.run(["git", "-C", source, "rev-parse"], capture_output=True).returncode:
        print("skipped: not a git working tree")
        return 77
    with open(os.path.join(source, "CONTRIBUTING.md"), encoding="utf-8") as file:
        walk = section(file.read(), "An elementary operation")
    edits = {name: insert(os.path.join(source, name), code) for name, code in blocks(walk)}
    assert len(edits) == 2 and all(OPERATION in text for text in edits.values()), f"the walk names {sorted(edits)}"

    work = os.path.join(build, "house", "new_operation")
    scratch = os.path.join(work, "source")
    copy_tracked(source, scratch, edits)
    # Only what proves the function is built, and quickly: no applications, no optimisation.
    configure = ["cmake", "-G", "Ninja", "-S", scratch, "-B", os.path.join(work, "build"), "-DCMAKE_BUILD_TYPE=",
                 "-DCMAKE_CXX_FLAGS=-O0", "-DLOCKSTEP_UNITY=ON", "-DLOCKSTEP_LLVM_LINK=shared",
                 "-DLOCKSTEP_EXAMPLES=OFF", f"-DLOCKSTEP_NEW_OPERATION={OPERATION}",
                 f"-DLOCKSTEP_WGPU_INCLUDE_DIR={os.environ.get('LOCKSTEP_WGPU_INCLUDE_DIR', '')}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
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
