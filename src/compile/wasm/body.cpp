#include "compile/wasm/body.hpp"

namespace lockstep::compile::wasm {

Register::~Register() {
  if (const auto body = body_.lock()) body->release(index_, kind_);
}

Local Body::param(uint32_t index) {
  // Never free: the body has no owner to return it to.
  return std::make_shared<const Register>(std::weak_ptr<Body>(), index, params_[index]);
}

Local Body::local(Kind kind) {
  std::vector<uint32_t>& free = free_[kind];
  uint32_t index = uint32_t(kinds_.size());
  if (out_ == &main_ && !free.empty()) {
    index = free.back();
    free.pop_back();
  } else {
    kinds_.push_back(kind);
  }
  return std::make_shared<const Register>(weak_from_this(), index, kind);
}

void Body::release(uint32_t index, Kind kind) { free_[kind].push_back(index); }

namespace {
constexpr size_t kMostConstants = 64;  // kept in locals

void put_word(Bytes& to, uint64_t bits, int bytes) {
  for (int k = 0; k < bytes; ++k) to.push_back(uint8_t(bits >> (8 * k)));
}

void put_opcode(Bytes& to, Opcode opcode) {
  if (opcode < 0x100) return to.push_back(uint8_t(opcode));
  to.push_back(uint8_t(opcode >> 16));
  put_unsigned(to, opcode & 0xffff);
}

void put_constant(Bytes& to, const std::array<uint64_t, 2>& vector) {
  put_opcode(to, kConst);
  for (uint64_t word : vector) put_word(to, word, 8);
}
}  // namespace

void Body::op(Opcode opcode) { put_opcode(*out_, opcode); }

void Body::constant(Kind kind, uint64_t bits) {
  switch (kind) {
    case Kind::i32: op(kConstI32); return put_signed(*out_, int32_t(bits));
    case Kind::i64: op(kConstI64); return put_signed(*out_, int64_t(bits));
    case Kind::f32: op(kConstF32); return put_word(*out_, bits, 4);
    case Kind::f64: op(kConstF64); return put_word(*out_, bits, 8);
    case Kind::v128: return constant({bits, bits});
  }
}

void Body::constant(const std::array<uint64_t, 2>& vector) {
  const bool cheap = vector[0] == vector[1] && (vector[0] == 0 || vector[0] == ~uint64_t(0));
  if (keeps_constants_ && !cheap && (constants_.size() < kMostConstants || constants_.contains(vector))) {
    const auto [entry, first] = constants_.try_emplace(vector, uint32_t(kinds_.size()));
    if (first) kinds_.push_back(Kind::v128);
    return get(entry->second);
  }
  put_constant(*out_, vector);
}

void Body::lane(Opcode opcode, int lane) {
  op(opcode);
  out_->push_back(uint8_t(lane));
}

void Body::shuffle(const std::array<uint8_t, 16>& bytes) {
  op(kShuffle);
  out_->insert(out_->end(), bytes.begin(), bytes.end());
}

void Body::memory(Opcode opcode, uint32_t offset) {
  op(opcode);
  out_->push_back(0);  // no alignment is promised
  put_unsigned(*out_, offset);
}

void Body::memory(Opcode opcode, uint32_t offset, int lane) {
  memory(opcode, offset);
  out_->push_back(uint8_t(lane));
}

Label Body::open(Opcode opcode) {
  op(opcode);
  out_->push_back(0x40);  // nothing on the stack before and behind it
  used_.push_back(false);
  return {int(used_.size())};
}

bool Body::end() {
  op(kEnd);
  const bool used = used_.back();
  used_.pop_back();
  return used;
}

void Body::branch(Opcode opcode, Label to) {
  with_index(opcode, uint32_t(int(used_.size()) - to.depth));
  used_[size_t(to.depth - 1)] = true;
}

Bytes* Body::redirect(Bytes* section) { return std::exchange(out_, section); }

Bytes Body::finish(const Bytes& entry) const {
  Bytes runs;
  size_t count = 0;
  for (size_t k = params_.size(); k < kinds_.size();) {
    size_t end = k + 1;
    while (end < kinds_.size() && kinds_[end] == kinds_[k]) ++end;
    put_unsigned(runs, end - k);
    runs.push_back(uint8_t(kinds_[k]));
    ++count;
    k = end;
  }
  Bytes all;
  put_unsigned(all, count);
  all.insert(all.end(), runs.begin(), runs.end());
  for (const auto& [vector, local] : constants_) {
    put_constant(all, vector);
    put_opcode(all, kLocalSet);
    put_unsigned(all, local);
  }
  all.insert(all.end(), entry.begin(), entry.end());
  all.insert(all.end(), main_.begin(), main_.end());
  all.push_back(uint8_t(kEnd));
  return all;
}

}  // namespace lockstep::compile::wasm
