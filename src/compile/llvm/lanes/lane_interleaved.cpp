// Neighbouring elements at places that differ by lane: records. A record is one wide access per lane and a
// transposition in registers, where a gather or scatter per element costs a memory access per lane and
// element.
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

namespace {

/// Adjacent elements in one access of a record: 2, or 4 of which the last may be unused.
int record_size(int count) { return count <= 2 ? 2 : 4; }

/// The places of two vectors' elements, by number of the element in both: `low` or high half of each block of
/// `block` elements, taken in turn from one and the other.
std::vector<int> in_turn(int width, int block, int first, int step) {
  std::vector<int> order;
  for (int at = 0; at < width; at += block)
    for (int k = 0; k < block / 2; ++k) {
      order.push_back(at + first + k * step);
      order.push_back(width + at + first + k * step);
    }
  return order;
}
/// The lower or upper halves of the blocks of both vectors, alternating between the two.
std::vector<int> halves(int width, int block, bool upper) {
  std::vector<int> order;
  for (int at = 0; at < width; at += block)
    for (int of = 0; of < 2; ++of)
      for (int k = 0; k < block / 2; ++k) order.push_back(of * width + at + (upper ? block / 2 : 0) + k);
  return order;
}

}  // namespace

/// Whether the index of all members is known to vary in the same way over the lanes.
bool LaneCode::same_forms(const Interleaved& set) {
  const Form& first = divergence_[f_[set.members[0].access].args[0]];
  for (const Interleaved::Member& m : set.members) {
    const Form& form = divergence_[f_[m.access].args[0]];
    if (form.kind != first.kind || form.stride != first.stride) return false;
  }
  return true;
}

/// Loads the whole set at its first member. False if there is no set, or if separate loads are better.
bool LaneCode::load_interleaved(Id id) {
  if (slots_[id][0]) return true;
  const Interleaved* set = u_.interleaved().find(id);
  if (!set || !same_forms(*set)) return false;
  const Interleaved::Member& first = set->members[0];
  const Instruction& i = f_[first.access];
  const MemoryPlace place = i.op == Op::load ? u_.buffer(i.imm) : u_.shared(i.imm);
  const Form& form = divergence_[i.args[0]];
  const int count = int(set->width);
  const auto moved = [&](Value* index) {
    return b_.CreateSub(index,
                        llvm::ConstantInt::get(index->getType(), uint64_t(first.offset - set->first_offset)));
  };
  Records records;
  if (form.kind == Form::linear && form.stride >= count && form.stride <= Interleaved::kMost) {
    records = load_rows(place, moved(scalar(i.args[0])), int(form.stride), count);
  } else {
    std::vector<Id> may_wrap;
    if (!form.is_varying() || size_of(place.storage) < 4 || is_clamped_row(i.args[0], may_wrap)) return false;
    Value* index = vector(i.args[0]);
    records = gather_records(place, moved(index), count);
  }
  for (const Interleaved::Member& m : set->members)
    slots_[m.access] = {widen(b_, place.storage, records[size_t(m.offset - set->first_offset)])};
  return true;
}

/// Stores the whole set at its last member. False if there is no set, or if separate stores are better.
bool LaneCode::store_interleaved(Id id) {
  const Interleaved* set = u_.interleaved().find(id);
  if (!set || !same_forms(*set)) return false;
  const Interleaved::Member& first = set->members[0];
  const Instruction& i = f_[first.access];
  const MemoryPlace place = i.op == Op::store ? u_.buffer(i.imm) : u_.shared(i.imm);
  const Form& form = divergence_[i.args[0]];
  const int count = int(set->width);
  const bool rows = form.kind == Form::linear && form.stride == count;
  if (!rows && (!form.is_varying() || size_of(place.storage) < 4)) return false;
  if (id != set->members.back().access) return true;
  Records values{};
  for (const Interleaved::Member& m : set->members)
    values[size_t(m.offset - set->first_offset)] = narrow(b_, place.storage, vector(f_[m.access].args[1]));
  const auto moved = [&](Value* index) {
    return b_.CreateSub(index,
                        llvm::ConstantInt::get(index->getType(), uint64_t(first.offset - set->first_offset)));
  };
  if (rows)
    store_rows(place, moved(scalar(i.args[0])), values, count, i.flags & ir::kStreaming);
  else
    scatter_records(place, moved(vector(i.args[0])), values, count);
  return true;
}

/// Indices go to scalar registers through memory: one load each instead of two shuffles. Volatile, or the
/// optimiser would bring the shuffles back.
void LaneCode::for_lanes(Value* index, const std::function<void(Value*)>& body) {
  Value* indices = u_.local(index->getType());
  b_.CreateStore(index, indices);
  llvm::Type* type = index->getType()->getScalarType();
  for (int l = 0; l < width_; ++l)
    body(b_.CreateLoad(type, b_.CreateConstGEP1_64(type, indices, uint64_t(l)), true));
}

