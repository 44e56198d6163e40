// T time levels in one go: a slab of planes passes through all levels while its cotangents stay in the cache.
#include <algorithm>

#include "pde/checked.hpp"
#include "pde/fused.hpp"

namespace lockstep::pde {

using ir::Id;

Kernel trajectory_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                         std::vector<int> fields) {
  std::string name = fmt::format("pde.trajectory.{}.{}", variant(*d, form), fields.size());
  return Kernel::trace(std::move(name), ir::Domain::points, 3, {}, [d, form, fields](ir::Builder& b) {
    const Plan& plan = *d->plan;
    std::vector<FieldLevel> outputs;
    for (int f : fields) outputs.push_back({f, 0});
    const std::vector<FieldLevel> read = adjoint_fields(plan, outputs);
    const FieldArrays arrays(plan, read, form, "", ir::Access::read);
    const RawBuffer cotangents[] = {RawBuffer("before", form.scratch(), 4, ir::Access::read),
                                    RawBuffer("here", form.scratch(), 4, ir::Access::read),
                                    RawBuffer("after", form.scratch(), 4, ir::Access::read)};
    const FieldArrays gradients(plan, outputs, form, "d_", ir::Access::write);
    const SlabPlace place(*d, form);
    const Tracer::Scalars scalars = Tracer::declare(*d, form.type());
    std::optional<Tracer> tracers[3];
    for (int which = 0; which < 3; ++which)
      tracers[which].emplace(*d, form.type(), scalars, place.own, place.size, [&, which](const Datum& x) {
        Tracer& t = *tracers[which];
        if (x.kind == Access::cotangent)
          return cotangents[which].load({b.i32(x.component), place.slot_at(t, *d, x.at[2]),
                                         t.coordinate(1, x.at[1]), t.coordinate(0, x.at[0])});
        return arrays.load({x.field_index, x.level}, x.component, t.neighbour(x.at), place.member, place.nz);
      });
    for (size_t k = 0; k < fields.size(); ++k)
      for (int c = 0; c < plan.fields[size_t(fields[k])].components; ++c) {
        Id sum = ir::kNone;
        for (int level : {0, 1, -1})  // the residual before sees this level as +1
          for (const Target* t : targets_of(plan, {fields[k], level})) {
            if (t->component != c) continue;
            const Id part = level == 0 ? tracers[1]->gradient(*t)
                            : t->point ? tracers[level > 0 ? 0 : 2]->value(*t->point)
                                       : ir::kNone;
            if (part != ir::kNone) sum = sum == ir::kNone ? part : b.op(ir::Op::fadd, {sum, part});
          }
        if (sum == ir::kNone) sum = b.number(form.type(), 0);
        gradients.store({fields[k], 0}, c, place.own, place.member, place.nz, sum, form.streaming);
      }
  });
}

Kernel time_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, std::vector<int> fields,
                   bool fresh) {
  std::string name = fmt::format("pde.time.{}.{}{}", variant(*d, form), fields.size(), fresh ? ".fresh" : "");
  return Kernel::trace(std::move(name), ir::Domain::points, 3, {}, [d, form, fields, fresh](ir::Builder& b) {
    const Plan& plan = *d->plan;
    const RawBuffer cotangents[] = {RawBuffer("before", form.scratch(), 4, ir::Access::read),
                                    RawBuffer("after", form.scratch(), 4, ir::Access::read)};
    std::vector<RawBuffer> gradients;
    for (int f : fields)
      gradients.emplace_back("d_" + plan.fields[size_t(f)].name, form.storage, 4,
                             fresh ? ir::Access::write : ir::Access::read_write);
    std::array<Id, 3> own, size;
    for (size_t a = 0; a < 3; ++a) {
      own[a] = b.emit(ir::Op::coord, Type::i32, {}, uint64_t(a));
      size[a] = b.emit(ir::Op::extent, Type::i32, {}, uint64_t(a));
    }
    const Tracer::Scalars scalars = Tracer::declare(*d, form.type());
    std::optional<Tracer> tracers[2];
    for (int which = 0; which < 2; ++which)
      tracers[which].emplace(*d, form.type(), scalars, own, size, [&, which](const Datum& x) {
        return cotangents[which].load({b.i32(x.component), own[2], own[1], own[0]});
      });
    for (size_t k = 0; k < fields.size(); ++k)
      for (int c = 0; c < plan.fields[size_t(fields[k])].components; ++c) {
        const auto at = {b.i32(c), own[2], own[1], own[0]};
        Id sum = fresh ? b.number(form.type(), 0) : gradients[k].load(at);
        for (int level : {1, -1})
          for (const Target* t : targets_of(plan, {fields[k], level}))
            if (t->component == c && t->point)
              sum = b.op(ir::Op::fadd, {sum, tracers[level > 0 ? 0 : 1]->value(*t->point)});
        gradients[k].store(at, sum, form.streaming);
      }
  });
}

