// Kernels of the solver. Spectra are (fields * members, rows, columns, 2), field after field; fields at points
// (fields * members, points_y, points_x). The domain of mode kernels is (members, rows, columns), that of
// point kernels (members, points_y, points_x).
#pragma once

#include "flow/les/terms.hpp"
#include "lockstep/device.hpp"

namespace lockstep::flow {

/// Which kernel advances the state after the products of a stage are back in the spectrum.
struct StageKind {
  Integrator integrator = Integrator::rk4;
  int stage = 0;
  int stages() const;
  bool last() const { return stage + 1 == stages(); }
};
int stages_of(Integrator integrator);

/// Columns of the table `clock` of a member, in the type of the computation: dt, time as a sum of two numbers,
/// max|u| / dx + max|v| / dy as seen last, the time at which an adaptive run ends, the smallest
/// dt so far.
inline constexpr int kClockDt = 0, kClockTime = 1, kClockTimeLow = 2, kClockRate = 3, kClockEnd = 4,
                     kClockLeast = 5, kClockColumns = 6;
/// Columns of `status`, i32: steps done; step at which the flow was found blown up, or -1.
inline constexpr int kStatusSteps = 0, kStatusBlownUp = 1, kStatusColumns = 2;

/// Everything that shapes a kernel beyond its numbers.
struct KernelForm {
  Terms terms;
  bool kolmogorov = false, stochastic = false, filter = false;
  bool adaptive = false;  // a step of dt = 0 leaves the state as it is
  bool beta = false, hyper = false, hypo = false;
  int hyper_power = 1, hypo_power = 1;
  bool slab = false;    // fused kernels over some of the groups, from first_group on
  bool turned = false;  // states and right-hand sides lie as (member, kx, ky), else as (member, ky, kx)
};
/// The form as part of a kernel's name.
std::string text(const KernelForm& form);

template <class T>
struct LesKernels {
  /// fields = quantities of the state w; the start of a run.
  static Kernel derive(const KernelForm& form);
  /// Right-hand side out of the products, the stage's update, and the fields of the next state.
  static Kernel advance(const KernelForm& form, StageKind kind);
  /// The right-hand side alone, in `out`.
  static Kernel right_hand_side(const KernelForm& form);
  /// Products at points. `coefficient`: C^p of each member; `eddy`: the viscosity of local dynamic closures.
  static Kernel products(const KernelForm& form);
  /// w = mean-free spectrum, scaled by `scale`.
  static Kernel take_field(bool turned);
  /// to = from with the axes of modes exchanged.
  static Kernel turn();
};

/// Dynamic closures (Germano's identity).
template <class T>
struct DynamicKernels {
  static Kernel products(const Terms& terms);  // u w, v w, rate w_x, rate w_y
  static Kernel filtered(const Terms& terms);  // those and the fields, by the test filter, as spectra
  static Kernel contract(const Terms& terms);  // L M and M M at points
  /// Eddy viscosity at points, from local means of L M and M M by positive weights; C^p at most kLargestLocal.
  static Kernel local_viscosity(const Terms& terms);
  static Kernel partial_sums();  // of L M and M M: (members, chunks, 2)
  static Kernel coefficient();   // C^p of each member
};

/// Time step, time, stability.
template <class T>
struct ClockKernels {
  /// Largest |u| and |v| of chunks, with `eddy` the largest eddy viscosity too: (members, chunks, 2 or 3).
  static Kernel speeds(bool eddy);
  /// By the speeds: rate, with `adaptive` the dt of the step, and the flag of a blow-up.
  static Kernel look(bool adaptive, bool eddy);
  static Kernel tick();  // time += dt, steps += 1
  static Kernel keep();  // good = w where the member is valid
};

/// Sums over rings of modes.
template <class T>
struct RingKernels {
  static Kernel sums();  // (members, rings, kRingColumns): Z, E, P, transfers of Z and E
};
inline constexpr int kRingColumns = 5;

/// Elements that one lane group of a chunked sum takes, and how many chunks there are.
inline constexpr int64_t kChunk = 4096;
inline int64_t chunks_of(int64_t points) { return (points + kChunk - 1) / kChunk; }

}  // namespace lockstep::flow
