"""The C++ of a guide as a program, each block a function, and what it prints compared with what the guide shows.

usage: guide_program.py write PAGE OUT.cpp | run PAGE PROGRAM
"""
import re
import subprocess
import sys

HEAD = """#include <cmath>
#include <cstdio>
#include <span>
#include <vector>
#include "lockstep/solve/factors.hpp"
using namespace lockstep;
"""


def main():
    verb, page, other = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if verb == "run":
        shown = "".join(re.findall(r"^```text\n(.*?)^```", text, re.S | re.M))
        printed = subprocess.run([other], check=True, capture_output=True, text=True).stdout
        print(printed, end="")
        sys.exit(f"{page} shows:\n{shown}" if printed != shown else 0)
    blocks = list(re.finditer(r"^```cpp\n(.*?)^```", text, re.S | re.M))
    with open(other, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for number, block in enumerate(blocks):
            file.write(f'static void block_{number}() {{\n#line {text.count(chr(10), 0, block.start(1)) + 1} "{page}"\n{block.group(1)}}}\n')
        file.write("int main() {\n" + "".join(f"  block_{number}();\n" for number in range(len(blocks))) + "}\n")


main()
