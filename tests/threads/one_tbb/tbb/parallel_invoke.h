// See parts.hpp.
#pragma once
#include "tbb/parts.hpp"

namespace tbb {

template <class... Work>
void parallel_invoke(const Work&... work) {
  parts::at_once({std::function<void()>(std::cref(work))...});
}

}  // namespace tbb
