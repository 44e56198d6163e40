// Loss: checks of the data, the choice of the path, launches, results.
#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "lockstep/error.hpp"
#include "pde/checked.hpp"
#include "pde/fused.hpp"

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

std::string outputs_key(const std::vector<FieldLevel>& outputs) {
  std::string key;
  for (const FieldLevel& o : outputs) key += fmt::format(" {}:{}", o.field_index, o.level);
  return key;
}

}  // namespace

std::vector<FieldLevel> adjoint_fields(const Plan& plan, const std::vector<FieldLevel>& outputs) {
  std::vector<Value> values;
  for (const FieldLevel& o : outputs)
    for (const Target* t : targets_of(plan, o)) {
      if (t->point) values.push_back(*t->point);
      for (const Term& term : t->terms) values.push_back(term.g);
    }
  return fields_of(plan, values, Access::field);
}

int64_t choose_slab(const Discretisation& d, const Device& device, const KernelForm& form, int64_t asked) {
  const int64_t nz = d.mesh.cells[2];
  if (asked > 0) return std::min(asked, nz);
  if (device.info().kind != DeviceKind::cpu && device.info().kind != DeviceKind::interp) return nz;
  constexpr int64_t kCacheBytes = 6 << 20;
  int64_t arrays = int64_t(d.plan->residuals.size());
  for (const FieldInfo& f : d.plan->fields) arrays += f.components * (f.used[0] + f.used[1] + f.used[2]);
  const int64_t plane = d.mesh.cells[0] * d.mesh.cells[1] * size_of(form.storage) * arrays;
  const int64_t slab = std::max<int64_t>(kCacheBytes / std::max<int64_t>(plane, 1), 2 * d.reach[2] + 1);
  // A slab that is nearly the grid gains nothing.
  return slab * 3 >= nz * 2 ? nz : slab;
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
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                residuals = int64_t(plan.residuals.size());
  const double count = double(d->mesh.count());

  auto bound = std::make_shared<BoundLoss::State>();
  bound->d = d;
  bound->device = device;
  bound->outputs = outputs;
  bound->path = choose_path(*d, device, form, outputs, options);
  for (const FieldLevel& o : outputs) bound->gradients.push_back(like(device, checked.given(o)));
  std::vector<Argument> gradient_arguments;
  for (size_t k = 0; k < outputs.size(); ++k)
    gradient_arguments.push_back(checked.as_volume(bound->gradients[k], outputs[k].field_index));
  for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
    bound->bytes += double(checked.given(f).bytes());
  for (const Buffer& g : bound->gradients) bound->bytes += double(g.bytes());
  if (form.mask) bound->bytes += double(checked.mask().bytes());
  // What fits into the last cache is better left there.
  form.streaming = bound->bytes > double(32 << 20);

  std::vector<double> seeds;
  for (double w : plan.weights) seeds.push_back(2 * w / count * inputs.seed);
  bound->totals = device.allocate(sum == Type::f64 ? Storage::f64 : Storage::f32, {residuals});
  // Kernels sum c^2 / m of the cotangents c = 2 w seed / N m R.
  const double norm = count / (2 * inputs.seed);
  for (double w : plan.weights) bound->total_scale.push_back(w == 0 ? 0 : norm * norm / (w * count));

  if (bound->path == Path::fused) {
    FusedArguments a;
    for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
      a.fields.push_back(checked.volume(f));
    if (form.mask) a.mask = checked.mask();
    a.gradients = gradient_arguments;
    push_scalars(a.scalars, *d, checked.parameters());
    for (double s : seeds) a.scalars.push_back(s);
    a.totals = bound->totals;
    FusedShape shape = choose_shape(*d, device, form, options);
    for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
      if (checked.given(f).offset() % shape.wide != 0) shape.wide = 1;
    FusedLaunches launches =
        fused_launches(d, device, form, outputs, shape, sum, a,
                       [&](const std::string& key, const std::function<Kernel()>& make) -> const Kernel& {
                         return state_->kernel(key, make);
                       });
    bound->launches.push_back(std::move(launches.sweep));
    bound->totals_launches.push_back(std::move(launches.total));
    return BoundLoss(bound);
  }

  const int64_t slab = choose_slab(*d, device, form, options.slab), reach = d->reach[2];
  const bool whole = slab >= nz;
  const int64_t shift = whole ? nz : reach;
  const int64_t ring = whole ? nz : std::min(nz + 2 * reach, slab + 2 * reach);
  const Kernel& residual = state_->kernel(form_key("cotangent", form),
                                          [&] { return residual_kernel(d, form, ResidualKind::cotangent); });
  const Kernel& partial = state_->kernel(fmt::format("{} {}", form_key("partial", form), int(sum)),
                                         [&] { return partial_kernel(form, sum); });
  const Kernel& total = state_->kernel(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  const Buffer cotangents = device.allocate(form.scratch(), {residuals, ring, ny, nx});
  const int64_t chunks = (nx * ny + kReduceChunk - 1) / kReduceChunk;
  const Buffer sums = device.allocate(bound->totals.storage(), {residuals, nz, chunks});

  std::vector<Argument> front, tail;
  for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
    front.push_back(checked.volume(f));
  if (form.mask) front.push_back(checked.mask());
  front.push_back(cotangents);
  push_scalars(tail, *d, checked.parameters());
  const auto place = [&](int64_t z_first) { return std::vector<Argument>{z_first, ring, shift, nz}; };
  const auto launch_residual = [&](int64_t from, int64_t to) {
    if (to <= from) return;
    std::vector<Argument> list = front;
    for (const Argument& a : place(from)) list.push_back(a);
    list.insert(list.end(), tail.begin(), tail.end());
    for (double s : seeds) list.push_back(s);
    bound->launches.push_back({residual, {to - from, ny, nx}, std::move(list)});
  };
  const auto launch_sums = [&](int64_t from, int64_t to) {
    std::vector<Argument> list{cotangents.reshape({residuals, ring, ny * nx})};
    if (form.mask) list.push_back(checked.mask().reshape({nz, ny * nx}));
    list.insert(list.end(), {Argument(sums), Argument(from), Argument(ring), Argument(shift)});
    bound->launches.push_back({partial, {residuals, to - from, chunks}, std::move(list)});
  };
  const auto launch_adjoint = [&](int64_t from, int64_t to) {
    if (outputs.empty()) return;
    const Kernel& adjoint =
        state_->kernel(form_key("adjoint", {form.storage, false, form.streaming}) + outputs_key(outputs),
                       [&] { return adjoint_kernel(d, {form.storage, false, form.streaming}, outputs); });
    std::vector<Argument> list;
    for (const FieldLevel& f : adjoint_fields(plan, outputs)) list.push_back(checked.volume(f));
    list.push_back(cotangents);
    list.insert(list.end(), gradient_arguments.begin(), gradient_arguments.end());
    for (const Argument& a : place(from)) list.push_back(a);
    list.insert(list.end(), tail.begin(), tail.end());
    bound->launches.push_back({adjoint, {to - from, ny, nx}, std::move(list)});
  };
  // Slabs run in order; cotangents of the planes that the next slab shares stay in the ring.
  int64_t done = whole || !d->wraps[2] ? 0 : -reach;
  const int64_t end = whole || !d->wraps[2] ? nz : nz + reach;
  for (int64_t from = 0; from < nz; from += slab) {
    const int64_t to = std::min(from + slab, nz), need = whole ? nz : std::min(to + reach, end);
    launch_residual(done, need);
    done = need;
    launch_sums(from, to);
    launch_adjoint(from, to);
  }
  bound->totals_launches.push_back(
      {total, {residuals}, {sums.reshape({residuals, nz * chunks}), bound->totals}});
  return BoundLoss(bound);
}

Buffer Loss::residuals(const Device& device, const Inputs& inputs) const {
  const auto d = state_->d;
  const Checked checked(*d, device, inputs);
  const KernelForm form{checked.form().storage, false};
  const Kernel& kernel = state_->kernel(form_key("residual", form),
                                        [&] { return residual_kernel(d, form, ResidualKind::plain); });
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2];
  const Buffer result = device.allocate(form.scratch(), {int64_t(d->plan->residuals.size()), nz, ny, nx});
  std::vector<Argument> list;
  for (const FieldLevel& f : fields_of(*d->plan, d->plan->residuals, Access::field))
    list.push_back(checked.volume(f));
  list.insert(list.end(), {Argument(result), Argument(int64_t(0)), Argument(nz), Argument(nz), Argument(nz)});
  push_scalars(list, *d, checked.parameters());
  device.launch_with(kernel, {nz, ny, nx}, list, {});
  return result;
}

