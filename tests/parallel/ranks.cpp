// The cases of groups as a program for mpirun: test_parallel_ranks [--device NAME] [--share-devices] [--threads K] [--sum-mib N] [CASE…]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "parallel/group_cases.hpp"

namespace lockstep::parallel {
namespace {

using Clock = std::chrono::steady_clock;

struct RankOptions {
  std::string device = "cpu";
  bool share = false;
  int threads = 0;
  int64_t sum_mib = 0;
  std::vector<std::string> cases;
};

/// Seconds of a sum of one part a rank, of so many MiB.
double seconds_of_sum(const Group& group, const Device& device, int64_t mib) {
  const int64_t n = mib << 18;
  const Buffer mine = device.allocate<f32>({1, n}), total = device.allocate<f32>({n});
  device.clear(mine);
  double best = 1e30;
  for (int k = 0; k < 8; ++k) {
    device.synchronize();
    group.barrier();
    const auto start = Clock::now();
    group.sum(device, group.size(), mine, total);
    device.synchronize();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

void run_rank(const Group& group, const RankOptions& options) {
  const Device device = Device::open(device_of_rank(group, options.device, options.share));
  const std::string link = group.device_link(device);
  if (group.leads())
    std::printf("%d ranks, %s, %s, buffers by %s\n", group.size(), group.transport().c_str(),
                device.info().description.c_str(), link.c_str());
  for (const cases::GroupCase& c : cases::group_cases()) {
    if (!options.cases.empty() && std::ranges::find(options.cases, c.name) == options.cases.end()) continue;
    c.run(group, device);
    group.barrier();
    if (group.leads()) std::printf("ok %s\n", c.name);
  }
  if (options.sum_mib > 0) {
    const double seconds = seconds_of_sum(group, device, options.sum_mib);
    if (group.leads())
      std::printf("sum of %lld MiB: %.3f ms\n", static_cast<long long>(options.sum_mib), seconds * 1e3);
  }
  const std::string sums = cases::sums_of_group(group, device);
  if (group.leads()) std::printf("sums %s\n", sums.c_str());
  std::fflush(stdout);
}

int run_program(int argc, char** argv) {
  RankOptions options;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--share-devices")
      options.share = true;
    else if (word == "--device" && k + 1 < argc)
      options.device = argv[++k];
    else if (word == "--threads" && k + 1 < argc)
      options.threads = std::atoi(argv[++k]);
    else if (word == "--sum-mib" && k + 1 < argc)
      options.sum_mib = std::atoll(argv[++k]);
    else
      options.cases.push_back(word);
  }
  try {
    const auto work = [&](const Group& group) { run_rank(group, options); };
    options.threads > 0 ? run_ranks(options.threads, {60}, work) : work(launched({60}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", launch_of_environment().rank, error.what());
    abort_launch(1);
    return 1;
  }
  end_launch();
  return 0;
}

}  // namespace
}  // namespace lockstep::parallel

int main(int argc, char** argv) { return lockstep::parallel::run_program(argc, argv); }
