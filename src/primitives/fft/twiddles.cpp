#include "primitives/fft/twiddles.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace lockstep::primitives::fft {

namespace {

constexpr int kExactTerms = 6,
              kTerms = 16;  // of a series; those beyond the exact ones matter to 2^-33 of the whole

/// (-1)^i / (2 i + odd)!
struct Series {
  std::array<DoubleDouble, kExactTerms> exact;
  std::array<double, kTerms> all;
};
Series series(int odd) {
  Series s;
  double factorial = 1, sign = 1;  // up to 11! exact
  for (int i = 0; i < kTerms; ++i, sign = -sign) {
    if (i > 0) factorial *= double(2 * i + odd - 1) * double(2 * i + odd);
    s.all[size_t(i)] = sign / factorial;
    if (i < kExactTerms) s.exact[size_t(i)] = DoubleDouble{sign, 0} / factorial;
  }
  return s;
}

/// The series in x^2, for x up to pi / 4.
DoubleDouble value(const Series& s, const DoubleDouble& square) {
  double tail = 0;
  for (int i = kTerms - 1; i >= kExactTerms; --i) tail = tail * square.hi + s.all[size_t(i)];
  DoubleDouble sum{tail, 0};
  for (int i = kExactTerms - 1; i >= 0; --i) sum = sum * square + s.exact[size_t(i)];
  return sum;
}
DoubleDouble sine(const DoubleDouble& x) {
  static const Series kSeries = series(1);
  return x * value(kSeries, x * x);
}
DoubleDouble cosine(const DoubleDouble& x) {
  static const Series kSeries = series(0);
  return value(kSeries, x * x);
}

}  // namespace

Root root_of_unity(int64_t k, int64_t n) {
  k %= n;
  const int64_t quadrant = 4 * k / n, rest = 4 * k - quadrant * n;  // rest / (4 n) of a turn, below a quarter
  const auto angle = [&](int64_t part) {
    constexpr DoubleDouble kHalfPi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    return kHalfPi * DoubleDouble{double(part), 0} / double(n);
  };
  // Beyond half a quarter sine and cosine change places, so that both are computed where they are accurate.
  const bool mirrored = 2 * rest > n;
  const DoubleDouble a = angle(mirrored ? n - rest : rest), zero;
  Root w = mirrored ? Root{sine(a), zero - cosine(a)} : Root{cosine(a), zero - sine(a)};
  for (int64_t q = 0; q < quadrant; ++q) w = {w.im, -w.re};
  return w;
}

Stages::Stages(int64_t length) : length_(length) {
  while (length % 2 == 0) {
    length /= 2;
    power_of_two_ *= 2;
  }
  for (const int r : {3, 5, 7})
    for (; length % r == 0; length /= r) odd_.push_back(r);
  direct_ = length == 1;
}

int64_t Stages::points_before(int p) const {
  int64_t points = power_of_two_;
  for (int i = 0; i < p; ++i) points *= odd_[size_t(i)];
  return points;
}

int64_t Stages::odd_at(int p) const {
  int64_t at = power_of_two_;
  for (int i = 0; i < p; ++i) at += (odd_[size_t(i)] - 1) * points_before(i);
  return at;
}

int64_t Stages::real_at() const { return odd_at(int(odd_.size())); }

template <class T>
std::vector<T> Stages::table() const {
  std::vector<T> table(size_t(2 * table_size()));
  const auto put = [&](int64_t at, int64_t k, int64_t n) {
    const Root w = root_of_unity(k, n);
    table[size_t(2 * at)] = rounded<T>(w.re);
    table[size_t(2 * at + 1)] = rounded<T>(w.im);
  };
  for (int64_t n = 2; n <= power_of_two_; n *= 2)
    for (int64_t k = 0; k < n / 2; ++k) put(n / 2 + k, k, n);
  for (int p = 0; p < int(odd_.size()); ++p) {
    const int64_t s = points_before(p), r = odd_[size_t(p)];
    for (int64_t q = 1; q < r; ++q)
      for (int64_t k = 0; k < s; ++k) put(odd_at(p) + (q - 1) * s + k, q * k, s * r);
  }
  for (int64_t k = 0; k <= length_; ++k) put(real_at() + k, k, 2 * length_);
  return table;
}
template std::vector<float> Stages::table<float>() const;
template std::vector<double> Stages::table<double>() const;

std::vector<int> radices(const Stages& stages, int most) {
  std::vector<int> result;
  const int bits = std::countr_zero(uint64_t(stages.power_of_two())), each = std::countr_zero(unsigned(most)),
            passes = (bits + each - 1) / each;
  for (int p = 0, left = bits; p < passes; ++p) {
    const int now = (left + passes - p - 1) / (passes - p);
    result.push_back(1 << now);
    left -= now;
  }
  result.insert(result.end(), stages.odd().begin(), stages.odd().end());
  return result;
}

}  // namespace lockstep::primitives::fft
