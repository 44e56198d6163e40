// Effect of each point where published programs differ on the mean radiant temperature, toggled alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/reports/json_text.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/series/whole_series.hpp"

namespace lockstep::urban {
namespace {

/// The scene on which a quirk shows: the city as it is, with a land cover, or for a box.
enum class QuirkScene { plain, covered, box };

struct Toggle {
  const char *quirk, *value;
  QuirkScene scene;
  std::function<void(RadiationOptions&, WeatherRules&)> set;
};

std::vector<Toggle> toggles() {
  using R = RadiationOptions;
  using W = WeatherRules;
  using enum QuirkScene;
  const Constants umep = constants_of(Preset::umep), solweig = constants_of(Preset::solweig);
  return {
      {"σ", "5.67051e-8", plain, [=](R& r, W&) { r.constants.sigma = umep.sigma; }},
      {"zero of Tmrt", "−273.2", plain, [=](R& r, W&) { r.constants.kelvin_tmrt = umep.kelvin_tmrt; }},
      {"longwave absorptance", "0.95", plain,
       [=](R& r, W&) { r.constants.absorption_long = umep.absorption_long; }},
      {"Tmrt held within", "−50 … 80 °C", plain,
       [=](R& r, W&) {
         r.constants.tmrt_lowest_c = solweig.tmrt_lowest_c;
         r.constants.tmrt_highest_c = solweig.tmrt_highest_c;
       }},
      {"Perez formula", "umep", plain, [=](R& r, W&) { r.constants.perez = umep.perez; }},
      {"Perez guards", "none", plain, [](R& r, W&) { r.constants.perez_guards = false; }},
      {"ray beyond the raster", "sees nothing", plain, [=](R& r, W&) { r.constants.edge = solweig.edge; }},
      {"sunlit wall", "lit in any part", plain,
       [=](R& r, W&) { r.constants.sunlit_wall = solweig.sunlit_wall; }},
      {"reach over the ground", "2 and 35, times the pixel", plain,
       [=](R& r, W&) {
         r.constants.near_reach_m = solweig.near_reach_m;
         r.constants.far_reach_m = solweig.far_reach_m;
         r.constants.reach_times_pixel = true;
       }},
      {"excess temperature below 0, bare ground", "kept", plain,
       [=](R& r, W&) { r.constants.ground_clamp = umep.ground_clamp; }},
      {"excess temperature before sunrise", "by the formula", covered,
       [](R& r, W&) { r.constants.before_sunrise_cold = false; }},
      {"Tstart without a land cover", "+3.41", plain,
       [=](R& r, W&) { r.constants.bare_tstart_k = umep.bare_tstart_k; }},
      {"F below 3° of sun", "1", plain, [=](R& r, W&) { r.constants.low_sun = solweig.low_sun; }},
      {"water", "its row of the table", covered, [=](R& r, W&) { r.constants.water = umep.water; }},
      {"ψ of the sky view", "leaf-on, all year", plain,
       [](R& r, W&) { r.constants.seasonal_canopy = false; }},
      {"beam on a box, anisotropic sky", "dropped", box,
       [](R& r, W&) { r.constants.beam_on_box_sides = false; }},
      {"diffuse light that sunlit walls reflect", "unattenuated", plain,
       [](R& r, W&) { r.constants.albedo_on_beam_only = true; }},
      {"reflected longwave", "of the sky alone, by walls alone", plain,
       [](R& r, W&) { r.constants.closed_longwave = false; }},
      {"patches of the sky", "cosines of their centres", plain,
       [](R& r, W&) { r.constants.exact_patches = false; }},
      {"missing pixels", "as walls", plain, [](R& r, W&) { r.constants.holes_are_edges = false; }},
      {"parts of an interval", "6, each with its own sun, instead of 1", plain,
       [](R& r, W& w) { r.substeps = w.substeps = 6; }},
      {"beam of a low sun", "not limited", plain, [](R&, W& w) { w.beam_below_clear_sky = false; }},
      {"clearness at night", "after sunrise", plain, [=](R&, W& w) { w.night = umep.night_clearness; }},
      {"leaves", "day 100–300", plain, [=](R&, W& w) { w.leaf_first_day = solweig.leaf_first_day; }},
      {"Smith's table in the south", "first row", plain,
       [](R&, W& w) { w.bands = LatitudeBands::southern_row_one; }},
      {"clock of surface temperatures", "the stamp's", plain,
       [](R&, W& w) { w.clock = SurfaceClock::stamp; }},
      {"measured Ldown", "not used", plain, [](R&, W& w) { w.use_longwave = false; }},
      {"zenith patch", "always open", plain, [](R& r, W&) { r.view.zenith = ZenithRule::open; }},
  };
}

/// Ground of several kinds for a city that has none: roofs, grass under plants, a pond in its first corner, asphalt.
std::vector<int32_t> some_land_cover(const City& city) {
  const std::vector<uint8_t> ground = ground_mask(city);
  const std::span<const float> canopy = city.canopy.as<float>();
  std::vector<int32_t> codes(ground.size(), 1);
  for (size_t p = 0; p < codes.size(); ++p) {
    const int64_t row = static_cast<int64_t>(p) / city.cols, col = static_cast<int64_t>(p) % city.cols;
    if (!ground[p])
      codes[p] = kBuildingCode;
    else if (row < city.rows / 4 && col < city.cols / 4)
      codes[p] = kWaterCode;
    else if (!canopy.empty() && canopy[p] > 0)
      codes[p] = 5;
  }
  return codes;
}

class QuirkRuns {
 public:
  QuirkRuns(Context& context, const SeriesOptions& options)
      : context_(context), options_(options), inputs_(read_series_inputs(options)) {
    options_.tiles.on_progress = {};
    walls_ = walls_of_series(context, inputs_, options.walls);
  }

