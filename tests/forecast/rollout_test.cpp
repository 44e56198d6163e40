// Rollouts against the plain reference, and both paths against each other bit for bit.
#include "lockstep/forecast/rollout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "compile/clike/nvrtc.hpp"
#include "core/numbers/half.hpp"
#include "device/cuda/module.hpp"
#include "device/devices.hpp"
#include "forecast/rollout/batch/batch.hpp"
#include "forecast/rollout/cluster/cluster.hpp"
#include "forecast/rollout/reference.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

std::vector<Array> raw_of(const std::string& device, const RolloutModel& model,
                          const RolloutOptions& options) {
  Rollout rollout(test_device(device), model, options);
  rollout.launch();
  return rollout.raw();
}

void expect_same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape());
    const auto x = a[i].raw(), y = b[i].raw();
    EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << "output " << i;
  }
}

double relative_l2(std::span<const double> a, std::span<const double> b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += (a[i] - b[i]) * (a[i] - b[i]), size += b[i] * b[i];
  return std::sqrt(difference / size);
}

/// Against the reference in f64, regardless of the type of the rollout.
void expect_near_reference(const std::vector<Array>& got, const RolloutModel& model,
                           const RolloutOptions& options, double bound) {
  RolloutModel wide = model;
  for (auto* gates : {&wide.w, &wide.u, &wide.b, &wide.rb})
    for (Array& a : *gates)
      if (!a.empty()) a = a.to(Storage::f64);
  for (Array* a : {&wide.head, &wide.features, &wide.h0, &wide.projection, &wide.projection_bias, &wide.bins,
                   &wide.bins_bias})
    if (!a->empty()) *a = a->to(Storage::f64);
  const auto raw = reference::rollout<double>(wide, options);
  const std::vector<double>* expected[] = {&raw.losses, &raw.norms, &raw.entropies, &raw.states,
                                           &raw.variances};
  for (size_t i = 0; i < got.size(); ++i) {
    const Array a = got[i].to(Storage::f64);
    ASSERT_EQ(a.as<double>().size(), expected[i]->size());
    EXPECT_LT(relative_l2(a.as<double>(), *expected[i]), bound) << "output " << i;
  }
}

/// Weights large enough that the loop through the loss matters, with biases and a start of their own.
RolloutModel lively_model(int64_t members, int64_t batch, int64_t hidden, Storage storage, bool recurrent) {
  RolloutModel model = random_rollout_model({.hidden = hidden,
                                             .members = members,
                                             .features = 7,
                                             .batch = batch,
                                             .states = 5,
                                             .seed = 3,
                                             .storage = Storage::f64});
  const auto spread = [&](Sizes shape, double size, double phase) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    std::vector<double> v(static_cast<size_t>(count));
    for (size_t i = 0; i < v.size(); ++i) v[i] = size * std::sin(phase + 1.7 * double(i));
    return Array::of(std::move(v), std::move(shape)).to(storage);
  };
  for (size_t g = 0; g < 3; ++g) {
    model.w[g] = model.w[g].to(storage), model.u[g] = model.u[g].to(storage);
    model.b[g] = spread({members, hidden}, 0.3, double(g));
    if (recurrent) model.rb[g] = spread({members, hidden}, 0.2, 5 + double(g));
  }
  model.head = spread({hidden + 5}, 0.5, 0.4);
  model.h0 = spread({members, hidden}, 0.8, 2);
  model.features = model.features.to(storage);
  return model;
}

class RolloutOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, RolloutOn, testing::ValuesIn(host_devices()),
                         [](const auto& each) { return test_name(each.param); });

TEST_P(RolloutOn, AgreesWithTheReferenceInBothFormsAndPaths) {
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const int64_t hidden : {1, 33}) {
      SCOPED_TRACE(std::string(name(form)) + " " + std::to_string(hidden));
      const RolloutModel wide = lively_model(2, 3, hidden, Storage::f64, form == GruForm::reset_after);
      const RolloutModel narrow = lively_model(2, 3, hidden, Storage::f32, form == GruForm::reset_after);
      for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows}) {
        const RolloutOptions options{.form = form, .steps = 9, .path = path};
        expect_near_reference(raw_of(GetParam(), wide, options), wide, options, 1e-13);
        expect_near_reference(raw_of(GetParam(), narrow, options), narrow, options, 2e-6);
      }
    }
}

