// GRU sequences against the plain reference, gradients against complex steps, weights of PyTorch.
#include "lockstep/forecast/gru.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>

#include "compile/clike/nvrtc.hpp"
#include "core/numbers/random.hpp"
#include "device/cuda/module.hpp"
#include "device/devices.hpp"
#include "forecast/gru/cluster/cluster.hpp"
#include "forecast/gru/reference.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/safetensors.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

using Problem = reference::SequenceProblem<double>;
using Complex = reference::SequenceProblem<std::complex<double>>;

std::vector<double> wave(int64_t count, double size, double phase) {
  std::vector<double> v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = size * std::sin(phase + 1.9 * double(i));
  return v;
}

Problem problem_of(const GruShape& s) {
  Problem p{s,
            wave(s.inputs * 3 * s.hidden, 0.7, 1),
            wave(s.hidden * 3 * s.hidden, 0.6, 2),
            wave(3 * s.hidden, 0.4, 3),
            {},
            wave(s.steps * s.batch * s.inputs, 1.1, 5),
            wave(s.batch * s.hidden, 0.9, 6)};
  if (s.form == GruForm::reset_after) p.rb = wave(3 * s.hidden, 0.3, 4);
  return p;
}

GruWeights weights_of(const Problem& p) {
  const int64_t d = p.shape.hidden;
  return {Array::of(p.w, {p.shape.inputs, 3 * d}), Array::of(p.u, {d, 3 * d}), Array::of(p.b, {3 * d}),
          p.rb.empty() ? Array() : Array::of(p.rb, {3 * d})};
}

void expect_close(const std::vector<double>& got, const std::vector<double>& expected, double bound,
                  const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double size = 0;
  for (const double e : expected) size = std::max(size, std::abs(e));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], bound * size) << what << " " << i;
}

class GruOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, GruOn, testing::ValuesIn(host_devices()),
                         [](const auto& each) { return test_name(each.param); });

TEST_P(GruOn, StatesAndGradientsAreThoseOfTheReference) {
  const Device& device = test_device(GetParam());
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const GruShape& shape :
         {GruShape{form, 1, 1, 1, 1, Storage::f64}, GruShape{form, 4, 3, 2, 5, Storage::f64}}) {
      SCOPED_TRACE(std::string(name(form)) + " " + std::to_string(shape.hidden));
      const Problem p = problem_of(shape);
      const std::vector<double> incoming = wave(shape.steps * shape.batch * shape.hidden, 1, 7);
      GruSequence gru(device, shape);
      gru.set_weights(weights_of(p));
      gru.forward(device.upload<f64>(std::span<const f64>(p.x), {shape.steps, shape.batch, shape.inputs}),
                  device.upload<f64>(std::span<const f64>(p.h0), {shape.batch, shape.hidden}));
      gru.backward(
          device.upload<f64>(std::span<const f64>(incoming), {shape.steps, shape.batch, shape.hidden}));
      expect_close(device.download<f64>(gru.states()), reference::sequence(p), 1e-14, "states");
      const auto g = gru.gradients();
      const auto expected = [&](auto part, auto complex_part) {
        return reference::derivatives(p, part, complex_part, incoming);
      };
      expect_close(device.download<f64>(g.w), expected(&Problem::w, &Complex::w), 1e-13, "W");
      expect_close(device.download<f64>(g.u), expected(&Problem::u, &Complex::u), 1e-13, "U");
      expect_close(device.download<f64>(g.b), expected(&Problem::b, &Complex::b), 1e-13, "b");
      if (form == GruForm::reset_after)
        expect_close(device.download<f64>(g.rb), expected(&Problem::rb, &Complex::rb), 1e-13, "rb");
      expect_close(device.download<f64>(gru.d_x()), expected(&Problem::x, &Complex::x), 1e-13, "x");
      expect_close(device.download<f64>(gru.d_h0()), expected(&Problem::h0, &Complex::h0), 1e-13, "h0");
    }
}

