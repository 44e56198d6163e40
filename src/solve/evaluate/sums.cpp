#include "solve/evaluate/sums.hpp"

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::solve {

namespace {

template <class T>
const Kernel& chunk_sums() {
  static const Kernel k = kernel("solve.chunk_sums." + std::string(name(lockstep::detail::kType<T>)),
                                 [](Group<1> g, Grid<T, 1> x, Out<T, 1> sums) {
                                   const Val<i32> first = g.id() * kSumChunk + g.lane(), size = x.size(0);
                                   Var<T> sum = T(0);
                                   for_(first, min(size, (g.id() + 1) * kSumChunk), kSumLanes,
                                        [&](Val<i32> at) { sum = sum + x[at]; });
                                   const Val<T> total = group_sum(Val<T>(sum));
                                   if_(g.lane() == 0, [&] { sums[g.id()] = total; });
                                 },
                                 {{kSumLanes, 1, 1}, 0});
  return k;
}

template <class T>
const Kernel& total_sum() {
  static const Kernel k =
      kernel("solve.total_sum." + std::string(name(lockstep::detail::kType<T>)),
             [](Group<1> g, Grid<T, 1> x, Out<T, 1> result) {
               Var<T> sum = T(0);
               for_(g.lane(), x.size(0), kSumLanes, [&](Val<i32> at) { sum = sum + x[at]; });
               const Val<T> total = group_sum(Val<T>(sum));
               if_(g.lane() == 0, [&] { result[Val<i32>(0)] = total; });
             },
             {{kSumLanes, 1, 1}, 0});
  return k;
}

}  // namespace

FixedSum::FixedSum(const Device& device, Storage storage, int64_t count)
    : device_(device),
      count_(count),
      partial_(device.allocate(storage, {std::max<int64_t>(chunks_of(count), 1)})) {}

void FixedSum::launch(const Buffer& x, const Buffer& result) const {
  const bool wide = x.storage() == Storage::f64;
  if (count_ <= kSumChunk) {
    device_.launch(wide ? total_sum<f64>() : total_sum<f32>(), {1}, x, result);
    return;
  }
  device_.launch(wide ? chunk_sums<f64>() : chunk_sums<f32>(), {chunks_of(count_)}, x, partial_);
  device_.launch(wide ? total_sum<f64>() : total_sum<f32>(), {1}, partial_, result);
}

std::vector<std::function<Kernel()>> FixedSum::kernels(Storage storage) const {
  const bool wide = storage == Storage::f64;
  std::vector<std::function<Kernel()>> kernels{[wide] { return wide ? total_sum<f64>() : total_sum<f32>(); }};
  if (count_ > kSumChunk) kernels.push_back([wide] { return wide ? chunk_sums<f64>() : chunk_sums<f32>(); });
  return kernels;
}

}  // namespace lockstep::solve
