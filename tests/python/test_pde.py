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


def heat_with_sides():
    """Heat in a plate whose west side has a profile and whose east side a parameter."""
    heat = pde.System(2)
    t = heat.field("t")
    heat.profile("west")
    nu, _ = heat.parameter("nu"), heat.parameter("east")
    heat.residual("heat", heat.dt(t) - nu * heat.laplacian(t))
    mesh = pde.Mesh((8, 6), 0.1, 0.01, "x-=dirichlet_face:@west,x+=dirichlet_face:@east,y=clamp")
    return pde.Loss(heat, mesh)


def test_sides_by_parameters_and_profiles(device, rng):
    loss, fields = heat_with_sides(), {"t": rng.standard_normal((3, 6, 8))}
    fields["t"] = tuple(fields["t"])
    west, parameters = rng.standard_normal((1, 6)), {"nu": 0.1, "east": 2.0}

    def value(east=2.0, west=west):
        return loss(fields, parameters={"nu": 0.1, "east": east}, profiles={"west": west}, device=device)

    ghosted = np.concatenate([2 * west.reshape(6, 1) - fields["t"][1][:, :1], fields["t"][1],
                              4.0 - fields["t"][1][:, -1:]], 1)
    ghosted = np.concatenate([ghosted[:1], ghosted, ghosted[-1:]])
    inner = ghosted[1:-1, 1:-1]
    laplacian = (ghosted[1:-1, 2:] + ghosted[1:-1, :-2] + ghosted[2:, 1:-1] + ghosted[:-2, 1:-1] - 4 * inner) / 0.01
    residual = (fields["t"][2] - fields["t"][0]) / 0.02 - 0.1 * laplacian
    assert value() == pytest.approx((residual ** 2).mean(), rel=1e-12)
    rows = loss.boundary_gradients(fields, parameters=parameters, profiles={"west": west}, device=device)
    by_end = {(row["axis"], row["end"]): row for row in rows}
    e = 1e-5
    assert by_end[0, 1]["value"] == pytest.approx((value(2 + e) - value(2 - e)) / (2 * e), rel=1e-6)
    step = np.zeros((1, 6))
    step[0, 2] = e
    assert by_end[0, 0]["cells"][2] == pytest.approx((value(west=west + step) - value(west=west - step)) / (2 * e), rel=1e-6)
    with pytest.raises(ls.InputError, match="west"):
        loss(fields, parameters=parameters, device=device)


def test_trajectories_and_products(device, rng):
    loss = heat_with_sides()
    levels, options = list(rng.standard_normal((5, 6, 8))), dict(parameters={"nu": 0.1, "east": 2.0}, device=device,
                                                                profiles={"west": rng.standard_normal((1, 6))})
    total, gradients = loss.trajectory({"t": levels}, **options)
    windows = [loss.value_and_gradients({"t": levels[k:k + 3]}, **options) for k in range(3)]
    assert total == pytest.approx(sum(w[0] for w in windows), rel=1e-12)
    expected = sum(windows[k][1]["t"][2 - k].numpy() for k in range(3))
    np.testing.assert_allclose(gradients["t"][2].numpy(), expected, rtol=1e-10, atol=1e-10)
    same = {**options, "parameters": {"nu": 0.1}, "parameters_in_time": {"east": [2.0] * 5}}
    assert loss.trajectory({"t": levels}, gradients="none", **same)[0] == pytest.approx(total, rel=1e-12)
    fields, along = {"t": levels[:3]}, {"t": levels[2:]}
    seeds = rng.standard_normal((1, 1, 6, 8))
    forward = loss.jvp(fields, along, **options).numpy()
    back = loss.vjp(fields, seeds, **options)
    assert (forward * seeds).sum() == pytest.approx(sum((g.numpy() * v).sum() for g, v in zip(back["t"], along["t"])), rel=1e-12)