TEST_P(RolloutOn, PathsAndSizesOfGroupsGiveTheSameBits) {
  const Device few = Device::open(GetParam(), {.lower_limits = [](Limits& l) { l.group_lanes = 64; }});
  const Device small = Device::open(GetParam(), {.lower_limits = [](Limits& l) { l.shared_bytes = 1600; }});
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after}) {
    const RolloutModel model = lively_model(2, 1, 130, Storage::f32, form == GruForm::reset_after);
    const RolloutOptions options{.form = form, .steps = 2, .path = RolloutPath::one_launch};
    const std::vector<Array> plain = raw_of(GetParam(), model, options);
    expect_same_bits(raw_of("interp", model, options), plain);
    for (const RolloutPath path : {RolloutPath::by_steps, RolloutPath::by_rows}) {
      RolloutOptions other = options;
      other.path = path;
      expect_same_bits(raw_of(GetParam(), model, other), plain);
    }
    Rollout blocks(few, model, options), buffers(small, model, options);
    EXPECT_EQ(blocks.state_place(), "shared memory");
    EXPECT_EQ(buffers.state_place(), "buffers");
    for (Rollout* r : {&blocks, &buffers}) {
      r->launch();
      expect_same_bits(r->raw(), plain);
    }
  }
}

TEST(RolloutPaths, TheCpuTakesOneLaunchWhereAMemberStaysInACore) {
  const Device device = Device::open("cpu");
  const auto path_of = [&](int64_t hidden, WeightType weights) {
    const RolloutModel model =
        random_rollout_model({.hidden = hidden, .members = 1, .features = 2, .states = 1});
    return Rollout(device, model, {.steps = 1, .weights = weights}).path();
  };
  EXPECT_EQ(path_of(384, WeightType::f32), RolloutPath::one_launch);
  EXPECT_EQ(path_of(420, WeightType::f32), RolloutPath::by_steps);  // U takes more than 2 MiB
  EXPECT_EQ(path_of(420, WeightType::bf16), RolloutPath::one_launch);
}

TEST_P(RolloutOn, LogitsFarFromZeroDoNotOverflow) {
  for (const Storage storage : {Storage::f32, Storage::f64}) {
    RolloutModel model = lively_model(2, 1, 33, storage, false);
    const double far = storage == Storage::f32 ? 100 : 900;  // e^far is infinite
    std::vector<double> h0;
    for (int i = 0; i < 66; ++i) h0.push_back((i < 33 ? far : -far) + std::sin(i));
    model.h0 = Array::of(std::move(h0), {2, 33}).to(storage);
    for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows}) {
      const RolloutOptions options{.steps = 3, .path = path};
      expect_near_reference(raw_of(GetParam(), model, options), model, options,
                            storage == Storage::f32 ? 2e-5 : 1e-12);
    }
  }
}

TEST_P(RolloutOn, TwoHotHeadsAgreeWithTheReference) {
  const RolloutModel model = lively_model(2, 2, 33, Storage::f64, false);
  std::vector<Array> first;
  for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows}) {
    const RolloutOptions options{.heads = Heads::two_hot, .steps = 6, .seed = 11, .path = path};
    const std::vector<Array> raw = raw_of(GetParam(), model, options);
    expect_near_reference(raw, model, options, 1e-11);
    if (!first.empty()) expect_same_bits(raw, first);
    first = raw;
  }
  expect_same_bits(raw_of("interp", model, {.heads = Heads::two_hot, .steps = 6, .seed = 11}), first);
  Rollout other(test_device(GetParam()), model, {.heads = Heads::two_hot, .steps = 6, .seed = 12});
  other.launch();
  EXPECT_NE(other.raw()[0].as<double>()[5], first[0].as<double>()[5])
      << "the seed decides the sampled states";
  const Forecast f = other.result().front();
  EXPECT_GT(f.aleatoric, 0);
  EXPECT_GT(f.epistemic, 0);
  EXPECT_DOUBLE_EQ(f.sigma, std::sqrt(f.aleatoric + f.epistemic));
  // At each step: the variance of the two members, and the mean of the variances that their heads give.
  ASSERT_EQ(f.sigmas.size(), 6u);
  const std::vector<Array> raw = other.raw();
  for (int64_t t = 0; t < 6; ++t) {
    const double a = f.members[0].trajectory[size_t(t)], b = f.members[1].trajectory[size_t(t)];
    const double own = (raw[4].at<double>(0, 0, t) + raw[4].at<double>(1, 0, t)) / 2;
    EXPECT_NEAR(f.sigmas[size_t(t)], std::sqrt((a - b) * (a - b) / 4 + own), 1e-12) << t;
  }
  EXPECT_DOUBLE_EQ(f.sigmas.back(), f.sigma);
}

TEST_P(RolloutOn, UsesTheBytesItPredicts) {
  const Device device = Device::open(GetParam());
  const RolloutModel model = lively_model(3, 2, 33, Storage::f64, false);
  for (const RolloutPath path : {RolloutPath::one_launch, RolloutPath::by_steps, RolloutPath::by_rows}) {
    const int64_t before = device.counters().allocated_bytes;
    Rollout rollout(device, model, {.heads = Heads::two_hot, .steps = 5, .path = path});
    const int64_t used = device.counters().allocated_bytes - before, predicted = rollout.memory().total();
    EXPECT_GE(used, predicted);
    EXPECT_LT(used - predicted, 11 * 256) << "more than the pool rounds up";
  }
}

