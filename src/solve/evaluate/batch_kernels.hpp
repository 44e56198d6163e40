// The kernels of a batch, traced from the derivatives of its term: one lane an instance. Parameters are named
// in the comments; launches bind them by these names.
#pragma once

#include <memory>

#include "device/cached_kernel.hpp"
#include "lockstep/device.hpp"
#include "lockstep/kernel/dynamic.hpp"
#include "solve/model/term_derivatives.hpp"

namespace lockstep::solve {

/// Element types of a kernel.
struct ElementTypes {
  Type compute = Type::f64;
  Storage state = Storage::f64;  // blocks and data
  Storage real = Storage::f64;   // Jacobians, tangent vectors
  Storage cost = Storage::f64;   // costs of instances
};
/// "f32" where all types are the same, else compute, state, real and cost.
std::string name_of(const ElementTypes& types);
constexpr Storage storage_of(Type type) { return type == Type::f64 ? Storage::f64 : Storage::f32; }

/// Outputs of an instance's kernel.
enum Output : unsigned {
  kCost = 1,       // `cost` (n), of storage cost
  kGradient = 2,   // `gradient` (slot_rows, n), of the compute type
  kResiduals = 4,  // `residuals` (rows, n), of the compute type
  kJacobian = 8,   // `jacobian` (stored, n), real
  kDiagonal = 16,  // `diagonal` (diagonal_rows, n), real
  kPlain = 32,     // `plain` (rows, n), of the compute type: residuals without loss
  kSlope = 64,     // `slope` (n), of the compute type: rho'(|r|^2) times the instance's weight
};

/// Points kernel over instances: `state` (1-D); `blocks` (slots, n), the first number of each slot's block;
/// `data` (columns, n) where the term has any; the outputs; `constant0` … for uniform numbers.
Kernel instance_kernel(std::shared_ptr<const TermDerivatives> term, const ElementTypes& types,
                       unsigned outputs);
/// Points kernel over (columns, instances) of a term with hessian_product(): lane (c, i) computes column c of
/// instance i's Hessian and stores its upper part. `state`, `blocks`, `data`, `constant0` … as above; `hessian`
/// (stored, n), real.
Kernel hessian_kernel(std::shared_ptr<const TermDerivatives> term, const ElementTypes& types);
/// Slots that a product reads and writes (TermDerivatives::product).
struct SlotMask {
  uint64_t inputs = TermDerivatives::kAllSlots, outputs = TermDerivatives::kAllSlots;
};
/// Points kernel over instances: J^T J p, or H p, by slot. `p` (1-D); `blocks` (slots, n), the first tangent
/// coordinate of each slot's block; `jacobian` (stored, n) where there is any; `slots` (slot_rows, n). All
/// real.
Kernel product_kernel(std::shared_ptr<const TermDerivatives> term, Storage real, const SlotMask& mask);
/// Points kernel over the blocks of a set: candidate = state [+] step. `state` (blocks, ambient), `step`
/// (blocks, tangent), `free` (blocks; u32, 0 where fixed), `candidate` (blocks, ambient). Of wide Euclidean
/// blocks (retracts_by_number()) it is a points kernel over (blocks, numbers).
Kernel retract_kernel(std::shared_ptr<const TracedManifold> manifold, Storage state, Storage real);
bool retracts_by_number(const TracedManifold& manifold);

/// `constant0` … of a launch, rounded to the kernel's type.
void set_uniforms(Arguments& arguments, std::span<const double> uniforms, const ElementTypes& types);

}  // namespace lockstep::solve
