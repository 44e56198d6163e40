#include "forecast/encoder/cases.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "forecast/encoder/kernels.hpp"
#include "forecast/encoder/reference.hpp"

namespace lockstep::forecast {
namespace {

/// A training as it might be, in the numbers that the storage holds: (kSignals, rows).
std::vector<double> training(int64_t rows, uint64_t seed, Storage storage) {
  std::mt19937_64 random(seed);
  const auto draw = [&] { return double(random() >> 11) * 0x1p-53; };
  std::vector<double> values(size_t(kSignals * rows));
  for (int64_t k = 0; k < rows; ++k)
    for (int s = 0; s < kSignals; ++s) {
      double v = 0.5 + draw();
      switch (Signal(s)) {
        case Signal::step: v = double(k + 1); break;
        case Signal::loss: v = 0.3 + 2 / std::sqrt(double(k) + 2) + 0.1 * draw(); break;
        case Signal::m_mean: v = draw() - 0.5; break;
        case Signal::phase: v = k < 10 ? 0 : 1; break;
        case Signal::phase_step: v = double(k < 10 ? k : k - 10); break;
        case Signal::align_0:
        case Signal::align_1:
        case Signal::align_2:
        case Signal::align_3: v = 2 * draw() - 1; break;
        default: break;
      }
      values[size_t(s * rows + k)] = storage == Storage::f32 ? double(float(v)) : v;
    }
  return values;
}

Array reference_features(const std::vector<double>& values, int64_t rows, int64_t states, int64_t history,
                         Storage storage) {
  std::vector<double> features;
  for (int64_t s = 0; s < states; ++s) {
    const int64_t end = rows - states + s + 1, begin = std::max<int64_t>(end - history, 0);
    std::vector<std::vector<double>> signals;
    for (int k = 0; k < kSignals; ++k)
      signals.emplace_back(values.begin() + k * rows + begin, values.begin() + k * rows + end);
    const auto f = reference::encode(signals);
    features.insert(features.end(), f.begin(), f.end());
  }
  return Array::of(std::move(features), {states, kFeatures}).to(storage);
}

// A size is states x rows that the first of them has seen.
Case encoder_case(Storage storage) {
  const bool f64_storage = storage == Storage::f64;
  Case c;
  c.name = f64_storage ? "forecast.encoder.f64" : "forecast.encoder";
  c.dtype = f64_storage ? "f64" : "f32";
  c.needs_f64 = f64_storage;
  c.small = {"1x1", "3x2", "2x31", "2x300"};
  c.full = {"1x1000", "7x700", "3x1100"};
  c.bench = {"1x1000", "100x1000"};
  c.reference = Bound::relative(f64_storage ? 1e-12 : 2e-5);
  c.webgpu = Bound::relative(2e-5);
  c.fast = Bound::relative(f64_storage ? 1e-11 : 1e-4);
  c.make = [storage](const std::string& size, uint64_t seed) {
    const std::vector<int64_t> n = parse_size(size);
    const int64_t states = n.front(), rows = n.back() + states - 1, seen = n.back();
    const auto values = std::make_shared<const std::vector<double>>(training(rows, seed, storage));
    CaseProblem p;
    const double read = double(std::min(seen, kMostHistory));
    p.operations = double(states);
    p.bytes = double(states) * (read * 7 + kFeatures) * (storage == Storage::f64 ? 8 : 4);
    p.flops = double(states) * read * 120;
    p.reference = [=] {
      return std::vector{reference_features(*values, rows, states, kMostHistory, storage)};
    };
    p.bind = [=](const Device& device) {
      const Buffer ring = device.upload(
                       Array::of(with_columns_before(*values, kSignals), {kSignals, kColumnsBefore + rows})
                           .to(storage)),
                   decay = device.upload(
                       Array::of(decay_table(kMostHistory), {kEmaScales, decay_columns(kMostHistory)})
                           .to(storage)),
                   features = device.allocate(storage, {states, kFeatures});
      return CaseRun{[=] {
                       device.launch(encode_kernel(storage), {states}, ring, decay, features,
                                     kColumnsBefore + seen - 1, seen, kMostHistory);
                     },
                     [=] { return std::vector{device.download(features)}; }};
    };
    return p;
  };
  c.kernels = [storage] { return std::vector{encode_kernel(storage), normalise_kernel(storage)}; };
  return c;
}

}  // namespace

void add_encoder_cases(CaseRegistry& registry) {
  registry.add(encoder_case(Storage::f32));
  registry.add(encoder_case(Storage::f64));
}

}  // namespace lockstep::forecast
