// `lockstep urban svf`: the 15 grids of sky view factors, written tile by tile.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/atomic_file.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"
#include "urban_files.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct SvfCommand {
  CityOptions city;
  OutputOptions output;
  TileCommandOptions tiles;
  std::string patches = "153", zenith = "umep", annuli = "umep";
  std::optional<double> max_reach;
  bool save_patches = false, no_resume = false;
};

urban::SkyOptions sky_options(const SvfCommand& options) {
  urban::SkyOptions sky;
  sky.patches = options.patches == "145"   ? urban::SkyPatches::p145
                : options.patches == "305" ? urban::SkyPatches::p305
                : options.patches == "609" ? urban::SkyPatches::p609
                                           : urban::SkyPatches::p153;
  sky.zenith = options.zenith == "open" ? urban::ZenithRule::open : urban::ZenithRule::umep;
  sky.edges = options.annuli == "solweig" ? urban::AnnulusEdges::solweig : urban::AnnulusEdges::umep;
  sky.keep_states = options.save_patches;
  if (options.max_reach) sky.rays.max_reach_m = *options.max_reach;
  return sky;
}

std::string title_of(const std::string& name) {
  std::string title = name.starts_with("svf_veg")    ? "Sky view past plants"
                      : name.starts_with("svf_aveg") ? "Sky view past plants before buildings"
                                                     : "Sky view factor";
  for (const char* side : {"east", "south", "west", "north"}) {
    if (name.ends_with(side)) title += fmt::format(", {} half", side);
  }
  return title;
}

// Tiles arrive in any order; each grid is a file that grows window by window, states are gathered in memory.
class Sink {
 public:
  Sink(const Outputs& outputs, const City& city, int words)
      : words_(words), rows_(city.grid.rows), cols_(city.grid.cols) {
    for (const std::string_view name : urban::kSkyViewNames) {
      writers_.push_back(io::RasterWriter::create(outputs.file(std::string(name)), city.grid));
    }
    states_.resize(static_cast<size_t>(words) * static_cast<size_t>(rows_ * cols_));
  }
  void take(const urban::SkyTile& tile) {
    tbb::parallel_for(size_t{0}, writers_.size(), [&](size_t k) {
      writers_[k]->write(tile.row, tile.col, tile.rows, tile.cols, tile.grids[k]);
    });
    if (!tile.states) return;
    for (int64_t word = 0; word < words_; ++word) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const uint32_t* from = tile.states + (word * tile.rows + r) * tile.cols;
        std::copy(from, from + tile.cols, states_.begin() + (word * rows_ + tile.row + r) * cols_ + tile.col);
      }
    }
  }
  void commit() {
    tbb::parallel_for(size_t{0}, writers_.size(), [&](size_t k) { writers_[k]->commit(); });
  }
  const std::vector<uint32_t>& states() const { return states_; }

 private:
  const int64_t words_, rows_, cols_;
  std::vector<std::unique_ptr<io::RasterWriter>> writers_;
  std::vector<uint32_t> states_;
};

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

ordered_json to_json(const urban::TileReport& report) {
  return {{"side", report.side},
          {"tiles", report.tiles},
          {"resumed", report.resumed},
          {"workers", report.workers},
          {"queue_depth_peak", report.queue_depth_peak},
          {"predicted_bytes", report.predicted_bytes},
          {"tile_seconds_median", percentile(report.tile_seconds, 0.5)},
          {"tile_seconds_p95", percentile(report.tile_seconds, 0.95)},
          {"stitch_seconds", report.stitch_seconds},
          {"seconds", report.seconds}};
}

int run(const CommonOptions& common, const SvfCommand& options) {
  Session session(common);
  const City city = session.host_stage("read", [&] { return read_city(options.city); });
  Outputs outputs(options.output, city);
  const urban::SkyOptions sky = sky_options(options);
  const int patches = std::stoi(options.patches);
  urban::TileOptions tiles = tile_options(options.tiles);
  // Finished tiles of a killed run are taken over by the next one with the same inputs.
  const std::filesystem::path resume = outputs.folder() / ".tiles";
  if (!options.no_resume) tiles.resume_folder = resume;
  urban::TileReport report;
  Sink sink(outputs, city, options.save_patches ? (patches + 15) / 16 : 0);
  urban::stream_sky_view_factors(
      session.context(), city.input, sky, tiles, [&](const urban::SkyTile& tile) { sink.take(tile); },
      &report);
  ordered_json document;
  session.host_stage("write", [&] {
    sink.commit();
    std::vector<std::pair<std::string, Look>> grids;
    for (const std::string_view name : urban::kSkyViewNames) {
      grids.emplace_back(
          name, Look{title_of(std::string(name)), "share of sky", io::ColorMap::sky, 0.0, 1.0, false});
    }
    outputs.add_written(grids);
    if (options.save_patches) {
      const int32_t count = patches;
      const Array states = Array::view(std::span<const uint32_t>(sink.states()),
                                       {(patches + 15) / 16, city.grid.rows, city.grid.cols});
      const auto file = outputs.folder() / "sky_states.npz";
      io::write_npz(file,
                    {{"states", states}, {"patches", Array::view(std::span<const int32_t>(&count, 1), {1})}},
                    io::NpzCompression::deflated);
      document["states"] = file.string();
    }
  });
  std::error_code ignored;
  std::filesystem::remove_all(resume, ignored);
  add_grid(document, city);
  document["patches"] = patches;
  document["zenith"] = options.zenith;
  document["tiles"] = to_json(report);
  document["outputs"] = outputs.to_json();
  session.finish(document, outputs.text());
  return 0;
}

}  // namespace

void add_urban_svf(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "svf", "sky view factors: 15 grids");
  auto options = std::make_shared<SvfCommand>();
  CLI::App& app = *command.app;
  add_city_options(app, options->city, true);
  add_choice(app, "--patches", options->patches, "patches of the sky (default 153)",
             {"145", "153", "305", "609"});
  add_choice(app, "--zenith", options->zenith, "the patch above: as UMEP has it, or always open",
             {"umep", "open"});
  add_choice(app, "--annuli", options->annuli, "edges of the annuli of 609 patches", {"umep", "solweig"});
  add_number(app, "--max-reach", options->max_reach, "longest horizontal reach of a ray (default: no limit)",
             "M", {0, 1e7, true});
  add_flag(app, "--save-patches", options->save_patches,
           "write the packed 2-bit sky states too (sky_states.npz)");
  add_flag(app, "--no-resume", options->no_resume,
           "neither keep finished tiles nor take over those of a killed run");
  add_output_options(app, options->output);
  add_tile_options(app, options->tiles);
  add_common(command, "lockstep urban svf --dsm dsm.tif --dem dem.tif --cdsm cdsm.tif --out out");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
