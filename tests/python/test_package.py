"""The package as a whole: import, the program, types, error classes."""
import ast
import importlib
import inspect
import os
import re
import subprocess
import sys

import pytest

import lockstep as ls


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)


def test_import_needs_numpy_alone_and_that_later():
    found = run("-c", "import sys, lockstep; print(sorted({m.partition('.')[0] for m in sys.modules} & "
                "{'numpy', 'torch', 'jax', 'scipy', 'xarray', 'rasterio', 'pandas'}))")
    assert found.stdout.strip() == "[]", found.stderr


def test_the_import_is_quick():
    """Processor time beyond Python's own, the least of five: 0.15 s are promised, and most of that is the machine's to waste."""
    code = "import time; begin = time.process_time(); import lockstep; print(time.process_time() - begin)"
    assert min(float(run("-c", code).stdout) for _ in range(5)) < 0.15


def test_the_program_comes_along(tmp_path):
    found = run("-m", "lockstep", "--version")
    assert found.returncode == 0 and found.stdout.startswith("lockstep ")
    wrong = run("-m", "lockstep", "no-such-command")
    assert wrong.returncode == 2 and wrong.stderr.startswith("lockstep: error: ")
    assert run("-m", "lockstep", "devices").stdout.count("cpu") >= 1
    # It starts itself again, as the program that it is here.
    told = run("-m", "lockstep", "bench", "startup", "--device", "interp", "--out", str(tmp_path / "startup.json"))
    assert told.returncode == 0 and (tmp_path / "startup.json").stat().st_size > 0, told.stderr


def test_records_are_run_again(tmp_path):
    first = tmp_path / "first"
    made = run("-m", "lockstep", "flow", "run", "--n", "16", "--steps", "2", "--device", "interp", "--format", "npz", "--out", str(first))
    assert made.returncode == 0, made.stderr
    found = ls.reproduce(first)
    assert found["different"] == 0 and [row["verdict"] for row in found["files"]] == ["identical"]
    assert ls.compare(first, first)["same_identity"]
    with pytest.raises(ls.InputError, match="no-such-device") as error:
        ls.reproduce(first, device="no-such-device")
    assert error.value.expected
    with open(first / "run.npz", "ab") as file:
        file.write(b"more")
    with pytest.raises(ls.InputError, match="run.npz"):
        ls.reproduce(first)


def test_one_name_leaves_the_module():
    """LLVM's names and others stay inside, where another module of the process may have its own."""
    import shutil

    from lockstep import _core
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed")
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", _core.__file__], capture_output=True, text=True, check=True).stdout
    given = [line.split()[-1] for line in symbols.splitlines() if re.search(r"\b(GLOBAL|WEAK|UNIQUE)\b", line) and " UND " not in line]
    assert given == ["PyInit__core"]


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


APPLICATIONS = ("urban", "pde", "solve", "flow", "forecast", "parallel")


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


FRAMEWORKS = {"torch": "torch", "jax": "jax", "forecast.torch": "torch"}


