// Reductions by the one tree that primitives.hpp describes.
#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/sums/chunk.hpp"

namespace lockstep::primitives {

namespace {

template <class T>
Kernel make_reduce_kernel(Chunk how, bool wide) {
  // x and y are rows of the flat view; y is read for dot only. Group (chunk of the row, row).
  const auto body = [=](Group<2> g, const Grid<T, 2>& x, const Grid<T, 2>& y, const Out<T, 1>& values,
                        Val<i32> first_chunk) {
    const Val<i32> row = g.id(1), lane = g.lane();
    const Val<T> value = chunk_value<T>(how, wide, x, y, row, g.id(0) * int(kReduceChunk), x.size(1), lane);
    if_(lane == 0, [&] { values[first_chunk + row * g.count(0) + g.id(0)] = value; });
  };
  const KernelOptions options{{kLanes, 1, 1}, 0};
  static constexpr const char* kNames[] = {"sum", "min", "max", "dot"};
  const std::string name =
      kernel_name<T>(std::string("reduce.") + kNames[int(how)] + (wide ? "" : ".narrow"));
  if (how == Chunk::dot)
    return kernel(
        name,
        [=](Group<2> g, Grid<T, 2> x, Grid<T, 2> y, Out<T, 1> values, Param<i32> first) {
          body(g, x, y, values, first);
        },
        options);
  return kernel(
      name,
      [=](Group<2> g, Grid<T, 2> x, Out<T, 1> values, Param<i32> first) { body(g, x, x, values, first); },
      options);
}

/// One level of the tree: values of the chunks of x (and y) into `values`.
template <class T>
void reduce_level(const Device& device, Chunk how, const Buffer& x, const Buffer& y, const Buffer& values,
                  const Stream& stream) {
  const bool wide = wide_aligned(x) && (how != Chunk::dot || wide_aligned(y));
  const Kernel kernel = reduce_kernel<T>(how, wide);
  for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
    const Shape groups{shape[0], divide_up(shape[1], kReduceChunk)};
    const int64_t first_chunk = first / kReduceChunk;
    if (how == Chunk::dot)
      device.launch_on(stream, kernel, groups, view(x, first, shape), view(y, first, shape), values,
                       first_chunk);
    else
      device.launch_on(stream, kernel, groups, view(x, first, shape), values, first_chunk);
  });
}

template <class T>
void reduce_all(const Device& device, Chunk how, const Buffer& x, const Buffer& y, const Buffer& result,
                const Stream& stream) {
  if (x.elements() == 0) {
    const T value = how == Chunk::sum || how == Chunk::dot ? T(0) : neutral<T>(how);
    device.launch_on(stream, fill_kernel<T>(), {1, 1}, result.reshape({1, 1}), double(value));
    return;
  }
  Buffer now = x, other = y, target;
  do {
    const int64_t chunks = divide_up(now.elements(), kReduceChunk);
    target = chunks == 1 ? result.reshape({1}) : device.allocate<T>({chunks});
    reduce_level<T>(device, how, now, other, target, stream);
    now = target;
    if (how == Chunk::dot) how = Chunk::sum;
  } while (now.elements() > 1);
}

void expect_result(const Buffer& result, const Buffer& x, std::string_view where) {
  expect_flat(x, where);
  expect_flat(result, x.storage(), 1, where);
}

template <class T, class Work>
T number(const Device& device, const Buffer& x, std::string_view where, Work work) {
  expect_flat(x, detail::kStorage<T>, x.elements(), where);
  const Buffer result = device.allocate<T>({1});
  work(result);
  return device.download<T>(result)[0];
}

}  // namespace

template <class T>
Kernel reduce_kernel(Chunk how, bool wide) {
  static Memo<std::pair<Chunk, bool>, Kernel> kernels;
  return kernels.get({how, wide}, [&] { return make_reduce_kernel<T>(how, wide); });
}
template <class T>
const Kernel& root_kernel() {
  static const Kernel k =
      kernel(kernel_name<T>("root"), [](At<1> at, InOut<T, 1> x) { x[at] = sqrt(x[at]); });
  return k;
}

void reduce(const Device& device, Reduce how, const Buffer& x, const Buffer& result, const Stream& stream) {
  expect_result(result, x, "primitives::reduce");
  with_element(x.storage(), "primitives::reduce",
               [&]<class T>(T) { reduce_all<T>(device, Chunk(int(how)), x, x, result, stream); });
}
void dot(const Device& device, const Buffer& x, const Buffer& y, const Buffer& result, const Stream& stream) {
  expect_result(result, x, "primitives::dot");
  expect_flat(y, x.storage(), x.elements(), "primitives::dot");
  with_float(x.storage(), "primitives::dot",
             [&]<class T>(T) { reduce_all<T>(device, Chunk::dot, x, y, result, stream); });
}
void norm(const Device& device, const Buffer& x, const Buffer& result, const Stream& stream) {
  dot(device, x, x, result, stream);
  with_float(x.storage(), "primitives::norm",
             [&]<class T>(T) { device.launch_on(stream, root_kernel<T>(), {1}, result.reshape({1})); });
}

template <class T>
T sum(const Device& device, const Buffer& x) {
  return number<T>(device, x, "primitives::sum", [&](const Buffer& r) { reduce(device, Reduce::sum, x, r); });
}
template <class T>
T min(const Device& device, const Buffer& x) {
  return number<T>(device, x, "primitives::min", [&](const Buffer& r) { reduce(device, Reduce::min, x, r); });
}
template <class T>
T max(const Device& device, const Buffer& x) {
  return number<T>(device, x, "primitives::max", [&](const Buffer& r) { reduce(device, Reduce::max, x, r); });
}
template <class T>
T dot(const Device& device, const Buffer& x, const Buffer& y) {
  return number<T>(device, x, "primitives::dot", [&](const Buffer& r) { dot(device, x, y, r); });
}
template <class T>
T norm(const Device& device, const Buffer& x) {
  return number<T>(device, x, "primitives::norm", [&](const Buffer& r) { norm(device, x, r); });
}

#define LOCKSTEP_INSTANCE(T)                       \
  template Kernel reduce_kernel<T>(Chunk, bool);   \
  template T sum<T>(const Device&, const Buffer&); \
  template T min<T>(const Device&, const Buffer&); \
  template T max<T>(const Device&, const Buffer&);
LOCKSTEP_INSTANCE(f32)
LOCKSTEP_INSTANCE(f64)
LOCKSTEP_INSTANCE(i32)
LOCKSTEP_INSTANCE(u32)
#undef LOCKSTEP_INSTANCE
#define LOCKSTEP_INSTANCE(T)                                      \
  template const Kernel& root_kernel<T>();                        \
  template T dot<T>(const Device&, const Buffer&, const Buffer&); \
  template T norm<T>(const Device&, const Buffer&);
LOCKSTEP_INSTANCE(f32)
LOCKSTEP_INSTANCE(f64)
#undef LOCKSTEP_INSTANCE

}  // namespace lockstep::primitives
