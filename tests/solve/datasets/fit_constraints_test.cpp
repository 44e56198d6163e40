// Parameters that are formulas of others, that data sets share, and the shapes that models may name.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "solve/fit/fit.hpp"

namespace lockstep::solve {
namespace {

Context& cpu_of_constraints() {
  static Context context(ContextOptions{.device = "cpu"});
  return context;
}
io::CsvTable curve(const std::function<double(double)>& f, int rows = 40, double noise = 0.05) {
  io::CsvTable out;
  out.names = {"t", "y"};
  out.columns.resize(2);
  for (int k = 0; k < rows; ++k) {
    const double t = 0.05 + 6.0 * k / (rows - 1);
    out.columns[0].push_back(t);
    out.columns[1].push_back(f(t) + noise * std::sin(12.9898 * k * k + 3));
  }
  return out;
}
FitOptions asked(const std::string& model) {
  FitOptions out;
  out.model = model, out.x = {"t"}, out.y = "y";
  out.options.function_tolerance = 1e-15;
  out.options.max_iterations = 500;
  return out;
}
double of(const FitResult& fit, const std::string& name, const std::vector<double>& list) {
  const auto at = std::find(fit.parameters.begin(), fit.parameters.end(), name);
  return at == fit.parameters.end() ? NAN : list.at(size_t(at - fit.parameters.begin()));
}
std::string said(std::span<const io::CsvTable> tables, const FitOptions& options) {
  try {
    fit(tables, options, cpu_of_constraints());
  } catch (const InputError& e) { return e.what(); }
  return "";
}

// A constraint is a substitution: the fit is that of the model with the formula written into it, errors by the chain rule.
TEST(FitConstraints, AreTheModelWithTheirFormulasWrittenIn) {
  const io::CsvTable data =
      curve([](double t) { return 3 * std::exp(-0.7 * t) + 6 * std::exp(-1.4 * t) + 0.3; });
  FitOptions tied = asked("a*exp(-k*t) + b*exp(-l*t) + c");
  tied.constraints = {{"b", "2*a"}, {"l", "k*ratio"}, {"ratio", "2"}};
  const FitResult found = fit(data, tied, cpu_of_constraints());
  const FitResult plain = fit(data, asked("a*(exp(-k*t) + 2*exp(-2*k*t)) + c"), cpu_of_constraints());
  EXPECT_EQ(found.degrees_of_freedom, 37);
  for (const char* name : {"a", "k", "c"}) {
    EXPECT_NEAR(of(found, name, found.values), of(plain, name, plain.values), 1e-7) << name;
    EXPECT_NEAR(of(found, name, found.standard_errors), of(plain, name, plain.standard_errors), 1e-7) << name;
  }
  EXPECT_EQ(of(found, "b", found.values), 2 * of(found, "a", found.values));
  EXPECT_NEAR(of(found, "b", found.standard_errors), 2 * of(found, "a", found.standard_errors), 1e-15);
  EXPECT_NEAR(of(found, "l", found.standard_errors), 2 * of(found, "k", found.standard_errors), 1e-15);
  EXPECT_EQ(of(found, "ratio", found.values), 2);
  EXPECT_TRUE(std::isnan(of(found, "ratio", found.standard_errors)));
  EXPECT_EQ(found.constraint.at("l"), "k*ratio");
  const size_t count = found.parameters.size();
  ASSERT_EQ(found.covariance.size(), count * count);
  const auto place = [&](const char* name) {
    return size_t(std::find(found.parameters.begin(), found.parameters.end(), name) -
                  found.parameters.begin());
  };
  EXPECT_NEAR(found.covariance[place("b") * count + place("k")],
              2 * found.covariance[place("a") * count + place("k")], 1e-15);
}

// One parameter above another by what a bound keeps positive.
TEST(FitConstraints, AnAuxiliaryParameterMakesAnInequality) {
  const io::CsvTable data = curve([](double t) { return 2 * t + 1; });
  FitOptions options = asked("m*t + q");
  options.constraints = {{"q", "m + more"}};
  options.bounds = {{"more", {0, INFINITY}}};
  const FitResult found = fit(data, options, cpu_of_constraints());
  EXPECT_EQ(found.at_bound, std::vector<std::string>{"more"});
  EXPECT_NEAR(of(found, "q", found.values), of(found, "m", found.values), 1e-12);
}

// Two decays with one rate: the joint fit is that of the stacked rows with an amplitude switched on by a column.
TEST(FitConstraints, SharedParametersAreThoseOfTheStackedTable) {
  const io::CsvTable sets[] = {curve([](double t) { return 3 * std::exp(-0.7 * t) + 0.5; }),
                               curve([](double t) { return 9 * std::exp(-0.7 * t) - 2; }, 25, 0.2)};
  for (const double unit : {1.0, 1e-12, 1e12}) {
    std::vector<io::CsvTable> scaled(std::begin(sets), std::end(sets));
    io::CsvTable stacked;
    stacked.names = {"t", "second", "y"};
    stacked.columns.resize(3);
    for (size_t k = 0; k < 2; ++k)
      for (size_t row = 0; row < scaled[k].rows(); ++row) {
        scaled[k].columns[0][row] *= unit;
        stacked.columns[0].push_back(scaled[k].columns[0][row]);
        stacked.columns[1].push_back(double(k));
        stacked.columns[2].push_back(scaled[k].columns[1][row]);
      }
    FitOptions joint = asked("a*exp(-b*t) + c");
    joint.shared = {"b"};
    const FitResult found = fit(scaled, joint, cpu_of_constraints());
    FitOptions whole = asked("(a_1*(1 - second) + a_2*second)*exp(-b*t) + c_1*(1 - second) + c_2*second");
    whole.x = {"t", "second"};
    whole.initial = {{"b", 0.6 / unit}};
    const FitResult plain = fit(stacked, whole, cpu_of_constraints());
    EXPECT_EQ(found.parameters, (std::vector<std::string>{"a_1", "a_2", "b", "c_1", "c_2"}));
    for (const std::string& name : found.parameters) {
      const double scale = std::abs(of(plain, name, plain.values));
      EXPECT_NEAR(of(found, name, found.values), of(plain, name, plain.values), 1e-7 * scale) << name;
      EXPECT_NEAR(of(found, name, found.standard_errors), of(plain, name, plain.standard_errors),
                  1e-7 * scale);
    }
    EXPECT_EQ(found.fitted.size(), 65u);
    EXPECT_EQ(found.degrees_of_freedom, 60);
    EXPECT_NEAR(found.r_squared, plain.r_squared, 1e-9);
  }
  // Parameters that are not shared are those of separate fits.
  const FitResult apart = fit(sets, asked("a*exp(-b*t) + c"), cpu_of_constraints());
  const FitResult second = fit(sets[1], asked("a*exp(-b*t) + c"), cpu_of_constraints());
  EXPECT_NEAR(of(apart, "b_2", apart.values), of(second, "b", second.values), 1e-7);
}

TEST(FitConstraints, OfDataSetsNameThemWithOrWithoutNumbers) {
  const io::CsvTable sets[] = {curve([](double t) { return 3 * t + 1; }),
                               curve([](double t) { return 6 * t + 1; })};
  FitOptions options = asked("m*t + q");
  options.constraints = {{"m_2", "2*m_1"}};
  options.initial = {{"q", 4}, {"q_2", 5}};
  const FitResult found = fit(sets, options, cpu_of_constraints());
  EXPECT_EQ(of(found, "m_2", found.values), 2 * of(found, "m_1", found.values));
  EXPECT_EQ(of(found, "q_1", found.initial), 4);
  EXPECT_EQ(of(found, "q_2", found.initial), 5);
  EXPECT_EQ(found.degrees_of_freedom, 77);
  options.constraints = {{"q", "m/3"}};  // of each by its own slope
  options.initial.clear();
  const FitResult each = fit(sets, options, cpu_of_constraints());
  for (const char* number : {"_1", "_2"})
    EXPECT_DOUBLE_EQ(of(each, std::string("q") + number, each.values),
                     of(each, std::string("m") + number, each.values) / 3);
}

TEST(FitConstraints, WrongOnesAreRefused) {
  const io::CsvTable sets[] = {curve([](double t) { return 3 * t + 1; }),
                               curve([](double t) { return 6 * t + 1; })};
  const auto one = std::span(sets, 1);
  FitOptions options = asked("m*t + q");
  const auto with = [&](std::map<std::string, std::string> constraints) {
    options.constraints = std::move(constraints);
    return options;
  };
  EXPECT_NE(said(one, with({{"m", "q + 1"}, {"q", "m"}})).find("in a circle: m, q, m"), std::string::npos);
  EXPECT_NE(said(one, with({{"z", "2"}})).find("constraint of z"), std::string::npos);
  EXPECT_NE(said(one, with({{"m", "2*t"}})).find("column t"), std::string::npos);
  EXPECT_NE(said(one, with({{"m", "2*"}})).find("constraint of m, column"), std::string::npos);
  EXPECT_NE(said(one, with({{"m", "1"}, {"q", "2"}})).find("no parameters"), std::string::npos);
  options.bounds = {{"m", {0, 1}}};
  EXPECT_NE(said(one, with({{"m", "2*q"}})).find("bounds of m, which a constraint gives"), std::string::npos);
  options.bounds.clear();
  EXPECT_NE(said(sets, with({{"m_2", "2*m"}})).find("which each data set has"), std::string::npos);
  options.constraints.clear();
  options.shared = {"m"};
  EXPECT_NE(said(one, options).find("shared m of one data set"), std::string::npos);
  options.shared = {"nothing"};
  EXPECT_NE(said(sets, options).find("nothing"), std::string::npos);
  options = asked("m*t + m_1");
  EXPECT_NE(said(sets, options).find("of the same name"), std::string::npos);
}

// Areas, heights and moments of the shapes, by sums over their curves.
TEST(FitConstraints, ShapesHaveTheirMoments) {
  const auto value = [](const std::string& text, double t) {
    return Expression::parse(text).evaluate({{"t", t},
                                             {"amplitude", 2.5},
                                             {"center", 0.4},
                                             {"sigma", 0.3},
                                             {"fraction", 0.25},
                                             {"decay", 2},
                                             {"exponent", 1.5},
                                             {"beta", 3},
                                             {"gamma", 0.2},
                                             {"frequency", 1.7},
                                             {"shift", 0.2},
                                             {"slope", 2},
                                             {"intercept", -1},
                                             {"a", 3},
                                             {"b", -2},
                                             {"c", 0.5}});
  };
  // Over the whole axis by t = center + tan(u): equal steps of u.
  for (const char* shape : {"gaussian(t)", "lorentzian(t)", "pseudo_voigt(t)", "voigt(t)"}) {
    constexpr int kSteps = 400;
    double area = 0, moment = 0;
    for (int k = 0; k < kSteps; ++k) {
      const double u = M_PI * ((k + 0.5) / kSteps - 0.5), off = std::tan(u);
      const double y = value(shape, 0.4 + off) * (1 + off * off) * M_PI / kSteps;
      area += y, moment += y * off / (1 + off * off);
    }
    EXPECT_NEAR(area, 2.5, 1e-9) << shape;
    EXPECT_NEAR(moment, 0, 1e-12) << shape;
  }
  EXPECT_NEAR(value("lorentzian(t)", 0.7), 0.5 * value("lorentzian(t)", 0.4), 1e-15);  // sigma: half width
  EXPECT_NEAR(value("pseudo_voigt(t)", 0.7), 0.5 * value("pseudo_voigt(t)", 0.4), 1e-15);  // the same
  EXPECT_NEAR(value("gaussian(t)", 0.7), std::exp(-0.5) * value("gaussian(t)", 0.4), 1e-15);
  EXPECT_NEAR(value("moffat(t)", 0.7), 2.5 / 8, 1e-15);
  EXPECT_NEAR(value("exponential(t) * exp(t/2)", 3), 2.5, 1e-14);
  EXPECT_NEAR(value("power_law(t)", 4), 20, 1e-13);
  EXPECT_NEAR(value("sine(t)", 0.3), 2.5 * std::sin(0.71), 1e-15);
  EXPECT_NEAR(value("logistic_step(t)", 0.4), 1.25, 1e-15);
  EXPECT_NEAR(value("lognormal(t)", std::exp(0.4)), 2.5 / (0.3 * std::sqrt(2 * M_PI) * std::exp(0.4)), 1e-14);
  EXPECT_EQ(value("linear(t) + quadratic(2*t) + constant(t)", 2), 3 + 3 * 16 - 2 * 4 + 0.5 + 0.5);
}

// Two peaks on a line, by prefixes, without a start.
TEST(FitConstraints, ShapesWithPrefixesAreFittedWithoutAStart) {
  const io::CsvTable data = curve(
      [](double t) { return 3 * std::exp(-(t - 1.5) * (t - 1.5) / (2 * 0.09)) + 0.4 * t + 1; }, 120, 0.02);
  const FitResult found = fit(data, asked("gaussian(t, p_) + linear(t)"), cpu_of_constraints());
  EXPECT_EQ(found.parameters,
            (std::vector<std::string>{"p_amplitude", "p_sigma", "p_center", "slope", "intercept"}));
  EXPECT_NEAR(of(found, "p_center", found.values), 1.5, 0.01);
  EXPECT_NEAR(std::abs(of(found, "p_sigma", found.values)), 0.3, 0.01);
  EXPECT_NEAR(of(found, "slope", found.values), 0.4, 0.01);
  EXPECT_NE(said(std::span(&data, 1), asked("gaussian(t, 2)")).find("prefix"), std::string::npos);
  EXPECT_NE(said(std::span(&data, 1), asked("gaussian(gaussian(t), p_)")).find("without one"),
            std::string::npos);
  EXPECT_NE(said(std::span(&data, 1), asked("gaussian(t, p, q)")).find("arguments of gaussian"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::solve
