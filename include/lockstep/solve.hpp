// Nonlinear least squares. Residuals are written once as expressions, batched by topology and minimised on any device.
//
//   solve::Problem problem;
//   const auto points = problem.add_blocks("points", solve::euclidean(3), positions);       // (n, 3)
//   solve::TermType spring{"spring", {3, 3}, 1, [](const solve::TermArguments& a) {
//     return std::vector{norm(a.vec3(0) - a.vec3(1)) - a.data(0)};
//   }};
//   problem.add_terms(spring, {points, points}, edges, rest_lengths);                       // (m, 2), (m, 1)
//   const solve::Summary summary = solve::minimize(problem, context);
//   problem.values(points);                                                                 // the minimiser
//
// The cost is the sum over all instances of 1/2 rho(|r|^2), with the residuals r of an instance and the robust loss rho
// of its term, plus the energies of energy terms. A block is a set of numbers that move together on a manifold.
// `x [+] delta` moves a block by a tangent vector delta. Derivatives are with respect to delta at 0.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/autodiff.hpp"
#include "lockstep/autodiff/geometry.hpp"
#include "lockstep/context.hpp"
#include "lockstep/parallel.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::solve {

using autodiff::Value;

// ── manifolds ──

/// The manifold of a block, defined by its retraction `plus`, which is differentiated. It must be smooth in delta at 0
/// and satisfy plus(x, 0) = x.
struct Manifold {
  std::string name;
  int ambient = 0;  // number of numbers of a block
  int tangent = 0;  // number of degrees of freedom
  std::function<std::vector<Value>(std::span<const Value> x, std::span<const Value> delta)> plus;
  /// Numbers [first, first + count) of a block form a unit vector.
  struct UnitVector {
    int first = 0, count = 0;
    bool operator==(const UnitVector&) const = default;
  };
  std::vector<UnitVector> unit_vectors = {};
  /// The smallest delta with plus(from, delta) = x. It must be smooth at x = from. Required for priors.
  std::function<std::vector<Value>(std::span<const Value> x, std::span<const Value> from)> minus = {};
};
Manifold euclidean(int size);
/// An angle, kept in [-pi, pi).
Manifold so2();
/// Unit quaternion (w, x, y, z): x [+] d = x * exp(d), where d is a rotation vector in the frame of the body.
Manifold so3();
/// Pose (x, y, theta): d[0..1] is added in the world frame, d[2] to the angle, which is kept in [-pi, pi).
Manifold se2();
/// Pose (tx, ty, tz, qw, qx, qy, qz): x [+] d = (t + R(q) d[0..2], q * exp(d[3..5])), so d is in the frame of the body.
Manifold se3();
/// Unit 3-vector with two tangent coordinates in a basis that is smooth almost everywhere.
Manifold sphere2();
/// `inner` with the tangent coordinates `fixed` held constant (partly fixed variables).
Manifold subset(const Manifold& inner, std::vector<int> fixed);
/// The product of several manifolds, in order.
Manifold product(const Manifold& a, const Manifold& b);

// ── robust losses ──

