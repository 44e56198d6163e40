// The coder in plain C++, number by number.
#include <algorithm>
#include <bit>

#include "flow/codec/rans/rans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow::reference {

namespace {

struct TokenOf {
  uint32_t token = 0, bits = 0, open = 0;
};
TokenOf split(uint32_t v) {
  if (v < 16) return {v, 0, 0};
  const uint32_t top = 31 - uint32_t(std::countl_zero(v)), half = (v >> (top - 1)) & 1;
  return {16 + 2 * (top - 4) + half, v & ((1u << (top - 1)) - 1), top - 1};
}

/// A number's place: frame, row, column, and the first row and column of its tile with its end.
struct Place {
  int64_t frame, y, x, y0, x0, x1;
};
/// f(lane, places of the lane in order).
template <class F>
void each_lane(const RansShape& s, F f) {
  size_t lane = 0;
  for (int64_t frame = 0; frame < s.frames; ++frame)
    for (int64_t y0 = 0; y0 < s.rows; y0 += s.tile_rows())
      for (int64_t x0 = 0; x0 < s.columns; x0 += s.tile_columns()) {
        const int64_t y1 = std::min(s.rows, y0 + s.tile_rows()),
                      x1 = std::min(s.columns, x0 + s.tile_columns());
        std::vector<Place> places;
        for (int64_t y = y0; y < y1; ++y)
          for (int64_t x = x0; x < x1; ++x) places.push_back({frame, y, x, y0, x0, x1});
        f(lane++, places);
      }
}

size_t at_place(const RansShape& s, const Place& p, int64_t dy = 0, int64_t dx = 0) {
  return size_t((p.frame * s.rows + p.y + dy) * s.columns + p.x + dx);
}

uint32_t context(const std::vector<uint32_t>& numbers, const RansShape& s, const Place& p) {
  const auto size = [&](int64_t dy, int64_t dx) {
    const uint32_t v = numbers[at_place(s, p, dy, dx)];
    return std::min(v / 2 + v % 2, kLargestSize);
  };
  const bool left = p.x > p.x0, above = p.y > p.y0, right = above && p.x + 1 < p.x1;
  uint32_t sum = 0;
  if (above) {
    const uint32_t a = size(-1, 0);
    sum = 2 * a + (left ? 2 * size(0, -1) + size(-1, -1) : 3 * a) + (right ? size(-1, 1) : a);
  } else if (left) {
    sum = 6 * size(0, -1);
  }
  if (sum < 4) return sum / s.divisor();
  const uint32_t top = 31 - uint32_t(std::countl_zero(sum)), level = 2 * top + ((sum >> (top - 1)) & 1);
  return (level <= 9 ? level : level / 2 + 5) / s.divisor();
}

}  // namespace

std::vector<uint8_t> rans_encode(std::span<const uint32_t> numbers, const RansShape& shape) {
  const std::vector<uint32_t> all(numbers.begin(), numbers.end());
  std::vector<uint32_t> counts(size_t(shape.contexts()) * kTokens, 0);
  each_lane(shape, [&](size_t, const std::vector<Place>& places) {
    for (const Place& p : places)
      ++counts[context(all, shape, p) * kTokens + split(all[at_place(shape, p)]).token];
  });
  RansStream s;
  s.shape = shape;
  s.frequencies = rans_frequencies(counts, shape.contexts());
  std::vector<uint32_t> words;
  each_lane(shape, [&](size_t, const std::vector<Place>& places) {
    uint64_t state = kRansLow;
    std::vector<uint32_t> own;
    const auto put = [&](uint32_t first, uint32_t frequency) {
      if (state >= uint64_t(frequency) << 20) {
        own.push_back(uint32_t(state & 0xFFFF));
        state >>= 16;
      }
      state = state / frequency * kTableSize + state % frequency + first;
    };
    for (auto p = places.rbegin(); p != places.rend(); ++p) {
      const TokenOf t = split(all[at_place(shape, *p)]);
      for (uint32_t from = 24; t.open > 0; from -= 12) {
        if (t.open > from) {
          const uint32_t width = std::min(t.open - from, kTableBits),
                         bits = (t.bits >> from) & ((1u << width) - 1);
          put(bits << (kTableBits - width), kTableSize >> width);
        }
        if (from == 0) break;
      }
      const uint32_t* f = s.frequencies.data() + context(all, shape, *p) * kTokens;
      uint32_t first = 0;
      for (uint32_t k = 0; k < t.token; ++k) first += f[k];
      put(first, f[t.token]);
    }
    s.counts.push_back(uint32_t(own.size()));
    s.states.push_back(uint32_t(state));
    words.insert(words.end(), own.rbegin(), own.rend());
  });
  s.word_count = int64_t(words.size());
  s.words.assign(words.size() / 2 + 1, 0);
  for (size_t w = 0; w < words.size(); ++w) s.words[w / 2] |= words[w] << (16 * (w % 2));
  return pack_stream(s);
}

std::vector<uint32_t> rans_decode(std::span<const uint8_t> bytes, const RansShape& shape) {
  const RansStream s = parse_stream(bytes, shape, "reference");
  std::vector<uint32_t> numbers(size_t(shape.numbers()), 0);
  int64_t begin = 0;
  each_lane(shape, [&](size_t lane, const std::vector<Place>& places) {
    uint64_t state = s.states[lane];
    int64_t next = begin;
    begin += s.counts[lane];
    const auto take = [&](uint32_t first, uint32_t frequency) {
      state = frequency * (state / kTableSize) + state % kTableSize - first;
      if (state >= kRansLow) return;
      const uint64_t word = next < begin ? (s.words[size_t(next / 2)] >> (16 * (next % 2))) & 0xFFFF : 0;
      ++next;
      state = state << 16 | word;
    };
    for (const Place& p : places) {
      const uint32_t* f = s.frequencies.data() + context(numbers, shape, p) * kTokens;
      const uint32_t slot = uint32_t(state % kTableSize);
      uint32_t token = 0, first = 0;
      while (token + 1 < kTokens && first + f[token] <= slot) first += f[token++];
      take(first, f[token]);
      uint32_t v = token;
      if (token >= 16) {
        const uint32_t open = (token - 16) / 2 + 3;
        v = (2 | (token & 1)) << open;
        for (uint32_t from = 0; from < open; from += kTableBits) {
          const uint32_t width = std::min(open - from, kTableBits);
          const uint32_t bits = uint32_t(state % kTableSize) >> (kTableBits - width);
          take(bits << (kTableBits - width), kTableSize >> width);
          v |= bits << from;
        }
      }
      numbers[at_place(shape, p)] = v;
    }
    if (state != kRansLow || next != begin)
      throw InputError("coded data of the wrong length", "reference", "a sound stream");
  });
  return numbers;
}

}  // namespace lockstep::flow::reference
