// Forward and reverse mode over the derivatives of ops.def.
#include <fmt/format.h>

#include "autodiff/one_tape.hpp"
#include "autodiff/row_derivatives.hpp"

namespace lockstep::autodiff {

namespace {

/// g times the partial derivative of node `id` to its operand `k`; nothing where that is zero.
std::optional<Value> propagate(Tape& graph, uint32_t id, size_t k, const Value& g) {
  const Node node = graph.node(id);  // a copy: making nodes moves the store
  const auto arg = [&](size_t n) { return Value(&graph, node.args[n]); };
  const Value zero = graph.constant(0);
  switch (node.op) {
    case Op::sum: return g;
    case Op::powi: return g * (double(int64_t(node.imm)) * powi(arg(0), int(int64_t(node.imm)) - 1));
    case Op::select:
      if (k == 0) return {};
      return graph.make(Op::select, {arg(0), k == 1 ? g : zero, k == 1 ? zero : g});
    default: break;
  }
  return row_derivative(node.op, k, arg(0), node.args.size() > 1 ? arg(1) : Value(), Value(&graph, id), g);
}

void check_lengths(size_t got, size_t expected, const char* what, const char* where) {
  if (got != expected)
    throw InputError(fmt::format("{} {}", got, what), where, fmt::format("{}, one each", expected));
}

}  // namespace

std::vector<Value> vjp(std::span<const Value> outputs, std::span<const Value> seeds,
                       std::span<const Value> inputs) {
  check_lengths(seeds.size(), outputs.size(), "seeds", "autodiff vjp");
  if (inputs.empty()) return {};
  if (outputs.empty()) throw InputError("no outputs", "autodiff vjp", "one or more");
  expect_one_tape({outputs[0], "output"}, inputs, "input", "autodiff vjp");
  expect_one_tape({outputs[0], "output"}, seeds, "seed", "autodiff vjp");
  Tape& graph = outputs[0].graph();
  const std::vector<uint32_t> order = reachable(outputs);
  const uint32_t size = uint32_t(graph.size());
  std::vector<char> active(size, 0);
  for (const Value& v : inputs)
    if (v.id() < size) active[v.id()] = 1;
  for (uint32_t id : order)
    for (uint32_t a : graph.node(id).args) active[id] |= active[a];

  std::vector<Value> adjoint(size);
  const auto add = [&](uint32_t id, const Value& g) {
    if (!g.is_constant(0)) adjoint[id] = adjoint[id].valid() ? adjoint[id] + g : g;
  };
  for (size_t k = 0; k < outputs.size(); ++k) add(outputs[k].id(), seeds[k]);
  for (size_t n = order.size(); n-- > 0;) {
    const uint32_t id = order[n];
    if (!active[id] || !adjoint[id].valid()) continue;
    const std::vector<uint32_t> args = graph.node(id).args;
    for (size_t k = 0; k < args.size(); ++k)
      if (active[args[k]])
        if (const auto g = propagate(graph, id, k, adjoint[id])) add(args[k], *g);
  }
  std::vector<Value> result;
  for (const Value& v : inputs)
    result.push_back(v.id() < size && adjoint[v.id()].valid() ? adjoint[v.id()] : graph.constant(0));
  return result;
}

std::vector<Value> jvp(std::span<const Value> outputs, std::span<const Value> inputs,
                       std::span<const Value> tangents) {
  check_lengths(tangents.size(), inputs.size(), "tangents", "autodiff jvp");
  if (outputs.empty()) return {};
  expect_one_tape({outputs[0], "output"}, inputs, "input", "autodiff jvp");
  expect_one_tape({outputs[0], "output"}, tangents, "tangent", "autodiff jvp");
  Tape& graph = outputs[0].graph();
  const std::vector<uint32_t> order = reachable(outputs);
  std::vector<Value> tangent(graph.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k].id() < tangent.size()) tangent[inputs[k].id()] = tangents[k];
  for (uint32_t id : order) {
    if (tangent[id].valid()) continue;  // an input
    const std::vector<uint32_t> args = graph.node(id).args;
    Value total;
    for (size_t k = 0; k < args.size(); ++k) {
      if (!tangent[args[k]].valid() || tangent[args[k]].is_constant(0)) continue;
      if (const auto g = propagate(graph, id, k, tangent[args[k]])) total = total.valid() ? total + *g : *g;
    }
    tangent[id] = total;
  }
  std::vector<Value> result;
  for (const Value& v : outputs)
    result.push_back(tangent[v.id()].valid() ? tangent[v.id()] : graph.constant(0));
  return result;
}

std::vector<Value> gradient(const Value& output, std::span<const Value> inputs) {
  const Value one = output.graph().constant(1);
  return vjp(std::span(&output, 1), std::span(&one, 1), inputs);
}
std::vector<Value> gradient(const Value& output, std::initializer_list<Value> inputs) {
  return gradient(output, std::span<const Value>(inputs.begin(), inputs.size()));
}

}  // namespace lockstep::autodiff
