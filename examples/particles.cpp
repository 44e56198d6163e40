// Particles in the unit square: a histogram of cells in shared memory, a list of each cell's particles, neighbours
// as CSR rows, and a gather over them.
//   particles [verify] [--device NAMES]     particles bench --device cpu
#include <cmath>

#include "lockstep/emit.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/primitives.hpp"
#include "lockstep/verify.hpp"

using namespace lockstep;

static constexpr int kSide = 32, kCells = kSide * kSide, kLanes = 128;
static constexpr float kRadius = 1.0f / kSide;

static Val<i32> along(const Val<f32>& x) { return clamp(cast<i32>(floor(x * float(kSide))), 0, kSide - 1); }
static Vec2<f32> place_of(const Grid<f32, 2>& x, const Val<i32>& i) {
  const auto p = x.wide<2>(i, 0);
  return {p[0], p[1]};
}

/// Each particle's cell, and how many are in each: a table a group, then one atomic sum a cell and group.
static Kernel count_kernel() {
  const auto body = [](Group<1> g, Grid<f32, 2> x, Out<i32, 1> cell, InOut<u32, 1> counts) {
    SharedArray<u32> table(kCells);
    for_(g.lane(), kCells, kLanes, [&](Val<i32> k) { table[k] = 0u; });
    barrier();
    const Val<i32> i = g.global();
    if_(i < x.size(0), [&] {
      const Vec2<f32> p = place_of(x, i);
      const Val<i32> c = along(p.y()) * kSide + along(p.x());
      cell[i] = c;
      table[c].atomic_add(1u);
    });
    barrier();
    for_(g.lane(), kCells, kLanes, [&](Val<i32> k) {
      const Val<u32> n = table[k];
      if_(n != 0u, [&] { counts[k].atomic_add(n); });
    });
  };
  return kernel("example.particles.count", body, {.group = {kLanes}});
}

/// Particles sorted by cell. The device chooses the order of the particles within a cell.
static Kernel sort_kernel() {
  return kernel("example.particles.sort",
                [](At<1> at, Grid<i32, 1> cell, InOut<u32, 1> cursor, Out<i32, 1> order) {
                  order[cast<i32>(cursor[cell[at]].atomic_add(1u))] = at.x;
                });
}

/// Calls `found(j)` for each particle closer to i than the radius. Cells of a row lie side by side in `order`.
template <class Found>
static void neighbours(const Val<i32>& i, const Grid<f32, 2>& x, const Grid<u32, 1>& first,
                       const Grid<i32, 1>& order, const Found& found) {
  const Vec2<f32> p = place_of(x, i);
  const Val<i32> cx = along(p.x()), cy = along(p.y());
  for_(max(cy - 1, 0), min(cy + 2, kSide), [&](Val<i32> y) {
    const Val<i32> from = cast<i32>(first[y * kSide + max(cx - 1, 0)]),
                   to = cast<i32>(first[y * kSide + min(cx + 1, kSide - 1) + 1]);
    for_(from, to, [&](Val<i32> e) {
      const Val<i32> j = order[e];
      const Vec2<f32> d = place_of(x, j) - p;
      if_(j != i && dot(d, d) < kRadius * kRadius, [&] { found(j); });
    });
  });
}

static Kernel degree_kernel() {
  return kernel("example.particles.degree",
                [](At<1> at, Grid<f32, 2> x, Grid<u32, 1> first, Grid<i32, 1> order, Out<u32, 1> degree) {
                  Var<u32> n = 0u;
                  neighbours(at.x, x, first, order, [&](Val<i32>) { n += 1u; });
                  degree[at] = n;
                });
}
static Kernel fill_kernel() {
  return kernel("example.particles.fill", [](At<1> at, Grid<f32, 2> x, Grid<u32, 1> first, Grid<i32, 1> order,
                                             Grid<u32, 1> row, Out<i32, 1> columns) {
    Var<i32> k = cast<i32>(row[at]);
    neighbours(at.x, x, first, order, [&](Val<i32> j) {
      columns[k] = j;
      k += 1;
    });
  });
}
static Kernel gather_kernel() {
  return kernel("example.particles.gather", [](At<1> at, Grid<u32, 1> row, Grid<i32, 1> columns,
                                               Grid<f32, 1> mass, Out<f32, 1> sum) {
    Var<f32> s = 0.0f;
    for_(cast<i32>(row[at]), cast<i32>(row[at.x + 1]), [&](Val<i32> e) { s += mass[columns[e]]; });
    sum[at] = s;
  });
}

