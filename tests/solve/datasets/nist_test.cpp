// NIST's reference datasets: every file, both starts, at least six certified digits.
#include "solve/datasets/nist.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "io/fuzz/fuzz_files.hpp"
#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "nist_models.hpp"

namespace lockstep::solve::test {
namespace {

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

// All minimisations of a command share one clock: after it ran out in the first, no other begins an iteration.
// The clock is the test's own and advances by a second with each iteration.
TEST(NistTimeLimit, IsOfTheWholeCommand) {
  Context context(ContextOptions{.device = "cpu"});
  const NistProblem nist = parse_nist(file_text(models()[0]), "model.dat");
  Options options = nist_options();
  options.max_iterations = 1;
  int iterations = 0;
  options.clock = [&] { return double(iterations); };
  options.callback = [&](const Iteration&) { return ++iterations > 0; };
  solve_nist(nist, 1, context, options);
  const int all = std::exchange(iterations, 0);
  ASSERT_GE(all, 5);
  for (int limit = 1; limit < all; ++limit) {
    options.time_limit = limit - 0.5;
    const NistResult result = solve_nist(nist, 1, context, options);
    EXPECT_EQ(std::exchange(iterations, 0), limit);
    EXPECT_EQ(result.summary.termination, Termination::time_limit);
  }
  options.time_limit = all + 0.5;
  EXPECT_EQ(solve_nist(nist, 1, context, options).summary.termination, Termination::max_iterations);
  EXPECT_EQ(iterations, all);
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
  std::vector<lockstep::test::Bytes> seeds;
  for (const Model& model : models()) seeds.push_back(lockstep::test::bytes_of(file_text(model)));
  lockstep::test::fuzz(seeds, [](const lockstep::test::Bytes& bytes) {
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
// A fresh file, a broken run that continues, and an ended one: the search over dampings is part of all of them.
TEST(NistCheckpoint, ChangesNoResult) {
  const auto path = lockstep::test::data_folder() / "solve" / "nist" / "BoxBOD.dat";
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

INSTANTIATE_TEST_SUITE_P(Files, Nist, ::testing::ValuesIn(nist_files()),
                         [](const auto& tested) { return tested.param.stem().string(); });

}  // namespace
}  // namespace lockstep::solve::test
