// Leverages, studentised residuals and Cook's distances compared with fits without the instance; planted outliers.
#include "solve/diagnose/influence.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <optional>
#include <random>

#include "lockstep/solve/doctor.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/factors.hpp"

namespace lockstep::solve {
namespace {

Context& influence_context() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}

/// A linear problem of scalars, a_i x_p + b_i x_q - c_i with one or two rows an instance, and its matrix.
struct LinearProblem {
  Problem problem;
  BlockSet x;
  TermSet single, pairs;
  Eigen::MatrixXd j;
  Eigen::VectorXd r;                      // at the values
  std::vector<std::pair<int, int>> rows;  // by instance: first, count

  LinearProblem(int unknowns, int singles, int doubles) {
    std::mt19937_64 random(unknowns);
    std::normal_distribution<double> normal;
    std::vector<double> values(static_cast<size_t>(unknowns));
    for (double& v : values) v = normal(random);
    x = problem.add_blocks("x", euclidean(1), values);
    j.setZero(singles + 2 * doubles, unknowns), r.setZero(j.rows());
    std::vector<int32_t> ends, ends2;
    std::vector<double> data, data2;
    const auto row = [&](int at, int p, int q, std::vector<double>& to) {
      const double a = normal(random), b = normal(random), c = normal(random);
      j(at, p) += a, j(at, q) += b;
      r[at] = a * values[size_t(p)] + b * values[size_t(q)] - c;
      to.insert(to.end(), {a, b, c});
    };
    const auto pair_of = [&](int k) {
      const int p = k % unknowns, q = k < unknowns ? (p + 1) % unknowns : int(random() % unknowns);
      return std::pair(p, q == p ? (p + 1) % unknowns : q);
    };
    for (int k = 0; k < singles; ++k) {
      const auto [p, q] = pair_of(k);
      ends.insert(ends.end(), {p, q}), row(k, p, q, data), rows.emplace_back(k, 1);
    }
    for (int k = 0; k < doubles; ++k) {
      const auto [p, q] = pair_of(singles + k);
      const int at = singles + 2 * k;
      ends2.insert(ends2.end(), {p, q}), row(at, p, q, data2), row(at + 1, p, q, data2);
      rows.emplace_back(at, 2);
    }
    const auto of = [](const TermArguments& a, int k) {
      return a.data(3 * k) * a.x(0) + a.data(3 * k + 1) * a.x(1) - a.data(3 * k + 2);
    };
    single = problem.add_terms(
        TermType{"single", {1, 1}, 3, [&](const TermArguments& a) { return std::vector{of(a, 0)}; }}, {x, x},
        ends, data);
    pairs = problem.add_terms(
        TermType{
            "double", {1, 1}, 6, [&](const TermArguments& a) { return std::vector{of(a, 0), of(a, 1)}; }},
        {x, x}, ends2, data2);
  }

