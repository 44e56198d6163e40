#!/usr/bin/env python3
"""The window of bench_solve_window by GTSAM's fixed-lag smoothers: the same edges, lag and deviations.

  pip install gtsam
  build/bin/bench_solve_window 2000 scene.txt && bench/window/gtsam_window.py scene.txt
Prints for each smoother the median of a frame's milliseconds, the making of its factors in Python not counted, and the last
frame's position. GTSAM takes one Gauss-Newton step a frame (incremental) or iterates (batch).
"""
import sys
import time

import gtsam
import numpy as np

WINDOW = 20


def main():
    edges = {}
    for line in open(sys.argv[1]):
        numbers = line.split()
        edges.setdefault(int(numbers[1]), []).append((int(numbers[0]), [float(v) for v in numbers[2:]]))
    noise = gtsam.noiseModel.Diagonal.Sigmas(np.array([0.005] * 3 + [0.02] * 3))
    for name, make in (("incremental", lambda: gtsam.IncrementalFixedLagSmoother(WINDOW)),
                       ("batch", lambda: gtsam.BatchFixedLagSmoother(WINDOW))):
        smoother, last, spent = make(), gtsam.Pose3(), []
        for frame in range(max(edges) + 1):
            graph, values, stamps = gtsam.NonlinearFactorGraph(), gtsam.Values(), {frame: float(frame)}
            if frame == 0:
                graph.push_back(gtsam.PriorFactorPose3(0, last, noise))
            for k, (before, z) in enumerate(edges.get(frame, [])):
                move = gtsam.Pose3(gtsam.Rot3.Quaternion(*z[3:]), np.array(z[:3]))
                graph.push_back(gtsam.BetweenFactorPose3(before, frame, move, noise))
                last = last.compose(move) if k == 0 else last
            values.insert(frame, last)
            begin = time.perf_counter()
            smoother.update(graph, values, stamps)
            last = smoother.calculateEstimatePose3(frame)
            spent.append(1000 * (time.perf_counter() - begin))
        print(f"{name}: {np.median(spent[WINDOW:]):.3f} ms a frame, last at", *(f"{v:.9f}" for v in last.translation()))


if __name__ == "__main__":
    main()
