#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/memo.hpp"
#include "lockstep/error.hpp"
#include "pde/kernels/value.hpp"

namespace lockstep::pde {

namespace {

constexpr int kAtOnce = 4;                       // loads of a lane before its stores
constexpr int kOfALaunch = 8;                    // arrays
constexpr int64_t kElements = int64_t(1) << 30;  // of an array of a launch

Kernel kept_scale_kernel(Storage arrays, Storage seed, int count) {
  static Memo<std::tuple<Storage, Storage, int>, Kernel> kept;
  return kept.get({arrays, seed, count}, [&] { return scale_kernel(arrays, seed, count); });
}

}  // namespace

Kernel scale_kernel(Storage storage, Storage seed_storage, int count) {
  const auto body = [&](At<1> at, Parameters& p) {
    const AnyGrid seed = p.read("seed", seed_storage, 1);
    std::vector<AnyGrid> arrays;
    for (int k = 0; k < count; ++k) arrays.push_back(p.read_write(fmt::format("array{}", k), storage, 1));
    const AnyVal quotient = seed.load({0}) / p.scalar("scale", seed.type());
    if_(quotient != 1, [&] {
      for (const AnyGrid& a : arrays) {
        const AnyVal factor = quotient.convert(a.type());
        const Index size = a.size(0);
        for_(Index(at.x), size, kAtOnce * kScaleLanes, [&](const Index& first) {
          const auto place = [&](int k) { return first + k * kScaleLanes; };
          const auto one = [&](int k) { a.store({place(k)}, a.load({place(k)}) * factor); };
          if_(
              place(kAtOnce - 1) < size,
              [&] {
                std::vector<AnyVal> read;
                for (int k = 0; k < kAtOnce; ++k) read.push_back(a.load({place(k)}));
                for (int k = 0; k < kAtOnce; ++k) a.store({place(k)}, read[size_t(k)] * factor);
              },
              [&] {
                for (int k = 0; k < kAtOnce - 1; ++k) if_(place(k) < size, [&] { one(k); });
              });
        });
      }
    });
  };
  return kernel(
      fmt::format("pde.scale.{}.{}.{}", lockstep::name(storage), lockstep::name(seed_storage), count), body);
}

void scale_gradients(const Device& device, std::span<const Buffer> arrays, const Buffer& seed, double scale) {
  if (!seed || seed.elements() != 1 || (seed.storage() != Storage::f32 && seed.storage() != Storage::f64))
    throw InputError(
        seed ? fmt::format("a seed of {} {}", name(seed.storage()), to_string(seed.shape())) : "no seed",
        "scale_gradients", "f32 or f64 of shape (1)");
  if (!std::isfinite(scale) || scale == 0)
    throw InputError(fmt::format("scale {}", scale), "scale_gradients", "a finite number other than 0");
  std::vector<Buffer> pieces;
  int64_t longest = 0;
  for (const Buffer& a : arrays) {
    if (a.storage() != arrays[0].storage() || !a.contiguous())
      throw InputError(fmt::format("an array of {} {}", name(a.storage()), to_string(a.shape())),
                       "scale_gradients", fmt::format("contiguous ones of {}", name(arrays[0].storage())));
    const Buffer flat = a.reshape({a.elements()});
    longest = std::max(longest, a.elements());
    for (int64_t first = 0; first < a.elements(); first += kElements)
      pieces.push_back(flat.rows(first, std::min(kElements, a.elements() - first)));
  }
  // Lanes beyond the longest array would have nothing to do.
  const Shape lanes{std::min<int64_t>(kScaleLanes, longest)};
  for (size_t first = 0; first < pieces.size(); first += kOfALaunch) {
    const size_t count = std::min<size_t>(kOfALaunch, pieces.size() - first);
    std::vector<Argument> list{seed.reshape({1})};
    list.insert(list.end(), pieces.begin() + int64_t(first), pieces.begin() + int64_t(first + count));
    list.emplace_back(scale);
    device.launch_with(kept_scale_kernel(pieces[0].storage(), seed.storage(), int(count)), lanes, list, {});
  }
}

}  // namespace lockstep::pde
