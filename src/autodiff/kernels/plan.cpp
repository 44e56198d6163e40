// Which buffers and flows the adjoint of a kernel has, and what has none.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "autodiff/kernels/gather.hpp"
#include "autodiff/kernels/partials.hpp"
#include "autodiff/kernels/plain_form.hpp"
#include "autodiff/kernels/replay.hpp"
#include "autodiff/kernels/roles.hpp"
#include "autodiff/kernels/sums/positions.hpp"
#include "autodiff/kernels/sums/sweep.hpp"
#include "compile/passes/rewrite.hpp"
#include "lockstep/error.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

[[noreturn]] void refuse(const Function& f, Place place, std::string_view what, std::string_view expected) {
  throw InputError(what, where_of(f, place), expected);
}

void expect_silent(const Function& f) {
  if (f.reporting)
    refuse(f, f.reports[0].place, "check or print_if in a kernel that is differentiated",
           "a kernel without them");
}

void expect_differentiable(const Function& f, const Activity& activity) {
  std::set<Id> guarded;  // bit casts of a value and back: stop_gradient
  compile::walk(f, 0, [&](uint32_t, size_t, Id id) {
    const Instruction& i = f[id];
    for (Id a : i.args)
      if (a != kNone && f[a].op == Op::bitcast && !(i.op == Op::bitcast && is_float(i.type)))
        guarded.insert(a);
  });
  compile::walk(f, 0, [&](uint32_t, size_t, Id id) {
    const Instruction& i = f[id];
    if (i.op == Op::bitcast && activity.varied[i.args[0]] && guarded.contains(id))
      refuse(f, i.place, "bits of a float that depends on an input",
             "stop_gradient() of the float, whose bits have no derivative");
  });
}

std::string near(const Function& f, Id id) {
  const std::string text = place_text(f, f[id].place);
  return text.empty() ? print(f, id) : text;
}
/// Old values depend on the order of the lanes, and so do loads that race with atomic operations: a launch of the
/// adjoint would see others. Adjoints of what does not depend on them exist.
class AtomicRules {
 public:
  AtomicRules(const Function& f, const Activity& activity) : f_(f), activity_(activity) {}
  void expect() const {
    compile::walk(f_, 0, [&](uint32_t, size_t, Id id) {
      if (f_[id].op == Op::atomic) expect(id);
    });
  }

 private:
  void expect(Id id) const {
    const Instruction& i = f_[id];
    const auto target = AtomicTarget::from_bits(i.imm);
    const bool floats = is_float(i.type);
    if (activity_.needed[id])
      refuse(f_, i.place,
             fmt::format("the old value of an atomic operation, used near {}", near(f_, user(id))),
             "positions that a kernel before this one writes, so that its derivative sees the same");
    if (target.shared && floats)
      refuse(f_, i.place, "an atomic addition of floats to a shared array",
             "group_sum, or one lane per element");
    if (target.shared) {
      if (activity_.shared.needed[target.array])
        refuse(
            f_, i.place,
            fmt::format("an atomic operation on shared array {}, whose contents derivatives need",
                        f_.shared[target.array].name),
            "stop_gradient() of the values that depend on it, or a separate kernel for the atomic operation");
      return;
    }
    if (const Id other = access(target.array, floats); other != kNone)
      refuse(f_, i.place,
             fmt::format("buffer {} is changed by an atomic operation and accessed near {}",
                         f_.buffers[target.array].name, near(f_, other)),
             "a kernel that only adds to it, and another one that reads or stores");
  }
  Id user(Id value) const {
    Id found = value;
    compile::walk(f_, 0, [&](uint32_t, size_t, Id id) {
      if (found == value && std::ranges::count(f_[id].args, value)) found = id;
    });
    return found;
  }
  /// A load that derivatives need, or of floats any access.
  Id access(uint32_t buffer, bool floats) const {
    Id found = kNone;
    compile::walk(f_, 0, [&](uint32_t, size_t, Id id) {
      const Instruction& i = f_[id];
      if ((i.op != Op::load && i.op != Op::store) || i.imm != buffer) return;
      if (floats || activity_.needed[id]) found = id;
    });
    return found;
  }

