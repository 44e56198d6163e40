// A loss of PDE residuals and its gradients by all fields over 1, 2, 4 … ranks, a CUDA device each, on resident data: the grid
// of the strong series is one, that of the weak series grows along z with the ranks. One line of JSON a measurement: an
// evaluation fetches neighbours' planes of all fields, as after a step of an optimiser, and computes loss and gradients. The
// terms of all ranks are added and read after each, or after ten.
//   bench_pde_ranks [DEVICE] [CELLS_STRONG] [CELLS_WEAK] [RANKS]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <lockstep/pde/divided.hpp>
#include <string>
#include <vector>

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

/// In [-1, 1), the same for a cell on every rank.
float number_at(uint64_t cell) {
  cell = (cell + 1) * 0x9E3779B97F4A7C15ULL;
  cell = (cell ^ (cell >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return float(int32_t(uint32_t(cell >> 32))) * 0x1p-31F;
}

pde::Inputs inputs_of(const Device& device, const pde::Mesh& mesh, const parallel::Range& planes) {
  const int64_t plane = mesh.cells[0] * mesh.cells[1], volume = planes.size() * plane, nz = mesh.cells[2];
  pde::Inputs inputs;
  for (const auto& [name, components] : {std::pair{"sigma", 1}, std::pair{"u", 3}})
    for (size_t level = 0; level < 3; ++level) {
      std::vector<float> numbers(size_t(components * volume));
      for (int64_t c = 0; c < components; ++c)
        for (int64_t k = 0; k < volume; ++k) {
          const int64_t z = ((planes.begin + k / plane) % nz + nz) % nz;
          numbers[size_t(c * volume + k)] =
              number_at(uint64_t((int64_t(level) * 4 + (components == 3) + c) * nz + z) * uint64_t(plane) +
                        uint64_t(k % plane));
        }
      const Shape scalar{planes.size(), mesh.cells[1], mesh.cells[0]},
          vector{3, planes.size(), mesh.cells[1], mesh.cells[0]};
      inputs.fields[name][level] =
          device.upload(std::span<const float>(numbers), components == 1 ? scalar : vector);
    }
  return inputs;
}

/// Milliseconds of an evaluation, and the first term's bits.
void measure(const char* kind, const std::string& devices, const std::array<int64_t, 3>& cells, int ranks) {
  parallel::run_ranks(ranks, {.wait_limit_s = 120}, [&](const parallel::Group& group) {
    const Device device = Device::open(parallel::device_of_rank(group, devices, devices == "cpu"));
    pde::Mesh mesh;
    mesh.cells = {cells[0], cells[1], cells[2]};
    const pde::DividedLoss loss(pde::transport(3), mesh, group);
    const std::string link = group.device_link(device);
    const pde::Inputs inputs = inputs_of(device, mesh, loss.held());
    const pde::BoundLoss bound = loss.bind(device, inputs);
    std::vector<Buffer> arrays;
    for (const auto& [name, levels] : inputs.fields)
      arrays.insert(arrays.end(), levels.begin(), levels.end());
    constexpr int kWarm = 4, kRounds = 20, kSteps = 10;
    std::vector<double> each, between, terms;
    const auto since = [](Clock::time_point start) {
      return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    };
    const auto evaluate = [&] {
      loss.begin_refresh(device, arrays);
      bound.run();
    };
    for (int k = 0; k < kWarm + kRounds; ++k) {
      device.synchronize();
      group.barrier();
      auto start = Clock::now();
      evaluate();
      terms = loss.terms(bound);
      if (k >= kWarm) each.push_back(since(start));
      start = Clock::now();
      for (int step = 0; step < kSteps; ++step) evaluate();
      terms = loss.terms(bound);
      if (k >= kWarm) between.push_back(since(start) / kSteps);
    }
    const auto print = [&](const char* read, std::vector<double>& times) {
      std::ranges::sort(times);
      std::printf(
          "{\"what\": \"pde\", \"kind\": \"%s\", \"terms\": \"%s\", \"ranks\": %d, "
          "\"cells\": [%lld, %lld, %lld], \"median_ms\": %.4f, \"least_ms\": %.4f, \"most_ms\": %.4f, "
          "\"term\": \"%a\", \"link\": \"%s\"}\n",
          kind, read, ranks, (long long)cells[0], (long long)cells[1], (long long)cells[2],
          times[times.size() / 2], times.front(), times.back(), terms.front(), link.c_str());
    };
    if (group.leads()) {
      print("each", each);
      print("every tenth", between);
    }
    std::fflush(stdout);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda";
  const int64_t strong = argc > 2 ? std::atoll(argv[2]) : 512, weak = argc > 3 ? std::atoll(argv[3]) : 256;
  const int most = argc > 4 ? std::atoi(argv[4]) : parallel::cuda_devices();
  try {
    for (int ranks = 1; ranks <= most; ranks *= 2) {
      measure("strong", device, {strong, strong, strong}, ranks);
      measure("weak", device, {weak, weak, weak * ranks}, ranks);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_pde_ranks: %s\n", error.what());
    return 1;
  }
  return 0;
}
