#include "solve/evaluate/host_instances.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/platform/parallel.hpp"
#include "core/platform/threads.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve {

HostInstances::HostInstances(std::shared_ptr<const TermDerivatives> term, Layout layout)
    : term_(std::move(term)), layout_(std::move(layout)), function_(term_->expression()) {
  const ExpressionKey& key = term_->expression();
  const Value s = graph_.variable("s");
  std::vector<Value> numbers;
  for (int k = 0; k < key.loss_constants; ++k) numbers.push_back(graph_.parameter("number"));
  const Value rho = key.rho(s, numbers);
  const Value slope = autodiff::gradient(rho, {s})[0];
  loss_ = autodiff::HostProgram<double>(std::vector<Value>{rho, slope, autodiff::gradient(slope, {s})[0]});
}

/// Of several instances that throw, the first one's error leaves, whichever thread met it.
template <class F>
void HostInstances::each_instance(F f) const {
  int64_t thrower = layout_.n;
  std::exception_ptr thrown;
  Mutex writing;
  const auto range = [&](int64_t first, int64_t last) {
    int64_t i = first;
    try {
      for (; i < last; ++i) f(size_t(i));
    } catch (...) {
      const std::lock_guard lock(writing);
      if (i < thrower) thrower = i, thrown = std::current_exception();
    }
  };
  static const platform::ThreadArena threads;
  if (function_.parallel() && layout_.n > 1)
    threads.for_parts(layout_.n, range);
  else
    range(0, layout_.n);
  if (thrown) std::rethrow_exception(thrown);
}

namespace {

/// The blocks and data of an instance.
struct Gathered {
  std::vector<std::span<const double>> blocks;
  std::vector<double> data;
};
Gathered gather(const HostInstances::Layout& layout, const TermDerivatives& term,
                std::span<const double> state, size_t i) {
  Gathered out;
  const size_t n = size_t(layout.n);
  for (size_t s = 0; s < term.widths().size(); ++s)
    out.blocks.push_back(state.subspan(size_t(layout.ambient[s * n + i]),
                                       size_t(term.expression().slots[s]->manifold.ambient)));
  for (int k = 0; k < term.expression().data; ++k) out.data.push_back(layout.numbers[size_t(k) * n + i]);
  return out;
}

/// s and the numbers of the loss of an instance, and its weight.
std::vector<double> loss_arguments(const HostInstances::Layout& layout, const TermDerivatives& term, double s,
                                   size_t i, double& weight) {
  std::vector<double> out{s};
  size_t column = size_t(term.expression().data), uniform = 0;
  const size_t n = size_t(layout.n);
  weight = term.expression().weighted ? layout.numbers[column++ * n + i] : 1;
  for (const ConstantUse& use : term.constants()) switch (use.where) {
      case ConstantUse::Where::literal: out.push_back(use.value); break;
      case ConstantUse::Where::uniform: out.push_back(layout.uniforms[uniform++]); break;
      case ConstantUse::Where::column: out.push_back(layout.numbers[column++ * n + i]); break;
    }
  return out;
}

}  // namespace

void HostInstances::move_to(std::span<const double> state) {
  if (std::ranges::equal(state, state_)) return;
  const size_t n = size_t(layout_.n), rows = size_t(term_->rows());
  state_.clear(), jacobian_.clear();  // of no state, where a function throws
  const std::vector<double> x(state.begin(), state.end());
  plain_.resize(rows * n);
  for (std::vector<double>* v : {&cost_, &slope_, &root_, &along_}) v->resize(n);
  each_instance([&](size_t i) {
    const Gathered at = gather(layout_, *term_, x, i);
    std::vector<double> r(rows);
    function_.residuals({at.blocks, at.data, int64_t(i)}, r);
    double squares = 0, weight = 1;
    for (size_t k = 0; k < rows; ++k) plain_[k * n + i] = r[k], squares += r[k] * r[k];
    const std::vector<double> rho = loss_(loss_arguments(layout_, *term_, squares, i, weight));
    cost_[i] = 0.5 * weight * rho[0], slope_[i] = weight * rho[1];
    // Triggs' second-order term, of a loss that rises and is convex.
    const double ratio = rho[1] > 0 && rho[2] > 0 ? rho[2] / rho[1] : 0;
    root_[i] = std::sqrt(1 + 2 * squares * ratio), along_[i] = 2 * ratio / (1 + root_[i]);
  });
  state_ = x;
}

void HostInstances::differentiate() {
  if (!jacobian_.empty()) return;
  const size_t n = size_t(layout_.n), entries = size_t(term_->rows()) * size_t(term_->columns());
  std::vector<double> all(entries * n);
  each_instance([&](size_t i) {
    const Gathered at = gather(layout_, *term_, state_, i);
    std::vector<double> own(entries);
    function_.jacobian({at.blocks, at.data, int64_t(i)}, own);
    for (size_t e = 0; e < entries; ++e) all[e * n + i] = own[e];
  });
  jacobian_ = std::move(all);
}

