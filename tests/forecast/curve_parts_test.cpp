// Parts of curve fits against what they are by definition: bins of a log, scatter about a trend, variance of means, slopes of
// families, least squares of a floor and an amplitude, the bands of an ensemble, and documents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "forecast/curve/fit/ensemble.hpp"
#include "forecast/curve/fit/fit.hpp"
#include "forecast/curve/fit/smooth.hpp"
#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/sweep.hpp"

namespace {

using namespace lockstep::forecast;

constexpr CurveFamily kAllFamilies[] = {
    CurveFamily::power,     CurveFamily::shifted_power, CurveFamily::exponential, CurveFamily::weibull,
    CurveFamily::log_power, CurveFamily::logarithmic,   CurveFamily::recent_power};

// Values whose correlation falls by a factor a row: the variance of their mean is the sum over all pairs.
TEST(CurveNoise, VarianceOfAMeanIsTheSumOverPairs) {
  for (const double rho : {0.0, 0.3, 0.8})
    for (const int n : {1, 2, 5, 40}) {
      double pairs = 0;
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) pairs += std::pow(rho, std::abs(i - j));
      EXPECT_NEAR(mean_variance(n, rho), pairs / (n * n), 1e-12) << n << " of " << rho;
    }
}

// Rows about a trend that alternate by +d, -d, with a first half that does not count. Every second difference is of the sign
// of the last, so the correlation is at its least.
TEST(CurveNoise, IsOfTheSecondHalf) {
  constexpr double d = 0.02;
  std::vector<double> trend, losses, above;
  for (int k = 0; k < 40; ++k) {
    trend.push_back(3 - 0.05 * k);
    const double off = k < 20 ? 0.5 : k % 2 ? d : -d;
    losses.push_back(trend.back() * (1 + off)), above.push_back(trend.back() + off);
  }
  const double deviation = d * std::sqrt(20.0 / 19);
  EXPECT_NEAR(noise_about(losses, trend, true).deviation, deviation, 1e-12);
  EXPECT_NEAR(noise_about(above, trend, false).deviation, deviation, 1e-12);
  EXPECT_EQ(noise_about(above, trend, false).correlation, 0);
}

// The mean over many short series is the correlation that they were made with; the plain estimate of 20 rows is too small by
// (1 + 4 rho) / 20, here by 0.15.
TEST(CurveNoise, CorrelationOfShortSeriesHasNoBias) {
  constexpr double kRho = 0.5;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  const std::vector<double> level(40, 1.0);
  double sum = 0;
  constexpr int kSeries = 4000;
  for (int s = 0; s < kSeries; ++s) {
    std::vector<double> losses;
    double v = normal(random);
    for (int k = 0; k < 40; ++k) {
      losses.push_back(1 + v);
      v = kRho * v + std::sqrt(1 - kRho * kRho) * normal(random);
    }
    sum += noise_about(losses, level, false).correlation / kSeries;
  }
  EXPECT_NEAR(sum, kRho, 0.04);
}

// Bins are of equal width in the logarithm of the step; no row is lost and none counts twice.
TEST(SmoothedCurve, BinsHoldEveryRowOnce) {
  for (const double first : {0.0, 5.0}) {
    std::vector<double> steps, losses;
    for (int k = 0; k < 1000; ++k) steps.push_back(first + 5 * k), losses.push_back(2 + std::sin(k));
    const SmoothedCurve c = smooth_curve(steps, losses);
    EXPECT_EQ(c.shift, first > 0 ? 0 : 5);
    EXPECT_EQ(c.scale, 5000);
    EXPECT_EQ(std::accumulate(c.rows.begin(), c.rows.end(), 0), 1000);
    double sum = 0, logs = 0, all_logs = 0;
    for (size_t b = 0; b < c.x.size(); ++b) sum += c.rows[b] * c.y[b], logs += c.rows[b] * std::log(c.x[b]);
    for (int k = 1; k <= 1000; ++k) all_logs += std::log(k / 1000.0);
    EXPECT_NEAR(sum, std::accumulate(losses.begin(), losses.end(), 0.0), 1e-9);
    EXPECT_NEAR(logs, all_logs, 1e-9);
    // 1000 steps over 64 bins: a bin spans a factor of 1000^(1 / 64), and the last holds the rows of that share of the end.
    const double factor = std::pow(1000.0, 1.0 / 64);
    EXPECT_NEAR(c.rows.back(), 1000 * (1 - 1 / factor), 1.5);
    EXPECT_EQ(c.rows.front(), 1);
    EXPECT_LE(c.x.size(), 64u);
    EXPECT_TRUE(std::is_sorted(c.x.begin(), c.x.end()));
    EXPECT_EQ(c.recent_rows, 100);
    EXPECT_EQ(c.last_value, losses.back());
    EXPECT_NEAR(c.recent_mean, std::accumulate(losses.end() - 100, losses.end(), 0.0) / 100, 1e-12);
    EXPECT_NEAR(c.recent_x, (901 + 1000) / 2000.0, 1e-12);
  }
}

