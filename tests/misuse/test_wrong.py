"""The blocks of wrong.txt do not compile, each with its message. All are read by one run of the compiler: every block is a
function of its own, and each error belongs to the block whose line it names."""
import os
import re
import subprocess
import sys
import tempfile

HEAD = """#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>
#include "lockstep/kernel.hpp"
using namespace lockstep;
"""
FUNCTION = """void block_{number}(At<1> at, Group<1> g, Grid<f32, 1> a, Grid<f32, 2> grid, InOut<f32, 1> b, InOut<i32, 1> n,
    InOut<f32, 2> wide, Out<f32, 1> o, LocalArray<f32> l, SharedArray<f32> s, VarArray<f32, 4> v, Var<f32> x, Var<f32> y,
    Var<i32> i, Val<f32> c, Val<bool> yes, Param<f32> p) {{
#line {line} "{file}"
{code}
}}
"""


def blocks_of(text):
    """(line of the code, its message, the code), behind the file's head."""
    for block in re.finditer(r"^# (.*)\n((?:[^#\n].*\n)+)", text, re.M):
        yield text.count("\n", 0, block.start(2)) + 1, block.group(1), block.group(2)


def errors_by_line(report, file):
    """The text of each error, with what leads to it and its notes, under the first line of `file` that it names."""
    errors, ahead = [], []
    for line in report.splitlines():
        if ": error:" in line:
            errors.append([*ahead, line])
        elif re.search(r": In |: +required (from|by)|^In file included|^ +from ", line):
            ahead.append(line)
            continue
        elif errors:
            errors[-1] += [*ahead, line]
        ahead = []
    found = {}
    for lines in errors:
        said = "\n".join(lines)
        named = re.search(re.escape(file) + r":(\d+):", said)
        if named:
            found[int(named.group(1))] = found.get(int(named.group(1)), "") + said + "\n"
    return found


def main():
    source, compiler = sys.argv[1], sys.argv[2:]
    name = os.path.join(source, "tests", "misuse", "wrong.txt")
    with open(name, encoding="utf-8") as file:
        text = file.read()
    blocks = list(blocks_of(text))
    program = HEAD + "".join(
        FUNCTION.format(number=number, line=line, file=name, code=code) for number, (line, _, code) in enumerate(blocks))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "blocks.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        command = [*compiler, "-std=c++20", "-fsyntax-only", "-w", "-fmax-errors=0", "-fdiagnostics-color=never",
                   f"-I{source}/include", path]
        report = subprocess.run(command, check=False, capture_output=True, text=True,
                                env={**os.environ, "LC_ALL": "C.UTF-8"}).stderr
    errors = errors_by_line(report, name)
    bad = 0
    for line, message, code in blocks:
        lines = range(line, line + code.count("\n"))
        said = "".join(errors.get(number, "") for number in lines)
        if message not in said:
            bad += 1
            print(f"{name}:{line}: {code.strip()}\n  expected: {message}\n  {'compiled' if not said else said}")
    print(f"{len(blocks)} blocks, {bad} not as expected")
    sys.exit(bad > 0 or len(blocks) < 60)


main()
