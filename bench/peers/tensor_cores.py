"""The order in which tensor cores add, as a program observes it (PyPI torch 2.8 or newer, a GPU with f64 tensor cores).

    python bench/peers/tensor_cores.py [--out FILE]

f64: results of mma.m16n8k16 and m8n8k4 compared bit by bit with chains of fma in every order of four terms and in ascending and descending
order of sixteen, for numbers near 1, of many sizes, of products near the smallest normal number, and with zeros, infinities and NaN.
bf16 and f16 with f32 sums: 1 + x of two products, compared with the sum rounded to nearest. A sum of two numbers has one order, so a result
that differs cannot come from roundings to nearest in any order.
"""
import argparse
import itertools
import json
import pathlib

import torch

SOURCE = r"""
extern "C" __global__ void m884(const double* A, const double* B, const double* C, double* D, int n) {
  const int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32, l = threadIdx.x % 32;
  if (w >= n) return;
  const double a = A[w * 32 + l], b = B[w * 32 + l % 4 * 8 + l / 4];
  const int at = w * 64 + l / 4 * 8 + l % 4 * 2;
  double c0 = C[at], c1 = C[at + 1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
  D[at] = c0, D[at + 1] = c1;
}
extern "C" __global__ void m16816(const double* A, const double* B, const double* C, double* D, int n) {
  const int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32, l = threadIdx.x % 32, g = l / 4, t = l % 4;
  if (w >= n) return;
  double a[8], b[4], c[4];
  for (int i = 0; i < 8; ++i) a[i] = A[w * 256 + (g + 8 * (i % 2)) * 16 + t + 4 * (i / 2)];
  for (int i = 0; i < 4; ++i) b[i] = B[w * 128 + (t + 4 * i) * 8 + g];
  for (int i = 0; i < 4; ++i) c[i] = C[w * 128 + (g + 8 * (i / 2)) * 8 + t * 2 + i % 2];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
    : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
    : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
  for (int i = 0; i < 4; ++i) D[w * 128 + (g + 8 * (i / 2)) * 8 + t * 2 + i % 2] = c[i];
}
extern "C" __global__ void chain(const double* A, const double* B, const double* C, double* D, int n, int m, int k, const int* order) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= n * m * 8) return;
  const int w = e / (m * 8), r = e / 8 % m, j = e % 8;
  double s = C[e];
  for (int q = 0; q < k; ++q) s = __fma_rn(A[w * m * k + r * k + order[q]], B[w * k * 8 + order[q] * 8 + j], s);
  D[e] = s;
}
typedef unsigned u32;
typedef unsigned short u16;
#define NARROW(NAME, TYPE) extern "C" __global__ void NAME(const u16* A, const u16* B, const float* C, float* D) { \
  const int l = threadIdx.x, g = l / 4, t = l % 4; \
  u32 x[4], y[2]; float c[4]; \
  for (int i = 0; i < 4; ++i) x[i] = ((const u32*)A)[(g + 8 * (i % 2)) * 8 + t + 4 * (i / 2)]; \
  for (int i = 0; i < 2; ++i) y[i] = B[(2 * t + 8 * i) * 8 + g] | u32(B[(2 * t + 1 + 8 * i) * 8 + g]) << 16; \
  for (int i = 0; i < 4; ++i) c[i] = C[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2]; \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
  for (int i = 0; i < 4; ++i) D[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = c[i]; }
NARROW(bf16, "bf16")
NARROW(f16, "f16")
"""
COUNT = 1 << 16  # problems of a comparison
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, -5e-324, 2.2e-308, float("inf"), float("-inf"), float("nan"), 1e-160, -1e-160, 1e200]
NUMBERS = ("near 1", "of 61 binary orders", "of 961 binary orders", "with zeros, infinities and NaN", "with products near the smallest normal number")


def numbers(shape, kind, sums=False):
    like = dict(dtype=torch.float64, device="cuda")
    x = torch.randn(shape, **like)
    if kind in (1, 2):
        x *= torch.exp2(torch.randint(-30, 31, shape, device="cuda").double())
    if kind == 2:
        x *= torch.exp2(torch.randint(-450, 451, shape, device="cuda").double())
    if kind == 3:
        return torch.tensor(SPECIAL, **like)[torch.randint(0, len(SPECIAL), shape, device="cuda")]
    if kind == 4:
        x *= torch.exp2(torch.randint(-540, -480, shape, device="cuda").double()) * (1e-155 if sums else 1)
    return x


def differing(a, b):
    return int(((a.view(torch.int64) != b.view(torch.int64)) & ~(torch.isnan(a) & torch.isnan(b))).sum())


def wide(kernels):
    """{shape: {numbers: {order: differing results}}}, of so many."""
    found = {}
    for name, kernel, m, k, orders in (("m8n8k4", "m884", 8, 4, list(itertools.permutations(range(4)))),
                                       ("m16n8k16", "m16816", 16, 16, [tuple(range(16)), tuple(range(15, -1, -1))])):
        found[name] = {"results": COUNT * m * 8}
        for kind, text in enumerate(NUMBERS):
            a, b, c = numbers((COUNT, m, k), kind), numbers((COUNT, k, 8), kind), numbers((COUNT, m, 8), kind, True)
            own, other, counts = torch.empty_like(c), torch.empty_like(c), {}
            kernels[kernel](grid=(COUNT // 8, 1, 1), block=(256, 1, 1), args=[a, b, c, own, COUNT])
            for order in orders:
                by = torch.tensor(order, dtype=torch.int32, device="cuda")
                kernels["chain"](grid=(COUNT * m * 8 // 256, 1, 1), block=(256, 1, 1), args=[a, b, c, other, COUNT, m, k, by])
                counts["ascending" if order == tuple(range(k)) else " ".join(map(str, order))] = differing(own, other)
            ascending = counts.pop("ascending")
            found[name][text] = {"ascending": ascending, "least of the other orders": min(counts.values())}
    return found


def narrow(kernels):
    rows = []
    for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
        for factor, power in ((1.5, 24), (1.75, 24), (1.5, 23)):
            a, b = torch.zeros(16, 16, dtype=dtype, device="cuda"), torch.zeros(16, 8, dtype=dtype, device="cuda")
            a[:, 0], b[0], a[:, 1], b[1] = 1, 1, factor * 2.0 ** (12 - power), 2.0**-12
            c = torch.zeros(16, 8, device="cuda")
            d = torch.empty_like(c)
            kernels[name](grid=(1, 1, 1), block=(32, 1, 1), args=[a, b, c, d])
            exact = torch.tensor(1 + factor * 2.0**-power, dtype=torch.float64)
            ulps = lambda v: (float(v) - 1) * 2**23
            rows.append({"storage": name, "sum": f"1 + {factor} 2^-{power}", "tensor cores, ulp above 1": ulps(d[0, 0]),
                         "to nearest, ulp above 1": ulps(exact.float())})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    torch.manual_seed(1)
    kernels = {n: torch.cuda._compile_kernel(SOURCE, n, nvcc_options=["--fmad=false"]) for n in ("m884", "m16816", "chain", "bf16", "f16")}
    result = {"device": torch.cuda.get_device_name(), "command": "bench/peers/tensor_cores.py", "torch": torch.__version__,
              "f64": wide(kernels), "f32 sums": narrow(kernels)}
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
