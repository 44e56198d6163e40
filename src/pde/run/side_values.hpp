// Values of sides that are given with a run's arrays, and derivatives by them.
#pragma once

#include <set>

#include "pde/language/transport.hpp"
#include "pde/run/checked_arrays.hpp"

namespace lockstep::pde {

/// The names that the boundaries of a run give to values of sides.
std::set<std::string> side_names(const RunOptions& options);

/// These values. Of a trajectory numbers and profiles may be given level by level.
class SideValues {
 public:
  /// `levels` of a trajectory, or 0. Throws InputError for names without a value, arrays of other shapes, and
  /// parameters that no boundary names.
  SideValues(const CheckedArrays& arrays, const RunOptions& options, int64_t levels);

  /// The transport equations with their boundaries, parameters and profiles.
  System system(const RunOptions& options) const;
  /// −∇²u by component as residuals, with u's boundaries: the slope of the momentum's residual by the viscosity.
  System minus_laplacian(const RunOptions& options) const;
  void set(const Device& device, Inputs& inputs) const;
  void set(const Device& device, TrajectoryInputs& inputs) const;
  /// The values of one level of a trajectory.
  void set(const Device& device, Inputs& inputs, int64_t level) const;
  bool empty() const { return values_.empty(); }

  /// Adds what `parts` say of each name to its derivative.
  void add(const std::vector<Loss::BoundaryGradient>& parts, int64_t level = 0);
  /// d_NAME of the shapes that the values were given in, and single numbers by name.
  void take(RunResult& result) const;

 private:
  struct Value {
    bool profile = false, in_time = false;
    Array numbers;  // of all levels where in_time
    std::vector<double> gradient;
    Array at(int64_t level) const { return in_time ? numbers[level] : numbers; }
  };
  void declare(System& system) const;
  static double number(const Array& a) { return a.to(Storage::f64).packed().as<double>()[0]; }

  std::map<std::string, Value> values_;
};

}  // namespace lockstep::pde
