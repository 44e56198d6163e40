"""least_squares with SciPy's arguments, on the problems of its documentation."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import solve


def rosenbrock(x):
    return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def rosenbrock_jacobian(x):
    return np.array([[-20 * x[0], 10], [-1, 0]])


def tridiagonal(x):
    """Broyden's tridiagonal function."""
    f = (3 - x) * x + 1
    f[1:] -= x[:-1]
    f[:-1] -= 2 * x[1:]
    return f


def peer(*arguments, **named):
    optimize = pytest.importorskip("scipy.optimize")
    return optimize.least_squares(*arguments, **{"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, **named})


TIGHT = dict(ftol=1e-15, xtol=1e-15, gtol=1e-15, device=HOST)


@pytest.mark.parametrize("given", [dict(traced=False), dict(jac=rosenbrock_jacobian), dict()])
def test_rosenbrock_free_and_bounded(given):
    function = rosenbrock if given else lambda p: (10 * (p[1] - p[0] ** 2), 1 - p[0])
    found = solve.least_squares(function, [2, 2], **given, **TIGHT)
    np.testing.assert_allclose(found.x, [1, 1], rtol=1e-8)
    assert found.cost < 1e-18 and found.jac.shape == (2, 2)
    np.testing.assert_allclose(found.jac, rosenbrock_jacobian(found.x), atol=1e-6)
    bounded = solve.least_squares(function, [2, 2], bounds=([-np.inf, 1.5], np.inf), **given, **TIGHT)
    expected = peer(rosenbrock, [2, 2], rosenbrock_jacobian, bounds=([-np.inf, 1.5], np.inf))
    np.testing.assert_allclose(bounded.x, expected.x, rtol=1e-6)
    assert bounded.cost == pytest.approx(expected.cost, rel=1e-9)
    assert list(bounded.active_mask) == [0, -1]


def test_broydens_function_with_its_sparsity():
    n = 60
    pattern = np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
    for solver in (None, "exact"):
        found = solve.least_squares(tridiagonal, -np.ones(n), jac_sparsity=pattern, traced=False, tr_solver=solver, **TIGHT)
        assert found.cost < 1e-20
    np.testing.assert_allclose(found.x, peer(tridiagonal, -np.ones(n)).x, atol=1e-8)
    with pytest.raises(ls.InputError, match=r"jac_sparsity of shape \(3, 3\)"):
        solve.least_squares(tridiagonal, -np.ones(n), jac_sparsity=np.eye(3), traced=False, device=HOST)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "cauchy"])
@pytest.mark.parametrize("how", ["traced", "called", "with a Jacobian"])
def test_a_curve_with_outliers(rng, loss, how):
    t = np.linspace(0, 3, 15)
    y = 0.5 + 2 * np.exp(-t) + 0.05 * rng.standard_normal(15)
    y[[3, 9]] += 1.5

    def numbers(x, t, y):
        return x[0] + x[1] * np.exp(x[2] * t) - y

    def jacobian(x, t, y):
        return np.stack([np.ones_like(t), np.exp(x[2] * t), x[1] * t * np.exp(x[2] * t)], 1)

    start, more = [1.0, 1.0, 0.0], dict(loss=loss, f_scale=0.1, args=(t, y))
    if how == "traced":
        found = solve.least_squares(lambda x, t, y: x[0] + x[1] * ls.exp(x[2] * t) - y, start, **more, **TIGHT)
    else:
        found = solve.least_squares(numbers, start, **({"jac": jacobian} if how == "with a Jacobian" else {"traced": False}), **more, **TIGHT)
    expected = peer(numbers, start, **more)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-5)
    assert found.cost == pytest.approx(expected.cost, rel=1e-9)
    np.testing.assert_allclose(found.fun, expected.fun, atol=1e-5)
    np.testing.assert_allclose(found.grad, 0, atol=1e-6)