/// rho(s) for s = |r|^2, with rho(0) = 0, rho'(0) = 1 and the `scale` a in the unit of r:
/// huber       s where s <= a^2, else 2 a sqrt(s) - a^2
/// cauchy      a^2 log(1 + s / a^2)
/// tukey       a^2 / 3 (1 - (1 - s / a^2)^3) where s <= a^2, else a^2 / 3
/// geman_mcclure  s / (1 + s / a^2)
/// arctan      a atan(s / a)
/// soft_l1     2 a^2 (sqrt(1 + s / a^2) - 1)
/// expression  `rho` of s: any expression, which is traced like residuals
struct RobustLoss {
  enum class Kind : uint8_t { none, huber, cauchy, tukey, geman_mcclure, arctan, soft_l1, expression };
  Kind kind = Kind::none;
  double scale = 1;
  std::function<Value(const Value& s)> rho = {};  // of Kind::expression
};
/// Reads "none", "huber:1.5" and likewise for other kinds, or "tolerant:1,0.1". Throws InputError for other text, a kind
/// without its scale, and a scale that is not positive.
RobustLoss parse_robust_loss(const std::string& text);
/// The text that parse_robust_loss() reads; "expression" for losses that have none.
std::string to_text(const RobustLoss& loss);
/// A loss from a function rho(s), which is called once when terms are added. rho should increase with s; the Jacobian
/// uses 0 where its slope is negative.
RobustLoss expression_loss(std::function<Value(const Value& s)> rho);
/// b log(1 + e^((s - a) / b)) - b log(1 + e^(-a / b)): about 0 for s below a, then about s - a. Throws InputError unless
/// a >= 0 and b > 0.
RobustLoss tolerant_loss(double a, double b);
/// factor rho(s), with `factor` >= 0. Problem::weigh sets weights of single instances.
RobustLoss scaled_loss(const RobustLoss& loss, double factor);
/// outer(inner(s)).
RobustLoss composed_loss(const RobustLoss& outer, const RobustLoss& inner);
/// rho as a Value.
Value robust_loss(const RobustLoss& loss, const Value& s);

// ── terms ──

/// The arguments of a residual: blocks and data of its instance.
class TermArguments {
 public:
  TermArguments(autodiff::Tape& graph, std::vector<std::vector<Value>> blocks, std::vector<Value> data,
                std::string term = "")
      : graph_(&graph), blocks_(std::move(blocks)), data_(std::move(data)), term_(std::move(term)) {}
  autodiff::Tape& graph() const { return *graph_; }
  /// Numbers of the block in slot `slot`. block(), x() and data() throw InputError for slots and numbers that do not
  /// exist.
  std::span<const Value> block(int slot) const;
  const Value& x(int slot, int component = 0) const;
  autodiff::Vec2 vec2(int slot) const { return {{x(slot, 0), x(slot, 1)}}; }
  autodiff::Vec3 vec3(int slot, int first = 0) const {
    return {{x(slot, first), x(slot, first + 1), x(slot, first + 2)}};
  }
  /// Quaternion (w, x, y, z) at component `first`.
  autodiff::Quaternion quaternion(int slot, int first = 0) const {
    return {x(slot, first), x(slot, first + 1), x(slot, first + 2), x(slot, first + 3)};
  }
  /// Number `k` of the data of the instance, which are constant.
  const Value& data(int k) const;
  int data_count() const { return int(data_.size()); }

 private:
  autodiff::Tape* graph_;
  std::vector<std::vector<Value>> blocks_;
  std::vector<Value> data_;
  std::string term_;  // name of the term type, for errors
};

/// A residual, written once. It is traced when terms are added; use `select` for conditions on values.
struct TermType {
  std::string name;
  std::vector<int> slots;  // ambient size of each slot
  int data = 0;            // number of data of an instance
  std::function<std::vector<Value>(const TermArguments&)> residual;
  RobustLoss loss = {};
  /// True: the only output is an energy, which is added to the cost unchanged. Its Hessian is projected to a positive
  /// semidefinite matrix.
  bool energy = false;
};

/// An instance of a host term: the numbers of the block in each slot, and its data.
struct HostInstance {
  std::span<const std::span<const double>> blocks;
  std::span<const double> data;
};

/// A residual that is a function of numbers on the host, such as a simulator, a table or an image. It can be combined
/// with traced terms in one problem, on any device. It must return the same values for the same numbers.
struct HostTerm {
  std::string name;
  std::vector<int> slots;  // ambient size of each slot
  int residuals = 1;       // of an instance
  int data = 0;            // number of data of an instance
  std::function<void(const HostInstance& at, std::span<double> residuals)> residual;
  /// The Jacobian (residuals, numbers of all slots one after the other), row-major. It is compared with differences when
  /// terms are added. If it is empty, derivatives are extrapolated differences along the tangent coordinates (Ridders
  /// 1982).
  std::function<void(const HostInstance& at, std::span<double> jacobian)> jacobian = {};
  RobustLoss loss = {};
  /// Whether several threads may call the functions concurrently.
  bool parallel = true;
};

