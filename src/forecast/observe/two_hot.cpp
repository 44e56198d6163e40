#include "forecast/observe/two_hot.hpp"

#include <fmt/format.h>

#include "forecast/observe/kernels.hpp"
#include "forecast/rollout/heads.hpp"

namespace lockstep::forecast {

namespace {

template <class T>
std::string two_hot_name(const std::string& what) {
  return fmt::format("forecast.observe.two_hot.{}.{}", what, name(detail::kType<T>));
}

/// out(m, r) = bias[r] + sum over k < columns of w(r, k) c(m, k).
template <class T>
Kernel affine_kernel() {
  return kernel(two_hot_name<T>("affine"),
                [](At<2> at, Grid<T, 2> c, Grid<T, 2> w, Grid<T, 1> bias, Out<T, 2> out) {
                  const Val<i32> m = at.y, r = at.x;
                  Var<T> sum = bias[r];
                  for_(0, w.size(1), [&](Val<i32> k) { sum = fma(w(r, k), c(m, k), Val<T>(sum)); });
                  out[at] = Val<T>(sum);
                });
}

/// Over (M, C): the softmax of each categorical, and c = [h; one sampled class of each].
template <class T>
Kernel sample_kernel() {
  return kernel(two_hot_name<T>("sample"), [](At<2> at, Grid<T, 2> h, Grid<T, 2> logits,
                                              Grid<i32, 1> observation, Out<T, 2> probability, Out<T, 2> c,
                                              Param<u32> key, Param<u32> stream) {
    const Val<i32> m = at.y, group = at.x, hidden = h.size(1), count = logits.size(1) / at.extent(0);
    const Val<i32> groups = at.extent(0);
    for_(group * hidden / groups, (group + 1) * hidden / groups, [&](Val<i32> k) { c(m, k) = h(m, k); });
    const Val<i32> first = group * count;
    Var<T> top = logits(m, first), sum = T(0), before = T(0);
    for_(1, count, [&](Val<i32> k) { top = max(Val<T>(top), logits(m, first + k)); });
    for_(0, count, [&](Val<i32> k) { sum += exp(logits(m, first + k) - top); });
    const Val<u32> bits =
        philox<Val<u32>>(cast<u32>(observation[0] * at.extent(0) + group), cast<u32>(m) + Val<u32>(stream),
                         Val<u32>(key), [](const Val<u32>& a, const Val<u32>& b) { return umulhi(a, b); });
    const Val<T> draw = cast<T>(bits >> 8u) * T(0x1p-24), share = T(kUniformShare) / cast<T>(count);
    Var<bool> open = draw >= T(0);
    for_(0, count, [&](Val<i32> k) {
      const Val<T> p = exp(logits(m, first + k) - top) / sum;
      before += fma(p, T(1 - kUniformShare), share);
      const Val<bool> chosen = open && (draw < before || k == count - 1);
      probability(m, first + k) = p;
      c(m, hidden + first + k) = select(chosen, Val<T>(T(1)), Val<T>(T(0)));
      open = open && !chosen;
    });
  });
}

/// Over M: the prediction, the mean of symexp(bin), and softmax less the two bins next to the loss, weighted so that
/// their mean is the loss.
template <class T>
Kernel cross_entropy_kernel(int bins) {
  return kernel(two_hot_name<T>(fmt::format("cross_entropy.{}", bins)),
                [bins](At<1> at, Grid<T, 2> v, Grid<T, 1> loss, Out<T, 2> found, Out<T, 2> slope) {
                  const Val<i32> m = at.x;
                  const nn::TwoHotBins<T> values(bins);
                  Var<T> top = v(m, 0), sum = T(0), weighted = T(0);
                  for_(1, bins, [&](Val<i32> n) { top = max(Val<T>(top), v(m, n)); });
                  for_(0, bins, [&](Val<i32> n) {
                    const Val<T> e = exp(v(m, n) - top);
                    sum += e;
                    weighted = fma(e, values.value(n), Val<T>(weighted));
                  });
                  found(m, kPrediction) = weighted / sum;
                  const auto target = values.pair(loss[0]);
                  for_(0, bins,
                       [&](Val<i32> n) { slope(m, n) = exp(v(m, n) - top) / sum - target.weight(n); });
                });
}

/// Over (M, C K): the derivative by the state's entries.
template <class T>
Kernel entries_kernel() {
  return kernel(two_hot_name<T>("entries"), [](At<2> at, Grid<T, 2> slope, Grid<T, 2> v, Out<T, 2> d_s) {
    const Val<i32> hidden = v.size(1) - at.extent(0);
    Var<T> sum = T(0);
    for_(0, v.size(0), [&](Val<i32> n) { sum = fma(slope(at.y, n), v(n, hidden + at.x), Val<T>(sum)); });
    d_s[at] = Val<T>(sum);
  });
}

/// Over (M, C): through the mixture and the softmax of each categorical.
template <class T>
Kernel logits_kernel() {
  return kernel(
      two_hot_name<T>("logits"), [](At<2> at, Grid<T, 2> probability, Grid<T, 2> d_s, Out<T, 2> d_logits) {
        const Val<i32> m = at.y, count = probability.size(1) / at.extent(0), first = at.x * count;
        Var<T> mean = T(0);
        for_(0, count,
             [&](Val<i32> k) { mean = fma(probability(m, first + k), d_s(m, first + k), Val<T>(mean)); });
        for_(0, count, [&](Val<i32> k) {
          d_logits(m, first + k) =
              T(1 - kUniformShare) * probability(m, first + k) * (d_s(m, first + k) - Val<T>(mean));
        });
      });
}

/// Over (M, D): the derivative by h, of both products.
template <class T>
Kernel hidden_kernel() {
  return kernel(two_hot_name<T>("hidden"), [](At<2> at, Grid<T, 2> slope, Grid<T, 2> v, Grid<T, 2> d_logits,
                                              Grid<T, 2> p, Out<T, 2> d_h) {
    Var<T> sum = T(0);
    for_(0, v.size(0), [&](Val<i32> n) { sum = fma(slope(at.y, n), v(n, at.x), Val<T>(sum)); });
    for_(0, p.size(0), [&](Val<i32> i) { sum = fma(d_logits(at.y, i), p(i, at.x), Val<T>(sum)); });
    d_h[at] = Val<T>(sum);
  });
}

/// Over (M, D + 1): [h; symlog L].
template <class T>
Kernel evidence_kernel() {
  return kernel(two_hot_name<T>("evidence"), [](At<2> at, Grid<T, 2> h, Grid<T, 1> loss, Out<T, 2> evidence) {
    const Val<T> known = h(at.y, min(at.x, h.size(1) - 1));
    evidence[at] = select(at.x < h.size(1), known, nn::symlog<T>(loss[0]));
  });
}

/// Over M: KL(q || p) of the mixtures, summed over the categoricals, and its derivatives by both, each with its own weight;
/// none at or below `free`.
template <class T>
Kernel divergence_kernel() {
  return kernel(two_hot_name<T>("divergence"),
                [](At<1> at, Grid<T, 2> prior, Grid<T, 2> posterior, Out<T, 2> d_prior,
                   InOut<T, 2> d_posterior, Out<T, 2> found, Param<i32> classes, Param<T> free,
                   Param<T> prior_weight, Param<T> posterior_weight) {
                  const Val<i32> m = at.x;
                  const Val<T> share = T(kUniformShare) / cast<T>(Val<i32>(classes));
                  const auto mixed = [&](const Val<T>& p) { return fma(p, T(1 - kUniformShare), share); };
                  Var<T> sum = T(0);
                  for_(0, prior.size(1), [&](Val<i32> i) {
                    const Val<T> q = mixed(posterior(m, i));
                    sum = fma(q, log(q / mixed(prior(m, i))), Val<T>(sum));
                  });
                  found(m, kDivergence) = Val<T>(sum);
                  const Val<T> none = T(0);
                  const Val<T> to_prior = select(sum > free, Val<T>(prior_weight), none),
                               to_posterior = select(sum > free, Val<T>(posterior_weight), none);
                  for_(0, prior.size(1), [&](Val<i32> i) {
                    const Val<T> ratio = mixed(posterior(m, i)) / mixed(prior(m, i));
                    d_prior(m, i) = -to_prior * ratio;
                    d_posterior(m, i) = fma(to_posterior, log(ratio), Val<T>(d_posterior(m, i)));
                  });
                });
}

/// Over (M, D): what the posterior's logits add to the derivative by h.
template <class T>
Kernel through_posterior_kernel() {
  return kernel(
      two_hot_name<T>("through_posterior"), [](At<2> at, Grid<T, 2> d_logits, Grid<T, 2> q, InOut<T, 2> d_h) {
        Var<T> sum = d_h[at];
        for_(0, q.size(0), [&](Val<i32> i) { sum = fma(d_logits(at.y, i), q(i, at.x), Val<T>(sum)); });
        d_h[at] = Val<T>(sum);
      });
}

/// d_w(r, k) = sum over m of a(m, r) c(m, k), and d_bias[r] = sum of a(m, r).
template <class T>
Kernel weights_kernel() {
  return kernel(two_hot_name<T>("weights"),
                [](At<2> at, Grid<T, 2> a, Grid<T, 2> c, Out<T, 2> d_w, Out<T, 1> d_bias) {
                  Var<T> sum = T(0), bias = T(0);
                  for_(0, a.size(0), [&](Val<i32> m) {
                    sum = fma(a(m, at.y), c(m, at.x), Val<T>(sum));
                    bias += a(m, at.y);
                  });
                  d_w[at] = Val<T>(sum);
                  if_(at.x == 0, [&] { d_bias[at.y] = Val<T>(bias); });
                });
}

template <class T>
struct TwoHotKernels {
  Kernel affine = affine_kernel<T>(), sample = sample_kernel<T>(), entries = entries_kernel<T>();
  Kernel evidence = evidence_kernel<T>(), divergence = divergence_kernel<T>();
  Kernel through_posterior = through_posterior_kernel<T>();
  Kernel logits = logits_kernel<T>(), hidden = hidden_kernel<T>(), weights = weights_kernel<T>();
  static const TwoHotKernels& all() {
    static const TwoHotKernels k;
    return k;
  }
};

}  // namespace

TwoHotHead::TwoHotHead(const Device& device, const TwoHotShape& shape, const Buffer& head,
                       const Buffer& d_head, uint64_t seed, const PosteriorTerm& posterior)
    : device_(device), shape_(shape), key_(random_key(seed)), posterior_(posterior) {
  const int64_t m = shape.members, d = shape.hidden, ck = shape.states(), n = shape.bins, w = shape.width();
  const auto split = [&](const Buffer& all, Buffer& p, Buffer& p_bias, Buffer& v, Buffer& v_bias) {
    p = all.rows(0, ck * d).reshape({ck, d}), p_bias = all.rows(ck * d, ck);
    v = all.rows(ck * (d + 1), n * w).reshape({n, w}), v_bias = all.rows(ck * (d + 1) + n * w, n);
  };
  split(head, p_, p_bias_, v_, v_bias_);
  split(d_head, d_p_, d_p_bias_, d_v_, d_v_bias_);
  const auto make = [&](int64_t columns) { return device.allocate(head.storage(), {m, columns}); };
  logits_ = make(ck), probability_ = make(ck), c_ = make(w), bins_ = make(n), slope_ = make(n);
  d_s_ = make(ck), d_logits_ = make(ck);
  if (posterior.on) {
    const int64_t at = shape.head_size();
    q_ = head.rows(at, ck * (d + 1)).reshape({ck, d + 1}), q_bias_ = head.rows(at + ck * (d + 1), ck);
    d_q_ = d_head.rows(at, ck * (d + 1)).reshape({ck, d + 1});
    d_q_bias_ = d_head.rows(at + ck * (d + 1), ck);
    evidence_ = make(d + 1), q_logits_ = make(ck), q_probability_ = make(ck);
    d_q_s_ = make(ck), d_q_logits_ = make(ck), q_found_ = make(kFoundCount);
  }
  cross_entropy_ =
      head.storage() == Storage::f64 ? cross_entropy_kernel<f64>(int(n)) : cross_entropy_kernel<f32>(int(n));
}

/// A state drawn from `logits`, the bins that follow from it, and what they miss of the loss.
template <class T>
void TwoHotHead::launch_bins(const Buffer& h, const Buffer& logits, const Buffer& probability, uint32_t draws,
                             const Buffer& loss, const Buffer& observation, const Buffer& found) const {
  const TwoHotKernels<T>& k = TwoHotKernels<T>::all();
  const int64_t m = shape_.members;
  device_.launch(k.sample, {m, shape_.categoricals}, h, logits, observation, probability, c_, key_, draws);
  device_.launch(k.affine, {m, shape_.bins}, c_, v_, v_bias_, bins_);
  device_.launch(cross_entropy_, {m}, bins_, loss, found, slope_);
}

template <class T>
void TwoHotHead::launch_prior(const Buffer& h, const Buffer& loss, const Buffer& observation,
                              const Buffer& found) const {
  const TwoHotKernels<T>& k = TwoHotKernels<T>::all();
  device_.launch(k.affine, {shape_.members, shape_.states()}, h, p_, p_bias_, logits_);
  launch_bins<T>(h, logits_, probability_, kLearningDraws, loss, observation, found);
}

/// The state is drawn again, now that the loss is known; what the bins miss then is what is learnt from.
template <class T>
void TwoHotHead::launch_posterior(const Buffer& h, const Buffer& loss, const Buffer& observation) const {
  const TwoHotKernels<T>& k = TwoHotKernels<T>::all();
  const int64_t m = shape_.members;
  device_.launch(k.evidence, {m, shape_.hidden + 1}, h, loss, evidence_);
  device_.launch(k.affine, {m, shape_.states()}, evidence_, q_, q_bias_, q_logits_);
  launch_bins<T>(h, q_logits_, q_probability_, kPosteriorDraws, loss, observation, q_found_);
}

template <class T>
void TwoHotHead::launch_as(const Buffer& h, const Buffer& loss, const Buffer& observation,
                           const Buffer& found, const Buffer& d_h) const {
  const TwoHotKernels<T>& k = TwoHotKernels<T>::all();
  const int64_t m = shape_.members, ck = shape_.states(), groups = shape_.categoricals;
  launch_prior<T>(h, loss, observation, found);
  if (posterior_.on) launch_posterior<T>(h, loss, observation);
  device_.launch(k.entries, {m, ck}, slope_, v_, posterior_.on ? d_q_s_ : d_s_);
  if (posterior_.on) {
    device_.launch(k.divergence, {m}, probability_, q_probability_, d_s_, d_q_s_, found,
                   int32_t(shape_.classes), posterior_.free_nats, posterior_.prior_weight,
                   posterior_.posterior_weight);
    device_.launch(k.logits, {m, groups}, q_probability_, d_q_s_, d_q_logits_);
    device_.launch(k.weights, {ck, shape_.hidden + 1}, d_q_logits_, evidence_, d_q_, d_q_bias_);
  }
  device_.launch(k.logits, {m, groups}, probability_, d_s_, d_logits_);
  device_.launch(k.hidden, {m, shape_.hidden}, slope_, v_, d_logits_, p_, d_h);
  if (posterior_.on) device_.launch(k.through_posterior, {m, shape_.hidden}, d_q_logits_, q_, d_h);
  device_.launch(k.weights, {ck, shape_.hidden}, d_logits_, h, d_p_, d_p_bias_);
  device_.launch(k.weights, {shape_.bins, shape_.width()}, slope_, c_, d_v_, d_v_bias_);
}

void TwoHotHead::launch(const Buffer& h, const Buffer& loss, const Buffer& observation, const Buffer& found,
                        const Buffer& d_h) const {
  if (h.storage() == Storage::f64)
    launch_as<f64>(h, loss, observation, found, d_h);
  else
    launch_as<f32>(h, loss, observation, found, d_h);
}

std::vector<Kernel> TwoHotHead::kernels() const {
  const auto of = [&]<class T>(T) {
    const TwoHotKernels<T>& k = TwoHotKernels<T>::all();
    std::vector all{k.affine, k.sample, cross_entropy_, k.entries, k.logits, k.hidden, k.weights};
    if (posterior_.on) all.insert(all.end(), {k.evidence, k.divergence, k.through_posterior});
    return all;
  };
  return p_.storage() == Storage::f64 ? of(f64()) : of(f32());
}

}  // namespace lockstep::forecast
