// The online ensemble in plain C++: windows by the plain sequence, derivatives by complex steps, plain gradient descent.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <deque>
#include <vector>

#include "core/numbers/random.hpp"
#include "forecast/gru/reference.hpp"
#include "forecast/observe/two_hot.hpp"
#include "lockstep/forecast/observe.hpp"
#include "nn/reference.hpp"

namespace lockstep::forecast::reference {

/// One member: weights (W, U, b, rb as GruWeights has them, one after the other) and the state before the window.
struct OnlineMember {
  std::vector<double> weights, start;
};

struct OnlineProblem {
  GruForm form = GruForm::reset_before;
  Objective objective = Objective::logarithmic;
  int64_t hidden = 1, inputs = 1, states = 1, window = 1;
  double decay = 1, rate = 0.1;
  std::vector<OnlineMember> members;
  std::vector<double> head;                // (D + S), or of two-hot heads P, P_b, V, V_b
  TwoHotShape two_hot{.categoricals = 0};  // none: classic heads
  uint64_t seed = 0;
  PosteriorTerm posterior;
  int64_t count = 0;  // observations
  std::deque<std::vector<double>> rows;

  /// States after each step of the window. Derivatives of earlier states are weighted: their imaginary parts shrink by
  /// `decay` from step to step, which is what weighted backpropagation computes.
  template <class S>
  std::vector<std::vector<S>> states_of(const std::vector<S>& weights,
                                        const std::vector<double>& start) const {
    const int64_t d = hidden;
    SequenceProblem<S> p;
    p.shape = {form, 1, 1, inputs, d, Storage::f64};
    auto at = weights.begin();
    const auto take = [&](int64_t n) {
      at += n;
      return std::vector<S>(at - n, at);
    };
    p.w = take(inputs * 3 * d), p.u = take(d * 3 * d), p.b = take(3 * d);
    if (form == GruForm::reset_after) p.rb = take(3 * d);
    std::vector<std::vector<S>> all;
    p.h0.assign(start.begin(), start.end());
    for (const std::vector<double>& row : rows) {
      p.x.assign(row.begin(), row.end());
      const std::vector<S> both = sequence(p);
      all.emplace_back(both.begin() + d, both.end());
      p.h0 = all.back();
      if constexpr (!std::is_same_v<S, double>)
        for (S& v : p.h0) v = S(v.real(), v.imag() * decay);
    }
    return all;
  }

  template <class S>
  S activation(const std::vector<S>& h, const std::vector<S>& w) const {
    S sum = 0, total = 0, weighted = 0;
    for (size_t j = 0; j < h.size(); ++j) sum += w[j] * h[j];
    for (int64_t i = 0; i < states; ++i) {
      const S e = std::exp(h[size_t(i * hidden / states)]);
      total += e;
      weighted += e * w[size_t(hidden + i)];
    }
    return sum + weighted / total;
  }
  template <class S>
  static std::vector<S> softmax(std::vector<S> v) {
    S sum = 0;
    const S top = *std::max_element(v.begin(), v.end(), [](S a, S b) { return std::real(a) < std::real(b); });
    for (S& x : v) sum += x = std::exp(x - std::real(top));
    for (S& x : v) x /= sum;
    return v;
  }
  /// Probabilities of the classes: matrix and bias of their logits begin at element `at` of w.
  template <class S>
  std::vector<S> mixture(const std::vector<S>& x, const std::vector<S>& w, int64_t at) const {
    const int64_t d = int64_t(x.size()), classes = two_hot.classes, all = two_hot.states();
    std::vector<S> mixed;
    for (int64_t first = 0; first < all; first += classes) {
      std::vector<S> p;
      for (int64_t i = first; i < first + classes; ++i) {
        p.push_back(w[size_t(at + all * d + i)]);
        for (int64_t k = 0; k < d; ++k) p.back() += w[size_t(at + i * d + k)] * x[size_t(k)];
      }
      for (const S& v : softmax(p)) mixed.push_back(0.99 * v + 0.01 / double(classes));
    }
    return mixed;
  }

