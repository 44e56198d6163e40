// `lockstep solve mesh`: energies of triangle meshes, held by vertices and handles, with pictures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.hpp"
#include "core/atomic_file.hpp"
#include "io/pictures/mesh_picture.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/generate.hpp"
#include "solve/mesh/geometry.hpp"
#include "solve/mesh/mesh_problem.hpp"
#include "solve/mesh/parameterize.hpp"
#include "solve/mesh/repair.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

namespace mesh = solve::mesh;
using mesh::operator-;
using nlohmann::ordered_json;

constexpr const char* kByEnergy = "by the energy";

struct MeshCommand {
  std::string input, energy, fix, handle, handles, out, picture;
  std::optional<double> attach, stiffness, bend, gravity, rest_scale;
  int64_t iterations = 0, seed = 0, width = 900;
  std::string view, up = "z", color = "plain";
  bool edges = false, smooth = false, compare = false, repair = false;
  SolveOptions solve;
};

mesh::MeshOptions mesh_options(const MeshCommand& command, const io::TriangleMesh& shape,
                               const mesh::Topology& topology) {
  mesh::MeshOptions options;
  options.energy = command.energy;
  options.attach = command.attach;
  options.stiffness = command.stiffness;
  options.bend = command.bend;
  options.gravity = command.gravity;
  options.rest_scale = command.rest_scale;
  if (given(*command.solve.app, "--seed")) options.seed = uint64_t(command.seed);
  options.loss = robust_option(command.solve);
  if (!command.fix.empty()) options.fixed = mesh::select_vertices(command.fix, shape, topology, "--fix");
  for (size_t from = 0; from < command.handle.size();) {
    const size_t to = std::min(command.handle.find(';', from), command.handle.size());
    const auto more = mesh::parse_handle(command.handle.substr(from, to - from), shape, topology, "--handle");
    options.handles.insert(options.handles.end(), more.begin(), more.end());
    from = to + 1;
  }
  if (!command.handles.empty()) {
    const auto more = mesh::read_handles(command.handles, shape);
    options.handles.insert(options.handles.end(), more.begin(), more.end());
  }
  return options;
}

ordered_json curvature_counts(const io::TriangleMesh& shape, const mesh::Topology& topology) {
  const std::vector<mesh::Curvature> kinds = mesh::classify_curvature(shape, topology);
  const auto count = [&](mesh::Curvature kind) { return std::count(kinds.begin(), kinds.end(), kind); };
  return {{"hinges", count(mesh::Curvature::hinge)},
          {"seams", count(mesh::Curvature::seam)},
          {"boundary", count(mesh::Curvature::boundary)}};
}

std::array<double, 3> direction(const std::string& text) {
  std::array<double, 3> v{};
  const std::vector<std::string> parts = split_list(text, "--view");
  for (size_t k = 0; k < parts.size() && k < 3; ++k) {
    const auto number = parse_number(parts[k]);
    if (number && std::isfinite(*number)) {
      v[k] = *number;
    } else {
      v = {};
      break;
    }
  }
  if (parts.size() != 3 || v == std::array<double, 3>{})
    throw InputError(fmt::format("'{}'", text), "--view", "three numbers X,Y,Z, not all 0");
  return v;
}

io::MeshPictureOptions picture_options(const MeshCommand& command) {
  io::MeshPictureOptions options;
  options.width = int(command.width);
  options.height = options.width * 4 / 5;
  // From the right and above, whatever points upwards.
  const char* const usual = command.up == "x" ? "0.9,1,-1.7" : command.up == "y" ? "1,0.9,1.7" : "1,-1.7,0.9";
  options.view = direction(command.view.empty() ? usual : command.view);
  options.up = command.up == "x"   ? std::array<double, 3>{1, 0, 0}
               : command.up == "y" ? std::array<double, 3>{0, 1, 0}
                                   : std::array<double, 3>{0, 0, 1};
  options.edges = command.edges;
  options.smooth = command.smooth;
  return options;
}