TEST(CurveFamilies, DerivativesAreTheSlopes) {
  constexpr double h = 1e-6;
  for (const CurveFamily family : kAllFamilies)
    for (const double x : {0.02, 0.4, 1.0, 3.0}) {
      const ShapeParameters p = {std::log(0.7), std::log(2.5)};
      const ShapeValue at = shape_at(family, x, p);
      for (int k = 0; k < shape_range(family).count; ++k) {
        ShapeParameters up = p, down = p;
        up[size_t(k)] += h, down[size_t(k)] -= h;
        const double slope = (shape_at(family, x, up).value - shape_at(family, x, down).value) / (2 * h);
        EXPECT_NEAR(at.derivative[size_t(k)], slope, 1e-8) << name(family) << " " << x << " " << k;
      }
      EXPECT_GT(at.value, 0);
      EXPECT_GT(at.value, shape_at(family, 1.01 * x, p).value) << name(family) << " does not fall";
    }
}

// With a weight on one half of the data the fit is of that half; a curve that would end below 0 has the floor 0.
TEST(CurveFits, WeightsCountAndFloorsArePositive) {
  CurveData data;
  for (int k = 1; k <= 60; ++k) {
    data.x.push_back(k / 60.0);
    data.y.push_back((k <= 30 ? 5 : 0.3) + 2 * std::exp(-3 * data.x.back()));
    data.weight.push_back(k <= 30 ? 1e-14 : 1);
  }
  const CurveFit fit = fit_family(CurveFamily::exponential, data);
  EXPECT_NEAR(fit.floor, 0.3, 1e-4);
  EXPECT_NEAR(fit.amplitude, 2, 1e-3);
  EXPECT_NEAR(std::exp(fit.shape[0]), 3, 1e-3);
  CurveData low;
  for (int k = 1; k <= 60; ++k)
    low.x.push_back(k / 60.0), low.y.push_back(std::exp(-3 * low.x.back()) - 0.02), low.weight.push_back(1);
  EXPECT_NEAR(fit_family(CurveFamily::exponential, low).floor, -0.02, 1e-8);
  low.positive = true;
  const CurveFit held = fit_family(CurveFamily::exponential, low);
  EXPECT_EQ(held.floor, 0);
  // Least squares of an amplitude alone: residuals are orthogonal to the shape, and to its slope by the rate.
  double along = 0, by_rate = 0, cost = 0;
  for (size_t k = 0; k < low.x.size(); ++k) {
    const double r = low.y[k] - held(low.x[k]);
    along += r * std::exp(-std::exp(held.shape[0]) * low.x[k]);
    by_rate += r * low.x[k] * std::exp(-std::exp(held.shape[0]) * low.x[k]);
    cost += r * r;
  }
  EXPECT_NEAR(along, 0, 1e-10);
  EXPECT_NEAR(by_rate, 0, 1e-7);
  EXPECT_NEAR(held.cost, cost, 1e-12);
}

// y = a x^-p, and a first half of other values that a fit of the recent rows does not see.
TEST(CurveFits, RecentPowerIsOfTheLateRows) {
  CurveData data;
  for (int k = 1; k <= 100; ++k) {
    data.x.push_back(k / 100.0);
    data.y.push_back(k < 30 ? 9 : 0.8 * std::pow(data.x.back(), -0.35));
    data.weight.push_back(1 / (data.y.back() * data.y.back()));
  }
  data.positive = true;
  const CurveFit fit = fit_family(CurveFamily::recent_power, data);
  EXPECT_NEAR(std::exp(fit.shape[0]), 0.35, 1e-10);
  EXPECT_NEAR(fit.amplitude, 0.8, 1e-10);
  EXPECT_EQ(fit.floor, 0);
  EXPECT_NEAR(fit.cost, 0, 1e-15);
  EXPECT_NEAR(fit(2), 0.8 * std::pow(2, -0.35), 1e-10);
  // Of a rough curve: weights are those of relative residuals, to which a line through logarithms is orthogonal.
  for (size_t k = 0; k < data.y.size(); k += 3) data.y[k] *= 1.1, data.weight[k] = 0.3;
  const CurveFit rough = fit_family(CurveFamily::recent_power, data);
  double sum = 0, moment = 0;
  for (size_t k = 0; k < data.x.size(); ++k) {
    if (data.x[k] < 1 / std::exp(1.0)) continue;
    const double r = data.weight[k] * data.y[k] * data.y[k] * std::log(data.y[k] / rough(data.x[k]));
    sum += r, moment += r * std::log(data.x[k]);
  }
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_NEAR(moment, 0, 1e-12);
}

