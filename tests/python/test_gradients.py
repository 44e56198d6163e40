"""Gradients of kernels: `grad`, and torch.autograd through differentiable kernels."""
import importlib.util
import pathlib
import threading

import numpy as np
import pytest

import lockstep as ls


@ls.kernel(differentiable=True)
def heat(at, t: ls.Grid[ls.f64, 1], out: ls.Out[ls.f64, 1], a: ls.f64):
    out[at] = t[at] + a * (t[at.x(+1)] + t[at.x(-1)] - 2 * t[at])


@ls.kernel(differentiable=True)
def newton(at, x: ls.InOut[ls.f64, 1], n: ls.Grid[ls.i32, 1], c: ls.Grid[ls.f64, 1]):
    v = ls.var(x[at])
    for _ in ls.for_(n[at]):
        v.set(0.5 * (v + c[at] / v))
    x[at] = +v


def test_gradients_by_name():
    t, seed = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    found = ls.grad(heat, inputs=("t", "a"))["cpu", 4](t=t, a=0.25, out_cotangent=seed)
    assert sorted(found) == ["a", "t"]
    # The transpose of the clamped stencil, and the sum of seed times the second difference.
    np.testing.assert_array_equal(found["t"].numpy(), [0.75 * 1 + 0.25 * 10, 0.25 * 1 + 5 + 25, 2.5 + 50 + 250, 25 + 750])
    assert found["a"].numpy()[0] == 1 * 1 + 10 * 1 + 100 * 2 + 1000 * -4


def test_results_may_go_to_memory_of_others():
    t, into = np.ones(4), np.empty(4)
    ls.grad(heat, inputs=("t",))["cpu", 4](t=t, a=0.25, out_cotangent=np.ones(4), t_gradient=into)
    np.testing.assert_array_equal(into, np.ones(4))


def test_errors_name_the_argument():
    gradient = ls.grad(heat, inputs=("t",))
    with pytest.raises(ls.InputError, match="out_cotangent"):
        gradient["cpu", 4](t=np.ones(4), a=0.25)
    with pytest.raises(ls.InputError, match="no argument t"):
        gradient["cpu", 4](a=0.25, out_cotangent=np.ones(4))
    with pytest.raises(ls.InputError, match="argument q"):
        gradient["cpu", 4](q=1)
    with pytest.raises(ls.InputError, match="input q"):
        ls.grad(heat, inputs=("q",))


def test_stop_gradient():
    @ls.kernel
    def square(at, x: ls.Grid[ls.f32, 1], y: ls.Out[ls.f32, 1]):
        y[at] = x[at] * ls.stop_gradient(x[at])

    found = ls.grad(square)["cpu", 2](x=np.float32([3, 5]), y_cotangent=np.float32([1, 1]))
    np.testing.assert_array_equal(found["x"].numpy(), [3, 5])


