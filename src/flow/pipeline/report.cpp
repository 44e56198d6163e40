// Results as JSON and Markdown, and the log of metrics.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "flow/pipeline/scores_json.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow/documents.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

namespace fs = std::filesystem;

namespace {

using PipelineJson = nlohmann::ordered_json;

/// JSON does not support infinity: a rollout that left all bounds has no error.
PipelineJson number(double value) { return std::isfinite(value) ? PipelineJson(value) : PipelineJson(); }
PipelineJson list_of(const std::vector<double>& values) {
  PipelineJson all = PipelineJson::array();
  for (const double v : values) all.push_back(number(v));
  return all;
}

PipelineJson json_of(const RolloutScore& s) {
  return {{"steps", s.surrogate.size()},
          {"surrogate", number(s.surrogate_all)},
          {"persistence", number(s.persistence_all)},
          {"climatology", number(s.climatology_all)},
          {"horizon", s.horizon},
          {"loses_to_persistence", s.lost()},
          {"surrogate_by_step", list_of(s.surrogate)},
          {"persistence_by_step", list_of(s.persistence)},
          {"climatology_by_step", list_of(s.climatology)}};
}

PipelineJson json_of(const SurrogateScores& s) {
  return {{"held_out", json_of(s.held_out)},
          {"in_sample", json_of(s.in_sample)},
          {"one_step",
           {{"held_out", number(s.one_step_held_out)},
            {"in_sample", number(s.one_step_in_sample)},
            {"persistence", number(s.one_step_persistence)}}}};
}

PipelineJson json_of(const FieldScore& s) {
  return {{"relative_l2", number(s.relative_l2)},
          {"last_relative_l2", number(s.last_relative_l2)},
          {"correlation", number(s.correlation)},
          {"anomaly_correlation", number(s.anomaly_correlation)},
          {"energy_drift", number(s.energy_drift)},
          {"enstrophy_drift", number(s.enstrophy_drift)},
          {"relative_l2_by_frame", list_of(s.l2_by_frame)},
          {"anomaly_correlation_by_frame", list_of(s.anomaly_correlation_by_frame)}};
}

PipelineJson json_of(const FieldScores& s) {
  PipelineJson j;
  j["held_out"] = {{"surrogate", json_of(s.surrogate)},
                   {"persistence", json_of(s.persistence)},
                   {"climatology", json_of(s.climatology)}};
  if (!s.linear.l2_by_frame.empty()) j["held_out"]["linear"] = json_of(s.linear);
  if (!s.quadratic.l2_by_frame.empty()) j["held_out"]["quadratic"] = json_of(s.quadratic);
  if (!s.codec.l2_by_frame.empty()) j["held_out"]["codec"] = json_of(s.codec);
  j["in_sample"] = {{"surrogate", json_of(s.in_sample)}};
  j["horizon"] = s.horizon;
  j["turnover_time"] = number(s.turnover_time);
  return j;
}

PipelineJson json_of(const PipelineResult& r) {
  PipelineJson j;
  j["place"] = name(r.place);
  j["device"] = r.device;
  j["n"] = {r.grid.ny, r.grid.nx};
  j["precision"] = name(r.precision);
  j["steps"] = r.steps;
  j["stride"] = r.stride;
  j["frames"] = r.frames;
  j["train_frames"] = r.train_frames;
  j["frame_time"] = r.frame_time;
  j["codec"] = name(r.codec);
  j["decoder"] = name(r.decoder);
  j["method"] = name(r.method);
  j["latent_size"] = r.latent_size;
  j["state_size"] = r.state_size;
  j["latents"] = json_of(r.latents);
  j["fields"] = json_of(r.fields);
  if (r.coded)
    j["coded"] = {{"bound", r.coded->bound},
                  {"max_error", r.coded->max_error},
                  {"bytes", r.coded->bytes},
                  {"bits_per_point", r.coded->bits_per_point}};
  j["overlapped"] = r.overlapped;
  j["seconds"] = r.seconds;
  j["wall_seconds"] = PipelineJson::object();
  for (const StageUse& s : r.stages) j["wall_seconds"][s.stage] = s.seconds;
  j["transfers"] = PipelineJson::array();
  for (const Transfer& t : r.transfers)
    j["transfers"].push_back({{"stage", t.stage},
                              {"what", t.what},
                              {"direction", t.to_device ? "to_device" : "from_device"},
                              {"bytes", t.bytes},
                              {"reason", t.reason}});
  j["counted_transfers"] = PipelineJson::array();
  for (const StageUse& s : r.stages)
    j["counted_transfers"].push_back({{"stage", s.stage},
                                      {"device", s.device},
                                      {"bytes_to_device", s.bytes_to_device},
                                      {"bytes_from_device", s.bytes_from_device}});
  j["memory"] = PipelineJson::array();
  for (const MemoryUse& m : r.memory)
    j["memory"].push_back({{"name", m.name}, {"shape", m.shape}, {"bytes", m.bytes}, {"stages", m.stages}});
  j["peak_device_bytes"] = r.peak_bytes;
  j["pictures"] = PipelineJson::array();
  for (const fs::path& file : r.files) j["pictures"].push_back(file.string());
  return j;
}

std::string heading(const PipelineResult& r) {
  return fmt::format("| {} ({}) | {}x{} | {} | {} ", name(r.place), r.device, r.grid.ny, r.grid.nx, r.stride,
                     name(r.precision));
}

std::string field_row(const PipelineResult& r, const char* what, const FieldScore& s) {
  return fmt::format("{}| {} | {:.4g} | {:.4g} | {:.4f} | {:+.4g} | {:+.4g} |\n", heading(r), what,
                     s.relative_l2, s.last_relative_l2, s.correlation, s.energy_drift, s.enstrophy_drift);
}

std::string fields_table(const std::vector<PipelineResult>& runs) {
  std::string t =
      "## Fields against the simulation\n\nHeld-out frames, and for comparison the rollout through the "
      "training "
      "frames. L2 of all frames and of the last; correlation and drifts of the last.\n\n"
      "| place | n | stride | precision | of | L2 | last L2 | correlation | dE/E | dZ/Z |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const PipelineResult& r : runs) {
    t += field_row(r, "surrogate", r.fields.surrogate);
    t += field_row(r, "persistence", r.fields.persistence);
    t += field_row(r, "climatology", r.fields.climatology);
    if (!r.fields.linear.l2_by_frame.empty()) t += field_row(r, "linear in time", r.fields.linear);
    if (!r.fields.quadratic.l2_by_frame.empty()) t += field_row(r, "quadratic in time", r.fields.quadratic);
    t += field_row(r, "codec only", r.fields.codec);
    t += field_row(r, "surrogate, in sample", r.fields.in_sample);
  }
  return t;
}

