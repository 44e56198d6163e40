// Statements of a fit beyond its parameters: distributions, tests of residuals, profiles, bands; by closed forms and enumeration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/error.hpp"
#include "solve/fit/distributions.hpp"
#include "solve/fit/fit.hpp"
#include "solve/fit/residual_tests.hpp"

namespace lockstep::solve {
namespace {

Context& cpu_of_confidence() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}
/// y over t with a known standard deviation in "error".
io::CsvTable rows_of(const std::function<double(double)>& f, int rows, double noise, double offset = 0) {
  io::CsvTable out;
  out.names = {"t", "y", "error"};
  out.columns.resize(3);
  for (int k = 0; k < rows; ++k) {
    const double t = 0.1 + 6.0 * k / (rows - 1);
    out.columns[0].push_back(t);
    out.columns[1].push_back(f(t) + noise * std::sin(12.9898 * k * k + 3 + offset));
    out.columns[2].push_back(noise * (k % 3 == 0 ? 0.5 : 1.5));
  }
  return out;
}
FitOptions wanted(const std::string& model) {
  FitOptions out;
  out.model = model, out.x = {"t"}, out.y = "y";
  out.options.function_tolerance = 1e-15;
  out.options.max_iterations = 500;
  return out;
}
std::string refusal(std::span<const io::CsvTable> tables, const FitOptions& options) {
  try {
    fit(tables, options, cpu_of_confidence());
  } catch (const InputError& e) { return e.what(); }
  return "";
}

// Chi squared with 2 m degrees of freedom: a Poisson sum; with one: a normal number. Student with one and two: tan and a root.
TEST(FitConfidence, DistributionsHaveTheirClosedForms) {
  for (const double x : {1e-3, 0.4, 3.0, 11.0, 45.0, 300.0}) {
    EXPECT_NEAR(chi_squared_tail(x, 1), std::erfc(std::sqrt(x / 2)),
                1e-14 * std::erfc(std::sqrt(x / 2)) + 1e-15);
    for (const int m : {1, 3, 20, 60}) {
      double term = std::exp(-x / 2), sum = 0;
      for (int k = 0; k < m; ++k) sum += term, term *= x / 2 / (k + 1);
      EXPECT_NEAR(chi_squared_tail(x, 2 * m), sum, 2e-13 * sum + 2e-15) << x << " " << m;
    }
  }
  for (const double p : {0.001, 0.03, 0.4, 0.5, 0.8, 0.975, 0.9999}) {
    const double cauchy = std::tan(M_PI * (p - 0.5)), two = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
    EXPECT_NEAR(student_quantile(p, 1), cauchy, 1e-11 * std::abs(cauchy) + 1e-15);
    EXPECT_NEAR(student_quantile(p, 2), two, 1e-11 * std::abs(two) + 1e-15);
    EXPECT_NEAR(student_probability(student_quantile(p, 7.5), 7.5), p, 1e-13);
  }
  EXPECT_NEAR(student_quantile(0.975, INFINITY), 1.959963984540054, 1e-13);
  for (const double x : {0.02, 0.7, 1.0, 4.0, 60.0})
    for (const double k : {1.0, 7.0, 40.0, 3000.0}) {
      const double two = std::pow(1 + 2 * x / k, -k / 2);
      EXPECT_NEAR(fisher_tail(x, 2, k), two, 1e-12 * two + 1e-15);
      EXPECT_NEAR(fisher_tail(x, k, 2), 1 - std::pow(1 + 2 / (k * x), -k / 2), 1e-12);
      EXPECT_NEAR(fisher_tail(x, 1, k), 2 * student_probability(-std::sqrt(x), k), 1e-12);
    }
  // Density of Student's distribution by Simpson's rule.
  double sum = 0;
  constexpr int kSteps = 2000;
  for (int k = 0; k <= kSteps; ++k) {
    const double t = 1.7 * k / kSteps, weight = k == 0 || k == kSteps ? 1 : k % 2 ? 4 : 2;
    sum += weight * std::pow(1 + t * t / 9, -5);
  }
  const double density = std::tgamma(5) / (std::sqrt(9 * M_PI) * std::tgamma(4.5));
  EXPECT_NEAR(student_probability(1.7, 9), 0.5 + density * sum * 1.7 / kSteps / 3, 1e-12);
}

// All orders of four positive and three negative residuals: mean and variance of the runs, hence the probability of each.
TEST(FitConfidence, RunsAreThoseOfAllOrders) {
  std::vector<double> signs{-1, -1, -1, 1, 1, 1, 1};
  std::vector<size_t> order(signs.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const size_t rows[] = {signs.size()};
  double mean = 0, squares = 0, count = 0;
  std::vector<std::pair<double, double>> seen;
  do {
    double runs = 1;
    for (size_t k = 1; k < signs.size(); ++k) runs += signs[k] != signs[k - 1];
    const FitResidualTests found = residual_tests(signs, rows, order, 2);
    EXPECT_EQ(double(found.runs), runs);
    seen.emplace_back(runs, found.runs_probability.value());
    mean += runs, squares += runs * runs, ++count;
    EXPECT_NEAR(found.akaike.value(), 2 * 2, 1e-14);
    EXPECT_NEAR(found.bayes.value(), std::log(7.0) * 2, 1e-14);
    EXPECT_FALSE(found.normality.has_value());
  } while (std::next_permutation(signs.begin(), signs.end()));
  mean /= count;
  const double deviation = std::sqrt(squares / count - mean * mean);
  for (const auto& [runs, probability] : seen)
    EXPECT_NEAR(probability, std::erfc(std::abs(runs - mean) / deviation / std::sqrt(2)), 1e-12);
  // Two data sets: none of their runs goes over from one to the other, and zeros count nowhere.
  const std::vector<double> both{1, 1, 0, -1, -1, 1};
  const size_t halves[] = {3, 3}, straight[] = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(residual_tests(both, halves, straight, 1).runs, 3);
}

// In a linear model the profile is the t interval, and bands are the textbooks'.
TEST(FitConfidence, ALinesProfileAndBandsAreTheTextbooks) {
  const io::CsvTable table = rows_of([](double t) { return 2 * t + 1; }, 25, 0.3);
  for (const double unit : {1.0, 1e-12, 1e12}) {
    io::CsvTable data = table;
    for (double& y : data.columns[1]) y *= unit;
    FitOptions options = wanted("m*t + q");
    options.profile = options.bands = true;
    const FitResult found = fit(data, options, cpu_of_confidence());
    ASSERT_EQ(found.profile.size(), 2u);
    for (size_t p = 0; p < 2; ++p)
      for (size_t k = 0; k < 3; ++k) {
        const double half = student_quantile((1 + std::erf((double(k) + 1) / std::sqrt(2))) / 2, 23) *
                            found.standard_errors[p];
        EXPECT_NEAR(found.profile[p].upper[k], found.values[p] + half, 1e-6 * half);
        EXPECT_NEAR(found.profile[p].lower[k], found.values[p] - half, 1e-6 * half);
      }
    const std::vector<double>& t = data.columns[0];
    const double mean = std::accumulate(t.begin(), t.end(), 0.0) / 25, s = found.residual_standard_deviation;
    double sxx = 0;
    for (const double v : t) sxx += (v - mean) * (v - mean);
    for (const size_t row : {0u, 11u, 24u}) {
      const double share = 1.0 / 25 + (t[row] - mean) * (t[row] - mean) / sxx,
                   q = student_quantile(0.975, 23);
      EXPECT_NEAR(found.bands->confidence[row], q * s * std::sqrt(share), 1e-9 * s);
      EXPECT_NEAR(found.bands->prediction[row], q * s * std::sqrt(1 + share), 1e-9 * s);
    }
  }
}

TEST(FitConfidence, ACurveAtTheRowsIsTheRows) {
  io::CsvTable data = rows_of([](double t) { return 3 * std::exp(-0.7 * t) + 0.5; }, 20, 0.2);
  data.names.push_back("error"), data.columns.emplace_back();
  for (const double t : data.columns[0]) data.columns.back().push_back(0.1 + 0.02 * t);
  FitOptions options = wanted("a*exp(-b*t) + c");
  options.bands = true, options.sigma = "error";
  options.at = data;
  const FitResult rows = fit(data, options, cpu_of_confidence());
  ASSERT_TRUE(rows.at && rows.bands);
  EXPECT_EQ(rows.at->rows, 20);
  EXPECT_EQ(rows.at->fitted, rows.fitted);
  for (size_t k = 0; k < 20; ++k) {
    EXPECT_NEAR(rows.at->confidence[k], rows.bands->confidence[k], 1e-12);
    EXPECT_NEAR(rows.at->prediction[k], rows.bands->prediction[k], 1e-12);
  }
  // Elsewhere the variance is that of the parameters by the chain rule; without sigma there, measurements have none.
  options.at = io::CsvTable{{"t"}, {{7.5}}};
  const FitResult apart = fit(data, options, cpu_of_confidence());
  const double a = apart.values[0], e = std::exp(-apart.values[1] * 7.5), slope[] = {e, -a * 7.5 * e, 1};
  double variance = 0;
  for (size_t p = 0; p < 3; ++p)
    for (size_t q = 0; q < 3; ++q) variance += slope[p] * apart.covariance[p * 3 + q] * slope[q];
  EXPECT_NEAR(apart.at->fitted.at(0), a * e + apart.values[2], 1e-13);
  EXPECT_NEAR(apart.at->confidence.at(0), student_quantile(0.975, 17) * std::sqrt(variance), 1e-9);
  EXPECT_TRUE(apart.at->prediction.empty());
  options.bands = false;
  EXPECT_TRUE(fit(data, options, cpu_of_confidence()).at->confidence.empty());
  options.at = io::CsvTable{{"time"}, {{7.5}}};
  EXPECT_THROW(fit(data, options, cpu_of_confidence()), InputError);
}

// With the rate held, amplitude and offset are linear, so the sum of squares is a closed form of the rate alone.
TEST(FitConfidence, AProfileIsTheLeastSumOfSquaresWithItsParameterHeld) {
  const io::CsvTable data = rows_of([](double t) { return 3 * std::exp(-0.7 * t) + 0.5; }, 30, 0.2);
  FitOptions options = wanted("a*exp(-b*t) + c");
  options.profile = true;
  const FitResult found = fit(data, options, cpu_of_confidence());
  const auto squares = [&](double rate) {
    double n = 30, se = 0, see = 0, sy = 0, sye = 0, syy = 0;
    for (size_t k = 0; k < 30; ++k) {
      const double e = std::exp(-rate * data.columns[0][k]), y = data.columns[1][k];
      se += e, see += e * e, sy += y, sye += y * e, syy += y * y;
    }
    const double slope = (n * sye - se * sy) / (n * see - se * se), offset = (sy - slope * se) / n;
    return syy - slope * sye - offset * sy;
  };
  const FitProfile& rate = found.profile.at(1);
  ASSERT_EQ(rate.parameter, "b");
  const double least = squares(found.values[1]), variance = least / 27;
  for (size_t k = 0; k < 3; ++k) {
    const double t = student_quantile((1 + profile_levels()[k]) / 2, 27);
    for (const double end : {rate.lower[k], rate.upper[k]})
      EXPECT_NEAR(std::sqrt((squares(end) - least) / variance), t, 1e-5 * t) << end;
  }
  EXPECT_LT(rate.lower[2], rate.lower[1]);
  EXPECT_GT(rate.upper[2] - found.values[1],
            found.values[1] - rate.lower[2]);  // a rate is skewed to the right
  // Within bounds that the interval does not reach, there is no end.
  options.bounds = {{"b", {found.values[1] * 0.9, found.values[1] * 1.1}}};
  const FitResult bounded = fit(data, options, cpu_of_confidence());
  EXPECT_TRUE(std::isinf(bounded.profile.at(1).upper[2]) && std::isinf(bounded.profile.at(1).lower[2]));
}

TEST(FitConfidence, AbsoluteSigmaLeavesErrorsAlone) {
  io::CsvTable data = rows_of([](double t) { return 2 * t; }, 25, 0.3);
  FitOptions options = wanted("m*t");
  options.sigma = "error", options.absolute_sigma = true, options.profile = true;
  const FitResult found = fit(data, options, cpu_of_confidence());
  double weights = 0;
  for (size_t k = 0; k < 25; ++k) weights += std::pow(data.columns[0][k] / data.columns[2][k], 2);
  EXPECT_NEAR(found.standard_errors[0], 1 / std::sqrt(weights), 1e-14);
  EXPECT_NEAR(found.profile.at(0).upper[1] - found.values[0], 2 / std::sqrt(weights), 1e-7);
  EXPECT_NEAR(found.chi_squared_probability.value(), chi_squared_tail(*found.chi_squared, 24), 0);
  options.absolute_sigma = false, options.profile = false;
  EXPECT_NEAR(fit(data, options, cpu_of_confidence()).standard_errors[0],
              found.standard_errors[0] * std::sqrt(*found.chi_squared / 24), 1e-14);
  // As many rows as parameters: sigma alone says how sure the slope is.
  for (auto& column : data.columns) column.resize(1);
  options.absolute_sigma = true;
  const FitResult one = fit(data, options, cpu_of_confidence());
  EXPECT_NEAR(one.standard_errors.at(0), data.columns[2][0] / data.columns[0][0], 1e-14);
  // Information criteria are of a likelihood, which a robust fit does not maximise.
  FitOptions robust = wanted("m*t");
  const io::CsvTable whole = rows_of([](double t) { return 2 * t; }, 25, 0.3);
  EXPECT_TRUE(fit(whole, robust, cpu_of_confidence()).tests.akaike.has_value());
  robust.loss = parse_robust_loss("huber:0.1");
  EXPECT_FALSE(fit(whole, robust, cpu_of_confidence()).tests.akaike.has_value());
  options.sigma.clear();
  EXPECT_NE(refusal(std::span(&data, 1), options).find("without sigma"), std::string::npos);
}

TEST(FitConfidence, NormalityHasNoUnits) {
  std::vector<double> residuals;
  for (int k = 0; k < 50; ++k) residuals.push_back(std::sin(12.9898 * k * k + 3));
  const size_t rows[] = {residuals.size()};
  std::vector<size_t> order(residuals.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto normality = [&](double unit) {
    std::vector<double> scaled = residuals;
    for (double& r : scaled) r *= unit;
    return residual_tests(scaled, rows, order, 2).normality.value();
  };
  for (const double unit : {1e-120, 1e120}) EXPECT_NEAR(normality(unit), normality(1), 1e-11);
}

TEST(FitConfidence, AModelWithoutAColumnIsNoted) {
  const io::CsvTable data = rows_of([](double t) { return 2 * t; }, 25, 0.3);
  FitOptions options = wanted("m*tt");  // for m*t
  options.x.clear();
  const std::vector<std::string> notes = fit(data, options, cpu_of_confidence()).summary.notes;
  EXPECT_EQ(std::ranges::count(notes, "the model names no column of the table: m, tt are parameters"), 1);
  EXPECT_FALSE(
      std::ranges::any_of(fit(data, wanted("m*t"), cpu_of_confidence()).summary.notes,
                          [](const std::string& note) { return note.find("no column") != note.npos; }));
}

}  // namespace
}  // namespace lockstep::solve
