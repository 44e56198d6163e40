// GRU sequences against the plain reference, gradients against complex steps, weights of PyTorch.
#include "lockstep/forecast/gru.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "device/devices.hpp"
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
