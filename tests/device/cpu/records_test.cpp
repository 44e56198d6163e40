// Neighbouring elements at places of each lane's own: records, rows of records, fetching ahead of groups.
#include <algorithm>
#include <array>
#include <deque>
#include <string>

#include "compile/llvm/emit.hpp"
#include "device/cpu/support.hpp"

namespace lockstep {
namespace {

using test::cpu;
using test::differing;
using test::random_numbers;

constexpr int kSizes[] = {1, 5, 15, 16, 17, 64, 333};

/// Place of lane k among n, each taken once; -1 for every seventh.
std::vector<int32_t> shuffled_places(int n) {
  std::vector<int32_t> places(static_cast<size_t>(n));
  for (int k = 0; k < n; ++k) places[size_t(k)] = k;
  std::shuffle(places.begin(), places.end(), std::mt19937(unsigned(n)));
  for (int k = 3; k < n; k += 7) places[size_t(k)] = -1;
  return places;
}

/// out[c][k] = x[place[k] * stride + c], and y[place[k] * stride + c] = x of lane k, for c < width.
template <class T>
void check_records(int stride, int width) {
  const Device device = cpu();
  const Kernel load =
      kernel("test.records.load", [=](At<1> at, Grid<i32, 1> place, Grid<T, 1> x, Out<T, 2> out) {
        const Val<i32> first = place[at] * stride;
        for (int c = 0; c < width; ++c) out(Val<i32>(c), at.x) = T(0);
        if_(first >= 0, [&] {
          for (int c = width; c-- > 0;) out(Val<i32>(c), at.x) = x(first + c);
        });
      });
  const Kernel store =
      kernel("test.records.store", [=](At<1> at, Grid<i32, 1> place, Grid<T, 1> x, InOut<T, 1> y) {
        const Val<i32> first = place[at] * stride;
        if_(first >= 0, [&] {
          for (int c = 0; c < width; ++c) y(first + c) = x(at.x * stride + c) + Val<T>(y(first + c));
        });
      });
  for (int n : kSizes) {
    SCOPED_TRACE(testing::Message() << name(detail::kType<T>) << " stride " << stride << " width " << width
                                    << " n " << n);
    const auto places = shuffled_places(n);
    const auto x = random_numbers<T>(size_t(n) * size_t(stride), T(-9), T(9));
    const Buffer pb = device.upload<int32_t>(places), xb = device.upload<T>(x),
                 out = device.allocate<T>({width, n}), yb = device.upload<T>(x);
    device.launch(load, {n}, pb, xb, out);
    device.launch(store, {n}, pb, xb, yb);
    std::vector<T> wanted(size_t(n) * size_t(width), T(0)), y = x;
    for (int k = 0; k < n; ++k)
      for (int c = 0; c < width && places[size_t(k)] >= 0; ++c) {
        const size_t from = size_t(places[size_t(k)] * stride + c);
        wanted[size_t(c * n + k)] = x[from];
        y[from] = x[size_t(k * stride + c)] + x[from];
      }
    EXPECT_EQ(differing(device.download<T>(out), wanted), 0);
    EXPECT_EQ(differing(device.download<T>(yb), y), 0);
  }
}

TEST(Records, EveryWidthAndStrideOfEveryType) {
  for (int stride : {2, 3, 4, 5, 8})
    for (int width = 1; width <= std::min(stride, 6); ++width) {
      check_records<f32>(stride, width);
      check_records<f64>(stride, width);
    }
  check_records<i32>(3, 3);
  check_records<u32>(2, 2);
}

/// Rows: lane k has elements k * stride + c, without a place out of memory.
template <class T>
void check_rows(int stride, int width, int first) {
  const Device device = cpu();
  const Kernel k = kernel("test.rows", [=](At<1> at, Grid<T, 1> x, InOut<T, 1> y) {
    std::vector<Val<T>> values;
    for (int c = 0; c < width; ++c) values.push_back(x(at.x * stride + (first + c)));
    for (int c = 0; c < width; ++c) y(at.x * stride + (first + c)) = values[size_t(width - 1 - c)];
  });
  for (int n : kSizes) {
    SCOPED_TRACE(testing::Message() << "stride " << stride << " width " << width << " n " << n);
    const auto x = random_numbers<T>(size_t(n) * size_t(stride), T(-9), T(9));
    const std::vector<T> before(x.size(), T(77));
    const Buffer xb = device.upload<T>(x), yb = device.upload<T>(before);
    device.launch(k, {n}, xb, yb);
    std::vector<T> y = before;
    for (int l = 0; l < n; ++l)
      for (int c = 0; c < width; ++c)
        y[size_t(l * stride + first + c)] = x[size_t(l * stride + first + width - 1 - c)];
    EXPECT_EQ(differing(device.download<T>(yb), y), 0);
  }
}

TEST(Records, RowsOfNeighbouringLanes) {
  for (int stride : {2, 3, 4, 5})
    for (int width = 2; width <= stride; ++width) {
      check_rows<f32>(stride, width, 0);
      check_rows<f64>(stride, width, 0);
      if (width < stride) check_rows<f32>(stride, width, 1);
    }
}

// Reads and writes of a lane keep their order, regardless of which accesses are combined.
TEST(Records, OrderWithinALane) {
  const Device device = cpu();
  const Kernel k = kernel("test.records.order", [](At<1> at, Grid<i32, 1> place, InOut<f32, 1> y) {
    const Val<i32> p = place[at] * 4;
    const Val<f32> a = y(p), b = y(p + 1);
    y(p + 1) = a + 10.0f;
    const Val<f32> c = y(p + 1);
    y(p) = c + b;
    y(p + 2) = Val<f32>(y(p)) + Val<f32>(y(p + 3));
    y(p + 3) = c;
  });
  for (int n : kSizes) {
    std::vector<int32_t> places(static_cast<size_t>(n));
    for (int l = 0; l < n; ++l) places[size_t(l)] = n - 1 - l;
    std::vector<float> y = random_numbers<float>(size_t(4 * n), -9, 9);
    const Buffer pb = device.upload<int32_t>(places), yb = device.upload<float>(y);
    device.launch(k, {n}, pb, yb);
    for (int l = 0; l < n; ++l) {
      float* r = &y[size_t(4 * l)];
      const float a = r[0], b = r[1];
      r[1] = a + 10.0f;
      const float c = r[1];
      r[0] = c + b;
      r[2] = r[0] + r[3];
      r[3] = c;
    }
    EXPECT_EQ(differing(device.download<float>(yb), y), 0) << n;
  }
}

// Groups whose blocks are in memory, through shared records; the last group is smaller than the others.
TEST(Records, GroupsFetchAheadWithinTheirTable) {
  for (const auto& group : {std::array<int, 3>{64, 1, 1}, std::array<int, 3>{5, 3, 1}}) {
    const int lanes = group[0] * group[1];
    KernelOptions options;
    options.group = {group[0], group[1], group[2]};
    const Kernel k = kernel(
        "test.records.groups",
        [=](Group<1> g, Grid<i32, 1> table, Grid<i32, 1> block, Grid<f32, 1> x, InOut<f32, 1> y) {
          const Val<i32> first = uniform(table[g.id()]), last = uniform(table[g.id() + 1]);
          const Val<i32> own = first + g.lane();
          SharedArray<f32> shared(lanes * 4);
          if_(own < last, [&] {
            const Val<i32> at = block[own] * 3;
            for (int c = 0; c < 3; ++c) shared[g.lane() * 4 + c] = x(at + c);
          });
          barrier();
          if_(own < last, [&] {
            const Val<i32> other = (last - first - 1 - g.lane()) * 4, to = block[own];
            if_(to != 2, [&] {
              for (int c = 0; c < 3; ++c) y(to * 3 + c) = shared[other + c] * 2.0f;
            });
          });
        },
        options);
    for (int groups : {1, 2, 7}) {
      std::vector<int32_t> table{0}, blocks;
      for (int i = 0; i < groups; ++i) table.push_back(table.back() + (i + 1 == groups ? 3 : lanes - i));
      blocks.resize(size_t(table.back()));
      for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = int32_t(i);
      std::shuffle(blocks.begin(), blocks.end(), std::mt19937(7));
      const auto x = random_numbers<float>(3 * blocks.size(), -9, 9);
      std::vector<float> y(x.size(), 5.0f);
      const Device device = cpu();
      const Buffer out = device.upload<float>(y);
      device.launch(k, {groups}, device.upload<int32_t>(table), device.upload<int32_t>(blocks),
                    device.upload<float>(x), out);
      for (int i = 0; i < groups; ++i)
        for (int l = table[size_t(i)]; l < table[size_t(i) + 1]; ++l) {
          const int from = table[size_t(i)] + table[size_t(i) + 1] - 1 - l;
          if (blocks[size_t(l)] == 2) continue;
          for (int c = 0; c < 3; ++c)
            y[size_t(blocks[size_t(l)] * 3 + c)] = x[size_t(blocks[size_t(from)] * 3 + c)] * 2.0f;
        }
      EXPECT_EQ(differing(device.download<float>(out), y), 0) << lanes << " lanes, " << groups << " groups";
    }
  }
}

/// How a component of `sum` takes those of two records.
enum class Taking { adds, signs, parts };

/// Lane k: for row in [first[k], last[k]) by `step`, `width` components of the records at entry[row] and next to it.
template <class T>
Kernel sums_kernel(int width, int stride, int step, Taking taking) {
  return kernel("test.records.sums", [=](At<1> at, Grid<i32, 1> first, Grid<i32, 1> last, Grid<i32, 1> entry,
                                         Grid<T, 1> x, Out<T, 2> out) {
    for (int c = 0; c < width; ++c) out(Val<i32>(c), at.x) = T(-1);
    if_(first[at] != 7, [&] {
      std::deque<Var<T>> sums;
      for (int c = 0; c < width; ++c) sums.emplace_back(T(c) / 4);
      for_(first[at], last[at], step, [&](Val<i32> row) {
        const Val<i32> e = entry[row];
        const Val<bool> minus = (e & 1) != 0;
        for (int c = 0; c < width; ++c) {
          const Val<T> v = x(e * stride + c);
          sums[size_t(c)] += taking == Taking::signs ? select(minus, -v, v) : v;
        }
        for (int c = 0; c < width; ++c) {
          const Val<T> v = x((e + 1) * stride + c), sum = sums[size_t(c)];
          sums[size_t(c)] = taking == Taking::parts && c == 1 ? sum + v : sum - v;
        }
      });
      for (int c = 0; c < width; ++c) out(Val<i32>(c), at.x) = Val<T>(sums[size_t(c)]);
    });
  });
}

template <class T>
void check_sums(int width, int stride, int step, Taking taking) {
  constexpr int kRecords = 50;
  const Kernel k = sums_kernel<T>(width, stride, step, taking);
  const bool one_by_one =
      compile::emit_llvm(k.function(), Numerics::exact, false, "x86-64-v4").find("lane_body") !=
      std::string::npos;
  EXPECT_EQ(one_by_one, taking != Taking::parts && width > 1);
  const Device device = cpu();
  for (int n : kSizes) {
    SCOPED_TRACE(testing::Message() << name(detail::kType<T>) << " width " << width << " step " << step
                                    << " n " << n);
    const auto entry = random_numbers<int32_t>(200, 0, kRecords - 2, unsigned(n));
    auto first = random_numbers<int32_t>(size_t(n), 0, 180, 2),
         last = random_numbers<int32_t>(size_t(n), -4, 19, 3);
    for (int l = 0; l < n; ++l) {
      last[size_t(l)] += first[size_t(l)];
      if (step < 0) std::swap(first[size_t(l)], last[size_t(l)]);
      if (step < 0) first[size_t(l)] = std::max(first[size_t(l)], 0);
    }
    const auto x = random_numbers<T>(size_t(kRecords * stride), T(-9), T(9));
    const Buffer out = device.allocate<T>({width, n});
    device.launch(k, {n}, device.upload<int32_t>(first), device.upload<int32_t>(last),
                  device.upload<int32_t>(entry), device.upload<T>(x), out);
    std::vector<T> wanted;
    for (int c = 0; c < width; ++c)
      for (int l = 0; l < n; ++l) {
        const int from = first[size_t(l)], to = last[size_t(l)];
        T sum = T(c) / 4;
        for (int row = from; step > 0 ? row < to : row > to; row += step) {
          const int e = entry[size_t(row)];
          const T v = x[size_t(e * stride + c)], w = x[size_t((e + 1) * stride + c)];
          sum += taking == Taking::signs && e % 2 != 0 ? -v : v;
          sum = taking == Taking::parts && c == 1 ? sum + w : sum - w;
        }
        wanted.push_back(from == 7 ? T(-1) : sum);
      }
    EXPECT_EQ(differing(device.download<T>(out), wanted), 0);
  }
}

TEST(Records, SumsOverRangesOfTheLanes) {
  for (int width = 1; width <= 4; ++width)
    for (int step : {1, 3, -1}) {
      check_sums<f32>(width, 4, step, Taking::adds);
      check_sums<f64>(width, 4, step, Taking::signs);
    }
  check_sums<f32>(3, 3, 1, Taking::signs);
  check_sums<f64>(3, 5, 1, Taking::adds);
  // Components that are not treated alike.
  check_sums<f32>(3, 4, 1, Taking::parts);
}

}  // namespace
}  // namespace lockstep
