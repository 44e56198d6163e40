// Learning curves: fits against closed forms, bands against what came, advice, sweeps.
#include "lockstep/forecast/curve.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>

#include "forecast/curve/divergence.hpp"
#include "forecast/curve/rolling.hpp"
#include "io/checks.hpp"
#include "io/series/logs/training_log.hpp"
#include "lockstep/forecast/sweep.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::forecast;
using lockstep::test::error_of;
using lockstep::test::has;

// The families once more, straight from their definitions.
double defined(CurveFamily family, double x, double rate, double exponent) {
  switch (family) {
    case CurveFamily::power:
    case CurveFamily::recent_power: return std::pow(x, -exponent);
    case CurveFamily::shifted_power: return std::pow(1 + rate * x, -exponent);
    case CurveFamily::exponential: return std::exp(-rate * x);
    case CurveFamily::weibull: return std::exp(-std::pow(rate * x, exponent));
    case CurveFamily::log_power: return 1 / (1 + std::pow(rate * x, exponent));
    case CurveFamily::logarithmic: return 1 / std::log(std::numbers::e + rate * x);
  }
  return 0;
}

std::vector<double> even_steps(int rows, double step) {
  std::vector<double> steps;
  for (int k = 1; k <= rows; ++k) steps.push_back(k * step);
  return steps;
}

TEST(LearningCurves, EveryFamilyIsFoundAgainFromDataWithoutNoise) {
  const std::vector<double> steps = even_steps(120, 25);
  for (const CurveFamily family : kCurveFamilies)
    for (const double rate : {0.0008, 0.006})
      for (const double exponent : {0.6, 1.4}) {
        const bool floorless = family == CurveFamily::recent_power;
        const double floor = floorless ? 0 : 0.35, amplitude = 1.75;
        std::vector<double> losses;
        for (const double x : steps) losses.push_back(floor + amplitude * defined(family, x, rate, exponent));
        const Curve c = fit_curve(family, steps, losses, true);
        SCOPED_TRACE(std::string(name(family)) + " rate " + std::to_string(rate) + " exponent " +
                     std::to_string(exponent));
        EXPECT_NEAR(c.floor, floor, 1e-6);
        EXPECT_NEAR(c.amplitude / amplitude, 1, 1e-6);
        if (!std::isnan(c.rate)) { EXPECT_NEAR(c.rate / rate, 1, 1e-6); }
        if (!std::isnan(c.exponent)) { EXPECT_NEAR(c.exponent / exponent, 1, 1e-6); }
        EXPECT_NEAR(c(9000), floor + amplitude * defined(family, 9000, rate, exponent), 1e-6);
      }
}

struct Hits {
  double inside = 0, rows = 0;
  double ours = 0, power_law = 0, last = 0;
};

// Forecasts from the first `seen` rows to the end, judged by all rows in between and by the mean of the last twentieth.
void judge(const std::vector<double>& steps, const std::vector<double>& losses, size_t seen, Hits& hits,
           double share = 0.8) {
  const size_t n = steps.size(), tail = n / 20;
  const std::vector<double> past(steps.begin(), steps.begin() + ptrdiff_t(seen)),
      known(losses.begin(), losses.begin() + ptrdiff_t(seen));
  const CurveForecast f =
      forecast_curve(past, known, {.horizon = steps.back(), .points = int(n - seen), .coverage = share});
  double final_loss = 0;
  for (size_t i = n - tail; i < n; ++i) final_loss += losses[i] / double(tail);
  for (size_t i = seen; i < n; ++i) {
    const CurvePoint& p = f.prediction[i - seen];
    ASSERT_NEAR(p.step, steps[i], 1e-6 * steps[i]);
    hits.inside += losses[i] >= p.low && losses[i] <= p.high;
    hits.rows += 1;
  }
  const auto error = [&](double said) { return std::abs(std::log(std::max(said, 1e-3) / final_loss)); };
  hits.ours += error(f.prediction[n - seen - 1 - tail / 2].mean);
  hits.power_law += error(fit_curve(CurveFamily::power, past, known, true)(steps[n - 1 - tail / 2]));
  hits.last += error(known.back());
}

