// Overlap of windows against counting their elements.
#include "device/launch/overlap.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace lockstep::device {
namespace {

struct Window {
  Binding binding;
  std::set<int64_t> elements;
};

Window window(const std::array<int64_t, 4>& whole, int rank, std::mt19937& random) {
  Window w;
  int64_t stride = 1, last = 0;
  std::array<int64_t, 4> strides{};
  for (int a = rank - 1; a >= 0; --a) {
    strides[size_t(a)] = stride;
    stride *= whole[size_t(a)];
  }
  w.elements = {0};
  for (size_t a = 0; a < size_t(rank); ++a) {
    const int64_t first = int64_t(random() % size_t(whole[a]));
    const int64_t size = 1 + int64_t(random() % size_t(whole[a] - first));
    w.binding.shape[a] = size;
    w.binding.strides[a] = strides[a];
    w.binding.offset_bytes += first * strides[a] * 4;
    last += (size - 1) * strides[a];
    std::set<int64_t> next;
    for (const int64_t e : w.elements)
      for (int64_t k = 0; k < size; ++k) next.insert(e + (first + k) * strides[a]);
    w.elements = std::move(next);
  }
  w.binding.span_bytes = (last + 1) * 4;
  return w;
}

TEST(Overlap, AgreesWithTheElements) {
  std::mt19937 random(7);
  int shared = 0;
  for (int round = 0; round < 20000; ++round) {
    const int rank = 1 + int(random() % 4);
    std::array<int64_t, 4> whole{1, 1, 1, 1};
    for (int64_t& size : whole) size = 1 + int64_t(random() % 6);
    const Window a = window(whole, rank, random), b = window(whole, rank, random);
    bool expected = false;
    for (const int64_t e : a.elements) expected |= b.elements.contains(e);
    ASSERT_EQ(overlap(a.binding, b.binding, 4), expected) << round;
    ASSERT_EQ(overlap(b.binding, a.binding, 4), expected) << round;
    shared += expected;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_LT(shared, 18000);
}

TEST(Overlap, OfOtherStridesIsThatOfTheSpans) {
  Binding rows, flat;
  rows.shape = {2, 2}, rows.strides = {8, 1}, rows.span_bytes = 10 * 4;
  flat.shape = {2}, flat.strides = {1}, flat.span_bytes = 2 * 4, flat.offset_bytes = 4 * 4;
  EXPECT_TRUE(overlap(rows, flat, 4));  // it lies between the rows
  flat.offset_bytes = 10 * 4;
  EXPECT_FALSE(overlap(rows, flat, 4));
  flat.span_bytes = 0;
  flat.offset_bytes = 0;
  EXPECT_FALSE(overlap(rows, flat, 4));
}

}  // namespace
}  // namespace lockstep::device
