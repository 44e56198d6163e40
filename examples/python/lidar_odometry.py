"""The log of a robot's wheels and lidar, generated here, smoothed frame by frame: see examples/lidar_odometry.cpp.

    python examples/python/lidar_odometry.py
"""
import math
import sys

import numpy as np

import lockstep as ls
from lockstep import solve

FRAMES, LAG = 300, 60.0
WHEELS, LIDAR, RANGE = np.array([0.01, 0.01, 0.004]), 0.02, 8.0  # standard deviations; metres


def compose(a, b):
    c, s = math.cos(a[2]), math.sin(a[2])
    return np.array([a[0] + c * b[0] - s * b[1], a[1] + s * b[0] + c * b[1], math.remainder(a[2] + b[2], 2 * math.pi)])


def into_frame(pose, x, y):
    """A point of the world in a pose's frame."""
    c, s = ls.cos(pose[2]), ls.sin(pose[2])
    return c * (x - pose[0]) + s * (y - pose[1]), c * (y - pose[1]) - s * (x - pose[0])


def moved(a, b, z):
    x, y = into_frame(a, b[0], b[1])
    turn = b[2] - a[2] - z[2]
    return (x - z[0]) / WHEELS[0], (y - z[1]) / WHEELS[1], ls.atan2(ls.sin(turn), ls.cos(turn)) / WHEELS[2]


def started(a, z):
    return [(a[k] - z[k]) / WHEELS[k] for k in range(3)]


def seen(pose, point, z):
    x, y = into_frame(pose, point[0], point[1])
    return (x - z[0]) / LIDAR, (y - z[1]) / LIDAR


def main():
    rng = np.random.default_rng(1)
    around = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    reflectors = np.stack([14 * np.cos(around), 9 * np.sin(around)], 1) + rng.random((40, 2))

    smoother = solve.Smoother(lag=LAG, device="cpu")
    poses, points = smoother.add_set("poses", "se2"), smoother.add_set("reflectors", size=2)
    start = smoother.add_kind("start", started, [poses], data=3)
    wheels = smoother.add_kind("wheels", moved, [poses, poses], data=3)
    sight = smoother.add_kind("sight", seen, [poses, points], data=2)

    truth = dead = estimate = np.array([10.0, 0.0, math.pi / 2])
    known, worst, worst_dead = {}, 0.0, 0.0
    for k in range(FRAMES):
        move = np.array([0.2, 0.0, 2 * math.pi / 200 * (1 + 0.5 * math.cos(4 * math.pi * k / 200))])
        measured = move + WHEELS * rng.standard_normal(3)
        if k > 0:
            truth, dead, estimate = compose(truth, move), compose(dead, measured), compose(estimate, measured)
        pose = smoother.append_blocks(poses, estimate, k)
        if k == 0:
            smoother.add_terms(start, [pose], estimate)
        else:
            smoother.add_terms(wheels, [pose - 1, pose], measured)
        c, s = math.cos(truth[2]), math.sin(truth[2])
        left = set(smoother.block_numbers(points))
        for r in np.flatnonzero(np.hypot(*(reflectors - truth[:2]).T) < RANGE):
            z = np.array([[c, s], [-s, c]]) @ (reflectors[r] - truth[:2]) + LIDAR * rng.standard_normal(2)
            if known.get(r) not in left:  # new, or it left the window
                known[r] = smoother.append_blocks(points, compose(estimate, [*z, 0.0])[:2], k)
            smoother.touch(points, known[r], k)
            smoother.add_terms(sight, [pose, known[r]], z)
        smoother.update()
        estimate = smoother.value(poses, pose)
        worst, worst_dead = max(worst, math.dist(estimate[:2], truth[:2])), max(worst_dead, math.dist(dead[:2], truth[:2]))
    deviation = math.sqrt(np.trace(smoother.covariance([(poses, FRAMES - 1)])[:2, :2]))
    print(f"off the truth: wheels alone {worst_dead:.2f} m, smoothed {worst:.2f} m; "
          f"standard deviation at the end {deviation:.2f} m")
    return 0 if worst < 0.25 * worst_dead else 1


if __name__ == "__main__":
    sys.exit(main())