Problem random_problem(const GruShape& s) {
  auto numbers = [&, which = uint32_t(0)](int64_t count, double size) mutable {
    std::vector<double> v(static_cast<size_t>(count));
    ++which;
    for (size_t i = 0; i < v.size(); ++i) v[i] = float(size * (2 * random_unit(uint32_t(i), which, 11) - 1));
    return v;
  };
  const double size = std::sqrt(3.0 / double(s.hidden + s.inputs));
  Problem p{s,
            numbers(s.inputs * 3 * s.hidden, size),
            numbers(s.hidden * 3 * s.hidden, size),
            numbers(3 * s.hidden, 0.5),
            {},
            {},
            {}};
  p.x = numbers(s.steps * s.batch * s.inputs, 1), p.h0 = numbers(s.batch * s.hidden, 1);
  if (s.form == GruForm::reset_after) p.rb = numbers(3 * s.hidden, 0.5);
  return p;
}

GruWeights f32_weights(const Problem& p) {
  GruWeights w = weights_of(p);
  for (Array* a : {&w.w, &w.u, &w.b, &w.rb})
    if (!a->empty()) *a = a->to(Storage::f32);
  return w;
}

/// States and, where requested, all gradients, as bits.
std::vector<std::vector<float>> run_in_f32(const Device& device, const GruShape& shape, const Problem& p,
                                           const GruWeights& weights) {
  GruSequence gru(device, shape);
  gru.set_weights(weights);
  const auto upload = [&](const std::vector<double>& v, Sizes sizes) {
    return device.upload(Array::of(v, std::move(sizes)).to(Storage::f32));
  };
  gru.forward(upload(p.x, {shape.steps, shape.batch, shape.inputs}),
              upload(p.h0, {shape.batch, shape.hidden}));
  std::vector<std::vector<float>> all{device.download<f32>(gru.states())};
  if (!shape.backward) return all;
  gru.backward(
      upload(wave(shape.steps * shape.batch * shape.hidden, 1, 7), {shape.steps, shape.batch, shape.hidden}),
      0.75);
  const auto g = gru.gradients();
  for (const Buffer& b : {g.w, g.u, g.b, gru.d_x(), gru.d_h0()}) all.push_back(device.download<f32>(b));
  if (g.rb) all.push_back(device.download<f32>(g.rb));
  return all;
}

TEST_P(GruOn, NarrowWeightsGiveTheBitsOfTheRoundedOnes) {
  const Device& device = test_device(GetParam());
  for (const WeightType weights : {WeightType::bf16, WeightType::fp8})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (GruShape shape :
           {GruShape{form, 1, 1, 1, 1}, GruShape{form, 3, 1, 2, 37}, GruShape{form, 3, 9, 2, 19}}) {
        SCOPED_TRACE(std::string(name(form)) + " " + std::string(name(weights)) + " " +
                     std::to_string(shape.hidden));
        Problem p = random_problem(shape);
        const int64_t d = shape.hidden;
        for (int64_t k = 0; d > 3 && k < d; ++k) {
          p.u[size_t(k * 3 * d)] = 0;                                // a column of zeros
          p.u[size_t(k * 3 * d + d)] = k % 2 == 0 ? 100.0f : 1e-3f;  // of which the small are subnormal e4m3
        }
        const GruWeights given = f32_weights(p);
        const auto wide = run_in_f32(device, shape, p, round_weights(given, weights));
        shape.weights = weights;
        const auto narrow = run_in_f32(device, shape, p, given);
        ASSERT_EQ(narrow.size(), wide.size());
        for (size_t k = 0; k < wide.size(); ++k)
          for (size_t i = 0; i < wide[k].size(); ++i)
            ASSERT_EQ(std::bit_cast<uint32_t>(narrow[k][i]), std::bit_cast<uint32_t>(wide[k][i]))
                << "output " << k << ", element " << i;
        shape.backward = false;
        EXPECT_EQ(run_in_f32(device, shape, p, given)[0], wide[0]);
      }
}

