#include "compile/wasm/unit.hpp"

#include <bit>

#include "compile/wasm/helpers.hpp"
#include "compile/wasm/lower_op.hpp"

namespace lockstep::compile::wasm {

using simd::Frame;

namespace {
const Signature kKernel{{Kind::i32, Kind::i32, Kind::i32}, {}};
enum Argument : uint32_t { kFrame, kBox, kScratch };
}  // namespace

Unit::Unit(const ir::Function& function, const Engine& engine)
    : f_(function),
      module_(engine.shared),
      body_(std::make_shared<Body>(kKernel.takes)),
      builder_(body_, [this](std::string_view name) { return helper(name); }, engine.fuses) {
  body_->keep_constants();
  helpers_.emplace(kFma, module_.import_function(kFma, helper_signature(kFma)));
  kernel_ = module_.declare(kKernel);
  module_.export_function("kernel", kernel_);
}

uint32_t Unit::helper(std::string_view name) {
  if (const auto found = helpers_.find(name); found != helpers_.end()) return found->second;
  const uint32_t number = module_.declare(helper_signature(name));
  helpers_.emplace(name, number);
  module_.define(number, helper_body(name, [this](std::string_view inner) { return helper(inner); }));
  return number;
}

Value Unit::word(uint32_t argument, uint32_t offset, Type type) {
  Value& value = words_[{argument, offset, type}];
  if (value) return value;
  Bytes* const before = body_->redirect(&entry_);
  body_->get(argument);
  static constexpr Opcode kLoads[] = {kLoadI32, kLoadI64, kLoadF32, kLoadF64};
  body_->memory(type == Type::boolean ? kLoad8 : kLoads[(is_float(type) ? 2 : 0) + (is_wide(type) ? 1 : 0)],
                offset);
  if (type == Type::boolean) {
    body_->constant(Kind::i32, 1);
    body_->op(kAndI32);
  }
  value = builder_.pop(type);
  body_->redirect(before);
  return value;
}

Value Unit::param(uint64_t index) {
  return word(kFrame, uint32_t(offsetof(Frame, scalars) + index * sizeof(uint64_t)), f_.scalars[index].type);
}
// Little-endian: the low half of a 64-bit word is first.
Value Unit::shape(uint64_t imm) {
  const uint64_t at = offsetof(Frame, buffers) + (imm / 8) * sizeof(Frame::Buffer) +
                      offsetof(Frame::Buffer, shape) + (imm % 8) * sizeof(int64_t);
  return word(kFrame, uint32_t(at), f_.index_type);
}
Value Unit::stride(uint64_t imm) {
  const uint64_t at = offsetof(Frame, buffers) + (imm / 8) * sizeof(Frame::Buffer) +
                      offsetof(Frame::Buffer, strides) + (imm % 8) * sizeof(int64_t);
  return word(kFrame, uint32_t(at), f_.index_type);
}
Value Unit::extent(uint64_t axis) {
  return word(kFrame, uint32_t(offsetof(Frame, extent) + axis * sizeof(int32_t)), Type::i32);
}

MemoryPlace Unit::buffer(uint64_t index) {
  const uint64_t at =
      offsetof(Frame, buffers) + index * sizeof(Frame::Buffer) + offsetof(Frame::Buffer, data);
  return {word(kFrame, uint32_t(at), Type::i32), 0, f_.buffers[index].storage, uint32_t(index)};
}
MemoryPlace Unit::shared(uint64_t index) {
  const auto [entry, first] = shared_.try_emplace(index);
  const ir::ArrayDecl& array = f_.shared[index];
  if (first) {
    entry->second = scratch(array.count * size_of(array.storage), array.storage);
    entry->second.elements = array.count;
  }
  return entry->second;
}

MemoryPlace Unit::scratch(int64_t bytes, Storage storage) {
  Value base{Type::i32, false, false, 0, {}};
  base.part[0] = body_->param(kScratch);
  const uint32_t offset = uint32_t(scratch_bytes_);
  scratch_bytes_ += (bytes + simd::kAlignment - 1) / simd::kAlignment * simd::kAlignment;
  return {base, offset, storage};
}

Value Unit::limit(const MemoryPlace& place, int count, Type index) {
  const Type type = is_wide(index) ? Type::u64 : Type::u32;
  if (place.buffer == kNoBuffer)
    return Builder::constant(type, uint64_t(std::max<int64_t>(place.elements - count + 1, 0)));
  Value& limit = limits_[{place.buffer, count, type}];
  if (limit) return limit;
  Bytes* const before = body_->redirect(&entry_);
  const Local begins = body_->local(Kind::i64);
  body_->get(kFrame);
  body_->memory(kLoadI64, uint32_t(offsetof(Frame, buffers) + place.buffer * sizeof(Frame::Buffer) +
                                   offsetof(Frame::Buffer, bytes)));
  body_->constant(Kind::i64, uint64_t(std::countr_zero(unsigned(size_of(place.storage)))));
  body_->op(kShrI64);
  body_->constant(Kind::i64, uint64_t(count - 1));
  body_->op(kSubI64);
  body_->tee(begins);
  // Of a negative number nothing.
  body_->get(begins);
  body_->constant(Kind::i64, 63);
  body_->op(kShrI64);
  body_->constant(Kind::i64, ~uint64_t(0));
  body_->op(kXorI64);
  body_->op(kAndI64);
  if (!is_wide(index)) body_->op(kWrapI64);
  limit = builder_.pop(type);
  body_->redirect(before);
  return limit;
}

void Unit::fault(const MemoryPlace& place, const Value& index, ir::Place line) {
  const auto [entry, first] =
      access_numbers_.try_emplace({place.buffer, place.elements, line}, accesses_.size() + 1);
  if (first) {
    const bool buffer = place.buffer != kNoBuffer;
    accesses_.push_back({place.buffer, buffer ? size_of(place.storage) : place.elements,
                         buffer ? "buffer " + f_.buffers[place.buffer].name : "a shared or local array",
                         ir::place_text(f_, line)});
  }
  const Value low = lower_convert(builder_, lower_convert(builder_, index, Type::u32), Type::u64),
              number = Builder::constant(Type::u64, entry->second << 32);
  body_->get(kFrame);
  builder_.push(builder_.or_(low, number));
  body_->memory(kStoreI64, offsetof(Frame, fault));
  body_->op(kReturn);
}

Bytes Unit::finish() {
  module_.define(kernel_, body_->finish(entry_));
  return module_.finish();
}

void counted_loop(Builder& b, const Value& low, const Value& high, int step,
                  const std::function<void(const Value&)>& inner) {
  Body& body = b.body();
  const Value index = b.variable(Type::i32, false);
  b.assign(index, low);
  b.push(b.less(index, high));
  body.if_();
  const Label again = body.loop();
  inner(index);
  // Tested so that the next index is computed only where it does not overflow.
  b.push(b.less(Builder::i32(step), b.sub(high, index)));
  body.if_();
  b.assign(index, b.add(index, Builder::i32(step)));
  body.branch(again);
  body.end();
  body.end();
  body.end();
}

}  // namespace lockstep::compile::wasm
