// Expressions of the Value graph, for residuals of pde and solve.
#include <map>

#include "bind.hpp"

namespace lockstep::python {
namespace {

using autodiff::Op;
using autodiff::Value;

const std::map<std::string, Op>& ops() {
  static const std::map<std::string, Op> all = [] {
    std::map<std::string, Op> names;
    for (int k = 0; k < int(Op::count_); ++k) names[std::string(autodiff::name(Op(k)))] = Op(k);
    return names;
  }();
  return all;
}

Value make(const std::string& name, const std::vector<Value>& operands, int64_t imm) {
  const auto found = ops().find(name);
  if (found == ops().end() || operands.empty())
    throw InputError("operation " + name, "lockstep", "an operation of Value graphs");
  return operands.front().graph().make(found->second, operands, imm);
}

}  // namespace

void bind_values(nb::module_& module) {
  nb::class_<Value>(module, "Value")
      .def("__repr__", [](const Value& v) { return autodiff::print(v); })
      .def("same", [](const Value& a, const Value& b) { return autodiff::same_node(a, b); })
      .def("constant", [](const Value& v, double number) { return v.graph().constant(number); });
  module.def("make_value", &make);
  module.def("value_ops", [] {
    std::vector<std::string> names;
    for (const auto& [name, op] : ops()) names.push_back(name);
    return names;
  });
  module.def("powi_value", [](const Value& v, int n) { return autodiff::powi(v, n); });
  module.def("safe_value", [](const std::string& name, const std::vector<Value>& v, double floor) {
    if (name == "safe_sqrt") return autodiff::safe_sqrt(v.at(0), floor);
    if (name == "safe_rsqrt") return autodiff::safe_rsqrt(v.at(0), floor);
    if (name == "safe_acos") return autodiff::safe_acos(v.at(0));
    if (name == "safe_asin") return autodiff::safe_asin(v.at(0));
    if (name == "safe_atan2") return autodiff::safe_atan2(v.at(0), v.at(1));
    return autodiff::safe_div(v.at(0), v.at(1), floor);
  });
}

}  // namespace lockstep::python