/// Elements index … index + count - 1 of each lane. A record is read whole: because of the padding around an
/// array, the bytes after its last element are readable.
LaneCode::Records LaneCode::gather_records(const MemoryPlace& place, Value* index, int count) {
  llvm::Type* element = element_type(u_.context(), place.storage);
  const int size = record_size(count);
  Records records{};
  // Pairs of words are gathered as one long each.
  if (size == 2 && size_of(place.storage) == 4 && u_.target().permutes) {
    llvm::Type* longs = vector_type(b_.getInt64Ty());
    llvm::CallInst* pairs = b_.CreateMaskedGather(longs, address(place, index), llvm::Align(4),
                                                  mask_ ? mask_ : full_mask(), llvm::PoisonValue::get(longs));
    annotate(pairs, place);
    Value* all = b_.CreateBitCast(pairs, llvm::FixedVectorType::get(element, unsigned(2 * width_)));
    for (int k = 0; k < 2; ++k) {
      std::vector<int> order;
      for (int l = 0; l < width_; ++l) order.push_back(2 * l + k);
      records[size_t(k)] = b_.CreateShuffleVector(all, order);
    }
    return records;
  }
  // Lanes that are off read the first record, which is there since some lane reads.
  if (mask_) index = b_.CreateSelect(mask_, index, llvm::Constant::getNullValue(index->getType()));
  llvm::Type* record = llvm::FixedVectorType::get(element, unsigned(size));
  std::vector<Value*> lanes;
  for_lanes(index, [&](Value* at) {
    llvm::LoadInst* one = b_.CreateAlignedLoad(record, address(place, at), alignment(place.storage));
    annotate(one, place);
    lanes.push_back(one);
  });
  return transposed(lanes, size, size_of(place.storage) == 4);
}

/// One vector of lanes per element, out of one record of `size` elements per lane.
LaneCode::Records LaneCode::transposed(const std::vector<Value*>& lanes, int size, bool words) {
  Records records{};
  // Vector j holds the records of lanes j, j + size, j + 2 size …
  std::array<Value*, 4> parts{};
  for (int j = 0; j < size; ++j) {
    std::vector<Value*> own;
    for (int l = j; l < width_; l += size) own.push_back(lanes[size_t(l)]);
    while (own.size() > 1) {
      std::vector<Value*> joined;
      for (size_t k = 0; k < own.size(); k += 2) {
        const int n = int(llvm::cast<llvm::FixedVectorType>(own[k]->getType())->getNumElements());
        std::vector<int> order;
        for (int e = 0; e < 2 * n; ++e) order.push_back(e);
        joined.push_back(b_.CreateShuffleVector(own[k], own[k + 1], order));
      }
      own = std::move(joined);
    }
    parts[size_t(j)] = own[0];
  }
  if (size == 2) {
    for (int k = 0; k < 2; ++k)
      records[size_t(k)] = b_.CreateShuffleVector(parts[0], parts[1], in_turn(width_, 2, k, 1));
    return records;
  }
  // Shuffles within 128 bits: words 0 1 and 2 3 come together, of longs 0 2 and 1 3.
  for (int k = 0; k < 2; ++k) {
    const auto pick = words ? in_turn(width_, 4, 2 * k, 1) : in_turn(width_, 4, k, 2);
    Value *low = b_.CreateShuffleVector(parts[0], parts[1], pick),
          *high = b_.CreateShuffleVector(parts[2], parts[3], pick);
    for (int h = 0; h < 2; ++h)
      records[size_t(words ? 2 * k + h : k + 2 * h)] =
          b_.CreateShuffleVector(low, high, halves(width_, 4, h == 1));
  }
  return records;
}

