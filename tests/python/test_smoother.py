"""lockstep.solve.Smoother: estimates compared with those of a Problem, a window, errors that leave it as it was."""
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lockstep as ls
from lockstep import solve


def moved(a, b, d):
    return 5 * (b[0] - a[0] - d[0]), 5 * (b[1] - a[1] - d[1])


def ranged(a, d):
    return 3 * (ls.norm(a) - d[0]),


def place(a, d):
    return a[0] - d[0], a[1] - d[1]


def chain(lag=math.inf, frames=40):
    rng = np.random.default_rng(4)
    steps = np.array([0.4, 0.1]) + 0.1 * rng.standard_normal((frames, 2))
    smoother = solve.Smoother(lag=lag, device="cpu")
    points = smoother.add_set("points", size=2)
    kinds = (smoother.add_kind("place", place, [points], 2), smoother.add_kind("moved", moved, [points, points], 2),
             smoother.add_host_kind("ranged", lambda a, d: [3 * (np.hypot(*a) - d[0])], [points], 1))
    at = np.array([2.0, 1.0])
    for k in range(frames):
        at = at + steps[k]
        new = smoother.append_blocks(points, at, k)
        if k == 0:
            smoother.add_terms(kinds[0], [new], at)
        else:
            smoother.add_terms(kinds[1], [[new - 1, new]], [steps[k] * 1.01])
        smoother.add_terms(kinds[2], [new], [np.hypot(*at) + 0.02])
        found = smoother.update()
    return smoother, points, kinds, found


def test_estimates_are_those_of_the_problem():
    smoother, points, _, found = chain()
    assert found.eliminated < 40 and found.cliques > 1 and found.left == 0
    assert smoother.solve() >= 1
    problem, (same,) = smoother.problem()
    cost = problem.minimize(device="cpu", function_tolerance=1e-16).final_cost
    assert cost > 1e-3 and smoother.cost() == pytest.approx(cost, rel=1e-10)
    np.testing.assert_allclose(smoother.values(points), problem.values(same), atol=1e-8)
    np.testing.assert_array_equal(smoother.value(points, 7), smoother.values(points)[7])
    np.testing.assert_allclose(smoother.covariance([(points, 3), (points, 39)]),
                               problem.covariance([(same, 3), (same, 39)], device="cpu"), rtol=1e-6)


def test_a_window_keeps_what_left_as_a_prior():
    smoother, points, _, found = chain(lag=5)
    assert found.left == 1
    np.testing.assert_array_equal(smoother.block_numbers(points), np.arange(34, 40))
    whole, all_points, _, _ = chain()
    np.testing.assert_allclose(smoother.value(points, 39), whole.value(all_points, 39), atol=1e-4)
    problem, (same,) = smoother.problem()
    problem.minimize(device="cpu", function_tolerance=1e-16)
    smoother.solve()
    np.testing.assert_allclose(problem.values(same), smoother.values(points), atol=1e-8)


def test_weights_bounds_and_held_coordinates_are_those_of_the_problem():
    smoother = solve.Smoother(device="cpu")
    points = smoother.add_set("points", size=2)
    placed = smoother.add_kind("place", place, [points], 2, loss="huber:1.5")
    moves = smoother.add_kind("moved", moved, [points, points], 2)
    smoother.append_blocks(points, np.zeros((6, 2)))
    wishes = smoother.add_terms(placed, np.arange(6), np.arange(12.0).reshape(6, 2))
    smoother.add_terms(moves, [[k, k + 1] for k in range(5)], np.full((5, 2), 0.5))
    smoother.weigh(wishes, [0, 1, 2, 3, 4, 5])
    smoother.bound(points, 2, 0, upper=1.25)
    smoother.fix_coordinates(points, 4, [1])
    smoother.solve(1000)
    assert smoother.value(points, 2)[0] == 1.25
    assert smoother.value(points, 4)[1] == 0
    problem, (same,) = smoother.problem()
    problem.minimize(device="cpu", function_tolerance=1e-16, max_iterations=500)
    np.testing.assert_allclose(smoother.values(points), problem.values(same), atol=1e-7)
    variances = np.diag(smoother.covariance([(points, 2), (points, 4)]))
    assert variances[0] == variances[3] == 0 and variances[1] > 0 and variances[2] > 0
    smoother.weigh(wishes, 1)
    smoother.bound(points, 2, 0)
    smoother.fix_coordinates(points, 4, [])
    smoother.solve(1000)
    assert smoother.value(points, 2)[0] > 1.25 and smoother.value(points, 4)[1] > 1
    for call, message in [(lambda: smoother.weigh(wishes, [1.0, 2.0]), "2 weights"),
                          (lambda: smoother.bound(points, 2, 5, 0.0, 1.0), "component 5 of points"),
                          (lambda: smoother.fix_coordinates(points, 2, [2]), "tangent coordinate 2 of points")]:
        with pytest.raises(ls.InputError, match=message):
            call()


