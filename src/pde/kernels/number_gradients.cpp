// Derivatives by parameters and profiles: what residuals that mention them give, and what sides that name them give.
#include <numeric>

#include "pde/kernels/boundary_gradient.hpp"

namespace lockstep::pde {

namespace {

/// Rows of the cells whose sums are formed on the device: planes, or rows of a grid of one plane.
int64_t rows_of_sums(const Mesh& mesh) { return mesh.cells[mesh.cells[2] > 1 ? 2 : 1]; }

}  // namespace

std::vector<double> parameter_rows(Loss::State& state, const Device& device, const Checked& checked,
                                   const Buffer& cotangents, const Arguments& tangents) {
  const auto d = state.d;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                count = int64_t(d->plan->by_parameter.size()), rows = rows_of_sums(d->mesh);
  if (count == 0) return {};
  KernelForm form = checked.form();
  form.whole = true;
  form.mask = false;
  const Kernel kernel =
      state.kernels.get(form_key("by parameter", form), [&] { return parameter_kernel(d, form); });
  const Type sum = form.scratch() == Storage::f64 ? Type::f64 : Type::f32;
  const Kernel total =
      state.kernels.get(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  const Buffer cells = device.allocate(form.scratch(), {count, nz, ny, nx}),
               sums = device.allocate(form.scratch(), {count * rows});
  Arguments a = tangents;
  checked.set_fields(a);
  set_numbers(a, *d, checked.parameters());
  set_slab(a, nz, Slab::whole(nz));
  a.set("cotangents", cotangents).set("result", cells);
  device.launch_with(kernel, {nz, ny, nx}, a.bind_known(kernel), {});
  Arguments of_rows;
  of_rows.set("partial", cells.reshape({count * rows, nz * ny * nx / rows})).set("totals", sums);
  device.launch_with(total, {count * rows}, of_rows.bind_known(total), {});
  return numbers_of(device, sums);
}

Loss::Numbers sum_numbers(const Plan& plan, const std::vector<double>& rows,
                          const std::vector<Loss::BoundaryGradient>& sides,
                          const std::vector<int64_t>& profile_sizes) {
  Loss::Numbers found;
  for (size_t k = kTimeParameters; k < plan.parameters.size(); ++k) found.parameters[plan.parameters[k]] = 0;
  for (size_t k = 0; k < plan.profiles.size(); ++k)
    found.profiles[plan.profiles[k]].assign(size_t(profile_sizes[k]), 0.0);
  const size_t count = plan.by_parameter.size();
  for (size_t k = 0; k < count; ++k) {
    const size_t length = rows.size() / count;
    const auto first = rows.begin() + int64_t(k * length);
    found.parameters[plan.parameters[size_t(plan.by_parameter[k].number)]] +=
        std::accumulate(first, first + int64_t(length), 0.0);
  }
  for (const Loss::BoundaryGradient& side : sides) {
    if (const auto profile = found.profiles.find(side.parameter); profile != found.profiles.end())
      for (size_t i = 0; i < side.cells.size(); ++i) profile->second[i] += side.cells[i];
    else if (!side.parameter.empty())
      found.parameters[side.parameter] += side.value;
  }
  return found;
}

Loss::Numbers number_gradients(Loss::State& state, const Device& device, const Checked& checked,
                               const Buffer& cotangents, const Arguments& tangents) {
  std::vector<int64_t> sizes;
  for (const Buffer& profile : checked.profiles()) sizes.push_back(profile.elements());
  return sum_numbers(*state.d->plan, parameter_rows(state, device, checked, cotangents, tangents),
                     side_gradients(state, device, checked, cotangents, tangents), sizes);
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
