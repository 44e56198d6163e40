// In WebAssembly, which has no CUDA.
#include "lockstep/error.hpp"
#include "primitives/products/tensor/tensor.hpp"

namespace lockstep::primitives {

namespace {
constexpr auto kRefusal = "a page has no tensor cores";
}

std::string no_tensor_cores(const Device&, Storage) { return kRefusal; }
Kernel tensor_kernel(int, bool) { throw UnsupportedError("a native kernel", "primitives::matmul", kRefusal); }

}  // namespace lockstep::primitives
