// Long sums of products: chunks side by side, then one sum of them in order.
#include "flow/surrogate/kernels.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

void add_products(const Device& device, const ChunkedFactors& whole, const ChunkedFactors& rest,
                  const Buffer& sum) {
  const Storage storage = whole.left.storage();
  const int64_t count = whole.left.shape()[0], m = whole.left.shape()[1], n = whole.right.shape()[2];
  const Buffer parts = device.allocate(storage, {count + (rest.left ? 1 : 0), m * n}),
               ones = device.allocate(storage, {1, parts.shape()[0]});
  primitives::matmul(device, whole.left, whole.right, parts.rows(0, count).reshape({count, m, n}));
  if (rest.left) primitives::matmul(device, rest.left, rest.right, parts.rows(count, 1).reshape({m, n}));
  primitives::fill(device, ones, 1);
  primitives::matmul(device, ones, parts, sum.reshape({1, m * n}));
}

}  // namespace lockstep::flow
