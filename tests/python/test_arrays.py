"""Arrays: memory shared by pointer, layouts, lifetimes, and what is refused."""
import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST, address

DTYPES = ["f4", "f8", "i4", "u4", "i8", "u8", "f2", "u1"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_memory_is_shared_both_ways(device, dtype):
    x = np.arange(24).astype(dtype).reshape(2, 3, 4)
    a = ls.asarray(x, device)
    assert a.shape == (2, 3, 4) and a.dtype == x.dtype and a.strides == (12, 4, 1)
    assert address(a.numpy()) == address(x)
    x[1, 2, 3] = 99
    assert a.numpy()[1, 2, 3] == 99
    assert address(np.from_dlpack(a)) == address(x)
    assert np.asarray(a).base is not None


def test_strided_rows_are_used_in_place(device):
    x = np.arange(60, dtype="f4").reshape(6, 10)
    part = x[1::2, 2:7]
    a = ls.asarray(part, device)
    assert a.strides == (20, 1)
    assert address(a.numpy()) == address(part)
    np.testing.assert_array_equal(a.numpy(), part)


def test_what_kernels_cannot_use_is_refused_with_the_reason(device):
    x = np.zeros((4, 6), "f4")
    for bad, reason in ((x[::-1], "negative"), (x[:, ::2], "last axis"), (x.T, "last axis"), (x.astype(">f4"), "byte order"),
                        (x.astype("c8"), "element type"), (np.zeros((1,) * 5, "f4"), "axes")):
        with pytest.raises(ls.InputError, match=reason):
            ls.asarray(bad, device)
    np.testing.assert_array_equal(ls.asarray(x.T, device, copy=True).numpy(), x.T)
    with pytest.raises(ValueError, match="object"):
        ls.asarray(object(), device)
    with pytest.raises(ls.InputError, match="masked elements"):
        ls.asarray(np.ma.array(x, mask=x == 0), device, copy=True)
    assert ls.asarray(np.ma.array(x), device).shape == x.shape
    with pytest.raises(ls.InputError, match="beyond the range of f32"):
        ls.asarray([1.0, -1e39, np.inf], device)
    np.testing.assert_array_equal(ls.asarray([1.0, np.inf], device).numpy(), [1, np.inf])
    with pytest.raises(ls.InputError, match="Device|device"):
        ls.Device("no-such-device")


def test_copies_are_explicit(device):
    x = np.arange(5, dtype="f4")
    copied = ls.asarray(x, device, copy=True)
    assert address(copied.numpy()) != address(x)
    np.testing.assert_array_equal(copied.numpy(), x)
    assert ls.asarray(copied) is copied
    other = ls.Device("interp" if device.kind == "cpu" else "cpu")
    with pytest.raises(ls.InputError, match="copy=True"):
        ls.asarray(copied, other)
    np.testing.assert_array_equal(copied.to(other).numpy(), x)


def test_empty_arrays_and_scalars(device):
    assert ls.asarray(np.zeros((0, 3), "f4"), device).numpy().shape == (0, 3)
    assert ls.asarray([1.0, 2.0], device).dtype == ls.f32
    assert ls.zeros((2, 2), ls.f64, device).numpy().sum() == 0
    assert ls.empty(3, "i32", device).shape == (3,)


def test_memory_lives_as_long_as_anybody_looks(device):
    x = np.arange(1000, dtype="f4")
    gone = weakref.ref(x)
    a = ls.asarray(x, device)
    del x
    gc.collect()
    assert gone() is not None
    view = a.numpy()
    del a
    gc.collect()
    assert view[999] == 999 and gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_engine_memory_outlives_its_array(device):
    a = ls.zeros((64, 64), ls.f32, device)
    view, other = a.numpy(), np.from_dlpack(a)
    del a
    gc.collect()
    view[3, 3] = 5
    assert other[3, 3] == 5


def test_ten_thousand_arrays_leave_nothing(device):
    x = np.zeros(64, "f4")
    before, kept = device.counters["allocated_bytes"], __import__("sys").getrefcount(x)
    for _ in range(10000):
        ls.asarray(x, device).numpy()
        np.from_dlpack(ls.asarray(x, device))
    for _ in range(100):
        ls.zeros((16,), ls.f32, device)
    gc.collect()
    assert device.counters["allocated_bytes"] == before
    assert __import__("sys").getrefcount(x) == kept


def test_readonly_memory_is_read_but_not_written(device):
    x = np.arange(8, dtype="f4")
    x.flags.writeable = False
    out = np.zeros(8, "f4")

    @ls.kernel
    def copy(at, a: ls.Grid[ls.f32, 1], b: ls.Out[ls.f32, 1]):
        b[at] = a[at]

    copy[device, 8](x, out)
    np.testing.assert_array_equal(out, x)
    with pytest.raises(ls.InputError, match="argument b.*\\n?.*written|read-only"):
        copy[device, 8](out, x)


def test_bf16_is_a_type_of_its_own(device):
    a = ls.zeros((4,), ls.bf16, device)

    @ls.kernel
    def fill(at, b: ls.Out[ls.bf16, 1]):
        b[at] = ls.cast(ls.f32, at.x) + 0.5

    fill[device, 4](a)
    np.testing.assert_array_equal(a.numpy().astype("f4"), [0.5, 1.5, 2.5, 3.5])


def test_threads_work_side_by_side():
    device = ls.Device("cpu")

    @ls.kernel
    def scale(at, x: ls.InOut[ls.f32, 1], a: ls.f32):
        x[at] = x[at] * a

    results = [np.ones(4096, "f4") for _ in range(8)]

    def work(k):
        for _ in range(20):
            scale[device, 4096](results[k], 1.0 + k / 16)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, x in enumerate(results):
        expected = np.float32(1)
        for _ in range(20):
            expected *= np.float32(1.0 + k / 16)
        assert (x == expected).all()


def test_devices_tell_what_they_are():
    kinds = {d["kind"] for d in ls.devices()}
    assert kinds == {"cpu", "cuda", "webgpu", "interp"}
    cpu = ls.Device("cpu")
    assert cpu is ls.Device("cpu") and cpu.info["limits"]["f64"]
    with ls.Device("interp") as inner:
        assert ls.default_device() is inner
    assert isinstance(ls.fallbacks(), dict)


def layouts():
    """Arrays of every kind that NumPy makes: sizes, steps, turned and read-only ones."""
    st = pytest.importorskip("hypothesis.strategies", reason="hypothesis is not installed")

    def make(sizes, steps, turned, dtype, readonly):
        whole = np.arange(np.prod([2 * n for n in sizes], dtype=int)).astype(dtype).reshape([2 * n for n in sizes])
        x = whole[tuple(slice(None, None, step) for step in steps[:len(sizes)])]
        x = x[tuple(slice(0, n) for n in sizes)]
        x = x.T if turned else x
        if readonly:
            x = x.view()
            x.flags.writeable = False
        return x

    return st.builds(make, st.lists(st.integers(0, 3), min_size=1, max_size=5),
                     st.lists(st.sampled_from([1, 1, 2, -1]), min_size=5, max_size=5), st.booleans(),
                     st.sampled_from(["f4", "f8", "i4", "u1", "f2", "i8", "c8", ">f4", "i2"]), st.booleans())


def test_any_layout_is_shared_copied_or_refused_by_name():
    hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")

    @hypothesis.settings(deadline=None, max_examples=150, derandomize=True)
    @hypothesis.given(layouts())
    def check(x):
        try:
            shared = ls.asarray(x, HOST, name="argument weight")
        except ls.InputError as error:
            assert "argument weight" in error.where and error.expected
        else:
            assert (shared.numpy() == x).all() and shared.readonly == (not x.flags.writeable)
            assert x.size == 0 or np.shares_memory(shared.numpy(), x)
        if x.ndim <= 4 and x.dtype.kind != "c" and x.dtype.isnative and x.dtype != np.int16:
            copied = ls.asarray(x, HOST, copy=True)
            assert (copied.numpy() == x).all() and not np.shares_memory(copied.numpy(), x)

    check()


def test_memory_dropped_in_any_order_by_several_threads():
    seed = np.random.default_rng(5)
    wrong, done = [], []

    def work(order):
        kept = []
        for k in order:
            x = np.full(64, float(k), "f4")
            kept.append((ls.asarray(x, HOST), k))
            del x
        for position in np.argsort(order):
            array, k = kept[position]
            kept[position] = None
            if not (array.numpy() == k).all():
                wrong.append(k)
        done.append(order)

    threads = [threading.Thread(target=work, args=(seed.permutation(50),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(done) == 4


def test_arrays_and_devices_are_pickled_and_copied():
    device = ls.Device("cpu", threads=2)
    assert pickle.loads(pickle.dumps(device)) is device and copy.deepcopy(device) is device
    for values in (np.arange(6, dtype=np.float64).reshape(2, 3), np.array([2**40 + 5]), np.zeros((0, 3), np.uint8)):
        array = ls.asarray(values, device)
        for again in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array), copy.copy(array)):
            assert again.device is device and again.dtype == array.dtype and again.shape == array.shape
            np.testing.assert_array_equal(again.numpy(), values)
            assert not again.readonly and not np.shares_memory(again.numpy(), array.numpy())
    half = ls.zeros((3,), ls.bf16)
    assert pickle.loads(pickle.dumps(half)).dtype == ls.bf16
    strided = ls.asarray(np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2])
    np.testing.assert_array_equal(copy.deepcopy(strided).numpy(), [[0, 1], [4, 5], [8, 9]])