def test_the_examples_of_scipy_as_they_are_written():
    """Functions of NumPy are called as SciPy calls them; arguments have SciPy's order."""
    np.testing.assert_allclose(solve.least_squares(rosenbrock, np.array([2, 2])).x, [1, 1], rtol=1e-6)
    bounded = solve.least_squares(rosenbrock, [2, 2], rosenbrock_jacobian, ([-np.inf, 1.5], np.inf))
    np.testing.assert_allclose(bounded.x, [1.22437075, 1.5], rtol=1e-6)
    with pytest.warns(ls.FallbackWarning, match="fun cannot be traced .*item assignment.*traced=False"):
        assert solve.least_squares(tridiagonal, -np.ones(30), jac_sparsity=np.eye(30), device=HOST).cost < 1e-20
    t = np.linspace(0, 3, 15)
    y = 0.5 + 2 * np.exp(-t) + 0.05 * np.sin(40 * t)
    for function in (lambda x, t, y: x[0] + x[1] * np.exp(x[2] * t) - y, lambda x, t, y: np.cumsum(x[0] + x[1] * t - y),
                     lambda x, t, y: (x[0] * t + x[1] - y) / np.std(y), lambda x, t, y: x[0] * t + x[1] - np.mean(y) - np.median(t),
                     lambda x, t, y: (x[0] * t + x[1] - y) * np.size(y), lambda x, t, y: np.polyval(x, t) - y):
        with pytest.warns(ls.FallbackWarning, match="fun cannot be traced"):
            found = solve.least_squares(function, [1.0, 1.0, -0.5], args=(t, y), device=HOST)
        assert found.cost == pytest.approx(peer(function, [1.0, 1.0, -0.5], args=(t, y)).cost, rel=1e-7)
    np.testing.assert_allclose(solve.least_squares(lambda x, t, y, a: a * x[0] + x[1] * t - y, [1, 1], args=(t, y, 3.0)).x,
                               peer(lambda x: 3 * x[0] + x[1] * t - y, [1, 1]).x, rtol=1e-6)
    with pytest.raises(ls.InputError, match="Python condition.*traced=False"):
        solve.least_squares(lambda x: x[0] if x[0] > 0 else -x[0], [1.0])
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        solve.least_squares(lambda x, y: x[0] - y, [1.0])


def test_a_loss_of_ones_own():
    t = np.linspace(0, 3, 15)
    y = 0.5 + 2 * np.exp(-t)
    y[[3, 9]] += 1.5
    curve = lambda x, t, y: x[0] + x[1] * ls.exp(x[2] * t) - y  # noqa: E731
    named = solve.least_squares(curve, [1, 1, -0.5], args=(t, y), loss="soft_l1", f_scale=0.1, **TIGHT)
    for rho in (lambda z: 2 * (ls.sqrt(1 + z) - 1), lambda z: [2 * ((1 + z) ** 0.5 - 1), (1 + z) ** -0.5, -0.5 * (1 + z) ** -1.5]):
        found = solve.least_squares(curve, [1, 1, -0.5], args=(t, y), loss=rho, f_scale=0.1, **TIGHT)
        np.testing.assert_allclose(found.x, named.x, rtol=1e-6)
        assert found.cost == pytest.approx(named.cost, rel=1e-12)


SCIPY_RHO = lambda z: np.array([2 * ((1 + z) ** 0.5 - 1), (1 + z) ** -0.5, -0.5 * (1 + z) ** -1.5])  # noqa: E731


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("loss, theirs", [(name, name) for name in ("linear", "huber", "soft_l1", "cauchy", "arctan")]
                         + [(lambda z: 2 * (ls.sqrt(1 + z) - 1), SCIPY_RHO)])
def test_the_jacobian_under_a_loss_is_scipys(loss, theirs, traced):
    t = np.linspace(0, 3, 15)
    y = 0.5 + 2 * np.exp(-t) + 0.05 * np.cos(7 * t)
    y[[3, 9]] += 1.5
    more = dict(args=(t, y), f_scale=0.1)
    found = solve.least_squares((lambda x, t, y: x[0] + x[1] * ls.exp(-t) - y) if traced else lambda x, t, y: x[0] + x[1] * np.exp(-t) - y,
                                [1, 1], loss=loss, traced=traced, **more, **TIGHT)
    expected = peer(lambda x, t, y: x[0] + x[1] * np.exp(-t) - y, [1, 1], "3-point", loss=theirs, **more)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    np.testing.assert_allclose(found.jac, expected.jac, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found.grad, expected.grad, atol=1e-6)


@pytest.mark.parametrize("ends", [True, StopIteration])
def test_callbacks_as_scipys(ends):
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        if len(seen) == 3 and ends is StopIteration:
            raise StopIteration
        return len(seen) == 3

    found = solve.least_squares(lambda p: (10 * (p[1] - p[0] ** 2), 1 - p[0]), [2, 2], callback=callback, device=HOST)
    assert found.status == -2 and [r.nit for r in seen] == [1, 2, 3]
    np.testing.assert_array_equal(seen[-1].x, found.x)
    for at in seen:
        np.testing.assert_allclose(at.fun, rosenbrock(at.x), atol=1e-12)
        assert at.cost == pytest.approx(0.5 * at.fun @ at.fun)


