// A bound loss on other arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

namespace {

/// Puts `to` in the places of the parameter `name` of all launches.
void replace(std::vector<Launch>& launches, const std::string& name, const Buffer& to) {
  for (Launch& launch : launches) {
    size_t number = 0;  // buffers are listed among the arguments in the kernel's order
    for (Argument& argument : launch.arguments) {
      const Buffer* const bound = std::get_if<Buffer>(&argument);
      if (!bound || launch.kernel.function().buffers[number++].name != name) continue;
      if (bound->storage() != to.storage() || bound->elements() != to.elements() || !to.contiguous())
        throw InputError(
            fmt::format("{} of {} {}", name, lockstep::name(to.storage()), to_string(to.shape())),
            "BoundLoss::rebind",
            fmt::format("{} elements of {}", bound->elements(), lockstep::name(bound->storage())));
      if (aligned(*bound, 16) && !aligned(to, 16))
        throw InputError(fmt::format("{} at no multiple of 16 bytes", name), "BoundLoss::rebind",
                         "the alignment of the arrays bound first");
      argument = to.reshape(bound->shape());
    }
  }
}

/// The same for a number.
void replace(std::vector<Launch>& launches, const std::string& name, double to) {
  for (Launch& launch : launches) {
    size_t number = 0;  // numbers are listed among the arguments in the kernel's order
    for (Argument& argument : launch.arguments)
      if (!std::holds_alternative<Buffer>(argument) &&
          launch.kernel.function().scalars[number++].name == name)
        argument = to;
  }
}

}  // namespace

BoundLoss BoundLoss::rebind(const FieldBuffers& fields, const FieldBuffers& gradients, const Buffer& mask,
                            const std::map<std::string, double>& parameters) const {
  if (state_->fixed)
    throw UnsupportedError("other arrays for a trajectory or several members", "BoundLoss::rebind",
                           "a loss of three levels; bind again");
  auto state = std::make_shared<State>(*state_);
  const Plan& plan = *state->d->plan;
  const auto number_of = [&](const std::string& name) {
    for (size_t f = 0; f < plan.fields.size(); ++f)
      if (plan.fields[f].name == name) return int(f);
    if (name.empty() && state->rows) return -1;
    throw InputError(fmt::format("unknown field {}", name), "BoundLoss::rebind", "a field of the system");
  };
  const auto replace_all = [&](const std::string& name, const Buffer& to) {
    replace(state->launches, name, to);
    replace(state->totals_launches, name, to);
  };
  for (const auto& [name, levels] : fields)
    for (int level = -1; level <= 1; ++level)
      if (const Buffer& b = levels[size_t(level + 1)])
        replace_all(array_name(kField, plan, {number_of(name), level}), b);
  for (const auto& [name, levels] : gradients)
    for (int level = -1; level <= 1; ++level) {
      const Buffer& b = levels[size_t(level + 1)];
      if (!b) continue;
      const int field = number_of(name);
      replace_all(array_name(kGradient, plan, {field, level}), b);
      const std::vector<int> row_levels = FieldArrays::levels(state->outputs);
      for (size_t k = 0; k < state->gradients.size(); ++k)
        if (state->rows ? row_levels[k] == level : state->outputs[k] == FieldLevel{field, level})
          state->gradients[k] = b;
    }
  if (mask) replace_all("mask", mask);
  for (const auto& [name, value] : parameters) {
    const auto known = std::find(plan.parameters.begin() + kTimeParameters, plan.parameters.end(), name);
    if (known == plan.parameters.end() || !std::isfinite(value))
      throw InputError(fmt::format("parameter {} of {}", name, value), "BoundLoss::rebind",
                       "a finite number for a parameter of the system");
    const std::string number = fmt::format("parameter{}", known - plan.parameters.begin());
    replace(state->launches, number, value);
    replace(state->totals_launches, number, value);
  }
  return BoundLoss(std::move(state));
}

}  // namespace lockstep::pde
