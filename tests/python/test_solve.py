"""Least squares with residuals traced from Python."""
import importlib.util

import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import solve


def test_least_squares_recovers_a_curve(rng):
    x = np.linspace(0, 3, 40)
    truth = np.array([2.5, 1.3, 0.5])
    y = truth[0] * np.exp(-truth[1] * x) + truth[2]
    found = solve.least_squares(lambda p, x, y: p[0] * ls.exp(-p[1] * x) + p[2] - y, [1.0, 1.0, 0.0], args=(x, y),
                                device="cpu")
    np.testing.assert_allclose(found.x, truth, rtol=1e-7)
    assert found.cost < 1e-16 and found.status > 0 and found.nfev > 1 and isinstance(found.message, str)
    noisy = y + 0.01 * rng.standard_normal(40)
    found = solve.least_squares(lambda p, x, y: p[0] * ls.exp(-p[1] * x) + p[2] - y, [1.0, 1.0, 0.0], args=(x, noisy),
                                device="cpu")
    r = found.x[0] * np.exp(-found.x[1] * x) + found.x[2] - noisy
    assert found.cost == pytest.approx(0.5 * (r ** 2).sum(), rel=1e-10)


def test_least_squares_without_data_and_with_bounds():
    rosenbrock = solve.least_squares(lambda p: (10 * (p[1] - p[0] ** 2), 1 - p[0]), [-1.2, 1.0], device="cpu")
    np.testing.assert_allclose(rosenbrock.x, [1, 1], rtol=1e-6)
    held = solve.least_squares(lambda p: p[0] - 5, [0.0], bounds=([-1], [2]), device="cpu")
    assert held.x[0] == pytest.approx(2)
    with pytest.raises(ls.InputError, match="args"):
        solve.least_squares(lambda p, a, b: p[0] - a - b, [0.0], args=([1.0, 2.0], [1.0]))
    with pytest.raises(ls.InputError, match="where"):
        solve.least_squares(lambda p: p[0] if p[0] > 0 else -p[0], [1.0], device="cpu")


