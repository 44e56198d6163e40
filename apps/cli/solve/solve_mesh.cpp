// `lockstep solve mesh`: energies of triangle meshes, held by vertices and handles, with pictures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

constexpr const char* kByEnergy = "by the energy";

struct MeshCommand {
  std::string input, energy, fix, handle, handles, out, picture;
  std::optional<double> attach, stiffness, bend, gravity, rest_scale;
  int64_t iterations = 0, seed = 0, width = 900;
  std::string view, up = "z", color = "plain";
  bool edges = false, smooth = false, compare = false, repair = false;
  SolveOptions solve;
};

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

/// Options of the picture without one, or of a picture that does not show them.
void check_shown(const MeshCommand& command) {
  const auto refuse = [&](const char* option, const char* expected) {
    if (given(*command.solve.app, option)) throw InputError("nothing shows it", option, expected);
  };
  if (command.picture.empty())
    for (const char* option : {"--color", "--view", "--up", "--width", "--edges", "--smooth", "--compare"})
      refuse(option, "--picture FILE beside it");
  if (command.energy == "parameterize")
    for (const char* option : {"--color", "--compare"}) refuse(option, "an energy other than parameterize");
}

solve::MeshPictureRun picture_of(const MeshCommand& command) {
  check_shown(command);
  solve::MeshPictureRun picture;
  picture.file = command.picture;
  picture.color = command.color == "displacement" ? solve::MeshColor::displacement
                  : command.color == "curvature"  ? solve::MeshColor::curvature
                                                  : solve::MeshColor::plain;
  if (!command.view.empty()) picture.view = direction(command.view);
  picture.up = command.up == "x" ? solve::UpAxis::x : command.up == "y" ? solve::UpAxis::y : solve::UpAxis::z;
  picture.width = int(command.width);
  picture.edges = command.edges;
  picture.smooth = command.smooth;
  picture.compare = command.compare;
  return picture;
}

/// --iterations or --max-iterations.
std::optional<int> iterations_of(const MeshCommand& command) {
  const bool own = given(*command.solve.app, "--iterations"),
             shared = given(*command.solve.app, "--max-iterations");
  if (own && shared)
    throw InputError("two limits of the iterations", "--iterations", "--iterations or --max-iterations");
  if (own) return int(command.iterations);
  return shared ? std::optional(int(command.solve.max_iterations)) : std::nullopt;
}

int run_mesh(const CommonOptions& common, const MeshCommand& command) {
  SolveOptions options = command.solve;
  if (options.method == kByEnergy) options.method = solve::name(solve::usual_method(command.energy));
  check_solve_options(options, common);
  solve::MeshRun run;
  run.mesh = command.input;
  run.energy = command.energy;
  run.iterations = iterations_of(command);
  run.fix = command.fix;
  run.handles = command.handle;
  run.handles_file = command.handles;
  run.attach = command.attach;
  run.stiffness = command.stiffness;
  run.bend = command.bend;
  run.gravity = command.gravity;
  run.rest_scale = command.rest_scale;
  if (given(*command.solve.app, "--seed")) run.seed = uint64_t(command.seed);
  run.loss = robust_option(command.solve);
  run.repair = command.repair;
  run.out = command.out;
  run.picture = picture_of(command);
  Session session(common);
  set_run_options(session, options, run);
  run.method = run.options.method;
  const solve::MeshRunResult result = solve::run(session.context(), run);
  return print_run(session, options, result, to_text(result), to_json(result));
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
             solve::mesh_energies());
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
  add_output_file(app, "--out", options->out,
                  "the mesh that was found: .obj (parameterize: with u, v), .ply or .stl",
                  {".obj", ".ply", ".stl"});
  add_output_file(app, "--picture", options->picture, "PNG of it", {".png"});
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
  command.run = [&command, options] { return run_mesh(command.common, *options); };
}

}  // namespace lockstep::cli
