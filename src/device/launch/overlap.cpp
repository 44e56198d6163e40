#include "device/launch/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

namespace lockstep::device {

namespace {

__extension__ using Wide = __int128;

/// `stride` times an unknown from 0 to `most`.
struct Term {
  int64_t stride, most;
};

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

/// The least x >= 0 for which step * x mod modulus lies from `low` to `high`, or -1; 0 <= low <= high < modulus.
Wide first_hit(Wide step, Wide modulus, Wide low, Wide high) {
  if (low == 0) return 0;
  if (step == 0) return -1;
  if (const Wide x = (low + step - 1) / step; step * x <= high) return x;
  const auto negative = [&](Wide v) { return (step - v % step) % step; };
  const Wide turns = first_hit(modulus % step, step, negative(high), negative(low));
  return turns < 0 ? -1 : (low + modulus * turns + step - 1) / step;
}

/// Whether a sum of terms, all strides above 0, can lie between two bounds.
class Search {
 public:
  explicit Search(std::vector<Term> terms) : terms_(std::move(terms)) {
    std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
    suffixes_.resize(terms_.size() + 1);
    for (size_t k = terms_.size(); k-- > 0;)
      suffixes_[k] = {suffixes_[k + 1].sum + terms_[k].stride * terms_[k].most,
                      std::gcd(suffixes_[k + 1].divisor, terms_[k].stride)};
  }
  bool reaches(int64_t low, int64_t high) { return reaches(0, low, high); }

 private:
  /// By the terms from `first` on.
  bool reaches(size_t first, int64_t low, int64_t high) {
    const Suffix& rest = suffixes_[first];
    if (low > high || high < 0 || low > rest.sum) return false;
    if (low <= 0 || rest.sum <= high) return true;  // all unknowns 0, or all at their most
    if (floor_div(high, rest.divisor) * rest.divisor < low) return false;
    const Term& term = terms_[first];
    if (first + 1 == terms_.size())
      return true;  // a multiple of its stride lies there, and not beyond the sum
    if (first + 2 == terms_.size()) return two(term, terms_[first + 1], low, high);
    const int64_t from = std::max<int64_t>(ceil_div(low - suffixes_[first + 1].sum, term.stride), 0);
    const int64_t to = std::min(high / term.stride, term.most);
    for (int64_t x = from; x <= to; ++x) {
      if (++steps_ > kMostSteps) return true;
      if (reaches(first + 1, low - x * term.stride, high - x * term.stride)) return true;
    }
    return false;
  }

  /// Two terms in logarithmic time.
  static bool two(const Term& a, const Term& b, int64_t low, int64_t high) {
    const int64_t most = b.stride * b.most;
    const int64_t from = std::max<int64_t>(ceil_div(low - most, a.stride), 0);
    const int64_t to = std::min(high / a.stride, a.most);
    if (from > to) return false;
    if (high - from * a.stride >= most) return true;  // the second at its most
    // The rest for the second runs from 0 to less than its most: its remainder decides.
    if (high - low >= b.stride - 1) return true;
    const int64_t start = (high - from * a.stride) % b.stride;
    if (start <= high - low) return true;
    const int64_t step = (b.stride - a.stride % b.stride) % b.stride;
    const Wide hit = first_hit(step, b.stride, b.stride - start, b.stride - start + (high - low));
    return hit >= 0 && hit <= to - from;
  }

