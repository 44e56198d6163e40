// T time levels in one run: sweeps over several levels each, or slabs of planes that pass through all levels
// while their cotangents stay in the cache.
#include <algorithm>
#include <cmath>

#include "device/variants/memory.hpp"
#include "pde/fused/levels.hpp"
#include "pde/kernels/two_kernels.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

namespace {

/// Which level relative to its own a residual before, at or after a level sees that level as.
constexpr int kSeenAs[] = {1, 0, -1};
constexpr const char* kSeenBy[] = {"before", "here", "after"};

/// Gradient of a component at a level: its own residual's part, then what the one before and the one after give.
AnyVal level_gradient(const Plan& plan, Type type, int field, int component, const SeenBy& seen,
                      std::array<std::optional<Tracer>, 3>& tracers) {
  const bool is[] = {seen.before, seen.here, seen.after};
  AnyVal sum = seen.here ? AnyVal() : AnyVal::number(type, 0);
  for (size_t which : {1, 0, 2}) {
    if (!is[which]) continue;
    for (const Target* t : targets_of(plan, {field, kSeenAs[which]})) {
      if (t->component != component) continue;
      Tracer& tracer = *tracers[which];
      const AnyVal part = which == 1 ? tracer.gradient(*t) : t->point ? tracer.value(*t->point) : AnyVal();
      if (!part.empty()) sum = sum.empty() ? part : sum + part;
    }
  }
  return sum.empty() ? AnyVal::number(type, 0) : sum;
}

}  // namespace

Kernel trajectory_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                         std::vector<int> fields, SeenBy seen) {
  const std::string name =
      fmt::format("pde.trajectory.{}.{}{}{}{}", variant(*d, form), fields.size(), seen.before ? "" : ".first",
                  seen.here ? "" : ".aside", seen.after ? "" : ".last");
  return kernel(name, [&](At<3> at, Parameters& p) {
    const Plan& plan = *d->plan;
    std::vector<FieldLevel> outputs;
    for (int f : fields) outputs.push_back({f, 0});
    const FieldArrays arrays(p, plan, seen.here ? adjoint_fields(plan, outputs) : std::vector<FieldLevel>(),
                             form, kField);
    const bool is[] = {seen.before, seen.here, seen.after};
    std::array<std::optional<AnyGrid>, 3> cotangents;
    for (size_t which = 0; which < 3; ++which)
      if (is[which]) cotangents[which] = p.read(kSeenBy[which], form.scratch(), 4);
    const FieldArrays gradients(p, plan, outputs, form, kGradient);
    const SlabPlace place(p, at, *d, form);
    const Tracer::Scalars scalars(p, *d, form.type());
    std::array<std::optional<Tracer>, 3> tracers;
    for (size_t which = 0; which < 3; ++which)
      tracers[which].emplace(*d, form.type(), scalars, place.own, place.size, [&, which](const Datum& x) {
        Tracer& t = *tracers[which];
        if (x.kind == Access::cotangent)
          return cotangents[which]->load(
              {x.component, place.slot_at(t, x.at[2]), t.coordinate(1, x.at[1]), t.coordinate(0, x.at[0])});
        return arrays.load({x.field_index, x.level}, x.component, t.neighbour(x.at), place.member, place.nz);
      });
    for (int field : fields)
      for (int c = 0; c < plan.fields[size_t(field)].components; ++c)
        gradients.store({field, 0}, c, place.own, place.member, place.nz,
                        level_gradient(plan, form.type(), field, c, seen, tracers), form.streaming);
  });
}

namespace {

bool has_values_in_time(const TrajectoryInputs& inputs) {
  return !inputs.parameters_in_time.empty() || !inputs.profiles_in_time.empty();
}

/// Inputs that passed their checks.
struct Trajectory {
  const TrajectoryInputs& inputs;
  const Checked& checked;
  KernelForm form;
  int64_t levels;
  std::vector<int> wanted;
  Type sum;
  double count;

