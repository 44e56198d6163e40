// Deeply nested control flow: each device computes it or refuses it with the place and its limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compile/clike/nvrtc.hpp"
#include "compile/clike/wgsl/wgsl.hpp"
#include "device/devices.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace {

using testing::HasSubstr;

class Nesting : public testing::TestWithParam<std::string> {
 protected:
  const Device& device = test_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Nesting, testing::ValuesIn(test_devices()),
                         [](const auto& run) { return test_name(run.param); });

enum class Form { condition, counted, conditional_loop, mixed };
constexpr Form kForms[] = {Form::condition, Form::counted, Form::conditional_loop, Form::mixed};

/// A lane enters as many of `levels` levels as its x, and counts them; where it stops a condition's other side adds 1000.
Kernel staircase(Form form, int levels) {
  return kernel("nesting.staircase", [=](At<1> at, Grid<i32, 1> x, InOut<i32, 1> y) {
    const Val<i32> most = x[at];
    std::function<void(int)> enter = [&](int level) {
      if (level == levels) return;
      const auto deeper = [&] {
        y[at] = y[at] + 1;
        enter(level + 1);
      };
      const bool counted = form == Form::counted || (form == Form::mixed && level % 3 == 1);
      if (counted) {
        for_(0, select(most > level, Val<i32>(1), Val<i32>(0)), [&](Val<i32>) { deeper(); });
      } else if (form == Form::conditional_loop || (form == Form::mixed && level % 3 == 2)) {
        Var<i32> passes = select(most > level, Val<i32>(1), Val<i32>(0));
        while_([&] { return passes > 0; },
               [&] {
                 passes -= 1;
                 deeper();
               });
      } else {
        if_(most > level, deeper, [&] { y[at] = y[at] + 1000; });
      }
    };
    enter(0);
  });
}

bool adds(Form form, int level) { return form == Form::condition || (form == Form::mixed && level % 3 == 0); }

TEST_P(Nesting, IsComputedOrRefused) {
  const std::vector<i32> x{0, 1, 40, 59, 60, 71, 72, 79, 80, 81, 100, 119, 120, 198, 500};
  const bool webgpu = device.info().kind == DeviceKind::webgpu;
  for (const Form form : kForms)
    for (const int levels : {60, 72, 79, 120, 121, 199}) {
      SCOPED_TRACE(testing::Message() << "form " << int(form) << ", levels " << levels);
      if (form == Form::conditional_loop && levels > 198) continue;  // its own condition is a level
      const Kernel k = staircase(form, levels);
      const Buffer in = device.upload(x), out = device.upload(std::vector<i32>(x.size()));
      const auto launch = [&] { device.launch(k, {int64_t(x.size())}, in, out); };
      const Support support = device.supports(k);
      if (!webgpu || levels <= 60) { EXPECT_TRUE(support.ok) << support.reason; }
      if (webgpu && levels > 120) { EXPECT_FALSE(support.ok); }
      if (!support.ok) {
        EXPECT_THAT(support.reason,
                    testing::AllOf(HasSubstr("control flow of"), HasSubstr("nesting_test.cpp:"),
                                   HasSubstr("are possible")));
        try {
          launch();
          FAIL() << "launched";
        } catch (const Error& error) {
          EXPECT_THAT(error.what(),
                      testing::AllOf(HasSubstr("nesting.staircase"), HasSubstr(support.reason)));
        }
        continue;
      }
      launch();
      std::vector<i32> expected;
      for (const i32 most : x) {
        const int entered = std::min(most, levels);
        expected.push_back(entered + (entered < levels && adds(form, entered) ? 1000 : 0));
      }
      EXPECT_EQ(device.download<i32>(out), expected);
    }
}

// A counter was once named as the type i32.
TEST_P(Nesting, ManyLoopsInsideOfEachOther) {
  const Kernel k = kernel("nesting.loops", [](At<1> at, Out<i32, 1> y) {
    Var<i32> sum = 0;
    std::function<void(int)> loop = [&](int level) {
      if (level == 40) return void(sum += 1);
      for_(0, 1, [&](Val<i32> i) {
        sum += i + 1;
        loop(level + 1);
      });
    };
    loop(0);
    y[at] = sum;
  });
  const Buffer y = device.allocate<i32>({3});
  device.launch(k, {3}, y);
  EXPECT_EQ(device.download<i32>(y), (std::vector<i32>{41, 41, 41}));
}

constexpr int kLength = 50000;  // of two operations
Kernel chain() {
  return kernel("nesting.chain", [](At<1> at, InOut<u32, 1> y) {
    Val<u32> v = y[at];
    for (int n = 0; n < kLength; ++n) v = (v ^ 13u) + 5u;
    y[at] = v;
  });
}

TEST_P(Nesting, LongChainsOfValuesAreComputed) {
  if (device.info().kind == DeviceKind::webgpu || device.info().kind == DeviceKind::cuda)
    GTEST_SKIP() << "minutes in the driver's compiler";
  std::vector<u32> x{1, 2, 0xfffffff0u};
  const Buffer y = device.upload(x);
  device.launch(chain(), {3}, y);
  for (u32& v : x)
    for (int n = 0; n < kLength; ++n) v = (v ^ 13u) + 5u;
  EXPECT_EQ(device.download<u32>(y), x);
}

TEST(LongChains, ArePrintedForGpus) {
  const Kernel k = chain();
  EXPECT_GT(clike::emit_cuda(k.function()).size(), size_t(kLength));
  EXPECT_GT(clike::emit_wgsl(k.function(), Numerics::exact).size(), size_t(kLength));
}

TEST(DeepControlFlow, IsAnErrorOfTracing) {
  for (const Form form : kForms) try {
      staircase(form, 10000);
      FAIL() << "traced";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(),
                  testing::AllOf(HasSubstr("control flow of 201 levels"), HasSubstr("nesting.staircase"),
                                 HasSubstr("nesting_test.cpp:"), HasSubstr("at most 200")));
    }
}

}  // namespace
}  // namespace lockstep
