// How a value varies over the lanes that run together: not at all, linearly along x, or in general.
//
// Two scopes. `group`: all lanes of a group (what barriers need). `row`: lanes that differ in x only (what a
// SIMD back end needs); there a point's x, local_id 0 and lane are linear with stride 1, and everything else
// that depends on y and z alone is uniform. Statements about a value hold for the lanes that run its
// instruction at the same time. Assumes a kernel without races: a load at a uniform address is uniform.
#pragma once

#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

struct Form {
  enum Kind : uint8_t { unset, uniform, linear, varying };
  Kind kind = unset;
  bool exact = false;    // linear also in unbounded integers: no lane wraps
  bool clamped = false;  // linear where every clamp_index below it leaves its coordinate as it is
  int64_t stride = 0;    // of a linear value: increment from a lane to the next along x

  bool is_uniform() const { return kind == uniform; }
  bool is_linear(int64_t s) const { return kind == linear && stride == s; }
  friend bool operator==(const Form&, const Form&) = default;
};

class Uniformity {
 public:
  enum class Scope : uint8_t { group, row };

  Uniformity(const Function& function, Scope scope);

  const Form& operator[](Id id) const { return forms_[id]; }
  /// Of an if_: lanes may disagree on the condition. Of a loop: lanes may leave it in different passes.
  bool divergent(Id structure) const { return divergent_[structure]; }
  /// Whether some lanes of the scope may be absent when others run this barrier, group_reduce, break_,
  /// continue_ or return_: inside a divergent structure, or after a divergent jump.
  bool in_divergent_flow(Id id) const { return partial_[id]; }

 private:
  struct Flow;
  void pass();
  bool block(uint32_t number, const Flow& flow);
  void merge(Id id, const Form& form);
  Form evaluate(Id id) const;
  Form arithmetic(const Instruction& i) const;
  Form position(const Instruction& i) const;

  const Function& f_;
  Scope scope_;
  std::vector<Form> forms_;
  std::vector<Form> locals_;     // by local array
  std::vector<uint32_t> level_;  // of a variable: divergent structures around its definition
  std::vector<bool> divergent_, partial_;
  std::vector<bool> loses_lanes_;  // of a loop: some lanes return_ from inside
  bool divergent_return_ = false;  // a return_ in divergent flow was seen earlier in the text
  bool changed_ = false;
};

}  // namespace lockstep::ir
