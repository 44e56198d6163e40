#include "generator.hpp"

#include <algorithm>

#include "frame.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "stencils.hpp"

namespace lockstep::fuzz {

namespace {

class Generator : KernelFrame {
 public:
  explicit Generator(const Recipe& recipe) : KernelFrame(recipe) {}

  Program run() {
    domain();
    parameters();
    places();
    functions(40);
    if (recipe_.flaw != Flaw::none) flaw();
    for (body_ = 0; body_ < recipe_.bodies; ++body_) one_body();
    return std::move(program_);
  }

  /// A function that kernels call, of a few statements on values; of whole numbers in the webgpu profile, which
  /// cannot bound floats across calls.
  ir::Function run_function(int calls) {
    f_.name = "of_values";
    f_.domain = Domain::values;
    f_.index_type = Type::i32;
    values_only_ = true;
    uniform_ = false;
    kept_loops_ = 1;  // no return_
    types_ = {Type::boolean, Type::i32, Type::u32};
    if (!webgpu()) types_.insert(types_.end(), {Type::f32, Type::f64, Type::i64, Type::u64});
    const int taken = 1 + random_.below(ir::kMostArgs);
    for (int k = 0; k < taken; ++k) {
      f_.scalars.push_back({"p" + std::to_string(k), any_type()});
      push(b_.emit(Op::param, f_.scalars.back().type, {}, uint64_t(k)), false);
    }
    functions(calls);
    for (Type t : types_)
      if (random_.chance(40)) new_variable(t);
    budget_ = recipe_.statements;
    while (budget_ > 0) statement(0);
    for (const Variable& v : vars_) push(b_.get(v.id), false);
    Instruction result{Op::result};
    const int given = random_.chance(60) ? 1 : random_.chance(50) ? 2 : 4;
    const Type t = any_type(given == 1);
    for (int k = 0; k < given; ++k) result.args[size_t(k)] = pick(t).id;
    b_.append(result);
    return std::move(f_);
  }

 private:
  void functions(int chance) {
    for (int k = 0; k < 2; ++k) {
      if (!random_.chance(chance)) continue;
      Recipe recipe = recipe_;
      recipe.seed = random_.next();
      recipe.statements = 3 + random_.below(12);
      f_.functions.push_back(Generator(recipe).run_function(chance / 4));
    }
  }

  void one_body() {
    const size_t values = pool_.size();
    arrays_.clear();
    vars_.clear();
    offsets_.clear();
    sum_ = b_.variable(b_.u32(0x811c9dc5));
    shared_used_ = groups() && random_.chance(60);
    shared_atomics_used_ = groups() && random_.chance(30);
    if (shared_used_ || shared_atomics_used_) start_shared();
    local_arrays();
    for (Type t : types_)
      if (random_.chance(60)) new_variable(t);
    budget_ = recipe_.statements;
    while (budget_ > 0) statement(0);
    finish();
    pool_.resize(values);
  }

  void finish() {
    if (shared_atomics_used_ && uniform_) {
      barrier();
      const Id v =
          b_.emit(Op::shared_load, Type::u32, {masked(b_.i32(random_.below(8)), 7)}, shared_atomics_);
      push(v, false);
      barrier();
    }
    for (size_t k = 0; k < own_.size(); ++k) store_own(k);
    for (int k = 0; k < 6; ++k) keep_value();
    const Value sum{b_.get(sum_), Type::u32, false, 0};
    sum_ = kNone;
    b_.emit(Op::store, Type::none, {new_own_offset(1), sum.id}, own_[2]);
    for (const Variable& v : vars_)
      if (const Type t = v.type; t != Type::boolean) {
        push(b_.get(v.id), false, kCap);
        keep_value();
      }
  }

  // ── statements ──
  void statement(int depth) {
    --budget_;
    const int kind = random_.below(100);
    if (!f_.functions.empty() && random_.chance(8)) return call();
    if (kind < 40 || (values_only_ && kind < 52)) return operation();
    if (kind < 46) return load_input();
    if (kind < 52) return own_access();
    if (kind < 58) return variable_access();
    if (values_only_ && kind < 78) return variable_access();
    if (kind < 64) return local_access();
    if (kind < 70) return shared_access();
    if (kind < 74) return atomic();
    if (kind < 78) return together();
    if (kind < 80) return jump();
    if (depth >= 3) return operation();
    if (kind < 90) return branch(depth);
    if (kind < 96) return counted_loop(depth);
    open_loop(depth);
  }

