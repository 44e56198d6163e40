"""Losses of PDE residuals from Python: the transport loss against NumPy, systems, frameworks."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import pde


def transport_reference(fields, h, dt):
    """The loss of docs/pde.md, periodic, order 2, by rolls."""
    s0, s1, s2, u0, u1, u2 = fields

    def d(f, axis):  # axis 0 = x, the last of the array
        return (np.roll(f, -1, -1 - axis) - np.roll(f, 1, -1 - axis)) / (2 * h[axis])

    rs = (s2 - s0) / (2 * dt) + sum(u1[a] * d(s1, a) + s1 * d(u1[a], a) for a in range(3))
    ru = [(u2[c] - u0[c]) / (2 * dt) + sum(u1[a] * d(u1[c], a) for a in range(3)) for c in range(3)]
    return (rs ** 2).mean() + sum((r ** 2).mean() for r in ru)


def make_fields(rng, shape, dtype):
    return [rng.standard_normal(shape).astype(dtype) for _ in range(3)] + \
           [rng.standard_normal((3, *shape)).astype(dtype) for _ in range(3)]


def test_transport_loss_and_gradients(device, rng):
    shape, h, dt = (4, 5, 6), (0.3, 0.4, 0.5), 0.1
    given = make_fields(rng, shape, "f8")
    loss = pde.Loss(pde.transport(3), pde.Mesh(shape[::-1], h, dt))
    fields = {"sigma": given[:3], "u": given[3:]}
    expected = transport_reference(given, h, dt)
    assert loss(fields, device=device) == pytest.approx(expected, rel=1e-12)
    value, gradients = loss.value_and_gradients(fields, device=device)
    assert value == pytest.approx(expected, rel=1e-12)
    # A directional derivative by central differences, along a random direction.
    flat = [g.numpy() for name in ("sigma", "u") for g in gradients[name]]
    direction = [rng.standard_normal(x.shape) for x in given]
    slope = sum((g.reshape(v.shape) * v).sum() for g, v in zip(flat, direction))
    e = 1e-5
    ends = [transport_reference([x + sign * e * v for x, v in zip(given, direction)], h, dt) for sign in (1, -1)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * e), rel=1e-7)


def test_a_system_of_ones_own(device, rng):
    n, h, dt, nu = 16, 0.1, 0.01, 0.05
    burgers = pde.System(1)
    u = burgers.field("u")
    viscosity = burgers.parameter("nu")
    burgers.residual("burgers", burgers.dt(u) + burgers.at(u) * burgers.dx(u) - viscosity * burgers.laplacian(u))
    loss = pde.Loss(burgers, pde.Mesh(n, h, dt))
    u0, u1, u2 = rng.standard_normal((3, n))
    r = (u2 - u0) / (2 * dt) + u1 * (np.roll(u1, -1) - np.roll(u1, 1)) / (2 * h) \
        - nu * (np.roll(u1, -1) - 2 * u1 + np.roll(u1, 1)) / h ** 2
    fields = {"u": (u0, u1, u2)}
    assert loss(fields, parameters={"nu": nu}, device=device) == pytest.approx((r ** 2).mean(), rel=1e-12)
    found = loss.residuals(fields, parameters={"nu": nu}, device=device).numpy().ravel()
    np.testing.assert_allclose(found, r, rtol=1e-9, atol=1e-9)
    bound = loss.bind(fields, parameters={"nu": nu}, device=device).run()
    assert bound.terms.keys() == {"burgers"} and bound.gradient("u", 0).shape == (1, 1, n)


def test_bad_fields_are_named(rng):
    loss = pde.Loss(pde.transport(3), pde.Mesh((4, 4, 4), 1.0, 0.1))
    given = make_fields(rng, (4, 4, 4), "f4")
    with pytest.raises(ls.InputError, match="field u, level \\+0"):
        loss({"sigma": given[:3], "u": (given[3], given[0], given[5])})
    with pytest.raises(ls.InputError):
        loss({"sigma": given[:3]})
    with pytest.raises(ls.InputError, match="boundary|nowhere"):
        pde.Loss(pde.transport(3), pde.Mesh((4, 4, 4), boundary="nowhere"))


def test_torch_gradcheck_and_memory(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import lockstep.torch as hooks
    shape = (3, 4, 4)
    given = [torch.tensor(x, requires_grad=True) for x in make_fields(rng, shape, "f8")]
    mask = torch.tensor(rng.random(shape))
    evaluate = hooks.transport_loss(spacing=(0.5, 0.6, 0.7), dt=0.2, boundary="x=clamp", weights=(1.0, 2.0), mask=mask)
    assert torch.autograd.gradcheck(evaluate, given, eps=1e-6, atol=1e-6)
    value = evaluate(*given)
    value.backward()
    assert value.dtype == torch.float64 and all(x.grad.shape == x.shape for x in given)
    with torch.no_grad():
        assert evaluate(*given).item() == pytest.approx(value.item())
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert ls.asarray(x).numpy().__array_interface__["data"][0] == x.data_ptr()
    assert hooks.from_lockstep(ls.asarray(x)).data_ptr() == x.data_ptr()
    with pytest.raises(ls.InputError, match="requires grad"):
        ls.asarray(given[0])
    with pytest.raises(ls.InputError, match="one element type"):
        evaluate(given[0].float(), *given[1:])
    with pytest.raises(RuntimeError):
        first, = torch.autograd.grad(evaluate(*given), given[1], create_graph=True)
        first.sum().backward()


def test_jax_under_jit_and_grad(rng):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    import lockstep.jax as hooks
    shape, h, dt = (3, 4, 4), (0.5, 0.6, 0.7), 0.2
    loss = pde.Loss(pde.transport(3), pde.Mesh(shape[::-1], h, dt))
    given = make_fields(rng, shape, "f4")
    function = jax.jit(lambda *a: hooks.pde_loss(loss, *a, device=HOST))
    assert float(function(*given)) == pytest.approx(transport_reference([x.astype("f8") for x in given], h, dt), rel=1e-5)
    gradients = jax.grad(lambda *a: 2 * hooks.pde_loss(loss, *a, device=HOST), argnums=tuple(range(6)))(*given)
    _, expected = loss.value_and_gradients({"sigma": given[:3], "u": given[3:]}, device=HOST)
    for found, wanted in zip(gradients, expected["sigma"] + expected["u"]):
        np.testing.assert_allclose(found, 2 * wanted.numpy().reshape(found.shape), rtol=1e-6)


def test_a_neural_field_trains_alike():
    pytest.importorskip("torch", reason="torch is not installed")
    import importlib.util
    import pathlib
    file = pathlib.Path(__file__).parents[2] / "examples" / "python" / "burgers.py"
    spec = importlib.util.spec_from_file_location("burgers", file)
    burgers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(burgers)
    ours, theirs = burgers.main(["--steps", "40", "--cells", "64"])
    np.testing.assert_allclose(ours, theirs, rtol=2e-2)
    assert ours[-1] < 0.8 * ours[0]


def test_torch_compile_keeps_the_loss_whole(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not hasattr(torch.library, "custom_op"):
        pytest.skip("a torch with custom_op is not installed")
    import lockstep.torch as hooks
    given = [torch.tensor(x, requires_grad=True) for x in make_fields(rng, (3, 4, 4), "f4")]
    loss = pde.Loss(pde.transport(3), pde.Mesh((4, 4, 3), 1.0, 0.1))
    eager = hooks.pde_loss(loss, *given)
    expected = torch.autograd.grad(eager, given)
    compiled = torch.compile(lambda *a: 2 * hooks.pde_loss(loss, *[x * 1.0 for x in a]), backend="aot_eager", fullgraph=True)
    value = compiled(*given)
    assert value.item() == pytest.approx(2 * eager.item(), rel=1e-6)
    for found, wanted in zip(torch.autograd.grad(value, given), expected):
        torch.testing.assert_close(found, 2 * wanted)
