"""Prints digests of what the native CPU device computes with the kernels of tests/web/kernels.mjs, as JSON. A kernel here and the one
of the same name there are written apart, with the words of their languages."""
import hashlib
import json
import sys

import numpy as np

import lockstep as ls

device = ls.Device("cpu")
COUNT, ROWS, COLUMNS = 1003, 37, 53


def words(count, seed):
    """The same 32-bit words in both languages."""
    k = np.arange(count, dtype=np.uint64) + np.uint64(seed)
    w = (k * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    w ^= w >> np.uint64(15)
    return ((w * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def floats(count, seed):
    """In [-2, 2), exact in f32."""
    return ((words(count, seed) >> 8).astype(np.float64) * 2.0**-22 - 2).astype(np.float32)


@ls.kernel
def heat(at, t: ls.Grid[ls.f32, 2], out: ls.Out[ls.f32, 2], a: ls.f32):
    around = t[at.x(1)] + t[at.x(-1)] + t.periodic()[at.y(1)] + t.zero()[at.y(-1)]
    out[at] = t[at] + a * (around - t[at] * 4)


@ls.kernel
def functions(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 2]):
    v = x[at.x]
    for k, f in enumerate((ls.exp(v), ls.sin(v * 100), ls.log(ls.abs(v) + 1), ls.pow(ls.abs(v), 1.7), ls.tanh(v), ls.erf(v),
                           ls.atan2(v, 0.3), ls.hypot(v, 2), ls.rint(v * 3), ls.fma(v, v, -1), v ** 3, ls.sqrt(ls.abs(v)))):
        out[k, at] = f


@ls.kernel
def doubles(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f64, 1]):
    v = ls.cast(ls.f64, x[at])
    out[at] = ls.exp(v) * ls.cos(v) + v / 3 - ls.fma(v, 0.1, v)


@ls.kernel
def escape(at, out: ls.Out[ls.i32, 2], limit: ls.i32):
    cx = ls.cast(ls.f32, at.x) * 0.0625 - 2
    cy = ls.cast(ls.f32, at.y) * 0.0625 - 1
    x, y, n = ls.var(0.0), ls.var(0.0), ls.var(0)
    with ls.while_(lambda: (n < limit) & (x * x + y * y < 4)):
        next_x = x * x - y * y + cx
        y.set(x * 2 * y + cy)
        x.set(next_x)
        n += 1
    with ls.if_(n == limit):
        out[at] = -1
    with ls.else_():
        out[at] = n


@ls.kernel
def bits(at, x: ls.Grid[ls.u32, 1], out: ls.Out[ls.u32, 1]):
    h = ls.var(x[at])
    for i in ls.for_(1, 9, 2):
        h.set((h ^ (h >> 13)) * 1540483477 + ls.cast(ls.u32, i))
        with ls.if_(h % 7 == 3):
            ls.continue_()
        h.set(h | (h << 5))
    out[at] = h ^ ls.popcount(h)


@ls.kernel
def gathered(at, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
    last = ls.local(ls.f32, 4)
    for k in range(4):
        last[k] = x.clamped()[at.x * 3 - 5 + k]
    total = ls.var(0.0)
    for i in ls.for_(4):
        total += ls.where(last[i] > 0.5, last[i], last[i] * 0.25)
    out[at] = total + ls.bitcast(ls.f32, (ls.bitcast(ls.u32, x[at]) & 0xFF) | 0x3F800000)


@ls.kernel
def counted(at, x: ls.Grid[ls.u32, 1], out: ls.InOut[ls.u32, 1]):
    out.atomic_add(ls.cast(ls.i32, x[at] % 16), 1)


@ls.kernel(group=(64,))
def sums(group, x: ls.Grid[ls.f32, 1], out: ls.Out[ls.f32, 1]):
    shared = ls.shared(ls.f32, 64)
    lane = group.lane()
    shared[lane] = x.zero()[group.global_()]
    ls.barrier()
    out[group.id() * 64 + lane] = ls.group_sum(shared[63 - lane] * shared[lane]) + shared[63 - lane]


def main():
    x, w = floats(COUNT, 7), words(COUNT, 99)
    t = floats(ROWS * COLUMNS, 1).reshape(ROWS, COLUMNS)
    results = {}

    def keep(name, array):
        results[name] = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

    def run(kernel, extent, inputs, out, *numbers):
        out = ls.asarray(out, device, copy=True)
        kernel[device, extent](*(ls.asarray(i, device, copy=True) for i in inputs), out, *numbers)
        keep(kernel.name, out.numpy())

    run(heat, (ROWS, COLUMNS), [t], np.zeros_like(t), 0.1)
    run(functions, (COUNT,), [x], np.zeros((12, COUNT), np.float32))
    run(doubles, (COUNT,), [x], np.zeros(COUNT, np.float64))
    run(escape, (ROWS, COLUMNS), [], np.zeros((ROWS, COLUMNS), np.int32), 60)
    run(bits, (COUNT,), [w], np.zeros(COUNT, np.uint32))
    run(gathered, (COUNT,), [x], np.zeros(COUNT, np.float32))
    run(counted, (COUNT,), [w], np.zeros(16, np.uint32))
    run(sums, (16,), [x], np.zeros(1024, np.float32))
    results["device"] = device.info["description"] if isinstance(device.info, dict) else str(device.info)
    json.dump(results, sys.stdout)


main()
