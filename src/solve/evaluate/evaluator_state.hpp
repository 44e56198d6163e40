// State of an Evaluator on its device.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "primitives/sums/chunked_sum.hpp"
#include "solve/evaluate/assembly/assembly.hpp"
#include "solve/evaluate/assembly/gather.hpp"
#include "solve/evaluate/assembly/host_sums.hpp"
#include "solve/evaluate/batch_kernels.hpp"
#include "solve/evaluate/block_places.hpp"
#include "solve/evaluate/compile_ahead.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/evaluate/host_instances.hpp"
#include "solve/model/problem.hpp"
#include "solve/parts/part_sums.hpp"

namespace lockstep::solve {

/// The sums of one batch over slots of one tangent size.
struct ClassSums {
  TermDerivatives::SlotClass slots;
  Gather gather;
  // Where a row's block begins in tangent vectors and in the block diagonal.
  Buffer few_tangent, many_tangent, few_diagonal, many_diagonal;
};

/// Index tables of the plain path on the host.
struct PlainTables {
  struct Sums {
    TermDerivatives::SlotClass slots;
    GatherPlan plan;
    std::vector<int32_t> few_tangent, many_tangent, few_diagonal, many_diagonal;
  };
  std::vector<int32_t> ambient, tangent;  // (slots, n); `tangent` is empty where both are the same
  std::vector<Sums> sums;
};

/// Instances of one expression that are evaluated at once. Where `assembly` is there, cost, gradient, diagonal
/// and products go through it; the tables of the plain path are laid out when stored Jacobians are first
/// requested.
struct BatchState {
  std::string name;
  std::shared_ptr<const TermDerivatives> term;
  int64_t n = 0;
  int part = 0;            // of this rank
  bool may_group = false;  // what may_group() answered
  std::shared_ptr<Assembly> assembly;
  std::shared_ptr<HostInstances> host;  // of a host term
  std::vector<int32_t> blocks;          // (slots, n): block numbers
  std::vector<double> numbers;          // (columns, n)
  std::vector<double> uniforms;
  // Still to be uploaded; empty afterwards, and of a batch that was kept.
  std::optional<AssemblyPlan> plan;
  std::optional<PlainTables> tables;
  mutable BatchReport report;
  int64_t cost_count() const { return assembly ? assembly->groups() : n; }

  Buffer ambient_at, tangent_at;  // i32 (slots, n): first number, first tangent coordinate of each block
  Buffer data;                    // (columns, n)
  std::vector<ClassSums> sums;
  Buffer costs;      // (n), part of all costs
  Buffer jacobian;   // (stored, n), real; after linearize()
  Buffer residuals;  // (rows, n), of the compute type; after linearize(), where the uses have kUseHost
  mutable std::vector<int64_t> columns;  // of host_batches(), once it was requested
  // In scratch memory that all batches share, so of no meaning once another batch is launched.
  Buffer gradient_slots;  // (slot_rows, n), of the compute type
  Buffer slots;           // (slot_rows, n), real; the same memory where the types agree
  Buffer diagonal_slots;  // (diagonal_rows, n), real
};

struct Evaluator::State : BlockPlaces {
  uint64_t id =
      0;  // differs for each evaluator of the process, and after each update that changed more than numbers
  Device device;
  Precision precision = Precision::f64;
  ElementTypes values;  // cost and gradient
  ElementTypes derivatives;
  std::vector<uint8_t>
      stays;              // by block: its numbers are where they were before the last build(), and as fixed
  bool all_stay = false;  // there are no other blocks either
  std::vector<BatchState> batches;
  bool jacobian_current = false;   // the stored Jacobians of assembled batches are those of the state
  bool residuals_current = false;  // so are stored residuals
  Buffer x, candidate;             // (ambient), of the state's storage
  Buffer free_blocks;              // u32 by block
  Buffer free_numbers;             // by ambient number, 1 or 0; empty where nothing is fixed
  Buffer lower, upper;             // (ambient), of the state's storage; empty without bounds
  Buffer costs, cost;              // of all instances; their sum
  primitives::ChunkedSum cost_sum;
  Buffer gradient_sum;  // of the compute type; gradient is its copy in real
  Buffer gradient;
  Buffer gradient_scratch, slot_scratch, diagonal_scratch;
  Buffer block_diagonal;  // diagonal_parts() of the blocks of J^T J, block after block
  Buffer diagonal;
  Buffer norm;
  int64_t batch_size = 0;
  unsigned uses = 0;
  std::string assembly, sums;      // EvaluatorOptions
  bool fresh_device = false;       // nothing was compiled on it when the evaluator was made
  std::unique_ptr<HostSums> host;  // of small problems
  Prepare prepare;
  mutable std::vector<double> prepared_at;  // the point for which it was called last
  mutable bool prepared_derivatives = false;
  const PartLayout* layout = nullptr;
  std::unique_ptr<PartSums> parts;  // of a problem in parts

