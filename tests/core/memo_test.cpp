// Values that are made once for a key: by one thread and by several, from within each other, with errors, with a bound.
#include "core/memo.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using Number = std::shared_ptr<const int>;

TEST(Memo, EachKeyIsMadeOnceAndKeysAreTheirValues) {
  enum class Kind : uint8_t { plain, wide };
  Memo<std::tuple<int, Kind, std::string>, Number> memo;
  int made = 0;
  const auto get = [&](int n, Kind kind, const std::string& text) {
    return memo.get({n, kind, text}, [&] { return std::make_shared<const int>(++made); });
  };
  const Number first = get(1, Kind::plain, "a");
  EXPECT_EQ(get(1, Kind::plain, "a"), first);
  EXPECT_EQ(*get(1, Kind::plain, "b"), 2);
  EXPECT_EQ(*get(1, Kind::wide, "a"), 3);
  EXPECT_EQ(*get(0, Kind::plain, "a"), 4);
  EXPECT_EQ(get(1, Kind::plain, "a"), first);
  EXPECT_EQ(made, 4);
}

// Kernels of small parameters, all of whose hashes must differ enough: none is taken for another.
TEST(Memo, ManyKeysKeepTheirOwnValues) {
  Memo<std::pair<int64_t, std::pair<bool, const int*>>, Number> memo;
  const int places[4] = {};
  for (int pass = 0; pass < 2; ++pass)
    for (int k = 0; k < 4000; ++k) {
      const Number got = memo.get({k / 8, {k % 2 == 1, places + k / 2 % 4}}, [&] {
        EXPECT_EQ(pass, 0);
        return std::make_shared<const int>(k);
      });
      ASSERT_EQ(*got, k);
    }
}

TEST(Memo, AValueMayAskForOthersWhileItIsMade) {
  Memo<int, Number> memo;
  const std::function<Number(int)> factorial = [&](int n) {
    return memo.get(n, [&] { return std::make_shared<const int>(n == 0 ? 1 : n * *factorial(n - 1)); });
  };
  EXPECT_EQ(*factorial(10), 3628800);
  EXPECT_EQ(*memo.get(9, []() -> Number { throw std::logic_error("kept already"); }), 362880);
  // Also for its own key: the inner value is kept.
  const Number inner = std::make_shared<const int>(7);
  const auto outer = [&] {
    EXPECT_EQ(memo.get(-1, [&] { return inner; }), inner);
    return std::make_shared<const int>(8);
  };
  EXPECT_EQ(memo.get(-1, outer), inner);
}

TEST(Memo, AnErrorLeavesNothingBehind) {
  Memo<std::string, Number> memo;
  const auto fails = []() -> Number { throw std::runtime_error("no"); };
  EXPECT_THROW(memo.get("k", fails), std::runtime_error);
  EXPECT_THROW(memo.get("k", fails), std::runtime_error);
  EXPECT_EQ(*memo.get("k", [] { return std::make_shared<const int>(5); }), 5);
}

TEST(Memo, ABoundHoldsAndValuesOutliveTheMemo) {
  Number kept;
  std::weak_ptr<const int> first;
  {
    Memo<int, Number> memo(3);
    int made = 0;
    const auto get = [&](int k) {
      return memo.get(k, [&] { return ++made, std::make_shared<const int>(k); });
    };
    first = get(0);
    get(1), get(2), get(0);
    EXPECT_EQ(made, 3);
    EXPECT_FALSE(first.expired());
    kept = get(3);
    EXPECT_TRUE(first.expired());
    EXPECT_EQ(get(3), kept);
    EXPECT_EQ(*get(0), 0);
    EXPECT_EQ(made, 5);
  }
  EXPECT_EQ(*kept, 3);
}

// Two threads are inside of makers of two keys at the same time: with a lock over both they would not end.
TEST(Memo, NoLockIsHeldWhileAValueIsMade) {
  Memo<int, Number> memo;
  std::barrier both(2);
  const auto make = [&](int key) {
    const Number got = memo.get(key, [&] {
      both.arrive_and_wait();
      const Number other = memo.get(key + 10, [&] { return std::make_shared<const int>(key + 10); });
      both.arrive_and_wait();
      return std::make_shared<const int>(*other - 10);
    });
    EXPECT_EQ(*got, key);
  };
  std::jthread one(make, 1), two(make, 2);
}

// Each asks from within the other: what is waited for would never come.
TEST(Memo, ThreadsThatNeedEachOthersKeysEnd) {
  Memo<int, Number> memo;
  std::barrier both(2);
  const auto make = [&](int key) {
    memo.get(key, [&] {
      both.arrive_and_wait();
      memo.get(1 - key, [&] { return std::make_shared<const int>(1 - key); });
      return std::make_shared<const int>(key);
    });
  };
  { std::jthread one(make, 0), two(make, 1); }
  for (int key : {0, 1}) EXPECT_EQ(*memo.get(key, []() -> Number { throw std::logic_error("kept"); }), key);
}

TEST(Memo, ThreadsGetTheSameValues) {
  constexpr int kThreads = 8, kKeys = 200;
  Memo<std::pair<int, std::string>, Number> memo;
  std::vector<std::vector<Number>> got(kThreads);
  std::atomic<int> made{0};
  {
    std::barrier begin(kThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        begin.arrive_and_wait();
        for (int pass = 0; pass < 3; ++pass)
          for (int k = 0; k < kKeys; ++k) {
            const int key = (k + t % 2 * kKeys / 2) % kKeys;
            const Number value = memo.get({key, std::to_string(key)}, [&] {
              ++made;
              if (pass == 0 && t == 3 && key % 50 == 0) std::this_thread::yield();
              return std::make_shared<const int>(key);
            });
            ASSERT_EQ(*value, key);
            if (pass == 2) got[size_t(t)].push_back(value);
          }
      });
  }
  for (int t = 2; t < kThreads; ++t) EXPECT_EQ(got[size_t(t)], got[size_t(t % 2)]);
  EXPECT_GE(made, kKeys);
  EXPECT_LE(made, kThreads * kKeys);
}

// A thread whose value came second gets the first one; an error in one of them is not seen by the other.
TEST(Memo, TheFirstOfTwoValuesIsKept) {
  Memo<int, Number> memo;
  std::barrier inside(3), first(2);
  Number early, late;
  {
    std::jthread one([&] {
      early = memo.get(0, [&] { return inside.arrive_and_wait(), std::make_shared<const int>(1); });
      first.arrive_and_wait();
    });
    std::jthread two([&] {
      late = memo.get(0, [&] {
        inside.arrive_and_wait(), first.arrive_and_wait();
        return std::make_shared<const int>(2);
      });
    });
    std::jthread three([&] {
      const auto fails = [&]() -> Number {
        inside.arrive_and_wait();
        throw std::runtime_error("no");
      };
      EXPECT_THROW(memo.get(0, fails), std::runtime_error);
    });
  }
  EXPECT_EQ(*early, 1);
  EXPECT_EQ(late, early);
}

}  // namespace
}  // namespace lockstep
