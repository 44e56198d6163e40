// See parts.hpp.
#pragma once
#include <cstddef>

namespace tbb {

template <class I>
class blocked_range {
 public:
  blocked_range(I first, I last, size_t grain = 1) : first_(first), last_(last), grain_(grain) {}
  I begin() const { return first_; }
  I end() const { return last_; }
  size_t grainsize() const { return grain_; }

 private:
  I first_, last_;
  size_t grain_;
};

}  // namespace tbb