# SciPy's rho of z, from its documentation.
SCIPY_RHO = {"linear": lambda z: z, "soft_l1": lambda z: 2 * ((1 + z) ** 0.5 - 1), "cauchy": np.log1p, "arctan": np.arctan,
             "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.maximum(z, 1)) - 1)}


def outlier_data(rng):
    t = np.linspace(0, 4, 40)
    y = 2.5 * np.exp(-0.8 * t) + 0.5 + 0.03 * rng.standard_normal(40)
    y[[5, 17, 30]] += (1.5, -1.0, 2.0)
    return t, y


@pytest.mark.parametrize("loss", SCIPY_RHO)
@pytest.mark.parametrize("f_scale", [0.1, 1.7])
def test_least_squares_has_scipys_losses(rng, loss, f_scale):
    t, y = outlier_data(rng)
    # Two residuals a row, one of them twice as large: a loss is of each by itself.
    found = solve.least_squares(lambda p, t, y: (p[0] * ls.exp(-p[1] * t) + p[2] - y, 2 * (p[0] * ls.exp(-p[1] * t) + p[2] - y)),
                                [2.0, 1.0, 0.3], args=(t, y), loss=loss, f_scale=f_scale, ftol=1e-15, device="cpu")

    def residuals(p):
        r = p[0] * np.exp(-p[1] * t) + p[2] - y
        return np.stack([r, 2 * r], 1).ravel()

    def cost(p):
        return 0.5 * f_scale ** 2 * SCIPY_RHO[loss]((residuals(p) / f_scale) ** 2).sum()

    assert found.success and found.cost == pytest.approx(cost(found.x), rel=1e-12)
    np.testing.assert_allclose(found.fun, residuals(found.x), rtol=1e-12, atol=1e-14)
    slopes = [(cost(found.x + h) - cost(found.x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(found.grad, slopes, atol=2e-6 * max(1, found.cost))
    assert found.optimality == np.abs(found.grad).max() and found.optimality < 1e-5
    assert found.jac.shape == (80, 3) and list(found.active_mask) == [0, 0, 0] and found.njev <= found.nfev
    if loss == "linear":
        numeric = np.stack([(residuals(found.x + h) - residuals(found.x - h)) / 2e-6 for h in 1e-6 * np.eye(3)], 1)
        np.testing.assert_allclose(found.jac, numeric, atol=1e-7)
        np.testing.assert_allclose(found.jac.T @ found.fun, found.grad, atol=1e-12)
    if importlib.util.find_spec("scipy") is None:  # the sums above are its definitions
        return
    from scipy import optimize
    expected = optimize.least_squares(residuals, [2.0, 1.0, 0.3], loss=loss, f_scale=f_scale, ftol=1e-14, xtol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    assert found.cost == pytest.approx(expected.cost, rel=1e-10)
    np.testing.assert_allclose(found.fun, expected.fun, atol=1e-6)


def test_least_squares_at_bounds_and_with_scipys_arguments(rng, capsys):
    t, y = outlier_data(rng)
    curve = lambda p, t, y, power=1: (p[0] * ls.exp(-p[1] * t) + p[2] - y) * power  # noqa: E731
    bounds = ([0, 0, 0.9], [1.5, np.inf, 2])
    found = solve.least_squares(curve, [1.0, 1.0, 1.0], args=(t, y), bounds=bounds, device="cpu", ftol=1e-15)
    assert list(found.active_mask) == [1, 0, -1]
    assert found.x[0] == 1.5 and found.x[2] == 0.9 and found.optimality < 1e-5 < np.abs(found.grad).max()
    twice = solve.least_squares(curve, [1.0, 1.0, 1.0], args=(t, y), kwargs={"power": 2}, bounds=bounds, device="cpu", ftol=1e-15)
    np.testing.assert_allclose(twice.x, found.x, rtol=1e-6)
    assert twice.cost == pytest.approx(4 * found.cost, rel=1e-9)
    few = solve.least_squares(curve, [1.0, 1.0, 1.0], args=(t, y), max_nfev=1, verbose=2, jac="3-point", x_scale=1.0, device="cpu")
    assert few.status == 0 and not few.success and few.nfev == 2 and few.message == "max iterations"
    assert capsys.readouterr().out.count("cost") == 2

    class Bounds:  # as scipy.optimize.Bounds
        lb, ub = -np.inf, 0.75

    assert solve.least_squares(lambda p: p[0] - 5, [0.0], bounds=Bounds(), device="cpu").x[0] == 0.75


@pytest.mark.parametrize("arguments, text", [
    ({"jac": lambda p: p}, r"jac of shape \(1, 2\)"), ({"jac": "4-point"}, "jac '4-point'"), ({"x_scale": [1.0, 2.0, 3.0]}, "x_scale"),
    ({"x_scale": "unit"}, "x_scale 'unit'"), ({"loss": "tukey"}, "loss 'tukey'"), ({"loss": lambda z: np.sqrt(z)}, "loss as a function that cannot be traced"), ({"jac": (1, 2)}, "jac .*args="),
    ({"f_scale": 0}, "f_scale 0"), ({"verbose": 3}, "verbose 3"), ({"tr_solver": "qr"}, "tr_solver 'qr'"), ({"workers": 2}, "argument workers"), ({"tr_options": {"a": 1}}, "argument tr_options"),
    ({"diff_step": 1e-3}, "argument diff_step"), ({"method": "newton"}, "method 'newton'"), ({"bounds": ([0, 0, 0], [1, 1, 1])}, "bounds"),
    ({"bounds": 3}, "bounds 3")])
def test_least_squares_refuses_by_name(arguments, text):
    with pytest.raises(ls.InputError, match=text.replace("[", "\\[")):
        solve.least_squares(lambda p: (p[0] - 1, p[1]), [0.5, 0.5], device="cpu", **arguments)


def test_values_end_with_their_trace():
    """They have a graph that is gone then: a use would read freed memory, or a node of another graph."""
    problem = solve.Problem()
    x = problem.add_blocks("x", [[1.0, 2.0]])
    left = []
    problem.add_terms("first", lambda a: left.append(3 * a[0]) or a[0] - 1, x, [0])
    problem.add_terms("second", lambda a: a[1], x, [0], loss=lambda s: left.append(2 * s) or s)
    for late in left:
        assert "traced before" in repr(late)
        for work in (lambda: late + 1, lambda: late ** 2, lambda: ls.sqrt(late), lambda: ls.where(late < 1, 1, 2)):
            with pytest.raises(ls.InputError, match="traced before"):
                work()
        for residual in (lambda a: late, lambda a: a[0] - late, lambda a: ls.where(a[0] < 1, late, 1)):
            with pytest.raises(ls.InputError, match="values of two functions"):
                problem.add_terms("third", residual, x, [0])
    assert problem.evaluate(device="cpu").residuals.size == 2


def test_numbers_that_are_not_whole_and_handles_that_are_none():
    problem = solve.Problem()
    x = problem.add_blocks("x", [[1.0, 2.0], [3.0, 4.0]])
    terms = problem.add_terms("t", lambda a: a[0], x, np.array([0.0, 1.0]))  # whole numbers, as floats
    add = lambda indices: problem.add_terms("t", lambda a: a[0], x, indices)  # noqa: E731
    for work, text in ((lambda: add([[0.5]]), "indices"), (lambda: add([[float("nan")]]), "indices"), (lambda: add([[2 ** 32]]), "indices"),
                       (lambda: add([["a"]]), "indices a"), (lambda: add([[-2 ** 63]]), "indices -9"), (lambda: problem.fix(x, 0.5), "block 0.5"), (lambda: problem.fix(x, 10 ** 20), "block 1"),
                       (lambda: problem.fix(x, [0, 1]), "one whole number"), (lambda: problem.fix("x", 0), "'x' for blocks"),
                       (lambda: problem.bound(x, 0, 0.5, 0, 1), "component 0.5"), (lambda: problem.covariance([(x, 0.5)]), "block 0.5"),
                       (lambda: problem.add_terms("t", lambda a: a[0], ["x"], [[0]]), "'x' for blocks"), (lambda: problem.set_values(x, "abc"), "numbers"),
                       (lambda: problem.enable(terms, [0.5]), "instance 0.5"), (lambda: problem.erase(x, [1.5]), "block 1.5")):
        with pytest.raises(ls.InputError, match=text):
            work()
    with pytest.raises(ls.InputError, match="a loss that gives NoneType"):
        problem.add_terms("t", lambda a: a[0], x, [0], loss=lambda s: None)
    assert problem.residual_count == 2


def test_values_that_no_block_may_have():
    problem = solve.Problem()
    x, turn = problem.add_blocks("x", [[1.0, 2.0]]), problem.add_blocks("turn", [[1.0, 0, 0, 0]], "so3")
    for blocks, values, text in ((x, [[np.nan, 0]], "component 0 of block 0 is nan"), (x, [[0, np.inf]], "component 1 of block 0 is inf"),
                                 (x, [[1, 2], [3, 4]], "4 values.*expected 2"), (turn, [[2.0, 0, 0, 0]], "a unit vector of so3, have length 2")):
        with pytest.raises(ls.InputError, match=text):
            problem.set_values(blocks, values)
    np.testing.assert_array_equal(problem.values(x), [[1, 2]])


@pytest.mark.parametrize("returned, text", [(np.array([1 + 1j]), "complex numbers"), (np.ma.masked_array([1.0], [True]), "masked elements"),
                                            (np.array(["2020"], "M8[D]"), "elements of datetime64"), (["a"], "numbers")])
def test_what_functions_on_the_host_may_not_return(returned, text):
    problem = solve.Problem()
    x = problem.add_blocks("x", [[1.0]])
    for given in (dict(residual=lambda x: returned), dict(residual=lambda x: x, jacobian=lambda x: np.reshape(returned, (1, 1)))):
        with pytest.raises(ls.InputError, match=text):
            problem.add_host_terms("t", blocks=(x,), indices=[[0]], **given)
    with pytest.raises(ls.InputError, match=text):
        solve.least_squares(lambda x: returned, [1.0], traced=False, device=HOST)


def test_handles_of_another_problem_are_refused():
    def spring():
        problem = solve.Problem()
        points = problem.add_blocks("points", [[0.0, 0.0], [3.0, 4.0]])
        return problem, points, problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), [[0, 1]], [2.0])

    problem, points, terms = spring()
    other, _, _ = spring()
    for use in (lambda: other.remove(terms), lambda: other.enable(terms, enabled=False), lambda: other.weigh(terms, 2),
                lambda: other.set_data(terms, [1.0])):
        with pytest.raises(ls.InputError, match="terms 'spring' of another problem"):
            use()
    for use in (lambda: other.values(points), lambda: other.fix(points, 0), lambda: other.column(points, 0),
                lambda: other.add_terms("pin", lambda p: p[0], (points,), [[0]]), lambda: other.covariance([(points, 0)])):
        with pytest.raises(ls.InputError, match="blocks 'points' of another problem"):
            use()
    assert other.residual_count == 1
    problem.fix(points, 0)
    summary = problem.minimize(device="cpu")
    assert summary.notes == ["1 direction changes no residual to first order: points 1"]


def test_springs_of_a_polygon(rng):
    n = 12
    problem = solve.Problem()
    angle = 2 * np.pi * np.arange(n) / n
    points = problem.add_blocks("points", np.stack([np.cos(angle), np.sin(angle)], 1) + 0.1 * rng.random((n, 2)))
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), edges, np.full(n, 0.7))
    problem.fix(points, 0)
    rows = []
    summary = problem.minimize(device="cpu", callback=rows.append)
    assert summary.final_cost < 1e-12 and summary.variables == 2 * (n - 1) and problem.residual_count == n
    assert len(rows) == summary.iterations and rows[-1]["cost"] == pytest.approx(summary.final_cost, abs=1e-20)
    p = problem.values(points)
    np.testing.assert_allclose(np.linalg.norm(p[edges[:, 0]] - p[edges[:, 1]], axis=1), 0.7, atol=1e-6)
    with pytest.raises(ls.InputError, match="indices"):
        problem.add_terms("bad", lambda p, q: p[0] - q[0], (points, points), np.zeros((3, 3)))


def test_evaluate_gives_the_jacobian(device):
    problem = solve.Problem()
    points = problem.add_blocks("points", [[0.0, 0.0], [3.0, 4.0]])
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), [[0, 1]], [2.0])
    problem.add_terms("pin", lambda p: (p[0] - 1, p[1]), (points,), [[0]])
    found = problem.evaluate(device=device)
    jacobian = found.jacobian
    if isinstance(jacobian, tuple):
        data, indices, indptr = jacobian
        jacobian = np.zeros((3, 4))
        for row in range(3):
            for k in range(indptr[row], indptr[row + 1]):
                jacobian[row, indices[k]] += data[k]
    else:
        jacobian = jacobian.toarray()
    np.testing.assert_allclose(jacobian, [[-0.6, -0.8, 0.6, 0.8], [1, 0, 0, 0], [0, 1, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(found.residuals, [3, -1, 0], atol=1e-12)
    np.testing.assert_allclose(found.gradient, jacobian.T @ found.residuals, atol=1e-12)
    assert found.cost == pytest.approx(0.5 * (found.residuals ** 2).sum())


def test_a_problem_lives(device):
    problem = solve.Problem()
    points = problem.add_blocks("points", [[0.0], [1.0]])
    pins = problem.add_terms("pin", lambda p, d: p[0] - d[0], (points,), [[0], [1]], [[2.0], [5.0]])
    assert problem.minimize(device=device).final_cost < 1e-20
    problem.set_data(pins, [[7.0]], first=1)
    first = problem.append_blocks(points, [[0.0]])
    link = problem.add_terms("link", lambda p, q: p[0] - q[0], (points, points), [[first, 1]])
    problem.minimize(device=device)
    np.testing.assert_allclose(problem.values(points).ravel(), [2, 7, 7], atol=1e-9)
    problem.weigh(pins, [1.0, 3.0])
    far = problem.add_terms("far", lambda p: p[0] - 3, (points,), [[1]])
    problem.minimize(device=device)
    assert problem.values(points)[1, 0] == pytest.approx((3 * 7 + 3) / 4)
    problem.enable(far, 0, False)
    assert not problem.enabled(far, 0) and problem.instance_count(pins) == 2
    problem.minimize(device=device)
    assert problem.values(points)[1, 0] == pytest.approx(7)
    problem.remove(link)
    problem.fix(points, first)
    problem.fix_coordinates(points, 0, [0])
    assert problem.variable_count == 1 and problem.column(points, 0) == -1
    assert [row["name"] for row in problem.instances(device=device)] == ["pin", "pin", "far"]


def test_host_terms_are_the_traced_ones(device):
    rng = np.random.default_rng(3)
    start, edges, lengths = rng.standard_normal((6, 3)), [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3]], rng.random(7)
    found = []
    for kind in ("traced", "differences", "jacobian"):
        problem = solve.Problem()
        points = problem.add_blocks("points", start)
        if kind == "traced":
            problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), edges, lengths, loss="huber:0.3")
        else:
            def slopes(p, q, d):
                along = (p - q) / np.linalg.norm(p - q)
                return np.concatenate([along, -along])
            problem.add_host_terms("spring", lambda p, q, d: np.linalg.norm(p - q) - d[0], (points, points), edges, lengths,
                                   jacobian=slopes if kind == "jacobian" else None, loss="huber:0.3")
        found.append(problem.evaluate(device=device))
        assert problem.minimize(device=device).converged
    for other in found[1:]:
        assert other.cost == pytest.approx(found[0].cost, rel=1e-13)
        np.testing.assert_allclose(other.gradient, found[0].gradient, atol=1e-8)
    with pytest.raises(ls.InputError, match="no table"):
        def broken(p):
            raise ValueError("no table")
        problem.add_host_terms("broken", broken, (points,), [[0]])
    with pytest.raises(ls.InputError, match="2 numbers"):
        problem.add_host_terms("wide", lambda p: [1.0, 2.0], (points,), [[0]])