const std::vector<double>& HostInstances::corrected() {
  if (!corrected_.empty() && corrected_at_ == state_) return corrected_;
  const size_t n = size_t(layout_.n), rows = size_t(term_->rows()), columns = size_t(term_->columns());
  corrected_ = jacobian_, corrected_at_ = state_;
  for (size_t c = 0; c < columns; ++c)
    for (size_t i = 0; i < n; ++i) {
      double dot = 0;
      for (size_t r = 0; r < rows; ++r) dot += plain_[r * n + i] * jacobian_[(r * columns + c) * n + i];
      const double weight = std::sqrt(std::max(slope_[i], 0.0)), along = along_[i] * dot;
      for (size_t r = 0; r < rows; ++r) {
        double& entry = corrected_[(r * columns + c) * n + i];
        entry = weight * (entry + plain_[r * n + i] * along);
      }
    }
  return corrected_;
}

template <class F>
void HostInstances::each_slot_row(F f) const {
  for (const TermDerivatives::SlotClass& c : term_->classes())
    for (int k = 0; k < c.width; ++k)
      for (size_t rank = 0; rank < c.slots.size(); ++rank)
        f(size_t(c.first_row) + size_t(k) * c.slots.size() + rank,
          size_t(term_->first_column()[size_t(c.slots[rank])] + k), c.slots[rank]);
}

std::vector<double> HostInstances::output(std::span<const double> state, Output which) {
  move_to(state);
  const size_t n = size_t(layout_.n), rows = size_t(term_->rows()), columns = size_t(term_->columns());
  if (which == kJacobian || which == kGradient || which == kDiagonal) differentiate();
  switch (which) {
    case kCost: return cost_;
    case kPlain: return plain_;
    case kSlope: return slope_;
    case kResiduals: {
      std::vector<double> out(plain_.size());
      for (size_t k = 0; k < out.size(); ++k)
        out[k] = std::sqrt(std::max(slope_[k % n], 0.0)) / root_[k % n] * plain_[k];
      return out;
    }
    case kJacobian: return corrected();
    case kGradient: {
      std::vector<double> out(size_t(term_->slot_rows()) * n, 0);
      each_slot_row([&](size_t row, size_t column, int) {
        for (size_t r = 0; r < rows; ++r)
          for (size_t i = 0; i < n; ++i)
            out[row * n + i] += slope_[i] * plain_[r * n + i] * jacobian_[(r * columns + column) * n + i];
      });
      return out;
    }
    case kDiagonal: break;
  }
  const std::vector<double>& jacobian = corrected();
  std::vector<double> out(size_t(term_->diagonal_rows()) * n, 0);
  for (const TermDerivatives::SlotClass& c : term_->classes()) {
    size_t row = size_t(c.first_diagonal);
    for (int a = 0; a < c.width; ++a)
      for (int b = a; b < (c.width <= kWidestInverse ? c.width : a + 1); ++b)
        for (const int slot : c.slots) {
          const size_t first = size_t(term_->first_column()[size_t(slot)]);
          for (size_t r = 0; r < rows; ++r) {
            const double* of_a = jacobian.data() + (r * columns + first + size_t(a)) * n;
            const double* of_b = jacobian.data() + (r * columns + first + size_t(b)) * n;
            for (size_t i = 0; i < n; ++i) out[row * n + i] += of_a[i] * of_b[i];
          }
          ++row;
        }
  }
  return out;
}

std::vector<double> HostInstances::product(std::span<const double> state, std::span<const double> p,
                                           const SlotMask& mask) {
  if (corrected_.empty() || !std::ranges::equal(state, corrected_at_)) {
    move_to(state);
    differentiate();
    corrected();
  }
  const std::vector<double>& jacobian = corrected_;
  const size_t n = size_t(layout_.n), rows = size_t(term_->rows()), columns = size_t(term_->columns());
  std::vector<double> t(rows * n, 0), out(size_t(term_->slot_rows()) * n, 0);
  for (size_t s = 0; s < term_->widths().size(); ++s) {
    if (!(mask.inputs & TermDerivatives::slot_bit(int(s)))) continue;
    for (size_t c = 0; c < size_t(term_->widths()[s]); ++c)
      for (size_t r = 0; r < rows; ++r)
        for (size_t i = 0; i < n; ++i)
          t[r * n + i] += jacobian[(r * columns + size_t(term_->first_column()[s]) + c) * n + i] *
                          p[size_t(layout_.tangent[s * n + i]) + c];
  }
  each_slot_row([&](size_t row, size_t column, int slot) {
    if (!term_->serves(slot, mask.outputs)) return;
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < n; ++i)
        out[row * n + i] += jacobian[(r * columns + column) * n + i] * t[r * n + i];
  });
  return out;
}

}  // namespace lockstep::solve
