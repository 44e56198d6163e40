#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/documents.hpp"
#include "lockstep/pde/run.hpp"
#include "pde/run/run_parts.hpp"
#include "pde/run/side_values.hpp"

namespace lockstep::pde {
namespace {

/// Binds with the wanted path. Where that cannot do the problem, two kernels take it and the result says so.
template <class Bind>
BoundLoss bind_path(LossOptions& wanted, const RunOptions& options, RunResult& result, Bind bind) {
  try {
    return bind(wanted);
  } catch (const UnsupportedError& e) {
    if (!options.any_path || (wanted.path != Path::fused && wanted.path != Path::two_sweep)) throw;
    result.path_refused = e.what();
    wanted.path = Path::two_kernel;
    return bind(wanted);
  }
}

void take_terms(RunResult& result, const BoundLoss& bound) {
  const std::vector<double> values = bound.terms();
  for (size_t k = 0; k < values.size(); ++k) result.terms.push_back({bound.term_names()[k], values[k]});
  result.kernel = std::string(name(bound.path()));
}

/// The stacked residuals (K, nz, ny, nx) by the terms' names.
std::vector<std::pair<std::string, Array>> named_residuals(const Array& all, const TransportOptions& terms) {
  std::vector<std::pair<std::string, Array>> named;
  int64_t first = 0;
  const auto take = [&](const char* name, bool present, int64_t count) {
    if (!present) return;
    named.push_back({name, (count == 1 ? all[first] : all.slice(0, first, count)).copy()});
    first += count;
  };
  take("r_sigma", terms.sigma_transport, 1);
  take("r_u", terms.momentum, 3);
  take("r_divergence", terms.weight_divergence != 0, 1);
  take("r_speed", terms.weight_speed != 0, 3);
  return named;
}

/// dL/dν. The momentum's residual is linear in ν with the slope −∇²u, so that it is 2 w / N Σ m R (−∇²u).
double viscosity_slope(const Device& device, const Inputs& inputs, const Array& residuals, const Array& mask,
                       const Mesh& mesh, const RunOptions& options, const SideValues& sides) {
  const System s = sides.minus_laplacian(options);
  Inputs of_u = inputs;
  of_u.fields = {{"u", {Buffer(), inputs.fields.at("u")[1], Buffer()}}};
  const Array slope = device.download(Loss(s, mesh).residuals(device, of_u)).to(Storage::f64).packed();
  const int64_t first = options.terms.sigma_transport ? 1 : 0, n = mesh.count();
  const Array r = residuals.slice(0, first, 3).to(Storage::f64).packed();
  const Array weights = mask.empty() ? Array() : mask.to(Storage::f64).packed();
  double sum = 0;
  for (int64_t k = 0; k < 3 * n; ++k)
    sum += (weights.empty() ? 1 : weights.as<double>()[size_t(k % n)]) * r.as<double>()[size_t(k)] *
           slope.as<double>()[size_t(k)];
  return 2 * options.terms.weight_u / double(n) * sum;
}

}  // namespace

void check_fields(CheckedArrays& checked, const TransportOptions& terms) {
  for (const char* level : {"1", "0", "2"}) {
    checked.field(fmt::format("sigma{}", level), {});
    checked.field(fmt::format("u{}", level), {3});
  }
  if (terms.pressure) checked.field("p", {});
  if (terms.forcing) checked.field("force", {3});
}

Inputs upload_inputs(const Device& device, const NamedArrays& arrays, const Array& mask,
                     const TransportOptions& terms, const SideValues& sides) {
  Inputs inputs;
  for (size_t l = 0; l < 3; ++l) {
    // Fields that no term mentions need no buffer.
    if (terms.sigma_transport)
      inputs.fields["sigma"][l] = device.upload(arrays.at(fmt::format("sigma{}", l)));
    inputs.fields["u"][l] = device.upload(arrays.at(fmt::format("u{}", l)));
  }
  if (terms.pressure) inputs.fields["p"][1] = device.upload(arrays.at("p"));
  if (terms.forcing) inputs.fields["force"][1] = device.upload(arrays.at("force"));
  if (!mask.empty()) inputs.mask = device.upload(mask);
  sides.set(device, inputs);
  return inputs;
}

RunResult run_loss(Context& context, const NamedArrays& arrays, const RunOptions& options) {
  const TransportOptions& terms = options.terms;
  CheckedArrays checked(arrays, options.where);
  check_fields(checked, terms);
  const Array mask = checked.mask();
  if (options.reference) return run_reference(context, arrays, mask, options);

  const Mesh mesh = mesh_of(options, checked.cells());
  const SideValues sides(checked, options, 0);
  const Loss loss(sides.system(options), mesh);
  RunResult result = context.stage("pde.loss", [&](const Device& device) {
    RunResult r;
    const Inputs inputs = upload_inputs(device, arrays, mask, terms, sides);
    LossOptions wanted;
    wanted.gradients = options.gradients;
    wanted.path = options.path;
    const BoundLoss bound = bind_path(
        wanted, options, r, [&](const LossOptions& with) { return loss.bind(device, inputs, with); });
    bound.run();
    take_terms(r, bound);
    for (int l = 0; l < 3; ++l)
      for (const char* field : {"sigma", "u", "p", "force"}) {
        const bool leveled = field == std::string_view("sigma") || field == std::string_view("u");
        const std::string source = leveled ? fmt::format("{}{}", field, l) : field;
        if (const Buffer g = bound.gradient(field, l - 1))
          r.gradients.push_back({"d_" + source, device.download(g)});
        else if (leveled && wanted_level(options.gradients, l - 1))  // no term mentions it
          r.gradients.push_back({"d_" + source, Array(checked.storage(), arrays.at(source).shape())});
      }
    const bool by_viscosity = terms.viscosity != 0 && options.gradients != Gradients::none;
    const Array residuals =
        options.residuals || by_viscosity ? device.download(loss.residuals(device, inputs)) : Array();
    if (options.residuals) r.residuals = named_residuals(residuals, terms);
    if (options.gradients == Gradients::none) return r;
    if (!sides.empty()) {
      SideValues derived = sides;
      derived.add(loss.boundary_gradients(device, inputs));
      derived.take(r);
    }
    if (by_viscosity) {
      const double slope = viscosity_slope(device, inputs, residuals, mask, mesh, options, sides);
      r.by_number.push_back({"viscosity", slope});
    }
    return r;
  });
  result.mesh = mesh;
  sum_terms(result, options);
  return result;
}

namespace {

/// Each inner level with its neighbours is a loss of its own, with the values of its level.
void add_side_gradients(RunResult& result, const Device& device, const Loss& loss,
                        const TrajectoryInputs& all, const SideValues& sides) {
  SideValues derived = sides;
  const size_t levels = all.fields.at("u").size();
  for (size_t n = 1; n + 1 < levels; ++n) {
    Inputs one;
    for (const auto& [field, buffers] : all.fields)
      one.fields[field] = {buffers[n - 1], buffers[n], buffers[n + 1]};
    one.mask = all.mask;
    sides.set(device, one, int64_t(n));
    derived.add(loss.boundary_gradients(device, one), int64_t(n));
  }
  derived.take(result);
}

}  // namespace

RunResult run_trajectory(Context& context, const NamedArrays& arrays, const RunOptions& options) {
  const TransportOptions& terms = options.terms;
  if (options.residuals)
    throw InputError("residual fields of a trajectory", options.where, "of three levels");
  if (terms.pressure || terms.forcing)
    throw InputError("pressure or forcing in a trajectory", options.where, "terms of sigma and u");
  if (options.gradients != Gradients::all && options.gradients != Gradients::none)
    throw InputError("gradients of some levels of a trajectory", options.where, "all or none");
  if (options.reference || options.path == Path::two_sweep)
    throw InputError("this kernel for a trajectory", options.where, "auto, fused or two-kernel");
  const auto found = arrays.find("sigma");
  const int64_t levels = found == arrays.end() || found->second.shape().empty() ? 3 : found->second.size(0);
  if (levels < 3) throw InputError(fmt::format("{} levels", levels), options.where, "3 or more");
  CheckedArrays checked(arrays, options.where);
  const Array& sigma = checked.field("sigma", {levels});
  const Array& u = checked.field("u", {levels, 3});
  const Array mask = checked.mask();
  const Mesh mesh = mesh_of(options, checked.cells());
  const SideValues sides(checked, options, levels);
  const Loss loss(sides.system(options), mesh);
  RunResult result = context.stage("pde.trajectory", [&](const Device& device) {
    RunResult r;
    TrajectoryInputs inputs;
    for (int64_t n = 0; n < levels; ++n) {
      if (terms.sigma_transport) inputs.fields["sigma"].push_back(device.upload(sigma[n]));
      inputs.fields["u"].push_back(device.upload(u[n]));
    }
    if (!mask.empty()) inputs.mask = device.upload(mask);
    sides.set(device, inputs);
    LossOptions wanted;
    wanted.gradients = options.gradients;
    wanted.path = options.path;
    const BoundLoss bound = bind_path(wanted, options, r, [&](const LossOptions& with) {
      return loss.bind_trajectory(device, inputs, with);
    });
    bound.run();
    take_terms(r, bound);
    if (options.gradients == Gradients::none) return r;
    for (const auto& [field, source] : {std::pair{"sigma", &sigma}, std::pair{"u", &u}}) {
      Array all(checked.storage(), source->shape());
      const auto bytes = all.mutate_raw();
      const size_t step = bytes.size() / size_t(levels);
      for (int64_t n = 0; n < levels; ++n)
        if (const Buffer g = bound.gradient(field, int(n)))
          device.read(g, bytes.data() + size_t(n) * step, int64_t(step));
      r.gradients.push_back({fmt::format("d_{}", field), std::move(all)});
    }
    if (!sides.empty()) add_side_gradients(r, device, loss, inputs, sides);
    return r;
  });
  result.mesh = mesh;
  result.levels = levels;
  sum_terms(result, options);
  return result;
}

nlohmann::ordered_json document_of(const RunResult& result) {
  nlohmann::ordered_json j{{"loss", result.loss}, {"loss_sigma", 0.0}, {"loss_u", 0.0}};
  for (const auto& [name, value] : result.terms) j["loss_" + name] = value;
  for (const auto& [name, slope] : result.by_number) j["by_number"][name] = slope;
  j["kernel"] = result.kernel;
  if (!result.path_refused.empty()) j["path_refused"] = result.path_refused;
  j["cells"] = {result.mesh.cells[2], result.mesh.cells[1], result.mesh.cells[0]};
  j["levels"] = result.levels;
  j["boundary"] = result.mesh.boundary.text();
  j["order"] = result.mesh.order;
  return j;
}
std::string to_json(const RunResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::pde