def test_groups_of_blocks_order_the_elimination_and_are_minimised_by_themselves(device):
    rng = np.random.default_rng(8)
    start, seen, measured = rng.standard_normal((3, 2)), rng.standard_normal((20, 2)), rng.random(60)

    def build():
        problem = solve.Problem()
        bodies, marks = problem.add_blocks("bodies", start), problem.add_blocks("marks", seen)
        pairs = [[i, j] for i in range(3) for j in range(20)]
        problem.add_terms("range", lambda p, q, d: ls.norm(p - q) - d[0], (bodies, marks), pairs, measured)
        problem.fix(bodies, 0)
        problem.fix_coordinates(bodies, 1, [0])
        return problem, bodies, marks
    problem, *_ = build()
    plain = problem.minimize(device=device, max_iterations=3)
    for order, linear in (("marks,bodies", "dense-schur"), (["marks"], "dense-schur"), ("bodies", "cholesky"), (0, "cholesky")):
        problem, bodies, marks = build()
        order = order or [(marks, [3, 4]), [bodies, (marks, 7)], marks.name + ":8-19"]
        found = problem.minimize(device=device, max_iterations=3, order=order, **({} if linear != "cholesky" else dict(linear=linear)))
        assert found.linear == linear
        assert found.final_cost == pytest.approx(plain.final_cost, rel=1e-8)
    problem, bodies, marks = build()
    inner = problem.minimize(device=device, max_iterations=3, inner_groups=[marks])
    assert inner.final_cost < plain.final_cost
    problem, bodies, marks = build()
    assert problem.minimize(device=device, max_iterations=3, inner_groups="auto").final_cost < plain.final_cost
    other = build()[1]
    with pytest.raises(ls.InputError, match="of another problem"):
        problem.minimize(device=device, order=[other])
    with pytest.raises(ls.InputError, match="block set"):
        problem.minimize(device=device, order="planes")
    with pytest.raises(ls.InputError, match="no effect"):
        problem.minimize(device=device, order=[marks], linear="pcg")


