#include "pde/kernels/two_kernels.hpp"

#include <algorithm>

#include "pde/halves/two_sweeps.hpp"

namespace lockstep::pde {

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

Slabs::Slabs(const Discretisation& d, int64_t members, int64_t planes)
    : slab(planes), whole(planes >= d.mesh.cells[2]) {
  const auto [nx, ny, nz] = d.mesh.cells;
  const int64_t reach = d.reach[2], residuals = int64_t(d.plan->residuals.size());
  shift = whole ? nz : reach;
  ring = whole ? nz : slab + 2 * reach;
  held = whole ? members : 1;
  cotangents = {residuals, held * ring, ny, nx};
  sums = {residuals, members * nz, (nx * ny + kReduceChunk - 1) / kReduceChunk};
}

void bind_total(BoundLoss::State& bound, const Loss::State& loss, const Kernel& total, const Buffer& sums,
                const Buffer& totals) {
  const Shape& s = sums.shape();
  if (loss.part) {
    bound.partials.push_back(sums.window({0, loss.part->first, 0}, {s[0], loss.part->planes, s[2]}));
    return;
  }
  Arguments a;
  a.set("partial", sums.reshape({s[0], s[1] * s[2]})).set("totals", totals);
  bound.totals_launches.push_back({total, {s[0]}, a.bind(total)});
}

namespace {

/// Whether all arrays that residuals read begin at 16 bytes.
bool aligned_fields(const Plan& plan, const Checked& checked) {
  for (const FieldLevel& f : checked.arrays(fields_of(plan, plan.residuals, Access::field)))
    if (!aligned(checked.given(f), 16)) return false;
  return true;
}

/// The way back needs no mask: cotangents of masked cells are zero.
KernelForm without_mask(KernelForm form) {
  form.mask = false;
  return form;
}

}  // namespace

void bind_two_kernels(BoundLoss::State& bound, Loss::State& loss, const Checked& checked, KernelForm form,
                      const LossOptions& options, Type sum, const Arguments& common) {
  const std::shared_ptr<const Discretisation> d = bound.d;
  const Plan& plan = *d->plan;
  const Device& device = bound.device;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                members = checked.members(), residuals = int64_t(plan.residuals.size()), reach = d->reach[2];
  const bool sweeps = bound.path == Path::two_sweep;
  const Slabs slabs(*d, members, sweeps ? nz : choose_slab(*d, device, form, options.slab));
  const int64_t slab = slabs.slab, shift = slabs.shift, ring = slabs.ring, held = slabs.held;
  form.whole = slabs.whole;
  // Cotangents of whole grids outlive a run: their squares are summed when the value is requested.
  const bool lazy = form.whole && !bound.outputs.empty();
  const KernelForm back = without_mask(form);
  const std::vector<FieldLevel>& outputs = bound.outputs;
  const Kernel residual = loss.kernels.get(form_key("cotangent", form),
                                           [&] { return residual_kernel(d, form, ResidualKind::cotangent); });
  const Kernel partial =
      loss.kernels.get(fmt::format("partial {} {} {}", int(form.storage), form.mask, int(sum)),
                       [&] { return partial_kernel(form, sum); });
  const Kernel total = loss.kernels.get(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  const Buffer cotangents = device.allocate(form.scratch(), slabs.cotangents),
               sums = device.allocate(bound.totals.storage(), slabs.sums);
  const int64_t chunks = slabs.sums[2];
  const bool aligned_arrays = aligned_fields(plan, checked);
  const auto launch_sweep = [&](SweepHalf half, const KernelForm& as) {
    const HalfShape shape = choose_half(*d, device, as, half, outputs, members, aligned_arrays, options);
    const bool forward = half == SweepHalf::residual;
    const Kernel kernel = loss.kernels.get(
        form_key(forward ? "half residual" : "half adjoint", as) + " " + shape.key() +
            (forward ? "" : outputs_key(outputs)),
        [&] { return half_kernel(d, as, half, forward ? std::vector<FieldLevel>() : outputs, shape); });
    Arguments a = common;
    set_sweep(a, *d, shape.chunk);
    a.set("cotangents", cotangents);
    bound.launches.push_back({kernel, half_extent(*d, shape, members), a.bind_known(kernel)});
  };
  const auto launch = [&](const Kernel& kernel, const char* what, int64_t member, int64_t from, int64_t to,
                          int64_t below) {
    Arguments a = common;
    set_slab(a, nz, {from, to - from, ring, shift, member, below});
    a.set(what, cotangents);
    bound.launches.push_back({kernel, {held * (to - from), ny, nx}, a.bind_known(kernel)});
  };
  const auto launch_residual = [&](int64_t member, int64_t from, int64_t to) {
    if (to > from && sweeps) return launch_sweep(SweepHalf::residual, form);
    if (to > from) launch(residual, "result", member, from, to, 0);
  };
  const auto launch_sums = [&](int64_t member, int64_t from, int64_t to) {
    const int64_t first = member * nz, planes = held * (to - from);
    Arguments a;
    a.set("cotangents", cotangents.reshape({residuals, held * ring, ny * nx}));
    if (form.mask) a.set("mask", checked.mask().reshape({members * nz, ny * nx}).rows(first, held * nz));
    a.set("partial", sums.window({0, first, 0}, {residuals, held * nz, chunks}));
    a.set("z_first", from).set("ring", held * ring).set("shift", form.whole ? held * nz : shift);
    (lazy ? bound.totals_launches : bound.launches)
        .push_back({partial, {residuals, planes, chunks}, a.bind(partial)});
  };
  const auto launch_adjoint = [&](int64_t member, int64_t from, int64_t to) {
    if (outputs.empty()) return;
    if (sweeps) return launch_sweep(SweepHalf::adjoint, back);
    launch(loss.kernels.get(form_key("adjoint", back) + outputs_key(outputs),
                            [&] { return adjoint_kernel(d, back, outputs); }),
           "cotangents", member, from, to, reach);
  };
  const auto launch_slabs = [&](int64_t member, int64_t first, int64_t end) {
    // Slabs run in order; cotangents of the planes that the next slab shares stay in the ring.
    const int64_t own = loss.first_plane(), own_end = loss.end_plane();
    for (int64_t from = own, done = std::max(first, own - reach), need; from < own_end;
         from += slab, done = need) {
      const int64_t to = std::min(from + slab, own_end);
      need = std::min((form.whole ? own_end : to) + reach, end);
      launch_residual(member, done, need);
      launch_sums(member, from, to);
      launch_adjoint(member, from, to);
    }
  };
  const int64_t margin = d->wraps[2] && !form.whole ? reach : 0;
  for (int64_t member = 0; member < members; member += held) launch_slabs(member, -margin, nz + margin);
  bind_total(bound, loss, total, sums, bound.totals);
}

}  // namespace lockstep::pde
