// NIST's reference datasets: every file, both starts, at least six certified digits.
#include "solve/datasets/nist.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "io/fuzz/fuzz_files.hpp"
#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "solve/datasets/expression.hpp"

namespace lockstep::solve {
namespace {

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path folder = test::data_folder() / "solve" / "nist";
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".dat") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// A file in NIST's layout with data that a model gives exactly, so that its parameters are the certified
/// ones.
struct Model {
  std::string name, response, model, definition;  // as printed; the model may have line breaks
  std::vector<double> certified, start1, start2, x;
};
std::string file_text(const Model& m) {
  std::string text =
      fmt::format("NIST/ITL StRD\r\nDataset Name:  {}            ({}.dat)\r\n\r\n", m.name, m.name);
  text += "File Format:   ASCII\r\n               Starting Values   (lines 41 to 43)\r\n\r\n";
  text += "Data:          1 Response  (y = something)\r\n               1 Predictor (x = something)\r\n\r\n";
  text += fmt::format("Model:         Some Class\r\n               {} Parameters (b1 to b{})\r\n\r\n",
                      m.certified.size(), m.certified.size());
  if (!m.definition.empty()) text += "               " + m.definition + "\r\n";
  text += fmt::format("               {} = {}  +  e\r\n\r\n\r\n", m.response, m.model);
  text +=
      "          Starting values                  Certified Values\r\n\r\n        Start 1     Start 2\r\n";
  for (size_t k = 0; k < m.certified.size(); ++k)
    text += fmt::format("  b{} =   {}   {}   {:.10E}  1.0E-01\r\n", k + 1, m.start1[k], m.start2[k],
                        m.certified[k]);
  text += "\r\nResidual Sum of Squares:                    0.0000000000E+00\r\n";
  text += "Residual Standard Deviation:                1.0000000000E-01\r\n";
  text += fmt::format("Degrees of Freedom:                                {}\r\n",
                      m.x.size() - m.certified.size());
  text += fmt::format("Number of Observations:                            {}\r\n\r\n\r\n", m.x.size());
  text += "Data:   y               x\r\n";
  std::string flat = m.model;
  std::replace(flat.begin(), flat.end(), '\r', ' '), std::replace(flat.begin(), flat.end(), '\n', ' ');
  const Expression expression = Expression::parse(flat);
  for (const double x : m.x) {
    std::map<std::string, double> at{{"x", x}};
    for (size_t k = 0; k < m.certified.size(); ++k) at[fmt::format("b{}", k + 1)] = m.certified[k];
    double y = expression.evaluate(at);
    if (m.response != "y") y = std::exp(y);
    text += fmt::format("      {:.17E}     {:.17E}\r\n", y, x);
  }
  return text;
}
std::vector<double> steps(double first, double step, int count) {
  std::vector<double> out;
  for (int k = 0; k < count; ++k) out.push_back(first + step * k);
  return out;
}
/// The forms of model that the datasets have.
std::vector<Model> models() {
  const std::vector<double> loads = steps(77.6, 55, 14);
  return {
      {"Saturation", "y", "b1 * (1-(1+b2*x/2)**(-2))", "", {338, 3.9e-4}, {500, 1e-4}, {300, 2e-4}, loads},
      {"HalfPower", "y", "b1 * (1-(1+2*b2*x)**(-.5))", "", {636, 2.1e-4}, {500, 1e-4}, {600, 2e-4}, loads},
      {"Reciprocal", "y", "b1*b2*x*((1+b2*x)**(-1))", "", {437, 3e-4}, {500, 1e-4}, {450, 3e-4}, loads},
      {"Decay",
       "y",
       "exp[-b1*x]/(b2+b3*x)",
       "",
       {0.19, 6.1e-3, 1.05e-2},
       {0.1, 0.01, 0.02},
       {0.15, 0.008, 0.01},
       steps(0.5, 0.25, 22)},
      {"Exponentials",
       "y",
       "b1*exp(-b2*x) + b3*exp(-b4*x) + b5*exp(-b6*x)",
       "",
       {0.0951, 1, 0.8607, 3, 1.5576, 5},
       {1.2, 0.3, 5.6, 5.5, 6.5, 7.6},
       {0.5, 0.7, 3.6, 4.2, 4, 6.3},
       steps(0, 0.05, 24)},
      {"TwoPeaks",
       "y",
       "b1*exp( -b2*x ) + b3*exp( -(x-b4)**2 / b5**2 )\r\n                                   + b6*exp( "
       "-(x-b7)**2 / b8**2 )",
       "",
       {99, 0.011, 101.9, 107, 23.6, 72, 153.3, 19.5},
       {96, 0.009, 103, 106, 18, 72, 151, 18},
       {98, 0.0105, 103, 105, 20, 73, 150, 20},
       steps(1, 1, 250)},
      {"Arctangent",
       "y",
       "b1 - b2*x - arctan[b3/(x-b4)]/pi",
       "pi = 3.141592653589793238462643383279E0",
       {0.2, -6e-6, 1204, -181},
       {0.1, -1e-5, 1000, -100},
       {0.2, -5e-6, 1200, -150},
       steps(-4868, 183, 25)},
      {"Cycles",
       "y",
       "b1 + b2*cos( 2*pi*x/12 ) + b3*sin( 2*pi*x/12 ) \r\n                      + b5*cos( 2*pi*x/b4 ) + "
       "b6*sin( 2*pi*x/b4 ) \r\n                      + b8*cos( 2*pi*x/b7 ) + b9*sin( 2*pi*x/b7 )",
       "",
       {10.5, 3.08, 0.53, 44.3, -1.62, 0.53, 26.9, 0.21, 1.5},
       {11, 3, 0.5, 40, -0.7, -1.3, 25, -0.3, 1.4},
       {10, 3, 0.5, 44, -1.5, 0.5, 26, -0.1, 1.5},
       steps(1, 1, 168)},
      {"Arrhenius",
       "y",
       "b1 * exp[b2/(x+b3)]",
       "",
       {5.61e-3, 6181, 345},
       {2, 400000, 25000},
       {0.02, 4000, 250},
       steps(50, 5, 16)},
      {"Growth",
       "y",
       "b1 / ((1+exp[b2-b3*x])**(1/b4))",
       "",
       {699.6, 5.277, 0.76, 1.279},
       {100, 10, 1, 1},
       {700, 5, 0.75, 1.3},
       steps(1, 1, 15)},
      {"Logarithm",
       "log[y]",
       "b1 - b2*x * exp[-b3*x]",
       "",
       {2.5, 0.02, 0.01},
       {2, 0.01, 0.02},
       {2.5, 0.015, 0.012},
       steps(1, 6, 30)},
  };
}

class NistModel : public ::testing::TestWithParam<Model> {};

TEST_P(NistModel, SixDigitsFromBothStarts) {
  Context context(ContextOptions{.device = "cpu"});
  const NistProblem nist = parse_nist(file_text(GetParam()), GetParam().name);
  EXPECT_EQ(nist.name, GetParam().name);
  EXPECT_EQ(nist.response, GetParam().response);
  EXPECT_EQ(nist.observations(), int64_t(GetParam().x.size()));
  for (const int start : {1, 2}) {
    const NistResult result = solve_nist(nist, start, context, nist_options());
    EXPECT_GE(result.lre, 6) << "start " << start;
    EXPECT_EQ(result.residual_sum_of_squares, 2 * result.summary.final_cost);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, NistModel, ::testing::ValuesIn(models()),
                         [](const auto& tested) { return tested.param.name; });

// Five minimisations share one clock: after it ran out in the first, no other begins an iteration.
TEST(NistTimeLimit, IsOfTheWholeCommand) {
  Context context(ContextOptions{.device = "cpu"});
  const NistProblem nist = parse_nist(file_text(models()[0]), "model.dat");
  Options options = nist_options();
  options.max_iterations = 1;
  int iterations = 0;
  options.callback = [&](const Iteration&) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(iterations++ == 0 && options.time_limit > 0 ? 1500 : 0));
    return true;
  };
  solve_nist(nist, 1, context, options);
  EXPECT_EQ(std::exchange(iterations, 0), 5);
  options.time_limit = 1.5;  // compiled by now
  const NistResult result = solve_nist(nist, 1, context, options);
  EXPECT_EQ(iterations, 1);
  EXPECT_EQ(result.summary.termination, Termination::time_limit);
}

