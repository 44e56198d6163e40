#!/usr/bin/env python3
"""Checks every ELF file below folders; exit code 1 with a line for each finding.

usage: check_elf.py [--installed] FOLDER...

No search path (RPATH, RUNPATH) is empty, relative or in a folder that everybody may write to; no stack is executable, no
segment writable and executable; no needed library is named with a path. --installed: files that travel to other machines,
whose search paths start with $ORIGIN, and which need no newer versions of the C and C++ libraries than Ubuntu 22.04 has. Versions
are those of the system that links: they are checked where it is Debian 12, on which releases are made, or older.
"""
import argparse
import os
import re
import shutil
import stat
import subprocess
import sys


# Of Ubuntu 22.04: manylinux_2_35.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def links_for_others():
    """True where this system's C library is Debian 12's or older."""
    return numbers(os.confstr("CS_GNU_LIBC_VERSION").split()[1]) <= (2, 36)


def elf_files(folder):
    """Programs and shared libraries below a folder, or the one file that is given; without links and object files."""
    found = [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]
    for file in found or [folder]:
        if os.path.isfile(file) and not os.path.islink(file) and not file.endswith((".o", ".a")):
            with open(file, "rb") as opened:
                if opened.read(4) == b"\x7fELF":
                    yield file


def wrong_path(file, entry, installed):
    if not entry.startswith(("/", "$ORIGIN", "${ORIGIN}")):
        return f"the search path '{entry}' is relative"
    if installed and entry.startswith("/"):
        return f"the search path {entry} is of the machine that built it"
    origin = os.path.dirname(os.path.abspath(file))
    place = os.path.normpath(re.sub(r"^\$(\{ORIGIN\}|ORIGIN)", lambda _: origin, entry))
    while not os.path.isdir(place):  # anyone who may write to the folder above may make it
        place = os.path.dirname(place)
    shared = os.stat(place).st_mode & stat.S_IWOTH
    return f"everybody may write to {place} of the search path {entry}" if shared else None


def findings_of(file, installed=False):
    text = subprocess.run(["readelf", "-W", "-l", "-d", "-V", file], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    stack = re.search(r"^ +GNU_STACK .* ([R W]{2}[E ]) ", text, re.M)
    if not stack:
        yield "nothing says that its stack is not executable"
    elif "E" in stack.group(1):
        yield "its stack is executable"
    for flags in re.findall(r"^ +LOAD .* ([R ][W ][E ]) 0x", text, re.M):
        if "W" in flags and "E" in flags:
            yield "a segment is writable and executable"
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
        if "/" in name:
            yield f"it needs {name}, a library with a path"
    for paths in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text):
        for entry in paths.split(":"):
            if wrong := wrong_path(file, entry, installed):
                yield wrong
    if installed and links_for_others():
        yield from newer_versions(text)


def newer_versions(text):
    needs = text.partition("Version needs")[2]
    for kind, version in sorted(set(re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", needs))):
        if numbers(version) > NEWEST[kind]:
            yield f"it needs {kind}_{version}: expected at most {'.'.join(map(str, NEWEST[kind]))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    if not shutil.which("readelf"):
        print("check_elf: skipped: needs readelf")
        return
    findings, checked = [], 0
    for folder in options.folders:
        for file in elf_files(folder):
            checked += 1
            findings += [f"{file}: {wrong}" for wrong in findings_of(file, options.installed)]
    for finding in findings:
        print(finding, file=sys.stderr)
    print(f"ELF files: {checked} checked, {len(findings)} findings")
    sys.exit(1 if findings or not checked else 0)


if __name__ == "__main__":
    main()