/// Blocks that were added together. Belongs to one Problem; others throw InputError for it.
struct BlockSet {
  int id = -1;
  uint64_t problem = 0;  // Problem::number(); 0: not checked
};
/// Instances that were added together, numbered in the order of adding. Belongs to one Problem.
struct TermSet {
  int id = -1;
  uint64_t problem = 0;  // Problem::number(); 0: not checked
};

/// Residuals and the blocks they depend on, with values in f64. Instances keep the order in which they were added.
/// Functions throw InputError for invalid shapes, indices and values, naming the term, the instance and the slot. Adding
/// blocks and evaluating a problem throw InputError if the length of a unit vector of a manifold differs from 1 by more
/// than 1e-5.
class Problem {
 public:
  Problem();
  ~Problem();
  Problem(Problem&&) noexcept;
  Problem& operator=(Problem&&) noexcept;

  /// Adds blocks with `values` (count, manifold.ambient), row-major.
  BlockSet add_blocks(std::string name, Manifold manifold, std::span<const double> values);
  /// Adds one instance per row of `indices` (n, slots), the numbers of blocks in `sets[slot]`, and `data` (n, type.data).
  /// Terms of one type, and types with one topology, share kernels.
  TermSet add_terms(const TermType& type, std::span<const BlockSet> sets, std::span<const int32_t> indices,
                    std::span<const double> data);
  TermSet add_terms(const TermType& type, std::initializer_list<BlockSet> sets,
                    std::span<const int32_t> indices, std::span<const double> data) {
    return add_terms(type, std::span<const BlockSet>(sets.begin(), sets.size()), indices, data);
  }

  /// The same for a host term. Evaluates the first instances at the current values, and throws InputError if a function
  /// throws, numbers are not finite, or differences contradict the Jacobian.
  TermSet add_terms(const HostTerm& type, std::span<const BlockSet> sets, std::span<const int32_t> indices,
                    std::span<const double> data = {});
  TermSet add_terms(const HostTerm& type, std::initializer_list<BlockSet> sets,
                    std::span<const int32_t> indices, std::span<const double> data = {}) {
    return add_terms(type, std::span<const BlockSet>(sets.begin(), sets.size()), indices, data);
  }

  /// Individual residuals: build Values from variable() and arithmetic in graph(), then call add_residuals(). Residuals of
  /// one topology become one batch. Literals in the expressions become data of the instance.
  autodiff::Tape& graph();
  Value variable(BlockSet set, int64_t block, int component = 0);
  TermSet add_residuals(std::span<const Value> residuals, const RobustLoss& loss = {});

  // A problem may change between minimisations. Expressions that any problem of the process has compiled are not compiled
  // again.

  /// Appends blocks to a set and returns the number of the first. Numbers of other blocks do not change. Spans returned by
  /// values() become invalid.
  int64_t append_blocks(BlockSet set, std::span<const double> values);
  /// Sets the data (n, type.data) of the instances from `first` on. Not for individual residuals, whose literals are their
  /// data.
  void set_data(TermSet terms, std::span<const double> data, int64_t first = 0);
  /// Enables or disables an instance, or all of them. Disabled instances do not contribute to the cost and keep their
  /// numbers.
  void enable(TermSet terms, int64_t instance, bool enabled = true);
  void enable(TermSet terms) { enable_all(terms, true); }
  template <std::same_as<bool> B>  // so that a number is an instance
  void enable(TermSet terms, B enabled) {
    enable_all(terms, enabled);
  }
  bool enabled(TermSet terms, int64_t instance) const;
  /// Sets the weights w >= 0 of instances: one number, or one per instance. An instance contributes w 1/2 rho(|r|^2), an
  /// energy e contributes w e.
  void weigh(TermSet terms, std::span<const double> weights);
  void weigh(TermSet terms, double weight) { weigh(terms, {&weight, 1}); }
  /// Removes the instances of a set permanently. Other instances keep their numbers and their order.
  void remove(TermSet terms);
  /// The same, and removes the set itself, so that it needs no memory.
  void erase(TermSet terms);
  /// Removes blocks. The others keep their numbers, and numbers are not reused. values() and marginals() contain the
  /// remaining blocks in the order of their numbers. Throws InputError for a block that a term uses, even a disabled one.
  void erase(BlockSet set, std::span<const int64_t> blocks);
  int64_t instance_count(TermSet terms) const;  // including disabled ones

