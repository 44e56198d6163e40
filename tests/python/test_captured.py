"""Globals, dictionaries, modules and names around a kernel: their values at the launch count."""
import functools
import types

import numpy as np

import lockstep as ls

X = np.array([0.5, -1.25, 3.0, 7.5, -0.75, 2.0, 100.25, 0.0], "f4")
FACTOR, WEIGHTS, TENSOR = 2.0, [1.0, 2.0], np.array([1.0, 2.0], "f4")


def helper(v):
    return v * FACTOR


@ls.kernel
def reads_the_host(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
    o[at] = helper(x[at]) + WEIGHTS[1] + float(TENSOR[0])


def test_globals_that_change_later_are_read_again(device, monkeypatch):
    o = np.zeros_like(X)

    def expect(factor, weight, tensor):
        reads_the_host[device, 8](X, o)
        np.testing.assert_array_equal(o, X * np.float32(factor) + np.float32(weight) + np.float32(tensor))
    expect(2, 2, 1)
    for factor in (4.0, 2.0, 0.5):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        expect(factor, 2, 1)
    WEIGHTS[1] = 8.0
    expect(0.5, 8, 1)
    TENSOR[0] = 16.0
    expect(0.5, 8, 16)
    WEIGHTS[1], TENSOR[0] = 2.0, 1.0
    expect(0.5, 2, 1)


PARAMETERS = {"scale": 2.0, "terms": [1.0]}
constants = types.ModuleType("constants")
exec("G = 9.0\ndef twice(v):\n    return v * (2.0 * G)", constants.__dict__)


@ls.kernel
def reads_tables_and_modules(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
    o[at] = PARAMETERS["scale"] * x[at] + PARAMETERS["terms"][0] + constants.G + constants.twice(x[at])


def test_dictionaries_and_modules_that_change_later_are_read_again(device, monkeypatch):
    o = np.zeros_like(X)

    def expect(scale, term, g):
        reads_tables_and_modules[device, 8](X, o)
        np.testing.assert_allclose(o, scale * X + term + g + 2 * g * X, rtol=1e-6)
    expect(2, 1, 9)
    monkeypatch.setitem(PARAMETERS, "scale", 3.0)
    expect(3, 1, 9)
    monkeypatch.setitem(PARAMETERS, "terms", [5.0])
    expect(3, 5, 9)
    monkeypatch.setattr(constants, "G", 4.0)
    expect(3, 5, 4)


def test_names_of_the_function_around_that_change_later(device):
    scale = 2.0

    @ls.kernel
    def scaled(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
        o[at] = scale * x[at]

    o = np.zeros_like(X)
    for scale in (2.0, 3.0, 2.0):
        scaled[device, 8](X, o)
        np.testing.assert_array_equal(o, np.float32(scale) * X)
    assert len(scaled._traces) == 2


def test_kernels_of_a_loop_keep_their_own_constants(device):
    def make(scale):
        @ls.kernel
        def scaled(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
            o[at] = scale * x[at]
        return scaled
    o = np.zeros_like(X)
    for scale, kernel in [(s, make(s)) for s in (1.0, 2.0, 3.0)]:
        kernel[device, 8](X, o)
        np.testing.assert_array_equal(o, np.float32(scale) * X)


class Settings:
    def __init__(self, factor):
        self.factor = factor


def test_objects_at_the_address_of_earlier_ones_are_others(device):
    settings = table = None

    @ls.kernel
    def scaled(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
        o[at] = x[at] * settings.factor + float(table[3])

    o = np.zeros_like(X)
    for factor in range(12):  # each object takes the memory of one that is gone
        settings, table = Settings(float(factor)), np.full(5000, factor)
        scaled[device, 8](X, o)
        np.testing.assert_array_equal(o, X * np.float32(factor) + np.float32(factor))


SHARE = 1.0


def shared(v, times=1.0):
    return v * (SHARE * times)


def test_functions_in_tables_are_called_functions(device, monkeypatch):
    steps, named, partly, kinds = [shared], {"last": shared}, functools.partial(shared, times=2.0), {1, 2}

    @ls.kernel
    def several(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
        o[at] = steps[0](x[at]) + named["last"](x[at]) + partly(x[at]) + float(len(kinds))

    o = np.zeros_like(X)

    def expect(factor, more):
        several[device, 8](X, o)
        np.testing.assert_array_equal(o, X * np.float32(factor) + np.float32(more))
    expect(4, 2)
    monkeypatch.setitem(globals(), "SHARE", 2.0)
    expect(8, 2)
    monkeypatch.setattr(shared, "__defaults__", (0.5,))
    expect(6, 2)
    kinds.add(3)
    expect(6, 3)