  void block(int depth, int most) {
    const size_t values = pool_.size(), variables = vars_.size(), offsets = offsets_.size();
    const int n = 1 + random_.below(most);
    for (int k = 0; k < n && budget_ > 0; ++k) statement(depth);
    // A value computed here must have an effect, or it is dead.
    if (random_.chance(60)) keep_value();
    pool_.resize(values);
    vars_.resize(variables);
    offsets_.resize(offsets);
  }

  /// Lets one of the latest values reach a variable or a buffer.
  void keep_value() {
    const Value v = pool_[pool_.size() - 1 - size_t(random_.below(int(std::min<size_t>(pool_.size(), 4))))];
    for (const Variable& variable : vars_)
      if (variable.type == v.type && !variable.uniform && random_.chance(70))
        return b_.set(variable.id, capped(v));
    for (size_t k = 0; k < own_.size(); ++k)
      if (value_type(f_.buffers[own_[k]].storage) == v.type) {
        b_.emit(Op::store, Type::none, {own_offset(1), capped(v)}, own_[k]);
        return;
      }
  }

  void operation() {
    const int kind = random_.below(100);
    if (kind < 12) return select();
    if (kind < 24) return conversion();
    static const std::vector<Op> kOps = [] {
      std::vector<Op> ops;
      for (int k = 0; k < int(Op::count_); ++k)
        if (is_elementary(Op(k))) ops.push_back(Op(k));
      return ops;
    }();
    static const std::vector<Op> kMath = [] {
      std::vector<Op> ops;
      for (int k = 0; k < int(Op::count_); ++k)
        if (is_math(Op(k))) ops.push_back(Op(k));
      return ops;
    }();
    const Op op = recipe_.math && random_.chance(8) ? random_.of(kMath) : random_.of(kOps);
    const auto fits = [&](Type t) { return ir::takes(op, t) && !(op == Op::umulhi && is_signed(t)); };
    if (std::none_of(types_.begin(), types_.end(), fits)) return;
    Type t;
    do t = random_.of(types_);
    while (!fits(t));
    Value args[3];
    const int n = arity(op);
    bool uniform = true;
    for (int k = 0; k < n; ++k) {
      args[k] = pick(t);
      uniform &= args[k].uniform;
    }
    if (webgpu() && is_float(t)) return small_float(op, args, uniform);
    if (op == Op::fcopysign) args[1].id = without_nan(args[1].id);
    const Id result = n == 1   ? b_.op(op, {args[0].id})
                      : n == 2 ? b_.op(op, {args[0].id, args[1].id})
                               : b_.op(op, {args[0].id, args[1].id, args[2].id});
    push(op == Op::fmul && random_.chance(20) ? b_.keep(Op::rounded, result) : result, uniform);
  }

  /// Only what stays exact on every device.
  void small_float(Op op, const Value* args, bool uniform) {
    const double a = args[0].bound, b = args[1].bound, c = args[2].bound;
    double bound;
    switch (op) {
      case Op::fadd:
      case Op::fsub: bound = a + b; break;
      case Op::fmul: bound = a * b; break;
      case Op::fma: bound = a * b + c; break;
      case Op::fneg:
      case Op::fabs:
      case Op::ffloor:
      case Op::fceil:
      case Op::ftrunc:
      case Op::frint: bound = a; break;
      case Op::fmin:
      case Op::fmax: bound = std::max(a, b); break;
      case Op::feq:
      case Op::fne:
      case Op::flt:
      case Op::fle: bound = 0; break;
      default: return;
    }
    if (bound > kLargest) return;
    const int n = arity(op);
    push(n == 1   ? b_.op(op, {args[0].id})
         : n == 2 ? b_.op(op, {args[0].id, args[1].id})
                  : b_.op(op, {args[0].id, args[1].id, args[2].id}),
         uniform, bound);
  }

