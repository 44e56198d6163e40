// Long straight-line code: compiled in pieces by either code generator, with the same bits.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <optional>
#include <string>
#include <vector>

#include "compile/llvm/emit.hpp"
#include "compile/llvm/long_blocks.hpp"
#include "lockstep/device.hpp"

namespace lockstep {
namespace {

using compile::simd::kLongBlock;
using compile::simd::kPiece;

/// `n` steps, each of which needs the one before; with constants of its own where `distinct`.
template <class T>
Kernel chain(int n, bool distinct) {
  return kernel("cpu.chain", [n, distinct](At<1> at, Grid<T, 1> x, Out<T, 1> y) {
    const Val<T> b = x[at] * T(0.001);
    Val<T> a = x[at], old = b;
    for (int k = 0; k < n; ++k) {
      const T own = T(1) + (distinct ? T(k) / T(1024) : T(k % 3));
      const Val<T> was = a;
      switch (k % 5) {
        case 0: a = fma(a, b, own); break;
        case 1: a = a - b * a * own; break;
        case 2: a = max(a, -old) * T(0.5); break;
        case 3: a = a / (b * b + T(3)); break;
        default: a = select(a > b, a, old - own); break;
      }
      if (k % 700 == 0) old = was;
    }
    y[at] = a;
  });
}

/// Long code with integers, divergent lanes, a loop and a block of a group.
Kernel mixed(int n) {
  return kernel("cpu.mixed",
                [n](Group<1> g, InOut<i32, 1> x) {
                  SharedArray<i32> s(32);
                  s[g.lane()] = x[g.global()];
                  barrier();
                  Var<i32> a = s[(g.lane() + 1) % 32];
                  if_(a % 3 == 0, [&] {
                    for_(0, a & 3, [&](Val<i32> i) {
                      Val<i32> v = a + i;
                      for (int k = 0; k < n; ++k) v = (v * (2 * k + 3)) ^ (v + 17 * k);
                      a = v;
                    });
                  });
                  x[g.global()] = a;
                },
                {.group = {32}});
}

compile::BlockLengths lengths(const Kernel& k) {
  return compile::block_lengths(k.function(), Numerics::exact);
}

template <class T>
std::vector<T> run(const char* name, const Kernel& k, const std::vector<T>& values) {
  const Device device = Device::open(name);
  const Buffer x = device.upload(values), y = device.allocate<T>({int64_t(values.size())});
  device.launch(k, {int64_t(values.size())}, x, y);
  return device.download<T>(y);
}

/// LOCKSTEP_CPU_CODE for as long as this lives.
class CpuCode {
 public:
  explicit CpuCode(const char* code) {
    if (const char* text = getenv(kName)) before_ = text;
    setenv(kName, code, 1);
  }
  ~CpuCode() { before_ ? setenv(kName, before_->c_str(), 1) : unsetenv(kName); }
  CpuCode(const CpuCode&) = delete;
  CpuCode& operator=(const CpuCode&) = delete;

 private:
  static constexpr const char* kName = "LOCKSTEP_CPU_CODE";
  std::optional<std::string> before_;
};

TEST(LongCode, OnlyLongBlocksAreCut) {
  const compile::BlockLengths below = lengths(chain<f32>(int(kLongBlock) / 4, true));
  EXPECT_LE(below.generated, kLongBlock);
  EXPECT_EQ(below.compiled, below.generated);
  for (const bool distinct : {false, true}) {
    const compile::BlockLengths above = lengths(chain<f32>(int(kLongBlock), distinct));
    EXPECT_GT(above.generated, kLongBlock);
    EXPECT_LE(above.compiled, 2 * kPiece);
  }
}

TEST(LongCode, PiecesDoNotGrowWithTheCode) {
  const compile::BlockLengths one = lengths(chain<f32>(5000, true)), four = lengths(chain<f32>(20000, true));
  EXPECT_GT(four.generated, 3 * one.generated);
  EXPECT_LT(four.generated, 5 * one.generated);
  EXPECT_LE(one.compiled, 2 * kPiece);
  EXPECT_LE(four.compiled, 2 * kPiece);
}

template <class T>
void expect_the_interpreters_bits() {
  std::vector<T> values(133);
  for (size_t n = 0; n < values.size(); ++n) values[n] = (T(n) - T(60)) * T(1.37);
  for (const bool distinct : {false, true}) {
    const Kernel k = chain<T>(int(kLongBlock), distinct);
    const std::vector<T> expected = run("interp", k, values);
    for (const char* code : {"fast", "quick"}) {
      const CpuCode chosen(code);
      const std::vector<T> given = run("cpu", k, values);
      EXPECT_EQ(memcmp(given.data(), expected.data(), values.size() * sizeof(T)), 0)
          << code << " " << distinct;
    }
  }
}
TEST(LongCode, HasTheInterpretersBits) {
  expect_the_interpreters_bits<f32>();
  expect_the_interpreters_bits<f64>();
}

TEST(LongCode, UnderMasksAndInGroupsHasTheInterpretersBits) {
  const Kernel k = mixed(int(kLongBlock));
  EXPECT_GT(lengths(k).generated, kLongBlock);
  std::vector<i32> values(96);
  for (size_t n = 0; n < values.size(); ++n) values[n] = i32(n * n) - 700;
  const auto results = [&](const char* name) {
    const Device device = Device::open(name);
    const Buffer x = device.upload(values);
    device.launch(k, {3}, x);
    return device.download<i32>(x);
  };
  const std::vector<i32> expected = results("interp");
  for (const char* code : {"fast", "quick"}) {
    const CpuCode chosen(code);
    EXPECT_EQ(results("cpu"), expected) << code;
  }
}

}  // namespace
}  // namespace lockstep
