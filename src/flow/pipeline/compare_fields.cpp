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
double correlation_of(double aa, double bb, double ab) { return aa * bb > 0 ? ab / std::sqrt(aa * bb) : 0; }
/// Of the frames at times …, -1, 0 in the polynomial through the last `order` + 1 of them, at time k.
std::array<double, kPastFields> weights_at(int order, double k) {
  if (order == 0) return {0, 0, 1};
  if (order == 1) return {0, -k, 1 + k};
  return {k * (k + 1) / 2, -k * (k + 2), (k + 1) * (k + 2) / 2};
}
double drift_of(double from, double to) { return from != 0 ? to / from - 1 : to; }

}  // namespace

const Kernel& FieldComparer::kernel() {
  static const Kernel kernel_ = lockstep::kernel(
      "flow.field_sums",
      [](Group<1> g, Parameters& p) {
        // (modes, 2) of half spectra
        const auto a = p.read<f32, 2>("a"), b = p.read<f32, 2>("b"), mean = p.read<f32, 2>("mean");
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
          const Val<f32> mr = mean(at, 0), mi = mean(at, 1);
          const Val<f32> pr = ar - mr, pi = ai - mi, qr = br - mr, qi = bi - mi;
          sum[6] += weight * (pr * pr + pi * pi);
          sum[7] += weight * (qr * qr + qi * qi);
          sum[8] += weight * (pr * qr + pi * qi);
        });
        for (int k = 0; k < kFieldSums; ++k) {
          const Val<f32> all = group_sum(Val<f32>(sum[size_t(k)]));
          if_(g.lane() == 0, [&] { sums(g.id(0), k) = all; });
        }
      },
      {{kSumLanes, 1, 1}, 0});
  return kernel_;
}

const Kernel& FieldComparer::extrapolation_kernel() {
  static const Kernel kernel_ = lockstep::kernel("flow.extrapolate", [](At<1> at, Parameters& p) {
    const auto past = p.read<f32, 2>("past");  // (3, numbers)
    const auto to = p.write<f32, 1>("to");
    const Val<f32> c0 = p.scalar<f32>("c0"), c1 = p.scalar<f32>("c1"), c2 = p.scalar<f32>("c2");
    to[at] = c0 * past(0, at.x) + c1 * past(1, at.x) + c2 * past(2, at.x);
  });
  return kernel_;
}

FieldComparer::FieldComparer(const Device& device, const BoxGrid& grid) : device_(device), grid_(grid) {
  FftOptions options;
  options.kind = FftKind::r2c;
  options.lengths = {grid.ny, grid.nx};
  fft_ = Fft(device, options);
  const auto spectra = [&](int64_t count) {
    Shape shape = fft_.spectrum_shape();
    shape[0] = count;
    return device.allocate(Storage::f32, shape);
  };
  a_ = spectra(1);
  b_ = spectra(1);
  mean_ = spectra(1);
  past_ = spectra(kPastFields);
  device.clear(mean_);
  device.clear(past_);
  chunks_ = (grid.ny * (grid.nx / 2 + 1) + kFieldChunk - 1) / kFieldChunk;
}

void FieldComparer::set_past(const Buffer& frames, const Buffer& mean) {
  const int64_t count = frames.shape()[0];
  past_frames_ = std::min<int64_t>(count, kPastFields);
  for (int64_t k = 0; k < past_frames_; ++k)
    fft_.execute(frames.rows(count - past_frames_ + k, 1), past_.rows(kPastFields - past_frames_ + k, 1));
  fft_.execute(mean.reshape({1, grid_.ny, grid_.nx}), mean_);
}

Buffer FieldComparer::flat(const Buffer& spectrum) const {
  return spectrum.reshape({grid_.ny * (grid_.nx / 2 + 1), 2});
}

void FieldComparer::sum(const Buffer& other, const Buffer& sums) const {
  Arguments a;
  a.set("a", flat(a_)).set("b", flat(other)).set("mean", flat(mean_));
  a.set("sums", sums.reshape({chunks_, kFieldSums}));
  a.set("columns", grid_.nx / 2 + 1).set("ny", grid_.ny).set("nx", grid_.nx);
  a.set("unit_x", 2 * kPi / grid_.lx).set("unit_y", 2 * kPi / grid_.ly);
  device_.launch(kernel(), {chunks_}, a);
}

