// The fused path: residual, loss and adjoint in one sweep along z.
#pragma once

#include "device/variants/variants.hpp"
#include "pde/divided/part.hpp"
#include "pde/fused/fused_layout.hpp"
#include "pde/kernels/bound.hpp"

namespace lockstep::pde {

/// Why the fused kernel cannot do a problem, or an empty text.
std::string fused_refusal(const Discretisation& d, const Device& device, const KernelForm& form);
/// The path for options.path; UnsupportedError where fused was requested and cannot be.
const variants::Computation& loss_computation();
Path choose_path(const Discretisation& d, const Device& device, const KernelForm& form,
                 const std::vector<FieldLevel>& outputs, int64_t members, const LossOptions& options);
/// Bytes that a path allocates for a loss beyond its inputs and gradients.
int64_t path_scratch(Path path, const Discretisation& d, const Device& device, const KernelForm& form,
                     const std::vector<FieldLevel>& outputs, int64_t members, const LossOptions& options);
/// Sums are f64 where a device has it.
Storage sum_storage(const Device& device);
/// Groups of a sweep over `members` grids, each with a partial sum for each residual.
Shape fused_extent(const Discretisation& d, const FusedShape& shape, int64_t members,
                   const GridPart* part = nullptr);
/// Tiles of the fused kernel; groups sum the loss in orders of their own.
const variants::Computation& tile_computation();
FusedShape choose_shape(const Discretisation& d, const Device& device, const KernelForm& form,
                        const std::vector<FieldLevel>& outputs, int64_t members, const LossOptions& options);

Kernel fused_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                    std::vector<FieldLevel> outputs, FusedShape shape, Type sum);

using KernelStore = std::function<Kernel(const std::string& key, const std::function<Kernel()>& make)>;
/// The sweep, and the sum of its groups' partial losses.
struct FusedLaunches {
  Launch sweep, total;
  Buffer partial;
};
/// `arguments`: fields, mask, gradients, what is carried and the numbers, by name; `totals` takes one sum for
/// each residual. With a part its planes alone are swept.
FusedLaunches fused_launches(std::shared_ptr<const Discretisation> d, const Device& device,
                             const KernelForm& form, const std::vector<FieldLevel>& outputs,
                             const FusedShape& shape, Type sum, Arguments arguments, const Buffer& totals,
                             int64_t members, const GridPart* part, const KernelStore& store);

}  // namespace lockstep::pde
