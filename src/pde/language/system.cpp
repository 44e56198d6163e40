#include <algorithm>

#include "lockstep/error.hpp"
#include "pde/language/system_state.hpp"

namespace lockstep::pde {

using autodiff::max;
using autodiff::min;

System::System(int dimensions) : state_(std::make_shared<State>()) {
  if (dimensions < 1 || dimensions > 3)
    throw InputError(fmt::format("{} dimensions", dimensions), "pde system", "1, 2 or 3");
  state_->plan.dimensions = dimensions;
  state_->plan.graph = std::make_shared<autodiff::Tape>();
  for (const char* name : {"1/(2dt)", "1/dt", "1/dt^2"}) parameter(name);
}

int System::dimensions() const { return state_->plan.dimensions; }

int System::components(std::string_view field) const {
  for (const FieldInfo& f : state_->plan.fields)
    if (f.name == field) return f.components;
  throw InputError(fmt::format("unknown field {}", field), "pde system", "a field of the system");
}

Field System::field(std::string name, int components) {
  state_->check_open();
  for (const FieldInfo& f : state_->plan.fields)
    if (f.name == name)
      throw InputError(fmt::format("a second field {}", name), "pde system", "another name");
  if (components < 1 || components > 64)
    throw InputError(fmt::format("{} components", components), fmt::format("pde field {}", name), "1 to 64");
  state_->plan.fields.push_back({.name = std::move(name), .components = components});
  return {int(state_->plan.fields.size()) - 1, components};
}
Field System::field(std::string name, int components, const BoundaryConditions& boundary) {
  const Field f = field(std::move(name), components);
  state_->plan.fields.back().boundaries = {boundary};
  return f;
}
Field System::field(std::string name, const std::vector<BoundaryConditions>& boundary_of_component) {
  const Field f = field(std::move(name), int(boundary_of_component.size()));
  state_->plan.fields.back().boundaries = boundary_of_component;
  return f;
}
Field System::vector(std::string name) {
  const Field f = field(std::move(name), dimensions());
  state_->plan.fields.back().vector = true;
  return f;
}
Value System::parameter(std::string name) {
  state_->check_open();
  state_->check_unused(name);
  Access access;
  access.kind = Access::parameter;
  access.number = int(state_->plan.parameters.size());
  state_->plan.parameters.push_back(name);
  return state_->leaf(access, std::move(name), autodiff::LeafClass::parameter);
}

void System::profile(std::string name) {
  state_->check_open();
  state_->check_unused(name);
  state_->plan.profiles.push_back(std::move(name));
}

Value System::at(Field f, int component, int level) {
  return state_->access(f, component, level, Stencil::point, 0);
}
Value System::dt(Field f, int component) {
  return state_->time(kTimeFirst) * (at(f, component, 1) - at(f, component, -1));
}
Value System::dt_forward(Field f, int component) {
  return state_->time(kTimeForward) * (at(f, component, 1) - at(f, component, 0));
}
Value System::dtt(Field f, int component) {
  const Value now = at(f, component, 0);
  return state_->time(kTimeSecond) * ((at(f, component, 1) - now) - (now - at(f, component, -1)));
}
Value System::d(Field f, int axis, int component, int level) {
  return state_->access(f, component, level, Stencil::first, axis);
}
Value System::d2(Field f, int axis, int component, int level) {
  return state_->access(f, component, level, Stencil::second, axis);
}
Value System::forward(Field f, int axis, int component, int level) {
  return state_->access(f, component, level, Stencil::forward, axis);
}
Value System::backward(Field f, int axis, int component, int level) {
  return state_->access(f, component, level, Stencil::backward, axis);
}
Value System::upwind(const Value& velocity, Field f, int axis, int component) {
  const Value back = backward(f, axis, component), front = forward(f, axis, component);
  return max(velocity, 0) * back + min(velocity, 0) * front;
}

std::vector<Value> System::grad(Field f, int component) {
  std::vector<Value> g;
  for (int a = 0; a < dimensions(); ++a) g.push_back(d(f, a, component));
  return g;
}
Value System::div(Field f) {
  if (f.components != dimensions())
    throw InputError(fmt::format("divergence of {} components", f.components), "pde system",
                     fmt::format("{}", dimensions()));
  Value total = d(f, 0, 0);
  for (int a = 1; a < dimensions(); ++a) total = total + d(f, a, a);
  return total;
}
Value System::laplacian(Field f, int component) {
  Value total = d2(f, 0, component);
  for (int a = 1; a < dimensions(); ++a) total = total + d2(f, a, component);
  return total;
}
Value System::advect(Field velocity, Field f, int component, bool with_upwind) {
  if (velocity.components < dimensions())
    throw InputError(fmt::format("a velocity of {} components", velocity.components), "pde system",
                     fmt::format("{}", dimensions()));
  Value total;
  for (int a = 0; a < dimensions(); ++a) {
    const Value v = at(velocity, a);
    const Value term = with_upwind ? upwind(v, f, a, component) : v * d(f, a, component);
    total = total.valid() ? total + term : term;
  }
  return total;
}

void System::residual(std::string name, const Value& r, double weight) {
  state_->check_open();
  if (!r.valid() || &r.graph() != state_->plan.graph.get())
    throw InputError("a residual of another system", fmt::format("pde residual {}", name),
                     "values made by this system");
  if (!(weight >= 0) || weight > 1e300)
    throw InputError(fmt::format("weight {}", weight), fmt::format("pde residual {}", name),
                     "a finite number, 0 or more");
  Plan& plan = state_->plan;
  int term = 0;
  while (term < int(plan.terms.size()) && plan.terms[size_t(term)] != name) ++term;
  if (term == int(plan.terms.size())) plan.terms.push_back(name);
  plan.residuals.push_back(r);
  plan.weights.push_back(weight);
  plan.term_of.push_back(term);
}

namespace {

/// Leaves of a plan with those that stand for their tangents.
struct Along {
  std::vector<Value> leaves, tangents;
};

/// Adds derivatives by the parameters to those by the fields. All nodes are new, so kernels of fields stay unchanged.
void derive_by_parameters(System::State& state, std::span<const uint32_t> used, std::span<const Value> seeds,
                          Along& along) {
  Plan& plan = state.plan;
  std::vector<Value> parameters;
  for (uint32_t leaf : used) {
    Access access = plan.accesses[leaf];
    if (access.kind != Access::parameter || access.number < kTimeParameters) continue;
    const Value parameter = plan.graph->leaf_value(leaf);
    parameters.push_back(parameter);
    plan.by_parameter.push_back({access.number, parameter});
    along.leaves.push_back(parameter);
    access.kind = Access::parameter_tangent;
    along.tangents.push_back(
        state.leaf(access, "tangent of " + plan.graph->leaf_name(leaf), autodiff::LeafClass::parameter));
  }
  plan.tangents_of_all = autodiff::jvp(plan.residuals, along.leaves, along.tangents);
  if (parameters.empty()) return;
  const std::vector<Value> slopes = autodiff::vjp(plan.residuals, seeds, parameters);
  for (size_t k = 0; k < slopes.size(); ++k) plan.by_parameter[k].value = slopes[k];
}

/// Derivatives of all that: of cotangents as well as of what they stand for.
void derive_twice(System::State& state, std::span<const Value> seeds, Along along) {
  Plan& plan = state.plan;
  for (size_t k = 0; k < seeds.size(); ++k) {
    Access access;
    access.kind = Access::cotangent;
    access.number = int(seeds.size() + k);
    along.leaves.push_back(seeds[k]);
    along.tangents.push_back(
        state.leaf(access, fmt::format("tangent of cotangent{}", k), autodiff::LeafClass::variable));
  }
  const auto slope = [&](const Value& v) {
    return autodiff::jvp(std::span(&v, 1), along.leaves, along.tangents)[0];
  };
  for (const Target& t : plan.targets) {
    Target one{t.field_index, t.component, t.level, {}, {}, {}};
    if (t.point) one.point = slope(*t.point);
    for (const Term& term : t.terms)
      if (const Value g = slope(term.g); !g.is_constant(0)) one.terms.push_back({term.stencil, term.axis, g});
    plan.target_slopes.push_back(std::move(one));
  }
  for (const Plan::ByParameter& by : plan.by_parameter)
    plan.by_parameter_slopes.push_back({by.number, slope(by.value)});
}

}  // namespace

std::shared_ptr<const Plan> System::plan() const {
  std::lock_guard lock(state_->mutex);
  Plan& plan = state_->plan;
  const std::shared_ptr<const Plan> given(state_, &plan);
  if (state_->finished) return given;
  if (plan.residuals.empty()) throw InputError("no residual", "pde system", "one or more");
  const auto used = autodiff::leaves_of(plan.residuals);
  std::vector<uint32_t> leaves;
  for (uint32_t leaf : used)
    if (plan.accesses[leaf].kind == Access::field) leaves.push_back(leaf);
  if (leaves.empty()) throw InputError("residuals without a field", "pde system", "one field or more");

  std::vector<Value> inputs, seeds, tangents;
  for (uint32_t leaf : leaves) inputs.push_back(plan.graph->leaf_value(leaf));
  for (size_t k = 0; k < plan.residuals.size(); ++k) {
    Access access;
    access.kind = Access::cotangent;
    access.number = int(k);
    seeds.push_back(state_->leaf(access, fmt::format("cotangent{}", k), autodiff::LeafClass::variable));
  }
  for (uint32_t leaf : leaves) {
    Access access = plan.accesses[leaf];
    access.kind = Access::tangent;
    tangents.push_back(
        state_->leaf(access, "tangent of " + plan.graph->leaf_name(leaf), autodiff::LeafClass::variable));
  }
  const std::vector<Value> cotangents = autodiff::vjp(plan.residuals, seeds, inputs);
  plan.tangents = autodiff::jvp(plan.residuals, inputs, tangents);

  // One target per component and level, in the order of field, level, component.
  for (int f = 0; f < int(plan.fields.size()); ++f)
    for (int level = -1; level <= 1; ++level)
      for (int c = 0; c < plan.fields[size_t(f)].components; ++c) {
        Target target{f, c, level, {}, {}};
        for (int axis = 0; axis < 3; ++axis)
          for (Stencil stencil :
               {Stencil::point, Stencil::first, Stencil::second, Stencil::forward, Stencil::backward})
            for (size_t k = 0; k < leaves.size(); ++k) {
              const Access& a = plan.accesses[leaves[k]];
              if (a.field_index != f || a.level != level || a.component != c || a.stencil != stencil ||
                  a.axis != axis)
                continue;
              if (cotangents[k].is_constant(0)) continue;
              if (stencil == Stencil::point)
                target.point = cotangents[k];
              else
                target.terms.push_back({stencil, axis, cotangents[k]});
            }
        if (plan.fields[size_t(f)].used[level + 1]) plan.targets.push_back(std::move(target));
      }
  Along along{std::move(inputs), std::move(tangents)};
  derive_by_parameters(*state_, used, seeds, along);
  derive_twice(*state_, seeds, std::move(along));
  state_->finished = true;
  return given;
}

}  // namespace lockstep::pde
