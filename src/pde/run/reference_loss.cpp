#include <fmt/format.h>

#include "pde/reference.hpp"
#include "pde/run/run_parts.hpp"
#include "pde/run/side_values.hpp"

namespace lockstep::pde {
namespace {

template <class T>
RunResult evaluate_reference(const TakenFields& taken, const RunOptions& options) {
  const auto& [arrays, mask] = taken;
  reference::State<T> s;
  const Array &sigma1 = arrays.at("sigma1"), &u1 = arrays.at("u1");
  const auto n = std::ptrdiff_t(sigma1.elements());
  for (size_t l = 0; l < 3; ++l) {
    const Array sigma = arrays.at(fmt::format("sigma{}", l)).packed(),
                u = arrays.at(fmt::format("u{}", l)).packed();
    s.sigma[l].assign(sigma.as<T>().begin(), sigma.as<T>().end());
    for (std::ptrdiff_t c = 0; c < 3; ++c)
      s.u[l][size_t(c)].assign(u.as<T>().begin() + c * n, u.as<T>().begin() + (c + 1) * n);
  }
  std::vector<T> weights;
  if (!mask.empty()) weights.assign(mask.as<T>().begin(), mask.as<T>().end());
  RunResult result;
  result.mesh = mesh_of(options, {sigma1.shape()[2], sigma1.shape()[1], sigma1.shape()[0]});
  const Loss check(transport(3),
                   result.mesh);  // what the kernels would check: sizes against stencils and rules
  const auto r =
      reference::evaluate<T>(result.mesh, s, weights, options.terms.weight_sigma, options.terms.weight_u);
  result.kernel = "reference";
  result.terms = {{"sigma", double(r.loss_sigma)}, {"u", double(r.loss_u)}};
  for (size_t l = 0; l < 3; ++l) {
    if (!wanted_level(options.gradients, int(l) - 1)) continue;
    result.gradients.push_back({fmt::format("d_sigma{}", l), Array::of(r.gradient.sigma[l], sigma1.shape())});
    std::vector<T> u;
    for (const auto& c : r.gradient.u[l]) u.insert(u.end(), c.begin(), c.end());
    result.gradients.push_back({fmt::format("d_u{}", l), Array::of(std::move(u), u1.shape())});
  }
  return result;
}

bool has_only_the_core_terms(const TransportOptions& t) {
  return t.sigma_transport && t.sigma_divergence && t.momentum && !t.upwind && t.viscosity == 0 &&
         !t.pressure && !t.forcing && t.weight_divergence == 0 && t.weight_speed == 0;
}

}  // namespace

RunResult run_reference(Context& context, const TakenFields& taken, const RunOptions& options) {
  if (options.residuals) throw InputError("residual fields of the reference", options.where, "a kernel");
  if (!options.boundaries.empty())
    throw InputError("boundaries of single fields with the reference", options.where, "one for all");
  if (!side_names(options).empty())
    throw InputError(fmt::format("boundary {} with the reference", options.boundary.text()), options.where,
                     "numbers instead of names");
  if (!has_only_the_core_terms(options.terms))
    throw InputError("these terms with the reference", options.where,
                     "transport, compression and momentum only");
  RunResult result;
  context.run_stage_on_cpu("pde.reference", [&](const Device&) {
    result = taken.arrays.at("sigma1").storage() == Storage::f64 ? evaluate_reference<double>(taken, options)
                                                                 : evaluate_reference<float>(taken, options);
  });
  sum_terms(result, options);
  return result;
}

}  // namespace lockstep::pde
