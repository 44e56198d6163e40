// A system as JSON: what it declares, and the nodes of its residuals in their order.
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/reports/json_text.hpp"
#include "io/text/json_text.hpp"
#include "pde/language/system_state.hpp"

namespace lockstep::pde {

namespace {

using Json = nlohmann::ordered_json;

bool is_declared(const Access& a) { return a.kind == Access::field || a.kind == Access::parameter; }

Json field_json(const FieldInfo& field) {
  Json j{{"name", field.name}, {"components", field.components}, {"vector", field.vector}};
  for (const BoundaryConditions& b : field.boundaries) j["boundaries"].push_back(b.text());
  return j;
}

Json leaf_json(const Plan& plan, uint32_t leaf) {
  const Access& a = plan.accesses[leaf];
  if (a.kind == Access::parameter) return {{"parameter", plan.parameters[size_t(a.number)]}};
  return {{"field", a.field_index},
          {"component", a.component},
          {"level", a.level},
          {"stencil", int(a.stencil)},
          {"axis", a.axis}};
}

}  // namespace

std::string System::text() const {
  std::lock_guard lock(state_->mutex);
  const Plan& plan = state_->plan;
  Json j{{"dimensions", plan.dimensions}, {"profiles", plan.profiles}};
  for (const FieldInfo& field : plan.fields) j["fields"].push_back(field_json(field));
  // Leaves that a plan adds for its own derivatives come after those that were declared.
  for (uint32_t leaf = kTimeParameters; leaf < plan.accesses.size(); ++leaf)
    if (is_declared(plan.accesses[leaf])) j["leaves"].push_back(leaf_json(plan, leaf));
  for (uint32_t id : autodiff::reachable(plan.residuals)) {
    const autodiff::Node& node = plan.graph->node(id);
    j["nodes"].push_back({id, int(node.op), node.imm, node.args});
  }
  for (size_t k = 0; k < plan.residuals.size(); ++k)
    j["residuals"].push_back({plan.terms[size_t(plan.term_of[k])], plan.residuals[k].id(), plan.weights[k]});
  return json_text(j);
}

namespace {

constexpr const char* kWhere = "text of a system";

/// Operands of an operation; -1: any number, at least one.
int operands_of(autodiff::Op op) {
  switch (op) {
#define LOCKSTEP_NODE(name, word, kind, arity, ...) \
  case autodiff::Op::name: return arity;
#define LOCKSTEP_MATH(name, arity, ...) \
  case autodiff::Op::name: return arity;
#include "lockstep/ir/ops.def"
    case autodiff::Op::constant:
    case autodiff::Op::leaf: return 0;
    case autodiff::Op::powi:
    case autodiff::Op::sign:
    case autodiff::Op::stop: return 1;
    case autodiff::Op::select: return 3;
    default: return -1;
  }
}

std::vector<io::JsonValue> items_of(const io::JsonValue& j, const std::string& name) {
  const auto found = j.find(name);
  return found ? found->items() : std::vector<io::JsonValue>();
}

int whole(const io::JsonValue& j, const std::string& name, int low, int high) {
  return int(j.at(name).integer(low, high));
}

void declare_field(System& system, const io::JsonValue& field) {
  const std::string& name = field.at("name").text();
  const int components = whole(field, "components", 1, 64);
  std::vector<BoundaryConditions> own;
  for (const io::JsonValue& b : items_of(field, "boundaries"))
    own.push_back(BoundaryConditions::parse(b.text()));
  if (field.at("vector").boolean())
    system.vector(name);
  else if (own.empty())
    system.field(name, components);
  else if (int(own.size()) == components)
    system.field(name, own);
  else
    system.field(name, components, own.front());
}

using Nodes = std::unordered_map<uint64_t, Value>;

const Value& node_of(const Nodes& nodes, const io::JsonValue& id) {
  const auto found = nodes.find(id.bits());
  if (found == nodes.end()) id.fail("names a node that is not before it", "the number of one");
  return found->second;
}

void make_node(autodiff::Tape& graph, const io::JsonValue& row, Nodes& nodes) {
  const std::vector<io::JsonValue> parts = row.items(4);
  const auto op = autodiff::Op(parts[1].integer(0, int64_t(autodiff::Op::count_) - 1));
  // Integers of powers are stored as their 64 bits, negative ones as numbers from 2^63.
  const uint64_t imm = parts[2].bits();
  std::vector<Value> operands;
  for (const io::JsonValue& a : parts[3].items()) operands.push_back(node_of(nodes, a));
  const int count = operands_of(op);
  if (count < 0 ? operands.empty() : int(operands.size()) != count)
    parts[3].fail(fmt::format("has {} operands", operands.size()), "as many as the operation takes");
  if (op == autodiff::Op::leaf && imm >= graph.leaf_count())
    parts[2].fail(fmt::format("is leaf {}", imm), "one that is declared");
  nodes[parts[0].bits()] = op == autodiff::Op::constant ? graph.constant(std::bit_cast<double>(imm))
                           : op == autodiff::Op::leaf   ? graph.leaf_value(uint32_t(imm))
                                                        : graph.make(op, operands, int64_t(imm));
}

}  // namespace

System System::of_text(std::string_view text) {
  const io::JsonValue j = io::JsonValue::parse(text, kWhere);
  System system(whole(j, "dimensions", 1, 3));
  for (const io::JsonValue& field : items_of(j, "fields")) declare_field(system, field);
  for (const io::JsonValue& profile : j.at("profiles").items()) system.profile(profile.text());
  for (const io::JsonValue& leaf : items_of(j, "leaves"))
    if (const auto parameter = leaf.find("parameter"))
      system.parameter(parameter->text());
    else
      system.state_->access({whole(leaf, "field", 0, INT32_MAX), 0}, whole(leaf, "component", 0, 64),
                            whole(leaf, "level", -64, 64),
                            Stencil(whole(leaf, "stencil", 0, int(Stencil::backward))),
                            whole(leaf, "axis", 0, 3));
  Nodes nodes;
  for (const io::JsonValue& row : items_of(j, "nodes")) make_node(*system.state_->plan.graph, row, nodes);
  for (const io::JsonValue& r : items_of(j, "residuals")) {
    const std::vector<io::JsonValue> parts = r.items(3);
    system.residual(parts[0].text(), node_of(nodes, parts[1]), parts[2].number());
  }
  return system;
}

}  // namespace lockstep::pde