  /// The estimate without an instance (-1: with all), and its sum of squares.
  std::pair<Eigen::VectorXd, double> fit_without(int instance) const {
    std::vector<Eigen::Index> kept;
    for (Eigen::Index k = 0; k < j.rows(); ++k)
      if (instance < 0 || k < rows[size_t(instance)].first ||
          k >= rows[size_t(instance)].first + rows[size_t(instance)].second)
        kept.push_back(k);
    const Eigen::MatrixXd a = j(kept, Eigen::all);
    const Eigen::VectorXd step = a.colPivHouseholderQr().solve(-r(kept));
    return {step, (a * step + r(kept)).squaredNorm()};
  }
};

/// 12 unknowns by QR, 800 from a sparse factorisation.
TEST(Influence, IsWhatTheFitWithoutTheInstanceSays) {
  for (const int unknowns : {12, 800}) {
    const LinearProblem l(unknowns, unknowns + 20, unknowns / 10 + 8);
    const Influence found = influence_by_instance(l.problem, influence_context());
    ASSERT_EQ(found.instances.size(), l.rows.size());
    EXPECT_EQ(found.rank, unknowns);
    EXPECT_EQ(found.rows, l.j.rows());
    const auto [whole, squares] = l.fit_without(-1);
    EXPECT_NEAR(found.step_gain, 1 - squares / l.r.squaredNorm(), 1e-9);
    const double freedom = double(l.j.rows() - unknowns), variance = squares / freedom;
    double sum = 0;
    for (size_t i = 0; i < l.rows.size(); ++i) sum += found.instances[i].leverage * l.rows[i].second;
    EXPECT_NEAR(sum, unknowns, 1e-8 * unknowns);  // the trace of a projection
    const int step = unknowns < 100 ? 1 : 320;
    for (int i = 0; i < int(l.rows.size()); i += step) {
      const InstanceInfluence& one = found.instances[size_t(i)];
      const auto [without, rest] = l.fit_without(i);
      const double m = l.rows[size_t(i)].second;
      EXPECT_EQ(one.checked, int(m));
      EXPECT_NEAR(one.studentized, std::sqrt((squares - rest) / m / (rest / (freedom - m))),
                  1e-7 * (1 + one.studentized))
          << i;
      EXPECT_NEAR(one.cook, (l.j * (whole - without)).squaredNorm() / (unknowns * variance),
                  1e-7 * (1e-3 + one.cook))
          << i;
    }
  }
}

TEST(Influence, OfDisabledAndWeightlessInstancesIsThatOfAProblemWithoutThem) {
  LinearProblem l(12, 30, 8), other(12, 30, 8);
  l.problem.enable(l.single, 3, false);
  l.problem.enable(l.single, 4, false);
  std::vector<double> weights(30, 1);
  weights[3] = weights[4] = 0;
  other.problem.weigh(other.single, weights);
  const Influence off = influence_by_instance(l.problem, influence_context()),
                  weightless = influence_by_instance(other.problem, influence_context());
  ASSERT_EQ(off.instances.size(), 36u);
  ASSERT_EQ(weightless.instances.size(), 38u);
  EXPECT_EQ(off.rows, 44);
  EXPECT_EQ(weightless.rows, 44);
  EXPECT_EQ(weightless.instances[3].leverage, 0);
  EXPECT_EQ(weightless.instances[3].studentized, 0);
  for (size_t i = 0; i < 36; ++i) {
    const InstanceInfluence &a = off.instances[i], &b = weightless.instances[i < 3 ? i : i + 2];
    EXPECT_EQ(a.instance, b.instance);
    EXPECT_NEAR(a.leverage, b.leverage, 1e-12);
    EXPECT_NEAR(a.studentized, b.studentized, 1e-10 * (1 + a.studentized));
    EXPECT_NEAR(a.cook, b.cook, 1e-10);
  }
}

/// Poses around a loop with noise, each with edges to the next two; `count` of them.
struct Loop {
  Problem problem;
  BlockSet poses;
  std::vector<int32_t> ends;
  std::vector<double> data;
  explicit Loop(int count, bool fixed, int planted = -1) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> values;
    const double turn = 2 * M_PI / count, radius = count / (2 * M_PI);
    const auto pose = [&](int k) {
      return std::vector{radius * std::sin(k * turn),
                         radius * (1 - std::cos(k * turn)),
                         0.0,
                         std::cos(k * turn / 2),
                         0.0,
                         0.0,
                         std::sin(k * turn / 2)};
    };
    for (int k = 0; k < count; ++k)
      for (const double v : pose(k)) values.push_back(v);
    poses = problem.add_blocks("poses", se3(), values);
    const std::vector<double> w = w_from_standard_deviations(std::vector<double>(6, 0.01));
    for (int k = 0; k < count; ++k)
      for (const int far : {1, 2}) {
        ends.insert(ends.end(), {k, (k + far) % count});
        std::vector<double> z = pose(far);
        for (size_t c = 0; c < 7; ++c)
          z[c] += c < 3 ? 0.01 * normal(random) : c > 3 ? 0.005 * normal(random) : 0;
        const double length = std::hypot(std::hypot(z[3], z[4]), std::hypot(z[5], z[6]));
        for (size_t c = 3; c < 7; ++c) z[c] /= length;
        if (int(ends.size()) / 2 - 1 == planted) z[1] += 0.2;
        const std::vector<double> row = se3_between_log_data(z, w);
        data.insert(data.end(), row.begin(), row.end());
      }
    problem.add_terms(se3_between_log(), {poses, poses}, ends, data);
    if (fixed) problem.fix(poses, 0);
    Options options;
    options.method = Method::gn, options.linear = Linear::cholesky, options.max_iterations = 4;
    if (fixed) minimize(problem, influence_context(), options);
  }
};

