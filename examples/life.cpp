// The Game of Life on a torus, its generations recorded once and replayed. The program is also a case:
//   life            runs a glider around the torus on any available device
//   life verify     compares each device with the plain loop below
#include <algorithm>
#include <cstdio>

#include "lockstep/emit.hpp"
#include "lockstep/verify.hpp"

using namespace lockstep;

static Kernel life_kernel() {
  return kernel("example.life", [](At<2> at, Grid<u32, 2> cells, Out<u32, 2> next) {
    const auto torus = cells.periodic();
    Val<u32> neighbours = 0u;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        if (dx || dy) neighbours = neighbours + torus[at.x(dx).y(dy)];
    next[at] = cast<u32>(neighbours == 3u || (neighbours == 2u && cells[at] == 1u));
  });
}

/// The plain loop.
static std::vector<u32> generation(const std::vector<u32>& cells, int64_t rows, int64_t columns) {
  std::vector<u32> next(cells.size());
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < columns; ++x) {
      u32 n = 0;
      for (int64_t dy = rows - 1; dy <= rows + 1; ++dy)
        for (int64_t dx = columns - 1; dx <= columns + 1; ++dx)
          if (dx != columns || dy != rows) n += cells[size_t((y + dy) % rows * columns + (x + dx) % columns)];
      next[size_t(y * columns + x)] = n == 3 || (n == 2 && cells[size_t(y * columns + x)]);
    }
  return next;
}

static Case life_case() {
  const Kernel life = life_kernel();
  Case c;
  c.name = "example.life";
  c.dtype = "u32";
  c.small = {"1x1", "1x7", "2x2", "63x129"};
  c.bench = {"1024x1024"};
  c.kernels = [=] { return std::vector{life}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const Shape shape{parse_size(size)[0], parse_size(size)[1]};
    std::vector<u32> cells(size_t(shape.elements()));
    for (u32& cell : cells) cell = u32((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 63);
    CaseProblem problem;
    problem.bytes = 8.0 * double(shape.elements());
    problem.reference = [=] { return std::vector{Array::of(generation(cells, shape[0], shape[1]), shape)}; };
    problem.bind = [=](const Device& device) {
      const Buffer now = device.upload(std::span<const u32>(cells), shape),
                   next = device.allocate<u32>(shape);
      return CaseRun{[=] { device.launch(life, shape, now, next); },
                     [=] { return std::vector{device.download(next)}; }};
    };
    return problem;
  };
  return c;
}

/// A glider moves by one cell along the diagonal in four generations: after 4 n it is back on a torus of n by n.
static int glider() {
  constexpr int kSide = 40;
  const Shape shape{kSide, kSide};
  std::vector<u32> cells(kSide * kSide);
  for (const auto [y, x] : {std::array{0, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}})
    cells[size_t(y * kSide + x)] = 1;
  const Device device = Device::open("auto");
  const Kernel life = life_kernel();
  const Buffer a = device.upload(std::span<const u32>(cells), shape), b = device.allocate<u32>(shape);
  const Graph two = device.record([&] {
    device.launch(life, shape, a, b);
    device.launch(life, shape, b, a);
  });
  for (int k = 0; k < 2 * kSide; ++k) device.replay(two);
  const bool back = device.download<u32>(a) == cells;
  std::printf("%s: after %d generations the glider is %s\n", device.info().name.c_str(), 4 * kSide,
              back ? "back" : "lost");
  return back ? 0 : 1;
}

int main(int argc, char** argv) try {
  if (argc == 1) return glider();
  CaseRegistry cases;
  cases.add(life_case());
  return run_cases(argc, argv, cases);
} catch (const Error& error) {
  std::fprintf(stderr, "life: %s\n", error.what());
  return 2;
}
