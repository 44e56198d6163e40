// The stages of the radiation, computed by the plain double-precision formulas of radiation/reference.hpp.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "urban/radiation/step/reference_step.hpp"
#include "urban/stages/run_stage.hpp"
#include "urban/weather/forcing.hpp"

namespace lockstep::urban {
namespace {

using reference::Reals;
constexpr const char* kSides[4] = {"east", "south", "west", "north"};
constexpr char kGrid[] = "(y,x)", kScalar[] = "()", kFlux[] = "W m-2", kOne[] = "1", kDegrees[] = "degrees",
               kKelvin[] = "K";
/// Constants of the published arrays of the ground view and the sides.
constexpr double kSigma = 5.67e-8, kZeroCelsius = 273.15;

StageArray grid(std::string name, const char* unit, std::string about = "") {
  return {std::move(name), kGrid, unit, std::move(about)};
}
StageArray scalar(std::string name, const char* unit, std::string about = "") {
  return {std::move(name), kScalar, unit, std::move(about)};
}
StageArray sigma_entry() {
  return {"sigma", kScalar, "W m-2 K-4", "Stefan-Boltzmann constant (default 5.67e-8)", true};
}
std::vector<StageArray> four(const std::string& name, const char* unit, const std::string& about = "") {
  std::vector<StageArray> list;
  for (const char* side : kSides) list.push_back(grid(name + "_" + side, unit, about));
  return list;
}
std::vector<StageArray> joined(std::vector<std::vector<StageArray>> parts) {
  std::vector<StageArray> list;
  for (auto& part : parts) list.insert(list.end(), part.begin(), part.end());
  return list;
}
std::string side_name(const std::string& name, size_t side) { return name + "_" + kSides[side]; }

RunnableStage sun_stage() {
  std::vector<StageArray> reads;
  for (const char* name : {"year", "month", "day", "hour", "minute", "second"})
    reads.push_back(scalar(name, "", "local time"));
  reads.push_back(scalar("utc_offset", "h", "local time minus universal time"));
  reads.push_back(scalar("lat", kDegrees, "north positive"));
  reads.push_back(scalar("lon", kDegrees, "longitude, east positive"));
  reads.push_back(scalar("elevation", "m"));
  return {"sun",
          "position of the sun (Solar Position Algorithm, with refraction)",
          reads,
          {scalar("altitude", kDegrees), scalar("azimuth", kDegrees, "clockwise from north")},
          [](const StageInput& in) {
            UtcTime time;
            time.year = static_cast<int>(in.scalar("year"));
            time.month = static_cast<int>(in.scalar("month"));
            time.day = static_cast<int>(in.scalar("day"));
            time.hour = in.scalar("hour") - in.scalar("utc_offset");
            time.minute = in.scalar("minute");
            time.second = in.scalar("second");
            const SunPosition sun =
                sun_position(time, {in.scalar("lat"), in.scalar("lon"), in.scalar("elevation")});
            io::NpzArrays out;
            out.emplace_back("altitude", in.array({sun.altitude_deg}));
            out.emplace_back("azimuth", in.array({sun.azimuth_deg}));
            return out;
          }};
}

io::NpzArrays run_gvf(const StageInput& in) {
  if (in.shape().size() != 2)
    throw InputError(fmt::format("grids of shape {}", to_string(in.shape())), "urban stage gvf", "(y,x)");
  reference::GroundInput g;
  g.rows = in.shape()[0];
  g.cols = in.shape()[1];
  g.pixel_size_m = in.scalar("pixel_size");
  g.shadow = in.grid("shadow");
  g.excess = in.grid("ground_temperature_excess");
  g.wall_sun = in.grid("wall_sun");
  g.wall_height = in.grid("wall_height");
  g.wall_aspect_deg = in.grid("wall_aspect");
  g.buildings = in.grid("buildings");
  g.emissivity = in.grid("emissivity");
  g.albedo = in.grid("albedo");
  g.air_k = in.scalar("Ta") + kZeroCelsius;
  g.wall_emissivity = in.scalar("wall_emissivity");
  g.wall_albedo = in.scalar("wall_albedo");
  g.wall_excess_k = in.scalar("wall_temperature_excess");
  g.near = static_cast<int>(in.scalar("first"));
  g.far = static_cast<int>(in.scalar("second"));
  g.sigma = in.scalar_or("sigma", kSigma);
  if (g.near < 1 || g.far < g.near)
    throw InputError(fmt::format("first {} and second {}", g.near, g.far), "urban stage gvf",
                     "1 <= first <= second, in pixels");
  reference::GroundView view = reference::ground_view(g);
  io::NpzArrays out;
  const std::pair<const char*, reference::Views*> parts[] = {
      {"lup", &view.lup}, {"alb", &view.albedo}, {"alb_no_shadow", &view.albedo_no_shadow}};
  for (const auto& [name, views] : parts) out.emplace_back(name, in.array(std::move((*views)[0])));
  out.emplace_back("norm", in.array(std::move(view.norm)));
  for (const auto& [name, views] : parts)
    for (size_t side = 0; side < 4; ++side)
      out.emplace_back(side_name(name, side), in.array(std::move((*views)[side + 1])));
  return out;
}

RunnableStage gvf_stage() {
  return {
      "gvf",
      "ground view: longwave and albedo of the surfaces around a person",
      {grid("shadow", kOne, "1 = sun"), grid("ground_temperature_excess", kKelvin, "over the air"),
       grid("wall_sun", "m", "sunlit height of walls"), grid("wall_height", "m"),
       grid("wall_aspect", kDegrees), grid("buildings", kOne, "1 = ground, 0 = building"),
       scalar("Ta", "degC"), grid("emissivity", kOne, "of the ground"), grid("albedo", kOne, "of the ground"),
       scalar("wall_emissivity", kOne), scalar("wall_albedo", kOne),
       scalar("wall_temperature_excess", kKelvin), scalar("first", "pixels", "near reach"),
       scalar("second", "pixels", "far reach"), scalar("pixel_size", "m"), sigma_entry()},
      joined({{grid("lup", kFlux), grid("alb", kOne, "albedo times sunlit share"),
               grid("alb_no_shadow", kOne), grid("norm", kOne, "sunlit share of what is seen")},
              four("lup", kFlux),
              four("alb", kOne),
              four("alb_no_shadow", kOne)}),
      run_gvf};
}

/// View factors of one side, all grids.
struct SideGrids {
  Reals svf, veg, aveg;
  SideGrids(const StageInput& in, size_t side)
      : svf(in.grid(side_name("svf", side))),
        veg(in.grid(side_name("svf_veg", side))),
        aveg(in.grid(side_name("svf_aveg", side))) {}
  reference::SideSky at(size_t p) const { return {svf[p], veg[p], aveg[p]}; }
};

std::vector<StageArray> side_inputs() {
  return joined({four("svf", kOne),
                 four("svf_veg", kOne),
                 four("svf_aveg", kOne),
                 {scalar("azimuth", kDegrees, "of the sun"), scalar("altitude", kDegrees)}});
}

io::NpzArrays run_kside(const StageInput& in) {
  const double diffuse = in.scalar("radD"), global = in.scalar("radG"), psi = in.scalar("transmissivity"),
               albedo = in.scalar("wall_albedo");
  const bool day = in.scalar("altitude") > 0;
  const Reals share = in.grid("F_sh");
  io::NpzArrays out;
  for (size_t side = 0; side < 4; ++side) {
    const SideGrids sky(in, side);
    const Reals kup = in.grid(side_name("kup", side));
    Reals k(in.elements(), 0.0);
    for (size_t p = 0; p < k.size() && day; ++p) {
      const double mix = global * (1 - share[p]) + diffuse * share[p];
      k[p] = reference::shortwave_side(sky.at(p), diffuse, albedo, mix, psi, kup[p], 0);
    }
    out.emplace_back(kSides[side], in.array(std::move(k)));
  }
  return out;
}

RunnableStage kside_stage() {
  std::vector<StageArray> writes;
  for (const char* side : kSides) writes.push_back(grid(side, kFlux));
  return {"kside", "shortwave on four vertical sides under an isotropic sky, of a cylinder: without the beam",
          joined({side_inputs(),
                  {scalar("radI", kFlux, "beam, normal"), scalar("radD", kFlux, "diffuse"),
                   scalar("radG", kFlux, "global"), scalar("transmissivity", kOne, "of canopies"),
                   grid("F_sh", kOne, "share of walls in shadow")},
                  four("kup", kFlux),
                  {scalar("wall_albedo", kOne)}}),
          writes, run_kside};
}

io::NpzArrays run_lside(const StageInput& in) {
  StepForcing forcing;
  forcing.sun_altitude_deg = in.scalar("altitude");
  forcing.sun_azimuth_deg = in.scalar("azimuth");
  const StepScalars scalars = step_scalars(forcing, {});
  const double esky = in.scalar("esky"), clearness = in.scalar("CI");
  const Reals share = in.grid("F_sh"), ldown = in.grid("ldown");
  reference::LongwaveSide l{};
  l.sigma = in.scalar_or("sigma", kSigma);
  l.air_k = in.scalar("Ta") + kZeroCelsius;
  l.emissivity = esky * clearness + 1 - clearness;
  l.wall_emissivity = in.scalar("wall_emissivity");
  l.wall_excess_k = in.scalar("wall_temperature_excess");
  io::NpzArrays out;
  for (size_t side = 0; side < 4; ++side) {
    const SideGrids sky(in, side);
    const Reals lup = in.grid(side_name("lup", side));
    l.sun = scalars.wall_sun[side];
    Reals values(in.elements());
    for (size_t p = 0; p < values.size(); ++p) {
      l.shadow_share = share[p];
      l.ldown = ldown[p];
      l.lup = lup[p];
      values[p] = reference::longwave_side(sky.at(p), l);
    }
    out.emplace_back(kSides[side], in.array(std::move(values)));
  }
  return out;
}

RunnableStage lside_stage() {
  std::vector<StageArray> writes;
  for (const char* side : kSides) writes.push_back(grid(side, kFlux));
  return {"lside", "longwave on four vertical sides under an isotropic sky",
          joined({side_inputs(),
                  {scalar("esky", kOne, "emissivity of the clear sky"), scalar("CI", kOne, "clearness index"),
                   scalar("Ta", "degC"), grid("F_sh", kOne, "share of walls in shadow")},
                  four("lup", kFlux),
                  {grid("ldown", kFlux), scalar("wall_temperature_excess", kKelvin),
                   scalar("wall_emissivity", kOne), sigma_entry()}}),
          writes, run_lside};
}

io::NpzArrays run_tmrt(const StageInput& in) {
  const bool anisotropic = in.scalar("sky") != 0;
  const BodyFactors body{in.scalar("f_up"), in.scalar("f_side"), in.scalar("f_cyl"), 0};
  const Reals kdown = in.grid("kdown"), kup = in.grid("kup"), kside = in.grid("kside_total"),
              ldown = in.grid("ldown"), lup = in.grid("lup"), lside = in.grid("lside_total");
  std::array<Reals, 4> ks, ls;
  for (size_t side = 0; side < 4; ++side) {
    ks[side] = in.grid(side_name("kside", side));
    ls[side] = in.grid(side_name("lside", side));
  }
  const double abs_k = in.scalar("abs_k"), abs_l = in.scalar("abs_l"), sigma = in.scalar("sigma");
  Reals tmrt(in.elements());
  for (size_t p = 0; p < tmrt.size(); ++p) {
    reference::BodyFluxes f{kdown[p], kup[p], kside[p], ldown[p], lup[p], anisotropic ? lside[p] : 0, {}, {}};
    for (size_t side = 0; side < 4; ++side) {
      f.kside[side] = ks[side][p];
      f.lside[side] = ls[side][p];
    }
    tmrt[p] = reference::mean_radiant_temperature(f, body, abs_k, abs_l, sigma, kZeroCelsius);
  }
  io::NpzArrays out;
  out.emplace_back("tmrt", in.array(std::move(tmrt)));
  return out;
}

RunnableStage tmrt_stage() {
  return {"tmrt",
          "mean radiant temperature of a body from the fluxes around it",
          joined({{grid("kdown", kFlux), grid("kup", kFlux)},
                  four("kside", kFlux),
                  {grid("kside_total", kFlux, "on the curved side: beam, or all under an anisotropic sky"),
                   grid("ldown", kFlux), grid("lup", kFlux)},
                  four("lside", kFlux),
                  {grid("lside_total", kFlux, "on the curved side; an anisotropic sky only"),
                   scalar("abs_k", kOne), scalar("abs_l", kOne), scalar("f_up", kOne), scalar("f_side", kOne),
                   scalar("f_cyl", kOne), scalar("sky", "", "0 = isotropic, 1 = anisotropic"),
                   scalar("sigma", "W m-2 K-4")}}),
          {grid("tmrt", "degC")},
          run_tmrt};
}

RunnableStage wave_delay_stage() {
  return {"wave_delay",
          "delay of a surface's warmth over one step of the day",
          {grid("x", "any", "of this step"), grid("previous", "any", "carried from the step before"),
           scalar("first_daytime", "", "1 = first step of the day"), scalar("timeadd", "days"),
           scalar("timestep_days", "days")},
          {grid("out", "any"), grid("previous", "any"), scalar("timeadd", "days")},
          [](const StageInput& in) {
            WaveDelay clock{in.scalar("first_daytime") != 0, in.scalar("timeadd")};
            const DelayStep step = advance(clock, in.scalar("timestep_days"));
            Reals x = in.grid("x"), previous = in.grid("previous");
            reference::delay(step, x, previous);
            io::NpzArrays out;
            out.emplace_back("out", in.array(std::move(x)));
            out.emplace_back("previous", in.array(std::move(previous)));
            out.emplace_back("timeadd", Array::of(std::vector<double>{clock.time_added_days},
                                                  Sizes(std::vector<int64_t>{})));
            return out;
          }};
}

io::NpzArrays run_perez(const StageInput& in) {
  std::vector<Direction> patches;
  const std::vector<double> given = in.all("patches");
  if (given.size() == 1) {
    const SkyPatches kind = patches_from_count(static_cast<int>(given[0]));
    patches = sky_division(kind, AnnulusEdges::umep).patches;
  } else {
    if (in.shape_of("patches").size() != 2 || in.shape_of("patches")[1] != 2)
      throw InputError(fmt::format("patches of shape {}", to_string(in.shape_of("patches"))),
                       "urban stage perez", "a count (145, 153, 305, 609) or (n,2): altitude, azimuth");
    for (size_t k = 0; k < given.size(); k += 2) patches.push_back({given[k + 1], given[k]});
  }
  const bool compat = in.scalar("formula") != 0;
  const PerezInput input{in.scalar("altitude"), in.scalar("azimuth"), in.scalar("radD"), in.scalar("radI"),
                         static_cast<int>(in.scalar("doy"))};
  std::vector<double> luminance =
      perez_luminance(patches, input, compat ? PerezFormula::umep_compat : PerezFormula::perez93, !compat);
  const auto count = static_cast<int64_t>(luminance.size());
  io::NpzArrays out;
  out.emplace_back("luminance", Array::of(std::move(luminance), Sizes{count}));
  return out;
}

RunnableStage perez_stage() {
  return {"perez",
          "share of the diffuse light that comes from each patch of the sky",
          {scalar("altitude", kDegrees, "of the sun"), scalar("azimuth", kDegrees),
           scalar("radD", kFlux, "diffuse"), scalar("radI", kFlux, "beam, normal"),
           StageArray{"patches", "() or (n,2)", "", "145, 153, 305 or 609; or altitude and azimuth of each"},
           scalar("doy", "", "day of the year"), scalar("formula", "", "0 = perez93, 1 = umep_compat")},
          {StageArray{"luminance", "(n,)", kOne, "sum 1"}},
          run_perez};
}

Preset preset_of(const StageInput& in) {
  const double number = in.scalar_or("preset", static_cast<double>(Preset::corrected));
  for (const Choice<Preset>& choice : choices(Preset{}))
    if (static_cast<double>(choice.value) == number) return choice.value;
  throw InputError(fmt::format("preset {}", number), "urban stage", "0 umep, 1 solweig, 2 corrected");
}
StageArray preset_entry() {
  return {"preset", kScalar, "", "0 = umep, 1 = solweig, 2 = corrected (default)", true};
}

io::NpzArrays run_surface_temperature(const StageInput& in) {
  const Preset preset = preset_of(in);
  const Constants constants = constants_of(preset);
  StepForcing f;
  f.sun_altitude_deg = in.scalar("altitude");
  f.day_max_altitude_deg = in.scalar("highest");
  f.day_of_year = static_cast<int>(in.scalar("doy"));
  f.sunrise_h = sunrise_hour(f.day_of_year, in.scalar("lat"));
  f.day_fraction = in.scalar("hour") / 24;
  f.air_c = in.scalar("Ta");
  f.humidity_percent = in.scalar("RH");
  f.global_w_m2 = in.scalar("radG");
  set_clear_sky(f, in.scalar("lat"), weather_rules(preset, constants).bands);
  io::NpzArrays out;
  out.emplace_back("excess", in.array({excess_temperature(in.scalar("tgk"), in.scalar("tstart"),
                                                          in.scalar("tmax"), true, f, constants)}));
  return out;
}

RunnableStage surface_temperature_stage() {
  return {
      "surface_temperature",
      "how much warmer than the air a sunlit wall or ground is, at least 0",
      {scalar("lat", kDegrees, "north positive"), scalar("doy", "", "day of the year"),
       scalar("hour", "h", "by the clock of the preset: true solar time in corrected"),
       scalar("altitude", kDegrees, "of the sun"), scalar("highest", kDegrees, "of the sun on that day"),
       scalar("Ta", "degC"), scalar("RH", "%"), scalar("radG", kFlux, "global"),
       scalar("tgk", "K degree-1", "TgK of the surface"), scalar("tstart", kKelvin, "Tstart of the surface"),
       scalar("tmax", "h", "of its highest temperature"), preset_entry()},
      {scalar("excess", kKelvin)},
      run_surface_temperature};
}

/// Packed states of (n,y,x) numbers.
PackedSky states_of(const StageInput& in, const SkyDivision& sky, int64_t rows, int64_t cols) {
  PackedSky packed{rows, cols, static_cast<int>(sky.patches.size()), {}};
  const size_t pixels = static_cast<size_t>(rows * cols);
  packed.words.assign(pixels * static_cast<size_t>(packed.words_per_pixel()), 0u);
  const std::vector<double> states = in.all("states");
  if (states.size() != sky.patches.size() * pixels)
    throw InputError(fmt::format("array 'states' of shape {}", to_string(in.shape_of("states"))),
                     "urban stage radiation", fmt::format("({},{},{})", sky.patches.size(), rows, cols));
  for (size_t k = 0; k < sky.patches.size(); ++k)
    for (size_t p = 0; p < pixels; ++p) {
      const double state = states[k * pixels + p];
      if (!(state >= 0 && state <= 3 && state == std::floor(state)))
        throw InputError(fmt::format("a state {} of the sky", state), "urban stage radiation",
                         "0, 1, 2 or 3");
      packed.words[k / 16 * pixels + p] |= static_cast<uint32_t>(state) << (2 * (k % 16));
    }
  return packed;
}

io::NpzArrays run_radiation(const StageInput& in) {
  const Sizes& shape = in.shape();  // () of one pixel
  if (shape.size() != 0 && shape.size() != 2)
    throw InputError(fmt::format("grids of shape {}", to_string(shape)), "urban stage radiation", "(y,x)");
  RadiationOptions o;
  o.constants = constants_of(preset_of(in));
  o.sky = in.scalar("sky") != 0 ? SkyModel::anisotropic : SkyModel::isotropic;
  o.view.patches = patches_from_count(static_cast<int>(in.scalar("patches")));
  o.wall.albedo = in.scalar("wall_albedo");
  o.wall.emissivity = in.scalar("wall_emissivity");
  o.bare.emissivity = in.scalar("emissivity");
  StepForcing f;
  f.sun_altitude_deg = in.scalar("altitude");
  f.sun_azimuth_deg = in.scalar("azimuth");
  f.day_of_year = static_cast<int>(in.scalar("doy"));
  f.air_c = in.scalar("Ta");
  f.beam_w_m2 = in.scalar("radI");
  f.diffuse_w_m2 = in.scalar("radD");
  f.global_w_m2 = in.scalar("radG");
  f.sky_emissivity = in.scalar("esky");
  f.clearness = in.scalar("CI");
  f.canopy_transmissivity = in.scalar("transmissivity");

  reference::StepGrids g;
  g.rows = shape.size() == 0 ? 1 : shape[0];
  g.cols = shape.size() == 0 ? 1 : shape[1];
  g.sky = sky_division(o.view.patches, o.view.edges);
  g.states = states_of(in, g.sky, g.rows, g.cols);
  g.sun = in.grid("shadow");
  g.vegetation.assign(g.pixels(), 1.0);
  constexpr const char* kFactors[] = {"svf", "svf_veg", "svf_aveg"};
  for (size_t k = 0; k < g.view.size(); ++k)
    g.view[k] = in.grid(k % 5 == 0 ? kFactors[k / 5] : side_name(kFactors[k / 5], k % 5 - 1));
  if (o.constants.even_sides) reference::even_half_skies(g, true);

  reference::StepContext x(g, f, o);
  x.s.wall_excess_k = in.scalar("wall_temperature_excess");
  if (x.anisotropic()) x.cosines = patch_cosines(g.sky, o.constants.exact_patches);
  const std::pair<const char*, reference::Views*> ground[] = {
      {"lup", &x.ground.lup}, {"alb", &x.ground.albedo}, {"alb_no_shadow", &x.ground.albedo_no_shadow}};
  for (const auto& [name, views] : ground)
    for (size_t v = 0; v < views->size(); ++v) (*views)[v] = in.grid(v == 0 ? name : side_name(name, v - 1));
  x.ground.norm.assign(g.pixels(), 0.0);
  reference::StepPlanes planes = reference::step_planes(x);
  io::NpzArrays out;
  for (const RadiationOutput o_name :
       {RadiationOutput::tmrt, RadiationOutput::kdown, RadiationOutput::kup, RadiationOutput::kside,
        RadiationOutput::ldown, RadiationOutput::lup, RadiationOutput::lside})
    out.emplace_back(std::string(name(o_name)), in.array(std::move(planes[static_cast<size_t>(o_name)])));
  for (size_t k = 0; k < reference::kSidePlanes; ++k)
    out.emplace_back(side_name(k < 4 ? "kside" : "lside", k % 4),
                     in.array(std::move(planes[kRadiationOutputs + k])));
  return out;
}

RunnableStage radiation_stage() {
  const auto views = [](const std::string& name, const char* unit, const char* about) {
    return joined({{grid(name, unit, about)}, four(name, unit)});
  };
  return {
      "radiation", "all fluxes on a standing body and on vertical planes, from the surroundings",
      joined({{StageArray{"states", "(n,y,x)", "",
                          "of each patch: 0 sky, 1 plant, 2 building, 3 plant before a building"},
               scalar("patches", "", "145, 153, 305 or 609"),
               scalar("sky", "", "0 = isotropic, 1 = anisotropic"),
               grid("shadow", kOne, "1 = sun; transmissivity under a plant")},
              views("svf", kOne, "as 'urban svf' writes them"),
              views("svf_veg", kOne, ""),
              views("svf_aveg", kOne, ""),
              views("lup", kFlux, "emitted by the ground, delayed"),
              views("alb", kOne, "as stage gvf writes them"),
              views("alb_no_shadow", kOne, ""),
              {scalar("altitude", kDegrees, "of the sun"), scalar("azimuth", kDegrees),
               scalar("radI", kFlux, "beam, normal"), scalar("radD", kFlux, "diffuse"),
               scalar("radG", kFlux, "global"), scalar("doy", "", "day of the year"), scalar("Ta", "degC"),
               scalar("esky", kOne, "emissivity of the clear sky"), scalar("CI", kOne, "clearness index"),
               scalar("transmissivity", kOne, "of canopies"), scalar("wall_temperature_excess", kKelvin),
               scalar("wall_albedo", kOne), scalar("wall_emissivity", kOne),
               scalar("emissivity", kOne, "of the ground"), preset_entry()}}),
      joined({{grid("tmrt", "degC"), grid("kdown", kFlux), grid("kup", kFlux),
               grid("kside", kFlux, "mean over the body's sides"), grid("ldown", kFlux),
               grid("lup", kFlux, "with what the ground reflects"), grid("lside", kFlux)},
              four("kside", kFlux, "on a plane"),
              four("lside", kFlux, "on a plane")}),
      run_radiation};
}

}  // namespace

std::vector<RunnableStage> radiation_stages() {
  return {sun_stage(),      gvf_stage(),        kside_stage(), lside_stage(),
          tmrt_stage(),     wave_delay_stage(), perez_stage(), surface_temperature_stage(),
          radiation_stage()};
}

}  // namespace lockstep::urban