std::map<std::string, std::array<Buffer, 3>> Loss::vjp(const Device& device, const Inputs& inputs,
                                                       const Buffer& cotangents,
                                                       const LossOptions& options) const {
  const auto d = state_->d;
  const Checked checked(*d, device, inputs);
  const KernelForm form{checked.form().storage, false};
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2];
  const Shape shape{int64_t(d->plan->residuals.size()), nz, ny, nx};
  if (!(cotangents.shape() == shape) || cotangents.storage() != form.scratch())
    throw InputError(fmt::format("cotangents {} of shape {}", lockstep::name(cotangents.storage()),
                                 to_string(cotangents.shape())),
                     "pde vjp",
                     fmt::format("{} of shape {}", lockstep::name(form.scratch()), to_string(shape)));
  const std::vector<FieldLevel> outputs = wanted_outputs(*d->plan, options);
  if (outputs.empty()) return {};
  const Kernel& kernel = state_->kernel(form_key("adjoint", form) + outputs_key(outputs),
                                        [&] { return adjoint_kernel(d, form, outputs); });
  std::map<std::string, std::array<Buffer, 3>> result;
  std::vector<Argument> list;
  for (const FieldLevel& f : adjoint_fields(*d->plan, outputs)) list.push_back(checked.volume(f));
  list.push_back(cotangents);
  for (const FieldLevel& o : outputs) {
    Buffer& g = result[d->plan->fields[size_t(o.field_index)].name][size_t(o.level + 1)] =
        like(device, checked.given(o));
    list.push_back(checked.as_volume(g, o.field_index));
  }
  list.insert(list.end(), {Argument(int64_t(0)), Argument(nz), Argument(nz), Argument(nz)});
  push_scalars(list, *d, checked.parameters());
  device.launch_with(kernel, {nz, ny, nx}, list, {});
  return result;
}