std::string latents_table(const std::vector<PipelineResult>& runs) {
  std::string t =
      "\n## Latents, and how long the surrogate is worth anything\n\nHorizon of latents: frames before their "
      "error reaches that of persistence; 0 says that it loses from the first. Of fields: frames in which "
      "the "
      "surrogate is closer to the truth than persistence, climatology, a line and a parabola through the "
      "last "
      "training frames and the zero field, with an anomaly correlation of at least 0.6. Turnovers: the time "
      "of "
      "the held-out frames times the root mean square of the vorticity.\n\n"
      "| place | n | stride | precision | numbers | state | held out | persistence | climatology | in sample "
      "| one step | its persistence | horizon, latents | horizon, fields | turnovers "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const PipelineResult& r : runs) {
    const SurrogateScores& s = r.latents;
    t += fmt::format(
        "{}| {} | {} | {:.4g} | {:.4g} | {:.4g} | {:.4g} | {:.4g} | {:.4g} | {} of {} | {} of {} | {:.3g} "
        "|\n",
        heading(r), r.latent_size, r.state_size, s.held_out.surrogate_all, s.held_out.persistence_all,
        s.held_out.climatology_all, s.in_sample.surrogate_all, s.one_step_held_out, s.one_step_persistence,
        s.held_out.horizon, s.held_out.surrogate.size(), r.fields.horizon, s.held_out.surrogate.size(),
        double(r.frames - r.train_frames) * r.frame_time / r.fields.turnover_time);
  }
  return t;
}

std::string stages_table(const std::vector<PipelineResult>& runs) {
  std::vector<std::string> stages;
  for (const PipelineResult& r : runs)
    for (const StageUse& s : r.stages)
      if (std::find(stages.begin(), stages.end(), s.stage) == stages.end()) stages.push_back(s.stage);
  std::string t =
      "\n## Seconds by stage\n\nFrom a stage's begin to its end. Of stages at once each counts what it "
      "waited for another; `all` is "
      "from the first one's begin to the last one's end.\n\n| place | n | stride | precision ";
  for (const std::string& s : stages) t += fmt::format("| {} ", s.substr(s.find('.') + 1));
  t += "| all | at once |\n|---|---|---|---";
  for (size_t k = 0; k < stages.size() + 2; ++k) t += "|---";
  t += "|\n";
  for (const PipelineResult& r : runs) {
    t += heading(r);
    for (const std::string& name : stages) {
      std::string cell = "–";
      for (const StageUse& s : r.stages)
        if (s.stage == name) cell = fmt::format("{:.4g}", s.seconds);
      t += fmt::format("| {} ", cell);
    }
    t += fmt::format("| {:.4g} | {} |\n", r.seconds, r.overlapped ? "yes" : "no");
  }
  return t;
}

std::string copies_table(const PipelineResult& r) {
  std::string t = fmt::format("\n## {} {}x{}, stride {}, {}: memory and copies\n\n", name(r.place), r.grid.ny,
                              r.grid.nx, r.stride, name(r.precision));
  t += "| on the device | shape | bytes | stages |\n|---|---|---|---|\n";
  for (const MemoryUse& m : r.memory)
    t += fmt::format("| {} | {} | {} | {} |\n", m.name, m.shape, m.bytes, m.stages);
  t += fmt::format("| most at once | | {} | |\n\n", r.peak_bytes);
  t += "Nothing else is copied between host and device:\n\n| stage | what | direction | bytes | why "
       "|\n|---|---|---|---|---|\n";
  for (const Transfer& c : r.transfers)
    t += fmt::format("| {} | {} | {} | {} | {} |\n", c.stage, c.what,
                     c.to_device ? "to the device" : "from the device", c.bytes, c.reason);
  return t;
}

