// Bundle adjustment from a file, or of a scene with known truth.
#include <fmt/format.h>

#include <cmath>

#include "core/reports/json_text.hpp"
#include "core/schema/memory.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/datasets/bal.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {

BundleRun::BundleRun() { options.function_tolerance = 1e-6; }

BundleResult run(Context& context, const BundleRun& wanted) {
  const SyntheticScene& scene = wanted.synthetic;
  const bool synthetic = scene.cameras > 0;
  const OptionList& list = schema_of<BundleRun>();
  if (wanted.file.empty() != synthetic)
    throw list.error({OptionError::Kind::missing, "", synthetic ? "{file} with {cameras}" : "no input",
                      "{file} or {cameras}", ""});
  check_run(wanted);
  // An observation as it is read (two indices, two coordinates) and its residual's derivatives, 2 x 12 numbers in the
  // precision of the products.
  require_host_memory(list, double(scene.observations) * (24 + 24 * 4), "observations");
  BundleResult out;
  io::BalProblem bal = host_stage(out.host_stages, synthetic ? "generate" : "read", [&] {
    if (!synthetic) return io::read_bal(wanted.file);
    return synthetic_bal({scene.cameras, scene.observations, scene.seed, scene.noise_px, scene.disturbance});
  });
  const std::string where = synthetic ? "--synthetic" : wanted.file;
  BalGraph graph = host_stage(out.host_stages, "build", [&] { return build(bal, where, wanted.loss); });
  out.cameras = bal.camera_count();
  out.points = bal.point_count();
  out.observations = bal.observation_count();
  // The problem has all of the scene; what was read is needed once more where it is written.
  if (!wanted.options.leads() || (wanted.out.empty() && wanted.ply.empty())) bal = {};
  out.summary = minimize(graph.problem, context, observed(wanted.options));
  if (!wanted.options.leads()) return out;
  // Root mean square of the residuals' lengths, in pixels.
  if (wanted.loss.kind == RobustLoss::Kind::none)
    out.rms_px = std::sqrt(2 * out.summary.final_cost / double(out.observations));
  if (!wanted.out.empty() || !wanted.ply.empty()) {
    host_stage(out.host_stages, "write", [&] {
      const io::BalProblem solved = with_values(bal, graph);
      if (!wanted.out.empty()) io::write_bal(wanted.out, solved);
      if (!wanted.ply.empty()) io::write_ply(wanted.ply, point_cloud(solved));
    });
    if (!wanted.out.empty()) wrote(out, "out", wanted.out);
    if (!wanted.ply.empty()) wrote(out, "ply", wanted.ply);
  }
  write_residuals(out, wanted.residuals, graph.problem, context);
  finish(out, wanted, file_name(where));
  return out;
}

nlohmann::ordered_json document_of(const BundleResult& r) {
  return whole({{"cameras", r.cameras},
                {"points", r.points},
                {"observations", r.observations},
                {"rms_px", r.rms_px ? ordered_json(*r.rms_px) : ordered_json()}},
               r);
}
std::string to_json(const BundleResult& r) { return json_text(document_of(r)); }

std::string to_text(const BundleResult& r) {
  std::string text = fmt::format("{} cameras, {} points, {} observations\n{}\n", r.cameras, r.points,
                                 r.observations, outcome(r.summary));
  if (r.rms_px) text += fmt::format("residuals of {:.4g} px (rms)\n", *r.rms_px);
  return text;
}

}  // namespace lockstep::solve
