// Loads, stores, atomics: vector accesses where the index is linear, scalar ones where it is uniform, gathers
// else.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

namespace {
/// Lane l of component k is at l * count + k. This shuffle extracts component k, or combines all
/// components.
std::vector<int> take_component(int width, int count, int k) {
  std::vector<int> order;
  for (int l = 0; l < width; ++l) order.push_back(l * count + k);
  return order;
}
std::vector<int> interleave(int width, int count) {
  std::vector<int> order;
  for (int l = 0; l < width; ++l)
    for (int k = 0; k < count; ++k) order.push_back(k * width + l);
  return order;
}
}  // namespace

void LaneCode::annotate(llvm::Instruction* access, const MemoryPlace& place) {
  if (!place.scope) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, place.scope);
  if (place.disjoint->getNumOperands() > 0)
    access->setMetadata(llvm::LLVMContext::MD_noalias, place.disjoint);
}

/// Pointer to element `index` (scalar or vector) of the array, moved by `more` elements.
Value* LaneCode::address(const MemoryPlace& place, Value* index, int64_t more) {
  llvm::Type* element = element_type(u_.context(), place.storage);
  if (!index->getType()->isVectorTy()) index = b_.CreateSExt(index, b_.getInt64Ty());
  Value* pointer = b_.CreateGEP(element, place.base, index);
  return more == 0 ? pointer : b_.CreateConstGEP1_64(element, pointer, uint64_t(more));
}

Value* LaneCode::repeat_mask(int components) {
  if (components == 1) return mask_;
  std::vector<int> order;
  for (int l = 0; l < width_; ++l) order.insert(order.end(), size_t(components), l);
  return b_.CreateShuffleVector(mask_, order);
}

Value* LaneCode::gather(const MemoryPlace& place, Value* index) {
  if (size_of(place.storage) < 4) return gather_narrow(place, index);
  llvm::Type* type = vector_type(element_type(u_.context(), place.storage));
  Value* mask = mask_ ? mask_ : full_mask();
  if (mask_ && !u_.target().scatters) {
    // Without an instruction for it each lane would become a branch. Lanes that are off read the first element,
    // which is there since some lane reads.
    index = b_.CreateSelect(mask_, index, llvm::Constant::getNullValue(index->getType()));
    mask = full_mask();
  }
  llvm::CallInst* values = b_.CreateMaskedGather(type, address(place, index), alignment(place.storage), mask,
                                                 llvm::PoisonValue::get(type));
  annotate(values, place);
  return values;
}

/// Values to places of the lanes' own. Without an instruction for it, LLVM would branch for each lane of a mask:
/// a loop over the lanes that are on instead.
void LaneCode::scatter(const MemoryPlace& place, Value* index, Value* values) {
  if (!mask_ || u_.target().scatters) {
    annotate(b_.CreateMaskedScatter(values, address(place, index), alignment(place.storage),
                                    mask_ ? mask_ : full_mask()),
             place);
    return;
  }
  const auto in_memory = [&](Value* v) {
    Value* memory = u_.local(v->getType());
    b_.CreateStore(v, memory);
    return memory;
  };
  Value *const indices = in_memory(index), *const elements = in_memory(values);
  const auto at = [&](Value* v, Value* memory, Value* lane) {
    llvm::Type* element = v->getType()->getScalarType();
    return b_.CreateLoad(element, b_.CreateGEP(element, memory, lane));
  };
  for_active_lanes([&](Value* lane) {
    annotate(b_.CreateAlignedStore(at(values, elements, lane), address(place, at(index, indices, lane)),
                                   alignment(place.storage)),
             place);
  });
}

