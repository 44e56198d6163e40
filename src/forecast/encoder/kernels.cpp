#include "forecast/encoder/kernels.hpp"

#include <algorithm>
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
  const SharedArray<T>& newest_row;
  Val<i32> newest, n;

  Val<T> now(Signal signal, int k = 0) const { return newest_row[int(signal) + k]; }

  /// A signal j rows before the newest.
  Val<T> at(Signal signal, const Val<i32>& j) const { return ring(int(signal), newest - j); }
  /// The row before row j, where there is one, else row j.
  Val<T> before(Signal signal, const Val<i32>& j, int rows = 1) const {
    Val<T> value = at(signal, j);
    for (int k = 1; k <= rows; ++k) value = select(j + k < n, at(signal, j + k), value);
    return value;
  }
  Val<i32> window(int rows) const { return min(n, Val<i32>(rows)); }
};

template <class T>
Val<T> log_of(const Val<T>& x) {
  return log10(max(x, Val<T>(T(1e-10))));
}

/// Shared words of over_chains(): one of each chain for so many numbers at a time, then one of each part.
constexpr int kNumbersAtOnce = 8;
constexpr int kParts = kEncoderLanes / kNumbersAtOnce;
template <class T>
struct ChainScratch {
  SharedArray<T> chains{kEncoderLanes * kNumbersAtOnce}, parts{kParts * int(kFirstSums)};
};