TEST(NarrowGru, ErrorsAreThoseThatAreStated) {
  const Device device = Device::open("cpu");
  for (const auto& [weights, bound] :
       {std::pair{WeightType::f32, 1e-6}, {WeightType::bf16, 3e-3}, {WeightType::fp8, 4e-2}})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const GruShape& shape : {GruShape{form, 50, 2, 5, 33, Storage::f32, weights, false},
                                    GruShape{form, 50, 1, 5, 256, Storage::f32, weights, false},
                                    GruShape{form, 3, 1, 5, 1100, Storage::f32, weights, false}}) {
        const Problem p = random_problem(shape);
        const std::vector<float> got = run_in_f32(device, shape, p, f32_weights(p))[0];
        const std::vector<double> expected = reference::sequence(p);
        double worst = 0, squares = 0, size = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          worst = std::max(worst, std::abs(got[i] - expected[i]));
          squares += (got[i] - expected[i]) * (got[i] - expected[i]), size += expected[i] * expected[i];
        }
        const std::string what = fmt::format("{} {} H = {}: largest {:.1e}, L2 {:.1e}", name(weights),
                                             name(form), shape.hidden, worst, std::sqrt(squares / size));
        EXPECT_LT(worst, bound) << what;
        std::cout << what << '\n';
      }
}

TEST(NarrowGru, MemoryIsForeseen) {
  const Device device = Device::open("cpu");
  int64_t weights_before = std::numeric_limits<int64_t>::max();
  for (const WeightType weights : {WeightType::f32, WeightType::bf16, WeightType::fp8})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const bool backward : {true, false}) {
        const GruShape shape{form, 3, 2, 5, 70, Storage::f32, weights, backward};
        const int64_t before = device.counters().allocated_bytes;
        const GruSequence gru(device, shape);
        const int64_t used = device.counters().allocated_bytes - before, said = gru.memory().total();
        EXPECT_GE(used, said);
        EXPECT_LE(used, said + 24 * 256);  // the pool's rounding
        EXPECT_EQ(gru.memory().gradients == 0, !backward);
        if (form == GruForm::reset_after && !backward) {
          EXPECT_LT(gru.memory().weights, weights_before);
          weights_before = gru.memory().weights;
        }
      }
}

TEST(NarrowGru, Refusals) {
  const Device device = Device::open("interp");
  GruShape shape{GruForm::reset_before, 1, 1, 1, 2, Storage::f64, WeightType::fp8, false};
  EXPECT_THROW(GruSequence(device, shape), InputError);
  shape.storage = Storage::f32;
  const int64_t count = GruSequence::parameter_count(shape);
  EXPECT_THROW(GruSequence(device, shape, device.allocate<f32>({count}), device.allocate<f32>({count})),
               InputError);
  GruSequence gru(device, shape);
  GruWeights weights = f32_weights(random_problem(shape));
  EXPECT_NO_THROW(gru.set_weights(weights));
  weights.u.mutate<float>()[3] = std::numeric_limits<float>::max();  // would round to 2^128
  try {
    gru.set_weights(weights);
    FAIL() << "a weight beyond fp8 was taken";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("GruSequence: U"), std::string::npos) << e.what();
  }
  weights.u = weights.u.to(Storage::f64);
  EXPECT_THROW(gru.set_weights(weights), InputError);
  const std::vector<f32> x{0.5f}, h0{0.25f, -1};
  gru.forward(device.upload<f32>(std::span<const f32>(x), {1, 1, 1}),
              device.upload<f32>(std::span<const f32>(h0), {1, 2}));
  EXPECT_THROW(gru.backward(device.allocate<f32>({1, 1, 2})), InputError);  // without memory for it
}

