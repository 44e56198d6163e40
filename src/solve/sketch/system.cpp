#include "solve/sketch/system.hpp"

namespace lockstep::solve::sketch {

Coordinates coordinates_of(const Sketch& sketch, double size) {
  Coordinates at;
  for (const SketchPoint& p : sketch.points) at.points.insert(at.points.end(), {p.x / size, p.y / size});
  for (const SketchCircle& c : sketch.circles) at.radii.push_back(c.radius / size);
  return at;
}

void place(Sketch& sketch, const Coordinates& at, double size) {
  for (size_t p = 0; p < sketch.points.size(); ++p) {
    if (sketch.points[p].pinned) continue;  // division and multiplication need not give the same number back
    sketch.points[p].x = at.points[2 * p] * size;
    sketch.points[p].y = at.points[2 * p + 1] * size;
  }
  for (size_t c = 0; c < sketch.circles.size(); ++c) sketch.circles[c].radius = at.radii[c] * size;
}

ConstraintSystem::ConstraintSystem(const Sketch& sketch)
    : size_(sketch_size(sketch)), instances_(constraint_instances(sketch, size_)) {
  for (const SketchPoint& p : sketch.points) {
    point_column_.push_back(p.pinned ? -1 : columns_);
    if (!p.pinned) columns_ += 2;
  }
  for (size_t c = 0; c < sketch.circles.size(); ++c) radius_column_.push_back(columns_++);
  for (const ConstraintInstance& instance : instances_) {
    Traced& t = traced_[{instance.kind, instance.at_end}];
    if (!t.graph) {
      t.graph = std::make_unique<autodiff::Tape>();
      const TermType type = constraint_term(instance.kind, instance.at_end);
      std::vector<std::vector<Value>> blocks;
      std::vector<Value> inputs, data;
      for (const int slot : type.slots) {
        blocks.emplace_back();
        for (int k = 0; k < slot; ++k) blocks.back().push_back(inputs.emplace_back(t.graph->variable("x")));
      }
      for (int k = 0; k < type.data; ++k) data.push_back(t.graph->parameter("d"));
      t.residuals = type.residual(TermArguments(*t.graph, std::move(blocks), std::move(data)));
      for (const Value& residual : t.residuals)
        for (const Value& g : gradient(residual, inputs)) t.gradients.push_back(g);
    }
    row_constraint_.insert(row_constraint_.end(), t.residuals.size(), instance.constraint);
  }
}

const ConstraintSystem::Traced& ConstraintSystem::traced(const ConstraintInstance& instance) const {
  return traced_.at({instance.kind, instance.at_end});
}

std::vector<double> ConstraintSystem::leaves(const ConstraintInstance& instance,
                                             const Coordinates& at) const {
  std::vector<double> numbers;
  for (const int32_t p : instance.points)
    numbers.insert(numbers.end(), {at.points[size_t(2 * p)], at.points[size_t(2 * p) + 1]});
  for (const int32_t c : instance.circles) numbers.push_back(at.radii[size_t(c)]);
  numbers.insert(numbers.end(), instance.data.begin(), instance.data.end());
  return numbers;
}

std::vector<double> ConstraintSystem::residuals(const Coordinates& at) const {
  std::vector<double> all;
  all.reserve(size_t(rows()));
  for (const ConstraintInstance& instance : instances_) {
    const std::vector<double> r = autodiff::evaluate(traced(instance).residuals, leaves(instance, at));
    all.insert(all.end(), r.begin(), r.end());
  }
  return all;
}

std::vector<double> ConstraintSystem::jacobian(const Coordinates& at) const {
  std::vector<double> matrix(size_t(rows() * columns_), 0.0);
  size_t row = 0;
  for (const ConstraintInstance& instance : instances_) {
    const Traced& t = traced(instance);
    const std::vector<double> gradients = autodiff::evaluate(t.gradients, leaves(instance, at));
    std::vector<int64_t> column;  // of each leaf
    for (const int32_t p : instance.points) {
      const int64_t first = point_column(p);
      column.insert(column.end(), {first, first < 0 ? -1 : first + 1});
    }
    for (const int32_t c : instance.circles) column.push_back(radius_column(c));
    for (size_t r = 0; r < t.residuals.size(); ++r, ++row) {
      for (size_t k = 0; k < column.size(); ++k)
        if (column[k] >= 0)
          matrix[row * size_t(columns_) + size_t(column[k])] += gradients[r * column.size() + k];
    }
  }
  return matrix;
}

}  // namespace lockstep::solve::sketch
