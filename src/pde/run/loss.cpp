#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/documents.hpp"
#include "lockstep/pde/run.hpp"
#include "pde/run/planes.hpp"
#include "pde/run/run_parts.hpp"
#include "pde/run/side_values.hpp"

namespace lockstep::pde {
namespace {

/// Binds with the requested path. If it does not support the problem, two kernels are used and the result says so.
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

void take_terms(RunResult& result, const std::vector<double>& values) {
  for (size_t k = 0; k < values.size(); ++k) result.terms[k].second = values[k];
}

/// The result of a rank's stage: names of terms without values, the sums that these follow from, and what sides give, by
/// level.
struct Evaluated {
  RunResult result;
  DividedLoss::Sums sums;
  std::vector<std::pair<int64_t, DividedLoss::SideCells>> sides;
};
void name_terms(RunResult& result, const BoundLoss& bound) {
  for (const std::string& term : bound.term_names()) result.terms.push_back({term, 0});
  result.kernel = std::string(name(bound.path()));
}

/// The same for all ranks: what they computed is joined on rank 0.
RunResult join(Context& context, const char* stage, const DividedLoss& loss, const parallel::Group& group,
               Evaluated mine, const SideValues& sides) {
  RunResult result = std::move(mine.result);
  if (group.size() > 1) {
    const DividedLoss::Sums all = loss.gather(std::move(mine.sums));
    context.run_stage(stage, [&](const Device& device) { take_terms(result, loss.terms(device, all)); });
    on_lead(loss, group, result.gradients);
    on_lead(loss, group, result.residuals);
  }
  if (mine.sides.empty()) return result;
  SideValues derived = sides;
  for (const auto& [level, cells] : mine.sides) derived.add(loss.boundary_gradients(cells), level);
  derived.take(result);
  return result;
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

/// −∇²u by component, of a rank's own planes. `inputs`: those of the loss.
Array viscosity_slopes(const Device& device, const CheckedArrays& checked, const Inputs& inputs,
                       const Mesh& mesh, const RunOptions& options, const SideValues& sides,
                       const parallel::Group& group) {
  const DividedLoss slope(sides.minus_laplacian(options), mesh, group);
  Inputs of_u;
  if (group.size() == 1) {
    of_u = inputs;
    of_u.fields = {{"u", {Buffer(), inputs.fields.at("u")[1], Buffer()}}};
  } else {  // it depends on other planes
    of_u.fields["u"][1] = device.upload(checked.take("u1", &slope));
    sides.set(device, of_u);
  }
  return device.download(slope.residuals(device, of_u));
}

/// dL/dν. The momentum's residual is linear in ν with the slope −∇²u, so that it is 2 w / N Σ m R (−∇²u).
double viscosity_slope(const Array& residuals, const Array& slopes, const Array& mask, const Mesh& mesh,
                       const RunOptions& options) {
  const Array slope = slopes.to(Storage::f64).packed();
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
  checked.mask();
}

TakenFields take_fields(const CheckedArrays& checked, const TransportOptions& terms,
                        const DividedLoss* loss) {
  TakenFields taken;
  const auto take = [&](const std::string& name) { taken.arrays[name] = checked.take(name, loss); };
  for (const char* level : {"1", "0", "2"})
    for (const char* field : {"sigma", "u"}) take(fmt::format("{}{}", field, level));
  if (terms.pressure) take("p");
  if (terms.forcing) take("force");
  taken.mask = checked.take_mask(loss);
  return taken;
}

Inputs upload_inputs(const Device& device, const TakenFields& taken, const TransportOptions& terms,
                     const SideValues& sides) {
  const auto& [arrays, mask] = taken;
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

RunResult run_loss(Context& context, const Fields& fields, const RunOptions& options,
                   const parallel::Group& group) {
  const TransportOptions& terms = options.terms;
  CheckedArrays checked(fields, options.where);
  check_fields(checked, terms);
  if (options.reference) {
    if (group.size() > 1)
      throw parallel::GroupError("the reference over ranks", options.where, "one rank").on_every_rank();
    return run_reference(context, take_fields(checked, terms), options);
  }
  const Mesh mesh = mesh_of(options, checked.cells());
  const SideValues sides(checked, options, 0);
  const bool gradients = options.gradients != Gradients::none,
             by_viscosity = terms.viscosity != 0 && gradients;
  expect_same_run(group, fields, options);
  const System system = sides.system(options);
  const DividedLoss loss(system, mesh, group);
  const TakenFields taken = take_fields(checked, terms, &loss);
  fields.verify(group);
  Array slopes;
  Evaluated mine = context.stage("pde.loss", [&](const Device& device) {
    Evaluated e;
    RunResult& r = e.result;
    const Inputs inputs = upload_inputs(device, taken, terms, sides);
    LossOptions wanted;
    wanted.gradients = options.gradients;
    wanted.path = options.path;
    const BoundLoss bound = bind_path(
        wanted, options, r, [&](const LossOptions& with) { return loss.bind(device, inputs, with); });
    bound.run();
    name_terms(r, bound);
    e.sums = loss.sums(bound);
    if (group.size() == 1) take_terms(r, loss.terms(device, e.sums));
    for (int l = 0; l < 3; ++l)
      for (const char* field : {"sigma", "u", "p", "force"}) {
        const bool leveled = field == std::string_view("sigma") || field == std::string_view("u");
        const std::string source = leveled ? fmt::format("{}{}", field, l) : field;
        if (const Buffer g = bound.gradient(field, l - 1)) {
          r.gradients.push_back({"d_" + source, device.download(loss.own_planes(g))});
        } else if (leveled && wanted_level(options.gradients, l - 1)) {  // no term mentions it
          Sizes shape = taken.arrays.at(source).shape();
          shape[shape.size() - 3] = loss.own().size();
          r.gradients.push_back({"d_" + source, Array(checked.storage(), shape)});
        }
      }
    if (options.residuals || by_viscosity)
      r.residuals = {{"", device.download(loss.residuals(device, inputs))}};
    if (by_viscosity) slopes = viscosity_slopes(device, checked, inputs, mesh, options, sides, group);
    if (gradients && !sides.empty()) e.sides.emplace_back(0, loss.side_cells(device, inputs));
    return e;
  });
  RunResult result = join(context, "pde.loss", loss, group, std::move(mine), sides);
  if (by_viscosity) slopes = on_lead(loss, group, slopes);
  if (!group.leads()) return {};
  if (by_viscosity)
    result.by_number.push_back(
        {"viscosity", viscosity_slope(result.residuals.front().second, slopes,
                                      group.size() == 1 ? taken.mask : checked.take_mask(), mesh, options)});
  const Array residuals = result.residuals.empty() ? Array() : result.residuals.front().second;
  result.residuals.clear();
  if (options.residuals) result.residuals = named_residuals(residuals, terms);
  result.mesh = mesh;
  sum_terms(result, options);
  return result;
}

RunResult run_loss(Context& context, const NamedArrays& arrays, const RunOptions& options,
                   const parallel::Group& group) {
  return run_loss(context, FieldsInMemory(arrays), options, group);
}
RunResult run_loss(Context& context, const NamedArrays& arrays, const RunOptions& options) {
  return run_loss(context, arrays, options, parallel::Group());
}

namespace {

/// Each inner level with its neighbours is a loss of its own, with the values of its level.
void add_side_cells(Evaluated& e, const Device& device, const DividedLoss& loss, const TrajectoryInputs& all,
                    const SideValues& sides) {
  const size_t levels = all.fields.at("u").size();
  for (size_t n = 1; n + 1 < levels; ++n) {
    Inputs one;
    for (const auto& [field, buffers] : all.fields)
      one.fields[field] = {buffers[n - 1], buffers[n], buffers[n + 1]};
    one.mask = all.mask;
    sides.set(device, one, int64_t(n));
    e.sides.emplace_back(int64_t(n), loss.side_cells(device, one));
  }
}

}  // namespace

RunResult run_trajectory(Context& context, const Fields& fields, const RunOptions& options,
                         const parallel::Group& group) {
  const TransportOptions& terms = options.terms;
  if (options.residuals)
    throw InputError("residual fields of a trajectory", options.where, "of three levels");
  if (terms.pressure || terms.forcing)
    throw InputError("pressure or forcing in a trajectory", options.where, "terms of sigma and u");
  if (options.gradients != Gradients::all && options.gradients != Gradients::none)
    throw InputError("gradients of some levels of a trajectory", options.where, "all or none");
  if (options.reference || options.path == Path::two_sweep)
    throw InputError("this kernel for a trajectory", options.where, "auto, fused or two-kernel");
  CheckedArrays checked(fields, options.where);
  const Sizes in_time = checked.has("sigma") ? fields.head("sigma").shape : Sizes();
  const int64_t levels = in_time.empty() ? 3 : in_time[0];
  if (levels < 3) throw InputError(fmt::format("{} levels", levels), options.where, "3 or more");
  checked.field("sigma", {levels});
  checked.field("u", {levels, 3});
  checked.mask();
  const Mesh mesh = mesh_of(options, checked.cells());
  const SideValues sides(checked, options, levels);
  const bool alone = group.size() == 1, gradients = options.gradients != Gradients::none;
  expect_same_run(group, fields, options);
  const System system = sides.system(options);
  const Loss whole(system, mesh);
  const DividedLoss loss(system, mesh, group);
  const Array sigma = checked.take("sigma", &loss), u = checked.take("u", &loss),
              mask = checked.take_mask(&loss);
  fields.verify(group);
  Evaluated mine = context.stage("pde.trajectory", [&](const Device& device) {
    Evaluated e;
    RunResult& r = e.result;
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
      return alone ? whole.bind_trajectory(device, inputs, with) : loss.bind_trajectory(device, inputs, with);
    });
    bound.run();
    name_terms(r, bound);
    if (alone)
      take_terms(r, bound.terms());
    else
      e.sums = loss.sums(bound);
    if (!gradients) return e;
    for (const auto& [field, source] : {std::pair{"sigma", &sigma}, std::pair{"u", &u}}) {
      Sizes shape = source->shape();
      shape[shape.size() - 3] = loss.own().size();
      Array all(checked.storage(), shape);
      const auto bytes = all.mutate_raw();
      const size_t step = bytes.size() / size_t(levels);
      for (int64_t n = 0; n < levels; ++n)
        if (const Buffer g = bound.gradient(field, int(n)))
          device.read(loss.own_planes(g), bytes.data() + size_t(n) * step, int64_t(step));
      r.gradients.push_back({fmt::format("d_{}", field), std::move(all)});
    }
    if (!sides.empty()) add_side_cells(e, device, loss, inputs, sides);
    return e;
  });
  RunResult result = join(context, "pde.trajectory", loss, group, std::move(mine), sides);
  if (!group.leads()) return {};
  result.mesh = mesh;
  result.levels = levels;
  sum_terms(result, options);
  return result;
}

RunResult run_trajectory(Context& context, const NamedArrays& arrays, const RunOptions& options,
                         const parallel::Group& group) {
  return run_trajectory(context, FieldsInMemory(arrays), options, group);
}
RunResult run_trajectory(Context& context, const NamedArrays& arrays, const RunOptions& options) {
  return run_trajectory(context, arrays, options, parallel::Group());
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
