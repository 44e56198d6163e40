// Overlap of windows against counting their elements.
#include "device/launch/overlap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

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
    ASSERT_EQ(overlap(a.binding, b.binding, 4, 4), expected) << round;
    ASSERT_EQ(overlap(b.binding, a.binding, 4, 4), expected) << round;
    shared += expected;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_LT(shared, 18000);
}

TEST(Overlap, OfOtherStridesIsThatOfTheElements) {
  Binding rows, flat;
  rows.shape = {2, 2}, rows.strides = {8, 1}, rows.span_bytes = 10 * 4;
  flat.shape = {2}, flat.strides = {1}, flat.span_bytes = 2 * 4, flat.offset_bytes = 4 * 4;
  EXPECT_FALSE(overlap(rows, flat, 4, 4));  // it lies between the rows
  flat.offset_bytes = 7 * 4;
  EXPECT_TRUE(overlap(rows, flat, 4, 4));
  flat.offset_bytes = 10 * 4;
  EXPECT_FALSE(overlap(rows, flat, 4, 4));
  flat.span_bytes = 0;
  flat.offset_bytes = 0;
  EXPECT_FALSE(overlap(rows, flat, 4, 4));
}

/// Elements of any strides, 0 included, and how often each byte belongs to one.
struct Strided {
  Binding binding;
  int64_t size;
  std::map<int64_t, int> bytes;
};

Strided strided(std::mt19937& random, int64_t most_stride) {
  Strided s;
  s.size = int64_t(1) << random() % 4;
  const int rank = 1 + int(random() % 4);
  std::vector<int64_t> elements{0};
  for (size_t a = 0; a < size_t(rank); ++a) {
    s.binding.shape[a] = 1 + int64_t(random() % 5);
    s.binding.strides[a] = a + 1 == size_t(rank) ? 1 : int64_t(random() % size_t(most_stride));
    std::vector<int64_t> next;
    for (const int64_t e : elements)
      for (int64_t k = 0; k < s.binding.shape[a]; ++k) next.push_back(e + k * s.binding.strides[a]);
    elements = std::move(next);
  }
  s.binding.offset_bytes = int64_t(random() % size_t(4 * most_stride)) * s.size;
  s.binding.span_bytes = (*std::max_element(elements.begin(), elements.end()) + 1) * s.size;
  for (const int64_t e : elements)
    for (int64_t k = 0; k < s.size; ++k) ++s.bytes[s.binding.offset_bytes + e * s.size + k];
  return s;
}

TEST(Overlap, OfAnyStridesAndElementSizesAgreesWithTheBytes) {
  std::mt19937 random(11);
  int shared = 0, itself = 0;
  constexpr int kRounds = 60000;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t most_stride = 2 + int64_t(random() % 40);
    const Strided a = strided(random, most_stride), b = strided(random, most_stride);
    const bool expected = std::any_of(a.bytes.begin(), a.bytes.end(),
                                      [&](const auto& byte) { return b.bytes.contains(byte.first); });
    ASSERT_EQ(overlap(a.binding, b.binding, a.size, b.size), expected) << round;
    ASSERT_EQ(overlap(b.binding, a.binding, b.size, a.size), expected) << round;
    const bool twice =
        std::any_of(a.bytes.begin(), a.bytes.end(), [](const auto& byte) { return byte.second > 1; });
    Shape shape;
    for (size_t k = 0; k < 4 && a.binding.shape[k] > 0; ++k) shape.push_back(a.binding.shape[k]);
    ASSERT_EQ(overlaps_itself(shape, a.binding.strides), twice) << round;
    shared += expected;
    itself += twice;
  }
  EXPECT_GT(shared, kRounds / 10);
  EXPECT_LT(shared, kRounds * 9 / 10);
  EXPECT_GT(itself, kRounds / 10);
  EXPECT_LT(itself, kRounds * 9 / 10);
}

TEST(Overlap, OfLongAxesIsExact) {
  // x * 1000003 = y * 999983 first where x = 999983 and y = 1000003, both prime.
  Binding a, b;
  a.shape = {999983, 1}, a.strides = {1000003, 1}, a.span_bytes = 999982 * int64_t(1000003) + 1;
  b.shape = {1000003, 1}, b.strides = {999983, 1}, b.span_bytes = 1000002 * int64_t(999983) + 1;
  a.offset_bytes = 1000003, b.offset_bytes = 999983;  // both begin at 1
  EXPECT_FALSE(overlap(a, {b.memory, b.offset_bytes, b.span_bytes - 999983, {1000002, 1}, b.strides}, 1, 1));
  EXPECT_TRUE(overlap(a, b, 1, 1));
  EXPECT_FALSE(overlaps_itself({999983, 1000003, 1}, {1000003, 999983, 1}));
  EXPECT_TRUE(overlaps_itself({999984, 1000004, 1}, {1000003, 999983, 1}));
}

}  // namespace
}  // namespace lockstep::device