// The first call launches the steps one by one, later ones replay them.
TEST_P(GruOn, LaterCallsGiveTheBitsOfAFirst) {
  const Device& device = test_device(GetParam());
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const int64_t batch : {2, 5}) {  // by rows, by products
      const GruShape shape{form, 3, batch, 2, 7};
      const Problem p = random_problem(shape);
      GruSequence gru(device, shape);
      gru.set_weights(f32_weights(p));
      for (const double decay : {1.0, 0.5})
        for (int call = 0; call < 3; ++call) {
          SCOPED_TRACE(fmt::format("{} {} sequences, decay {}, call {}", name(form), batch, decay, call));
          const auto upload = [&](int64_t count, double phase, Sizes sizes) {
            return device.upload(
                Array::of(wave(count, 1, phase + 10 * call + decay), std::move(sizes)).to(Storage::f32));
          };
          const Buffer x = upload(3 * batch * 2, 1, {3, batch, 2}), h0 = upload(batch * 7, 2, {batch, 7}),
                       incoming = upload(3 * batch * 7, 3, {3, batch, 7});
          GruSequence first(device, shape);
          first.set_weights(f32_weights(p));
          for (GruSequence* each : {&gru, &first}) each->forward(x, h0), each->backward(incoming, decay);
          EXPECT_EQ(device.download<f32>(gru.states()), device.download<f32>(first.states()));
          EXPECT_EQ(device.download<f32>(gru.gradients().u), device.download<f32>(first.gradients().u));
          EXPECT_EQ(device.download<f32>(gru.d_h0()), device.download<f32>(first.d_h0()));
          EXPECT_EQ(device.download<f32>(gru.d_x()), device.download<f32>(first.d_x()));
        }
      const Buffer x = device.upload(Array::of(p.x, {3, batch, 2}).to(Storage::f32)),
                   h0 = device.upload(Array::of(p.h0, {batch, 7}).to(Storage::f32));
      const Graph graph = device.record([&] { gru.forward(x, h0); });  // a caller's
      device.replay(graph);
      EXPECT_EQ(device.download<f32>(gru.states()), run_in_f32(device, shape, p, f32_weights(p))[0]);
    }
}

TEST_P(GruOn, TheKernelOfAllStepsGivesTheBitsOfSteps) {
  const Device& device = test_device(GetParam());
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    for (const int64_t d : {5, 37}) {
      const int64_t steps = 3, batch = 2;
      const GruShape shape{form, steps, batch, 1, d, Storage::f32, WeightType::f32, false, "rows"};
      Problem p = random_problem(shape);
      std::ranges::fill(p.w, 0.0);  // so that W x + b is b
      const GruWeights weights = f32_weights(p);
      const std::vector<float> expected = run_in_f32(device, shape, p, weights)[0];
      std::vector<float> in(size_t(steps * batch * 3 * d)), turned(size_t(3 * d * d)), states(expected);
      for (size_t i = 0; i < in.size(); ++i) in[i] = float(p.b[i % size_t(3 * d)]);
      for (size_t i = 0; i < turned.size(); ++i)
        turned[i] = weights.u.as<float>()[i % size_t(d) * size_t(3 * d) + i / size_t(d)];
      std::fill(states.begin() + batch * d, states.end(), 0.0f);  // all but h0
      const auto upload = [&](const std::vector<float>& v, Sizes sizes) {
        return device.upload(Array::of(v, std::move(sizes)));
      };
      const Buffer u = upload(turned, {3 * d, d}), inputs = upload(in, {steps * batch, 3 * d}),
                   h = upload(states, {(steps + 1) * batch, d}),
                   gates = device.allocate<f32>({steps * batch, 3 * d}),
                   extra = device.allocate<f32>({steps * batch, d});
      const Kernel kernel = sequence_kernel(form);
      if (form == GruForm::reset_after)
        device.launch(kernel, {batch}, u, inputs, h, gates, extra, device.upload(weights.rb), steps, batch);
      else
        device.launch(kernel, {batch}, u, inputs, h, gates, extra, steps, batch);
      EXPECT_EQ(device.download<f32>(h), expected) << name(form) << " " << d;
    }
}

