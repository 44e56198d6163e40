// Histograms by integer atomics: the counts do not depend on their order.
#include <fmt/format.h>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kLanes = 256, kPerLane = 16, kChunk = kLanes * kPerLane;
/// Most bins that a group counts in shared memory.
constexpr int kSharedBins = 2048;

/// Counts the bins of a group's elements; `bin_of` gives the bin of an element, negative for none.
template <class G, class Bin>
void count(const Group<2>& g, const G& from, const InOut<u32, 1>& counts, bool in_shared, Bin bin_of) {
  const Val<i32> bins = counts.size(0), lane = g.lane(), row = g.id(1);
  const auto each = [&](auto add) {
    for_(0, kPerLane, [&](Val<i32> k) {
      const Val<i32> at = g.id(0) * kChunk + k * kLanes + lane;
      if_(at < from.size(1), [&] {
        const Val<i32> bin = bin_of(from(row, at));
        if_(bin >= 0 && bin < bins, [&] { add(bin); });
      });
    });
  };
  if (!in_shared) return each([&](Val<i32> bin) { counts.atomic_add(bin, 1u); });
  const SharedArray<u32> own(kSharedBins);
  for_(0, kSharedBins / kLanes, [&](Val<i32> k) { own[k * kLanes + lane] = 0u; });
  barrier();
  each([&](Val<i32> bin) { own.atomic_add(bin, 1u); });
  barrier();
  for_(0, kSharedBins / kLanes, [&](Val<i32> k) {
    const Val<i32> bin = k * kLanes + lane;
    if_(bin < bins, [&] {
      const Val<u32> n = own[bin];
      if_(n != 0u, [&] { counts.atomic_add(bin, n); });
    });
  });
}

const KernelOptions kOptions{{kLanes, 1, 1}, 0};

template <class T>
Kernel make_histogram_kernel(bool in_shared) {
  return kernel(
      kernel_name<T>(in_shared ? "histogram" : "histogram.many"),
      [=](Group<2> g, Grid<T, 2> keys, InOut<u32, 1> counts) {
        // A u32 of 2^31 or more is negative as i32, and outside all the same.
        count(g, keys, counts, in_shared, [](const Val<T>& key) { return cast<i32>(key); });
      },
      kOptions);
}
template <class T>
Kernel make_bins_kernel(bool in_shared) {
  return kernel(
      kernel_name<T>(in_shared ? "histogram.range" : "histogram.range.many"),
      [=](Group<2> g, Grid<T, 2> x, InOut<u32, 1> counts, Param<T> low, Param<T> high,
          Param<T> bins_per_unit) {
        const Val<i32> last = counts.size(0) - 1;
        count(g, x, counts, in_shared, [&](const Val<T>& v) {
          const Val<i32> bin = min(cast<i32>(floor((v - low) * bins_per_unit)), last);
          return select(v >= low && v <= high, bin, Val<i32>(-1));
        });
      },
      kOptions);
}

Extent groups_of(const Shape& shape) { return {shape[0], divide_up(shape[1], kChunk)}; }

void expect_counts(const Buffer& counts, std::string_view where) {
  expect_flat(counts, Storage::u32, counts.elements(), where);
  if (counts.elements() == 0 || counts.elements() > INT32_MAX)
    throw InputError(fmt::format("{} bins", counts.elements()), where, "1 to 2^31 - 1");
}

}  // namespace

template <class T>
const Kernel& histogram_kernel(bool in_shared) {
  static KernelTable<2> table;
  return table.get(in_shared, [&] { return make_histogram_kernel<T>(in_shared); });
}
template <class T>
const Kernel& bins_kernel(bool in_shared) {
  static KernelTable<2> table;
  return table.get(in_shared, [&] { return make_bins_kernel<T>(in_shared); });
}

void histogram(const Device& device, const Buffer& keys, const Buffer& counts, const Stream& stream) {
  const auto where = "primitives::histogram";
  expect_flat(keys, where);
  expect_counts(counts, where);
  if (keys.storage() != Storage::i32 && keys.storage() != Storage::u32)
    throw InputError(fmt::format("keys of {}", name(keys.storage())), where, "i32 or u32");
  device.clear(counts, stream);
  const bool in_shared = counts.elements() <= kSharedBins;
  const Kernel& kernel =
      keys.storage() == Storage::i32 ? histogram_kernel<i32>(in_shared) : histogram_kernel<u32>(in_shared);
  for_each_view(keys.elements(), [&](int64_t first, const Shape& shape) {
    device.launch_on(stream, kernel, groups_of(shape), view(keys, first, shape),
                     counts.reshape({counts.elements()}));
  });
}

void histogram(const Device& device, const Buffer& x, double low, double high, const Buffer& counts,
               const Stream& stream) {
  const auto where = "primitives::histogram";
  expect_flat(x, where);
  expect_counts(counts, where);
  if (!(low < high)) throw InputError(fmt::format("range {} to {}", low, high), where, "low < high");
  with_float(x.storage(), where, [&]<class T>(T) {
    device.clear(counts, stream);
    const T bins_per_unit = T(double(counts.elements()) / (double(T(high)) - double(T(low))));
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, bins_kernel<T>(counts.elements() <= kSharedBins), groups_of(shape),
                       view(x, first, shape), counts.reshape({counts.elements()}), T(low), T(high),
                       bins_per_unit);
    });
  });
}

template const Kernel& histogram_kernel<i32>(bool);
template const Kernel& histogram_kernel<u32>(bool);
template const Kernel& bins_kernel<f32>(bool);
template const Kernel& bins_kernel<f64>(bool);

}  // namespace lockstep::primitives
