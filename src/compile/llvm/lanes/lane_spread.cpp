// Accesses whose lanes lie at distances that are known: constants, or constants times a value that all lanes
// share. They need one address, and no vector of them.
#include <algorithm>

#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

namespace {

int64_t signed_value(const Instruction& constant) {
  return is_wide(constant.type)       ? int64_t(constant.imm)
         : constant.type == Type::u32 ? int64_t(uint32_t(constant.imm))
                                      : int64_t(int32_t(uint32_t(constant.imm)));
}

std::vector<int64_t> mapped(std::vector<int64_t> values, const auto& function) {
  for (int64_t& v : values) v = function(v);
  return values;
}

/// The largest power of two such that the lanes form runs of that many neighbours.
int run_length(const std::vector<int64_t>& places) {
  for (int run = int(places.size()) / 2; run > 1; run /= 2) {
    bool all = true;
    for (size_t l = 0; l < places.size(); ++l)
      all &= places[l] == places[l - l % size_t(run)] + int64_t(l % size_t(run));
    if (all) return run;
  }
  return 1;
}

std::vector<int> row_of(int first, int count) {
  std::vector<int> order;
  for (int k = 0; k < count; ++k) order.push_back(first + k);
  return order;
}

}  // namespace

/// Nothing where the distances are not known, or the first lane's value cannot be computed here.
std::optional<LaneCode::Spread> LaneCode::spread(Id id) {
  const Instruction& i = f_[id];
  const Form& form = divergence_[id];
  if (!is_integer(i.type)) return {};
  Spread result;
  if (!form.is_varying()) {
    for (int l = 0; l < width_; ++l) result.fixed.push_back(form.kind == Form::linear ? form.stride * l : 0);
    result.exact = form.is_uniform() || form.exact;
    return result;
  }
  if (i.arg_count() == 0 || i.op == Op::get || i.op == Op::uniform) return {};
  std::array<std::optional<Spread>, 2> of;
  for (int k = 0; k < i.arg_count(); ++k) {
    // A value of another region is at hand where it was computed again, and not where it was kept.
    if (k > 1 || !slots_[i.args[k]][0]) return {};
    of[size_t(k)] = spread(i.args[k]);
    if (!of[size_t(k)]) return {};
  }
  const Spread& a = *of[0];
  const bool no_wrap = (i.flags & ir::kNoWrap) != 0;
  switch (i.op) {
    case Op::convert: {
      const Type from = f_[i.args[0]].type;
      return a.exact && is_signed(from) && is_signed(i.type) && is_wide(i.type) >= is_wide(from)
                 ? of[0]
                 : std::nullopt;
    }
    case Op::iadd:
    case Op::isub: return sum(a, *of[1], i.op == Op::iadd ? 1 : -1, no_wrap || divergence_.largest(id));
    case Op::imul: {
      const int which = divergence_.uniform(i.args[0]) ? 0 : 1;
      return divergence_.uniform(i.args[which])
                 ? product(*of[size_t(1 - which)], i.args[which], no_wrap || divergence_.largest(id))
                 : std::nullopt;
    }
    case Op::band:
    case Op::irem: {
      const Instruction& constant = f_[i.args[1]];
      const int64_t by = constant.op == Op::constant ? signed_value(constant) + (i.op == Op::band) : 0;
      // Of a first lane at a multiple of `by`, the rest is that of the distance.
      if (a.factor != ir::kNone || !a.exact || by <= 0 || (by & (by - 1)) != 0 ||
          divergence_.alignment(i.args[0]) < by || !divergence_.largest(i.args[0]))
        return {};
      result.fixed = mapped(a.fixed, [&](int64_t v) { return v & (by - 1); });
      result.exact = true;
      return result;
    }
    default: return {};
  }
}

std::optional<LaneCode::Spread> LaneCode::sum(const Spread& a, const Spread& b, int sign, bool no_wrap) {
  if (a.factor != ir::kNone && b.factor != ir::kNone && a.factor != b.factor) return {};
  Spread result{a.fixed, a.scaled, a.factor != ir::kNone ? a.factor : b.factor,
                a.exact && b.exact && no_wrap};
  if (result.factor != ir::kNone && !result.exact) return {};
  for (size_t l = 0; l < result.fixed.size(); ++l) result.fixed[l] += sign * b.fixed[l];
  if (b.scaled.empty()) return result;
  result.scaled.resize(result.fixed.size());
  for (size_t l = 0; l < result.fixed.size(); ++l) result.scaled[l] += sign * b.scaled[l];
  return result;
}

std::optional<LaneCode::Spread> LaneCode::product(const Spread& a, Id factor, bool no_wrap) {
  const Instruction& i = f_[factor];
  Spread result{{}, {}, a.factor, a.exact && no_wrap};
  if (i.op == Op::constant) {
    const int64_t by = signed_value(i);
    if (by > INT32_MAX || by < -INT32_MAX || (a.factor != ir::kNone && !result.exact)) return {};
    result.fixed = mapped(a.fixed, [&](int64_t v) { return v * by; });
    result.scaled = mapped(a.scaled, [&](int64_t v) { return v * by; });
    return result;
  }
  if (a.factor != ir::kNone || !result.exact) return {};
  result.fixed.assign(a.fixed.size(), 0);
  result.scaled = a.fixed;
  result.factor = factor;
  return result;
}

/// The first lane's value of what spread() knows.
Value* LaneCode::first_of(Id id) {
  if (!divergence_[id].is_varying()) return scalar(id);
  const Instruction& i = f_[id];
  return apply(i, true, first_of(i.args[0]), i.arg_count() > 1 ? first_of(i.args[1]) : nullptr, nullptr);
}