  LevelsProblem problem(const std::shared_ptr<const Discretisation>& d) const {
    return {d, form, wanted, levels, checked.members()};
  }
  /// A field at a level, or all fields of the level where the inputs are rows.
  const Buffer& given(const Plan& plan, int field, int64_t level) const {
    return form.rows ? inputs.rows[size_t(level)]
                     : inputs.fields.at(plan.fields[size_t(field)].name)[size_t(level)];
  }
  Buffer volume(const Plan& plan, int field, int64_t level) const {
    return checked.as_volume(given(plan, field, level), field);
  }
  /// The mask and the numbers of a plan, with what sides have at level `n`.
  Arguments common(const Discretisation& d, int64_t n) const {
    const auto number = [](const std::vector<std::string>& list, const std::string& name) {
      return size_t(std::find(list.begin(), list.end(), name) - list.begin());
    };
    std::vector<double> parameters = checked.parameters(), seeds;
    for (const auto& [name, values] : inputs.parameters_in_time)
      parameters[number(d.plan->parameters, name)] = values[size_t(n)];
    std::vector<Buffer> profiles = checked.profiles();
    for (const auto& [name, values] : inputs.profiles_in_time) {
      const size_t k = number(d.plan->profiles, name);
      profiles[k] = checked.checked_profile(values[size_t(n)], int(k));
    }
    for (double w : d.plan->weights) seeds.push_back(2 * w / count * inputs.seed);
    Arguments a;
    if (form.mask) a.set("mask", checked.mask());
    checked.set_profiles(a, profiles);
    set_numbers(a, d, parameters, seeds);
    return a;
  }
  /// Fields or gradients, whose level 0 is level `at` of the trajectory.
  void set_fields(Arguments& a, const Plan& plan, const std::vector<FieldLevel>& list, int64_t at) const {
    for (const FieldLevel& f : checked.arrays(list))
      a.set(array_name(kField, plan, f), volume(plan, f.field_index, at + f.level));
  }
  void set_gradients(Arguments& a, const BoundLoss::State& bound, const Plan& plan,
                     const std::vector<FieldLevel>& list, int64_t at) const {
    for (const FieldLevel& f : checked.arrays(list))
      a.set(array_name(kGradient, plan, f),
            checked.as_volume(bound.gradient_of(f.field_index, at + f.level), f.field_index));
  }
};

/// Sweeps over several levels each. What a part of the levels cannot finish, it carries to the next one.
void bind_sweeps(BoundLoss::State& bound, Loss::State& loss, const Trajectory& t,
                 const std::vector<Sweep>& sweeps) {
  const std::shared_ptr<const Discretisation> whole = bound.d;
  const Plan& plan = *whole->plan;
  const Device& device = bound.device;
  const int64_t nx = whole->mesh.cells[0], ny = whole->mesh.cells[1], nz = whole->mesh.cells[2],
                residuals = int64_t(plan.residuals.size()), members = t.checked.members();
  KernelForm form = t.form;
  form.streaming = past_caches(device, bound.bytes);
  Buffer carried[2];
  for (size_t number = 0; number < sweeps.size(); ++number) {
    const auto& [first, levels, key, d, outputs, planned] = sweeps[number];
    FusedShape shape = planned;
    const std::vector<FieldLevel> read = fields_of(*d->plan, d->plan->residuals, Access::field);
    for (const FieldLevel& f : t.checked.arrays(read))
      if (t.given(plan, f.field_index, first + f.level).offset() % shape.wide != 0) shape.wide = 1;
    Arguments a = t.common(*d, first);
    t.set_fields(a, plan, read, first);
    t.set_gradients(a, bound, plan, outputs, first);
    const Carry& carry = d->plan->carry;
    if (carry.writes && !carried[number % 2])
      carried[number % 2] = device.allocate(form.scratch(), {members * carry.rows(), nz, ny, nx});
    if (carry.reads) a.set("carried_in", carried[(number + 1) % 2]);
    if (carry.writes) a.set("carried_out", carried[number % 2]);
    const Buffer totals = bound.totals.rows(first - 1, levels).reshape({levels * residuals});
    FusedLaunches launches =
        fused_launches(d, device, form, outputs, shape, t.sum, a, totals, members, nullptr,
                       [&loss, part = key](const std::string& k, const std::function<Kernel()>& make) {
                         return loss.kernels.get(k.starts_with("total") ? k : part + k, make);
                       });
    bound.launches.push_back(std::move(launches.sweep));
    bound.totals_launches.push_back(std::move(launches.total));
  }
}

}  // namespace