TEST_P(RolloutOn, NoStepsGiveTheLoss) {
  const RolloutModel model = lively_model(2, 1, 8, Storage::f64, false);
  Rollout rollout(test_device(GetParam()), model, {.steps = 0});
  rollout.launch();
  const Forecast f = rollout.result().front();
  EXPECT_EQ(f.final, model.features.as<double>()[0]);
  EXPECT_TRUE(f.trajectory.empty());
  EXPECT_EQ(f.sigma, 0);
  EXPECT_EQ(f.confidence, 1);
  EXPECT_EQ(f.members.size(), 2u);
}

TEST(ClusterRollout, SaysWhyItCannotRun) {
  const Device device = test_device("cpu");
  const RolloutModel model = random_rollout_model({.hidden = 128, .members = 1});
  EXPECT_EQ(Rollout(device, model, {.steps = 1}).no_cluster(), "cpu has no clusters of sm_90");
  try {
    const Rollout rollout(device, model, {.steps = 1, .path = RolloutPath::cluster});
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("no clusters of sm_90"), std::string::npos) << error.what();
  }
}

TEST(ClusterRollout, IntegerSumsNeedABound) {
  const Device device = Device::open("cpu", {.numerics = Numerics::fast});
  RolloutModel model = random_rollout_model({.hidden = 128, .members = 1});
  EXPECT_TRUE(cluster_plan(device, model, {}).bounded);
  for (const float start : {2.5f, -3.0f, NAN}) {
    std::vector<float> h0(128, 0.5f);
    h0[77] = start;
    model.h0 = Array::of(std::move(h0), {1, 128});
    EXPECT_FALSE(cluster_plan(device, model, {}).bounded) << start;
  }
  model.h0 = Array::of(std::vector<float>(128, -2.0f), {1, 128});
  EXPECT_TRUE(cluster_plan(device, model, {}).bounded);
  model.head.mutate<float>()[5] = NAN;
  EXPECT_FALSE(cluster_plan(device, model, {}).bounded);
}

TEST(ClusterRollout, CompilesForSm90) {
  std::string reason;
  if (!clike::Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
  const clike::Nvrtc& nvrtc = clike::Nvrtc::get();
  for (const Numerics numerics : {Numerics::exact, Numerics::fast})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const int64_t hidden : {512, 1024}) {  // the two fullest
        if ((hidden == 1024) != (numerics == Numerics::fast)) continue;
        SCOPED_TRACE(std::string(name(form)) + " " + std::to_string(hidden));
        const RolloutModel model = random_rollout_model({.hidden = hidden, .members = 1});
        ClusterPlan plan = cluster_plan(Device::open("cpu", {.numerics = numerics}), model, {.form = form});
        EXPECT_TRUE(plan.bounded);
        plan.bounded = form == GruForm::reset_before;  // both are compiled
        EXPECT_LE(plan.shared_bytes, 232448) << "what a block of sm_90 can have";
        const Kernel kernel = cluster_kernel(plan, model, form, numerics);
        const clike::CudaSource source =
            device::cuda::source_of(kernel.function(), {numerics, {}, native_form(kernel)}, 90);
        EXPECT_EQ(source.cluster, 16);
        EXPECT_TRUE(source.own_architecture);
        EXPECT_NO_THROW(nvrtc.compile(source.text, source.entry, 90, clike::CudaOutput::own_cubin, numerics));
      }
}

TEST(BatchRollout, SaysWhyItCannotRun) {
  const Device exact = test_device("cpu"), fast = Device::open("cpu", {.numerics = Numerics::fast});
  const RolloutModel few = random_rollout_model({.hidden = 64, .members = 2, .batch = 7});
  RolloutModel many = random_rollout_model({.hidden = 64, .members = 2, .batch = 8});
  EXPECT_EQ(Rollout(exact, many, {.steps = 1}).no_batch(), "");
  EXPECT_EQ(Rollout(fast, few, {.steps = 1}).no_batch(), "");
  EXPECT_EQ(Rollout(fast, many, {.steps = 1}).no_batch(), "cpu has no clusters of sm_90");
  const auto refusal = [&](const Device& device, const RolloutModel& model) {
    try {
      const Rollout rollout(device, model, {.steps = 1, .path = RolloutPath::batch});
    } catch (const UnsupportedError& error) { return std::string(error.what()); }
    return std::string();
  };
  const auto expect_refused = [&](const Device& device, const RolloutModel& model, const std::string& why) {
    EXPECT_NE(refusal(device, model).find(why), std::string::npos) << refusal(device, model);
  };
  expect_refused(exact, many, "exact numerics");
  expect_refused(fast, many, "no clusters of sm_90");
  expect_refused(fast, random_rollout_model({.hidden = 96, .members = 1, .batch = 16}), "96 hidden values");
  expect_refused(fast, random_rollout_model({.hidden = 576, .members = 1, .batch = 16}), "576 hidden values");
  EXPECT_EQ(no_batch_values(many), "");
  many.h0 = Array::of(std::vector<float>(128, 17.0f), {2, 64});
  EXPECT_NE(no_batch_values(many).find("h0 beyond 16"), std::string::npos) << no_batch_values(many);
  many.h0 = {};
  many.u[2].mutate<float>()[5] = 1e5f;
  EXPECT_NE(no_batch_values(many).find("f16 does not hold"), std::string::npos) << no_batch_values(many);
}