// A loss and its double, or a log in steps of other units, differ in nothing else.
TEST(CurveEnsembles, HaveNoUnits) {
  std::vector<double> steps, losses, far, twice;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.03);
  for (int k = 1; k <= 200; ++k) {
    steps.push_back(k), far.push_back(1024 * k);
    losses.push_back((0.5 + 2 * std::pow(k, -0.5)) * std::exp(normal(random)));
    twice.push_back(2 * losses.back());
  }
  const CurveEnsemble plain(steps, losses), longer(far, losses), larger(steps, twice);
  for (const double step : {200.0, 300.0, 1000.0}) {
    const EnsemblePoint p = plain.at(step), l = longer.at(1024 * step), d = larger.at(step);
    EXPECT_NEAR(l.mean, p.mean, 1e-6 * p.mean);
    EXPECT_NEAR(d.mean, 2 * p.mean, 1e-3 * p.mean);
    EXPECT_NEAR(l.below, p.below, 1e-4 * p.below);
    EXPECT_NEAR(d.above, p.above, 2e-2 * p.above);
    if (step > 200)
      EXPECT_GT(p.below, p.above) << "to fall on past a floor is likelier than to stop short of it";
  }
  // Doubt grows with the distance, and at the last step there is none but that of the fits.
  EXPECT_LT(plain.at(200).below, 0.006);
  EXPECT_LT(plain.at(200).above, 0.02);
  EXPECT_GT(plain.at(1000).below, 2 * plain.at(300).below);
  EXPECT_NEAR(std::accumulate(plain.weights().begin(), plain.weights().end(), 0.0), 1, 1e-12);
}

// A slow wave about a power law, which no family has: the trend is moved onto the mean of the last tenth.
TEST(CurveEnsembles, TheTrendMeetsTheRecentRows) {
  std::vector<double> steps, losses;
  for (int k = 1; k <= 300; ++k)
    steps.push_back(k),
        losses.push_back((0.5 + 2 * std::pow(k, -0.5)) * (1 + 0.05 * std::sin(3 * std::log(k))));
  const CurveEnsemble ensemble(steps, losses);
  const double recent = ensemble.curve().recent_mean, middle = 300 * ensemble.curve().recent_x;
  EXPECT_NEAR(ensemble.at(middle).mean, recent, 0.005 * recent);
  EXPECT_GT(std::abs(ensemble.power_law(middle) / recent - 1), 0.006) << "a fit alone is off";
}

// As lockstep/forecast/sweep.hpp promises: rows, floors and amplitudes, and a scatter of single rows about their neighbours of
// 0.6 % to 10 %, which correlations up to 0.6 make smaller by sqrt(1 - rho).
TEST(SyntheticSweeps, AreWhatTheirParametersSay) {
  const Sweep sweep = synthetic_sweep(60, 5);
  ASSERT_EQ(sweep.losses.size(), 60u);
  ASSERT_EQ(sweep.steps.size(), 150u);
  EXPECT_EQ(sweep.steps.front(), 10);
  EXPECT_EQ(sweep.steps.back(), 1500);
  double least = 1, most = 0, lowest = 9, highest = 0;
  for (const std::vector<double>& losses : sweep.losses) {
    ASSERT_EQ(losses.size(), 150u);
    EXPECT_LT(losses[0], (1.2 + 2.5) * std::exp(0.4));
    double end = 0, differences = 0;
    for (size_t k = 130; k < 150; ++k) end += losses[k] / 20;
    // Second differences of the last 100 rows, in which the curve itself is straight.
    for (size_t k = 50; k < 148; ++k)
      differences += std::pow(std::log(losses[k] * losses[k + 2] / (losses[k + 1] * losses[k + 1])), 2) / 98;
    const double scatter = std::sqrt(differences / 6);
    least = std::min(least, scatter), most = std::max(most, scatter);
    lowest = std::min(lowest, end), highest = std::max(highest, end);
    EXPECT_GT(end, 0.09);
    EXPECT_LT(end, 1.2 + 2.5);
  }
  EXPECT_TRUE(least > 0.003 && least < 0.01) << least;
  EXPECT_TRUE(most > 0.05 && most < 0.12) << most;
  EXPECT_LT(lowest, 0.5);
  EXPECT_GT(highest, 1.2);
  EXPECT_EQ(synthetic_sweep(60, 5).losses, sweep.losses);
  EXPECT_EQ(synthetic_sweep(9, 5).losses[8], sweep.losses[8])
      << "a run does not depend on how many there are";
  EXPECT_NE(synthetic_sweep(60, 6).losses[0], sweep.losses[0]);
}

