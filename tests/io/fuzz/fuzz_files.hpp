// Mutated files: each is read whole or refused by an error of Lockstep's own. LOCKSTEP_FUZZ_COUNT sets the
// files per format (default 2000), LOCKSTEP_FUZZ_SEED the first seed, LOCKSTEP_FUZZ_FILE the first file's number.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "io/checks.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {

inline int64_t environment_number(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

// One to eight changes: flipped bits, extreme words, cut, repeated, removed or exchanged stretches.
inline void mutate(Bytes& bytes, std::mt19937_64& random, const std::vector<Bytes>& seeds) {
  const auto below = [&](size_t n) { return n ? static_cast<size_t>(random() % n) : 0; };
  const size_t changes = 1 + below(8);
  for (size_t k = 0; k < changes && !bytes.empty(); ++k) {
    const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(bytes.size() - at, 64));
    switch (random() % 8) {
      case 0:
      case 1: bytes[at] ^= std::byte(1u << below(8)); break;
      case 2: bytes[at] = std::byte(random()); break;
      case 3: {
        constexpr uint8_t kExtremes[] = {0x00, 0xff, 0x7f, 0x80, 0x01};
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), std::min<size_t>(length, 8),
                    std::byte(kExtremes[below(std::size(kExtremes))]));
        break;
      }
      case 4: bytes.resize(at); break;
      case 5: {
        const Bytes part(bytes.begin() + static_cast<ptrdiff_t>(at),
                         bytes.begin() + static_cast<ptrdiff_t>(at + length));
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size())), part.begin(), part.end());
        break;
      }
      case 6:
        bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at),
                    bytes.begin() + static_cast<ptrdiff_t>(at + length));
        break;
      default: {
        const Bytes& other = seeds[below(seeds.size())];
        if (other.empty()) break;
        const size_t from = below(other.size()),
                     count = std::min({length, other.size() - from, bytes.size() - at});
        std::copy_n(other.begin() + static_cast<ptrdiff_t>(from), count,
                    bytes.begin() + static_cast<ptrdiff_t>(at));
      }
    }
  }
}

// Reads every mutated file; fails on any exception that is not Lockstep's. A crash ends the program.
inline void fuzz(const std::vector<Bytes>& seeds, const std::function<void(const Bytes&)>& read) {
  const int64_t count = environment_number("LOCKSTEP_FUZZ_COUNT", 2000);
  const auto first = static_cast<uint64_t>(environment_number("LOCKSTEP_FUZZ_SEED", 1));
  const int64_t from = environment_number("LOCKSTEP_FUZZ_FILE", 0);
  for (const Bytes& seed : seeds) ASSERT_NO_THROW(read(seed)) << "an unchanged file must be read";
  int64_t read_whole = 0, slowest = 0;
  double longest_s = 0;
  for (int64_t k = from; k < from + count; ++k) {
    std::mt19937_64 random(first * 1'000'003 + static_cast<uint64_t>(k));
    Bytes bytes = seeds[static_cast<size_t>(k) % seeds.size()];
    mutate(bytes, random, seeds);
    const std::clock_t start = std::clock();  // processor time: what others do on the machine is no matter
    try {
      read(bytes);
      ++read_whole;
    } catch (const Error& e) {
      ASSERT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << "errors are one line";
    } catch (const std::exception& e) { FAIL() << "file " << k << ": " << e.what(); }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (seconds > longest_s) longest_s = seconds, slowest = k;
  }
  EXPECT_LT(read_whole, count) << "some mutations must be noticed";
  fmt::print("{} mutated files, {} still readable; the slowest, number {}, took {:.3f} s of the processor\n",
             count, read_whole, slowest, longest_s);
}

}  // namespace lockstep::test
