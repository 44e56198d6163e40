// C = A B in groups, as textbooks tile it: 64 x 64 results a group, 4 x 4 a lane, tiles of A and B in shared arrays.
//   tiled_matmul [verify] [--device NAMES]     tiled_matmul bench --device cpu     tiled_matmul emit example.matmul
#include "lockstep/emit.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/verify.hpp"

using namespace lockstep;

static constexpr int kTile = 64, kDepth = 16, kLane = 4, kSide = kTile / kLane, kLanes = kSide * kSide;

/// Copies the tile at (row, column) of `from` into `tile`, 0 outside.
static void load_tile(const Group<2>& g, const Grid<f32, 2>& from, const SharedArray<f32>& tile, int rows,
                      int columns, const Val<i32>& row, const Val<i32>& column) {
  for (int first = 0; first < rows * columns; first += kLanes) {
    const Val<i32> e = g.lane() + first, i = e / columns, j = e % columns;
    tile[e] = from.zero()(row + i, column + j);
  }
}

static Kernel matmul_kernel() {
  const auto body = [](Group<2> g, Grid<f32, 2> a, Grid<f32, 2> b, Out<f32, 2> c) {
    SharedArray<f32> of_a(kTile * kDepth), of_b(kDepth * kTile);
    const Val<i32> x = g.local(0), y = g.local(1), row = g.id(1) * kTile, column = g.id(0) * kTile;
    VarArray<f32, kLane * kLane> sums(0.0f);
    for_(0, a.size(1), kDepth, [&](Val<i32> k) {
      load_tile(g, a, of_a, kTile, kDepth, row, k);
      load_tile(g, b, of_b, kDepth, kTile, k, column);
      barrier();
      for_(0, kDepth, [&](Val<i32> q) {
        std::vector<Val<f32>> left, right;
        for (int i = 0; i < kLane; ++i) left.push_back(of_a[(y * kLane + i) * kDepth + q]);
        for (int j = 0; j < kLane; ++j) right.push_back(of_b[q * kTile + x + j * kSide]);
        for (int i = 0; i < kLane; ++i)
          for (int j = 0; j < kLane; ++j)
            sums[i * kLane + j] = fma(left[size_t(i)], right[size_t(j)], sums[i * kLane + j]);
      });
      barrier();
    });
    for (int i = 0; i < kLane; ++i)
      for (int j = 0; j < kLane; ++j) {
        const Val<i32> to_row = row + y * kLane + i, to_column = column + x + j * kSide;
        if_(to_row < c.size(0) && to_column < c.size(1), [&] { c(to_row, to_column) = sums[i * kLane + j]; });
      }
  };
  return kernel("example.matmul", body, {.group = {kSide, kSide}});
}

/// The plain loops.
static std::vector<f32> product(const std::vector<f32>& a, const std::vector<f32>& b, int64_t m, int64_t n,
                                int64_t k) {
  std::vector<f32> c(size_t(m * n), 0.0f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t q = 0; q < k; ++q)
      for (int64_t j = 0; j < n; ++j) c[size_t(i * n + j)] += a[size_t(i * k + q)] * b[size_t(q * n + j)];
  return c;
}

static Case matmul_case() {
  const Kernel matmul = matmul_kernel();
  Case c;
  c.name = "example.matmul";
  c.small = {"1x1x1", "17x33x5", "64x64x64", "100x75x130"};
  c.bench = {"512x512x512"};
  c.kernels = [=] { return std::vector{matmul}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const std::vector<int64_t> n = parse_size(size);
    const auto random = [&](int64_t count) {
      std::vector<f32> v(static_cast<size_t>(count));
      for (f32& x : v)
        x = float(int64_t(seed = seed * 6364136223846793005u + 1442695040888963407u) >> 40) * 0x1p-23f;
      return v;
    };
    const std::vector<f32> a = random(n[0] * n[2]), b = random(n[2] * n[1]);
    CaseProblem problem;
    problem.flops = 2.0 * double(n[0] * n[1] * n[2]);
    problem.reference = [=] { return std::vector{Array::of(product(a, b, n[0], n[1], n[2]), {n[0], n[1]})}; };
    problem.bind = [=](const Device& device) {
      const Buffer left = device.upload(std::span<const f32>(a), {n[0], n[2]}),
                   right = device.upload(std::span<const f32>(b), {n[2], n[1]}),
                   to = device.allocate<f32>({n[0], n[1]});
      const Shape groups{(n[0] + kTile - 1) / kTile, (n[1] + kTile - 1) / kTile};
      return CaseRun{[=] { device.launch(matmul, groups, left, right, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return problem;
  };
  c.reference = Bound::relative(1e-5);  // the plain loops round each product
  c.webgpu = Bound::relative(1e-5);
  return c;
}

int main(int argc, char** argv) {
  CaseRegistry cases;
  cases.add(matmul_case());
  return run_cases(argc, argv, cases);
}