/// By dense and by sparse algebra.
TEST(Influence, DoesNotDependOnTheGauge) {
  for (const int count : {10, 150}) {
    Loop held(count, true), free(count, false);
    std::ranges::copy(held.problem.values(held.poses), free.problem.values(free.poses).begin());
    const Influence a = influence_by_instance(held.problem, influence_context()),
                    b = influence_by_instance(free.problem, influence_context());
    EXPECT_EQ(a.rank, 6 * count - 6);
    EXPECT_EQ(b.rank, 6 * count - 6);
    ASSERT_EQ(a.instances.size(), b.instances.size());
    for (size_t i = 0; i < a.instances.size(); ++i) {
      EXPECT_NEAR(a.instances[i].leverage, b.instances[i].leverage, 1e-7) << count << " " << i;
      EXPECT_NEAR(a.instances[i].studentized, b.instances[i].studentized, 1e-5) << i;
    }
  }
}

/// Eighteen free directions, more than are looked for: a shift of the diagonal takes their place.
TEST(Influence, OfManyPiecesIsThatOfEach) {
  constexpr int kCount = 110;  // too large for dense algebra
  const Loop one(kCount, true);
  Loop loose(kCount, false);
  const auto values = one.problem.values(one.poses);
  const std::vector<double> start(values.begin(), values.end());
  std::ranges::copy(start, loose.problem.values(loose.poses).begin());
  for (const char* name : {"second", "third"}) {
    const BlockSet set = loose.problem.add_blocks(name, se3(), start);
    loose.problem.add_terms(se3_between_log(), {set, set}, loose.ends, loose.data);
  }
  const Influence a = influence_by_instance(one.problem, influence_context()),
                  b = influence_by_instance(loose.problem, influence_context());
  EXPECT_EQ(b.rank, 3 * a.rank);
  ASSERT_EQ(b.instances.size(), 3 * a.instances.size());
  for (size_t i = 0; i < b.instances.size(); ++i)
    EXPECT_NEAR(b.instances[i].leverage, a.instances[i % a.instances.size()].leverage, 1e-4) << i;
}

TEST(Influence, NamesTheEdgeThatWasChanged) {
  for (const int count : {10, 150}) {
    const Loop loop(count, true, 13);
    const ProblemReport r = diagnose(loop.problem, influence_context());
    EXPECT_EQ(r.influence_note, "");
    ASSERT_GE(r.outlier_count, 1) << count;
    EXPECT_EQ(r.outliers[0].instance, 13);
    EXPECT_GT(r.outliers[0].studentized,
              4);  // 20 deviations in one of six residuals, whose leverage is about 3/4
    EXPECT_LT(r.outliers[0].probability, 1e-10);
    EXPECT_LT(r.step_gain, 1e-3);
    EXPECT_TRUE(r.well());  // which is about minimisations
    EXPECT_NE(to_text(r).find("se3_between_log, instance 13: "), std::string::npos) << to_text(r);
    const ProblemReport without = diagnose(Loop(count, true).problem, influence_context());
    EXPECT_EQ(without.outlier_count, 0) << to_text(without);
  }
}

TEST(Influence, OfAReportIsThatByInstance) {
  for (const int count : {10, 150}) {  // by dense and by sparse algebra
    const Loop loop(count, true, 5);
    std::optional<Influence> given;
    diagnose(loop.problem, influence_context(), 5, given);
    const Influence expected = influence_by_instance(loop.problem, influence_context());
    ASSERT_TRUE(given);
    EXPECT_EQ(given->rank, expected.rank);
    EXPECT_EQ(given->rows, expected.rows);
    EXPECT_NEAR(given->step_gain, expected.step_gain, 1e-12);
    ASSERT_EQ(given->instances.size(), expected.instances.size());
    for (size_t i = 0; i < expected.instances.size(); ++i) {
      const InstanceInfluence &a = given->instances[i], &b = expected.instances[i];
      EXPECT_EQ(a.terms, b.terms);
      EXPECT_EQ(a.instance, b.instance);
      EXPECT_NEAR(a.leverage, b.leverage, 1e-12);
      EXPECT_NEAR(a.studentized, b.studentized, 1e-9 * (1 + b.studentized));
      EXPECT_NEAR(a.cook, b.cook, 1e-9 * (1 + b.cook));
    }
  }
}