TEST(LearningCurves, BandsHoldFourFifthsOfSyntheticRuns) {
  const Sweep runs = synthetic_sweep(240, 2024);
  Hits hits;
  for (size_t r = 0; r < runs.losses.size(); ++r)
    judge(runs.steps, runs.losses[r], r % 3 == 0 ? 30 : r % 3 == 1 ? 60 : 100, hits);
  const double coverage = hits.inside / hits.rows;
  RecordProperty("coverage", std::to_string(coverage));
  EXPECT_GT(coverage, 0.7);
  EXPECT_LT(coverage, 0.9);
  EXPECT_LT(hits.ours, 0.8 * hits.power_law);
  EXPECT_LT(hits.ours, 0.6 * hits.last);
}

// Runs of bench/peers/mnist_mlp_logs.py that no constant was chosen by.
void expect_held_out(const std::string& file) {
  const io::TrainingLog log = io::read_training_log(std::string(LOCKSTEP_FORECAST_DATA) + "/" + file);
  ASSERT_EQ(log.columns.size(), 24u);
  Hits all;
  for (const size_t seen : {22, 37, 60, 90}) {
    Hits hits;
    for (const io::LogColumn& run : log.columns) judge(run.steps, run.values, seen, hits);
    const double coverage = hits.inside / hits.rows;
    testing::Test::RecordProperty("coverage_" + std::to_string(seen), std::to_string(coverage));
    EXPECT_GT(coverage, 0.7) << seen << " rows";
    EXPECT_LT(coverage, 0.9) << seen << " rows";
    if (seen == 22) continue;  // nothing beats the power law there
    all.ours += hits.ours, all.power_law += hits.power_law, all.last += hits.last;
  }
  EXPECT_LT(all.ours, all.power_law);
  EXPECT_LT(all.ours, 0.6 * all.last);
}

TEST(LearningCurves, BandsHoldTheShareThatIsAskedFor) {
  const io::TrainingLog log =
      io::read_training_log(std::string(LOCKSTEP_FORECAST_DATA) + "/held_out_more.csv");
  for (const double share : {0.3, 0.5, 0.95}) {
    Hits hits;
    for (const size_t seen : {37, 60, 90})
      for (const io::LogColumn& run : log.columns) judge(run.steps, run.values, seen, hits, share);
    EXPECT_NEAR(hits.inside / hits.rows, share, 0.06) << share;
  }
}

TEST(LearningCurves, BandsHoldFourFifthsOfRealRunsThatWereHeldOut) { expect_held_out("held_out.csv"); }
TEST(LearningCurves, BandsHoldFourFifthsOfMoreRealRuns) { expect_held_out("held_out_more.csv"); }

std::vector<double> falling(const std::vector<double>& steps) {
  std::vector<double> losses;
  for (size_t i = 0; i < steps.size(); ++i)
    losses.push_back(0.2 + 2 * std::exp(-steps[i] / 800) + 0.004 * std::sin(7.0 * double(i)));
  return losses;
}

TEST(LearningCurves, AdviceComesFromTheTrend) {
  const std::vector<double> steps = even_steps(100, 10);
  const std::vector<double> losses = falling(steps);  // 0.773 at step 1000
  const CurveForecast open = forecast_curve(steps, losses, {.horizon = 5000});
  EXPECT_EQ(open.advice.action, Action::go_on);
  EXPECT_TRUE(open.advice.text.starts_with("Continue")) << open.advice.text;
  // 0.5 is reached at 800 ln(2 / 0.3) = 1518.
  const CurveForecast target = forecast_curve(steps, losses, {.horizon = 5000, .target = 0.5});
  ASSERT_TRUE(target.advice.steps_to_target);
  EXPECT_NEAR(*target.advice.steps_to_target, 518, 150) << target.advice.text;
  EXPECT_EQ(*forecast_curve(steps, losses, {.horizon = 5000, .target = 1.0}).advice.steps_to_target, 0);
  const CurveForecast never = forecast_curve(steps, losses, {.horizon = 5000, .target = 0.01});
  EXPECT_FALSE(never.advice.steps_to_target);
  // The slope is 2 / 800 exp(-t / 800): 7e-4 a step now, 2e-4 at step 2020.
  EXPECT_EQ(forecast_curve(steps, losses, {.horizon = 5000, .least_gain = 2e-3}).advice.action, Action::stop);
  const CurveForecast slow = forecast_curve(steps, losses, {.horizon = 5000, .least_gain = 2e-4});
  ASSERT_TRUE(slow.advice.stop_step);
  EXPECT_NEAR(*slow.advice.stop_step, 2020, 450) << slow.advice.text;

  std::vector<double> flat(100);
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = 0.5 + 0.01 * std::sin(7.0 * double(i));
  const CurveForecast done = forecast_curve(steps, flat, {.horizon = 2000});
  EXPECT_EQ(done.advice.action, Action::stop) << done.advice.text;
  EXPECT_NEAR(done.prediction.back().mean, 0.5, 0.01);
}

