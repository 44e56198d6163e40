// No arguments: all tests, with a sample of random kernels. "fuzz SEED COUNT [math]": random kernels only. "cases":
// those only. "operations": those and rows. "bench CASE SIZE": one time. Exit code 1 where something failed.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "checks.hpp"

namespace lockstep::web_tests {

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAIL  %s\n", what);
  ++failures;
}

}  // namespace lockstep::web_tests

int main(int argc, char** argv) {
  using namespace lockstep::web_tests;
  const std::string_view command = argc > 1 ? argv[1] : "";
  try {
    if (command == "fuzz" && argc > 3) {
      random_kernels(std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), argc > 4);
    } else if (command == "bench" && argc > 3) {
      bench(argv[2], argv[3]);
    } else if (command == "cases") {
      cases();
    } else if (command == "operations") {
      operations();
      rows();
    } else {
      exceptions();
      operations();
      rows();
      random_kernels(1000, 200, false);
      random_kernels(5000, 20, true);
      cases();
    }
  } catch (const std::exception& error) { check(false, error.what()); }
  std::printf("%d failures\n", failures);
  return failures ? 1 : 0;
}