def test_derivatives_that_the_author_gives():
    @ls.kernel
    def rounded_square(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
        y[at] = ls.with_derivative(ls.floor(x[at] * x[at]), (x[at], 2 * x[at]))

    x, y = np.array([1.5, -2.5, 0.3]), np.empty(3)
    rounded_square["cpu", 3](x, y)
    np.testing.assert_array_equal(y, [2, 6, 0])
    np.testing.assert_array_equal(ls.grad(rounded_square)["cpu", 3](x=x, y_cotangent=np.ones(3))["x"].numpy(), [3, -5, 0.6])


def example_of(name):
    file = pathlib.Path(__file__).parents[2] / "examples" / "python" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.mark.parametrize("name, bound", [("orbits", 1e-9), ("cloth", 1e-2), ("shape", 1e-3), ("particle_mesh", 1e-5)])
def test_the_examples_find_the_truth(name, bound):
    slope_error, worst = example_of(name).main([])
    assert slope_error < 1e-6
    assert worst < bound


def test_the_example_finds_the_conductivity():
    example = example_of("conductivity")
    rng = np.random.default_rng(5)
    start, q = ls.asarray(rng.random((6, 5))), rng.normal(size=(6, 5)) * 0.1
    seen = [rng.random((6, 5)) for _ in range(3)]
    device = ls.Device("cpu")
    _, slope = example.loss_of(device, start, ls.asarray(q), seen)
    for at in ((0, 0), (5, 4), (2, 3)):
        near = []
        for step in (1e-5, -1e-5):
            moved = q.copy()
            moved[at] += step
            near.append(example.loss_of(device, start, ls.asarray(moved), seen)[0])
        assert slope[at] == pytest.approx((near[0] - near[1]) / 2e-5, rel=1e-6)


def loss_of(t, a, c, tape=None):
    """Weighted end of: two steps of heat, where the first array is used again, and a root of it in place."""
    number = tape.number(a) if tape else a
    mid, out = ls.zeros(4, ls.f64, "cpu"), ls.zeros(4, ls.f64, "cpu")
    heat[4](t, mid, number)
    heat[4](mid, out, number)
    heat[4](out, t, 0.5)
    heat[4](t, mid, number)
    newton[4](mid, ls.asarray(np.int32([3, 1, 0, 2])), c)
    return mid, number


def test_a_tape_keeps_what_later_launches_overwrite(rng):
    start, a, c, weights = 1 + rng.random(4), 0.2, 1 + rng.random(4), rng.standard_normal(4)

    def value(start, a, c):
        return float(weights @ loss_of(ls.asarray(start.copy()), a, ls.asarray(c))[0].numpy())

    t, of_c = ls.asarray(start.copy()), ls.asarray(c)
    with ls.Tape() as tape:
        end, number = loss_of(t, a, of_c, tape)
    by_t, by_c, by_a = tape.gradient({end: weights}, (t, of_c, number))
    for k in range(4):
        step = 1e-6 * np.eye(4)[k]
        assert by_t.numpy()[k] == pytest.approx((value(start + step, a, c) - value(start - step, a, c)) / 2e-6, rel=1e-7)
        assert by_c.numpy()[k] == pytest.approx((value(start, a, c + step) - value(start, a, c - step)) / 2e-6, rel=1e-7, abs=1e-9)
    assert by_a == pytest.approx((value(start, a + 1e-6, c) - value(start, a - 1e-6, c)) / 2e-6, rel=1e-7)
    # Again, and what nothing depends on.
    again = tape.gradient({end: weights}, (t, number, ls.zeros(4, ls.f64, "cpu")))
    np.testing.assert_array_equal(again[0].numpy(), by_t.numpy())
    assert again[1] == by_a and not again[2].numpy().any()


def test_a_tape_names_what_it_cannot_take():
    t = ls.zeros(8, ls.f64, "cpu")
    with ls.Tape() as tape:
        with pytest.raises(ls.InputError, match="argument t"):
            heat["cpu", 4](np.zeros(4), ls.zeros(4, ls.f64, "cpu"), 0.1)
        out = ls.zeros(8, ls.f64, "cpu")
        heat[8](t, out, 0.1)
        with pytest.raises(ls.InputError, match="do not overlap"):
            heat[4](ls.asarray(t.numpy()[2:6]), ls.zeros(4, ls.f64, "cpu"), 0.1)
    with pytest.raises(ls.InputError, match="a seed of f64 and shape"):
        tape.gradient({out: np.zeros(4)}, (t,))
    with pytest.raises(ls.InputError, match="in by"):
        tape.gradient({out: np.zeros(8)}, (0.1,))


def test_a_tape_refuses_a_number_that_no_launch_took():
    t, out = ls.asarray(np.arange(4.0)), ls.zeros(4, ls.f64, "cpu")
    with ls.Tape() as tape:
        a = tape.number(0.1)
        heat[4](t, out, 2 * a)  # a plain number: by a there would be 0
    with pytest.raises(ls.InputError, match="number 0.1, which no launch took"):
        tape.gradient({out: np.ones(4)}, (a,))


def test_tapes_within_each_other_and_in_threads():
    t, seed = ls.asarray(np.array([0.0, 1.0, 4.0, 9.0])), np.arange(4.0)
    mid, out, apart, elsewhere = *(ls.zeros(4, ls.f64, "cpu") for _ in range(3)), np.zeros(4)
    with ls.Tape() as outer:
        a = outer.number(0.1)
        with ls.Tape() as inner:
            heat[4](t, mid, a)
        other = threading.Thread(target=lambda: heat[4](np.ones(4), elsewhere, 0.3))  # not an Array: on no tape
        other.start()
        other.join()
        assert (elsewhere == 1).all()
        heat[4](mid, out, a)
    with ls.Tape() as plain:
        heat[4](t, mid, a)
        heat[4](mid, apart, a)
    expected = plain.gradient({apart: seed}, (t, a))
    assert len(outer._records) == 2 and len(inner._records) == 1
    for got, want in zip(outer.gradient({out: seed}, (t, a)), expected):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_torch_autograd_through_launches():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64, requires_grad=True)
    a = torch.tensor(0.25, dtype=torch.float64, requires_grad=True)

    def ours(t, a):
        mid, out = torch.empty_like(t), torch.empty_like(t)
        heat[4](t * t, mid, a)
        heat[4](mid, out, a)
        return (out.sin() * torch.arange(4.0, dtype=torch.float64)).sum()

    def theirs(t, a):
        step = lambda u: u + a * (torch.cat([u[1:], u[-1:]]) + torch.cat([u[:1], u[:-1]]) - 2 * u)
        return (step(step(t * t)).sin() * torch.arange(4.0, dtype=torch.float64)).sum()

    mine = torch.autograd.grad(ours(t, a), (t, a))
    for got, expected in zip(mine, torch.autograd.grad(theirs(t, a), (t, a))):
        torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-13)


