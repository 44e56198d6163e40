// Tracing for bindings of other languages (python/, web/): words by their names, buffers whose type, rank and
// access are known while tracing, blocks that are opened and closed by two calls, lines of the author's source.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/ir/builder.hpp"
#include "lockstep/ir/function.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::bindings {

/// An element type, a type of values, a boundary rule by its name. Throws InputError for another name.
Storage storage_named(const std::string& text);
Type type_named(const std::string& text);
Boundary boundary_named(const std::string& text);

/// Number of operands of each word of ir/ops.def, by its name.
std::map<std::string, int> word_arities();
/// A word on operands of one type. Throws InputError for an unknown word and for another number of operands.
AnyVal apply(const std::string& word, const std::vector<AnyVal>& operands);

/// A buffer of the kernel that is being traced, of any type, rank and access: what Grid, Out and InOut do.
class TracedBuffer : public detail::BufferRef {
 public:
  TracedBuffer(uint32_t buffer, Storage storage, int rank) : BufferRef(buffer, rank), storage_(storage) {}
  Storage storage() const { return storage_; }
  int rank() const { return rank_; }

  /// Leading coordinates and a point of the domain with offsets (x first).
  AnyVal load_point(const std::vector<AnyVal>& lead, const std::vector<int>& offsets, Boundary boundary,
                    bool streaming) const;
  void store_point(const std::vector<AnyVal>& lead, const std::vector<int>& offsets, const AnyVal& value,
                   bool streaming) const;
  /// At explicit coordinates, under a rule where one is named.
  AnyVal load(const std::vector<AnyVal>& at, const std::string& boundary, bool streaming) const;
  void store(const std::vector<AnyVal>& at, const AnyVal& value, bool streaming) const;
  /// add, min, max, or, and, exchange on i32 and u32; gives the old value.
  AnyVal atomic(const std::string& op, const std::vector<AnyVal>& at, const AnyVal& value) const;

 private:
  void check_rank(size_t coordinates) const;
  ir::Id place(const std::vector<AnyVal>& at) const;
  ir::Id place(const std::vector<AnyVal>& lead, const std::vector<int>& offsets, Boundary boundary,
               ir::Id* inside) const;
  AnyVal load_at(ir::Id at, bool streaming) const;
  void store_at(ir::Id at, const AnyVal& value, bool streaming) const;
  Storage storage_;
};

/// A parameter: "read", "write", "read_write" (buffers) or "scalar", its type and rank.
struct Parameter {
  std::string kind, type;
  int rank = 0;
};
/// Declares it as kernels with typed parameters do: b0, b1 … and p0, p1 …
std::variant<AnyVal, TracedBuffer> declare(ir::Builder& builder, const Parameter& parameter);

/// All that is traced from here on comes from this line of the author's.
void mark(ir::Builder& builder, const std::string& file, uint32_t line);

/// A block that the author's language fills in.
struct OpenBlock {
  uint32_t outer = 0, inner = 0;
};
OpenBlock open_block();
/// Throws InputError where a block inside of it is still open.
void close_block(const OpenBlock& block);

/// Where the last `if` of a block is, for an `else` right behind it.
struct ClosedIf {
  uint32_t block = 0, otherwise = 0;
  size_t length = 0;
};
ClosedIf close_if(const AnyVal& condition, const OpenBlock& block);
OpenBlock open_else(const ClosedIf& closed);

/// Throws InputError for bounds of two types, or of no integer type, and a step of 0.
OpenBlock open_for(const AnyVal& begin, const AnyVal& end, int64_t step);
AnyVal loop_index(const AnyVal& begin);
void close_for(const AnyVal& begin, const AnyVal& end, int64_t step, const OpenBlock& block);
void close_loop(const OpenBlock& block);

/// break, continue, return or barrier.
void effect(const std::string& name);
/// coord, extent, local or lane of the lane's place, as i32.
AnyVal place(const std::string& what, int axis);
/// sum, min or max over the lanes of a group.
AnyVal reduce(const std::string& how, const AnyVal& value);

}  // namespace lockstep::bindings
