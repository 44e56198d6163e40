// Manifolds, residuals and losses as Python gives them, for problems and smoothers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bind.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::python {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
std::span<const T> span_of(const Matrix<T>& m) {
  return {m.data(), m.shape(0) * m.shape(1)};
}

solve::Manifold manifold_of(const std::string& name, int size);
std::function<std::vector<autodiff::Value>(const solve::TermArguments&)> residual_of(nb::object function,
                                                                                     std::vector<int> slots);
solve::RobustLoss loss_of(const nb::object& loss);
std::function<void(const solve::HostInstance&, std::span<double>)> host_function(nb::object function);
void bind_smoother(nb::module_& module);
void bind_content(nb::module_& module);

}  // namespace lockstep::python
