"""Runs the cells of a notebook in order, without Jupyter.

    python tests/python/notebooks.py docs/notebooks/kernel.ipynb [--write]

A cell whose metadata has tags runs where all modules of these names can be imported, and is left out elsewhere: a system's
matplotlib may be built for another NumPy than the one in use. --write keeps what the cells printed, the value of a last
expression, and matplotlib's open figures, as small PNG.
"""
import ast
import base64
import contextlib
import functools
import importlib
import io
import json
import sys


@functools.cache
def importable(module):
    try:
        importlib.import_module(module)
    except (ImportError, AttributeError):
        return False
    return True


def missing(cell):
    return [tag for tag in cell["metadata"].get("tags", ()) if not importable(tag)]


def figures():
    """Open figures as PNG, which are then closed."""
    plot = sys.modules.get("matplotlib.pyplot")
    for number in plot.get_fignums() if plot else ():
        buffer = io.BytesIO()
        plot.figure(number).savefig(buffer, format="png", dpi=50, bbox_inches="tight")
        yield base64.b64encode(buffer.getvalue()).decode()
    if plot:
        plot.close("all")


def run_cell(source, scope, name):
    """(text, pictures) of a cell."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), scope)  # noqa: S102
        value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), scope)  # noqa: S307
        if value is not None and not source.rstrip().endswith(";"):
            print(repr(value))
    return printed.getvalue(), list(figures())


def run(path, write=False):
    """Cells that ran. An error of a cell comes out as it is."""
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    scope, count = {"__name__": "__main__"}, 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code" or missing(cell):
            continue
        text, pictures = run_cell("".join(cell["source"]), scope, f"{path}, cell {number}")
        count += 1
        if write:
            cell["execution_count"] = count
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text.splitlines(True)}] if text else []
            cell["outputs"] += [{"output_type": "display_data", "data": {"image/png": p}, "metadata": {}} for p in pictures]
    if write:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(notebook, file, indent=1, ensure_ascii=False)
            file.write("\n")
    return count


if __name__ == "__main__":
    for given in sys.argv[1:]:
        if not given.startswith("-"):
            print(f"{given}: {run(given, '--write' in sys.argv)} cells")
