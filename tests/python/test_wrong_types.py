"""Values of a type that does not fit: errors name the argument in words of Python, not the signature of a binding."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import flow, forecast, pde, solve, urban


@ls.kernel
def twice(at, a: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
    out[at] = 2 * a[at]


CALLS = {
    "a device": [lambda: ls.Device(3), lambda: ls.Device(["cpu"]), lambda: ls.asarray(np.ones(3, "f4"), 3.5), lambda: urban.svf(np.ones((4, 4)), pixel_size=1, device=3)],
    "numerics": [lambda: ls.Device(HOST, numerics=1), lambda: twice.source("ir", numerics=None)],
    "threads": [lambda: ls.Device(HOST, threads=1.5), lambda: ls.Device(HOST, threads=-1), lambda: ls.Device(HOST, threads=2**40)],
    "fallback": [lambda: ls.Device(HOST, fallback="no")],
    "check": [lambda: ls.Device(HOST, check=2**70)],
    "work": [lambda: ls.Device(HOST).record(3)],
    "shape": [lambda: ls.empty("3"), lambda: ls.zeros(1.5)],
    "an axis": [lambda: ls.empty((2, 1.5)), lambda: ls.empty(-1)],
    "history": [lambda: forecast.StateEncoder(2**70, device=HOST), lambda: forecast.StateEncoder(1.5, device=HOST)],
    "a command": [lambda: ls.options(None)],
    "a name": [lambda: ls.per_replay(3, 1.0)],
    "the value": [lambda: ls.per_replay("a", "1")],
    "a target": [lambda: twice.source(3)],
    "a stage": [lambda: urban.stage(3, {})],
    "arrays": [lambda: urban.stage("tmrt", [1, 2])],
    "steps": [lambda: flow.Simulation(16, device=HOST).advance(1.5), lambda: flow.Simulation(16, device=HOST).advance(2**70)],
    "dimensions": [lambda: pde.System("2"), lambda: pde.System(4), lambda: pde.transport(1.5)],
    "a name of blocks": [lambda: solve.Problem().add_blocks(3, np.ones((2, 2)))],
    "a manifold": [lambda: solve.Problem().add_blocks("p", np.ones((2, 2)), manifold=None)],
}


@pytest.mark.parametrize("said", CALLS)
def test_the_argument_is_named(said):
    for call in CALLS[said]:
        with pytest.raises(ls.InputError) as caught:
            call()
        assert caught.value.what.startswith(said) and caught.value.expected, str(caught.value)


def test_paths_may_be_bytes(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss\n0,1\n1,0.5\n2,0.25\n")
    path = tmp_path / "log.csv"
    assert forecast.read_log(bytes(path)).keys() == forecast.read_log(path).keys()


def test_functions_of_plain_numbers():
    """Numbers that are known while tracing need no traced value next to them."""
    assert (ls.min(2, 3), ls.max(2, 3), ls.clamp(5, 0, 1), ls.clamp(-1, 0, 1)) == (2, 3, 1, 0)
    assert np.isnan(ls.clamp(float("nan"), 0, 1))


def test_steps_may_be_a_whole_float():
    run = flow.Simulation(16, dt=0.01, device=HOST).set_vorticity(np.zeros((16, 16)))
    assert list(run.advance(2.0).steps) == [2]
