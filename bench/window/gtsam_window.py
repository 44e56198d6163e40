#!/usr/bin/env python3
"""The window of bench_solve_window by GTSAM's fixed-lag smoothers: the same measurements, lag and deviations.

  pip install gtsam
  build/bin/bench_solve_window 2000 scene.txt [landmarks] && bench/window/gtsam_window.py scene.txt
Prints for each smoother the medians of a frame's milliseconds and of its milliseconds of CPU time past the first 40 frames, the making
of its factors in Python not counted, and the last frame's position. GTSAM takes one Gauss-Newton step a frame (incremental) or iterates
(batch).
"""
import sys
import time

import gtsam
import numpy as np

WINDOW = 20
MARKS = 1 << 32  # keys of landmarks
POINT = 0.05


def point_factor(pose, mark, z):
    """The landmark in the frame of the pose by bearing and range: the same point, with a standard deviation of POINT along each axis at
    its distance."""
    distance = float(np.linalg.norm(z))
    noise = gtsam.noiseModel.Diagonal.Sigmas(np.array([POINT / distance, POINT / distance, POINT]))
    return gtsam.BearingRangeFactor3D(pose, mark, gtsam.Unit3(z), distance, noise)


def main():
    edges, sights = {}, {}
    for line in open(sys.argv[1]):
        words = line.split()
        if words[0] == "L":
            sights.setdefault(int(words[1]), []).append((int(words[2]), np.array([float(v) for v in words[3:]])))
        else:
            edges.setdefault(int(words[1]), []).append((int(words[0]), [float(v) for v in words[2:]]))
    noise = gtsam.noiseModel.Diagonal.Sigmas(np.array([0.005] * 3 + [0.02] * 3))
    for name, make in (("incremental", lambda: gtsam.IncrementalFixedLagSmoother(WINDOW)),
                       ("batch", lambda: gtsam.BatchFixedLagSmoother(WINDOW))):
        smoother, last, spent, cpu, known = make(), gtsam.Pose3(), [], [], set()
        for frame in range(max(edges) + 1):
            graph, values, stamps = gtsam.NonlinearFactorGraph(), gtsam.Values(), {frame: float(frame)}
            if frame == 0:
                graph.push_back(gtsam.PriorFactorPose3(0, last, noise))
            for k, (before, z) in enumerate(edges.get(frame, [])):
                move = gtsam.Pose3(gtsam.Rot3.Quaternion(*z[3:]), np.array(z[:3]))
                graph.push_back(gtsam.BetweenFactorPose3(before, frame, move, noise))
                last = last.compose(move) if k == 0 else last
            for mark, z in sights.get(frame, []):
                graph.push_back(point_factor(frame, MARKS + mark, z))
                stamps[MARKS + mark] = float(frame)
                if mark not in known:
                    known.add(mark)
                    values.insert(MARKS + mark, last.transformFrom(z))
            values.insert(frame, last)
            begin, ticks = time.perf_counter(), time.process_time_ns()
            smoother.update(graph, values, stamps)
            last = smoother.calculateEstimatePose3(frame)
            cpu.append(1e-6 * (time.process_time_ns() - ticks))
            spent.append(1000 * (time.perf_counter() - begin))
        late = slice(2 * WINDOW, None)
        print(f"{name}: {np.median(spent[late]):.4f} ms a frame, {np.median(cpu[late]):.4f} ms of CPU, last at",
              *(f"{v:.9f}" for v in last.translation()), flush=True)


if __name__ == "__main__":
    main()
