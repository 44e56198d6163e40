"""Ready-made residuals by name, and inertial measurements."""
import numpy as np
import pytest

import lockstep as ls
from conftest import HOST
from lockstep import solve


def test_a_loop_of_poses_by_each_kind_of_weight():
    step = [1.0, 0.0, np.pi / 2]
    deviations = np.array([0.1, 0.2, 0.05])
    found = []
    for weight in (dict(standard_deviations=deviations), dict(covariance=np.diag(deviations ** 2)),
                   dict(information=[np.diag(deviations ** -2)] * 4)):
        problem = solve.Problem()
        poses = problem.add_blocks("poses", [[0, 0, 0], [1.1, 0, 1.6], [1, 1.1, 3.1], [0, 1, -1.5]], "se2")
        problem.add_factors("se2_between", (poses, poses), [[0, 1], [1, 2], [2, 3], [3, 0]], [step] * 3 + [[1.2, 0, np.pi / 2]], **weight)
        problem.fix(poses, 0)
        assert problem.minimize(device=HOST, function_tolerance=1e-15).converged
        found.append(problem.values(poses))
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)
    np.testing.assert_allclose(found[2], found[0], atol=1e-12)


def test_cameras_share_or_own_their_intrinsics(rng):
    """Pixels made by NumPy's own formulas: pinhole with distortion, and the fisheye of Kannala and Brandt."""
    points = rng.uniform(-1, 1, (30, 3)) + [0, 0, 5]
    poses = np.array([[0, 0, 0, 1, 0, 0, 0], [0.3, -0.1, 0.2, 1, 0, 0, 0]], float)

    def brown(k, p):
        x, y = p[:2] / p[2]
        r = x * x + y * y
        grown = 1 + k[4] * r + k[5] * r ** 2 + k[8] * r ** 3
        return np.array([k[0] * (x * grown + 2 * k[6] * x * y + k[7] * (r + 2 * x * x)) + k[2],
                         k[1] * (y * grown + k[6] * (r + 2 * y * y) + 2 * k[7] * x * y) + k[3]])

    def fisheye(k, p):
        r = np.hypot(p[0], p[1]) / p[2]
        t = np.arctan(r)
        grown = t * (1 + k[4] * t ** 2 + k[5] * t ** 4 + k[6] * t ** 6 + k[7] * t ** 8) / r
        return np.array([k[0] * grown * p[0] / p[2] + k[2], k[1] * grown * p[1] / p[2] + k[3]])

    for name, model, truth in (("brown_conrady", brown, [500, 510, 320, 240, -0.1, 0.02, 0.001, -0.002, 0.0]),
                               ("fisheye", fisheye, [400, 390, 320, 240, 0.05, -0.01, 0.002, 0.0])):
        for cameras in (1, 2):
            own = np.array([truth] * cameras)
            own[-1, 0] += 7
            problem = solve.Problem()
            eyes, marks = problem.add_blocks("poses", poses, "se3"), problem.add_blocks("points", points)
            start = own.copy()
            start[:, :4] += [5, -4, 3, 2]
            lenses = problem.add_blocks("lenses", start)
            indices = [[k, k % cameras, p] for k in range(2) for p in range(30)]
            pixels = [model(own[c], points[p] + poses[k, :3]) for k, c, p in indices]
            problem.add_factors(name, (eyes, lenses, marks), indices, pixels, standard_deviations=0.5 * np.ones(1))
            for k in range(2):
                problem.fix(eyes, k)
            for k in range(30):
                problem.fix(marks, k)
            problem.minimize(device=HOST, function_tolerance=1e-18, max_iterations=300)
            np.testing.assert_allclose(problem.values(lenses)[:, :4], own[:, :4], rtol=1e-6)