  /// The distribution over the bins. A sampled class is 1, and moves as its probability in the mixture does.
  template <class S>
  std::vector<S> bins_of(const std::vector<S>& h, const std::vector<S>& w, const std::vector<S>& states_mixed,
                         uint32_t stream) const {
    const auto [members, d, categoricals, classes, bins] = two_hot;
    const int64_t all = categoricals * classes;
    std::vector<S> c = h;
    for (int64_t g = 0; g < categoricals; ++g) {
      const double draw = random_unit(uint32_t(count * categoricals + g), stream, random_key(seed));
      double before = 0;
      bool open = true;
      for (int64_t k = 0; k < classes; ++k) {
        const S mixed = states_mixed[size_t(g * classes + k)];
        before += std::real(mixed);
        const bool chosen = open && (draw < before || k == classes - 1);
        c.push_back(mixed - std::real(mixed) + (chosen ? 1.0 : 0.0));
        open = open && !chosen;
      }
    }
    const auto v = w.begin() + all * (d + 1), bias = v + bins * (d + all);
    std::vector<S> logits;
    for (int64_t n = 0; n < bins; ++n) {
      logits.push_back(bias[n]);
      for (int64_t k = 0; k < d + all; ++k) logits.back() += v[n * (d + all) + k] * c[size_t(k)];
    }
    return softmax(logits);
  }

  /// Each logarithm's derivative is kept where the balanced term has one.
  template <class S>
  S divergence_term(const std::vector<S>& q, const std::vector<S>& p) const {
    S to_prior = 0, to_posterior = 0;
    for (size_t i = 0; i < q.size(); ++i) {
      to_prior += std::real(q[i]) * (std::log(std::real(q[i])) - std::log(p[i]));
      to_posterior += q[i] * (std::log(q[i]) - std::log(std::real(p[i])));
    }
    if (std::real(to_prior) <= posterior.free_nats) return 0;
    return posterior.prior_weight * to_prior + posterior.posterior_weight * to_posterior;
  }

  /// The error that a member's weights minimise.
  template <class S>
  S error(const std::vector<S>& h, const std::vector<S>& w, int64_t member, double loss) const {
    if (two_hot.categoricals == 0) {
      const S a = activation(h, w),
              e = objective == Objective::squared ? std::exp(a) - loss : a - std::log(loss);
      return 0.5 * e * e;
    }
    const std::vector<S> prior = mixture(h, w, 0);
    if (!posterior.on) return cross_entropy(bins_of(h, w, prior, uint32_t(member) + kLearningDraws), loss);
    std::vector<S> seen = h;
    seen.push_back(std::copysign(std::log1p(std::abs(loss)), loss));
    const std::vector<S> known = mixture(seen, w, two_hot.head_size());
    return cross_entropy(bins_of(h, w, known, uint32_t(member) + kPosteriorDraws), loss) +
           divergence_term(known, prior);
  }
  template <class S>
  S cross_entropy(const std::vector<S>& q, double loss) const {
    S sum = 0;
    for (int64_t n = 0; n < two_hot.bins; ++n)
      if (const double weight = nn::reference::two_hot_weight(loss, n, two_hot.bins); weight > 0)
        sum -= weight * std::log(q[size_t(n)]);
    return sum;
  }
  double prediction(const std::vector<double>& h, int64_t member) const {
    if (two_hot.categoricals == 0) return std::exp(activation(h, head));
    const std::vector<double> q = bins_of(h, head, mixture(h, head, 0), uint32_t(member) + kLearningDraws);
    double mean = 0;
    for (size_t n = 0; n < q.size(); ++n) mean += q[n] * nn::reference::two_hot_bin(int64_t(n), two_hot.bins);
    return mean;
  }

