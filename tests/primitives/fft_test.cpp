// Fourier transforms: properties that hold for every form, the same bits of all forms, and errors.
#include "lockstep/fft.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "primitives/fft/plan.hpp"
#include "primitives/fft/reference.hpp"
#include "primitives/fft/twiddles.hpp"
#include "verify/inputs.hpp"

namespace lockstep {
namespace {

namespace ref = primitives::fft::reference;

FftOptions options(FftKind kind, Shape lengths, Storage type = Storage::f32, int64_t batch = 1) {
  FftOptions o;
  o.kind = kind;
  o.type = type;
  o.lengths = lengths;
  o.batch = batch;
  return o;
}

template <class T>
std::vector<T> run(const Fft& plan, const Device& device, const std::vector<T>& in, FftDirection direction) {
  const bool inverse = direction == FftDirection::inverse;
  const Buffer to = device.allocate<T>(inverse ? plan.field_shape() : plan.spectrum_shape());
  plan.execute(device.upload(std::span<const T>(in), inverse ? plan.spectrum_shape() : plan.field_shape()),
               to, direction);
  return device.download<T>(to);
}
template <class T>
std::vector<T> forward(const Fft& plan, const Device& device, const std::vector<T>& in) {
  return run<T>(plan, device, in, FftDirection::forward);
}
template <class T>
std::vector<T> inverse(const Fft& plan, const Device& device, const std::vector<T>& in) {
  return run<T>(plan, device, in, FftDirection::inverse);
}

template <class T>
double rms(const std::vector<T>& a, const std::vector<T>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    size += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

TEST(Fft, ErrorStaysBelowTheBoundForEachLength) {
  const Device device = Device::open("interp");
  for (const int64_t n : {2, 3, 4, 5, 7, 8, 15, 64, 97, 128, 210, 256, 1000, 1024}) {
    const auto x = cases::uniform<f32>(2 * n, uint64_t(n));
    const auto got = forward(Fft(device, options(FftKind::c2c, {n})), device, x);
    ref::Field field;
    for (int64_t i = 0; i < n; ++i) field.emplace_back(x[size_t(2 * i)], x[size_t(2 * i + 1)]);
    std::vector<double> exact, values(got.begin(), got.end());
    for (const ref::Number& v : ref::transform(field, 1, n, 1, -1)) {
      exact.push_back(double(v.real()));
      exact.push_back(double(v.imag()));
    }
    EXPECT_LE(rms(values, exact), 2 * 0x1p-23 * std::log2(double(n))) << n;
  }
}

TEST(Fft, ThereAndBackIsTheField) {
  const Device device = Device::open("interp");
  for (const Shape& lengths : {Shape{30, 14}, Shape{64, 32}, Shape{11, 9}}) {
    auto o = options(FftKind::r2c, lengths, Storage::f64, 2);
    const Fft there(device, o);
    o.kind = FftKind::c2r;
    o.scale_inverse = true;
    const Fft back(device, o);
    const auto x = cases::uniform<f64>(there.field_shape().elements(), 3);
    EXPECT_LE(rms(inverse(back, device, forward(there, device, x)), x), 1e-14) << to_string(lengths);
  }
}

TEST(Fft, TheFieldsEnergyIsTheSpectrums) {
  const Device device = Device::open("interp");
  const auto x = cases::uniform<f64>(2 * 60 * 16, 4);
  const auto y = forward(Fft(device, options(FftKind::c2c, {60, 16}, Storage::f64)), device, x);
  double field = 0, spectrum = 0;
  for (const double v : x) field += v * v;
  for (const double v : y) spectrum += v * v;
  EXPECT_NEAR(spectrum / (60 * 16 * field), 1, 1e-14);
}

TEST(Fft, AnImpulseAtPlaceSIsAWaveOfThatFrequency) {
  const Device device = Device::open("interp");
  for (const int64_t n : {16, 21, 97})
    for (const int64_t s : {0, 1, 5}) {
      std::vector<f64> x(size_t(2 * n));
      x[size_t(2 * s)] = 1;
      const auto y = forward(Fft(device, options(FftKind::c2c, {n}, Storage::f64)), device, x);
      for (int64_t k = 0; k < n; ++k) {
        const double angle = -2 * M_PI * double(s * k % n) / double(n);
        EXPECT_NEAR(y[size_t(2 * k)], std::cos(angle), 1e-14);
        EXPECT_NEAR(y[size_t(2 * k + 1)], std::sin(angle), 1e-14);
      }
    }
}

TEST(Fft, SumsOfFieldsAreSumsOfSpectra) {
  const Device device = Device::open("interp");
  const Fft plan(device, options(FftKind::r2c, {12, 20}, Storage::f64));
  const auto a = cases::uniform<f64>(240, 5), b = cases::uniform<f64>(240, 6);
  std::vector<f64> mixed(a.size()), expected;
  for (size_t i = 0; i < a.size(); ++i) mixed[i] = 2 * a[i] - b[i];
  const auto fa = forward(plan, device, a), fb = forward(plan, device, b);
  for (size_t i = 0; i < fa.size(); ++i) expected.push_back(2 * fa[i] - fb[i]);
  EXPECT_LE(rms(forward(plan, device, mixed), expected), 1e-15);
}

TEST(Fft, ANanReachesAllThatDependOnIt) {
  const Device device = Device::open("interp");
  for (const int64_t n : {8, 30, 97}) {
    std::vector<f32> x(size_t(2 * n), 1);
    x[6] = std::nanf("");
    for (const float v : forward(Fft(device, options(FftKind::c2c, {n})), device, x))
      EXPECT_TRUE(std::isnan(v)) << n;
  }
  // Of two fields the other one stays.
  std::vector<f32> x(2 * 8 * 8, 1);
  x[3] = std::nanf("");
  const auto y = forward(Fft(device, options(FftKind::r2c, {8, 8}, Storage::f32, 2)), device, x);
  EXPECT_TRUE(std::isnan(y.front()));
  EXPECT_EQ(y[y.size() / 2], 64);
}

/// A plan of one form on one device.
std::vector<f32> of_form(const Device& device, FftOptions o, const char* form) {
  o.variant = form;
  const Fft plan(device, o);
  const bool back = o.kind == FftKind::c2r;
  const auto x = cases::uniform<f32>((back ? plan.spectrum_shape() : plan.field_shape()).elements(), 8);
  return run<f32>(plan, device, x, back ? FftDirection::inverse : FftDirection::forward);
}

// Tables, Bluestein's factors and scratch arrays.
TEST(Fft, BytesOfAPlanAreForetold) {
  const Device device = Device::open("interp");
  for (const FftKind kind : {FftKind::c2c, FftKind::r2c, FftKind::c2r})
    for (const Shape& lengths : {Shape{64}, Shape{1}, Shape{22}, Shape{62, 44}, Shape{33, 48}, Shape{16, 26}})
      for (const char* form : {"", "passes", "blocks"}) {
        FftOptions o =
            options(kind, lengths, lengths[0] == 33 ? Storage::f64 : Storage::f32, lengths[0] == 62 ? 3 : 1);
        o.variant = form;
        const int64_t before = device.counters().allocated_bytes;
        const Fft plan(device, o);
        const int64_t bytes = primitives::fft::plan_bytes(o, primitives::fft::choice_for(device.info(), o));
        EXPECT_EQ(bytes, device.counters().allocated_bytes - before) << to_string(Sizes(lengths));
      }
}

TEST(Fft, AllFormsGiveTheSameBits) {
  struct Plan {
    FftKind kind;
    Shape lengths;
    int64_t batch;
    Shape kept;
    bool compiled;  // also on the devices that compile
  };
  const Plan plans[] = {
      {FftKind::c2c, {64}, 19, {}, true},          {FftKind::r2c, {256}, 2, {}, false},
      {FftKind::c2r, {128}, 5, {}, false},         {FftKind::r2c, {32, 64}, 1, {10, 21}, true},
      {FftKind::c2r, {64, 32}, 2, {21, 10}, true}, {FftKind::c2c, {16, 128}, 1, {5, 42}, false},
      {FftKind::r2c, {40, 48}, 1, {}, false},      {FftKind::c2r, {15, 21}, 1, {}, false}};
  for (const Plan& p : plans) {
    FftOptions o = options(p.kind, p.lengths, Storage::f32, p.batch);
    o.kept = p.kept;
    const std::vector<f32> expected = of_form(Device::open("interp"), o, "passes");
    for (const char* where : {"interp", "cpu", "cuda"})
      for (const std::string form : {"passes", "blocks", "lanes"}) {
        Device device;
        try {
          device = Device::open(where);
        } catch (const UnsupportedError&) { continue; }
        if (device.info().kind != DeviceKind::interp && !p.compiled) continue;
        if (device.info().kind == DeviceKind::cuda && form == "lanes") continue;
        const std::vector<f32> got = of_form(device, o, form.c_str());
        EXPECT_EQ(std::memcmp(expected.data(), got.data(), 4 * got.size()), 0)
            << where << " form " << form << " " << to_string(p.lengths);
      }
  }
}

TEST(Fft, WindowsAreTransformedWhereTheyLie) {
  const Device device = Device::open("cpu");
  const Fft plan(device, options(FftKind::r2c, {16, 8}));
  const auto whole = cases::uniform<f32>(20 * 13, 9);
  const Buffer field = device.upload(std::span<const f32>(whole), {20, 13}).window({2, 3}, {16, 8}),
               spectra = device.allocate<f32>({18, 7, 2}), spectrum = spectra.window({1, 1, 0}, {16, 5, 2});
  plan.execute(field, spectrum);
  std::vector<f32> packed;
  for (size_t y = 2; y < 18; ++y)
    packed.insert(packed.end(), whole.begin() + long(y * 13 + 3), whole.begin() + long(y * 13 + 11));
  EXPECT_EQ(device.download<f32>(spectrum), forward(plan, device, packed));
}

TEST(Fft, BadInputIsRefused) {
  const Device device = Device::open("cpu");
  const auto refused = [&](FftOptions o) { EXPECT_THROW(Fft(device, o), InputError); };
  refused(options(FftKind::c2c, {0}));
  refused(options(FftKind::c2c, {-4, 4}));
  refused(options(FftKind::c2c, {2, 2, 2}));
  refused(options(FftKind::c2c, {}));
  refused(options(FftKind::c2c, {8}, Storage::i32));
  refused(options(FftKind::c2c, {8}, Storage::f32, 0));
  auto o = options(FftKind::r2c, {8, 8});
  o.kept = {4, 4};
  refused(o);
  o.kept = {3};
  refused(o);
  EXPECT_THROW(Fft().options(), InputError);

  const Fft plan(device, options(FftKind::r2c, {8, 8}));
  const Buffer field = device.allocate<f32>({8, 8}), spectrum = device.allocate<f32>({8, 5, 2});
  EXPECT_NO_THROW(plan.execute(field, spectrum));
  EXPECT_THROW(plan.execute(spectrum, field), InputError);
  EXPECT_THROW(plan.execute(field, spectrum, FftDirection::inverse), InputError);
  EXPECT_THROW(plan.execute(field, device.allocate<f64>({8, 5, 2})), InputError);
  EXPECT_THROW(plan.execute(Buffer(), spectrum), InputError);
}

TEST(Fft, DoubleIsRefusedWhereTheDeviceHasNone) {
  DeviceOptions lowered;
  lowered.lower_limits = [](Limits& limits) { limits.f64 = false; };
  const Device device = Device::open("cpu", lowered);
  EXPECT_THROW(Fft(device, options(FftKind::c2c, {8}, Storage::f64)), UnsupportedError);
  EXPECT_NO_THROW(Fft(device, options(FftKind::c2c, {8})));
}

// They are rounded from more digits than long double has anywhere, so no C library decides a bit.
TEST(FftTables, HaveTwiceTheDigits) {
  using primitives::fft::Root, primitives::fft::root_of_unity, primitives::fft::DoubleDouble;
  for (const int64_t n : {3, 5, 12, 60, 210, 1000, 1024, 99991})
    for (int64_t k = 0; k < n; k += std::max<int64_t>(n / 301, 1)) {
      const Root w = root_of_unity(k, n), v = root_of_unity(7 * k + 1, n), both = root_of_unity(8 * k + 1, n);
      const long double turn = 2 * std::numbers::pi_v<long double> * (long double)(k) / (long double)(n);
      EXPECT_NEAR(double((long double)(w.re.hi) - std::cos(turn) + w.re.lo), 0, 1e-18) << k << " of " << n;
      EXPECT_NEAR(double((long double)(w.im.hi) + std::sin(turn) + w.im.lo), 0, 1e-18) << k << " of " << n;
      const DoubleDouble one{1, 0};
      EXPECT_LT(std::abs((w.re * w.re + w.im * w.im - one).hi), 0x1p-82) << k << " of " << n;
      EXPECT_LT(std::abs((w.re * v.re - w.im * v.im - both.re).hi), 0x1p-82) << k << " of " << n;
      EXPECT_LT(std::abs((w.re * v.im + w.im * v.re - both.im).hi), 0x1p-82) << k << " of " << n;
    }
}

TEST(FftTables, AreRoundedOnce) {
  using primitives::fft::DoubleDouble, primitives::fft::rounded;
  const double halfway = 1 + 0x1p-24, odd = 1 + 3 * 0x1p-24;
  EXPECT_EQ(rounded<float>(DoubleDouble{halfway, 0x1p-80}), 1 + 0x1p-23f);
  EXPECT_EQ(rounded<float>(DoubleDouble{halfway, -0x1p-80}), 1.0f);
  EXPECT_EQ(rounded<float>(DoubleDouble{halfway, 0}), 1.0f);
  EXPECT_EQ(rounded<float>(DoubleDouble{odd, -0x1p-80}), 1 + 0x1p-23f);
  EXPECT_EQ(rounded<float>(DoubleDouble{odd, 0}), 1 + 0x1p-22f);
  EXPECT_EQ(rounded<double>(DoubleDouble{1, 0x1p-53}), 1.0);
}

}  // namespace
}  // namespace lockstep
