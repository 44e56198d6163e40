// Coded fields: the bound on the error for random and adversarial fields, the coder against its plain form, files.
// LOCKSTEP_CODEC_FIELDS sets how many fields the bound is tried on (10000; 44 without a compiler).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <span>

#include "device/devices.hpp"
#include "flow/codec/kernels/residual.hpp"
#include "flow/codec/rans/rans.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow/codec.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {
namespace {

using Random = std::mt19937_64;

int64_t drawn(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
double power(Random& random, double low, double high) {
  return std::pow(10.0, std::uniform_real_distribution<double>(low, high)(random));
}

constexpr int kFieldKinds = 11;

/// A field that is hard in one way.
void fill_hard(int kind, const BoxGrid& grid, std::span<float> w, Random& random) {
  const float size = float(power(random, -30, 30));
  std::normal_distribution<float> normal;
  const auto each = [&](auto f) {
    for (size_t k = 0; k < w.size(); ++k) w[k] = f(int64_t(k) / grid.nx, int64_t(k) % grid.nx);
  };
  std::fill(w.begin(), w.end(), 0.0f);
  switch (kind) {
    case 0:
      each([&](int64_t y, int64_t x) { return size * std::sin(0.7f * float(x) + 0.3f * float(y)); });
      break;
    case 1: each([&](int64_t, int64_t) { return size * normal(random); }); break;
    case 2: each([&](int64_t, int64_t) { return size; }); break;               // constant
    case 3: w[size_t(drawn(random, 0, int64_t(w.size()) - 1))] = size; break;  // one spike
    case 4: each([&](int64_t y, int64_t x) { return (x + y) % 2 == 0 ? size : -size; }); break;
    case 5:
      each([&](int64_t, int64_t) { return 3.4e38f * (drawn(random, 0, 1) == 0 ? 1.0f : -1.0f); });
      break;
    case 6:
      each([&](int64_t, int64_t) { return std::bit_cast<float>(uint32_t(drawn(random, 0, 0x7FFFFF))); });
      break;
    case 7:  // any finite bits
      each([&](int64_t, int64_t) {
        const auto v = std::bit_cast<float>(uint32_t(random()));
        return std::isfinite(v) ? v : -0.0f;
      });
      break;
    case 8:
      each([&](int64_t, int64_t x) { return x < grid.nx / 2 ? size : -0.0f; });
      break;  // a step, and -0
    case 9: each([&](int64_t, int64_t) { return size * float(power(random, -7, 0)); }); break;
    default: break;  // zeros
  }
}
/// (frames, ny, nx): the first of a kind, which is all that the codec knows, others of any where `mixed`.
Array hard_fields(int kind, const BoxGrid& grid, int64_t frames, bool mixed, Random& random) {
  std::vector<float> w(size_t(frames * grid.points()));
  for (int64_t f = 0; f < frames; ++f)
    fill_hard(f > 0 && mixed ? int(drawn(random, 0, kFieldKinds - 1)) : kind, grid,
              std::span(w).subspan(size_t(f * grid.points()), size_t(grid.points())), random);
  return Array::of(std::move(w), {frames, grid.ny, grid.nx});
}

double largest(const Array& a) {
  double most = 0;
  for (const float v : a.as<float>()) most = std::max(most, std::abs(double(v)));
  return most;
}

void expect_within(const Array& decoded, const Array& field, double bound, const std::string& what) {
  const auto a = field.as<float>(), b = decoded.as<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_LE(std::abs(double(a[k]) - double(b[k])), bound) << what << " at " << k;
    if (bound == 0) {
      ASSERT_EQ(std::bit_cast<uint32_t>(a[k]), std::bit_cast<uint32_t>(b[k])) << what << " at " << k;
    }
  }
}

TEST(FlowCodecBound, HoldsForHardFields) {
  const std::vector<std::string> hosts = host_devices();
  const bool slow = std::ranges::find(hosts, "cpu") == hosts.end();
  const Device device = test_device(slow ? "interp" : "cpu");
  const char* wanted = std::getenv("LOCKSTEP_CODEC_FIELDS");
  const int64_t count = wanted ? std::atoll(wanted) : slow ? 44 : 10000;
  Random random(11);
  const BoxGrid grids[] = {{4, 4}, {16, 16}, {33, 21}, {40, 7}, {12, 70}};
  int64_t done = 0;
  for (int n = 0; done < count; ++n) {
    const BoxGrid grid = grids[drawn(random, 0, 4)];
    const int kind = n % kFieldKinds;
    const Array field = hard_fields(kind, grid, drawn(random, 1, slow ? 3 : 140), n % 2 == 1, random);
    done += field.size(0);
    const double bound = n % 3 == 0    ? 0
                         : n % 17 == 0 ? power(random, -45, 38)
                                       : largest(field) * power(random, -9, 1);
    const std::string what = "fields " + std::to_string(n) + " of kind " + std::to_string(kind) + ", bound " +
                             std::to_string(bound);
    const EncodedFields encoded = encode_fields(device, {.grid = grid}, field, bound);
    expect_within(decode_fields(device, encoded), field, bound, what);
    if (HasFatalFailure()) return;
  }
}

TEST(FlowCodecBound, DevicesWriteAndReadTheSameBytes) {
  const BoxGrid grid{24, 20};
  Random random(3);
  std::vector<float> w;
  for (uint64_t f = 0; f < 3; ++f) {
    const Array one = initial_field(grid, Initial::mcwilliams, f);
    for (const double v : one.as<double>()) w.push_back(float(v));
  }
  const Array field = Array::of(std::move(w), {3, 20, 24});
  for (const double bound : {0.0, 1e-2}) {
    std::vector<EncodedFields> all;
    for (const std::string& name : host_devices())
      all.push_back(encode_fields(test_device(name), {.grid = grid}, field, bound));
    for (const EncodedFields& e : all) {
      EXPECT_EQ(e.latent_code, all[0].latent_code);
      EXPECT_EQ(e.residual_code, all[0].residual_code);
      EXPECT_EQ(e.exact, all[0].exact);
    }
    for (const std::string& name : host_devices()) {
      expect_within(decode_fields(test_device(name), all.back()), field, bound, name);
      const Array z = latents_of(test_device(name), all.front());
      EXPECT_EQ(z.size(0), 3);
    }
  }
}

// Bounded fields cost fewer bits the larger the bound, and far fewer than f32.
TEST(FlowCodecBound, BitsFallWithTheBound) {
  const Device device = test_device(host_devices().back());
  const BoxGrid grid{64, 64};
  std::vector<float> w;
  {
    const Array one = initial_field(grid, Initial::mcwilliams, 4);
    for (const double v : one.as<double>()) w.push_back(float(v));
  }
  const Array field = Array::of(std::move(w), {1, 64, 64});
  double before = 32;
  for (const double share : {0.0, 1e-5, 1e-3, 1e-2}) {
    const EncodedFields e = encode_fields(device, {.grid = grid}, field, share * largest(field));
    const double bits = 8 * double(e.latent_code.size() + e.residual_code.size()) / 4096;
    EXPECT_LT(bits, 0.9 * before) << share;
    before = bits;
  }
  EXPECT_LT(before, 4);
}

TEST(FlowCodecBound, RefusalsNameFrameAndPoint) {
  const Device device = test_device(host_devices().back());
  Array field(Storage::f32, {3, 8, 8});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    field.mutate<float>()[64 + 8 * 2 + 5] = bad;
    try {
      encode_fields(device, {.grid = {8, 8}}, field, 0.1);
      ADD_FAILURE();
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("frame 1 is not finite at point (y, x) = (2, 5)"),
                std::string::npos)
          << error.what();
    }
  }
  const Array sound(Storage::f32, {1, 8, 8});
  EXPECT_THROW(encode_fields(device, {.grid = {8, 8}}, sound, -1), InputError);
  EXPECT_THROW(encode_fields(device, {.grid = {8, 8}}, sound, std::nan("")), InputError);
  EXPECT_THROW(encode_fields(device, {.grid = {8, 9}}, sound, 1), InputError);
  EXPECT_THROW(encode_fields(device, {.kind = CodecKind::classic, .grid = {64, 64}},
                             Array(Storage::f32, {1, 64, 64}), 1),
               InputError);
  const EncodedFields e = encode_fields(device, {.grid = {8, 8}}, sound, 1);
  EXPECT_THROW(decode_fields(device, e, Decoder::stochastic), InputError);
}

