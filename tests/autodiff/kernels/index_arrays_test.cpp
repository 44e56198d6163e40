// Reads through index arrays: along a transposed table and by atomic operations the gradient has the same bits. A table
// that is kept is never one of other positions.
#include <cstring>
#include <functional>

#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using testing::wave;
using Doubles = std::vector<double>;
using Indices = std::vector<int32_t>;

constexpr int64_t kLanes = 5000, kElements = 700;

Indices random_indices(int64_t n, int64_t begin, int64_t end, uint64_t seed = 1) {
  Indices list;
  for (int64_t k = 0; k < n; ++k) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    list.push_back(int32_t(begin + int64_t((seed >> 33) % uint64_t(end - begin))));
  }
  return list;
}

/// A gradient by b0, of a kernel with an output b1 and index arrays b2 …, launched again and again.
template <class T>
class Launches {
 public:
  Launches(const Device& device, const Kernel& kernel, const std::vector<Indices>& indices)
      : device_(device), gradient_(differentiate(kernel, {{"b0"}, {"b1"}})) {
    const Doubles x = wave(kElements, 0.3), seed = wave(kLanes, 1.1);
    into_ = device.allocate<T>({kElements});
    arguments_.set("b0", device.upload(std::vector<T>(x.begin(), x.end())))
        .set("b1_cotangent", device.upload(std::vector<T>(seed.begin(), seed.end())))
        .set("b0_gradient", into_);
    for (size_t k = 0; k < indices.size(); ++k) {
      indices_.push_back(device.upload(indices[k]));
      arguments_.set("b" + std::to_string(k + 2), indices_[k]);
    }
  }
  void set(size_t k, const Indices& indices) {
    device_.write(indices_[k], indices.data(), indices_[k].bytes());
  }
  std::vector<T> run(const Gradient::Options& options = {}) {
    gradient_.launch(device_, {kLanes}, arguments_, options);
    return device_.download<T>(into_);
  }
  /// A recording makes no table.
  std::vector<T> run_without_table() {
    device_.replay(device_.record([&] { gradient_.launch(device_, {kLanes}, arguments_); }));
    return device_.download<T>(into_);
  }
  bool lists() const {
    return std::ranges::any_of(gradient_.kernels(), [](const Kernel& k) {
      return k.name().find(".positions_b0") != std::string::npos;
    });
  }

 private:
  Device device_;
  Gradient gradient_;
  Arguments arguments_;
  std::vector<Buffer> indices_;
  Buffer into_;
};

template <class T>
void expect_bits(const std::vector<T>& a, const std::vector<T>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << what;
}

/// Along a table and without, on every device and for several counts of threads.
template <class T>
void expect_same(const Kernel& kernel, const std::vector<Indices>& indices, bool lists = true) {
  std::vector<T> first;
  for (const Device& device : testing::gradient_devices()) {
    Launches<T> launches(device, kernel, indices);
    EXPECT_EQ(launches.lists(), lists) << kernel.name();
    const std::vector<T> made = launches.run(), kept = launches.run();
    expect_bits(made, launches.run_without_table(), kernel.name() + " by atomic operations");
    expect_bits(made, kept, kernel.name() + " again");
    if (first.empty()) first = made;
    expect_bits(made, first, kernel.name() + " on " + device.info().name);
  }
}

template <class T>
Kernel square(Boundary boundary = Boundary::clamp) {
  return kernel("square", [&](At<1> at, Grid<T, 1> x, Out<T, 1> y, Grid<i32, 1> n) {
    const auto read = x.with(boundary);
    y[at] = read[n[at]] * read[n[at]];
  });
}

TEST(IndexArrays, TablesHaveTheBitsOfAtomicOperations) {
  expect_same<float>(square<float>(), {random_indices(kLanes, 0, kElements)});
  expect_same<double>(square<double>(), {random_indices(kLanes, 0, kElements)});
  expect_same<float>(square<float>(), {Indices(kLanes, 17)});
  expect_same<double>(square<double>(), {Indices(kLanes, 17)});
  expect_same<float>(square<float>(), {random_indices(kLanes, 3, 5)});
}

TEST(IndexArrays, PositionsOutsideFollowTheBoundaryRule) {
  for (const Boundary boundary : {Boundary::clamp, Boundary::periodic, Boundary::zero})
    expect_same<double>(square<double>(boundary), {random_indices(kLanes, -kElements, 2 * kElements)});
}

TEST(IndexArrays, SeveralArraysShiftsAndOwnPoints) {
  expect_same<double>(kernel("edges",
                             [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Grid<i32, 1> n, Grid<i32, 1> m) {
                               const auto whole = x.periodic();
                               y[at] = x[n[at]] * sin(whole[m[at.x(+1)]]) +
                                       whole[n[at.x(-2)] + m[at]] * x[at.x % 7];
                             }),
                      {random_indices(kLanes, 0, kElements), random_indices(kLanes, 0, kElements, 5)});
}

TEST(IndexArrays, ReadsUnderConditionsOfIntegers) {
  expect_same<double>(
      kernel("guarded",
             [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Grid<i32, 1> n) {
               Var<f64> sum = 0.0;
               const Val<i32> to = n[at];
               if_(to >= 0, [&] {
                 sum = 2.0 * x(to);
                 if_(to % 2 == 0, [&] { sum = Val<f64>(sum) * x(to / 2); }, [&] { sum = sum + x(to - 1); });
               });
               y[at] = sum;
             }),
      {random_indices(kLanes, -3, kElements)});
}

