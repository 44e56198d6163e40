// Residuals that a page writes as expressions: their graphs, derivatives, and one kernel for values and derivatives at many points.
#include <map>
#include <optional>

#include "calls.hpp"
#include "ir/bindings.hpp"
#include "lockstep/autodiff.hpp"
#include "objects.hpp"

namespace lockstep::web {

namespace {

using autodiff::Op;
using autodiff::Tape;
using autodiff::Value;

struct Operation {
  Op op;
  size_t arity;
};
/// Those of real numbers, by the names that expressions use.
const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = [] {
    std::map<std::string, Operation> found;
    const auto add = [&](const char* name, std::string_view kind, Op op, size_t arity) {
      if (kind == "VALUE") found[name] = {op, arity};
    };
#define LOCKSTEP_NODE(name, word, kind, arity, ...) add(#name, #kind, Op::name, arity);
#define LOCKSTEP_MATH(name, arity, ...) add(#name, "VALUE", Op::name, arity);
#include "lockstep/ir/ops.def"
    return found;
  }();
  return all;
}

/// Builds an expression: a number, the name of a variable, or [operation, operands…].
class Expression {
 public:
  Expression(Tape& tape, const std::map<std::string, Value>& variables)
      : tape_(tape), variables_(variables) {}
  Value of(const Json& tree, int depth = 0) {
    if (depth > kDeepest || ++nodes_ > kMost)
      throw InputError(
          "an expression that is too long", "residual",
          std::to_string(kMost) + " operations, " + std::to_string(kDeepest) + " inside each other");
    if (tree.is_number()) return tape_.constant(tree.get<double>());
    if (tree.is_string()) return variable(tree.get<std::string>());
    if (!tree.is_array() || tree.empty() || !tree[0].is_string())
      throw InputError("an expression", "residual", "a number, a name or [operation, operands…]");
    return operation(tree, depth);
  }

 private:
  static constexpr int kDeepest = 60, kMost = 500;
  Value variable(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found != variables_.end()) return found->second;
    std::string known;
    for (const auto& [other, value] : variables_) known += (known.empty() ? "" : ", ") + other;
    throw InputError("name " + name, "residual", "one of " + known);
  }
  Value operation(const Json& tree, int depth) {
    const std::string name = tree[0].get<std::string>();
    const auto found = operations().find(name);
    if (found == operations().end())
      throw InputError("function " + name, "residual",
                       "a function of real numbers, such as sin, exp or hypot");
    if (tree.size() != found->second.arity + 1)
      throw InputError(name + " of " + std::to_string(tree.size() - 1), "residual",
                       std::to_string(found->second.arity) + " operands");
    std::vector<Value> operands;
    for (size_t k = 1; k < tree.size(); ++k) operands.push_back(of(tree[k], depth + 1));
    // A whole power is a product.
    if (name == "pow" && tree[2].is_number_integer() && std::abs(tree[2].get<int64_t>()) <= 64)
      return autodiff::powi(operands[0], int(tree[2].get<int64_t>()));
    return tape_.make(found->second.op, operands);
  }
  Tape& tape_;
  const std::map<std::string, Value>& variables_;
  int nodes_ = 0;
};

/// out[k, p] at point p: the values, then each value's derivatives by the variables, for x[v, p].
Kernel kernel_of(const Tape& tape, const std::vector<Value>& outputs) {
  return Kernel::trace("residual", ir::Domain::points, 1, {}, [&](ir::Builder& builder) {
    const auto x = std::get<bindings::TracedBuffer>(bindings::declare(builder, {"read", "f64", 2}));
    const auto out = std::get<bindings::TracedBuffer>(bindings::declare(builder, {"write", "f64", 2}));
    const AnyVal point = bindings::place("coord", 0);
    autodiff::Lowering lower(tape, Type::f64, [&](uint32_t leaf) {
      return x.load({AnyVal::number(Type::i32, int64_t(leaf)), point}, "", false);
    });
    for (size_t k = 0; k < outputs.size(); ++k)
      out.store({AnyVal::number(Type::i32, int64_t(k)), point}, lower(outputs[k]), false);
  });
}

Json residual(const Json& request) {
  const Json &names = member(request, "variables"), &trees = member(request, "expressions");
  if (!names.is_array() || names.empty() || names.size() > 64 || !trees.is_array() || trees.empty() ||
      trees.size() > 64)
    throw InputError("a residual", "residual", "1 to 64 variables and as many expressions");
  Tape tape;
  std::map<std::string, Value> variables;
  std::vector<Value> inputs;
  for (const Json& name : names) {
    if (!name.is_string() || variables.contains(name.get<std::string>()))
      throw InputError("variables", "residual", "different names");
    inputs.push_back(variables[name.get<std::string>()] = tape.variable(name.get<std::string>()));
  }
  Expression expression(tape, variables);
  std::vector<Value> outputs;
  Json texts = Json::array(), derivatives = Json::array();
  for (const Json& tree : trees) outputs.push_back(expression.of(tree));
  const std::vector<Value> values = outputs;
  for (const Value& value : values) {
    texts.push_back(autodiff::print(value));
    Json row = Json::array();
    for (const Value& derivative : autodiff::gradient(value, inputs)) {
      row.push_back(autodiff::print(derivative));
      outputs.push_back(derivative);
    }
    derivatives.push_back(row);
  }
  const Kernel kernel = kernel_of(tape, outputs);
  return {{"handle", objects().kernels.add(kernel)},
          {"values", texts},
          {"derivatives", derivatives},
          {"fingerprint", ir::fingerprint(kernel.function())}};
}

}  // namespace

void add_residual_calls(Calls& calls) {
  calls["residual"] = residual;
  calls["residual_functions"] = [](const Json&) {
    Json all = Json::object();
    for (const auto& [name, operation] : operations()) all[name] = operation.arity;
    return all;
  };
}

}  // namespace lockstep::web
