"""Checked launches: what the interpreter finds is raised with the kernel, and with the file and line of its author."""
import inspect
import re

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST

pytestmark = pytest.mark.skipif(HOST != "cpu", reason="launches of the interpreter are not checked once more")


@ls.kernel
def race(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
    o[at.x // 2] = x[at] * ls.cast(ls.f32, at.x)


@ls.kernel
def outside(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
    o[at] = x[at.x + 1]


@ls.kernel
def copied(at, x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
    o[at] = x[at]


@ls.kernel(group=(64,))
def claim(group: ls.Group[1], x: ls.Grid[ls.f32, 1], o: ls.Out[ls.f32, 1]):
    half = ls.uniform(group.lane() // 32)
    o[group.global_()] = x[group.global_()] + ls.cast(ls.f32, half)


def arrays():
    return np.ones(64, "f4"), np.zeros(64, "f4")


def faults():
    device = ls.Device("cpu")
    return [
        (race, 64, arrays(), "races between lanes"),
        (outside, 64, arrays(), "out of bounds"),
        (copied, 64, (ls.empty(64, ls.f32, device), ls.zeros(64, ls.f32, device)), "uninitialised memory"),
        (claim, 1, arrays(), "uniform() values"),
    ]


def expect(kernel, work, said):
    with pytest.raises(ls.CheckError) as caught:
        work()
    text = str(caught.value)
    assert said in text and f"kernel {kernel.name}" in text
    source, first = inspect.getsourcelines(kernel._function)
    line = int(re.search(r"test_check\.py:(\d+)", text).group(1))
    assert first <= line < first + len(source), text


def test_faults_are_raised_inside_of_check():
    device = ls.Device("cpu")
    with ls.check():  # memory counts as uninitialised where it is allocated inside
        for kernel, extent, arguments, said in faults():
            expect(kernel, lambda: kernel[device, extent](*arguments), said)


def test_faults_are_raised_on_a_checked_device():
    device = ls.Device("cpu", check=True)
    for kernel, extent, arguments, said in faults():
        own = [ls.empty(64, ls.f32, device) if isinstance(a, ls.Array) else a for a in arguments]
        expect(kernel, lambda: kernel[device, extent](*own), said)


def test_right_kernels_pass_and_the_checks_end():
    device, (x, o) = ls.Device("cpu"), arrays()
    with ls.check():
        copied[device, 64](x, o)
        np.testing.assert_array_equal(o, x)
        with ls.check(0):
            race[device, 64](x, o)
        expect(race, lambda: race[device, 64](x, o), "races")
    race[device, 64](x, o)  # as before


def test_every_nth_launch():
    device, (x, o) = ls.Device("cpu"), arrays()
    with ls.check(3):
        found = 0
        for _ in range(6):
            try:
                race[device, 64](x, o)
            except ls.CheckError:
                found += 1
        assert found == 2


@pytest.mark.parametrize("every", [-1, 1.5, "all"])
def test_counts_that_are_none_are_refused(every):
    with pytest.raises(ls.InputError, match="check="):
        with ls.check(every):
            pass
    with pytest.raises(ls.InputError, match="check="):
        ls.Device("cpu", check=every)
