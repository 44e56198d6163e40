// The online ensemble in plain C++: windows by the plain sequence, derivatives by complex steps, plain gradient descent.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <deque>
#include <vector>

#include "forecast/gru/reference.hpp"
#include "lockstep/forecast/observe.hpp"

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
  std::vector<double> head;  // (D + S)
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
  S error(const S& a, double loss) const {
    const S e = objective == Objective::squared ? std::exp(a) - loss : a - std::log(loss);
    return 0.5 * e * e;
  }

  /// Members' gradients one after the other, then the head's: of the sum of the members' objectives.
  std::vector<double> gradient(double loss) const {
    using C = std::complex<double>;
    std::vector<double> g, d_head(head.size());
    const std::vector<C> wide_head(head.begin(), head.end());
    for (const OnlineMember& member : members) {
      std::vector<C> weights(member.weights.begin(), member.weights.end());
      for (C& w : weights) {
        w += C(0, 1e-30);
        g.push_back(error(activation(states_of(weights, member.start).back(), wide_head), loss).imag() /
                    1e-30);
        w = w.real();
      }
      const std::vector<C> h = states_of(weights, member.start).back();
      for (size_t k = 0; k < head.size(); ++k) {
        std::vector<C> moved = wide_head;
        moved[k] += C(0, 1e-30);
        d_head[k] += error(activation(h, moved), loss).imag() / 1e-30;
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
    for (OnlineMember& member : members) {
      const auto all = states_of(member.weights, member.start);
      predictions.push_back(std::exp(activation(all.back(), head)));
      if (int64_t(rows.size()) == window) member.start = all.front();
      for (double& w : member.weights) w -= rate * *at++;
    }
    for (double& w : head) w -= rate * *at++;
    return predictions;
  }
};

/// The problem that an ensemble of this f64 model starts with, after no observation.
inline OnlineProblem online_problem(const RolloutModel& model, const ObserveOptions& options) {
  OnlineProblem p;
  p.form = options.form, p.objective = options.objective, p.window = options.window, p.decay = options.decay;
  p.rate = options.optimizer.schedule.rate;
  p.hidden = model.hidden(), p.inputs = model.inputs();
  const auto head = model.head.as<double>();
  p.head.assign(head.begin(), head.end());
  p.states = int64_t(head.size()) - p.hidden;
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
