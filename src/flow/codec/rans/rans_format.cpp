#include "flow/codec/rans/rans_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

constexpr std::string_view kStreamMagic = "LSR1";

void put_number(std::vector<uint8_t>& to, uint64_t value, int bytes) {
  for (int k = 0; k < bytes; ++k) to.push_back(uint8_t(value >> (8 * k)));
}

/// Reads numbers off the front; refuses to go past the end.
class StreamReader {
 public:
  StreamReader(std::span<const uint8_t> bytes, std::string_view where) : bytes_(bytes), where_(where) {}
  uint32_t number(int bytes) {
    if (size_t(bytes) > bytes_.size() - at_) fail("the coded data ends too early");
    uint32_t value = 0;
    for (int k = 0; k < bytes; ++k) value |= uint32_t(bytes_[at_++]) << (8 * k);
    return value;
  }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(what, where_, "an undamaged file of flow encode");
  }

 private:
  std::span<const uint8_t> bytes_;
  std::string_view where_;
  size_t at_ = 0;
};

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t RansShape::tile_rows() const { return std::clamp<int64_t>(rows, 1, 64); }
int64_t RansShape::tile_columns() const {
  return std::clamp<int64_t>(kTileNumbers / tile_rows(), 1, std::max<int64_t>(columns, 1));
}
int64_t RansShape::tiles_y() const { return divided_up(rows, tile_rows()); }
int64_t RansShape::tiles_x() const { return divided_up(columns, tile_columns()); }
uint32_t RansShape::divisor() const { return numbers() >= 65536 ? 1 : numbers() >= 8192 ? 2 : 7; }

std::vector<uint32_t> rans_frequencies(std::span<const uint32_t> counts, uint32_t contexts) {
  std::vector<uint32_t> result(size_t(contexts) * kTokens, 0);
  for (uint32_t c = 0; c < contexts; ++c) {
    const auto of = counts.subspan(size_t(c) * kTokens, kTokens);
    uint64_t total = 0;
    for (const uint32_t n : of) total += n;
    if (total == 0) continue;
    uint32_t* f = result.data() + size_t(c) * kTokens;
    int64_t missing = kTableSize;
    for (uint32_t t = 0; t < kTokens; ++t)
      if (of[t] > 0) {
        f[t] = uint32_t(std::max<uint64_t>(1, uint64_t(of[t]) * kTableSize / total));
        missing -= f[t];
      }
    // The remainder of the rounding goes to, or comes from, the most frequent ones.
    while (missing != 0) {
      uint32_t& most = *std::max_element(f, f + kTokens);
      const int64_t change = missing > 0 ? missing : std::max<int64_t>(missing, -int64_t(most / 2));
      most = uint32_t(int64_t(most) + change);
      missing -= change;
    }
  }
  return result;
}

std::vector<uint8_t> pack_stream(const RansStream& s) {
  std::vector<uint8_t> bytes(kStreamMagic.begin(), kStreamMagic.end());
  for (const int64_t n : {s.shape.frames, s.shape.rows, s.shape.columns, int64_t(s.shape.divisor())})
    put_number(bytes, uint64_t(n), 4);
  for (uint32_t c = 0; c < s.shape.contexts(); ++c) {
    const uint32_t* f = s.frequencies.data() + size_t(c) * kTokens;
    uint32_t used = kTokens;
    while (used > 0 && f[used - 1] == 0) --used;
    put_number(bytes, used, 1);
    for (uint32_t t = 0; t < used; ++t) put_number(bytes, f[t], 2);
  }
  put_number(bytes, uint64_t(s.word_count), 4);
  for (size_t lane = 0; lane < s.counts.size(); ++lane) {
    put_number(bytes, s.counts[lane], 2);
    put_number(bytes, s.states[lane], 4);
  }
  for (int64_t w = 0; w < s.word_count; ++w)
    put_number(bytes, (s.words[size_t(w / 2)] >> (16 * (w % 2))) & 0xFFFFu, 2);
  return bytes;
}

RansStream parse_stream(std::span<const uint8_t> bytes, const RansShape& shape, std::string_view where) {
  StreamReader in(bytes, where);
  for (const char letter : kStreamMagic)
    if (in.number(1) != uint32_t(uint8_t(letter))) in.fail("coded data without its signature");
  for (const auto& [what, want] : {std::pair<const char*, int64_t>{"frames", shape.frames},
                                   {"rows", shape.rows},
                                   {"columns", shape.columns},
                                   {"contexts to a table", shape.divisor()}})
    if (const uint32_t got = in.number(4); got != want)
      in.fail(fmt::format("coded numbers of {} {} where {} belong", got, what, want));
  RansStream s;
  s.shape = shape;
  s.frequencies.assign(size_t(shape.contexts()) * kTokens, 0);
  for (uint32_t c = 0; c < shape.contexts(); ++c) {
    const uint32_t used = in.number(1);
    if (used > kTokens) in.fail(fmt::format("a table of {} tokens", used));
    uint32_t sum = 0;
    for (uint32_t t = 0; t < used; ++t) sum += s.frequencies[size_t(c) * kTokens + t] = in.number(2);
    if (used > 0 && sum != kTableSize) in.fail(fmt::format("frequencies that sum to {}", sum));
  }
  s.word_count = in.number(4);
  const auto lanes = size_t(shape.lanes());
  if (lanes > in.left() / 6) in.fail("the coded data ends too early");
  int64_t sum = 0;
  for (size_t lane = 0; lane < lanes; ++lane) {
    s.counts.push_back(in.number(2));
    s.states.push_back(in.number(4));
    sum += s.counts.back();
  }
  if (sum != s.word_count || uint64_t(sum) * 2 != in.left())
    in.fail(fmt::format("{} words in the lanes, {} in all, {} bytes left", sum, s.word_count, in.left()));
  s.words.assign(size_t(sum / 2 + 1), 0);
  for (int64_t w = 0; w < sum; ++w) s.words[size_t(w / 2)] |= in.number(2) << (16 * (w % 2));
  return s;
}

}  // namespace lockstep::flow