def test_products_with_parameters_and_profiles(device, rng):
    loss, fields = heat_with_sides(), {"t": tuple(rng.standard_normal((3, 6, 8)))}
    west = rng.standard_normal((1, 6))
    options = dict(parameters={"nu": 0.1, "east": 2.0}, profiles={"west": west}, device=device)
    parameters, profiles = loss.number_gradients(fields, **options)
    sides = {row["parameter"]: row for row in loss.boundary_gradients(fields, **options)}
    assert parameters["east"] == pytest.approx(sides["east"]["value"], rel=1e-13)
    np.testing.assert_allclose(profiles["west"], sides["west"]["cells"], rtol=1e-13)
    # The residual is linear in nu, so that its slope is a difference.
    ends = [loss.residuals(fields, **dict(options, parameters={"nu": nu, "east": 2.0})).numpy() for nu in (1.1, 0.1)]
    slope = loss.jvp(fields, {}, parameter_tangents={"nu": 1.0}, **options).numpy()
    np.testing.assert_allclose(slope, ends[0] - ends[1], rtol=1e-11, atol=1e-11)
    assert parameters["nu"] == pytest.approx(2 * (ends[1] * slope).mean(), rel=1e-12)
    seeds, along = rng.standard_normal((1, 1, 6, 8)), rng.standard_normal((1, 6))
    forward = loss.jvp(fields, {}, parameter_tangents={"nu": 0.5, "east": -1.5}, profile_tangents={"west": along}, **options)
    back, by_west = loss.number_gradients(fields, cotangents=seeds, **options)
    assert (forward.numpy() * seeds).sum() == pytest.approx(
        0.5 * back["nu"] - 1.5 * back["east"] + (by_west["west"] * along.ravel()).sum(), rel=1e-12)
    with pytest.raises(ls.InputError, match="parameter nu.*one number"):
        loss(fields, **dict(options, parameters={"nu": [0.1, 0.2], "east": 2.0}))


def test_products_with_the_hessian_of_a_quadratic_loss(device, rng):
    """Where the residual is linear, a step along v adds exactly H v to the gradient."""
    loss, fields, along = heat_with_sides(), list(rng.standard_normal((3, 6, 8))), list(rng.standard_normal((3, 6, 8)))
    west, by_west = rng.standard_normal((2, 1, 6))

    def at(step):
        options = dict(parameters={"nu": 0.1, "east": 2 + 0.5 * step}, profiles={"west": west + step * by_west}, device=device)
        moved = {"t": [x + step * v for x, v in zip(fields, along)]}
        slopes = loss.number_gradients(moved, **options)
        return ([g.numpy() for g in loss.value_and_gradients(moved, **options)[1]["t"]], slopes[0]["east"], slopes[1]["west"])

    found = loss.hessian_product({"t": fields}, {"t": along}, parameters={"nu": 0.1, "east": 2.0}, profiles={"west": west},
                                 parameter_tangents={"east": 0.5}, profile_tangents={"west": by_west}, device=device)
    (fields_after, east_after, west_after), (fields_before, east_before, west_before) = at(1), at(0)
    for g, after, before in zip(found[0]["t"], fields_after, fields_before):
        np.testing.assert_allclose(g.numpy(), after - before, rtol=1e-10, atol=1e-10)
    assert found[1]["east"] == pytest.approx(east_after - east_before, rel=1e-10)
    np.testing.assert_allclose(found[2]["west"], west_after - west_before, rtol=1e-10)


def test_check_finds_exact_derivatives_and_names_them(device, rng):
    loss, fields = heat_with_sides(), {"t": tuple(rng.standard_normal((3, 6, 8)))}
    options = dict(parameters={"nu": 0.1, "east": 2.0}, profiles={"west": rng.standard_normal((1, 6))}, device=device)
    found = pde.check(loss.system, loss.mesh, fields, seed=3, **options)
    assert found["passed"] and all(row["error"] <= row["bound"] < 1e-12 for row in found["checks"])
    assert {"residuals", "loss", "gradient by t at level +0", "gradient by parameter nu", "gradient by profile west"} \
        <= {row["what"] for row in found["checks"]}
    bad = fields["t"][1].copy()
    bad[2, 2] = np.nan
    assert not loss.check({"t": (fields["t"][0], bad, fields["t"][2])}, **options)["passed"]


def test_systems_and_losses_are_copied_and_pickled(device, rng):
    import copy
    import pickle
    flow = pde.System(2)
    u, p = flow.vector("u"), flow.field("p", 1, "x-=dirichlet_face:0.1,x+=clamp,y=reflect_even")
    two = flow.field("two", 2, ["x=clamp,y=clamp", "x=clamp,y=ghost:-3e-7"])
    nu = flow.parameter("nu")
    flow.profile("lid")
    flow.residual("m", flow.dt(u) + ls.sin(flow.at(two, 1)) * flow.dx(p) - nu ** 3 * flow.laplacian(u, 1), 0.7)
    flow.residual("n", ls.where(flow.div(u) > 0.1, flow.at(p), flow.d2(two, 1)))
    mesh = pde.Mesh((5, 6), 0.3, 0.1, "x=no_slip,y-=clamp,y+=dirichlet_face:@lid")
    fields = {"u": tuple(rng.standard_normal((3, 2, 6, 5))), "p": rng.standard_normal((6, 5)), "two": rng.standard_normal((2, 6, 5))}
    options = dict(parameters={"nu": 0.3}, profiles={"lid": rng.standard_normal(5)}, device=device)
    before, growing = (pickle.loads(pickle.dumps(flow)) for _ in range(2))  # while it may still grow
    loss = pde.Loss(flow, mesh)
    expected = loss.value_and_gradients(fields, **options)
    for other in (before, copy.deepcopy(flow), copy.copy(loss).system, pickle.loads(pickle.dumps(loss)).system):
        value, gradients = pde.Loss(other, mesh).value_and_gradients(fields, **options)
        assert value == expected[0] and other.fields == flow.fields
        for name in fields:
            for g, wanted in zip(gradients[name], expected[1][name]):
                assert (g is None) == (wanted is None)
                if g is not None:
                    np.testing.assert_array_equal(g.numpy(), wanted.numpy())
    growing.residual("more", growing.at(growing._fields["p"]))
    assert pde.Loss(growing, mesh)(fields, **options) > expected[0]
    with pytest.raises(ls.InputError, match="text of a system"):
        type(flow._core).of_text("{}")


