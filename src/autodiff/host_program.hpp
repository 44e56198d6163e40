// Values as a list of operations on numbers, for those that are evaluated many times: nothing of the tape is read again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

/// T as evaluate() has it. Lives no longer than the tape of its outputs, which names leaves in errors.
template <class T>
class HostProgram {
 public:
  HostProgram() = default;
  explicit HostProgram(std::span<const Value> outputs);
  /// The outputs for leaf values by leaf number. Throws InputError where there are too few.
  std::vector<T> operator()(std::span<const T> leaves) const;

 private:
  struct Step {
    Op op;
    uint64_t imm;
    uint32_t end;  // of its operands, which begin where those of the step before end
  };
  const Tape* tape_ = nullptr;
  std::vector<Step> steps_;
  std::vector<uint32_t> operands_, outputs_;  // steps
};

}  // namespace lockstep::autodiff
