#include "primitives/sums/chunked_sum.hpp"

#include "primitives/flat.hpp"

namespace lockstep::primitives {

namespace {

template <class T>
const Kernel& chunk_kernel() {
  static const Kernel k = kernel(
      kernel_name<T>("chunk_sums"),
      [](Group<1> g, Grid<T, 1> x, Out<T, 1> sums) {
        const Val<T> sum = chunk_sum<T>(
            g, x.size(0), [&](const Val<T>& before, const Val<i32>& at) { return before + x[at]; });
        if_(g.lane() == 0, [&] { sums[g.id()] = sum; });
      },
      kSumGroup);
  return k;
}

template <class T>
const Kernel& total_kernel() {
  static const Kernel k = kernel(
      kernel_name<T>("total_sum"),
      [](Group<1> g, Grid<T, 1> x, Out<T, 1> result) {
        const Val<T> sum = strided_sum<T>(g, x);
        if_(g.lane() == 0, [&] { result[Val<i32>(0)] = sum; });
      },
      kSumGroup);
  return k;
}

Kernel chunk_kernel_of(Storage storage) {
  return storage == Storage::f64 ? chunk_kernel<f64>() : chunk_kernel<f32>();
}
Kernel total_kernel_of(Storage storage) {
  return storage == Storage::f64 ? total_kernel<f64>() : total_kernel<f32>();
}

}  // namespace

void ChunkedSum::launch(const Buffer& x, const Buffer& result) const {
  if (count_ > kSumChunk) device_.launch(chunk_kernel_of(x.storage()), {sum_chunks(count_)}, x, partial_);
  device_.launch(total_kernel_of(x.storage()), {1}, count_ > kSumChunk ? partial_ : x, result);
}

std::vector<std::function<Kernel()>> ChunkedSum::kernels(Storage storage) const {
  std::vector<std::function<Kernel()>> kernels{[=] { return total_kernel_of(storage); }};
  if (count_ > kSumChunk) kernels.push_back([=] { return chunk_kernel_of(storage); });
  return kernels;
}

}  // namespace lockstep::primitives
