// A problem evaluated on the host, one instance after the other, straight from the expressions: the oracle
// of the kernels. T is float, double or std::complex<double> (complex steps).
#pragma once

#include <algorithm>
#include <complex>
#include <span>
#include <vector>

#include "solve/model/host_function.hpp"
#include "solve/model/problem.hpp"
#include "solve/model/robust_loss.hpp"

namespace lockstep::solve::reference {

/// The residuals of a batch's instances, to be evaluated: leaves, then the numbers of the expression.
struct Traced {
  autodiff::Tape graph;
  int numbers;  // of the expression, without those of the loss
  std::vector<Value> outputs;

  explicit Traced(const ExpressionKey& t) : numbers(t.constants - t.loss_constants) {
    std::vector<Value> leaves, constants;
    for (size_t k = 0; k < t.leaves.size(); ++k) leaves.push_back(graph.variable("leaf"));
    for (int k = 0; k < numbers; ++k) constants.push_back(graph.parameter("constant"));
    outputs = t.residuals(graph, leaves, constants);
  }
  template <class T>
  std::vector<T> at(const std::vector<T>& point) const {
    return autodiff::evaluate<T>(std::span<const Value>(outputs), std::span<const T>(point));
  }
};

inline void host_residuals(const Problem::State& state, const Batch& batch, std::span<const double> x,
                           std::vector<double>& result) {
  const ExpressionKey& t = *batch.expression;
  const HostFunction function(t);
  for (const Segment& s : batch.segments)
    for (int64_t i = 0; i < s.count; ++i) {
      if (!s.counts(i)) continue;
      std::vector<std::span<const double>> blocks;
      for (size_t k = 0; k < t.slots.size(); ++k) {
        const int64_t block = s.blocks[size_t(i) * t.slots.size() + k];
        const SetState& set = state.set_of(block);
        blocks.push_back(x.subspan(size_t(set.first_ambient + (block - set.first_block) * set.ambient()),
                                   size_t(set.ambient())));
      }
      result.resize(result.size() + size_t(t.rows));
      function.residuals({blocks, std::span(s.data).subspan(size_t(i * t.data), size_t(t.data)), i},
                         std::span(result).last(size_t(t.rows)));
    }
}

/// All residuals, instance after instance of each batch, without loss; an energy is one number.
template <class T>
std::vector<T> residuals(const Problem& problem, std::span<const T> x) {
  const Problem::State& state = problem.state();
  std::vector<T> result;
  for (const Batch& batch : state.batches) {
    const ExpressionKey& t = *batch.expression;
    if (t.host) {
      if constexpr (std::is_same_v<T, double>) host_residuals(state, batch, x, result);
      continue;
    }
    const Traced traced(t);
    for (const Segment& s : batch.segments)
      for (int64_t i = 0; i < s.count; ++i) {
        if (!s.counts(i)) continue;
        std::vector<T> at;
        for (const ExpressionKey::Leaf& l : t.leaves) {
          if (l.slot < 0) {
            at.push_back(T(s.data[size_t(i * t.data + l.index)]));
          } else {
            const int64_t block = s.blocks[size_t(i) * t.slots.size() + size_t(l.slot)];
            const SetState& set = state.set_of(block);
            at.push_back(x[size_t(set.first_ambient + (block - set.first_block) * set.ambient() + l.index)]);
          }
        }
        for (int k = 0; k < traced.numbers; ++k)
          at.push_back(T(s.constants[size_t((s.own_constants ? i : 0) * t.constants + k)]));
        for (const T& r : traced.at(at)) result.push_back(r);
      }
  }
  return result;
}

/// The robust loss, or its derivative where T is complex and s has an imaginary step.
template <class T>
T loss(RobustLoss::Kind kind, T s, double scale) {
  autodiff::Tape graph;
  const Value v = graph.variable("s");
  return autodiff::evaluate<T>(robust_loss({kind, scale}, v), std::vector<T>{s});
}

/// An instance's part of the cost: its expression, the numbers of its loss, its weight, and its first residual.
struct Part {
  const ExpressionKey* expression;
  std::span<const double> loss;
  double weight;
  size_t first;

