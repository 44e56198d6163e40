// The kernels of a batch, traced from its program: one lane an instance.
#pragma once

#include <memory>

#include "lockstep/kernel/kernel.hpp"
#include "solve/model/program.hpp"

namespace lockstep::solve {

/// Element types of a kernel.
struct Form {
  Type compute = Type::f64;
  Storage state = Storage::f64;  // blocks and data
  Storage real = Storage::f64;   // Jacobians, tangent vectors
  Storage cost = Storage::f64;   // costs of instances
};
/// "f32" where all types are the same, else compute, state, real and cost.
std::string form_name(const Form& form);
constexpr Storage storage_of(Type type) { return type == Type::f64 ? Storage::f64 : Storage::f32; }

/// What an instance's kernel writes; arguments stand in this order.
enum Output : unsigned {
  kCost = 1,       // (n), of storage cost
  kGradient = 2,   // (slot_rows, n), of the compute type
  kResiduals = 4,  // (rows, n), of the compute type
  kJacobian = 8,   // (stored, n), real
  kDiagonal = 16,  // (diagonal_rows, n), real
};

/// Points kernel over instances. Arguments: state (1-D), blocks (slots, n): the first number of each slot's
/// block; data (columns, n) where the program has any; outputs; uniform constants.
Kernel instance_kernel(std::shared_ptr<const Program> program, const Form& form, unsigned outputs);
/// Points kernel over (columns, instances) of a program with hessian_product(): lane (c, i) computes column c
/// of instance i's Hessian and stores its upper part. Arguments: state, blocks and data as above; Hessian
/// (stored, n), real; uniform constants.
Kernel hessian_kernel(std::shared_ptr<const Program> program, const Form& form);
/// Slots that a product reads and writes (Program::product).
struct SlotMask {
  uint64_t inputs = Program::kAllSlots, outputs = Program::kAllSlots;
};
/// Points kernel over instances: J^T J p, or H p, by slot. Arguments: p (1-D), blocks (slots, n): the first
/// tangent coordinate of each slot's block; stored Jacobian (stored, n) where there is any; slots (slot_rows,
/// n). All real.
Kernel product_kernel(std::shared_ptr<const Program> program, Storage real, const SlotMask& mask);
/// Points kernel over the blocks of a set: candidate = state [+] step. Arguments: state (blocks, ambient),
/// step (blocks, tangent), free (blocks; u32, 0 where fixed), candidate (blocks, ambient).
/// Of wide Euclidean blocks (retracts_by_number()) it is a points kernel over (blocks, numbers).
Kernel retract_kernel(std::shared_ptr<const TracedManifold> manifold, Storage state, Storage real);

bool retracts_by_number(const TracedManifold& manifold);

/// A kernel by its key, traced once in the process.
Kernel cached_kernel(const std::string& key, const std::function<Kernel()>& make);

}  // namespace lockstep::solve
