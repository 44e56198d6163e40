// Curve fitting from tables: recovered parameters, standard errors against closed forms, starts, errors.
#include "solve/fit/fit.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

Context& cpu() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}
io::CsvTable table(const std::function<double(double)>& f, int rows, double low, double high,
                   double noise = 0) {
  io::CsvTable out;
  out.names = {"t", "value", "sigma"};
  out.columns.resize(3);
  for (int k = 0; k < rows; ++k) {
    const double t = low + (high - low) * k / (rows - 1);
    out.columns[0].push_back(t);
    out.columns[1].push_back(f(t) + noise * std::sin(12.9898 * k * k + 3));
    out.columns[2].push_back(0.1 + 0.01 * k);
  }
  return out;
}
FitOptions options(const std::string& model) {
  FitOptions out;
  out.model = model, out.x = {"t"}, out.y = "value";
  out.options.function_tolerance = 1e-14;
  out.options.max_iterations = 500;
  return out;
}
void expect_fit(const io::CsvTable& data, const std::string& model,
                const std::map<std::string, double>& expected, double tolerance) {
  SCOPED_TRACE(model);
  const FitResult result = fit(data, options(model), cpu());
  ASSERT_EQ(result.parameters.size(), expected.size());
  for (size_t k = 0; k < result.parameters.size(); ++k)
    EXPECT_NEAR(result.values[k], expected.at(result.parameters[k]),
                tolerance * std::abs(expected.at(result.parameters[k])))
        << result.parameters[k] << " from " << result.initial[k];
  EXPECT_GT(result.r_squared, 0.99);
}

TEST(Fit, RecoversCurvesWithoutAStart) {
  expect_fit(table([](double t) { return 3 * std::exp(-0.7 * t) + 0.5; }, 60, 0, 8), "a*exp(-b*t)+c",
             {{"a", 3}, {"b", 0.7}, {"c", 0.5}}, 1e-7);
  expect_fit(table([](double t) { return 50 * std::exp(-0.002 * t) + 7; }, 60, 0, 3000), "a*exp(-b*t)+c",
             {{"a", 50}, {"b", 0.002}, {"c", 7}}, 1e-6);
  expect_fit(table([](double t) { return 2 - 4 * t + 0.5 * t * t; }, 20, -3, 5), "p0 + p1*t + p2*t^2",
             {{"p0", 2}, {"p1", -4}, {"p2", 0.5}}, 1e-9);
  expect_fit(table([](double t) { return 9 / (1 + std::exp(-1.3 * (t - 4))); }, 50, 0, 10),
             "k/(1+exp(-r*(t-m)))", {{"k", 9}, {"r", 1.3}, {"m", 4}}, 1e-6);
  expect_fit(
      table([](double t) { return 5 * std::exp(-(t - 30) * (t - 30) / (2 * 4.0 * 4.0)) + 1; }, 80, 0, 60),
      "h*exp(-(t-m)^2/(2*s^2)) + c", {{"h", 5}, {"m", 30}, {"s", 4}, {"c", 1}}, 1e-6);
  expect_fit(table([](double t) { return 2 * std::pow(t, 1.7); }, 30, 0.5, 9), "a*t^b",
             {{"a", 2}, {"b", 1.7}}, 1e-8);
  expect_fit(table([](double t) { return 3 * t / (2 + t); }, 30, 0.1, 20), "v*t/(k+t)", {{"v", 3}, {"k", 2}},
             1e-8);
}

TEST(Fit, StandardErrorsOfALineAreTheTextbooks) {
  const io::CsvTable data = table([](double t) { return 2 * t + 1; }, 25, 0, 6, 0.3);
  const FitResult result = fit(data, options("m*t + q"), cpu());
  double n = 25, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (int k = 0; k < 25; ++k) {
    const double x = data.columns[0][size_t(k)], y = data.columns[1][size_t(k)];
    sx += x, sxx += x * x, sy += y, sxy += x * y;
  }
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx), offset = (sy - slope * sx) / n;
  double rss = 0;
  for (int k = 0; k < 25; ++k)
    rss += std::pow(data.columns[1][size_t(k)] - slope * data.columns[0][size_t(k)] - offset, 2);
  const double variance = rss / 23;
  EXPECT_NEAR(result.values[0], slope, 1e-10);
  EXPECT_NEAR(result.values[1], offset, 1e-10);
  EXPECT_NEAR(result.residual_sum_of_squares, rss, 1e-10);
  EXPECT_EQ(result.degrees_of_freedom, 23);
  ASSERT_EQ(result.standard_errors.size(), 2u);
  EXPECT_NEAR(result.standard_errors[0], std::sqrt(variance * n / (n * sxx - sx * sx)), 1e-10);
  EXPECT_NEAR(result.standard_errors[1], std::sqrt(variance * sxx / (n * sxx - sx * sx)), 1e-10);
}