  /// Tmrt of all steps, after `set`.
  std::vector<float> tmrt(QuirkScene scene, const Toggle* toggle) {
    SeriesInputs inputs = inputs_;
    RadiationOptions& r = inputs.radiation;
    if (scene == QuirkScene::covered && inputs.land_cover.empty())
      inputs.land_cover = some_land_cover(inputs.city);
    if (scene == QuirkScene::box) r.body = Body::box;
    WeatherRules rules = inputs.rules;
    if (toggle) toggle->set(r, rules);
    inputs.steps = make_forcing(inputs.weather, inputs.weather, inputs.site, inputs.convergence_deg, rules);
    return values(inputs);
  }
  std::vector<float> values(const SeriesInputs& inputs) {
    return compute_series(context_, inputs, walls_, {SeriesOutput::tmrt}, options_.tiles).values;
  }
  const SeriesInputs& inputs() const { return inputs_; }

 private:
  Context& context_;
  SeriesOptions options_;
  SeriesInputs inputs_;
  Walls walls_;
};

QuirkEffect effect(const char* quirk, const char* value, const std::vector<float>& base,
                   const std::vector<float>& changed, const SeriesInputs& inputs) {
  QuirkEffect e{quirk, value, 0, 0, 0, 0};
  const size_t pixels = static_cast<size_t>(inputs.city.pixels());
  double sum[2] = {}, all = 0;
  int64_t count[2] = {};
  std::vector<bool> sunny;  // an interval is of the night where the sun is down in all its parts
  for (const WeatherStep& step : inputs.steps)
    sunny.push_back(std::ranges::any_of(step.parts(), [](const StepForcing& f) { return f.day(); }));
  for (size_t k = 0; k < base.size(); ++k) {
    if (!std::isfinite(base[k]) || !std::isfinite(changed[k])) continue;
    const double difference = static_cast<double>(changed[k]) - static_cast<double>(base[k]);
    const bool day = sunny[k / pixels];
    sum[day] += difference;
    ++count[day];
    all += std::abs(difference);
    e.max_abs_k = std::max(e.max_abs_k, std::abs(difference));
  }
  e.mean_day_k = count[1] > 0 ? sum[1] / static_cast<double>(count[1]) : 0;
  e.mean_night_k = count[0] > 0 ? sum[0] / static_cast<double>(count[0]) : 0;
  const int64_t n = count[0] + count[1];
  e.mean_abs_k = n > 0 ? all / static_cast<double>(n) : 0;
  return e;
}

}  // namespace

std::vector<QuirkEffect> quirk_effects(Context& context, const SeriesOptions& given) {
  const ScratchFolder scratch;
  SeriesOptions options = given;
  if (options.city.dsm.empty()) {
    std::vector<int> hours(24);
    std::iota(hours.begin(), hours.end(), 1);
    options = sample_series(given, scratch.path, hours, {96, 96});
  }
  if (options.folder.empty()) options.folder = scratch.path / "out";
  options.pictures = options.video = false;
  options.preset = Preset::corrected;
  options.outputs = {SeriesOutput::tmrt};
  QuirkRuns runs(context, options);
  std::map<QuirkScene, std::vector<float>> bases;
  std::vector<QuirkEffect> effects;
  for (const Toggle& toggle : toggles()) {
    const auto [base, made] = bases.try_emplace(toggle.scene);
    if (made) base->second = runs.tmrt(toggle.scene, nullptr);
    effects.push_back(
        effect(toggle.quirk, toggle.value, base->second, runs.tmrt(toggle.scene, &toggle), runs.inputs()));
  }
  for (const Preset preset : {Preset::umep, Preset::solweig}) {
    options.preset = preset;
    effects.push_back(effect("all of them", name(preset).data(), bases[QuirkScene::plain],
                             runs.values(read_series_inputs(options)), runs.inputs()));
  }
  return effects;
}

nlohmann::ordered_json document_of(const std::vector<QuirkEffect>& effects) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const QuirkEffect& e : effects)
    rows.push_back({{"quirk", e.quirk},
                    {"value", e.value},
                    {"mean_day", e.mean_day_k},
                    {"mean_night", e.mean_night_k},
                    {"mean_abs", e.mean_abs_k},
                    {"max_abs", e.max_abs_k}});
  return {{"quirks", rows}};
}
std::string to_json(const std::vector<QuirkEffect>& effects) { return json_text(document_of(effects)); }

}  // namespace lockstep::urban
