// The frame of a random kernel (domain, buffers, parameters, places) and the pool of its values.
#pragma once

#include <cmath>

#include "data.hpp"
#include "generator.hpp"
#include "lockstep/ir/builder.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::fuzz {

using namespace ir;

inline constexpr int kInputs = 32;  // elements of an input buffer
inline constexpr int kOwn = 4;      // elements of a lane in each buffer that lanes write
inline constexpr double kCap = 64;  // bound of floats that memory and variables hold, webgpu profile
inline constexpr double kLargest = 1 << 22;

struct Value {
  Id id;
  Type type;
  bool uniform;
  double bound;  // of floats in the webgpu profile
};
struct Variable {
  Id id;
  Type type;
  bool uniform;
};

class KernelFrame {
 protected:
  explicit KernelFrame(const Recipe& recipe)
      : recipe_(recipe), random_(recipe.seed), f_(program_.function), b_(f_) {}

  bool webgpu() const { return recipe_.profile == Profile::webgpu; }
  bool groups() const { return f_.domain == Domain::groups; }

  // ── frame ──
  void domain() {
    f_.name = "fuzz." + std::to_string(recipe_.seed) + (webgpu() ? ".webgpu" : "");
    f_.domain = random_.chance(50) ? Domain::groups : Domain::points;
    if (!webgpu() && random_.chance(25)) f_.index_type = Type::i64;
    f_.rank = 1 + random_.below(3);
    if (groups()) {
      static constexpr std::array<int32_t, 3> kSizes[] = {{32, 1, 1}, {8, 4, 1}, {64, 1, 1}, {16, 1, 1},
                                                          {4, 2, 2},  {7, 3, 1}, {1, 1, 1},  {128, 1, 1},
                                                          {33, 1, 1}, {2, 8, 1}};
      f_.group = kSizes[random_.below(int(std::size(kSizes)))];
      for (int a = 0; a < f_.rank; ++a) program_.extent[a] = 1 + random_.below(a ? 2 : 3);
      total_ = f_.group_lanes() * program_.extent[0] * program_.extent[1] * program_.extent[2];
    } else {
      static constexpr std::array<int32_t, 3> kSizes[3][2] = {
          {{32, 1, 1}, {8, 1, 1}}, {{8, 2, 1}, {64, 1, 1}}, {{8, 2, 1}, {4, 2, 2}}};
      if (random_.chance(40)) f_.group = kSizes[f_.rank - 1][random_.below(2)];
      if (f_.rank == 1) program_.extent[0] = 1 + random_.below(150);
      for (int a = 0; a < f_.rank && f_.rank > 1; ++a) program_.extent[a] = 1 + random_.below(a ? 4 : 37);
      total_ = program_.extent[0] * program_.extent[1] * program_.extent[2];
    }
    const int n = f_.group_lanes();
    reduces_ = groups() && (n & (n - 1)) == 0;
  }

  uint32_t buffer(Storage storage, Access access, int64_t count, bool atomic = false, int rank = 1) {
    f_.buffers.push_back({"b" + std::to_string(f_.buffers.size()), storage, rank, access, false, atomic});
    program_.buffers.push_back(random_data(random_, storage, count, webgpu()));
    return uint32_t(f_.buffers.size() - 1);
  }

  void parameters() {
    using S = Storage;
    std::vector<S> storages{S::f32, S::i32, S::u32};
    if (!webgpu()) storages.insert(storages.end(), {S::f64, S::i64, S::u64, S::f16, S::bf16, S::u8});
    for (S s : storages) inputs_.push_back(buffer(s, Access::read, kInputs));
    for (S s : {S::f32, S::i32})
      grids_.push_back(buffer(s, Access::read, kInputs, false, 2 + random_.below(2)));
    const int64_t own = total_ * recipe_.bodies * kOwn;
    for (S s : storages) own_.push_back(buffer(s, Access::read_write, own));
    counters_.push_back(buffer(S::u32, Access::read_write, 24, true));
    if (!webgpu()) counters_.push_back(buffer(S::i32, Access::read_write, 24, true));
    private_atomics_ = buffer(S::u32, Access::read_write, total_ * recipe_.bodies * 2, true);
    if (!webgpu()) {
      // f64 adds keep subnormal numbers on every device; CUDA's atomic ones of f32 flush them.
      private_wide_ = {buffer(S::u64, Access::read_write, total_ * recipe_.bodies * 2, true),
                       buffer(S::i64, Access::read_write, total_ * recipe_.bodies * 2, true),
                       buffer(S::f64, Access::read_write, total_ * recipe_.bodies * 2, true)};
    }
    types_ = {Type::boolean, Type::i32, Type::u32, Type::f32};
    if (!webgpu()) types_.insert(types_.end(), {Type::i64, Type::u64, Type::f64});
    for (Type t : types_) {
      if (webgpu() && t == Type::boolean) continue;
      f_.scalars.push_back({"p" + std::to_string(f_.scalars.size()), t});
      program_.scalars.push_back(random_bits(random_, t, webgpu()));
    }
  }