TEST(CurveDocuments, HaveEachNumberUnderItsName) {
  CurveForecast f;
  f.prediction = {{1, 2, 3, 4, 5, 6}};
  f.members = {
      {{.family = CurveFamily::weibull, .shift = 7, .floor = 8, .amplitude = 9, .rate = 10, .exponent = 11},
       0.5,
       12}};
  f.now = 13, f.level = 14, f.noise = 15, f.noise_correlation = 0.25, f.widening = {1.5, 2.5};
  f.backtest = {{16, 17}, {{"ensemble", 18, 0.75}, {"last value", 19, std::nan("")}}};
  f.advice = {Action::stop, "Stop.", 20, 21, 22};
  f.rising_since = 23;
  const auto j = nlohmann::json::parse(to_json(f));
  EXPECT_EQ(j["prediction"][0], (nlohmann::json{{"step", 1.0},
                                                {"mean", 2.0},
                                                {"low", 3.0},
                                                {"high", 4.0},
                                                {"trend_low", 5.0},
                                                {"trend_high", 6.0}}));
  EXPECT_EQ(j["families"][0], (nlohmann::json{{"family", "weibull"},
                                              {"weight", 0.5},
                                              {"relative_error", 12.0},
                                              {"floor", 8.0},
                                              {"amplitude", 9.0},
                                              {"rate", 10.0},
                                              {"exponent", 11.0},
                                              {"shift", 7.0}}));
  EXPECT_EQ(j["last_step"], 13);
  EXPECT_EQ(j["level"], 14);
  EXPECT_EQ(j["noise"], 15);
  EXPECT_EQ(j["noise_correlation"], 0.25);
  EXPECT_EQ(j["widening"], (nlohmann::json{{"below", 1.5}, {"above", 2.5}}));
  EXPECT_EQ(j["backtest"]["origins"], (nlohmann::json{16.0, 17.0}));
  EXPECT_EQ(j["backtest"]["predictors"][0],
            (nlohmann::json{{"predictor", "ensemble"}, {"mean_error", 18.0}, {"coverage", 0.75}}));
  EXPECT_TRUE(j["backtest"]["predictors"][1]["coverage"].is_null());
  EXPECT_EQ(j["advice"], (nlohmann::json{{"action", "stop"},
                                         {"text", "Stop."},
                                         {"expected_gain", 20.0},
                                         {"steps_to_target", 21.0},
                                         {"stop_step", 22.0}}));
  EXPECT_EQ(j["rising_since"], 23);
  f.advice = {}, f.rising_since.reset();
  const auto without = nlohmann::json::parse(to_json(f));
  EXPECT_EQ(without["advice"]["action"], "continue");
  EXPECT_TRUE(without["advice"]["stop_step"].is_null());
  EXPECT_TRUE(without["rising_since"].is_null());
}

// Means of shares and regrets, sums of runs; the mean stop is one of the runs that stopped.
TEST(CurveDocuments, SweepsAddUp) {
  const std::vector<SweepRow> mean = mean_rows({{{"halving", 0.25, 0.5, 4, 3, 0.125}},
                                                {{"halving", 0.75, 0, 12, 5, 0.625}},
                                                {{"halving", 0.5, 0.25, 0, 0, 1}}});
  ASSERT_EQ(mean.size(), 1u);
  const auto j = nlohmann::json::parse(to_json(mean))[0];
  EXPECT_EQ(j["policy"], "halving");
  EXPECT_NEAR(j["saved"].get<double>(), 0.5, 1e-15);
  EXPECT_NEAR(j["regret"].get<double>(), 0.25, 1e-15);
  EXPECT_EQ(j["stopped"], 16);
  EXPECT_EQ(j["rightly_stopped"], 8);
  EXPECT_NEAR(j["mean_stop"].get<double>(), (4 * 0.125 + 12 * 0.625) / 16, 1e-15);
  EXPECT_EQ(mean_rows({{{"none", 0, 0, 0, 0, 0.5}}})[0].mean_stop, 1) << "where no run stopped";
}

}  // namespace
