// Two-dimensional incompressible turbulence on a doubly periodic box, as a large-eddy simulation.
//
//   flow::Model model{.grid = {256, 256}, .viscosity = 1e-4, .closure = flow::Closure::smagorinsky};
//   flow::Solver solver(device, model, {flow::Integrator::rk4, 1e-3});
//   solver.set_vorticity(flow::initial_field(model.grid, flow::Initial::mcwilliams, 7));
//   solver.advance(1000);
//   solver.vorticity(); solver.budget();
//
// Conventions: arrays are (ny, nx), y slowest; x = i Lx / nx. Vorticity w = v_x - u_y, stream function with
// -laplacian(psi) = w, u = psi_y, v = -psi_x. The equation is
//   w_t + u . grad w + beta v = nu lap w + closure - drag w - nu_h (-lap)^p w - nu_l (-lap)^-q w + forcing.
// All quantities are in the units of the box and of its time. Mathematics and sources: docs/flow.md.
#pragma once

#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/device.hpp"
#include "lockstep/parallel.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::flow {

enum class Integrator : uint8_t { rk2, ssprk3, rk4, ab3, etdrk4 };
enum class Dealias : uint8_t {
  two_thirds,  // keeps the modes |i| < n / 3 along each axis of n points
  padded,      // computes products on 3/2 as many points along each axis
  filter,      // after each step, multiplies modes beyond k d = 0.65 pi by exp(-23.6 (k d - 0.65 pi)^4)
  none,
};
/// The eddy viscosity nu_t, with the grid spacing d and the rate of strain S.
enum class Closure : uint8_t {
  none,
  smagorinsky,          // nu_t = (C d)^2 |S|, |S| = 2 sqrt(S11^2 + S12^2)
  leith,                // nu_t = (C d)^3 |grad w|
  dynamic_smagorinsky,  // smagorinsky with C^2 from Germano's identity in each evaluation
  dynamic_leith,        // leith with C^3 from Germano's identity in each evaluation
};
enum class ClosureForm : uint8_t {
  divergence,  // curl div (2 nu_t S)
  simple,      // nu_t lap w
};
/// Averaging of the coefficient of a dynamic closure: over the domain or over neighbouring points. Negative coefficients
/// are set to 0.
enum class Averaging : uint8_t { global, local };
enum class Advection : uint8_t {
  stress,  // from P = u v and Q = u^2 - v^2: two inverse and two forward transforms
  flux,    // from u w and v w: three inverse and two forward transforms
};
enum class ForcingKind : uint8_t {
  none,
  kolmogorov,  // steady force A sin(k y) along x, with k = 2 pi K / Ly
  stochastic,  // white in time, on the ring |k| = K +- 1/2 in units of 2 pi / max(Lx, Ly), with mean energy input EPS
};
enum class Initial : uint8_t { mcwilliams, vortices, noise, taylor_green, shear };

/// Names in options.
std::span<const Choice<Integrator>> choices(Integrator);
std::span<const Choice<Dealias>> choices(Dealias);
std::span<const Choice<Closure>> choices(Closure);
std::span<const Choice<ClosureForm>> choices(ClosureForm);
std::span<const Choice<Averaging>> choices(Averaging);
std::span<const Choice<Advection>> choices(Advection);
std::span<const Choice<ForcingKind>> choices(ForcingKind);
std::span<const Choice<Initial>> choices(Initial);
template <class E>
  requires requires { choices(E{}); }
std::string_view name(E value) {
  return name_among(choices(value), value);
}

struct BoxGrid {
  int64_t nx = 256, ny = 256;
  double lx = 2 * std::numbers::pi, ly = 2 * std::numbers::pi;
  double dx() const { return lx / double(nx); }
  double dy() const { return ly / double(ny); }
  int64_t points() const { return nx * ny; }
};

struct Forcing {
  ForcingKind kind = ForcingKind::none;
  double wavenumber = 4;  // K
  double amount = 0;      // A (kolmogorov) or EPS (stochastic)
  uint64_t seed = 0;      // of member 0; member m has seed + m
};

/// The right-hand side of the vorticity equation.
struct Model {
  BoxGrid grid;
  double viscosity = 1e-4;
  Closure closure = Closure::none;
  double constant = 0;  // C; 0 means the default: 0.17 (Smagorinsky), 0.3 (Leith)
  ClosureForm form = ClosureForm::divergence;
  Averaging averaging = Averaging::global;
  Forcing forcing;
  double drag = 0, beta = 0;
  double hyper_viscosity = 0;
  int hyper_power = 4;  // p
  double hypo_viscosity = 0;
  int hypo_power = 1;  // q
  Dealias dealias = Dealias::two_thirds;
  Advection advection = Advection::stress;
};

struct Stepping {
  Integrator integrator = Integrator::rk4;
  double dt = 1e-3;
  /// Above 0: each step uses dt = cfl / (max|u| / dx + max|v| / dy) of the velocities at its start, at most `dt`. Not
  /// supported by ab3 and etdrk4, whose coefficients depend on dt.
  double cfl = 0;
  /// A variant of `flow.step` (docs/design/variants.md); empty: the fastest according to measurements. All variants
  /// give the same bits.
  std::string variant{};
};

/// The settings of a Solver.
struct SolverOptions {
  Model model;
  Stepping stepping;
  Storage precision = Storage::f32;
  int64_t members = 1;
};

void describe(Schema<BoxGrid>& schema);
void describe(Schema<Forcing>& schema);
void describe(Schema<Model>& schema);
void describe(Schema<Stepping>& schema);
void describe(Schema<SolverOptions>& schema);
/// Names of the supported precisions: f32 and f64.
std::vector<Choice<Storage>> precisions();