/// The chains' numbers combined from `neutral`: those of each part, kEncoderLanes / kParts chains, in their order, then
/// the parts in theirs. `put(q, total)` by lane q.
template <class T, class Combine, class Put>
void over_chains(const Val<i32>& lane, const std::vector<Var<T>>& own, const ChainScratch<T>& scratch,
                 T neutral, Combine combine, Put put) {
  const int count = int(own.size());
  const Val<i32> chain = Val<i32>(kEncoderLanes - 1) - lane;
  const Val<i32> number = lane % kNumbersAtOnce, part = lane / kNumbersAtOnce;
  for (int first = 0; first < count; first += kNumbersAtOnce) {
    const int numbers = std::min(kNumbersAtOnce, count - first);
    for (int q = 0; q < numbers; ++q)
      scratch.chains[chain * kNumbersAtOnce + q] = Val<T>(own[size_t(first + q)]);
    barrier();
    if_(number < numbers, [&] {
      Val<T> total = neutral;
      for (int c = 0; c < kEncoderLanes / kParts; ++c)
        total = combine(
            total, Val<T>(scratch.chains[(part * (kEncoderLanes / kParts) + c) * kNumbersAtOnce + number]));
      scratch.parts[part * count + first + number] = total;
    });
    barrier();
  }
  if_(lane < count, [&] {
    Val<T> total = neutral;
    for (int p = 0; p < kParts; ++p) total = combine(total, Val<T>(scratch.parts[lane + p * count]));
    put(lane, total);
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
void first_sums(const Rows<T>& rows, const Grid<T, 2>& decay, const Val<i32>& decay_place, const Val<i32>& j,
                std::vector<Var<T>>& sums, std::vector<Var<T>>& leasts) {
  const Val<bool> real = j < rows.n;
  const Val<T> loss = rows.at(Signal::loss, j), grad = rows.at(Signal::grad_norm, j);
  const auto add = [&](int q, const Val<bool>& condition, const Val<T>& value) {
    add_where<T>(sums[size_t(q)], real && condition, value);
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
    const Val<T> left = decay(scale, decay_place);
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
  const Val<T> before = rows.before(Signal::loss, j);
  add(kFalls64, j < 64 && loss < before, Val<T>(T(1)));
  add(kRate256, j < 256, rows.at(Signal::lr, j));
  const auto least = [&](int q, const Val<bool>& condition, const Val<T>& value) {
    const Val<T> now = leasts[size_t(q)];
    leasts[size_t(q)] = select(real && condition, min(now, value), now);
  };
  least(kLossLeast, j < 256, loss);
  least(kLossGreatest, j < 256, -loss);
  least(kGradLeast, j < 64, grad);
  least(kGradGreatest, j < 64, -grad);
  least(kLossBest, j >= 0, loss);
}

/// Divisors of the first sums: the rows of their windows.
template <class T>
Val<T> rows_of_sum(const Rows<T>& rows, const Val<i32>& sum) {
  constexpr std::pair<int, int> kWindows[] = {{kLoss8, 8},     {kLoss16, 16},      {kLossBefore16, 16},
                                              {kLoss32, 32},   {kLoss64, 64},      {kLoss128, 128},
                                              {kLoss256, 256}, {kLoss512, 512},    {kGrad64, 64},
                                              {kGrad128, 128}, {kLogGrad128, 128}, {kRate256, 256}};
  Val<i32> count = rows.n;
  for (const auto& [q, window] : kWindows) count = select(sum == q, rows.window(window), count);
  for (int w = 0; w < 3; ++w)
    count = select(sum >= kThirds + 3 * w && sum < kThirds + 3 * (w + 1),
                   max(rows.window(kThirdWindows[w]) / 3, Val<i32>(1)), count);
  return cast<T>(count);
}

/// The first sums over the rows of their windows.
template <class T>
struct Means {
  const SharedArray<T>& means;
  Val<T> operator()(int sum) const { return means[sum]; }
};

template <class T>
void second_sums(const Rows<T>& rows, const Means<T>& mean, const Val<i32>& j, std::vector<Var<T>>& sums) {
  const Val<bool> real = j < rows.n;
  const Val<T> loss = rows.at(Signal::loss, j), grad = rows.at(Signal::grad_norm, j);
  const auto add = [&](int q, const Val<bool>& condition, const Val<T>& value) {
    add_where<T>(sums[size_t(q)], real && condition, value);
  };
  const auto square = [](const Val<T>& x) { return x * x; };
  add(kVariance16, j < 16, square(loss - mean(kLoss16)));
  add(kVariance64, j < 64, square(loss - mean(kLoss64)));
  add(kVariance256, j < 256, square(loss - mean(kLoss256)));
  add(kVarianceAll, j >= 0, square(loss - mean(kLossAll)));
  add(kGradVariance64, j < 64, square(grad - mean(kGrad64)));
  const auto lever = [&](int window) { return cast<T>(j) - T(0.5) * cast<T>(rows.window(window) - 1); };
  constexpr int kLossSums[4] = {kLoss8, kLoss32, kLoss128, kLoss512};
  for (int w = 0; w < 4; ++w)
    add(kSlope8 + w, j < kSlopeWindows[w], lever(kSlopeWindows[w]) * (mean(kLossSums[w]) - loss));
  add(kLogGradSlope128, j < 128, lever(128) * (mean(kLogGrad128) - log_of<T>(grad)));
  const Val<T> x = loss - mean(kLoss128), y = grad - mean(kGrad128);
  add(kCovariance128, j < 128, x * y);
  add(kLossVariance128, j < 128, x * x);
  add(kGradVariance128, j < 128, y * y);
  const Val<T> before = rows.before(Signal::loss, j), earlier = rows.before(Signal::loss, j, 2);
  add(kChanges, j >= 0, square(loss - before));
  add(kChangePairs, j + 2 < rows.n, (loss - before) * (before - earlier));
}

/// A feature as f(a / b) / c, where f is the square root or nothing, or log10(a / b).
template <class T>
struct Form {
  Val<T> a = T(0), b = T(1), c = T(1);
  bool root = false, log = false;
};

/// Features in the order of their names in feature_table(). One lane computes the forms' parts, each lane a feature.
template <class T>
struct Features {
  std::vector<Form<T>> forms;
  void put(const Val<T>& value) { forms.push_back({value}); }
  void ratio(const Val<T>& a, const Val<T>& b) { forms.push_back({a, b}); }
  void ratio(const Val<T>& a, const Val<T>& b, const Val<T>& c) { forms.push_back({a, b, c}); }
  void root(const Val<T>& a, const Val<T>& b) { forms.push_back({a, b, T(1), true}); }
  void root(const Val<T>& a, const Val<T>& b, const Val<T>& c) { forms.push_back({a, b, c, true}); }
  void log(const Val<T>& a) { forms.push_back({a, T(1), T(1), false, true}); }
  void log(const Val<T>& a, const Val<T>& b) { forms.push_back({a, b, T(1), false, true}); }
};

/// Bit l: whether form first + l is of the kind.
template <class T>
uint32_t forms_with(const std::vector<Form<T>>& forms, bool Form<T>::* kind, size_t first) {
  uint32_t bits = 0;
  for (size_t k = 0; k < 32 && first + k < forms.size(); ++k) bits |= uint32_t(forms[first + k].*kind) << k;
  return bits;
}

template <class T>
struct FeatureTotals {
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
void published_features(const Rows<T>& rows, const Means<T>& mean, const FeatureTotals<T>& total,
                        Features<T>& f) {
  const auto now = [&](Signal s) { return rows.now(s); };
  const auto rows_of = [&](int window) { return cast<T>(rows.window(window)); };
  f.put(now(Signal::loss));
  f.put(mean(kLoss256));
  f.root(total.of(kVariance256), rows_of(256));
  f.put(total.of(kLossLeast));
  f.put(-total.of(kLossGreatest));
  const Val<T> last = mean(kLoss16), before = mean(kLossBefore16), one = T(1);
  const Val<bool> enough = rows.n >= 32;
  f.put(select(enough, last - before, Val<T>(T(0))));
  f.ratio(select(enough, last, one), select(enough, at_least<T>(before, 1e-8), one));
  f.ratio(now(Signal::step), T(10000));
  const Val<T> grad = now(Signal::grad_norm), grad_mean = mean(kGrad64);
  f.put(grad);
  f.put(grad_mean);
  f.root(total.of(kGradVariance64), rows_of(64));
  f.put(total.of(kGradLeast));
  f.put(-total.of(kGradGreatest));
  f.log(grad);
  f.ratio(grad, at_least<T>(grad_mean, 1e-8));
  f.root(total.of(kGradVariance64), rows_of(64), at_least<T>(grad_mean, 1e-8));
  for (const Signal s : {Signal::m_mean, Signal::m_std, Signal::v_mean, Signal::v_std}) f.put(now(s));
  f.log(now(Signal::lr));
  f.put(now(Signal::beta1_t));
  f.put(now(Signal::beta2_t));
  f.log(now(Signal::update_norm), at_least<T>(now(Signal::param_norm), 1e-8));
  f.put(now(Signal::phase));
  f.ratio(now(Signal::phase_step), T(100));
}

// Features 26 to 46: averages, slopes, curvatures, variations.
template <class T>
void scale_features(const Rows<T>& rows, const Means<T>& mean, const FeatureTotals<T>& total,
                    Features<T>& f) {
  const auto size_of_mean = [&](const Val<T>& m) { return at_least<T>(abs(m), 1e-8); };
  for (int s = 0; s < kEmaScales; ++s) f.put(total.of(kLossEma, s));
  for (int s = 0; s + 1 < kEmaScales; ++s) {
    const Val<T> slower = total.of(kLossEma, s + 1);
    f.ratio(total.of(kLossEma, s) - slower, size_of_mean(slower));
  }
  for (int s = 0; s < kEmaScales; ++s) f.log(total.of(kGradEma, s));
  constexpr FirstSum kLossSums[4] = {kLoss8, kLoss32, kLoss128, kLoss512};
  for (int w = 0; w < 4; ++w) {
    // Slope = sum / (n (n^2 - 1) / 12), times n.
    const Val<T> n = cast<T>(rows.window(kSlopeWindows[w]));
    f.ratio(total.of(kSlope8, w) * T(12), at_least<T>(n * n - T(1), 1), size_of_mean(mean(kLossSums[w])));
  }
  for (int w = 0; w < 3; ++w) {
    const Val<T> a = mean(kThirds + 3 * w), b = mean(kThirds + 3 * w + 1), c = mean(kThirds + 3 * w + 2);
    f.ratio((a - b) - (b - c), size_of_mean((a + b + c) / T(3)));
  }
  const auto variation = [&](SecondSum q, int window, const Val<T>& m) {
    f.root(total.of(q), cast<T>(rows.window(window)), size_of_mean(m));
  };
  variation(kVariance16, 16, mean(kLoss16));
  variation(kVariance64, 64, mean(kLoss64));
  f.root(total.of(kVarianceAll), cast<T>(rows.n), size_of_mean(mean(kLossAll)));
}

// Features 47 to 63.
template <class T>
void relation_features(const Rows<T>& rows, const Means<T>& mean, const FeatureTotals<T>& total,
                       const Val<i32>& best_age, Features<T>& f) {
  const auto now = [&](Signal s, int k = 0) { return rows.now(s, k); };
  f.ratio(total.of(kChangePairs), at_least<T>(total.of(kChanges), 1e-30));
  f.ratio(total.of(kFalls64), at_least<T>(cast<T>(min(rows.n - 1, Val<i32>(64))), 1));
  f.ratio(cast<T>(best_age), cast<T>(rows.n));
  const Val<T> best = total.of(kLossBest);
  f.ratio(now(Signal::loss) - best, at_least<T>(abs(best), 1e-8));
  const Val<T> n = cast<T>(rows.window(128));
  f.ratio(total.of(kLogGradSlope128) * T(12), at_least<T>(n * n - T(1), 1));
  f.log(-total.of(kGradGreatest), at_least<T>(mean(kGrad64), 1e-8));
  f.ratio(total.of(kCovariance128),
          at_least<T>(sqrt(total.of(kLossVariance128)) * sqrt(total.of(kGradVariance128)), 1e-20));
  const Val<T> grad = now(Signal::grad_norm);
  f.log(now(Signal::grad_var), at_least<T>(grad * grad, 1e-16));
  f.log(now(Signal::update_norm));
  f.log(now(Signal::param_norm));
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
  f.root(deviations, T(kParameterGroups));
  f.log(now(Signal::lr), at_least<T>(mean(kRate256), 1e-30));
  f.ratio(greatest, at_least<T>(squares, 1e-30));
}

/// Each lane its feature out of the forms that lane 0 knows.
template <class T>
void put_features(const Val<i32>& lane, const Val<i32>& state, const Out<T, 2>& out,
                  const SharedArray<T>& parts, const std::vector<Form<T>>& forms) {
  constexpr int kGradRatio = 14;  // feature that is cut at 10
  const auto is = [&](bool Form<T>::* kind) {
    const Val<u32> bits =
        select(lane < 32, Val<u32>(forms_with(forms, kind, 0)), Val<u32>(forms_with(forms, kind, 32)));
    return ((bits >> cast<u32>(lane & 31)) & 1u) != 0u;
  };
  const Val<T> quotient = Val<T>(parts[lane]) / Val<T>(parts[lane + kFeatures]);
  const Val<T> value =
      select(is(&Form<T>::root), sqrt(quotient), quotient) / Val<T>(parts[lane + 2 * kFeatures]);
  const Val<T> cut = select(lane == kGradRatio, min(value, Val<T>(T(10))), value);
  out(state, lane) = select(is(&Form<T>::log), log_of<T>(cut), cut);
}

template <class T>
Kernel make_encode_kernel() {
  static_assert(kFeatures <= kEncoderLanes && kSignals <= kEncoderLanes);
  return kernel("forecast.encode",
                [](Group<1> g, Grid<T, 2> ring, Grid<T, 2> decay, Out<T, 2> features, Param<i32> newest,
                   Param<i32> counted, Param<i32> history) {
                  const Val<i32> lane = g.lane(), state = g.id();
                  const Val<i32> n = min(counted + state, Val<i32>(history));
                  const ChainScratch<T> partial;
                  const SharedArray<T> newest_row(kSignals), first_totals(kFirstSums), means(kFirstSums),
                      second_totals(kSecondSums), leasts(kLeasts), parts(3 * kFeatures);
                  const Rows<T> rows{ring, newest_row, newest + state, n};
                  if_(lane < kSignals, [&] { newest_row[lane] = ring(lane, newest + state); });
                  const auto each_row = [&](auto body) {
                    for_(0, n, kEncoderLanes,
                         [&](Val<i32> first) { body(first + (kEncoderLanes - 1) - lane, first + lane); });
                  };
                  std::vector<Var<T>> sums = zeros<T>(kFirstSums),
                                      least = zeros<T>(kLeasts, std::numeric_limits<T>::max());
                  each_row([&](const Val<i32>& j, const Val<i32>& place) {
                    first_sums<T>(rows, decay, place, j, sums, least);
                  });
                  const auto add = [](const Val<T>& a, const Val<T>& b) { return a + b; };
                  over_chains<T>(lane, sums, partial, T(0), add, [&](const Val<i32>& q, const Val<T>& total) {
                    first_totals[q] = total;
                    means[q] = total / rows_of_sum<T>(rows, q);
                  });
                  over_chains<T>(
                      lane, least, partial, std::numeric_limits<T>::max(),
                      [](const Val<T>& a, const Val<T>& b) { return min(a, b); },
                      [&](const Val<i32>& q, const Val<T>& total) { leasts[q] = total; });
                  const Means<T> mean{means};
                  std::vector<Var<T>> about = zeros<T>(kSecondSums);
                  Var<i32> age = n;
                  const Val<T> best = leasts[int(kLossBest)];
                  each_row([&](const Val<i32>& j, const Val<i32>&) {
                    second_sums<T>(rows, mean, j, about);
                    age = select(j < n && rows.at(Signal::loss, j) == best, min(Val<i32>(age), j),
                                 Val<i32>(age));
                  });
                  over_chains<T>(lane, about, partial, T(0), add,
                                 [&](const Val<i32>& q, const Val<T>& total) { second_totals[q] = total; });
                  const Val<i32> youngest = group_min(Val<i32>(age));
                  Features<T> f;
                  if_(lane == 0, [&] {
                    const FeatureTotals<T> total{first_totals, second_totals, leasts};
                    published_features<T>(rows, mean, total, f);
                    scale_features<T>(rows, mean, total, f);
                    relation_features<T>(rows, mean, total, youngest, f);
                    for (int k = 0; k < kFeatures; ++k) {
                      parts[k] = f.forms[size_t(k)].a;
                      parts[k + kFeatures] = f.forms[size_t(k)].b;
                      parts[k + 2 * kFeatures] = f.forms[size_t(k)].c;
                    }
                  });
                  barrier();
                  if_(lane < kFeatures, [&] { put_features<T>(lane, state, features, parts, f.forms); });
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

int64_t decay_columns(int64_t history) {
  return (history + kEncoderLanes - 1) / kEncoderLanes * kEncoderLanes;
}

std::vector<double> decay_table(int64_t history) {
  std::vector<double> table;
  for (const double weight : kEmaWeights)
    for (int64_t k = 0; k < decay_columns(history); ++k) {
      const int64_t j = k / kEncoderLanes * kEncoderLanes + kEncoderLanes - 1 - k % kEncoderLanes;
      const double left = std::pow(1 - weight, double(j));
      table.push_back(left < 1e-30 ? 0 : left);
    }
  return table;
}

std::vector<double> with_columns_before(std::span<const double> values, int64_t signals) {
  const int64_t rows = int64_t(values.size()) / signals;
  std::vector<double> wider;
  for (int64_t s = 0; s < signals; ++s) {
    wider.insert(wider.end(), kColumnsBefore, 0.0);
    wider.insert(wider.end(), values.begin() + s * rows, values.begin() + (s + 1) * rows);
  }
  return wider;
}

}  // namespace lockstep::forecast