  // ── memory ──
  void load_grid() {
    const uint32_t buffer = random_.of(grids_);
    const Shape shape = shape_of(f_.buffers[buffer].rank, kInputs);
    const int lanes = random_.chance(25) ? (random_.chance(50) ? 2 : 4) : 1;
    std::vector<Id> at;
    bool uniform = true;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const bool last = axis + 1 == shape.rank();
      const Value index = small_index(int(shape[axis]) - (last ? lanes : 1), uniform_ && random_.chance(30));
      uniform &= index.uniform;
      at.push_back(index.id);
    }
    load(buffer, grid_offset(buffer, at), lanes, uniform, 8);
  }

  /// Every lane goes wrong, before anything else.
  void flaw() {
    const Id varying = masked(linear_, 3);
    if (recipe_.flaw == Flaw::promise) {
      const Id wrong = b_.keep(Op::uniform, b_.op(Op::iadd, {varying, b_.i32(1)}));
      b_.emit(Op::store, Type::none, {new_own_offset(1), b_.convert(Type::u32, wrong)}, own_[2]);
      return;
    }
    const uint32_t buffer = random_.of(grids_);
    const int rank = f_.buffers[buffer].rank;
    std::vector<Id> at(static_cast<size_t>(rank), b_.i32(0));
    const int axis = 1 + random_.below(rank - 1);  // of the slowest the offset itself would tell
    at[size_t(axis)] = b_.op(Op::iadd, {varying, b_.i32(int(shape_of(rank, kInputs)[axis]))});
    if (axis + 1 < rank) at[size_t(axis)] = b_.i32(2);
    load(buffer, grid_offset(buffer, at), 1, false, 8);
  }

  void load_input() {
    if (random_.chance(30)) return load_grid();
    const size_t k = size_t(random_.below(int(inputs_.size())));
    const uint32_t buffer = inputs_[k];
    const int lanes = random_.chance(25) ? (random_.chance(50) ? 2 : 4) : 1;
    const Value index = small_index(kInputs - lanes, uniform_ && random_.chance(30));  // 31, 30, 28: aligned
    load(buffer, b_.convert(f_.index_type, index.id), lanes, index.uniform, 8);
  }
  void load(uint32_t buffer, Id offset, int lanes, bool uniform, double bound) {
    Instruction i{Op::load};
    i.type = value_type(f_.buffers[buffer].storage);
    i.lanes = uint8_t(lanes);
    i.imm = buffer;
    i.flags = random_.chance(15) ? kStreaming : 0;
    i.args[0] = offset;
    const Id id = b_.append(i);
    if (lanes == 1) return push(id, uniform, bound);
    for (int k = 0; k < lanes; ++k) push(b_.emit(Op::extract, i.type, {id}, uint64_t(k)), uniform, bound);
  }
  Id own_offset(int lanes) {
    if (lanes == 1 && !offsets_.empty() && random_.chance(50)) return random_.of(offsets_);
    const Id offset = new_own_offset(lanes);
    if (lanes == 1) offsets_.push_back(offset);
    return offset;
  }
  Id new_own_offset(int lanes) {
    const Value index = small_index(kOwn - lanes);
    Id offset = b_.op(Op::iadd, {own_base_, b_.convert(f_.index_type, index.id)}, kNoWrap);
    const int64_t first = int64_t(body_) * total_ * kOwn;
    if (first) offset = b_.op(Op::iadd, {offset, b_.number(f_.index_type, double(first))}, kNoWrap);
    return offset;
  }
  void own_access() {
    const size_t k = size_t(random_.below(int(own_.size())));
    if (random_.chance(50)) return store_own(k);
    if (random_.chance(30)) {  // what is read again after a store has changed
      const Id offset = own_offset(1);
      load(own_[k], offset, 1, false, kCap);
      b_.emit(Op::store, Type::none, {offset, capped(pick(value_type(f_.buffers[own_[k]].storage)))},
              own_[k]);
      return load(own_[k], offset, 1, false, kCap);
    }
    const int lanes = random_.chance(20) ? (random_.chance(50) ? 2 : 4) : 1;
    load(own_[k], own_offset(lanes), lanes, false, kCap);
  }
  void store_own(size_t k) {
    const int lanes = random_.chance(20) ? (random_.chance(50) ? 2 : 4) : 1;
    Instruction i{Op::store};
    i.imm = own_[k];
    i.lanes = uint8_t(lanes);
    i.flags = random_.chance(15) ? kStreaming : 0;
    i.args[0] = own_offset(lanes);
    for (int c = 0; c < lanes; ++c) i.args[1 + c] = capped(pick(value_type(f_.buffers[own_[k]].storage)));
    b_.append(i);
  }

