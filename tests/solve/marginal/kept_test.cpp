// A problem that is minimised again and again, and changes in between: the tables that it keeps give the bits of tables
// built again.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "../evaluate/problems.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/factors.hpp"
#include "lockstep/solve/marginalize.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve::test {
namespace {

/// The same content in a problem that was never minimised.
Problem copy_of(const Problem& problem) {
  const Problem::State& from = problem.state();
  Problem out;
  Problem::State& to = out.state();
  to.sets = from.sets, to.values = from.values, to.fixed = from.fixed, to.held = from.held;
  to.lower = from.lower, to.upper = from.upper;
  to.batches = from.batches, to.batch_of = from.batch_of, to.terms = from.terms,
  to.next_term = from.next_term;
  to.blocks = from.blocks, to.ambient = from.ambient, to.tangent = from.tangent, to.rows = from.rows;
  to.host_terms = from.host_terms;
  return out;
}

std::vector<uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  for (const double v : values) bits.push_back(std::bit_cast<uint64_t>(v));
  return bits;
}

/// All numbers that a minimisation computes.
std::vector<double> numbers_of(const Summary& s, const Problem& problem) {
  std::vector<double> out{s.initial_cost, s.final_cost, s.gradient_max, double(s.linear_iterations),
                          double(s.termination)};
  for (const Iteration& i : s.trace)
    out.insert(out.end(), {i.cost, i.cost_change, i.gradient_max, i.step_norm, i.damping, i.gain,
                           double(i.accepted), double(i.linear_iterations)});
  const std::vector<double>& x = problem.state().values;
  out.insert(out.end(), x.begin(), x.end());
  return out;
}

int64_t kept_batches(const Summary& summary) {
  return std::ranges::count_if(summary.batches, [](const BatchReport& b) { return b.kept; });
}

ContextOptions on_cpu() {
  ContextOptions options;
  options.device = "cpu", options.threads = 2;
  return options;
}

/// Minimises a problem and a copy of it, which have to agree; false where both throw.
bool minimise_both(Problem& problem, Context& context, const Options& options, Summary* summary = nullptr) {
  Problem anew = copy_of(problem);
  Summary expected;
  try {
    expected = minimize(anew, context, options);
  } catch (const InputError& error) {
    EXPECT_THROW(minimize(problem, context, options), InputError) << error.what();
    return false;
  }
  EXPECT_EQ(kept_batches(expected), 0);
  const Summary got = minimize(problem, context, options);
  EXPECT_EQ(bits_of(numbers_of(got, problem)), bits_of(numbers_of(expected, anew)))
      << name(options.method) << " " << name(got.linear_used);
  EXPECT_EQ(got.message, expected.message);
  EXPECT_EQ(got.notes, expected.notes);
  if (summary) *summary = got;
  return true;
}

TermType pull_type(const RobustLoss& loss) {
  return {"pull",
          {3, 2},
          2,
          [](const TermArguments& a) {
            return std::vector<Value>{a.x(0, 0) - a.x(1, 0) - a.data(0), a.x(0, 1) - a.x(1, 1) - a.data(1),
                                      0.1 * sin(a.x(0, 2)) * a.x(1, 0)};
          },
          loss};
}

/// Two sets of blocks, poses and points, with terms of several kinds.
class KeptLife {
 public:
  explicit KeptLife(uint64_t seed) : random_(seed), context_(on_cpu()) {
    poses_ = problem_.add_blocks("poses", se2(), {});
    points_ = problem_.add_blocks("points", euclidean(2), {});
    for (int k = 0; k < 3; ++k) append(0), append(1);
    for (int k = 0; k < 4; ++k) add_terms();
  }

  void step() {
    switch (below(15)) {
      case 0: return append(int(below(2)));
      case 1:
      case 2:
      case 3: return add_terms();
      case 4: return change_data();
      case 5: return change_values();
      case 6: return reweigh();
      case 7: return fix();
      case 8: return hold();
      case 9: return bound();
      case 10: return erase_terms();
      case 11: return erase_block();
      case 12: return add_loose();
      default: return leave();
    }
  }