TEST(Fit, WeightsLossesBoundsAndStarts) {
  io::CsvTable data = table([](double t) { return 2 * t + 1; }, 25, 0, 6, 0.05);
  data.columns[1][20] += 40;
  FitOptions robust = options("m*t + q");
  robust.loss = parse_robust_loss("cauchy:0.1");
  EXPECT_NEAR(fit(data, robust, cpu()).values[0], 2, 0.05);
  FitOptions weighted = options("m*t + q");
  weighted.sigma = "sigma";
  data.columns[2][20] = 1e4;
  EXPECT_NEAR(fit(data, weighted, cpu()).values[0], 2, 0.05);
  FitOptions bounded = weighted;
  bounded.bounds["m"] = {0, 1.5};
  EXPECT_EQ(fit(data, bounded, cpu()).values[0], 1.5);
  FitOptions started = weighted;
  started.initial = {{"m", 7}};
  const FitResult result = fit(data, started, cpu());
  EXPECT_EQ(result.initial[0], 7);
  EXPECT_NEAR(result.values[0], 2, 0.05);
}

TEST(Fit, AsManyRowsAsParametersLeaveNoErrors) {
  const io::CsvTable data = table([](double t) { return 2 * t + 1; }, 2, 0, 6);
  const FitResult result = fit(data, options("m*t + q"), cpu());
  EXPECT_FALSE(result.singular);
  EXPECT_EQ(result.degrees_of_freedom, 0);
  EXPECT_TRUE(result.standard_errors.empty());
  EXPECT_TRUE(result.covariance.empty());
  EXPECT_NEAR(result.values[0], 2, 1e-12);
}

// All at once, from the text of a table: an outlier, weights, a bound that is met, by every linear solver.
TEST(Fit, FromATablesText) {
  std::string text = "# counts\r\nt;count;error\r\n";
  for (int k = 0; k < 40; ++k) {
    const double t = 0.25 * k;
    text += fmt::format("{};{};{}\r\n", t, 4 * std::exp(-0.5 * t) + 1 + (k == 9 ? 20 : 0), k % 2 ? 0.1 : 0.2);
  }
  const io::CsvTable data = io::parse_csv(text, "counts.csv");
  for (const Linear linear : {Linear::automatic, Linear::dense_cholesky, Linear::pcg}) {
    SCOPED_TRACE(name(linear));
    FitOptions wanted;
    wanted.model = "a*exp(-b*t) + c", wanted.x = {"t"}, wanted.y = "count", wanted.sigma = "error";
    wanted.initial = {{"a", 3}, {"b", 0.3}, {"c", 0.8}};
    wanted.loss = parse_robust_loss("tukey:5");
    wanted.options.linear = linear;
    wanted.options.function_tolerance = 1e-15;
    wanted.options.max_iterations = 500;
    const FitResult free = fit(data, wanted, cpu());
    EXPECT_NEAR(free.values[0], 4, 1e-5);
    EXPECT_NEAR(free.values[1], 0.5, 1e-5);
    EXPECT_NEAR(free.values[2], 1, 1e-5);
    wanted.bounds = {{"c", {0.5, 0.9}}, {"b", {0, INFINITY}}};
    const FitResult bounded = fit(data, wanted, cpu());
    EXPECT_EQ(bounded.values[2], 0.9);
    EXPECT_LT(bounded.values[1], free.values[1]);
    EXPECT_GT(bounded.summary.final_cost, free.summary.final_cost);
  }
  const auto refused = [](const char* table) -> std::string {
    try {
      fit(io::parse_csv(table, "bad.csv"), options("a*t"), cpu());
    } catch (const InputError& e) { return e.what(); }
    return "";
  };
  EXPECT_EQ(refused("t,value\n1,2\n2,x\n"), "column value is 'x' [bad.csv:3]: expected a finite number");
  EXPECT_EQ(refused("t,value\n1\n"), "1 fields [bad.csv:2]: expected 2 as above");
}

TEST(Fit, SaysWhereParametersAreNotDetermined) {
  const io::CsvTable data = table([](double t) { return 3 * t; }, 10, 1, 5);
  const FitResult result = fit(data, options("a*b*t"), cpu());
  EXPECT_TRUE(result.singular);
  EXPECT_TRUE(result.standard_errors.empty());
  EXPECT_NEAR(result.values[0] * result.values[1], 3, 1e-6);
}

