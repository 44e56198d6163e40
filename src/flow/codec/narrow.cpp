#include "flow/codec/narrow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::flow {

NarrowFields narrow(const Array& exact, std::string_view where) {
  if (const auto at = first_not_finite(exact)) {
    const int64_t nx = exact.size(-1), points = nx * exact.size(-2);
    throw InputError(fmt::format("frame {} is not finite at point (y, x) = ({}, {})", *at / points,
                                 *at % points / nx, *at % nx),
                     where, "finite numbers");
  }
  if (exact.storage() == Storage::f32) return {exact};
  NarrowFields f{exact.to(Storage::f32)};
  const auto wide = exact.as<double>();
  if (const auto at = first_not_finite(f.frames))
    throw InputError(
        fmt::format("{} at {} is too large for f32", wide[size_t(*at)], index_text(exact.shape(), *at)),
        where, "at most 3.4e38");
  const auto narrow = f.frames.as<float>();
  for (size_t k = 0; k < wide.size(); ++k)
    f.rounding = std::max(f.rounding, std::abs(wide[k] - double(narrow[k])));
  return f;
}

double bound_of_narrow(double bound, double rounding, std::string_view where) {
  if (rounding == 0) return bound;
  if (!(bound > rounding))
    throw InputError(fmt::format("a largest error of {}", bound), where,
                     fmt::format("above {:.3g}, by which f32 rounds these f64 fields", rounding));
  return std::nextafter(bound - rounding, 0.0);
}

}  // namespace lockstep::flow
