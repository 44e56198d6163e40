// Nonlinear least squares with residuals traced from Python, and readers of the usual problem files.
#include <nanobind/ndarray.h>

#include <cmath>

#include "bind.hpp"
#include "io/meshes/mesh.hpp"
#include "io/problems/bal.hpp"
#include "io/problems/g2o.hpp"
#include "solve/datasets/bal.hpp"
#include "solve/datasets/g2o.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::python {
namespace {

using autodiff::Value;
using namespace lockstep::solve;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
std::span<const T> span_of(const Matrix<T>& m) {
  return {m.data(), m.shape(0) * m.shape(1)};
}

/// A NumPy array of its own.
template <class T>
nb::object to_numpy(std::vector<T> values, std::vector<size_t> shape) {
  auto* const kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

Manifold manifold_of(const std::string& name, int size) {
  if (name == "euclidean") return euclidean(size);
  if (name == "so2") return so2();
  if (name == "so3") return so3();
  if (name == "se2") return se2();
  if (name == "se3") return se3();
  if (name == "sphere2") return sphere2();
  throw InputError("manifold " + name, "Problem.add_blocks", "euclidean, so2, so3, se2, se3 or sphere2");
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

template <class E>
E named(const std::string& text, std::initializer_list<E> all, const char* what) {
  std::string names;
  for (E one : all) {
    if (name(one) == text) return one;
    names += (names.empty() ? "" : ", ") + std::string(name(one));
  }
  throw InputError(std::string(what) + " " + text, "lockstep.solve", names);
}

nb::dict row_of(const Iteration& i) {
  nb::dict d;
  d["iteration"] = i.iteration;
  d["cost"] = i.cost;
  d["cost_change"] = i.cost_change;
  d["gradient_max"] = i.gradient_max;
  d["step_norm"] = i.step_norm;
  d["damping"] = i.damping;
  d["accepted"] = i.accepted;
  d["linear_iterations"] = i.linear_iterations;
  d["seconds"] = i.seconds;
  return d;
}

Options options_of(const nb::dict& given) {
  Options o;
  for (const auto& [key, value] : given) {
    const std::string k = nb::cast<std::string>(key);
    if (k == "method")
      o.method = named(nb::cast<std::string>(value),
                       {Method::lm, Method::gn, Method::dogleg, Method::lbfgs, Method::newton, Method::sgd,
                        Method::adam, Method::adamw},
                       "method");
    else if (k == "linear")
      o.linear = named(nb::cast<std::string>(value),
                       {Linear::automatic, Linear::dense_cholesky, Linear::dense_qr, Linear::cholesky,
                        Linear::pcg, Linear::schur_pcg, Linear::dense_schur},
                       "linear solver");
    else if (k == "precision")
      o.precision = named(nb::cast<std::string>(value), {Precision::f64, Precision::f32, Precision::mixed},
                          "precision");
    else if (k == "max_iterations")
      o.max_iterations = nb::cast<int>(value);
    else if (k == "function_tolerance")
      o.function_tolerance = nb::cast<double>(value);
    else if (k == "gradient_tolerance")
      o.gradient_tolerance = nb::cast<double>(value);
    else if (k == "parameter_tolerance")
      o.parameter_tolerance = nb::cast<double>(value);
    else if (k == "initial_damping")
      o.initial_damping = nb::cast<double>(value);
    else if (k == "learning_rate")
      o.learning_rate = nb::cast<double>(value);
    else if (k == "threshold")
      o.threshold = nb::cast<int64_t>(value);
    else if (k == "callback") {
      if (value.is_none()) continue;
      o.callback = [kept = keep<void>(nb::borrow(value))](const Iteration& i) {
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        const nb::object go = nb::handle(static_cast<PyObject*>(kept.get()))(row_of(i));
        return go.is_none() || nb::cast<bool>(go);
      };
    } else {
      throw InputError("option " + k, "Problem.minimize", "an option of lockstep.solve");
    }
  }
  if (!o.callback)
    o.callback = [](const Iteration&) {
      const nb::gil_scoped_acquire lock;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return true;
    };
  return o;
}

nb::dict summary_of(const Summary& s) {
  nb::dict d;
  d["initial_cost"] = s.initial_cost;
  d["final_cost"] = s.final_cost;
  d["gradient_max"] = s.gradient_max;
  d["iterations"] = s.iterations;
  d["linear_iterations"] = s.linear_iterations;
  d["residuals"] = s.residuals;
  d["variables"] = s.variables;
  d["kernels"] = s.kernels;
  d["termination"] = std::string(name(s.termination));
  d["converged"] = converged(s.termination);
  d["message"] = s.message;
  d["method"] = std::string(name(s.method));
  d["linear"] = std::string(name(s.linear_used));
  d["device"] = s.device;
  d["seconds"] = s.seconds;
  nb::list trace;
  for (const Iteration& i : s.trace) trace.append(row_of(i));
  d["trace"] = trace;
  return d;
}

nb::object values_of(const Problem& p, BlockSet set) {
  const auto values = p.values(set);
  const auto count = size_t(p.block_count(set));
  return to_numpy(std::vector<double>(values.begin(), values.end()),
                  {count, count ? values.size() / count : 0});
}

/// Cost, gradient, residuals and Jacobian (CSR) at the problem's values, by tangent coordinates.
nb::dict evaluate(const Problem& p, const OpenDevice& open) {
  double cost = 0;
  std::vector<double> gradient, residuals, entries;
  std::vector<int64_t> columns, begins{0};
  {
    const nb::gil_scoped_release free;
    Evaluator evaluator(p, open.device(), Precision::f64, {0, kUseLinearize | kUseHost});
    evaluator.set_state(p.state().values);
    cost = evaluator.linearize();
    gradient = open.device().download<f64>(evaluator.gradient());
    for (const HostBatch& batch : evaluator.host_batches()) {
      if (batch.energy)
        throw InputError("energy terms", "Problem.evaluate", "residuals, which have a Jacobian");
      int width = 0;
      for (int w : batch.widths) width += w;
      residuals.insert(residuals.end(), batch.residuals.begin(), batch.residuals.end());
      for (int64_t i = 0; i < batch.instances; ++i)
        for (int row = 0; row < batch.rows; ++row) {
          const double* from = batch.jacobian.data() + (i * batch.rows + row) * width;
          for (size_t slot = 0; slot < batch.widths.size(); from += batch.widths[slot++]) {
            const int64_t first = batch.columns[size_t(i) * batch.widths.size() + slot];
            for (int k = 0; first >= 0 && k < batch.widths[slot]; ++k) {
              columns.push_back(first + k);
              entries.push_back(from[k]);
            }
          }
          begins.push_back(int64_t(columns.size()));
        }
    }
  }
  nb::dict d;
  d["cost"] = cost;
  const size_t n = gradient.size(), rows = residuals.size(), count = entries.size();
  d["gradient"] = to_numpy(std::move(gradient), {n});
  d["residuals"] = to_numpy(std::move(residuals), {rows});
  d["data"] = to_numpy(std::move(entries), {count});
  d["indices"] = to_numpy(std::move(columns), {count});
  d["indptr"] = to_numpy(std::move(begins), {rows + 1});
  d["columns"] = n;
  return d;
}

void add_terms(Problem& p, const std::string& name, const std::vector<int>& slots, int data,
               nb::object residual, const std::string& loss, bool energy, const std::vector<int>& sets,
               const Matrix<int32_t>& indices, const Matrix<double>& numbers) {
  TermType type;
  type.name = name;
  type.slots = slots;
  type.data = data;
  type.residual = residual_of(std::move(residual), slots);
  type.loss = parse_robust_loss(loss);
  type.energy = energy;
  std::vector<BlockSet> blocks;
  for (int id : sets) blocks.push_back({id});
  p.add_terms(type, blocks, span_of(indices), span_of(numbers));
}

void bind_readers(nb::module_& module) {
  module.def("read_mesh", [](const std::string& file) {
    io::TriangleMesh mesh = io::read_mesh(file);
    const auto vertices = size_t(mesh.vertex_count()), faces = size_t(mesh.face_count());
    return nb::make_tuple(to_numpy(std::move(mesh.vertices), {vertices, 3}),
                          to_numpy(std::move(mesh.faces), {faces, 3}));
  });
  module.def("read_g2o", [](const std::string& file, const std::string& loss) {
    auto graph = build(io::read_g2o(file), parse_robust_loss(loss));
    return nb::make_tuple(nb::cast(std::move(graph.problem)), graph.poses.id, graph.landmarks.id);
  });
  module.def("read_bal", [](const std::string& file, const std::string& loss) {
    BalGraph graph = build(io::read_bal(file), file, parse_robust_loss(loss));
    return nb::make_tuple(nb::cast(std::move(graph.problem)), graph.cameras.id, graph.points.id);
  });
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
      .def("add_terms", &add_terms)
      .def("fix", [](Problem& p, int set, int64_t block, bool fixed) { p.fix({set}, block, fixed); })
      .def("bound", [](Problem& p, int set, int64_t block, int component, double lower,
                       double upper) { p.bound({set}, block, component, lower, upper); })
      .def("values", [](const Problem& p, int set) { return values_of(p, {set}); })
      .def("set_values",
           [](Problem& p, int set, const Matrix<double>& values) {
             const auto to = p.values(BlockSet{set});
             const auto from = span_of(values);
             if (from.size() != to.size())
               throw InputError(std::to_string(from.size()) + " numbers", "Problem.set_values",
                                std::to_string(to.size()));
             std::copy(from.begin(), from.end(), to.begin());
           })
      .def_prop_ro("residual_count", &Problem::residual_count)
      .def_prop_ro("variable_count", &Problem::variable_count)
      .def_prop_ro("batch_count", &Problem::batch_count)
      .def("minimize",
           [](Problem& p, OpenDevice& open, const nb::dict& options) {
             const Options o = options_of(options);
             Summary summary;
             {
               const nb::gil_scoped_release free;
               summary = minimize(p, *open.context, o);
             }
             return summary_of(summary);
           })
      .def("evaluate", &evaluate)
      .def("covariance",
           [](const Problem& p, OpenDevice& open, const std::vector<std::pair<int, int64_t>>& blocks) {
             std::vector<std::pair<BlockSet, int64_t>> list;
             for (const auto& [set, block] : blocks) list.push_back({BlockSet{set}, block});
             std::vector<double> matrix = covariance(p, *open.context, list);
             const auto n = size_t(std::llround(std::sqrt(double(matrix.size()))));
             return to_numpy(std::move(matrix), {n, n});
           });
  bind_readers(module);
}

}  // namespace lockstep::python
