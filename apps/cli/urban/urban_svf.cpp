// `lockstep urban svf`: the 15 grids of sky view factors.
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "shared_options.hpp"
#include "urban/run/opening.hpp"
#include "urban/run/report.hpp"

namespace lockstep::cli {
namespace {

struct SvfCommand {
  CityArguments city;
  OutputArguments output;
  TileArguments tiles;
  std::string patches = "153", zenith = "umep", annuli = "centred";
  std::optional<double> max_reach;
  bool save_patches = false, no_resume = false;
};

int run(const CommonOptions& common, const SvfCommand& arguments) {
  urban::SkyRunOptions options;
  options.city = city_files(arguments.city);
  options.output = output_options(arguments.output);
  options.tiles = tile_options(arguments.tiles);
  options.resume = !arguments.no_resume;
  urban::SkyOptions& sky = options.sky;
  sky.patches = arguments.patches == "145"   ? urban::SkyPatches::p145
                : arguments.patches == "305" ? urban::SkyPatches::p305
                : arguments.patches == "609" ? urban::SkyPatches::p609
                                             : urban::SkyPatches::p153;
  sky.zenith = arguments.zenith == "open" ? urban::ZenithRule::open : urban::ZenithRule::umep;
  sky.edges = arguments.annuli == "solweig" ? urban::AnnulusEdges::solweig
              : arguments.annuli == "umep"  ? urban::AnnulusEdges::umep
                                            : urban::AnnulusEdges::centred;
  sky.keep_states = arguments.save_patches;
  if (arguments.max_reach) sky.rays.max_reach_m = *arguments.max_reach;
  expect_few_streams();
  Session session(common);
  const urban::SkyRunResult result = urban::run([&]() -> Context& { return session.context(); }, options);
  finish(session, result, urban::to_json(result));
  return 0;
}

}  // namespace

void add_urban_svf(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "svf", "sky view factors: 15 grids");
  auto arguments = std::make_shared<SvfCommand>();
  CLI::App& app = *command.app;
  add_city_options(app, arguments->city, true);
  add_choice(app, "--patches", arguments->patches, "patches of the sky (default 153)",
             {"145", "153", "305", "609"});
  add_choice(app, "--zenith", arguments->zenith, "the patch above: as UMEP has it, or always open",
             {"umep", "open"});
  add_choice(
      app, "--annuli", arguments->annuli,
      "edges of the annuli of 609 patches: midway between its bands, or as published (default centred)",
      {"centred", "umep", "solweig"});
  add_number(app, "--max-reach", arguments->max_reach,
             "longest horizontal reach of a ray (default: no limit)", "M", {0, 1e7, true});
  add_flag(app, "--save-patches", arguments->save_patches,
           "write the packed 2-bit sky states too (sky_states.npz)");
  add_flag(
      app, "--no-resume", arguments->no_resume,
      "neither keep finished tiles nor take over those of a killed run (tiles that are computed sooner than "
      "written, as large ones on a GPU, are computed again in any case)");
  add_output_options(app, arguments->output);
  add_tile_options(app, arguments->tiles);
  add_common(command, "lockstep urban svf --dsm dsm.tif --cdsm cdsm.tif --out out");
  command.run = [&command, arguments] {
    check_plants(*command.app, arguments->city);
    if (arguments->patches != "609" && arguments->annuli != "centred")
      throw InputError("edges of annuli that only 609 patches have", "--annuli", "--patches 609 too");
    return run(command.common, *arguments);
  };
}

}  // namespace lockstep::cli