  void minimise() {
    static constexpr Linear kLinear[] = {Linear::automatic,   Linear::cholesky, Linear::dense_cholesky,
                                         Linear::dense_schur, Linear::pcg,      Linear::dense_qr};
    Options options;
    options.max_iterations = 3;
    // Mostly what was used before, so that tables are kept.
    if (below(3) == 0) linear_ = kLinear[below(std::size(kLinear))];
    if (below(4) == 0) method_ = std::array{Method::lm, Method::gn, Method::dogleg, Method::lbfgs}[below(4)];
    if (below(6) == 0) batch_size_ = below(2) ? 3 : 0;
    options.linear = method_ == Method::lbfgs ? Linear::automatic : linear_;
    options.method = method_, options.batch_size = batch_size_;
    options.damping = below(4) == 0 ? Damping::identity : Damping::diagonal;
    Summary summary;
    if (!minimise_both(problem_, context_, options, &summary)) return;
    ++minimised, kept += kept_batches(summary), built += int64_t(summary.batches.size());
    whole += kept_batches(summary) == int64_t(summary.batches.size());
  }

  static inline int64_t minimised = 0, kept = 0, built = 0, whole = 0, priors = 0;

 private:
  size_t below(size_t n) { return size_t(random_() % n); }
  double number() { return double(random_() >> 11) * 0x1p-52 - 1; }
  BlockSet set(int k) const { return k == 0 ? poses_ : points_; }
  int64_t any(int k) { return *std::next(live_[k].begin(), int64_t(below(live_[k].size()))); }

  void append(int k) {
    std::vector<double> x{3 * number(), 3 * number()};
    if (k == 0) x.push_back(number());
    live_[k].insert(problem_.append_blocks(set(k), x));
  }
  void add_terms() {
    static const RobustLoss kLosses[] = {{}, parse_robust_loss("huber:0.5"), tolerant_loss(0.5, 0.2)};
    if (live_[0].size() < 2 || live_[1].empty()) return;
    std::vector<int32_t> blocks;
    std::vector<double> data;
    const size_t count = 1 + below(3);
    const bool between = below(2);
    for (size_t k = 0; k < count; ++k) {
      const int64_t a = any(0);
      int64_t b = any(between ? 0 : 1);
      while (between && b == a) b = any(0);
      blocks.insert(blocks.end(), {int32_t(a), int32_t(b)});
      if (between) {
        const std::vector<double> row =
            se2_between_data(std::vector<double>{number(), number(), number()},
                             w_from_standard_deviations(std::vector<double>{1, 1, 0.5}));
        data.insert(data.end(), row.begin(), row.end());
      } else {
        data.insert(data.end(), {number(), number()});
      }
    }
    const TermSet terms =
        between ? problem_.add_terms(se2_between_log(), {poses_, poses_}, blocks, data)
                : problem_.add_terms(pull_type(kLosses[below(3)]), {poses_, points_}, blocks, data);
    terms_.push_back({terms, between ? 0 : 2});
  }
  /// Numbers of the expression that become literals, arguments or columns of a kernel, as the others decide.
  void add_loose() {
    if (live_[1].empty()) return;
    const Value x = problem_.variable(points_, any(1), int(below(2)));
    terms_.push_back({problem_.add_residuals(std::vector<Value>{0.3 * x - double(below(3))}), 0});
  }
  void change_data() {
    if (terms_.empty()) return;
    const auto& [terms, data] = terms_[below(terms_.size())];
    if (data > 0) problem_.set_data(terms, std::vector<double>{number(), number()});
  }
  void change_values() {
    const int k = int(below(2));
    if (!live_[k].empty()) problem_.value(set(k), any(k))[1] += 0.3 * number();
  }
  void reweigh() {
    if (terms_.empty()) return;
    const TermSet terms = terms_[below(terms_.size())].first;
    if (below(2))
      problem_.weigh(terms, 0.25 + double(below(8)));
    else
      problem_.enable(terms, 0, below(2) == 0);
  }
  void fix() {
    const int k = int(below(2));
    if (live_[k].empty()) return;
    const int64_t block = any(k);
    problem_.fix(set(k), block, !problem_.fixed(set(k), block));
  }
  void hold() {
    if (live_[0].empty() || below(2)) return;
    problem_.fix_coordinates(poses_, any(0), below(2) ? std::vector<int>{2} : std::vector<int>{});
  }
  void bound() {
    if (live_[1].empty() || below(2)) return;
    const int64_t block = any(1);
    const double at = problem_.value(points_, block)[0];
    const double width = below(2) ? 0.5 : INFINITY;
    problem_.bound(points_, block, 0, at - width, at + width);
  }
  void erase_terms() {
    if (terms_.empty()) return;
    const size_t k = below(terms_.size());
    problem_.erase(terms_[k].first);
    terms_.erase(terms_.begin() + int64_t(k));
  }
  void erase_block() {
    const int k = int(below(2));
    if (live_[k].empty()) return;
    const int64_t block = any(k);
    try {
      problem_.erase(set(k), {&block, 1});
      live_[k].erase(block);
    } catch (const InputError&) {}  // a term has it
  }
  void leave() {
    const int k = int(below(2));
    if (live_[k].empty()) return;
    const int64_t block = any(k);
    try {
      marginalize(problem_, context_, set(k), {&block, 1});
    } catch (const InputError&) {
      return;  // fixed, bounded, or held in part
    }
    live_[k].erase(block);
    ++priors;
    // Terms that the prior replaced are gone.
    std::erase_if(terms_, [&](const auto& t) {
      try {
        return problem_.instance_count(t.first) == 0;
      } catch (const InputError&) { return true; }
    });
  }