def test_members_are_a_mean(device, rng):
    wave = pde.System(1)
    q = wave.field("q")
    wave.residual("r", wave.dt(q) + wave.dx(q))
    loss = pde.Loss(wave, pde.Mesh(8, 0.1, 0.01))
    given = list(rng.standard_normal((3, 2, 8)))
    bound = loss.bind({"q": given}, members=2, device=device).run()
    assert bound.loss == pytest.approx(np.mean([loss({"q": [level[k] for level in given]}, device=device) for k in range(2)]),
                                       rel=1e-12)
    with pytest.raises(ls.InputError, match="field q"):
        loss.bind({"q": given}, members=3, device=device)


def test_a_shipped_equation_is_solved(tmp_path):
    assert "heat" in pde.examples()
    found = pde.example("heat", out=tmp_path, cells=8, windows=1, device=HOST)
    assert found["fields"]["t"].shape[1:] == (8, 8) if "t" in found["fields"] else found["fields"]
    assert list(tmp_path.glob("*.png")) and found["windows"] == 1


def test_bad_fields_are_named(rng):
    loss = pde.Loss(pde.transport(3), pde.Mesh((4, 4, 4), 1.0, 0.1))
    given = make_fields(rng, (4, 4, 4), "f4")
    with pytest.raises(ls.InputError, match="field u, level \\+0"):
        loss({"sigma": given[:3], "u": (given[3], given[0], given[5])})
    with pytest.raises(ls.InputError):
        loss({"sigma": given[:3]})
    with pytest.raises(ls.InputError, match="boundary|nowhere"):
        pde.Loss(pde.transport(3), pde.Mesh((4, 4, 4), boundary="nowhere"))


def test_levels_and_cells_that_are_not_there():
    wave = pde.System(1)
    u = wave.field("u")
    wave.residual("wave", wave.dtt(u) - wave.laplacian(u))
    loss = pde.Loss(wave, pde.Mesh(np.int64(4), spacing=np.float32(0.5)))
    assert loss.mesh.cells == (4, 1, 1) and loss.mesh.spacing == (0.5, 0.5, 0.5)
    levels = [np.ones(4)] * 4
    assert loss({"u": levels[:3]}) == 0
    for count in (2, 4):  # a trajectory is another call
        with pytest.raises(ls.InputError, match=f"{count} levels.*field u"):
            loss({"u": levels[:count]})
    with pytest.raises(ls.InputError, match="cells 7.9"):
        pde.Mesh((7.9, 5))
    for cells, spacing in (((6, 4), (0.1,)), ((6, 4), (0.1, 0.1, 0.1)), (6, (0.1, 0.1)), ((4, 4, 4), [0.1, 0.2])):
        with pytest.raises(ls.InputError, match="numbers of spacing.*one for each axis of cells"):
            pde.Mesh(cells, spacing)
    assert pde.Mesh(6, (0.1,)).spacing[0] == 0.1 and pde.Mesh((6, 4), 0.1).spacing[1] == 0.1


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