def test_torch_autograd_through_updates_in_place():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    c = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    x = torch.ones(3, dtype=torch.float64)
    newton[3](x, torch.tensor([20, 20, 20], dtype=torch.int32), c)
    (by_c,) = torch.autograd.grad(x.sum(), c)
    torch.testing.assert_close(by_c, 0.5 / c.detach().sqrt(), rtol=1e-12, atol=0)


@ls.kernel(differentiable=True)
def coupled(at, t: ls.Grid[ls.f64, 1], a: ls.f64, out: ls.Out[ls.f64, 1], other: ls.Out[ls.f64, 1]):
    out[at] = ls.sin(a * t[at.x(+1)]) * t[at]
    other[at] = ls.exp(-t[at] * t[at.x(-1)])


def test_forward_mode_by_names():
    t, along = np.array([0.3, 0.7, -0.4]), np.array([1.0, -2.0, 0.5])
    out, other = np.empty(3), np.empty(3)
    found = ls.tangent(coupled)["cpu", 3](t=t, a=1.5, out=out, other=other, t_tangent=along, a_tangent=0.25)
    right, left, dright, dleft = t[[1, 2, 2]], t[[0, 0, 1]], along[[1, 2, 2]], along[[0, 0, 1]]
    np.testing.assert_allclose(out, np.sin(1.5 * right) * t, rtol=1e-15)
    np.testing.assert_allclose(found["out"].numpy(),
                               np.cos(1.5 * right) * (1.5 * dright + 0.25 * right) * t + np.sin(1.5 * right) * along, rtol=1e-14)
    np.testing.assert_allclose(found["other"].numpy(), -np.exp(-t * left) * (along * left + t * dleft), rtol=1e-14)
    # Without a direction of a number it stays.
    only = ls.tangent(coupled, inputs=("t", "a"), outputs=("out",))["cpu", 3](t=t, a=1.5, out=out, other=other, t_tangent=along)
    assert sorted(only) == ["out"]
    np.testing.assert_allclose(only["out"].numpy(), np.cos(1.5 * right) * 1.5 * dright * t + np.sin(1.5 * right) * along, rtol=1e-14)
    with pytest.raises(ls.InputError, match="tangent of kernel coupled"):
        ls.tangent(coupled)["cpu", 3](q_tangent=t)


