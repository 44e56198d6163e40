// Triangle meshes of a page: read from bytes, their energies minimised while the page shows every state.
#include <chrono>
#include <optional>

#include "calls.hpp"
#include "io/meshes/mesh.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/optimize.hpp"
#include "objects.hpp"
#include "page_context.hpp"
#include "page_view.hpp"
#include "solve/mesh/energies/mesh_problem.hpp"
#include "solve/mesh/repair.hpp"
#include "solve/minimize/methods/evaluator_objective.hpp"

namespace lockstep::web {

namespace {

using solve::mesh::MeshProblem;
using Clock = std::chrono::steady_clock;

struct Shape {
  io::TriangleMesh mesh;
  solve::mesh::Connectivity connectivity;
};

/// A problem, where its points are now, and what computes on the device in use.
struct Minimisation {
  MeshProblem problem;
  std::vector<double> start;  // of the vertices
  std::vector<double> state;  // numbers of all blocks; the vertices come first
  PageContext context;
  std::unique_ptr<solve::Evaluator> evaluator;
};

Handles<Shape>& shapes() {
  static Handles<Shape> all{"mesh"};
  return all;
}
Handles<std::unique_ptr<Minimisation>>& minimisations() {
  static Handles<std::unique_ptr<Minimisation>> all{"mesh problem"};
  return all;
}

constexpr int64_t kMostVertices = 200'000;  // that a page minimises and draws

Json read_mesh(const Json& request) {
  const std::string name = text(request, "name");
  const std::string_view bytes = page_bytes(request);
  Shape shape;
  shape.mesh = io::within_memory(name, [&] {
    const std::string suffix = io::mesh_suffix(name);
    const std::span raw = std::as_bytes(std::span(bytes));
    return suffix == ".obj"   ? io::parse_obj(bytes, name)
           : suffix == ".ply" ? io::parse_ply(raw, name)
                              : io::parse_stl(raw, name);
  });
  if (shape.mesh.vertex_count() > kMostVertices && shape.mesh.face_count() > kMostVertices)
    throw InputError("a mesh of " + std::to_string(shape.mesh.vertex_count()) + " vertices", name,
                     "at most " + std::to_string(kMostVertices) + " on a page");
  const solve::mesh::Repair repaired = solve::mesh::repair(shape.mesh);
  shape.mesh = repaired.mesh;
  shape.connectivity = solve::mesh::build_connectivity(shape.mesh, name);
  Json answer{{"vertices", shape.connectivity.vertices},
              {"edges", shape.connectivity.edges.size()},
              {"triangles", shape.connectivity.triangles},
              {"boundaries", shape.connectivity.boundary_loops.size()},
              {"pieces", shape.connectivity.components},
              {"positions", shape.mesh.vertices},
              {"faces", shape.mesh.faces},
              {"repaired",
               {{"welded", repaired.welded},
                {"dropped", repaired.dropped},
                {"turned", repaired.turned},
                {"copied", repaired.copied},
                {"unused", repaired.unused}}}};
  answer["handle"] = shapes().add(std::move(shape));
  return answer;
}

std::vector<int32_t> vertices_of(const Json& request, const char* name, int64_t count) {
  std::vector<int32_t> found;
  for (const int64_t v : wholes(request, name, size_t(count)))
    found.push_back(int32_t(whole({{name, v}}, name, 0, count - 1)));
  return found;
}

std::vector<double> numbers_of(const Json& request, const char* name, size_t count) {
  const Json& given = member(request, name);
  if (!given.is_array() || given.size() != count)
    throw InputError(name, "lockstep.js", std::to_string(count) + " numbers");
  std::vector<double> all;
  for (const Json& number : given) {
    if (!number.is_number()) throw InputError(name, "lockstep.js", "finite numbers");
    all.push_back(number.get<double>());
  }
  return all;
}

Json mesh_problem(const Json& request) {
  const Shape& shape = shapes().at(member(request, "mesh"));
  solve::mesh::MeshOptions options;
  options.energy = text(request, "energy");
  options.fixed = vertices_of(request, "fixed", shape.connectivity.vertices);
  for (const int32_t v : vertices_of(request, "handles", shape.connectivity.vertices))
    options.handles.push_back({v, solve::mesh::point(shape.mesh, v)});
  auto made = std::unique_ptr<Minimisation>(
      new Minimisation{MeshProblem(shape.mesh, shape.connectivity, options),
                       numbers_of(request, "start", 3 * size_t(shape.connectivity.vertices)),
                       {},
                       PageContext(request),
                       {}});
  const std::string device = made->context->device().info().description;
  return {{"handle", minimisations().add(std::move(made))}, {"device", device}};
}

Minimisation& minimisation(const Json& request) { return *minimisations().at(member(request, "problem")); }

/// Where the page dragged its handles to.
void move_handles(Minimisation& m, const Json& request) {
  const std::vector<solve::mesh::Handle>& handles = m.problem.options().handles;
  const std::vector<double> to = numbers_of(request, "targets", 3 * handles.size());
  for (size_t k = 0; k < to.size(); ++k) m.state[3 * size_t(handles[k / 3].vertex) + k % 3] = to[k];
}

/// Shows states to the page, no more often than it draws.
class Frames {
 public:
  Frames(const solve::Evaluator& evaluator, int64_t vertices, int done, double budget_ms)
      : evaluator_(evaluator), vertices_(size_t(vertices)), done_(done), budget_ms_(budget_ms) {}
  bool operator()(const optimize::Iteration& row) {
    if (row.iteration == 1 || milliseconds(shown_) > kPeriod) {
      if (!show(row)) return false;
      shown_ = Clock::now();
    }
    // A core that cannot wait gives the thread back.
    return lockstep_may_wait() != 0 || milliseconds(begun_) < budget_ms_;
  }