  std::mt19937_64 random_;
  Problem problem_;
  Context context_;
  BlockSet poses_, points_;
  std::set<int64_t> live_[2];
  std::vector<std::pair<TermSet, int>> terms_;  // and their data, where set_data() has two numbers for it
  Linear linear_ = Linear::automatic;
  Method method_ = Method::lm;
  int64_t batch_size_ = 0;
};

TEST(KeptTables, OfAThousandLivesGiveTheBitsOfTablesBuiltAnew) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    KeptLife life(seed);
    for (int step = 0; step < 12; ++step) {
      if (step % 4 != 3) life.step();
      life.minimise();
      if (testing::Test::HasFailure()) GTEST_FAIL() << "seed " << seed << ", step " << step;
    }
  }
  // Tables were kept and rebuilt, each often.
  EXPECT_GT(KeptLife::minimised, 5000);
  EXPECT_GT(KeptLife::whole, KeptLife::minimised / 5);
  EXPECT_GT(KeptLife::kept, KeptLife::built / 3);
  EXPECT_LT(KeptLife::kept, KeptLife::built * 9 / 10);
  EXPECT_GT(KeptLife::priors, 300);
}

/// A ring of poses in space, with chords.
struct Ring {
  Problem problem;
  BlockSet poses;
  TermSet chords;
  Ring() {
    constexpr int kPoses = 40;
    std::vector<double> x = random_numbers(kPoses * 7, 5), z = random_numbers(2 * kPoses * 7, 6);
    normalize_rows(x, 7, 3, 4), normalize_rows(z, 7, 3, 4);
    poses = problem.add_blocks("poses", se3(), x);
    problem.fix(poses, 0);
    std::vector<int32_t> ring, chord;
    for (int k = 0; k < kPoses; ++k)
      ring.insert(ring.end(), {k, (k + 1) % kPoses}), chord.insert(chord.end(), {k, (k + 2) % kPoses});
    problem.add_terms(pose_type(), {poses, poses}, ring, std::span(z).first(kPoses * 7));
    chords = problem.add_terms(pose_type({RobustLoss::Kind::cauchy, 0.5}), {poses, poses}, chord,
                               std::span(z).last(kPoses * 7));
  }
};