namespace {

/// Slabs of planes pass through all levels while their cotangents stay in the cache.
void bind_slabs(BoundLoss::State& bound, Loss::State& loss, const Trajectory& t, const LossOptions& options) {
  const std::shared_ptr<const Discretisation> d = bound.d;
  const Plan& plan = *d->plan;
  const Device& device = bound.device;
  KernelForm form = t.form;
  const int64_t nx = d->mesh.cells[0], ny = d->mesh.cells[1], nz = d->mesh.cells[2],
                residuals = int64_t(plan.residuals.size()), members = t.checked.members();
  const Slabs slabs(*d, members, choose_slab(*d, device, form, options.slab));
  const int64_t slab = slabs.slab, reach = d->reach[2], held = slabs.held, ring = slabs.ring,
                shift = slabs.shift, chunks = slabs.sums[2];
  const bool whole = form.whole = slabs.whole;
  const Kernel residual = loss.kernels.get(form_key("cotangent", form),
                                           [&] { return residual_kernel(d, form, ResidualKind::cotangent); });
  const Kernel partial =
      loss.kernels.get(fmt::format("partial {} {} {}", int(form.storage), form.mask, int(t.sum)),
                       [&] { return partial_kernel(form, t.sum); });
  const Kernel total =
      loss.kernels.get(fmt::format("total {}", int(t.sum)), [&] { return total_kernel(t.sum); });
  KernelForm back_form = form;
  back_form.mask = false;
  back_form.streaming = past_caches(device, bound.bytes);
  std::string key = form_key("trajectory", back_form);
  for (int f : t.wanted) key += fmt::format(" {}", f);

  Buffer cotangents[3];
  for (Buffer& c : cotangents) c = device.allocate(form.scratch(), slabs.cotangents);
  std::vector<Buffer> sums;
  for (int64_t n = 1; n < t.levels - 1; ++n)
    sums.push_back(device.allocate(bound.totals.storage(), slabs.sums));

  const auto launch_residual = [&](int64_t member, int64_t n, int64_t from, int64_t to) {
    const int64_t least = d->wraps[2] && !whole ? -reach : 0, most = nz - least;
    const int64_t low = std::max(from - reach, least), high = std::min(to + reach, most);
    Arguments a = t.common(*d, n);
    t.set_fields(a, plan, fields_of(plan, plan.residuals, Access::field), n);
    a.set("result", cotangents[n % 3]);
    set_slab(a, nz, {low, high - low, ring, shift, member});
    bound.launches.push_back({residual, {held * (high - low), ny, nx}, a.bind_known(residual)});
    Arguments sum;
    sum.set("cotangents", cotangents[n % 3].reshape({residuals, held * ring, ny * nx}));
    if (form.mask)
      sum.set("mask", t.checked.mask().reshape({members * nz, ny * nx}).rows(member * nz, held * nz));
    sum.set("partial", sums[size_t(n - 1)].window({0, member * nz, 0}, {residuals, held * nz, chunks}));
    sum.set("z_first", from).set("ring", held * ring).set("shift", whole ? held * nz : shift);
    bound.launches.push_back({partial, {residuals, held * (to - from), chunks}, sum.bind(partial)});
  };
  const auto launch_adjoint = [&](int64_t member, int64_t n, int64_t from, int64_t to) {
    if (t.wanted.empty()) return;
    const auto has_residual = [&](int64_t k) { return k >= 1 && k <= t.levels - 2; };
    const SeenBy seen{has_residual(n - 1), has_residual(n), has_residual(n + 1)};
    const Kernel kernel =
        loss.kernels.get(fmt::format("{} {} {} {}", key, seen.before, seen.here, seen.after),
                         [&] { return trajectory_kernel(d, back_form, t.wanted, seen); });
    std::vector<FieldLevel> outputs;
    for (int f : t.wanted) outputs.push_back({f, 0});
    Arguments a = t.common(*d, n);
    if (seen.here) t.set_fields(a, plan, adjoint_fields(plan, outputs), n);
    for (int64_t k = n - 1; k <= n + 1; ++k)
      if (has_residual(k)) a.set(kSeenBy[k - n + 1], cotangents[k % 3]);
    t.set_gradients(a, bound, plan, outputs, n);
    set_slab(a, nz, {from, to - from, ring, shift, member, reach});
    bound.launches.push_back({kernel, {held * (to - from), ny, nx}, a.bind_known(kernel)});
  };
  const int64_t own_end = loss.end_plane();
  for (int64_t member = 0; member < members; member += held)
    for (int64_t from = loss.first_plane(); from < own_end; from += slab) {
      const int64_t to = std::min(from + slab, own_end);
      for (int64_t n = 0; n < t.levels; ++n) {
        if (n + 1 <= t.levels - 2) launch_residual(member, n + 1, from, to);
        launch_adjoint(member, n, from, to);
      }
    }
  for (int64_t n = 0; n < t.levels - 2; ++n)
    bind_total(bound, loss, total, sums[size_t(n)], bound.totals.rows(n, 1).reshape({residuals}));
}

/// The first three levels, which stand for all in the checks of names, parameters, mask and type.
Inputs first_levels(const TrajectoryInputs& inputs, int64_t& levels) {
  levels = inputs.rows.empty() ? -1 : int64_t(inputs.rows.size());
  for (const auto& [name, list] : inputs.fields) {
    if (levels < 0) levels = int64_t(list.size());
    if (int64_t(list.size()) != levels)
      throw InputError(fmt::format("field {} has {} levels", name, list.size()), "pde trajectory",
                       fmt::format("{} as the other fields", levels));
  }
  if (levels < 3)
    throw InputError(fmt::format("{} levels", std::max<int64_t>(levels, 0)), "pde trajectory", "3 or more");
  Inputs first;
  first.parameters = inputs.parameters;
  first.mask = inputs.mask;
  first.seed = inputs.seed;
  first.members = inputs.members;
  for (const auto& [name, list] : inputs.fields) first.fields[name] = {list[0], list[1], list[2]};
  for (size_t l = 0; l < 3 && !inputs.rows.empty(); ++l) first.rows[l] = inputs.rows[l];
  first.profiles = inputs.profiles;
  const auto take = [&](const auto& in_time, auto& of_first) {
    for (const auto& [name, list] : in_time) {
      if (int64_t(list.size()) != levels)
        throw InputError(fmt::format("{} with {} values in time", name, list.size()), "pde trajectory",
                         fmt::format("{}, one for each level", levels));
      if (!of_first.emplace(name, list[0]).second)
        throw InputError(fmt::format("{} both for all levels and for each level", name), "pde trajectory",
                         "one or the other");
    }
  };
  take(inputs.parameters_in_time, first.parameters);
  take(inputs.profiles_in_time, first.profiles);
  return first;
}

void check_values_in_time(const Plan& plan, const TrajectoryInputs& inputs, const LossOptions& options) {
  for (const auto& [name, values] : inputs.parameters_in_time) {
    for (uint32_t leaf : autodiff::leaves_of(plan.residuals)) {
      const Access& a = plan.accesses[leaf];
      if (a.kind == Access::parameter && plan.parameters[size_t(a.number)] == name)
        throw InputError(fmt::format("parameter {} of a residual with values in time", name),
                         "pde trajectory", "a parameter that only sides name");
    }
    for (const double value : values)
      if (!std::isfinite(value))
        throw InputError(fmt::format("parameter {} is {}", name, value), "pde trajectory", "finite numbers");
  }
  if (has_values_in_time(inputs) && options.path != Path::automatic && options.path != Path::two_kernel)
    throw UnsupportedError(fmt::format("the {} path: sides with values in time", name(options.path)),
                           "pde options", "the two-kernel path");
}

void refuse_nonlinear_levels(const Plan& plan) {
  for (const Target& t : plan.targets) {
    if (t.level == 0) continue;
    bool simple = t.terms.empty();
    if (t.point)
      for (uint32_t leaf : autodiff::leaves_of(std::span(&*t.point, 1)))
        simple &= plan.accesses[leaf].kind != Access::field;
    if (!simple)
      throw UnsupportedError(fmt::format("field {} at level {:+} is used outside of a time difference",
                                         plan.fields[size_t(t.field_index)].name, t.level),
                             "pde trajectory", "residuals linear in the levels before and after");
  }
}

bool by_sweeps(const LevelsProblem& p, const Device& device, const LossOptions& options,
               const PartStore& parts) {
  const Discretisation& d = *p.d;
  const KernelForm& form = p.form;
  std::vector<FieldLevel> outputs;
  for (int f : p.fields) outputs.push_back({f, 0});
  if (options.path != Path::automatic)
    return choose_path(d, device, form, outputs, p.members, options) == Path::fused;
  const variants::Axis cells{"cells", double(d.mesh.count())};
  const variants::Problem problem{form.storage == Storage::f64 ? "f64" : "f32", {&cells, 1}};
  const auto applies = [&](int variant) -> std::string {
    if (variant == 0) return "";
    return outputs.empty() ? "a trajectory without gradients" : fused_refusal(d, device, form);
  };
  const auto scratch = [&](int variant) {
    return variant == 0 ? slabs_scratch(p, device, options)
                        : sweeps_scratch(p, device, plan_sweeps(p, device, options, parts));
  };
  return variants::choose(trajectory_computation(), device, problem, {},
                          variants::with_memory(trajectory_computation(), device, applies, scratch))
             .variant == 1;
}

}  // namespace

