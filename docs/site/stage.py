"""The sources of the site in one folder: the tracked pages as they are, with the files that they link to, and pages made
from the program's own reference, the Python modules, the public headers and the notebooks.

usage: stage.py PROGRAM FOLDER DOXYGEN_XML
"""
import ast
import base64
import json
import pathlib
import re
import shutil
import subprocess
import sys

from docstrings import as_rst
from headers import header_lines

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "docs/site"
FIRST = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.S | re.M)
PYTHON = ["lockstep", "lockstep.pde", "lockstep.urban", "lockstep.flow", "lockstep.forecast", "lockstep.solve"]
FRAMEWORKS = ["torch", "jax"]  # described without importing them, since they need a framework


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked_from(name, text):
    """Files and folders below the root that a page links to, as paths from the root."""
    for match in LINK.finditer(FENCE.sub("", text)):
        path = (ROOT / name).parent.joinpath(match.group(2)).resolve()
        if path.is_relative_to(ROOT):
            yield path.relative_to(ROOT).as_posix()


def page_names():
    """The pages of docs, those at the root, and all that these link to."""
    docs = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "--", "docs/*.md"], check=True, capture_output=True,
                          text=True).stdout.splitlines()
    todo, pages = FIRST + [n for n in docs if not n.startswith("docs/site/")], set()
    while todo:
        name = todo.pop()
        if name in pages:
            continue
        pages.add(name)
        for target in linked_from(name, (ROOT / name).read_text(encoding="utf-8")):
            for page in target, f"{target}/README.md":
                if page.endswith(".md") and (ROOT / page).is_file():
                    todo.append(page)
    return pages


def with_links(text, name, pages, wanted):
    """Links between pages stay, those to notebooks become those to their pages, other files are copied, and a folder is named only."""
    def link(match):
        title, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        path = (ROOT / name).parent.joinpath(target).resolve()
        relative = path.relative_to(ROOT).as_posix()
        if relative in pages:
            return match.group(0)
        if path.suffix == ".ipynb":
            return f"[{title}]({target[:-6]}.md)"
        readme = f"{relative}/README.md"
        if readme in pages:
            return f"[{title}]({target.rstrip('/')}/README.md{anchor})"
        if path.is_dir():
            return title
        wanted.add(relative)
        return match.group(0)

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def copy_pages(out):
    pages, wanted = page_names(), set()
    for name in sorted(pages):
        text = (ROOT / name).read_text(encoding="utf-8")
        wanted |= {(ROOT / name).parent.joinpath(image).resolve().relative_to(ROOT).as_posix()
                   for image in re.findall(r"!\[[^\]]*\]\((?![a-z]+:)([^)\s]+)", text)}
        write(out / name, with_links(text, name, pages, wanted))
    for name in sorted(wanted):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, out / name)


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def all_commands(command):
    yield command
    for child in command.get("commands", []):
        yield from all_commands(child)


def options_table(options):
    rows = ["| option | value | meaning |", "|---|---|---|"]
    for o in options:
        names = ", ".join(f"`{n}`" for n in [o["name"], *o.get("aliases", [])])
        value = f"`{cell(o['value'])}`" if o.get("value") else ""
        rows.append(f"| {names}{' (required)' if o.get('required') else ''} | {value} | {cell(o['help'])} |")
    return rows


def command_pages(program, out):
    """One page for each group of commands; options of every command are listed once."""
    root = json.loads(subprocess.run([program, "help", "--json"], check=True, capture_output=True, text=True).stdout)
    common = {o["name"] for o in root["commands"][0]["options"] if o["group"] == "Common options"}
    engine = [c for c in root["commands"] if "commands" not in c]
    groups = {"engine": ("The engine", engine)}
    for group in root["commands"]:
        if "commands" in group:
            groups[group["command"].split()[1]] = (f"lockstep {group['command'].split()[1]}", group["commands"])
    for name, (title, commands) in groups.items():
        lines = [f"# {title}", "", "Options of every command: [common options](index.md).", ""]
        for c in commands:
            own = [o for o in c["options"] if o["name"] not in common]
            lines += [f"## {c['command']}", "", c["help"][:1].upper() + c["help"][1:] + ".", "", "```sh", c.get("example", c["command"]), "```", "",
                      *options_table(own), ""]
        write(out / f"reference/cli/{name}.md", "\n".join(lines))
    write(out / "reference/cli/index.md", "\n".join([
        "# Commands", "", "Made from the program's declarations; `lockstep help COMMAND` prints the same.", "", "## Common options", "",
        *options_table([o for o in root["commands"][0]["options"] if o["name"] in common]), "",
        "```{toctree}", *groups, "```", ""]))


