"""The package as a whole: import, the program, types, error classes."""
import ast
import inspect
import os
import re
import subprocess
import sys

import pytest

import lockstep as ls


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)


def test_import_needs_numpy_alone():
    found = run("-c", "import sys, lockstep; print(sorted({m.partition('.')[0] for m in sys.modules} & "
                "{'torch', 'jax', 'scipy', 'xarray', 'rasterio', 'pandas'}))")
    assert found.stdout.strip() == "[]", found.stderr


def test_the_program_comes_along():
    from lockstep.__main__ import program
    if not program():
        pytest.fail("the program is not beside the package; build the target lockstep_cli")
    found = run("-m", "lockstep", "--version")
    assert found.returncode == 0 and "lockstep" in found.stdout.lower()
    assert run("-m", "lockstep", "no-such-command").returncode == 2


def test_errors_have_parts():
    with pytest.raises(ls.InputError) as error:
        ls.Device("toaster")
    assert isinstance(error.value, ValueError) and isinstance(error.value, ls.Error)
    assert error.value.what and error.value.where
    assert issubclass(ls.DeviceError, ls.Error) and issubclass(ls.FallbackWarning, Warning)


def test_every_public_name_is_documented():
    names = [n for n in vars(ls) if not n.startswith("_") and callable(getattr(ls, n))]
    assert len(names) > 60
    assert not [n for n in names if not getattr(getattr(ls, n), "__doc__", None)]


APPLICATIONS = ("urban", "pde", "solve", "flow", "forecast")


def test_every_function_of_the_applications_is_documented():
    bare = []
    for name in APPLICATIONS:
        module = getattr(ls, name)
        for member, value in vars(module).items():
            if member.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if not value.__doc__:
                bare.append(f"{name}.{member}")
    assert not bare


def stub_definitions():
    with open(os.path.join(os.path.dirname(ls.__file__), "__init__.pyi"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, getattr(ls, node.name), node
        elif isinstance(node, ast.ClassDef):
            owner = getattr(ls, node.name, None) or getattr(_types_and_language(), node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.decorator_list:
                    yield f"{node.name}.{inner.name}", getattr(owner, inner.name), inner


def _types_and_language():
    from lockstep import _language, _types
    return type("Both", (), {**vars(_types), **vars(_language)})


def test_the_stubs_are_what_the_package_has():
    stub, wrong = set(), []
    for name, value, node in stub_definitions():
        stub.add(name)
        try:
            found = [p for p in inspect.signature(value).parameters if p != "self"]
        except (TypeError, ValueError):
            continue
        told = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs] if a.arg not in ("self", "cls")]
        variadic = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in inspect.signature(value).parameters.values())
        if not variadic and not node.name.startswith("__") and not any(d.id == "overload" for d in node.decorator_list) \
                and told != found:
            wrong.append(f"{name}: {told} in the stub, {found} in the package")
    assert not wrong
    with open(os.path.join(os.path.dirname(ls.__file__), "__init__.pyi"), encoding="utf-8") as file:
        text = file.read()
    public = [n for n in vars(ls) if not n.startswith("_") and not inspect.ismodule(getattr(ls, n))]
    assert not [n for n in (*public, *ls._LAZY) if not re.search(rf"\b{n}\b", text)]
