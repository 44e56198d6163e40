"""The package as a whole: import, the program, types, error classes."""
import os
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


def test_the_stubs_know_the_public_names():
    stub = os.path.join(os.path.dirname(ls.__file__), "__init__.pyi")
    with open(stub, encoding="utf-8") as file:
        text = file.read()
    missing = [n for n in ls._WORDS if f"def {n}(" not in text]
    assert not missing
