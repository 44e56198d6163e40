// Groups of threads: every case for 1 … 4 ranks, with messages in order and disturbed, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "device/devices.hpp"
#include "parallel/group_cases.hpp"
#include "parallel/hand_out.hpp"
#include "parallel/transports/transport.hpp"
#include "parallel/tree.hpp"

namespace lockstep::parallel {
namespace {

void run_on_threads(int ranks, uint64_t seed, const std::function<void(const Group&)>& work) {
  run_ranks(ranks, {30}, seed, work);
}

struct Setting {
  int ranks;
  uint64_t seed;
  size_t number;
};
class GroupCases : public testing::TestWithParam<Setting> {};

TEST_P(GroupCases, HoldOnThreads) {
  const auto& [ranks, seed, number] = GetParam();
  const Device& device = test_device(host_devices().front());
  run_on_threads(ranks, seed, [&](const Group& group) { cases::group_cases()[number].run(group, device); });
}
std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const uint64_t seed : {0, 1, 2})
      for (size_t number = 0; number < cases::group_cases().size(); ++number)
        if (ranks > 1 || seed == 0) all.push_back({ranks, seed, number});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, GroupCases, testing::ValuesIn(all_settings()), [](const auto& test) {
  return std::string(cases::group_cases()[test.param.number].name) + "_" + std::to_string(test.param.ranks) +
         "_" + std::to_string(test.param.seed);
});

TEST(Group, SumsDependOnNoNumberOfRanks) {
  const Device& device = test_device(host_devices().front());
  std::vector<std::string> sums;
  for (int ranks = 1; ranks <= 4; ++ranks)
    run_on_threads(ranks, 0, [&](const Group& group) {
      const std::string sum = cases::sums_of_group(group, device);
      if (group.leads()) sums.push_back(sum);
    });
  for (const std::string& sum : sums) EXPECT_EQ(sum, sums.front());
}

TEST(Group, FrontiersCoverTheRangeWithTheLargestNodes) {
  for (const int64_t parts : {1, 2, 3, 7, 8, 13, 64})
    for (int64_t begin = 0; begin < parts; ++begin)
      for (int64_t end = begin + 1; end <= parts; ++end) {
        int64_t at = begin;
        Node before{-1, 0};
        for (const Node& node : frontier(parts, {begin, end})) {
          EXPECT_EQ(node.begin(), at);
          at = std::min(node.end(), parts);
          EXPECT_FALSE(before.level == node.level && before.number % 2 == 0 &&
                       before.number + 1 == node.number)
              << "siblings are one node: " << parts << " parts, " << begin << " to " << end;
          before = node;
        }
        EXPECT_EQ(at, end);
        if (end - begin == parts) { EXPECT_EQ(before, root_of(parts)); }
      }
}

TEST(Group, SharesCoverThePartsInOrder) {
  for (const int64_t parts : {0, 1, 5, 64, 1000})
    for (const int size : {1, 2, 3, 7}) {
      int64_t at = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Range range = share(parts, rank, size);
        EXPECT_EQ(range.begin, at);
        EXPECT_LE(range.size(), parts / size + 1);
        at = range.end;
      }
      EXPECT_EQ(at, parts);
    }
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) { return e.what(); }
  return "none";
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}
struct AtExit {
  explicit AtExit(std::function<void()> work) : work_(std::move(work)) {}
  ~AtExit() { work_(); }
  std::function<void()> work_;
};

TEST(Group, ARankThatDoesNotAnswerIsNamedAfterTheLimit) {
  const auto start = std::chrono::steady_clock::now();
  const std::string error = error_of([] {
    std::atomic<bool> over{false};
    run_ranks(3, {1.5}, 0, [&](const Group& group) {
      if (group.rank() == 2) return wait_for(over);
      const AtExit end([&] { over = true; });
      group.all_gather({});
    });
  });
  EXPECT_TRUE(error.starts_with("rank 2 has not responded for 1.5 s [threads]")) << error;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Group, ARankThatFailsEndsTheWaitsOfOthers) {
  std::string other;
  const std::string error = error_of([&] {
    run_ranks(2, {60}, 0, [&](const Group& group) {
      if (group.rank() == 1) {
        group.barrier();
        throw InputError("no such file", "a.tif", "a file");
      }
      other = error_of([&] {
        group.barrier();
        group.barrier();
      });
      throw InputError("a later failure", "", "");
    });
  });
  EXPECT_TRUE(error.starts_with("no such file")) << error;
  EXPECT_TRUE(other.starts_with("rank 1 failed: no such file")) << other;
}

TEST(Group, WhatARankSentBeforeItFailedArrives) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    std::vector<Bytes> gathered;
    const std::string error = error_of([&] {
      run_on_threads(3, seed, [&](const Group& group) {
        std::vector<Bytes> all = group.gather(Bytes(5, std::byte(group.rank())));
        if (!group.leads()) throw GroupError("all know", "a test", "").on_every_rank();
        gathered = std::move(all);
        throw InputError("the finding of rank 0", "a test", "");
      });
    });
    EXPECT_EQ(gathered.size(), 3u) << "seed " << seed;
    EXPECT_TRUE(error.starts_with("the finding of rank 0")) << error;
  }
}

