"""Sorts, segmented sums, runs of equal keys, scans and sums, next to CUB's (nvcc with its headers, one NVIDIA GPU).

    python bench/peers/cub_primitives.py LOCKSTEP --out FILE        LOCKSTEP: the program, which times its own cases in the same run
    python bench/peers/cub_primitives.py --from bench/results/cub-h200.json --docs docs/performance.md [--check]

Medians of 60 calls, each between two events, after ten that are not counted, by `lockstep bench` and here. Both sort 32-bit keys with 32-bit
values, by all bits; segments have 0 to 12 elements, one in 32 up to 300, one in 256 up to 20,000, and one half of all elements. CUB's sums
of floats have no fixed order.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import marked  # noqa: E402

SOURCE = r"""
#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

template <class T>
T* on_device(const std::vector<T>& host) {
  T* p = nullptr;
  cudaMalloc(&p, host.size() * sizeof(T));
  cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
template <class T>
T* room(size_t n) {
  T* p = nullptr;
  cudaMalloc(&p, n * sizeof(T));
  return p;
}

void timed(const char* what, size_t n, const std::function<void(void*, size_t&)>& call) {
  size_t bytes = 0;
  call(nullptr, bytes);
  void* const temporary = room<char>(std::max<size_t>(bytes, 1));
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> times;
  for (int k = 0; k < 70; ++k) {
    cudaEventRecord(begin);
    call(temporary, bytes);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (k >= 10) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  if (cudaGetLastError() != cudaSuccess) std::exit(1);
  std::printf("%s %zu %.6f\n", what, n, times[times.size() / 2]);
  cudaFree(temporary);
}

int main() {
  std::mt19937 random(1);
  for (const size_t n : {size_t(1) << 20, size_t(1) << 26}) {
    std::vector<uint32_t> keys(n), values(n);
    for (uint32_t& key : keys) {
      const uint32_t word = random();
      key = word % 3 == 0 ? word % uint32_t(n / 7 + 1) * 0x9e3779b9u : random();
    }
    const auto *const k = on_device(keys), *const v = on_device(values);
    auto *const to = room<uint32_t>(n), *const moved = room<uint32_t>(n);
    timed("sort.u32", n, [&](void* t, size_t& b) { cub::DeviceRadixSort::SortPairs(t, b, k, to, v, moved, int(n)); });
    auto* const count = room<int>(1);
    std::sort(keys.begin(), keys.end());
    const auto* const sorted = on_device(keys);
    timed("unique.u32", n, [&](void* t, size_t& b) {
      cub::DeviceSelect::UniqueByKey(t, b, sorted, thrust::counting_iterator<int>(0), to, reinterpret_cast<int*>(moved), count, int(n));
    });
    std::vector<int> first(1, 0);
    while (first.back() < int(n)) {
      const uint32_t kind = random() % 256, length = random();
      const int own = first.size() == 7 ? int(n / 2) : int(length % (kind == 0 ? 20000u : kind < 8 ? 300u : 13u));
      first.push_back(std::min(first.back() + own, int(n)));
    }
    const int rows = int(first.size()) - 1;
    const int* const offsets = on_device(first);
    std::vector<float> numbers(n);
    for (float& x : numbers) x = float(random()) * 0x1p-31f - 1;
    const float* const x = on_device(numbers);
    float* const sums = room<float>(size_t(rows));
    timed("segmented_reduce.sum", n, [&](void* t, size_t& b) { cub::DeviceSegmentedReduce::Sum(t, b, x, sums, rows, offsets, offsets + 1); });
    float* const scanned = room<float>(n);
    timed("inclusive_scan", n, [&](void* t, size_t& b) { cub::DeviceScan::InclusiveSum(t, b, x, scanned, int(n)); });
    timed("sum", n, [&](void* t, size_t& b) { cub::DeviceReduce::Sum(t, b, x, scanned, int(n)); });
    for (const void* p : {(const void*)k, (const void*)v, (const void*)to, (const void*)moved, (const void*)count, (const void*)sorted,
                          (const void*)offsets, (const void*)x, (const void*)sums, (const void*)scanned})
      cudaFree(const_cast<void*>(p));
  }
}
"""
TITLES = {"sort.u32": "sort of 32-bit keys with values", "unique.u32": "runs of equal keys", "segmented_reduce.sum": "segmented sum, f32",
          "inclusive_scan": "inclusive scan, f32", "sum": "sum, f32"}


def measure(program):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "cub.cu")
        source.write_text(SOURCE)
        subprocess.run(["nvcc", "-O3", "-std=c++17", "-arch=native", str(source), "-o", folder + "/cub"], check=True)
        theirs = [line.split() for line in subprocess.run([folder + "/cub"], check=True, capture_output=True, text=True).stdout.splitlines()]
    cases = ["primitives." + name for name in TITLES]
    done = subprocess.run([program, "bench", *cases, "--sizes", "1048576,67108864", "--device", "cuda", "--no-reference", "--json"], check=True,
                          capture_output=True, text=True)
    document = json.loads(done.stdout)
    ours = {(row["case"].removeprefix("primitives."), int(row["size"])): row["median_ms"] for row in document["results"]}
    rows = [{"operation": name, "elements": int(n), "ms": ours[name, int(n)], "cub_ms": float(ms)} for name, n, ms in theirs]
    return {"device": document.get("device"), "commit": document.get("commit"), "command": "bench/peers/cub_primitives.py", "rows": rows}


def table(found):
    lines = ["| operation | elements | Lockstep, ms | CUB, ms | CUB's time over ours |", "|---|---|---|---|---|"]
    for name, title in TITLES.items():
        for row in (r for r in found["rows"] if r["operation"] == name):
            lines.append(f"| {title} | {row['elements']:,} | {row['ms']:.4f} | {row['cub_ms']:.4f} | {row['cub_ms'] / row['ms']:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?")
    marked.add_options(parser)
    options = parser.parse_args()
    if options.program:
        found = measure(options.program)
        print(table(found))
        if options.out:
            options.out.write_text(json.dumps(found, indent=1) + "\n")
    marked.place_stored(options, table)


if __name__ == "__main__":
    main()