  void local_arrays() {
    const int n = random_.below(3);
    for (int k = 0; k < n; ++k) {
      LocalDecl a{uint32_t(f_.locals.size()), any_type(false), random_.chance(50) ? 4 : 8,
                  random_.chance(40)};
      f_.locals.push_back({"l" + std::to_string(a.array), storage_of(a.type), a.count});
      const Value first = pick(a.type);
      const Id v = capped(first);
      if (a.fixed || random_.chance(50))
        for (int e = 0; e < a.count; ++e) b_.emit(Op::local_store, Type::none, {b_.i32(e), v}, a.array);
      else
        b_.for_(b_.i32(0), b_.i32(a.count), 1,
                [&](Id e) { b_.emit(Op::local_store, Type::none, {e, v}, a.array); });
      arrays_.push_back(a);
    }
  }
  void local_access() {
    if (arrays_.empty()) return operation();
    const LocalDecl a = random_.of(arrays_);
    const Id index = a.fixed ? b_.i32(random_.below(a.count)) : small_index(a.count - 1).id;
    if (random_.chance(50))
      b_.emit(Op::local_store, Type::none, {index, capped(pick(a.type))}, a.array);
    else
      push(b_.emit(Op::local_load, a.type, {index}, a.array), false, kCap);
  }

  void new_variable(Type t) {
    const bool uniform = uniform_ && random_.chance(40);
    vars_.push_back({b_.variable(capped(pick(t, uniform))), t, uniform});
  }
  void variable_access() {
    if (vars_.empty() || random_.chance(10)) return new_variable(any_type());
    const Variable v = random_.of(vars_);
    if (random_.chance(50))
      push(b_.get(v.id), v.uniform && uniform_, kCap);
    else if (!v.uniform || uniform_)
      b_.set(v.id, capped(pick(v.type, v.uniform)));
  }

  // ── the group ──
  // Shared arrays hold kOwn elements a lane. While lanes own their elements each reads and writes its own;
  // while they are shared, all read all; a barrier lies between.
  void start_shared() {
    if (shared_read_) barrier();
    if (shared_arrays_.empty())
      for (Type t : types_)
        if (t != Type::boolean) {
          shared_arrays_.push_back(uint32_t(f_.shared.size()));
          f_.shared.push_back(
              {"s" + std::to_string(f_.shared.size()), storage_of(t), int64_t(f_.group_lanes()) * kOwn});
        }
    for (uint32_t a : shared_arrays_)
      for (int k = 0; k < kOwn; ++k)
        b_.emit(Op::shared_store, Type::none,
                {shared_own(b_.i32(k)), capped(pick(value_type(f_.shared[a].storage)))}, a);
    if (!shared_atomics_used_) return;
    if (!shared_atomics_declared_) {
      shared_atomics_declared_ = true;
      shared_atomics_ = uint32_t(f_.shared.size());
      f_.shared.push_back({"counters", Storage::u32, 8});
    }
    b_.if_(b_.op(Op::ieq, {lane_, b_.i32(0)}), [&] {
      b_.for_(b_.i32(0), b_.i32(8), 1, [&](Id k) {
        b_.emit(Op::shared_store, Type::none, {k, b_.u32(uint32_t(random_.next()))}, shared_atomics_);
      });
    });
    barrier();
  }
  void barrier() {
    b_.emit(Op::barrier, Type::none);
    shared_read_ = !shared_read_;
  }
  Id shared_own(Id index) {
    return b_.op(Op::iadd, {b_.op(Op::imul, {lane_, b_.i32(kOwn)}, kNoWrap), index}, kNoWrap);
  }
  void shared_access() {
    if (!shared_used_) return operation();
    const uint32_t a = random_.of(shared_arrays_);
    const Type t = value_type(f_.shared[a].storage);
    if (shared_read_) {
      // Any element: a whole number modulo their count.
      const Value v = pick(Type::u32);
      const Id index =
          b_.bitcast(Type::i32, b_.op(Op::irem, {v.id, b_.u32(uint32_t(f_.group_lanes() * kOwn))}));
      return push(b_.emit(Op::shared_load, t, {index}, a), v.uniform && uniform_, kCap);
    }
    const Id index = shared_own(small_index(kOwn - 1).id);
    if (random_.chance(40)) return push(b_.emit(Op::shared_load, t, {index}, a), false, kCap);
    if (random_.chance(25)) return async_copy(a);
    b_.emit(Op::shared_store, Type::none, {index, capped(pick(t))}, a);
  }
  void async_copy(uint32_t array) {
    for (uint32_t buffer : inputs_) {
      if (f_.buffers[buffer].storage != f_.shared[array].storage) continue;
      const int most = 16 / size_of(f_.shared[array].storage), lanes = std::min(most, 1 << random_.below(3));
      Instruction i{Op::async_copy};
      i.lanes = uint8_t(lanes);
      i.imm = uint64_t(array) << 32 | buffer;
      i.args[0] = shared_own(small_index(kOwn - lanes).id);
      i.args[1] = b_.convert(f_.index_type, small_index(kInputs - lanes).id);
      b_.append(i);
      b_.emit(Op::async_commit, Type::none);
      b_.emit(Op::async_wait, Type::none, {}, 0);
    }
  }

