// `lockstep flow pipeline`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/reports/log.hpp"
#include "flow_options.hpp"
#include "flow_surrogate.hpp"
#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"
#include "session.hpp"
#include "surrogate_options.hpp"

namespace lockstep::cli {
namespace {

struct PipelineArguments {
  FlowArguments flow;
  SurrogateArguments surrogate;
  std::string codec = "v2", decoder = "mean", sizes, strides = "10", precisions, places, log_metrics,
              overlap = "auto";
  std::optional<double> rank, cut, max_error;
};

struct PipelineVariant {
  flow::BoxGrid grid;
  int64_t stride = 1;
  Storage precision = Storage::f32;
  flow::Place place = flow::Place::device;
};

std::vector<flow::Place> places_of(const PipelineArguments& a) {
  if (a.places.empty()) return {flow::Place::device};
  std::vector<flow::Place> all;
  for (const std::string& word : split_list(a.places, "--places")) {
    if (word == "cpu")
      all.push_back(flow::Place::cpu);
    else if (word == "mixed")
      all.push_back(flow::Place::mixed);
    else if (word == "device")
      all.push_back(flow::Place::device);
    else
      throw InputError(fmt::format("'{}'", word), "--places", "cpu, mixed and device, with commas between");
  }
  return all;
}

std::vector<Storage> precisions_of(const PipelineArguments& a, Storage single) {
  if (a.precisions.empty()) return {single};
  std::vector<Storage> all;
  for (const std::string& word : split_list(a.precisions, "--precisions")) {
    if (word != "f32" && word != "f64")
      throw InputError(fmt::format("'{}'", word), "--precisions", "f32 and f64, with a comma between");
    all.push_back(word == "f64" ? Storage::f64 : Storage::f32);
  }
  return all;
}

std::vector<int64_t> whole_numbers(const std::string& text, const char* option) {
  std::vector<int64_t> all;
  for (const std::string& word : split_list(text, option)) {
    const std::optional<double> v = parse_number(word);
    if (!v || !(*v >= 1) || *v > 1e9 || double(int64_t(*v)) != *v)
      throw InputError(fmt::format("'{}'", word), option, "whole numbers with commas between");
    all.push_back(int64_t(*v));
  }
  return all;
}

/// Every combination, sizes outermost.
std::vector<PipelineVariant> variants_of(const PipelineArguments& a, const flow::RunOptions& run) {
  std::vector<flow::BoxGrid> grids{run.model.grid};
  if (!a.sizes.empty()) {
    grids.clear();
    for (const int64_t n : whole_numbers(a.sizes, "--sizes")) {
      check_flow_sides(n, n, "--sizes");
      flow::BoxGrid grid = run.model.grid;
      grid.nx = grid.ny = n;
      grids.push_back(grid);
    }
  }
  std::vector<PipelineVariant> all;
  for (const flow::BoxGrid& grid : grids)
    for (const int64_t stride : whole_numbers(a.strides, "--strides"))
      for (const Storage precision : precisions_of(a, run.precision))
        for (const flow::Place place : places_of(a)) all.push_back({grid, stride, precision, place});
  return all;
}

flow::CodecOptions codec_options(const PipelineArguments& a) {
  flow::CodecOptions codec;
  codec.kind = a.codec == "classic" ? flow::CodecKind::classic : flow::CodecKind::v2;
  if (a.rank) codec.share = *a.rank;
  if (a.cut) codec.cut = *a.cut;
  return codec;
}

/// Pictures of several runs lie in folders of their own.
std::string folder_of(const PipelineVariant& v) {
  return fmt::format("{}x{}_stride{}_{}_{}", v.grid.ny, v.grid.nx, v.stride, name(v.precision),
                     flow::name(v.place));
}

std::string pipeline_summary(const flow::PipelineResult& r) {
  std::string text =
      fmt::format("{} ({}), {} x {}, stride {}, {}: {} frames, {} learnt, {} numbers each, states of {}\n",
                  flow::name(r.place), r.device, r.grid.ny, r.grid.nx, r.stride, name(r.precision), r.frames,
                  r.train_frames, r.latent_size, r.state_size);
  text += scores_summary(r.latents, r.fields);
  text += fmt::format(
      "codec alone: relative L2 {:.4g}; surrogate at the end: correlation {:.4f}, energy {:+.3g}, "
      "enstrophy {:+.3g}\n",
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

void check_pipeline_options(const CLI::App& app, const PipelineArguments& a) {
  check_flow_options(app, a.flow);
  check_surrogate_options(app, a.surrogate);
  refuse_both(app, "--n", "--sizes");
  refuse_both(app, "--precision", "--precisions");
  refuse_both(app, "--cut", "--rank");
  if (a.codec == "classic")
    refuse_given(app, {"--max-error", "--rank", "--cut"}, "nothing uses it with --codec classic",
                 "--codec v2");
  refuse_both(app, "--max-error", "--rank");
  if (a.max_error && a.decoder != "mean")
    refuse_given(app, {"--decoder"}, "a bounded error knows no stochastic decoder", "no --max-error");
  refuse_given(app, {"--format", "--history-every"}, "a pipeline keeps no files of fields",
               "flow run for them");
}

int run_pipeline(const CommonOptions& common, const PipelineArguments& a) {
  flow::PipelineOptions base;
  base.run = flow_run_options(a.flow);
  base.codec = codec_options(a);
  base.max_error = a.max_error;
  base.decoder = a.decoder == "stochastic" ? flow::Decoder::stochastic : flow::Decoder::mean;
  base.surrogate = surrogate_options(a.surrogate);
  base.rollout = rollout_mode(a.surrogate);
  if (a.overlap != "auto") base.overlap = a.overlap == "on";
  const std::vector<PipelineVariant> variants = variants_of(a, base.run);
  if (variants.size() > 1 && !base.run.video.empty())
    throw InputError(fmt::format("a film of {} runs", variants.size()), "flow pipeline --video", "one run");
  Session session(common);
  std::vector<flow::PipelineOptions> runs;
  for (const PipelineVariant& v : variants) {
    flow::PipelineOptions& o = runs.emplace_back(base);
    o.run.model.grid = v.grid;
    o.run.grid_given = base.run.grid_given || !a.sizes.empty();
    o.run.precision = v.precision;
    o.stride = v.stride;
    o.place = v.place;
    if (variants.size() > 1) o.run.folder /= folder_of(v);
    require_flow_memory(session.context(), o.run, !common.no_fallback, a.sizes.empty() ? "--n" : "--sizes");
  }
  // The last of several is refused before the first one runs.
  if (runs.size() > 1)
    for (const flow::PipelineOptions& o : runs) flow::check_pipeline(session.context(), o);
  std::vector<flow::PipelineResult> results;
  std::string text;
  for (const flow::PipelineOptions& o : runs) {
    results.push_back(flow::run_pipeline(session.context(), o));
    text += pipeline_summary(results.back());
  }
  auto result = nlohmann::ordered_json::parse(flow::to_json(results));
  result["files"] = nlohmann::ordered_json::array();
  for (const auto& file : flow::write_report(base.run.folder, results))
    result["files"].push_back(file.string());
  if (!a.log_metrics.empty()) result["files"].push_back(flow::log_metrics(a.log_metrics, results).string());
  session.finish(std::move(result), text);
  return 0;
}

}  // namespace

void add_flow_pipeline(CommandList& commands, Command& flow) {
  Command& pipeline = add_command(commands, *flow.app, "pipeline",
                                  "simulate, encode, learn, roll out, decode and look, all on one device");
  auto a = std::make_shared<PipelineArguments>();
  CLI::App& app = *pipeline.app;
  add_flow_options(app, a->flow);
  add_text(app, "--strides", a->strides, "steps between frames (default 10); several with commas: a table",
           "S");
  add_text(app, "--sizes", a->sizes, "points along each axis, several with commas, instead of --n", "N,N");
  add_text(app, "--precisions", a->precisions, "f32,f64: both, instead of --precision", "P,P");
  add_text(
      app, "--places", a->places,
      "device (default), mixed (the simulation on the CPU, the rest on the device), cpu; several with commas",
      "PLACE,PLACE");
  add_choice(app, "--codec", a->codec, "v2 (default) or the published one", {"classic", "v2"});
  add_number(app, "--rank", a->rank,
             "v2: share of the first frame's enstrophy that the latents hold (default 0.99)", "SHARE");
  add_number(app, "--cut", a->cut, "v2: all coefficients with |k| up to this, instead of --rank", "K");
  add_number(
      app, "--max-error", a->max_error,
      "v2: the codec's fields differ by at most this at any point, as with flow encode, instead of --rank",
      "E");
  add_choice(app, "--decoder", a->decoder,
             "mean (default): least error; stochastic: with random small scales", {"mean", "stochastic"});
  add_surrogate_options(app, a->surrogate);
  add_choice(
      app, "--overlap", a->overlap,
      "whether stages run at once where their data allow; off: a stage's time is its own. auto (default): "
      "on CUDA",
      {"auto", "on", "off"});
  add_output_folder(app, "--log-metrics", a->log_metrics,
                    "a folder for a JSON of this run, by its time, and a summary of all");
  add_common(
      pipeline,
      "lockstep flow pipeline --n 256 --steps 2000 --strides 10 --rank 0.9 --places cpu,device --pictures "
      "--out out");
  pipeline.run = [&pipeline, a] {
    check_pipeline_options(*pipeline.app, *a);
    return run_pipeline(pipeline.common, *a);
  };
}

}  // namespace lockstep::cli
