"""Docstrings of plain text as reStructuredText."""
import re

ITEM = re.compile(r"\s+(\w+) \((.*?)\): (.*)")


def escaped(text):
    """Plain text as RST: code between single backticks stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{p}`" if len(p) > 2 and p[0] == p[-1] == "`" else re.sub(r"([\\*_|`])", r"\\\1", p) for p in parts)


def as_rst(lines):
    """A docstring of plain text: a list of options becomes a list, another indented block code."""
    found, block = [], []

    def close():
        if block:
            found.extend(["", "::", "", *block, ""])
            block.clear()

    for line in lines:
        item = ITEM.fullmatch(line)
        if item:
            close()
            found.append(f"- ``{item[1]}`` ({escaped(item[2])}): {escaped(item[3])}")
        elif line.startswith("    ") and line.strip() and not (found and found[-1].startswith("- ")):
            block.append(line)
        elif line.strip() or not block:
            close()
            found.extend(["", f"{escaped(line)}", ""] if line.endswith(":") and not line.startswith(" ") else [escaped(line.strip())])
        else:
            block.append("")
    close()
    return found
