// Recurrent weights in bf16 and fp8: the numbers themselves, and rollouts of them.
#include "forecast/rollout/weights/narrow.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {
namespace {

TEST(NarrowWeights, EveryE4m3IsItsOwnRounding) {
  for (int bits = 0; bits < 256; ++bits) {
    if ((bits & 0x7f) == 0x7f) continue;  // NaN, which nothing is rounded to
    EXPECT_EQ(f32_to_e4m3(e4m3_to_f32(uint8_t(bits))), bits);
  }
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9f);  // subnormal
  EXPECT_EQ(e4m3_to_f32(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(e4m3_to_f32(0x08), 0x1p-6f);
  EXPECT_EQ(e4m3_to_f32(0x38), 1.0f);
  EXPECT_EQ(e4m3_to_f32(0xfe), -448.0f);
}

TEST(NarrowWeights, E4m3RoundsToTheNearestAndTiesToEven) {
  for (int bits = 0; bits < 0x7e; ++bits) {
    const float low = e4m3_to_f32(uint8_t(bits)), high = e4m3_to_f32(uint8_t(bits + 1)),
                middle = (low + high) / 2;
    EXPECT_EQ(f32_to_e4m3(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, low)), bits);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, high)), bits + 1);
    EXPECT_EQ(f32_to_e4m3(-std::nextafter(middle, high)), 0x80 | (bits + 1));
  }
  EXPECT_EQ(f32_to_e4m3(460), 0x7e);
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::max()), 0x7e);
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(NarrowWeights, ScalesBringRowsIntoRange) {
  for (const float greatest : {1.0f, 448.0f, 449.0f, 1e-6f, 3e38f, 0x1p-90f, 3.5f, 7.0f}) {
    const std::vector<float> row{0, -greatest, greatest / 3};
    const float scale = row_scale(row);
    int exponent = 0;
    EXPECT_EQ(std::frexp(scale, &exponent), 0.5f);  // a power of two
    EXPECT_GT(greatest / scale, 224) << greatest;
    EXPECT_LE(greatest / scale, 448) << greatest;
  }
  EXPECT_EQ(row_scale(std::vector<float>{0, 0}), 1);
  EXPECT_EQ(row_scale(std::vector<float>{std::numeric_limits<float>::denorm_min()}), 0x1p-100f);
}

RolloutModel model_with_odd_rows() {
  RolloutModel model =
      random_rollout_model({.hidden = 37, .members = 2, .features = 5, .batch = 2, .states = 8});
  const auto z = model.u[0].mutate<float>(), h = model.u[2].mutate<float>();
  for (size_t k = 0; k < 37; ++k) {
    z[k] = 0;                            // a row of zeros
    z[37 + k] *= 0x1p-120f;              // subnormal numbers among them
    h[k] = k % 2 == 0 ? 100.0f : 1e-3f;  // of which the small are subnormal e4m3
  }
  return model;
}

TEST(NarrowWeights, RolloutsAreThoseOfTheRoundedModel) {
  const RolloutModel model = model_with_odd_rows();
  for (const WeightType weights : {WeightType::bf16, WeightType::fp8}) {
    RolloutModel rounded = model;
    for (Array& u : rounded.u) u = round_weights(u, weights);
    for (const char* name : {"cpu", "interp"})
      for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
        for (const RolloutPath path :
             {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows}) {
          const Device device = Device::open(name);
          Rollout narrow(device, model, {.form = form, .steps = 3, .path = path, .weights = weights});
          Rollout wide(device, rounded, {.form = form, .steps = 3, .path = path});
          narrow.launch();
          wide.launch();
          const std::vector<Array> a = narrow.raw(), b = wide.raw();
          for (size_t k = 0; k < a.size(); ++k)
            for (size_t i = 0; i < a[k].as<float>().size(); ++i)
              ASSERT_EQ(std::bit_cast<uint32_t>(a[k].as<float>()[i]),
                        std::bit_cast<uint32_t>(b[k].as<float>()[i]))
                  << forecast::name(weights) << " on " << name << ", output " << k << ", element " << i;
          EXPECT_LT(narrow.memory().weights, wide.memory().weights);
        }
  }
}

TEST(NarrowWeights, MemoryIsForeseen) {
  const RolloutModel model = random_rollout_model({.hidden = 70, .members = 3});
  const Device device = Device::open("cpu");
  for (const WeightType weights : {WeightType::f32, WeightType::bf16, WeightType::fp8}) {
    const int64_t before = device.counters().allocated_bytes;
    const Rollout rollout(device, model, {.steps = 2, .weights = weights});
    const int64_t used = device.counters().allocated_bytes - before, said = rollout.memory().total();
    EXPECT_GE(used, said);
    EXPECT_LE(used, said + 12 * 256);  // the pool's rounding
  }
}

TEST(NarrowWeights, Refusals) {
  RolloutModel model = random_rollout_model({.hidden = 4, .members = 1});
  model.u[1].mutate<float>()[3] = std::numeric_limits<float>::max();
  const Device device = Device::open("interp");
  try {
    Rollout(device, model, {.weights = WeightType::bf16});
    FAIL() << "a weight beyond bf16 was taken";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("U_r"), std::string::npos) << e.what();
  }
  EXPECT_THROW(Rollout(device, model, {.weights = WeightType::fp8}), InputError);  // would round to 2^128
  model.u[1].mutate<float>()[3] = 3e38f;
  EXPECT_NO_THROW(Rollout(device, model, {.weights = WeightType::fp8}));
  const RolloutModel wide = random_rollout_model({.hidden = 4, .members = 1, .storage = Storage::f64});
  EXPECT_THROW(Rollout(device, wide, {.weights = WeightType::fp8}), InputError);
  EXPECT_THROW(Rollout(device, random_rollout_model({.hidden = 128}),
                       {.path = RolloutPath::cluster, .weights = WeightType::bf16}),
               UnsupportedError);
}

}  // namespace
}  // namespace lockstep::forecast
