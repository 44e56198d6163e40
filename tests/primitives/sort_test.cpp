// Sorts, runs of equal keys and tables of indices, compared with std::stable_sort and plain loops; wrong buffers.
#include "primitives/sort/sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "lockstep/primitives.hpp"

namespace lockstep {
namespace {

namespace prim = primitives;
using prim::Radix;

Device cpu_of(int threads = 0) {
  DeviceOptions options;
  options.threads = threads;
  return Device::open("cpu", options);
}

/// The number of a key in the order that sort_by_key documents, of its lowest bits.
uint32_t rank_of(uint32_t key, int bits) { return bits == 32 ? key : key & ((1u << bits) - 1); }
int64_t rank_of(int32_t key, int bits) { return bits == 32 ? key : key & int32_t((1u << bits) - 1); }
int64_t rank_of(float key, int) {
  const int64_t magnitude = std::bit_cast<uint32_t>(std::fabs(key));
  return std::signbit(key) ? -1 - magnitude : magnitude;
}

template <class T>
std::vector<T> random_keys(size_t count, uint32_t seed, uint32_t mask = ~0u) {
  std::mt19937 random(seed);
  std::vector<T> keys(count);
  for (T& key : keys) key = std::bit_cast<T>(uint32_t(random()) & mask);
  return keys;
}

template <class T>
void expect_sorted(const Device& device, Radix form, const std::vector<T>& keys, int bits) {
  const auto n = int64_t(keys.size());
  std::vector<i32> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](i32 a, i32 b) {
    return rank_of(keys[size_t(a)], bits) < rank_of(keys[size_t(b)], bits);
  });
  const Buffer sorted = device.allocate<T>({n}), positions = device.allocate<i32>({n});
  prim::radix_sort(device, form, device.upload(keys), {}, sorted, positions, bits, {});
  ASSERT_EQ(device.download<i32>(positions), order) << n << " keys, " << bits << " bits, form " << int(form);
  const std::vector<T> got = device.download<T>(sorted);
  for (size_t k = 0; k < keys.size(); ++k)
    ASSERT_EQ(std::bit_cast<u32>(got[k]), std::bit_cast<u32>(keys[size_t(order[k])])) << k << " of " << n;
}

TEST(Sort, IsStableForAnyCountTypeAndForm) {
  const Device fast = cpu_of(), exact = Device::open("interp");
  uint32_t seed = 1;
  for (const Radix form : prim::kRadixForms)
    for (const size_t count : {0, 1, 2, 31, 255, 2048, 2049, 4095, 4096, 8193, 40007}) {
      expect_sorted(fast, form, random_keys<u32>(count, ++seed), 32);
      expect_sorted(fast, form, random_keys<i32>(count, ++seed), 32);
      expect_sorted(fast, form, random_keys<f32>(count, ++seed), 32);
      expect_sorted(fast, form, random_keys<u32>(count, ++seed, 0xf00u), 12);
      expect_sorted(fast, form, std::vector<u32>(count, ~0u), 32);
      if (count == 255) expect_sorted(exact, form, random_keys<f32>(count, ++seed), 32);
    }
}

TEST(Sort, OfMoreThanAMillionKeysOnAnyNumberOfThreads) {
  const auto keys = random_keys<u32>((1 << 20) + 4097, 3, 0xffffu);
  for (const int threads : {1, 3}) expect_sorted(cpu_of(threads), Radix::serial, keys, 16);
}

TEST(Sort, ComparesTheLowestBitsAlone) {
  const Device device = cpu_of();
  for (const Radix form : prim::kRadixForms)
    for (int bits = 1; bits < 32; ++bits) {
      expect_sorted(device, form, random_keys<u32>(3001, uint32_t(bits)), bits);
      expect_sorted(device, form, random_keys<i32>(501, uint32_t(bits)), bits);
    }
}

