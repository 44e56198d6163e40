#!/usr/bin/env python3
"""The graph of bench_solve_incremental by GTSAM's iSAM2: the same edges, one update a pose.

  pip install gtsam
  build/bin/bench_solve_incremental manhattan scene.txt && bench/window/gtsam_incremental.py scene.txt [THRESHOLD [SKIP]]
Prints the total of the updates' seconds and of their CPU time, their median and slowest milliseconds, the making of factors in Python not counted,
and the cost at the end. Without THRESHOLD: GTSAM's defaults, 0.1 and every tenth update.
"""
import sys
import time

import gtsam
import numpy as np


def main():
    rows = [[float(v) for v in line.split()] for line in open(sys.argv[1])]
    flat = len(rows[0]) == 2 + 3 + 9
    parameters = gtsam.ISAM2Params()
    if len(sys.argv) > 2:
        parameters.setRelinearizeThreshold(float(sys.argv[2]))
        parameters.relinearizeSkip = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    smoother = gtsam.ISAM2(parameters)
    origin = gtsam.Pose2() if flat else gtsam.Pose3()
    noise = gtsam.noiseModel.Constrained.All(3 if flat else 6)
    everything = gtsam.NonlinearFactorGraph()
    last, spent, at, cpu = origin, [], 0, 0.0
    turn = [0, 1, 2] if flat else [3, 4, 5, 0, 1, 2]  # GTSAM has rotations first
    while at < len(rows):
        k = int(max(rows[at][:2]))
        graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
        if not spent:
            graph.push_back((gtsam.PriorFactorPose2 if flat else gtsam.PriorFactorPose3)(0, origin, noise))
            values.insert(0, origin)
        guess = last
        while at < len(rows) and int(max(rows[at][:2])) == k:
            i, j = int(rows[at][0]), int(rows[at][1])
            z = rows[at][2:5] if flat else rows[at][2:9]
            move = gtsam.Pose2(*z) if flat else gtsam.Pose3(gtsam.Rot3.Quaternion(*z[3:]), np.array(z[:3]))
            n = 3 if flat else 6
            information = np.array(rows[at][-n * n:]).reshape(n, n)[np.ix_(turn, turn)]
            model = gtsam.noiseModel.Gaussian.Information(information)
            graph.push_back((gtsam.BetweenFactorPose2 if flat else gtsam.BetweenFactorPose3)(i, j, move, model))
            if i == k - 1:
                guess = last.compose(move)
            at += 1
        values.insert(k, guess)
        everything.push_back(graph)
        begin, ticks = time.perf_counter(), time.process_time()
        smoother.update(graph, values)
        last = smoother.calculateEstimatePose2(k) if flat else smoother.calculateEstimatePose3(k)
        spent.append(1000 * (time.perf_counter() - begin))
        cpu += time.process_time() - ticks
    cost = everything.error(smoother.calculateBestEstimate())
    print(f"gtsam: {len(spent)} updates, {sum(spent) / 1000:.3f} s, {cpu:.3f} s of CPU, median {np.median(spent):.3f} ms, "
          f"slowest {max(spent):.1f} ms, cost {cost:.9f}")


if __name__ == "__main__":
    main()