def signature(function):
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    return f"{function.name}({ast.unparse(arguments)})"


def framework_page(out, name):
    tree = ast.parse((ROOT / f"python/lockstep/{name}.py").read_text(encoding="utf-8"))
    lines = [f"# lockstep.{name}", "", "```{eval-rst}", *as_rst((ast.get_docstring(tree) or "").splitlines()), "",
             f".. py:module:: lockstep.{name}", ""]
    for part in tree.body:
        text = ast.get_docstring(part) if isinstance(part, ast.FunctionDef) else None
        if text and not part.name.startswith("_"):
            lines += [f".. py:function:: {signature(part)}", "", *(f"   {line}" for line in as_rst(text.splitlines())), ""]
    write(out / f"reference/python/lockstep.{name}.md", "\n".join([*lines, "```", ""]))


def python_pages(out):
    for name in FRAMEWORKS:
        framework_page(out, name)
    for module in PYTHON:
        lines = [f"# {module}", "", "```{eval-rst}", f".. automodule:: {module}", "```", ""]
        write(out / f"reference/python/{module}.md", "\n".join(lines))
    write(out / "reference/python/index.md", "\n".join(["# Python modules", "", "```{toctree}", *PYTHON, *(f"lockstep.{name}" for name in FRAMEWORKS), "```", ""]))


def header_pages(out, xml):
    names, lines_of = [], header_lines(xml)
    for name in sorted(lines_of):
        page = name.removeprefix("lockstep/").replace("/", "_").removesuffix(".hpp")
        comment = re.match(r"((?://[^\n]*\n)+)", (ROOT / "include" / name).read_text(encoding="utf-8"))
        text = " ".join(line.removeprefix("//").strip() for line in comment.group(1).splitlines()) if comment else ""
        write(out / f"reference/cpp/{page}.md", "\n".join([f"# {name}", "", text.replace("<", "&lt;"), "", *lines_of[name]]))
        names.append(page)
    write(out / "reference/cpp/index.md", "\n".join([
        "# C++ headers", "", "The language of kernels (`kernel.hpp`) is described in [its guide](../../docs/language.md).", "",
        "```{toctree}", *names, "```", ""]))


def notebook_pages(out):
    for notebook in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        lines = []
        for k, part in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
            source = "".join(part["source"])
            lines += [source, ""] if part["cell_type"] == "markdown" else ["```python", source, "```", ""]
            for output in part.get("outputs", []):
                if "text" in output:
                    lines += ["```text", "".join(output["text"]).rstrip(), "```", ""]
                elif picture := output.get("data", {}).get("image/png"):
                    image = out / f"docs/notebooks/{notebook.stem}_{k}.png"
                    image.parent.mkdir(parents=True, exist_ok=True)
                    image.write_bytes(base64.b64decode("".join(picture)))
                    lines += [f"![Output of the cell above]({image.name})", ""]
        write(out / f"docs/notebooks/{notebook.stem}.md", "\n".join(lines))


def main():
    program, out = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    copy_pages(out)
    command_pages(program, out)
    python_pages(out)
    header_pages(out, sys.argv[3])
    notebook_pages(out)
    shutil.copyfile(SITE / "index.md", out / "index.md")
    for file in "conf.py", "docstrings.py":
        shutil.copyfile(SITE / file, out / file)
    shutil.copytree(SITE / "static", out / "_static")


if __name__ == "__main__":
    main()