/// The lanes of the mask one after the other, out of transposed values in memory.
void LaneCode::scatter_records(const MemoryPlace& place, Value* index, const Records& values, int count) {
  llvm::Type* element = element_type(u_.context(), place.storage);
  const int size = record_size(count), bytes = size_of(place.storage);
  std::array<Value*, 4> all{};
  for (int k = 0; k < size; ++k)
    all[size_t(k)] = k < count ? values[size_t(k)] : llvm::PoisonValue::get(vector_type(element));
  // Record of lane l: part l % size, place l / size within it.
  std::array<Value*, 4> parts{};
  if (size == 2) {
    for (int k = 0; k < 2; ++k)
      parts[size_t(k)] = b_.CreateShuffleVector(all[0], all[1], in_turn(width_, 2, k, 1));
  } else {
    for (int k = 0; k < 2; ++k) {
      Value *low = b_.CreateShuffleVector(all[0], all[1], in_turn(width_, 4, 2 * k, 1)),
            *high = b_.CreateShuffleVector(all[2], all[3], in_turn(width_, 4, 2 * k, 1));
      for (int h = 0; h < 2; ++h)
        parts[size_t(2 * k + h)] = b_.CreateShuffleVector(low, high, halves(width_, 4, h == 1));
    }
  }
  auto* table = llvm::ArrayType::get(vector_type(element), unsigned(size));
  Value* records = u_.local(table);
  for (int j = 0; j < size; ++j)
    b_.CreateStore(parts[size_t(j)], b_.CreateConstGEP1_64(vector_type(element), records, uint64_t(j)));
  Value* indices = u_.local(index->getType());
  b_.CreateStore(index, indices);

  for_active_lanes([&](Value* lane) {
    Value* to = address(place, b_.CreateLoad(index->getType()->getScalarType(),
                                             b_.CreateGEP(index->getType()->getScalarType(), indices, lane)));
    const uint64_t shift = size == 2 ? 1 : 2;
    Value* slot = b_.CreateAdd(
        b_.CreateMul(b_.CreateAnd(lane, b_.getInt64(uint64_t(size - 1))), b_.getInt64(uint64_t(width_))),
        b_.CreateShl(b_.CreateLShr(lane, b_.getInt64(shift)), b_.getInt64(shift)));
    Value* record = b_.CreateGEP(element, records, slot);
    const auto copy = [&](int first, int n) {
      llvm::Type* type = n == 1 ? b_.getIntNTy(unsigned(8 * bytes))
                         : n * bytes == 8
                             ? static_cast<llvm::Type*>(b_.getInt64Ty())
                             : llvm::FixedVectorType::get(b_.getIntNTy(unsigned(8 * bytes)), unsigned(n));
      Value* taken = b_.CreateAlignedLoad(type, b_.CreateConstGEP1_64(element, record, uint64_t(first)),
                                          llvm::Align(uint64_t(bytes)));
      annotate(b_.CreateAlignedStore(taken, b_.CreateConstGEP1_64(element, to, uint64_t(first)),
                                     alignment(place.storage)),
               place);
    };
    copy(0, count == 4 ? 4 : 2);
    if (count == 3) copy(2, 1);
  });
}

/// Mask of the elements in vector `part` of rows of `count` elements a lane.
Value* LaneCode::spread_mask(int count, int part) {
  std::vector<int> order;
  for (int k = 0; k < width_; ++k) order.push_back((part * width_ + k) / count);
  return b_.CreateShuffleVector(mask_, order);
}

/// Lanes whose records follow each other at `stride` elements: vectors in a row, taken apart.
LaneCode::Records LaneCode::load_rows(const MemoryPlace& place, Value* first, int stride, int count) {
  llvm::Type* type = vector_type(element_type(u_.context(), place.storage));
  std::vector<Value*> vectors;
  for (int j = 0; j < stride; ++j) {
    Value* pointer = address(place, first, int64_t(j) * width_);
    llvm::Instruction* one = mask_ ? static_cast<llvm::Instruction*>(b_.CreateMaskedLoad(
                                         type, pointer, alignment(place.storage), spread_mask(stride, j),
                                         llvm::PoisonValue::get(type)))
                                   : b_.CreateAlignedLoad(type, pointer, alignment(place.storage));
    annotate(one, place);
    vectors.push_back(one);
  }
  Records records{};
  for (int k = 0; k < count; ++k) {
    // Two vectors at a time: first the elements that both hold, then those that the next ones add.
    Value* taken = vectors[0];
    std::vector<int> from;
    for (int l = 0; l < width_; ++l) from.push_back(std::min(l * stride + k, width_ - 1));
    for (int j = 1; j < stride; ++j) {
      std::vector<int> order;
      for (int l = 0; l < width_; ++l) {
        const int at = l * stride + k;
        order.push_back(at / width_ == j ? width_ + at % width_ : j == 1 ? from[size_t(l)] : l);
      }
      taken = b_.CreateShuffleVector(taken, vectors[size_t(j)], order);
    }
    records[size_t(k)] = taken;
  }
  return records;
}

void LaneCode::store_rows(const MemoryPlace& place, Value* first, const Records& values, int count,
                          bool streaming) {
  for (int j = 0; j < count; ++j) {
    Value* part = values[0];
    for (int k = 1; k < count; ++k) {
      std::vector<int> order;
      for (int e = 0; e < width_; ++e) {
        const int at = j * width_ + e, lane = at / count;
        order.push_back(at % count == k ? width_ + lane : k == 1 ? lane : e);
      }
      part = b_.CreateShuffleVector(part, values[size_t(k)], order);
    }
    plain_store(place, address(place, first, int64_t(j) * width_), part,
                mask_ ? spread_mask(count, j) : nullptr, streaming);
  }
}

}  // namespace lockstep::compile::simd
