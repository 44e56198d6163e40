"""The C++ of the guides compiles: their blocks become functions of one file, which the compiler reads without making code."""
import os
import re
import shlex
import subprocess
import sys
import tempfile

HEAD = """#include <cstdio>
#include "lockstep/emit.hpp"
#include "lockstep/lockstep.hpp"
using namespace lockstep;
struct Frame {
  std::vector<double> guess;
  double time;
};
"""
BUFFERS = "const Device& device, const std::vector<f32>& numbers, const Buffer& floats, const Buffer& few, const Buffer& table"
# The parameters of the functions made of a guide, and whether later blocks use the names of earlier ones.
GUIDES = {
    "docs/language.md": (BUFFERS, False),
    "docs/gradients.md": ("const Device& device, const Buffer& now, const Buffer& dl_dthen, const Buffer& dl_dnow, "
                          "const Buffer& dl_da", False),
    "docs/cluster.md": ("const Device& device, const pde::System& system, const pde::Mesh& mesh, const parallel::Group& group, "
                        "const pde::Inputs& inputs, const std::vector<Buffer>& fields", False),
    "docs/fft.md": ("const Device& device, const Buffer& field, const Buffer& spectrum", False),
    "docs/pde.md": ("const Device& device, const pde::Mesh& mesh, pde::System& flow, const Buffer& t1, const Buffer& t2, "
                    "const Buffer& u1, const Buffer& u2, const Buffer& number", False),
    "docs/solve-smoothing.md": ("Context& context, const std::vector<Frame>& log, const std::vector<int32_t>& indices, "
                                "const std::vector<double>& data", False),
    "docs/solve.md": ("const std::vector<double>& path, const std::vector<double>& beacons, const std::vector<int>& sightings, "
                      "const std::vector<double>& ranges", True),
}
FUNCTION = """
#line {line} "{file}"
{before}
void {name}({given}) {{
#line {code_line} "{file}"
{code}
}}
"""


def parts(text, block):
    """What is outside of functions (to the last LOCKSTEP_STRUCT) and what is inside, with their lines."""
    code = re.sub(r"^(#include|using namespace) .*", "", block.group(1), flags=re.M)
    outside = list(re.finditer(r"^LOCKSTEP_STRUCT\(.*\n", code, re.M))
    cut = outside[-1].end() if outside else 0
    line = text.count("\n", 0, block.start(1)) + 1
    return {"before": code[:cut], "line": line, "code": code[cut:], "code_line": line + code.count("\n", 0, cut)}


def functions(source, guide, given, joined):
    path = os.path.join(source, guide)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    pieces = [parts(text, block) for block in re.finditer(r"^```cpp\n(.*?)^```", text, re.S | re.M)]
    if not pieces:
        sys.exit(f"{path}: no block of C++")
    if joined:
        code = "".join(f'\n#line {p["code_line"]} "{path}"\n{p["code"]}' for p in pieces)
        pieces = [{**pieces[0], "code": code}]
    stem = re.sub(r"\W", "_", guide)
    return "".join(FUNCTION.format(name=f"{stem}_{number}", given=given, file=path, **piece)
                   for number, piece in enumerate(pieces))


def main():
    source, compiler = sys.argv[1], sys.argv[2:]
    program = HEAD + "".join(functions(source, guide, *how) for guide, how in GUIDES.items())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "blocks.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        command = [*compiler, "-std=c++20", "-fsyntax-only", "-w", f"-I{source}/include", path]
        print(shlex.join(command))
        sys.exit(subprocess.run(command, check=False).returncode)


main()
