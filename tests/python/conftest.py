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


def recurrent_model(rng, members=2, hidden=6, inputs=4, states=3):
    """Arrays of a model that forecast.rollout takes."""
    model = {"w": 0.1 * rng.standard_normal(hidden + states), "features": rng.random(inputs) + 1,
             "h0": rng.standard_normal((members, hidden))}
    for gate in "zrh":
        model["W_" + gate] = 0.3 * rng.standard_normal((members, hidden, inputs))
        model["U_" + gate] = 0.3 * rng.standard_normal((members, hidden, hidden))
        model["b_" + gate] = 0.1 * rng.standard_normal((members, hidden))
    return model