/// A loop over the lanes of the mask, of which there is one at least.
void LaneCode::for_active_lanes(const std::function<void(Value*)>& body) {
  Value* begin = mask_bits();
  llvm::BasicBlock *from = b_.GetInsertBlock(), *each = u_.new_block("lane"),
                   *done = u_.new_block("lanes_done");
  b_.CreateBr(each);
  b_.SetInsertPoint(each);
  llvm::PHINode* left = b_.CreatePHI(begin->getType(), 2);
  left->addIncoming(begin, from);
  body(b_.CreateZExtOrTrunc(
      b_.CreateIntrinsic(llvm::Intrinsic::cttz, {begin->getType()}, {left, b_.getTrue()}), b_.getInt64Ty()));
  Value* next = b_.CreateAnd(left, b_.CreateSub(left, llvm::ConstantInt::get(begin->getType(), 1)));
  left->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(next, llvm::Constant::getNullValue(begin->getType())), each, done);
  b_.SetInsertPoint(done);
}

/// A row position, clamped on one or both sides, plus what the lanes share: the indices rise by 0 or 1 from
/// lane to lane, provided that none of the positions in `may_wrap` wraps within the vector.
bool LaneCode::is_clamped_row(Id id, std::vector<Id>& may_wrap) {
  const Instruction& i = f_[id];
  const auto uniform = [&](int k) { return divergence_.uniform(i.args[k]); };
  const auto row = [&](int k) {
    const Form& form = divergence_[i.args[k]];
    if (form.is_varying()) return is_clamped_row(i.args[k], may_wrap);
    if (form.kind != Form::linear || form.stride != 1) return false;
    if (!form.exact) may_wrap.push_back(i.args[k]);
    return true;
  };
  const auto inner = [&](int k) {
    return divergence_[i.args[k]].is_varying() && is_clamped_row(i.args[k], may_wrap);
  };
  if (!is_signed(i.type)) return false;
  switch (i.op) {
    case Op::clamp_index: return uniform(1) && row(0);
    case Op::imin:
    case Op::imax: return uniform(1) ? row(0) : uniform(0) && row(1);
    case Op::convert: return f_[i.args[0]].type == Type::i32 && inner(0);
    case Op::iadd: return uniform(1) ? inner(0) : uniform(0) && inner(1);
    case Op::isub: return uniform(1) && inner(0);
    default: return false;
  }
}

/// One vector load and a permutation instead of a gather; the padding around an array makes the vector
/// readable.
Value* LaneCode::permuted_load(const MemoryPlace& place, Value* index) {
  llvm::Type* element = element_type(u_.context(), place.storage);
  Value* first = b_.CreateExtractElement(index, uint64_t(0));
  llvm::LoadInst* window =
      b_.CreateAlignedLoad(vector_type(element), address(place, first), alignment(place.storage));
  annotate(window, place);
  if (size_of(place.storage) == 8) {
    llvm::Type* longs = vector_type(b_.getInt64Ty());
    Value* order = b_.CreateZExtOrTrunc(b_.CreateSub(index, splat(first)), longs);
    Value* chosen = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_di_512, {},
                                       {b_.CreateBitCast(window, longs), order});
    return b_.CreateBitCast(chosen, vector_type(element));
  }
  llvm::Type* words = vector_type(b_.getInt32Ty());
  const bool whole = size_of(place.storage) == 4;
  Value* order = b_.CreateTrunc(b_.CreateSub(index, splat(first)), words);
  Value* bits = whole ? b_.CreateBitCast(window, words) : b_.CreateZExt(window, words);
  const auto id = width_ == 16 ? llvm::Intrinsic::x86_avx512_permvar_si_512 : llvm::Intrinsic::x86_avx2_permd;
  Value* chosen = b_.CreateIntrinsic(id, {}, {bits, order});
  return whole ? b_.CreateBitCast(chosen, vector_type(element))
               : b_.CreateTrunc(chosen, vector_type(element));
}

/// A choice by lane of two rows that rise by 1 from lane to lane, plus what the lanes share: a periodic shift. Nothing
/// wraps.
std::optional<Id> LaneCode::find_two_rows(Id id) {
  const Instruction& i = f_[id];
  const auto row = [&](int k) {
    const Form& form = divergence_[i.args[k]];
    return form.kind == Form::linear && form.stride == 1 && form.exact;
  };
  if (!is_signed(i.type) || !divergence_[id].is_varying()) return {};
  switch (i.op) {
    case Op::select: return row(1) && row(2) ? std::optional(id) : std::nullopt;
    case Op::convert: return f_[i.args[0]].type == Type::i32 ? find_two_rows(i.args[0]) : std::nullopt;
    case Op::iadd:
      if (!(i.flags & ir::kNoWrap)) return {};
      if (divergence_.uniform(i.args[1])) return find_two_rows(i.args[0]);
      return divergence_.uniform(i.args[0]) ? find_two_rows(i.args[1]) : std::nullopt;
    default: return {};
  }
}

