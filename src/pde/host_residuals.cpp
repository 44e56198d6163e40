#include "pde/host_residuals.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autodiff/host_values.hpp"
#include "lockstep/error.hpp"
#include "pde/reference_ghosts.hpp"

namespace lockstep::pde {

namespace {

double factorial(int n) { return std::tgamma(n + 1.0); }

/// Weight of the cells k and -k of the central differences of order 2 p, in closed form.
double central_weight(int p, int k, bool second) {
  const double sign = k % 2 == 0 ? -1 : 1,
               common = sign * factorial(p) * factorial(p) / (factorial(p - k) * factorial(p + k));
  return second ? 2 * common / (double(k) * k) : common / k;
}

}  // namespace

HostResiduals::HostResiduals(std::shared_ptr<const Plan> plan, const Mesh& mesh)
    : plan_(std::move(plan)), mesh_(mesh), order_(autodiff::reachable(plan_->residuals)) {}

HostResiduals::Number HostResiduals::side_value(const Source& s, const Side& side, int axis,
                                                const Cell& cell) const {
  if (side.parameter.empty()) return side.value;
  const auto number = [&](const std::vector<std::string>& names) {
    return size_t(std::find(names.begin(), names.end(), side.parameter) - names.begin());
  };
  if (const size_t k = number(plan_->parameters); k < plan_->parameters.size()) return s.data.parameters[k];
  const size_t slow = axis == 2 ? 1 : 2, fast = axis == 0 ? 1 : 0;
  return s.data.profiles[number(plan_->profiles)][size_t(cell[slow] * mesh_.cells[fast] + cell[fast])];
}

HostResiduals::Number HostResiduals::at(const Source& s, Cell cell) const {
  for (int axis = 0; axis < 3; ++axis) {
    int64_t& i = cell[size_t(axis)];
    const int64_t n = mesh_.cells[size_t(axis)], own = i;
    if (own >= 0 && own < n) continue;
    const bool high = own >= n;
    const Side& side = s.boundary.sides[size_t(axis)][high];
    const int64_t beyond = high ? own - n + 1 : -own;  // 1: the first cell beyond
    const auto inward = [&](int64_t k) {               // 0: the last cell inside
      i = high ? n - 1 - k : k;
      return at(s, cell);
    };
    if (side.rule == Rule::periodic) {
      i = own + (high ? -n : n);
      return at(s, cell);
    }
    const bool odd = s.field.vector && (side.rule == Rule::no_slip || s.component == axis),
               slips = side.rule == Rule::free_slip || side.rule == Rule::no_slip;
    const reference::Ghost ghost = reference::ghost(!slips ? side.rule
                                                    : odd  ? Rule::reflect_odd
                                                           : Rule::reflect_even,
                                                    beyond);
    Number sum = ghost.value == 0 ? 0.0 : ghost.value * side_value(s, side, axis, cell);
    for (const auto& [position, weight] : ghost.cells) sum += weight * inward(position);
    return sum;
  }
  const auto [x, y, z] = cell;
  const auto& n = mesh_.cells;
  return s.values[size_t(((s.component * n[2] + z) * n[1] + y) * n[0] + x)];
}

HostResiduals::Number HostResiduals::leaf(const HostData& data, const Access& a, const Cell& cell) const {
  if (a.kind == Access::parameter) return data.parameters[size_t(a.number)];
  const FieldInfo& field = plan_->fields[size_t(a.field_index)];
  const std::vector<BoundaryConditions>& own = field.boundaries;
  const BoundaryConditions& boundary =
      own.empty() ? mesh_.boundary : own[own.size() == 1 ? 0 : size_t(a.component)];
  const Source s{data, data.fields.at({a.field_index, a.level}), field, a.component, boundary};
  const auto near = [&](int64_t k) {
    Cell c = cell;
    c[size_t(a.axis)] += k;
    return at(s, c);
  };
  const double h = mesh_.spacing[size_t(a.axis)];
  Number sum = 0;
  switch (a.stencil) {
    case Stencil::point: return at(s, cell);
    case Stencil::forward: return (near(1) - near(0)) / h;
    case Stencil::backward: return (near(0) - near(-1)) / h;
    case Stencil::first:
      for (int k = 1; k <= mesh_.order / 2; ++k)
        sum += central_weight(mesh_.order / 2, k, false) * (near(k) - near(-k));
      return sum / h;
    case Stencil::second:
      for (int k = 1; k <= mesh_.order / 2; ++k)
        sum += central_weight(mesh_.order / 2, k, true) * ((near(k) - near(0)) + (near(-k) - near(0)));
      return sum / (h * h);
  }
  throw InternalError("an unknown difference", "pde check", "a Stencil");
}

HostData::Numbers HostResiduals::operator()(const HostData& data) const {
  const autodiff::Tape& graph = *plan_->graph;
  const auto& n = mesh_.cells;
  const size_t cells = size_t(mesh_.count());
  HostData::Numbers result(plan_->residuals.size() * cells), values(graph.size()), operands;
  for (size_t i = 0; i < cells; ++i) {
    const int64_t at = int64_t(i);
    const Cell cell{at % n[0], at / n[0] % n[1], at / (n[0] * n[1])};
    for (uint32_t id : order_) {
      const autodiff::Node& node = graph.node(id);
      if (node.op == autodiff::Op::constant) {
        values[id] = std::bit_cast<double>(node.imm);
      } else if (node.op == autodiff::Op::leaf) {
        values[id] = leaf(data, plan_->accesses[node.imm], cell);
      } else {
        operands.clear();
        for (uint32_t a : node.args) operands.push_back(values[a]);
        values[id] = autodiff::host::apply<Number>(node.op, node.imm, operands);
      }
    }
    for (size_t k = 0; k < plan_->residuals.size(); ++k)
      result[k * cells + i] = values[plan_->residuals[k].id()];
  }
  return result;
}

}  // namespace lockstep::pde
