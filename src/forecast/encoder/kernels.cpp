#include "forecast/encoder/kernels.hpp"

#include <cmath>

#include "lockstep/forecast/encoder.hpp"

namespace lockstep::forecast {
namespace {

// Sums over rows that need no mean, then those about means.
enum FirstSum : int {
  kLoss8,
  kLoss16,
  kLossBefore16,
  kLoss32,
  kLoss64,
  kLoss128,
  kLoss256,
  kLoss512,
  kLossAll,
  kThirds,                 // of 32, 128 and 512 rows: newest, middle, oldest of each
  kLossEma = kThirds + 9,  // four scales
  kGradEma = kLossEma + 4,
  kAlignEma = kGradEma + 4,  // four groups
  kGrad64 = kAlignEma + 4,
  kGrad128,
  kLogGrad128,
  kFalls64,
  kRate256,
  kFirstSums
};
enum SecondSum : int {
  kVariance16,
  kVariance64,
  kVariance256,
  kVarianceAll,
  kGradVariance64,
  kSlope8,
  kSlope32,
  kSlope128,
  kSlope512,
  kLogGradSlope128,
  kCovariance128,
  kLossVariance128,
  kGradVariance128,
  kChanges,
  kChangePairs,
  kSecondSums
};
// Greatest values are the negative of the least of the negative.
enum Least : int { kLossLeast, kLossGreatest, kGradLeast, kGradGreatest, kLossBest, kLeasts };

constexpr int kThirdWindows[3] = {32, 128, 512};
constexpr int kSlopeWindows[4] = {8, 32, 128, 512};

template <class T>
struct Rows {
  const Grid<T, 2>& ring;
  Val<i32> newest, capacity, n;

