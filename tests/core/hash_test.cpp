#include "core/hash.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using lockstep::hash128;
using lockstep::to_hex;

// The published test vector of SipHash-2-4-128 for key 00 01 … 0f and no input.
TEST(Hash, PublishedVectorOfTheEmptyInput) {
  EXPECT_EQ(to_hex(hash128(std::string_view())), "a3817f04ba25a8e66df67214c7550293");
}

TEST(Hash, EveryLengthAndEveryBitMatters) {
  std::set<std::string> seen;
  std::string text;
  for (int length = 0; length < 64; ++length, text += '\0') {
    EXPECT_TRUE(seen.insert(to_hex(hash128(text))).second) << "length " << length;
    for (size_t bit = 0; bit < text.size() * 8; ++bit) {
      std::string flipped = text;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      EXPECT_TRUE(seen.insert(to_hex(hash128(flipped))).second) << "length " << length << ", bit " << bit;
    }
  }
}

}  // namespace
