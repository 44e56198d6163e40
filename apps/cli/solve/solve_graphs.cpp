// `lockstep solve g2o` and `lockstep solve bal`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "solve/datasets/bal.hpp"
#include "solve/datasets/g2o.hpp"
#include "solve/datasets/pose_graph_start.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct G2oCommand {
  std::string input, out, start = "file";
  SolveOptions solve;
};

solve::PoseStart start_of(const std::string& text) {
  for (const solve::PoseStart start : {solve::PoseStart::tree, solve::PoseStart::chordal})
    if (text == solve::name(start)) return start;
  return solve::PoseStart::file;
}

int run_g2o(const CommonOptions& common, const G2oCommand& options) {
  check_solve_options(options.solve, common);
  check_folder(options.out, "--out");
  Session session(common);
  solve::PoseStart started = start_of(options.start);
  const io::PoseGraph graph = session.host_stage("read", [&] {
    io::PoseGraph read = io::read_g2o(options.input);
    started = solve::start_poses(read, started);
    return read;
  });
  solve::PoseGraphProblem made = solve::build(graph, options.input, robust_option(options.solve));
  const solve::Summary summary = run_solve(session, made.problem, options.solve);
  const int64_t edges = graph.edge_count() + graph.sight_count() + graph.link_count();
  ordered_json document{{"dimension", graph.dimension},
                        {"vertices", graph.vertex_count() + graph.landmark_count()},
                        {"landmarks", graph.landmark_count()},
                        {"edges", edges},
                        {"start", solve::name(started)},
                        {"fixed", std::max<size_t>(graph.fixed.size() + graph.landmarks.fixed.size(), 1)}};
  const std::string landmarks =
      graph.landmark_count() > 0 ? fmt::format(", {} of them landmarks", graph.landmark_count()) : "";
  std::string text = fmt::format("{} vertices{}, {} edges in {} dimensions\n{}\n",
                                 graph.vertex_count() + graph.landmark_count(), landmarks, edges,
                                 graph.dimension, outcome(summary));
  if (!graph.has_poses)
    text += fmt::format("no poses in the file: the {} of its edges gave the start\n",
                        started == solve::PoseStart::tree ? "tree" : "chordal relaxation");
  if (!options.out.empty()) {
    session.host_stage("write", [&] { io::write_g2o(options.out, solve::with_poses(graph, made)); });
    document["out"] = options.out;
    text += fmt::format("poses: {}\n", options.out);
  }
  return finish_solve(session, options.solve, summary, std::move(document), text,
                      std::filesystem::path(options.input).filename().string());
}

struct BalCommand {
  std::string input, synthetic, out, ply;
  int64_t seed = 1;
  double noise = 0.5, disturbance = 1;
  SolveOptions solve;
};

int64_t count_of(const std::string& text) {
  const auto number = parse_number(text);
  if (!number || *number != std::floor(*number) || *number < 1 || *number > 1e15)
    throw InputError(fmt::format("'{}'", text), "--synthetic", "whole numbers CAMERAS,OBSERVATIONS");
  return int64_t(*number);
}

io::BalProblem bal_input(Session& session, const BalCommand& options) {
  if (options.input.empty() == options.synthetic.empty())
    throw InputError(options.input.empty() ? "no input" : "a file and --synthetic", "lockstep solve bal",
                     "FILE, or --synthetic CAMERAS,OBSERVATIONS");
  if (!options.input.empty()) return session.host_stage("read", [&] { return io::read_bal(options.input); });
  const std::vector<std::string> counts = split_list(options.synthetic, "--synthetic");
  if (counts.size() != 2)
    throw InputError(fmt::format("'{}'", options.synthetic), "--synthetic",
                     "two numbers CAMERAS,OBSERVATIONS");
  solve::SyntheticBal scene{.cameras = count_of(counts[0]),
                            .observations = count_of(counts[1]),
                            .seed = uint64_t(options.seed),
                            .noise_px = options.noise,
                            .disturbance = options.disturbance};
  return session.host_stage("generate", [&] { return solve::synthetic_bal(scene); });
}

