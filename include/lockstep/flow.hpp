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
  two_thirds,  // modes below a third of the points along each axis are kept
  padded,      // products on 3/2 as many points along each axis
  filter,      // exp(-23.6 (k d - 0.65 pi)^4) beyond k d = 0.65 pi, after each step
  none,
};
enum class Closure : uint8_t {
  none,
  smagorinsky,          // nu_t = (C d)^2 |S|, |S| = 2 sqrt(S11^2 + S12^2)
  leith,                // nu_t = (C d)^3 |grad w|
  dynamic_smagorinsky,  // C^2 by Germano's identity, in each evaluation
  dynamic_leith,        // C^3 likewise
};
enum class ClosureForm : uint8_t {
  divergence,  // curl div (2 nu_t S)
  simple,      // nu_t lap w
};
/// Averaging of the coefficient of a dynamic closure; negative coefficients become 0.
enum class Averaging : uint8_t { global, local };
enum class Advection : uint8_t {
  stress,  // by P = u v and Q = u^2 - v^2: two inverse and two forward transforms
  flux,    // by u w and v w: three and two
};
enum class ForcingKind : uint8_t {
  none,
  kolmogorov,  // the force A sin(k y) along x, k = K 2 pi / Ly
  stochastic,  // white in time on the ring |k| = K +- 1/2, in units of 2 pi / max(Lx, Ly); energy input EPS
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
  double constant = 0;  // C; 0: 0.17 (Smagorinsky), 0.3 (Leith)
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
  /// Above 0: each step uses dt = cfl / (max|u| / dx + max|v| / dy) of its start, at most `dt`. Not for ab3 and
  /// etdrk4, whose coefficients depend on dt.
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
/// Storage types: f32 and f64.
std::vector<Choice<Storage>> precisions();

/// Largest stable cfl (advection) of an integrator with these modes, and the largest stable dt of the linear terms
/// (infinity for etdrk4).
double cfl_limit(const Model& model, Integrator integrator);
double linear_dt_limit(const Model& model, Integrator integrator);
/// Largest product of dt and an eddy viscosity, m2, that leaves half of the integrator's stability limit on the
/// negative real axis to the other terms. Used by adaptive steps of local dynamic closures.
double eddy_limit(const Model& model, Integrator integrator);
/// Throws InputError for fewer than 4 points along an axis, lengths and dt not above 0, negative or non-finite
/// coefficients, a linear term that is unstable for `dt`, cfl above the limit, and cfl with ab3 or etdrk4.
void check(const Model& model, const Stepping& stepping);

/// Vorticity (ny, nx), f64, zero mean. Random fields depend on the seed and on wavenumbers only: the same flow on
/// every grid that resolves it.
Array initial_field(const BoxGrid& grid, Initial which, uint64_t seed = 0);

/// Domain means: E = <|u|^2> / 2, Z = <w^2> / 2, P = <|grad w|^2> / 2.
struct Budget {
  double energy = 0, enstrophy = 0, palinstrophy = 0;
};

/// Rates of change of energy or enstrophy by cause.
struct Rates {
  double viscous = 0, drag = 0;
  double other = 0;    // hyper- and hypoviscosity
  double forcing = 0;  // of the steady force; random forcing adds an energy of forcing.amount on average
  double closure = 0;  // of products: the closure, and aliasing if it is not removed
  double all = 0;      // sum of the above
};
/// State of a member at one time of a run.
struct Moment {
  double time = 0, max_u = 0, max_v = 0, courant = 0;
  Budget budget;
  Rates energy, enstrophy;
};

/// Sums over rings |k| = (j +- 1/2) 2 pi / max(Lx, Ly); fluxes by advection through |k| = j + 1/2, positive towards
/// small scales.
struct Spectra {
  std::vector<double> energy, enstrophy, energy_flux, enstrophy_flux;
};

/// A member that blew up: its speed is not finite, or exceeds twice cfl_limit.
struct BlowUp {
  int64_t member = 0;
  int64_t step = 0;  // step at which it was found, at most ten steps late
};

/// Flows of one model on a device, advanced together. A member has the same bits as if it were simulated alone. The
/// state stays on the device. Members differ by their initial fields and, with stochastic forcing, by seed + member.
class Solver {
 public:
  /// A fluid at rest. `precision`: f32 or f64. Throws InputError as check() does, and UnsupportedError for f64 on a
  /// device without it.
  Solver(const Device& device, const Model& model, const Stepping& stepping, Storage precision = Storage::f64,
         int64_t members = 1);
  /// A flow divided over ranks, which all hold the whole state: each computes some columns of modes and some rows of
  /// points, bit-identical to one rank. Collective, as are advance(), courant(), moment(), evaluate() and
  /// right_hand_side(). Throws GroupError, on every rank, for grids and closures without fused kernels
  /// (docs/cluster.md).
  Solver(const Device& device, const Model& model, const Stepping& stepping, Storage precision,
         int64_t members, const parallel::Group& group);

  /// (ny, nx) for all members, or (members, ny, nx); the mean and truncated modes are dropped. The time is reset to
  /// 0. Throws InputError for other shapes and values that are not finite.
  void set_vorticity(const Array& w);
  /// Queues `steps` steps on the device and returns before they are complete.
  void advance(int64_t steps);
  /// With cfl: the time at which members stop; later steps change nothing and are not counted.
  void set_end(double time);

  /// (members, ny, nx) in the precision of the solver; these functions wait.
  Array vorticity() const;
  /// The same into `out` (members, ny, nx), f32, on the solver's device, without waiting.
  void vorticity(const Buffer& out) const;
  /// The last finite state, at most ten steps before a blow-up.
  Array last_sound_vorticity() const;
  std::vector<Budget> budget() const;
  std::vector<Spectra> spectra() const;
  std::vector<double> times() const;
  std::vector<int64_t> steps() const;
  /// Computes the moments of the members every `every` steps (`since` of which are already done) on the device
  /// without waiting. They stay there until moments() reads them or there are 1024.
  void record_moments(int64_t every, int64_t since = 0);
  /// Recorded moments that have not been read: rows in time of all members. Waits.
  std::vector<std::vector<Moment>> moments();
  /// Current moments of all members; waits.
  std::vector<Moment> moment();
  /// The smallest dt of all steps and members so far.
  double smallest_dt() const;
  /// Current (max|u| / dx + max|v| / dy) dt.
  std::vector<double> courant() const;
  std::vector<BlowUp> blown_up() const;
  /// Queues one evaluation of the right-hand side.
  void evaluate();
  /// Time derivative of the current state without stochastic forcing: spectra (members, rows, columns, 2).
  Array right_hand_side();
  /// The state in the order of Modes (src/flow/modes.hpp): (members, rows, columns, 2).
  Array spectrum() const;

  /// The complete state, and its restoration into a solver with the same settings. Both solvers then continue with the
  /// same bits.
  std::vector<std::pair<std::string, Array>> state() const;
  void set_state(const std::vector<std::pair<std::string, Array>>& state);

  std::vector<Kernel> kernels() const;
  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::flow