  void places() {
    for (size_t k = 0; k < f_.scalars.size(); ++k)
      push(b_.emit(Op::param, f_.scalars[k].type, {}, k), true, 8);
    Id at[3]{}, size[3]{};
    for (int a = 0; a < f_.rank; ++a) {
      push(at[a] = b_.emit(Op::coord, Type::i32, {}, uint64_t(a)), groups());
      push(size[a] = b_.emit(Op::extent, Type::i32, {}, uint64_t(a)), true);
    }
    const auto times = [&](Id a, Id c) { return b_.op(Op::imul, {a, c}, kNoWrap); };
    const auto plus = [&](Id a, Id c) { return b_.op(Op::iadd, {a, c}, kNoWrap); };
    Id linear = at[f_.rank - 1];
    for (int a = f_.rank - 2; a >= 0; --a) linear = plus(times(linear, size[a]), at[a]);
    if (groups()) {
      lane_ = b_.emit(Op::lane, Type::i32);
      push(lane_, false);
      for (int a = 0; a < 3; ++a) push(b_.emit(Op::local_id, Type::i32, {}, uint64_t(a)), false);
      linear = plus(times(linear, b_.i32(f_.group_lanes())), lane_);
    }
    linear_ = linear;
    push(linear, false);
    own_base_ = b_.convert(f_.index_type, times(linear, b_.i32(kOwn)));
    private_base_ = b_.convert(f_.index_type, times(linear, b_.i32(2)));
  }

  // ── values ──
  void push(Id id, bool uniform, double bound = 0) {
    if (uniform && uniform_ && is_elementary(f_[id].op) && random_.chance(10)) id = b_.keep(Op::uniform, id);
    pool_.push_back({id, f_[id].type, uniform, bound});
    if (sum_ != kNone && random_.chance(15)) into_sum(pool_.back());
  }
  /// Makes every bit of a value count in the lane's sum, which the body stores at its end.
  void into_sum(const Value& v) {
    Id bits = v.id;
    if (is_float(v.type)) {
      if (webgpu())
        bits = b_.convert(Type::i32, bits);
      else
        bits = b_.bitcast(v.type == Type::f32 ? Type::u32 : Type::u64, without_nan(bits));
    }
    if (is_wide(b_.type(bits))) {
      const Id all = b_.convert(Type::u64, bits);
      bits = b_.op(Op::bxor, {all, b_.op(Op::shr, {all, b_.constant(Type::u64, 32)})});
    }
    bits = b_.convert(Type::u32, bits);
    b_.set(sum_, b_.op(Op::iadd, {b_.op(Op::imul, {b_.get(sum_), b_.u32(0x01000193)}), bits}));
  }

  Value constant(Type t) {
    const uint64_t bits = random_bits(random_, t, webgpu());
    return {b_.constant(t, bits), t, true, 8};
  }
  /// 0, -0, 1, -1: where algebraic identities act.
  Value neutral(Type t) {
    if (t == Type::boolean) return constant(t);
    const int v = random_.below(3) - 1;
    if (v == 0 && is_float(t) && random_.chance(50)) return {b_.number(t, -0.0), t, true, 8};
    if (is_integer(t) && !is_signed(t) && v < 0)
      return {b_.constant(t, is_wide(t) ? ~uint64_t(0) : 0xffffffffu), t, true, 8};
    return {b_.number(t, v), t, true, 8};
  }
  Value pick(Type t, bool uniform = false) {
    const int how = random_.below(100);
    if (how < 10) return constant(t);
    if (how < 18) return neutral(t);
    std::vector<size_t> fit;
    for (size_t k = 0; k < pool_.size(); ++k)
      if (pool_[k].type == t && (!uniform || pool_[k].uniform)) fit.push_back(k);
    if (fit.empty()) return constant(t);
    // The last value often, so that operations meet in chains; recent ones more often than old ones.
    const size_t n = fit.size();
    if (random_.chance(35)) return pool_[fit[n - 1]];
    return pool_[fit[random_.chance(50) ? n - 1 - size_t(random_.below(int(std::min<size_t>(n, 4))))
                                        : size_t(random_.below(int(n)))]];
  }
  Type any_type(bool with_bool = true) {
    for (;;)
      if (const Type t = random_.of(types_); with_bool || t != Type::boolean) return t;
  }
  Type integer_type() {
    for (;;)
      if (const Type t = random_.of(types_); is_integer(t)) return t;
  }
  Value condition(bool uniform) {
    if (random_.chance(30)) return pick(Type::boolean, uniform);
    const Type t = any_type(false);
    const Value x = pick(t, uniform), y = pick(t, uniform);
    static constexpr Op kFloats[] = {Op::flt, Op::fle, Op::feq, Op::fne},
                        kIntegers[] = {Op::ilt, Op::ile, Op::ieq, Op::ine};
    const auto& comparisons = is_float(t) ? kFloats : kIntegers;
    Id c = b_.op(comparisons[random_.below(4)], {x.id, y.id});
    if (random_.chance(25)) c = b_.op(Op::bnot, {c});
    push(c, x.uniform && y.uniform);
    return {c, Type::boolean, x.uniform && y.uniform, 0};
  }
  /// An i32 in 0 … mask.
  Id masked(Id value, int mask) { return b_.op(Op::band, {value, b_.i32(mask)}); }
  Value small_index(int mask, bool uniform = false) {
    const Value v = pick(Type::i32, uniform);
    return {masked(v.id, mask), Type::i32, v.uniform, 0};
  }
  /// A float that memory or a variable may hold.
  Id capped(const Value& v) {
    if (!webgpu() || v.type != Type::f32 || v.bound <= kCap) return v.id;
    return b_.op(Op::fmin, {b_.op(Op::fmax, {v.id, b_.f32(-kCap)}), b_.f32(kCap)});
  }
  Id without_nan(Id v) { return b_.select(b_.op(Op::isnan, {v}), b_.number(b_.type(v), 1), v); }

