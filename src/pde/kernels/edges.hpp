// Cells at an edge of the grid, computed apart, so that inner cells compute no boundary rule.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "pde/language/tracer.hpp"

namespace lockstep::pde {

/// Sweeps of a tile along z share it. What it is given by reference is read when it traces.
class Edges {
 public:
  using Values = std::vector<AnyVal>;
  /// Traces what a branch holds and forgets what it loaded.
  using Branch = std::function<void(const std::function<void()>&)>;

  /// Both ends of an axis in one branch, or in one each: shorter for wide rows, longer where rows are short.
  /// `together` takes OddEnds by factors instead: every group of a wide tile has warps at an end of x, and the others
  /// would wait for their branch.
  enum class Ends : uint8_t { together, apart };

  Edges(const Discretisation& d, Type type, const Tracer::Scalars& scalars, const Cell& cells, Ends ends,
        Branch apart);

  /// Gives the tracer the differences in `values` that edges change.
  void differences(Tracer& tracer, std::span<const Value> values, const Cell& own,
                   const Tracer::Load& load) const;
  /// Differences along x and y that gradients of `targets` take, edges included where `edged`.
  std::map<const Term*, Tracer::Change> own_differences(Tracer& tracer,
                                                        std::span<const Target* const> targets,
                                                        const Cell& own, const Tracer::Load& load,
                                                        bool edged = true) const;

 private:
  /// Gives value k at an end, or at any where none is named.
  using Edged = std::function<AnyVal(Tracer&, size_t, const End*, const AnyVal&)>;
  std::optional<OddEnds> without_branch(const AxisOperator& op, bool transposed) const;
  Tracer::OddFactors factors(const Cell& own, int axis, const OddEnds& ends, const AnyVal& scale) const;
  Val<bool> at_end(const Cell& own, int axis, const End& end) const;
  Values unless_at_edge(const Cell& own, int axis, const EdgeWidth& width, const Tracer::Load& load,
                        const Values& inner, const Edged& edged) const;

  const Discretisation& d_;
  Type type_;
  const Tracer::Scalars& scalars_;
  const Cell& cells_;
  Ends ends_;
  Branch apart_;
};

}  // namespace lockstep::pde
