// Losses from residuals of partial differential equations on structured grids, with exact gradients.
//
//   pde::System heat(2);                                     // two space axes
//   const auto t = heat.field("t");
//   const auto nu = heat.parameter("nu");
//   heat.residual("heat", heat.dt(t) - nu * heat.laplacian(t));
//   const auto edges = pde::BoundaryConditions::parse("clamp");
//   pde::Loss loss(heat, {.cells = {256, 256, 1}, .spacing = {h, h, h}, .dt = dt, .boundary = edges});
//   auto bound = loss.bind(device, {.fields = {{"t", {t0, t1, t2}}}, .parameters = {{"nu", 0.1}}});
//   bound.run(), bound.loss(), bound.gradient("t", 0);
//
// The loss is L = sum_k w_k / N sum_i m_i R_k,i^2 over the N cells i, with an optional mask m. A residual is an
// expression over fields at three time levels (-1, 0, +1), difference operators and parameters. The gradient is the
// exact transpose of the discrete residual, gathered cell by cell, so its bits depend on the problem only.
// Mathematics: docs/pde.md.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/autodiff.hpp"
#include "lockstep/device.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::pde {

using autodiff::Value;

/// Boundary rule: the values of a field outside the grid. f[-1] is the first ghost cell, f[0] the first cell.
enum class Rule : uint8_t {
  periodic,
  clamp,           // zero gradient: f[-m] = f[m-1]
  reflect_even,    // the same as clamp
  reflect_odd,     // f[-m] = -f[m-1]
  free_slip,       // the component of a vector field normal to the wall is odd, all else even
  no_slip,         // vector fields are odd, all else even
  dirichlet_face,  // f[-m] = 2b - f[m-1]
  ghost,           // f[-m] = b
  node_mirror,     // f[-m] = f[m]
  one_sided1,      // line through f[0], f[1]
  one_sided2,      // parabola through f[0], f[1], f[2]
};
struct Side {
  Rule rule = Rule::periodic;
  double value = 0;  // b
  /// A parameter or profile of the system that is passed with the data and replaces `value`: a change needs no
  /// compilation.
  std::string parameter = {};
  friend bool operator==(const Side&, const Side&) = default;
};

/// Rules of all six sides. Default: periodic.
struct BoundaryConditions {
  std::array<std::array<Side, 2>, 3> sides{};  // [axis, 0 = x][0 = low, 1 = high]

  /// "clamp", "x=clamp,y=reflect_odd,z=one_sided2", "x-=dirichlet_face:1.0,x+=clamp", "y+=dirichlet_face:@lid" with
  /// the name of a parameter. Axes that are not named are periodic. Throws InputError for an unknown name, a missing
  /// or superfluous value, and an axis that is periodic at one end only.
  /// alone.
  static BoundaryConditions parse(std::string_view text);
  std::string text() const;
};

/// The names accepted by parse(): "periodic, clamp, …, dirichlet_face:b, …".
std::string boundary_rules();

struct Mesh {
  std::array<int64_t, 3> cells{1, 1, 1};  // x, y, z; axes beyond the system's dimensions have one cell
  std::array<double, 3> spacing{1, 1, 1};
  double dt = 1;
  BoundaryConditions boundary;
  int order = 2;  // of central differences: 2, 4, 6, 8
  int64_t count() const { return cells[0] * cells[1] * cells[2]; }
};

/// A field of a System: a scalar or a vector of components.
struct Field {
  int index = 0;
  int components = 1;
};

struct Plan;

/// Levels -1, 0, +1 of fields by name; rows of all fields under the empty name.
using FieldBuffers = std::map<std::string, std::array<Buffer, 3>>;

/// Residuals as expressions over fields and difference operators. A cheap handle; frozen once a Loss is made
/// of it.
class System {
 public:
  /// `dimensions`: 1, 2 or 3 space axes.
  explicit System(int dimensions);

  /// A field at the levels that the residuals use. `boundary` overrides that of the mesh; both must be periodic along
  /// the same axes.
  Field field(std::string name, int components = 1);
  Field field(std::string name, int components, const BoundaryConditions& boundary);
  /// A boundary for each component.
  Field field(std::string name, const std::vector<BoundaryConditions>& boundary_of_component);
  /// A field with one component for each axis, which free_slip and no_slip reflect as a vector.
  Field vector(std::string name);
  /// A number that is passed with the data.
  Value parameter(std::string name);
  /// Numbers that are passed with the data, one for each cell of a boundary; Side::parameter may name them as well as
  /// parameters.
  void profile(std::string name);

