#include "primitives/products/tensor/tensor.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/memo.hpp"
#include "device/capabilities.hpp"
#include "lockstep/native.hpp"
#include "primitives/kernels.hpp"
#include "products_tensor_source.hpp"

namespace lockstep::primitives {

std::string no_tensor_cores(const Device& device, Storage storage) {
  if (storage != Storage::f64) return "f32, for which tensor cores round the factors";
  const DeviceInfo& info = device.info();
  if (capabilities_of(info).compute_capability == 90) return {};
  return fmt::format("{} has no tensor cores of sm_90, whose order of additions is known", info.name);
}

Kernel tensor_kernel(int tile, bool batch) {
  static Memo<std::pair<int, bool>, Kernel> kernels;
  return kernels.get({tile, batch}, [&] {
    constexpr int kDepth = 16, kStages = 3;  // as in the source
    std::string source = fmt::format("#define TILE {}\n#define BATCH {}\n#define ROWS {}\n{}", tile,
                                     int(batch), kMatmulRows, products_tensor_source::k_product);
    return native_kernel(matmul_kernel<f64>(Product::columns, batch),
                         {.cuda = {std::move(source), "tensor_product"},
                          .block = {2 * tile, 1, 1},
                          .points = {tile, tile / kMatmulRows, 1},
                          .dynamic_shared_bytes =
                              int64_t(sizeof(f64)) * kStages * (tile * (kDepth + 4) + kDepth * (tile + 4))});
  });
}

}  // namespace lockstep::primitives