namespace {

struct Trajectory {
  const TrajectoryInputs& inputs;
  const Checked& checked;
  KernelForm form;
  int64_t levels;
  std::vector<int> wanted;
  Type sum;
  double count;

  Buffer volume(const Plan& plan, int field, int64_t level) const {
    return checked.as_volume(inputs.fields.at(plan.fields[size_t(field)].name)[size_t(level)], field);
  }
};

/// One sweep a level leaves the spatial part of its gradient and its cotangents; a pointwise kernel adds what
/// the levels beside it give.
void bind_sweeps(BoundLoss::State& bound, Loss::State& loss, const Trajectory& t,
                 const LossOptions& options) {
  const std::shared_ptr<const Discretisation> d = bound.d;
  const Plan& plan = *d->plan;
  const Device& device = bound.device;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                residuals = int64_t(plan.residuals.size());
  KernelForm form = t.form, pointwise = t.form;
  form.keep = true;
  form.streaming = pointwise.streaming = bound.bytes > double(32 << 20);
  pointwise.mask = false;
  std::vector<FieldLevel> outputs;
  std::string key;
  for (int f : t.wanted) {
    outputs.push_back({f, 0});
    key += fmt::format(" {}", f);
  }
  Buffer cotangents[3];
  for (Buffer& c : cotangents) c = device.allocate(form.scratch(), {residuals, nz, ny, nx});
  const Buffer nothing = device.allocate(form.scratch(), {residuals, nz, ny, nx});
  device.clear(nothing);
  const auto gradient = [&](int64_t n, size_t k) {
    return t.checked.as_volume(bound.gradients[size_t(n) * t.wanted.size() + k], t.wanted[k]);
  };
  const auto launch_time = [&](int64_t n) {
    const bool fresh = n == 0 || n == t.levels - 1;
    const Kernel& kernel = loss.kernel(fmt::format("{} {}{}", form_key("time", pointwise), fresh, key),
                                       [&] { return time_kernel(d, pointwise, t.wanted, fresh); });
    std::vector<Argument> list;
    for (int64_t k : {n - 1, n + 1})
      list.push_back(k >= 1 && k <= t.levels - 2 ? cotangents[k % 3] : nothing);
    for (size_t k = 0; k < t.wanted.size(); ++k) list.push_back(gradient(n, k));
    push_scalars(list, *d, t.checked.parameters());
    bound.launches.push_back({kernel, {nz, ny, nx}, std::move(list)});
  };
  FusedShape shape = choose_shape(*d, device, form, outputs, 1, options);
  for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
    for (int64_t n = 0; n < t.levels; ++n)
      if (t.volume(plan, f.field_index, n).offset() % shape.wide != 0) shape.wide = 1;
  for (int64_t n = 1; n < t.levels - 1; ++n) {
    FusedArguments a;
    for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
      a.fields.push_back(t.volume(plan, f.field_index, n + f.level));
    if (form.mask) a.mask = t.checked.mask();
    for (size_t k = 0; k < t.wanted.size(); ++k) a.gradients.push_back(gradient(n, k));
    push_scalars(a.scalars, *d, t.checked.parameters());
    for (double w : plan.weights) a.scalars.push_back(2 * w / t.count * t.inputs.seed);
    a.cotangents = cotangents[n % 3];
    a.totals = bound.totals.rows(n - 1, 1).reshape({residuals});
    FusedLaunches launches =
        fused_launches(d, device, form, outputs, shape, t.sum, a,
                       [&](const std::string& k, const std::function<Kernel()>& make) -> const Kernel& {
                         return loss.kernel(k, make);
                       });
    bound.launches.push_back(std::move(launches.sweep));
    bound.totals_launches.push_back(std::move(launches.total));
    launch_time(n - 1);
  }
  launch_time(t.levels - 2);
  launch_time(t.levels - 1);
}

/// Whether every gradient begins with a sum along z, so that levels without a residual begin with 0 too.
bool all_swept(const Plan& plan, const std::vector<int>& fields) {
  for (int f : fields)
    for (const Target* t : targets_of(plan, {f, 0})) {
      bool swept = false;
      for (const Term& term : t->terms) swept |= term.axis == 2;
      if (!swept) return false;
    }
  return true;
}

}  // namespace