  /// The field's own value. Levels: -1, 0, +1.
  Value at(Field f, int component = 0, int level = 0);
  /// (f[+1] - f[-1]) / (2 dt).
  Value dt(Field f, int component = 0);
  /// (f[+1] - f[0]) / dt.
  Value dt_forward(Field f, int component = 0);
  /// (f[+1] - 2 f[0] + f[-1]) / dt^2.
  Value dtt(Field f, int component = 0);
  /// Central first and second difference along axis 0 = x, 1 = y, 2 = z, at a level, of the mesh's order.
  Value d(Field f, int axis, int component = 0, int level = 0);
  Value d2(Field f, int axis, int component = 0, int level = 0);
  Value dx(Field f, int component = 0) { return d(f, 0, component); }
  Value dy(Field f, int component = 0) { return d(f, 1, component); }
  Value dz(Field f, int component = 0) { return d(f, 2, component); }
  /// First-order one-sided differences (f[i+1] - f[i]) / h and (f[i] - f[i-1]) / h.
  Value forward(Field f, int axis, int component = 0, int level = 0);
  Value backward(Field f, int axis, int component = 0, int level = 0);
  /// max(v, 0) backward + min(v, 0) forward: v times the upwind difference.
  Value upwind(const Value& velocity, Field f, int axis, int component = 0);

  std::vector<Value> grad(Field f, int component = 0);
  Value div(Field f);
  Value laplacian(Field f, int component = 0);
  /// Sum over axes of velocity component times central (or upwind) difference.
  Value advect(Field velocity, Field f, int component = 0, bool with_upwind = false);

  /// Adds weight / N sum m R^2 to the loss. Residuals of one name are reported as one term.
  void residual(std::string name, const Value& r, double weight = 1);

  /// The system as JSON, and the same system again: same fields, residuals and bits.
  std::string text() const;
  static System of_text(std::string_view text);

