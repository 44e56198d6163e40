"""Tensors on CUDA: in place, and in the order of torch's streams."""
import gc

import numpy as np
import pytest

import lockstep as ls
from conftest import CUDA, HOST

if not CUDA:
    pytest.skip("no CUDA device", allow_module_level=True)
torch = pytest.importorskip("torch", reason="torch is not installed")


@ls.kernel
def scale(at, x: ls.InOut[ls.f32, 1], a: ls.f32):
    x[at] = x[at] * a


def test_memory_is_shared_both_ways():
    x = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    a = ls.asarray(x)
    assert a.device.name == "cuda:0" and a.__cuda_array_interface__["data"][0] == x.data_ptr()
    assert torch.from_dlpack(a).data_ptr() == x.data_ptr()
    np.testing.assert_array_equal(a.numpy(), x.cpu().numpy())
    with pytest.raises(ls.InputError, match="does not reach"):
        ls.asarray(x, HOST)
    np.testing.assert_array_equal(ls.asarray(x, HOST, copy=True).numpy(), x.cpu().numpy())
    with pytest.raises(ls.InputError, match="does not reach"):
        ls.asarray(np.zeros(3, "f4"), "cuda:0")


def test_kernels_work_in_the_order_of_torchs_stream():
    """Fails where a launch does not wait for the stream before it, or the stream not for the launch."""
    n = 1 << 20
    scale[n](torch.ones(n, device="cuda"), 1.0)  # compiled before the race begins
    for _ in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.zeros(n, device="cuda")
            torch.cuda._sleep(100_000_000)
            x.fill_(3.0)
            scale[n](x, 2.0)
            y = x + 1
        stream.synchronize()
        assert (y == 7).all()


def test_memory_is_kept_until_the_work_is_done():
    n = 1 << 20
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for k in range(50):
            x = torch.full((n,), float(k), device="cuda")
            a = ls.asarray(x)
            scale[n](a, 1.0)
            del x, a
            gc.collect()
            z = torch.full((n,), -1.0, device="cuda")  # torch may give the same memory again
            assert (z == -1).all()


def test_the_loss_has_the_gradients_of_the_cpu():
    import lockstep.torch as hooks
    torch.manual_seed(2)
    shape = (8, 12, 16)
    given = [torch.randn(shape) for _ in range(3)] + [torch.randn(3, *shape) for _ in range(3)]
    from lockstep import pde
    loss = pde.Loss(pde.transport(3), pde.Mesh(shape[::-1], (0.1, 0.2, 0.3), 0.01))
    host = [t.numpy() for t in given]
    expected, wanted = loss.value_and_gradients({"sigma": host[:3], "u": host[3:]}, device=HOST)
    tensors = [t.cuda().requires_grad_() for t in given]
    value = hooks.transport_loss(spacing=(0.1, 0.2, 0.3), dt=0.01)(*tensors)
    gradients = torch.autograd.grad(value, tensors)
    assert value.is_cuda and all(g.device == t.device for g, t in zip(gradients, tensors))
    assert value.item() == np.float32(expected)
    for found, exact in zip(gradients, wanted["sigma"] + wanted["u"]):
        assert (found.cpu().numpy().ravel() == exact.numpy().ravel()).all()


def test_a_compiled_step_keeps_the_loss_whole():
    import lockstep.torch as hooks
    shape = (8, 12, 16)
    evaluate = hooks.transport_loss(spacing=(0.1, 0.2, 0.3), dt=0.01)
    given = [torch.randn(shape, device="cuda", requires_grad=True) for _ in range(3)] + \
            [torch.randn(3, *shape, device="cuda", requires_grad=True) for _ in range(3)]
    eager = evaluate(*given)
    expected = torch.autograd.grad(eager, given)
    compiled = torch.compile(lambda *a: 2 * evaluate(*[x * 1.0 for x in a]), fullgraph=True)
    value = compiled(*given)
    torch.testing.assert_close(value, 2 * eager)
    for found, wanted in zip(torch.autograd.grad(value, given), expected):
        torch.testing.assert_close(found, 2 * wanted)


def test_cupy_and_jax_share_memory():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    x = cupy.arange(6, dtype="f4")
    a = ls.asarray(x)
    assert a.__cuda_array_interface__["data"][0] == x.data.ptr
    scale[6](x, 2.0)
    cupy.testing.assert_array_equal(x, 2 * cupy.arange(6, dtype="f4"))
    assert cupy.asarray(ls.zeros((3,), ls.f32, "cuda:0")).shape == (3,)


def test_both_devices_have_the_same_bits():
    @ls.kernel
    def mixed(at, x: ls.Grid[ls.f32, 2], y: ls.Out[ls.f32, 2]):
        y[at] = ls.sin(x[at]) * ls.exp(x[at.x(+1)]) + ls.sqrt(ls.abs(x[at.y(-1)]))

    x = np.random.default_rng(3).standard_normal((65, 130)).astype("f4")
    assert ls.verify(mixed, (x, np.zeros_like(x)), against=HOST, device="cuda")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"])