TEST(IndexArrays, OthersKeepExactSums) {
  const Indices indices = random_indices(kLanes, 0, kElements);
  expect_same<double>(kernel("written",
                             [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, InOut<i32, 1> n) {
                               y[at] = x[n[at]];
                               n[at] = n[at] * 1;
                             }),
                      {indices}, false);
  expect_same<double>(kernel("looped",
                             [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y, Grid<i32, 1> n) {
                               Var<f64> sum = 0.0;
                               for_(0, n[at] % 4, [&](Val<i32> k) { sum = sum + x[n[at] - k]; });
                               y[at] = sum;
                             }),
                      {indices}, false);
  expect_same<double>(
      kernel("of_floats", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y,
                             Grid<i32, 1> n) { y[at] = x[n[at]] * x[cast<i32>(abs(x(at.x % 7)) * 100.0)]; }),
      {indices}, false);
}

TEST(IndexArrays, ATableIsNeverThatOfOtherPositions) {
  for (const char* name : {"cpu", "interp"}) {
    const Device device = Device::open(name);
    const Indices one = random_indices(kLanes, 0, kElements), other = random_indices(kLanes, 0, kElements, 9);
    Launches<double> launches(device, square<double>(), {one});
    const std::vector<double> first = launches.run();
    Indices changed = one;
    changed.back() = (changed.back() + 1) % int32_t(kElements);
    for (const Indices& indices : {other, one, changed, Indices(kLanes, 0), one}) {
      launches.set(0, indices);
      expect_bits(launches.run(), Launches<double>(device, square<double>(), {indices}).run_without_table(),
                  name);
    }
    expect_bits(launches.run(), first, name);
  }
}

// A later launch reads back one number, whether positions changed.
TEST(IndexArrays, TablesAreMadeOnce) {
  const Device device = Device::open("cpu");
  const Kernel kernel = square<float>();
  const Gradient gradient = differentiate(kernel, {{"b0"}, {"b1"}});
  const Buffer x = device.upload(std::vector<float>(kElements, 1)),
               into = device.allocate<float>({kElements});
  const Buffer seed = device.upload(std::vector<float>(kLanes, 1));
  std::vector<Buffer> arrays;
  for (uint64_t k = 0; k < 3; ++k) arrays.push_back(device.upload(random_indices(kLanes, 0, kElements, k)));
  const auto launch = [&](const Buffer& indices) {
    const int64_t before = device.counters().bytes_from_device;
    gradient.launch(
        device, {kLanes},
        Arguments().set("b0", x).set("b1_cotangent", seed).set("b0_gradient", into).set("b2", indices));
    return device.counters().bytes_from_device - before;
  };
  for (const Buffer& indices : arrays) EXPECT_GT(launch(indices), 4);
  for (int round = 0; round < 2; ++round)
    for (const Buffer& indices : arrays) EXPECT_EQ(launch(indices), 4);
}

// Along a table: positions, entries and contributions of each lane, by lane and by row; by atomic operations: words of each element.
TEST(IndexArrays, MemoryLimitsChooseTheForm) {
  const Device device = Device::open("cpu");
  const Indices indices = random_indices(kLanes, 0, kElements);
  Launches<float> launches(device, square<float>(), {indices});
  const int64_t table = 4 * (4 * kLanes + kElements + 1) + 4 * (3 * 4) + 2 * 4 * 32 +
                        primitives::transposed_table_bytes(device, kLanes, kElements),
                sums = kElements * 80;
  ASSERT_LT(sums, table);
  const auto allocated = [&](int64_t limit) {
    const int64_t before = device.counters().bytes_from_device;
    const std::vector<float> found = launches.run({.memory_bytes = limit});
    expect_bits(found, launches.run_without_table(), "limited");
    return device.counters().bytes_from_device - before - 2 * kElements * 4;
  };
  EXPECT_GT(allocated(table), 0);
  EXPECT_EQ(allocated(table - 1000), 0);
  EXPECT_EQ(allocated(sums), 0);
  EXPECT_THROW(launches.run({.memory_bytes = sums - 1}), InputError);
}

TEST(IndexArrays, TwoAxesAndGathersOfOtherInputs) {
  GradientCase c{kernel("faces",
                        [](At<2> at, Grid<f64, 2> x, Grid<f64, 2> w, Out<f64, 2> y, Grid<i32, 2> row,
                           Grid<u32, 2> column) {
                          const auto inside = x.clamped();
                          y[at] = (w[at] + w[at.x(+1)]) * inside(row[at], cast<i32>(column[at])) *
                                  inside(row[at] + 1, cast<i32>(column[at.y(-1)]));
                        }),
                 {6, 7},
                 {},
                 {},
                 {{"b0", "b1"}, {"b2"}}};
  c.f64s("b0", wave(15), {3, 5}).f64s("b1", wave(42, 0.2), {6, 7}).f64s("b2", wave(42), {6, 7});
  c.put("b3", random_indices(42, -1, 4), {6, 7});
  std::vector<uint32_t> columns;
  for (int32_t k : random_indices(42, 0, 5)) columns.push_back(uint32_t(k));
  c.put("b4", columns, {6, 7});
  c.expect_consistent();
  std::vector<std::string> names;
  for (const Kernel& k : differentiate(c.kernel, c.which).kernels()) names.push_back(k.name());
  EXPECT_EQ(names, (std::vector<std::string>{"faces.adjoint", "faces.gather_b1", "faces.positions_b0",
                                             "gradient.rows.f64"}));
}

}  // namespace
}  // namespace lockstep
