#!/usr/bin/env python3
"""Tables of bench/results/tables.json between their marks, `<!-- measured NAME -->`, in the documents.

usage: bench/tables.py [--check]

A table names its device and its commit once, above it. A row of another commit is marked in a column of its own. A row with
`raw` has its median and p95 from the raw results: [file of bench/results, run, case, size, element type], several for several
values in a cell. The cells of other rows were stored when they were measured. --check: exits where a document has other tables.
"""
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
MARKS = re.compile(r"(<!-- measured (\S+) -->\n).*?(<!-- /measured -->)", re.S)
MEASURED = {"median": 3, "p95": 4}  # columns that raw rows give, and their position there
UNITS = {"ms": 1, "µs": 1e3}


def raw_value(reference, position, files={}):
    """A number of a raw row, in ms."""
    name, run, *key = reference
    if name not in files:
        files[name] = json.loads((RESULTS / name).read_text(encoding="utf-8"))["runs"]
    rows = [row for row in files[name][run]["rows"] if row[:3] == key]
    if len(rows) != 1:
        raise LookupError(f"{name}, {run}: {len(rows)} rows {' '.join(key)}")
    return rows[0][position]


def three_digits(value):
    text = f"{value:#.3g}"
    return f"{value:.0f}" if "e" in text else text.rstrip(".")


def cell(row, column, stored):
    if "raw" not in row or column not in MEASURED:
        return stored
    unit = row.get("unit", "ms")
    values = " / ".join(three_digits(UNITS[unit] * raw_value(one, MEASURED[column])) for one in row["raw"])
    return f"{values} {unit}" if column == "median" else values


def markdown(name, table):
    of_rows = [row.get("commit", "") for row in table["rows"]]
    above = [table["device"]]
    if table.get("commit"):
        above.append(f"commit {table['commit']}")
    if table.get("note"):
        above.append(table["note"])
    text = "; ".join(above) + "." + (" Rows of other commits name theirs." if any(of_rows) and table.get("commit") else "")
    columns = table["columns"] + (["commit"] if any(of_rows) else [])
    text = textwrap.fill(text[:1].upper() + text[1:], 118, break_long_words=False, break_on_hyphens=False)
    lines = [text, "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row, commit in zip(table["rows"], of_rows):
        cells = [cell(row, *pair) for pair in zip(table["columns"], row["cells"], strict=True)]
        lines.append("| " + " | ".join(cells + ([commit] if any(of_rows) else [])).replace("|  |", "| |") + " |")
    return re.sub(r"\|  (?=\|)", "| ", "\n".join(lines)) + "\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    tables = json.loads((RESULTS / "tables.json").read_text(encoding="utf-8"))
    used = set()

    def fill(match):
        used.add(match[2])
        if match[2] not in tables:
            sys.exit(f"bench/results/tables.json has no table {match[2]}")
        return match[1] + markdown(match[2], tables[match[2]]) + match[3]

    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        filled = MARKS.sub(fill, text)
        if filled != text and check:
            sys.exit(f"{path.relative_to(ROOT)} has other tables than bench/results/tables.json: run bench/tables.py")
        if filled != text:
            path.write_text(filled, encoding="utf-8")
    if set(tables) - used:
        sys.exit(f"no document has a place for {', '.join(sorted(set(tables) - used))}")


if __name__ == "__main__":
    main()
