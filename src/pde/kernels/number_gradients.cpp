// Derivatives by parameters and profiles: what residuals that mention them give, and what sides that name them give.
#include <algorithm>

#include "lockstep/primitives.hpp"
#include "pde/kernels/boundary_gradient.hpp"

namespace lockstep::pde {

Loss::Numbers number_gradients(Loss::State& state, const Device& device, const Checked& checked,
                               const Buffer& cotangents, const Arguments& tangents) {
  const auto d = state.d;
  const Plan& plan = *d->plan;
  Loss::Numbers found;
  for (size_t k = kTimeParameters; k < plan.parameters.size(); ++k) found.parameters[plan.parameters[k]] = 0;
  for (size_t k = 0; k < plan.profiles.size(); ++k)
    found.profiles[plan.profiles[k]].assign(size_t(checked.profiles()[k].elements()), 0.0);
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                count = int64_t(plan.by_parameter.size());
  if (count > 0) {
    KernelForm form = checked.form();
    form.whole = true;
    form.mask = false;
    const Kernel kernel =
        state.kernels.get(form_key("by parameter", form), [&] { return parameter_kernel(d, form); });
    const Buffer cells = device.allocate(form.scratch(), {count, nz, ny, nx}),
                 sums = device.allocate(form.scratch(), {count});
    Arguments a = tangents;
    checked.set_fields(a);
    set_numbers(a, *d, checked.parameters());
    set_slab(a, nz, Slab::whole(nz));
    a.set("cotangents", cotangents).set("result", cells);
    device.launch_with(kernel, {nz, ny, nx}, a.bind_known(kernel), {});
    for (int64_t k = 0; k < count; ++k)
      primitives::reduce(device, primitives::Reduce::sum, cells.rows(k, 1).reshape({nz * ny * nx}),
                         sums.rows(k, 1));
    const std::vector<double> values = numbers_of(device, sums);
    for (size_t k = 0; k < values.size(); ++k)
      found.parameters[plan.parameters[size_t(plan.by_parameter[k].number)]] += values[k];
  }
  for (const Loss::BoundaryGradient& side : side_gradients(state, device, checked, cotangents, tangents)) {
    if (const auto profile = found.profiles.find(side.parameter); profile != found.profiles.end())
      for (size_t i = 0; i < side.cells.size(); ++i) profile->second[i] += side.cells[i];
    else if (!side.parameter.empty())
      found.parameters[side.parameter] += side.value;
  }
  return found;
}

namespace {

/// Adds what `work` gives for each grid of a batch.
template <class F>
Loss::Numbers sum_over_members(const Inputs& inputs, F work) {
  Loss::Numbers all;
  for (int64_t m = 0; m < inputs.members; ++m) {
    const Loss::Numbers one = work(member_of(inputs, m), m);
    for (const auto& [name, value] : one.parameters) all.parameters[name] += value;
    for (const auto& [name, values] : one.profiles) {
      std::vector<double>& sum = all.profiles[name];
      sum.resize(values.size(), 0.0);
      for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
  }
  return all;
}

}  // namespace

Loss::Numbers Loss::number_gradients(const Device& device, const Inputs& inputs) const {
  const Checked whole(*state_->d, device, inputs);
  return sum_over_members(inputs, [&](const Inputs& one, int64_t) {
    const Checked checked(*state_->d, device, one);
    return pde::number_gradients(*state_, device, checked,
                                 loss_cotangents(*state_, device, checked, one.seed));
  });
}

Loss::Numbers Loss::number_vjp(const Device& device, const Inputs& inputs, const Buffer& cotangents) const {
  const Checked whole(*state_->d, device, inputs);
  const auto& n = state_->d->mesh.cells;
  const int64_t residuals = int64_t(state_->d->plan->residuals.size());
  check_cotangents(*state_->d, whole, cotangents);
  return sum_over_members(inputs, [&](const Inputs& one, int64_t m) {
    const Checked checked(*state_->d, device, one);
    return pde::number_gradients(*state_, device, checked,
                                 cotangents.window({0, m * n[2], 0, 0}, {residuals, n[2], n[1], n[0]}));
  });
}

}  // namespace lockstep::pde
