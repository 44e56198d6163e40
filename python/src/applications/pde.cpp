// Losses of partial differential equations on a device's buffers.
#include "arrays.hpp"
#include "documents.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/divided.hpp"
#include "lockstep/pde/documents.hpp"
#include "option_values.hpp"
#include "pde/kernels/plan.hpp"

namespace lockstep::python {
namespace {

using autodiff::Value;
using pde::Field;

using Levels = std::vector<std::optional<Buffer>>;  // of the levels -1, 0, +1
using Parameters = std::map<std::string, double>;
using Profiles = std::map<std::string, Buffer>;

std::array<Buffer, 3> levels_of(const Levels& given) {
  std::array<Buffer, 3> levels;
  for (size_t k = 0; k < 3 && k < given.size(); ++k)
    if (given[k]) levels[k] = *given[k];
  return levels;
}

/// Fields, parameters, profiles, mask: the same in every call.
using Data = std::tuple<std::map<std::string, Levels>, Parameters, Profiles, std::optional<Buffer>>;

pde::Inputs inputs_of(const Data& data) {
  const auto& [fields, parameters, profiles, mask] = data;
  pde::Inputs inputs;
  for (const auto& [name, levels] : fields) inputs.fields[name] = levels_of(levels);
  inputs.parameters = parameters;
  inputs.profiles = profiles;
  if (mask) inputs.mask = *mask;
  return inputs;
}
std::map<std::string, std::array<Buffer, 3>> directions_of(const std::map<std::string, Levels>& tangents) {
  std::map<std::string, std::array<Buffer, 3>> directions;
  for (const auto& [name, levels] : tangents) directions[name] = levels_of(levels);
  return directions;
}

pde::Gradients gradients_of(const std::string& text) {
  if (text == "all") return pde::Gradients::all;
  if (text == "t1") return pde::Gradients::t1;
  if (text == "t1t2") return pde::Gradients::t1t2;
  if (text == "none") return pde::Gradients::none;
  throw InputError("gradients " + text, "lockstep.pde.Loss", "all, t1, t1t2 or none");
}
pde::Path path_of(const std::string& text) {
  for (pde::Path path : {pde::Path::automatic, pde::Path::two_kernel, pde::Path::fused, pde::Path::two_sweep})
    if (pde::name(path) == text) return path;
  if (text == "automatic" || text == "auto") return pde::Path::automatic;
  throw InputError("path " + text, "lockstep.pde.Loss", "auto, two-kernel, fused or two-sweep");
}

pde::Mesh mesh_of(const std::array<int64_t, 3>& cells, const std::array<double, 3>& spacing, double dt,
                  const std::string& boundary, int order) {
  pde::Mesh mesh;
  mesh.cells = cells;
  mesh.spacing = spacing;
  mesh.dt = dt;
  if (!boundary.empty()) mesh.boundary = pde::BoundaryConditions::parse(boundary);
  mesh.order = order;
  return mesh;
}

/// {field: buffers of the levels -1, 0, +1, None where there is none}.
nb::dict dictionary_of(const std::map<std::string, std::array<Buffer, 3>>& fields) {
  nb::dict d;
  for (const auto& [name, levels] : fields) {
    nb::list row;
    for (const Buffer& level : levels) row.append(level ? nb::cast(level) : nb::none());
    d[nb::str(name.c_str())] = row;
  }
  return d;
}

nb::object example(OpenDevice& open, const nb::dict& arguments) {
  constexpr auto kCall = "lockstep.pde.example";
  pde::ExampleOptions options;
  options.progress = progress_of(arguments);
  pde::ExampleResult result = with_options<pde::ExampleOptions>(
      arguments, kCall, [&](const pde::ExampleOptions& o) { return pde::run_example(*open.context, o); },
      {"progress"}, {}, options);
  nb::dict d = nb::cast<nb::dict>(from_document(pde::document_of(result))), fields;
  const size_t ny = size_t(result.cells[0]), nx = size_t(result.cells[1]);
  for (auto& [name, values] : result.train.fields) {
    const size_t components = values.size() / (ny * nx);
    fields[nb::str(name.c_str())] = to_numpy(std::move(values), {components, ny, nx});
  }
  d["fields"] = fields;
  return d;
}

nb::object study(OpenDevice& open, const nb::dict& arguments) {
  return from_document(
      with_options<pde::StudyOptions>(arguments, "lockstep.pde.study",
                                      [&, progress = progress_of(arguments)](const pde::StudyOptions& o) {
                                        return document_of(pde::run_study(open.device(), o, progress));
                                      },
                                      {"progress"}));
}
nb::object convergence(OpenDevice& open, const nb::dict& arguments) {
  return from_document(with_options<pde::ConvergenceOptions>(
      arguments, "lockstep.pde.convergence",
      [&](const pde::ConvergenceOptions& o) { return document_of(pde::run_convergence(*open.context, o)); }));
}

template <class T>
std::array<T, 3> three(const std::vector<T>& v) {
  return {v.at(0), v.at(1), v.at(2)};
}

void bind_system(nb::module_& module) {
  using pde::System;
  nb::class_<Field>(module, "Field")
      .def("__init__", [](Field* self, int index, int components) { new (self) Field{index, components}; })
      .def_ro("index", &Field::index)
      .def_ro("components", &Field::components);
  nb::class_<System>(module, "System")
      .def(nb::init<int>())
      .def("field",
           [](System& s, const std::string& name, int components, const std::string& boundary) {
             return boundary.empty() ? s.field(name, components)
                                     : s.field(name, components, pde::BoundaryConditions::parse(boundary));
           })
      .def("field_of_components",
           [](System& s, const std::string& name, const std::vector<std::string>& boundaries) {
             std::vector<pde::BoundaryConditions> all;
             for (const std::string& text : boundaries) all.push_back(pde::BoundaryConditions::parse(text));
             return s.field(name, all);
           })
      .def("profile", &System::profile)
      .def("vector", &System::vector)
      .def("parameter", &System::parameter)
      .def("at", &System::at)
      .def("dt", &System::dt)
      .def("dt_forward", &System::dt_forward)
      .def("dtt", &System::dtt)
      .def("d", &System::d)
      .def("d2", &System::d2)
      .def("forward", &System::forward)
      .def("backward", &System::backward)
      .def("upwind", &System::upwind)
      .def("grad", &System::grad)
      .def("div", &System::div)
      .def("laplacian", &System::laplacian)
      .def("advect", &System::advect)
      .def("residual", &System::residual)
      .def("components", [](const System& s, const std::string& field) { return s.components(field); })
      .def("used",
           [](const System& s, const std::string& field) {
             for (const pde::FieldInfo& f : s.plan()->fields)
               if (f.name == field) return std::vector<bool>{f.used[0], f.used[1], f.used[2]};
             throw InputError("unknown field " + field, "pde system", "a field of the system");
           })
      .def("text", &System::text)
      .def_static("of_text", [](const std::string& text) { return System::of_text(text); })
      .def_prop_ro("dimensions", &System::dimensions);
  module.def("transport", [](int dimensions, const std::map<std::string, double>& options) {
    pde::TransportOptions t;
    const std::map<std::string, std::variant<double*, bool*>> members = {
        {"weight_sigma", &t.weight_sigma},
        {"weight_u", &t.weight_u},
        {"sigma_transport", &t.sigma_transport},
        {"sigma_divergence", &t.sigma_divergence},
        {"momentum", &t.momentum},
        {"upwind", &t.upwind},
        {"viscosity", &t.viscosity},
        {"pressure", &t.pressure},
        {"forcing", &t.forcing},
        {"weight_divergence", &t.weight_divergence},
        {"weight_speed", &t.weight_speed}};
    for (const auto& [name, value] : options) {
      const auto member = members.find(name);
      if (member == members.end())
        throw InputError("option " + name, "lockstep.pde.transport", "an option of the transport loss");
      std::visit([given = value](auto* to) { *to = std::decay_t<decltype(*to)>(given); }, member->second);
    }
    return pde::transport(dimensions, t);
  });
}

}  // namespace

pde::LossOptions loss_options(const std::string& gradients, const std::string& path,
                              const std::vector<std::string>& wanted) {
  pde::LossOptions options;
  options.gradients = gradients_of(gradients);
  options.path = path_of(path);
  options.wanted = wanted;
  return options;
}

namespace {

/// Fields of all levels, parameters, profiles, mask.
using LevelsData =
    std::tuple<std::map<std::string, std::vector<Buffer>>, Parameters, Profiles, std::optional<Buffer>>;

/// Arrays of the planes of a rank are bound as those of a whole grid.
pde::BoundLoss bound(const pde::Loss& loss, const Device& device, const pde::Inputs& inputs,
                     const pde::LossOptions& options) {
  return loss.bind(device, inputs, options);
}
pde::BoundLoss bound(const pde::Loss& loss, const Device& device, const pde::TrajectoryInputs& inputs,
                     const pde::LossOptions& options) {
  return loss.bind_trajectory(device, inputs, options);
}
pde::BoundPlanes bound(const pde::DividedLoss& loss, const Device& device, const auto& inputs,
                       const pde::LossOptions& options) {
  return loss.bind_planes(device, inputs, options);
}

template <class Loss>
auto bind(const Loss& loss, const OpenDevice& open, const Data& data, double seed, int64_t members,
          const std::string& gradients, const std::string& path, const std::vector<std::string>& wanted) {
  pde::Inputs inputs = inputs_of(data);
  inputs.seed = seed;
  inputs.members = members;
  const pde::LossOptions options = loss_options(gradients, path, wanted);
  return freely([&] { return bound(loss, open.device(), inputs, options); });
}

template <class Loss>
auto bind_trajectory(const Loss& loss, const OpenDevice& open, const LevelsData& data,
                     const std::map<std::string, std::vector<double>>& parameters_in_time,
                     const std::map<std::string, std::vector<Buffer>>& profiles_in_time, double seed,
                     const std::string& gradients, const std::string& path,
                     const std::vector<std::string>& wanted) {
  pde::TrajectoryInputs inputs;
  std::optional<Buffer> mask;
  std::tie(inputs.fields, inputs.parameters, inputs.profiles, mask) = data;
  inputs.parameters_in_time = parameters_in_time;
  inputs.profiles_in_time = profiles_in_time;
  if (mask) inputs.mask = *mask;
  inputs.seed = seed;
  const pde::LossOptions options = loss_options(gradients, path, wanted);
  return freely([&] { return bound(loss, open.device(), inputs, options); });
}

/// Numbers of parameters and profiles as Python has them: two dictionaries.
nb::tuple numbers_of(pde::Loss::Numbers numbers) {
  nb::dict parameters, profiles;
  for (const auto& [name, value] : numbers.parameters) parameters[nb::str(name.c_str())] = value;
  for (auto& [name, values] : numbers.profiles) {
    const size_t count = values.size();
    profiles[nb::str(name.c_str())] = to_numpy(std::move(values), {count});
  }
  return nb::make_tuple(parameters, profiles);
}

nb::tuple hessian_product(const pde::Loss& loss, const OpenDevice& open, const Data& data,
                          const std::map<std::string, Levels>& tangents, const Parameters& along,
                          const std::map<std::string, std::vector<double>>& profiles_along) {
  const pde::Inputs inputs = inputs_of(data);
  const auto directions = directions_of(tangents);
  pde::Loss::Product found = freely(
      [&] { return loss.hessian_product(open.device(), inputs, directions, {along, profiles_along}); });
  const nb::tuple numbers = numbers_of(std::move(found.numbers));
  return nb::make_tuple(dictionary_of(found.fields), numbers[0], numbers[1]);
}

nb::object check(const pde::System& system, const pde::Loss& loss, const OpenDevice& open, const Data& data,
                 uint32_t seed, const std::string& path) {
  const pde::Inputs inputs = inputs_of(data);
  return from_document(freely([&] {
    return pde::document_of(
        pde::check(system, loss.mesh(), open.device(), inputs, {.seed = seed, .path = path_of(path)}));
  }));
}

/// The gradient of each number of the boundary, as rows for NumPy.
nb::list rows_of(std::vector<pde::Loss::BoundaryGradient> found) {
  nb::list rows;
  for (pde::Loss::BoundaryGradient& g : found) {
    const size_t cells = g.cells.size();
    rows.append(dict_of("field", g.field, "component", g.component, "axis", g.axis, "end", g.end, "value",
                        g.value, "parameter", g.parameter, "cells", to_numpy(std::move(g.cells), {cells})));
  }
  return rows;
}

/// The members that losses bound on whole grids and on the planes of a rank share.
template <class Bound>
void bind_bound_loss(nb::module_& module, const char* name) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Bound>(module, name)
      .def("run", &Bound::run, Free())
      .def("terms", &Bound::terms, Free())
      .def("term_names", &Bound::term_names)
      .def("gradient",
           [](const Bound& b, const std::string& field, int level) -> std::optional<Buffer> {
             Buffer g = b.gradient(field, level);
             if (!g) return {};
             return g;
           })
      .def_prop_ro("path", [](const Bound& b) { return std::string(pde::name(b.path())); });
}

void bind_divided_loss(nb::module_& module) {
  using pde::DividedLoss;
  nb::class_<DividedLoss>(module, "DividedLoss")
      .def("__init__",
           [](DividedLoss* self, const pde::System& system, const std::vector<int64_t>& cells,
              const std::vector<double>& spacing, double dt, const std::string& boundary, int order,
              const parallel::Group& group) {
             new (self)
                 DividedLoss(system, mesh_of(three(cells), three(spacing), dt, boundary, order), group);
           })
      .def("planes", [](const DividedLoss& loss) { return std::pair(loss.own().begin, loss.own().end); })
      .def("bind", &bind<DividedLoss>)
      .def("bind_trajectory", &bind_trajectory<DividedLoss>)
      .def("residuals",
           [](const DividedLoss& loss, const OpenDevice& open, const Data& data) {
             const pde::Inputs inputs = inputs_of(data);
             return freely([&] { return loss.residuals_of_planes(open.device(), inputs); });
           })
      .def(
          "number_gradients",
          [](const DividedLoss& loss, const OpenDevice& open, const Data& data) {
            const pde::Inputs inputs = inputs_of(data);
            return numbers_of(freely([&] { return loss.number_gradients_of_planes(open.device(), inputs); }));
          })
      .def("boundary_gradients", [](const DividedLoss& loss, const OpenDevice& open, const Data& data) {
        const pde::Inputs inputs = inputs_of(data);
        return rows_of(freely([&] { return loss.boundary_gradients_of_planes(open.device(), inputs); }));
      });
}

}  // namespace

