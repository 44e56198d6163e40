// A system's residuals in plain C++, as the reference of a check: a neighbour beyond the grid is what its side's rule
// says, written out. Of the kernels' way it shares the graph alone; derivatives come from complex steps.
#pragma once

#include <complex>
#include <map>
#include <vector>

#include "pde/kernels/plan.hpp"

namespace lockstep::pde {

/// Data that residuals are evaluated at.
struct HostData {
  using Numbers = std::vector<std::complex<double>>;
  std::map<std::pair<int, int>, Numbers> fields;  // by field and level: (components, nz, ny, nx)
  Numbers parameters;                             // by the plan's numbers, those of the time step included
  std::vector<Numbers> profiles;                  // by the plan's numbers
};

class HostResiduals {
 public:
  HostResiduals(std::shared_ptr<const Plan> plan, const Mesh& mesh);
  /// (residuals, nz, ny, nx).
  HostData::Numbers operator()(const HostData& data) const;

 private:
  using Number = std::complex<double>;
  using Cell = std::array<int64_t, 3>;
  /// A component of a field at a level, whose boundary is known.
  struct Source {
    const HostData& data;
    const HostData::Numbers& values;
    const FieldInfo& field;
    int component;
    const BoundaryConditions& boundary;
  };
  /// The value at a cell, or beyond one side of the grid.
  Number at(const Source& s, Cell cell) const;
  Number side_value(const Source& s, const Side& side, int axis, const Cell& cell) const;
  Number leaf(const HostData& data, const Access& a, const Cell& cell) const;

  std::shared_ptr<const Plan> plan_;
  Mesh mesh_;
  std::vector<uint32_t> order_;
};

}  // namespace lockstep::pde