def test_planes_and_lines_are_manifolds_of_parts():
    problem = solve.Problem()
    pose = problem.add_blocks("pose", [[0, 0, 0, 1, 0, 0, 0]], "se3")
    plane = problem.add_blocks("plane", [[0.1, 0.0, np.sqrt(0.99), 1.5]], "sphere2 x euclidean")
    problem.add_factors("se3_point_on_plane", (pose, plane), [[0, 0]] * 4, [[0, 0, 2], [1, 0, 2], [0, 1, 2], [1, 1, 2]],
                        standard_deviations=[0.1])
    problem.fix(pose, 0)
    problem.minimize(device=HOST)
    np.testing.assert_allclose(problem.values(plane), [[0, 0, 1, 2]], atol=1e-7)
    for manifold in ("sphere2 x nothing", "euclidean x so2", "euclidean:x", "sphere2 x"):
        with pytest.raises(ls.InputError, match="manifold"):
            problem.add_blocks("wrong", [[0.0] * 4], manifold)


def test_a_body_at_rest_that_is_weighed():
    """Preintegration of a body that turns about the vertical and feels gravity alone: closed forms."""
    rate, seconds, count = 0.8, 0.005, 200
    log = solve.ImuPreintegration(1e-3, 1e-2)
    log.add(np.tile([0, 0, rate], (count, 1)), np.tile([0, 0, 9.81], (count, 1)), seconds)
    time = seconds * count
    assert log.seconds == pytest.approx(time)
    np.testing.assert_allclose(log.rotation, [np.cos(rate * time / 2), 0, 0, np.sin(rate * time / 2)], atol=1e-12)
    np.testing.assert_allclose(log.velocity, [0, 0, 9.81 * time], atol=1e-10)
    np.testing.assert_allclose(log.position, [0, 0, 9.81 * time ** 2 / 2], atol=1e-10)
    assert log.covariance[2, 2] == pytest.approx(1e-6 * time) and log.bias_jacobian[2, 2] == pytest.approx(-time)
    problem = solve.Problem()
    turn = [np.cos(rate * time / 2), 0, 0, np.sin(rate * time / 2)]
    poses = problem.add_blocks("poses", [[0, 0, 0, 1, 0, 0, 0], [0.1, 0, 0, 1, 0, 0, 0]], "se3")
    speeds, biases = problem.add_blocks("speeds", np.zeros((2, 3))), problem.add_blocks("biases", np.zeros((1, 6)))
    problem.add_factors("imu_preintegrated", (poses, speeds, biases, poses, speeds), [[0, 0, 0, 1, 1]], [log.row([0, 0, -9.81])])
    problem.fix(poses, 0), problem.fix(speeds, 0), problem.fix(biases, 0)
    assert problem.minimize(device=HOST).final_cost < 1e-12
    np.testing.assert_allclose(problem.values(poses)[1], [0, 0, 0, *turn], atol=1e-7)


def test_wrong_factors_are_refused():
    problem = solve.Problem()
    poses = problem.add_blocks("poses", [[0, 0, 0], [1, 0, 0]], "se2")
    add = lambda name="se2_between", z=((1, 0, 0),), **weight: problem.add_factors(name, (poses, poses), [[0, 1]], z, **weight)  # noqa: E731
    for work, text in ((lambda: add("se2"), "factor 'se2'"), (lambda: add(), "0 of standard_deviations, covariance, information"),
                       (lambda: add(standard_deviations=[1, 1, 1], covariance=np.eye(3)), "2 of standard_deviations"),
                       (lambda: add(standard_deviations=[1, 1]), "standard_deviations of shape"),
                       (lambda: add(covariance=-np.eye(3)), "not positive definite"),
                       (lambda: add(z=[[1, 0]], standard_deviations=[1, 1, 1]), "measured"),
                       (lambda: solve.ImuPreintegration(0, 1), "noise density 0"),
                       (lambda: solve.ImuPreintegration(1, 1).add([[0, 0, 0]], [[0, 0, 0]] * 2, 1), "1 rates, 2 accelerations")):
        with pytest.raises(ls.InputError, match=text):
            work()
    assert solve.factors()["se3_between_log"] == {"name": "se3_between_log", "slots": [7, 7], "measured": 7, "errors": 6}
