"""The devices that the tests run on, and helpers."""
import numpy as np
import pytest

import lockstep as ls


# The interpreter serves where the build has no code generator for the CPU.
HOST = "cpu" if any(d["available"] for d in ls.devices() if d["kind"] == "cpu") else "interp"
CUDA = any(d["available"] for d in ls.devices() if d["kind"] == "cuda")


@pytest.fixture(params=["cpu", "interp"])
def device(request):
    return ls.Device(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def address(array):
    return array.__array_interface__["data"][0]
