#include "forecast/observe/kernels.hpp"

#include <fmt/format.h>

#include "forecast/rollout/heads.hpp"

namespace lockstep::forecast {

namespace {

template <class T>
std::string observe_name(const std::string& what) {
  return fmt::format("forecast.observe.{}.{}", what, name(detail::kType<T>));
}

template <class T>
Kernel error_kernel(Objective objective) {
  return kernel(
      observe_name<T>(std::string(name(objective))),
      [=](Group<1> g, Grid<T, 2> h, Grid<T, 1> head, Grid<T, 1> loss, Out<T, 2> found, Param<i32> states) {
        const SharedArray<T> s(4 * kChains);
        const Val<i32> lane = g.lane(), m = g.id(), hidden = h.size(1);
        const auto logit = [&](const Val<i32>& i) { return Val<T>(h(m, i * hidden / states)); };
        Var<T> dot = T(0), most = logit(0);
        for_(lane, hidden, kChains, [&](Val<i32> i) { dot = fma(h(m, i), head[i], Val<T>(dot)); });
        for_(lane, states, kChains, [&](Val<i32> i) { most = max(most, logit(i)); });
        s[lane] = Val<T>(dot);
        s[lane + kChains] = Val<T>(most);
        barrier();
        const Val<T> top = chain_max<T>(s, 1);
        Var<T> sum = T(0), weighted = T(0);
        for_(lane, states, kChains, [&](Val<i32> i) {
          const Val<T> e = exp(logit(i) - top);
          sum += e;
          weighted = fma(e, head[hidden + i], Val<T>(weighted));
        });
        s[lane + 2 * kChains] = Val<T>(sum);
        s[lane + 3 * kChains] = Val<T>(weighted);
        barrier();
        if_(lane == 0, [&] {
          const Val<T> total = chain_sum<T>(s, 2), of_states = chain_sum<T>(s, 3) / total;
          const Val<T> activation = chain_sum<T>(s, 0) + of_states,
                       clipped = clamp(activation, T(-10), T(10));
          const Val<T> predicted = exp(clipped);
          const Val<T> slope = objective == Objective::squared ? (predicted - loss[0]) * predicted
                                                               : clipped - log(Val<T>(loss[0]));
          found(m, kPrediction) = predicted;
          found(m, kSlope) = select(clipped == activation, slope, T(0));
          found(m, kTop) = top;
          found(m, kSum) = total;
          found(m, kStateActivation) = of_states;
        });
      },
      {.group = {kChains}});
}

/// Entry i of the softmax of a member's state.
template <class T>
Val<T> state_entry(const Grid<T, 2>& h, const Grid<T, 2>& found, const Val<i32>& m, const Val<i32>& column) {
  return exp(h(m, column) - found(m, kTop)) / found(m, kSum);
}

template <class T>
Kernel states_kernel() {
  return kernel(observe_name<T>("states"), [](At<2> at, Grid<T, 2> h, Grid<T, 1> head, Grid<T, 2> found,
                                              Out<T, 2> d_h, Param<i32> states) {
    const Val<i32> m = at.y, j = at.x, hidden = at.extent(0);
    const Val<T> s = state_entry<T>(h, found, m, j);
    Var<T> d = head[j];
    // Entries i with floor(i D / S) = j.
    for_((j * states + hidden - 1) / hidden, (j * states + states + hidden - 1) / hidden,
         [&](Val<i32> i) { d = fma(s, head[hidden + i] - found(m, kStateActivation), Val<T>(d)); });
    d_h[at] = d * found(m, kSlope);
  });
}

template <class T>
Kernel head_kernel() {
  return kernel(observe_name<T>("head"), [](At<1> at, Grid<T, 2> h, Grid<T, 2> found, Out<T, 1> d_head) {
    const Val<i32> k = at.x, hidden = h.size(1), states = at.extent(0) - hidden;
    Var<T> d = T(0);
    for_(0, h.size(0), [&](Val<i32> m) {
      Var<T> c = T(0);
      if_(
          k < hidden, [&] { c = h(m, k); },
          [&] { c = state_entry<T>(h, found, m, (k - hidden) * hidden / states); });
      d = fma(found(m, kSlope), Val<T>(c), Val<T>(d));
    });
    d_head[at] = d;
  });
}

}  // namespace

template <class T>
const ObserveKernels<T>& observe_kernels(Objective objective) {
  static const Kernel states = states_kernel<T>(), head = head_kernel<T>();
  static const ObserveKernels<T> logarithmic{error_kernel<T>(Objective::logarithmic), states, head},
      squared{error_kernel<T>(Objective::squared), states, head};
  return objective == Objective::squared ? squared : logarithmic;
}
template const ObserveKernels<f32>& observe_kernels<f32>(Objective);
template const ObserveKernels<f64>& observe_kernels<f64>(Objective);

}  // namespace lockstep::forecast
