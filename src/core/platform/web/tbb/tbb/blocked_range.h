#pragma once

#include <cstddef>

namespace tbb {

template <class Index>
class blocked_range {
 public:
  blocked_range(Index begin, Index end, size_t = 1) : begin_(begin), end_(end) {}
  Index begin() const { return begin_; }
  Index end() const { return end_; }
  bool empty() const { return !(begin_ < end_); }

 private:
  Index begin_, end_;
};

}  // namespace tbb