def test_host_terms_are_prepared_for_each_point(device):
    problem = solve.Problem()
    x = problem.add_blocks("x", [[1.0, 2.0]])
    at = problem.values(x)[0]
    calls = []

    def prepare(derivatives):
        at[:] = problem.values(x)[0]
        calls.append(derivatives)

    def residual(p):
        return np.append(at - [3, 4], at[0] * at[1] - 12) if calls else np.append(p - [3, 4], p[0] * p[1] - 12)
    problem.add_host_terms("h", residual, (x,), [[0]], residuals=3, jacobian=lambda p: [[1, 0], [0, 1], [p[1], p[0]]])
    assert problem.minimize(device=device, prepare=prepare).converged
    np.testing.assert_allclose(problem.values(x), [[3, 4]], atol=1e-9)
    assert {True, False} == set(calls)


def test_a_window_slides(device):
    """Of linear terms a prior says all: the window's estimate is that of everything."""
    rng = np.random.default_rng(4)
    steps, fixes = rng.standard_normal((30, 2)), rng.standard_normal((31, 2))

    def move(p, q, d):
        return q - p - d

    def fix(p, d):
        return 0.5 * (p - d)
    whole = solve.Problem()
    all_points = whole.add_blocks("points", np.zeros((31, 2)))
    whole.add_terms("move", lambda p, q, d: [q[0] - p[0] - d[0], q[1] - p[1] - d[1]], (all_points, all_points),
                    [[k, k + 1] for k in range(30)], steps)
    whole.add_terms("fix", lambda p, d: [0.5 * (p[0] - d[0]), 0.5 * (p[1] - d[1])], (all_points,), [[k] for k in range(31)], fixes)
    whole.minimize(device=device)
    problem = solve.Problem()
    points = problem.add_blocks("points", np.zeros((1, 2)))
    fixed = problem.add_host_terms("fix", fix, (points,), [[0]], fixes[:1], residuals=2)
    for k in range(30):
        new = problem.append_blocks(points, np.zeros((1, 2)))
        assert new == k + 1
        problem.add_host_terms("move", move, (points, points), [[k, new]], steps[k:k + 1], residuals=2)
        problem.add_host_terms("fix", fix, (points,), [[new]], fixes[new:new + 1], residuals=2)
        if k >= 4:
            prior = problem.marginalize([(points, k - 4)], device=device)
            assert prior.blocks == [(points, k - 3)] and prior.free_directions == 0 and prior.root.shape == (2, 2)
        problem.minimize(device=device)
    np.testing.assert_array_equal(problem.block_numbers(points), [26, 27, 28, 29, 30])
    np.testing.assert_allclose(problem.values(points)[-1], whole.values(all_points)[-1], atol=1e-7)
    with pytest.raises(ls.InputError, match="term set 0, which was erased"):
        problem.enable(fixed)
    with pytest.raises(ls.InputError, match="block 2 of points, which was erased"):
        problem.fix(points, 2)
    with pytest.raises(ls.InputError, match="block 30 of points is in instance 0 of"):
        problem.erase(points, [30])


