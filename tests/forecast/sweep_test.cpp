// Sweeps over ranks: the same rows and the same checkpoint for any number of ranks, fits that are computed once.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/refusal.hpp"
#include "io/arrays/npz_file.hpp"
#include "lockstep/forecast/run.hpp"
#include "parallel/transports/transport.hpp"

namespace lockstep::forecast {
namespace {

namespace fs = std::filesystem;

class Sweeps : public testing::Test {
 protected:
  Sweeps() : folder_(fs::path(testing::TempDir()) / fmt::format("lockstep-sweeps-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Sweeps() override { fs::remove_all(folder_); }

  /// `seed`: of delays that change which rank computes what, and when it arrives.
  static SweepRun over(int ranks, const SweepRunOptions& options, uint64_t seed = 0) {
    SweepRun lead;
    parallel::run_ranks(ranks, {60}, seed, [&](const parallel::Group& group) {
      SweepRun own = run_sweep(options, group);
      if (group.leads())
        lead = std::move(own);
      else
        EXPECT_TRUE(own.rows.empty());
    });
    return lead;
  }
  static std::string content(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const fs::path folder_;
};

TEST_F(Sweeps, RanksGiveTheBitsOfOne) {
  SweepRunOptions logged{.log = LOCKSTEP_FORECAST_DATA "/sweep.csv"},
      synthetic{.synthetic = 2, .runs = 4, .seed = 4};
  for (SweepRunOptions options : {logged, synthetic}) {
    options.checkpoint = folder_ / "one.npz";
    const SweepRun one = over(1, options);
    EXPECT_GT(one.computed, 40);
    EXPECT_EQ(one.sweeps, options.log.empty() ? 2 : 1);
    const std::string document = to_json(one), kept = content(options.checkpoint);
    for (const int ranks : options.log.empty() ? std::vector{2, 3, 4} : std::vector{3}) {
      SCOPED_TRACE(fmt::format("{} ranks, {} synthetic", ranks, options.synthetic));
      options.checkpoint = folder_ / fmt::format("{}.npz", ranks);
      const SweepRun several = over(ranks, options, uint64_t(ranks));
      EXPECT_EQ(to_json(several), document);
      EXPECT_EQ(several.computed, one.computed);
      EXPECT_EQ(content(options.checkpoint), kept);
      fs::remove(options.checkpoint);
    }
    fs::remove(folder_ / "one.npz");
  }
}

// The rows of a sweep do not depend on the sweeps that are computed with it, or after it: more than one block of them.
TEST_F(Sweeps, BlocksOfSweepsAreMeansOfSingleOnes) {
  constexpr int64_t kSweeps = 9;
  std::vector<std::vector<SweepRow>> single;
  for (int64_t k = 0; k < kSweeps; ++k)
    single.push_back(stop_sweep(synthetic_sweep(4, 20 + uint64_t(k)), {.first_check = 0.9}));
  SweepRunOptions options{.synthetic = kSweeps, .runs = 4, .seed = 20};
  options.sweep.first_check = 0.9;
  EXPECT_EQ(to_json(over(3, options, 7).rows), to_json(mean_rows(single)));
}

TEST_F(Sweeps, FitsOfACheckpointAreNotComputedAgain) {
  SweepRunOptions options{.synthetic = 2, .runs = 6, .checkpoint = folder_ / "state.npz"};
  const SweepRun whole = over(1, options);
  EXPECT_EQ(whole.resumed, 0);
  const std::string kept = content(options.checkpoint);
  const io::NpzArrays all = io::read_npz(options.checkpoint);
  for (const int ranks : {1, 3}) {
    // Every third fit: those of some runs and times alone.
    std::vector<int64_t> fits;
    std::vector<double> ends;
    const auto numbers = io::find_array(all, "fits", "").as<int64_t>();
    const auto values = io::find_array(all, "ends", "").as<double>();
    for (size_t k = 0; k < numbers.size() / 3; k += 3) {
      fits.insert(fits.end(), &numbers[3 * k], &numbers[3 * k] + 3);
      ends.insert(ends.end(), &values[2 * k], &values[2 * k] + 2);
    }
    const auto count = int64_t(ends.size() / 2);
    io::write_npz(options.checkpoint, {{"identity", io::find_array(all, "identity", "")},
                                       {"fits", Array::of(fits, {count, 3})},
                                       {"ends", Array::of(ends, {count, 2})}});
    const SweepRun resumed = over(ranks, options, 9);
    EXPECT_EQ(resumed.resumed, count);
    EXPECT_EQ(resumed.computed, whole.computed - count);
    EXPECT_EQ(to_json(resumed), to_json(whole));
    EXPECT_EQ(content(options.checkpoint), kept);
  }
  // A run of more sweeps continues from it, and one of other times of checks.
  options.synthetic = 3;
  const SweepRun more = over(2, options);
  EXPECT_EQ(more.resumed, whole.computed);
  options.sweep.check_every = 0.5;
  EXPECT_EQ(over(2, options).resumed, more.resumed + more.computed);
}

TEST_F(Sweeps, Refusals) {
  SweepRunOptions options{.synthetic = 1, .runs = 4, .checkpoint = folder_ / "state.npz"};
  over(1, options);
  const std::string kept = content(options.checkpoint);
  options.seed = 2;
  for (const int ranks : {1, 3}) {
    const std::string refused = test::refusal([&] { over(ranks, options); });
    EXPECT_NE(refused.find("seed"), std::string::npos) << refused;
    EXPECT_NE(refused.find("state.npz"), std::string::npos) << refused;
  }
  EXPECT_EQ(content(options.checkpoint), kept);
  options.seed = 1;
  const std::string refused = test::refusal([&] {
    parallel::run_ranks(3, {60}, 0, [&](const parallel::Group& group) {
      SweepRunOptions own = options;
      if (group.rank() == 2) own.runs = 5;
      run_sweep(own, group);
    });
  });
  EXPECT_EQ(refused.rfind("inputs and options of rank 2 differ from those of rank 0", 0), 0u) << refused;
  io::write_npz(options.checkpoint, {{"fits", Array::of(std::vector<int64_t>{1, 2, 3}, {1, 3})}});
  EXPECT_NE(test::refusal([&] { over(2, options); }).find("identity"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::forecast
