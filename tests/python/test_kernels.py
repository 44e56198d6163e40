"""Kernels written in Python: the bits of NumPy and of all devices, control flow, and what is refused."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST


@ls.kernel
def heat(at, t: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3], a: ls.f32):
    out[at] = ls.fma(a, t[at.x(+1)] + t[at.x(-1)] - 2 * t[at], t[at])


def heat_reference(t, a):
    left = np.concatenate([t[..., :1], t[..., :-1]], -1)
    right = np.concatenate([t[..., 1:], t[..., -1:]], -1)
    second = (right + left) - np.float32(2) * t  # 2 t is exact, so contraction changes nothing
    return (np.float64(np.float32(a)) * second.astype("f8") + t.astype("f8")).astype("f4")


def test_heat_has_the_bits_of_a_plain_reference(device, rng):
    now = rng.standard_normal((3, 4, 37)).astype("f4")
    out = np.zeros_like(now)
    heat[device, now.shape](now, out, 0.1)
    # One rounding of a product that f64 holds exactly and a sum that it may not: at most a tie apart.
    np.testing.assert_allclose(out, heat_reference(now, 0.1), rtol=2e-7, atol=1e-7)
    assert ls.verify(heat, (now, out, 0.1), against="interp", device=HOST)


def test_sources_of_all_targets():
    for target, word in (("ir", "fma"), ("cuda", "__global__"), ("wgsl", "@compute"), ("llvm", "define")):
        assert word in heat.source(target)
    assert heat.fingerprint() == heat.fingerprint()


def test_open_types_are_taken_from_the_arguments(device):
    @ls.kernel
    def twice(at, x: ls.Grid, y: ls.Out):
        y[at] = x[at] + x[at]

    for dtype in ("f4", "f8", "i4"):
        x = np.arange(12, dtype=dtype).reshape(3, 4)
        y = np.zeros_like(x)
        twice[device, x.shape](x, y)
        np.testing.assert_array_equal(y, 2 * x)


def test_control_flow(device):
    @ls.kernel
    def collatz(at, steps: ls.Out[ls.i32, 1]):
        n, count = ls.var(at.x + 1), ls.var(0)
        with ls.while_(lambda: n != 1):
            with ls.if_(n % 2 == 0):
                n.set(n // 2)
            with ls.else_():
                n.set(3 * n + 1)
            count += 1
        steps[at] = count

    @ls.kernel
    def sums(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
        total = ls.var(0.0)
        for i in ls.for_(x.size(0)):
            with ls.if_(i > at.x):
                ls.break_()
            total += x[i]
        out[at] = total

    steps = np.zeros(30, "i4")
    collatz[device, 30](steps)

    def count(n):
        k = 0
        while n != 1:
            n, k = (n // 2 if n % 2 == 0 else 3 * n + 1), k + 1
        return k

    np.testing.assert_array_equal(steps, [count(n) for n in range(1, 31)])
    x = np.arange(9, dtype="f4")
    out = np.zeros(9, "f4")
    sums[device, 9](x, out)
    np.testing.assert_array_equal(out, np.cumsum(x))


def test_groups_share_memory(device):
    @ls.kernel(group=(64,))
    def reverse(group: ls.Group[1], x: ls.InOut[ls.f32, 1], total: ls.Out[ls.f32, 1]):
        tile = ls.shared(ls.f32, 64)
        lane = group.lane()
        tile[lane] = x[group.global_()]
        ls.barrier()
        x[group.global_()] = tile[63 - lane]
        sum_ = ls.group_sum(tile[lane])
        with ls.if_(lane == 0):
            total[group.id()] = sum_

    x = np.arange(128, dtype="f4")
    total = np.zeros(2, "f4")
    reverse[device, 2](x, total)
    np.testing.assert_array_equal(x, np.arange(128).reshape(2, 64)[:, ::-1].ravel())
    np.testing.assert_array_equal(total, [2016, 6112])


def test_boundaries_and_leading_coordinates(device):
    @ls.kernel
    def shift(at, x: ls.Grid[ls.f32, 2], out: ls.Out[ls.f32, 2]):
        out[0, at] = x.periodic()[0, at.x(-1)]
        out[1, at] = x.zero()[1, at.x(+1)]

    x = np.arange(10, dtype="f4").reshape(2, 5)
    out = np.zeros_like(x)
    shift[device, 5](x, out)
    np.testing.assert_array_equal(out[0], np.roll(x[0], 1))
    np.testing.assert_array_equal(out[1], [*x[1, 1:], 0])


def test_whole_numbers_divide_as_in_python(device):
    @ls.kernel
    def divide(at, a: ls.Grid[ls.i32, 1], b: ls.Grid[ls.i32, 1], q: ls.Out[ls.i32, 1], r: ls.Out[ls.i32, 1]):
        q[at] = a[at] // b[at]
        r[at] = a[at] % b[at]

    a = np.array([7, -7, 7, -7, 6, -6, 0], "i4")
    b = np.array([3, 3, -3, -3, 3, 3, 5], "i4")
    q, r = np.zeros_like(a), np.zeros_like(a)
    divide[device, 7](a, b, q, r)
    np.testing.assert_array_equal(q, a // b)
    np.testing.assert_array_equal(r, a % b)


def test_functions_come_from_the_table(device):
    names = ["exp", "log1p", "sin", "tanh", "erf", "cbrt", "rint", "sqrt"]

    @ls.kernel
    def all_of(at, x: ls.Grid[ls.f64, 1], out: ls.Out[ls.f64, 2]):
        for k, name in enumerate(names):
            out[k, at] = getattr(ls, name)(x[at])

    import math
    x = np.linspace(0.1, 3, 17)
    out = np.zeros((len(names), 17))
    all_of[device, 17](x, out)
    host = {"cbrt": np.cbrt, "erf": np.vectorize(math.erf), "rint": np.rint}
    for k, name in enumerate(names):
        np.testing.assert_allclose(out[k], host.get(name, getattr(np, name, None))(x), rtol=1e-15)


@pytest.mark.parametrize("body, replacement", [
    (lambda at, x: 1 if x[at] > 0 else 2, "lockstep.where"),
    (lambda at, x: [i for i in range(x.size(0))], "lockstep.for_"),
    (lambda at, x: list(x[at]), "lockstep.for_"),
    (lambda at, x: float(x[at]), "lockstep.cast"),
    (lambda at, x: min(x[at], 0), "lockstep.min"),
])
def test_python_control_flow_is_refused_with_line_and_replacement(body, replacement):
    @ls.kernel
    def bad(at, x: ls.InOut[ls.f32, 1]):
        x[at] = body(at, x)

    with pytest.raises(ls.InputError, match=r"test_kernels\.py:\d+") as error:
        bad.trace()
    assert replacement in error.value.expected


def test_python_break_is_refused():
    @ls.kernel
    def bad(at, x: ls.InOut[ls.f32, 1]):
        for _ in ls.for_(3):
            break

    with pytest.raises(ls.InputError, match="break"):
        bad.trace()


def test_errors_name_kernel_and_argument(device):
    x, y = np.zeros((2, 2, 2), "f4"), np.zeros((2, 2, 2), "f4")
    for arguments, words in (((x, y), "2 arguments"), ((x.astype("f8"), y, 0.1), "argument t"),
                             ((x[0], y, 0.1), "argument t"), ((x, y, "a"), "argument a"), ((x, 3.0, 0.1), "argument out"),
                             ((x, x, 0.1), "overlap"), ((x[:, :, ::-1], y, 0.1), "argument t")):
        with pytest.raises(ls.InputError, match="kernel heat") as error:
            heat[device, (2, 2, 2)](*arguments)
        assert words in str(error.value)
    with pytest.raises(ls.InputError, match="extent"):
        heat[device, (4, 4, 4)](x, y, 0.1)
    with pytest.raises(ls.InputError, match="whole numbers"):
        heat["cpu", (2.5, 4, 4)]


def test_bench_reports_times():
    x = np.zeros((8, 8, 8), "f4")
    row = ls.bench(heat, (x, x.copy(), 0.1), extent=x.shape, device="cpu", iterations=5)
    assert row["iterations"] == 5 and 0 < row["min_ms"] <= row["median_ms"] <= row["p95_ms"]
    assert row["bytes"] == 2 * x.nbytes


def test_the_traced_ir_is_that_of_the_same_text():
    def make():
        @ls.kernel
        def same(at, x: ls.Grid[ls.f32, 1], y: ls.Out[ls.f32, 1]):
            y[at] = x[at.x(+1)] * 2.0

        return same

    assert make().fingerprint() == make().fingerprint()


def test_hypothesis_shapes(device):
    hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
    from hypothesis import strategies as st

    @ls.kernel
    def add(at, x: ls.Grid, y: ls.Grid, z: ls.Out):
        z[at] = x[at] + y[at]

    @hypothesis.settings(max_examples=25, deadline=None, derandomize=True)
    @hypothesis.given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.sampled_from(["f4", "f8", "i4"]),
                      st.integers(0, 3))
    def check(shape, dtype, pad):
        wide = (*shape[:-1], shape[-1] + pad)
        x = np.arange(np.prod(wide)).astype(dtype).reshape(wide)[..., :shape[-1]]
        y, z = np.ones(shape, dtype), np.zeros(shape, dtype)
        add[device, tuple(shape)](x, y, z)
        np.testing.assert_array_equal(z, x + y)

    check()


def test_cases_from_python():
    assert "engine.copy" in ls.cases()
    rows = ls.verify("engine.copy", against="reference", device=HOST, sizes=["17"])
    assert rows and len(rows) == 1 and rows[0]["differing_bits"] == 0
    assert ls.bench("engine.copy", device=HOST, sizes=["4096"], iterations=2, warmup=1)[0]["median_ms"] > 0
    with pytest.raises(ls.InputError):
        ls.verify("no.such.case", device=HOST)
    with pytest.raises(ls.InputError, match="against"):
        ls.verify("engine.copy", against="moon", device=HOST)


def axpy_as_in_cpp(right_first):
    @ls.kernel
    def axpy(at, x: ls.Grid[ls.f32, 2], y: ls.Grid[ls.f32, 2], r: ls.Out[ls.f32, 2], a: ls.f32):
        right = y[at] if right_first else None
        r[at] = a * x[at] + (right if right_first else y[at])

    return axpy


def heat_as_in_cpp(right_first):
    @ls.kernel
    def heat(at, t: ls.Grid[ls.f32, 3], out: ls.Out[ls.f32, 3], a: ls.f32):
        places = [at.x(+1), at.x(-1), at.y(+1), at.y(-1), at.z(+1), at.z(-1)]
        if right_first:
            total = sum_of([t[p] for p in places[::-1]][::-1])
            here = t[at]
            out[at] = ls.fma(a, total - 6 * t[at], here)
        else:
            total = sum_of([t[p] for p in places])
            out[at] = ls.fma(a, total - 6 * t[at], t[at])

    return heat


def sum_of(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


@pytest.mark.parametrize("name,make", [("engine.axpy", axpy_as_in_cpp), ("engine.heat", heat_as_in_cpp)])
def test_the_same_code_is_the_same_ir_as_in_cpp(name, make):
    """Which operand is evaluated first is the C++ compiler's choice: GCC takes the right one, Clang the left one."""
    import subprocess
    import sys
    told = subprocess.run([sys.executable, "-m", "lockstep", "emit", name, "--target", "ir"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    traced = [make(right_first) for right_first in (True, False)]
    for kernel in traced:
        kernel.name = name
    assert told.stdout in [kernel.source("ir") for kernel in traced]


@ls.kernel
def axpy(at, x: ls.Grid[ls.f32, 1], y: ls.InOut[ls.f32, 1], a: ls.f32):
    y[at] = ls.fma(a, x[at], y[at])


def test_recorded_launches_are_replayed_with_new_numbers(device):
    x, y = ls.asarray(np.arange(8, dtype="f4"), device), ls.zeros((8,), ls.f32, device)

    def work():
        axpy[8](x, y, ls.per_replay("a", 1.0))
        axpy[8](x, y, 0.5)

    graph = device.record(work)
    assert (y.numpy() == 0).all()  # recorded, not run
    graph.replay()
    np.testing.assert_array_equal(y.numpy(), 1.5 * np.arange(8))
    for _ in range(2):
        graph.replay(a=2.0)
    np.testing.assert_array_equal(y.numpy(), 6.5 * np.arange(8))
    kept = y.numpy()
    del x, y, work
    graph.replay()  # keeps the memory, and the number that was given last
    np.testing.assert_array_equal(kept, 9 * np.arange(8))
    with pytest.raises(ls.InputError, match="b"):
        graph.replay(b=1.0)
    with pytest.raises(ZeroDivisionError):
        device.record(lambda: 1 / 0)
    with pytest.raises(ls.InputError, match="inside a recording"):
        device.record(lambda: device.record(lambda: None))


def test_a_constant_that_u8_does_not_hold_is_refused():
    for value in (256, -1):
        @ls.kernel
        def fill(at, out: ls.Out[ls.u8, 1]):
            out[at] = value
        with pytest.raises(ls.InputError, match=f"{value} stored in out"):
            fill[HOST, 2](np.zeros(2, np.uint8))
    value = 255
    kept = np.zeros(2, np.uint8)
    fill[HOST, 2](kept)
    assert kept.tolist() == [255, 255]
