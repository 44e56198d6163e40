// The instances of a host term: what the kernels of batch_kernels.hpp give for traced ones, in their layout.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "solve/evaluate/batch_kernels.hpp"
#include "solve/model/host_function.hpp"

namespace lockstep::solve {

class HostInstances {
 public:
  struct Layout {
    int64_t n = 0;
    std::vector<int32_t> ambient,
        tangent;                  // (slots, n): first number, first tangent coordinate of each block
    std::vector<double> numbers;  // (data columns, n)
    std::vector<double> uniforms;
  };
  HostInstances(std::shared_ptr<const TermDerivatives> term, Layout layout);

  /// Other numbers of the same instances.
  void set_numbers(std::vector<double> numbers, std::vector<double> uniforms) {
    layout_.numbers = std::move(numbers), layout_.uniforms = std::move(uniforms);
    state_.clear(), corrected_.clear();
  }

  /// Another term of the same shape, with the same loss.
  void set_term(std::shared_ptr<const TermDerivatives> term) {
    term_ = std::move(term), function_ = HostFunction(term_->expression());
    state_.clear(), corrected_.clear();
  }

  /// One output at a state. What was computed for the last state is kept.
  std::vector<double> output(std::span<const double> state, Output which);
  /// J^T J p by slot_rows(), J that of the state.
  std::vector<double> product(std::span<const double> state, std::span<const double> p, const SlotMask& mask);

 private:
  void move_to(std::span<const double> state);
  void differentiate();
  /// J with Triggs' correction, as TermDerivatives::stored() has it.
  const std::vector<double>& corrected();
  template <class F>
  void each_instance(F f) const;
  /// Calls f(row of the slots, column of J) for the stored slots' coordinates.
  template <class F>
  void each_slot_row(F f) const;

  std::shared_ptr<const TermDerivatives> term_;
  Layout layout_;
  HostFunction function_;
  autodiff::Tape graph_;                // of the loss: s, then its numbers
  autodiff::HostProgram<double> loss_;  // rho, rho', rho''
  std::vector<double> state_;
  std::vector<double> plain_, cost_, slope_;      // (rows, n), (n), (n)
  std::vector<double> root_, along_;              // (n): sqrt(D), (sqrt(D) - 1) / s
  std::vector<double> jacobian_;                  // (rows, columns, n), without the loss; empty: not computed
  std::vector<double> corrected_, corrected_at_;  // with Triggs' correction, and the state that it is of
};

}  // namespace lockstep::solve
