#include "parallel/group_cases.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/record/sha256.hpp"
#include "parallel/hand_out.hpp"

namespace lockstep::parallel::cases {
namespace {

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

/// Bytes that only one sender, receiver and round has.
Bytes letter(int from, int to, size_t length) {
  std::mt19937 random(static_cast<unsigned>(1000 * from + to + 7));
  Bytes bytes(length);
  for (std::byte& b : bytes) b = std::byte(random());
  return bytes;
}

void barriers(const Group& group, const Device&) {
  // After a barrier a broadcast of each rank in turn arrives in order, regardless of disturbances.
  for (int round = 0; round < 5; ++round) {
    group.barrier();
    for (int root = 0; root < group.size(); ++root) {
      Bytes data = group.rank() == root ? letter(root, round, 100) : Bytes();
      group.broadcast(data, root);
      expect(data == letter(root, round, 100), "a broadcast of another rank or round");
    }
  }
}

void messages(const Group& group, const Device&) {
  for (const size_t length : {size_t{0}, size_t{1}, size_t{100000}}) {
    std::vector<Bytes> to;
    for (int r = 0; r < group.size(); ++r)
      to.push_back(letter(group.rank(), r, length + static_cast<size_t>(r)));
    const std::vector<Bytes> from = group.all_to_all(std::move(to));
    for (int r = 0; r < group.size(); ++r)
      expect(
          from[static_cast<size_t>(r)] == letter(r, group.rank(), length + static_cast<size_t>(group.rank())),
          "all-to-all: another message");
  }
  const std::vector<Bytes> all = group.all_gather(letter(group.rank(), 0, 33));
  for (int r = 0; r < group.size(); ++r)
    expect(all[static_cast<size_t>(r)] == letter(r, 0, 33), "all-gather: another rank's bytes");
  for (int round = 0; round < 3; ++round) {  // the others run ahead
    const std::vector<Bytes> at_lead = group.gather(letter(group.rank(), round, 40));
    expect(at_lead.size() == (group.leads() ? static_cast<size_t>(group.size()) : 0), "gather: ranks");
    for (size_t r = 0; r < at_lead.size(); ++r)
      expect(at_lead[r] == letter(static_cast<int>(r), round, 40), "gather: another rank's bytes or round");
  }
}

void halos(const Group& group, const Device&) {
  const int below = group.rank() - 1, above = group.rank() + 1, size = group.size();
  constexpr int kDown = 1, kUp = 2;
  const auto [from_below, from_above] =
      group.exchange_halos(letter(group.rank(), kDown, 50), letter(group.rank(), kUp, 60));
  expect(from_below == (below >= 0 ? letter(below, kUp, 60) : Bytes()), "the halo from below");
  expect(from_above == (above < size ? letter(above, kDown, 50) : Bytes()), "the halo from above");
  const auto around =
      group.exchange_halos(letter(group.rank(), kDown, 50), letter(group.rank(), kUp, 60), true);
  expect(around.first == letter((below + size) % size, kUp, 60), "the periodic halo from below");
  expect(around.second == letter(above % size, kDown, 50), "the periodic halo from above");
}

/// The sum by the definition of docs/cluster.md: neighbours are added, then neighbouring sums, until one is left.
template <class T>
std::vector<T> pairwise(std::vector<std::vector<T>> parts) {
  while (parts.size() > 1) {
    std::vector<std::vector<T>> half;
    for (size_t k = 0; k < parts.size(); k += 2) {
      half.push_back(parts[k]);
      for (size_t n = 0; k + 1 < parts.size() && n < half.back().size(); ++n)
        half.back()[n] += parts[k + 1][n];
    }
    parts = std::move(half);
  }
  return parts.front();
}

/// Magnitudes over many decades, so that another order of additions gives other bits.
template <class T>
std::vector<std::vector<T>> random_parts(int64_t parts, int64_t length) {
  std::mt19937_64 random(static_cast<uint64_t>(parts * 1000003 + length));
  std::normal_distribution<double> normal;
  std::vector<std::vector<T>> all;
  for (int64_t p = 0; p < parts; ++p)
    for (auto& numbers = all.emplace_back(static_cast<size_t>(length)); T & x : numbers)
      x = static_cast<T>(std::exp(4 * normal(random)) * (random() % 2 ? 1 : -1));
  return all;
}

template <class T>
std::vector<T> mine_of(const Group& group, const std::vector<std::vector<T>>& all) {
  std::vector<T> mine;
  const Range own = share(static_cast<int64_t>(all.size()), group);
  for (int64_t p = own.begin; p < own.end; ++p)
    mine.insert(mine.end(), all[static_cast<size_t>(p)].begin(), all[static_cast<size_t>(p)].end());
  return mine;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void sums_of(const Group& group, const Device& device) {
  for (const auto& [parts, length] :
       {std::pair<int64_t, int64_t>{1, 5}, {2, 1}, {3, 3000}, {5, 1}, {16, 2049}, {37, 700}}) {
    const auto all = random_parts<T>(parts, length);
    const std::vector<T> expected = pairwise(all), mine = mine_of(group, all);
    expect(same_bits(group.sum<T>(parts, mine), expected), "a sum on the host differs from that of one rank");
    if (sizeof(T) == 8 && !device.info().limits.f64) continue;
    const int64_t own = share(parts, group).size();
    const Buffer rows = own ? device.upload(std::span<const T>(mine), {own, length}) : Buffer();
    const Buffer total = device.allocate<T>({length});
    group.sum(device, parts, rows, total);
    expect(same_bits(device.download<T>(total), expected),
           "a sum on the device differs from that of one rank");
  }
}
void sums(const Group& group, const Device& device) {
  sums_of<float>(group, device);
  sums_of<double>(group, device);
}

void buffers(const Group& group, const Device& device) {
  if (group.size() == 1) return;
  // Two buffers to each other rank, of lengths that depend on both.
  constexpr int64_t kLongest = 70000;
  std::vector<Slice> sends, receives;
  const auto length = [](int from, int to, int k) { return kLongest - 1000 * from - 100 * to - 10 * k; };
  for (int r = 0; r < group.size(); ++r)
    for (int k = 0; r != group.rank() && k < 2; ++k) {
      std::vector<float> numbers(static_cast<size_t>(length(group.rank(), r, k)),
                                 float(group.rank() * 100 + r * 10 + k));
      sends.push_back({r, device.upload(numbers)});
      receives.push_back({r, device.allocate<f32>({length(r, group.rank(), k)})});
    }
  group.exchange(device, sends, receives);
  for (size_t n = 0; n < receives.size(); ++n) {
    const std::vector<float> got = device.download<f32>(receives[n].buffer);
    const float wanted = float(receives[n].rank * 100 + group.rank() * 10 + int(n % 2));
    expect(std::ranges::all_of(got, [&](float x) { return x == wanted; }),
           "a buffer of another rank or order");
  }
}

/// Each number is handed to one rank, and rank 0 hears of all parts; several threads of a rank may ask.
void queue(const Group& group, const Device&) {
  constexpr int64_t kCount = 50;
  std::atomic<int64_t> reported{0};
  std::mutex mutex;
  std::vector<int64_t> taken;
  WorkQueue queue(group, kCount, [&](int parts) { reported += parts; });
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < 2; ++w)
      workers.emplace_back([&] {
        while (const auto number = queue.next()) {
          queue.report(2);
          const std::lock_guard lock(mutex);
          taken.push_back(*number);
        }
      });
  }
  queue.finish();
  Bytes mine(taken.size() * sizeof(int64_t));
  if (!mine.empty()) std::memcpy(mine.data(), taken.data(), mine.size());
  std::multiset<int64_t> all;
  for (const Bytes& bytes : group.all_gather(std::move(mine)))
    for (size_t at = 0; at < bytes.size(); at += sizeof(int64_t)) {
      int64_t number = 0;
      std::memcpy(&number, &bytes[at], sizeof number);
      all.insert(number);
    }
  expect(all.size() == kCount && std::set(all.begin(), all.end()).size() == kCount && *all.begin() == 0 &&
             *all.rbegin() == kCount - 1,
         "a number was handed out twice or not at all");
  expect(!group.leads() || reported == 2 * kCount, "rank 0 has not heard of all parts");
}

/// Rank 0 takes each result once and one at a time, round after round; some are empty.
void results(const Group& group, const Device&) {
  for (const int64_t count : {0, 1, 40, 3}) {
    std::atomic<bool> taking{false};
    std::map<int64_t, Bytes> taken;
    const auto result_of = [&](int64_t number) {
      return letter(int(number), int(count), size_t(number % 4) * 300);
    };
    hand_out(group, count, result_of, [&](int64_t number, const Bytes& result) {
      expect(!taking.exchange(true), "two results are taken at once");
      expect(taken.emplace(number, result).second, "a result is taken twice");
      std::this_thread::yield();
      taking = false;
    });
    expect(int64_t(taken.size()) == (group.leads() ? count : 0), "results are lost");
    for (const auto& [number, result] : taken)
      expect(number < count && result == result_of(number), "a result of another number or round");
  }
}

/// A difference is named, on every rank.
void digests(const Group& group, const Device&) {
  group.expect_same("options", "the same");
  if (group.size() == 1) return;
  std::string error;
  try {
    group.expect_same("options", group.rank() == group.size() - 1 ? "others" : "the same");
  } catch (const GroupError& e) { error = e.what(); }
  expect(error.starts_with("options of rank " + std::to_string(group.size() - 1) +
                           " differ from those of rank 0"),
         "differing options are not refused: " + error);
}

}  // namespace

std::span<const GroupCase> group_cases() {
  static const GroupCase cases[] = {{"barriers", barriers}, {"messages", messages}, {"halos", halos},
                                    {"sums", sums},         {"buffers", buffers},   {"queue", queue},
                                    {"results", results},   {"digests", digests}};
  return cases;
}

std::string sums_of_group(const Group& group, const Device& device) {
  record::Sha256 hash;
  for (const int64_t parts : {7, 64}) {
    const auto all = random_parts<float>(parts, 5000);
    const std::vector<float> mine = mine_of(group, all);
    const int64_t own = share(parts, group).size();
    const Buffer total = device.allocate<f32>({5000});
    group.sum(device, parts, own ? device.upload(std::span<const float>(mine), {own, 5000}) : Buffer(),
              total);
    const std::vector<float> sum = device.download<f32>(total);
    hash.update(std::as_bytes(std::span(sum)));
  }
  return hash.finish();
}

}  // namespace lockstep::parallel::cases
