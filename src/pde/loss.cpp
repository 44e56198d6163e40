// Loss: checks of the data, the choice of the path, launches, results.
#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "core/platform/system.hpp"
#include "lockstep/error.hpp"
#include "pde/fused/fused.hpp"
#include "pde/kernels/two_kernels.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

namespace {

std::vector<FieldLevel> wanted_outputs(const Plan& plan, const LossOptions& options) {
  for (const std::string& name : options.wanted) {
    bool known = false;
    for (const FieldInfo& f : plan.fields) known |= f.name == name;
    if (!known)
      throw InputError(fmt::format("gradient of unknown field {}", name), "pde options",
                       "a field of the system");
  }
  std::vector<FieldLevel> outputs;
  for (int f = 0; f < int(plan.fields.size()); ++f)
    for (int level = -1; level <= 1; ++level) {
      if (!plan.fields[size_t(f)].used[level + 1] || options.gradients == Gradients::none) continue;
      if (level != 0 && options.gradients == Gradients::t1) continue;
      if (level == -1 && options.gradients == Gradients::t1t2) continue;
      const std::string& name = plan.fields[size_t(f)].name;
      if (!options.wanted.empty() &&
          std::find(options.wanted.begin(), options.wanted.end(), name) == options.wanted.end())
        continue;
      outputs.push_back({f, level});
    }
  return outputs;
}

}  // namespace

int64_t choose_slab(const Discretisation& d, const Device& device, const KernelForm& form, int64_t asked) {
  const int64_t nz = d.mesh.cells[2];
  if (asked > 0) return std::min(asked, nz);
  if (device.info().kind != DeviceKind::cpu && device.info().kind != DeviceKind::interp) return nz;
  constexpr int64_t kCacheBytes = 6 << 20;
  // Larger slabs where the last cache holds them: fewer launches, which wait for each other.
  const int64_t cache = std::max(kCacheBytes, platform::last_level_cache_bytes() / 8);
  int64_t arrays = int64_t(d.plan->residuals.size());
  for (const FieldInfo& f : d.plan->fields) arrays += f.components * (f.used[0] + f.used[1] + f.used[2]);
  const int64_t plane = d.mesh.cells[0] * d.mesh.cells[1] * size_of(form.storage) * arrays;
  const int64_t slab = std::max<int64_t>(cache / std::max<int64_t>(plane, 1), 2 * d.reach[2] + 1);
  // A slab that is nearly the grid gains nothing.
  return slab * 3 >= nz * 2 ? nz : slab;
}

bool past_caches(const Device& device, double bytes) {
  const int64_t of_host = device.info().kind == DeviceKind::cpu ? platform::last_level_cache_bytes() : 0;
  return bytes > double(std::max<int64_t>(of_host, 32 << 20));
}

Loss::Loss(const System& system, const Mesh& mesh) : state_(std::make_shared<State>()) {
  state_->d = std::make_shared<const Discretisation>(system.plan(), mesh);
}
const Mesh& Loss::mesh() const { return state_->d->mesh; }

BoundLoss Loss::bind(const Device& device, const Inputs& inputs, const LossOptions& options) const {
  const std::shared_ptr<const Discretisation> d = state_->d;
  const Plan& plan = *d->plan;
  const Checked checked(*d, device, inputs);
  KernelForm form = checked.form();
  const std::vector<FieldLevel> outputs = wanted_outputs(plan, options);
  const Type sum = device.info().limits.f64 ? Type::f64 : Type::f32;
  const int64_t residuals = int64_t(plan.residuals.size());
  const int64_t members = checked.members();
  const double count = double(d->mesh.count()) * double(members);

  auto bound = std::make_shared<BoundLoss::State>();
  bound->loss = state_;
  bound->fixed = members > 1;
  bound->d = d;
  bound->device = device;
  bound->outputs = outputs;
  bound->path = choose_path(*d, device, form, outputs, options);
  bound->rows = form.rows;
  if (form.rows && !options.wanted.empty())
    throw InputError("gradients of some fields", "pde options", "of all fields where the inputs are rows");
  Arguments common;
  checked.set_fields(common);
  for (const FieldLevel& o : checked.arrays(outputs)) {
    bound->gradients.push_back(checked.gradient(o));
    if (form.rows) device.clear(bound->gradients.back());  // columns that nothing writes
    common.set(array_name(kGradient, plan, o), checked.as_volume(bound->gradients.back(), o.field_index));
  }
  const std::vector<FieldLevel> read = checked.arrays(fields_of(plan, plan.residuals, Access::field));
  for (const FieldLevel& f : read) bound->bytes += double(checked.given(f).bytes());
  for (const Buffer& g : bound->gradients) bound->bytes += double(g.bytes());
  if (form.mask) bound->bytes += double(checked.mask().bytes());
  form.streaming = past_caches(device, bound->bytes);

  std::vector<double> seeds;
  for (double w : plan.weights) seeds.push_back(2 * w / count * inputs.seed);
  set_numbers(common, *d, checked.parameters(), seeds);
  bound->totals = device.allocate(sum == Type::f64 ? Storage::f64 : Storage::f32, {residuals});
  // Kernels sum c^2 / m of the cotangents c = 2 w seed / N m R.
  const double norm = count / (2 * inputs.seed);
  for (double w : plan.weights) bound->total_scale.push_back(w == 0 ? 0 : norm * norm / (w * count));

  if (bound->path == Path::fused) {
    FusedShape shape = choose_shape(*d, device, form, outputs, members, options);
    for (const FieldLevel& f : read)
      if (!aligned(checked.given(f), shape.wide * size_of(form.storage))) shape.wide = 1;
    FusedLaunches launches =
        fused_launches(d, device, form, outputs, shape, sum, common, bound->totals, members,
                       [&](const std::string& key, const std::function<Kernel()>& make) -> const Kernel& {
                         return state_->kernel(key, make);
                       });
    bound->launches.push_back(std::move(launches.sweep));
    bound->totals_launches.push_back(std::move(launches.total));
    return BoundLoss(bound);
  }

  bind_two_kernels(*bound, *state_, checked, form, options, sum, common);
  return BoundLoss(bound);
}