  const Function& f_;
  const Activity& activity_;
};

class Planner {
 public:
  Planner(Plan& plan, Ways ways) : plan_(plan), f_(plan.f), ways_(ways) {}

  void run() {
    const size_t n = f_.buffers.size();
    plan_.buffers = f_.buffers;
    plan_.shapes = f_.shapes;
    plan_.cotangents.assign(n, Flow::none);
    plan_.gradients.assign(n, Flow::none);
    plan_.cotangent.assign(n, kNoBlock);
    plan_.gradient.assign(n, kNoBlock);
    plan_.own.assign(n, false);
    plan_.reads.assign(n, {});
    plan_.terms.assign(f_.scalars.size(), kNoBlock);
    find_accesses();
    for (uint32_t k = 0; k < n; ++k) buffer(k);
    for (uint32_t k = 0; k < n; ++k)
      if (plan_.gradients[k] == Flow::summed) summed_buffer(k);
    for (uint32_t k = 0; k < f_.shared.size(); ++k) shared_array(k);
    for (BufferParam& b : plan_.buffers) b.position = -1;
    for (size_t k = 0; k < f_.scalars.size(); ++k) scalar(k);
    if (has_records(plan_, plan_.record_place)) {
      const auto words = constant_words(plan_);
      plan_.in_lanes = words && *words <= kMostLocalWords;
      if (plan_.in_lanes) return;
      BufferParam record{"record", Storage::u32, 2, Access::read_write};
      plan_.record = add(record);
    }
  }

 private:
  static constexpr int64_t kMostLocalWords = 256;
  struct Accesses {
    std::vector<Id> loads;          // active ones
    int stores = 0, additions = 0;  // additions: atomic ones of floats
    bool in_loop = false;           // a store
  };