/// Largest stable cfl of advection for an integrator and the modes of the model, and the largest dt for which its linear
/// terms are stable (infinity for etdrk4).
double cfl_limit(const Model& model, Integrator integrator);
double linear_dt_limit(const Model& model, Integrator integrator);
/// Largest product of dt and the eddy viscosity, in units of length squared, that uses half of the stability limit of the
/// integrator on the negative real axis. The rest is left to the other terms. Adaptive steps with local dynamic closures
/// use it.
double eddy_limit(const Model& model, Integrator integrator);
/// Throws InputError for fewer than 4 points along an axis, lengths and dt not above 0, negative or non-finite
/// coefficients, a linear term that is unstable for `dt`, cfl above the limit, and cfl with ab3 or etdrk4.
void check(const Model& model, const Stepping& stepping);

/// Vorticity (ny, nx), f64, with zero mean. Random fields depend on the seed and the wavenumbers only, so every grid that
/// resolves the flow has the same flow. Throws InputError for an invalid grid.
Array initial_field(const BoxGrid& grid, Initial which, uint64_t seed = 0);

/// Domain means: E = <|u|^2> / 2, Z = <w^2> / 2, P = <|grad w|^2> / 2.
struct Budget {
  double energy = 0, enstrophy = 0, palinstrophy = 0;
};

/// Rates of change of energy or enstrophy by cause.
struct Rates {
  double viscous = 0, drag = 0;
  double other = 0;  // hyper- and hypoviscosity
  double forcing =
      0;  // the steady force; stochastic forcing adds forcing.amount to the rate of energy on average
  double closure = 0;  // the closure, and the aliasing errors of products if they are not removed
  double all = 0;      // sum of the above
};
/// State of a member at one time of a run.
struct Moment {
  double time = 0, max_u = 0, max_v = 0, courant = 0;
  Budget budget;
  Rates energy, enstrophy;
};

/// Spectra by rings j: sums over |k| = j +- 1/2 in units of 2 pi / max(Lx, Ly). Fluxes are those of advection through
/// |k| = j + 1/2, positive towards small scales.
struct Spectra {
  std::vector<double> energy, enstrophy, energy_flux, enstrophy_flux;
};

/// A member that blew up: its speed is not finite, or its Courant number exceeds twice cfl_limit.
struct BlowUp {
  int64_t member = 0;
  int64_t step = 0;  // step at which the blow-up was detected, at most ten steps after it occurred
};

/// Flows (members) of one model on a device, advanced together. Each member is bit-identical to a simulation of it
/// alone. The state stays on the device. Members differ by their initial fields and, with stochastic forcing, by the seed
/// of the forcing: member m has seed + m.
class Solver {
 public:
  /// Creates a fluid at rest. `precision`: f32 or f64. Throws InputError as check(), and UnsupportedError for f64 on a
  /// device without it.
  Solver(const Device& device, const Model& model, const Stepping& stepping, Storage precision = Storage::f64,
         int64_t members = 1);
  /// A flow divided over ranks. All ranks hold the whole state; each computes some columns of modes and some rows of
  /// points. Results are bit-identical to those of one rank. Collective, as are advance(), courant(), moment(),
  /// evaluate() and right_hand_side(). Throws GroupError on every rank for grids and closures without fused kernels
  /// (docs/cluster.md).
  Solver(const Device& device, const Model& model, const Stepping& stepping, Storage precision,
         int64_t members, const parallel::Group& group);

  /// Sets the vorticity, (ny, nx) for all members or (members, ny, nx), without its mean and truncated modes, and resets
  /// the time to 0. Throws InputError for other shapes and values that are not finite.
  void set_vorticity(const Array& w);
  /// Queues `steps` steps on the device and returns before they are complete.
  void advance(int64_t steps);
  /// With cfl: sets the time at which members stop. Further steps change nothing and are not counted.
  void set_end(double time);

  /// Vorticity (members, ny, nx) in the precision of the solver. This and the following functions that return values wait
  /// for the device.
  Array vorticity() const;
  /// The same into `out` (members, ny, nx), f32, on the solver's device, without waiting.
  void vorticity(const Buffer& out) const;
  /// Vorticity of the last state before a blow-up that was found finite, at most ten steps earlier.
  Array last_sound_vorticity() const;
  std::vector<Budget> budget() const;
  std::vector<Spectra> spectra() const;
  std::vector<double> times() const;
  std::vector<int64_t> steps() const;
  /// Computes the moments of the members every `every` steps on the device, without waiting; `since` steps of the first
  /// interval are already done. The device keeps them until moments() reads them, or until there are 1024.
  void record_moments(int64_t every, int64_t since = 0);
  /// Recorded moments that have not been read, by time and then by member. Waits.
  std::vector<std::vector<Moment>> moments();
  /// Current moments of all members; waits.
  std::vector<Moment> moment();
  /// The smallest dt of all steps and members so far.
  double smallest_dt() const;
  /// Current Courant number of each member: (max|u| / dx + max|v| / dy) dt.
  std::vector<double> courant() const;
  std::vector<BlowUp> blown_up() const;
  /// Queues one evaluation of the right-hand side.
  void evaluate();
  /// Time derivative of the current state without stochastic forcing: spectra (members, rows, columns, 2).
  Array right_hand_side();
  /// The state in the order of Modes (src/flow/modes.hpp): (members, rows, columns, 2).
  Array spectrum() const;

  /// The complete state as named arrays, and its restoration in a solver with the same settings. Both solvers then
  /// continue with the same bits.
  std::vector<std::pair<std::string, Array>> state() const;
  void set_state(const std::vector<std::pair<std::string, Array>>& state);

  std::vector<Kernel> kernels() const;
  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::flow