  bool wants_diagonal() const { return !(uses & kUseLinearize) || (uses & kUseDiagonal); }
  /// Whether the host takes part in multiply(), which cannot be recorded then.
  bool multiplies_on_host() const {
    return parts || std::ranges::any_of(batches, [](const BatchState& b) { return b.host != nullptr; });
  }
  /// Outputs that instances' kernels write for linearize() in addition to cost and gradient, if all have one type.
  unsigned linearized_outputs() const;
  /// Takes over a problem; of the one before it (if any), what is the same stays.
  void build(const Problem::State& problem);
  void allocate_state();
  /// False where there are as many bounds as before.
  bool take_bounds(const Problem::State& problem);
  /// False where every batch is one of before, with other numbers at most.
  bool build_batches(const Problem::State& problem);
  void allocate_costs();
  /// The instances [first, first + n) of an expression, on the host.
  BatchState take(const Batch& batch, std::shared_ptr<const TermDerivatives> term, int64_t first,
                  int64_t n) const;
  /// Instances of an expression, and the batch that may have had them before.
  struct Piece {
    const Batch* batch = nullptr;
    std::shared_ptr<const TermDerivatives> term;
    int64_t first = 0, end = 0;
    bool may_group = false;
    int64_t kept_at = -1;  // the number of `kept` before; -1: none
    BatchState kept;
    std::vector<BatchState> batches;
    CompileAhead::Handle work;
  };
  /// A piece as batches with their tables, on the host: the kept one, one in groups, or plain ones of at most
  /// batch_size.
  void lay_out(Piece& piece) const;
  /// Whether the tables of an earlier batch are those of these instances.
  bool serves(const BatchState& earlier, const BatchState& instances) const;
  /// Whether a batch is large enough for groups and its term can be evaluated in them.
  bool may_group(const TermDerivatives& term, int64_t instances) const;
  bool plan_groups(BatchState& batch) const;
  PlainTables plain_tables(const BatchState& batch) const;
  void upload(BatchState& batch) const;
  void upload_plain(BatchState& batch, const PlainTables& tables) const;
  /// The numbers of a batch that was kept.
  void upload_numbers_of(BatchState& batch) const;
  /// The batches' views of scratch memory, which grows where it is too small.
  void share_scratch();
  /// Kernels that the uses ask for, compiled on other threads: those of a first linearisation, then the rest.
  struct Grouping {
    bool grouped = false, overwrites = false;  // as specified to Assembly::run
  };
  void compile_ahead(const std::shared_ptr<const TermDerivatives>& term, const Grouping& grouping,
                     bool first) const;
  /// Whether any evaluator requested the kernels of these arguments on this device before. Small problems would
  /// spend more time on another request than on their iterations. A kernel that is missing is compiled at launch.
  bool compiled_before(std::string_view what, uint64_t variant) const;
  /// The same of sums, moves and conversions.
  void compile_sums() const;
  /// Kernels that move the state and convert vectors, to be traced when they are called.
  std::vector<std::function<Kernel()>> state_kernels() const;
  /// Compiles a kernel on another thread, unless it is launched before one is free.
  void compile(std::function<Kernel()> make) const;
  void allocate_derivatives();
  /// Stored Jacobians of all batches, at the state.
  void ensure_jacobian();
  /// The tables of the plain path of all batches, which instances' kernels read.
  void prepare_plain();
  /// The numbers of a batch's instances, for kernels of batch_kernels.hpp; outputs are added by the caller.
  Arguments instance_arguments(const BatchState& batch, const Buffer& state, const ElementTypes& types) const;
  /// The same outputs of a host term.
  void compute_instances(const BatchState& batch, const Buffer& state, unsigned outputs) const;
  /// An output of a host term, prepared for.
  std::vector<double> host_output(const BatchState& batch, std::span<const double> at, Output which) const;
  void launch_instances(const BatchState& batch, const Buffer& state, const ElementTypes& types,
                        unsigned outputs) const;
  /// candidate = x [+] step
  void launch_retract(const Buffer& step) const;
  void launch_cost(const Buffer& state) const;
  /// Costs and gradient at `state`; of plain batches also Jacobian and diagonal where `derivatives`.
  void launch_gradient(const Buffer& state, bool derivatives) const;
  void sum_diagonal() const;
  /// Zeros to which sums by block are added, and the sums: vectors themselves, or those of all parts.
  Buffer begin_sum(PartSums::Vector vector, const Buffer& to) const;
  void end_sum(PartSums::Vector vector, const Buffer& sums, const Buffer& to, bool exchanged = true) const;
  void sum_slots(const BatchState& batch, const Buffer& slots, const Buffer& target) const;
  void sum_diagonal_slots(const BatchState& batch, const Buffer& target) const;
  /// The first launch's time, and what compiling ahead threw.
  void note_launch(const BatchState& batch) const;
  /// q = H p with the slots of each batch as `masks` says (empty: all). What q holds of blocks that are in no
  /// slot of the outputs has no meaning. Without `exchanged` no output is a block that ranks have in common.
  void multiply(const Buffer& p, const Buffer& q, std::span<const SlotMask> masks,
                bool exchanged = true) const;
  void sum_cost() const;
  double read_cost() const;
  /// Residuals of a batch's instances, or gradients of an energy: (instances, rows).
  std::vector<double> host_residuals(const BatchState& batch) const;

  /// The last member: its threads end before the others go.
  std::unique_ptr<CompileAhead> ahead;
};

/// Those that launch_instances() launches, to be traced when they are called.
std::vector<std::function<Kernel()>> instance_kernels(const std::shared_ptr<const TermDerivatives>& term,
                                                      const ElementTypes& types, unsigned outputs);

const variants::Computation& assembly_computation();

/// The derivatives of a batch's term: numbers that all instances have are literals or arguments.
std::shared_ptr<const TermDerivatives> derivatives_of(const Batch& batch);

/// numbers[i] as the storage (f32 or f64) on the device.
Buffer upload_numbers(const Device& device, Storage storage, std::span<const double> numbers, Shape shape);
std::vector<double> download_numbers(const Device& device, const Buffer& buffer);
void write_numbers(const Device& device, std::span<const double> numbers, const Buffer& to);

}  // namespace lockstep::solve