@pytest.mark.parametrize("traced", [True, False])
def test_units_of_the_unknowns(traced):
    """x_scale changes the path, not the minimum, its Jacobian or its bounds."""
    function = (lambda p: (10 * (p[1] - p[0] ** 2), 1 - p[0])) if traced else rosenbrock
    for scale in ([1e-3, 1e3], 5.0):
        found = solve.least_squares(function, [2, 2], x_scale=scale, bounds=([-np.inf, 1.5], [3, np.inf]), traced=traced, **TIGHT)
        assert found.x[1] == 1.5 and list(found.active_mask) == [0, -1]
        assert found.x[0] == pytest.approx(1.2243690, rel=1e-5)
        np.testing.assert_allclose(found.jac, rosenbrock_jacobian(found.x), atol=1e-5)
        np.testing.assert_allclose(found.grad, rosenbrock_jacobian(found.x).T @ found.fun, atol=1e-5)


def test_pose_bounds_hold_for_angles_and_euclidean_parts():
    problem = solve.Problem()
    pose = problem.add_blocks("pose", [[0.0, 0.0, 0.0]], "se2")
    problem.add_factors("se2_pose_prior", (pose,), [[0]], [[2.0, -1.0, 1.5]], standard_deviations=[0.1, 0.1, 0.1])
    problem.bound(pose, 0, 0, -1, 1.25)
    problem.bound(pose, 0, 2, -0.5, 0.75)
    problem.minimize(device=HOST)
    np.testing.assert_allclose(problem.values(pose), [[1.25, -1, 0.75]], atol=1e-9)
    with pytest.raises(ls.InputError, match="two angles"):
        problem.bound(pose, 0, 2, 0, 4)
    turn = problem.add_blocks("turn", [[1.0, 0, 0, 0]], "so3")
    with pytest.raises(ls.InputError, match="a bound of number 1 of turn"):
        problem.bound(turn, 0, 1, 0, 1)


@pytest.mark.parametrize("x0, more, saying", [([1 + 1j], {}, "x0 of complex128"), ([1.0], {"max_nfev": 0}, "max_nfev 0")])
def test_what_scipy_refuses(x0, more, saying):
    with pytest.raises(ls.InputError, match=saying):
        solve.least_squares(lambda p: p[0] * p[0] - 2, x0, device=HOST, **more)


@pytest.mark.parametrize("data, saying", [(np.ma.array([1.0, 1, 100], mask=[0, 0, 1]), "masked elements"),
                                          (np.array([1.0, 1j, 1]), "complex numbers"),
                                          (np.arange("2026-01-01", "2026-01-04", dtype="M8[D]"), r"elements of datetime64\[D\]")])
def test_data_that_numpy_would_convert_are_refused(data, saying):
    with pytest.raises(ls.InputError, match=saying + r".*args\[1\]"):
        solve.least_squares(lambda p, t, y: p[0] * t - y, [1.0], args=(np.arange(3.0), data), device=HOST)
    with pytest.raises(ls.InputError, match=saying):
        solve.Problem().add_blocks("x", data[:, None])
    with pytest.raises(ls.InputError, match=saying + ".*column y"):
        solve.fit({"t": np.arange(3.0), "y": data}, model="a*t", y="y", device=HOST)


def test_dogbox_where_a_gradient_pulls_out_of_a_bound():
    t = np.arange(40) / 8
    y = 3 * np.exp(-1.3 * t) + 0.5
    y[[7, 20]] += 4, -3
    bounds = ([0, 0, 0], [2.5, 5, 1])
    found = solve.least_squares(lambda p, t, y: p[0] * ls.exp(-p[1] * t) + p[2] - y, [2, 1, 0.1], args=(t, y), bounds=bounds,
                                method="dogbox", device=HOST)
    expected = peer(lambda p: p[0] * np.exp(-p[1] * t) + p[2] - y, [2, 1, 0.1], bounds=bounds, method="dogbox")
    assert found.nfev < 60 and list(found.active_mask) == [1, 0, 0]
    np.testing.assert_allclose(found.x, expected.x, rtol=2e-4)


def test_masks_are_not_numbers_of_instances():
    problem = solve.Problem()
    x = problem.add_blocks("x", [[0.0]])
    terms = problem.add_terms("t", lambda x, d: x - d[0], [x], [[0]] * 3, data=[[1.0], [3.0], [20.0]])
    mask = np.array([False, False, True])
    with pytest.raises(ls.InputError, match="whole numbers"):
        problem.enable(terms, mask, False)
    problem.enable(terms, np.flatnonzero(mask), False)
    problem.minimize(device=HOST)
    assert problem.values(x)[0, 0] == pytest.approx(2)
    with pytest.raises(ls.InputError, match="whole numbers"):
        problem.add_terms("u", lambda x: x, [x], np.array([[False]]))