  /// Barriers and reductions, where all lanes are present.
  void together() {
    if (!groups() || !uniform_) return operation();
    if (random_.chance(25)) return word();
    if (reduces_ && random_.chance(50)) {
      const Type t = any_type(false);
      const Value v = pick(t);
      const auto how = Reduction(random_.below(3));
      const double bound = how == Reduction::add ? v.bound * f_.group_lanes() : v.bound;
      if (webgpu() && is_float(t) && bound > kLargest) return;
      return push(b_.emit(Op::group_reduce, t, {v.id}, uint64_t(how)), true, bound);
    }
    barrier();
  }
  /// A word of groups as authors write it: made of a shared array, barriers and selections.
  void word() {
    const detail::TraceScope scope(b_);
    const Value v = pick(Type::u32), f = pick(Type::f32);
    const Val<u32> x = Val<u32>::from(v.id);
    switch (random_.below(4)) {
      case 0: return push(group_ballot(x > 7u).id(), false);
      case 1: {
        const Val<u32> from = Val<u32>::from(pick(Type::u32).id) % u32(f_.group_lanes());
        return push(group_shuffle(Val<f32>::from(f.id), bitcast<i32>(from)).id(), false, f.bound);
      }
      case 2: return push(group_scan_sum(x).id(), false);
      default: {
        const auto least = [](const Val<f32>& a, const Val<f32>& b) { return min(a, b); };
        return push(group_scan(Val<f32>::from(f.id), least).id(), false, f.bound);
      }
    }
  }
  void restore_mode(bool read) {
    if (shared_read_ == read) return;
    if (uniform_) return barrier();
    shared_used_ = false;  // lanes returned: no barrier may follow, and the ways to here disagree
    shared_read_ = read;
  }

  // Counters have one operation each, so that their results do not depend on the order; old values are not
  // used. The lane's own ones take any operation.
  void atomic() {
    if (random_.chance(35)) {
      const bool wide = !private_wide_.empty() && random_.chance(40);
      const uint32_t own = wide ? random_.of(private_wide_) : private_atomics_;
      Instruction i{Op::atomic};
      i.type = value_type(f_.buffers[own].storage);
      const auto op = is_float(i.type) ? AtomicOp::add : AtomicOp(random_.below(8));
      i.imm = AtomicTarget{op, false, own}.bits();
      const Value index = small_index(1);
      i.args[0] = b_.op(Op::iadd, {private_base_, b_.convert(f_.index_type, index.id)}, kNoWrap);
      i.args[1] = pick(i.type).id;
      if (op == AtomicOp::compare_exchange) i.args[2] = pick(i.type).id;
      return push(b_.append(i), false);
    }
    const bool shared = shared_atomics_used_ && random_.chance(50);
    const auto op = AtomicOp(random_.below(6));
    Instruction i{Op::atomic};
    const uint32_t buffer = random_.of(counters_);
    i.type = shared ? Type::u32 : value_type(f_.buffers[buffer].storage);
    i.imm = AtomicTarget{op, shared, shared ? shared_atomics_ : buffer}.bits();
    if (shared) {
      i.args[0] = b_.i32(int(op));
    } else {
      const Id row = b_.op(Op::imul, {small_index(3).id, b_.i32(6)}, kNoWrap);
      i.args[0] = b_.convert(f_.index_type, b_.op(Op::iadd, {row, b_.i32(int(op))}, kNoWrap));
    }
    i.args[1] = pick(i.type).id;
    b_.append(i);
  }

