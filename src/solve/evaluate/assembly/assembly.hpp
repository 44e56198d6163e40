// Batches that are evaluated group by group in shared memory (assembly_plan.hpp).
#pragma once

#include <memory>

#include "device/capabilities.hpp"
#include "solve/evaluate/assembly/assembly_plan.hpp"
#include "solve/evaluate/assembly/gather.hpp"
#include "solve/evaluate/batch_kernels.hpp"

namespace lockstep::solve {

/// The result of one pass over the instances.
enum class Assembled : uint8_t {
  value,     // costs
  gradient,  // costs and the gradient
  diagonal,  // diagonal blocks of J^T J
  product,   // J^T (J p), J from the state again
};

/// Whether a term's batches can be assembled in groups: blocks of one Euclidean kind, few and small enough
/// for shared memory.
bool can_assemble(const TermDerivatives& term, const ElementTypes& values, const ElementTypes& derivatives,
                  const Limits& limits);

class Assembly {
 public:
  /// Offsets by block: first number in the state, first tangent coordinate, first number of the diagonal
  /// block.
  struct Offsets {
    std::function<int64_t(int64_t)> ambient, tangent, diagonal;
  };
  /// `data`: (columns, n) on the host.
  Assembly(const Device& device, std::shared_ptr<const TermDerivatives> term, const ElementTypes& values,
           const ElementTypes& derivatives, AssemblyPlan plan, const std::vector<double>& data, int64_t n,
           std::vector<double> uniforms, const Offsets& offsets);

  /// Other numbers of the same instances. Launches that were recorded keep the uniforms they had.
  void set_numbers(const std::vector<double>& data, int64_t n, std::vector<double> uniforms);

  /// Whether a device's kernels keep the components of a block side by side: a CPU fetches and adds up records
  /// with one load a lane.
  static bool by_records(const Device& device) { return capabilities_of(device).vectors; }
  /// The kernels of a pass, to be traced when they are called.
  static std::vector<std::function<Kernel()>> kernels(const std::shared_ptr<const TermDerivatives>& term,
                                                      Assembled what, const ElementTypes& types,
                                                      bool overwrite, bool records);

  int64_t groups() const { return groups_; }
  /// Whether every block belongs to this batch and none is fixed: then a pass may write its target instead
  /// of adding to it.
  bool covers_all() const { return covers_all_; }
  /// One pass. `costs` (groups) for value and gradient; `p` for product; `target` for all but value, written
  /// where `overwrite`, else added to.
  void run(Assembled what, const Buffer& state, const Buffer& p, const Buffer& costs, const Buffer& target,
           bool overwrite) const;

 private:
  Buffer with_partials(Storage storage, int components) const;

  Device device_;
  std::shared_ptr<const TermDerivatives> term_;
  ElementTypes values_, derivatives_;
  int64_t groups_ = 0, partial_rows_ = 0;
  bool covers_all_ = false, records_ = false;
  std::vector<double> uniforms_;
  std::vector<int64_t> order_;  // by place: instance, or -1
  Buffer table_, ambient_, tangent_, write_tangent_, write_diagonal_, word_first_, words_, ids_, data_;
  Buffer few_tangent_, many_tangent_, few_diagonal_, many_diagonal_;
  std::unique_ptr<Gather> shared_;
  mutable Buffer partial_;
};

}  // namespace lockstep::solve