TEST(NistReader, NamesWhatIsWrongAndItsLine) {
  const std::string good = file_text(models()[0]);
  ASSERT_NO_THROW(parse_nist(good, "good.dat"));
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    try {
      parse_nist(text, "bad.dat");
    } catch (const InputError& e) { return std::string(e.what()); }
    return std::string("accepted");
  };
  EXPECT_NE(error("Dataset Name:", "Name:").find("bad.dat:1"), std::string::npos);
  EXPECT_NE(error("b2*x/2", "b2*z/2").find("z in the model [bad.dat:13]"), std::string::npos)
      << error("b2*x/2", "b2*z/2");
  EXPECT_NE(error("b2*x/2", "b1*x/2").find("parameter b2"), std::string::npos);
  EXPECT_NE(error("**(-2))", "**(-2)").find("column"), std::string::npos);
  EXPECT_NE(error("Number of Observations:                            14", "Number of Observations:   15")
                .find("14 observations"),
            std::string::npos);
  EXPECT_NE(error("b2 =   0.0001", "b2 =   nan").find("\"nan\""), std::string::npos);
  EXPECT_NE(error("b2 =   0.0001", "b1 =   0.0001").find("b1 twice"), std::string::npos);
  EXPECT_NE(error("Data:   y               x", "Data:   y               y").find("column y twice"),
            std::string::npos);
  EXPECT_NE(error("Residual Sum of Squares:", "Squares:").find("Residual Sum of Squares"), std::string::npos);
  EXPECT_NE(error("+  e\r\n", "+  e\r\n   7.7E1  1 2\r\n"), "accepted");
  EXPECT_THROW(parse_nist("", "empty.dat"), InputError);
  EXPECT_THROW(build(parse_nist(good, "good.dat"), 3), InputError);
}