TEST(BatchRollout, SharesStartingPoints) {
  DeviceInfo h200, twice, cpu;
  h200.kind = twice.kind = DeviceKind::cuda;
  h200.multiprocessors = 132, twice.multiprocessors = 264;
  EXPECT_EQ(clusters_at_once(h200, 1), 132);
  EXPECT_EQ(clusters_at_once(h200, 3), 39);
  EXPECT_EQ(clusters_at_once(h200, 8), 15);
  EXPECT_EQ(clusters_at_once(twice, 8), 30);
  EXPECT_EQ(clusters_at_once(cpu, 8), 15);
  const auto share = [&](int64_t members, int64_t batch, int64_t blocks, int64_t most) {
    const BatchShare s = share_batch(members, batch, most, clusters_at_once(h200, blocks));
    EXPECT_EQ(s.entries % 8, 0);
    EXPECT_GE(s.entries * s.parts, batch);
    EXPECT_LT(s.entries * (s.parts - 1), batch);
    return std::array{s.entries, s.parts};
  };
  EXPECT_EQ(share(5, 128, 8, 48), (std::array<int64_t, 2>{48, 3}));  // 15 clusters of 8 blocks at a time
  EXPECT_EQ(share(5, 16, 8, 48), (std::array<int64_t, 2>{8, 2}));
  EXPECT_EQ(share(1, 1, 1, 64), (std::array<int64_t, 2>{8, 1}));
  EXPECT_EQ(share(200, 3, 8, 48), (std::array<int64_t, 2>{8, 1}));
}

TEST(BatchRollout, PacksEachWeightOnce) {
  const Device device = Device::open("cpu", {.numerics = Numerics::fast});
  const RolloutModel model = random_rollout_model({.hidden = 512, .members = 2, .batch = 16});
  const BatchPlan plan = batch_plan(device, model, {});
  RolloutLayout layout;
  layout.members = 2, layout.hidden = 512;
  PackedWeights packed;
  pack_batch(plan, model, layout, packed);
  const auto halves = [](const Array& words) {
    std::vector<uint16_t> all;
    for (const float v : words.as<float>())
      for (const uint32_t shift : {0u, 16u}) all.push_back(uint16_t(std::bit_cast<uint32_t>(v) >> shift));
    std::ranges::sort(all);
    return all;
  };
  const auto rounded = [&](std::initializer_list<int> gates) {
    std::vector<uint16_t> all;
    for (const int gate : gates)
      for (const float v : model.u[size_t(gate)].as<float>()) all.push_back(f32_to_f16(v));
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(halves(packed.zr), rounded({0, 1}));
  EXPECT_EQ(halves(packed.n), rounded({2}));
}

TEST(BatchRollout, CompilesForSm90) {
  std::string reason;
  if (!clike::Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
  const clike::Nvrtc& nvrtc = clike::Nvrtc::get();
  const Device device = Device::open("cpu", {.numerics = Numerics::fast});
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const auto& [hidden, batch] : {std::pair<int64_t, int64_t>{512, 128}, {64, 16}}) {
      SCOPED_TRACE(std::string(name(form)) + " " + std::to_string(hidden));
      const RolloutModel model = random_rollout_model({.hidden = hidden, .members = 5, .batch = batch});
      const BatchPlan plan = batch_plan(device, model, {.form = form});
      EXPECT_LE(plan.shared_bytes, 232448) << "what a block of sm_90 can have";
      const Kernel kernel = batch_kernel(plan, model, form);
      const clike::CudaSource source =
          device::cuda::source_of(kernel.function(), {Numerics::fast, {}, native_form(kernel)}, 90);
      EXPECT_EQ(source.cluster, hidden / 64);
      EXPECT_NO_THROW(
          nvrtc.compile(source.text, source.entry, 90, clike::CudaOutput::own_cubin, Numerics::fast));
    }
}

}  // namespace
}  // namespace lockstep::forecast
