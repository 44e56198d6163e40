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
// expression of fields at three time levels (-1, 0, +1), difference operators and parameters. The gradient uses the
// exact transpose of the discrete residual and is gathered cell by cell, so its bits depend on the problem only.
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
  /// Name of a parameter or profile of the system that replaces `value`. It is passed with the data, so a change needs
  /// no compilation.
  std::string parameter = {};
  friend bool operator==(const Side&, const Side&) = default;
};

/// Rules of all six sides. Default: periodic.
struct BoundaryConditions {
  std::array<std::array<Side, 2>, 3> sides{};  // [axis, 0 = x][0 = low, 1 = high]

  /// Reads "clamp", "x=clamp,y=reflect_odd,z=one_sided2", "x-=dirichlet_face:1.0,x+=clamp", or
  /// "y+=dirichlet_face:@lid" with the name of a parameter. Axes that are not named are periodic. Throws InputError for
  /// an unknown name, a missing or superfluous value, and an axis that is periodic at one end only.
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

/// Arrays at the levels -1, 0, +1, by the name of the field. Rows of all fields have the empty name.
using FieldBuffers = std::map<std::string, std::array<Buffer, 3>>;

/// Residuals as expressions of fields and difference operators. A cheap handle. A system cannot be changed after a Loss
/// was created from it.
class System {
 public:
  /// `dimensions`: 1, 2 or 3 space axes.
  explicit System(int dimensions);

  /// Declares a field. `boundary` overrides that of the mesh; both must be periodic along the same axes.
  Field field(std::string name, int components = 1);
  Field field(std::string name, int components, const BoundaryConditions& boundary);
  /// The same with boundary conditions for each component.
  Field field(std::string name, const std::vector<BoundaryConditions>& boundary_of_component);
  /// A field with one component for each axis, which free_slip and no_slip reflect as a vector.
  Field vector(std::string name);
  /// A number that is passed with the data.
  Value parameter(std::string name);
  /// Numbers that are passed with the data, one for each cell of a boundary, for Side::parameter.
  void profile(std::string name);

  /// The value of the field in the cell, at level -1, 0 or +1.
  Value at(Field f, int component = 0, int level = 0);
  /// (f[+1] - f[-1]) / (2 dt).
  Value dt(Field f, int component = 0);
  /// (f[+1] - f[0]) / dt.
  Value dt_forward(Field f, int component = 0);
  /// (f[+1] - 2 f[0] + f[-1]) / dt^2.
  Value dtt(Field f, int component = 0);
  /// Central first and second differences along axis 0 = x, 1 = y or 2 = z, at a level, of the order of the mesh.
  Value d(Field f, int axis, int component = 0, int level = 0);
  Value d2(Field f, int axis, int component = 0, int level = 0);
  Value dx(Field f, int component = 0) { return d(f, 0, component); }
  Value dy(Field f, int component = 0) { return d(f, 1, component); }
  Value dz(Field f, int component = 0) { return d(f, 2, component); }
  /// First-order one-sided differences (f[i+1] - f[i]) / h and (f[i] - f[i-1]) / h.
  Value forward(Field f, int axis, int component = 0, int level = 0);
  Value backward(Field f, int axis, int component = 0, int level = 0);
  /// v times the upwind difference: max(v, 0) backward + min(v, 0) forward.
  Value upwind(const Value& velocity, Field f, int axis, int component = 0);

  std::vector<Value> grad(Field f, int component = 0);
  Value div(Field f);
  Value laplacian(Field f, int component = 0);
  /// Advection u . grad f: the sum over the axes of the velocity component times the central (or upwind) difference.
  Value advect(Field velocity, Field f, int component = 0, bool with_upwind = false);

  /// Adds weight / N sum m R^2 to the loss. Residuals with the same name are reported as one term.
  void residual(std::string name, const Value& r, double weight = 1);