// Parameters that no row can tell apart have no value of their own; the others keep their values and errors.
TEST(Fit, RedundantParametersAreNamed) {
  const io::CsvTable data = table([](double t) { return 5 * std::exp(-0.7 * t) + 1; }, 40, 0, 4, 0.01);
  const FitResult plain = fit(data, options("a*exp(-b*t)+c"), cpu());
  const FitResult twice = fit(data, options("a*exp(-b*t)+c+d"), cpu());
  EXPECT_FALSE(plain.singular);
  EXPECT_TRUE(plain.undetermined.empty());
  EXPECT_TRUE(twice.singular);
  EXPECT_EQ(twice.undetermined, (std::vector<std::string>{"c", "d"}));
  EXPECT_NEAR(twice.values[0], plain.values[0], 1e-6);
  EXPECT_NEAR(twice.values[1], plain.values[1], 1e-6);
  EXPECT_NEAR(twice.values[2] + twice.values[3], plain.values[2], 1e-6);
  EXPECT_LT(std::abs(twice.values[2]), 10);
  ASSERT_EQ(twice.standard_errors.size(), 4u);
  EXPECT_TRUE(std::isnan(twice.standard_errors[2]) && std::isnan(twice.standard_errors[3]));
  EXPECT_NEAR(twice.standard_errors[0], plain.standard_errors[0], 0.05 * plain.standard_errors[0]);
  EXPECT_TRUE(twice.covariance.empty());
}

TEST(Fit, AParameterAtItsBoundIsMarkedAndTheOthersErrorsHoldThere) {
  const io::CsvTable data = table([](double t) { return 2 * t + 1; }, 25, 0, 6, 0.3);
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    FitOptions bounded = options("m*t + q");
    bounded.bounds["q"] = {1.3, 2};
    bounded.options.precision = precision;
    if (precision == Precision::f32) bounded.options.function_tolerance = 1e-6;
    const FitResult result = fit(data, bounded, cpu());
    EXPECT_EQ(result.at_bound, std::vector<std::string>{"q"});
    ASSERT_EQ(result.standard_errors.size(), 2u);
    EXPECT_TRUE(std::isnan(result.standard_errors[1]));
    double sxx = 0, rss = 0;
    for (size_t k = 0; k < 25; ++k) {
      sxx += data.columns[0][k] * data.columns[0][k];
      rss += std::pow(data.columns[1][k] - result.values[0] * data.columns[0][k] - result.values[1], 2);
    }
    EXPECT_NEAR(result.standard_errors[0], std::sqrt(rss / 23 / sxx), 1e-9);
    EXPECT_FALSE(result.singular);
  }
}

// Errors are the spread of the parameters over repetitions, regardless of outliers.
TEST(Fit, RobustStandardErrorsAreTheSpreadOfTheEstimates) {
  constexpr int kRuns = 120, kRows = 60;
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0, 0.1);
  for (const char* loss : {"none", "huber:0.15", "cauchy:0.25", "tukey:0.5"}) {
    SCOPED_TRACE(loss);
    const bool outliers = std::string(loss) != "none";
    double sum = 0, squares = 0, error = 0;
    for (int run = 0; run < kRuns; ++run) {
      io::CsvTable data = table([](double t) { return 2 * t + 1; }, kRows, 0, 6);
      for (int k = 0; k < kRows; ++k) {
        data.columns[1][size_t(k)] += noise(random);
        if (outliers && k % 15 == 7) data.columns[1][size_t(k)] += k % 2 ? 30 : -25;
      }
      FitOptions robust = options("m*t + q");
      robust.loss = parse_robust_loss(loss);
      robust.initial = {{"m", 2}, {"q", 1}};
      const FitResult result = fit(data, robust, cpu());
      ASSERT_EQ(result.standard_errors.size(), 2u);
      sum += result.values[0], squares += result.values[0] * result.values[0];
      error += result.standard_errors[0] / kRuns;
    }
    const double spread = std::sqrt((squares - sum * sum / kRuns) / (kRuns - 1));
    EXPECT_NEAR(error, spread, 0.2 * spread);
  }
}

TEST(Fit, RefusesBadInput) {
  const io::CsvTable data = table([](double t) { return t; }, 3, 0, 2);
  const auto refused = [&](FitOptions wrong) {
    try {
      fit(data, wrong, cpu());
    } catch (const InputError& error) { return std::string(error.what()); }
    return std::string();
  };
  FitOptions wrong = options("a*t");
  wrong.y = "nothing";
  EXPECT_NE(refused(wrong), "");
  wrong = options("a*t");
  wrong.x = {"value2"};
  EXPECT_NE(refused(wrong), "");
  EXPECT_NE(refused(options("3*t")).find("no parameters"), std::string::npos);
  EXPECT_NE(refused(options("a")).find("x column t"), std::string::npos);
  EXPECT_NE(refused(options("a+b*t+c*t^2+d*t^3")).find("3 rows"), std::string::npos);
  EXPECT_NE(refused(options("a*t+*")).find("column 5"), std::string::npos);
  EXPECT_NE(refused(options("a*t + value")).find("the response value"), std::string::npos);
  wrong = options("a*t");
  wrong.initial = {{"z", 1}};
  EXPECT_NE(refused(wrong).find("initial value of z"), std::string::npos);
  wrong.initial.clear();
  wrong.bounds = {{"z", {0, 1}}};
  EXPECT_NE(refused(wrong).find("bounds of z"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::solve
