#include "pde/fused/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lockstep/error.hpp"
#include "pde/kernels/two_kernels.hpp"

namespace lockstep::pde {

namespace {

/// Expressions of one level in the part's graph. Each level has leaves of its own, even where two levels see
/// one array, and all its nodes are made in the plan's order: so operands keep their order, by which products
/// are fused, and the bits are those of the plan.
class LevelCopy {
 public:
  using Change = std::function<Access(Access)>;
  LevelCopy(const Plan& from, const std::vector<Value>& values, Plan& to, const Change& change) {
    copies_.resize(from.graph->size());
    for (uint32_t id : autodiff::reachable(values)) {
      const autodiff::Node& node = from.graph->node(id);
      if (node.op == autodiff::Op::constant) {
        copies_[id] = to.graph->constant(std::bit_cast<double>(node.imm));
      } else if (node.op == autodiff::Op::leaf) {
        const uint32_t leaf = uint32_t(node.imm);
        to.accesses.push_back(change(from.accesses[leaf]));
        copies_[id] = to.graph->leaf(from.graph->leaf_name(leaf), from.graph->leaf_class(leaf));
      } else {
        std::vector<Value> operands;
        for (uint32_t a : node.args) operands.push_back(copies_[a]);
        copies_[id] = to.graph->make(node.op, operands, int64_t(node.imm));
      }
    }
  }
  Value operator()(const Value& v) const { return copies_[v.id()]; }