  /// The system as JSON, and the system of such a text, with the same fields, residuals and bits.
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
/// The transport loss of docs/pde.md for a density sigma and a velocity u. Fields "sigma", "u"; terms "sigma", "u",
/// "divergence", "speed".
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
  two_sweep,  // one sweep for the residuals and one for the gradients: columns in registers, cotangents through memory
};
std::span<const Choice<Path>> choices(Path);  // the name of automatic is "auto"
std::string_view name(Path path);

/// Data of one evaluation, on one device.
struct Inputs {
  /// Each field at the levels -1, 0, +1; levels that the residuals do not use may be empty. Shape (nz, ny, nx), or
  /// (components, nz, ny, nx) with component 0 = x. All have one storage: f32, f64, f16 or bf16. The latter two are
  /// computed in f32.
  std::map<std::string, std::array<Buffer, 3>> fields;
  std::map<std::string, double> parameters;
  /// Values along boundaries, in the storage of the fields, or f32 if that is narrower. Shape: the cells of the mesh along
  /// the two other axes, slowest first: (nz, ny) for a boundary in x, (nz, nx) in y, (ny, nx) in z; a leading 1 may be
  /// omitted. All members share them.
  std::map<std::string, Buffer> profiles;
  Buffer mask;      // (nz, ny, nx) in the storage of the fields, or empty
  double seed = 1;  // factor of the gradients: the derivative of the final result with respect to this loss
  /// Instead of `fields`: levels -1, 0, +1 as rows (cells, width) or (nz, ny, nx, width), as networks produce them. A row
  /// contains all components of all fields of a cell, in the order in which the fields were declared (transport: sigma,
  /// u_x, u_y, u_z). Gradients have the same form.
  std::array<Buffer, 3> rows;
  /// Number of grids on the same mesh, stored one after the other in every array: (members, nz, ny, nx),
  /// (members * components, nz, ny, nx), and likewise rows and masks. One launch computes all, and the loss is their
  /// mean.
  int64_t members = 1;
  /// Buffers for gradients, in the shapes of the fields; missing ones are allocated.
  FieldBuffers gradients;
};

/// Data of T time levels: T arrays for each field with the shapes of Inputs, or T arrays of rows. Members without a
/// comment are those of Inputs.
struct TrajectoryInputs {
  std::map<std::string, std::vector<Buffer>> fields;
  std::map<std::string, double> parameters;
  std::map<std::string, Buffer> profiles;
  /// Values that differ between the T levels: of profiles, and of parameters that boundaries use and residuals do not.
  /// They require the two-kernel path.
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
  /// Cells along z of a slab that both kernels process while its cotangents are in the cache; 0: chosen for the device.
  int64_t slab = 0;
  /// Tiles of the fused and two-sweep paths: lanes along x and y, adjacent rows per lane, planes per chunk, and groups
  /// that should share a multiprocessor, which limits the registers on CUDA; 0: chosen for the device.
  int tile_x = 0, tile_y = 0, tile_rows = 0, chunk = 0, groups = 0;
  /// Residual levels per fused sweep of a trajectory; 0: chosen for the device.
  int levels = 0;
  /// A variant of the tiles of the path, `pde.fused.tile`, `pde.two_sweep.tile` or, for a trajectory,
  /// `pde.trajectory.sweep` (docs/design/variants.md); empty: the fastest that fits, according to measurements.
  std::string tile{};
};

/// A loss bound to buffers on a device. Memory for results and scratch is allocated once.
class BoundLoss {
 public:
  /// Launches the computation on the default stream. It may be recorded into a Graph.
  void run() const;
  /// Weighted loss of each term, in the order of the residuals. Waits.
  std::vector<double> terms() const;
  const std::vector<std::string>& term_names() const;
  double loss() const;
  /// Queues the computation of the loss into `value` (1), f32 or f64, without waiting.
  void loss_into(const Buffer& value) const;
  /// The same loss on other arrays and with other values of parameters; omitted ones are unchanged. The arrays must have
  /// the storage, the shapes and the alignment (to 16 bytes) of the bound ones. Does not trace, compile or allocate. Both
  /// losses share scratch memory, so their runs must not overlap on the device. Throws InputError for another size or
  /// storage, and UnsupportedError for trajectories and several members.
  BoundLoss rebind(const FieldBuffers& fields, const FieldBuffers& gradients, const Buffer& mask = {},
                   const std::map<std::string, double>& parameters = {}) const;
  /// Gradient of a field at a level, in the storage and shape of the field. Empty if not requested.
  Buffer gradient(std::string_view field, int level) const;
  /// Gradient at a level for inputs that are rows, in their shape. Columns that no residual uses are 0.
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

/// A system on a mesh. Its kernels are traced on first use and kept. Thread-safe.
class Loss {
 public:
  /// Throws InputError for a spacing or dt that is not above 0, an unknown order, and a grid too small for a stencil.
  Loss(const System& system, const Mesh& mesh);

