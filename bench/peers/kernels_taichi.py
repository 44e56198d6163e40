"""The example programs in Taichi (`pip install taichi numpy`), on its CPU or CUDA: one line of milliseconds each.

For comparison: `example_life bench --device cpu`, and so on. The same work, checked against NumPy: life on a torus, a matrix
product (on CUDA by shared tiles too), Fourier transforms of 1024 (on CUDA in groups of lanes with shared arrays too), heat in
a rod with a step that grows, an iterated logistic map, and particles with a histogram, CSR neighbours and a gather.
"""
import argparse
import sys
import time

import numpy as np
import taichi as ti


clock = time.perf_counter
together = 1  # calls before the device is waited for
on_gpu = False


def best(run, repeats):
    run()
    ti.sync()
    times = []
    for _ in range(repeats):
        begin = clock()
        for _ in range(together):
            run()
        ti.sync()
        times.append((clock() - begin) / together)
    return min(times), float(np.median(times))


def show(name, size, times, flops=0.0):
    rate = f"{flops / times[1] / 1e9:9.1f} GFLOP/s" if flops else ""
    print(f"{name:<20} {size:>12} median {times[1] * 1e3:10.4f} ms, least {times[0] * 1e3:10.4f} ms {rate}", flush=True)


@ti.kernel
def life(cells: ti.types.ndarray(ti.u32, ndim=2), to: ti.types.ndarray(ti.u32, ndim=2)):
    for y, x in ti.ndrange(cells.shape[0], cells.shape[1]):
        n = ti.u32(0)
        for dy, dx in ti.static(ti.ndrange((-1, 2), (-1, 2))):
            if ti.static(dy != 0 or dx != 0):
                r, c = y + dy, x + dx
                r = ti.select(r < 0, r + cells.shape[0], ti.select(r >= cells.shape[0], r - cells.shape[0], r))
                c = ti.select(c < 0, c + cells.shape[1], ti.select(c >= cells.shape[1], c - cells.shape[1], c))
                n += cells[r, c]
        to[y, x] = ti.cast(n == 3 or (n == 2 and cells[y, x] == 1), ti.u32)