  void find_accesses(uint32_t block = 0, bool in_loop = false) {
    if (block == 0) accesses_.resize(f_.buffers.size());
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      if (i.op == Op::load && plan_.activity.active[id]) accesses_[i.imm].loads.push_back(id);
      if (i.op == Op::store) {
        ++accesses_[i.imm].stores;
        accesses_[i.imm].in_loop |= in_loop;
      }
      if (const auto target = AtomicTarget::from_bits(i.imm);
          i.op == Op::atomic && is_float(i.type) && !target.shared)
        ++accesses_[target.array].additions;
      for (uint32_t inner : i.blocks)
        if (inner != kNoBlock) find_accesses(inner, in_loop || i.op != Op::if_);
    }
  }

  uint32_t add(BufferParam b) {
    plan_.buffers.push_back(std::move(b));
    return uint32_t(plan_.buffers.size() - 1);
  }
  /// A buffer like number `k`, of its shape.
  uint32_t add_like(uint32_t k, const char* ending, Access access) {
    BufferParam like = f_.buffers[k];
    like.name += ending;
    like.storage = wide_enough(like.storage);
    like.access = access;
    like.atomic = false;
    like.reach = 0;
    like.ruled = false;
    const uint32_t number = add(like);
    for (int axis = 0; axis < like.rank; ++axis)
      plan_.shapes.push_back({number, axis, -1, k, axis, like.place});
    return number;
  }

  void buffer(uint32_t k) {
    const BufferParam& primal = f_.buffers[k];
    const Accesses& a = accesses_[k];
    const bool input = plan_.roles.input_buffers[k], output = plan_.roles.output_buffers[k];
    plan_.buffers[k].access = Access::read;
    plan_.buffers[k].atomic = false;
    if (primal.access == Access::write) {
      if (!output) return;
      const bool once = a.stores <= 1 && !a.in_loop;
      plan_.cotangents[k] = once ? Flow::single : Flow::memory;
      plan_.cotangent[k] = k;
      plan_.buffers[k].name += "_cotangent";
      plan_.buffers[k].storage = wide_enough(primal.storage);
      if (!once) plan_.buffers[k].access = Access::read_write;
      return;
    }
    if (a.additions > 0) {
      if (!output) return;
      plan_.cotangents[k] = Flow::added;
      plan_.cotangent[k] = add_like(k, "_cotangent", Access::read);
      return;
    }
    if (a.stores > 0 && (input || output)) {
      plan_.gradient[k] = plan_.cotangent[k] = add_like(k, "_gradient", Access::read_write);
      plan_.cotangents[k] = Flow::memory;
      if (input) plan_.gradients[k] = Flow::memory;
      return;
    }
    if (input && !a.loads.empty()) read_buffer(k, a.loads);
  }
  void read_buffer(uint32_t k, const std::vector<Id>& loads) {
    std::array<int, 3> axes{}, first{};
    // The lanes of a group have one coordinate.
    bool own = f_.domain == Domain::points, apart = own;
    for (size_t n = 0; n < loads.size(); ++n) {
      const Id offset = f_[loads[n]].args[0];
      const bool at_own = f_.domain == Domain::points && is_own_point(f_, offset, k);
      plan_.own[k] = plan_.own[k] || at_own;
      own &= at_own;
      apart &= is_private(f_, offset, k, axes);
      if (n == 0) first = axes;
      apart &= axes == first;
    }
    plan_.gradients[k] = own ? Flow::single : apart ? Flow::memory : Flow::summed;
    if (plan_.gradients[k] == Flow::memory) plan_.own[k] = false;
    if (plan_.gradients[k] != Flow::summed)
      plan_.gradient[k] = add_like(k, "_gradient", own ? Access::write : Access::read_write);
  }
  void summed_buffer(uint32_t k) {
    if (ways_.gathers && !shifted_reads(plan_, k).empty()) {
      plan_.gradients[k] = Flow::gathered;
      plan_.own[k] = false;
      return;
    }
    const bool swept = ways_.gathers && !swept_reads(plan_, k).empty();
    if (ways_.tables && !swept) plan_.reads[k] = indexed_reads(plan_, k);
    if (swept || !plan_.reads[k].empty()) {
      plan_.gradients[k] = swept ? Flow::swept : Flow::listed;
      if (plan_.listed(k) > 0)
        plan_.gradient[k] = add(
            {f_.buffers[k].name + "_contributions", wide_enough(f_.buffers[k].storage), 2, Access::write});
      return;
    }
    BufferParam sums{f_.buffers[k].name + "_sums", Storage::i64, 1, Access::read_write};
    sums.atomic = true;
    plan_.gradient[k] = add(sums);
  }
  /// Lanes of a group add to the adjoint of an element in any order.
  void shared_array(uint32_t k) {
    if (!plan_.activity.shared.active[k]) {
      plan_.shared.push_back(kNoBlock);
      return;
    }
    BufferParam sums{f_.shared[k].name + "_sums", Storage::i64, 2, Access::read_write};
    sums.atomic = true;
    plan_.shared.push_back(add(sums));
  }
  void scalar(size_t k) {
    if (plan_.roles.input_scalars[k])
      plan_.terms[k] = add(lane_buffer(f_, f_.scalars[k].name + "_terms", wide_enough(f_.scalars[k].type)));
  }

  Plan& plan_;
  const Function& f_;
  Ways ways_;
  std::vector<Accesses> accesses_;
};

}  // namespace

BufferParam lane_buffer(const Function& f, std::string name, Storage storage) {
  const bool points = f.domain == Domain::points;
  return {std::move(name), storage, points ? f.rank : 1, Access::write, points};
}

Plan plan_adjoint(const Function& traced, const Roles& roles, Ways ways) {
  expect_silent(traced);
  Plan plan;
  plan.f = plain_form(traced);
  plan.roles = roles;
  plan.activity = find_activity(plan.f, roles);
  expect_differentiable(plan.f, plan.activity);
  AtomicRules(plan.f, plan.activity).expect();
  Planner(plan, ways).run();
  return plan;
}

}  // namespace lockstep::gradients