def test_torch_second_derivatives():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.tensor([0.3, 0.7, -0.4, 1.1], dtype=torch.float64, requires_grad=True)
    a = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)

    def function(t, a):
        out, other = torch.empty_like(t), torch.empty_like(t)
        coupled[4](t, a, out, other)
        return out, other

    assert torch.autograd.gradcheck(function, (t, a))
    assert torch.autograd.gradgradcheck(function, (t, a))
    # A gradient penalty, as a loss of its own.
    (slope,) = torch.autograd.grad(function(t, a)[0].sum(), t, create_graph=True)
    assert slope.requires_grad
    (penalty,) = torch.autograd.grad((slope ** 2).sum(), t)
    right = lambda u: torch.cat([u[1:], u[-1:]])
    (theirs,) = torch.autograd.grad((torch.sin(a * right(t)) * t).sum(), t, create_graph=True)
    torch.testing.assert_close(penalty, torch.autograd.grad((theirs ** 2).sum(), t)[0], rtol=1e-12, atol=1e-13)


@ls.kernel(differentiable=True)
def positive_part(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
    with ls.if_(x[at] > 0):
        y[at] = x[at] * x[at]


@ls.kernel(differentiable=True)
def squares(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
    y[at] = x[at] * x[at]


@ls.kernel(differentiable=True)
def tenfold(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
    y[at] = 10 * x[at]


@ls.kernel(differentiable=True)
def tenfold_of_even(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
    with ls.if_(at.x % 2 == 0):
        y[at] = 10 * x[at]


@ls.kernel(differentiable=True)
def tenfold_scattered(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f64, 1]):
    y[n[at]] = 10 * x[at]


@ls.kernel(differentiable=True)
def constant_in_front(at, y: ls.Out[ls.f64, 1]):
    with ls.if_(at.x < 1):
        y[at] = 7.0


NUMBERS = np.array([1.0, 2.0, 3.0, 4.0])
PARTIAL = [(lambda x, y: tenfold[2](x, y), [10, 10, 6, 8]), (lambda x, y: tenfold[4](x, y), [10, 10, 10, 10]),
           (lambda x, y: tenfold_of_even[4](x, y), [10, 4, 10, 8]),
           (lambda x, y: tenfold_scattered[2](x, ls.asarray(np.array([2, 0], "i4")), y), [10, 14, 0, 8]),
           (lambda x, y: constant_in_front[4](y), [0, 4, 6, 8])]


@pytest.mark.parametrize("part, expected", PARTIAL)
def test_elements_that_a_launch_leaves_pass_their_derivatives_on(part, expected):
    x, y = ls.asarray(NUMBERS.copy()), ls.asarray(np.zeros(4))
    with ls.Tape() as tape:
        squares[4](x, y)
        part(x, y)
    np.testing.assert_array_equal(tape.gradient({y: np.ones(4)}, (x,))[0].numpy(), expected)
    (by_y,) = tape.gradient({y: np.ones(4)}, (y,))
    np.testing.assert_array_equal(by_y.numpy(), 0)  # its first contents are overwritten

    first = ls.asarray(NUMBERS.copy())
    with ls.Tape() as tape:
        part(x, first)
    kept = tape.gradient({first: np.full(4, 2.0)}, (first,))[0].numpy()
    left = ls.asarray(np.full(4, -1.0))
    part(x, left)
    np.testing.assert_array_equal(kept, np.where(left.numpy() == -1, 2, 0))


@pytest.mark.parametrize("part, expected", PARTIAL)
def test_torch_elements_that_a_launch_leaves_pass_their_derivatives_on(part, expected):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.tensor(NUMBERS, requires_grad=True)
    y = torch.zeros(4, dtype=torch.float64)
    squares[4](x, y)
    part(x, y)
    np.testing.assert_array_equal(torch.autograd.grad(y.sum(), x)[0], expected)


def test_torch_derivatives_of_elements_that_are_not_written_are_zero():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.where(torch.arange(500) % 2 == 1, 1.5, -1.5).double().requires_grad_()
    seed = torch.ones_like(x).requires_grad_()
    for k in range(3):
        torch.full((500,), 7.0 + k, dtype=torch.float64)
        y = torch.zeros_like(x)
        positive_part[500](x, y)
        (slope,) = torch.autograd.grad(y, x, seed, create_graph=True)
        torch.testing.assert_close(slope, (2 * x.clamp(min=0)).detach(), rtol=0, atol=0, check_stride=False)
        by_x, by_seed = torch.autograd.grad(slope.sum(), (x, seed))
        torch.testing.assert_close(by_x, 2 * (x > 0).double(), rtol=0, atol=0)
        torch.testing.assert_close(by_seed, (2 * x.clamp(min=0)).detach(), rtol=0, atol=0)


@ls.kernel(differentiable=True)
def power(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f64, 1]):
    v = ls.var(0 * x[at] + 1)
    for _ in ls.for_(n[at]):
        v.set(v * x[at])
    y[at] = +v


def test_torch_derivatives_of_any_order_are_those_of_powers():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.tensor([0.7, -1.3, 2.0, 0.5], dtype=torch.float64, requires_grad=True)
    counts = [5, 5, 3, 7]
    found = torch.empty(4, dtype=torch.float64)
    power[4](x, torch.tensor(counts, dtype=torch.int32), found)
    for order in range(1, 5):
        (found,) = torch.autograd.grad(found.sum(), x, create_graph=True)
        exact = [np.prod(range(n - order + 1, n + 1)) * v ** (n - order) if n >= order else 0
                 for n, v in zip(counts, x.tolist())]
        np.testing.assert_allclose(found.detach().numpy(), exact, rtol=1e-13, atol=1e-13)


def test_torch_third_derivatives_of_several_arguments():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    right = lambda u: torch.cat([u[1:], u[-1:]])
    left = lambda u: torch.cat([u[:1], u[:-1]])

    def ours(t, a):
        out, other = torch.empty_like(t), torch.empty_like(t)
        coupled[4](t, a, out, other)
        return out, other

    def theirs(t, a):
        return torch.sin(a * right(t)) * t, torch.exp(-t * left(t))

    results = []
    for function in (ours, theirs):
        t = torch.tensor([0.3, 0.7, -0.4, 1.1], dtype=torch.float64, requires_grad=True)
        a = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        value = sum((o * o).sum() for o in function(t, a))
        for _ in range(3):
            by_t, by_a = torch.autograd.grad(value, (t, a), create_graph=True)
            value = (by_t ** 2).sum() + by_a * by_t.sum()
        results.append((by_t.detach(), by_a.detach()))
    for got, expected in zip(*results):
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=0)


def test_torch_second_derivatives_of_updates_in_place():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    counts = torch.tensor([1, 2, 3], dtype=torch.int32)

    def root(x, c):
        own = x * 1
        newton[3](own, counts, c)
        return own

    x = torch.tensor([1.2, 0.9, 1.7], dtype=torch.float64, requires_grad=True)
    c = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(root, (x, c))
    assert torch.autograd.gradgradcheck(root, (x, c))


def test_tangents_of_tangents_by_names():
    x, n = np.array([0.7, -1.3]), np.array([5, 3], np.int32)
    twice = ls.tangent(ls.tangent(power, inputs=("x",)), inputs=("x",), outputs=("y_tangent",))
    given = dict(x=x, n=n, y=np.empty(2), x_tangent=np.ones(2))
    found = twice["cpu", 2](**given, x_tangent2=np.ones(2))
    assert sorted(found) == ["y_tangent"]
    np.testing.assert_allclose(found["y_tangent"].numpy(), [20 * 0.7 ** 3, 6 * -1.3], rtol=1e-14)
    slope = ls.grad(ls.tangent(power, inputs=("x",)), inputs=("x",), outputs=("y_tangent",))
    found = slope["cpu", 2](**given, y_tangent_cotangent=np.ones(2))["x"].numpy()
    np.testing.assert_allclose(found, [20 * 0.7 ** 3, 6 * -1.3], rtol=1e-14)
    with pytest.raises(ls.InputError, match="input y_tangent2"):
        ls.grad(ls.tangent(power), inputs=("y_tangent2",))


def test_additions_to_a_mesh_read_its_cotangent():
    @ls.kernel
    def deposit(at, cell: ls.Grid[ls.i32, 1], x: ls.Grid[ls.f64, 1], mesh: ls.InOut[ls.f64, 1]):
        mesh.unordered_atomic_add(cell[at], x[at] * x[at])

    cell, x, mesh = np.array([2, 0, 2, 2], np.int32), np.array([1.0, 2.0, 3.0, -1.0]), np.zeros(3)
    deposit["cpu", 4](cell, x, mesh)
    np.testing.assert_array_equal(mesh, [4, 0, 11])
    found = ls.grad(deposit)["cpu", 4](cell=cell, x=x, mesh=np.zeros(3), mesh_cotangent=np.array([1.0, 10, 100]))
    np.testing.assert_array_equal(found["x"].numpy(), [200, 4, 600, -200])
    np.testing.assert_array_equal(found["mesh"].numpy(), [1, 10, 100])
    with pytest.raises(ls.InputError, match="unordered_add on f32 or f64"):
        @ls.kernel
        def wrong(at, n: ls.InOut[ls.f64, 1]):
            n.atomic_add(0, 1.0)
        wrong.trace()


def test_index_arrays_may_change_between_launches():
    @ls.kernel(differentiable=True)
    def edges(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 2], y: ls.Out[ls.f64, 1]):
        y[at] = x[n[0, at.x]] * x[n[1, at.x]]

    gradient, rng = ls.grad(edges, inputs=("x",)), np.random.default_rng(3)
    x, n, seed = rng.random(50), np.empty((2, 300), np.int32), rng.random(300)
    for high in (50, 50, 1, 7):
        n[:] = rng.integers(0, high, n.shape)
        exact = np.bincount(n[0], seed * x[n[1]], 50) + np.bincount(n[1], seed * x[n[0]], 50)
        found = gradient["cpu", 300](x=x, n=n, y_cotangent=seed)["x"].numpy()
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(gradient["interp", 300](x=x, n=n, y_cotangent=seed)["x"].numpy(), found)


