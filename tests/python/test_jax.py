"""Losses under jit, grad and vmap, by the XLA FFI on the CPU and on CUDA."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import pde

jax = pytest.importorskip("jax", reason="jax is not installed")
import lockstep.jax as hooks  # noqa: E402

SHAPE, H, DT = (3, 4, 5), (0.5, 0.6, 0.7), 0.2


def make(rng, members=None):
    lead = () if members is None else (members,)
    return [rng.standard_normal((*lead, *SHAPE)).astype("f4") for _ in range(3)] + \
           [rng.standard_normal((*lead, 3, *SHAPE)).astype("f4") for _ in range(3)]


@pytest.fixture
def loss():
    return pde.Loss(pde.transport(3), pde.Mesh(SHAPE[::-1], H, DT))


def expected_of(loss, given, **options):
    value, gradients = loss.value_and_gradients({"sigma": given[:3], "u": given[3:]}, device=HOST, **options)
    return value, [g.numpy() for g in gradients["sigma"] + gradients["u"]]


def test_jit_and_grad_have_the_bits_of_the_engine(rng, loss):
    given = make(rng)
    value, gradients = expected_of(loss, given)
    function = jax.jit(lambda *a: hooks.pde_loss(loss, *a))
    assert np.float32(function(*given)) == np.float32(value)
    found = jax.jit(jax.grad(lambda *a: 2 * hooks.pde_loss(loss, *a), argnums=tuple(range(6))))(*given)
    for g, wanted in zip(found, gradients):
        np.testing.assert_array_equal(np.asarray(g), 2 * wanted.reshape(g.shape))


def test_vmap_goes_by_batches(rng, loss):
    given = make(rng, 4)
    function = jax.vmap(jax.value_and_grad(lambda *a: hooks.pde_loss(loss, *a), argnums=(1, 4)))
    values, gradients = jax.jit(function)(*given)
    for k in range(4):
        value, wanted = expected_of(loss, [a[k] for a in given])
        assert np.float32(values[k]) == np.float32(value)
        np.testing.assert_array_equal(np.asarray(gradients[0][k]), wanted[1])
        np.testing.assert_array_equal(np.asarray(gradients[1][k]), wanted[4])


def test_masks_parameters_and_missing_levels(rng):
    heat = pde.System(2)
    t, source = heat.field("t"), heat.field("source")
    nu = heat.parameter("nu")
    heat.residual("heat", heat.dt(t) - nu * heat.laplacian(t) - heat.at(source))
    loss = pde.Loss(heat, pde.Mesh((6, 5), 0.1, 0.01))
    t0, t1, t2, s = (rng.standard_normal((5, 6)).astype("f4") for _ in range(4))
    mask = rng.random((1, 5, 6)).astype("f4")
    options = dict(parameters={"nu": 0.3}, mask=mask)
    wanted = loss({"t": (t0, t1, t2), "source": (None, s, None)}, device=HOST, **options)
    for device in (None, HOST):  # by the FFI, and through the host
        assert np.float32(hooks.pde_loss(loss, t0, t1, t2, None, s, None, device=device, **options)) == np.float32(wanted)
        assert jax.grad(lambda s: hooks.pde_loss(loss, t0, t1, t2, None, s, None, device=device, **options))(s).shape == s.shape


def test_bad_arrays_are_named(rng, loss):
    given = make(rng)
    with pytest.raises(ls.InputError, match="6: levels"):
        hooks.pde_loss(loss, *given[:5])
    with pytest.raises(ls.InputError, match=r"field u, level \+0"):
        hooks.pde_loss(loss, *given[:4], given[0], given[5])
    with pytest.raises(ls.InputError, match="one type"):
        hooks.pde_loss(loss, given[0].astype("i4"), *given[1:])
    with pytest.raises(Exception, match="(?i)differentiat|jvp|ffi"):
        jax.grad(lambda a: jax.grad(lambda b: hooks.pde_loss(loss, given[0], b, *given[2:]))(a).sum())(given[1])