/// The first lane's index if all lanes chose operand `arm` of `choice`.
Value* LaneCode::first_in_row(Id id, Id choice, int arm) {
  const Instruction& i = f_[id];
  if (id == choice) return scalar(i.args[arm]);
  if (i.op == Op::convert)
    return b_.CreateSExtOrTrunc(first_in_row(i.args[0], choice, arm),
                                is_wide(i.type) ? b_.getInt64Ty() : b_.getInt32Ty());
  const int shared = divergence_.uniform(i.args[1]) ? 1 : 0;
  return b_.CreateAdd(first_in_row(i.args[1 - shared], choice, arm), scalar(i.args[shared]));
}

/// One vector load under a mask for each of the two rows.
Value* LaneCode::two_rows_load(const MemoryPlace& place, Id id, Id choice) {
  llvm::Type* type = vector_type(element_type(u_.context(), place.storage));
  Value* chosen = vector(f_[choice].args[0]);
  Value* values = llvm::Constant::getNullValue(type);
  for (int arm = 1; arm <= 2; ++arm) {
    Value* lanes = arm == 1 ? chosen : b_.CreateNot(chosen);
    if (mask_) lanes = b_.CreateAnd(lanes, mask_);
    llvm::CallInst* some = b_.CreateMaskedLoad(type, address(place, first_in_row(id, choice, arm)),
                                               alignment(place.storage), lanes, values);
    annotate(some, place);
    values = some;
  }
  return values;
}

