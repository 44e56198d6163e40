// Nonlinear least squares with residuals traced from Python, and readers of the usual problem files.
#include <array>
#include <charconv>
#include <cmath>

#include "applications/solve_terms.hpp"
#include "arrays.hpp"
#include "documents.hpp"
#include "io/meshes/mesh.hpp"
#include "lockstep/solve/covariance.hpp"
#include "lockstep/solve/doctor.hpp"
#include "lockstep/solve/documents.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "lockstep/solve/factors.hpp"
#include "lockstep/solve/files.hpp"
#include "lockstep/solve/given_jacobian.hpp"
#include "lockstep/solve/imu.hpp"
#include "lockstep/solve/marginalize.hpp"
#include "lockstep/solve/run.hpp"
#include "option_values.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::python {
namespace {

using autodiff::Value;
using namespace lockstep::solve;

}  // namespace

/// `size`: the numbers of a block, those of a part "euclidean" without its own size are what the others leave.
Manifold manifold_of(const std::string& name, int size) {
  constexpr std::string_view kBetween = " x ";
  if (const size_t at = name.find(kBetween); at != std::string::npos) {
    const std::string first = name.substr(0, at), rest = name.substr(at + kBetween.size());
    if (first == "euclidean")
      throw InputError("manifold " + name, "Problem.add_blocks", "a size of the first part: euclidean:2");
    const Manifold own = manifold_of(first, size);
    return product(own, manifold_of(rest, size - own.ambient));
  }
  if (name == "euclidean") return euclidean(size);
  if (name.starts_with("euclidean:")) {
    int own = 0;
    const char* const end = name.data() + name.size();
    if (const auto read = std::from_chars(name.data() + 10, end, own); read.ptr == end && own > 0)
      return euclidean(own);
  }
  if (name == "so2") return so2();
  if (name == "so3") return so3();
  if (name == "se2") return se2();
  if (name == "se3") return se3();
  if (name == "sphere2") return sphere2();
  throw InputError("manifold " + name, "Problem.add_blocks",
                   "euclidean, so2, so3, se2, se3 or sphere2, or several: sphere2 x euclidean:1");
}

/// A residual that Python traces: a function of a list of blocks (lists of Values) and a list of data.
std::function<std::vector<Value>(const TermArguments&)> residual_of(nb::object function,
                                                                    std::vector<int> slots) {
  return [kept = keep<void>(std::move(function)), slots](const TermArguments& a) {
    const nb::gil_scoped_acquire lock;
    nb::list blocks, data;
    for (int slot = 0; slot < int(slots.size()); ++slot) {
      nb::list block;
      for (const Value& v : a.block(slot)) block.append(nb::cast(v));
      blocks.append(block);
    }
    for (int k = 0; k < a.data_count(); ++k) data.append(nb::cast(a.data(k)));
    const nb::handle call(static_cast<PyObject*>(kept.get()));
    std::vector<Value> outputs;
    for (nb::handle r : nb::list(call(blocks, data))) {
      Value v;
      outputs.push_back(nb::try_cast(r, v) ? v : a.graph().constant(nb::cast<double>(r)));
    }
    return outputs;
  };
}

namespace {

nb::dict row_of(const Iteration& i) {
  return dict_of("iteration", i.iteration, "cost", i.cost, "cost_change", i.cost_change, "gradient_max",
                 i.gradient_max, "step_norm", i.step_norm, "damping", i.damping, "accepted", i.accepted,
                 "linear_iterations", i.linear_iterations, "seconds", i.seconds);
}

/// The callback among the arguments, called under the lock; Ctrl-C is seen then, given or not.
std::function<bool(const Iteration&)> callback_of(const nb::dict& arguments) {
  const nb::object given = arguments.contains("callback") ? nb::object(arguments["callback"]) : nb::none();
  return [kept = given.is_none() ? std::shared_ptr<void>() : keep<void>(given)](const Iteration& i) {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!kept) return true;
    const nb::object go = nb::handle(static_cast<PyObject*>(kept.get()))(row_of(i));
    return go.is_none() || nb::cast<bool>(go);
  };
}

