#include "pde/kernels/two_kernels.hpp"

#include <algorithm>

#include "pde/kernels/two_sweeps.hpp"

namespace lockstep::pde {

std::string outputs_key(const std::vector<FieldLevel>& outputs) {
  std::string key;
  for (const FieldLevel& o : outputs) key += fmt::format(" {}:{}", o.field_index, o.level);
  return key;
}

void bind_two_kernels(BoundLoss::State& bound, Loss::State& loss, const Checked& checked, KernelForm form,
                      const LossOptions& options, Type sum, std::vector<Argument> fields,
                      std::vector<Argument> gradients, const std::vector<double>& seeds) {
  const std::shared_ptr<const Discretisation> d = bound.d;
  const Plan& plan = *d->plan;
  const Device& device = bound.device;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                members = checked.members(), residuals = int64_t(plan.residuals.size()), reach = d->reach[2];
  const bool sweeps = bound.path == Path::two_sweep;
  const int64_t slab = sweeps ? nz : choose_slab(*d, device, form, options.slab);
  form.whole = slab >= nz;
  const int64_t shift = form.whole ? nz : reach;
  const int64_t ring = form.whole ? nz : std::min(nz + 2 * reach, slab + 2 * reach);
  // Whole grids of all members stand in memory at once; slabs take one member after the other.
  const int64_t held = form.whole ? members : 1;
  // Cotangents of whole grids outlive a run: their squares are summed when the value is asked for.
  const bool lazy = form.whole && !bound.outputs.empty();
  KernelForm back = form;
  back.mask = false;
  const std::vector<FieldLevel>& outputs = bound.outputs;
  const Kernel& residual = loss.kernel(form_key("cotangent", form),
                                       [&] { return residual_kernel(d, form, ResidualKind::cotangent); });
  const Kernel& partial = loss.kernel(fmt::format("partial {} {} {}", int(form.storage), form.mask, int(sum)),
                                      [&] { return partial_kernel(form, sum); });
  const Kernel& total = loss.kernel(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  const Buffer cotangents = device.allocate(form.scratch(), {residuals, held * ring, ny, nx});
  const int64_t chunks = (nx * ny + kReduceChunk - 1) / kReduceChunk;
  const Buffer sums = device.allocate(bound.totals.storage(), {residuals, members * nz, chunks});

  std::vector<Argument> scalars;
  push_scalars(scalars, *d, checked.parameters());
  const auto place = [&](std::vector<Argument>& list, int64_t z_first, int64_t planes, int64_t member) {
    list.insert(list.end(), {Argument(z_first), Argument(ring), Argument(shift), Argument(nz)});
    if (form.batch) list.insert(list.end(), {Argument(member), Argument(planes)});
    list.insert(list.end(), scalars.begin(), scalars.end());
  };
  bool aligned = true;
  const std::vector<FieldLevel> read = checked.arrays(fields_of(plan, plan.residuals, Access::field));
  for (const FieldLevel& f : read) aligned &= checked.given(f).offset() * size_of(form.storage) % 16 == 0;
  const auto launch_sweep = [&](StreamStage stage, const KernelForm& as, std::vector<Argument> list) {
    const StreamShape shape = choose_stream(*d, device, as, stage, outputs, members, aligned, options);
    const bool forward = stage == StreamStage::residual;
    const Kernel& kernel = loss.kernel(
        form_key(forward ? "stream residual" : "stream adjoint", as) + " " + shape.key() +
            (forward ? "" : outputs_key(outputs)),
        [&] { return stream_kernel(d, as, stage, forward ? std::vector<FieldLevel>() : outputs, shape); });
    list.insert(list.end(), {Argument(nx), Argument(ny), Argument(nz), Argument(int64_t(shape.chunk))});
    if (as.batch) list.push_back((nz + shape.chunk - 1) / shape.chunk);
    list.insert(list.end(), scalars.begin(), scalars.end());
    for (double s : seeds)
      if (forward) list.push_back(s);
    bound.launches.push_back({kernel, stream_extent(*d, shape, members), std::move(list)});
  };
  const auto launch_residual = [&](int64_t member, int64_t from, int64_t to) {
    if (to <= from) return;
    std::vector<Argument> list = fields;
    if (form.mask) list.push_back(checked.mask());
    list.push_back(cotangents);
    if (sweeps) return launch_sweep(StreamStage::residual, form, std::move(list));
    place(list, from, to - from, member);
    for (double s : seeds) list.push_back(s);
    bound.launches.push_back({residual, {held * (to - from), ny, nx}, std::move(list)});
  };
  const auto launch_sums = [&](int64_t member, int64_t from, int64_t to) {
    const int64_t first = member * nz, planes = held * (to - from);
    std::vector<Argument> list{cotangents.reshape({residuals, held * ring, ny * nx})};
    if (form.mask) list.push_back(checked.mask().reshape({members * nz, ny * nx}).rows(first, held * nz));
    list.push_back(sums.window({0, first, 0}, {residuals, held * nz, chunks}));
    list.insert(list.end(),
                {Argument(from), Argument(held * ring), Argument(form.whole ? held * nz : shift)});
    (lazy ? bound.totals_launches : bound.launches)
        .push_back({partial, {residuals, planes, chunks}, std::move(list)});
  };
  const auto launch_adjoint = [&](int64_t member, int64_t from, int64_t to) {
    if (outputs.empty()) return;
    std::vector<Argument> list;
    for (const FieldLevel& f : checked.arrays(adjoint_fields(plan, outputs)))
      list.push_back(checked.volume(f));
    list.push_back(cotangents);
    list.insert(list.end(), gradients.begin(), gradients.end());
    if (sweeps) return launch_sweep(StreamStage::adjoint, back, std::move(list));
    const Kernel& adjoint = loss.kernel(form_key("adjoint", back) + outputs_key(outputs),
                                        [&] { return adjoint_kernel(d, back, outputs); });
    place(list, from, to - from, member);
    bound.launches.push_back({adjoint, {held * (to - from), ny, nx}, std::move(list)});
  };
  // Slabs run in order; cotangents of the planes that the next slab shares stay in the ring.
  const bool wraps = d->wraps[2] && !form.whole;
  for (int64_t member = 0; member < members; member += held) {
    int64_t done = wraps ? -reach : 0;
    const int64_t end = wraps ? nz + reach : nz;
    for (int64_t from = 0; from < nz; from += slab) {
      const int64_t to = std::min(from + slab, nz), need = form.whole ? nz : std::min(to + reach, end);
      launch_residual(member, done, need);
      done = need;
      launch_sums(member, from, to);
      launch_adjoint(member, from, to);
    }
  }
  bound.totals_launches.push_back(
      {total, {residuals}, {sums.reshape({residuals, members * nz * chunks}), bound.totals}});
}

}  // namespace lockstep::pde
