// Random lives of a problem of linear terms, held against dense algebra over what each one has in it.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <set>

#include "../evaluate/problems.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/marginalize.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// 1/2 x^T H x + g^T x + c over the two numbers of each of its blocks.
struct Quadratic {
  std::vector<int64_t> blocks;
  MatrixXd h;
  VectorXd g;
  double c = 0;
};

/// Terms that a problem has, as what they are.
struct Content {
  TermSet terms;
  Quadratic cost;
  double weight = 1;
  bool enabled = true;
  bool prior = false;
};

/// A x + B y - c, two rows.
Quadratic quadratic_of(int64_t a, int64_t b, std::span<const double> data) {
  MatrixXd j(2, 4);
  for (Eigen::Index r = 0; r < 2; ++r)
    for (Eigen::Index k = 0; k < 4; ++k) j(r, k) = data[size_t(4 * r + k)];
  const Eigen::Map<const VectorXd> c(data.data() + 8, 2);
  return {{a, b}, j.transpose() * j, -j.transpose() * c, 0.5 * c.squaredNorm()};
}

TermType pair_type() {
  return {"pair", {2, 2}, 10, [](const TermArguments& t) {
            std::vector<Value> out;
            for (int r = 0; r < 2; ++r) {
              Value sum = -t.data(8 + r);
              for (int k = 0; k < 4; ++k) sum = sum + t.data(4 * r + k) * t.x(k / 2, k % 2);
              out.push_back(sum);
            }
            return out;
          }};
}