TEST(LearningCurves, LossesOfAnySignAndStepsFromZero) {
  std::vector<double> steps, losses;
  for (int k = 0; k < 80; ++k) {
    steps.push_back(k);
    losses.push_back(-1 + 2 * std::exp(-k / 20.0));
  }
  const CurveForecast f = forecast_curve(steps, losses, {.horizon = 160});
  EXPECT_NEAR(f.prediction.back().mean, -1 + 2 * std::exp(-8.0), 0.03);
  EXPECT_LE(f.prediction.back().low, f.prediction.back().mean);
  // A constant is its own forecast.
  const CurveForecast same = forecast_curve(steps, std::vector<double>(80, 0.25));
  EXPECT_NEAR(same.prediction.back().mean, 0.25, 1e-6);
}

// Three orders of magnitude in a few dozen steps: no line through neighbouring losses follows that.
TEST(LearningCurves, BandsOfASteepFallAreFinite) {
  std::vector<double> steps, losses;
  for (int i = 1; i <= 300; ++i) {
    steps.push_back(i);
    losses.push_back(0.9 * std::exp(-0.06 * i) + 0.3 / (i * double(i)) + 0.0009);
  }
  const CurveForecast f = forecast_curve(steps, losses, {.horizon = 600});
  for (const CurvePoint& p : f.prediction) {
    EXPECT_TRUE(std::isfinite(p.low) && std::isfinite(p.high)) << p.step;
    EXPECT_LT(p.low, p.mean);
    EXPECT_GT(p.high, p.mean);
  }
  for (const auto& row : f.backtest.rows) EXPECT_TRUE(std::isfinite(row.mean_error)) << row.predictor;
  EXPECT_NEAR(f.prediction.back().mean, 0.0009, 0.0003);
}

/// A run that learns for a while, with noise of 3 % as a generator of its own draws it.
std::vector<double> noisy(int rows, uint32_t seed) {
  std::vector<double> losses;
  for (int k = 0; k < rows; ++k) {
    double draw = 0;
    for (int j = 0; j < 12; ++j) draw += double((seed = seed * 1664525u + 1013904223u) >> 8) / 0x1p24 - 0.5;
    losses.push_back((0.3 + 2 * std::exp(-k / 40.0)) * (1 + 0.03 * draw));
  }
  return losses;
}

TEST(LearningCurves, RunsThatRiseAreStoppedAndNotPredicted) {
  const std::vector<double> steps = even_steps(200, 10);
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<double> good = noisy(200, seed);
    const CurveForecast learns = forecast_curve(steps, good, {.horizon = 4000});
    EXPECT_FALSE(learns.rising_since) << learns.advice.text;
    EXPECT_FALSE(learns.prediction.empty());
    std::vector<double> bad = good;
    const int rows = 20 + int(seed * 40 / 30);
    for (int k = 0; k < rows; ++k) bad[size_t(200 - rows + k)] *= std::exp((0.05 + 0.01 * (seed % 5)) * k);
    const CurveForecast diverges = forecast_curve(steps, bad, {.horizon = 4000, .target = 0.01});
    ASSERT_TRUE(diverges.rising_since);
    EXPECT_NEAR(*diverges.rising_since, 10 * (200 - rows), 600);
    EXPECT_EQ(diverges.advice.action, Action::stop);
    EXPECT_TRUE(diverges.prediction.empty());
    bad = good;
    for (size_t k = 190; k < 200; ++k) bad[k] *= 3;
    EXPECT_TRUE(forecast_curve(steps, bad).rising_since);
    bad = good;
    bad[199] *= 3;  // one outlier
    bad[100] *= 10;
    EXPECT_FALSE(forecast_curve(steps, bad).rising_since);
    for (double& v : bad = good) v -= 5;
    EXPECT_FALSE(forecast_curve(steps, bad).rising_since);
    for (size_t k = 150; k < 200; ++k) bad[k] += 0.02 * double(k - 150);
    EXPECT_TRUE(forecast_curve(steps, bad).rising_since);
  }
}