io::Image draw(const MeshCommand& command, const mesh::MeshProblem& problem, const io::TriangleMesh& shape,
               bool result) {
  io::MeshPictureOptions options = picture_options(command);
  const io::TriangleMesh& rest = problem.rest();
  if (command.color == "displacement") {
    options.unit = "distance moved";
    for (int64_t v = 0; v < shape.vertex_count(); ++v)
      options.values.push_back(mesh::length(mesh::point(shape, v) - mesh::point(rest, v)));
  } else if (command.color == "curvature") {
    options.unit = "|angle defect|";
    options.minimum = 0;
    for (const double defect : mesh::angle_defects(shape, problem.topology()))
      options.values.push_back(std::abs(defect));
    for (size_t v = 0; v < options.values.size(); ++v)
      if (problem.topology().on_boundary[v]) options.values[v] = 0;
    // One range for both pictures of a comparison.
    double most = 0;
    const std::vector<double> before = mesh::angle_defects(rest, problem.topology());
    for (size_t v = 0; v < before.size(); ++v)
      if (!problem.topology().on_boundary[v]) most = std::max(most, std::abs(before[v]));
    options.maximum = std::max(most, 1e-9) * 3;
  }
  if (command.compare) options.title = result ? command.energy : "before";
  return io::draw_mesh(shape, options);
}

io::Image draw_parameterization(const MeshCommand& command, const mesh::MeshProblem& problem) {
  io::MeshPictureOptions options = picture_options(command);
  const std::vector<double> uv = problem.uv(), s = mesh::stretches(problem.rest(), uv);
  io::MeshPictureOptions chequered = options;
  chequered.uv = uv;
  std::vector<double> stretch;
  for (size_t k = 0; k < s.size(); k += 2) stretch.push_back(std::max(s[k], 1 / s[k + 1]));
  options.unit = "stretch";
  options.minimum = 1;
  return io::join_images(
      {io::draw_mesh(problem.rest(), chequered), io::draw_uv_layout(problem.rest(), uv, stretch, options)});
}

void write_picture(const MeshCommand& command, const mesh::MeshProblem& problem,
                   const io::TriangleMesh& result) {
  if (command.energy == "parameterize") {
    io::write_png(command.picture, draw_parameterization(command, problem));
  } else if (command.compare) {
    io::write_png(command.picture, io::join_images({draw(command, problem, problem.rest(), false),
                                                    draw(command, problem, result, true)}));
  } else {
    io::write_png(command.picture, draw(command, problem, result, true));
  }
}

void write_mesh(const std::string& path, const mesh::MeshProblem& problem, const io::TriangleMesh& result) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  if (!problem.uv().empty() && (suffix == ".obj" || suffix == ".OBJ")) {
    write_file(path, mesh::obj_with_uv(problem.rest(), problem.uv()));
  } else {
    io::write_mesh(path, result);
  }
}

/// Options of the picture without one, or of a picture that does not show them.
void check_picture(const MeshCommand& command) {
  const auto refuse = [&](const char* option, const char* expected) {
    if (given(*command.solve.app, option)) throw InputError("nothing shows it", option, expected);
  };
  if (command.picture.empty())
    for (const char* option : {"--color", "--view", "--up", "--width", "--edges", "--smooth", "--compare"})
      refuse(option, "--picture FILE beside it");
  if (command.energy == "parameterize")
    for (const char* option : {"--color", "--compare"}) refuse(option, "an energy other than parameterize");
  if (!command.picture.empty()) picture_options(command);
  check_folder(command.picture, "--picture");
}

void check_output(const std::string& path) {
  check_folder(path, "--out");
  const std::string suffix = std::filesystem::path(path).extension().string();
  if (!path.empty() && suffix != ".obj" && suffix != ".ply" && suffix != ".stl")
    throw InputError(fmt::format("'{}'", path), "--out", "a name that ends in .obj, .ply or .stl");
}

