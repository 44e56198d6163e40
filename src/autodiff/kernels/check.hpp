// Derivatives of one kernel, made once for all devices on which they are compared.
#pragma once

#include "autodiff/kernels/roles.hpp"

namespace lockstep::gradients {

class Comparison {
 public:
  Comparison(const Kernel& kernel, const Differentiation& which);
  /// As check_gradient(). There is no difference of kernels with 16-bit floats: it is NaN.
  KernelGradientCheck modes(const Device& device, const Shape& extent, const Arguments& arguments,
                            uint64_t seed, double step) const;
  /// The gradients alone.
  std::vector<Array> gradients(const Device& device, const Shape& extent, const Arguments& arguments,
                               uint64_t seed) const;
  /// Instructions of the largest kernel that reverse mode launches.
  size_t instructions() const;

  struct Parts {
    Kernel kernel, tangent;
    Gradient gradient;
    ir::Function f;
    Roles roles;
    std::string ending;
  };

 private:
  Parts parts_;
};

}  // namespace lockstep::gradients