  template <class T>
  T rho(T s) const {
    autodiff::Tape graph;
    const Value v = graph.variable("s");
    std::vector<Value> numbers;
    for (const double n : loss) numbers.push_back(graph.constant(n));
    const Value value = expression->rho(v, numbers);
    return T(weight) * autodiff::evaluate<T>(value, std::vector<T>{s});
  }
};

/// Calls f(Part) for each instance.
template <class F>
void each_instance(const Problem& problem, F f) {
  size_t first = 0;
  for (const Batch& batch : problem.state().batches) {
    const ExpressionKey& t = *batch.expression;
    for (const Segment& s : batch.segments)
      for (int64_t i = 0; i < s.count; ++i) {
        if (!s.counts(i)) continue;
        const size_t row = size_t(s.own_constants ? i : 0) + 1;
        const std::span<const double> constants(s.constants);
        f(Part{
            &t,
            constants.subspan(row * size_t(t.constants) - size_t(t.loss_constants), size_t(t.loss_constants)),
            t.weighted ? s.weights[size_t(i)] : 1.0, first});
        first += size_t(t.rows);
      }
  }
}

template <class T>
T cost(const Problem& problem, std::span<const T> x) {
  const std::vector<T> r = residuals<T>(problem, x);
  T total = T(0);
  each_instance(problem, [&](const Part& part) {
    if (part.expression->energy) {
      total += T(part.weight) * r[part.first];
      return;
    }
    T s = T(0);
    for (int k = 0; k < part.expression->rows; ++k)
      s += r[part.first + size_t(k)] * r[part.first + size_t(k)];
    total += T(0.5) * (part.expression->has_loss() ? part.rho(s) : T(part.weight) * s);
  });
  return total;
}

/// x [+] delta, all blocks; those that are fixed stay.
template <class T>
std::vector<T> plus(const Problem& problem, std::span<const T> x, std::span<const T> delta) {
  const Problem::State& state = problem.state();
  std::vector<T> result(x.begin(), x.end());
  for (const SetState& s : state.sets)
    for (int64_t b = 0; b < s.count; ++b) {
      if (state.fixed[size_t(s.first_block + b)]) continue;
      std::vector<T> at;
      for (int c = 0; c < s.ambient(); ++c) at.push_back(x[size_t(s.first_ambient + b * s.ambient() + c)]);
      for (int c = 0; c < s.tangent(); ++c)
        at.push_back(delta[size_t(s.first_tangent + b * s.tangent() + c)]);
      const std::vector<T> moved =
          autodiff::evaluate<T>(std::span<const Value>(s.manifold->plus), std::span<const T>(at));
      std::copy(moved.begin(), moved.end(), result.begin() + s.first_ambient + b * s.ambient());
    }
  return result;
}

/// Derivatives of f(x [+] delta) to every tangent coordinate at delta = 0, by complex steps: one vector of
/// outputs for each coordinate.
template <class F>
std::vector<std::vector<double>> derivatives(const Problem& problem, std::span<const double> x, F f) {
  using C = std::complex<double>;
  constexpr double kStep = 1e-30;
  const std::vector<C> at(x.begin(), x.end());
  std::vector<C> delta(size_t(problem.state().tangent));
  std::vector<std::vector<double>> result;
  for (C& d : delta) {
    d = {0, kStep};
    const std::vector<C> moved = plus<C>(problem, at, delta);
    d = 0;
    std::vector<double> column;
    for (const C& v : f(std::span<const C>(moved))) column.push_back(v.imag() / kStep);
    result.push_back(std::move(column));
  }
  return result;
}

inline std::vector<double> gradient(const Problem& problem, std::span<const double> x) {
  using C = std::complex<double>;
  std::vector<double> g;
  for (const auto& column :
       derivatives(problem, x, [&](std::span<const C> at) { return std::vector<C>{cost<C>(problem, at)}; }))
    g.push_back(column[0]);
  return g;
}

/// Cost, gradient, diagonal of J^T J and J^T J p, instance by instance, J by complex steps; not for energies.
struct Linearized {
  double cost = 0;
  std::vector<double> gradient, diagonal, product;
};

/// An instance at a point: its blocks, its residuals, and derivatives of these by each coordinate of the blocks.
struct Instance {
  using C = std::complex<double>;
  static constexpr double kStep = 1e-30;
  const ExpressionKey& t;
  const Traced& traced;
  const Segment& s;
  int64_t i;
  std::vector<std::vector<C>> blocks;
  std::vector<int64_t> tangent;  // coordinate by column; -1 where fixed