// What an energy says about a mesh beside the cost: members of the document and lines of the text.
void describe(const MeshCommand& command, const mesh::MeshProblem& problem, const io::TriangleMesh& result,
              ordered_json& document, std::string& text) {
  const mesh::Topology& topology = problem.topology();
  if (command.energy == "parameterize") {
    const std::vector<double> uv = problem.uv(), s = mesh::stretches(problem.rest(), uv);
    double most = 1;
    for (size_t k = 0; k < s.size(); k += 2) most = std::max({most, s[k], 1 / s[k + 1]});
    const double energy = mesh::symmetric_dirichlet(problem.rest(), uv);
    document["symmetric_dirichlet"] = energy;
    document["largest_stretch"] = most;
    document["turned_over"] = mesh::turned_over(problem.rest(), uv);
    text += fmt::format("symmetric Dirichlet energy {:.6f} (4: isometric), largest stretch {:.4f}\n", energy,
                        most);
    return;
  }
  document["curvature_before"] = curvature_counts(problem.rest(), topology);
  document["curvature_after"] = curvature_counts(result, topology);
  const auto names = mesh::developability_names();
  if (const auto name = std::find(names.begin(), names.end(), command.energy); name != names.end()) {
    const auto kind = mesh::Developability(name - names.begin());
    const auto sum = [&](const io::TriangleMesh& shape) {
      double total = 0;
      for (const double e : mesh::star_energies(kind, shape, topology))
        if (!std::isnan(e)) total += e;
      return total;
    };
    document["developability_before"] = sum(problem.rest());
    document["developability_after"] = sum(result);
    text += fmt::format("developability {:.6g} to {:.6g}; hinges {} to {} of {} vertices\n",
                        document["developability_before"].get<double>(),
                        document["developability_after"].get<double>(),
                        document["curvature_before"]["hinges"].get<int64_t>(),
                        document["curvature_after"]["hinges"].get<int64_t>(), topology.vertices);
  }
}

int run(const CommonOptions& common, const MeshCommand& command) {
  const mesh::EnergyDefaults defaults = mesh::energy_defaults(command.energy);
  SolveOptions solve_options = command.solve;
  if (solve_options.method == kByEnergy) solve_options.method = solve::name(defaults.method);
  check_solve_options(solve_options, common);
  check_output(command.out);
  check_picture(command);
  if (given(*command.solve.app, "--iterations")) {
    if (given(*command.solve.app, "--max-iterations"))
      throw InputError("two limits of the iterations", "--iterations", "--iterations or --max-iterations");
    solve_options.max_iterations = command.iterations;
  } else if (!given(*command.solve.app, "--max-iterations")) {
    solve_options.max_iterations = defaults.iterations;
  }
  Session session(common);
  mesh::Repair repaired;
  mesh::MeshProblem problem = session.host_stage("read", [&] {
    std::optional<io::TriangleMesh> made = mesh::generate(command.input);
    io::TriangleMesh shape = made ? std::move(*made) : io::read_mesh(command.input);
    if (command.repair) {
      repaired = mesh::repair(shape);
      shape = std::move(repaired.mesh);
    }
    mesh::Topology topology = mesh::build_topology(shape, command.input);
    const mesh::MeshOptions options = mesh_options(command, shape, topology);
    return mesh::MeshProblem(std::move(shape), std::move(topology), options);
  });

  const solve::Summary summary =
      mesh::minimize_mesh(problem, session.context(), minimize_options(session, solve_options));

  const io::TriangleMesh result = problem.result();
  const mesh::Topology& topology = problem.topology();
  ordered_json document{{"mesh", command.input},
                        {"energy", command.energy},
                        {"vertices", topology.vertices},
                        {"edges", topology.edges.size()},
                        {"triangles", topology.triangles},
                        {"boundary_loops", topology.boundary_loops.size()},
                        {"euler_characteristic", topology.euler_characteristic()},
                        {"fixed", problem.options().fixed.size()},
                        {"handles", problem.options().handles.size()}};
  std::string text = fmt::format("{}: {} vertices, {} triangles\n{}\n", command.input, topology.vertices,
                                 topology.triangles, outcome(summary));
  if (command.repair) {
    document["repair"] = {{"welded", repaired.welded},
                          {"dropped", repaired.dropped},
                          {"turned", repaired.turned},
                          {"copied", repaired.copied},
                          {"unused", repaired.unused}};
    text +=
        fmt::format("repaired: {} vertices welded, {} copied, {} unused; {} triangles dropped, {} turned\n",
                    repaired.welded, repaired.copied, repaired.unused, repaired.dropped, repaired.turned);
  }
  describe(command, problem, result, document, text);
  if (!command.out.empty()) {
    session.host_stage("write", [&] { write_mesh(command.out, problem, result); });
    document["out"] = command.out;
    text += fmt::format("mesh: {}\n", command.out);
  }
  if (!command.picture.empty()) {
    session.host_stage("picture", [&] { write_picture(command, problem, result); });
    document["picture"] = command.picture;
    text += fmt::format("picture: {}\n", command.picture);
  }
  return finish_solve(
      session, solve_options, summary, std::move(document), text,
      fmt::format("{}, {}", command.energy, std::filesystem::path(command.input).filename().string()));
}

}  // namespace