void bind_pde(nb::module_& module) {
  bind_system(module);
  bind_bound_loss<pde::BoundLoss>(module, "BoundLoss");
  bind_bound_loss<pde::BoundPlanes>(module, "BoundPlanes");
  bind_divided_loss(module);
  using pde::Loss;
  nb::class_<Loss>(module, "Loss")
      .def("__init__",
           [](Loss* self, const pde::System& system, const std::vector<int64_t>& cells,
              const std::vector<double>& spacing, double dt, const std::string& boundary, int order) {
             new (self) Loss(system, mesh_of(three(cells), three(spacing), dt, boundary, order));
           })
      .def("bind", &bind<Loss>)
      .def("bind_trajectory", &bind_trajectory<Loss>)
      .def("residuals",
           [](const Loss& loss, const OpenDevice& open, const Data& data) {
             const pde::Inputs inputs = inputs_of(data);
             const nb::gil_scoped_release free;
             return loss.residuals(open.device(), inputs);
           })
      .def("vjp",
           [](const Loss& loss, const OpenDevice& open, const Data& data, const Buffer& cotangents) {
             const pde::Inputs inputs = inputs_of(data);
             return dictionary_of(freely([&] { return loss.vjp(open.device(), inputs, cotangents); }));
           })
      .def("jvp",
           [](const Loss& loss, const OpenDevice& open, const Data& data,
              const std::map<std::string, Levels>& tangents, const Parameters& along,
              const std::map<std::string, std::vector<double>>& profiles_along) {
             const pde::Inputs inputs = inputs_of(data);
             const auto directions = directions_of(tangents);
             const nb::gil_scoped_release free;
             return loss.jvp(open.device(), inputs, directions, {along, profiles_along});
           })
      .def("number_gradients",
           [](const Loss& loss, const OpenDevice& open, const Data& data) {
             const pde::Inputs inputs = inputs_of(data);
             return numbers_of(freely([&] { return loss.number_gradients(open.device(), inputs); }));
           })
      .def("number_vjp",
           [](const Loss& loss, const OpenDevice& open, const Data& data, const Buffer& cotangents) {
             const pde::Inputs inputs = inputs_of(data);
             return numbers_of(freely([&] { return loss.number_vjp(open.device(), inputs, cotangents); }));
           })
      .def("hessian_product", &hessian_product)
      .def("boundary_gradients", [](const Loss& loss, const OpenDevice& open, const Data& data) {
        const pde::Inputs inputs = inputs_of(data);
        return rows_of(freely([&] { return loss.boundary_gradients(open.device(), inputs); }));
      });
  module.def("pde_check", &check);
  module.def("pde_examples", &pde::example_names);
  module.def("pde_example", &example);
  module.def("pde_study", &study);
  module.def("pde_convergence", &convergence);
}

}  // namespace lockstep::python