def test_errors_leave_it_as_it_was():
    smoother, points, (placed, moves, _), _ = chain(lag=5)
    other = solve.Smoother(device="cpu")
    foreign = other.add_set("points", size=2)
    before = smoother.values(points), smoother.instance_count()
    for call, message in [
            (lambda: smoother.add_terms(moves, [[39, 40]], [[0.0, 0.0]]), "block 40 of points"),
            (lambda: smoother.add_terms(moves, [[3, 39]], [[0.0, 0.0]]), "block 3 of points, which left the window"),
            (lambda: smoother.append_blocks(points, [[0.0, 0.0]], 12), "time 12 after time 39"),
            (lambda: smoother.append_blocks(foreign, [[0.0, 0.0]]), "'points' of another smoother"),
            (lambda: other.add_terms(placed, [0], [0.0, 0.0]), "'place' of another smoother"),
            (lambda: smoother.add_terms(placed, [39], [0.0, math.nan]), "datum 1 of instance 0 is nan"),
            (lambda: smoother.add_set("circle", "so3", size=3), "size 3 of so3"),
            (lambda: solve.Smoother(lag=-1.0, device="cpu"), "lag -1"),
    ]:
        with pytest.raises(ls.InputError, match=message):
            call()
    np.testing.assert_array_equal(smoother.values(points), before[0])
    assert smoother.instance_count() == before[1]
    loose = smoother.append_blocks(points, [[9.0, 9.0]], 40)
    with pytest.raises(ls.InputError, match="block 40 of points has a direction that no term determines"):
        smoother.update()
    extra = smoother.add_terms(placed, [loose], [9.0, 9.0])
    smoother.update()
    np.testing.assert_allclose(smoother.value(points, loose), [9, 9], atol=1e-9)
    smoother.add_terms(moves, [[39, loose]], [[0.3, 0.0]])
    smoother.erase(extra)
    smoother.update()
    np.testing.assert_allclose(smoother.value(points, loose), smoother.value(points, 39) + [0.3, 0], atol=1e-9)


def test_the_example_smooths_its_log():
    example = Path(__file__).parents[2] / "examples" / "python" / "lidar_odometry.py"
    subprocess.run([sys.executable, str(example)], check=True, capture_output=True)


def test_functions_of_host_kinds_do_not_change_their_smoother():
    """Each of these would move the tables that the update reads, or call itself."""
    smoother = solve.Smoother(lag=30)
    points = smoother.add_set("points", size=2)
    work, terms = [None], []

    def moved(a, b):
        if work[0] is not None:
            work[0]()
        return b[0] - a[0] - 1, b[1] - a[1] - np.sin(a[0])

    steps = smoother.add_host_kind("steps", moved, [points, points], residuals=2)
    pin = smoother.add_kind("pin", lambda a: (a[0], a[1]), [points])
    smoother.append_blocks(points, [0, 0], 0)
    smoother.add_terms(pin, [[0]])
    for k in range(1, 4):
        smoother.append_blocks(points, [k, 0], k)
        terms.append(smoother.add_terms(steps, [[k - 1, k]]))
        smoother.update()
    changes = (lambda: smoother.append_blocks(points, np.zeros((2000, 2)), 5), lambda: smoother.add_terms(steps, [[0, 1]]),
               lambda: smoother.add_kind("q", lambda a: (a[0], a[1]), [points]), lambda: smoother.add_set("more", size=1),
               lambda: smoother.erase(terms[0]), lambda: smoother.weigh(terms[0], 2), lambda: smoother.touch(points, 0, 9),
               lambda: smoother.bound(points, 0, 0, -1, 1), lambda: smoother.fix_coordinates(points, 0, [0]), smoother.update, smoother.solve)
    for change in changes:
        work[0] = change
        with pytest.raises(ls.InputError, match="while the problem is minimised or evaluated"):
            smoother.solve()
    work[0] = None
    smoother.solve()
    assert smoother.cost() < 1e-15 and smoother.instance_count() == 4


def test_numbers_that_would_be_cut_are_refused():
    smoother = solve.Smoother(device="cpu")
    with pytest.raises(ls.InputError, match="size 1.5"):
        smoother.add_set("x", size=1.5)
    with pytest.raises(ls.InputError, match="max_iterations 2.7"):
        smoother.solve(2.7)
    problem = solve.Problem()
    x = problem.add_blocks("x", [[1.0]])
    terms = problem.add_terms("t", lambda x: x - 1, [x], [[0]])
    for wrong, words in ((np.ma.array([1.0], mask=[1]), "masked elements"), ([1j], "complex numbers")):
        with pytest.raises(ls.InputError, match=words + ".*weights"):
            problem.weigh(terms, wrong)
    problem.weigh(terms, 2)
