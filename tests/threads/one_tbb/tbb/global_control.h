// See parts.hpp. The number of threads stays as it is.
#pragma once
#include <cstddef>

namespace tbb {

struct global_control {
  enum parameter { max_allowed_parallelism };
  global_control(parameter /*what*/, size_t /*value*/) {}
};

}  // namespace tbb
