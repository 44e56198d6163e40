#include "verify/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

namespace lockstep {

namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
/// Errors of the outputs of a case; a pair that was not measured has none.
struct Errors {
  std::vector<double> reference, webgpu;
};

const std::map<std::string_view, Errors>& errors() {
  static const std::map<std::string_view, Errors> table{
#include "verify/measured_errors.inc"
  };
  return table;
}

// Other compilers and libraries of the host may round a reference differently.
double floor_of(const Case& c) {
  return 8 * (c.dtype == "f64" ? std::numeric_limits<double>::epsilon()
                               : double(std::numeric_limits<float>::epsilon()));
}

double measured(const std::string& name, std::vector<double> Errors::* pair, size_t output) {
  const auto found = errors().find(name);
  return found != errors().end() && output < (found->second.*pair).size() ? (found->second.*pair)[output]
                                                                          : kAny;
}

}  // namespace

std::optional<std::string> beyond_measured(const Case& c, const Comparison& got, Measured pair) {
  for (size_t n = 0; n < got.relative_max.size(); ++n) {
    double limit = 0;
    if (pair.reference) limit += 10 * measured(c.name, &Errors::reference, n);
    if (pair.webgpu) limit += 10 * measured(c.name, &Errors::webgpu, n);
    limit = std::max(limit, floor_of(c));
    if (got.relative_max[n] > limit)
      return fmt::format("output {}: max/max {:.3g}<={:.3g}", n, got.relative_max[n], limit);
  }
  return std::nullopt;
}

}  // namespace lockstep