const variants::Computation& trajectory_computation() {
  static const variants::Computation computation({.name = "pde.trajectory",
                                                  .variants = {"slabs", "sweeps"},
                                                  .axes = {"cells"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

BoundLoss Loss::bind_trajectory(const Device& device, const TrajectoryInputs& inputs,
                                const LossOptions& options) const {
  const std::shared_ptr<const Discretisation> d = state_->d;
  const Plan& plan = *d->plan;
  refuse_nonlinear_levels(plan);
  int64_t levels = 0;
  const Inputs first = first_levels(inputs, levels);
  check_values_in_time(plan, inputs, options);
  Checked checked(*d, device, first);
  for (const auto& [name, list] : inputs.fields)
    for (size_t n = 0; n < list.size(); ++n)
      checked.check(list[n], checked.field_number(name), fmt::format("field {} at level {}", name, n));
  for (size_t n = 0; n < inputs.rows.size(); ++n)
    checked.check_rows(inputs.rows[n], fmt::format("rows at level {}", n));
  if (checked.form().rows && !options.wanted.empty())
    throw InputError("gradients of some fields", "pde options", "of all fields where the inputs are rows");

  Trajectory t{inputs, checked, checked.form(), levels, {}, Type::f32, 0};
  if (options.gradients != Gradients::none)
    for (int f = 0; f < int(plan.fields.size()); ++f) {
      const FieldInfo& info = plan.fields[size_t(f)];
      const bool asked = options.wanted.empty() || std::find(options.wanted.begin(), options.wanted.end(),
                                                             info.name) != options.wanted.end();
      if (asked && (info.used[0] || info.used[1] || info.used[2])) t.wanted.push_back(f);
    }
  if (device.info().limits.f64) t.sum = Type::f64;
  t.count = double(state_->whole().mesh.count()) * double(checked.members());
  const int64_t residuals = int64_t(plan.residuals.size());
  const double norm = t.count / (2 * inputs.seed);
  auto bound = std::make_shared<BoundLoss::State>();
  bound->loss = state_;
  bound->fixed = true;
  bound->d = d;
  bound->device = device;
  bound->rows = t.form.rows;
  for (int64_t n = 0; n < levels; ++n) {
    for (int f : t.wanted) {
      bound->outputs.push_back({f, int(n)});
      if (!t.form.rows) bound->gradients.push_back(like(device, t.given(plan, f, n)));
    }
    if (t.form.rows && !t.wanted.empty()) bound->gradients.push_back(like(device, inputs.rows[size_t(n)]));
  }
  // Parts that no residual reaches stay 0: columns of rows, levels at the ends.
  for (const Buffer& g : bound->gradients) device.clear(g);
  for (const auto& [name, list] : inputs.fields)
    for (const Buffer& b : list) bound->bytes += double(b.bytes());
  for (const Buffer& b : inputs.rows) bound->bytes += double(b.bytes());
  for (const Buffer& g : bound->gradients) bound->bytes += double(g.bytes());

  bound->totals = device.allocate(t.sum == Type::f64 ? Storage::f64 : Storage::f32, {levels - 2, residuals});
  for (int64_t n = 1; n < levels - 1; ++n)
    for (double w : plan.weights) bound->total_scale.push_back(w == 0 ? 0 : norm * norm / (w * t.count));
  if (options.path == Path::fused && (t.wanted.empty() || state_->part))
    throw UnsupportedError(
        fmt::format("the fused path: a trajectory {}", state_->part ? "over ranks" : "without gradients"),
        "pde options", "the two-kernel path");
  const LevelsProblem problem = t.problem(d);
  const PartStore parts = [&](const std::string& key, const auto& make) {
    return state_->parts.get(key, make);
  };
  if (!has_values_in_time(inputs) && !state_->part && by_sweeps(problem, device, options, parts)) {
    bound->path = Path::fused;
    bind_sweeps(*bound, *state_, t, plan_sweeps(problem, device, options, parts));
  } else {
    bind_slabs(*bound, *state_, t, options);
  }
  return BoundLoss(bound);
}

}  // namespace lockstep::pde
