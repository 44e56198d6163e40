#include "device/launch/split.hpp"

#include <gtest/gtest.h>

#include <set>

#include "device/pool.hpp"

namespace lockstep::device {
namespace {

TEST(Split, PiecesCoverEachGroupOnce) {
  const std::array<int64_t, 3> groups{23, 7, 5}, limit{6, 3, 2};
  std::set<std::array<int64_t, 3>> seen;
  int pieces = 0;
  for_each_piece(groups, limit, [&](const Piece& p) {
    ++pieces;
    for (int a = 0; a < 3; ++a) EXPECT_LE(p.count[a], limit[a]);
    for (int64_t z = 0; z < p.count[2]; ++z)
      for (int64_t y = 0; y < p.count[1]; ++y)
        for (int64_t x = 0; x < p.count[0]; ++x)
          EXPECT_TRUE(seen.insert({p.first[0] + x, p.first[1] + y, p.first[2] + z}).second);
  });
  EXPECT_EQ(seen.size(), 23u * 7 * 5);
  EXPECT_EQ(pieces, 4 * 3 * 3);
}

TEST(Split, NothingWhereAnAxisIsEmpty) {
  for_each_piece({5, 0, 3}, {2, 2, 2}, [](const Piece&) { FAIL(); });
}

TEST(Pool, ClassesWasteAtMostAnEighth) {
  for (int64_t bytes = 1; bytes < (int64_t(1) << 36); bytes = bytes * 5 / 3 + 1) {
    const int64_t size = size_class(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size, std::max<int64_t>(256, bytes <= (1 << 20) ? bytes + 255 : bytes + bytes / 8)) << bytes;
    EXPECT_EQ(size_class(size), size);
  }
}

}  // namespace
}  // namespace lockstep::device