class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed), context_(options()) {
    points_ = problem_.add_blocks("points", euclidean(2), {});
    // A set whose numbers move with those of the set before it.
    problem_.fix(problem_.add_blocks("behind", euclidean(1), std::vector<double>{1}), 0);
    for (int k = 0; k < 4; ++k) append();
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1: return append();
      case 2:
      case 3:
      case 4: return add_pair();
      case 5: return change();
      case 6: return reweigh();
      case 7: return fix();
      case 8: return erase_terms();
      case 9: return erase_block();
      case 10: return refuse();
      default: return leave();
    }
  }

  /// Cost, gradient and J^T J are those of the dense sums.
  void check() {
    ASSERT_EQ(problem_.block_numbers(points_), numbers());
    if (problem_.residual_count() == 0) return;
    const Quadratic all = whole(contents_);
    EvaluateOptions options;
    options.normal = true;
    const Evaluation e = evaluate(problem_, context_, options);
    const double scale = 1 + all.h.norm(), far = 1 + values_of(all).norm();
    ASSERT_NEAR(e.cost, cost_of(all), 1e-8 * scale * far * far);
    const VectorXd slope = all.h * values_of(all) + all.g;
    MatrixXd normal = MatrixXd::Zero(all.h.rows(), all.h.cols());
    const std::vector<Eigen::Index> place = places(all);
    ASSERT_EQ(size_t(e.normal.rows), place.size());
    for (int64_t r = 0; r < e.normal.rows; ++r)
      for (int64_t k = e.normal.first[size_t(r)]; k < e.normal.first[size_t(r) + 1]; ++k)
        normal(place[size_t(r)], place[size_t(e.normal.column[size_t(k)])]) = e.normal.values[size_t(k)];
    for (size_t r = 0; r < place.size(); ++r) {
      ASSERT_NEAR(e.gradient[r], slope(place[r]), 1e-8 * scale * far);
      for (size_t c = 0; c < place.size(); ++c)
        ASSERT_NEAR(normal(place[r], place[c]), all.h(place[r], place[c]), 1e-8 * scale);
    }
  }

  /// Where all blocks are held by their terms, the minimum is that of the dense sums.
  void check_minimum() {
    if (problem_.residual_count() == 0) return;
    const Quadratic all = whole(contents_);
    const std::vector<Eigen::Index> place = places(all);
    if (place.empty()) return;
    const MatrixXd h = all.h(place, place);
    if (Eigen::SelfAdjointEigenSolver<MatrixXd>(h).eigenvalues()(0) < 1e-3) return;
    VectorXd x = values_of(all);
    const VectorXd step = h.ldlt().solve(-(all.h * x + all.g)(place));
    Options options;
    options.method = Method::gn;
    minimize(problem_, context_, options);
    for (size_t k = 0; k < place.size(); ++k) {
      const size_t at = size_t(place[k]);
      ASSERT_NEAR(problem_.value(points_, all.blocks[at / 2])[at % 2], x(place[k]) + step(Eigen::Index(k)),
                  1e-6 * (1 + x.norm() + step.norm()));
    }
    ++minima;
  }

  bool over() const { return over_; }
  static inline int minima = 0, priors = 0, deficient = 0, undecided = 0;

 private:
  static ContextOptions options() {
    ContextOptions o;
    o.device = "cpu";
    return o;
  }
  size_t below(size_t n) { return size_t(random_() % n); }
  double number() { return double(random_() >> 11) * 0x1p-52 - 1; }
  std::vector<int64_t> numbers() const { return {live_.begin(), live_.end()}; }
  int64_t any() { return *std::next(live_.begin(), int64_t(below(live_.size()))); }
  bool held(int64_t block) const { return fixed_.contains(block); }

  VectorXd values_of(const Quadratic& q) const {
    VectorXd x(2 * Eigen::Index(q.blocks.size()));
    for (size_t k = 0; k < q.blocks.size(); ++k)
      for (size_t i = 0; i < 2; ++i) x(Eigen::Index(2 * k + i)) = problem_.value(points_, q.blocks[k])[i];
    return x;
  }
  double cost_of(const Quadratic& q) const {
    const VectorXd x = values_of(q);
    return 0.5 * x.dot(q.h * x) + q.g.dot(x) + q.c;
  }
  /// The numbers that move, in the order of the columns of an evaluation.
  std::vector<Eigen::Index> places(const Quadratic& q) const {
    std::vector<Eigen::Index> out;
    for (size_t k = 0; k < q.blocks.size(); ++k)
      for (size_t i = 0; i < 2 && !held(q.blocks[k]); ++i) out.push_back(Eigen::Index(2 * k + i));
    return out;
  }
  /// The sum of what counts, over all blocks of the problem.
  Quadratic whole(const std::vector<Content>& parts) const {
    Quadratic all{numbers(), {}, {}, 0};
    const Eigen::Index n = 2 * Eigen::Index(all.blocks.size());
    all.h = MatrixXd::Zero(n, n), all.g = VectorXd::Zero(n);
    for (const Content& c : parts) {
      if (!c.enabled) continue;
      std::vector<Eigen::Index> at;
      for (const int64_t b : c.cost.blocks)
        for (const Eigen::Index i : {0, 1})
          at.push_back(2 * (std::ranges::lower_bound(all.blocks, b) - all.blocks.begin()) + i);
      all.h(at, at) += c.weight * c.cost.h, all.g(at) += c.weight * c.cost.g, all.c += c.weight * c.cost.c;
    }
    return all;
  }

  void append() {
    const int64_t block = problem_.append_blocks(points_, std::vector<double>{number(), number()});
    EXPECT_FALSE(live_.contains(block));
    live_.insert(block);
  }
  std::vector<double> pair_data() {
    std::vector<double> data;
    for (int k = 0; k < 10; ++k) data.push_back(number());
    // Of one row only: blocks that few terms hold are not held in all directions.
    if (below(3) == 0) std::fill_n(data.begin() + 4, 4, 0.0), data[9] = 0;
    return data;
  }
  void add_pair() {
    if (live_.size() < 2) return;
    const int64_t a = any();
    int64_t b = a;
    while (b == a) b = any();
    const std::vector<double> data = pair_data();
    const TermSet terms = problem_.add_terms(pair_type(), {points_, points_},
                                             std::vector<int32_t>{int32_t(a), int32_t(b)}, data);
    contents_.push_back({terms, quadratic_of(a, b, data)});
  }
  void change() {
    if (live_.empty()) return;
    const std::span<double> at = problem_.value(points_, any());
    at[0] = number(), at[1] = number();
    if (contents_.empty()) return;
    Content& c = contents_[below(contents_.size())];
    if (c.prior) return;
    const std::vector<double> data = pair_data();
    problem_.set_data(c.terms, data);
    c.cost = quadratic_of(c.cost.blocks[0], c.cost.blocks[1], data);
  }
  void reweigh() {
    if (contents_.empty()) return;
    Content& c = contents_[below(contents_.size())];
    if (below(2))
      problem_.weigh(c.terms, c.weight = 0.25 + double(below(8)));
    else
      problem_.enable(c.terms, c.enabled = !c.enabled);
  }
  void fix() {
    if (live_.empty()) return;
    const int64_t block = any();
    if (!fixed_.erase(block)) fixed_.insert(block);
    problem_.fix(points_, block, held(block));
  }
  void erase_terms() {
    if (contents_.empty()) return;
    const size_t k = below(contents_.size());
    problem_.erase(contents_[k].terms);
    EXPECT_THROW(problem_.enable(contents_[k].terms), InputError);
    contents_.erase(contents_.begin() + int64_t(k));
  }
  bool used(int64_t block) const {
    return std::ranges::any_of(contents_, [&](const Content& c) {
      return std::ranges::find(c.cost.blocks, block) != c.cost.blocks.end();
    });
  }
  void erase_block() {
    if (live_.empty()) return;
    const int64_t block = any();
    if (used(block)) {
      EXPECT_THROW(problem_.erase(points_, {&block, 1}), InputError);
      return;
    }
    problem_.erase(points_, {&block, 1});
    live_.erase(block), fixed_.erase(block), gone_ = block;
  }
  /// A refusal leaves the problem as it is; the checks that follow would see it.
  void refuse() {
    const auto refused = [&](std::vector<int64_t> blocks) {
      EXPECT_THROW(marginalize(problem_, context_, points_, blocks), InputError);
    };
    refused({}), refused({1000000}), refused({-1});
    if (gone_ >= 0) refused({gone_});
    if (live_.empty()) return;
    const int64_t block = any();
    refused({block, block});
    if (!fixed_.empty()) refused({*fixed_.begin()});
    if (gone_ >= 0) refused({block, gone_});
  }
  void leave() {
    std::vector<int64_t> leaving;
    for (size_t k = 0, n = 1 + below(2); k < n && !live_.empty(); ++k)
      if (const int64_t b = any(); !held(b) && std::ranges::find(leaving, b) == leaving.end())
        leaving.push_back(b);
    if (leaving.empty()) return;
    std::vector<Content> touched, rest;
    for (const Content& c : contents_)
      (std::ranges::find_first_of(c.cost.blocks, leaving) == c.cost.blocks.end() ? rest : touched)
          .push_back(c);
    const Quadratic all = whole(touched);
    const LinearPrior prior = marginalize(problem_, context_, points_, leaving);
    contents_ = rest;
    append_prior(all, prior, leaving);
    for (const int64_t b : leaving) live_.erase(b), gone_ = b;
  }
  /// The Schur complement of the leaving blocks, with what is fixed at its values.
  void append_prior(const Quadratic& all, const LinearPrior& prior, const std::vector<int64_t>& leaving) {
    std::vector<Eigen::Index> l, s, f;
    Content c{prior.terms, {}, 1, true, true};
    for (size_t k = 0; k < all.blocks.size(); ++k) {
      const int64_t b = all.blocks[k];
      const bool leaves = std::ranges::find(leaving, b) != leaving.end();
      const bool stays = std::ranges::any_of(prior.blocks, [b](const auto& of) { return of.second == b; });
      for (const Eigen::Index i : {0, 1}) (leaves ? l : stays ? s : f).push_back(2 * Eigen::Index(k) + i);
      if (stays) c.cost.blocks.push_back(b);
    }
    VectorXd x = VectorXd::Zero(all.g.size());
    for (const Eigen::Index k : f) {
      const int64_t b = all.blocks[size_t(k) / 2];
      if (held(b)) x(k) = problem_.value(points_, b)[size_t(k) % 2];
    }
    const VectorXd g = all.g + all.h * x;
    const MatrixXd hll = all.h(l, l), hsl = all.h(s, l);
    // Squares decide a rank only where eigenvalues are far from their rounding; other lives end here.
    largest_ = std::max(largest_, all.h.norm());
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(hll);
    VectorXd inverted = VectorXd::Zero(hll.rows());
    int64_t zeros = 0;
    for (Eigen::Index k = 0; k < hll.rows(); ++k) {
      const double value = eigen.eigenvalues()(k) / largest_;
      if (std::abs(value) < kZero)
        ++zeros;
      else if (value < kSure)
        over_ = true;
      else
        inverted(k) = 1 / eigen.eigenvalues()(k);
    }
    if (over_) {
      ++undecided;
      return;
    }
    const MatrixXd inverse = eigen.eigenvectors() * inverted.asDiagonal() * eigen.eigenvectors().transpose();
    EXPECT_EQ(prior.undetermined, zeros);
    c.cost.h = MatrixXd(all.h(s, s)) - hsl * inverse * hsl.transpose();
    c.cost.g = VectorXd(g(s)) - hsl * inverse * g(l);
    c.cost.c =
        all.c + all.g.dot(x) + 0.5 * x.dot(all.h * x) - 0.5 * g(l).dot(inverse * g(l)) - prior.constant;
    ++priors, deficient += prior.undetermined + prior.free_directions() > 0;
    if (prior.rows > 0) return contents_.push_back(c);
    EXPECT_LT(c.cost.h.norm() + c.cost.g.norm() + std::abs(c.cost.c), 1e-8 * (1 + all.h.norm()));
  }

  static constexpr double kZero = 1e-13, kSure = 1e-6;  // eigenvalues over the largest H of a life
  std::mt19937_64 random_;
  Problem problem_;
  Context context_;
  BlockSet points_;
  std::set<int64_t> live_, fixed_;
  int64_t gone_ = -1;
  double largest_ = 1e-3;
  bool over_ = false;
  std::vector<Content> contents_;
};

TEST(Sequences, OfChangesEqualDenseSumsOfWhatIsLeft) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Life life(seed);
    for (int step = 0; step < 40; ++step) {
      life.step();
      if (life.over()) break;
      if (step % 13 == 12) life.check();
      if (testing::Test::HasFailure()) GTEST_FAIL() << "seed " << seed << ", step " << step;
    }
    if (life.over()) continue;
    life.check(), life.check_minimum();
    if (testing::Test::HasFailure()) GTEST_FAIL() << "seed " << seed << ", at its end";
  }
  // All kinds of lives came up.
  EXPECT_GT(Life::priors, 1000);
  EXPECT_GT(Life::deficient, 300);
  EXPECT_GT(Life::minima, 10);
  EXPECT_LT(Life::undecided, 100);
}

}  // namespace
}  // namespace lockstep::solve::test