  static constexpr int kMostSteps = 1 << 18;
  struct Suffix {
    int64_t sum = 0, divisor = 0;
  };
  std::vector<Term> terms_;
  std::vector<Suffix> suffixes_;  // of the terms from each one on
  int steps_ = 0;
};

/// By stride. Without std::sort, which GCC 12 takes to read behind so few.
void sort_terms(std::span<Term> terms) {
  for (size_t k = 1; k < terms.size(); ++k)
    for (size_t j = k; j > 0 && terms[j].stride < terms[j - 1].stride; --j) std::swap(terms[j], terms[j - 1]);
}

/// Bytes of a buffer: whole runs from `first` plus every sum of the terms.
struct Runs {
  int64_t first, bytes;
  std::array<Term, 4> terms;
  int count = 0;
};

Runs runs_of(const Binding& b, int64_t element_bytes) {
  Runs runs{b.offset_bytes, element_bytes, {}};
  for (size_t a = 0; a < 4; ++a)
    if (b.shape[a] > 1) runs.terms[size_t(runs.count++)] = {b.strides[a] * element_bytes, b.shape[a] - 1};
  sort_terms({runs.terms.data(), size_t(runs.count)});
  int joined = 0;  // axes that leave no gap between the runs
  for (; joined < runs.count && runs.terms[size_t(joined)].stride <= runs.bytes; ++joined)
    runs.bytes += runs.terms[size_t(joined)].stride * runs.terms[size_t(joined)].most;
  std::copy(runs.terms.begin() + joined, runs.terms.begin() + runs.count, runs.terms.begin());
  runs.count -= joined;
  return runs;
}

}  // namespace

bool overlap(const Binding& a, const Binding& b, int64_t a_bytes, int64_t b_bytes) {
  int64_t apart = b.offset_bytes - a.offset_bytes;
  if (a.memory != b.memory) {  // blocks of others may be nested
    if (a.memory->address == 0 || b.memory->address == 0) return false;
    apart += int64_t(b.memory->address - a.memory->address);
  }
  if (a.span_bytes == 0 || b.span_bytes == 0 || a.span_bytes <= apart || b.span_bytes <= -apart) return false;
  const Runs one = runs_of(a, a_bytes), other = runs_of(b, b_bytes);
  std::vector<Term> terms(one.terms.begin(), one.terms.begin() + one.count);
  // a's first byte + its sum - b's sum = apart + a difference within the runs; b's unknowns count from their most down.
  int64_t target = apart;
  for (int k = 0; k < other.count; ++k) {
    const Term& term = other.terms[size_t(k)];
    target += term.stride * term.most;
    const auto same = std::find_if(terms.begin(), terms.end(),
                                   [&](const Term& known) { return known.stride == term.stride; });
    if (same == terms.end())
      terms.push_back(term);
    else
      same->most += term.most;
  }
  return Search(std::move(terms)).reaches(target - one.bytes + 1, target + other.bytes - 1);
}

bool overlaps_itself(const Shape& shape, const std::array<int64_t, 4>& strides) {
  std::array<Term, 4> all;
  size_t count = 0;
  for (int a = shape.rank() - 1; a >= 0; --a) {
    if (shape[a] == 0) return false;
    if (shape[a] > 1) all[count++] = {strides[size_t(a)], shape[a] - 1};
  }
  const std::span<Term> terms(all.data(), count);
  const auto nested = [&] {  // each stride exceeds what the axes before it span
    int64_t span = 0;
    for (const Term& term : terms) {
      if (term.stride <= span) return false;
      span += term.stride * term.most;
    }
    return true;
  };
  if (nested()) return false;
  sort_terms(terms);
  if (terms.front().stride == 0) return true;
  if (nested()) return false;
  // Two positions that differ along axis k by 1 or more, and else along the axes behind it only, by -most to most.
  for (size_t k = 0; k < count; ++k) {
    std::vector<Term> unknowns{{terms[k].stride, terms[k].most - 1}};
    int64_t target = -terms[k].stride;
    for (size_t j = k + 1; j < count; ++j) {
      unknowns.push_back({terms[j].stride, 2 * terms[j].most});
      target += terms[j].stride * terms[j].most;
    }
    if (Search(std::move(unknowns)).reaches(target, target)) return true;
  }
  return false;
}

std::string layout_text(const Buffer& buffer) {
  Shape strides;
  for (int a = 0; a < buffer.shape().rank(); ++a) strides.push_back(buffer.strides()[size_t(a)]);
  return fmt::format("strides {} of shape {}", to_string(strides), to_string(buffer.shape()));
}

}  // namespace lockstep::device