/// y = a + b x, an error at the end of a long lever and one amid the others.
TEST(Influence, TellsLeverageFromSizeOfResiduals) {
  Problem problem;
  const BlockSet line = problem.add_blocks("line", euclidean(2), std::vector<double>{0, 1});
  std::vector<double> data;
  for (int k = 0; k < 20; ++k) data.insert(data.end(), {0.1 * k, 0.1 * k + (k % 2 ? 0.01 : -0.01)});
  data.insert(data.end(), {50, 49});  // by itself it fits nearly as well as the others
  data[2 * 10 + 1] += 0.2;
  problem.add_terms(TermType{"line",
                             {2},
                             2,
                             [](const TermArguments& a) {
                               return std::vector{a.x(0, 0) + a.x(0, 1) * a.data(0) - a.data(1)};
                             }},
                    {line}, std::vector<int32_t>(21, 0), data);
  minimize(problem, influence_context());
  const ProblemReport r = diagnose(problem, influence_context());
  ASSERT_GE(r.lever_count, 1);
  EXPECT_EQ(r.levers[0].instance, 20);
  EXPECT_GT(r.levers[0].leverage, 0.99);
  ASSERT_GE(r.influential_count, 1);
  EXPECT_EQ(r.influential[0].instance, 20);
  ASSERT_EQ(r.outlier_count, 1);
  EXPECT_EQ(r.outliers[0].instance, 10);
  EXPECT_LT(r.outliers[0].leverage, 0.1);
}

TEST(Influence, SaysWhatNothingElseChecks) {
  Loop loop(8, true);
  const BlockSet tail = loop.problem.add_blocks("tail", se3(), std::vector<double>{1, 2, 3, 1, 0, 0, 0});
  const std::vector<double> w = w_from_standard_deviations(std::vector<double>(6, 0.01));
  loop.problem.add_terms(se3_between_log(), {loop.poses, tail}, std::vector<int32_t>{3, 0},
                         se3_between_log_data(std::vector<double>{1, 0, 0, 1, 0, 0, 0}, w));
  const ProblemReport r = diagnose(loop.problem, influence_context(), 100);
  ASSERT_EQ(r.lever_count, 1);
  EXPECT_EQ(r.levers[0].instance, 0);
  EXPECT_EQ(r.levers[0].checked, 0);
  EXPECT_NEAR(r.levers[0].leverage, 1, 1e-9);
  EXPECT_EQ(r.levers[0].studentized, 0);
  EXPECT_GT(r.step_gain, 0.5);  // the tail is not where its edge puts it
}

TEST(Influence, OfRoundingErrorsIsNotTested) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{0.1, 0.3, 0.7});
  std::vector<double> data;
  for (const double v : {0.2, 0.6, 0.4}) data.push_back(v);
  problem.fix(x, 0);
  problem.add_terms(
      TermType{"gap",
               {1, 1},
               1,
               [](const TermArguments& a) { return std::vector{1e6 * (a.x(1) - a.x(0) - a.data(0))}; }},
      {x, x}, std::vector<int32_t>{0, 1, 0, 2, 1, 2}, data);
  const Influence found = influence_by_instance(problem, influence_context());
  for (const InstanceInfluence& i : found.instances) {
    EXPECT_EQ(i.studentized, 0);
    EXPECT_NEAR(i.leverage, 2.0 / 3, 1e-12);  // a triangle of equal weights
  }
  EXPECT_EQ(found.step_gain, 0);
}

TEST(Influence, SaysWhyItIsNotComputed) {
  Problem problem;
  const BlockSet x = problem.add_blocks("x", euclidean(1), std::vector<double>{1});
  problem.add_terms(TermType{"bowl",
                             {1},
                             0,
                             [](const TermArguments& a) { return std::vector<Value>{a.x(0) * a.x(0)}; },
                             {},
                             true},
                    {x}, std::vector<int32_t>{0}, {});
  EXPECT_THROW(influence_by_instance(problem, influence_context()), InputError);
  std::optional<Influence> none = Influence();
  const ProblemReport r = diagnose(problem, influence_context(), 5, none);
  EXPECT_FALSE(none);
  EXPECT_NE(to_text(r).find("leverage and outliers: not computed, because of energies"), std::string::npos)
      << to_text(r);
}

}  // namespace
}  // namespace lockstep::solve
