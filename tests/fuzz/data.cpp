#include "data.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace lockstep::fuzz {

namespace {

template <class F>
F special_float(Random& random) {
  using L = std::numeric_limits<F>;
  static const F kValues[] = {F(0),
                              F(-0.0),
                              F(1),
                              F(-1),
                              F(0.5),
                              F(2),
                              F(3),
                              F(-7),
                              F(10),
                              F(0.1),
                              L::min(),
                              L::denorm_min(),
                              L::min() * F(0.75),
                              L::max(),
                              -L::max(),
                              L::infinity(),
                              -L::infinity(),
                              L::quiet_NaN(),
                              F(2147483647.0),
                              F(4294967296.0),
                              F(-2147483648.0),
                              F(1e10),
                              F(1.5),
                              F(2.5)};
  return kValues[random.below(int(std::size(kValues)))];
}

uint64_t special_integer(Random& random, int bits) {
  const uint64_t ones = bits == 64 ? ~uint64_t(0) : 0xffffffffu;
  const uint64_t values[] = {0,  1,  2,  3,  ones, ones - 1, ones >> 1, (ones >> 1) + 1,      7,
                             31, 32, 33, 63, 64,   255,      0x80,      0x5555555555555555ull};
  return values[random.below(int(std::size(values)))] & ones;
}

}  // namespace

uint64_t random_bits(Random& random, Type type, bool small) {
  switch (type) {
    case Type::boolean: return random.next() & 1;
    case Type::f32:
      if (small) return std::bit_cast<uint32_t>(float(random.below(17) - 8));
      if (random.chance(30)) return std::bit_cast<uint32_t>(special_float<float>(random));
      if (random.chance(20)) return uint32_t(random.next());
      return std::bit_cast<uint32_t>(float(random.below(2001) - 1000) / float(1 + random.below(64)));
    case Type::f64:
      if (random.chance(30)) return std::bit_cast<uint64_t>(special_float<double>(random));
      if (random.chance(20)) return random.next();
      return std::bit_cast<uint64_t>(double(random.below(2001) - 1000) / double(1 + random.below(64)));
    default: {
      const int bits = is_wide(type) ? 64 : 32;
      const uint64_t ones = bits == 64 ? ~uint64_t(0) : 0xffffffffu;
      if (random.chance(30)) return special_integer(random, bits);
      if (random.chance(40)) return uint64_t(int64_t(random.below(41) - 20)) & ones;
      return random.next() & ones;
    }
  }
}

std::vector<uint8_t> random_data(Random& random, Storage storage, int64_t count, bool small) {
  const int size = size_of(storage);
  std::vector<uint8_t> data(size_t(count) * size_t(size));
  for (int64_t k = 0; k < count; ++k) {
    const bool half = storage == Storage::f16 || storage == Storage::bf16 || storage == Storage::u8;
    const uint64_t bits = half ? random.next() : random_bits(random, value_type(storage), small);
    std::memcpy(data.data() + k * size, &bits, size_t(size));
  }
  return data;
}

}  // namespace lockstep::fuzz
