// map: a function of elements, written by the caller.
#include <fmt/format.h>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"

namespace lockstep::primitives {

void map(const Device& device, const ElementFunction& f, std::span<const Buffer> from, const Buffer& to,
         const Stream& stream) {
  const auto where = "primitives::map";
  const auto operand = [](size_t k) { return fmt::format("x{}", k); };
  expect_flat(to, where);
  for (const Buffer& x : from) expect_flat(x, x.storage(), to.elements(), where);
  const Kernel k = kernel("primitives.map", [&](At<2> at, Parameters& parameters) {
    std::vector<AnyVal> values;
    for (size_t n = 0; n < from.size(); ++n)
      values.push_back(parameters.read(operand(n), from[n].storage(), 2).load({at.y, at.x}));
    const AnyGrid result = parameters.write("r", to.storage(), 2);
    const AnyVal value = f(values);
    if (value.type() != result.type())
      throw InputError(fmt::format("a function that gives {}", name(value.type())), where,
                       fmt::format("{}, for elements of {}", name(result.type()), name(to.storage())));
    result.store({at.y, at.x}, value);
  });
  for_each_view(to.elements(), [&](int64_t first, const Shape& shape) {
    Arguments arguments;
    arguments.set("r", view(to, first, shape));
    for (size_t n = 0; n < from.size(); ++n) arguments.set(operand(n), view(from[n], first, shape));
    device.launch_on(stream, k, shape, arguments);
  });
}

}  // namespace lockstep::primitives
