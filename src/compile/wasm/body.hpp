// A function's body under construction: its locals, its labels and its instructions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "compile/wasm/module.hpp"
#include "compile/wasm/opcodes.hpp"

namespace lockstep::compile::wasm {

class Body;

/// A local of a body; free for others when the last owner lets go of it.
class Register {
 public:
  Register(std::weak_ptr<Body> body, uint32_t index, Kind kind)
      : body_(std::move(body)), index_(index), kind_(kind) {}
  ~Register();
  Register(const Register&) = delete;
  uint32_t index() const { return index_; }
  Kind kind() const { return kind_; }

 private:
  std::weak_ptr<Body> body_;
  uint32_t index_;
  Kind kind_;
};
using Local = std::shared_ptr<const Register>;

/// A structure that a branch may name, by its depth.
struct Label {
  int depth = 0;
};

class Body : public std::enable_shared_from_this<Body> {
 public:
  explicit Body(std::vector<Kind> params) : params_(params), kinds_(std::move(params)) {}

  Local param(uint32_t index);
  Local local(Kind kind);
  void release(uint32_t index, Kind kind);

  void op(Opcode opcode);
  void get(const Local& local) { get(local->index()); }
  void get(uint32_t index) { with_index(kLocalGet, index); }
  void set(const Local& local) { with_index(kLocalSet, local->index()); }
  void tee(const Local& local) { with_index(kLocalTee, local->index()); }
  void call(uint32_t function) { with_index(kCall, function); }
  void constant(Kind kind, uint64_t bits);
  /// With keep_constants(), one that takes several instructions is made once, before everything else.
  void constant(const std::array<uint64_t, 2>& vector);
  void keep_constants() { keeps_constants_ = true; }
  /// Extract, replace, and accesses of one lane.
  void lane(Opcode opcode, int lane);
  void shuffle(const std::array<uint8_t, 16>& bytes);
  void memory(Opcode opcode, uint32_t offset);
  void memory(Opcode opcode, uint32_t offset, int lane);

  Label block() { return open(kBlock); }
  Label loop() { return open(kLoop); }
  Label if_() { return open(kIf); }
  void else_() { op(kElse); }
  /// Ends the innermost structure; whether a branch named it.
  bool end();
  void branch(Label to) { branch(kBranch, to); }
  void branch_if(Label to) { branch(kBranchIf, to); }

  /// Instructions go to `section` until the next call; the locals made meanwhile are new ones, so that the section
  /// may run before what was emitted already. Gives what received them before.
  Bytes* redirect(Bytes* section);
  Bytes& code() { return *out_; }
  void insert(size_t at, const Bytes& section) {
    out_->insert(out_->begin() + long(at), section.begin(), section.end());
  }
  size_t locals() const { return kinds_.size(); }
  /// Declarations of the locals and the code, with `entry` before it.
  Bytes finish(const Bytes& entry = {}) const;

 private:
  Label open(Opcode opcode);
  void branch(Opcode opcode, Label to);
  void with_index(Opcode opcode, uint32_t index) {
    op(opcode);
    put_unsigned(*out_, index);
  }

  std::vector<Kind> params_, kinds_;
  std::map<Kind, std::vector<uint32_t>> free_;
  bool keeps_constants_ = false;
  std::map<std::array<uint64_t, 2>, uint32_t> constants_;  // in locals
  std::vector<bool> used_;                                 // of the open structures: a branch names it
  Bytes main_;
  Bytes* out_ = &main_;
};

}  // namespace lockstep::compile::wasm
