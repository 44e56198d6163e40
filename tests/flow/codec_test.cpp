// The codec's latents: sizes, invariants of classic, anchors, batches, refusals. Cases hold the numbers to the
// plain reference.
#include "lockstep/flow/codec.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "device/devices.hpp"
#include "flow/codec/layout.hpp"
#include "flow/codec/reference.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {
namespace {

std::vector<float> codec_field(const BoxGrid& grid, uint64_t seed, Initial which = Initial::mcwilliams) {
  std::vector<float> w;
  {
    const Array one = initial_field(grid, which, seed);
    for (const double v : one.as<double>()) w.push_back(float(v));
  }
  return w;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    difference += std::pow(double(a[k]) - double(b[k]), 2);
    size += std::pow(double(b[k]), 2);
  }
  return std::sqrt(difference / size);
}

/// Encoded and decoded again.
std::vector<float> there_and_back(const Device& device, const CodecOptions& options,
                                  const std::vector<float>& w, Decoder decoder = Decoder::mean) {
  const Buffer field = device.upload(std::span<const float>(w), {1, options.grid.ny, options.grid.nx});
  const Codec codec(device, options, field);
  const Buffer latent = device.allocate<f32>({1, codec.latent_size()}),
               back = device.allocate<f32>({1, options.grid.ny, options.grid.nx});
  codec.encode(field, latent);
  codec.decode(latent, back, decoder);
  return device.download<f32>(back);
}

class CodecOn : public testing::TestWithParam<std::string> {};

TEST_P(CodecOn, ClassicHasThePublishedSize) {
  const Device& device = test_device(GetParam());
  const CodecOptions options{.kind = CodecKind::classic, .grid = {64, 64}};
  const std::vector<float> w = codec_field(options.grid, 1);
  const Codec codec(device, options, device.upload(std::span<const float>(w), {64, 64}));
  EXPECT_EQ(codec.latent_size(), 654);
  EXPECT_EQ(middle_modes(options).size(), 244u);
  EXPECT_EQ(codec.plan().anchors.size(), 128u);
  EXPECT_EQ(codec_layout(codec.plan()).modes.size(), 197u);
}

// The defect of the published decoder: its anchors change nothing; used, they bring the field closer.
TEST_P(CodecOn, AnchorsHelpOnlyWhereTheyAreUsed) {
  const Device& device = test_device(GetParam());
  CodecOptions options{.kind = CodecKind::classic, .grid = {48, 48}};
  const std::vector<float> w = codec_field(options.grid, 2, Initial::noise);
  const Buffer field = device.upload(std::span<const float>(w), {1, 48, 48});
  const Codec published(device, options, field);
  options.anchors = Anchors::used;
  const Codec used(device, options, field);
  const Buffer latent = device.allocate<f32>({1, used.latent_size()}),
               back = device.allocate<f32>({1, 48, 48});
  published.encode(field, latent);
  published.decode(latent, back);
  const std::vector<float> with_anchors = device.download<f32>(back);
  std::vector<float> z = device.download<f32>(latent);
  std::fill(z.end() - 256, z.end(), 0.0f);
  const Buffer without = device.upload(std::span<const float>(z), {1, used.latent_size()});
  published.decode(without, back);
  const std::vector<float> silent = device.download<f32>(back);
  EXPECT_EQ(std::memcmp(with_anchors.data(), silent.data(), silent.size() * 4), 0);
  used.decode(latent, back);
  EXPECT_LT(relative_error(device.download<f32>(back), w), 0.97 * relative_error(silent, w));
}

TEST_P(CodecOn, TheShareOfEnstrophyIsKept) {
  const Device& device = test_device(GetParam());
  for (const double share : {0.6, 0.9}) {
    const CodecOptions options{.grid = {40, 36, 6, 5}, .share = share};
    const std::vector<float> w = codec_field(options.grid, 3);
    const double error = relative_error(there_and_back(device, options, w), w);
    EXPECT_LE(error, std::sqrt(1 - share) + 1e-5);
    EXPECT_GT(error, 1e-3);
  }
}