// ── the coder ──

std::vector<uint32_t> coded_numbers(Random& random, int64_t count, int kind) {
  std::vector<uint32_t> numbers;
  for (int64_t k = 0; k < count; ++k) {
    const double u = std::generate_canonical<double, 53>(random);
    numbers.push_back(kind == 0   ? 0u
                      : kind == 1 ? uint32_t(-std::log(1 - u))
                      : kind == 2 ? uint32_t(random())
                      : kind == 3 ? (k % 97 == 0 ? 0xFFFFFFFFu : 1u)
                                  : uint32_t(std::pow(2.0, 31 * u)));
  }
  return numbers;
}

TEST(FlowCodecRans, BytesAreThoseOfThePlainCoder) {
  Random random(5);
  for (const RansShape& shape : {RansShape{1, 1, 1}, RansShape{2, 65, 33}, RansShape{1, 3, 700},
                                 RansShape{1, 70, 130}, RansShape{3, 1, 2049}})
    for (int kind = 0; kind < 5; ++kind) {
      const std::vector<uint32_t> numbers = coded_numbers(random, shape.numbers(), kind);
      const std::vector<uint8_t> plain = reference::rans_encode(numbers, shape);
      EXPECT_EQ(reference::rans_decode(plain, shape), numbers);
      for (const std::string& name : host_devices()) {
        if (name == "interp" && shape.numbers() > 4000) continue;
        const Device& device = test_device(name);
        const Shape of{shape.frames, shape.rows, shape.columns};
        EXPECT_EQ(rans_encode(device, device.upload(std::span<const uint32_t>(numbers), of)), plain) << name;
        const Buffer back = device.allocate<u32>(of);
        rans_decode(device, plain, back, "test");
        EXPECT_EQ(device.download<u32>(back), numbers) << name;
      }
    }
}