/// The function that is called before host terms are evaluated, under the lock; empty where none is given.
std::function<void(bool)> prepare_of(const nb::dict& arguments) {
  if (!arguments.contains("prepare")) return {};
  return [kept = keep<void>(nb::object(arguments["prepare"]))](bool derivatives) {
    const nb::gil_scoped_acquire lock;
    nb::handle(static_cast<PyObject*>(kept.get()))(derivatives);
  };
}

nb::dict summary_of(const Summary& s) {
  nb::list trace;
  for (const Iteration& i : s.trace) trace.append(row_of(i));
  const auto text = [](std::string_view name) { return std::string(name); };
  return dict_of("initial_cost", s.initial_cost, "final_cost", s.final_cost, "gradient_max", s.gradient_max,
                 "iterations", s.iterations, "linear_iterations", s.linear_iterations, "residuals",
                 s.residuals, "variables", s.variables, "kernels", s.kernels, "termination",
                 text(name(s.termination)), "converged", converged(s.termination), "message", s.message,
                 "notes", s.notes, "method", text(name(s.method)), "linear", text(name(s.linear_used)),
                 "device", s.device, "seconds", s.seconds, "trace", trace);
}

nb::object values_of(const Problem& p, BlockSet set) {
  const auto values = p.values(set);
  const auto count = size_t(p.block_count(set));
  return to_numpy(std::vector<double>(values.begin(), values.end()),
                  {count, count ? values.size() / count : 0});
}

nb::dict csr_of(SparseRows matrix) {
  const size_t rows = size_t(matrix.rows), count = matrix.values.size();
  return dict_of("shape", nb::make_tuple(matrix.rows, matrix.columns), "data",
                 to_numpy(std::move(matrix.values), {count}), "indices",
                 to_numpy(std::move(matrix.column), {count}), "indptr",
                 to_numpy(std::move(matrix.first), {rows + 1}));
}

nb::dict evaluation(const Problem& p, OpenDevice& open, bool apply_loss, bool normal) {
  EvaluateOptions options;
  options.apply_loss = apply_loss;
  options.normal = normal;
  Evaluation found = freely([&] { return evaluate(p, *open.context, options); });
  const size_t columns = found.gradient.size(), rows = found.residuals.size();
  nb::dict d =
      dict_of("cost", found.cost, "gradient", to_numpy(std::move(found.gradient), {columns}), "residuals",
              to_numpy(std::move(found.residuals), {rows}), "jacobian", csr_of(std::move(found.jacobian)));
  if (normal) d["normal"] = csr_of(std::move(found.normal));
  return d;
}

nb::list instances(const Problem& p, OpenDevice& open) {
  nb::list rows;
  for (const InstanceResidual& r : freely([&] { return residuals_by_instance(p, *open.context); }))
    rows.append(dict_of("terms", r.terms.id, "name", r.name, "instance", r.instance, "enabled", r.enabled,
                        "norm", r.norm, "weight", r.weight, "scale", r.scale));
  return rows;
}

nb::dict influence(const Problem& p, OpenDevice& open) {
  const Influence found = freely([&] { return influence_by_instance(p, *open.context); });
  std::vector<std::string> terms;
  std::vector<int64_t> instance;
  std::vector<double> leverage, studentized, cook;
  for (const InstanceInfluence& i : found.instances) {
    terms.push_back(i.terms), instance.push_back(i.instance);
    leverage.push_back(i.leverage), studentized.push_back(i.studentized), cook.push_back(i.cook);
  }
  const size_t n = terms.size();
  return dict_of("terms", terms, "instance", to_numpy(std::move(instance), {n}), "leverage",
                 to_numpy(std::move(leverage), {n}), "studentized", to_numpy(std::move(studentized), {n}),
                 "cook", to_numpy(std::move(cook), {n}), "step_gain", found.step_gain, "rank", found.rank,
                 "rows", found.rows);
}

}  // namespace