BoundLoss Loss::bind_trajectory(const Device& device, const TrajectoryInputs& inputs,
                                const LossOptions& options) const {
  const std::shared_ptr<const Discretisation> d = state_->d;
  const Plan& plan = *d->plan;
  for (const Target& t : plan.targets) {
    if (t.level == 0) continue;
    bool simple = t.terms.empty();
    if (t.point)
      for (uint32_t leaf : autodiff::leaves_of(std::span(&*t.point, 1)))
        simple &= plan.accesses[leaf].kind != Access::field;
    if (!simple)
      throw UnsupportedError(fmt::format("field {} at level {:+} enters otherwise than by a time difference",
                                         plan.fields[size_t(t.field_index)].name, t.level),
                             "pde trajectory", "residuals linear in the levels before and after");
  }
  int64_t levels = -1;
  for (const auto& [name, list] : inputs.fields) {
    if (levels < 0) levels = int64_t(list.size());
    if (int64_t(list.size()) != levels)
      throw InputError(fmt::format("field {} has {} levels", name, list.size()), "pde trajectory",
                       fmt::format("{} as the other fields", levels));
  }
  if (levels < 3)
    throw InputError(fmt::format("{} levels", std::max<int64_t>(levels, 0)), "pde trajectory", "3 or more");
  // The first three levels stand for all in the checks of names, parameters, mask and type.
  Inputs first;
  first.parameters = inputs.parameters;
  first.mask = inputs.mask;
  first.seed = inputs.seed;
  for (const auto& [name, list] : inputs.fields) first.fields[name] = {list[0], list[1], list[2]};
  Checked checked(*d, device, first);
  for (const auto& [name, list] : inputs.fields)
    for (size_t n = 0; n < list.size(); ++n)
      checked.check(list[n], checked.field_number(name), fmt::format("field {} at level {}", name, n));
  KernelForm form = checked.form();
  const auto volume = [&](int field, int64_t level) {
    return checked.as_volume(inputs.fields.at(plan.fields[size_t(field)].name)[size_t(level)], field);
  };

  std::vector<int> wanted;
  if (options.gradients != Gradients::none)
    for (int f = 0; f < int(plan.fields.size()); ++f) {
      const FieldInfo& info = plan.fields[size_t(f)];
      const bool asked = options.wanted.empty() || std::find(options.wanted.begin(), options.wanted.end(),
                                                             info.name) != options.wanted.end();
      if (asked && (info.used[0] || info.used[1] || info.used[2])) wanted.push_back(f);
    }
  const Type sum = device.info().limits.f64 ? Type::f64 : Type::f32;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                residuals = int64_t(plan.residuals.size());
  const double count = double(d->mesh.count()), norm = count / (2 * inputs.seed);
  auto bound = std::make_shared<BoundLoss::State>();
  bound->d = d;
  bound->device = device;
  for (int64_t n = 0; n < levels; ++n)
    for (int f : wanted) {
      bound->outputs.push_back({f, int(n)});
      bound->gradients.push_back(like(device, inputs.fields.at(plan.fields[size_t(f)].name)[size_t(n)]));
    }
  for (const auto& [name, list] : inputs.fields)
    for (const Buffer& b : list) bound->bytes += double(b.bytes());
  for (const Buffer& g : bound->gradients) bound->bytes += double(g.bytes());

  const Storage sum_storage = sum == Type::f64 ? Storage::f64 : Storage::f32;
  bound->totals = device.allocate(sum_storage, {levels - 2, residuals});
  for (int64_t n = 1; n < levels - 1; ++n)
    for (double w : plan.weights) bound->total_scale.push_back(w == 0 ? 0 : norm * norm / (w * count));
  std::vector<FieldLevel> spatial;
  for (int f : wanted) spatial.push_back({f, 0});
  // Narrow storage would round a gradient once more between the kernels.
  const bool sweeps = form.storage == form.scratch() && all_swept(plan, wanted) && !wanted.empty();
  if (options.path == Path::fused && !sweeps)
    throw UnsupportedError("the fused path: a trajectory of this kind", "pde options", "the two-kernel path");
  if (sweeps && choose_path(*d, device, form, spatial, options) == Path::fused) {
    bound->path = Path::fused;
    bind_sweeps(*bound, *state_, {inputs, checked, form, levels, wanted, sum, count}, options);
    return BoundLoss(bound);
  }

  const int64_t slab = choose_slab(*d, device, form, options.slab), reach = d->reach[2];
  const bool whole = form.whole = slab >= nz;
  const int64_t ring = whole ? nz : slab + 2 * reach, shift = whole ? nz : reach,
                chunks = (nx * ny + kReduceChunk - 1) / kReduceChunk;
  const Kernel& residual = state_->kernel(form_key("cotangent", form),
                                          [&] { return residual_kernel(d, form, ResidualKind::cotangent); });
  const Kernel& partial = state_->kernel(fmt::format("{} {}", form_key("partial", form), int(sum)),
                                         [&] { return partial_kernel(form, sum); });
  const Kernel& total = state_->kernel(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  KernelForm back_form = form;
  back_form.mask = false;
  back_form.streaming = bound->bytes > double(32 << 20);
  std::string key = form_key("trajectory", back_form);
  for (int f : wanted) key += fmt::format(" {}", f);

  Buffer cotangents[3];
  for (Buffer& c : cotangents) c = device.allocate(form.scratch(), {residuals, ring, ny, nx});
  const Buffer nothing = device.allocate(form.scratch(), {residuals, ring, ny, nx});
  device.clear(nothing);
  std::vector<Buffer> sums;
  for (int64_t n = 1; n < levels - 1; ++n)
    sums.push_back(device.allocate(sum_storage, {residuals, nz, chunks}));

  std::vector<Argument> scalars;
  push_scalars(scalars, *d, checked.parameters());
  const auto append_place = [&](std::vector<Argument>& list, int64_t z_first) {
    list.insert(list.end(), {Argument(z_first), Argument(ring), Argument(shift), Argument(nz)});
    list.insert(list.end(), scalars.begin(), scalars.end());
  };
  const auto launch_residual = [&](int64_t n, int64_t from, int64_t to) {
    const int64_t low = whole ? 0 : d->wraps[2] ? from - reach : std::max<int64_t>(from - reach, 0);
    const int64_t high = whole ? nz : d->wraps[2] ? to + reach : std::min(to + reach, nz);
    std::vector<Argument> list;
    for (const FieldLevel& f : fields_of(plan, plan.residuals, Access::field))
      list.push_back(volume(f.field_index, n + f.level));
    if (form.mask) list.push_back(checked.mask());
    list.push_back(cotangents[n % 3]);
    append_place(list, low);
    for (double w : plan.weights) list.push_back(2 * w / count * inputs.seed);
    bound->launches.push_back({residual, {high - low, ny, nx}, std::move(list)});
    std::vector<Argument> reduce{cotangents[n % 3].reshape({residuals, ring, ny * nx})};
    if (form.mask) reduce.push_back(checked.mask().reshape({nz, ny * nx}));
    reduce.insert(reduce.end(),
                  {Argument(sums[size_t(n - 1)]), Argument(from), Argument(ring), Argument(shift)});
    bound->launches.push_back({partial, {residuals, to - from, chunks}, std::move(reduce)});
  };
  const auto launch_adjoint = [&](int64_t n, int64_t from, int64_t to) {
    if (wanted.empty()) return;
    const Kernel& kernel = state_->kernel(key, [&] { return trajectory_kernel(d, back_form, wanted); });
    std::vector<Argument> list;
    std::vector<FieldLevel> outputs;
    for (int f : wanted) outputs.push_back({f, 0});
    for (const FieldLevel& f : adjoint_fields(plan, outputs)) list.push_back(volume(f.field_index, n));
    for (int64_t k = n - 1; k <= n + 1; ++k)
      list.push_back(k >= 1 && k <= levels - 2 ? cotangents[k % 3] : nothing);
    for (size_t k = 0; k < wanted.size(); ++k)
      list.push_back(checked.as_volume(bound->gradients[size_t(n) * wanted.size() + k], wanted[k]));
    append_place(list, from);
    bound->launches.push_back({kernel, {to - from, ny, nx}, std::move(list)});
  };
  for (int64_t from = 0; from < nz; from += slab) {
    const int64_t to = std::min(from + slab, nz);
    for (int64_t n = 0; n < levels; ++n) {
      if (n + 1 <= levels - 2) launch_residual(n + 1, from, to);
      launch_adjoint(n, from, to);
    }
  }
  for (int64_t n = 0; n < levels - 2; ++n)
    bound->totals_launches.push_back(
        {total,
         {residuals},
         {sums[size_t(n)].reshape({residuals, nz * chunks}), bound->totals.rows(n, 1).reshape({residuals})}});
  return BoundLoss(bound);
}

}  // namespace lockstep::pde