TEST(KeptTables, OfAnUnchangedProblemReadNumbersOnly) {
  Context context(on_cpu());
  for (const Linear linear : {Linear::cholesky, Linear::pcg, Linear::device_cholesky}) {
    Ring ring;
    Options options;
    options.linear = linear, options.max_iterations = 4;
    const Summary first = minimize(ring.problem, context, options);
    EXPECT_EQ(kept_batches(first), 0);
    Summary second;
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 2);
    EXPECT_EQ(second.kernels_compiled + second.cache_hits, 0);
    EXPECT_LT(second.bytes_to_device, first.bytes_to_device) << name(linear);
    // Other values, data and weights are numbers, too; terms without weights become others.
    ring.problem.value(ring.poses, 3)[0] += 0.2;
    ring.problem.set_data(ring.chords, std::vector<double>{0.1, 0.2, 0.3, 1, 0, 0, 0}, 7);
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 2);
    ring.problem.weigh(ring.chords, 0.5);
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 1);
    ring.problem.weigh(ring.chords, 2);
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 2);
    // Where its blocks are fixed otherwise, a term is another.
    ring.problem.fix(ring.poses, 5);
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 0);
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 2);
    // Other options may need other tables.
    options.precision = Precision::f32;
    minimise_both(ring.problem, context, options, &second);
    EXPECT_EQ(kept_batches(second), 0);
  }
}

/// Springs between neighbours of a square grid: enough of them for groups in shared memory.
TEST(KeptTables, OfGroupsKnowTheBlocksOutsideOfThem) {
  constexpr int kSide = 32;
  Context context(on_cpu());
  Problem problem;
  const BlockSet points = problem.add_blocks("points", euclidean(3), random_numbers(kSide * kSide * 3, 3));
  std::vector<int32_t> edges;
  for (int k = 0; k < kSide * kSide; ++k) {
    if (k % kSide + 1 < kSide) edges.insert(edges.end(), {k, k + 1});
    if (k + kSide < kSide * kSide) edges.insert(edges.end(), {k, k + kSide});
  }
  const TermSet springs =
      problem.add_terms(spring_type(), {points, points}, edges, random_numbers(edges.size() / 2, 4, 0.1, 1));
  problem.add_residuals(std::vector<Value>{problem.variable(points, 7, 1) - 0.5});
  for (const Linear linear : {Linear::pcg, Linear::cholesky}) {
    Options options;
    options.linear = linear, options.max_iterations = 3;
    Summary summary;
    minimise_both(problem, context, options, &summary);
    ASSERT_TRUE(summary.batches[0].grouped);
    minimise_both(problem, context, options, &summary);
    EXPECT_EQ(kept_batches(summary), 2);
    problem.set_data(springs, std::vector<double>{0.4, 0.9}, 100);
    minimise_both(problem, context, options, &summary);
    EXPECT_EQ(kept_batches(summary), 2);
    // A block that no group has: sums can no longer be overwritten.
    const int64_t block = problem.append_blocks(points, std::vector<double>{2, 2, 2});
    const TermSet one =
        problem.add_residuals(std::vector<Value>{problem.variable(points, block, 0) * 0.5 - 1.0});
    problem.fix_coordinates(points, block, std::vector<int>{1, 2});
    minimise_both(problem, context, options, &summary);
    minimise_both(problem, context, options, &summary);
    problem.erase(one);
    problem.fix_coordinates(points, block, {});
    problem.erase(points, {&block, 1});
    minimise_both(problem, context, options, &summary);
    problem.enable(springs, 5, false);
    minimise_both(problem, context, options, &summary);
    problem.enable(springs);
  }
}

TEST(KeptTables, OfHostTermsCallTheirFunctionsAnew) {
  Context context(on_cpu());
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(2), std::vector<double>{1, 2, 3, 4});
  double shift = 0.5;  // which a table or a simulator may change
  HostTerm host{.name = "host", .slots = {2}, .residuals = 2, .data = 1};
  host.residual = [&](const HostInstance& at, std::span<double> r) {
    r[0] = std::sin(at.blocks[0][0]) - at.data[0] - shift, r[1] = at.blocks[0][1] * at.blocks[0][0];
  };
  const TermSet terms = problem.add_terms(host, {x}, std::vector<int>{0, 1}, std::vector<double>{0.3, 0.4});
  Options options;
  options.max_iterations = 2;
  Summary summary;
  minimise_both(problem, context, options, &summary);
  minimise_both(problem, context, options, &summary);
  EXPECT_EQ(kept_batches(summary), 1);
  problem.set_data(terms, std::vector<double>{0.1}, 1);
  minimise_both(problem, context, options, &summary);
  shift = 0.7;
  minimise_both(problem, context, options, &summary);
  EXPECT_EQ(kept_batches(summary), 1);
}