  int dimensions() const;
  /// Components of a field. Throws InputError for an unknown name.
  int components(std::string_view field) const;
  /// The plan derived from the residuals; freezes the system. For the engine and tests.
  std::shared_ptr<const Plan> plan() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Options of the built-in transport loss.
struct TransportOptions {
  double weight_sigma = 1, weight_u = 1;
  bool sigma_transport = true;   // dt sigma + u . grad sigma
  bool sigma_divergence = true;  // + sigma div u
  bool momentum = true;          // dt u + (u . grad) u
  bool upwind = false;           // advection by upwind differences
  double viscosity = 0;          // momentum: - nu laplacian u
  bool pressure = false;         // momentum: + grad p; field "p" (level 0)
  bool forcing = false;          // momentum: - f; field "force" (level 0)
  double weight_divergence = 0;  // (div u)^2, term "divergence"
  double weight_speed = 0;       // |u|^2, term "speed"
};
/// The loss of docs/pde.md: a density sigma and a velocity u (fields "sigma", "u"; terms "sigma", "u",
/// "divergence", "speed").
System transport(int dimensions, const TransportOptions& options = {});
/// Momentum dt u + (u . grad) u + grad p - nu laplacian u and divergence div u in three dimensions. Fields "u" at all
/// levels, "p" at level 0; parameter "nu"; terms "momentum", "divergence".
System incompressible_flow(double weight_divergence);

enum class Gradients : uint8_t {
  none,
  t1,    // level 0
  t1t2,  // levels 0 and +1
  all,   // every level
};
enum class Path : uint8_t {
  automatic,
  two_kernel,  // cotangents of the residuals pass through memory
  fused,       // one sweep along z with planes in shared memory
  two_sweep,   // a sweep for each kernel: columns in registers, cotangents through memory
};
std::span<const Choice<Path>> choices(Path);  // "auto" of automatic
std::string_view name(Path path);

/// Data of one evaluation, on one device.
struct Inputs {
  /// Levels -1, 0, +1 of each field; those that the residuals do not use may be empty. Shape (nz, ny, nx), or
  /// (components, nz, ny, nx) with component 0 = x. All of one storage: f32, f64, f16 or bf16 (computed in f32).
  std::map<std::string, std::array<Buffer, 3>> fields;
  std::map<std::string, double> parameters;
  /// Values along boundaries, of f32 if the fields are narrower, else of their storage. Shape: the cells of the mesh
  /// along the two other axes, slowest first: (nz, ny) for a boundary of x, (nz, nx) of y, (ny, nx) of z; a leading 1
  /// may be omitted. Shared by all members.
  std::map<std::string, Buffer> profiles;
  Buffer mask;      // (nz, ny, nx) of the fields' storage, or empty
  double seed = 1;  // derivative of the final result with respect to this loss
  /// Instead of `fields`: levels -1, 0, +1 as rows (cells, width) or (nz, ny, nx, width), as networks produce them:
  /// all components of all fields of a cell next to each other, in the order in which the fields were made
  /// (transport: sigma, u_x, u_y, u_z). Gradients have the same form.
  std::array<Buffer, 3> rows;
  /// Number of grids of one mesh, stored one after the other in every array: (members, nz, ny, nx), (members *
  /// components, nz, ny, nx), also rows and masks. One launch computes all; the loss is their mean.
  int64_t members = 1;
  /// Buffers for gradients, in the shapes of the fields; missing ones are allocated.
  FieldBuffers gradients;
};

/// Data of T time levels: for each field T arrays, shaped as those of Inputs, or T arrays of rows.
struct TrajectoryInputs {
  std::map<std::string, std::vector<Buffer>> fields;
  std::map<std::string, double> parameters;
  std::map<std::string, Buffer> profiles;
  /// Parameters used by boundaries but by no residual, and profiles, with a value for each of the T levels instead of
  /// one for all. Uses the two-kernel path.
  std::map<std::string, std::vector<double>> parameters_in_time;
  std::map<std::string, std::vector<Buffer>> profiles_in_time;
  Buffer mask;
  double seed = 1;
  std::vector<Buffer> rows;
  int64_t members = 1;
};

struct LossOptions {
  Gradients gradients = Gradients::all;
  Path path = Path::automatic;
  /// Fields whose gradients are computed; empty: all.
  std::vector<std::string> wanted;
  /// Cells along z of a slab that both kernels process while its cotangents are in the cache; 0: by the
  /// device.
  int64_t slab = 0;
  /// Lanes of a tile (fused, two sweeps) along x and y, adjacent rows of a lane, planes of a chunk, groups
  /// that should share a multiprocessor (bounds the registers on CUDA); 0: by the device.
  int tile_x = 0, tile_y = 0, tile_rows = 0, chunk = 0, groups = 0;
  /// Residual levels per fused sweep of a trajectory; 0: by the device.
  int levels = 0;
  /// A variant of the tiles of the path, `pde.fused.tile`, `pde.two_sweep.tile` or, for a trajectory,
  /// `pde.trajectory.sweep` (docs/design/variants.md); empty: the fastest that fits, according to measurements.
  std::string tile{};
};

/// A loss with its buffers on a device: results and scratch are allocated once.
class BoundLoss {
 public:
  /// Launches everything on the default stream; may be recorded into a Graph.
  void run() const;
  /// Weighted loss of each term, in the order of first mention; waits.
  std::vector<double> terms() const;
  const std::vector<std::string>& term_names() const;
  double loss() const;
  /// Queues the computation of the loss into `value` (1), f32 or f64, without waiting.
  void loss_into(const Buffer& value) const;
  /// The same loss on other arrays with the storage, the shapes and the alignment (to 16 bytes) of the bound ones,
  /// and with other values of parameters; omitted ones are unchanged. Does not trace, compile or allocate. Scratch
  /// memory is shared: runs of the two must not overlap on the device. Throws InputError for another size or storage
  /// and UnsupportedError for trajectories and several members.
  BoundLoss rebind(const FieldBuffers& fields, const FieldBuffers& gradients, const Buffer& mask = {},
                   const std::map<std::string, double>& parameters = {}) const;
  /// Gradient of a field at a level, in the storage and shape of the field. Empty if not requested.
  Buffer gradient(std::string_view field, int level) const;
  /// Gradient at a level where the inputs were rows, shaped as they were. Columns that no residual mentions
  /// are 0.
  Buffer gradient_rows(int level) const;
  /// The path used.
  Path path() const;
  /// Bytes that a run must access at least once.
  double bytes() const;