TEST(GruCluster, NeedsItsDeviceAndSizes) {
  const Device device = Device::open("cpu");
  const auto refusal = [&](const GruShape& shape) {
    try {
      const GruSequence gru(device, shape);
      return std::string();
    } catch (const UnsupportedError& e) { return std::string(e.what()); }
  };
  GruShape shape{GruForm::reset_before, 2, 1, 2, 128, Storage::f32, WeightType::f32, false, "cluster"};
  EXPECT_NE(refusal(shape).find("cpu has no clusters of sm_90"), std::string::npos) << refusal(shape);
  shape.hidden = 1024;
  EXPECT_NE(refusal(shape).find("1024 hidden values: a cluster holds 128, 256 and 512"), std::string::npos);
  shape.hidden = 128, shape.weights = WeightType::bf16;
  EXPECT_NE(refusal(shape).find("weights in bf16"), std::string::npos);
  shape.weights = WeightType::f32, shape.storage = Storage::f64;
  EXPECT_NE(refusal(shape).find("a sequence in f64"), std::string::npos);
}

TEST(GruCluster, ItsSourcesCompile) {
  std::string reason;
  if (!clike::Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
  for (const Numerics numerics : {Numerics::exact, Numerics::fast})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const int64_t hidden : {128, 256, 512}) {
        const Kernel kernel = sequence_cluster(form, hidden, numerics);
        const clike::CudaSource source =
            device::cuda::source_of(kernel.function(), {numerics, {}, native_form(kernel)}, 90);
        EXPECT_EQ(source.cluster, 16);
        EXPECT_NO_THROW(clike::Nvrtc::get().compile(source.text, source.entry, 90,
                                                    clike::CudaOutput::own_cubin, numerics))
            << name(form) << " " << hidden;
      }
}

TEST_P(GruOn, RefusesWhatDoesNotFit) {
  const Device& device = test_device(GetParam());
  EXPECT_THROW(GruSequence(device, {.steps = 0}), InputError);
  EXPECT_THROW(GruSequence(device, {.storage = Storage::i32}), InputError);
  const GruShape shape{GruForm::reset_before, 2, 1, 2, 3, Storage::f64};
  GruSequence gru(device, shape);
  GruWeights weights = weights_of(problem_of(shape));
  weights.u = Array::of(wave(9, 1, 0), {3, 3});
  EXPECT_THROW(gru.set_weights(weights), InputError);
  weights = weights_of(problem_of(shape));
  weights.rb = weights.b;
  EXPECT_THROW(gru.set_weights(weights), InputError);
  EXPECT_THROW(gru.backward(device.allocate<f64>({2, 1, 3})), InputError);
  EXPECT_THROW(gru.forward(device.allocate<f32>({2, 1, 2}), device.allocate<f64>({1, 3})), InputError);
}

std::string safetensors(const std::string& header, const std::vector<double>& data) {
  std::string text(8, '\0');
  for (size_t k = 0; k < 8; ++k) text[k] = char(header.size() >> (8 * k) & 255);
  text += header;
  text.append(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(double));
  return text;
}
io::NpzArrays parse(const std::string& text) {
  return io::parse_safetensors(std::as_bytes(std::span<const char>(text.data(), text.size())),
                               "t.safetensors");
}

