// The derivative rules, and forward and reverse mode over them.
#include <fmt/format.h>

#include <optional>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

namespace {

/// What a rule sees: operands a and b, the result r, and the factor g that the partial derivative is
/// multiplied with. g is the adjoint of r in reverse mode and the tangent of the operand in forward mode.
struct Place {
  Value a, b, r, g;
};
using Rule = Value (*)(const Place&);

struct Derivative {
  Op op;
  Rule to_a;
  Rule to_b = nullptr;
};

// One row per operation with a derivative; sum, powi and select follow in `propagate`, all others have none.
constexpr Derivative kDerivatives[] = {
    {Op::add, [](const Place& p) { return p.g; }, [](const Place& p) { return p.g; }},
    {Op::sub, [](const Place& p) { return p.g; }, [](const Place& p) { return -p.g; }},
    {Op::mul, [](const Place& p) { return p.g * p.b; }, [](const Place& p) { return p.g * p.a; }},
    {Op::div, [](const Place& p) { return p.g / p.b; }, [](const Place& p) { return -(p.g * p.r) / p.b; }},
    {Op::neg, [](const Place& p) { return -p.g; }},
    {Op::abs, [](const Place& p) { return select(p.a >= 0, p.g, -p.g); }},
    {Op::min, [](const Place& p) { return select(p.b < p.a, 0, p.g); },
     [](const Place& p) { return select(p.b < p.a, p.g, 0); }},
    {Op::max, [](const Place& p) { return select(p.a < p.b, 0, p.g); },
     [](const Place& p) { return select(p.a < p.b, p.g, 0); }},
    {Op::fmod, [](const Place& p) { return p.g; }, [](const Place& p) { return -(p.g * trunc(p.a / p.b)); }},
    {Op::copysign, [](const Place& p) { return select(equal(p.r, p.a), p.g, -p.g); }},
    {Op::sqrt, [](const Place& p) { return p.g * 0.5 / p.r; }},
    {Op::rsqrt, [](const Place& p) { return p.g * -0.5 * (p.r * p.r * p.r); }},
    {Op::cbrt, [](const Place& p) { return p.g * p.r / (3.0 * p.a); }},
    {Op::hypot, [](const Place& p) { return p.g * p.a / p.r; },
     [](const Place& p) { return p.g * p.b / p.r; }},
    {Op::exp, [](const Place& p) { return p.g * p.r; }},
    {Op::exp2, [](const Place& p) { return p.g * p.r * 0.693147180559945309417; }},
    {Op::expm1, [](const Place& p) { return p.g * (p.r + 1); }},
    {Op::log, [](const Place& p) { return p.g / p.a; }},
    {Op::log2, [](const Place& p) { return p.g * 1.44269504088896340736 / p.a; }},
    {Op::log10, [](const Place& p) { return p.g * 0.434294481903251827651 / p.a; }},
    {Op::log1p, [](const Place& p) { return p.g / (1 + p.a); }},
    {Op::pow, [](const Place& p) { return p.g * select(equal(p.b, 0), 0, p.b * pow(p.a, p.b - 1)); },
     [](const Place& p) { return p.g * select(p.a > 0, p.r * log(select(p.a > 0, p.a, 1)), 0); }},
    {Op::sin, [](const Place& p) { return p.g * cos(p.a); }},
    {Op::cos, [](const Place& p) { return -(p.g * sin(p.a)); }},
    {Op::tan, [](const Place& p) { return p.g * (1 + p.r * p.r); }},
    {Op::asin, [](const Place& p) { return p.g / sqrt(1 - p.a * p.a); }},
    {Op::acos, [](const Place& p) { return -(p.g / sqrt(1 - p.a * p.a)); }},
    {Op::atan, [](const Place& p) { return p.g / (1 + p.a * p.a); }},
    {Op::atan2, [](const Place& p) { return p.g * p.b / (p.a * p.a + p.b * p.b); },
     [](const Place& p) { return -(p.g * p.a / (p.a * p.a + p.b * p.b)); }},
    {Op::sinh, [](const Place& p) { return p.g * cosh(p.a); }},
    {Op::cosh, [](const Place& p) { return p.g * sinh(p.a); }},
    {Op::tanh, [](const Place& p) { return p.g * (1 - p.r * p.r); }},
    {Op::sigmoid, [](const Place& p) { return p.g * (p.r * (1 - p.r)); }},
    {Op::softplus, [](const Place& p) { return p.g * sigmoid(p.a); }},
    {Op::erf, [](const Place& p) { return p.g * (exp(-(p.a * p.a)) * 1.12837916709551257390); }},
};

const Derivative* find(Op op) {
  for (const Derivative& d : kDerivatives)
    if (d.op == op) return &d;
  return nullptr;
}

/// g times the partial derivative of node `id` to its operand `k`; nothing where that is zero.
std::optional<Value> propagate(Graph& graph, uint32_t id, size_t k, const Value& g) {
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
  const Derivative* d = find(node.op);
  if (!d) return {};
  const Rule rule = k == 0 ? d->to_a : d->to_b;
  if (!rule) return {};
  return rule({arg(0), node.args.size() > 1 ? arg(1) : Value(), Value(&graph, id), g});
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
  Graph& graph = outputs[0].graph();
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
  Graph& graph = outputs[0].graph();
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