/// rho(s) by a name with its scale, or by a function of a Value.
RobustLoss loss_of(const nb::object& loss) {
  if (nb::isinstance<nb::str>(loss)) return parse_robust_loss(nb::cast<std::string>(loss));
  return expression_loss([kept = keep<void>(loss)](const Value& s) {
    const nb::gil_scoped_acquire lock;
    return nb::cast<Value>(nb::handle(static_cast<PyObject*>(kept.get()))(nb::cast(s)));
  });
}

namespace {

int add_terms(Problem& p, const std::string& name, const std::vector<int>& slots, int data,
              nb::object residual, const nb::object& loss, bool energy, const std::vector<int>& sets,
              const Matrix<int32_t>& indices, const Matrix<double>& numbers, nb::object jacobian) {
  TermType type;
  type.name = name;
  type.slots = slots;
  type.data = data;
  type.residual = residual_of(std::move(residual), slots);
  type.loss = loss_of(loss);
  type.energy = energy;
  std::vector<BlockSet> blocks;
  for (int id : sets) blocks.push_back({id});
  if (jacobian.is_none()) return p.add_terms(type, blocks, span_of(indices), span_of(numbers)).id;
  return add_terms_with_jacobian(p, type, residual_of(std::move(jacobian), slots), blocks, span_of(indices),
                                 span_of(numbers))
      .id;
}

int add_factors(Problem& p, const std::string& name, const std::vector<int>& sets,
                const Matrix<int32_t>& indices, const Matrix<double>& numbers, const nb::object& loss) {
  std::vector<BlockSet> blocks;
  for (int id : sets) blocks.push_back({id});
  return p.add_terms(factor_named(name).make(loss_of(loss)), blocks, span_of(indices), span_of(numbers)).id;
}
nb::dict factor_of(const Factor& f) {
  return dict_of("name", std::string(f.name), "slots", f.make({}).slots, "measured", f.measured, "errors",
                 f.errors);
}
/// Rows of data: of each measurement with its weight, or with the only one.
nb::object factor_rows(const std::string& name, const Matrix<double>& measured, const std::string& kind,
                       const Matrix<double>& weights) {
  const Factor& f = factor_named(name);
  const auto weigh = kind == "standard_deviations" ? &w_from_standard_deviations
                     : kind == "covariance"        ? &w_from_covariance
                                                   : &w_from_information;
  const size_t rows = measured.shape(0), own = measured.shape(1), width = weights.shape(1);
  std::vector<double> data, w;
  for (size_t row = 0; row < rows; ++row) {
    const std::span<const double> z(measured.data() + row * own, own);
    if (width > 0 && (row == 0 || weights.shape(0) > 1))
      w = weigh(std::span<const double>(weights.data() + row * width, width));
    const std::vector<double> one = f.row(z, w);
    data.insert(data.end(), one.begin(), one.end());
  }
  const size_t size = rows ? data.size() / rows : size_t(f.make({}).data);
  return to_numpy(std::move(data), {rows, size});
}
template <size_t N>
std::vector<double> array_numbers(const std::array<double, N>& numbers) {
  return {numbers.begin(), numbers.end()};
}
void bind_factors(nb::module_& module) {
  module.def("factor", [](const std::string& name) { return factor_of(factor_named(name)); });
  module.def("factor_rows", &factor_rows);
  module.def("factors", [] {
    nb::dict all;
    for (const Factor& f : factors()) all[nb::str(std::string(f.name).c_str())] = factor_of(f);
    return all;
  });
  nb::class_<ImuPreintegration>(module, "ImuPreintegration")
      .def(
          "__init__",
          [](ImuPreintegration* to, double gyroscope, double accelerometer, const std::vector<double>& bias) {
            new (to) ImuPreintegration({gyroscope, accelerometer}, bias);
          })
      .def("add", [](ImuPreintegration& i, const std::vector<double>& gyroscope,
                     const std::vector<double>& accelerometer,
                     double seconds) { i.add(gyroscope, accelerometer, seconds); })
      .def("row",
           [](const ImuPreintegration& i, const std::vector<double>& gravity) { return i.data(gravity); })
      .def_prop_ro("seconds", &ImuPreintegration::seconds)
      .def_prop_ro("rotation", [](const ImuPreintegration& i) { return array_numbers(i.rotation()); })
      .def_prop_ro("velocity", [](const ImuPreintegration& i) { return array_numbers(i.velocity()); })
      .def_prop_ro("position", [](const ImuPreintegration& i) { return array_numbers(i.position()); })
      .def_prop_ro("covariance", [](const ImuPreintegration& i) { return to_numpy(i.covariance(), {9, 9}); })
      .def_prop_ro("bias_jacobian",
                   [](const ImuPreintegration& i) { return to_numpy(i.bias_jacobian(), {9, 6}); });
}

nb::object numpy_of(std::span<const double> numbers) {
  return to_numpy(std::vector<double>(numbers.begin(), numbers.end()), {numbers.size()});
}

}  // namespace