// Losses without noise that fall along a line and then rise: by a factor where they are positive, by a share of their fall
// where they are not, in any unit.
TEST(LearningCurves, TheLeastRiseThatCounts) {
  const std::vector<double> steps = even_steps(200, 10);
  const auto rises = [&](double first, double least, double last, double unit) {
    std::vector<double> losses;
    for (int k = 0; k < 200; ++k)
      losses.push_back(
          unit * (k < 100 ? std::lerp(first, least, k / 100.0) : std::lerp(least, last, (k - 100) / 99.0)));
    return forecast_curve(steps, losses).rising_since.has_value();
  };
  for (const double unit : {1e-6, 1.0, 1e6}) {
    SCOPED_TRACE(unit);
    EXPECT_FALSE(rises(10, 4, 5.5, unit));
    EXPECT_TRUE(rises(10, 4, 7, unit));
    EXPECT_FALSE(rises(10, -5, -2.5, unit));
    EXPECT_TRUE(rises(10, -5, 0.5, unit));
  }
}

TEST(LearningCurves, LossesOfExactlyZero) {
  const std::vector<double> steps = even_steps(100, 10);
  const CurveForecast none = forecast_curve(steps, std::vector<double>(100, 0.0));
  EXPECT_EQ(none.advice.action, Action::stop);
  EXPECT_EQ(none.advice.text.find("nan"), std::string::npos);
  // One that rounding made 0 changes little, and nothing is predicted below it.
  std::vector<double> losses;
  for (int k = 0; k < 100; ++k) losses.push_back(2 * std::exp(-k / 15.0));
  const CurveForecast before = forecast_curve(steps, losses, {.horizon = 2000});
  losses[97] = 0;
  const CurveForecast after = forecast_curve(steps, losses, {.horizon = 2000});
  for (const CurvePoint& p : after.prediction) {
    EXPECT_GT(p.mean, 0) << p.step;
    EXPECT_GE(p.low, 0) << p.step;
  }
  EXPECT_NEAR(std::log(after.prediction.front().mean / before.prediction.front().mean), 0, 0.2);
}

TEST(LearningCurves, RefusalsNameWhatIsWrong) {
  const std::vector<double> steps = even_steps(20, 1), losses = falling(steps);
  const auto error = [&](const std::vector<double>& s, const std::vector<double>& l, CurveOptions o = {}) {
    return error_of([&] { forecast_curve(s, l, o, "a.csv"); });
  };
  EXPECT_EQ(error({1, 2}, {1, 2}), "2 rows [a.csv]: expected at least 8");
  EXPECT_EQ(error({1, 2}, {1}), "2 steps and 1 losses [a.csv]: expected as many of both");
  EXPECT_EQ(error(steps, losses, {.horizon = 10}),
            "a horizon of 10 [a.csv]: expected a step after 20, the last of the log");
  std::vector<double> broken = losses;
  broken[4] = NAN;
  EXPECT_EQ(error(steps, broken), "the loss of row 5 is nan [a.csv]: expected finite numbers");
  broken = steps;
  broken[6] = 1;
  EXPECT_EQ(error(broken, losses), "the step of row 7 is 1 [a.csv]: expected increasing steps from 0 on");
}

TEST(LearningCurves, PlotIsDrawn) {
  const std::vector<double> steps = even_steps(40, 1);
  const auto file =
      std::filesystem::temp_directory_path() / ("lockstep_curve_" + std::to_string(::getpid()) + ".png");
  draw_forecast(file, steps, falling(steps), forecast_curve(steps, falling(steps)), "loss");
  std::ifstream in(file, std::ios::binary);
  std::string head(8, '\0');
  in.read(head.data(), 8);
  EXPECT_EQ(head, "\x89PNG\r\n\x1a\n");
  EXPECT_GT(std::filesystem::file_size(file), 5000u);
  std::filesystem::remove(file);
}

const SweepRow& row_of(const std::vector<SweepRow>& rows, std::string_view policy) {
  for (const SweepRow& row : rows)
    if (row.policy == policy) return row;
  throw InputError("no row", policy, "a policy");
}

