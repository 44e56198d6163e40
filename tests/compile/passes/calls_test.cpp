// Functions that kernels call: traced once, printed as functions, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/wgsl/wgsl.hpp"
#include "compile/lower.hpp"
#include "device/devices.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

size_t count_of(const std::string& text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Functions, AreTracedOnceForEachSignature) {
  int runs = 0;
  const auto twice = function("twice", [&](auto x) {
    ++runs;
    return x + x;
  });
  const Kernel k = kernel("test.twice", [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    const Val<i32> n = twice(at.x) + twice(3);
    out[at] = twice(twice(a[at])) + cast<f32>(n);
  });
  EXPECT_EQ(runs, 2);  // of f32 and of i32
  EXPECT_EQ(k.function().functions.size(), 2u);
  const Device device = Device::open("interp");
  const Buffer a = device.upload(std::vector<f32>{1, 2}), out = device.allocate<f32>({2});
  device.launch(k, {2}, a, out);
  EXPECT_EQ(device.download<f32>(out), (std::vector<f32>{4 + 6, 8 + 8}));
}

/// sin has a long body: two calls of it are cheaper as calls.
const Kernel& long_kernel() {
  static const auto wave =
      function("wave", [](Val<f32> x, Val<f32> y) { return sin(x) * cos(y) + exp(x - y); });
  static const Kernel k = kernel("test.wave", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    out[at] = wave(wave(a[at], 1), wave(2, a[at]));
  });
  return k;
}

TEST(Functions, AreFunctionsOfEachTarget) {
  const ir::Function lowered = compile::lower(long_kernel().function(), {compile::Target::cuda});
  const std::string cuda = clike::print_cuda(lowered, Numerics::exact, 90).text,
                    wgsl = clike::emit_wgsl(long_kernel().function(), Numerics::exact),
                    ir = ir::print(long_kernel().function());
  EXPECT_EQ(count_of(cuda, "__device__ __noinline__ float called0(float p0, float p1)"), 1u) << cuda;
  EXPECT_EQ(count_of(wgsl, "fn called0(p0: f32, p1: f32) -> f32"), 1u) << wgsl;
  EXPECT_EQ(count_of(cuda, "called0("), 4u) << cuda;
  EXPECT_EQ(count_of(ir, "= call 0:wave"), 3u) << ir;
}

TEST(Functions, InliningChangesNoBit) {
  std::vector<f32> x;
  for (int k = 0; k < 1000; ++k) x.push_back(f32(k) * 0.01f - 5.0f);
  const auto of = [&](const std::string& name) {
    const Device& on = test_device(name);
    const Buffer a = on.upload(x), out = on.allocate<f32>({1000});
    on.launch(long_kernel(), {1000}, a, out);
    return on.download<f32>(out);
  };
  for (const std::string& name : host_devices()) EXPECT_EQ(of(name), of("interp"));  // which inlines all
  // A product that a function gives is no part of the caller's fma, inlined or not.
  const auto product = function("product", [](Val<f32> a, Val<f32> b) { return a * b; });
  const Kernel k = kernel("test.product", [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    out[at] = product(a[at], a[at]) - 1.0f;
  });
  const f32 v = 1.0f + 0x1p-13f;
  for (const std::string& name : host_devices()) {
    const Device& on = test_device(name);
    const Buffer a = on.upload(std::vector<f32>{v}), out = on.allocate<f32>({1});
    on.launch(k, {1}, a, out);
    const f32 rounded = v * v;
    EXPECT_EQ(on.download<f32>(out)[0], rounded - 1.0f) << name;
  }
}

TEST(Functions, AreInlinedWhereTheyAreSmallOrCalledOnce) {
  const auto root = function("root", [](Val<f32> x) { return sin(x); });
  const auto small = function("small", [](Val<f32> x) { return x + 1.0f; });
  const Kernel k = kernel("test.inlined", [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    out[at] = root(small(small(a[at])));
  });
  ASSERT_EQ(k.function().functions.size(), 2u);
  EXPECT_TRUE(compile::lower(k.function(), {compile::Target::cuda}).functions.empty());
  EXPECT_EQ(
      compile::lower(k.function(), {compile::Target::cuda, Numerics::exact, {"inline"}}).functions.size(),
      2u);
  EXPECT_EQ(compile::lower(long_kernel().function(), {compile::Target::cuda}).functions.size(), 1u);
}

/// x in units of eps: (x, 2 x, …, n x) in an array, summed from the place `first` on.
Kernel array_kernel(bool called) {
  const auto body = [](Val<f32> x, Val<i32> first) {
    LocalArray<f32> a(6);
    for_(0, 6, [&](Val<i32> k) { a[k] = x * cast<f32>(k + 1); });
    Var<f32> sum = x * x;
    for_(first, 6, [&](Val<i32> k) { sum = sum * a[k] + x; });
    return sum * x;
  };
  const auto f = function("arrays", body);
  // Without a call, what separates is said by hand.
  const auto inlined = [body](const Val<f32>& x, const Val<i32>& first) {
    return rounded(body(rounded(x), first));
  };
  return kernel("test.arrays", [=](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
    const auto call = [&](const Val<f32>& x, const Val<i32>& first) {
      return called ? f(x, first) : inlined(x, first);
    };
    LocalArray<f32> before(3);
    before[at.x % 3] = in[at];
    Var<f32> sum = 0;
    if_(at.x % 2 == 0, [&] { sum = call(in[at] * 0.3f, at.x % 5) + 1.0f; });
    for_(0, 3, [&](Val<i32> k) { sum += call(in[at], k); });
    out[at] = sum + before[at.x % 3];
  });
}

