// Host structs as parameters.
#include <gtest/gtest.h>

#include "device/devices.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace test_structs {
struct Wind {
  float x, y;
};
struct Weather {
  bool calm;
  int32_t hours;
  float pressure;
  Wind wind;
  std::array<uint32_t, 3> seeds;
  float weights[2];
  Wind gusts[2];
};
struct Alike {  // the numbers of Wind, under another name
  float x, y;
};
struct LongFields {
  double a;
  int64_t b;
  uint64_t c;
  float d;
};
}  // namespace test_structs
LOCKSTEP_STRUCT(test_structs::Wind, x, y)
LOCKSTEP_STRUCT(test_structs::Weather, calm, hours, pressure, wind, seeds, weights, gusts)
LOCKSTEP_STRUCT(test_structs::Alike, x, y)
LOCKSTEP_STRUCT(test_structs::LongFields, a, b, c, d)

namespace lockstep {
namespace {

using namespace test_structs;

class Structures : public testing::TestWithParam<std::string> {
 protected:
  const Device& device = test_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Structures, testing::ValuesIn(test_devices()),
                         [](const auto& run) { return test_name(run.param); });

const Kernel& forecast() {
  static const Kernel k = kernel(
      "test.struct", [](At<1> at, Param<f32> scale, Param<Weather> w, InOut<f32, 1> out, Param<i32> last) {
        Val<f32> sum = w.pressure * scale + w.wind.x - w.wind.y;
        for (int s = 0; s < 3; ++s) sum = sum + cast<f32>(w.seeds[size_t(s)] & 255u);
        sum = sum + w.weights[0] * w.gusts[0].x + w.weights[1] * w.gusts[1].y;
        out[at] = select(w.calm, 0.0f, sum) + cast<f32>(w.hours * 100 + last + at.x);
      });
  return k;
}
Weather weather() { return {false, 7, 2.5f, {3, 1.5f}, {1, 2, 260}, {0.5f, 2}, {{8, 0}, {0, 16}}}; }
f32 expected(const Weather& w, float scale, int last, int at) {
  float sum = w.pressure * scale + w.wind.x - w.wind.y;
  for (const u32 s : w.seeds) sum += float(s & 255u);
  sum += w.weights[0] * w.gusts[0].x + w.weights[1] * w.gusts[1].y;
  return (w.calm ? 0.0f : sum) + float(w.hours * 100 + last + at);
}
template <class F>
std::string misfit(F work) {
  try {
    work();
  } catch (const InputError& error) { return error.what(); }
  return "nothing thrown";
}

TEST_P(Structures, FieldsReachTheKernel) {
  const Buffer out = device.upload(std::vector<f32>(3, -1.0f));
  Weather w = weather();
  for (const bool calm : {false, true}) {
    w.calm = calm;
    device.launch(forecast(), {3}, 2.0f, w, out, 5);
    for (int k = 0; k < 3; ++k) EXPECT_EQ(device.download<f32>(out)[size_t(k)], expected(w, 2, 5, k));
  }
  device.launch(forecast(), {3}, Arguments().set("b0", out).set("p2", 6).set("p1", w).set("p0", 0.5f));
  EXPECT_EQ(device.download<f32>(out)[1], expected(w, 0.5f, 6, 1));
}

TEST_P(Structures, OtherArgumentsAreRefused) {
  const Buffer out = device.allocate<f32>({3});
  const auto says = [&](const std::string& text, const char* first, const char* second) {
    EXPECT_TRUE(text.starts_with(first)) << text;
    EXPECT_NE(text.find(second), std::string::npos) << text;
  };
  says(misfit([&] { device.launch(forecast(), {3}, 2.0f, Wind{1, 2}, out, 5); }),
       "a test_structs::Wind [kernel test.struct, argument 2 (p1, declared near structure_test.cpp:",
       "expected a test_structs::Weather");
  says(misfit([&] { device.launch(forecast(), {3}, 2.0f, 1.0f, out, 5); }),
       "1 [kernel test.struct, argument 2", "expected a test_structs::Weather");
  says(misfit([&] { device.launch(forecast(), {3}, weather(), weather(), out, 5); }),
       "a test_structs::Weather [kernel test.struct, argument 1 (p0", "expected a number of type f32");
  says(misfit([&] { device.launch(forecast(), {3}, 2.0f, weather(), weather(), 5); }),
       "a test_structs::Weather [kernel test.struct, argument 3 (b0", "expected a buffer of f32, rank 1");
  says(misfit([&] { device.launch(forecast(), {3}, 2.0f, weather(), out); }), "3 arguments",
       "expected 1 buffers, 2 numbers and 1 structs");
  const Kernel wind = kernel("test.wind", [](At<1> at, Out<f32, 1> to, Param<Wind> w) { to[at] = w.x; });
  says(misfit([&] { device.launch(wind, {3}, out, Alike{1, 2}); }), "a test_structs::Alike",
       "test_structs::Wind");
}

TEST_P(Structures, ByName) {
  const Kernel k = kernel("test.named_struct", [](At<1> at, Parameters& p) {
    const auto out = p.write<f32, 1>("out");
    const auto wind = p.structure<Wind>("wind");
    const auto factor = p.scalar<f32>("factor");
    out[at] = factor * wind.x + wind.y;
  });
  const Buffer out = device.allocate<f32>({2});
  device.launch(k, {2}, Arguments().set("factor", 3.0f).set("wind", Wind{2, 1}).set("out", out));
  EXPECT_EQ(device.download<f32>(out), std::vector<f32>(2, 7.0f));
  const std::vector<KernelParameter> parameters = k.parameters();
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[1].name, "wind");
  ASSERT_TRUE(parameters[1].structure);
  EXPECT_EQ(parameters[1].structure->fields[1].name, "y");
}

TEST_P(Structures, ChangeBetweenReplays) {
  const Buffer out = device.upload(std::vector<f32>(3, -1.0f));
  Weather w = weather();
  const Graph graph =
      device.record([&] { device.launch(forecast(), {3}, 2.0f, per_replay("weather", w), out, 5); });
  w.wind.y = -40;
  device.replay(graph);
  EXPECT_EQ(device.download<f32>(out)[2], expected(weather(), 2, 5, 2));
  device.replay(graph, Arguments().set("weather", w));
  EXPECT_EQ(device.download<f32>(out)[2], expected(w, 2, 5, 2));
  EXPECT_THROW(device.replay(graph, Arguments().set("weather", Wind{1, 2})), InputError);
}

TEST_P(Structures, WideFields) {
  if (!device.info().limits.f64) GTEST_SKIP() << "no 64-bit integers on " << GetParam();
  const Kernel k = kernel("test.wide_struct", [](At<1> at, Param<LongFields> w, Out<f64, 1> out) {
    out[at] = w.a + cast<f64>(w.b) + cast<f64>(w.c) + cast<f64>(w.d);
  });
  const Buffer out = device.allocate<f64>({1});
  device.launch(k, {1}, LongFields{0.5, -(int64_t(1) << 40), uint64_t(1) << 50, 0.25f}, out);
  EXPECT_EQ(device.download<f64>(out)[0], 0.75 - 0x1p40 + 0x1p50);
}

}  // namespace
}  // namespace lockstep