def run_life(side):
    a = (np.random.default_rng(1).random((side, side)) < 0.5).astype(np.uint32)
    cells, to = ti.ndarray(ti.u32, (side, side)), ti.ndarray(ti.u32, (side, side))
    cells.from_numpy(a)
    times = best(lambda: life(cells, to), 30)
    n = sum(np.roll(a, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)
    assert np.array_equal(to.to_numpy(), ((n == 3) | ((n == 2) & (a == 1))).astype(np.uint32))
    show("life", f"{side}x{side}", times)


@ti.kernel
def matmul(a: ti.types.ndarray(ti.f32, ndim=2), b: ti.types.ndarray(ti.f32, ndim=2),
           c: ti.types.ndarray(ti.f32, ndim=2)):
    for i, j in ti.ndrange(c.shape[0], c.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


TILE, BLOCK = 16, 4  # steps of k in shared memory; rows and columns of a lane
SIDE_OF_GROUP = 16
WIDE = SIDE_OF_GROUP * BLOCK


@ti.kernel
def tiled_matmul(a: ti.types.ndarray(ti.f32, ndim=2), b: ti.types.ndarray(ti.f32, ndim=2),
                 c: ti.types.ndarray(ti.f32, ndim=2)):
    """64 x 64 of c by 256 lanes, 4 x 4 each; sizes are multiples of 64."""
    across = c.shape[1] // WIDE
    ti.loop_config(block_dim=SIDE_OF_GROUP * SIDE_OF_GROUP)
    for t in range(c.shape[0] * c.shape[1] // (BLOCK * BLOCK)):
        left = ti.simt.block.SharedArray((TILE * WIDE,), ti.f32)
        right = ti.simt.block.SharedArray((TILE * WIDE,), ti.f32)
        lane = t % (SIDE_OF_GROUP * SIDE_OF_GROUP)
        group = t // (SIDE_OF_GROUP * SIDE_OF_GROUP)
        tx, ty = lane % SIDE_OF_GROUP, lane // SIDE_OF_GROUP
        row0, column0 = group // across * WIDE, group % across * WIDE
        sums = ti.Matrix.zero(ti.f32, BLOCK, BLOCK)
        for step in range(a.shape[1] // TILE):
            for p in ti.static(range(TILE * WIDE // (SIDE_OF_GROUP * SIDE_OF_GROUP))):
                e = lane + p * (SIDE_OF_GROUP * SIDE_OF_GROUP)
                left[e % TILE * WIDE + e // TILE] = a[row0 + e // TILE, step * TILE + e % TILE]
                right[e] = b[step * TILE + e // WIDE, column0 + e % WIDE]
            ti.simt.block.sync()
            for k in range(TILE):
                x = ti.Vector([left[k * WIDE + ty * BLOCK + i] for i in range(BLOCK)])
                y = ti.Vector([right[k * WIDE + tx + j * SIDE_OF_GROUP] for j in range(BLOCK)])
                for i, j in ti.static(ti.ndrange(BLOCK, BLOCK)):
                    sums[i, j] += x[i] * y[j]
            ti.simt.block.sync()
        for i, j in ti.static(ti.ndrange(BLOCK, BLOCK)):
            c[row0 + ty * BLOCK + i, column0 + tx + j * SIDE_OF_GROUP] = sums[i, j]


def run_matmul(n):
    rng = np.random.default_rng(1)
    arrays = [ti.ndarray(ti.f32, (n, n)) for _ in range(3)]
    x, y = (rng.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(2))
    arrays[0].from_numpy(x)
    arrays[1].from_numpy(y)
    for name, product in [("matmul", matmul)] + [("matmul, tiles", tiled_matmul)] * on_gpu:
        arrays[2].fill(0)
        times = best(lambda: product(*arrays), 5)
        assert np.abs(arrays[2].to_numpy() - x @ y).max() < 1e-3, name
        show(name, f"{n}x{n}x{n}", times, 2.0 * n**3)


LENGTH = 1024
LANES = LENGTH // 4


@ti.func
def times(a, b):
    return ti.Vector([a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]])


@ti.func
def butterfly(v0, v1, v2, v3):
    a, b, c, d = v0 + v2, v0 - v2, v1 + v3, v1 - v3
    i = ti.Vector([d[1], -d[0]])
    return a + c, b + i, a - c, b - i


@ti.kernel
def fft_pass(x: ti.types.ndarray(ti.math.vec2, ndim=2), roots: ti.types.ndarray(ti.math.vec2, ndim=1),
             y: ti.types.ndarray(ti.math.vec2, ndim=2), done: ti.i32):
    """One pass of Stockham's form, radix 4, for all transforms."""
    for n, j in ti.ndrange(x.shape[0], LANES):
        k = j % done
        to = (j - k) * 4 + k
        step = LANES // done
        o0, o1, o2, o3 = butterfly(x[n, j], times(x[n, j + LANES], roots[k * step]),
                                   times(x[n, j + 2 * LANES], roots[k * 2 * step]),
                                   times(x[n, j + 3 * LANES], roots[k * 3 * step]))
        y[n, to], y[n, to + done], y[n, to + 2 * done], y[n, to + 3 * done] = o0, o1, o2, o3


@ti.kernel
def fft_groups(x: ti.types.ndarray(ti.math.vec2, ndim=2), roots: ti.types.ndarray(ti.math.vec2, ndim=1),
               y: ti.types.ndarray(ti.math.vec2, ndim=2)):
    """All five passes of a transform by 256 lanes, through shared memory."""
    ti.loop_config(block_dim=LANES)
    for t in range(x.shape[0] * LANES):
        re, im = ti.simt.block.SharedArray((LENGTH,), ti.f32), ti.simt.block.SharedArray((LENGTH,), ti.f32)
        n, j = t // LANES, t % LANES
        v0, v1, v2, v3 = x[n, j], x[n, j + LANES], x[n, j + 2 * LANES], x[n, j + 3 * LANES]
        for p in ti.static(range(5)):
            done = ti.static(4**p)
            k = j % done
            to = (j - k) * 4 + k
            if ti.static(p > 0):
                v1 = times(v1, roots[k * ti.static(LANES // 4**p)])
                v2 = times(v2, roots[k * ti.static(2 * (LANES // 4**p))])
                v3 = times(v3, roots[k * ti.static(3 * (LANES // 4**p))])
            v0, v1, v2, v3 = butterfly(v0, v1, v2, v3)
            if ti.static(p == 4):
                y[n, to], y[n, to + done], y[n, to + 2 * done], y[n, to + 3 * done] = v0, v1, v2, v3
            else:
                ti.simt.block.sync()
                re[to], re[to + done], re[to + 2 * done], re[to + 3 * done] = v0[0], v1[0], v2[0], v3[0]
                im[to], im[to + done], im[to + 2 * done], im[to + 3 * done] = v0[1], v1[1], v2[1], v3[1]
                ti.simt.block.sync()
                v0, v1 = ti.Vector([re[j], im[j]]), ti.Vector([re[j + LANES], im[j + LANES]])
                v2, v3 = (ti.Vector([re[j + 2 * LANES], im[j + 2 * LANES]]),
                          ti.Vector([re[j + 3 * LANES], im[j + 3 * LANES]]))


def run_fft(batch):
    rng = np.random.default_rng(1)
    numbers = rng.uniform(-1, 1, (batch, LENGTH, 2)).astype(np.float32)
    angles = -2 * np.pi * np.arange(LENGTH) / LENGTH
    x, a, b = (ti.ndarray(ti.math.vec2, (batch, LENGTH)) for _ in range(3))
    roots = ti.ndarray(ti.math.vec2, LENGTH)
    x.from_numpy(numbers)
    roots.from_numpy(np.stack((np.cos(angles), np.sin(angles)), 1).astype(np.float32))
    expected = np.fft.fft(numbers[:64, :, 0] + 1j * numbers[:64, :, 1].astype(np.float64))

    def passes():
        fft_pass(x, roots, a, 1)
        fft_pass(a, roots, b, 4)
        fft_pass(b, roots, a, 16)
        fft_pass(a, roots, b, 64)
        fft_pass(b, roots, a, 256)

    for name, run in [("fft, passes", passes)] + [("fft, groups", lambda: fft_groups(x, roots, a))] * on_gpu:
        a.fill(0)
        times_taken = best(run, 10)
        got = a.to_numpy()[:64]
        got = got[..., 0] + 1j * got[..., 1]
        assert np.abs(got - expected).max() < 1e-5 * np.abs(expected).max(), name
        show(name, f"{batch}x{LENGTH}", times_taken, 50.0 * LENGTH * batch)


@ti.kernel
def logistic(start: ti.types.ndarray(ti.f32, ndim=1), x: ti.types.ndarray(ti.f32, ndim=1), steps: ti.i32):
    for i in range(x.shape[0]):
        v = start[i]
        for _ in range(steps):
            v = 3.7 * v * (1.0 - v)
        x[i] = v


def run_logistic(n):
    start = ((np.arange(n) + 0.5) / n).astype(np.float32)
    a, b = ti.ndarray(ti.f32, n), ti.ndarray(ti.f32, n)
    a.from_numpy(start)
    times_taken = best(lambda: logistic(a, b, 20), 20)
    v = start.astype(np.float64)
    for _ in range(20):
        v = 3.7 * v * (1 - v)
    assert np.abs(b.to_numpy() - v).max() < 0.1  # chaos magnifies f32's roundings
    show("logistic map", str(n), times_taken)


@ti.kernel
def heat(t: ti.types.ndarray(ti.f32, ndim=1), to: ti.types.ndarray(ti.f32, ndim=1), step: ti.f32, left: ti.f32,
         right: ti.f32):
    n = t.shape[0]
    for i in range(n):
        a = left if i == 0 else t[ti.max(i - 1, 0)]
        b = right if i == n - 1 else t[ti.min(i + 1, n - 1)]
        to[i] = t[i] + step * (a - 2.0 * t[i] + b)


def run_rod(n, steps=50):
    start = (np.arange(n) % 17 / 16).astype(np.float32)
    a, b = ti.ndarray(ti.f32, n), ti.ndarray(ti.f32, n)

    def run():
        for k in range(steps):
            step = 0.4 * (k + 1) / steps
            heat(a, b, step, 1.0, -0.5)
            heat(b, a, step, 1.0, -0.5)

    a.from_numpy(start)
    run()
    t = start.astype(np.float64)
    for k in range(2 * steps):
        padded = np.concatenate(([1.0], t, [-0.5]))
        t = t + 0.4 * (k // 2 + 1) / steps * (padded[:-2] - 2 * t + padded[2:])
    assert np.abs(a.to_numpy() - t).max() < 1e-5
    low, middle = best(run, 10)
    show("rod, one step", str(n), (low / (2 * steps), middle / (2 * steps)))


SIDE = 32
CELLS = SIDE * SIDE


@ti.func
def along(v):
    return ti.min(ti.max(ti.cast(ti.floor(v * SIDE), ti.i32), 0), SIDE - 1)


@ti.kernel
def count(x: ti.types.ndarray(ti.f32, ndim=2), cell: ti.types.ndarray(ti.i32, ndim=1),
          counts: ti.types.ndarray(ti.i32, ndim=1)):
    for k in range(counts.shape[0]):
        counts[k] = 0
    for i in range(x.shape[0]):
        c = along(x[i, 1]) * SIDE + along(x[i, 0])
        cell[i] = c
        ti.atomic_add(counts[c], 1)


@ti.kernel
def scan(of: ti.types.ndarray(ti.i32, ndim=1), to: ti.types.ndarray(ti.i32, ndim=1)):
    ti.loop_config(serialize=True)
    for k in range(of.shape[0]):
        to[k + 1] = to[k] + of[k]


@ti.kernel
def sort(cell: ti.types.ndarray(ti.i32, ndim=1), cursor: ti.types.ndarray(ti.i32, ndim=1),
         order: ti.types.ndarray(ti.i32, ndim=1)):
    for i in range(cell.shape[0]):
        order[ti.atomic_add(cursor[cell[i]], 1)] = i


@ti.kernel
def near(x: ti.types.ndarray(ti.f32, ndim=2), first: ti.types.ndarray(ti.i32, ndim=1),
         order: ti.types.ndarray(ti.i32, ndim=1), row: ti.types.ndarray(ti.i32, ndim=1),
         columns: ti.types.ndarray(ti.i32, ndim=1), fill: ti.template()):
    for i in range(x.shape[0]):
        cx, cy = along(x[i, 0]), along(x[i, 1])
        n = 0
        for y in range(ti.max(cy - 1, 0), ti.min(cy + 2, SIDE)):
            for e in range(first[y * SIDE + ti.max(cx - 1, 0)], first[y * SIDE + ti.min(cx + 1, SIDE - 1) + 1]):
                j = order[e]
                dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                if j != i and dx * dx + dy * dy < (1.0 / SIDE)**2:
                    if ti.static(fill):
                        columns[row[i] + n] = j
                    n += 1
        if ti.static(not fill):
            columns[i] = n


@ti.kernel
def gather(row: ti.types.ndarray(ti.i32, ndim=1), columns: ti.types.ndarray(ti.i32, ndim=1),
           mass: ti.types.ndarray(ti.f32, ndim=1), sums: ti.types.ndarray(ti.f32, ndim=1)):
    for i in range(sums.shape[0]):
        s = 0.0
        for e in range(row[i], row[i + 1]):
            s += mass[columns[e]]
        sums[i] = s


def run_particles(n):
    rng = np.random.default_rng(1)
    places, masses = rng.random((n, 2)).astype(np.float32), rng.integers(0, 1000, n).astype(np.float32)
    x, mass, sums = ti.ndarray(ti.f32, (n, 2)), ti.ndarray(ti.f32, n), ti.ndarray(ti.f32, n)
    x.from_numpy(places)
    mass.from_numpy(masses)
    cell, order, degrees = (ti.ndarray(ti.i32, n) for _ in range(3))
    counts, first, cursor = ti.ndarray(ti.i32, CELLS), ti.ndarray(ti.i32, CELLS + 1), ti.ndarray(ti.i32, CELLS + 1)
    row, columns = ti.ndarray(ti.i32, n + 1), ti.ndarray(ti.i32, 100 * n)

    def run():
        count(x, cell, counts)
        scan(counts, first)
        cursor.copy_from(first)
        sort(cell, cursor, order)
        near(x, first, order, row, degrees, False)
        scan(degrees, row)
        near(x, first, order, row, columns, True)
        gather(row, columns, mass, sums)

    times = best(run, 20)
    few = min(n, 2000)
    apart = places[:few, None] - places[None]
    close = ((apart**2).sum(-1) < np.float32(1.0 / SIDE)**2) & (np.arange(few)[:, None] != np.arange(n)[None])
    assert np.abs(sums.to_numpy()[:few] - close @ masses).max() <= 2000  # a pair at the edge of the radius may differ
    show("particles", str(n), times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: all")
    parser.add_argument("--cpu-time", action="store_true", help="of the process, for one thread on a busy machine")
    parser.add_argument("--small", action="store_true", help="a matrix of 256, 64 transforms, 2000 particles")
    parser.add_argument("--arch", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--together", type=int, default=0, help="calls before a wait for the device (cpu 1, cuda 20)")
    options = parser.parse_args()
    global clock, together, on_gpu
    on_gpu = options.arch == "cuda"
    together = options.together or (20 if options.arch == "cuda" else 1)
    clock = time.process_time if options.cpu_time else time.perf_counter
    ti.init(arch=getattr(ti, options.arch), offline_cache=False, log_level=ti.ERROR, fast_math=False,
            **({"cpu_max_num_threads": options.threads} if options.threads else {}))
    print(f"Taichi {'.'.join(map(str, ti.__version__))}, {options.arch}")
    failed = False
    for run, size in [(run_life, 1024), (run_matmul, 256 if options.small else 512),
                      (run_fft, 64 if options.small else 4096), (run_rod, 65536), (run_logistic, 1 << 20),
                      (run_particles, 2000 if options.small else 20000)]:
        try:
            run(size)
        except Exception as error:  # the others are timed all the same
            failed = True
            print(f"{run.__name__}: {error!r}", flush=True)
    return 1 if failed else 0


sys.exit(main())