def test_a_tape_takes_back_several_index_arrays():
    @ls.kernel
    def spread(at, x: ls.Grid[ls.f64, 1], n: ls.Grid[ls.i32, 1], y: ls.Out[ls.f64, 1]):
        y[at] = x[at] + x[n[at]] * x[n[at]]

    rng = np.random.default_rng(5)
    indices = [rng.integers(0, 40, 40).astype(np.int32) for _ in range(3)]
    values = [ls.asarray(0.2 * rng.random(40), "cpu")] + [ls.empty(40, ls.f64, "cpu") for _ in indices]
    with ls.Tape() as tape:
        for k, n in enumerate(indices):
            spread["cpu", 40](values[k], ls.asarray(n, "cpu"), values[k + 1])
    found = tape.gradient({values[-1]: np.ones(40)}, [values[0]])[0].numpy()
    exact = np.ones(40)
    for x, n in reversed(list(zip(values, indices))):
        exact = exact + np.bincount(n, exact * 2 * x.numpy()[n], 40)
    np.testing.assert_allclose(found, exact, rtol=1e-13)


RATE = 1.0


@ls.kernel(differentiable=True)
def square_times_rate(at, x: ls.Grid[ls.f64, 1], y: ls.Out[ls.f64, 1]):
    y[at] = RATE * x[at] * x[at]


def test_gradients_of_launches_use_the_constants_of_those_launches(monkeypatch):
    x, rates = ls.asarray(np.array([1.0, 2.0, -3.0])), (2.0, 5.0, 0.5)
    ends = [ls.empty(3, ls.f64, "cpu") for _ in rates]
    with ls.Tape() as tape:
        for rate, end in zip(rates, ends):
            monkeypatch.setitem(globals(), "RATE", rate)
            square_times_rate[3](x, end)
    (by_x,) = tape.gradient({end: np.ones(3) for end in ends}, (x,))
    np.testing.assert_array_equal(by_x.numpy(), 2 * sum(rates) * x.numpy())


def test_torch_gradients_use_the_constants_of_their_launch(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True), torch.empty(3, dtype=torch.float64)
    monkeypatch.setitem(globals(), "RATE", 2.0)
    square_times_rate[3](x, y)
    monkeypatch.setitem(globals(), "RATE", 7.0)
    (by_x,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(by_x.detach(), 4 * x.detach(), rtol=0, atol=0)
    (again,) = torch.autograd.grad(by_x.sum(), x)
    torch.testing.assert_close(again, torch.full_like(x, 4.0), rtol=0, atol=0)
