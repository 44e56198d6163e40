#include "core/hash.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/numbers/split_mix.hpp"

namespace {

using lockstep::hash128;
using lockstep::to_hex;

// The first outputs of the generator that begins at 0, as published with xoshiro.
TEST(SplitMix, PublishedNumbers) {
  uint64_t state = 0;
  for (const uint64_t expected : {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu}) {
    EXPECT_EQ(lockstep::split_mix64(state), expected);
    state += lockstep::kSplitMixStep;
  }
}

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
