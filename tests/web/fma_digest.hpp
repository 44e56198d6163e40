// Triples that are hard for a b + c with one rounding, and the digest of the native program's results.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lockstep::web_tests {

inline constexpr int64_t kTriples = 1 << 20;
/// tests/compile/wasm/fma_test.cpp computes them by std::fma.
inline constexpr uint64_t kFma32Digest = 0x4c5b4dbd7d4c8c9c, kFma64Digest = 0x28dedcacd268df27;

/// FNV-1a over the bits; NaN counts as one value.
struct Digest {
  uint64_t value = 0xcbf29ce484222325u;
  template <class T>
  void add(T x) {
    if (x != x) x = std::numeric_limits<T>::quiet_NaN();
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &x, sizeof(T));
    for (uint8_t byte : bytes) value = (value ^ byte) * 0x100000001b3u;
  }
};

/// Factors of few bits (so that sums fall halfway), of all exponents, and of exponents that nearly cancel or underflow;
/// zeros, infinities and NaN among them.
template <class T>
class HostileTriples {
 public:
  std::array<T, 3> next() {
    const int form = int(random() % 8);
    const T a = number(form), b = number(form);
    T c = number(form);
    const T product = a * b;
    const uint64_t relation = random() % 6, r = random();
    if (!std::isfinite(product) || product == 0) return {a, b, c};
    switch (relation) {
      case 0: c = -product; break;                                          // cancels but for the error
      case 1: c = std::nextafter(-product, T(r % 2 == 0 ? 1 : -1)); break;  // nearly
      case 2: c = std::ldexp(product, int(r % (2 * kDigits + 8)) - kDigits - 4); break;  // overlaps
      case 3:
        c = std::ldexp(T(1) + T(r % 4) / 2, std::ilogb(product) + int(r / 4 % 60) - 30);
        break;  // of few bits
      default: break;
    }
    return {a, b, c};
  }

 private:
  static constexpr int kDigits = std::numeric_limits<T>::digits;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

  uint64_t random() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  static T of(Bits sign, Bits exponent, Bits fraction) {
    return std::bit_cast<T>(Bits(sign << (8 * sizeof(T) - 1) | exponent << (kDigits - 1) | fraction));
  }
  T number(int form) {
    constexpr int kBias = std::numeric_limits<T>::max_exponent - 1;
    constexpr Bits kFraction = (Bits(1) << (kDigits - 1)) - 1, kHigh = Bits(7) << (kDigits - 4);
    const Bits bits = Bits(random()), fraction = bits & kFraction;
    const uint64_t r = random();
    const Bits sign = r & 1, low = r >> 1 & 3;
    const auto near = [&](int exponent, int range) {
      return Bits(kBias + exponent + int((r >> 8) % uint64_t(range + 1)) - range / 2);
    };
    switch (form) {
      case 0: return std::bit_cast<T>(bits);
      case 1: return of(sign, near(0, 4), fraction);
      case 2: return of(sign, near(0, 60), (fraction & kHigh) | low);  // few bits at both ends
      case 3: return of(sign, near(-kBias / 2, 24), fraction);  // products about the least normal number
      case 4:
        return of(sign, near(-kBias / 2 - 6, 28),
                  (fraction & kHigh) | (low & 1));                     // sums halfway between subnormal ones
      case 5: return of(sign, 0, low == 0 ? fraction & 3 : fraction);  // subnormal
      case 6: return of(sign, near(kBias / 2, 6), fraction);           // about overflow
      default: break;
    }
    using Limits = std::numeric_limits<T>;
    constexpr T kSpecial[] = {
        T(0), T(1), T(0.5), T(3), Limits::infinity(), Limits::max(), Limits::min(), Limits::denorm_min()};
    const T x = kSpecial[r >> 1 & 7];
    return sign ? -x : x;
  }
  uint64_t state_ = 20261128;
};

}  // namespace lockstep::web_tests
