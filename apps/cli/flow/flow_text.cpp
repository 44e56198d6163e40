// Results of flow's commands as people read them.
#include "flow_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/flow/documents.hpp"

namespace lockstep::cli {
namespace {

std::string scores_summary(const flow::SurrogateScores& latents, const flow::FieldScores& fields) {
  const flow::RolloutScore &out = latents.held_out, &in = latents.in_sample;
  std::string text = fmt::format("{:<10} {:>12} {:>12} {:>12} {:>12}\n", "relative L2", "held out",
                                 "in sample", "persistence", "climatology");
  text += fmt::format("{:<11} {:>12.4g} {:>12.4g} {:>12.4g} {:>12.4g}\n", "latents", out.surrogate_all,
                      in.surrogate_all, out.persistence_all, out.climatology_all);
  text += fmt::format("{:<11} {:>12.4g} {:>12.4g} {:>12.4g} {:>12.4g}\n", "fields",
                      fields.surrogate.relative_l2, fields.in_sample.relative_l2,
                      fields.persistence.relative_l2, fields.climatology.relative_l2);
  const auto horizon = [&](const char* what, int64_t steps) {
    return steps < int64_t(out.surrogate.size())
               ? fmt::format("{}: loses to persistence after {} step{} of {}\n", what, steps,
                             steps == 1 ? "" : "s", out.surrogate.size())
               : fmt::format("{}: better than persistence in all {} steps\n", what, steps);
  };
  return text + horizon("latents", out.horizon) + horizon("fields", fields.horizon);
}

}  // namespace

std::string text_of(const flow::RunResult& r) {
  std::string text;
  for (size_t m = 0; m < r.budget.size(); ++m)
    text += fmt::format(
        "member {:<4} t {:<10.6g} steps {:<9} energy {:<12.6g} enstrophy {:<12.6g} palinstrophy {:.6g}\n", m,
        r.time[m], r.steps[m], r.budget[m].energy, r.budget[m].enstrophy, r.budget[m].palinstrophy);
  text += fmt::format("{:.4g} steps a second, smallest dt {:.4g}, {} fields in {}\n", r.steps_per_second,
                      r.dt_min, r.frames, r.files.front().string());
  if (r.resumed_at >= 0) text += fmt::format("went on from step {} of the checkpoint\n", r.resumed_at);
  return text;
}

std::string text_of(const flow::Moment& m, int64_t steps, double speed) {
  return fmt::format(
      "t {:<10.5g} steps {:<9} energy {:<11.5g} dE/dt {:<11.3g} enstrophy {:<11.5g} "
      "max|u| {:<9.4g} cfl {:<8.3g} {:.4g} steps/s",
      m.time, steps, m.budget.energy, m.energy.all, m.budget.enstrophy, std::max(m.max_u, m.max_v), m.courant,
      speed);
}

std::string text_of(const flow::CodecRunResult& r) {
  std::string text = fmt::format(
      "{} frames of {} x {}, codec {}, {} numbers a frame: {} bytes, {:.4g} bits a point, {:.4g} times "
      "smaller\n",
      r.frames, r.plan.options.grid.ny, r.plan.options.grid.nx, flow::name(r.plan.options.kind),
      r.latent_size, r.bytes, r.bits_per_point, r.ratio);
  if (r.errors)
    text += fmt::format(
        "relative L2 {:.4g}, largest error {:.4g}, PSNR {:.4g} dB, spectra within {:.4g} decades\n",
        r.errors->relative_l2, r.errors->max_error, r.errors->psnr, r.errors->spectrum_error);
  return text + fmt::format("{}\n", r.file.string());
}

std::string text_of(const flow::PipelineResult& r) {
  std::string text =
      fmt::format("{} ({}), {} x {}, stride {}, {}: {} frames, {} learnt, {} numbers each, states of {}\n",
                  flow::name(r.place), r.device, r.grid.ny, r.grid.nx, r.stride, name(r.precision), r.frames,
                  r.train_frames, r.latent_size, r.state_size);
  text += scores_summary(r.latents, r.fields);
  text += fmt::format(
      "codec only: relative L2 {:.4g}; surrogate at the end: correlation {:.4f}, energy {:+.3g}, enstrophy "
      "{:+.3g}\n",
      r.fields.codec.relative_l2, r.fields.surrogate.correlation, r.fields.surrogate.energy_drift,
      r.fields.surrogate.enstrophy_drift);
  if (r.coded)
    text += fmt::format("coded with errors up to {:.4g}: {:.4g} found, {:.4g} bits a point\n", r.coded->bound,
                        r.coded->max_error, r.coded->bits_per_point);
  for (const flow::StageUse& s : r.stages)
    text += fmt::format("  {:<14} {:>10.4g} s on {}\n", s.stage, s.seconds, s.device);
  text += fmt::format("  {:<14} {:>10.4g} s, {}\n", "all", r.seconds,
                      r.overlapped ? "stages at once" : "one stage after the other");
  text += "on the device:\n";
  for (const flow::MemoryUse& m : r.memory)
    text += fmt::format("  {:<22} {:>14} bytes {:<20} {}\n", m.name, m.bytes, m.shape, m.stages);
  text += fmt::format("  {:<22} {:>14} bytes\ncopies, and no others:\n", "most at once", r.peak_bytes);
  for (const flow::Transfer& t : r.transfers)
    text += fmt::format("  {:<14} {} {:>14} bytes  {} ({})\n", t.stage, t.to_device ? "to  " : "from",
                        t.bytes, t.what, t.reason);
  return text;
}

std::string text_of(const flow::Comparison2d& c) {
  std::string text = fmt::format("{:>12} {:>12} {:>12} {:>12} {:>12}\n", "time", "relative L2", "correlation",
                                 "dE / E", "dZ / Z");
  for (const auto& row : c.rows)
    text += fmt::format("{:>12.6g} {:>12.4g} {:>12.6f} {:>12.4g} {:>12.4g}\n", row.time, row.relative_l2,
                        row.correlation, row.energy_a != 0 ? row.energy_b / row.energy_a - 1 : row.energy_b,
                        row.enstrophy_a != 0 ? row.enstrophy_b / row.enstrophy_a - 1 : row.enstrophy_b);
  text += fmt::format("energy spectra differ by at most {:.4g} decades\n", c.spectrum_error);
  return text;
}

std::string text_of(const flow::LearnRunResult& r) {
  std::string text = fmt::format("{} of {} frames learnt, {} numbers each, states of {}\n",
                                 r.model.train_frames, r.frames, r.model.latent_size, r.model.state_size());
  if (!r.eigenvalues.empty())
    text += fmt::format("spectral radius {:.6g}\n", std::abs(r.eigenvalues.front()));
  return text + scores_summary(r.latents, r.fields) + r.file.string() + "\n";
}

std::string text_of(const flow::RolloutRunResult& r) {
  const auto j = document_of(r);
  return fmt::format(
      "{} steps in {:.4g} s, {:.4g} a second; {} of {} held-out steps better than persistence when it was "
      "learnt\n{}\n",
      r.steps, r.seconds, r.steps_per_second, j["horizon"].get<int64_t>(),
      j["latents"]["held_out"]["steps"].get<int64_t>(), r.file.string());
}

std::string text_of(const flow::SweepResult& r) {
  std::string text;
  for (const flow::PipelineResult& run : r.runs) text += text_of(run);
  return text;
}

}  // namespace lockstep::cli
