// A host term as residuals and derivatives to tangent coordinates of one instance.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "solve/model/expression_key.hpp"

namespace lockstep::solve {

/// Blocks of an instance by slot, its data, and its number for errors.
struct HostArguments {
  std::span<const std::span<const double>> blocks;
  std::span<const double> data;
  int64_t instance = 0;
};

class HostFunction {
 public:
  explicit HostFunction(const ExpressionKey& key);

  int rows() const { return rows_; }
  int columns() const { return columns_; }  // tangent coordinates of all slots
  bool parallel() const { return host_->parallel; }

  /// Throws InputError, naming term and instance, where the function throws or leaves a residual out.
  void residuals(const HostArguments& at, std::span<double> out) const;
  /// (rows, columns), from the term's Jacobian or by differences.
  void jacobian(const HostArguments& at, std::span<double> out) const;
  /// By differences, even if the term has a Jacobian.
  void differences(const HostArguments& at, std::span<double> out) const;
  /// Throws InputError where residuals are not finite, or the term's Jacobian is not their slope.
  void check(const HostArguments& at) const;

 private:
  void given_jacobian(const HostArguments& at, std::span<double> out) const;
  /// Slopes of all residuals along a tangent coordinate of a slot.
  std::vector<double> slopes(const HostArguments& at, size_t slot, size_t coordinate) const;
  std::string where(const HostArguments& at) const;

  std::shared_ptr<const HostTerm> host_;
  std::vector<std::shared_ptr<const TracedManifold>> slots_;
  int rows_ = 0, columns_ = 0, numbers_ = 0;  // numbers: of the blocks of all slots
};

/// x [+] delta.
std::vector<double> moved(const TracedManifold& manifold, std::span<const double> x,
                          std::span<const double> delta);

}  // namespace lockstep::solve