  // ── operations ──
  void call() {
    const auto number = uint32_t(random_.below(int(f_.functions.size())));
    std::vector<Id> values;
    bool uniform = true;
    for (const ScalarParam& p : f_.functions[number].scalars) {
      Value v = pick(p.type);
      uniform &= v.uniform;
      values.push_back(v.id);
    }
    const Id id = b_.call(number, values);
    if (f_[id].lanes == 1) return push(id, uniform);
    for (int k = 0; k < f_[id].lanes; ++k)
      push(b_.emit(Op::extract, f_[id].type, {id}, uint64_t(k)), uniform);
  }

  void select() {
    const Value c = condition(false);
    const Type t = any_type();
    const Value x = pick(t), y = pick(t);
    push(b_.select(c.id, x.id, y.id), c.uniform && x.uniform && y.uniform, std::max(x.bound, y.bound));
  }

  void conversion() {
    Value v = pick(any_type());
    if (random_.chance(20) && v.type != Type::boolean) {  // the same bits
      Type to;
      do to = any_type(false);
      while (size_of(to) != size_of(v.type));
      if (webgpu() && (is_float(to) || is_float(v.type))) return;
      if (is_float(v.type)) v.id = without_nan(v.id);
      if (to != v.type) push(b_.bitcast(to, v.id), v.uniform);
      return;
    }
    if (random_.chance(15)) {
      const Value at = pick(Type::i32), n = pick(Type::i32);
      const Id size = b_.op(Op::iadd, {masked(n.id, 31), b_.i32(1)});
      push(b_.emit(Op::clamp_index, Type::i32, {at.id, size}), at.uniform && n.uniform);
      return;
    }
    const Type to = any_type(false);
    if (to == v.type) return;
    if (webgpu() && is_float(to) && is_integer(v.type)) v.id = b_.op(Op::band, {v.id, b_.number(v.type, 15)});
    push(b_.convert(to, v.id), v.uniform, 15);
  }

  /// Element offset of coordinates, slowest first, as the kernel language writes it.
  Id grid_offset(uint32_t buffer, const std::vector<Id>& coordinates) {
    Id sum = kNone;
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      Id term = b_.convert(f_.index_type, coordinates[axis]);
      if (axis + 1 < coordinates.size()) {
        const Id stride = b_.emit(Op::stride, f_.index_type, {}, uint64_t(buffer) * 8 + axis);
        term = b_.op(Op::imul, {term, stride}, kNoWrap);
      }
      sum = sum == kNone ? term : b_.op(Op::iadd, {sum, term}, kNoWrap);
    }
    return sum;
  }

  Storage storage_of(Type t) const {
    switch (t) {
      case Type::f64: return Storage::f64;
      case Type::i32: return Storage::i32;
      case Type::u32: return Storage::u32;
      case Type::i64: return Storage::i64;
      case Type::u64: return Storage::u64;
      default: return Storage::f32;
    }
  }

  struct LocalDecl {
    uint32_t array;
    Type type;
    int count;
    bool fixed;  // constant indices only
  };

  Recipe recipe_;
  Random random_;
  Program program_;
  Function& f_;
  Builder b_;
  std::vector<Type> types_;
  std::vector<uint32_t> inputs_, grids_, own_, counters_, shared_arrays_;
  std::vector<uint32_t> private_wide_;  // the lane's own of 64 bits, for atomic operations
  uint32_t private_atomics_ = 0, shared_atomics_ = 0;
  std::vector<Value> pool_;
  std::vector<Variable> vars_;
  std::vector<LocalDecl> arrays_;
  std::vector<Id> offsets_;  // of the lane's own elements, visible here
  Id sum_ = kNone;           // the lane's sum; none outside of a body
  Id linear_ = kNone, lane_ = kNone, own_base_ = kNone, private_base_ = kNone;
  int64_t total_ = 0;
  int body_ = 0, budget_ = 0, kept_loops_ = 0;
  bool reduces_ = false, shared_used_ = false, shared_atomics_used_ = false, shared_atomics_declared_ = false;
  bool shared_read_ = false;  // all read all; else each its own
  bool uniform_ = true;       // all lanes of the group are here
  bool lanes_left_ = false;   // some returned
  bool in_loop_ = false, keeps_lanes_ = false;
  bool values_only_ = false;  // a function that kernels call
};

}  // namespace lockstep::fuzz
