// References: std::stable_sort and plain loops.
#include "primitives/sort/cases.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <numeric>

#include "primitives/sort/emission.hpp"
#include "primitives/sort/sort.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

namespace prim = primitives;

template <class T>
using Data = std::shared_ptr<const std::vector<T>>;

template <class T>
Case sort_base(const std::string& operation) {
  Case c;
  c.dtype = std::string(name(detail::kType<T>));
  c.name = "primitives." + operation + (std::is_same_v<T, f32> ? "" : "." + c.dtype);
  c.small = {"0", "1", "2", "17", "2048", "2049", "4096", "8193", "30011"};
  c.full = {"1000003"};
  c.bench = {"1048576", "67108864"};
  return c;
}

/// Keys below 2^bits, in part far fewer than elements, so that many are equal.
template <class T>
Data<T> random_keys(int64_t count, int bits, uint64_t seed) {
  auto keys = std::make_shared<std::vector<T>>(size_t(count));
  cases::Random random(seed);
  const uint32_t few = uint32_t(count / 7 + 1), mask = uint32_t((uint64_t(1) << bits) - 1);
  for (T& key : *keys) {
    const uint32_t word = random.u32();
    key = std::bit_cast<T>((word % 3 == 0 ? word % few * 0x9e3779b9u : random.u32()) & mask);
  }
  return keys;
}

/// Positions of the keys in a stable order; of floats that of totalOrder.
template <class T>
std::vector<u32> stable_order(const std::vector<T>& keys) {
  std::vector<u32> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return std::is_lt(std::strong_order(keys[a], keys[b])); });
  return order;
}

/// Keys of so many bits with values, or with their positions; by that form on every device, or by the device's own.
template <class T>
Case sort_case(const std::string& operation, int bits, bool positions, std::optional<prim::Radix> form) {
  Case c = sort_base<T>(operation);
  const Storage storage = detail::kStorage<T>;
  c.kernels = [=] {
    std::vector<Kernel> all;
    for (const prim::Radix f : prim::kRadixForms)
      if (!form || f == *form) {
        all.push_back(prim::digit_counts_kernel(f, storage));
        if (positions)
          all.push_back(prim::digit_scatter_kernel(f, storage, prim::Payload::positions, Storage::u32));
        all.push_back(prim::digit_scatter_kernel(f, storage, prim::Payload::values, Storage::u32));
      }
    return all;
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    const Data<T> keys = random_keys<T>(n, bits, seed);
    auto values = std::make_shared<std::vector<u32>>(size_t(positions ? 0 : n));
    std::iota(values->rbegin(), values->rend(), 5u);
    CaseProblem p;
    p.bytes = (positions ? 12.0 : 16.0) * double(n);
    p.reference = [=] {
      const std::vector<u32> order = stable_order(*keys);
      std::vector<T> sorted;
      std::vector<u32> moved;
      for (const u32 from : order) {
        sorted.push_back((*keys)[from]);
        moved.push_back(positions ? from : (*values)[from]);
      }
      return std::vector{Array::of(sorted), Array::of(moved)};
    };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(*keys), payload = positions ? Buffer() : device.upload(*values),
                   to = device.allocate<T>({n}), to_payload = device.allocate<u32>({n});
      const prim::Radix by = form.value_or(prim::radix_form(device));
      return CaseRun{[=] { prim::radix_sort(device, by, from, payload, to, to_payload, bits, {}); },
                     [=] { return std::vector{device.download(to), device.download(to_payload)}; }};
    };
    return p;
  };
  return c;
}

template <class T>
Case unique_case() {
  Case c = sort_base<T>("unique");
  c.kernels = [] {
    std::vector<Kernel> all;
    for (const int lanes : prim::kEmissionLanes) {
      all.push_back(prim::run_counts_kernel(detail::kStorage<T>, lanes));
      all.push_back(prim::runs_kernel(detail::kStorage<T>, lanes));
    }
    return all;
  };
  c.make = [](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0];
    auto keys = std::make_shared<std::vector<T>>(*random_keys<T>(n, std::is_same_v<T, f32> ? 30 : 32, seed));
    std::sort(keys->begin(), keys->end());
    CaseProblem p;
    p.bytes = 4.0 * double(n);
    p.reference = [=] {
      std::vector<T> distinct;
      std::vector<i32> first;
      for (size_t at = 0; at < keys->size(); ++at)
        if (distinct.empty() || distinct.back() != (*keys)[at]) {
          distinct.push_back((*keys)[at]);
          first.push_back(i32(at));
        }
      first.push_back(i32(n));
      return std::vector{Array::of(distinct), Array::of(first), Array::of(std::vector{u32(distinct.size())})};
    };
    p.bind = [=](const Device& device) {
      const Buffer sorted = device.upload(*keys);
      const auto runs = std::make_shared<prim::Unique>();
      return CaseRun{[=] { *runs = prim::unique(device, sorted); },
                     [=] {
                       return std::vector{device.download(runs->keys), device.download(runs->first),
                                          device.download(runs->count)};
                     }};
    };
    return p;
  };
  return c;
}

/// An index of which a twentieth refers to nothing.
Case table_case() {
  Case c = sort_base<i32>("transposed_table");
  c.kernels = [] { return std::vector{prim::offsets_kernel(), prim::clamp_kernel(Storage::i32)}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const int64_t n = parse_shape(size, 1)[0], extent = n / 3;
    auto index = std::make_shared<std::vector<i32>>(size_t(n));
    cases::Random random(seed);
    for (i32& k : *index)
      k = random.u32() % 20 == 0 ? i32(random.u32()) : i32(random.u32() % uint32_t(extent + 2)) - 1;
    CaseProblem p;
    p.bytes = 8.0 * double(n) + 4.0 * double(extent + 1);
    p.reference = [=] {
      std::vector<std::vector<i32>> positions(size_t(extent) + 1);
      for (size_t at = 0; at < index->size(); ++at) {
        const i32 k = (*index)[at];
        positions[size_t(k >= 0 && k < extent ? k : extent)].push_back(i32(at));
      }
      std::vector<i32> first, entries;
      for (const auto& of_element : positions) {
        first.push_back(i32(entries.size()));
        entries.insert(entries.end(), of_element.begin(), of_element.end());
      }
      return std::vector{Array::of(first), Array::of(entries)};
    };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(*index);
      const auto table = std::make_shared<prim::IndexTable>();
      return CaseRun{
          [=] { *table = prim::transposed_table(device, from, extent); },
          [=] { return std::vector{device.download(table->first), device.download(table->entries)}; }};
    };
    return p;
  };
  return c;
}

}  // namespace

void add_sort_cases(CaseRegistry& registry) {
  registry.add(sort_case<u32>("sort", 32, false, {}));
  registry.add(sort_case<i32>("sort", 32, false, {}));
  registry.add(sort_case<f32>("sort", 32, false, {}));
  registry.add(sort_case<u32>("sort.positions", 20, true, {}));
  registry.add(sort_case<u32>("sort.wide", 32, false, prim::Radix::wide));
  registry.add(sort_case<u32>("sort.narrow", 32, false, prim::Radix::narrow));
  registry.add(unique_case<u32>());
  registry.add(unique_case<f32>());
  registry.add(table_case());
}

}  // namespace lockstep
