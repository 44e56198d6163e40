"""Writes stubs out of the library's declarations: `# options of COMMAND` becomes the parameters of a command, `# words of the kernel
language` a function for each of ir/ops.def.

usage: write_stubs.py FOLDER: below it, with the package that was built there
"""
import pathlib
import re
import sys

MARK = re.compile(r"        # options of ([\w.]+)\n")


def parameters(options, command, own):
    """A line for each option that is no parameter of the function's own, as _options.described() puts it into the signature."""
    for o in options.options(command):
        if o["argument"] == o["name"] and not o["required"] and o["name"] not in own:
            default = repr(o["default"]).replace("'", '"')
            yield f"        {o['name']}: {options.annotation(o)} = {default},\n"


def stub(options, text):
    parts = MARK.split(text)  # text, command, text, command …
    written = parts[0]
    for command, after in zip(parts[1::2], parts[2::2]):
        own = re.findall(r"(\w+):", written[written.rindex("def "):])
        written += "".join(parameters(options, command, own)) + after
    return written


def words(core):
    for name, arity in core.words().items():
        if name.isidentifier():
            yield f"def {name}({', '.join(f'{operand}: Operand' for operand in 'abc'[:arity])}) -> Expr: ...\n"


def main(package):
    sys.path.insert(0, str(package.parent))
    from lockstep import _core, _options

    templates = pathlib.Path(__file__).parent
    for template in templates.rglob("*.pyi.in"):
        target = package / template.relative_to(templates).with_suffix("")
        target.unlink(missing_ok=True)  # never through a link into the sources
        text = stub(_options, template.read_text(encoding="utf-8"))
        target.write_text(text.replace("# words of the kernel language\n", "".join(words(_core))), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
