// Units: every problem of NIST gives the same digits in the same number of iterations, regardless of the
// units of its data and parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>

#include "nist_models.hpp"
#include "solve/fit/fit.hpp"

namespace lockstep::solve::test {
namespace {

/// `name` in a formula as (name*factor).
std::string rescaled(const std::string& formula, const std::string& name, double factor) {
  return std::regex_replace(formula, std::regex("\\b" + name + "\\b"),
                            fmt::format("({}*{:.17g})", name, factor));
}

/// How many times as large numbers are: residuals and predictors; the first, third … parameter; the others.
struct Units {
  double data, odd, even;
  double of(size_t parameter) const { return parameter % 2 == 0 ? odd : even; }
};
NistProblem in_units(const NistProblem& nist, const Units& units) {
  NistProblem out = nist;
  out.response = fmt::format("{:.17g}*({})", units.data, nist.response);
  for (size_t k = 0; k < nist.parameters.size(); ++k)
    out.model = rescaled(out.model, nist.parameters[k], 1 / units.of(k));
  for (size_t k = 1; k < nist.columns.size(); ++k)
    out.model = rescaled(out.model, nist.columns[k], 1 / units.data);
  out.model = fmt::format("{:.17g}*({})", units.data, out.model);
  for (size_t k = 0; k < out.data.size(); ++k)
    if (k % nist.columns.size() > 0) out.data[k] *= units.data;
  for (auto* values : {&out.starts[0], &out.starts[1], &out.certified, &out.deviations})
    for (size_t k = 0; k < values->size(); ++k) (*values)[k] *= units.of(k);
  return out;
}

// About 10^12 as powers of two, next to which nothing rounds; 2 instead of 1, so that all forms have the same
// operations. Then decimal units, whose data, models and starts are rounded.
constexpr double kLarge = 0x1p40, kTwo = 2, kSmall = 0x1p-40, kTera = 1e12, kPico = 1e-12;
constexpr Units kPlain{kTwo, kTwo, kTwo};
constexpr Units kUnits[] = {{kLarge, kTwo, kTwo},     {kSmall, kTwo, kTwo},     {kTwo, kLarge, kLarge},
                            {kTwo, kSmall, kSmall},   {kLarge, kLarge, kLarge}, {kLarge, kSmall, kSmall},
                            {kSmall, kLarge, kLarge}, {kSmall, kSmall, kSmall}, {kTwo, kLarge, kSmall},
                            {kTwo, kSmall, kLarge},   {kLarge, kSmall, kLarge}, {kTera, kTwo, kTwo},
                            {kPico, kTwo, kTwo},      {kTwo, kTera, kTera},     {kTwo, kPico, kPico},
                            {kTera, kTera, kTera},    {kPico, kPico, kPico}};
std::string text(const Units& u) { return fmt::format("data {} parameters {} {}", u.data, u.odd, u.even); }

std::vector<NistProblem> problems() {
  std::vector<NistProblem> out;
  for (const auto& file : nist_files()) out.push_back(read_nist(file));
  for (const Model& model : models()) out.push_back(parse_nist(file_text(model), model.name));
  return out;
}
class NistUnits : public ::testing::TestWithParam<NistProblem> {
 protected:
  Context context_{ContextOptions{.device = "cpu"}};
};

/// Within 10 %, or by one.
void expect_as_many(int got, int expected) {
  EXPECT_LE(std::abs(got - expected), std::max(1.0, 0.1 * expected));
}

// By the search over dampings, until nothing but rounding is left: all digits.
TEST_P(NistUnits, GiveTheCertifiedDigits) {
  int start = 1;  // in turn
  for (const Units& units : kUnits) {
    SCOPED_TRACE(text(units));
    EXPECT_GE(solve_nist(in_units(GetParam(), units), start, context_, nist_options()).lre, 6) << start;
    start = 3 - start;
  }
}

// By each method with the usual tolerances, from the second start, which is the closer one.
TEST_P(NistUnits, TakeAsManyIterations) {
  for (const Method method : {Method::lm, Method::gn, Method::dogleg, Method::lbfgs}) {
    Options options;
    options.method = method;
    options.max_iterations = 300;
    const auto run = [&](const NistProblem& nist, std::vector<double>& values) {
      NistGraph graph = build(nist, 2);
      const Summary summary = minimize(graph.problem, context_, options);
      values.assign(graph.problem.values(graph.parameters).begin(),
                    graph.problem.values(graph.parameters).end());
      return summary;
    };
    std::vector<double> expected, got;
    const Summary plain = run(in_units(GetParam(), kPlain), expected);
    for (const Units& units : kUnits) {
      // Rounded data move the steps of the others where a fit is ill-conditioned (Bennett5, Lanczos1): powers of two do not.
      const bool rounded =
          units.data != std::exp2(std::ilogb(units.data)) || units.odd != std::exp2(std::ilogb(units.odd));
      if (rounded && method != Method::lm) continue;
      SCOPED_TRACE(fmt::format("{} {}", name(method), text(units)));
      const Summary summary = run(in_units(GetParam(), units), got);
      if (std::getenv("LOCKSTEP_NIST_TABLE"))
        fmt::print("{:14} {:7} {} {:4} {:4} {} {}\n", GetParam().name, name(method), text(units),
                   plain.iterations, summary.iterations, name(plain.termination), name(summary.termination));
      expect_as_many(summary.iterations, plain.iterations);
      if (!converged(plain.termination)) continue;
      for (size_t k = 0; k < got.size(); ++k)
        EXPECT_NEAR(got[k] / units.of(k), expected[k] / kTwo, 1e-6 * std::abs(expected[k])) << k;
    }
  }
}

// `solve fit`, from the second start.
TEST_P(NistUnits, FitsGiveTheSameParametersAndErrors) {
  const auto run = [&](const Units& units) {
    const NistProblem scaled = in_units(GetParam(), units);
    FitOptions options;
    options.model = scaled.model, options.y = "response";
    io::CsvTable table;
    table.names = scaled.columns, table.names[0] = "response";
    options.x.assign(table.names.begin() + 1, table.names.end());
    table.columns.resize(scaled.columns.size());
    const Expression response = Expression::parse(scaled.response);
    for (size_t k = 0; k < scaled.data.size(); ++k) {
      double v = scaled.data[k];
      if (k % scaled.columns.size() == 0) v = response.evaluate({{scaled.columns[0], v}});
      table.columns[k % scaled.columns.size()].push_back(v);
    }
    for (size_t k = 0; k < scaled.parameters.size(); ++k)
      options.initial[scaled.parameters[k]] = scaled.starts[1][k];
    options.options.max_iterations = 300;
    return fit(table, options, context_);
  };
  const FitResult plain = run(kPlain);
  for (const Units& units : kUnits) {
    SCOPED_TRACE(text(units));
    const FitResult got = run(units);
    expect_as_many(got.summary.iterations, plain.summary.iterations);
    ASSERT_EQ(got.parameters, plain.parameters);
    EXPECT_EQ(got.undetermined, plain.undetermined);
    ASSERT_EQ(got.standard_errors.size(), plain.standard_errors.size());
    if (!converged(plain.summary.termination)) continue;
    for (size_t p = 0; p < got.values.size(); ++p) {
      const auto number =
          std::find(GetParam().parameters.begin(), GetParam().parameters.end(), got.parameters[p]);
      const double unit = units.of(size_t(number - GetParam().parameters.begin())) / kTwo;
      EXPECT_NEAR(got.values[p] / unit, plain.values[p], 1e-6 * std::abs(plain.values[p]))
          << got.parameters[p];
      if (plain.residual_standard_deviation <= 1e-6 * std::abs(plain.fitted[0])) continue;  // exact data
      EXPECT_NEAR(got.standard_errors[p] / unit, plain.standard_errors[p], 1e-6 * plain.standard_errors[p]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, NistUnits, ::testing::ValuesIn(problems()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lockstep::solve::test