/// i64: elements from the first lane to lane `l`.
Value* LaneCode::distance(const Spread& s, int l) {
  Value* fixed = b_.getInt64(uint64_t(s.fixed[size_t(l)]));
  if (s.scaled.empty() || s.scaled[size_t(l)] == 0) return fixed;
  Value* factor = b_.CreateSExt(scalar(s.factor), b_.getInt64Ty());
  return b_.CreateAdd(b_.CreateMul(factor, b_.getInt64(uint64_t(s.scaled[size_t(l)]))), fixed);
}

/// Lanes follow each other at `count` elements if the shared value is so; null where they cannot.
Value* LaneCode::follow_each_other(const Spread& s, int count) {
  if (s.factor == ir::kNone) return nullptr;
  for (int l = 0; l < width_; ++l)
    if (s.scaled[size_t(l)] != l * s.scaled[1] || s.fixed[size_t(l)] != l * s.fixed[1]) return nullptr;
  return b_.CreateICmpEQ(distance(s, 1), b_.getInt64(uint64_t(count)));
}

/// `count` elements of each lane, lane after lane.
Value* LaneCode::spread_load(const MemoryPlace& place, Value* first, const Spread& s, int count) {
  llvm::Type* element = element_type(u_.context(), place.storage);
  Value* base = address(place, first);
  const auto load = [&](llvm::Type* type, Value* at) {
    llvm::LoadInst* one =
        b_.CreateAlignedLoad(type, b_.CreateGEP(element, base, at), alignment(place.storage));
    annotate(one, place);
    return one;
  };
  const int bits = count * 8 * size_of(place.storage);
  if (s.factor == ir::kNone && count == 1) {
    const auto [low, high] = std::minmax_element(s.fixed.begin(), s.fixed.end());
    if (*high - *low < width_) {  // the padding around an array makes the window readable
      std::vector<int> order;
      for (int64_t at : s.fixed) order.push_back(int(at - *low));
      return b_.CreateShuffleVector(load(vector_type(element), b_.getInt64(uint64_t(*low))), order);
    }
  }
  const int run = s.factor == ir::kNone && count == 1 ? run_length(s.fixed) : 1;
  if (run > 1 || (count > 1 && bits > 64)) {
    const int size = run * count;
    auto* type = llvm::FixedVectorType::get(element, unsigned(width_ * count));
    Value* all = llvm::PoisonValue::get(type);
    for (int l = 0; l < width_; l += run)
      all = b_.CreateInsertVector(type, all,
                                  load(llvm::FixedVectorType::get(element, unsigned(size)), distance(s, l)),
                                  b_.getInt64(uint64_t(l * count)));
    return all;
  }
  llvm::Type* lane = count == 1 ? element : b_.getIntNTy(unsigned(bits));
  Value* all = llvm::PoisonValue::get(vector_type(lane));
  for (int l = 0; l < width_; ++l) all = b_.CreateInsertElement(all, load(lane, distance(s, l)), uint64_t(l));
  return count == 1 ? all
                    : b_.CreateBitCast(all, llvm::FixedVectorType::get(element, unsigned(width_ * count)));
}

void LaneCode::spread_store(const MemoryPlace& place, Value* first, const Spread& s, int count,
                            Value* values) {
  llvm::Type* element = element_type(u_.context(), place.storage);
  Value* base = address(place, first);
  const int run = s.factor == ir::kNone && count == 1 ? run_length(s.fixed) : 1;
  for (int l = 0; l < width_; l += run) {
    Value* one = run * count == 1 ? b_.CreateExtractElement(values, uint64_t(l))
                                  : b_.CreateShuffleVector(values, row_of(l * count, run * count));
    annotate(
        b_.CreateAlignedStore(one, b_.CreateGEP(element, base, distance(s, l)), alignment(place.storage)),
        place);
  }
}

/// Elements of all lanes, at the distances of spread(). Null if gathering them is better.
Value* LaneCode::load_spread(const MemoryPlace& place, Id index, int count) {
  if (mask_) return nullptr;
  const auto s = spread(index);
  if (!s) return nullptr;
  const bool gathers = u_.target().scatters && count == 1 && size_of(place.storage) >= 4;
  if (gathers && s->factor == ir::kNone && run_length(s->fixed) == 1) return nullptr;
  Value* first = first_of(index);
  const auto apart = [&] { return spread_load(place, first, *s, count); };
  Value* row = count == 1 ? nullptr : follow_each_other(*s, count);
  if (!row) return gathers ? nullptr : apart();
  return either(
      row,
      [&] {
        llvm::Type* element = element_type(u_.context(), place.storage);
        llvm::LoadInst* all =
            b_.CreateAlignedLoad(llvm::FixedVectorType::get(element, unsigned(width_ * count)),
                                 address(place, first), alignment(place.storage));
        annotate(all, place);
        return all;
      },
      apart);
}

/// False where scattering them is better. `values`: lane after lane.
bool LaneCode::store_spread(const MemoryPlace& place, Id index, int count, Value* values, bool streaming) {
  if (mask_) return false;
  const auto s = spread(index);
  if (!s) return false;
  Value* first = first_of(index);
  Value* row = count == 1 ? nullptr : follow_each_other(*s, count);
  if (!row) {
    spread_store(place, first, *s, count, values);
    return true;
  }
  llvm::BasicBlock *near = u_.new_block("row"), *apart = u_.new_block("apart"),
                   *done = u_.new_block("spread");
  b_.CreateCondBr(row, near, apart);
  b_.SetInsertPoint(near);
  plain_store(place, address(place, first), values, nullptr, streaming);
  b_.CreateBr(done);
  b_.SetInsertPoint(apart);
  spread_store(place, first, *s, count, values);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return true;
}

}  // namespace lockstep::compile::simd