TEST(FlowCodecRans, TablesUseAllSlots) {
  std::vector<uint32_t> counts(2 * kTokens, 0);
  for (uint32_t t = 0; t < kTokens; ++t) counts[t] = t == 3 ? 4000000000u : 1u;
  const std::vector<uint32_t> f = rans_frequencies(counts, 2);
  uint32_t sum = 0;
  for (uint32_t t = 0; t < kTokens; ++t) {
    EXPECT_GE(f[t], 1u);
    sum += f[t];
    EXPECT_EQ(f[kTokens + t], 0u);
  }
  EXPECT_EQ(sum, kTableSize);
}

TEST(FlowCodecRans, DamageIsFoundOrHarmless) {
  const Device device = test_device(host_devices().back());
  Random random(6);
  const RansShape shape{1, 20, 30};
  const std::vector<uint32_t> numbers = coded_numbers(random, shape.numbers(), 1);
  const std::vector<uint8_t> whole = reference::rans_encode(numbers, shape);
  const Buffer back = device.allocate<u32>({1, 20, 30});
  for (const size_t length : {size_t(0), size_t(3), size_t(19), whole.size() / 2, whole.size() - 1})
    EXPECT_THROW(rans_decode(device, std::span(whole).first(length), back, "test"), InputError);
  int found = 0;
  for (int k = 0; k < 60; ++k) {
    std::vector<uint8_t> damaged = whole;
    damaged[size_t(drawn(random, 0, int64_t(whole.size()) - 1))] ^= uint8_t(1 << drawn(random, 0, 7));
    try {
      rans_decode(device, damaged, back, "test");
    } catch (const InputError&) { ++found; }
  }
  EXPECT_GT(found, 30);  // the file's checksum finds the others
}

// ── files ──

class CodecFile : public testing::Test {
 protected:
  void SetUp() override { path_ = testing::TempDir() + "flow_codec_test.npz"; }
  void TearDown() override { std::remove(path_.c_str()); }
  EncodedFields sample(std::optional<double> bound, CodecKind kind = CodecKind::v2) {
    const BoxGrid grid{32, 30, 6, 5};
    std::vector<float> w;
    for (uint64_t f = 0; f < 4; ++f) {
      const Array one = initial_field(grid, Initial::mcwilliams, f);
      for (const double v : one.as<double>()) w.push_back(float(v));
    }
    CodecOptions options{.kind = kind, .grid = grid, .low = 4, .middle = 8, .box = 5};
    EncodedFields e = encode_fields(test_device(host_devices().back()), options,
                                    Array::of(std::move(w), {4, 30, 32}), bound);
    e.members = 2;
    e.time = {0.5, 1.5};
    return e;
  }
  std::vector<char> contents() {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::vector<char>& bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), int64_t(bytes.size()));
  }
  std::string path_;
};

