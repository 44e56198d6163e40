// Difference operators along one axis as banded matrices: the interior taps and the rows and columns that a
// boundary changes. Forward rows and rows of the transpose come from the same matrix, so the adjoint is exact
// by construction.
#pragma once

#include <array>
#include <vector>

#include "lockstep/pde.hpp"

namespace lockstep::pde {

enum class Stencil : uint8_t { point, first, second, forward, backward };

struct Tap {
  int offset;
  double weight;
};

/// A row that differs from the interior one: sum of weight * f[own + offset], plus a constant and the values that
/// parameters give to the low and the high side times their factors.
struct Row {
  bool high = false;  // counted from the high end
  int at = 0;         // cells from that end
  std::vector<Tap> taps;
  double constant = 0;
  std::array<double, 2> of_side{};
  bool affine() const { return constant != 0 || of_side[0] != 0 || of_side[1] != 0; }
};

/// One operator S along an axis, in units of `scale` (a power of 1/h and a factor that makes the first tap
/// pair 1).
struct AxisOperator {
  std::vector<Tap> taps;    // interior row, ascending offsets
  std::vector<Tap> taps_t;  // interior row of the transpose
  bool periodic = false;    // indices wrap; no special rows
  std::vector<Row> rows, rows_t;
  int reach = 0;  // largest |offset| of any row of S or its transpose
};

/// Weight that `scale` stands for: S_true = scale * S.
double operator_scale(Stencil kind, int order, double h);

/// The rule of a component of a field: free_slip and no_slip become even or odd mirrors.
Side resolve_side(const Side& side, int axis, int component, bool vector);

/// Throws InputError where `cells` are too few for the stencil or the rules. `wrap`: a periodic axis is
/// indexed modulo its length; otherwise (very short axes) its rows are listed.
AxisOperator make_operator(Stencil kind, int order, const Side& low, const Side& high, int64_t cells,
                           const char* axis_name, bool wrap);

/// Row `i` of S with all indices inside [0, n), as a dense row; `constant` receives the affine part, `of_side` the
/// factors of sides whose value a parameter gives. For tests and small n.
std::vector<double> dense_row(Stencil kind, int order, const Side& low, const Side& high, int64_t cells,
                              int64_t i, double* constant, std::array<double, 2>* of_side = nullptr);

}  // namespace lockstep::pde