/// Both ways of computing a value, chosen by a uniform condition.
Value* LaneCode::either(Value* condition, const std::function<Value*()>& yes,
                        const std::function<Value*()>& no) {
  llvm::BasicBlock *first = u_.new_block("either"), *second = u_.new_block("or"),
                   *join = u_.new_block("joined");
  b_.CreateCondBr(condition, first, second);
  Value* values[2];
  llvm::BasicBlock* from[2];
  for (int k = 0; k < 2; ++k) {
    b_.SetInsertPoint(k == 0 ? first : second);
    values[k] = k == 0 ? yes() : no();
    from[k] = b_.GetInsertBlock();
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  llvm::PHINode* value = b_.CreatePHI(values[0]->getType(), 2);
  for (int k = 0; k < 2; ++k) value->addIncoming(values[k], from[k]);
  return value;
}

/// Elements at a vector of indices.
Value* LaneCode::scattered_load(const MemoryPlace& place, Id id) {
  if (u_.target().lanes == 16 && size_of(place.storage) >= 4)
    if (const auto choice = find_two_rows(id)) return two_rows_load(place, id, *choice);
  Value* index = vector(id);
  std::vector<Id> may_wrap;
  const bool permutes = u_.target().permutes && width_ >= 8 && width_ <= u_.target().lanes &&
                        (size_of(place.storage) <= 4 || (width_ == 8 && u_.target().lanes == 16));
  if (!permutes || !is_clamped_row(id, may_wrap)) return gather(place, index);
  Value* safe = nullptr;
  for (Id position : may_wrap) {
    Value* base = scalar(position);
    const unsigned bits = base->getType()->getIntegerBitWidth();
    const llvm::APInt last = llvm::APInt::getSignedMaxValue(bits) - uint64_t(width_);
    Value* no_wrap = b_.CreateICmpSLE(base, llvm::ConstantInt::get(base->getType(), last));
    safe = safe ? b_.CreateAnd(safe, no_wrap) : no_wrap;
  }
  if (!safe) return permuted_load(place, index);
  return either(safe, [&] { return permuted_load(place, index); }, [&] { return gather(place, index); });
}

/// Bytes and 16-bit words come out of gathered 32-bit words; the padding around a buffer makes them readable.
Value* LaneCode::gather_narrow(const MemoryPlace& place, Value* index) {
  const int size = size_of(place.storage), per_word = 4 / size;
  llvm::Type* word = b_.getInt32Ty();
  Value* base = b_.CreatePtrToInt(place.base, b_.getInt64Ty());
  Value* shifted = b_.CreateLShr(b_.CreateAnd(base, b_.getInt64(3)), b_.getInt64(uint64_t(size / 2)));
  Value* start = b_.CreateIntToPtr(b_.CreateAnd(base, b_.getInt64(~uint64_t(3))), place.base->getType());
  llvm::Type* scalar = index->getType()->getScalarType();
  Value* element = b_.CreateAdd(index, splat(b_.CreateZExtOrTrunc(shifted, scalar)));
  const auto constant = [&](uint64_t v) { return llvm::ConstantInt::get(index->getType(), v); };
  Value* words_index = b_.CreateLShr(element, constant(size == 1 ? 2 : 1));
  llvm::CallInst* words =
      b_.CreateMaskedGather(vector_type(word), b_.CreateGEP(word, start, words_index), llvm::Align(4),
                            mask_ ? mask_ : full_mask(), llvm::PoisonValue::get(vector_type(word)));
  Value* bits =
      b_.CreateMul(b_.CreateAnd(element, constant(uint64_t(per_word - 1))), constant(uint64_t(8 * size)));
  Value* value = b_.CreateLShr(words, b_.CreateZExtOrTrunc(bits, vector_type(word)));
  value = b_.CreateTrunc(value, vector_type(b_.getIntNTy(unsigned(8 * size))));
  return b_.CreateBitCast(value, vector_type(element_type(u_.context(), place.storage)));
}

Slot LaneCode::load(const Access& a) {
  const Form& form = divergence_[a.index];
  llvm::Type* element = element_type(u_.context(), a.place.storage);
  Slot values{};
  const auto put = [&](int k, Value* raw) { values[k] = widen(b_, a.place.storage, raw); };
  if (form.is_uniform()) {
    Value* index = scalar(a.index);
    for (int k = 0; k < a.components; ++k) {
      llvm::LoadInst* one =
          b_.CreateAlignedLoad(element, address(a.place, index, k), alignment(a.place.storage));
      annotate(one, a.place);
      put(k, one);
    }
    return values;
  }
  if (form.kind == Form::linear && form.stride == a.components) {
    auto* type = llvm::FixedVectorType::get(element, unsigned(width_ * a.components));
    Value* pointer = address(a.place, scalar(a.index));
    llvm::Instruction* all;
    if (mask_)
      all = b_.CreateMaskedLoad(type, pointer, alignment(a.place.storage), repeat_mask(a.components),
                                llvm::PoisonValue::get(type));
    else
      all = b_.CreateAlignedLoad(type, pointer, alignment(a.place.storage));
    annotate(all, a.place);
    for (int k = 0; k < a.components; ++k)
      put(k, a.components == 1 ? all : b_.CreateShuffleVector(all, take_component(width_, a.components, k)));
    return values;
  }
  if (form.kind == Form::linear && form.stride > a.components && form.stride <= Interleaved::kMost) {
    const Records rows = load_rows(a.place, scalar(a.index), int(form.stride), a.components);
    for (int k = 0; k < a.components; ++k) put(k, rows[size_t(k)]);
    return values;
  }
  if (Value* all = load_spread(a.place, a.index, a.components)) {
    for (int k = 0; k < a.components; ++k)
      put(k, a.components == 1 ? all : b_.CreateShuffleVector(all, take_component(width_, a.components, k)));
    return values;
  }
  if (a.components == 1) {
    put(0, scattered_load(a.place, a.index));
    return values;
  }
  Value* index = vector(a.index);
  for (int k = 0; k < a.components; ++k)
    put(k,
        gather(a.place,
               k == 0 ? index : b_.CreateAdd(index, llvm::ConstantInt::get(index->getType(), uint64_t(k)))));
  return values;
}

void LaneCode::plain_store(const MemoryPlace& place, Value* pointer, Value* value, Value* mask,
                           bool streaming) {
  if (mask) {
    annotate(b_.CreateMaskedStore(value, pointer, alignment(place.storage), mask), place);
    return;
  }
  const uint64_t bytes = value->getType()->getPrimitiveSizeInBits() / 8;
  if ((!streaming && !place.large) || bytes < 16 || bytes % 16 != 0) {
    annotate(b_.CreateAlignedStore(value, pointer, alignment(place.storage)), place);
    return;
  }
  // Stores past the caches need whole aligned lines.
  u_.streams = true;
  const uint64_t need = std::min<uint64_t>(bytes & -bytes, kAlignment);
  Value* low = b_.CreateAnd(b_.CreatePtrToInt(pointer, b_.getInt64Ty()), b_.getInt64(need - 1));
  llvm::BasicBlock *aligned = u_.new_block("aligned"), *unaligned = u_.new_block("unaligned"),
                   *stored = u_.new_block("stored");
  Value* past_caches = b_.CreateICmpEQ(low, b_.getInt64(0));
  if (!streaming) past_caches = b_.CreateAnd(past_caches, place.large);
  b_.CreateCondBr(past_caches, aligned, unaligned,
                  streaming ? llvm::MDBuilder(u_.context()).createBranchWeights(1000, 1) : nullptr);
  b_.SetInsertPoint(aligned);
  llvm::StoreInst* past = b_.CreateAlignedStore(value, pointer, llvm::Align(need));
  past->setMetadata(llvm::LLVMContext::MD_nontemporal,
                    llvm::MDNode::get(u_.context(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  annotate(past, place);
  b_.CreateBr(stored);
  b_.SetInsertPoint(unaligned);
  annotate(b_.CreateAlignedStore(value, pointer, alignment(place.storage)), place);
  b_.CreateBr(stored);
  b_.SetInsertPoint(stored);
}

void LaneCode::store(const Access& a, const std::array<Value*, 4>& values, bool uniform_values) {
  const Form& form = divergence_[a.index];
  if (form.is_uniform()) {
    // Several lanes at one place: the last active one is seen.
    Value* index = scalar(a.index);
    Value* lane = nullptr;
    if (!uniform_values) {
      lane = b_.getInt32(uint32_t(width_ - 1));
      if (mask_) {
        Value* bits = mask_bits();
        Value* zeros = b_.CreateIntrinsic(llvm::Intrinsic::ctlz, {bits->getType()}, {bits, b_.getTrue()});
        lane = b_.CreateSub(lane, b_.CreateZExtOrTrunc(zeros, b_.getInt32Ty()));
      }
    }
    for (int k = 0; k < a.components; ++k) {
      Value* one = uniform_values ? values[k] : b_.CreateExtractElement(values[k], lane);
      annotate(b_.CreateAlignedStore(narrow(b_, a.place.storage, one), address(a.place, index, k),
                                     alignment(a.place.storage)),
               a.place);
    }
    return;
  }
  std::array<Value*, 4> raw{};
  for (int k = 0; k < a.components; ++k) {
    Value* all = values[k]->getType()->isVectorTy() ? values[k] : splat(values[k]);
    raw[k] = narrow(b_, a.place.storage, all);
  }
  Value* together = raw[0];
  if (a.components == 2) together = b_.CreateShuffleVector(raw[0], raw[1], interleave(width_, 2));
  if (a.components == 4) {
    std::vector<int> order(size_t(2 * width_));
    for (int k = 0; k < 2 * width_; ++k) order[size_t(k)] = k;
    Value *low = b_.CreateShuffleVector(raw[0], raw[1], order),
          *high = b_.CreateShuffleVector(raw[2], raw[3], order);
    together = b_.CreateShuffleVector(low, high, interleave(width_, 4));
  }
  if (form.kind == Form::linear && form.stride == a.components)
    return plain_store(a.place, address(a.place, scalar(a.index)), together,
                       mask_ ? repeat_mask(a.components) : nullptr, a.flags & ir::kStreaming);
  Value* index = vector(a.index);
  if (store_spread(a.place, a.index, a.components, together, a.flags & ir::kStreaming)) return;
  for (int k = 0; k < a.components; ++k)
    scatter(a.place,
            k == 0 ? index : b_.CreateAdd(index, llvm::ConstantInt::get(index->getType(), uint64_t(k))),
            raw[k]);
}

void LaneCode::load_instruction(Id id) {
  const Instruction& i = f_[id];
  if (load_interleaved(id)) return;
  const bool buffer = i.op == Op::load;
  slots_[id] = load({buffer ? u_.buffer(i.imm) : u_.shared(i.imm), i.args[0], i.lanes, i.flags});
}

void LaneCode::store_instruction(Id id) {
  const Instruction& i = f_[id];
  if (store_interleaved(id)) return;
  const MemoryPlace place = i.op == Op::store ? u_.buffer(i.imm) : u_.shared(i.imm);
  bool uniform_values = true;
  for (int k = 0; k < i.lanes; ++k) uniform_values &= divergence_.uniform(i.args[1 + k]);
  std::array<Value*, 4> values{};
  for (int k = 0; k < i.lanes; ++k)
    values[k] = uniform_values ? scalar(i.args[1 + k]) : vector(i.args[1 + k]);
  store({place, i.args[0], i.lanes, i.flags}, values, uniform_values);
}

void LaneCode::async_copy(Id id) {
  const Instruction& i = f_[id];
  const Slot values = load({u_.buffer(i.imm & 0xffffffffu), i.args[1], i.lanes, i.flags});
  const bool uniform_values = !values[0]->getType()->isVectorTy();
  store({u_.shared(i.imm >> 32), i.args[0], i.lanes, 0}, values, uniform_values);
}

// A local array keeps one vector of lanes per element.

Value* LaneCode::local_array(uint64_t number) {
  Value*& array = local_arrays_[number];
  if (!array) array = outer_array(number);
  if (!array) {
    llvm::Type* element = vector_type(element_type(u_.context(), f_.locals[number].storage));
    const int64_t count = f_.locals[number].count,
                  bytes = count * width_ * size_of(f_.locals[number].storage);
    array =
        bytes <= (32 << 10) ? u_.local(llvm::ArrayType::get(element, uint64_t(count))) : u_.scratch(bytes);
  }
  return array;
}

Slot LaneCode::local_load(Id id) {
  const Instruction& i = f_[id];
  const Storage storage = f_.locals[i.imm].storage;
  llvm::Type* type = vector_type(element_type(u_.context(), storage));
  Value* array = local_array(i.imm);
  if (divergence_.uniform(i.args[0])) {
    Value* index = b_.CreateSExt(scalar(i.args[0]), b_.getInt64Ty());
    return {widen(b_, storage, b_.CreateLoad(type, b_.CreateGEP(type, array, index)))};
  }
  Value* index = vector(i.args[0]);
  Value* element =
      b_.CreateAdd(b_.CreateMul(index, llvm::ConstantInt::get(index->getType(), uint64_t(width_))),
                   iota(index->getType()->getScalarType()));
  return {widen(b_, storage, gather({array, storage}, element))};
}

void LaneCode::local_store(Id id) {
  const Instruction& i = f_[id];
  const Storage storage = f_.locals[i.imm].storage;
  llvm::Type* type = vector_type(element_type(u_.context(), storage));
  Value* array = local_array(i.imm);
  Value* value = narrow(b_, storage, vector(i.args[1]));
  if (divergence_.uniform(i.args[0])) {
    Value* index = b_.CreateSExt(scalar(i.args[0]), b_.getInt64Ty());
    Value* pointer = b_.CreateGEP(type, array, index);
    if (mask_ && flow_ != 0) value = b_.CreateSelect(mask_, value, b_.CreateLoad(type, pointer));
    b_.CreateStore(value, pointer);
    return;
  }
  Value* index = vector(i.args[0]);
  Value* element =
      b_.CreateAdd(b_.CreateMul(index, llvm::ConstantInt::get(index->getType(), uint64_t(width_))),
                   iota(index->getType()->getScalarType()));
  scatter({array, storage}, element, value);
}

}  // namespace lockstep::compile::simd
