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
/// Derivatives by the sides' values for cotangents of the residuals of one grid. `tangents`: arguments of a plan of second
/// order.
std::vector<Loss::BoundaryGradient> side_gradients(Loss::State& state, const Device& device,
                                                   const Checked& checked, const Buffer& cotangents,
                                                   const Arguments& tangents = {});
/// By parameters and profiles.
Loss::Numbers number_gradients(Loss::State& state, const Device& device, const Checked& checked,
                               const Buffer& cotangents, const Arguments& tangents = {});
/// Arguments of kernels along tangents of fields, parameters and profiles; what is not given is 0.
Arguments tangent_arguments(const Device& device, Checked& checked, const Plan& plan,
                            const FieldBuffers& tangents, const Loss::Numbers& along);

}  // namespace lockstep::pde
