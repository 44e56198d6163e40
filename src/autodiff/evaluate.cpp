#include <fmt/format.h>

#include <bit>

#include "autodiff/host_program.hpp"
#include "autodiff/host_values.hpp"
#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

template <class T>
HostProgram<T>::HostProgram(std::span<const Value> outputs) {
  if (outputs.empty()) return;
  tape_ = &outputs[0].graph();
  std::vector<uint32_t> step_of(tape_->size());
  for (const uint32_t id : reachable(outputs)) {
    const Node& node = tape_->node(id);
    for (const uint32_t a : node.args) operands_.push_back(step_of[a]);
    step_of[id] = uint32_t(steps_.size());
    steps_.push_back({node.op, node.imm, uint32_t(operands_.size())});
  }
  for (const Value& v : outputs) outputs_.push_back(step_of[v.id()]);
}

template <class T>
std::vector<T> HostProgram<T>::operator()(std::span<const T> leaves) const {
  std::vector<T> values(steps_.size()), operands, result;
  uint32_t at = 0;
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    if (step.op == Op::constant) {
      values[k] = T(std::bit_cast<double>(step.imm));
    } else if (step.op == Op::leaf) {
      if (step.imm >= leaves.size())
        throw InputError(
            fmt::format("no value for leaf {} ({})", step.imm, tape_->leaf_name(uint32_t(step.imm))),
            "autodiff evaluate", fmt::format("more than {} leaf values", leaves.size()));
      values[k] = leaves[step.imm];
    } else {
      operands.clear();
      for (; at < step.end; ++at) operands.push_back(values[operands_[at]]);
      values[k] = host::apply<T>(step.op, step.imm, operands);
    }
  }
  for (const uint32_t output : outputs_) result.push_back(values[output]);
  return result;
}
template class HostProgram<float>;
template class HostProgram<double>;
template class HostProgram<std::complex<double>>;

template <class T>
std::vector<T> evaluate(std::span<const Value> outputs, std::span<const T> leaves) {
  return HostProgram<T>(outputs)(leaves);
}
template std::vector<float> evaluate(std::span<const Value>, std::span<const float>);
template std::vector<double> evaluate(std::span<const Value>, std::span<const double>);
template std::vector<std::complex<double>> evaluate(std::span<const Value>,
                                                    std::span<const std::complex<double>>);

GradientCheck check_gradient(const Value& output, const std::vector<double>& leaves) {
  constexpr double kStep = 1e-30;
  Tape& graph = output.graph();
  const std::vector<uint32_t> used = leaves_of(std::span(&output, 1));
  std::vector<Value> inputs, tangents(used.size(), graph.constant(0));
  for (uint32_t leaf : used) inputs.push_back(graph.leaf_value(leaf));
  const std::vector<double> reverse = evaluate<double>(gradient(output, inputs), leaves);
  std::vector<std::complex<double>> point(leaves.begin(), leaves.end());
  GradientCheck check;
  for (size_t k = 0; k < used.size(); ++k) {
    point[used[k]] += std::complex<double>(0, kStep);
    const double exact = evaluate(output, point).imag() / kStep;
    point[used[k]] = leaves[used[k]];
    tangents[k] = graph.constant(1);
    const double forward = evaluate<double>(jvp(std::span(&output, 1), inputs, tangents), leaves)[0];
    tangents[k] = graph.constant(0);
    const double scale = std::max(1.0, std::abs(exact));
    // A NaN anywhere must count as an error.
    const auto error = [&](double got) {
      return std::isfinite(got) && std::isfinite(exact) ? std::abs(got - exact) / scale : INFINITY;
    };
    if (error(reverse[k]) > check.max_error) check.max_error = error(reverse[k]), check.worst_leaf = used[k];
    check.forward_error = std::max(check.forward_error, error(forward));
  }
  return check;
}

}  // namespace lockstep::autodiff
