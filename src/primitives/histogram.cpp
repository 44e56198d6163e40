// Histograms by integer atomics: the counts do not depend on their order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kGroupLanes = 256;

/// Where a group counts: in shared memory for `bins` bins at most, over a chunk large enough that writing its
/// counts out costs little; 0 = in the result itself.
struct Variant {
  int bins, chunk;
};
constexpr Variant kVariants[kHistogramVariants] = {{2048, 16384}, {8192, 65536}, {0, 16384}};

int variant_for(const Device& device, int64_t bins) {
  int v = 0;
  while (kVariants[v].bins != 0 &&
         (bins > kVariants[v].bins || device.info().limits.shared_bytes < 4 * kVariants[v].bins))
    ++v;
  return v;
}

/// Counts the bins of a group's elements; `bin_of` gives the bin of an element, negative for none.
template <class G, class Bin>
void count(const Group<2>& g, const G& from, const InOut<u32, 1>& counts, Variant variant, Bin bin_of) {
  const Val<i32> bins = counts.size(0), lane = g.lane(), row = g.id(1);
  const auto each = [&](auto add) {
    const Val<i32> begin = g.id(0) * variant.chunk;
    for_(begin + lane, min(begin + variant.chunk, from.size(1)), kGroupLanes, [&](Val<i32> at) {
      const Val<i32> bin = bin_of(from(row, at));
      if_(bin >= 0 && bin < bins, [&] { add(bin); });
    });
  };
  if (variant.bins == 0) return each([&](Val<i32> bin) { counts.atomic_add(bin, 1u); });
  const SharedArray<u32> own(variant.bins);
  for_(lane, bins, kGroupLanes, [&](Val<i32> bin) { own[bin] = 0u; });
  barrier();
  each([&](Val<i32> bin) { own.atomic_add(bin, 1u); });
  barrier();
  for_(lane, bins, kGroupLanes, [&](Val<i32> bin) {
    const Val<u32> n = own[bin];
    if_(n != 0u, [&] { counts.atomic_add(bin, n); });
  });
}

const KernelOptions kOptions{{kGroupLanes, 1, 1}, 0};
std::string suffix(int variant) { return variant == 0 ? "" : kVariants[variant].bins ? ".large" : ".many"; }

template <class T>
Kernel make_histogram_kernel(int variant) {
  return kernel(
      kernel_name<T>("histogram" + suffix(variant)),
      [=](Group<2> g, Grid<T, 2> keys, InOut<u32, 1> counts) {
        // A u32 of 2^31 or more is negative as i32, and outside all the same.
        count(g, keys, counts, kVariants[variant], [](const Val<T>& key) { return cast<i32>(key); });
      },
      kOptions);
}
template <class T>
Kernel make_bins_kernel(int variant) {
  return kernel(
      kernel_name<T>("histogram.range" + suffix(variant)),
      [=](Group<2> g, Grid<T, 2> x, InOut<u32, 1> counts, Param<T> low, Param<T> high, Param<T> scale,
          Param<T> scaled_low, Param<T> bins_per_unit) {
        const Val<i32> last = counts.size(0) - 1;
        count(g, x, counts, kVariants[variant], [&](const Val<T>& v) {
          const Val<i32> bin = clamp(cast<i32>(floor((v * scale - scaled_low) * bins_per_unit)), 0, last);
          return select(v >= low && v <= high, bin, Val<i32>(-1));
        });
      },
      kOptions);
}

/// A range as the kernel takes it: elements are multiplied by `scale`, a power of two, which is 1 unless the length of the
/// range or the bins in a unit of it are no normal numbers.
template <class T>
struct Range {
  T low, high, scale = 1, bins_per_unit;
  Range(double low_end, double high_end, int64_t bins)
      : low(T(low_end)), high(T(high_end)), bins_per_unit(per_unit(bins)) {
    if (std::isfinite(high - low) && std::isnormal(bins_per_unit)) return;
    constexpr int kFarthest = std::numeric_limits<T>::max_exponent - 24;
    scale = std::ldexp(T(1), -std::clamp(std::ilogb(high / 2 - low / 2), -kFarthest, kFarthest));
    bins_per_unit = per_unit(bins);
  }

 private:
  T per_unit(int64_t bins) const { return T(double(bins) / (double(high * scale) - double(low * scale))); }
};

Shape groups_of(const Shape& shape, int variant) {
  return {shape[0], divide_up(shape[1], kVariants[variant].chunk)};
}

void expect_counts(const Buffer& counts, std::string_view where) {
  expect_flat(counts, Storage::u32, counts.elements(), where);
  if (counts.elements() == 0 || counts.elements() > INT32_MAX)
    throw InputError(fmt::format("{} bins", counts.elements()), where, "1 to 2^31 - 1");
}

}  // namespace

template <class T>
Kernel histogram_kernel(int variant) {
  static Memo<int, Kernel> kernels;
  return kernels.get(variant, [&] { return make_histogram_kernel<T>(variant); });
}
template <class T>
Kernel bins_kernel(int variant) {
  static Memo<int, Kernel> kernels;
  return kernels.get(variant, [&] { return make_bins_kernel<T>(variant); });
}

void histogram(const Device& device, const Buffer& keys, const Buffer& counts, const Stream& stream) {
  const auto where = "primitives::histogram";
  expect_flat(keys, where);
  expect_counts(counts, where);
  if (keys.storage() != Storage::i32 && keys.storage() != Storage::u32)
    throw InputError(fmt::format("keys of {}", name(keys.storage())), where, "i32 or u32");
  device.clear(counts, stream);
  const int variant = variant_for(device, counts.elements());
  const Kernel& kernel =
      keys.storage() == Storage::i32 ? histogram_kernel<i32>(variant) : histogram_kernel<u32>(variant);
  for_each_view(keys.elements(), [&](int64_t first, const Shape& shape) {
    device.launch_on(stream, kernel, groups_of(shape, variant), view(keys, first, shape),
                     counts.reshape({counts.elements()}));
  });
}

void histogram(const Device& device, const Buffer& x, double low, double high, const Buffer& counts,
               const Stream& stream) {
  const auto where = "primitives::histogram";
  expect_flat(x, where);
  expect_counts(counts, where);
  with_float(x.storage(), where, [&]<class T>(T) {
    if (!(T(low) < T(high)) || std::isinf(T(low)) || std::isinf(T(high)))
      throw InputError(fmt::format("range {} to {}", low, high), where,
                       fmt::format("low < high, finite as {}", name(x.storage())));
    const Range<T> range(low, high, counts.elements());
    device.clear(counts, stream);
    const int variant = variant_for(device, counts.elements());
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, bins_kernel<T>(variant), groups_of(shape, variant), view(x, first, shape),
                       counts.reshape({counts.elements()}), range.low, range.high, range.scale,
                       range.low * range.scale, range.bins_per_unit);
    });
  });
}

template Kernel histogram_kernel<i32>(int);
template Kernel histogram_kernel<u32>(int);
template Kernel bins_kernel<f32>(int);
template Kernel bins_kernel<f64>(int);

}  // namespace lockstep::primitives