  /// Members' gradients one after the other, then the head's: of the sum of the members' objectives.
  std::vector<double> gradient(double loss) const {
    using C = std::complex<double>;
    std::vector<double> g, d_head(head.size());
    const std::vector<C> wide_head(head.begin(), head.end());
    for (size_t m = 0; m < members.size(); ++m) {
      const OnlineMember& member = members[m];
      std::vector<C> weights(member.weights.begin(), member.weights.end());
      for (C& w : weights) {
        w += C(0, 1e-30);
        const std::vector<C> h = states_of(weights, member.start).back();
        g.push_back(error(h, wide_head, int64_t(m), loss).imag() / 1e-30);
        w = w.real();
      }
      const std::vector<C> h = states_of(weights, member.start).back();
      for (size_t k = 0; k < head.size(); ++k) {
        std::vector<C> moved = wide_head;
        moved[k] += C(0, 1e-30);
        d_head[k] += error(h, moved, int64_t(m), loss).imag() / 1e-30;
      }
    }
    g.insert(g.end(), d_head.begin(), d_head.end());
    return g;
  }

  /// Predictions of the members; then a step down the gradient.
  std::vector<double> observe(const std::vector<double>& features, double loss) {
    if (int64_t(rows.size()) == window) rows.pop_front();
    rows.push_back(features);
    std::vector<double> predictions;
    const std::vector<double> g = gradient(loss);
    auto at = g.begin();
    for (size_t m = 0; m < members.size(); ++m) {
      OnlineMember& member = members[m];
      const auto all = states_of(member.weights, member.start);
      predictions.push_back(prediction(all.back(), int64_t(m)));
      if (int64_t(rows.size()) == window) member.start = all.front();
      for (double& w : member.weights) w -= rate * *at++;
    }
    for (double& w : head) w -= rate * *at++;
    ++count;
    return predictions;
  }
};

/// The problem that an ensemble of this f64 model starts with, after no observation.
inline OnlineProblem online_problem(const RolloutModel& model, const ObserveOptions& options) {
  OnlineProblem p;
  p.form = options.form, p.objective = options.objective, p.window = options.window, p.decay = options.decay;
  p.rate = options.optimizer.schedule.rate;
  p.hidden = model.hidden(), p.inputs = model.inputs();
  const auto append = [&](const Array& a) {
    const Array whole = a.packed();
    p.head.insert(p.head.end(), whole.as<double>().begin(), whole.as<double>().end());
  };
  if (options.heads == Heads::two_hot) {
    append(model.projection), append(model.projection_bias), append(model.bins), append(model.bins_bias);
    p.two_hot = {model.members(), p.hidden, model.projection.size(0), model.projection.size(1),
                 model.bins.size(0)};
    p.seed = options.seed, p.posterior = options.posterior;
    if (p.posterior.on) {  // as the prior
      const std::vector<double> prior(p.head.begin(), p.head.begin() + p.two_hot.states() * (p.hidden + 1));
      for (int64_t i = 0; i < p.two_hot.states() * p.hidden; ++i) {
        p.head.push_back(prior[size_t(i)]);
        if (i % p.hidden == p.hidden - 1) p.head.push_back(0);
      }
      p.head.insert(p.head.end(), prior.end() - p.two_hot.states(), prior.end());
    }
  } else {
    append(model.head);
    p.states = int64_t(p.head.size()) - p.hidden;
  }
  for (int64_t m = 0; m < model.members(); ++m) {
    OnlineMember member;
    const auto columns = [&](const std::array<Array, 3>& gates, int64_t width) {
      for (int64_t k = 0; k < width; ++k)
        for (const Array& gate : gates)
          for (int64_t j = 0; j < p.hidden; ++j)
            member.weights.push_back(
                gate.empty() ? 0 : gate.as<double>()[size_t((m * p.hidden + j) * width + k)]);
    };
    columns(model.w, p.inputs), columns(model.u, p.hidden), columns(model.b, 1);
    if (p.form == GruForm::reset_after) columns(model.rb, 1);
    member.start.assign(size_t(p.hidden), 0.0);
    if (!model.h0.empty())
      for (int64_t j = 0; j < p.hidden; ++j)
        member.start[size_t(j)] = model.h0.as<double>()[size_t(m * p.hidden + j)];
    p.members.push_back(std::move(member));
  }
  return p;
}

}  // namespace lockstep::forecast::reference
