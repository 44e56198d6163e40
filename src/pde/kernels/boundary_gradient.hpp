// Derivatives by what is given besides the fields.
#pragma once

#include "pde/language/checked.hpp"

namespace lockstep::pde {

/// One grid of a batch, with its share of the mean.
Inputs member_of(const Inputs& inputs, int64_t member);
/// Numbers of a buffer of f32 or f64.
std::vector<double> numbers_of(const Device& device, const Buffer& buffer);
/// Cotangents of the residuals of one grid, 2 w seed / N m R.
Buffer loss_cotangents(Loss::State& state, const Device& device, const Checked& checked, double seed);
/// A difference along an axis (a term of a target of the plan) whose rows at one end contain the side's value.
struct SidePart {
  int axis, end;
  size_t target, term;
  bool operator==(const SidePart&) const = default;
};
std::vector<SidePart> side_parts(const Discretisation& d);
/// Shares of each part in the cells of its side, slowest axis first, for cotangents of the residuals of one grid.
std::vector<std::vector<double>> side_cells(Loss::State& state, const Device& device, const Checked& checked,
                                            const Buffer& cotangents, const Arguments& tangents = {});
/// The derivatives from them.
std::vector<Loss::BoundaryGradient> sum_sides(const Discretisation& d,
                                              std::vector<std::vector<double>> cells);
/// Derivatives by the sides' values for cotangents of the residuals of one grid. `tangents`: arguments of a plan of second
/// order.
std::vector<Loss::BoundaryGradient> side_gradients(Loss::State& state, const Device& device,
                                                   const Checked& checked, const Buffer& cotangents,
                                                   const Arguments& tangents = {});
/// Sums of the derivatives by parameters of residuals over rows of cells, which are planes where there are several: (terms of
/// Plan::by_parameter, rows).
std::vector<double> parameter_rows(Loss::State& state, const Device& device, const Checked& checked,
                                   const Buffer& cotangents, const Arguments& tangents = {});
/// Derivatives by parameters and profiles from those of all rows and sides.
Loss::Numbers sum_numbers(const Plan& plan, const std::vector<double>& rows,
                          const std::vector<Loss::BoundaryGradient>& sides,
                          const std::vector<int64_t>& profile_sizes);
/// By parameters and profiles.
Loss::Numbers number_gradients(Loss::State& state, const Device& device, const Checked& checked,
                               const Buffer& cotangents, const Arguments& tangents = {});
/// Arguments of kernels along tangents of fields, parameters and profiles; what is not given is 0.
Arguments tangent_arguments(const Device& device, Checked& checked, const Plan& plan,
                            const FieldBuffers& tangents, const Loss::Numbers& along);

}  // namespace lockstep::pde
