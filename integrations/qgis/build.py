#!/usr/bin/env python3
"""Builds the plugin.

Parameters come from docs/urban-options.md, which the library's declarations generate. The addresses are those of the
publisher: plugins.qgis.org requires e-mail and repository, an installation from the file requires none of them.
"""
import argparse
import json
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ADDRESSES = ("email", "repository", "tracker")
COMMANDS = ("check", "run", "sun", "compare", "stats", "plant")
RASTERS = ("dsm", "dem", "cdsm", "tdsm", "land_cover", "wall_height", "wall_aspect", "basemap")  # fields may be NetCDF
VECTORS = ("areas", "poi", "allowed")
FOLDERS = ("before", "after", "run", "svf")
BASIC = ("preset", "outputs", "date", "start", "end", "utc_offset", "place", "scenario", "threshold", "hours", "per", "by",
         "trees", "species", "objective", "rule", "facades")
NONE = ("none", "required")
_NUMBER = re.compile(r"^(number|whole number)(.*)$")


def bounds(text):
    """Lowest and highest value of "of at least 0 and at most 1"; open ends as they are, since forms have closed ones."""
    low = re.search(r"(?:at least|above|from) (-?[\d.]+)", text)
    high = re.search(r"(?:at most|below|to) (-?[\d.]+)", text)
    return (float(low.group(1)) if low else None), (float(high.group(1)) if high else None)


def option_of(flag, name, values, default, text):
    option = {"name": name, "flag": flag, "positional": not flag.startswith("-"), "help": text, "choices": [], "low": None,
              "high": None, "required": default == "required", "default": None}
    number = _NUMBER.match(values)
    several = "several with commas" in values or name in ("outputs", "per") or (name == "format" and "nc" in values)
    if values in ("file", "folder"):
        option["kind"] = {"out": "out_folder" if values == "folder" else "out_file"}.get(
            name, "raster" if name in RASTERS else "vector" if name in VECTORS else "folder" if name in FOLDERS else "file")
    elif values == "true or false":
        option.update(kind="flag", default=default == "true")
    elif number and not several:
        option["kind"] = "whole" if number.group(1).startswith("whole") else "number"
        option["low"], option["high"] = bounds(number.group(2))
        if re.fullmatch(r"-?[\d.]+(e-?\d+)?", default):
            option["default"] = float(default) if option["kind"] == "number" else int(default)
    elif ", " in values and not several and re.fullmatch(r"[\w-]+(, [\w-]+)+", values):
        option.update(kind="choice", choices=values.split(", "))
        option["default"] = default if default in option["choices"] else None
    else:
        option["kind"] = "text"
    option["advanced"] = not (option["required"] or name in BASIC or option["kind"] in ("raster", "vector", "file", "folder"))
    return option


def reference(path=os.path.join(ROOT, "docs", "urban-options.md")):
    """The options of each command out of the committed tables."""
    commands = {}
    text = text_of(path)
    for name, table in re.findall(r"<!-- options urban\.(\w+) -->\n(.*?)<!-- end -->", text, re.S):
        if name not in COMMANDS:
            continue
        rows = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                for line in table.splitlines()[2:]]
        commands[name] = [option_of(flag.strip("`"), python.strip("`"), values, default, help_text)
                          for flag, python, _, values, default, _, help_text in rows if python.strip("`")]
    return commands


def version():
    return re.search(r"project\([^)]*VERSION ([\d.]+)", text_of(os.path.join(ROOT, "CMakeLists.txt")), re.S).group(1)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def build(out, addresses=None):
    """Writes the zip; the same bytes for the same sources. `addresses`: values of ADDRESSES by name."""
    folder = os.path.join(HERE, "lockstep_qgis")
    files = {"LICENSE": text_of(os.path.join(ROOT, "LICENSE"))}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".py", ".txt")):
            files[name] = text_of(os.path.join(folder, name))
    files["metadata.txt"] = files["metadata.txt"].replace("@VERSION@", version())
    for name, value in (addresses or {}).items():
        if value:
            files["metadata.txt"] += f"{name}={value}\n"
    files["options.json"] = json.dumps(reference(), indent=1, ensure_ascii=False)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(f"lockstep_qgis/{name}"), text, zipfile.ZIP_DEFLATED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT.zip")
    for name in ADDRESSES:
        parser.add_argument("--" + name)
    options = vars(parser.parse_args())
    out = options.pop("out")
    build(out, options)
    missing = [name for name in ADDRESSES if not options[name]]
    print(out + (": for installation from the file; plugins.qgis.org also requires --" + ", --".join(missing) if missing else ""))


if __name__ == "__main__":
    main()