void write_whole(const fs::path& file, const std::string& text) {
  AtomicFile out(file);
  out.write(text);
  out.commit();
}

}  // namespace

nlohmann::ordered_json document_of(const std::vector<PipelineResult>& runs) {
  PipelineJson j;
  j["runs"] = PipelineJson::array();
  for (const PipelineResult& r : runs) j["runs"].push_back(json_of(r));
  return j;
}
std::string to_json(const std::vector<PipelineResult>& runs) { return json_text(document_of(runs)); }

std::string to_markdown(const std::vector<PipelineResult>& runs) {
  std::string t = "# Turbulence: simulation, codec, surrogate\n\n" + fields_table(runs) +
                  latents_table(runs) + stages_table(runs);
  for (const PipelineResult& r : runs) t += copies_table(r);
  return t;
}

std::vector<fs::path> write_report(const fs::path& folder, const std::vector<PipelineResult>& runs) {
  write_whole(folder / "metrics.json", json_text(document_of(runs), 1) + "\n");
  write_whole(folder / "report.md", to_markdown(runs));
  return {folder / "metrics.json", folder / "report.md"};
}

fs::path log_metrics(const fs::path& folder, const std::vector<PipelineResult>& runs) {
  const std::time_t now = std::time(nullptr);
  const std::string date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  const std::string stem = fmt::format("pipeline_{:%Y%m%dT%H%M%SZ}", fmt::gmtime(now));
  fs::path file = folder / (stem + ".json");
  for (int k = 2; fs::exists(file); ++k) file = folder / fmt::format("{}_{}.json", stem, k);
  PipelineJson all = document_of(runs);
  all["date"] = date;
  const fs::path summary = folder / "summary.json";
  PipelineJson lines = PipelineJson::array();
  if (fs::exists(summary)) {
    lines = io::parse_ordered_json(io::read_text_file(summary), summary.string());
    if (!lines.is_array())
      throw InputError("no list in JSON", summary.string(), "the summary that a log of metrics wrote");
  }
  for (const PipelineResult& r : runs) {
    lines.push_back({{"date", date},
                     {"file", file.filename().string()},
                     {"place", name(r.place)},
                     {"device", r.device},
                     {"n", {r.grid.ny, r.grid.nx}},
                     {"stride", r.stride},
                     {"precision", name(r.precision)},
                     {"relative_l2", number(r.fields.surrogate.relative_l2)},
                     {"persistence", number(r.fields.persistence.relative_l2)},
                     {"correlation", number(r.fields.surrogate.correlation)},
                     {"energy_drift", number(r.fields.surrogate.energy_drift)},
                     {"enstrophy_drift", number(r.fields.surrogate.enstrophy_drift)},
                     {"horizon", r.fields.horizon},
                     {"seconds", r.seconds}});
  }
  write_whole(file, json_text(all, 1) + "\n");
  write_whole(summary, json_text(lines, 1) + "\n");
  return file;
}

namespace {

PipelineJson scores_of(const SurrogateScores& latents, const FieldScores& fields) {
  PipelineJson j;
  j["latents"] = json_of(latents);
  j["fields"] = json_of(fields);
  j["horizon"] = latents.held_out.horizon;
  return j;
}

}  // namespace

nlohmann::ordered_json document_of(const LearnRunResult& r) {
  PipelineJson j;
  j["method"] = name(r.model.options.method);
  j["frames"] = r.frames;
  j["train_frames"] = r.model.train_frames;
  j["latent_size"] = r.model.latent_size;
  j["rank"] = r.model.rank;
  j["delays"] = r.model.options.delays;
  j["state_size"] = r.model.state_size();
  if (!r.eigenvalues.empty()) {
    j["spectral_radius"] = std::abs(r.eigenvalues.front());
    for (size_t k = 0; k < std::min<size_t>(r.eigenvalues.size(), 16); ++k)
      j["eigenvalues"].push_back({r.eigenvalues[k].real(), r.eigenvalues[k].imag()});
  }
  j.update(scores_of(r.latents, r.fields));
  j["file"] = r.file.string();
  return j;
}
std::string to_json(const LearnRunResult& r) { return json_text(document_of(r)); }

nlohmann::ordered_json document_of(const RolloutRunResult& r) {
  PipelineJson j;
  j["steps"] = r.steps;
  j["latent_size"] = r.latent_size;
  j["state_size"] = r.state_size;
  j["seconds"] = r.seconds;
  j["steps_per_second"] = r.steps_per_second;
  j.update(PipelineJson::parse(r.scores));
  j["file"] = r.file.string();
  return j;
}
std::string to_json(const RolloutRunResult& r) { return json_text(document_of(r)); }

std::string scores_json(const SurrogateScores& latents, const FieldScores& fields) {
  return json_text(scores_of(latents, fields));
}

}  // namespace lockstep::flow