TEST(Group, AQueueWhoseRankFallsSilentEnds) {
  const std::string error = error_of([] {
    std::atomic<bool> over{false};
    run_ranks(2, {1.5}, 0, [&](const Group& group) {
      WorkQueue queue(group, 4);
      if (group.rank() == 1) {
        queue.next();
        return wait_for(over);  // without finish()
      }
      const AtExit end([&] { over = true; });
      while (queue.next()) {}
      queue.finish();
    });
  });
  EXPECT_TRUE(error.starts_with("rank 1 has not responded for 1.5 s")) << error;
}

TEST(Group, AResultThatCannotBeTakenEndsAllRanks) {
  for (const int64_t bad : {0, 7, 29}) {
    const std::string error = error_of([&] {
      run_on_threads(3, 5, [&](const Group& group) {
        hand_out(
            group, 30, [](int64_t) { return Bytes(8); },
            [&](int64_t number, const Bytes&) {
              if (number == bad) throw InputError("no space", "a file", "room");
            });
        group.barrier();
      });
    });
    EXPECT_TRUE(error.starts_with("no space [a file]")) << error;
  }
}

TEST(Group, ContributionsOfDifferentLengthsAreRefused) {
  const std::string error = error_of([] {
    run_on_threads(2, 0, [](const Group& group) {
      group.sum<double>(2, std::vector<double>(group.rank() == 0 ? 3 : 4));
    });
  });
  EXPECT_TRUE(error.starts_with("contributions of different lengths [Group::sum]")) << error;
}

TEST(Group, WhatRanksDoNotAgreeAboutIsNamedOnEachOfThem) {
  const auto said = [](const std::function<void(const Group&)>& agree) {
    std::atomic<int> thrown{0};
    const std::string error = error_of([&] {
      run_on_threads(3, 1, [&](const Group& group) {
        try {
          agree(group);
        } catch (const GroupError& e) {
          thrown += e.everywhere();
          throw;
        }
      });
    });
    EXPECT_EQ(thrown, error == "none" ? 0 : 3);
    return error;
  };
  const auto expect = [](const Group& group, const char* name, const char* colour, const char* fault) {
    expect_agreement(group, std::array{Common{"names", name}, Common{"colours", colour}}, fault);
  };
  EXPECT_EQ(said([&](const Group& group) { expect(group, "a", "red", ""); }), "none");
  EXPECT_TRUE(said([&](const Group& group) {
                expect(group, "a", group.rank() == 1 ? "red" : "blue", "");
              }).starts_with("colours of rank 1 differ from those of rank 0 [threads]"));
  EXPECT_TRUE(said([&](const Group& group) {
                expect(group, "a", group.rank() == 0 ? "red" : "blue", "");
              }).starts_with("colours of ranks 1, 2 differ"));
  EXPECT_TRUE(said([&](const Group& group) {
                expect(group, group.rank() == 0 ? "a" : "b", "red", group.rank() == 2 ? "no disk" : "");
              }).starts_with("rank 2 failed: no disk"));
  EXPECT_TRUE(said([&](const Group& group) {
                group.rank() == 1 ? group.expect_same("sums", "a") : expect(group, "a", "red", "");
              }).starts_with("calls of rank 1 differ"));
}

TEST(Group, AnEndedGroupPassesNothing) {
  run_on_threads(2, 0, [](const Group& group) {
    const Group other = group;
    group.barrier();
    end_group(group);
    EXPECT_EQ(other.size(), 2);
    EXPECT_TRUE(error_of([&] { other.barrier(); }).starts_with("a group that has ended [threads]"));
    EXPECT_TRUE(error_of([&] { other.all_gather({}); }).starts_with("a group that has ended"));
  });
}

TEST(Group, RanksAndLimitsOutOfRangeAreRefused) {
  const auto nothing = [](const Group&) {};
  EXPECT_TRUE(
      error_of([&] { run_ranks(0, {}, nothing); }).starts_with("0 ranks [ranks]: expected 1 to 1024"));
  EXPECT_TRUE(error_of([&] { run_ranks(2, {0}, nothing); }).starts_with("a wait of 0 s [wait limit]"));
}

TEST(Group, MoreRanksThanDevicesNeedConsent) {
  run_on_threads(2, 0, [](const Group& group) {
    EXPECT_EQ(device_of_rank(group, "cpu", false), "cpu");
    EXPECT_EQ(group.local_rank(), group.rank());
    EXPECT_EQ(group.local_size(), 2);
    const std::string error = error_of([&] { device_of_rank(group, "cuda:0", false); });
    EXPECT_TRUE(error.starts_with("2 ranks for 1 device (cuda:0) [--device]")) << error;
    EXPECT_EQ(device_of_rank(group, "cuda:0", true), "cuda:0");
  });
}

/// A rank that has finished waits for the others as long as rank 0 lives, also beyond the limit.
TEST(Group, AQueueEndsForAllRanksAtOnce) {
  std::atomic<int> done{0};
  std::atomic<bool> taken{false};
  run_ranks(3, {2}, 33, [&](const Group& group) {
    WorkQueue queue(group, 6);
    if (group.rank() != 1) wait_for(taken);
    while (queue.next()) {
      taken = true;
      for (int k = 0; group.rank() == 1 && k < 30; ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        queue.report(0);
      }
      ++done;
    }
    queue.finish();
    EXPECT_EQ(done, 6) << "rank " << group.rank();
  });
}

}  // namespace
}  // namespace lockstep::parallel