// A flow whose small scales come later than its first frame keeps its share too.
TEST_P(CodecOn, TheShareIsKeptInEveryFrameOfASeries) {
  const Device& device = test_device(GetParam());
  const CodecOptions options{.grid = {32, 32}, .share = 0.9};
  const int64_t frames = 5;
  Array fields(Storage::f32, {frames, 32, 32});
  auto w = fields.mutate<float>();
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t y = 0; y < 32; ++y)
      for (int64_t x = 0; x < 32; ++x)
        w[size_t((frame * 32 + y) * 32 + x)] =
            float(std::sin(2 * std::numbers::pi * double((1 + 2 * frame) * x + y) / 32));
  const EncodedFields encoded = encode_fields(device, options, fields);
  const Array back = decode_fields(device, encoded);
  for (int64_t frame = 0; frame < frames; ++frame) {
    const auto of = [&](const Array& a) {
      const Array one = a.slice(0, frame, 1).packed();
      return std::vector<float>(one.as<float>().begin(), one.as<float>().end());
    };
    EXPECT_LE(relative_error(of(back), of(fields)), std::sqrt(1 - options.share) + 1e-5) << frame;
  }
}

// The random modes restore the enstrophy that the mean lacks, where the mask lets them.
TEST_P(CodecOn, StochasticDecodersRestoreTheEnstrophy) {
  const Device& device = test_device(GetParam());
  for (const CodecKind kind : {CodecKind::v2, CodecKind::classic}) {
    const CodecOptions options{.kind = kind, .grid = {64, 64}, .share = 0.8, .seed = 5};
    const std::vector<float> w = codec_field(options.grid, 4, Initial::noise);
    const auto enstrophy = [](const std::vector<float>& of) {
      double sum = 0;
      for (const float v : of) sum += double(v) * v;
      return sum / double(of.size());
    };
    const Buffer field = device.upload(std::span<const float>(w), {1, 64, 64}),
                 back = device.allocate<f32>({1, 64, 64});
    const Codec codec(device, options, field);
    const Buffer latent = device.allocate<f32>({1, codec.latent_size()});
    codec.encode(field, latent);
    codec.decode(latent, back);
    const std::vector<float> mean = device.download<f32>(back);
    double drawn = 0, error = 0;
    constexpr int kDraws = 16;
    for (int64_t number = 0; number < kDraws; ++number) {
      codec.decode(latent, back, Decoder::stochastic, number);
      const std::vector<float> one = device.download<f32>(back);
      drawn += enstrophy(one) / kDraws;
      error += relative_error(one, w) / kDraws;
    }
    EXPECT_LT(relative_error(mean, w), error);
    // classic knows the energies of the residual only, and leaves its anchors out.
    if (kind == CodecKind::v2) {
      EXPECT_LT(std::abs(drawn - enstrophy(w)), 0.7 * std::abs(enstrophy(mean) - enstrophy(w)));
    } else {
      EXPECT_GT(drawn, enstrophy(mean));
    }
  }
}

// Batches of any size give the bits of single frames, with the frame's own random phases.
TEST_P(CodecOn, FramesDoNotKnowEachOther) {
  const Device& device = test_device(GetParam());
  for (const CodecKind kind : {CodecKind::v2, CodecKind::classic}) {
    const CodecOptions options{.kind = kind, .grid = {32, 30}, .low = 4, .middle = 8, .box = 5, .share = 0.9};
    const int64_t frames = device.info().kind == DeviceKind::interp ? 5 : 70;
    std::vector<float> all;
    for (uint64_t f = 0; f < uint64_t(frames); ++f)
      for (const float v : codec_field(options.grid, f)) all.push_back(v);
    const Buffer fields = device.upload(std::span<const float>(all), {frames, 30, 32}),
                 back = device.allocate<f32>({frames, 30, 32}), one = device.allocate<f32>({1, 30, 32});
    const Codec codec(device, options, fields.rows(0, 1));
    const Buffer latent = device.allocate<f32>({frames, codec.latent_size()}),
                 alone = device.allocate<f32>({1, codec.latent_size()});
    codec.encode(fields, latent);
    codec.decode(latent, back, Decoder::stochastic, 7);
    for (const int64_t f : {int64_t(3), frames - 1}) {
      codec.encode(fields.rows(f, 1), alone);
      EXPECT_EQ(device.download<f32>(alone), device.download<f32>(latent.rows(f, 1)));
      codec.decode(alone, one, Decoder::stochastic, 7 + f);
      EXPECT_EQ(device.download<f32>(one), device.download<f32>(back.rows(f, 1)));
    }
  }
}