FieldScore FieldComparer::score_of(const Buffer& sums) {
  const std::vector<float> read = device_.download<float>(sums);
  bytes_read += sums.bytes();
  FieldScore score;
  FrameSums all{}, last{};
  for (int64_t k = 0; k < sums.shape()[0]; ++k) {
    last = {};
    for (int64_t c = 0; c < chunks_; ++c)
      for (int64_t j = 0; j < kFieldSums; ++j)
        last[size_t(j)] += double(read[size_t((k * chunks_ + c) * kFieldSums + j)]);
    for (size_t j = 0; j < last.size(); ++j) all[j] += last[j];
    score.l2_by_frame.push_back(root_ratio(last[3], last[0]));
    score.correlation_by_frame.push_back(correlation_of(last[0], last[1], last[2]));
    score.anomaly_correlation_by_frame.push_back(correlation_of(last[6], last[7], last[8]));
  }
  score.relative_l2 = root_ratio(all[3], all[0]);
  score.last_relative_l2 = score.l2_by_frame.back();
  score.correlation = score.correlation_by_frame.back();
  score.anomaly_correlation = score.anomaly_correlation_by_frame.back();
  score.enstrophy_drift = drift_of(last[0], last[1]);
  score.energy_drift = drift_of(last[4], last[5]);
  // Unnormalised transforms: the sum of |a|^2 is points^2 times the mean square.
  if (last[0] > 0) turnover_time_ = double(grid_.points()) / std::sqrt(last[0]);
  return score;
}

FieldScore FieldComparer::compare(const Buffer& truth, const Buffer& other) {
  const int64_t frames = truth.shape()[0];
  const Buffer sums = device_.allocate(Storage::f32, {frames, chunks_, kFieldSums});
  for (int64_t k = 0; k < frames; ++k) {
    fft_.execute(truth.rows(k, 1), a_);
    fft_.execute(other.rows(k, 1), b_);
    sum(b_, sums.rows(k, 1));
  }
  return score_of(sums);
}

FieldScore FieldComparer::compare(const Buffer& truth, const Buffer& other, FieldScores& scores) {
  const int64_t frames = truth.shape()[0];
  const auto made = [&] { return device_.allocate(Storage::f32, {frames, chunks_, kFieldSums}); };
  const Buffer of_other = made(), of_mean = made(), of_order[] = {made(), made(), made()};
  const int64_t numbers = past_.elements() / kPastFields;
  for (int64_t k = 0; k < frames; ++k) {
    fft_.execute(truth.rows(k, 1), a_);
    fft_.execute(other.rows(k, 1), b_);
    sum(b_, of_other.rows(k, 1));
    sum(mean_, of_mean.rows(k, 1));
    sum(past_.rows(kPastFields - 1, 1), of_order[0].rows(k, 1));
    for (int order = 1; order < past_frames_; ++order) {
      const auto c = weights_at(order, double(k + 1));
      Arguments a;
      a.set("past", past_.reshape({kPastFields, numbers})).set("to", b_.reshape({numbers}));
      a.set("c0", c[0]).set("c1", c[1]).set("c2", c[2]);
      device_.launch(extrapolation_kernel(), {numbers}, a);
      sum(b_, of_order[order].rows(k, 1));
    }
  }
  scores.climatology = score_of(of_mean);
  scores.persistence = score_of(of_order[0]);
  if (past_frames_ > 1) scores.linear = score_of(of_order[1]);
  if (past_frames_ > 2) scores.quadratic = score_of(of_order[2]);
  return score_of(of_other);
}

int64_t field_horizon(const FieldScores& s) {
  constexpr double kLeastCorrelation = 0.6;
  const FieldScore* const free[] = {&s.persistence, &s.climatology, &s.linear, &s.quadratic};
  const auto skilled = [&](size_t k) {
    const double error = s.surrogate.l2_by_frame[k];
    return error < 1 && s.surrogate.anomaly_correlation_by_frame[k] >= kLeastCorrelation &&
           std::all_of(
               std::begin(free), std::end(free),
               [&](const FieldScore* other) {
                 return other->l2_by_frame.empty() || error < other->l2_by_frame[k];
               });
  };
  size_t k = 0;
  while (k < s.surrogate.l2_by_frame.size() && skilled(k)) ++k;
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
