// A pose graph from a g2o file.
#include <fmt/format.h>

#include <algorithm>

#include "core/record/journal.hpp"
#include "core/reports/json_text.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/datasets/g2o.hpp"
#include "solve/datasets/pose_graph_start.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {

PoseGraphRun::PoseGraphRun() { options.max_iterations = 500; }

PoseGraphResult run(Context& context, const PoseGraphRun& wanted) {
  check_run(wanted);
  PoseGraphResult out;
  const io::PoseGraph graph = host_stage(out.host_stages, "read", [&] {
    io::PoseGraph read = io::read_g2o(wanted.file);
    out.start = start_poses(read, wanted.start);
    journal::found("start", std::string(name(out.start)));
    return read;
  });
  PoseGraphProblem made = build(graph, wanted.loss);
  out.summary = minimize(made.problem, context, observed(wanted.options));
  if (!wanted.options.leads()) return out;
  out.dimension = graph.dimension;
  out.vertices = graph.vertex_count() + graph.landmark_count();
  out.landmarks = graph.landmark_count();
  out.edges = graph.edge_count() + graph.sight_count() + graph.link_count() + graph.bearing_count() +
              graph.prior_count();
  out.fixed = int64_t(std::max<size_t>(graph.fixed.size() + graph.landmarks.fixed.size(), 1));
  out.has_poses = graph.has_poses;
  if (!wanted.out.empty()) {
    host_stage(out.host_stages, "write", [&] { io::write_g2o(wanted.out, with_poses(graph, made)); });
    wrote(out, "out", wanted.out);
  }
  write_residuals(out, wanted.residuals, made.problem, context);
  finish(out, wanted, file_name(wanted.file));
  return out;
}

nlohmann::ordered_json document_of(const PoseGraphResult& r) {
  return whole({{"dimension", r.dimension},
                {"vertices", r.vertices},
                {"landmarks", r.landmarks},
                {"edges", r.edges},
                {"start", name(r.start)},
                {"fixed", r.fixed}},
               r);
}
std::string to_json(const PoseGraphResult& r) { return json_text(document_of(r)); }

std::string to_text(const PoseGraphResult& r) {
  const std::string landmarks = r.landmarks > 0 ? fmt::format(", {} of them landmarks", r.landmarks) : "";
  std::string text = fmt::format("{} vertices{}, {} edges in {} dimensions\n{}\n", r.vertices, landmarks,
                                 r.edges, r.dimension, outcome(r.summary));
  if (!r.has_poses)
    text += fmt::format("no poses in the file: the {} of its edges gave the start\n",
                        r.start == PoseStart::tree ? "tree" : "chordal relaxation");
  for (const auto& [what, file] : r.files)
    if (what == "out") text += fmt::format("poses: {}\n", file);
  return text;
}

}  // namespace lockstep::solve