TEST(TorchGru, FilesOfBothKindsGiveTheSameWeights) {
  const std::vector<double> ih = wave(6 * 3, 0.5, 0), hh = wave(6 * 2, 0.5, 1), b = wave(6, 0.5, 2),
                            c = wave(6, 0.5, 3);
  const std::filesystem::path folder = testing::TempDir();
  io::write_npz(folder / "gru.npz", {{"weight_ih_l0", Array::of(ih, {6, 3})},
                                     {"weight_hh_l0", Array::of(hh, {6, 2})},
                                     {"bias_ih_l0", Array::of(b)},
                                     {"bias_hh_l0", Array::of(c)}});
  std::vector<double> data = ih;
  for (const auto* part : {&hh, &b, &c}) data.insert(data.end(), part->begin(), part->end());
  std::ofstream(folder / "gru.safetensors", std::ios::binary) << safetensors(
      R"({"__metadata__":{"format":"pt"},"e.weight_ih_l0":{"dtype":"F64","shape":[6,3],"data_offsets":[0,144]},)"
      R"("e.weight_hh_l0":{"dtype":"F64","shape":[6,2],"data_offsets":[144,240]},)"
      R"("e.bias_ih_l0":{"dtype":"F64","shape":[6],"data_offsets":[240,288]},)"
      R"("e.bias_hh_l0":{"dtype":"F64","shape":[6],"data_offsets":[288,336]}})",
      data);
  const GruWeights one = load_torch_gru(folder / "gru.npz"),
                   two = load_torch_gru(folder / "gru.safetensors", 0, "e.");
  for (const auto& [a, other] :
       {std::pair{&one.w, &two.w}, {&one.u, &two.u}, {&one.b, &two.b}, {&one.rb, &two.rb}})
    expect_close({a->as<double>().begin(), a->as<double>().end()},
                 {other->as<double>().begin(), other->as<double>().end()}, 0, "file");
  // Gate z is their second: row 2 + i of weight_ih is our column i.
  EXPECT_EQ(one.w.at<double>(2, 1), ih[(2 + 1) * 3 + 2]);
  EXPECT_EQ(one.u.at<double>(1, 2 + 0), hh[0 * 2 + 1]);
  EXPECT_EQ(one.rb.at<double>(5), c[5]);
  EXPECT_THROW(load_torch_gru(folder / "gru.npz", 1), InputError);
  EXPECT_THROW(weights_of_torch(Array::of(ih, {6, 3}), Array::of(ih, {6, 3}), Array(), Array()), InputError);
}

TEST(Safetensors, MalformedFilesAreRefused) {
  const std::vector<double> two{1, 2};
  const auto entry = [](const std::string& body) { return R"({"a":{)" + body + "}}"; };
  EXPECT_EQ(parse(safetensors(entry(R"("dtype":"F64","shape":[2],"data_offsets":[0,16])"), two))[0]
                .second.as<double>()[1],
            2);
  EXPECT_EQ(parse(safetensors(entry(R"("dtype":"F8_E4M3","shape":[16],"data_offsets":[0,16])"), two))
                .left_out.size(),
            1u);
  EXPECT_TRUE(parse(safetensors("{}", {})).empty());
  for (
      const std::string& bad : {
          std::string("\x01\0\0", 3),
          safetensors("[1]", {}),
          safetensors("{\"a\":", {}),
          safetensors(entry(R"("dtype":"F64","shape":[2])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[2],"data_offsets":[0,24])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[2],"data_offsets":[16,0])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[2],"data_offsets":[8,16])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[1],"data_offsets":[0,8])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[3],"data_offsets":[0,16])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,16])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[-2],"data_offsets":[0,16])"), two),
          safetensors(entry(R"("dtype":"F64","shape":[2.5],"data_offsets":[0,16])"), two),
          safetensors(entry(R"("dtype":"BOOL","shape":[16],"data_offsets":[0,16])"), two),
          safetensors(
              R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}})",
              two),
          safetensors(
              R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}})",
              two),
      })
    EXPECT_THROW(parse(bad), InputError) << bad;
  std::string long_header = safetensors("{}", {});
  long_header[7] = char(0x7f);
  EXPECT_THROW(parse(long_header), InputError);
}

}  // namespace
}  // namespace lockstep::forecast
