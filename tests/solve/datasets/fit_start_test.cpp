// Fits without a start: 200 generated tables whose truth is known, and what is said where sigma contradicts the fit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "solve/fit/fit.hpp"

namespace lockstep::solve {
namespace {

/// A curve of a family with random parameters, on a random range, with noise of 1 to 8 % of its height.
struct Generated {
  io::CsvTable table;
  FitOptions options;
  double truth = 0;  // sum of squares, over sigma, at the parameters that made the table
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Generated peak() {
    const auto [low, span] = range();
    const double m = low + span * uniform(0.08, 0.92), s = span * powers(0.012, 0.15), a = height(),
                 c = a * uniform(-1, 1);
    if (uniform(0, 1) < 0.5)
      return made("a*exp(-(t-m)^2/(2*s^2)) + c", low, span, a,
                  [=](double t) { return a * std::exp(-(t - m) * (t - m) / (2 * s * s)) + c; });
    return made("a/(1 + ((t-m)/s)^2) + c", low, span, a,
                [=](double t) { return a / (1 + (t - m) * (t - m) / (s * s)) + c; });
  }
  Generated decay() {
    const double span = powers(1e-12, 1e12), tau = span * powers(0.05, 1), a = height(),
                 c = a * uniform(-0.5, 0.5);
    if (uniform(0, 1) < 0.5)
      return made("a*exp(-t/tau) + c", 0, span, a, [=](double t) { return a * std::exp(-t / tau) + c; });
    return made("a*exp(-k*t) + c", 0, span, a, [=](double t) { return a * std::exp(-t / tau) + c; });
  }
  Generated saturation() {
    const double span = powers(1e-12, 1e12), k = span * powers(0.03, 1), a = height();
    if (uniform(0, 1) < 0.5)
      return made("v*t/(k + t)", 0, span, a, [=](double t) { return a * t / (k + t); });
    return made("v*(1 - exp(-t/k))", 0, span, a, [=](double t) { return a * (1 - std::exp(-t / k)); });
  }
  Generated oscillation() {
    const auto [low, span] = range();
    const double cycles = powers(1.2, 20), w = 2 * M_PI * cycles / span, phase = uniform(0, 6), a = height();
    const double c = a * uniform(-1, 1), tau = span * powers(0.3, 2);
    switch (int(uniform(0, 3))) {
      case 0:
        return made("a*sin(w*t + p) + c", low, span, a,
                    [=](double t) { return a * std::sin(w * t + phase) + c; });
      case 1:
        return made("a*cos(2*pi*t/period) + b*sin(2*pi*t/period) + c", low, span, a,
                    [=](double t) { return a * std::sin(w * t + phase) + c; });
      default:
        return made("a*exp(-t/tau)*cos(w*t + p) + c", 0, span, a,
                    [=](double t) { return a * std::exp(-t / tau) * std::cos(w * t + phase) + c; });
    }
  }

 private:
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  double powers(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  double height() { return (uniform(0, 1) < 0.5 ? -1 : 1) * powers(1e-12, 1e12); }
  std::pair<double, double> range() {
    const double span = powers(1e-12, 1e12);
    return {span * uniform(-3, 3), span};
  }
  Generated made(const std::string& model, double low, double span, double height,
                 const std::function<double(double)>& curve) {
    constexpr int kRows = 120;
    std::normal_distribution<double> normal;
    const double sigma = std::abs(height) * uniform(0.01, 0.08);
    Generated out;
    out.table.names = {"t", "y", "error"};
    out.table.columns.resize(3);
    for (int k = 0; k < kRows; ++k) {
      const double t = low + span * k / (kRows - 1), noise = normal(random_);
      out.table.columns[0].push_back(t);
      out.table.columns[1].push_back(curve(t) + sigma * noise);
      out.table.columns[2].push_back(sigma);
      out.truth += noise * noise;
    }
    out.options.model = model, out.options.x = {"t"}, out.options.y = "y", out.options.sigma = "error";
    return out;
  }

  std::mt19937_64 random_;
};

Context& cpu_of_starts() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}

// The truth is near the least minimum, which lies no higher.
TEST(FitStart, FindsTheMinimumOfEachOf200Tables) {
  Generator generator(2024);
  for (int k = 0; k < 200; ++k) {
    const Generated g = k % 4 == 0   ? generator.peak()
                        : k % 4 == 1 ? generator.decay()
                        : k % 4 == 2 ? generator.saturation()
                                     : generator.oscillation();
    SCOPED_TRACE(fmt::format("table {}: {} on [{}, {}]", k, g.options.model, g.table.columns[0].front(),
                             g.table.columns[0].back()));
    const FitResult found = fit(g.table, g.options, cpu_of_starts());
    EXPECT_TRUE(converged(found.summary.termination));
    EXPECT_LE(found.residual_sum_of_squares, g.truth);
    EXPECT_GT(found.residual_sum_of_squares, 0.5 * g.truth);
    EXPECT_EQ(found.summary.notes, std::vector<std::string>());
  }
}

TEST(FitStart, KeepsWhatIsGiven) {
  Generated g = Generator(7).peak();
  g.options.initial = {{"m", g.table.columns[0][40]}};
  const std::map<std::string, double> start = find_start(g.table, g.options);
  EXPECT_EQ(start.at("m"), g.table.columns[0][40]);
  EXPECT_EQ(start.size(), 4u);
}

TEST(FitStart, BoundsHoldForLinearParametersToo) {
  Generated g = Generator(11).decay();
  const double high = *std::max_element(g.table.columns[1].begin(), g.table.columns[1].end());
  g.options.bounds["c"] = {high, 2 * std::abs(high) + high};
  const std::map<std::string, double> start = find_start(g.table, g.options);
  EXPECT_GE(start.at("c"), high);
  EXPECT_EQ(fit(g.table, g.options, cpu_of_starts()).values.back(), high);
}

TEST(FitStart, ChiSquaredIsSaidToContradictSigma) {
  Generated g = Generator(3).peak();
  const auto note = [&](double factor) {
    Generated other = g;
    for (double& sigma : other.table.columns[2]) sigma *= factor;
    const FitResult found = fit(other.table, other.options, cpu_of_starts());
    EXPECT_NEAR(found.chi_squared.value(), found.residual_sum_of_squares, 0);
    return found.summary.notes.empty() ? std::string() : found.summary.notes.at(0);
  };
  EXPECT_EQ(note(1), "");
  EXPECT_NE(note(0.3).find("deviations are too small"), std::string::npos);
  EXPECT_NE(note(5).find("deviations are too large"), std::string::npos);
  // Wilson and Hilferty 1931: the cube root of chi squared over k is nearly normal, of mean 1 - v and variance v = 2 / 9 k.
  const FitResult plain = fit(g.table, g.options, cpu_of_starts());
  const double k = double(plain.degrees_of_freedom), v = 2 / (9 * k);
  for (const double off : {-5.2, -4.8, 4.8, 5.2}) {
    const double wanted = k * std::pow(1 - v + off * std::sqrt(v), 3);
    EXPECT_EQ(note(std::sqrt(*plain.chi_squared / wanted)).empty(), std::abs(off) < 5) << off;
  }
  g.options.model = "a + b*t";  // the peak is no line
  EXPECT_NE(note(1).find("contradicts the standard deviations, by which it is 118 +- 15.4"),
            std::string::npos)
      << note(1);
  g.options.sigma.clear();
  EXPECT_FALSE(fit(g.table, g.options, cpu_of_starts()).chi_squared.has_value());
}

}  // namespace
}  // namespace lockstep::solve