TEST(LearningCurves, SweepsOfRunsOrderedFromTheStartAreStoppedRightly) {
  Sweep sweep{even_steps(100, 10), {}};
  for (int r = 0; r < 16; ++r) {
    std::vector<double> losses;
    for (size_t i = 0; i < 100; ++i)
      losses.push_back((0.2 + 0.1 * r) * (1 + 3 * std::pow(sweep.steps[i] / 10, -0.7)) *
                       (1 + 0.002 * std::sin(double(7 * i) + r)));
    sweep.losses.push_back(losses);
  }
  for (const SweepRow& row : stop_sweep(sweep)) {
    EXPECT_EQ(row.regret, 0) << row.policy;
    EXPECT_EQ(row.rightly_stopped, row.policy.find("halving") == std::string::npos ? row.stopped : 8)
        << row.policy;
  }
  const auto rows = stop_sweep(sweep);
  EXPECT_NEAR(row_of(rows, "last value at 0.25").saved, 0.5 * 0.75, 1e-12);
  // 8 + 4 + 2 + 1 runs end at 1/16 (8 rows at least), 1/8, 1/4, 1/2 of 100 rows.
  EXPECT_NEAR(row_of(rows, "halving").saved, (8 * 0.92 + 4 * 0.88 + 2 * 0.75 + 0.5) / 16, 1e-12);
  EXPECT_GT(row_of(rows, "forecast").saved, 0.3);
}

// Runs that diverge rank behind all others from there on; what the others get stays as it was.
TEST(LearningCurves, RunsOfASweepMayDiverge) {
  Sweep sweep{even_steps(100, 10), {}};
  for (int r = 0; r < 8; ++r) {
    std::vector<double> losses;
    for (size_t i = 0; i < 100; ++i)
      losses.push_back((0.2 + 0.1 * r) * (1 + 3 * std::pow(sweep.steps[i] / 10, -0.7)));
    sweep.losses.push_back(losses);
  }
  const auto plain = stop_sweep(sweep);
  sweep.losses[6][20] = std::numeric_limits<double>::quiet_NaN();  // and finite again
  sweep.losses[0][60] = std::numeric_limits<double>::infinity();   // the best until then
  for (const SweepRow& row : stop_sweep(sweep)) {
    // Halving has kept one run alone by then: the one that diverges.
    const bool halving = row.policy.find("halving") != std::string::npos;
    EXPECT_EQ(std::isfinite(row.regret), !halving) << row.policy;
    EXPECT_TRUE(std::isfinite(row.saved)) << row.policy;
    EXPECT_GE(row.stopped, row.policy == "forecast" ? 2 : 4) << row.policy;
  }
  EXPECT_EQ(row_of(stop_sweep(sweep), "forecast").regret, 0);
  EXPECT_EQ(row_of(plain, "last value at 0.125").saved,
            row_of(stop_sweep(sweep), "last value at 0.125").saved);
  // Two of eight at 20 and 60 rows of 100, seen at the next check.
  EXPECT_GE(row_of(stop_sweep(sweep), "forecast").saved, (0.75 + 0.35) / 8 - 1e-12);
  for (auto& run : sweep.losses) run.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(stop_sweep(sweep), InputError);
}

TEST(LearningCurves, StoppingRunsThatDivergeIsRightHoweverMany) {
  Sweep sweep{even_steps(100, 10), {}};
  for (int r = 0; r < 6; ++r) {
    sweep.losses.push_back(falling(sweep.steps));
    if (r >= 4) continue;
    for (size_t i = 30; i < 100; ++i) sweep.losses.back()[i] = std::numeric_limits<double>::quiet_NaN();
  }
  const SweepRow& row = row_of(stop_sweep(sweep), "forecast");
  EXPECT_EQ(row.stopped, 4);
  EXPECT_EQ(row.rightly_stopped, 4);
}

// Predictions are in proportion to the losses: a loss of 1e-13 is as good as one of 1.
TEST(LearningCurves, LossesOfAnySize) {
  for (const double size : {1e-300, 1e300}) {
    std::vector<double> losses = falling(even_steps(40, 1));
    for (double& loss : losses) loss *= size;
    try {
      forecast_curve(even_steps(40, 1), losses);
      ADD_FAILURE() << size;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("the loss of row 1 is"), std::string::npos) << error.what();
    }
  }
  for (const double size : {1e-58, 1e-20, 1e-13, 1e58}) {
    std::vector<double> losses = falling(even_steps(40, 1));
    for (double& loss : losses) loss *= size;
    const CurveForecast f = forecast_curve(even_steps(40, 1), losses),
                        plain = forecast_curve(even_steps(40, 1), falling(even_steps(40, 1)));
    EXPECT_NEAR(f.prediction.back().mean / size, plain.prediction.back().mean, 1e-6);
    EXPECT_EQ(f.advice.action, plain.advice.action);
  }
}