int run_bal(const CommonOptions& common, const BalCommand& options) {
  check_solve_options(options.solve, common);
  check_folder(options.out, "--out");
  check_folder(options.ply, "--ply");
  if (options.synthetic.empty())
    for (const char* option : {"--seed", "--noise", "--disturbance"})
      if (given(*options.solve.app, option))
        throw InputError("nothing uses it with a file", option, "--synthetic CAMERAS,OBSERVATIONS");
  Session session(common);
  const io::BalProblem bal = bal_input(session, options);
  const std::string where = options.input.empty() ? "--synthetic" : options.input;
  solve::BalGraph graph =
      session.host_stage("build", [&] { return solve::build(bal, where, robust_option(options.solve)); });
  const solve::Summary summary = run_solve(session, graph.problem, options.solve);
  // Root mean square of the residuals' lengths, in pixels.
  const double rms = std::sqrt(2 * summary.final_cost / double(bal.observation_count()));
  ordered_json document{{"cameras", bal.camera_count()},
                        {"points", bal.point_count()},
                        {"observations", bal.observation_count()},
                        {"rms_px", options.solve.robust == "none" ? ordered_json(rms) : ordered_json()}};
  std::string text = fmt::format("{} cameras, {} points, {} observations\n{}\n", bal.camera_count(),
                                 bal.point_count(), bal.observation_count(), outcome(summary));
  if (options.solve.robust == "none") text += fmt::format("residuals of {:.4g} px (rms)\n", rms);
  if (!options.out.empty() || !options.ply.empty()) {
    session.host_stage("write", [&] {
      const io::BalProblem solved = solve::with_values(bal, graph);
      if (!options.out.empty()) io::write_bal(options.out, solved);
      if (!options.ply.empty()) io::write_ply(options.ply, solve::point_cloud(solved));
    });
  }
  for (const auto& [name, file] : {std::pair("out", options.out), std::pair("ply", options.ply)})
    if (!file.empty()) document[name] = file;
  return finish_solve(session, options.solve, summary, std::move(document), text,
                      std::filesystem::path(where).filename().string());
}

}  // namespace

void add_solve_g2o(CommandList& commands, CLI::App& solve) {
  Command& command = add_command(commands, solve, "g2o", "a pose graph in 2 or 3 dimensions");
  auto options = std::make_shared<G2oCommand>();
  add_positional(*command.app, "FILE", options->input,
                 "g2o: poses and landmarks in 2 or 3 dimensions, edges between them, FIX", true);
  add_choice(
      *command.app, "--start", options->start,
      "file: the file's poses; tree: those that edges give, breadth first; chordal: of all edges at once "
      "(file; tree where the file has no poses)",
      {"file", "tree", "chordal"});
  add_file(*command.app, "--out", options->out, "the graph with the poses that were found");
  options->solve.max_iterations = 500;  // noisy odometry starts far from the minimum; steps are cheap
  add_solve_options(*command.app, options->solve);
  add_common(command, "lockstep solve g2o sphere2500.g2o --linear cholesky --out solved.g2o");
  command.run = [&command, options] { return run_g2o(command.common, *options); };
}

void add_solve_bal(CommandList& commands, CLI::App& solve) {
  Command& command = add_command(commands, solve, "bal", "bundle adjustment: cameras and points from pixels");
  auto options = std::make_shared<BalCommand>();
  CLI::App& app = *command.app;
  add_positional(app, "FILE", options->input, "a problem in BAL's text format", false);
  add_text(app, "--synthetic", options->synthetic, "a ring of cameras around a column instead of a file",
           "CAMERAS,OBSERVATIONS");
  add_integer(app, "--seed", options->seed, "of --synthetic (1)", "N", 0, INT64_MAX);
  add_number(app, "--noise", options->noise, "standard deviation of synthetic observations (0.5)", "PX",
             {.low = 0});
  add_number(app, "--disturbance", options->disturbance,
             "distance of the synthetic start from the truth (1), 0: none", "X", {.low = 0, .high = 100});
  add_file(app, "--out", options->out, "the problem with the cameras and points that were found");
  add_file(app, "--ply", options->ply, "points in grey, cameras in red");
  options->solve.function_tolerance = 1e-6;  // as is usual for bundle adjustment
  add_solve_options(app, options->solve);
  add_common(command, "lockstep solve bal problem-49-7776-pre.txt --linear schur-pcg --ply scene.ply");
  command.run = [&command, options] { return run_bal(command.common, *options); };
}

}  // namespace lockstep::cli
