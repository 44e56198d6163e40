// Instances of one term type and their linearisation, as many at once as an update needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/device.hpp"
#include "solve/evaluate/host_instances.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {

/// An instance: what it is made of, and its quadratic at its blocks' values.
struct SmoothFactor {
  int32_t group = -1;              // -1: unused
  int term = -1;                   // number of its TermSet; -1: a prior
  std::vector<int32_t> slots;      // variables, by slot of the type
  std::vector<double> data;        // of the type
  std::vector<int32_t> variables;  // those of the slots that move, each once
  std::vector<double> gram;        // of CliqueTree's QuadraticView; of no variables: empty
  double weight = 1, cost = 0;     // gram and cost have the weight
  /// Of a prior: its quadratic around the values `from` of its variables.
  struct Base {
    std::vector<double> gram, from;
  };
  std::unique_ptr<Base> base;
};

/// The values of a block.
using BlockValues = std::vector<double>;

class FactorGroup {
 public:
  using Type = std::variant<TermType, HostTerm>;
  FactorGroup(Type type, std::vector<BlockSet> sets, TermForm form);

  const Type& type() const { return type_; }
  const std::string& name() const;
  const std::vector<BlockSet>& sets() const { return sets_; }
  int data() const;  // numbers of an instance

  /// Sets gram and cost of factors of this group; values and widths by variable, width 0 where it is fixed. Throws
  /// InputError for numbers that are not finite.
  void linearise(const Device& device, std::span<SmoothFactor* const> factors,
                 const std::vector<BlockValues>& values, std::span<const int32_t> widths);
  /// The sum of the costs alone.
  double cost(const Device& device, std::span<const SmoothFactor* const> factors,
              const std::vector<BlockValues>& values);

 private:
  struct Inputs {
    std::vector<double> state, data;
    std::vector<int32_t> blocks;  // (slots, n): first number of each block in `state`
  };
  struct Outputs {
    std::vector<double> residuals, jacobian, cost;  // (rows, n), (stored, n), (n)
  };
  void gather(std::span<const SmoothFactor* const> factors, const std::vector<BlockValues>& values);
  void compute(const Device& device, int64_t n, bool derivatives);
  void fill(SmoothFactor& factor, size_t i, size_t n, std::span<const int32_t> widths);

  Type type_;
  std::vector<BlockSet> sets_;
  std::vector<int64_t> slots_;  // of the type, by slot of the expression
  std::vector<int> datum_;      // of the type, by number in the expression
  std::shared_ptr<const TermDerivatives> term_;
  std::vector<double> uniforms_, columns_;  // numbers of the expression: equal for all instances, or as data
  std::vector<TermDerivatives::Entry> entries_;  // (rows, columns)
  std::optional<Kernel> linear_kernel_, cost_kernel_;
  Inputs in_;
  Outputs out_;
  std::vector<double> dense_;  // [J r] of an instance, column-major
};

}  // namespace lockstep::solve