def test_a_report_names_what_floats(device, tmp_path):
    problem = solve.Problem()
    points = problem.add_blocks("points", np.eye(3))
    problem.add_terms("spring", lambda p, q, d: ls.norm(p - q) - d[0], (points, points), [[0, 1], [0, 1]], [1.0, 1.0])
    problem.fix(points, 0)
    found = problem.report(device=device)
    assert not found.well and found.piece_count == 2 and found.free_directions == 5
    assert [(p["first"]["number"], p["free_directions"]) for p in found.pieces] == [(1, 2), (2, 3)]
    assert found.duplicates == [{"terms": "spring", "instance": 1, "of": {"terms": "spring", "instance": 0}}]
    graph = tmp_path / "pair.g2o"
    graph.write_text("VERTEX_SE2 0 0 0 0\nVERTEX_SE2 1 1 0 0\nEDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\n")
    assert solve.doctor(graph, device=device).well


def test_influence_is_that_of_dense_algebra(device):
    """A bent line through 40 points with one that is wrong: the hat matrix of NumPy's QR, and fits without each point."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 3, 40))
    y = 2 * np.exp(-0.7 * x) + 0.02 * rng.standard_normal(40)
    y[11] += 0.4
    problem = solve.Problem()
    p = problem.add_blocks("p", [[1.0, 1.0]])
    problem.add_terms("curve", lambda p, d: p[0] * ls.exp(-p[1] * d[0]) - d[1], (p,), np.zeros((40, 1)), np.stack([x, y], 1))
    problem.minimize(device=device)
    found = problem.influence(device=device)
    a, b = problem.values(p)[0]
    jacobian = np.stack([np.exp(-b * x), -a * x * np.exp(-b * x)], 1)
    residuals = a * np.exp(-b * x) - y
    hat = np.square(np.linalg.qr(jacobian)[0]).sum(1)
    np.testing.assert_allclose(found.leverage, hat, rtol=1e-9)
    squares = residuals @ residuals
    for k in range(40):
        kept = np.arange(40) != k
        step, rest = np.linalg.lstsq(jacobian[kept], -residuals[kept], rcond=None)[:2]
        np.testing.assert_allclose(found.studentized[k], np.sqrt((squares - rest[0]) / (rest[0] / 37)), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.cook[k], np.square(jacobian @ step).sum() / (2 * squares / 38), rtol=1e-4, atol=1e-9)
    assert (found.rank, found.rows) == (2, 40) and found.step_gain < 1e-6
    report = problem.report(device=device)
    assert [o["instance"] for o in report.outliers] == [11] and report.outlier_count == 1
    fitted = solve.doctor({"x": x, "y": y}, model="a*exp(-b*x)", y="y", device=device)
    assert [o["instance"] for o in fitted.outliers] == [11] and fitted.fit["undetermined"] == []
    np.testing.assert_allclose(fitted.fit["parameters"]["b"], b, rtol=1e-6)
    with pytest.raises(ls.InputError, match="argument y"):
        solve.doctor({"x": x, "y": y}, model="a*exp(-b*x)", device=device)


def test_losses_by_name_and_by_expression():
    found = []
    for loss in ("cauchy:1", lambda s: ls.log(1 + s)):
        problem = solve.Problem()
        x = problem.add_blocks("x", [[0.2]])
        problem.add_terms("to", lambda x, d: x[0] - d[0], (x,), np.zeros((4, 1)), [[0.0], [0.1], [-0.1], [9.0]], loss=loss)
        found.append((problem.minimize(device="cpu").final_cost, problem.values(x)[0, 0]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7)
    assert abs(found[0][1]) < 0.2
    with pytest.raises(ls.InputError, match="argument method.*lm"):
        problem.minimize(method="luck")
    with pytest.raises(ls.InputError, match="argument colour"):
        problem.minimize(colour=1)


def test_covariances(device):
    problem = solve.Problem()
    x = problem.add_blocks("x", [[1.0, 2.0], [0.0, 0.0]])
    problem.add_terms("t", lambda x: (2 * x[0] - 1, 3 * x[1]), (x,), [[0]])
    problem.add_terms("between", lambda a, b: a - b, (x, x), [[0, 1]])
    jacobian = np.array([[2, 0, 0, 0], [0, 3, 0, 0], [1, 0, -1, 0], [0, 1, 0, -1]], float)
    expected = np.linalg.inv(jacobian.T @ jacobian)
    np.testing.assert_allclose(problem.covariance([(x, 0), (x, 1)], device=device), expected, atol=1e-12)
    np.testing.assert_allclose(problem.marginals(x, device=device)[1], expected[2:, 2:], atol=1e-12)


def test_runs_and_trajectories_of_files(tmp_path):
    x = np.linspace(0, 2, 20)
    (tmp_path / "c.csv").write_text("x,y\n" + "".join(f"{a},{2 * np.exp(-a)}\n" for a in x))
    found = solve.fit(tmp_path / "c.csv", model="a*exp(-b*x)", y="y", initial={"a": 1.0, "b": 0.5}, device="cpu")
    assert found.parameters == pytest.approx({"a": 2, "b": 1}, rel=1e-6)
    poses = np.array([[0, 0, 0, 1, 0, 0, 0], [1, 2, 3, 0, 1, 0, 0]], float)
    solve.write_tum(tmp_path / "t.txt", [0.0, 0.5], poses)
    seconds, again = solve.read_tum(tmp_path / "t.txt")
    np.testing.assert_allclose(seconds, [0, 0.5])
    np.testing.assert_allclose(again, poses)


def test_an_error_in_a_callback_comes_out():
    problem = solve.Problem()
    x = problem.add_blocks("x", [[3.0]])
    problem.add_terms("root", lambda x: ls.exp(x[0]) - 2, (x,), [[0]])

    def stop(row):
        raise KeyError("from the callback")

    with pytest.raises(KeyError, match="from the callback"):
        problem.minimize(device="cpu", callback=stop)
    assert problem.minimize(device="cpu", callback=lambda row: False).termination == "stopped"


def test_pose_graph_file(tmp_path):
    file = tmp_path / "square.g2o"
    text = "".join(f"VERTEX_SE2 {k} {x} {y} {a}\n" for k, (x, y, a) in
                   enumerate([(0, 0, 0), (1.1, 0, 1.6), (1, 1.1, 3.1), (0, 1, -1.5)]))
    text += "".join(f"EDGE_SE2 {k} {(k + 1) % 4} 1 0 1.5707963267948966 1 0 0 1 0 1\n" for k in range(4))
    file.write_text(text)
    problem, poses, landmarks = solve.read_g2o(file)
    assert landmarks is None and poses.size == 3
    assert problem.minimize(device="cpu").final_cost < 1e-15
    np.testing.assert_allclose(problem.values(poses)[2, :2], [1, 1], atol=1e-6)
    with pytest.raises(ls.InputError, match="nothing.g2o"):
        solve.read_g2o(tmp_path / "nothing.g2o")


def test_mesh_file(tmp_path):
    file = tmp_path / "one.obj"
    file.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    vertices, triangles = solve.read_obj(file)
    np.testing.assert_array_equal(vertices, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(triangles, [[0, 1, 2]])


def test_a_mesh_follows_its_handles_as_a_rigid_body():
    """As-rigid-as-possible: where all handles turn alike, the whole mesh turns with them, and nothing is left to pay."""
    vertices = np.array([[x, y, 0.1 * x * y] for y in range(4) for x in range(4)], float)
    triangles = [t for y in range(3) for x in range(3) for t in ((4 * y + x, 4 * y + x + 1, 4 * y + x + 5),
                                                                 (4 * y + x, 4 * y + x + 5, 4 * y + x + 4))]
    c, s = np.cos(0.3), np.sin(0.3)
    turned = vertices @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    found = solve.mesh((vertices, triangles), energy="arap", handles={k: turned[k] for k in (0, 3, 12, 15)}, device=HOST)
    np.testing.assert_allclose(found["positions"], turned, atol=1e-5)
    np.testing.assert_array_equal(found["triangles"], triangles)
    assert "arap" in solve.mesh_energies() and found["energy"] == "arap"
    with pytest.raises(ls.InputError, match="energy"):
        solve.mesh((vertices, triangles), energy="nothing", device=HOST)
    with pytest.raises(ls.InputError, match="triangles"):
        solve.mesh((vertices, [[0.5, 1, 2]]), energy="arap", device=HOST)
    with pytest.raises(ls.InputError, match="triangle 0 has vertex 16"):
        solve.mesh((vertices, [[0, 1, 16]]), energy="arap", device=HOST)
    flat = solve.mesh((vertices, triangles), energy="parameterize", device=HOST)["positions"]
    assert np.ptp(flat[:, 0]) > 1 and not flat[:, 2].any()


def test_a_mesh_of_arrays_is_the_mesh_of_a_file(tmp_path):
    made = solve.mesh("icosphere:1", energy="springs", rest_scale=0.9, device=HOST, out=tmp_path / "found.obj")
    vertices, triangles = solve.read_mesh(tmp_path / "found.obj")
    np.testing.assert_array_equal(made["positions"], vertices)
    np.testing.assert_array_equal(made["triangles"], triangles)
    again, same = (solve.mesh(of, energy="smooth", device=HOST)
                   for of in ((vertices[::-1][::-1], triangles), tmp_path / "found.obj"))
    np.testing.assert_array_equal(again["positions"], same["positions"])
    assert again["final_cost"] == same["final_cost"] and again["mesh"] == "arrays"


def test_a_problem_says_what_it_holds():
    problem = solve.Problem()
    points, turn = problem.add_blocks("points", np.eye(3)), problem.add_blocks("turn", [[1.0, 0, 0, 0]], "so3")
    terms = problem.add_terms("t", lambda p, q, d: p[0] - d[1] + q[0], (points, points), [[0, 1], [2, 1]], [[1, 2], [3, 4]], loss="huber:0.5")
    problem.add_host_terms("h", lambda q: q[0] - 1, turn, [0])
    problem.fix(points, 2), problem.bound(points, 0, 1, -1, 2), problem.fix_coordinates(turn, 0, [2])
    assert [(s.name, s.manifold, s.numbers, s.coordinates, s["count"]) for s in problem.block_sets()] == [
        ("points", "euclidean3", 3, 3, 3), ("turn", "so3", 4, 3, 1)]
    assert problem.block_sets()[0].blocks is points
    first, second = problem.term_sets()
    assert (first.name, first.instances, first.loss, first.host, second.host) == ("t", 2, "huber:0.5", False, True)
    assert problem.instance_count(first.terms) == 2
    problem.enable(terms, 1, False), problem.weigh(terms, [2, 3])
    one = problem.instance(terms, 1)
    assert one.blocks == [(0, points, 2), (1, points, 1)] and one.data == {1: 4.0} and one.weight == 3 and not one.enabled
    assert [(t.name, k) for t, k in problem.instances_of(points, 1)] == [("t", 0), ("t", 1)]
    assert problem.block(points, 2).fixed and problem.block(turn, 0).held == [2]
    assert problem.block(points, 0).lower == [-np.inf, -1, -np.inf] and problem.block(points, 0).upper == [np.inf, 2, np.inf]
    with pytest.raises(ls.InputError, match="instance 2 of t"):
        problem.instance(terms, 2)


def test_a_jacobian_of_ones_own():
    values, data = [[0.3, 0.4], [1.0, -2.0]], [[5.0], [6.0]]
    found = []
    for jacobian in (None, lambda x, d: ((2 * x[0], 2 * x[1]),), lambda x, d: np.array([2 * x[0], 2 * x[1]])):
        problem = solve.Problem()
        x = problem.add_blocks("x", values)
        problem.add_terms("t", lambda x, d: x[0] * x[0] + x[1] * x[1] - d[0], x, [0, 1], data, jacobian=jacobian, loss="cauchy:1")
        evaluation = problem.evaluate(device="cpu")
        found.append((evaluation.residuals, evaluation.gradient))
    for residuals, gradient in found[1:]:
        np.testing.assert_array_equal(residuals, found[0][0])
        np.testing.assert_allclose(gradient, found[0][1], rtol=1e-13)
    with pytest.raises(ls.InputError, match="the derivative of residual 0 to coordinate 1"):
        problem.add_terms("t", lambda x, d: x[0] * x[1] - d[0], x, [0, 1], data, jacobian=lambda x, d: (x[1], x[1]))
    with pytest.raises(ls.InputError, match="a Jacobian of 1 numbers"):
        problem.add_terms("t", lambda x, d: x[0] * x[1] - d[0], x, [0, 1], data, jacobian=lambda x, d: x[1])
    assert problem.residual_count == 2


def test_callbacks_do_not_change_their_problem():
    problem = solve.Problem()
    x = problem.add_blocks("x", [[2.0, 3.0]])
    problem.add_terms("t", lambda x: (10 * (x[1] - x[0] ** 2), 1 - x[0]), x, [0])
    for change in (lambda: problem.append_blocks(x, np.zeros((1000, 2))), lambda: problem.erase(x, [0]), lambda: problem.marginalize([(x, 0)]),
                   lambda: problem.minimize(device="cpu"), lambda: problem.fix(x, 0)):
        with pytest.raises(ls.InputError, match="while the problem is minimised"):
            problem.minimize(device="cpu", callback=lambda row: change())
    assert problem.minimize(device="cpu").converged


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e-18, 1e-9, -1e-17])
def test_differences_of_host_terms_see_numbers_that_are_rounding_of_zero(tiny):
    problem = solve.Problem()
    x = problem.add_blocks("x", [[tiny, 2.0]])
    problem.add_host_terms("h", lambda x: [x[0] - 1, np.sin(x[0]) + x[1]], x, [0], residuals=2)
    evaluation = problem.evaluate(device="cpu")
    jacobian = evaluation.jacobian.toarray() if hasattr(evaluation.jacobian, "toarray") else np.reshape(evaluation.jacobian[0], (2, 2))
    np.testing.assert_allclose(jacobian, [[1, 0], [1, 1]], atol=1e-7)
    assert problem.minimize(device="cpu").final_cost < 1e-20