  /// A signal j rows before the newest; j < n.
  Val<T> at(Signal signal, const Val<i32>& j) const {
    const Val<i32> k = newest - j;
    return ring(int(signal), select(k < 0, k + capacity, k));
  }
  Val<i32> window(int rows) const { return min(n, Val<i32>(rows)); }
};

template <class T>
Val<T> log_of(const Val<T>& x) {
  return log10(max(x, Val<T>(T(1e-10))));
}

/// The lanes' numbers added in the order of the lanes; every lane then reads them from `totals`.
template <class T, class Combine>
void over_lanes(const Val<i32>& lane, const std::vector<Var<T>>& own, const SharedArray<T>& partial,
                const SharedArray<T>& totals, Combine combine) {
  const int count = int(own.size());
  for (int q = 0; q < count; ++q) partial[lane * count + q] = Val<T>(own[size_t(q)]);
  barrier();
  if_(lane < count, [&] {
    Var<T> total = Val<T>(partial[lane]);
    for_(1, kEncoderLanes,
         [&](Val<i32> l) { total = combine(Val<T>(total), Val<T>(partial[l * count + lane])); });
    totals[lane] = Val<T>(total);
  });
  barrier();
}

template <class T>
std::vector<Var<T>> zeros(int count, T value = 0) {
  std::vector<Var<T>> v;
  v.reserve(size_t(count));
  for (int k = 0; k < count; ++k) v.emplace_back(value);
  return v;
}

/// Adds `value` to a sum where the condition holds.
template <class T>
void add_where(Var<T>& sum, const Val<bool>& condition, const Val<T>& value) {
  sum = Val<T>(sum) + select(condition, value, Val<T>(T(0)));
}

template <class T>
void first_sums(const Rows<T>& rows, const Grid<T, 2>& decay, const Val<i32>& j, std::vector<Var<T>>& sums,
                std::vector<Var<T>>& leasts) {
  const Val<T> loss = rows.at(Signal::loss, j), grad = rows.at(Signal::grad_norm, j);
  const auto add = [&](int q, const Val<bool>& condition, const Val<T>& value) {
    add_where<T>(sums[size_t(q)], condition, value);
  };
  constexpr std::pair<int, int> kWindows[] = {{kLoss8, 8},     {kLoss16, 16},   {kLoss32, 32},  {kLoss64, 64},
                                              {kLoss128, 128}, {kLoss256, 256}, {kLoss512, 512}};
  for (const auto& [q, rows_of] : kWindows) add(q, j < rows_of, loss);
  add(kLossBefore16, j >= 16 && j < 32, loss);
  add(kLossAll, j >= 0, loss);
  for (int w = 0; w < 3; ++w) {
    const Val<i32> third = rows.window(kThirdWindows[w]) / 3;
    for (int k = 0; k < 3; ++k) add(kThirds + 3 * w + k, j >= third * k && j < third * (k + 1), loss);
  }
  for (int scale = 0; scale < kEmaScales; ++scale) {
    const Val<T> left = decay(scale, j);
    const Val<T> weight = select(j < rows.n - 1, left * T(kEmaWeights[scale]), left);
    add(kLossEma + scale, j >= 0, weight * loss);
    add(kGradEma + scale, j >= 0, weight * grad);
    if (scale == 1)
      for (int k = 0; k < kParameterGroups; ++k)
        add(kAlignEma + k, j >= 0, weight * rows.at(Signal(int(Signal::align_0) + k), j));
  }
  add(kGrad64, j < 64, grad);
  add(kGrad128, j < 128, grad);
  add(kLogGrad128, j < 128, log_of<T>(grad));
  const Val<T> before = rows.at(Signal::loss, min(j + 1, rows.n - 1));
  add(kFalls64, j < 64 && loss < before, Val<T>(T(1)));
  add(kRate256, j < 256, rows.at(Signal::lr, j));
  const auto least = [&](int q, const Val<bool>& condition, const Val<T>& value) {
    const Val<T> now = leasts[size_t(q)];
    leasts[size_t(q)] = select(condition, min(now, value), now);
  };
  least(kLossLeast, j < 256, loss);
  least(kLossGreatest, j < 256, -loss);
  least(kGradLeast, j < 64, grad);
  least(kGradGreatest, j < 64, -grad);
  least(kLossBest, j >= 0, loss);
}

/// Totals of the first sums with the means that are made of them.
template <class T>
struct Means {
  const SharedArray<T>& totals;
  const Rows<T>& rows;
  Val<T> operator()(int sum, int window) const { return Val<T>(totals[sum]) / cast<T>(rows.window(window)); }
  Val<T> all() const { return Val<T>(totals[int(kLossAll)]) / cast<T>(rows.n); }
};

template <class T>
void second_sums(const Rows<T>& rows, const Means<T>& mean, const Val<i32>& j, std::vector<Var<T>>& sums) {
  const Val<T> loss = rows.at(Signal::loss, j), grad = rows.at(Signal::grad_norm, j);
  const auto add = [&](int q, const Val<bool>& condition, const Val<T>& value) {
    add_where<T>(sums[size_t(q)], condition, value);
  };
  const auto square = [](const Val<T>& x) { return x * x; };
  add(kVariance16, j < 16, square(loss - mean(kLoss16, 16)));
  add(kVariance64, j < 64, square(loss - mean(kLoss64, 64)));
  add(kVariance256, j < 256, square(loss - mean(kLoss256, 256)));
  add(kVarianceAll, j >= 0, square(loss - mean.all()));
  add(kGradVariance64, j < 64, square(grad - mean(kGrad64, 64)));
  const auto lever = [&](int window) { return cast<T>(j) - T(0.5) * cast<T>(rows.window(window) - 1); };
  constexpr int kLossSums[4] = {kLoss8, kLoss32, kLoss128, kLoss512};
  for (int w = 0; w < 4; ++w)
    add(kSlope8 + w, j < kSlopeWindows[w],
        lever(kSlopeWindows[w]) * (mean(kLossSums[w], kSlopeWindows[w]) - loss));
  add(kLogGradSlope128, j < 128, lever(128) * (mean(kLogGrad128, 128) - log_of<T>(grad)));
  const Val<T> x = loss - mean(kLoss128, 128), y = grad - mean(kGrad128, 128);
  add(kCovariance128, j < 128, x * y);
  add(kLossVariance128, j < 128, x * x);
  add(kGradVariance128, j < 128, y * y);
  const Val<T> before = rows.at(Signal::loss, min(j + 1, rows.n - 1)),
               earlier = rows.at(Signal::loss, min(j + 2, rows.n - 1));
  add(kChanges, j >= 0, square(loss - before));
  add(kChangePairs, j + 2 < rows.n, (loss - before) * (before - earlier));
}

/// Where the results go: numbers by their names in feature_table().
template <class T>
struct Features {
  const Out<T, 2>& out;
  Val<i32> state;
  int next = 0;
  void put(const Val<T>& value) { out(state, next++) = value; }
};

template <class T>
struct Totals {
  const SharedArray<T>&first, &second, &least;
  Val<T> of(FirstSum q, int k = 0) const { return first[int(q) + k]; }
  Val<T> of(SecondSum q, int k = 0) const { return second[int(q) + k]; }
  Val<T> of(Least q) const { return least[int(q)]; }
};

template <class T>
Val<T> at_least(const Val<T>& x, double low) {
  return max(x, Val<T>(T(low)));
}

// Features 0 to 25.
template <class T>
void published_features(const Rows<T>& rows, const Means<T>& mean, const Totals<T>& total, Features<T>& f) {
  const auto now = [&](Signal s) { return rows.at(s, Val<i32>(0)); };
  const auto deviation = [&](SecondSum q, int window) {
    return sqrt(total.of(q) / cast<T>(rows.window(window)));
  };
  f.put(now(Signal::loss));
  f.put(mean(kLoss256, 256));
  f.put(deviation(kVariance256, 256));
  f.put(total.of(kLossLeast));
  f.put(-total.of(kLossGreatest));
  const Val<T> last = total.of(kLoss16) / T(16), before = total.of(kLossBefore16) / T(16);
  const Val<bool> enough = rows.n >= 32;
  f.put(select(enough, last - before, Val<T>(T(0))));
  f.put(select(enough, last / at_least<T>(before, 1e-8), Val<T>(T(1))));
  f.put(now(Signal::step) / T(10000));
  const Val<T> grad = now(Signal::grad_norm), grad_mean = mean(kGrad64, 64);
  const Val<T> grad_deviation = deviation(kGradVariance64, 64);
  f.put(grad);
  f.put(grad_mean);
  f.put(grad_deviation);
  f.put(total.of(kGradLeast));
  f.put(-total.of(kGradGreatest));
  f.put(log_of<T>(grad));
  f.put(min(grad / at_least<T>(grad_mean, 1e-8), Val<T>(T(10))));
  f.put(grad_deviation / at_least<T>(grad_mean, 1e-8));
  for (const Signal s : {Signal::m_mean, Signal::m_std, Signal::v_mean, Signal::v_std}) f.put(now(s));
  f.put(log_of<T>(now(Signal::lr)));
  f.put(now(Signal::beta1_t));
  f.put(now(Signal::beta2_t));
  f.put(log_of<T>(now(Signal::update_norm) / at_least<T>(now(Signal::param_norm), 1e-8)));
  f.put(now(Signal::phase));
  f.put(now(Signal::phase_step) / T(100));
}

// Features 26 to 46: averages, slopes, curvatures, variations.
template <class T>
void scale_features(const Rows<T>& rows, const Means<T>& mean, const Totals<T>& total, Features<T>& f) {
  const auto size_of_mean = [&](const Val<T>& m) { return at_least<T>(abs(m), 1e-8); };
  for (int s = 0; s < kEmaScales; ++s) f.put(total.of(kLossEma, s));
  for (int s = 0; s + 1 < kEmaScales; ++s) {
    const Val<T> slower = total.of(kLossEma, s + 1);
    f.put((total.of(kLossEma, s) - slower) / size_of_mean(slower));
  }
  for (int s = 0; s < kEmaScales; ++s) f.put(log_of<T>(total.of(kGradEma, s)));
  constexpr FirstSum kLossSums[4] = {kLoss8, kLoss32, kLoss128, kLoss512};
  for (int w = 0; w < 4; ++w) {
    // Slope = sum / (n (n^2 - 1) / 12), times n.
    const Val<T> n = cast<T>(rows.window(kSlopeWindows[w]));
    f.put(total.of(kSlope8, w) * T(12) / at_least<T>(n * n - T(1), 1) /
          size_of_mean(mean(kLossSums[w], kSlopeWindows[w])));
  }
  for (int w = 0; w < 3; ++w) {
    const Val<T> third = at_least<T>(cast<T>(rows.window(kThirdWindows[w]) / 3), 1);
    const Val<T> a = total.of(kThirds, 3 * w) / third, b = total.of(kThirds, 3 * w + 1) / third,
                 c = total.of(kThirds, 3 * w + 2) / third;
    f.put(((a - b) - (b - c)) / size_of_mean((a + b + c) / T(3)));
  }
  const auto variation = [&](SecondSum q, const Val<T>& n, const Val<T>& m) {
    f.put(sqrt(total.of(q) / n) / size_of_mean(m));
  };
  variation(kVariance16, cast<T>(rows.window(16)), mean(kLoss16, 16));
  variation(kVariance64, cast<T>(rows.window(64)), mean(kLoss64, 64));
  variation(kVarianceAll, cast<T>(rows.n), mean.all());
}

// Features 47 to 63.
template <class T>
void relation_features(const Rows<T>& rows, const Means<T>& mean, const Totals<T>& total,
                       const Val<i32>& best_age, Features<T>& f) {
  const auto now = [&](Signal s, int k = 0) { return rows.at(Signal(int(s) + k), Val<i32>(0)); };
  f.put(total.of(kChangePairs) / at_least<T>(total.of(kChanges), 1e-30));
  f.put(total.of(kFalls64) / at_least<T>(cast<T>(min(rows.n - 1, Val<i32>(64))), 1));
  f.put(cast<T>(best_age) / cast<T>(rows.n));
  const Val<T> best = total.of(kLossBest);
  f.put((now(Signal::loss) - best) / at_least<T>(abs(best), 1e-8));
  const Val<T> n = cast<T>(rows.window(128));
  f.put(total.of(kLogGradSlope128) * T(12) / at_least<T>(n * n - T(1), 1));
  f.put(log_of<T>(-total.of(kGradGreatest) / at_least<T>(mean(kGrad64, 64), 1e-8)));
  f.put(total.of(kCovariance128) /
        at_least<T>(sqrt(total.of(kLossVariance128)) * sqrt(total.of(kGradVariance128)), 1e-20));
  const Val<T> grad = now(Signal::grad_norm);
  f.put(log_of<T>(now(Signal::grad_var) / at_least<T>(grad * grad, 1e-16)));
  f.put(log_of<T>(now(Signal::update_norm)));
  f.put(log_of<T>(now(Signal::param_norm)));
  for (int k = 0; k < kParameterGroups; ++k) f.put(total.of(kAlignEma, k));
  Val<T> align = now(Signal::align_0), squares = T(0), greatest = T(0), deviations = T(0);
  for (int k = 1; k < kParameterGroups; ++k) align = align + now(Signal::align_0, k);
  align = align / T(kParameterGroups);
  for (int k = 0; k < kParameterGroups; ++k) {
    const Val<T> off = now(Signal::align_0, k) - align, part = now(Signal::grad_norm_0, k);
    deviations = deviations + off * off;
    squares = squares + part * part;
    greatest = max(greatest, part * part);
  }
  f.put(sqrt(deviations / T(kParameterGroups)));
  f.put(log_of<T>(now(Signal::lr) / at_least<T>(mean(kRate256, 256), 1e-30)));
  f.put(greatest / at_least<T>(squares, 1e-30));
}

template <class T>
Kernel make_encode_kernel() {
  return kernel("forecast.encode",
                [](Group<1> g, Grid<T, 2> ring, Grid<T, 2> decay, Out<T, 2> features, Param<i32> first,
                   Param<i32> counted, Param<i32> history) {
                  const Val<i32> lane = g.lane(), state = g.id(), capacity = ring.size(1);
                  const Val<i32> n = min(counted + state, Val<i32>(history));
                  const Rows<T> rows{ring, (first + state) % capacity, capacity, n};
                  const SharedArray<T> partial(kEncoderLanes * kFirstSums), first_totals(kFirstSums),
                      second_totals(kSecondSums), leasts(kLeasts);
                  const SharedArray<i32> ages(kEncoderLanes);
                  const Val<i32> rounds = (n + (kEncoderLanes - 1)) / kEncoderLanes;
                  const auto each_row = [&](auto body) {
                    for_(0, rounds, [&](Val<i32> round) {
                      const Val<i32> j = lane + round * kEncoderLanes;
                      if_(j < n, [&] { body(j); });
                    });
                  };
                  std::vector<Var<T>> sums = zeros<T>(kFirstSums),
                                      least = zeros<T>(kLeasts, std::numeric_limits<T>::max());
                  each_row([&](const Val<i32>& j) { first_sums<T>(rows, decay, j, sums, least); });
                  const auto add = [](const Val<T>& a, const Val<T>& b) { return a + b; };
                  over_lanes<T>(lane, sums, partial, first_totals, add);
                  over_lanes<T>(lane, least, partial, leasts,
                                [](const Val<T>& a, const Val<T>& b) { return min(a, b); });
                  const Means<T> mean{first_totals, rows};
                  std::vector<Var<T>> about = zeros<T>(kSecondSums);
                  Var<i32> age = n;
                  const Val<T> best = leasts[int(kLossBest)];
                  each_row([&](const Val<i32>& j) {
                    second_sums<T>(rows, mean, j, about);
                    age = select(rows.at(Signal::loss, j) == best, min(Val<i32>(age), j), Val<i32>(age));
                  });
                  over_lanes<T>(lane, about, partial, second_totals, add);
                  ages[lane] = Val<i32>(age);
                  barrier();
                  if_(lane == 0, [&] {
                    Var<i32> youngest = Val<i32>(ages[0]);
                    for_(1, kEncoderLanes,
                         [&](Val<i32> l) { youngest = min(Val<i32>(youngest), Val<i32>(ages[l])); });
                    const Totals<T> total{first_totals, second_totals, leasts};
                    Features<T> f{features, state};
                    published_features<T>(rows, mean, total, f);
                    scale_features<T>(rows, mean, total, f);
                    relation_features<T>(rows, mean, total, Val<i32>(youngest), f);
                  });
                },
                {.group = {kEncoderLanes}});
}

template <class T>
Kernel make_normalise_kernel() {
  return kernel("forecast.normalise", [](At<1> at, Grid<T, 2> features, Out<T, 2> normalised,
                                         InOut<T, 2> moments, Param<i32> seen) {
    Var<T> mean = Val<T>(moments(0, at.x)), squares = Val<T>(moments(1, at.x));
    for_(0, features.size(0), [&](Val<i32> s) {
      const Val<T> x = features(s, at.x), count = cast<T>(seen + s + 1);
      const Val<T> before = x - Val<T>(mean);
      mean = Val<T>(mean) + before / count;
      squares = Val<T>(squares) + before * (x - Val<T>(mean));
      normalised(s, at.x) = (x - Val<T>(mean)) / sqrt(Val<T>(squares) / count + T(1e-8));
    });
    moments(0, at.x) = Val<T>(mean);
    moments(1, at.x) = Val<T>(squares);
  });
}

}  // namespace

const Kernel& encode_kernel(Storage storage) {
  static const Kernel f32_kernel = make_encode_kernel<f32>(), f64_kernel = make_encode_kernel<f64>();
  return storage == Storage::f64 ? f64_kernel : f32_kernel;
}

const Kernel& normalise_kernel(Storage storage) {
  static const Kernel f32_kernel = make_normalise_kernel<f32>(), f64_kernel = make_normalise_kernel<f64>();
  return storage == Storage::f64 ? f64_kernel : f32_kernel;
}

std::vector<double> decay_table(int64_t history) {
  std::vector<double> table;
  for (const double weight : kEmaWeights)
    for (int64_t j = 0; j < history; ++j) {
      const double left = std::pow(1 - weight, double(j));
      table.push_back(left < 1e-30 ? 0 : left);
    }
  return table;
}

}  // namespace lockstep::forecast