TEST(Sort, HasTheTotalOrderOfFloats) {
  const f32 infinity = std::numeric_limits<f32>::infinity(), nan = std::numeric_limits<f32>::quiet_NaN(),
            least = std::numeric_limits<f32>::denorm_min();
  const std::vector<f32> ascending{-nan, -infinity, -1.5f, -least, -0.0f, 0.0f, least, 1.5f, infinity, nan};
  std::vector<f32> keys = ascending;
  std::shuffle(keys.begin(), keys.end(), std::mt19937(5));
  const Device device = cpu_of();
  const Buffer to = device.allocate<f32>({10});
  prim::sort_by_key(device, device.upload(keys), {}, to, {});
  const auto got = device.download<f32>(to);
  for (size_t k = 0; k < got.size(); ++k)
    EXPECT_EQ(std::bit_cast<u32>(got[k]), std::bit_cast<u32>(ascending[k])) << k;
}

TEST(Sort, MovesValuesOfEachTypeAndLeavesItsInputs) {
  const Device device = cpu_of();
  const auto keys = random_keys<i32>(5000, 9, 0x80000fffu);
  std::vector<f32> values(keys.size());
  std::iota(values.begin(), values.end(), 0.5f);
  const Buffer from = device.upload(keys), payload = device.upload(values),
               to = device.allocate<i32>({50, 100}), moved = device.allocate<f32>({5000});
  prim::sort_by_key(device, from, payload, to.reshape({5000}), moved);
  std::vector<std::pair<i32, f32>> expected;
  for (size_t k = 0; k < keys.size(); ++k) expected.emplace_back(keys[k], values[k]);
  std::sort(expected.begin(), expected.end());
  const auto got = device.download<i32>(to);
  const auto got_values = device.download<f32>(moved);
  for (size_t k = 0; k < keys.size(); ++k) EXPECT_EQ(std::pair(got[k], got_values[k]), expected[k]) << k;
  EXPECT_EQ(device.download<i32>(from), keys);
  EXPECT_EQ(device.download<f32>(payload), values);
}

TEST(Sort, TakesTheBytesThatItReportsAndIsRecorded) {
  const Device device = Device::open("interp");
  for (const int bits : {7, 16, 24})
    for (const bool payload : {false, true}) {
      const int64_t n = 20000;
      const auto keys = random_keys<u32>(size_t(n), 4, (1u << bits) - 1);
      const Buffer from = device.upload(keys), to = device.allocate<u32>({n}),
                   positions = payload ? device.allocate<u32>({n}) : Buffer();
      device.synchronize();
      const int64_t before = device.counters().allocated_bytes;
      Device(device).reset_peak();
      prim::sort_by_key(device, from, {}, to, positions, bits);
      device.synchronize();
      const int64_t taken = device.counters().peak_bytes - before;
      const int64_t reported = prim::sort_bytes(device, n, payload, bits);
      EXPECT_LE(reported, taken);
      EXPECT_LT(taken - reported, 64) << bits;
    }
  EXPECT_EQ(prim::sort_bytes(device, 0, true), 0);
  EXPECT_THROW(prim::sort_bytes(device, -1, true), InputError);
  EXPECT_THROW(prim::sort_bytes(device, 1, true, 33), InputError);

  auto keys = random_keys<u32>(9000, 6);
  const Device fast = cpu_of();
  const Buffer from = fast.upload(keys), to = fast.allocate<u32>({9000});
  const Graph graph = fast.record([&] { prim::sort_by_key(fast, from, {}, to, {}); });
  for (int round = 0; round < 2; ++round) {
    std::reverse(keys.begin(), keys.end());
    keys[0] = u32(round);
    fast.write(from, keys.data(), from.bytes());
    fast.replay(graph);
    auto expected = keys;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(fast.download<u32>(to), expected);
  }
}