TEST_P(CodecOn, PlansAreEnough) {
  const Device& device = test_device(GetParam());
  const CodecOptions options{.grid = {33, 21}};  // odd lengths
  const std::vector<float> w = codec_field({34, 22}, 1);
  const Buffer field = device.upload(std::span<const float>(w.data(), 33 * 21), {1, 21, 33});
  const Codec codec(device, options, field), same(device, codec.plan());
  const Buffer a = device.allocate<f32>({1, codec.latent_size()}),
               b = device.allocate<f32>({1, same.latent_size()});
  codec.encode(field, a);
  same.encode(field, b);
  EXPECT_EQ(device.download<f32>(a), device.download<f32>(b));
}

TEST_P(CodecOn, BadInputIsNamed) {
  const Device& device = test_device(GetParam());
  const Buffer field = device.upload(std::vector<float>(256, 0.0f)).reshape({1, 16, 16});
  const CodecOptions good{.grid = {16, 16}};
  const Codec codec(device, good, field);  // a field of zeros
  EXPECT_THROW(codec.encode(field, device.allocate<f32>({1, 3})), InputError);
  EXPECT_THROW(codec.encode(field.reshape({1, 8, 32}), device.allocate<f32>({1, codec.latent_size()})),
               InputError);
  CodecOptions bad = good;
  bad.share = 0;
  EXPECT_THROW(Codec(device, bad, field), InputError);
  bad = good;
  bad.cut = 1e-300;  // a thousand octaves lie beyond it
  EXPECT_THROW(Codec(device, bad, field), InputError);
  for (const double length : {1e30, 1e-9, std::numeric_limits<double>::denorm_min()}) {
    bad = good;
    bad.grid.lx = length;
    EXPECT_THROW(Codec(device, bad, field), InputError) << length;
  }
  bad = good;
  bad.kind = CodecKind::classic;  // its bands reach beyond 16 points
  EXPECT_THROW(Codec(device, bad, field), InputError);
  bad.middle = 6, bad.low = 3, bad.box = 4;
  EXPECT_THROW(Codec(device, bad, field), InputError);
  std::vector<float> nan(256, 0.0f);
  nan[9] = std::nanf("");
  EXPECT_THROW(Codec(device, good, device.upload(nan).reshape({16, 16})), InputError);
}

TEST(FlowCodec, TheDocumentHasEachNumberUnderItsName) {
  CodecRunResult r;
  r.plan.options.grid = {16, 32}, r.plan.options.cut = 9;
  r.frames = 1, r.latent_size = 2, r.bytes = 3, r.bits_per_point = 4, r.ratio = 5, r.bound = 6;
  r.errors = CodecErrors{0.5, 0.25, 7, 8, 0.75, 10};
  auto j = nlohmann::json::parse(to_json(r));
  const std::pair<const char*, double> numbers[] = {
      {"frames", 1},         {"latent_size", 2},   {"bytes", 3},         {"bits_per_point", 4}, {"ratio", 5},
      {"bound", 6},          {"cut", 9},           {"relative_l2", 0.5}, {"max_error", 0.25},   {"psnr", 7},
      {"spectrum_error", 8}, {"least_kept", 0.75}, {"worst_frame", 10}};
  for (const auto& [name, value] : numbers) EXPECT_EQ(j.at(name), value) << name;
  EXPECT_EQ(j["n"], (nlohmann::json{32, 16}));
  r.errors->psnr = std::numeric_limits<double>::infinity(), r.bound.reset();
  j = nlohmann::json::parse(to_json(r));
  EXPECT_TRUE(j["psnr"].is_null() && !j.contains("bound"));
  r.errors.reset();
  EXPECT_FALSE(nlohmann::json::parse(to_json(r)).contains("max_error"));
}

INSTANTIATE_TEST_SUITE_P(Devices, CodecOn, testing::ValuesIn(host_devices()),
                         [](const auto& run) { return test_name(run.param); });

}  // namespace
}  // namespace lockstep::flow
