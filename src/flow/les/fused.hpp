// A right-hand side in two kernels, for grids whose sides are powers of two: transforms along x with the products
// between them, and transforms along y with the stage's update between them. Point values never reach memory.
//
// In between lie arrays (member, kx, y): of the stream function psi, psi_y and, with a closure, psi_yy, out of which
// the rows make
//   u + i v   at kx:  psi_y + kx psi,              S11 + i S12 at kx:  i (kx psi_y + (psi_yy + kx^2 psi) / 2)
// (at -kx the conjugate of what -kx in place of kx gives), and of Z(kx) and conj Z(-kx) for the transform Z of P + i Q:
//   P^ = (Z(kx) + conj Z(-kx)) / 2,   Q^ = (Z(kx) - conj Z(-kx)) / 2i.
#pragma once

#include <string_view>
#include <vector>

#include "device/variants/variants.hpp"
#include "flow/les/kernels.hpp"

namespace lockstep::flow {

/// How the lanes of a group share the transforms of lines. Changes no bit.
struct LineSpread {
  int length = 0;
  int lines = 1;  // of a group, side by side
  int lanes = 1;  // of a line
  std::vector<int> radices;
  int buffers = 1, planes = 2, sets = 1;  // of the exchanges (block_fft.hpp)
};
struct FusedShape {
  Modes modes;
  LineSpread rows, columns;
  bool early = false;   // states are loaded before the transforms, which hide the wait
  bool turned = false;  // lines of the columns' lanes run along ky in memory too (KernelForm::turned)
  bool paired = false;  // psi and psi_y lie side by side: one access for both
  int pad = 0;          // numbers between columns in memory, so that neighbours fall into several cache sets
  /// Groups of rows: each gives its largest speeds.
  int64_t row_groups() const { return rows.length ? columns.length / rows.lines : 0; }
  int64_t column_groups() const { return (modes.columns() + columns.lines - 1) / columns.lines; }
};
/// True if the model uses the fused kernels, which affects rounding: the same for all devices up to 4096 points along a side. 8192 in f32
/// need groups of 512 lanes, which only WebGPU lacks; in f64 whole transforms are faster.
bool is_fused(const Modes& modes, const KernelForm& form, Storage storage, const Limits& limits);
const variants::Computation& step_computation();
/// By a variant of `flow.step`; empty: the fastest.
FusedShape fused_shape(const Modes& modes, Storage storage, const DeviceInfo& device,
                       std::string_view variant);
/// Whether states of such a model lie turned on a device (KernelForm::turned).
bool is_turned(const Modes& modes, const KernelForm& form, Storage storage, const DeviceInfo& device,
               std::string_view variant);
/// Arrays (member, kx, y) that the columns write: 2 or 3.
int fused_fields(const KernelForm& form);

/// Columns: domain (members, 1, column groups); rows: (members, 1, row groups).
template <class T>
struct FusedKernels {
  /// fields = of the state w.
  static Kernel derive(const KernelForm& form, const FusedShape& shape);
  /// products = of fields; `measuring`: speeds too.
  static Kernel rows(const KernelForm& form, const FusedShape& shape, bool measuring);
  /// The stage's update out of products, and the fields of the next state.
  static Kernel advance(const KernelForm& form, StageKind kind, const FusedShape& shape);
  /// The right-hand side alone, in `out`.
  static Kernel right_hand_side(const KernelForm& form, const FusedShape& shape);
};

}  // namespace lockstep::flow
