"""Signatures and docstrings of functions whose options the library declares."""
import inspect

from . import _core
from ._errors import text

_TYPES = {"bool": "bool", "int": "int", "float": "float", "str": "str", "path": "PathLike", "str or int": "str | int",
          "parts": "str | Sequence[Any] | Mapping[str, Any]"}


def options(command):
    """The options of a command such as "flow.run", one dictionary each: name, argument, flag, former, member, type, list, optional, default, choices, help,
    unit, expected, effect (result, extent, speed, display), required."""
    rows = _core.options(text(command, "a command", "lockstep.options", 'its name, such as "flow.run"'))
    for row in rows:
        if row["choices"] and all(c.isdigit() for c in row["choices"]):  # numbers, as callers write them
            row["choices"], row["default"] = [int(c) for c in row["choices"]], int(row["default"])
    return rows


def annotation(option):
    """The type of an option as a stub has it."""
    if option["type"] == "choice":
        one = f"Literal[{', '.join(repr(c).replace(chr(39), chr(34)) for c in option['choices'])}]"
    else:
        one = _TYPES[option["type"]]
    if option["list"]:
        one = f"Sequence[{one}]"
    return one + (" | None" if option["optional"] or option["default"] is None else "")


def _line(option):
    default = "" if option["default"] is None else f", default {option['default']}"
    kind = ", ".join(map(str, option["choices"])) if option["choices"] else option["type"]
    unit = f", {option['unit']}" if option["unit"] else ""
    return f"    {option['name']} ({kind}{default}): {option['help']}{unit}"


def given_as_options(command, function):
    """The options that **options of a function stands for: not its own parameters, nor the parts of pairs such as n and box."""
    own = inspect.signature(function).parameters
    return [o for o in options(command) if o["name"] not in own and o["argument"] == o["name"] and not o["required"]]


def described(command):
    """Replaces **options in the signature and the docstring of a function by the options of a command."""
    def put(function):
        signature, rows = inspect.signature(function), given_as_options(command, function)
        plain = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
        more = [inspect.Parameter(o["name"], inspect.Parameter.KEYWORD_ONLY, default=o["default"]) for o in rows]
        function.own_parameters = set(signature.parameters)
        function.__signature__ = signature.replace(parameters=plain + more)
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "Options:", *map(_line, rows)])
        return function
    return put
