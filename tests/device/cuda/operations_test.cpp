// Every operation of the IR on edge values: CUDA gives the bits of the interpreter, whose operations are the
// definition.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/cuda/gpu.hpp"
#include "device/cuda/operation_kernels.hpp"

namespace lockstep::cuda_test {
namespace {

struct OperationTest : GpuTest {};

uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

template <class T>
std::vector<T> edge_values() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    std::vector<T> values = {T(0),
                             T(1),
                             T(0.5),
                             T(1.5),
                             T(2.5),
                             T(3.5),
                             T(0.49999997),
                             T(1e-3),
                             T(3),
                             T(7),
                             T(100),
                             T(1e10),
                             T(16777215),
                             T(16777217),
                             T(8388607.5),
                             L::min(),
                             L::denorm_min(),
                             L::min() / 2,
                             L::max(),
                             L::infinity(),
                             L::quiet_NaN(),
                             L::epsilon(),
                             T(2147483647.0),
                             T(2147483648.0),
                             T(4294967295.0),
                             T(4294967296.0),
                             T(9223372036854775808.0),
                             T(18446744073709551616.0),
                             T(3.14159265),
                             T(0.7),
                             T(88.5),
                             T(127),
                             T(709.5)};
    const size_t n = values.size();
    for (size_t k = 0; k < n; ++k) values.push_back(-values[k]);
    return values;
  } else {
    return {T(0),
            T(1),
            T(2),
            T(3),
            T(7),
            T(31),
            T(32),
            T(33),
            T(63),
            T(64),
            T(65),
            T(1000),
            T(L::max()),
            T(L::max() - 1),
            T(L::min()),
            T(L::min() + 1),
            T(-1),
            T(-2),
            T(-7),
            T(0x55555555),
            T(L::max() / 3),
            T(16777217),
            T(0x40000001)};
  }
}

/// Pairs of all edge values, then random bits; the three operand arrays.
template <class T>
std::array<std::vector<T>, 3> operands() {
  const std::vector<T> edges = edge_values<T>();
  std::array<std::vector<T>, 3> v;
  for (size_t a = 0; a < edges.size(); ++a)
    for (size_t b = 0; b < edges.size(); ++b) {
      v[0].push_back(edges[a]);
      v[1].push_back(edges[b]);
      v[2].push_back(edges[(a * 7 + b * 3) % edges.size()]);
    }
  uint64_t state = 42;
  for (int n = 0; n < 20000; ++n)
    for (auto& list : v) {
      uint64_t bits = next_random(state);
      if (std::is_floating_point_v<T> &&
          n % 2) {  // moderate numbers too: random bits are mostly huge or tiny
        list.push_back(T(double(int64_t(bits)) * 0x1p-63 * 50));
        continue;
      }
      T value;
      std::memcpy(&value, &bits, sizeof value);
      list.push_back(value);
    }
  return v;
}

bool is_nan(Type type, uint64_t bits) {
  if (type == Type::f32) return std::isnan(std::bit_cast<float>(uint32_t(bits)));
  return type == Type::f64 && std::isnan(std::bit_cast<double>(bits));
}

template <class T>
std::vector<u64> run(const Device& device, const OperationKernel& op,
                     const std::array<std::vector<T>, 3>& v) {
  const int64_t n = int64_t(v[0].size());
  const Buffer a = device.upload(v[0]), b = device.upload(v[1]), c = device.upload(v[2]);
  const Buffer out = device.allocate<u64>({n * int64_t(op.slots.size())});
  device.clear(out);
  device.launch(op.kernel, {n}, a, b, c, out, n);
  return device.download<u64>(out);
}

template <class T>
void compare(const Device& gpu_device, const OperationKernel& op) {
  const auto v = operands<T>();
  const std::vector<u64> expected = run<T>(Device::open("interp"), op, v), got = run<T>(gpu_device, op, v);
  const size_t n = v[0].size();
  for (size_t s = 0; s < op.slots.size(); ++s) {
    int differing = 0;
    for (size_t k = 0; k < n && differing < 3; ++k) {
      const uint64_t e = expected[s * n + k], g = got[s * n + k];
      if (e == g || (is_nan(op.slots[s].type, e) && is_nan(op.slots[s].type, g))) continue;
      ++differing;
      ADD_FAILURE() << op.slots[s].name << " of " << name(op.type) << " (" << v[0][k] << ", " << v[1][k]
                    << ", " << v[2][k] << "): " << std::hex << g << " expected " << e;
    }
  }
}

template <class T>
void compare_all(const Device& gpu_device) {
  compare<T>(gpu_device, operation_kernel(detail::kType<T>));
  if constexpr (std::is_floating_point_v<T>) compare<T>(gpu_device, math_kernel(detail::kType<T>));
}

TEST_F(OperationTest, F32) { compare_all<f32>(device()); }
TEST_F(OperationTest, F64) { compare_all<f64>(device()); }
TEST_F(OperationTest, I32) { compare_all<i32>(device()); }
TEST_F(OperationTest, U32) { compare_all<u32>(device()); }
TEST_F(OperationTest, I64) { compare_all<i64>(device()); }
TEST_F(OperationTest, U64) { compare_all<u64>(device()); }

}  // namespace
}  // namespace lockstep::cuda_test
