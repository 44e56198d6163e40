// Random lives of a smoother of linear terms, compared with dense sums of what each one has in it: the conditions of the
// minimum within the bounds hold, which is unique.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <map>
#include <random>

#include "worlds.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// weight (1/2 x^T H x + g^T x + c) over the two numbers of each of its blocks.
struct DenseTerm {
  TermSet terms;
  std::vector<int64_t> blocks;
  MatrixXd h;
  VectorXd g;
  double c = 0, weight = 1;
};

/// J x - d, two rows.
DenseTerm dense_term(TermSet terms, std::vector<int64_t> blocks, std::span<const double> data) {
  const Eigen::Index n = 2 * Eigen::Index(blocks.size());
  MatrixXd j(2, n);
  for (Eigen::Index r = 0; r < 2; ++r)
    for (Eigen::Index k = 0; k < n; ++k) j(r, k) = data[size_t(n * r + k)];
  const Eigen::Map<const VectorXd> d(data.data() + 2 * n, 2);
  return {terms, std::move(blocks), j.transpose() * j, -j.transpose() * d, 0.5 * d.squaredNorm(), 1};
}

TermType rows_of(int slots) {
  return {slots == 1 ? "own" : "pair", std::vector<int>(size_t(slots), 2), 4 * slots + 2,
          [n = 2 * slots](const TermArguments& t) {
            std::vector<Value> out;
            for (int r = 0; r < 2; ++r) {
              Value sum = -t.data(2 * n + r);
              for (int k = 0; k < n; ++k) sum = sum + t.data(n * r + k) * t.x(k / 2, k % 2);
              out.push_back(sum);
            }
            return out;
          }};
}

class SmootherLife {
 public:
  SmootherLife(Context& context, uint64_t seed)
      : random_(seed),
        lag_(seed % 3 == 0 ? INFINITY : double(4 + seed % 9)),
        smoother_(context, options(lag_)) {
    points_ = smoother_.add_set("points", euclidean(2));
    own_ = smoother_.add_kind(rows_of(1), {points_}),
    pair_ = smoother_.add_kind(rows_of(2), {points_, points_});
    for (int k = 0; k < 3; ++k) append();
  }

  void step() {
    switch (below(9)) {
      case 0:
      case 1: return append();
      case 2:
      case 3: return add_pair();
      case 4: return reweigh();
      case 5: return erase_terms();
      case 6: return hold();
      case 7: return bound();
      default: return touch();
    }
  }

  /// Estimates, costs and the blocks that are left.
  void update() {
    marginalize();
    const int64_t left_now = smoother_.update().left;
    std::vector<int64_t> numbers;
    for (const auto& [number, block] : blocks_) numbers.push_back(number);
    ASSERT_EQ(smoother_.block_numbers(points_), numbers);
    const DenseTerm all = whole(terms_, numbers);
    const VectorXd x = values(all.blocks), slope = all.h * x + all.g;
    const double scale = 1 + all.h.norm() * (1 + x.norm());
    // Blocks that leave without a neighbour take the rest of their cost along.
    const double lost = 0.5 * x.dot(all.h * x) + all.g.dot(x) + all.c - smoother_.cost(),
                 rounding = 1e-10 * scale * (1 + x.norm());
    ASSERT_GT(lost, lost_ - rounding);
    ASSERT_TRUE(left_now > 0 || lost < lost_ + rounding) << lost - lost_;
    lost_ = lost;
    Eigen::Index k = 0;
    for (auto& [number, block] : blocks_)
      for (const size_t i : {0, 1}) {
        Number& own = block.numbers[i];
        const double at = x(k), g = slope(k++);
        if (block.fixed) continue;
        if (own.held) {
          ASSERT_NEAR(at, own.value, 1e-15);
          continue;
        }
        ASSERT_TRUE(at >= own.lower && at <= own.upper) << number;
        // The cost falls only out of the bounds.
        ASSERT_TRUE(at == own.lower || g < 1e-10 * scale) << number << ": slope " << g;
        ASSERT_TRUE(at == own.upper || g > -1e-10 * scale) << number << ": slope " << g;
        own.stuck = at == own.lower || at == own.upper;
        own.value = at;
        ++(own.stuck ? at_bound : free);
      }
  }
  static inline int64_t left = 0, left_at_bound = 0, at_bound = 0, free = 0, zeros = 0;

