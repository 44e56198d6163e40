#!/usr/bin/env python3
"""A pose graph of torus3D's size, the same at every call: 5,000 poses in 50 turns around a torus, 9,048 noisy edges.

usage: torus_graph.py OUT.g2o
"""
import math
import random
import sys

POSES, AROUND, EDGES = 5000, 100, 9048


def multiply(a, b):
    return [a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]]


def conjugate(q):
    return [q[0], -q[1], -q[2], -q[3]]


def rotate(q, v):
    return multiply(multiply(q, [0] + v), conjugate(q))[1:]


def disturbed(q, sigma):
    r = multiply(q, [1] + [random.gauss(0, sigma) for _ in range(3)])
    size = math.sqrt(sum(x * x for x in r))
    return [x / size for x in r]


def pose(i):
    u, v = 2 * math.pi * i / POSES, 2 * math.pi * (i % AROUND) / AROUND
    r = 10 + 4 * math.cos(v)
    return [r * math.cos(u), r * math.sin(u), 4 * math.sin(v)], [math.cos(u / 2), 0, 0, math.sin(u / 2)]


def text(t, q):
    return " ".join("%.9g" % x for x in t + q[1:] + q[:1])


def main():
    random.seed(1)
    poses = [pose(i) for i in range(POSES)]
    edges = [(i, i + 1) for i in range(POSES - 1)]
    closures = [(i, i + AROUND) for i in range(POSES - AROUND)]
    random.shuffle(closures)
    information = " ".join("100" if i == j else "0" for i in range(6) for j in range(i, 6))
    with open(sys.argv[1], "w") as out:
        for i, (t, q) in enumerate(poses):
            start = [x + random.gauss(0, 0.1) for x in t]
            out.write("VERTEX_SE3:QUAT %d %s\n" % (i, text(start, disturbed(q, 0.02))))
        for a, b in edges + closures[:EDGES - len(edges)]:
            (ta, qa), (tb, qb) = poses[a], poses[b]
            t = rotate(conjugate(qa), [y - x for x, y in zip(ta, tb)])
            q = disturbed(multiply(conjugate(qa), qb), 0.03)
            out.write("EDGE_SE3:QUAT %d %d %s %s\n" % (a, b, text([x + random.gauss(0, 0.05) for x in t], q), information))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main()
