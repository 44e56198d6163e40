// The shared memory of a group of the fused path: the channels that pass through it, and where its planes lie.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "pde/kernels/kernels.hpp"

namespace lockstep::pde {

/// Lanes of a group along x and y, adjacent rows of a lane, planes of a chunk, elements of an asynchronous
/// copy, groups that should share a multiprocessor, planes on their way.
struct FusedShape {
  int x = 64, y = 4, rows = 2, chunk = 64, wide = 1, blocks = 2, ahead = 1;
  int tall() const { return y * rows; }
  int lanes() const { return x * y; }
  std::string key() const;  // of the kernel; the chunk is an argument
};

/// One component of a field at a level.
struct Channel {
  int field_index, level, component;
  friend bool operator==(const Channel&, const Channel&) = default;
};

/// Channels with differences pass through shared memory; the others are read at the lane's own cell.
struct Channels {
  std::vector<Channel> staged, own;

  explicit Channels(const Plan& plan);
  static int find(const std::vector<Channel>& list, const Datum& d) {
    const auto at = std::find(list.begin(), list.end(), Channel{d.field_index, d.level, d.component});
    return at == list.end() ? -1 : int(at - list.begin());
  }
};

/// Sizes of what a group holds in shared memory. Staged planes cover the tile and `margin` cells around it
/// (`left` along x, so that wide copies stay aligned); cotangents of two planes cover the tile and `halo`
/// cells.
struct FusedLayout {
  int halo, margin, left, planes, width, height, residuals, inner_width, inner_height, channels;

  FusedLayout(const Discretisation& d, const FusedShape& s, const Channels& list);
  int plane() const { return width * height; }              // elements of one channel
  int slot() const { return channels * plane(); }           // of all channels of a plane
  int inner() const { return inner_width * inner_height; }  // of one residual's cotangents
  int64_t bytes(int element) const {
    return int64_t(element) * (int64_t(planes) * slot() + 2 * int64_t(residuals) * inner());
  }
};

}  // namespace lockstep::pde