Buffer Loss::jvp(const Device& device, const Inputs& inputs,
                 const std::map<std::string, std::array<Buffer, 3>>& tangents) const {
  const auto d = state_->d;
  Checked checked(*d, device, inputs);
  const KernelForm form{checked.form().storage, false};
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2];
  for (const auto& [name, levels] : tangents) checked.field_number(name);
  const Kernel& kernel = state_->kernel(form_key("tangent", form),
                                        [&] { return residual_kernel(d, form, ResidualKind::tangent); });
  const Buffer result = device.allocate(form.scratch(), {int64_t(d->plan->residuals.size()), nz, ny, nx});
  std::vector<Argument> list;
  for (const FieldLevel& f : fields_of(*d->plan, d->plan->tangents, Access::field))
    list.push_back(checked.volume(f));
  for (const FieldLevel& f : fields_of(*d->plan, d->plan->tangents, Access::tangent)) {
    const std::string& name = d->plan->fields[size_t(f.field_index)].name;
    const auto found = tangents.find(name);
    Buffer t = found == tangents.end() ? Buffer() : found->second[size_t(f.level + 1)];
    if (t)
      checked.check(t, f.field_index, fmt::format("tangent of {} at level {:+}", name, f.level));
    else
      device.clear(t = like(device, checked.given(f)));
    list.push_back(checked.as_volume(t, f.field_index));
  }
  list.insert(list.end(), {Argument(result), Argument(int64_t(0)), Argument(nz), Argument(nz), Argument(nz)});
  push_scalars(list, *d, checked.parameters());
  device.launch_with(kernel, {nz, ny, nx}, list, {});
  return result;
}

}  // namespace lockstep::pde