/// A window of poses: each frame adds one and edges to it, the oldest one leaves into a prior.
TEST(KeptTables, OfAWindowFitThePriorOfTheNextFrame) {
  constexpr int kWindow = 6, kFrames = 20;
  Context context(on_cpu());
  for (const Linear linear : {Linear::automatic, Linear::cholesky}) {
    Problem problem;
    const std::vector<double> w = w_from_standard_deviations(std::vector<double>{0.1, 0.1, 0.05});
    const BlockSet poses = problem.add_blocks("poses", se2(), std::vector<double>{0, 0, 0});
    problem.add_terms(se2_pose_prior_log(), {poses}, std::vector<int32_t>{0},
                      se2_between_data(std::vector<double>{0, 0, 0}, w));
    Options options;
    options.linear = linear;
    int whole = 0;
    for (int frame = 1; frame < kFrames; ++frame) {
      const std::vector<double> noise = random_numbers(9, uint64_t(frame), -0.1, 0.1);
      problem.append_blocks(poses, std::vector<double>{double(frame), noise[0], noise[1]});
      for (const int step : {1, 2, 3}) {
        if (step > frame) continue;
        problem.add_terms(
            se2_between_log(), {poses, poses}, std::vector<int32_t>{frame - step, frame},
            se2_between_data(
                std::vector<double>{step + noise[size_t(2 * step)], noise[size_t(2 * step + 1)], 0}, w));
      }
      Summary summary;
      minimise_both(problem, context, options, &summary);
      if (frame > kWindow + 1) whole += kept_batches(summary) == int64_t(summary.batches.size());
      if (frame >= kWindow) marginalize(problem, context, poses, std::vector<int64_t>{frame - kWindow});
    }
    EXPECT_EQ(whole, kFrames - kWindow - 2) << name(linear);
  }
}

TEST(KeptTables, OfHostTermsOfOneShapeFitTheirFunctions) {
  Context context(on_cpu());
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1, 2});
  const auto pull = [](double to) {
    HostTerm host{.name = "pull"};
    host.slots = {1};
    host.residual = [to](const HostInstance& at, std::span<double> r) {
      r[0] = std::exp(at.blocks[0][0]) - to;
    };
    return host;
  };
  TermSet first = problem.add_terms(pull(2), {x}, std::vector<int32_t>{0});
  problem.add_terms(pull(3), {x}, std::vector<int32_t>{1});
  Options options;
  Summary summary;
  minimise_both(problem, context, options, &summary);
  for (int k = 0; k < 3; ++k) {
    problem.erase(first);  // the other keeps its own tables
    first = problem.add_terms(pull(4 + k), {x}, std::vector<int32_t>{0});
    minimise_both(problem, context, options, &summary);
    EXPECT_NEAR(problem.value(x, 0)[0], std::log(4 + k), 1e-6);
    EXPECT_NEAR(problem.value(x, 1)[0], std::log(3), 1e-6);
  }
  problem.erase(first);
  first = problem.add_terms(
      [&] {
        HostTerm host = pull(2);
        host.loss = {RobustLoss::Kind::huber, 0.1};
        return host;
      }(),
      {x}, std::vector<int32_t>{0});
  minimise_both(problem, context, options, &summary);
}

TEST(KeptTables, EndWithTheProblemAndOutliveItsContext) {
  Ring ring;
  Options options;
  options.max_iterations = 2;
  for (int k = 0; k < 3; ++k) {
    Context context(on_cpu());  // another device each time: nothing fits
    Summary summary;
    minimise_both(ring.problem, context, options, &summary);
    EXPECT_EQ(kept_batches(summary), 0);
  }
  Context context(on_cpu());
  const int64_t before = context.device().counters().allocated_bytes;
  {
    Ring other;
    minimize(other.problem, context, options);
    EXPECT_GT(context.device().counters().allocated_bytes, before);
  }
  EXPECT_EQ(context.device().counters().allocated_bytes, before);
}

}  // namespace
}  // namespace lockstep::solve::test