TEST(NistReader, CutFilesAreRefusedNotRead) {
  const std::string good = file_text(models()[6]);
  for (size_t length = 0; length < good.size() - 80; length += 37)
    EXPECT_THROW(parse_nist(good.substr(0, length), "cut.dat"), InputError) << length;
}

TEST(NistReader, MutatedFilesAreReadOrRefused) {
  std::vector<test::Bytes> seeds;
  for (const Model& model : models()) seeds.push_back(test::bytes_of(file_text(model)));
  test::fuzz(seeds, [](const test::Bytes& bytes) {
    const NistProblem nist = parse_nist({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
    for (const int start : {1, 2}) build(nist, start);
  });
}

TEST(LogRelativeError, CountsDigits) {
  EXPECT_NEAR(log_relative_error(1.0001, 1), 4, 1e-3);
  EXPECT_EQ(log_relative_error(2, 2), 11);
  EXPECT_NEAR(log_relative_error(1e-7, 0), 7, 1e-9);
  EXPECT_EQ(log_relative_error(NAN, 1), 0);
  EXPECT_EQ(log_relative_error(-5, 1), 0);
}

class Nist : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  Context context_{ContextOptions{.device = "cpu"}};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Nist);

TEST_P(Nist, SixDigitsFromBothStarts) {
  const NistProblem nist = read_nist(GetParam());
  for (const int start : {1, 2}) {
    const NistResult result = solve_nist(nist, start, context_, nist_options());
    if (std::getenv("LOCKSTEP_NIST_TABLE"))
      fmt::print("{:10} {} lre {:5.2f} its {:5} {} rss {:.6e} ({:.6e})\n", nist.name, start, result.lre,
                 result.summary.iterations, name(result.summary.termination), result.residual_sum_of_squares,
                 nist.residual_sum_of_squares);
    EXPECT_GE(result.lre, 6) << "start " << start << "\n" << report(result.summary).substr(0, 1200);
  }
}
// A fresh file, a broken run that goes on, and an ended one: the search over dampings is part of all of them.
TEST(NistCheckpoint, ChangesNoResult) {
  const auto path = test::data_folder() / "solve" / "nist" / "BoxBOD.dat";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const NistProblem nist = read_nist(path);
  Context context(ContextOptions{.device = "cpu"});
  const NistResult plain = solve_nist(nist, 1, context, nist_options());
  EXPECT_GE(plain.lre, 6);
  const auto file = std::filesystem::temp_directory_path() / fmt::format("lockstep_nist_{}.ckpt", ::getpid());
  std::filesystem::remove(file);
  Options options = nist_options();
  options.checkpoint = file.string();
  int left = 25;
  options.callback = [&](const Iteration&) {
    if (--left == 0) throw std::runtime_error("killed");
    return true;
  };
  EXPECT_THROW(solve_nist(nist, 1, context, options), std::runtime_error);
  for (int run = 0; run < 2; ++run) {
    options.callback = {};
    const NistResult kept = solve_nist(nist, 1, context, options);
    EXPECT_EQ(kept.parameters, plain.parameters) << run;
    EXPECT_EQ(kept.summary.iterations, plain.summary.iterations) << run;
    EXPECT_EQ(kept.summary.final_cost, plain.summary.final_cost) << run;
  }
  std::filesystem::remove(file);
}

INSTANTIATE_TEST_SUITE_P(Files, Nist, ::testing::ValuesIn(files()),
                         [](const auto& tested) { return tested.param.stem().string(); });

}  // namespace
}  // namespace lockstep::solve