  // ── control flow ──
  void branch(int depth) {
    const bool uniform = uniform_ && random_.chance(50);
    const Value c = condition(uniform);
    const bool before = uniform_, mode = shared_read_;
    uniform_ = uniform_ && c.uniform;
    const auto side = [&] {
      block(depth + 1, 5);
      restore_mode(mode);
    };
    if (random_.chance(50))
      b_.if_(c.id, side, side);
    else
      b_.if_(c.id, side);
    uniform_ = before && !lanes_left_;
  }

  struct Flow {
    bool uniform, in_loop, keeps;
  };
  Flow enter_loop(bool keeps) {
    const Flow outer{uniform_, in_loop_, keeps_lanes_};
    uniform_ = keeps;
    keeps_lanes_ = keeps;
    in_loop_ = true;
    kept_loops_ += keeps;
    return outer;
  }
  void leave_loop(const Flow& outer, bool keeps) {
    kept_loops_ -= keeps;
    uniform_ = outer.uniform && !lanes_left_;
    in_loop_ = outer.in_loop;
    keeps_lanes_ = outer.keeps;
  }

  void counted_loop(int depth) {
    const bool keeps = uniform_ && random_.chance(50);
    const Type t = integer_type();
    const Value trips = pick(t, keeps);
    const int step = (random_.chance(50) ? 1 : 2) * (random_.chance(70) ? 1 : -1);
    const int first = is_signed(t) ? random_.below(7) - 3 : 8 + random_.below(3);
    const Id begin = b_.number(t, first);
    const Id count = b_.op(Op::band, {trips.id, b_.number(t, 3)});
    const Id end = step > 0 ? b_.op(Op::iadd, {begin, count}) : b_.op(Op::isub, {begin, count});
    const bool mode = shared_read_;
    const Flow outer = enter_loop(keeps);
    b_.for_(begin, end, step, [&](Id index) {
      const size_t values = pool_.size();
      push(index, true);
      block(depth + 1, 6);
      pool_.resize(values);
      if (keeps) restore_mode(mode);
    });
    leave_loop(outer, keeps);
  }

  void open_loop(int depth) {
    const bool keeps = uniform_ && random_.chance(50);
    const Id counter = b_.variable(b_.i32(0));
    const Value limit = pick(Type::i32, keeps);
    const Id most = masked(limit.id, 3);
    const bool mode = shared_read_;
    const Flow outer = enter_loop(keeps);
    b_.loop([&] {
      const Id n = b_.get(counter);
      b_.if_(b_.op(Op::ile, {most, n}), [&] { b_.emit(Op::break_, Type::none); });
      b_.set(counter, b_.op(Op::iadd, {n, b_.i32(1)}));
      block(depth + 1, 6);
      if (keeps) restore_mode(mode);
    });
    leave_loop(outer, keeps);
  }

  void jump() {
    const bool may_return = body_ + 1 == recipe_.bodies && kept_loops_ == 0 && random_.chance(20);
    if (!may_return && !in_loop_) return operation();
    // A kept loop's lanes leave together, and with the shared arrays as they were at its start: not from
    // inside a branch after a barrier, which the mode cannot follow. So kept loops end by their bounds alone.
    if (!may_return && keeps_lanes_) return operation();
    const Op op = may_return ? Op::return_ : random_.chance(50) ? Op::break_ : Op::continue_;
    const Value c = condition(false);
    b_.if_(c.id, [&] { b_.emit(op, Type::none); });
    if (may_return && !c.uniform) {
      lanes_left_ = true;
      uniform_ = false;
    }
    if (may_return && !uniform_) lanes_left_ = true;
  }
};

}  // namespace

Shape shape_of(int rank, int64_t elements) {
  if (rank == 1) return {elements};
  if (rank == 2) return {elements / kColumns, kColumns};
  return {elements / kColumns / 2, 2, kColumns};
}

Program generate(const Recipe& recipe) {
  return draws_stencil(recipe) ? stencil(recipe) : Generator(recipe).run();
}

}  // namespace lockstep::fuzz
