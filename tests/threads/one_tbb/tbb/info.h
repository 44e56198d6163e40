// See parts.hpp.
#pragma once
#include "tbb/parts.hpp"

namespace tbb::info {

inline int default_concurrency() { return parts::kThreads; }

}  // namespace tbb::info