 private:
  struct Number {
    bool held = false, stuck = false;  // stuck: the last update held it at a bound
    double value = 0, lower = -INFINITY, upper = INFINITY;
  };
  struct Block {
    double time = 0;
    bool fixed = false;
    Number numbers[2];
  };
  static SmootherOptions options(double lag) { return {lag, 1e9, 0}; }
  size_t below(size_t n) { return size_t(random_() % n); }
  double number() { return double(random_() >> 11) * 0x1p-52 - 1; }
  int64_t any() { return std::next(blocks_.begin(), int64_t(below(blocks_.size())))->first; }
  VectorXd values(const std::vector<int64_t>& numbers) const {
    VectorXd x(2 * Eigen::Index(numbers.size()));
    Eigen::Index k = 0;
    for (const int64_t b : numbers)
      for (const double v : smoother_.value(points_, b)) x(k++) = v;
    return x;
  }
  static DenseTerm whole(const std::vector<DenseTerm>& terms, const std::vector<int64_t>& numbers) {
    DenseTerm all;
    all.blocks = numbers;
    const Eigen::Index n = 2 * Eigen::Index(numbers.size());
    all.h = MatrixXd::Zero(n, n), all.g = VectorXd::Zero(n);
    for (const DenseTerm& t : terms) {
      std::vector<Eigen::Index> at;
      for (const int64_t b : t.blocks)
        for (const Eigen::Index i : {0, 1})
          at.push_back(2 * (std::ranges::lower_bound(numbers, b) - numbers.begin()) + i);
      all.h(at, at) += t.weight * t.h, all.g(at) += t.weight * t.g, all.c += t.weight * t.c;
    }
    return all;
  }

  void touch() {
    const int64_t b = any();
    smoother_.touch(points_, b, now_);
    blocks_.at(b).time = now_;
  }
  void append() {
    now_ += double(below(3));
    const std::vector<double> start{number(), number()};
    const int64_t block = smoother_.append_blocks(points_, start, now_);
    Block& own = blocks_[block];
    own.time = now_, own.fixed = below(12) == 0;
    if (own.fixed) smoother_.fix(points_, block);
    add(own_, {block}, {0.4, 0, 0, 0.3, number(), number()});
    weak_.push_back(terms_.back().terms.id);
    if (blocks_.size() > 1) add_pair();
  }
  void add(FactorKind kind, std::vector<int64_t> blocks, const std::vector<double>& data) {
    const TermSet terms = smoother_.add_terms(kind, std::vector<int32_t>(blocks.begin(), blocks.end()), data);
    terms_.push_back(dense_term(terms, std::move(blocks), data));
  }
  void add_pair() {
    if (blocks_.size() < 2) return;
    const int64_t a = any();
    int64_t b = a;
    while (b == a) b = any();
    std::vector<double> data;
    for (int k = 0; k < 10; ++k) data.push_back(2 * number());
    add(pair_, {a, b}, data);
  }
  /// A term that is not a prior; null: there is none. Those that hold a block by themselves are not `weak`.
  DenseTerm* any_term(bool weak) {
    if (terms_.empty()) return nullptr;
    DenseTerm& t = terms_[below(terms_.size())];
    const bool holds = std::ranges::find(weak_, t.terms.id) != weak_.end();
    return t.terms.id < 0 || (weak && holds) ? nullptr : &t;
  }
  void reweigh() {
    DenseTerm* const t = any_term(false);
    if (!t) return;
    const bool holds = std::ranges::find(weak_, t->terms.id) != weak_.end();
    t->weight = holds ? 0.5 + double(below(4)) : double(below(4));
    zeros += t->weight == 0;
    smoother_.weigh(t->terms, t->weight);
  }
  void erase_terms() {
    DenseTerm* const t = any_term(true);
    if (!t) return;
    smoother_.erase(t->terms);
    terms_.erase(terms_.begin() + (t - terms_.data()));
  }
  void hold() {
    const int64_t b = any();
    const std::vector<double> at = smoother_.value(points_, b);
    std::vector<int> held;
    for (const int i : {0, 1}) {
      Number& own = blocks_.at(b).numbers[i];
      own.held = below(3) == 0, own.value = at[size_t(i)];
      if (own.held) held.push_back(i), own.stuck = false;
    }
    smoother_.fix_coordinates(points_, b, held);
  }
  void bound() {
    const int64_t b = any();
    const size_t i = below(2);
    Number& own = blocks_.at(b).numbers[i];
    double ends[] = {0.5 * number(), 0.5 * number()};
    std::ranges::sort(ends);
    switch (below(5)) {
      case 0: ends[0] = -INFINITY; break;
      case 1: ends[1] = INFINITY; break;
      case 2: ends[1] = below(2) == 0 ? ends[0] : ends[1]; break;
      case 3: ends[0] = -INFINITY, ends[1] = INFINITY; break;
      default: break;
    }
    own.lower = ends[0], own.upper = ends[1], own.stuck = false;
    smoother_.bound(points_, b, int(i), own.lower, own.upper);
  }

