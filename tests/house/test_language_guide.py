"""The code blocks of docs/language.md compile: each becomes a function of one file, which the compiler reads without making code."""
import os
import re
import shlex
import subprocess
import sys
import tempfile

HEAD = """#include "lockstep/emit.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/lockstep.hpp"
using namespace lockstep;
"""
FUNCTION = """
#line {line} "{file}"
{before}
void block_{number}(const Device& device, const std::vector<f32>& numbers, const Buffer& floats,
                    const Buffer& few, const Buffer& table) {{
#line {code_line} "{file}"
{code}
}}
"""


def parts(text, block):
    """What stands outside of functions (to the last LOCKSTEP_STRUCT) and what stands inside, with their lines."""
    code = block.group(1)
    outside = list(re.finditer(r"^LOCKSTEP_STRUCT\(.*\n", code, re.M))
    cut = outside[-1].end() if outside else 0
    line = text.count("\n", 0, block.start(1)) + 1
    return {"before": code[:cut], "line": line, "code": code[cut:], "code_line": line + code.count("\n", 0, cut)}


def main():
    source, compiler = sys.argv[1], sys.argv[2:]
    guide = os.path.join(source, "docs", "language.md")
    with open(guide, encoding="utf-8") as file:
        text = file.read()
    blocks = list(re.finditer(r"^```cpp\n(.*?)^```", text, re.S | re.M))
    if len(blocks) < 6:
        sys.exit(f"{guide}: {len(blocks)} blocks of C++, expected 6 or more")
    program = HEAD + "".join(
        FUNCTION.format(number=number, file=guide, **parts(text, block))
        for number, block in enumerate(blocks))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "blocks.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        command = [*compiler, "-std=c++20", "-fsyntax-only", "-w", f"-I{source}/include", path]
        print(shlex.join(command))
        sys.exit(subprocess.run(command, check=False).returncode)


main()