  /// Fixes a block at its value, or frees it.
  void fix(BlockSet set, int64_t block, bool fixed = true);
  /// Fixes these tangent coordinates of a block and frees the others. All methods and linear solvers support it. For
  /// so3, for example, {2} is the rotation about the z axis of the body.
  void fix_coordinates(BlockSet set, int64_t block, std::span<const int> coordinates);
  bool fixed(BlockSet set, int64_t block) const;
  /// Sets the bounds of a number that is moved by a single tangent coordinate: a Euclidean number, or an angle in
  /// [-pi, pi). Infinite: no bound.
  void bound(BlockSet set, int64_t block, int component, double lower, double upper);

  /// The values of a set, (count, ambient), row-major. The span is valid until blocks are added.
  std::span<const double> values(BlockSet set) const;
  std::span<double> values(BlockSet set);
  /// The numbers of one block.
  std::span<const double> value(BlockSet set, int64_t block) const;
  std::span<double> value(BlockSet set, int64_t block);
  int64_t block_count(BlockSet set) const;
  /// Numbers of the blocks in ascending order: 0 to block_count() - 1 if none was erased.
  std::vector<int64_t> block_numbers(BlockSet set) const;
  int64_t residual_count() const;  // scalar residuals; an energy counts as one
  int64_t variable_count() const;  // tangent coordinates that are not fixed
  /// Number of topologies, which is the number of kernels of each kind.
  int64_t batch_count() const;
  /// A number that is unique among the problems of a process. It moves with the content of the problem.
  uint64_t number() const;

  struct State;
  const State& state() const { return *state_; }
  State& state() { return *state_; }

 private:
  void enable_all(TermSet terms, bool enabled);
  std::unique_ptr<State> state_;
};

// ── minimisation ──

enum class Method : uint8_t { lm, gn, dogleg, lbfgs, newton, sgd, adam, adamw };
/// The linear solver. dense_cholesky, dense_qr, cholesky (sparse) and dense_schur run on the host; dense_schur eliminates
/// the blocks of one set and factorises the rest as a dense matrix. pcg, schur_pcg and device_cholesky (sparse) run on
/// the device.
enum class Linear : uint8_t {
  automatic,
  dense_cholesky,
  dense_qr,
  cholesky,
  pcg,
  schur_pcg,
  dense_schur,
  device_cholesky
};
/// mixed: derivatives and linear algebra in f32, residual, cost and gradient in f64.
enum class Precision : uint8_t { f64, f32, mixed };
enum class Termination : uint8_t {
  function_tolerance,
  gradient_tolerance,
  parameter_tolerance,
  max_iterations,
  stopped,     // by the callback
  no_descent,  // no step reduces the cost
  failure,     // values or derivatives are not finite, or a matrix is singular
  time_limit,
};
/// gpu: the device of the context. automatic: this device for at least `threshold` residuals, otherwise the CPU.
enum class Placement : uint8_t { gpu, cpu, automatic };
/// D in the damped matrix J^T J + lambda D. diagonal: the diagonal of J^T J, which makes lambda independent of the units
/// of the unknowns. identity: the identity. The radius of dogleg is the norm of sqrt(D) times the step.
enum class Damping : uint8_t { diagonal, identity };
std::span<const Choice<Method>> choices(Method);
std::span<const Choice<Linear>> choices(Linear);
std::span<const Choice<Precision>> choices(Precision);
std::span<const Choice<Placement>> choices(Placement);
std::span<const Choice<Damping>> choices(Damping);
std::span<const Choice<Termination>> choices(Termination);
template <class E>
  requires requires { choices(E{}); }
