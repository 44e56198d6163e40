// The kernel under construction and what all its parts share: the module, the launch's numbers, memory.
#pragma once

#include <map>
#include <optional>

#include "compile/native/abi.hpp"
#include "compile/wasm/builder.hpp"
#include "compile/wasm/emit.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::wasm {

/// Of a place whose accesses need no check.
inline constexpr int64_t kChecked = -1;

/// An array in the core's memory: at the address in `base`, moved by `offset` bytes.
struct MemoryPlace {
  Value base;
  uint32_t offset = 0;
  Storage storage = Storage::f32;
  uint32_t buffer = kNoBuffer;  // of the launch, which gives its size
  int64_t elements = 0;         // of other arrays
};

class Unit {
 public:
  explicit Unit(const ir::Function& function, const Engine& engine = {});

  Builder& b() { return builder_; }
  Body& body() { return *body_; }
  const ir::Function& f() const { return f_; }

  /// Numbers of the launch, loaded once before everything else.
  Value param(uint64_t index);
  Value shape(uint64_t imm);
  Value stride(uint64_t imm);
  Value extent(uint64_t axis);
  Value box_low(int axis) { return word(1, uint32_t(axis) * 4, Type::i32); }
  Value box_high(int axis) { return word(1, uint32_t(3 + axis) * 4, Type::i32); }
  MemoryPlace buffer(uint64_t index);
  MemoryPlace shared(uint64_t index);
  /// Memory of the scratch area.
  MemoryPlace scratch(int64_t bytes, Storage storage);
  int64_t scratch_bytes() const { return scratch_bytes_; }
  /// Elements, as unsigned numbers of the index's type, at which `count` in a row may begin: from 0 to before this.
  Value limit(const MemoryPlace& place, int count, Type index);
  /// Ends the kernel: `index`, a scalar, is outside of the array.
  void fault(const MemoryPlace& place, const Value& index, ir::Place line);
  std::vector<CheckedAccess> take_accesses() { return std::move(accesses_); }

  /// The module; its export "kernel" takes the frame, the box and the scratch memory.
  Bytes finish();

 private:
  /// The number at an offset of what the kernel's argument points to.
  Value word(uint32_t argument, uint32_t offset, Type type);
  uint32_t helper(std::string_view name);

  const ir::Function& f_;
  Module module_;
  std::map<std::string, uint32_t, std::less<>> helpers_;
  uint32_t kernel_ = 0;
  std::shared_ptr<Body> body_;
  Builder builder_;
  Bytes entry_;
  std::map<std::tuple<uint32_t, uint32_t, Type>, Value> words_;
  std::map<uint64_t, MemoryPlace> shared_;
  std::map<std::tuple<uint32_t, int, Type>, Value> limits_;
  std::vector<CheckedAccess> accesses_;
  std::map<std::tuple<uint32_t, int64_t, ir::Place>, uint64_t> access_numbers_;
  int64_t scratch_bytes_ = 0;
};

/// `for (i = low; i < high; i += step)` around what `body` emits, which gets i.
void counted_loop(Builder& b, const Value& low, const Value& high, int step,
                  const std::function<void(const Value&)>& body);

}  // namespace lockstep::compile::wasm