TEST(Sort, RefusesWrongBuffers) {
  const Device device = cpu_of();
  const Buffer u = device.allocate<u32>({8}), v = device.allocate<u32>({8}), w = device.allocate<u32>({8}),
               f = device.allocate<f32>({8}), f2 = device.allocate<f32>({8}), d = device.allocate<f64>({8}),
               x = device.allocate<u32>({8}), few = device.allocate<u32>({7});
  const auto refused = [&](const Buffer& keys, const Buffer& values, const Buffer& to, const Buffer& moved,
                           int bits = 32) {
    EXPECT_THROW(prim::sort_by_key(device, keys, values, to, moved, bits), InputError);
  };
  refused({}, {}, u, {});
  refused(u, {}, {}, {});
  refused(d, {}, d, {});
  refused(u, {}, f, {});
  refused(u, {}, few, {});
  refused(u, few, v, w);
  refused(u, f, v, w);
  refused(u, d, v, d);
  refused(u, v, w, {});
  refused(u, {}, v, f);        // positions are integers
  refused(f, {}, f2, {}, 31);  // the sign is the highest bit
  for (const int bits : {-1, 0, 33}) refused(u, {}, v, {}, bits);
  refused(u, {}, u, {});  // in place
  refused(u, v, w, v);
  refused(u, v, v, w);
  refused(u, v, w, w);
  const Buffer both = device.allocate<u32>({12});
  refused(u, {}, both.rows(0, 8), both.rows(4, 8));
  refused(device.allocate<u32>({4, 4}).window({0, 0}, {4, 2}), {}, v, {});
  prim::sort_by_key(device, u, v, w, x);
}

template <class T>
void expect_runs(const Device& device, const std::vector<T>& sorted) {
  std::vector<T> keys;
  std::vector<i32> first;
  for (size_t k = 0; k < sorted.size(); ++k)
    if (k == 0 || std::bit_cast<u32>(sorted[k]) != std::bit_cast<u32>(sorted[k - 1])) {
      keys.push_back(sorted[k]);
      first.push_back(i32(k));
    }
  first.push_back(i32(sorted.size()));
  const prim::Unique runs = prim::unique(device, device.upload(sorted));
  EXPECT_EQ(runs.size, int64_t(keys.size()));
  EXPECT_EQ(device.download<u32>(runs.count), std::vector<u32>{u32(keys.size())});
  EXPECT_EQ(device.download<i32>(runs.first), first);
  const auto got = device.download<T>(runs.keys);
  ASSERT_EQ(got.size(), keys.size());
  for (size_t k = 0; k < keys.size(); ++k) EXPECT_EQ(std::bit_cast<u32>(got[k]), std::bit_cast<u32>(keys[k]));
}

TEST(Unique, GivesKeysFirstPositionsAndTheirNumber) {
  for (const char* name : {"cpu", "interp"}) {
    const Device device = Device::open(name);
    for (const size_t count : {0, 1, 4095, 4096, 4097, 30001})
      for (const uint32_t mask : {0u, 0xffu, ~0u}) {
        auto keys = random_keys<u32>(count, uint32_t(count), mask);
        std::sort(keys.begin(), keys.end());
        expect_runs(device, keys);
      }
    const f32 nan = std::numeric_limits<f32>::quiet_NaN();
    expect_runs(device, std::vector<f32>{-1, -0.0f, 0.0f, 0.0f, 2, nan, nan});  // by bits
    expect_runs(device, std::vector<i32>{-5, -5, 0, 7});
    EXPECT_THROW(prim::unique(device, {}), InputError);
    EXPECT_THROW(prim::unique(device, device.allocate<f64>({3})), InputError);
    EXPECT_THROW(prim::unique(device, device.allocate<u32>({4, 4}).window({0, 0}, {4, 2})), InputError);
  }
}

