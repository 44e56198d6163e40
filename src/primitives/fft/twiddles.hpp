// The order of arithmetic of a transform, and its table of roots of unity. Every form of the transform (passes
// over memory, blocks of lanes, whole lines of a lane) works by this order, so all give the same bits.
//
// length = 2^a times odd factors 3, 5, 7. The stages of the powers of two come first, each a fold of two
// values with a span of 2, 4 … 2^a; then one stage for each odd factor. How many power-of-two stages a lane
// does between two exchanges (the radix) changes no bit: each stage is the same fold with the same root.
//
// Table, in complex numbers w(k, n) = exp(-2 pi i k / n), each rounded once:
//   [n / 2 + k]       k < n / 2, for the spans n = 2, 4 … 2^a
//   [odd_at(p) + (q - 1) s + k]   w(q k, s r), q = 1 … r - 1, k < s: odd stage p of factor r after s points
//   [real_at() + k]   w(k, 2 length), k <= length: joins the halves of a real transform of twice the length
#pragma once

#include <cstdint>
#include <vector>

#include "primitives/fft/double_double.hpp"

namespace lockstep::primitives::fft {

/// exp(-2 pi i k / n), exactly symmetric: w(k + n/4) = -i w(k).
struct Root {
  DoubleDouble re, im;
};
Root root_of_unity(int64_t k, int64_t n);

class Stages {
 public:
  explicit Stages(int64_t length);
  int64_t length() const { return length_; }
  /// Whether the length is made of the factors 2, 3, 5 and 7.
  bool direct() const { return direct_; }
  int64_t power_of_two() const { return power_of_two_; }
  const std::vector<int>& odd() const { return odd_; }
  /// Points transformed before odd stage p.
  int64_t points_before(int p) const;
  int64_t odd_at(int p) const;
  int64_t real_at() const;
  /// Complex numbers in the table.
  int64_t table_size() const { return real_at() + length_ + 1; }
  template <class T>
  std::vector<T> table() const;  // real and imaginary parts in turn

 private:
  int64_t length_, power_of_two_ = 1;
  std::vector<int> odd_;
  bool direct_ = true;
};

/// Radices of the passes: powers of two up to `most` (the first at least 4 where the length allows), as equal
/// as may be, the largest first; then the odd factors.
std::vector<int> radices(const Stages& stages, int most);

}  // namespace lockstep::primitives::fft
