"""The guides of docs/extending: their code blocks, a scratch copy with them, its build.

Code blocks begin with the file that they belong to; a block of kind diff changes one place of its file. A scratch copy is in the build
folder and is kept, so that a second run compiles little.
"""
import os
import re
import shlex
import subprocess
import textwrap

SKIPPED = 77
CHECKS = ("include-direction", "platform", "language", "comments", "file-size", "function-size", "readme")


def guide(source, name):
    return read(source, "docs", "extending", f"{name}.md")


def blocks(text, kinds="cpp|cmake|markdown"):
    """(file, code) of each code block that names its file."""
    for code in re.findall(rf"```(?:{kinds})\n(.*?)^ *```", text, re.S | re.M):
        first, rest = textwrap.dedent(code).split("\n", 1)
        named = re.fullmatch(r"(?://|#) (\S+)", first)
        if named:
            yield named.group(1), rest


def carry_out(source, text, edits):
    """Adds to `edits` (name: text) the new files and the changed places of a section."""
    for name, code in blocks(text):
        assert not os.path.exists(os.path.join(source, name)), f"{name} is there already"
        edits[name] = code
    for name, change in blocks(text, "diff"):
        before = edits.get(name) or read(source, name)
        old, new = ("\n".join(line[1:] for line in change.splitlines() if line[0] in " " + sign) for sign in "-+")
        assert before.count(old) == 1, f"{name} does not have once:\n{old}"
        edits[name] = before.replace(old, new)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def behind_last(text, pattern, line):
    """The text with a line behind the last one that matches."""
    at = list(re.finditer(rf"^{pattern}.*\n", text, re.M))[-1].end()
    return text[:at] + line + text[at:]


def is_tree(source):
    return subprocess.run(["git", "-C", source, "rev-parse"], capture_output=True).returncode == 0


def write(path, data):
    """Writes what differs only, so that files keep their times."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    with open(path, "wb") as file:
        file.write(data)


def copy_tracked(source, scratch, edits, without=()):
    """The tracked files but for those of the folders `without`, and those of `edits` (name: text) changed or new; no others are left."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, check=True).stdout
    names = {name for name in listed.decode().split("\0")
             if name and not name.startswith(without) and os.path.isfile(os.path.join(source, name))}
    for folder, _, files in os.walk(scratch, topdown=False):
        for path in (os.path.join(folder, name) for name in files):
            if os.path.relpath(path, scratch) not in names | edits.keys():
                os.remove(path)
        if not os.listdir(folder):
            os.rmdir(folder)
    for name in names - edits.keys():
        with open(os.path.join(source, name), "rb") as file:
            write(os.path.join(scratch, name), file.read())
    for name, text in edits.items():
        write(os.path.join(scratch, name), text.encode())


def configure(scratch, build, *options):
    """Only to prove something, and quickly: no examples, no optimisation."""
    subprocess.run(["cmake", "-G", "Ninja", "-S", scratch, "-B", build, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
                    "-DLOCKSTEP_LLVM_LINK=shared", "-DLOCKSTEP_EXAMPLES=OFF",
                    f"-DLOCKSTEP_WGPU_INCLUDE_DIR={os.environ.get('LOCKSTEP_WGPU_INCLUDE_DIR', '')}", *options],
                   check=True, stdout=subprocess.DEVNULL)


def build(folder, *targets):
    done = subprocess.run(["ninja", "-C", folder, *targets], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr


def check_house(scratch, new_files):
    """The scratch copy passes the checks, and its new sources the formatter."""
    lonely = os.environ | {"GIT_CEILING_DIRECTORIES": os.path.dirname(scratch)}
    for check in CHECKS:
        done = subprocess.run(["python3", os.path.join(scratch, "scripts", "check_house.py"), check, scratch],
                              text=True, capture_output=True, env=lonely)
        assert done.returncode == 0, done.stdout + done.stderr
    sources = [name for name in new_files if name.endswith((".cpp", ".hpp"))]
    try:
        subprocess.run(["clang-format-19", "--dry-run", "-Werror", *sources], cwd=scratch, check=True)
    except FileNotFoundError:
        print("clang-format-19 is not installed: the blocks' format was not checked")


def proven(program, tests, environment, marks):
    """The program's exit code; its output holds what it must have run."""
    done = subprocess.run([program, *tests], text=True, capture_output=True, env=os.environ | environment)
    print(done.stdout[-4000:], done.stderr, sep="")
    for mark in marks:
        assert re.search(mark, done.stdout, re.M), f"{os.path.basename(program)} did not say {mark}"
    return done.returncode


def link_as(build, program, objects, out, flags=()):
    """Links with `flags` `objects` instead of, or with `None` among them in addition to, a program's own, with the libraries that the build has for it."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", f"bin/{program}"], text=True, capture_output=True,
                              check=True).stdout.splitlines()
    words = shlex.split(commands[-1].removeprefix(": && ").removesuffix(" && :"))
    own = [word for word in words if word.endswith(".o")]
    wanted = [name for entry in objects for name in (own if entry is None else [entry])]
    archives = [word for word in words if word.endswith(".a") and not os.path.isabs(word)]
    if not all(os.path.exists(os.path.join(build, name)) for name in wanted + archives):
        return False
    line, placed = [], False
    for word in words:
        if word not in own:
            line.append(out if word == f"bin/{program}" else word)
        elif not placed:
            line += wanted
            placed = True
    subprocess.run([*line, *flags], cwd=build, check=True)
    return True