std::string_view name(E value) {
  return name_among(choices(value), value);
}
bool converged(Termination termination);

/// One row of the trace.
struct Iteration {
  int iteration = 0;
  double cost = 0;          // after the iteration
  double cost_change = 0;   // cost before minus cost after
  double gradient_max = 0;  // largest |component| of the gradient at the accepted point
  double step_norm = 0;
  double damping = 0;  // lambda of lm, radius of dogleg, step length of lbfgs and the first-order methods
  double gain = 0;     // actual decrease of the cost divided by the predicted one
  bool accepted = false;
  int linear_iterations = 0;
  double seconds = 0;  // since the start
};

struct Options {
  Method method = Method::lm;
  Linear linear = Linear::automatic;
  Precision precision = Precision::f64;
  Placement backend = Placement::gpu;
  /// Number of residuals for Placement::automatic. Negative: the number measured on this computer by
  /// `lockstep bench solve.crossover`, or 20,000.
  int64_t threshold = -1;
  /// Number of instances that are evaluated together; 0: all of a topology. Smaller batches need less memory for
  /// intermediate results, which all batches share.
  int64_t batch_size = 0;
  Damping damping = Damping::diagonal;
  int max_iterations = 100;
  double function_tolerance = 1e-9;  // |cost change| / cost
  /// lm, gn, dogleg, newton: cosine of the angle between the residuals and their tangent space, sqrt(-g.s / (2 cost)) for
  /// the undamped step s (Bates and Watts 1981). lbfgs and first-order methods: largest |gradient component| divided by
  /// the length of the residuals (by 1 with energies), relative to its value at the start.
  double gradient_tolerance = 1e-12;
  /// |step| / |x|, for each set of blocks separately. If a set has a single Euclidean block, for each of its numbers.
  double parameter_tolerance = 1e-12;
  double initial_damping = 1e-4;  // lambda of lm
  /// Radius of dogleg. With diagonal damping: relative to the length of the residuals at the start.
  double initial_radius = 1e4;
  int max_linear_iterations = 500;
  /// The order of elimination: groups of blocks, first to last. Blocks in no group are eliminated last. A group is the
  /// name of a block set, "poses:3" or "poses:0-9" for some of its blocks, or several of these joined by "+". The order
  /// within a group is automatic. Schur complements eliminate the first group. Empty: automatic.
  std::vector<std::string> order;
  /// Inner iterations (Ruhe and Wedin 1980): after each step of lm, gn, dogleg and newton, these groups (as in `order`)
  /// are minimised one after the other with all other blocks fixed, before the step is accepted or rejected. "auto":
  /// groups of blocks that share no term. Empty: none.
  std::vector<std::string> inner_groups;
  double forcing = 0.1;  // pcg, schur_pcg: relative residual at which the first linear solve stops
  int lbfgs_history = 10;
  double learning_rate = 1e-2;  // sgd, adam, adamw
  double momentum = 0;          // sgd
  double weight_decay = 0;      // adamw
  /// Called after each iteration; false stops.
  std::function<bool(const Iteration&)> callback;
  /// True: when the callback is called, the values of the problem are those of the accepted point, at the cost of a copy
  /// from the device. False: they remain those of the start until the minimisation ends.
  bool update_values = false;
  /// Called before functions of host terms are evaluated at another point, and again before their derivatives are. During
  /// the call, the values of the problem are that point. Differences and add_terms() also evaluate at other points.
  std::function<void(bool derivatives)> prepare;
  double time_limit = 0;  // seconds after which no iteration is started; 0: none
  /// The clock of time_limit, in seconds that never decrease. Empty: the steady clock of the system.
  std::function<double()> clock = {};
  /// Graduated non-convexity (Blake and Zisserman 1987; Yang et al. 2020): widens the scales of all robust losses at first
  /// so that they include the largest |r|, then divides them by `factor` every `iterations` iterations. Finally it
  /// minimises with the original scales until a tolerance is met. It finds fewer wrong minima with distant outliers and
  /// poor starts. Losses by expression are not changed. factor 0: off.
  struct Graduation {
    double factor = 0;  // typically 1.4 to 4
    int iterations = 5;
  };
  Graduation graduation = {};
  /// A file that is written atomically after each iteration, with the state of the minimisation. If it exists and belongs
  /// to this problem, the minimisation resumes from it. Empty: none.
  std::string checkpoint;
  /// Number of parts into which the residuals are divided. Sums over residuals are sums over parts along a tree, so the
  /// number of parts affects the bits. Above 1 only for the methods lm and gn with pcg or schur_pcg, without bounds.
  int64_t parts = 1;
  /// Ranks over which the parts are distributed. Each rank calls minimize() with the same problem and options, and gets
  /// the same result. Rank 0 writes the checkpoint; its callback and clock are the ones that count.
  std::optional<parallel::Group> ranks = {};
  /// True without ranks and on rank 0.
  bool leads() const { return !ranks || ranks->leads(); }
};
void describe(Schema<Options::Graduation>& schema);
void describe(Schema<Options>& schema);

