// Times of incompressible flow on one device: the kernels of the Value graph compared with the hand-written sweep.
// usage: bench_flow_by_hand [DEVICE]
#include <cstdio>

#include "flow_by_hand.hpp"
#include "lockstep/error.hpp"

int main(int count, char** arguments) try {
  using namespace lockstep;
  const Device device = Device::open(count > 1 ? arguments[1] : "cuda,cpu");
  CaseRegistry registry;
  pde::add_flow_cases(registry);
  const double copy = measure_copy_gbps(device);
  std::printf("copy %.1f GB/s on %s\n", copy, device.info().name.c_str());
  for (const Case& c : registry.all())
    for (const std::string& size : c.bench) {
      const BenchRow row = bench_case(c, size, device, copy);
      std::printf("%-28s %12s %9.4f ms (p95 %.4f), %5.1f %% of copy %s\n", row.name.c_str(), row.size.c_str(),
                  row.median_ms, row.p95_ms, 100 * row.share_of_copy, row.skipped.c_str());
    }
  return 0;
} catch (const lockstep::Error& error) {
  std::fprintf(stderr, "bench_flow_by_hand: %s\n", error.what());
  return 2;
}
