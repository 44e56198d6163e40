#include "pde/kernels/value.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

Kernel value_kernel(const Plan& plan, Type sum, Storage storage) {
  const int residuals = int(plan.residuals.size());
  std::string shape;
  for (int term : plan.term_of) shape += fmt::format(".{}", term);
  const auto body = [&](At<1>, Parameters& p) {
    const AnyGrid totals = p.read("totals", sum == Type::f64 ? Storage::f64 : Storage::f32, 1),
                  value = p.write("value", storage, 1);
    std::vector<AnyVal> scale;
    for (int k = 0; k < residuals; ++k) scale.push_back(p.scalar(fmt::format("scale{}", k), sum));
    std::vector<AnyVar> terms;
    terms.reserve(plan.terms.size());
    for (size_t t = 0; t < plan.terms.size(); ++t) terms.emplace_back(AnyVal::number(sum, 0));
    for_(Index(0), Index(totals.size(0)), residuals, [&](const Index& first) {
      for (int k = 0; k < residuals; ++k)
        terms[size_t(plan.term_of[size_t(k)])] += rounded_product(totals.load({first + k}), scale[size_t(k)]);
    });
    AnyVal all = AnyVal::number(sum, 0);
    for (const AnyVar& term : terms) all = all + term;
    value.store({0}, all);
  };
  return kernel(fmt::format("pde.value.{}.{}{}", lockstep::name(sum), lockstep::name(storage), shape), body);
}

void BoundLoss::loss_into(const Buffer& value) const {
  const State& s = *state_;
  expect_whole(s);
  if (!value || value.elements() != 1 || (value.storage() != Storage::f32 && value.storage() != Storage::f64))
    throw InputError(
        value ? fmt::format("a buffer of {} {}", lockstep::name(value.storage()), to_string(value.shape()))
              : "no buffer",
        "BoundLoss::loss_into", "f32 or f64 of shape (1)");
  const Plan& plan = *s.d->plan;
  const Type sum = s.totals.storage() == Storage::f64 ? Type::f64 : Type::f32;
  const Kernel kernel = s.loss->kernels.get(fmt::format("value {} {}", int(sum), int(value.storage())),
                                            [&] { return value_kernel(plan, sum, value.storage()); });
  for (const Launch& l : s.totals_launches) s.device.launch_with(l.kernel, l.extent, l.arguments, {});
  // In the order of the kernel's parameters.
  std::vector<Argument> arguments{s.totals.reshape({s.totals.elements()}), value.reshape({1})};
  for (size_t k = 0; k < plan.residuals.size(); ++k) arguments.emplace_back(s.total_scale[k]);
  s.device.launch_with(kernel, {1}, arguments, {});
}

}  // namespace lockstep::pde