/// Instances that were evaluated together. Seconds are on the clock of KernelReport.
struct BatchReport {
  std::string name;     // of the first term type
  std::string program;  // part of its kernels' names
  int64_t instances = 0;
  int residuals = 0;     // of an instance; 1 for an energy
  bool grouped = false;  // evaluated in groups of neighbouring instances, through shared memory
  bool kept = false;     // its tables are those of an earlier minimisation of the problem
  int64_t bytes = 0;     // of its tables and stored derivatives, on the device
  double tables_begin_s = 0, tables_end_s = 0;  // index tables, on the host
  double upload_begin_s = 0, upload_end_s = 0;
  double launch_s = 0;  // first launch; 0: never
};

struct Summary {
  double initial_cost = 0, final_cost = 0, gradient_max = 0;
  int iterations = 0;
  int64_t linear_iterations = 0, residuals = 0, variables = 0, kernels = 0;
  Termination termination = Termination::failure;
  std::string message;
  /// Remarks for the user: disconnected parts, directions that change no residual.
  std::vector<std::string> notes;
  Method method = Method::lm;
  Linear linear_given = Linear::automatic, linear_used = Linear::automatic;
  Precision precision = Precision::f64;
  std::string device;
  std::vector<Iteration> trace;
  std::map<std::string, double> seconds;  // by part: "evaluate", "linear", "step", "total"
  /// Of the last device, as are kernel_reports; a fallback or a resumed run resets both.
  std::vector<BatchReport> batches;
  std::vector<KernelReport> kernel_reports;  // compiled or loaded during the minimisation
  int64_t kernels_compiled = 0, cache_hits = 0, bytes_to_device = 0, bytes_from_device = 0;
  int64_t scratch_bytes = 0;  // shared by all batches
};
/// A text of a few lines: options as given and as used, counts, times, termination.
std::string report(const Summary& summary);

/// Minimises from the current values and stores the best point in the problem. Stages: "solve.evaluate" on the
/// device, "solve.linear". Throws InputError for an empty problem, a start whose cost is not finite, blocks without
/// residuals that are not fixed, and a method that the terms do not support.
Summary minimize(Problem& problem, Context& context, const Options& options = {});

/// Joint covariance (J^T J)^-1 of the tangent coordinates of blocks at the current values, row-major, in the given order.
/// J is that of evaluate(), corrected by the robust losses. The matrix is not multiplied by a variance of the residuals.
/// Bounds are ignored, and fixed coordinates have zeros. Throws InputError for a fixed block, and if J^T J is singular.
std::vector<double> covariance(const Problem& problem, Context& context,
                               std::span<const std::pair<BlockSet, int64_t>> blocks);

}  // namespace lockstep::solve