TEST(LearningCurves, SweepOfRealRuns) {
  const io::TrainingLog log = io::read_training_log(std::string(LOCKSTEP_FORECAST_DATA) + "/sweep.csv");
  Sweep sweep{log.columns.front().steps, {}};
  for (const io::LogColumn& run : log.columns) sweep.losses.push_back(run.values);
  const auto rows = stop_sweep(sweep);
  const SweepRow& ours = row_of(rows, "forecast");
  EXPECT_EQ(ours.regret, 0);
  EXPECT_GT(ours.saved, 0.2);
  EXPECT_GE(ours.rightly_stopped, ours.stopped - 1);
  EXPECT_THROW(stop_sweep({sweep.steps, {sweep.losses[0]}}), InputError);
  for (const SweepOptions& endless : {SweepOptions{0, 0.1}, {1e-300, 0.1}, {0.05, -1}})
    EXPECT_THROW(stop_sweep(sweep, endless), OptionError);
}

// The share of later rows that the widened bands would have held, counted over the origins and stretches of docs/forecast.md.
TEST(RollingOrigins, BandsHoldTheirShareOnEachSide) {
  std::vector<double> steps, losses;
  std::mt19937 random(5);
  std::exponential_distribution<double> lopsided(8);
  for (int k = 1; k <= 240; ++k) {
    steps.push_back(k);
    losses.push_back((0.4 + 3 * std::pow(k, -0.6)) * (1 + lopsided(random)));
  }
  constexpr double kCoverage = 0.5, kReach = 1e9;
  const double z = normal_quantile(kCoverage);
  const RollingResult result = roll_origins(steps, losses, kReach, kCoverage);
  double inside = 0, origins = 0, lopsidedness = 0, last_value = 0, recent_mean = 0;
  for (const double share : {0.3, 0.42, 0.55, 0.7, 0.84}) {
    const size_t seen = size_t(240 * share), later = 240 - seen;
    const CurveEnsemble ensemble(std::span<const double>(steps).first(seen),
                                 std::span<const double>(losses).first(seen));
    double held = 0;
    for (size_t s = 0; s < 10; ++s) {
      const size_t a = seen + later * s / 10, b = seen + later * (s + 1) / 10;
      double step = 0, mean = 0, recent = 0;
      for (size_t k = a; k < b; ++k) step += steps[k] / double(b - a), mean += losses[k] / double(b - a);
      for (size_t k = seen - seen / 10; k < seen; ++k) recent += losses[k] / double(seen / 10);
      last_value += std::abs(losses[seen - 1] / mean - 1), recent_mean += std::abs(recent / mean - 1);
      const EnsemblePoint p = ensemble.at(step);
      lopsidedness = std::max(lopsidedness, std::abs(p.side(true) / p.side(false) - 1));
      for (size_t k = a; k < b; ++k) {
        const double off = std::log(losses[k] / p.mean);
        const double width =
            off < 0 ? result.widening.below * p.side(true) : result.widening.above * p.side(false);
        held += std::abs(off) <= z * std::hypot(width, ensemble.noise().deviation) ? 1 : 0;
      }
    }
    inside += held / double(later), origins += 1;
  }
  EXPECT_GT(lopsidedness, 0.05);
  EXPECT_NEAR(result.backtest.rows.at(0).coverage, inside / origins, 1e-12);
  // Of the predictors that need no fit, over ten stretches of each origin.
  EXPECT_NEAR(result.backtest.rows.at(2).mean_error, last_value / origins / 10, 1e-12);
  EXPECT_NEAR(result.backtest.rows.at(3).mean_error, recent_mean / origins / 10, 1e-12);
}

// Rows alternate by d about plateaus: second differences are 4 d, so rows scatter by 4 d / (0.6745 sqrt 6), and medians of
// three are off by that over sqrt 3. Six such errors are 8.39 d.
TEST(Divergence, ARiseBeyondSixStandardErrorsCounts) {
  const double d = 0.01;
  const auto found = [&](double rise) {
    std::vector<double> steps, losses;
    for (int k = 0; k < 60; ++k) {
      steps.push_back(k);
      losses.push_back((k < 20 ? 0 : k < 40 ? -2 * rise : -rise) + (k % 2 == 0 ? d : -d));
    }
    return find_rise(steps, losses);
  };
  EXPECT_FALSE(found(8.3 * d));
  const auto rise = found(8.5 * d);
  ASSERT_TRUE(rise);
  EXPECT_NEAR(rise->least, -17 * d - d, 1e-12);
  EXPECT_NEAR(rise->level, -8.5 * d - d, 1e-12);
  EXPECT_TRUE(rise->step >= 20 && rise->step < 40) << rise->step;
}

}  // namespace