  /// The Schur complement of the blocks that the next update takes out: numbers that are held, or were at a bound, at their
  /// values.
  void marginalize() {
    std::vector<int64_t> leaving;
    double latest = 0;
    for (const auto& [number, block] : blocks_) latest = std::max(latest, block.time);
    for (const auto& [number, block] : blocks_)
      if (block.time < latest - lag_ && !block.fixed) leaving.push_back(number);
    // Fixed ones leave where no term is left.
    std::erase_if(blocks_, [&](const auto& entry) {
      return entry.second.fixed && entry.second.time < latest - lag_ &&
             std::ranges::none_of(
                 terms_,
                 [&](const DenseTerm& t) {
                   return std::ranges::find(t.blocks, entry.first) != t.blocks.end();
                 });
    });
    if (leaving.empty()) return;
    std::vector<DenseTerm> gone, rest;
    for (const DenseTerm& t : terms_)
      (std::ranges::find_first_of(t.blocks, leaving) == t.blocks.end() ? rest : gone).push_back(t);
    std::vector<int64_t> numbers;
    for (const DenseTerm& t : gone) numbers.insert(numbers.end(), t.blocks.begin(), t.blocks.end());
    std::ranges::sort(numbers);
    numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
    const DenseTerm all = whole(gone, numbers);
    const VectorXd x = values(numbers);
    std::vector<Eigen::Index> out, stay, known;
    DenseTerm prior;
    for (size_t k = 0; k < numbers.size(); ++k) {
      const Block& block = blocks_.at(numbers[k]);
      const bool leaves = std::ranges::find(leaving, numbers[k]) != leaving.end();
      if (!leaves && !block.fixed) prior.blocks.push_back(numbers[k]);
      for (const size_t i : {0, 1}) {
        const Eigen::Index at = 2 * Eigen::Index(k) + Eigen::Index(i);
        const Number& own = block.numbers[i];
        left_at_bound += leaves && own.stuck && !own.held;
        (block.fixed || (leaves && (own.held || own.stuck)) ? known : leaves ? out : stay).push_back(at);
      }
    }
    left += int64_t(leaving.size());
    const VectorXd at = x(known), g = all.g + all.h(Eigen::all, known) * at;
    const MatrixXd inverse = MatrixXd(all.h(out, out)).inverse();
    prior.h = MatrixXd(all.h(stay, stay)) - all.h(stay, out) * inverse * all.h(out, stay);
    prior.g = VectorXd(g(stay)) - all.h(stay, out) * (inverse * g(out));
    prior.c = all.c + at.dot(VectorXd(all.g(known))) + 0.5 * at.dot(all.h(known, known) * at) -
              0.5 * g(out).dot(inverse * g(out));
    rest.push_back(prior);
    terms_ = rest;
    for (const int64_t b : leaving) blocks_.erase(b);
  }

  std::mt19937_64 random_;
  double lag_, now_ = 0, lost_ = 0;
  Smoother smoother_;
  BlockSet points_;
  FactorKind own_, pair_;
  std::map<int64_t, Block> blocks_;
  std::vector<DenseTerm> terms_;
  std::vector<int> weak_;
};

TEST(SmootherSequences, EndAtTheMinimumOfTheDenseSums) {
  Context context = cpu_context(1);
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SmootherLife life(context, seed);
    for (int step = 0; step < 36; ++step) {
      life.step();
      if (step % 3 == 2) life.update();
      if (testing::Test::HasFailure()) GTEST_FAIL() << "seed " << seed << ", step " << step;
    }
  }
  EXPECT_GT(SmootherLife::left, 1000);
  EXPECT_GT(SmootherLife::left_at_bound, 100);
  EXPECT_GT(SmootherLife::at_bound, 3000);
  EXPECT_GT(SmootherLife::free, 10000);
  EXPECT_GT(SmootherLife::zeros, 100);
}

}  // namespace
}  // namespace lockstep::solve::test
