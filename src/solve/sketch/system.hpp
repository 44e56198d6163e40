// The equations of a sketch on the host: residuals and Jacobian in units of its size.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "solve/sketch/constraints.hpp"
#include "solve/sketch/sketch.hpp"

namespace lockstep::solve::sketch {

/// Coordinates of a sketch in units of `size`: points (n, 2), then radii. Sketches are small: everything here
/// is dense.
struct Coordinates {
  std::vector<double> points, radii;
};
Coordinates coordinates_of(const Sketch& sketch, double size);
void place(Sketch& sketch, const Coordinates& coordinates, double size);

class ConstraintSystem {
 public:
  explicit ConstraintSystem(const Sketch& sketch);

  double size() const { return size_; }
  const std::vector<ConstraintInstance>& instances() const { return instances_; }
  int64_t rows() const { return int64_t(row_constraint_.size()); }
  /// Numbers that may move: coordinates of points that are not pinned, and radii.
  int64_t columns() const { return columns_; }
  /// The constraint that each row belongs to.
  const std::vector<int32_t>& row_constraint() const { return row_constraint_; }
  /// First column of a point, or column of a radius; -1 where pinned.
  int64_t point_column(int32_t point) const { return point_column_[size_t(point)]; }
  int64_t radius_column(int32_t circle) const { return radius_column_[size_t(circle)]; }

  std::vector<double> residuals(const Coordinates& at) const;
  /// (rows, columns)
  std::vector<double> jacobian(const Coordinates& at) const;

 private:
  struct Traced {
    std::unique_ptr<autodiff::Tape> graph;
    std::vector<Value> residuals;
    std::vector<Value> gradients;  // (residuals, leaves of the slots)
  };
  std::vector<double> leaves(const ConstraintInstance& instance, const Coordinates& at) const;
  const Traced& traced(const ConstraintInstance& instance) const;

  double size_ = 1;
  std::vector<ConstraintInstance> instances_;
  std::map<std::pair<ConstraintKind, bool>, Traced> traced_;
  std::vector<int32_t> row_constraint_;
  std::vector<int64_t> point_column_, radius_column_;
  int64_t columns_ = 0;
};

}  // namespace lockstep::solve::sketch