  struct State;
  explicit BoundLoss(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  friend class DividedLoss;
  std::shared_ptr<State> state_;
};

/// A system on a mesh: traces its kernels on first use and keeps them. Thread-safe.
class Loss {
 public:
  /// Throws InputError for spacing or dt not above 0, unknown order, a grid too small for a stencil.
  Loss(const System& system, const Mesh& mesh);

  /// Throws InputError for missing arrays, inconsistent shapes or types, and unknown names; UnsupportedError if the
  /// requested path does not support the problem.
  BoundLoss bind(const Device& device, const Inputs& inputs, const LossOptions& options = {}) const;

  /// The sum of the losses centred at each level except the first and the last, with the gradient with respect to
  /// every level: levels 0 to T - 1 of BoundLoss::gradient. Each field is read and each gradient written once if a
  /// slab stays in the cache. Throws as bind, and UnsupportedError if a residual is not linear in the levels before
  /// and after.
  BoundLoss bind_trajectory(const Device& device, const TrajectoryInputs& inputs,
                            const LossOptions& options = {}) const;

  /// The residuals of all terms, one array (nz, ny, nx) per residual stacked as (K, members * nz, ny, nx), in
  /// f32 or f64.
  Buffer residuals(const Device& device, const Inputs& inputs) const;
  /// Vector-Jacobian product: gradients for cotangents (K, members * nz, ny, nx) of the residuals, by field
  /// name and level + 1; rows under the empty name.
  std::map<std::string, std::array<Buffer, 3>> vjp(const Device& device, const Inputs& inputs,
                                                   const Buffer& cotangents,
                                                   const LossOptions& options = {}) const;
  /// Values of parameters and profiles by name: their tangents, or derivatives with respect to them. The numbers of a
  /// profile are those of its array, in order.
  struct Numbers {
    std::map<std::string, double> parameters;
    std::map<std::string, std::vector<double>> profiles;
  };
  /// Jacobian-vector product of the residuals: (K, members * nz, ny, nx) for tangents of the fields (shapes
  /// as the fields; missing ones are zero; rows under the empty name) and of parameters and profiles.
  Buffer jvp(const Device& device, const Inputs& inputs,
             const std::map<std::string, std::array<Buffer, 3>>& tangents, const Numbers& along = {}) const;
  /// Derivatives of the loss with respect to every parameter and every number of the profiles, in residuals and
  /// boundaries.
  Numbers number_gradients(const Device& device, const Inputs& inputs) const;
  /// The same for cotangents (K, members * nz, ny, nx) of the residuals.
  Numbers number_vjp(const Device& device, const Inputs& inputs, const Buffer& cotangents) const;
  /// Product of the Hessian of the loss, with respect to all fields, parameters and profiles, with their tangents:
  /// the derivative of each gradient along them. Throws UnsupportedError for rows and several members.
  struct Product {
    FieldBuffers fields;
    Numbers numbers;
  };
  Product hessian_product(const Device& device, const Inputs& inputs, const FieldBuffers& tangents,
                          const Numbers& along = {}) const;

  /// Derivative of the loss with respect to the value b of every dirichlet_face and ghost boundary, for each
  /// component of each field; if boundaries share a value, add their derivatives.
  struct BoundaryGradient {
    std::string field;
    int component, axis, end;   // end 0: low, 1: high
    double value;               // with respect to one value for the whole boundary
    std::string parameter;      // name that gives b; empty: a number of the mesh
    std::vector<double> cells;  // if a profile gives b: for each of its numbers, which add up to `value`
  };
  std::vector<BoundaryGradient> boundary_gradients(const Device& device, const Inputs& inputs) const;

  const Mesh& mesh() const;
  struct State;

 private:
  friend class DividedLoss;  // lockstep/pde/divided.hpp
  explicit Loss(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Multiplies arrays of one storage by seed / scale in place, where `seed` (1), f32 or f64, is on the device: the
/// chain rule after a loss whose gradients were computed with the seed `scale`. If the quotient is 1, nothing is read
/// or written. Products of f16 and bf16 are computed in f32.
void scale_gradients(const Device& device, std::span<const Buffer> arrays, const Buffer& seed,
                     double scale = 1);

}  // namespace lockstep::pde
