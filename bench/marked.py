"""Tables of stored results, in documents that have marks for them."""
import json
import pathlib
import sys


def place(table, marks, docs, source, check=False):
    """Writes the table between the marks of the document. `check`: exits where another one is there, and writes nothing."""
    docs = pathlib.Path(docs)
    content = docs.read_text(encoding="utf-8")
    begin, end = content.index(marks[0]) + len(marks[0]), content.index(marks[1])
    whole = content[:begin] + "\n" + table + content[end:]
    if not check:
        docs.write_text(whole, encoding="utf-8")
    elif whole != content:
        sys.exit(f"{docs} has another table than {source}: run {pathlib.Path(sys.argv[0]).name} --from {source} --docs {docs}")


def add_options(parser):
    """Of a script that stores results, and writes their table."""
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")


def place_stored(options, table):
    """Writes table(results) of the file --from between the marks of its name."""
    if options.source:
        marks = f"<!-- {options.source.stem} -->", f"<!-- /{options.source.stem} -->"
        place(table(json.loads(options.source.read_text())) + "\n", marks, options.docs, options.source, options.check)