 private:
  static constexpr double kPeriod = 30;
  static double milliseconds(Clock::time_point since) {
    return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
  }
  bool show(const optimize::Iteration& row) {
    const std::vector<double> state = evaluator_.state();
    positions_.assign(state.begin(), state.begin() + std::ptrdiff_t(3 * vertices_));
    const auto see = lockstep_may_wait() ? lockstep_draw : lockstep_frame;
    return see(positions_.data(), uint32_t(vertices_), uint32_t(done_ + row.iteration), row.value) != 0;
  }
  const solve::Evaluator& evaluator_;
  size_t vertices_;
  int done_;
  double budget_ms_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point shown_ = begun_;
  std::vector<float> positions_;
};

Json minimise_mesh(const Json& request) {
  Minimisation& m = minimisation(request);
  optimize::Options options;
  options.max_iterations = int(whole(request, "iterations", 1, 1'000'000));
  options.value_tolerance = 1e-7;
  const int done = int(whole(request, "done", 0, INT32_MAX));
  const double budget = double(whole(request, "budget", 1, 60'000));
  const int64_t vertices = m.problem.connectivity().vertices;
  const auto start = Clock::now();
  optimize::Result result;
  std::string device;
  m.context->run_stage("mesh.minimise", [&](const Device& on) {
    try {
      if (!m.evaluator || m.evaluator->device().info().name != on.info().name)
        m.evaluator = std::make_unique<solve::Evaluator>(
            m.problem.problem(), on, on.info().limits.f64 ? solve::Precision::mixed : solve::Precision::f32,
            solve::EvaluatorOptions{.uses = solve::kUseGradient});
      if (m.state.empty()) {
        m.state = m.evaluator->state();
        std::copy(m.start.begin(), m.start.end(), m.state.begin());
      }
      move_handles(m, request);
      m.evaluator->set_state(m.state);
      solve::EvaluatorObjective objective(*m.evaluator);
      Frames frames(*m.evaluator, vertices, done, budget);
      options.callback = [&](const optimize::Iteration& row) { return frames(row); };
      result = optimize::minimize(objective, options);
      m.state = m.evaluator->state();
      device = on.info().description;
    } catch (const DeviceError&) {
      m.evaluator.reset();
      throw;
    }
  });
  const std::vector<double> positions(m.state.begin(), m.state.begin() + std::ptrdiff_t(3 * vertices));
  std::vector<double> costs;
  for (const optimize::Iteration& row : result.trace) costs.push_back(row.value);
  Json answer = m.context.status();
  answer.update({{"termination", name(result.termination)},
                 {"iterations", result.iterations},
                 {"first_cost", result.first_value},
                 {"cost", result.value},
                 {"costs", costs},
                 {"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
                 {"device", device},
                 {"positions", positions}});
  return answer;
}

}  // namespace

void add_mesh_calls(Calls& calls) {
  calls["mesh"] = read_mesh;
  calls["free_mesh"] = [](const Json& r) { return shapes().remove(member(r, "mesh")), Json(); };
  calls["mesh_problem"] = mesh_problem;
  calls["free_mesh_problem"] = [](const Json& r) {
    return minimisations().remove(member(r, "problem")), Json();
  };
  calls["minimise_mesh"] = minimise_mesh;
}

}  // namespace lockstep::web