void add_solve_mesh(CommandList& commands, CLI::App& parent) {
  Command& command = add_command(commands, parent, "mesh", "an energy of a triangle mesh");
  auto options = std::make_shared<MeshCommand>();
  CLI::App& app = *command.app;
  options->solve.method = kByEnergy;
  add_positional(app, "FILE", options->input,
                 ".obj, .ply or .stl, or icosphere:LEVEL, dome:LEVEL, grid:RxC, cylinder:AROUNDxALONG, "
                 "bar:SIDExLENGTH",
                 true);
  add_choice(app, "--energy", options->energy, "what is minimised; docs/mesh.md has the formulas",
             mesh::energy_names());
  require(app, "--energy");
  add_text(app, "--fix", options->fix, "vertices that stay: 12,20-29,boundary,z<0.1,z>90%,x<0&y<0",
           "SELECTION");
  add_text(app, "--handle", options->handle,
           "vertices that are put elsewhere, ; between: 12=X,Y,Z  z>90%+=DX,DY,DZ  z>90%@AX,AY,AZ,DEG",
           "HANDLES");
  add_file(app, "--handles", options->handles, "handles from a file: vertex x y z on each line");
  add_number(app, "--attach", options->attach,
             "stiffness that draws vertices to their places (smooth: 0.1, else 0)", "K", {.low = 0});
  add_number(app, "--stiffness", options->stiffness, "of springs (1; cloth: 100)", "K",
             {.low = 0, .low_open = true});
  add_number(app, "--bend", options->bend, "stiffness of hinges (bend: 0.09; cloth: 1e-4)", "K", {.low = 0});
  add_number(app, "--gravity", options->gravity, "force per area along -z of cloth (1)", "G", {});
  add_number(app, "--rest-scale", options->rest_scale, "rest lengths over the file's, springs and cloth (1)",
             "X", {.low = 0, .low_open = true});
  add_integer(app, "--iterations", options->iterations,
              "at most (parameterize, smooth, …: 100; cloth and developability: 200)", "N", 0, 1000000000);
  add_integer(app, "--seed", options->seed, "of partition-sampled (0)", "N", 0, INT64_MAX);
  add_file(app, "--out", options->out,
           "the mesh that was found: .obj (parameterize: with u, v), .ply or .stl");
  add_file(app, "--picture", options->picture, "PNG of it");
  add_choice(app, "--color", options->color, "of the picture (plain)",
             {"plain", "displacement", "curvature"});
  add_text(app, "--view", options->view, "direction from the mesh to the eye (from the right and above)",
           "X,Y,Z");
  add_choice(app, "--up", options->up, "axis that points upwards in the picture (z)", {"x", "y", "z"});
  add_integer(app, "--width", options->width, "of the picture in pixels (900)", "PX", 100, 8192);
  add_flag(app, "--repair", options->repair,
           "weld, drop, turn, cut: makes the file's mesh manifold before all else");
  add_flag(app, "--edges", options->edges, "draw the triangles' edges");
  add_flag(app, "--smooth", options->smooth, "smooth light instead of facets");
  add_flag(app, "--compare", options->compare, "the mesh before and after, next to each other");
  add_solve_options(app, options->solve);
  add_common(command,
             "lockstep solve mesh bar:6x36 --energy arap --fix \"z<=0\" --handle \"z>=100%@0,0,1,120\" --out "
             "twisted.obj --picture twisted.png");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
