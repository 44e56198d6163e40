#include "pde/fused.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::pde {

std::string FusedShape::key() const { return fmt::format("{}x{}x{}x{}", x, y, rows, chunk); }
std::string fused_refusal(const Discretisation&, const Device&, const KernelForm&) { return "not available"; }
Path choose_path(const Discretisation& d, const Device& device, const KernelForm& form,
                 const std::vector<FieldLevel>&, const LossOptions& options) {
  if (options.path == Path::fused)
    if (const std::string why = fused_refusal(d, device, form); !why.empty())
      throw UnsupportedError(fmt::format("the fused path: {}", why), "pde options", "the two-kernel path");
  return options.path == Path::fused ? Path::fused : Path::two_kernel;
}
FusedShape choose_shape(const Discretisation&, const Device&, const KernelForm&, const LossOptions&) {
  return {};
}
std::vector<Launch> fused_launches(std::shared_ptr<const Discretisation>, const Device&, const KernelForm&,
                                   const std::vector<FieldLevel>&, const FusedShape&, Type,
                                   const FusedArguments&, const KernelStore&) {
  return {};
}

}  // namespace lockstep::pde
