// Checksums and raw deflated data (RFC 1951) for builds without zlib.
#include <array>
#include <cstring>
#include <span>

#include "core/platform/web/zlib/zlib.h"

namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    table[n] = c;
  }
  return table;
}();

/// A canonical Huffman code: how many codes there are of each length, and the symbols in their order.
class HuffmanCode {
 public:
  static constexpr size_t kLongest = 15;
  /// Of the lengths of all symbols, 0 for none. Throws Z_DATA_ERROR for more codes than the lengths leave room for.
  explicit HuffmanCode(std::span<const uint8_t> lengths) {
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<uint16_t, kLongest + 1> first{};
    int left = 1;
    for (size_t length = 1; length <= kLongest; ++length) {
      left = 2 * left - counts_[length];
      if (left < 0) throw Z_DATA_ERROR;
      if (length < kLongest) first[length + 1] = uint16_t(first[length] + counts_[length]);
    }
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol]) symbols_[first[lengths[symbol]]++] = uint16_t(symbol);
  }
  template <class NextBit>
  uint16_t decode(NextBit next_bit) const {
    int code = 0, first = 0, index = 0;
    for (size_t length = 1; length <= kLongest; ++length) {
      code |= next_bit();
      const int count = counts_[length];
      if (code - first < count) return symbols_[size_t(index + code - first)];
      index += count;
      first = 2 * (first + count);
      code *= 2;
    }
    throw Z_DATA_ERROR;
  }

 private:
  std::array<uint16_t, kLongest + 1> counts_{};
  std::array<uint16_t, 288> symbols_{};
};

/// Throws the code of zlib that says why it stopped.
class Inflater {
 public:
  explicit Inflater(z_stream& stream) : s_(stream), begin_(stream.next_out) {}
  void run() {
    for (bool last = false; !last;) {
      last = bits(1);
      switch (bits(2)) {
        case 0: stored(); break;
        case 1: fixed(); break;
        case 2: dynamic(); break;
        default: throw Z_DATA_ERROR;
      }
    }
  }

 private:
  uint32_t bits(int count) {
    for (; held_ < count; held_ += 8) word_ |= uint32_t(byte()) << held_;
    const uint32_t found = word_ & ((1u << count) - 1);
    word_ >>= count;
    held_ -= count;
    return found;
  }
  uint8_t byte() {
    if (s_.avail_in == 0) throw Z_BUF_ERROR;
    --s_.avail_in;
    return *s_.next_in++;
  }
  void put(uint8_t value) {
    if (s_.avail_out == 0) throw Z_BUF_ERROR;
    --s_.avail_out;
    *s_.next_out++ = value;
  }
  void stored() {
    word_ = 0, held_ = 0;
    const uint32_t count = bits(16);
    if (bits(16) != (count ^ 0xffffu)) throw Z_DATA_ERROR;
    for (uint32_t k = 0; k < count; ++k) put(byte());
  }
  void fixed() {
    std::array<uint8_t, 288> lengths{};
    for (size_t k = 0; k < lengths.size(); ++k) lengths[k] = k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8;
    std::array<uint8_t, 30> distances{};
    distances.fill(5);
    coded(HuffmanCode(lengths), HuffmanCode(distances));
  }
  void dynamic() {
    constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const size_t literals = bits(5) + 257, distances = bits(5) + 1, counts = bits(4) + 4;
    if (literals > 286 || distances > 30) throw Z_DATA_ERROR;
    std::array<uint8_t, 19> of_lengths{};
    for (size_t k = 0; k < counts; ++k) of_lengths[kOrder[k]] = uint8_t(bits(3));
    const HuffmanCode code(of_lengths);
    std::array<uint8_t, 286 + 30> lengths{};
    for (size_t k = 0; k < literals + distances;) {
      const uint16_t symbol = code.decode([&] { return int(bits(1)); });
      if (symbol < 16) {
        lengths[k++] = uint8_t(symbol);
        continue;
      }
      if (symbol == 16 && k == 0) throw Z_DATA_ERROR;
      const uint8_t value = symbol == 16 ? lengths[k - 1] : uint8_t(0);
      const size_t repeats = symbol == 16 ? 3 + bits(2) : symbol == 17 ? 3 + bits(3) : 11 + bits(7);
      if (repeats > literals + distances - k) throw Z_DATA_ERROR;
      for (const size_t end = k + repeats; k < end; ++k) lengths[k] = value;
    }
    coded(HuffmanCode(std::span(lengths).first(literals)),
          HuffmanCode(std::span(lengths).subspan(literals, distances)));
  }
  /// Literals and copies of earlier bytes, to the end of the block.
  void coded(const HuffmanCode& literals, const HuffmanCode& distances) {
    const auto next_bit = [&] { return int(bits(1)); };
    for (;;) {
      const uint16_t symbol = literals.decode(next_bit);
      if (symbol == 256) return;
      if (symbol < 256) {
        put(uint8_t(symbol));
        continue;
      }
      if (symbol > 285) throw Z_DATA_ERROR;
      // Groups of 4 lengths, and of 2 distances, with one more bit each.
      const int l = symbol - 257, d_bits = l < 8 || l == 28 ? 0 : l / 4 - 1;
      const uint32_t length = l == 28 ? 258
                              : l < 8 ? uint32_t(l) + 3
                                      : (uint32_t(4 + l % 4) << d_bits) + 3 + bits(d_bits);
      const int d = distances.decode(next_bit), more = d < 4 ? 0 : d / 2 - 1;
      if (d > 29) throw Z_DATA_ERROR;
      const size_t back = d < 4 ? size_t(d) + 1 : (size_t(2 + d % 2) << more) + 1 + bits(more);
      if (back > size_t(s_.next_out - begin_)) throw Z_DATA_ERROR;
      for (uint32_t k = 0; k < length; ++k) put(s_.next_out[-ptrdiff_t(back)]);
    }
  }

  z_stream& s_;
  const Bytef* begin_;
  uint32_t word_ = 0;
  int held_ = 0;
};

/// A product of polynomials over GF(2) modulo that of CRC-32, bits reflected.
uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (; a; a <<= 1) {
    if (a & 0x80000000u) sum ^= b;
    b = b & 1 ? (b >> 1) ^ 0xedb88320u : b >> 1;
  }
  return sum;
}

}  // namespace

uLong crc32(uLong crc, const Bytef* bytes, uInt count) {
  uint32_t c = ~uint32_t(crc);
  for (uInt k = 0; bytes && k < count; ++k) c = kCrcTable[(c ^ bytes[k]) & 255] ^ (c >> 8);
  return bytes ? uint32_t(~c) : 0;
}

uLong crc32_combine(uLong crc, uLong next, z_off_t bytes_of_next) {
  uint32_t shift = 0x80000000u, power = 0x00800000u;  // 1, and x^8
  for (uint64_t n = uint64_t(bytes_of_next); n; n >>= 1, power = product(power, power))
    if (n & 1) shift = product(shift, power);
  return product(shift, uint32_t(crc)) ^ uint32_t(next);
}

int inflate(z_stream* stream, int) {
  try {
    Inflater(*stream).run();
    return Z_STREAM_END;
  } catch (int code) { return code; }
}