  /// Throws InputError for missing arrays, inconsistent shapes or types, and unknown names; UnsupportedError if the
  /// requested path does not support the problem.
  BoundLoss bind(const Device& device, const Inputs& inputs, const LossOptions& options = {}) const;

  /// The sum of the losses centred at each level except the first and the last, with the gradient with respect to every
  /// level. BoundLoss::gradient numbers the levels 0 to T - 1. If a slab fits the cache, each field is read once and each
  /// gradient written once. Throws as bind(), and UnsupportedError if a residual is not linear in the previous and next
  /// levels.
  BoundLoss bind_trajectory(const Device& device, const TrajectoryInputs& inputs,
                            const LossOptions& options = {}) const;

  /// The K residuals (K, members * nz, ny, nx), f32 or f64.
  Buffer residuals(const Device& device, const Inputs& inputs) const;
  /// Vector-Jacobian product: gradients for cotangents (K, members * nz, ny, nx) of the residuals, by the name of the
  /// field and level + 1. Rows have the empty name.
  std::map<std::string, std::array<Buffer, 3>> vjp(const Device& device, const Inputs& inputs,
                                                   const Buffer& cotangents,
                                                   const LossOptions& options = {}) const;
  /// A number for each parameter and each element of a profile, by name: tangents, or derivatives with respect to them.
  /// The numbers of a profile have the order of its array.
  struct Numbers {
    std::map<std::string, double> parameters;
    std::map<std::string, std::vector<double>> profiles;
  };
  /// Jacobian-vector product of the residuals, (K, members * nz, ny, nx), for tangents of fields, parameters and profiles.
  /// Tangents have the shapes of the fields; missing ones are 0. Rows have the empty name.
  Buffer jvp(const Device& device, const Inputs& inputs,
             const std::map<std::string, std::array<Buffer, 3>>& tangents, const Numbers& along = {}) const;
  /// Derivatives of the loss with respect to every parameter and every number of the profiles, in residuals and
  /// boundaries.
  Numbers number_gradients(const Device& device, const Inputs& inputs) const;
  /// The same for cotangents (K, members * nz, ny, nx) of the residuals.
  Numbers number_vjp(const Device& device, const Inputs& inputs, const Buffer& cotangents) const;
  /// Hessian-vector product of the loss with respect to all fields, parameters and profiles: the derivative of each
  /// gradient along the given tangents. Throws UnsupportedError for rows and several members.
  struct Product {
    FieldBuffers fields;
    Numbers numbers;
  };
  Product hessian_product(const Device& device, const Inputs& inputs, const FieldBuffers& tangents,
                          const Numbers& along = {}) const;

  /// Derivative of the loss with respect to the value b of every dirichlet_face and ghost boundary, for each component of
  /// each field. If several boundaries share a value, the derivative with respect to it is the sum.
  struct BoundaryGradient {
    std::string field;
    int component, axis, end;  // axis 0: x; end 0: low, 1: high
    double value;              // derivative with respect to one value b for the whole boundary
    std::string parameter;     // name of the parameter or profile that defines b; empty: a number of the mesh
    std::vector<double> cells;  // for a profile: derivatives for each of its numbers, whose sum is `value`
  };
  std::vector<BoundaryGradient> boundary_gradients(const Device& device, const Inputs& inputs) const;

  const Mesh& mesh() const;
  struct State;

 private:
  friend class DividedLoss;  // lockstep/pde/divided.hpp
  explicit Loss(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Multiplies arrays of one storage by seed / scale in place. `seed` (1), f32 or f64, is on the device. This is the chain
/// rule after a loss whose gradients were computed with the seed `scale`. If the quotient is 1, the arrays are neither
/// read nor written. Products of f16 and bf16 are computed in f32.
void scale_gradients(const Device& device, std::span<const Buffer> arrays, const Buffer& seed,
                     double scale = 1);

}  // namespace lockstep::pde
