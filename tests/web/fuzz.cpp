#include <cstdio>
#include <string>

#include "../fuzz/minimise.hpp"
#include "../fuzz/runner.hpp"
#include "checks.hpp"

namespace lockstep::web_tests {

void random_kernels(uint64_t seed, int count, bool math) {
  using namespace fuzz;
  Runner cpu("cpu"), interp("interp");
  const auto compare = [&](const Program& p) -> std::string {
    const Contents expected = interp.run(p);
    try {
      return difference(p, expected, cpu.run(p));
    } catch (const std::exception& error) { return error.what(); }
  };
  int differing = 0;
  for (int k = 0; k < count && differing < 3; ++k) {
    Recipe recipe;
    recipe.seed = seed + uint64_t(k);
    recipe.math = math;
    const Program p = generate(recipe);
    std::string found = compare(p);
    if (found.empty()) continue;
    ++differing;
    found = "random kernel " + std::to_string(recipe.seed) + ": " + found;
    check(false, found.c_str());
    const Program small =
        minimise(p, [&](const Program& candidate) { return !compare(candidate).empty(); }, 300);
    std::printf("%s%s\n", ir::print(small.function).c_str(), compare(small).c_str());
  }
  std::printf("%d random kernels from seed %llu, %d differ\n", count, static_cast<unsigned long long>(seed),
              differing);
}

}  // namespace lockstep::web_tests
