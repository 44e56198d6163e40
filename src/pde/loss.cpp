// Loss: checks of the data, the choice of the path, launches, results.
#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "device/capabilities.hpp"
#include "lockstep/error.hpp"
#include "pde/fused/fused.hpp"
#include "pde/kernels/two_kernels.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

int64_t choose_slab(const Discretisation& d, const Device& device, const KernelForm& form, int64_t asked) {
  const int64_t nz = d.mesh.cells[2];
  if (asked > 0) return std::min(asked, nz);
  if (!capabilities_of(device).host_memory) return nz;
  constexpr int64_t kCacheBytes = 6 << 20;
  // Larger slabs where the last cache holds them: fewer launches, which wait for each other.
  const int64_t cache = std::max(kCacheBytes, capabilities_of(device).last_level_cache_bytes / 8);
  int64_t arrays = int64_t(d.plan->residuals.size());
  for (const FieldInfo& f : d.plan->fields) arrays += f.components * (f.used[0] + f.used[1] + f.used[2]);
  const int64_t plane = d.mesh.cells[0] * d.mesh.cells[1] * size_of(form.storage) * arrays;
  const int64_t slab = std::max<int64_t>(cache / std::max<int64_t>(plane, 1), 2 * d.reach[2] + 1);
  // A slab that is nearly the grid gains nothing.
  return slab * 3 >= nz * 2 ? nz : slab;
}

bool past_caches(const Device& device, double bytes) {
  return bytes > double(std::max<int64_t>(capabilities_of(device).last_level_cache_bytes, 32 << 20));
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
  const double count = double(state_->whole().mesh.count()) * double(members);

  auto bound = std::make_shared<BoundLoss::State>();
  bound->loss = state_;
  bound->fixed = members > 1;
  bound->d = d;
  bound->device = device;
  bound->outputs = outputs;
  bound->path = choose_path(state_->whole(), device, form, outputs, members, options);
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
    FusedShape shape = choose_shape(state_->whole(), device, form, outputs, members, options);
    if (state_->part) shape.chunk = int(state_->part->chunk);
    for (const FieldLevel& f : read)
      if (!aligned(checked.given(f), shape.wide * size_of(form.storage))) shape.wide = 1;
    FusedLaunches launches =
        fused_launches(d, device, form, outputs, shape, sum, common, bound->totals, members,
                       state_->part.get(), [&](const std::string& key, const std::function<Kernel()>& make) {
                         return state_->kernels.get(key, make);
                       });
    bound->launches.push_back(std::move(launches.sweep));
    if (state_->part)
      bound->partials.push_back(launches.partial);
    else
      bound->totals_launches.push_back(std::move(launches.total));
    return BoundLoss(bound);
  }

  bind_two_kernels(*bound, *state_, checked, form, options, sum, common);
  return BoundLoss(bound);
}

}  // namespace lockstep::pde
