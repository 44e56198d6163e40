"""Losses under jit, grad and vmap, by the XLA FFI on the CPU and on CUDA."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import pde

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402
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


def inverse_problem(rng):
    """A heat equation whose conductivity and east side are unknown."""
    heat = pde.System(2)
    t = heat.field("t")
    nu, _ = heat.parameter("nu"), heat.parameter("east")
    heat.residual("heat", heat.dt(t) - nu * nu * heat.laplacian(t))
    loss = pde.Loss(heat, pde.Mesh((6, 5), 0.1, 0.01, "x-=clamp,x+=dirichlet_face:@east,y=clamp"))
    return loss, [rng.standard_normal((5, 6)).astype("f4") for _ in range(3)]


@pytest.mark.parametrize("device", [None, HOST])  # by the FFI, and through the host
def test_parameters_are_differentiable_inputs(rng, device):
    loss, given = inverse_problem(rng)
    traces = []

    @jax.jit
    def function(nu, east, t1):
        traces.append(1)
        return 2 * hooks.pde_loss(loss, given[0], t1, given[2], parameters={"nu": nu, "east": east}, device=device)

    for nu, east in ((0.3, 1.0), (0.5, -2.0)):
        value, slopes = jax.value_and_grad(function, argnums=(0, 1, 2))(nu, jnp.float32(east), given[1])
        parameters = {"nu": np.float32(nu), "east": east}
        exact, by_field = loss.value_and_gradients({"t": given}, parameters=parameters, device=HOST)
        assert np.float32(value) == 2 * np.float32(exact)
        np.testing.assert_array_equal(np.asarray(slopes[2]).ravel(), 2 * by_field["t"][1].numpy().ravel())
        wide = {"t": [x.astype("f8") for x in given]}
        for slope, name in zip(slopes, ("nu", "east")):  # the loss is a polynomial of fourth and second degree
            def at(step):
                return loss(wide, parameters={**parameters, name: parameters[name] + step}, device=HOST)
            h = 0.01
            numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
            assert float(slope) == pytest.approx(2 * numeric, rel=1e-4)
    assert len(traces) == 1  # one program for all values
    with pytest.raises(ls.InputError, match="parameter nu.*one number"):
        hooks.pde_loss(loss, *given, parameters={"nu": jnp.ones(2), "east": 1.0})


def test_parameters_under_vmap(rng):
    loss, given = inverse_problem(rng)
    nus = jnp.asarray([0.1, 0.2, 0.4])
    slopes = jax.vmap(jax.grad(lambda nu: hooks.pde_loss(loss, *given, parameters={"nu": nu, "east": 1.0})))(nus)
    for nu, slope in zip(nus, slopes):
        assert slope == jax.grad(lambda nu: hooks.pde_loss(loss, *given, parameters={"nu": nu, "east": 1.0}))(nu)


def test_second_derivatives_are_refused(rng, loss):
    given = make(rng)
    with pytest.raises(ls.UnsupportedError, match="second derivative"):
        jax.jvp(jax.grad(lambda b: hooks.pde_loss(loss, given[0], b, *given[2:])), (given[1],), (given[1],))


def test_arrays_of_jax_are_not_written(rng):
    @ls.kernel
    def double(at, x: ls.InOut[ls.f32, 1]):
        x[at] = 2.0 * x[at]
    x = jax.device_put(jnp.ones(8), jax.devices("cpu")[0])
    with pytest.raises(ls.InputError, match="read-only"):
        double[ls.Device(HOST), 8](x)
    assert (x == 1).all()


@ls.kernel
def coupled(at, t: ls.Grid[ls.f32, 1], n: ls.Grid[ls.i32, 1], a: ls.f32, out: ls.Out[ls.f32, 1], other: ls.Out[ls.f32, 1]):
    out[at] = ls.sin(a * t[at.x(+1)]) * t[at] * ls.cast(ls.f32, n[at])
    other[at] = ls.exp(-t[at] * t[at.x(-1)])


def theirs(t, n, a):
    right, left = jnp.concatenate([t[1:], t[-1:]]), jnp.concatenate([t[:1], t[:-1]])
    return jnp.sin(a * right) * t * n, jnp.exp(-t * left)


def test_launches_are_functions_that_jit_grad_and_vmap_take(rng):
    t, n, a = jnp.float32(rng.standard_normal(7)), jnp.int32(rng.integers(1, 4, 7)), jnp.float32(1.3)
    weights = jnp.float32(rng.standard_normal(7))

    def loss_of(function):
        def loss(t, a):
            out, other = function(t, n, a)
            return (weights * out).sum() + (other ** 2).sum()
        return loss

    ours = loss_of(lambda t, n, a: hooks.launch(coupled, 7, t=t, n=n, a=a))
    for got, expected in zip(jax.jit(jax.value_and_grad(ours, argnums=(0, 1)))(t, a)[1],
                             jax.grad(loss_of(theirs), argnums=(0, 1))(t, a)):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    many = jnp.float32(rng.standard_normal((3, 7)))
    np.testing.assert_allclose(jax.vmap(jax.grad(ours), (0, None))(many, a), jax.vmap(jax.grad(loss_of(theirs)), (0, None))(many, a),
                               rtol=2e-5, atol=2e-6)


def test_second_derivatives_of_launches(rng):
    t, n, a = jnp.float32(rng.standard_normal(5)), jnp.ones(5, jnp.int32), jnp.float32(0.7)

    def penalty(function):
        def of(t, a):
            slope = jax.grad(lambda u: sum((o ** 2).sum() for o in function(u, n, a)))(t)
            return (slope ** 2).sum()
        return of

    ours = penalty(lambda t, n, a: hooks.launch(coupled, 5, t=t, n=n, a=a))
    for got, expected in zip(jax.jit(jax.grad(ours, argnums=(0, 1)))(t, a), jax.grad(penalty(theirs), argnums=(0, 1))(t, a)):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_third_derivatives_of_launches(rng):
    t, n, a = jnp.float32(rng.standard_normal(4)), jnp.ones(4, jnp.int32), jnp.float32(0.7)

    def third(function):
        value = lambda t: sum((o ** 2).sum() for o in function(t, n, a))
        second = lambda t: (jax.grad(lambda u: jax.grad(value)(u).sum())(t) * jnp.arange(4.0)).sum()
        return jax.jit(jax.grad(second))(t)

    np.testing.assert_allclose(third(lambda t, n, a: hooks.launch(coupled, 4, t=t, n=n, a=a)), third(theirs), rtol=1e-3, atol=1e-4)


def test_third_derivatives_along_directions_that_depend_on_the_arguments(rng):
    t, n, a = jnp.float32(rng.standard_normal(4)), jnp.ones(4, jnp.int32), jnp.float32(0.7)

    def third(function):
        value = lambda t, a: sum((o ** 2).sum() for o in function(t, n, a))
        for _ in range(2):
            value = lambda t, a, of=value: sum((slope ** 2).sum() for slope in jax.grad(of, argnums=(0, 1))(t, a)) / 8
        return jax.grad(value, argnums=(0, 1))(t, a)

    for got, expected in zip(third(lambda t, n, a: hooks.launch(coupled, 4, t=t, n=n, a=a)), third(theirs)):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4 * float(abs(expected).max()))


def test_launches_update_in_place_and_name_what_is_wrong():
    @ls.kernel
    def double(at, x: ls.InOut[ls.f32, 1], k: ls.f32 = 2.0):
        x[at] = x[at] * k

    x = jnp.arange(4, dtype=jnp.float32)
    np.testing.assert_array_equal(hooks.launch(double, 4, x=x), 2 * np.arange(4))
    np.testing.assert_array_equal(x, np.arange(4))
    np.testing.assert_array_equal(jax.grad(lambda x: hooks.launch(double, 4, x=x, k=3.0).sum())(x), np.full(4, 3))
    # d/dx of the sum over (2 x)^2, three times.
    value = lambda x: (hooks.launch(double, 4, x=x) ** 2).sum()
    slope = lambda x: (jax.grad(value)(x) ** 2).sum()
    np.testing.assert_allclose(jax.grad(slope)(x), 128 * np.arange(4))
    np.testing.assert_allclose(jax.grad(lambda x: (jax.grad(slope)(x) ** 2).sum())(x), 2 * 128 ** 2 * np.arange(4))
    with pytest.raises(ls.InputError, match="argument y"):
        hooks.launch(double, 4, x=x, y=x)
    with pytest.raises(ls.InputError, match="no argument x"):
        hooks.launch(double, 4)


def test_launches_refuse_numbers_that_a_type_does_not_hold():
    @ls.kernel
    def scaled(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1], n: ls.i32, b: ls.u32):
        out[at] = x[at] * ls.cast(ls.f32, n) + ls.cast(ls.f32, b)

    x = jnp.ones(3, jnp.float32)
    np.testing.assert_array_equal(hooks.launch(scaled, (3,), x=x, n=-2.0, b=jnp.asarray(3)), [1, 1, 1])
    for wrong in (dict(n=2.7, b=1), dict(n=2**31, b=1), dict(n=1, b=-1), dict(n=1, b=np.float64(0.9)), dict(n=np.nan, b=1)):
        with pytest.raises(ls.InputError, match=r"argument [nb]\]: expected a value that u?int32 holds"):
            hooks.launch(scaled, (3,), x=x, **wrong)
    with pytest.raises(ls.InputError, match="a traced float32.*argument n.*astype"):
        jax.jit(lambda n: hooks.launch(scaled, (3,), x=x, n=n, b=1))(2.5)
    found = jax.jit(lambda n: hooks.launch(scaled, (3,), x=x, n=n, b=1))(jnp.int32(4))
    np.testing.assert_array_equal(found, [5, 5, 5])


def test_elements_that_a_kernel_does_not_write_are_zero():
    @ls.kernel
    def part(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
        with ls.if_(x[at] > 0):
            out[at] = x[at]

    x = np.where(np.arange(1000) % 2, 1, -1).astype("f4")
    for k in range(3):
        junk = np.full(1000, 7.0 + k, "f4")
        del junk
        np.testing.assert_array_equal(hooks.launch(part, x.shape, x=jnp.asarray(x)), np.maximum(x, 0))
    np.testing.assert_array_equal(hooks.launch(part, (3,), x=jnp.asarray(x[1:4]), shapes={"out": (8,)})[3:], 0)