/// A function of Python on arrays of the blocks' numbers and one of data, which fills an array.
std::function<void(const HostInstance&, std::span<double>)> host_function(nb::object function) {
  if (function.is_none()) return {};
  return [kept = keep<void>(std::move(function))](const HostInstance& at, std::span<double> out) {
    const nb::gil_scoped_acquire lock;
    nb::list arguments;
    for (const std::span<const double> block : at.blocks) arguments.append(numpy_of(block));
    if (!at.data.empty()) arguments.append(numpy_of(at.data));
    const nb::handle call(static_cast<PyObject*>(kept.get()));
    const auto numbers = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(
        call(*nb::tuple(arguments)));
    if (numbers.shape(0) != out.size())
      throw InputError(std::to_string(numbers.shape(0)) + " numbers", "a function of a host term",
                       std::to_string(out.size()));
    std::copy_n(numbers.data(), out.size(), out.begin());
  };
}

namespace {

int add_host_terms(Problem& p, const std::string& name, const std::vector<int>& slots, int data,
                   int residuals, nb::object residual, nb::object jacobian, const nb::object& loss,
                   const std::vector<int>& sets, const Matrix<int32_t>& indices,
                   const Matrix<double>& numbers) {
  HostTerm type;
  type.name = name, type.slots = slots, type.data = data, type.residuals = residuals;
  type.residual = host_function(std::move(residual)), type.jacobian = host_function(std::move(jacobian));
  type.loss = loss_of(loss);
  type.parallel = false;  // one thread of Python at a time
  std::vector<BlockSet> blocks;
  for (int id : sets) blocks.push_back({id});
  return p.add_terms(type, blocks, span_of(indices), span_of(numbers)).id;
}

nb::dict marginalize_blocks(
    Problem& p, OpenDevice& open, const std::vector<std::pair<int, int64_t>>& blocks, const std::string& name,
    const std::vector<std::tuple<int, int64_t, std::vector<double>>>& first_estimates) {
  std::vector<std::pair<BlockSet, int64_t>> list;
  for (const auto& [set, block] : blocks) list.push_back({BlockSet{set}, block});
  MarginalizeOptions options;
  options.name = name;
  for (const auto& [set, block, values] : first_estimates)
    options.first_estimates.push_back({{set}, block, values});
  LinearPrior prior = freely([&] { return marginalize(p, *open.context, list, options); });
  nb::list of;
  for (const auto& [set, block] : prior.blocks) of.append(nb::make_tuple(set.id, block));
  const auto rows = size_t(prior.rows), columns = size_t(prior.columns), numbers = prior.from.size();
  return dict_of("blocks", of, "terms", prior.terms.id, "values", to_numpy(std::move(prior.from), {numbers}),
                 "root", to_numpy(std::move(prior.root), {rows, columns}), "offset",
                 to_numpy(std::move(prior.offset), {rows}), "constant", prior.constant, "free_directions",
                 prior.free_directions(), "undetermined", prior.undetermined);
}

void bind_readers(nb::module_& module) {
  module.def("read_mesh", [](const std::string& file) {
    io::TriangleMesh mesh = io::read_mesh(file);
    const auto vertices = size_t(mesh.vertex_count()), faces = size_t(mesh.face_count());
    return nb::make_tuple(to_numpy(std::move(mesh.vertices), {vertices, 3}),
                          to_numpy(std::move(mesh.faces), {faces, 3}));
  });
  module.def("read_g2o", [](const std::string& file, const std::string& loss) {
    PoseGraphFile graph = read_pose_graph(file, parse_robust_loss(loss));
    return nb::make_tuple(nb::cast(std::move(graph.problem)), graph.poses.id, graph.landmarks.id);
  });
  module.def("read_bal", [](const std::string& file, const std::string& loss) {
    BundleFile bundle = read_bundle(file, parse_robust_loss(loss));
    return nb::make_tuple(nb::cast(std::move(bundle.problem)), bundle.cameras.id, bundle.points.id);
  });
  module.def("read_colmap", [](const std::string& folder, const std::string& loss) {
    Reconstruction found = build(read_colmap(folder), parse_robust_loss(loss));
    std::vector<int> cameras;
    for (const BlockSet& set : found.cameras) cameras.push_back(set.id);
    return nb::make_tuple(nb::cast(std::move(found.problem)), found.poses.id, found.points.id, cameras);
  });
  module.def("read_tum", [](const std::string& file) {
    Trajectory t = read_tum(file);
    const size_t n = t.seconds.size();
    return nb::make_tuple(to_numpy(std::move(t.seconds), {n}), to_numpy(std::move(t.poses), {n, 7}));
  });
  module.def("write_tum",
             [](const std::string& file, const std::vector<double>& seconds, const Matrix<double>& poses) {
               const auto numbers = span_of(poses);
               write_tum(file, {seconds, {numbers.begin(), numbers.end()}});
             });
}

/// A run of the program's `solve`, from files to files: work(options).
template <class Run, class Work>
auto with_run(const nb::dict& arguments, const char* call, Work work,
              const std::set<std::string>& others = {}, const Given& had = {}, Run options = {}) {
  std::set<std::string> all = others;
  all.insert("callback");
  return with_options<Run>(
      arguments, call,
      [&, callback = callback_of(arguments)](Run& o) {
        o.options.callback = callback;
        return work(o);
      },
      all, had, std::move(options));
}
template <class Run>
void bind_run(nb::module_& module, const char* name, const char* call) {
  module.def(name, [call](OpenDevice& open, const nb::dict& arguments) {
    return from_document(
        with_run<Run>(arguments, call, [&](const Run& o) { return document_of(run(*open.context, o)); }));
  });
}

nb::object mesh_run(OpenDevice& open, const nb::dict& arguments) {
  constexpr auto kCall = "lockstep.solve.mesh";
  std::optional<MeshArrays> given;
  if (arguments.contains("vertices"))
    given.emplace(array_of(arguments["vertices"], "lockstep.solve.mesh, vertices"),
                  array_of(arguments["triangles"], "lockstep.solve.mesh, triangles"));
  const MeshRunResult found = with_run<MeshRun>(
      arguments, kCall,
      [&](MeshRun& o) {
        o.given = given;
        return run(*open.context, o);
      },
      {"vertices", "triangles"}, given ? Given{"mesh"} : Given{});
  return nb::make_tuple(from_document(document_of(found)), to_numpy(found.found.vertices),
                        to_numpy(found.found.triangles));
}

/// Data sets of arrays: [(names, [column, …]), …].
std::vector<FitTable> tables_of(const nb::object& given) {
  std::vector<FitTable> tables;
  for (const nb::handle table : given) {
    FitTable& to = tables.emplace_back();
    to.names = nb::cast<std::vector<std::string>>(table[0]);
    for (const nb::handle column : table[1]) {
      const auto numbers =
          nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(column);
      to.columns.emplace_back(numbers.data(), numbers.data() + numbers.size());
    }
  }
  return tables;
}
/// Puts the data sets of a call into `to`. Gives the options that they replace: none where there is no data set.
Given take_tables(const nb::dict& arguments, FitModel& to) {
  if (arguments.contains("tables")) to.given = tables_of(arguments["tables"]);
  return to.given.empty() ? Given{} : Given{"file"};
}
nb::object fit_run(OpenDevice& open, const nb::dict& arguments) {
  FitRun options;
  const Given had = take_tables(arguments, options);
  if (arguments.contains("points")) options.at_given = tables_of(arguments["points"])[0];
  FitRunResult found = with_run<FitRun>(
      arguments, "lockstep.solve.fit", [&](const FitRun& o) { return run(*open.context, o); },
      {"tables", "points"}, had, std::move(options));
  const size_t rows = found.fitted.size();
  return nb::make_tuple(from_document(document_of(found)), to_numpy(std::move(found.fitted), {rows}));
}

void bind_runs(nb::module_& module) {
  module.def("solve_mesh", &mesh_run);
  module.def("mesh_energies", &mesh_energies);
  module.def("solve_fit", &fit_run);
  bind_run<PoseGraphRun>(module, "solve_posegraph", "lockstep.solve.posegraph");
  bind_run<BundleRun>(module, "solve_bundle", "lockstep.solve.bundle");
  bind_run<SketchRun>(module, "solve_sketch", "lockstep.solve.sketch");
  module.def("solve_doctor", [](OpenDevice& open, const nb::dict& arguments) {
    DoctorRun options;
    const Given had = take_tables(arguments, options);
    return from_document(with_options<DoctorRun>(
        arguments, "lockstep.solve.doctor",
        [&](const DoctorRun& o) { return document_of(run(*open.context, o)); }, {"tables"}, had,
        std::move(options)));
  });
}

template <class Work>
std::vector<double> with_covariance(const Problem& p, OpenDevice& open, bool free_gauge, Work work) {
  using Gauge = CovarianceOptions::Gauge;
  return freely(
      [&] { return work(Covariance(p, *open.context, {free_gauge ? Gauge::complement : Gauge::refuse})); });
}

nb::object covariance_of(const Problem& p, OpenDevice& open,
                         const std::vector<std::pair<int, int64_t>>& blocks, bool free_gauge) {
  std::vector<std::pair<BlockSet, int64_t>> list;
  for (const auto& [set, block] : blocks) list.push_back({BlockSet{set}, block});
  std::vector<double> matrix =
      with_covariance(p, open, free_gauge, [&](const Covariance& c) { return c.joint(list); });
  const auto n = size_t(std::llround(std::sqrt(double(matrix.size()))));
  return to_numpy(std::move(matrix), {n, n});
}

/// (count, t, t): the covariance of each block by itself.
nb::object marginals_of(const Problem& p, OpenDevice& open, int set, bool free_gauge) {
  std::vector<double> matrices =
      with_covariance(p, open, free_gauge, [&](const Covariance& c) { return c.marginals({set}); });
  const auto count = size_t(p.block_count({set}));
  const auto n =
      size_t(std::llround(std::sqrt(double(matrices.size()) / double(std::max<size_t>(count, 1)))));
  return to_numpy(std::move(matrices), {count, n, n});
}

/// Replaces the values of a set by ones that add_blocks() would take.
void set_values(Problem& problem, int set, const Matrix<double>& values) {
  const SetState& state = problem.state().set({set}, "solve set_values");
  const std::string where = "solve blocks " + state.name;
  const auto from = span_of(values);
  const auto to = problem.values(BlockSet{set});
  if (from.size() != to.size())
    throw InputError(std::to_string(from.size()) + " values", where, std::to_string(to.size()));
  check_values(*state.manifold, from, where);
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace

void bind_solve(nb::module_& module) {
  nb::class_<Problem>(module, "Problem")
      .def(nb::init<>())
      .def(
          "add_blocks",
          [](Problem& p, const std::string& name, const std::string& manifold, const Matrix<double>& values) {
            return p.add_blocks(name, manifold_of(manifold, int(values.shape(1))), span_of(values)).id;
          })
      .def("add_terms", &add_terms, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg(), nb::arg(), nb::arg(), nb::arg().none() = nb::none())
      .def("add_factors", &add_factors)
      .def("add_host_terms", &add_host_terms, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def("marginalize", &marginalize_blocks)
      .def("report",
           [](const Problem& p, OpenDevice& open, int named) {
             return from_document(freely([&] { return document_of(diagnose(p, *open.context, named)); }));
           })
      .def("influence", &influence)
      .def("erase_terms", [](Problem& p, int terms) { p.erase(TermSet{terms}); })
      .def("erase_blocks",
           [](Problem& p, int set, const std::vector<int64_t>& blocks) { p.erase(BlockSet{set}, blocks); })
      .def("block_numbers", [](const Problem& p, int set) { return p.block_numbers({set}); })
      .def("append_blocks",
           [](Problem& p, int set, const Matrix<double>& values) {
             return p.append_blocks({set}, span_of(values));
           })
      .def("set_data", [](Problem& p, int terms, const Matrix<double>& data,
                          int64_t first) { p.set_data({terms}, span_of(data), first); })
      .def("enable",
           [](Problem& p, int terms, const std::vector<int64_t>& which, bool enabled) {
             for (const int64_t instance : which) p.enable({terms}, instance, enabled);
           })
      .def("enable_all", [](Problem& p, int terms, bool enabled) { p.enable({terms}, enabled); })
      .def("enabled",
           [](const Problem& p, int terms, int64_t instance) { return p.enabled({terms}, instance); })
      .def("weigh",
           [](Problem& p, int terms, const std::vector<double>& weights) { p.weigh({terms}, weights); })
      .def("remove", [](Problem& p, int terms) { p.remove({terms}); })
      .def("instance_count", [](const Problem& p, int terms) { return p.instance_count({terms}); })
      .def("block_count", [](const Problem& p, int set) { return p.block_count({set}); })
      .def("fix", [](Problem& p, int set, int64_t block, bool fixed) { p.fix({set}, block, fixed); })
      .def("fix_coordinates", [](Problem& p, int set, int64_t block,
                                 const std::vector<int>& which) { p.fix_coordinates({set}, block, which); })
      .def("first_column",
           [](const Problem& p, int set, int64_t block) { return first_column(p, {set}, block); })
      .def("bound", [](Problem& p, int set, int64_t block, int component, double lower,
                       double upper) { p.bound({set}, block, component, lower, upper); })
      .def("values", [](const Problem& p, int set) { return values_of(p, {set}); })
      .def("set_values", &set_values)
      .def_prop_ro("residual_count", &Problem::residual_count)
      .def_prop_ro("variable_count", &Problem::variable_count)
      .def("minimize",
           [](Problem& p, OpenDevice& open, const nb::dict& arguments) {
             return summary_of(with_options<Options>(
                 arguments, "lockstep.solve.Problem.minimize",
                 [&, callback = callback_of(arguments), prepare = prepare_of(arguments)](Options& o) {
                   o.callback = callback, o.prepare = prepare;
                   return minimize(p, *open.context, o);
                 },
                 {"callback", "prepare"}));
           })
      .def("evaluate", &evaluation)
      .def("instances", &instances)
      .def("covariance", &covariance_of)
      .def("marginals", &marginals_of);
  bind_factors(module);
  bind_smoother(module);
  bind_content(module);
  bind_runs(module);
  bind_readers(module);
}

}  // namespace lockstep::python
