#include "primitives/fft/block_fft.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace lockstep::primitives::fft {

BlockFft::BlockFft(int length, int lanes, std::vector<int> radices)
    : stages_(std::max(length, 1)), lanes_(lanes), radices_(std::move(radices)) {
  int64_t product = 1;
  bool good = length >= 1 && lanes >= 1 && length % lanes == 0 && stages_.direct();
  size_t odd = 0;
  for (size_t p = 0; p < radices_.size() && good; ++p) {
    const int r = radices_[p];
    good = r > 1 && points() % r == 0;
    if (product < stages_.power_of_two())
      good = good && std::has_single_bit(unsigned(r)) && (p > 0 || r >= 4 || stages_.power_of_two() == 2);
    else
      good = good && odd < stages_.odd().size() && r == stages_.odd()[odd++];
    product *= r;
  }
  if (!good || product != length)
    throw InputError(fmt::format("{} points, {} lanes, radices {}", length, lanes, fmt::join(radices_, " ")),
                     "BlockFft", "radices that divide the points of a lane and make the length");
  if (!radices_.empty() && std::has_single_bit(unsigned(radices_[0])) &&
      std::has_single_bit(unsigned(lanes_)) && lanes_ > 1)
    pad_ = std::min(lanes_, radices_[0]);
}

}  // namespace lockstep::primitives::fft
