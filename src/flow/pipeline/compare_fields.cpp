#include "flow/pipeline/compare_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "flow/modes.hpp"
#include "lockstep/kernel/dynamic.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

namespace {

constexpr int kSumLanes = 128;
using FrameSums = std::array<double, kFieldSums>;

double root_ratio(double part, double whole) {
  if (!std::isfinite(part)) return std::numeric_limits<double>::infinity();
  return whole > 0 ? std::sqrt(part / whole) : std::sqrt(part);
}
double correlation_of(const FrameSums& s) { return s[0] * s[1] > 0 ? s[2] / std::sqrt(s[0] * s[1]) : 0; }
double drift_of(double from, double to) { return from != 0 ? to / from - 1 : to; }

}  // namespace

const Kernel& FieldComparer::kernel() {
  static const Kernel kernel_ = lockstep::kernel(
      "flow.field_sums",
      [](Group<1> g, Parameters& p) {
        const auto a = p.read<f32, 2>("a"), b = p.read<f32, 2>("b");  // (modes, 2) of half spectra
        const auto sums = p.write<f32, 2>("sums");
        const Val<i32> columns = p.scalar<i32>("columns"), ny = p.scalar<i32>("ny"), nx = p.scalar<i32>("nx");
        const Val<f32> unit_x = p.scalar<f32>("unit_x"), unit_y = p.scalar<f32>("unit_y");
        std::vector<Var<f32>> sum;
        for (int k = 0; k < kFieldSums; ++k) sum.emplace_back(0.0f);
        const Val<i32> begin = g.id(0) * int(kFieldChunk), end = min(begin + int(kFieldChunk), a.size(0));
        for_(begin + g.lane(), end, kSumLanes, [&](Val<i32> at) {
          const Val<i32> row = at / columns, ix = at - row * columns;
          const Val<i32> iy = select(row * 2 > ny, row - ny, row);
          const Val<f32> kx = unit_x * cast<f32>(ix), ky = unit_y * cast<f32>(iy), k2 = kx * kx + ky * ky;
          // A mode inside stands for its mirror too.
          const Val<f32> weight = select(ix == 0 || ix * 2 == nx, Val<f32>(1.0f), Val<f32>(2.0f));
          const Val<f32> ar = a(at, 0), ai = a(at, 1), br = b(at, 0), bi = b(at, 1), dr = ar - br,
                         di = ai - bi;
          const Val<f32> over = select(k2 > 0.0f, 1.0f / k2, Val<f32>(0.0f));
          const Val<f32> aa = weight * (ar * ar + ai * ai), bb = weight * (br * br + bi * bi);
          sum[0] += aa;
          sum[1] += bb;
          sum[2] += weight * (ar * br + ai * bi);
          sum[3] += weight * (dr * dr + di * di);
          sum[4] += aa * over;
          sum[5] += bb * over;
        });
        for (int k = 0; k < kFieldSums; ++k) {
          const Val<f32> all = group_sum(Val<f32>(sum[size_t(k)]));
          if_(g.lane() == 0, [&] { sums(g.id(0), k) = all; });
        }
      },
      {{kSumLanes, 1, 1}, 0});
  return kernel_;
}

FieldComparer::FieldComparer(const Device& device, const BoxGrid& grid) : device_(device), grid_(grid) {
  FftOptions options;
  options.kind = FftKind::r2c;
  options.lengths = {grid.ny, grid.nx};
  fft_ = Fft(device, options);
  a_ = device.allocate(Storage::f32, fft_.spectrum_shape());
  b_ = device.allocate(Storage::f32, fft_.spectrum_shape());
  chunks_ = (grid.ny * (grid.nx / 2 + 1) + kFieldChunk - 1) / kFieldChunk;
}

FieldScore FieldComparer::compare(const Buffer& truth, const Buffer& other) {
  const int64_t frames = truth.shape()[0], columns = grid_.nx / 2 + 1, modes = grid_.ny * columns;
  const bool one = other.shape()[0] == 1;
  const Buffer sums = device_.allocate(Storage::f32, {frames, chunks_, kFieldSums});
  for (int64_t k = 0; k < frames; ++k) {
    fft_.execute(truth.rows(k, 1), a_);
    if (!one || k == 0) fft_.execute(other.rows(one ? 0 : k, 1), b_);
    Arguments a;
    a.set("a", a_.reshape({modes, 2})).set("b", b_.reshape({modes, 2}));
    a.set("sums", sums.rows(k, 1).reshape({chunks_, kFieldSums}));
    a.set("columns", columns).set("ny", grid_.ny).set("nx", grid_.nx);
    a.set("unit_x", 2 * kPi / grid_.lx).set("unit_y", 2 * kPi / grid_.ly);
    device_.launch(kernel(), {chunks_}, a);
  }
  const std::vector<float> read = device_.download<float>(sums);
  bytes_read += sums.bytes();
  FieldScore score;
  FrameSums all{}, last{};
  for (int64_t k = 0; k < frames; ++k) {
    last = {};
    for (int64_t c = 0; c < chunks_; ++c)
      for (int64_t j = 0; j < kFieldSums; ++j)
        last[size_t(j)] += double(read[size_t((k * chunks_ + c) * kFieldSums + j)]);
    for (size_t j = 0; j < last.size(); ++j) all[j] += last[j];
    score.l2_by_frame.push_back(root_ratio(last[3], last[0]));
    score.correlation_by_frame.push_back(correlation_of(last));
  }
  score.relative_l2 = root_ratio(all[3], all[0]);
  score.last_relative_l2 = score.l2_by_frame.back();
  score.correlation = score.correlation_by_frame.back();
  score.enstrophy_drift = drift_of(last[0], last[1]);
  score.energy_drift = drift_of(last[4], last[5]);
  return score;
}

int64_t field_horizon(const FieldScore& surrogate, const FieldScore& persistence) {
  size_t k = 0;
  while (k < surrogate.l2_by_frame.size() && surrogate.l2_by_frame[k] < persistence.l2_by_frame[k]) ++k;
  return int64_t(k);
}

Buffer mean_frame(const Device& device, const Buffer& frames) {
  const int64_t count = frames.shape()[0], points = frames.elements() / count;
  const Buffer weights = device.allocate(Storage::f32, {1, count});
  primitives::fill(device, weights, double(1.0f / float(count)));
  const Buffer mean = device.allocate(Storage::f32, {1, points});
  primitives::matmul(device, weights, frames.reshape({count, points}), mean);
  return mean.reshape({1, frames.shape()[1], frames.shape()[2]});
}

}  // namespace lockstep::flow