TEST(Functions, MayHaveArraysOfTheirOwn) {
  int runs = 0;
  const auto counted = function("counted", [&](Val<f32> x) {
    LocalArray<f32> a(2);
    a[0] = x, a[1] = -x;
    ++runs;
    return Val<f32>(a[cast<i32>(x) & 1]);
  });
  const auto outer = function("outer", [&](Val<f32> x) { return counted(x) + counted(x + 1); });
  const Kernel nested =
      kernel("test.nested", [&](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) { out[at] = outer(in[at]); });
  EXPECT_TRUE(nested.function().functions.empty());
  EXPECT_EQ(runs,
            5);  // checked in a function that is discarded, twice in `outer` that is, twice in the kernel
  std::vector<f32> x;
  for (int k = 0; k < 200; ++k) x.push_back(f32(k) * 0.37f);
  const auto of = [&](const std::string& name, const Kernel& k) {
    const Device& on = test_device(name);
    const Buffer in = on.upload(x), out = on.allocate<f32>({200});
    on.launch(k, {200}, in, out);
    return on.download<f32>(out);
  };
  const Kernel called = array_kernel(true), by_hand = array_kernel(false);
  const std::vector<f32> expected = of("interp", by_hand);
  for (const std::string& name : host_devices()) {
    EXPECT_EQ(of(name, called), expected) << name;
    const std::vector<f32> got = of(name, nested);
    for (size_t k = 0; k < x.size(); ++k) {
      const f32 next = x[k] + 1;
      const auto one = [](f32 v) { return int(v) % 2 ? -v : v; };
      EXPECT_EQ(got[k], one(x[k]) + one(next)) << name;
    }
  }
  const ir::Function lowered = compile::lower(called.function(), {compile::Target::cuda});
  EXPECT_EQ(count_of(clike::print_cuda(lowered, Numerics::exact, 90).text, "__noinline__"), 0u);
  EXPECT_NE(clike::emit_wgsl(called.function(), Numerics::exact), "");
}

template <class Body>
std::string refusal(Body body) {
  try {
    kernel("test.refused", [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { body(at, a, out); });
  } catch (const InputError& e) { return e.what(); }
  return "";
}
using G = const Grid<f32, 1>&;
using O = const Out<f32, 1>&;
using P = At<1>;

TEST(Functions, RefuseWhatBelongsToTheKernel) {
  const auto said =
      AllOf(HasSubstr("of kernel test.refused"), HasSubstr("function reads"), HasSubstr("calls_test.cpp"));
  EXPECT_THAT(
      refusal([](P at, G a, O out) { out[at] = function("reads", [&](Val<i32> i) { return a[i]; })(at.x); }),
      said);
  EXPECT_THAT(refusal([](P at, G, O out) {
                out[at] = function("reads", [&](Val<f32> x) { return x + cast<f32>(at.x); })(1);
              }),
              said);
  EXPECT_THAT(refusal([](P at, G a, O out) {
                const Val<f32> outer = a[at];
                out[at] = function("adds", [&](Val<f32> x) { return x + outer; })(1);
              }),
              HasSubstr("a value of kernel test.refused"));
  // Bodies with an array of their own are checked like all others.
  EXPECT_THAT(refusal([](P at, G a, O out) {
                out[at] = function("reads", [&](Val<i32> i) {
                  LocalArray<f32> own(2);
                  own[0] = a[i];
                  return Val<f32>(own[i]);
                })(at.x);
              }),
              said);
  EXPECT_THAT(refusal([](P at, G, O out) {
                LocalArray<f32> kernels(2);
                out[at] = function("takes", [&](Val<i32> i) {
                  LocalArray<f32> own(2);
                  own[0] = kernels[i];
                  return Val<f32>(own[i]);
                })(at.x);
              }),
              AllOf(HasSubstr("an array of kernel test.refused"),
                    HasSubstr("function takes, near calls_test"), HasSubstr("plain C++ function")));
  EXPECT_THAT(refusal([](P at, G, O out) {
                std::function<Val<f32>(Val<f32>)> self;
                const auto endless = function("endless", [&](Val<f32> x) {
                  LocalArray<f32> own(2);
                  own[0] = self(x);
                  return Val<f32>(own[0]);
                });
                self = [&](Val<f32> x) { return endless(x); };
                out[at] = endless(1);
              }),
              HasSubstr("function endless calls itself"));
  EXPECT_THAT(refusal([](P at, G, O out) {
                std::function<Val<f32>(Val<f32>)> self;
                const auto endless = function("endless", [&](Val<f32> x) { return self(x); });
                self = [&](Val<f32> x) { return endless(x); };
                out[at] = endless(1);
              }),
              HasSubstr("function endless calls itself"));
}

}  // namespace
}  // namespace lockstep