  Instance(const Problem::State& state, const Batch& batch, const Traced& of, const Segment& segment,
           int64_t number, std::span<const double> x)
      : t(*batch.expression), traced(of), s(segment), i(number) {
    for (size_t k = 0; k < t.slots.size(); ++k) {
      const int64_t block = s.blocks[size_t(i) * t.slots.size() + k];
      const SetState& set = state.set_of(block);
      const auto first = x.begin() + set.first_ambient + (block - set.first_block) * set.ambient();
      blocks.emplace_back(first, first + set.ambient());
      for (int c = 0; c < set.tangent(); ++c)
        tangent.push_back(state.fixed[size_t(block)]
                              ? -1
                              : set.first_tangent + (block - set.first_block) * set.tangent() + c);
    }
  }
  const double* constants() const { return &s.constants[size_t(s.own_constants ? i * t.constants : 0)]; }
  /// Residuals with the block of a slot moved.
  std::vector<C> residuals(size_t slot, const std::vector<C>& moved) const {
    std::vector<C> at;
    for (const ExpressionKey::Leaf& l : t.leaves)
      at.push_back(l.slot < 0 ? C(s.data[size_t(i * t.data + l.index)])
                              : (size_t(l.slot) == slot ? moved : blocks[size_t(l.slot)])[size_t(l.index)]);
    for (int k = 0; k < traced.numbers; ++k) at.push_back(C(constants()[k]));
    return traced.at(at);
  }
  /// rho(s) and its derivatives, the weight in all; the second one by differences of the first, of order 8.
  struct Rho {
    double value, slope, bend = 0;
  };
  Rho rho(double squares) const {
    if (!t.has_loss() && !t.weighted) return {squares, 1};
    const Part part{&t,
                    {constants() + traced.numbers, size_t(t.loss_constants)},
                    t.weighted ? s.weights[size_t(i)] : 1.0,
                    0};
    const C both = part.rho(C(squares, kStep));
    Rho out{both.real(), both.imag() / kStep};
    if (t.loss != RobustLoss::Kind::expression) return out;  // named losses are concave
    constexpr double kWidth = 2e-3, kFactors[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
    for (int k = 1; k <= 4; ++k)
      for (const int sign : {1, -1})
        out.bend += sign * kFactors[k - 1] * part.rho(C(squares + sign * k * kWidth, kStep)).imag() /
                    (kStep * kWidth);
    return out;
  }
  std::vector<std::vector<double>> columns() const {
    std::vector<std::vector<double>> columns;
    for (size_t k = 0; k < t.slots.size(); ++k) {
      const TracedManifold& m = *t.slots[k];
      for (int c = 0; c < m.manifold.tangent; ++c) {
        std::vector<C> at = blocks[k];
        at.resize(at.size() + size_t(m.manifold.tangent));
        at[blocks[k].size() + size_t(c)] = {0, kStep};
        const auto moved = autodiff::evaluate<C>(std::span<const Value>(m.plus), std::span<const C>(at));
        columns.emplace_back();
        for (const C& v : residuals(k, moved)) columns.back().push_back(v.imag() / kStep);
      }
    }
    return columns;
  }
};

inline void add_instance(const Instance& instance, std::span<const double> p, Linearized& sum) {
  const std::vector<std::complex<double>> r = instance.residuals(0, instance.blocks[0]);
  double squares = 0;
  for (const auto& v : r) squares += v.real() * v.real();
  const Instance::Rho rho = instance.rho(squares);
  // J^T J with Triggs' correction.
  const double rise = std::max(rho.slope, 0.0), bend = rho.slope > 0 ? std::max(rho.bend, 0.0) : 0;
  sum.cost += 0.5 * rho.value;
  const std::vector<std::vector<double>> columns = instance.columns();
  const std::vector<int64_t>& tangent = instance.tangent;
  std::vector<double> halves(columns.size(), 0);  // J^T r
  double dot = 0;                                 // r^T J p
  for (size_t row = 0; row < r.size(); ++row) {
    double along = 0;
    for (size_t c = 0; c < columns.size(); ++c)
      if (tangent[c] >= 0) along += columns[c][row] * p[size_t(tangent[c])];
    dot += along * r[row].real();
    for (size_t c = 0; c < columns.size(); ++c) {
      halves[c] += columns[c][row] * r[row].real();
      if (tangent[c] < 0) continue;
      sum.diagonal[size_t(tangent[c])] += rise * columns[c][row] * columns[c][row];
      sum.product[size_t(tangent[c])] += rise * columns[c][row] * along;
    }
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    if (tangent[c] < 0) continue;
    sum.gradient[size_t(tangent[c])] += rho.slope * halves[c];
    sum.diagonal[size_t(tangent[c])] += 2 * bend * halves[c] * halves[c];
    sum.product[size_t(tangent[c])] += 2 * bend * halves[c] * dot;
  }
}

inline Linearized linearize(const Problem& problem, std::span<const double> x, std::span<const double> p) {
  const Problem::State& state = problem.state();
  Linearized sum;
  for (std::vector<double>* v : {&sum.gradient, &sum.diagonal, &sum.product})
    v->assign(size_t(state.tangent), 0.0);
  for (const Batch& batch : state.batches) {
    const Traced traced(*batch.expression);
    for (const Segment& s : batch.segments)
      for (int64_t i = 0; i < s.count; ++i)
        if (s.counts(i)) add_instance(Instance(state, batch, traced, s, i, x), p, sum);
  }
  return sum;
}

}  // namespace lockstep::solve::reference