namespace {

/// Fields, mask and numbers of a launch over whole grids of all members.
Arguments whole_arguments(const Discretisation& d, const Checked& checked) {
  Arguments a;
  checked.set_fields(a);
  set_numbers(a, d, checked.parameters());
  set_slab(a, checked.cells(2), Slab::whole(checked.cells(2)));
  return a;
}
Shape residual_shape(const Discretisation& d, const Checked& checked) {
  return {int64_t(d.plan->residuals.size()), checked.members() * d.mesh.cells[2], d.mesh.cells[1],
          d.mesh.cells[0]};
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
  const Kernel& kernel = state_->kernel(form_key("residual", form),
                                        [&] { return residual_kernel(d, form, ResidualKind::plain); });
  const Buffer result = device.allocate(form.scratch(), residual_shape(*d, checked));
  Arguments a = whole_arguments(*d, checked);
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
  if (!(cotangents.shape() == shape) || cotangents.storage() != form.scratch())
    throw InputError(fmt::format("cotangents {} of shape {}", lockstep::name(cotangents.storage()),
                                 to_string(cotangents.shape())),
                     "pde vjp",
                     fmt::format("{} of shape {}", lockstep::name(form.scratch()), to_string(shape)));
  if (form.rows && !options.wanted.empty())
    throw InputError("gradients of some fields", "pde options", "of all fields where the inputs are rows");
  const std::vector<FieldLevel> outputs = wanted_outputs(*d->plan, options);
  if (outputs.empty()) return {};
  const Kernel& kernel = state_->kernel(form_key("adjoint", form) + outputs_key(outputs),
                                        [&] { return adjoint_kernel(d, form, outputs); });
  std::map<std::string, std::array<Buffer, 3>> result;
  Arguments a = whole_arguments(*d, checked);
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

Buffer Loss::jvp(const Device& device, const Inputs& inputs,
                 const std::map<std::string, std::array<Buffer, 3>>& tangents) const {
  const auto d = state_->d;
  Checked checked(*d, device, inputs);
  const KernelForm form = whole_form(checked);
  for (const auto& [name, levels] : tangents) {
    if (form.rows != name.empty())
      throw InputError(fmt::format("tangents of field '{}'", name), "pde jvp",
                       form.rows ? "rows, under the empty name" : "names of fields");
    if (!form.rows) checked.field_number(name);
  }
  const Kernel& kernel = state_->kernel(form_key("tangent", form),
                                        [&] { return residual_kernel(d, form, ResidualKind::tangent); });
  const Buffer result = device.allocate(form.scratch(), residual_shape(*d, checked));
  Arguments a = whole_arguments(*d, checked);
  for (const FieldLevel& f : checked.arrays(fields_of(*d->plan, d->plan->tangents, Access::tangent))) {
    const auto found = tangents.find(form.rows ? "" : d->plan->fields[size_t(f.field_index)].name);
    Buffer t = found == tangents.end() ? Buffer() : found->second[size_t(f.level + 1)];
    if (!t) {
      device.clear(t = like(device, checked.given(f)));
    } else if (form.rows) {
      checked.check_rows(t, fmt::format("tangent rows at level {:+}", f.level));
    } else {
      checked.check(t, f.field_index, fmt::format("tangent of {} at level {:+}", found->first, f.level));
    }
    a.set(array_name(kTangent, *d->plan, f), checked.as_volume(t, f.field_index));
  }
  a.set("result", result);
  device.launch_with(kernel, whole_extent(result.shape()), a.bind_known(kernel), {});
  return result;
}

}  // namespace lockstep::pde