TEST_F(CodecFile, RoundTrips) {
  const Device& device = test_device(host_devices().back());
  for (const auto& [kind, bound] : {std::pair{CodecKind::v2, std::optional<double>()},
                                    std::pair{CodecKind::v2, std::optional<double>(0.01)},
                                    std::pair{CodecKind::classic, std::optional<double>()}}) {
    const EncodedFields e = sample(bound, kind);
    EXPECT_GT(write_encoded(path_, e), 0);
    const EncodedFields back = read_encoded(path_);
    EXPECT_EQ(back.time, e.time);
    EXPECT_EQ(back.members, 2);
    EXPECT_EQ(back.plan.options.cut, e.plan.options.cut);
    EXPECT_EQ(back.max_error, e.max_error);
    const Array a = decode_fields(device, e), b = decode_fields(device, back);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), size_t(a.bytes())), 0);
  }
}

// A codec whose scales are of another number, or whose cut is none, is not requested its layout.
TEST_F(CodecFile, ModelsOfOtherCodecsAreRefused) {
  EncodedFields e = sample({});
  e.members = 1;
  e.time = {0, 1, 2, 3};
  write_encoded(path_, e);
  const std::string file = testing::TempDir() + "flow_codec_model.npz";
  ContextOptions on;
  on.device = host_devices().back();
  Context context(on);
  learn_run(context, {.input = path_, .output = file});
  const io::NpzArrays sound = io::read_npz(file);
  const auto refused_with = [&](const std::string& key, const Array& array) {
    io::NpzArrays arrays = sound;
    for (auto& [name, value] : arrays)
      if (name == key) value = array;
    io::write_npz(file, arrays);
    try {
      rollout_run(context, {.input = file, .output = path_, .steps = 1});
    } catch (const InputError& error) { return std::string(error.what()); }
    return std::string("nothing");
  };
  EXPECT_EQ(refused_with("", {}), "nothing");
  const Array scales = io::find_array(sound, "codec_scales", "test");
  for (const int64_t count : {int64_t(0), int64_t(3), scales.size(0) - 1})
    EXPECT_NE(refused_with("codec_scales", scales.slice(0, 0, count).copy()).find("scales for"),
              std::string::npos)
        << count;
  Array codec = io::find_array(sound, "codec", "test").copy();
  codec.mutate<double>()[12] = 0;
  EXPECT_NE(refused_with("codec", codec).find("no cut"), std::string::npos);
  const Array anchors = Array::of(std::vector<int32_t>{-1});
  EXPECT_NE(refused_with("codec_anchors", anchors).find("an anchor at -1"), std::string::npos);
  std::remove(file.c_str());
}

TEST_F(CodecFile, DamageIsNamed) {
  write_encoded(path_, sample(0.01));
  const std::vector<char> whole = contents();
  const EncodedFields sound = read_encoded(path_);
  Random random(8);
  int found = 0;
  for (int k = 0; k < 150; ++k) {
    std::vector<char> damaged = whole;
    if (k < 20)
      damaged.resize(size_t(drawn(random, 0, int64_t(whole.size()) - 1)));
    else
      damaged[size_t(drawn(random, 0, int64_t(whole.size()) - 1))] ^= char(1 << drawn(random, 0, 7));
    replace(damaged);
    try {
      // Bytes of the archive that say nothing about its contents may change.
      const EncodedFields e = read_encoded(path_);
      EXPECT_EQ(e.residual_code, sound.residual_code);
      EXPECT_EQ(e.latent_code, sound.latent_code);
      EXPECT_EQ(e.plan.scales, sound.plan.scales);
    } catch (const InputError&) { ++found; }
  }
  EXPECT_GT(found, 100);
  EXPECT_THROW(write_encoded(testing::TempDir() + "fields.nc", sound), InputError);
}

}  // namespace
}  // namespace lockstep::flow