 private:
  std::vector<Value> copies_;
};

const Target* target_of(const Plan& plan, int field, int component, int level) {
  for (const Target& t : plan.targets)
    if (t.field_index == field && t.component == component && t.level == level) return &t;
  return nullptr;
}
/// Gradient of a field from the residual one level before (+1) or after (-1).
const Value* beside(const Plan& plan, int field, int component, int level) {
  const Target* t = target_of(plan, field, component, level);
  return t && t->point ? &*t->point : nullptr;
}

/// The carry between sweeps: gradients of the last level but one, and the cotangents of the last.
Carry carry_of(const Plan& plan, const TrajectoryPart& part, const std::vector<int>& fields) {
  Carry carry;
  for (int f : fields)
    for (int c = 0; c < plan.fields[size_t(f)].components; ++c) {
      if (beside(plan, f, c, -1)) carry.gradients.push_back({f, c});
      if (const Value* v = beside(plan, f, c, 1))
        for (uint32_t leaf : autodiff::leaves_of(std::span(v, 1)))
          if (plan.accesses[leaf].kind == Access::cotangent)
            carry.cotangents.push_back(plan.accesses[leaf].number);
    }
  std::sort(carry.cotangents.begin(), carry.cotangents.end());
  carry.cotangents.erase(std::unique(carry.cotangents.begin(), carry.cotangents.end()),
                         carry.cotangents.end());
  carry.reads = !part.first && carry.rows() > 0;
  carry.writes = !part.last && carry.rows() > 0;
  carry.level = part.levels - 1;
  carry.residual = int(plan.residuals.size()) * carry.level;
  return carry;
}

/// The level in front of the part: what the sweep before left, and what the first residual gives.
Target target_before(Plan& p, const LevelCopy& first_level, int field, int component, const Value* after) {
  Target t{field, component, -1, {}, {}, {}};
  if (!after) return t;
  if (p.carry.reads) {
    Access row;
    row.kind = Access::carried;
    row.number = p.carry.row_of(field, component);
    p.accesses.push_back(row);
    t.point = p.graph->variable(fmt::format("carried{}", row.number));
  }
  t.after.push_back(first_level(*after));
  return t;
}

}  // namespace

std::shared_ptr<const Plan> part_plan(const Plan& plan, const TrajectoryPart& part,
                                      const std::vector<int>& fields) {
  auto result = std::make_shared<Plan>();
  Plan& p = *result;
  p.dimensions = plan.dimensions;
  p.fields = plan.fields;
  p.parameters = plan.parameters;
  p.profiles = plan.profiles;
  p.terms = plan.terms;
  p.last_level = part.levels;
  p.graph = std::make_shared<autodiff::Tape>();
  const int residuals = int(plan.residuals.size());

  std::vector<Value> values = plan.residuals, given_on;
  for (int f : fields)
    for (const Target& t : plan.targets) {
      if (t.field_index != f) continue;
      if (t.point) values.push_back(*t.point);
      for (const Term& term : t.terms) values.push_back(term.g);
      if (t.point && t.level == 1) given_on.push_back(*t.point);
    }
  std::vector<LevelCopy> copies;
  for (int n = 0; n < part.levels; ++n) {
    copies.emplace_back(plan, values, p, [n, residuals](Access a) {
      if (a.kind == Access::field) a.level += n;
      if (a.kind == Access::cotangent) a.number += n * residuals;
      return a;
    });
    for (int k = 0; k < residuals; ++k) {
      p.residuals.push_back(copies.back()(plan.residuals[size_t(k)]));
      p.weights.push_back(plan.weights[size_t(k)]);
      p.term_of.push_back(plan.term_of[size_t(k)]);
    }
  }

  p.carry = carry_of(plan, part, fields);
  const Carry& carry = p.carry;
  const auto row_of = [&](int number) {
    const auto at = std::find(carry.cotangents.begin(), carry.cotangents.end(), number);
    return int(carry.gradients.size()) + int(at - carry.cotangents.begin());
  };
  const LevelCopy carried(plan, given_on, p, [&](Access a) {
    if (a.kind != Access::cotangent) return a;
    Access row;
    row.kind = Access::carried;
    row.number = row_of(a.number);
    return row;
  });

  const auto add = [&](Target t) {
    if (t.point || !t.terms.empty() || !t.after.empty()) p.targets.push_back(std::move(t));
  };
  for (int f : fields)
    for (int c = 0; c < plan.fields[size_t(f)].components; ++c) {
      const Value *before = beside(plan, f, c, 1), *after = beside(plan, f, c, -1);
      add(target_before(p, copies[0], f, c, after));
      for (int n = 0; n < part.levels; ++n) {
        Target t{f, c, n, {}, {}, {}};
        if (const Target* own = target_of(plan, f, c, 0)) {
          if (own->point) t.point = copies[size_t(n)](*own->point);
          for (const Term& term : own->terms)
            t.terms.push_back({term.stencil, term.axis, copies[size_t(n)](term.g)});
        }
        if (before && n > 0) t.after.push_back(copies[size_t(n - 1)](*before));
        if (before && n == 0 && carry.reads) t.after.push_back(carried(*before));
        if (after && n + 1 < part.levels) t.after.push_back(copies[size_t(n + 1)](*after));
        add(std::move(t));
      }
      Target last{f, c, part.levels, {}, {}, {}};
      if (before && part.last) last.after.push_back(copies.back()(*before));
      add(std::move(last));
    }
  return result;
}

std::vector<FieldLevel> part_outputs(const Plan& part) {
  std::vector<FieldLevel> list;
  for (const Target& t : part.targets) {
    const FieldLevel f{t.field_index, t.level};
    if (part.carry.row_left(t) < 0 && std::find(list.begin(), list.end(), f) == list.end()) list.push_back(f);
  }
  std::sort(list.begin(), list.end(), [](const FieldLevel& a, const FieldLevel& b) {
    return std::pair(a.field_index, a.level) < std::pair(b.field_index, b.level);
  });
  return list;
}

namespace {

/// By the variants of pde.trajectory.sweep: levels of a sweep and its tile.
struct LevelTile {
  int levels, x, y, rows;
};
constexpr LevelTile kLevelTiles[] = {
    {1, 16, 8, 1},  // small
    {1, 32, 8, 1},  // one
    {2, 32, 8, 1},  // two
    {3, 32, 8, 1},  // three
    {4, 32, 8, 1},  // four
    {5, 32, 8, 1},  // five
    {2, 64, 4, 2}   // two_broad: branches of edges take registers
};

}  // namespace

const variants::Computation& sweep_computation() {
  static const variants::Computation computation(
      {.name = "pde.trajectory.sweep",
       .variants = {"small", "one", "two", "three", "four", "five", "two_broad"},
       .axes = {"cells"},
       .exact = variants::Agreement::bound});
  return computation;
}

LevelShape choose_levels(const Discretisation& whole, const Device& device, const KernelForm& form,
                         const std::vector<int>& fields, int64_t residual_levels, const LossOptions& asked) {
  const auto& limits = device.info().limits;
  const auto shape_of = [&](int number) {
    const LevelTile& sweep = kLevelTiles[number];
    LevelShape chosen{asked.levels > 0 ? asked.levels : sweep.levels, asked};
    chosen.levels = int(std::min<int64_t>(chosen.levels, residual_levels));
    LossOptions& o = chosen.options;
    o.tile.clear();
    if (o.tile_x == 0) o.tile_x = sweep.x;
    if (o.tile_y == 0) o.tile_y = sweep.y;
    if (o.tile_rows == 0) o.tile_rows = sweep.rows;
    if (o.groups == 0) o.groups = 1;
    return chosen;
  };
  const auto fits = [&](const LevelShape& chosen) {
    const LossOptions& o = chosen.options;
    const auto part = part_plan(*whole.plan, {chosen.levels, false, false}, fields);
    const Discretisation d(part, whole.mesh);
    FusedShape shape{o.tile_x, o.tile_y, o.tile_rows, 1, 16 / size_of(form.scratch()), 1, 1};
    if (form.storage != form.scratch() || form.rows || whole.mesh.cells[0] % shape.wide != 0) shape.wide = 1;
    return FusedLayout(d, shape, Channels(*part)).bytes(size_of(form.scratch())) <= limits.shared_bytes &&
           shape.lanes() <= limits.group_lanes;
  };
  const bool edges = !whole.wraps[0] || !whole.wraps[1] || !whole.wraps[2];
  const variants::Axis cells{"cells", double(whole.mesh.count())};
  const variants::Choice choice = variants::choose(
      sweep_computation(), device, {edges ? "edges" : "periodic", {&cells, 1}}, asked.tile,
      [&](int number) { return std::string(fits(shape_of(number)) ? "" : "too little shared memory"); });
  if (choice.refused.size() < std::size(kLevelTiles)) return shape_of(choice.variant);
  throw UnsupportedError(
      fmt::format("a sweep of {} levels: too little shared memory", std::max(asked.levels, 1)), "pde options",
      "fewer levels, a smaller tile, or the two-kernel path");
}

std::vector<Sweep> plan_sweeps(const LevelsProblem& p, const Device& device, const LossOptions& options,
                               const PartStore& store) {
  const LevelShape chosen = choose_levels(*p.d, device, p.form, p.fields, p.levels - 2, options);
  std::string fields_key;
  for (int f : p.fields) fields_key += fmt::format(" {}", f);
  std::vector<Sweep> sweeps;
  for (int64_t first = 1; first < p.levels - 1; first += chosen.levels) {
    TrajectoryPart part;
    part.levels = int(std::min<int64_t>(chosen.levels, p.levels - 1 - first));
    part.first = first == 1;
    part.last = first + part.levels == p.levels - 1;
    Sweep s{first, part.levels, {}, {}, {}, {}};
    s.key = fmt::format("part {} {} {}{} ", part.levels, part.first, part.last, fields_key);
    s.d = store(s.key, [&] {
      return std::make_shared<const Discretisation>(part_plan(*p.d->plan, part, p.fields), p.d->mesh);
    });
    s.outputs = part_outputs(*s.d->plan);
    s.shape = choose_shape(*s.d, device, p.form, s.outputs, p.members, chosen.options);
    sweeps.push_back(std::move(s));
  }
  return sweeps;
}

namespace {

int64_t totals_bytes(const LevelsProblem& p, const Device& device) {
  return size_of(sum_storage(device)) * (p.levels - 2) * int64_t(p.d->plan->residuals.size());
}

}  // namespace

int64_t sweeps_scratch(const LevelsProblem& p, const Device& device, const std::vector<Sweep>& sweeps) {
  int64_t bytes = totals_bytes(p, device), carried[2] = {0, 0};
  for (size_t k = 0; k < sweeps.size(); ++k) {
    const Plan& plan = *sweeps[k].d->plan;
    bytes += size_of(sum_storage(device)) * int64_t(plan.residuals.size()) *
             fused_extent(*sweeps[k].d, sweeps[k].shape, p.members).elements();
    if (plan.carry.writes && carried[k % 2] == 0)
      carried[k % 2] = size_of(p.form.scratch()) * p.members * plan.carry.rows() * p.d->mesh.count();
  }
  return bytes + carried[0] + carried[1];
}

int64_t slabs_scratch(const LevelsProblem& p, const Device& device, const LossOptions& options) {
  const Slabs slabs(*p.d, p.members, choose_slab(*p.d, device, p.form, options.slab));
  return totals_bytes(p, device) + 3 * size_of(p.form.scratch()) * slabs.cotangents.elements() +
         (p.levels - 2) * size_of(sum_storage(device)) * slabs.sums.elements();
}

}  // namespace lockstep::pde