def stub_of(module):
    """The syntax tree of a module's stub."""
    path = os.path.splitext(module.__file__)[0] + ".pyi"
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def definitions(tree, module):
    """(name, what the package has, the stub's node) of functions and methods."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, getattr(module, node.name), node
        elif isinstance(node, ast.ClassDef):
            owner = getattr(module, node.name, None) or getattr(_types_and_language(), node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.decorator_list:
                    yield f"{node.name}.{inner.name}", getattr(owner, inner.name), inner


def _types_and_language():
    from lockstep import _language, _types
    return type("Both", (), {**vars(_types), **vars(_language)})


def wrong_definitions(tree, module):
    for name, value, node in definitions(tree, module):
        try:
            parameters = inspect.signature(value).parameters
        except (TypeError, ValueError):
            continue
        found = [p for p, what in parameters.items() if p != "self" and what.kind not in (what.VAR_POSITIONAL, what.VAR_KEYWORD)]
        told = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs] if a.arg not in ("self", "cls")]
        variadic = len(found) < len([p for p in parameters if p != "self"]) and node.args.vararg is None and node.args.kwarg is None
        if not variadic and not (node.name.startswith("__") and node.name != "__init__") and \
                not any(d.id == "overload" for d in node.decorator_list) and told != found:
            yield f"{name}: {told} in the stub, {found} in the package"


def test_the_stubs_are_what_the_package_has():
    tree = stub_of(ls)
    assert not list(wrong_definitions(tree, ls))
    with open(os.path.splitext(ls.__file__)[0] + ".pyi", encoding="utf-8") as file:
        text = file.read()
    public = [n for n in vars(ls) if not n.startswith("_") and not inspect.ismodule(getattr(ls, n))]
    assert not [n for n in (*public, *ls._LAZY) if not re.search(rf"\b{n}\b", text)]


@pytest.mark.parametrize("name", [*APPLICATIONS, *FRAMEWORKS])
def test_submodules_have_stubs_of_all_public_names(name):
    if name in FRAMEWORKS:
        pytest.importorskip(FRAMEWORKS[name], reason=f"{FRAMEWORKS[name]} is not installed")
    module = importlib.import_module("lockstep." + name)
    tree = stub_of(module)
    assert not list(wrong_definitions(tree, module))
    told = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            told[node.target.id] = node
        elif isinstance(node, ast.Assign):
            told[node.targets[0].id] = node
    own = {n: v for n, v in vars(module).items() if not n.startswith("_") and not inspect.ismodule(v)
           and getattr(v, "__module__", module.__name__) == module.__name__}
    assert not sorted(set(own) - set(told)), "missing in the stub"
    for member, value in own.items():
        if inspect.isclass(value):
            inside = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in told[member].body
                      if isinstance(n, (ast.FunctionDef, ast.AnnAssign))}
            assert not sorted({n for n in vars(value) if not n.startswith("_")} - inside), member


TYPED = '''
import numpy as np
import lockstep as ls

@ls.kernel
def heat(at, t: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3], a: ls.f32):
    out[at] = ls.fma(a, t[at.x(+1)] + t[at.x(-1)] - 2 * t[at], t[at])

now = np.random.rand(8, 8, 8).astype("f4")
nxt = np.zeros_like(now)
heat["cpu", now.shape](now, nxt, 0.1)

@ls.kernel
def collatz(at: ls.At, x: ls.Grid[ls.f32, 1], found: ls.InOut[ls.i32, 1]):
    n, count, total = ls.var(at.x + 1), ls.var(0), ls.var(0.0)
    with ls.while_(lambda: n != 1):
        with ls.if_(n % 2 == 0):
            n.set(n // 2)
        with ls.else_():
            n.set(3 * n + 1)
        count += 1
    for i in ls.for_(x.size(0)):
        total += x.periodic()[i]
    found[at] = count + ls.cast(ls.i32, ls.where(total > 0, total, 0))
    found.atomic_add(0, 1)

@ls.kernel(group=(64,))
def sums(g: ls.Group, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
    s = ls.shared(ls.f32, 64)
    s[g.local()] = x[g.global_()]
    ls.barrier()
    out[g.id()] = ls.group_sum(s[g.local()])
'''


def test_a_checker_of_types_accepts_kernels(tmp_path, monkeypatch):
    """And still finds mistakes."""
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    monkeypatch.setenv("MYPYPATH", os.path.dirname(os.path.dirname(ls.__file__)))
    file = tmp_path / "kernels.py"
    for text, errors in ((TYPED, []), (TYPED + "\nheat.sources()\nls.fma(1, 2)\n", ["sources", "fma"])):
        file.write_text(text)
        told, failed, _ = api.run(["--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(file)])
        own = [line for line in told.splitlines() if line.startswith(str(file)) and " error: " in line]
        assert len(own) == len(errors) and all(word in line for word, line in zip(errors, own)), told + failed
