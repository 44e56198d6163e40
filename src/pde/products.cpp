// Residuals, and products with their Jacobian, its transpose and the loss' Hessian.
#include "lockstep/array.hpp"
#include "pde/kernels/boundary_gradient.hpp"
#include "pde/kernels/two_kernels.hpp"

namespace lockstep::pde {

namespace {

/// Fields, mask and numbers of a launch over whole grids of all members.
void set_whole(Arguments& a, const Discretisation& d, const Checked& checked) {
  checked.set_fields(a);
  set_numbers(a, d, checked.parameters());
  set_slab(a, checked.cells(2), Slab::whole(checked.cells(2)));
}
Shape whole_extent(const Shape& residuals) { return {residuals[1], residuals[2], residuals[3]}; }
KernelForm whole_form(const Checked& checked) {
  KernelForm form = checked.form();
  form.mask = false;
  form.whole = true;
  return form;
}

}  // namespace

Buffer Loss::residuals(const Device& device, const Inputs& inputs) const {
  const auto d = state_->d;
  const Checked checked(*d, device, inputs);
  const KernelForm form = whole_form(checked);
  const Kernel kernel = state_->kernels.get(form_key("residual", form),
                                            [&] { return residual_kernel(d, form, ResidualKind::plain); });
  const Buffer result = device.allocate(form.scratch(), residual_shape(*d, checked));
  Arguments a;
  set_whole(a, *d, checked);
  a.set("result", result);
  device.launch_with(kernel, whole_extent(result.shape()), a.bind_known(kernel), {});
  return result;
}

std::map<std::string, std::array<Buffer, 3>> Loss::vjp(const Device& device, const Inputs& inputs,
                                                       const Buffer& cotangents,
                                                       const LossOptions& options) const {
  const auto d = state_->d;
  const Checked checked(*d, device, inputs);
  const KernelForm form = whole_form(checked);
  const Shape shape = residual_shape(*d, checked);
  check_cotangents(*d, checked, cotangents);
  if (form.rows && !options.wanted.empty())
    throw InputError("gradients of some fields", "pde options", "of all fields where the inputs are rows");
  const std::vector<FieldLevel> outputs = wanted_outputs(*d->plan, options);
  if (outputs.empty()) return {};
  const Kernel kernel = state_->kernels.get(form_key("adjoint", form) + outputs_key(outputs),
                                            [&] { return adjoint_kernel(d, form, outputs); });
  std::map<std::string, std::array<Buffer, 3>> result;
  Arguments a;
  set_whole(a, *d, checked);
  a.set("cotangents", cotangents);
  for (const FieldLevel& o : checked.arrays(outputs)) {
    const std::string name = form.rows ? "" : d->plan->fields[size_t(o.field_index)].name;
    Buffer& g = result[name][size_t(o.level + 1)] = like(device, checked.given(o));
    if (form.rows) device.clear(g);  // columns that nothing writes
    a.set(array_name(kGradient, *d->plan, o), checked.as_volume(g, o.field_index));
  }
  device.launch_with(kernel, whole_extent(shape), a.bind_known(kernel), {});
  return result;
}

Arguments tangent_arguments(const Device& device, Checked& checked, const Plan& plan,
                            const FieldBuffers& tangents, const Loss::Numbers& along) {
  const KernelForm& form = checked.form();
  for (const auto& [name, levels] : tangents) {
    if (form.rows != name.empty())
      throw InputError(fmt::format("tangents of field '{}'", name), "pde jvp",
                       form.rows ? "rows, under the empty name" : "names of fields");
    if (!form.rows) checked.field_number(name);
  }
  Arguments a;
  for (const FieldLevel& f : checked.arrays(fields_of(plan, plan.tangents_of_all, Access::tangent))) {
    const auto found = tangents.find(form.rows ? "" : plan.fields[size_t(f.field_index)].name);
    Buffer t = found == tangents.end() ? Buffer() : found->second[size_t(f.level + 1)];
    if (!t) {
      device.clear(t = like(device, checked.given(f)));
    } else if (form.rows) {
      checked.check_rows(t, fmt::format("tangent rows at level {:+}", f.level));
    } else {
      checked.check(t, f.field_index, fmt::format("tangent of {} at level {:+}", found->first, f.level));
    }
    a.set(array_name(kTangent, plan, f), checked.as_volume(t, f.field_index));
  }
  std::vector<double> parameters(checked.parameters().size(), 0.0);
  for (const auto& [name, value] : along.parameters) parameters[checked.parameter_number(name)] = value;
  for (size_t k = 0; k < parameters.size(); ++k) a.set(fmt::format("parameter_tangent{}", k), parameters[k]);
  std::vector<Buffer> profiles;
  for (const Buffer& given : checked.profiles()) device.clear(profiles.emplace_back(like(device, given)));
  for (const auto& [name, values] : along.profiles) {
    Buffer& to = profiles[checked.profile_number(name)];
    if (int64_t(values.size()) != to.elements())
      throw InputError(fmt::format("{} tangents of profile {}", values.size(), name), "pde jvp",
                       fmt::format("{}", to.elements()));
    to = device.upload(
        Array::of(std::vector<double>(values), {to.shape()[0], to.shape()[1]}).to(to.storage()));
  }
  for (size_t k = 0; k < profiles.size(); ++k) a.set(fmt::format("profile_tangent{}", k), profiles[k]);
  return a;
}

Buffer Loss::jvp(const Device& device, const Inputs& inputs, const FieldBuffers& tangents,
                 const Numbers& along) const {
  const auto d = state_->d;
  Checked checked(*d, device, inputs);
  const KernelForm form = whole_form(checked);
  const bool all = !along.parameters.empty() || !along.profiles.empty();
  const ResidualKind kind = all ? ResidualKind::tangent_of_all : ResidualKind::tangent;
  const Kernel kernel = state_->kernels.get(form_key(all ? "tangent of all" : "tangent", form),
                                            [&] { return residual_kernel(d, form, kind); });
  const Buffer result = device.allocate(form.scratch(), residual_shape(*d, checked));
  Arguments a = tangent_arguments(device, checked, *d->plan, tangents, along);
  set_whole(a, *d, checked);
  a.set("result", result);
  device.launch_with(kernel, whole_extent(result.shape()), a.bind_known(kernel), {});
  return result;
}

namespace {

/// The discretisation whose adjoint is the derivative of this one's.
std::shared_ptr<const Discretisation> second_order(const Discretisation& d) {
  auto plan = std::make_shared<Plan>(*d.plan);
  plan->targets = std::move(plan->target_slopes);
  plan->by_parameter = std::move(plan->by_parameter_slopes);
  plan->second_order = true;
  return std::make_shared<const Discretisation>(std::move(plan), d.mesh);
}

}  // namespace

Loss::Product Loss::hessian_product(const Device& device, const Inputs& inputs, const FieldBuffers& tangents,
                                    const Numbers& along) const {
  const auto d = state_->d;
  Checked checked(*d, device, inputs);
  KernelForm form = whole_form(checked);
  if (form.rows || form.batch)
    throw UnsupportedError("rows or several members", "pde hessian_product", "fields of one grid");
  const Plan& plan = *d->plan;
  const int64_t residuals = int64_t(plan.residuals.size()), nz = d->mesh.cells[2];
  const Shape volume{nz, d->mesh.cells[1], d->mesh.cells[0]};
  const Buffer cotangents = device.allocate(form.scratch(), {2 * residuals, volume[0], volume[1], volume[2]});
  std::vector<double> seeds;
  for (double w : plan.weights) seeds.push_back(2 * w / double(d->mesh.count()) * inputs.seed);
  const Arguments along_all = tangent_arguments(device, checked, plan, tangents, along);
  form.mask = checked.form().mask;
  for (const ResidualKind kind : {ResidualKind::cotangent, ResidualKind::cotangent_tangent}) {
    const bool slope = kind == ResidualKind::cotangent_tangent;
    const Kernel kernel = state_->kernels.get(form_key(slope ? "cotangent tangent" : "cotangent", form),
                                              [&] { return residual_kernel(d, form, kind); });
    Arguments a = along_all;
    checked.set_fields(a);
    set_numbers(a, *d, checked.parameters(), seeds);
    set_slab(a, nz, Slab::whole(nz));
    a.set("result", cotangents.rows(slope ? residuals : 0, residuals));
    device.launch_with(kernel, volume, a.bind_known(kernel), {});
  }
  form.mask = false;
  const std::shared_ptr<Loss::State> second = state_->of_second_order.get({}, [&] {
    const auto state = std::make_shared<Loss::State>();
    state->d = second_order(*d);
    return state;
  });
  std::vector<FieldLevel> outputs;
  for (int f = 0; f < int(plan.fields.size()); ++f)
    for (int level = -1; level <= 1; ++level)
      if (plan.fields[size_t(f)].used[level + 1]) outputs.push_back({f, level});
  const Kernel adjoint = second->kernels.get(form_key("adjoint", form) + outputs_key(outputs),
                                             [&] { return adjoint_kernel(second->d, form, outputs); });
  Product product;
  Arguments a = along_all;
  set_whole(a, *second->d, checked);
  a.set("cotangents", cotangents);
  for (const FieldLevel& o : outputs) {
    Buffer& g = product.fields[plan.fields[size_t(o.field_index)].name][size_t(o.level + 1)] =
        like(device, checked.given(o));
    a.set(array_name(kGradient, plan, o), checked.as_volume(g, o.field_index));
  }
  device.launch_with(adjoint, volume, a.bind_known(adjoint), {});
  product.numbers = pde::number_gradients(*second, device, checked, cotangents, along_all);
  return product;
}

}  // namespace lockstep::pde