def test_half_precision_under_a_loss_scale(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import lockstep.torch as hooks
    wave = pde.System(1)
    q = wave.field("q")
    wave.residual("r", wave.dt(q) + wave.dx(q), 1e-7)  # gradients near 1e-8, below f16's least
    loss = pde.Loss(wave, pde.Mesh(16, 1.0, 1.0))
    given = [torch.tensor(x, dtype=torch.float16) for x in rng.standard_normal((3, 16))]
    exact = [x.double().requires_grad_() for x in given]
    wanted = torch.autograd.grad(2.0 ** 20 * hooks.pde_loss(loss, *exact), exact)
    for scale, good in ((2.0 ** 20, True), (1.0, False)):
        tensors = [x.clone().requires_grad_() for x in given]
        value = hooks.pde_loss(loss, *tensors, gradient_scale=scale)
        found = torch.autograd.grad(2.0 ** 20 * value, tensors)
        assert value.dtype == torch.float32 and found[0].dtype == torch.float16
        near = all(torch.allclose(f.double(), w, rtol=2e-3, atol=1e-5) for f, w in zip(found, wanted))
        assert near == good


@pytest.mark.parametrize("equation,cells", [("burgers", 64), ("vorticity", 24)])
def test_a_neural_field_trains_alike(equation, cells):
    pytest.importorskip("torch", reason="torch is not installed")
    import importlib.util
    import pathlib
    file = pathlib.Path(__file__).parents[2] / "examples" / "python" / "neural_field.py"
    spec = importlib.util.spec_from_file_location("neural_field", file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    ours, theirs = example.main(["--equation", equation, "--steps", "40", "--cells", str(cells)])
    np.testing.assert_allclose(ours, theirs, rtol=1e-2)
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


def transport_in_torch(rng, shape=(3, 4, 4), dtype="f4"):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import lockstep.torch as hooks
    given = [torch.tensor(x, requires_grad=True) for x in make_fields(rng, shape, dtype)]
    return torch, hooks, pde.Loss(pde.transport(3), pde.Mesh(shape[::-1], 0.5, 0.1)), given


def test_a_prepared_call_serves_other_tensors(rng):
    """Calls of one layout share what was bound first; other layouts, masks and parts have calls of their own."""
    torch, hooks, loss, first = transport_in_torch(rng)
    mask = torch.tensor(rng.random((3, 4, 4)).astype("f4"))
    for k in range(3):
        given = [torch.tensor(x, requires_grad=True) for x in make_fields(rng, (3, 4, 4), "f4")]
        for options in ({}, {"mask": mask + k}):
            value, wanted = loss.value_and_gradients({"sigma": [t.detach() for t in given[:3]],
                                                      "u": [t.detach() for t in given[3:]]}, device=HOST, **options)
            found = hooks.pde_loss(loss, *given, **options)
            assert found.item() == np.float32(value)
            gradients = torch.autograd.grad(found, given)
            for g, exact in zip(gradients, wanted["sigma"] + wanted["u"]):
                np.testing.assert_array_equal(g.numpy().ravel(), exact.numpy().ravel())
    assert len(loss._torch_calls) == 2
    part = [t.detach().requires_grad_(k == 4) for k, t in enumerate(first)]
    found, = torch.autograd.grad(hooks.pde_loss(loss, *part), part[4])
    exact, = torch.autograd.grad(hooks.pde_loss(loss, *first), first[4])
    assert (found == exact).all()
    misplaced = [torch.zeros(2 * t.numel() + 1)[1:1 + t.numel()].reshape(t.shape).copy_(t.detach()) for t in first]
    assert hooks.pde_loss(loss, *misplaced).item() == hooks.pde_loss(loss, *first).item()
    with pytest.raises(ls.InputError, match=r"contiguous.*field sigma, level \+0"):
        hooks.pde_loss(loss, first[0], first[1].detach().transpose(1, 2), *first[2:])
    with pytest.raises(ls.InputError, match="mask"):
        hooks.pde_loss(loss, *first, mask=mask.double())


def test_gradients_of_a_kept_graph_are_those_of_the_first_pass(rng):
    torch, hooks, loss, given = transport_in_torch(rng)
    value = hooks.pde_loss(loss, *given)
    seeds = torch.tensor(3.0), torch.tensor(0.5), torch.tensor(1.0)
    found = [torch.autograd.grad(value, given, grad_outputs=s, retain_graph=k < 2) for k, s in enumerate(seeds)]
    for scaled, seed in zip(found[:2], seeds):
        for g, h in zip(scaled, found[2]):
            torch.testing.assert_close(g, h * seed, rtol=0, atol=0)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(value, given)
    for t in given:
        t.grad = None
    (2 * hooks.pde_loss(loss, *given)).backward()
    for t, h in zip(given, found[2]):
        torch.testing.assert_close(t.grad, 2 * h, rtol=0, atol=0)


def test_rules_of_axes_that_a_system_does_not_have():
    heat = pde.System(2)
    t = heat.field("t")
    heat.residual("heat", heat.dt(t) - heat.laplacian(t))
    with pytest.raises(ls.InputError, match="boundary z=clamp of 2 axes.*expected rules of x, y"):
        pde.Loss(heat, pde.Mesh((8, 8), boundary="x=clamp,z=clamp"))
    with pytest.raises(ls.InputError, match=r"boundary y-=clamp of 1 axes \[field u\]"):
        pde.System(1).field("u", boundary="y-=clamp,y+=clamp")
    assert pde.Loss(heat, pde.Mesh((8, 8), boundary="clamp")).mesh.boundary == "clamp"
