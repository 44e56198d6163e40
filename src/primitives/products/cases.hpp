// Cases of products of matrices.
#pragma once

#include <optional>

#include "lockstep/verify.hpp"
#include "primitives/kernels.hpp"

namespace lockstep {

/// Products of 16-bit numbers, and those by cuBLAS.
void add_product_cases(CaseRegistry& registry);

namespace primitives {
/// Of f32 and f64, by that form on every device, else by the device's own. Sizes: m x k x n, and with a count before them.
template <class T>
Case matmul_case(std::optional<Product> form);
Case tensor_case(Product form);
}  // namespace primitives

}  // namespace lockstep