/// Counts of cells, and each particle's sum of its neighbours' masses, by all pairs.
static std::vector<Array> plain(const std::vector<f32>& x, const std::vector<f32>& mass) {
  const size_t n = mass.size();
  std::vector<u32> counts(kCells + 1, 0);
  std::vector<f32> sums(n, 0.0f);
  const auto along = [](float v) { return std::min(std::max(int(std::floor(v * kSide)), 0), kSide - 1); };
  for (size_t i = 0; i < n; ++i) {
    ++counts[size_t(along(x[2 * i + 1]) * kSide + along(x[2 * i]))];
    for (size_t j = 0; j < n; ++j) {
      const float dx = x[2 * j] - x[2 * i], dy = x[2 * j + 1] - x[2 * i + 1];
      if (j != i && std::fma(dy, dy, dx * dx) < kRadius * kRadius) sums[i] += mass[j];
    }
  }
  return {Array::of(counts), Array::of(sums)};
}

static CaseRun bind(const Device& device, const std::vector<f32>& x, const std::vector<f32>& mass) {
  static const Kernel count = count_kernel(), sort = sort_kernel(), degree = degree_kernel(),
                      fill = fill_kernel(), gather = gather_kernel();
  const auto n = int64_t(mass.size());
  const Buffer places = device.upload(std::span<const f32>(x), {n, 2}), masses = device.upload(mass);
  const Buffer cell = device.allocate<i32>({n}), order = device.allocate<i32>({n});
  const Buffer counts = device.allocate<u32>({kCells + 1}), first = device.allocate<u32>({kCells + 1}),
               cursor = device.allocate<u32>({kCells + 1});
  const Buffer degrees = device.allocate<u32>({n + 1}), row = device.allocate<u32>({n + 1}),
               sums = device.allocate<f32>({n});
  const auto run = [=] {
    device.clear(counts);
    device.clear(degrees);
    device.launch(count, {(n + kLanes - 1) / kLanes}, places, cell, counts);
    primitives::exclusive_scan(device, counts, first);
    device.copy(first, cursor);
    device.launch(sort, {n}, cell, cursor, order);
    device.launch(degree, {n}, places, first, order, degrees);
    primitives::exclusive_scan(device, degrees, row);
    u32 entries = 0;
    device.read(row.rows(n, 1), &entries, sizeof entries);
    const Buffer columns = device.allocate<i32>({std::max<int64_t>(entries, 1)});
    device.launch(fill, {n}, places, first, order, row, columns);
    device.launch(gather, {n}, row, columns, masses, sums);
  };
  return {run, [=] { return std::vector{device.download(counts), device.download(sums)}; }};
}

static Case particles_case() {
  Case c;
  c.name = "example.particles";
  c.small = {"1", "1000", "3001"};
  c.bench = {"20000"};
  c.kernels = [] {
    return std::vector{count_kernel(), sort_kernel(), degree_kernel(), fill_kernel(), gather_kernel()};
  };
  c.make = [](const std::string& size, uint64_t seed) {
    const auto random = [&] { return (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 40; };
    std::vector<f32> mass(static_cast<size_t>(parse_size(size)[0])), x(2 * mass.size());
    for (f32& v : x) v = float(random()) * 0x1p-24f;
    for (f32& m : mass) m = float(random() % 1000);  // whole numbers: sums in any order are the same
    CaseProblem problem;
    problem.reference = [=] { return plain(x, mass); };
    problem.bind = [=](const Device& device) { return bind(device, x, mass); };
    return problem;
  };
  return c;
}

int main(int argc, char** argv) {
  CaseRegistry cases;
  cases.add(particles_case());
  return run_cases(argc, argv, cases);
}
