#include <fmt/format.h>

#include <bit>

#include "autodiff/host_values.hpp"
#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

template <class T>
std::vector<T> evaluate(std::span<const Value> outputs, std::span<const T> leaves) {
  if (outputs.empty()) return {};
  const Tape& graph = outputs[0].graph();
  std::vector<T> values(graph.size());
  std::vector<T> operands;
  for (uint32_t id : reachable(outputs)) {
    const Node& node = graph.node(id);
    if (node.op == Op::constant) {
      values[id] = T(std::bit_cast<double>(node.imm));
    } else if (node.op == Op::leaf) {
      if (node.imm >= leaves.size())
        throw InputError(
            fmt::format("no value for leaf {} ({})", node.imm, graph.leaf_name(uint32_t(node.imm))),
            "autodiff evaluate", fmt::format("more than {} leaf values", leaves.size()));
      values[id] = leaves[node.imm];
    } else {
      operands.clear();
      for (uint32_t a : node.args) operands.push_back(values[a]);
      values[id] = host::apply<T>(node, operands);
    }
  }
  std::vector<T> result;
  for (const Value& v : outputs) result.push_back(values[v.id()]);
  return result;
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
