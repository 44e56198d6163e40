// Reductions by the one tree that primitives.hpp describes.
#include <limits>
#include <vector>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/sums/tree.hpp"

namespace lockstep::primitives {

namespace {

/// Whether NaN is tracked separately: min and max of floats drop it, one instruction each.
template <class T>
constexpr bool watches_nan(Chunk how) {
  return std::is_floating_point_v<T> && (how == Chunk::min || how == Chunk::max);
}

template <class T>
Val<T> combine(Chunk how, Val<T> a, Val<T> b) {
  return how == Chunk::min ? min(a, b) : how == Chunk::max ? max(a, b) : a + b;
}

/// The tree over the lanes; `nan` is true if the lane has met one.
template <class T>
Val<T> over_lanes(Chunk how, Val<T> v, Val<bool> nan) {
  const Val<T> value = how == Chunk::min ? group_min(v) : how == Chunk::max ? group_max(v) : group_sum(v);
  if constexpr (std::is_floating_point_v<T>)
    if (watches_nan<T>(how))
      return select(group_max(cast<u32>(nan)) != 0u, Val<T>(std::numeric_limits<T>::quiet_NaN()), value);
  return value;
}

/// The part of a lane in the reduction of a chunk of a row of x (and y, for dot).
template <class T>
class ChunkLane {
 public:
  ChunkLane(Chunk how, bool wide, const Grid<T, 2>& x, const Grid<T, 2>& y, const Val<i32>& row,
            const Val<i32>& begin, const Val<i32>& lane)
      : how_(how),
        wide_(wide),
        x_(x),
        y_(y),
        row_(row),
        a_(values(neutral<T>(how))),
        nan_(Val<bool>(false)),
        begin_(begin),
        own_(begin + lane * kWide) {}

  /// A whole chunk. All loads first, so that they overlap.
  void full() {
    std::vector<Wide<T, kWide>> u, v;
    for (int r = 0; r < kReduceRounds; ++r) {
      u.push_back(read(x_, own_ + r * kRound));
      if (how_ == Chunk::dot) v.push_back(read(y_, own_ + r * kRound));
    }
    for (int r = 0; r < kReduceRounds; ++r)
      for (int j = 0; j < kWide; ++j)
        take(j, u[size_t(r)][j], how_ == Chunk::dot ? v[size_t(r)][j] : u[size_t(r)][j]);
  }
  /// The same, looking for NaN. 0 times the elements is NaN where one is NaN or infinite: only then are they
  /// looked at singly. Each element is used twice; a loop keeps the registers few.
  void full_with_nan() {
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<Var<T>> zero = values(T(0));
      for_(0, kReduceRounds, [&](Val<i32> r) {
        const auto four = read(x_, own_ + r * kRound);
        for (int j = 0; j < kWide; ++j) {
          take(j, four[j], four[j]);
          zero[size_t(j)] = fma(four[j], T(0), zero[size_t(j)]);
        }
      });
      if_(isnan((zero[0] + zero[1]) + (zero[2] + zero[3])), [&] {
        for_(0, kReduceRounds, [&](Val<i32> r) {
          for (int j = 0; j < kWide; ++j) nan_ = Val<bool>(nan_) || isnan(x_(row_, own_ + r * kRound + j));
        });
      });
    }
  }
  /// The last chunk of a row: the rounds that it has. Loads do not wait for the comparisons.
  void partial(const Val<i32>& columns) {
    for_(0, (columns - begin_ + (kRound - 1)) / kRound, [&](Val<i32> r) {
      std::vector<Val<T>> u, v;
      for (int j = 0; j < kWide; ++j) {
        const Val<i32> at = min(own_ + r * kRound + j, columns - 1);
        u.push_back(x_(row_, at));
        if (how_ == Chunk::dot) v.push_back(y_(row_, at));
      }
      for (int j = 0; j < kWide; ++j)
        if_(own_ + r * kRound + j < columns, [&] {
          take(j, u[size_t(j)], how_ == Chunk::dot ? v[size_t(j)] : u[size_t(j)]);
          if constexpr (std::is_floating_point_v<T>)
            if (watches_nan<T>(how_)) nan_ = Val<bool>(nan_) || isnan(u[size_t(j)]);
        });
    });
  }
  /// The group's value.
  Val<T> result() {
    const Val<T> low = combine<T>(how_, a_[0], a_[1]), high = combine<T>(how_, a_[2], a_[3]);
    return over_lanes<T>(how_, combine<T>(how_, low, high), nan_);
  }

 private:
  static std::vector<Var<T>> values(T start) {
    std::vector<Var<T>> list;
    list.reserve(kWide);
    for (int j = 0; j < kWide; ++j) list.emplace_back(start);
    return list;
  }
  void take(int j, const Val<T>& u, const Val<T>& v) {
    Var<T>& sum = a_[size_t(j)];
    sum = how_ == Chunk::dot ? multiply_add(u, v, Val<T>(sum)) : combine<T>(how_, sum, u);
  }
  Wide<T, kWide> read(const Grid<T, 2>& from, const Val<i32>& at) const {
    const auto once = from.streaming();
    if (wide_) return once.template wide<kWide>(row_, at);
    return Wide<T, kWide>{{once(row_, at), once(row_, at + 1), once(row_, at + 2), once(row_, at + 3)}};
  }

  Chunk how_;
  bool wide_;
  const Grid<T, 2>&x_, &y_;
  Val<i32> row_;
  std::vector<Var<T>> a_;
  Var<bool> nan_;
  Val<i32> begin_, own_;  // the chunk's first column, the lane's
};

template <class T>
Kernel make_reduce_kernel(Chunk how, bool wide) {
  // x and y are rows of the flat view; y is read for dot only. Group (chunk of the row, row).
  const auto body = [=](Group<2> g, const Grid<T, 2>& x, const Grid<T, 2>& y, const Out<T, 1>& values,
                        Val<i32> first_chunk) {
    const Val<i32> row = g.id(1), lane = g.lane();
    const Val<i32> begin = g.id(0) * int(kReduceChunk), columns = x.size(1);
    ChunkLane<T> own(how, wide, x, y, row, begin, lane);
    const Val<bool> whole = uniform(begin <= columns - int(kReduceChunk));
    const auto partial = [&] { own.partial(columns); };
    if (watches_nan<T>(how))
      if_(whole, [&] { own.full_with_nan(); }, partial);
    else
      if_(whole, [&] { own.full(); }, partial);
    const Val<T> value = own.result();
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