TEST(Unique, GroupsTheValuesOfEqualKeys) {
  const Device device = cpu_of();
  const auto keys = random_keys<u32>(20000, 8, 0x3ffu), values = random_keys<u32>(20000, 9);
  std::map<u32, u32> expected;
  for (size_t k = 0; k < keys.size(); ++k) expected[keys[k]] += values[k];
  const Buffer sorted = device.allocate<u32>({20000}), moved = device.allocate<u32>({20000});
  prim::sort_by_key(device, device.upload(keys), device.upload(values), sorted, moved, 10);
  const prim::Unique runs = prim::unique(device, sorted);
  const Buffer sums = device.allocate<u32>({runs.size});
  prim::segmented_reduce(device, prim::Reduce::sum, moved, runs.first, sums);
  const auto distinct = device.download<u32>(runs.keys), got = device.download<u32>(sums);
  ASSERT_EQ(distinct.size(), expected.size());
  for (size_t k = 0; k < distinct.size(); ++k) EXPECT_EQ(got[k], expected[distinct[k]]) << distinct[k];
}

template <class T>
void expect_table(const Device& device, const std::vector<T>& index, int64_t extent) {
  std::vector<std::vector<i32>> positions(size_t(extent) + 1);
  for (size_t at = 0; at < index.size(); ++at) {
    const bool inside = index[at] >= 0 && int64_t(index[at]) < extent;
    positions[size_t(inside ? int64_t(index[at]) : extent)].push_back(i32(at));
  }
  std::vector<i32> first, entries;
  for (const auto& own : positions) {
    first.push_back(i32(entries.size()));
    entries.insert(entries.end(), own.begin(), own.end());
  }
  const prim::IndexTable table = prim::transposed_table(device, device.upload(index), extent);
  EXPECT_EQ(device.download<i32>(table.first), first) << index.size() << ", extent " << extent;
  EXPECT_EQ(device.download<i32>(table.entries), entries) << index.size() << ", extent " << extent;
}

TEST(TransposedTable, ListsThePositionsOfEachIndexInOrder) {
  for (const char* name : {"cpu", "interp"}) {
    const Device device = Device::open(name);
    std::mt19937 random(3);
    for (const size_t count : {0, 1, 3000, 20011})
      for (const int64_t extent : {0, 1, 255, 256, 70000}) {
        if (count > 10000 && name == std::string("interp")) continue;
        std::vector<i32> index(count);
        for (i32& k : index) k = i32(random() % uint32_t(extent + 3)) - 1;
        if (count > 2) index[1] = std::numeric_limits<i32>::min(), index[2] = std::numeric_limits<i32>::max();
        expect_table(device, index, extent);
        std::vector<u32> unsigned_index(index.begin(), index.end());
        expect_table(device, unsigned_index, extent);
      }
    EXPECT_THROW(prim::transposed_table(device, device.allocate<i32>({3}), -1), InputError);
    EXPECT_THROW(prim::transposed_table(device, device.allocate<i32>({3}), INT32_MAX), InputError);
    EXPECT_THROW(prim::transposed_table(device, device.allocate<f32>({3}), 3), InputError);
    EXPECT_THROW(prim::transposed_table(device, {}, 3), InputError);
  }
}

// <y, gather(x)> = <scatter(y), x>: the table makes a scatter-add of its index a gather.
TEST(TransposedTable, MakesTheAdjointOfAGather) {
  const Device device = cpu_of();
  const std::vector<i32> index = random_keys<i32>(5000, 2, 0x1ffu);
  const auto y = random_keys<u32>(5000, 3);
  std::vector<u32> expected(400);
  for (size_t k = 0; k < index.size(); ++k)
    if (index[k] < 400) expected[size_t(index[k])] += y[k];
  const prim::IndexTable table = prim::transposed_table(device, device.upload(index), 400);
  const Buffer sums = device.allocate<u32>({400});
  prim::gather_rows(device, {table.first, table.entries, {}}, device.upload(y), sums);
  EXPECT_EQ(device.download<u32>(sums), expected);
}

}  // namespace
}  // namespace lockstep