def test_every_type_is_shared_and_copied(dtype):
    x = torch.arange(24, device="cuda").to(getattr(torch, dtype)).reshape(2, 3, 4)
    a = ls.asarray(x)
    assert a.dtype.itemsize == x.element_size() and torch.from_dlpack(a).data_ptr() == x.data_ptr()
    np.testing.assert_array_equal(a.numpy().astype("f4").ravel(), np.arange(24))
    np.testing.assert_array_equal(ls.asarray(x, HOST, copy=True).numpy().astype("f4").ravel(), np.arange(24))
    assert hasattr(a, "__cuda_array_interface__") == (dtype != "bfloat16")


class Foreign:
    """Memory that is described by the CUDA array interface alone."""

    def __init__(self, tensor, stream=None):
        self.tensor, self.__cuda_array_interface__ = tensor, dict(tensor.__cuda_array_interface__, stream=stream, version=3)


def test_the_cuda_array_interface_alone_serves():
    x = torch.arange(24, dtype=torch.float32, device="cuda").reshape(4, 6)
    part = x[1:3, 2:5]
    a = ls.asarray(Foreign(part))
    assert a.strides == (6, 1) and a.__cuda_array_interface__["data"][0] == part.data_ptr()
    np.testing.assert_array_equal(torch.as_tensor(a, device="cuda").cpu().numpy(), part.cpu().numpy())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = torch.zeros(1 << 20, device="cuda")
        torch.cuda._sleep(50_000_000)
        y.fill_(2.0)
        scale[1 << 20](Foreign(y, stream.cuda_stream), 3.0)
    stream.synchronize()
    torch.cuda.synchronize()
    assert (y == 6).all()


def test_what_cannot_be_used_is_refused_with_the_reason():
    x = torch.zeros(4, 6, device="cuda")
    with pytest.raises(ls.InputError, match="last axis"):
        ls.asarray(x.t())
    with pytest.raises(ls.InputError, match="requires grad"):
        ls.asarray(x.clone().requires_grad_())
    with pytest.raises(ls.InputError, match="argument x"):
        scale[24](np.zeros(24, "f8"), 2.0)
    with pytest.raises(ls.InputError, match="device|reach"):
        scale[ls.Device("cuda:0"), 24](np.zeros(24, "f4"), 2.0)
    with pytest.raises(ls.Error, match="cuda:99"):
        ls.Device("cuda:99")


def test_threads_with_streams_of_their_own():
    import threading
    wrong, n = [], 1 << 16

    def work(k):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(20):
                x = torch.full((n,), float(k), device="cuda")
                scale[n](x, 2.0)
                if not bool((x == 2 * k).all()):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arrays_dropped_in_any_order_while_the_stream_works():
    n, rng = 1 << 18, np.random.default_rng(4)
    before = ls.Device("cuda:0").counters["allocated_bytes"]
    for _ in range(10):
        x = [torch.full((n,), float(k), device="cuda") for k in range(8)]
        kept = [ls.asarray(t) for t in x]
        for k in rng.permutation(8):
            scale[n](kept[k], 2.0)
            kept[k] = None
        order = list(rng.permutation(8))
        back = [torch.from_dlpack(ls.asarray(x[k])) for k in order]
        del x
        assert all(bool((t == 2.0 * k).all()) for k, t in zip(order, back))
    gc.collect()
    assert ls.Device("cuda:0").counters["allocated_bytes"] == before


def test_half_precision_losses_with_a_scale():
    import lockstep.torch as hooks
    torch.manual_seed(4)
    shape = (8, 8, 8)
    given = [torch.randn(shape, device="cuda") for _ in range(3)] + [torch.randn(3, *shape, device="cuda") for _ in range(3)]
    from lockstep import pde
    loss = pde.Loss(pde.transport(3), pde.Mesh(shape, (0.5,) * 3, 0.2))
    exact = [t.clone().requires_grad_() for t in given]
    expected = torch.autograd.grad(hooks.pde_loss(loss, *exact), exact)
    for dtype, bound in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        tensors = [t.to(dtype).requires_grad_() for t in given]
        value = hooks.pde_loss(loss, *tensors, gradient_scale=2.0 ** 8)
        for found, wanted in zip(torch.autograd.grad(value, tensors), expected):
            assert found.dtype == dtype
            assert (found.float() - wanted).norm() <= 4 * bound * wanted.norm()


def test_recorded_launches_take_new_numbers():
    x = ls.asarray(np.ones(64, "f4"), "cuda:0", copy=True)
    graph = ls.Device("cuda:0").record(lambda: [scale[64](x, ls.per_replay("a", 2.0)) for _ in range(3)])
    assert (x.numpy() == 1).all()
    graph.replay()
    graph.replay(a=0.5)
    assert (x.numpy() == 1).all()
    graph.replay(a=3.0)
    assert (x.numpy() == 27).all()
