// Cases of the ground view and of whole steps. Sizes up to 40,000 pixels are random cities, larger ones the
// sample city.
#include "urban/radiation/cases.hpp"

#include <cmath>
#include <memory>
#include <string>

#include "urban/city/random_city.hpp"
#include "urban/city/sample_city.hpp"
#include "urban/city/scene.hpp"
#include "urban/radiation/kernels.hpp"
#include "urban/radiation/model.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/radiation/step/reference_step.hpp"
#include "urban/rays/kernels.hpp"

namespace lockstep::urban {
namespace {

constexpr int64_t kRandomPixels = 40000;

Walls walls_of(const City& city) {
  const Sizes shape{city.rows, city.cols};
  const std::vector<float> heights = reference::wall_height<float>(city, 1.0);
  return {Raster(Array::of(heights, shape)),
          Raster(Array::of(reference::wall_aspect<float>(city, heights), shape))};
}

}  // namespace

SharedSite site_of(const std::string& size, uint64_t seed, bool plants, bool covers) {
  const Shape shape = parse_shape(size, 2);
  const auto site = std::make_shared<CaseSite>();
  if (shape[0] * shape[1] > kRandomPixels) {
    CityInput input = make_sample_city({.rows = shape[0], .cols = shape[1], .seed = seed});
    if (!plants) input.cdsm = input.tdsm = {};
    ContextOptions open;
    open.device = "cpu,interp";
    Context context(open);
    site->walls = compute_walls(context, input, {.minimum_height_m = 1.0});
    site->city = prepare_city(std::move(input));
  } else {
    const double pixel = seed % 2 == 0 ? 2.0 : 1.0;
    site->city = prepare_city(random_city(shape[0], shape[1], seed, {plants, pixel, 0.02}));
    site->city.dem = Raster(shape[0], shape[1], 5.0f).values;
    site->walls = walls_of(site->city);
  }
  const std::vector<SurfaceRow> table = standard_land_cover();
  for (size_t p = 0; covers && p < static_cast<size_t>(site->city.pixels()); ++p)
    site->codes.push_back(table[(p / 7 + seed) % table.size()].code);
  return site;
}

StepForcing noon(uint64_t seed) {
  StepForcing f;
  f.sun_altitude_deg = 35;
  f.sun_azimuth_deg = 110 + 50.0 * static_cast<double>(seed % 5);
  f.day_max_altitude_deg = 52;
  f.sunrise_h = 4.5;
  f.day_fraction = 0.55;
  f.day_of_year = 170;
  f.air_c = 24;
  f.humidity_percent = 45;
  f.beam_w_m2 = 620;
  f.diffuse_w_m2 = 180;
  f.global_w_m2 = 535;
  f.clear_w_m2 = 640;
  f.clear_correction = 0.87;
  f.clear_beam_w_m2 = 830;
  f.clear_diffuse_w_m2 = 90;
  f.clearness = 0.9;
  f.sky_emissivity = 0.78;
  f.water_c = 19;
  return f;
}

RadiationScene scene_of(const CaseSite& site) {
  RadiationScene scene;
  scene.city = &site.city;
  scene.walls = &site.walls;
  scene.land_cover = &site.codes;
  scene.tile = whole_tile(site.city);
  return scene;
}

namespace {

Array planes_of(std::vector<std::vector<double>> planes, const City& city) {
  std::vector<float> values;
  for (const auto& plane : planes)
    for (size_t p = 0; p < plane.size(); ++p)
      values.push_back(city.is_missing(static_cast<int64_t>(p)) ? 0.0f : static_cast<float>(plane[p]));
  return Array::of(std::move(values), {static_cast<int64_t>(planes.size()), city.rows, city.cols});
}

/// Everything of a step: shadows, walls, ground view, fluxes.
Case step_case(const std::string& name, const RadiationOptions& options, bool plants, bool covers,
               bool bench) {
  Case c;
  c.name = name;
  c.small = {"1x1", "3x40", "24x21"};
  if (bench) c.bench = {"512x512", "1024x1024"};
  // A patch of wall whose edge of shade lies within rounding of the pixel's threshold flips.
  c.reference = c.webgpu = Bound::relative(1e-5);
  c.kernels = [=] {
    return std::vector{kernels::ground_geometry(),
                       kernels::ground_albedo(),
                       kernels::ground_surface(plants, covers),
                       kernels::ground_view(covers),
                       kernels::ground_night(covers),
                       kernels::radiation(has_patches(options.sky), plants)};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const SharedSite site = site_of(size, seed, plants, covers);
    const StepForcing forcing = noon(seed);
    const double pixels = static_cast<double>(site->city.pixels());
    const bool anisotropic = has_patches(options.sky);
    const int patches = patch_count(options.view.patches);
    const GroundReach reach = ground_reach(options, site->city.pixel_size_m);
    CaseProblem p;
    // Heights, walls and their aspects, view factors, states, geometry, albedo, delay in and out, results.
    p.bytes = pixels * 4 *
              ((plants ? 3 : 1) + 2 + (anisotropic ? (plants ? 2 : 1) : (plants ? 15 : 5)) +
               (anisotropic ? (patches + 15) / 16 : 0) + (covers ? 1 : 0) + kernels::kGroundWords + 5 + 10 +
               kRadiationOutputs);
    p.flops =
        pixels * (kGroundRays * reach.far * (covers ? 3.0 : 2.0) + (anisotropic ? patches * 12.0 : 400));
    p.reference = [=] {
      reference::StepState state;
      const auto grids = reference::step_grids(site->city, site->walls, site->codes, options, forcing);
      const auto planes = reference::step(grids, forcing, options, state);
      return std::vector{planes_of({planes.begin(), planes.begin() + kRadiationOutputs}, site->city)};
    };
    p.bind = [=](const Device& device) {
      const auto model = std::make_shared<RadiationModel>(device, scene_of(*site), options);
      return CaseRun{[=] { model->step(forcing); },
                     [=] {
                       std::vector<std::vector<double>> planes;
                       for (int k = 0; k < kRadiationOutputs; ++k) {
                         const auto plane =
                             device.download<f32>(model->output(static_cast<RadiationOutput>(k)));
                         planes.emplace_back(plane.begin(), plane.end());
                       }
                       return std::vector{planes_of(planes, site->city)};
                     }};
    };
    return p;
  };
  return c;
}

/// A step in two parts, and the vertical planes of it: the kernels of their means.
Case parts_case() {
  Case c;
  c.name = "urban.step.parts";
  c.small = {"1x1", "3x40", "24x21"};
  c.reference = c.webgpu = Bound::relative(1e-5);
  c.kernels = [] { return std::vector{kernels::mean_of_step(), kernels::mean_of_sides()}; };
  c.make = [](const std::string& size, uint64_t seed) {
    RadiationOptions options;
    options.substeps = 2;
    const SharedSite site = site_of(size, seed, true, false);
    const std::vector<StepForcing> parts = {noon(seed), noon(seed + 1)};
    CaseProblem p;
    p.bytes = static_cast<double>(site->city.pixels()) * 4 * 2 * (3 * kernels::kMeanPlanes + 3 * 8);
    p.flops = static_cast<double>(site->city.pixels()) * 2 * 60;
    p.reference = [=] {
      reference::StepState state;
      reference::StepPlanes mean;
      for (const StepForcing& part : parts) {
        const auto grids = reference::step_grids(site->city, site->walls, site->codes, options, part);
        const auto planes = reference::step(grids, part, options, state);
        for (size_t k = 0; k < mean.size(); ++k) {
          mean[k].resize(planes[k].size());
          for (size_t q = 0; q < planes[k].size(); ++q)
            mean[k][q] +=
                (k == 0 ? std::pow(planes[k][q] + options.constants.kelvin_tmrt, 4) : planes[k][q]) / 2;
        }
      }
      for (double& t : mean[0]) t = std::pow(t, 0.25) - options.constants.kelvin_tmrt;
      return std::vector{planes_of({mean.begin(), mean.end()}, site->city)};
    };
    p.bind = [=](const Device& device) {
      const auto model = std::make_shared<RadiationModel>(device, scene_of(*site), options);
      model->find_all_sides();
      return CaseRun{[=] { model->step(parts); },
                     [=] {
                       std::vector<std::vector<double>> planes;
                       for (int k = 0; k < kRadiationOutputs; ++k) {
                         const auto plane =
                             device.download<f32>(model->output(static_cast<RadiationOutput>(k)));
                         planes.emplace_back(plane.begin(), plane.end());
                       }
                       const auto sides = device.download<f32>(model->sides());
                       for (auto at = sides.begin(); at != sides.end(); at += site->city.pixels())
                         planes.emplace_back(at, at + site->city.pixels());
                       return std::vector{planes_of(planes, site->city)};
                     }};
    };
    return p;
  };
  return c;
}

/// Radiation received by vertical planes that face four sides, everywhere.
Case sides_case(const std::string& name, const RadiationOptions& options, bool plants) {
  Case c;
  c.name = name;
  c.small = {"1x1", "3x40", "24x21"};
  c.reference = c.webgpu = Bound::relative(1e-5);
  c.kernels = [=] { return std::vector{kernels::sides(has_patches(options.sky), plants)}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const SharedSite site = site_of(size, seed, plants, false);
    const StepForcing forcing = noon(seed);
    const double pixels = static_cast<double>(site->city.pixels());
    const int patches = has_patches(options.sky) ? patch_count(options.view.patches) : 0;
    CaseProblem p;
    p.bytes = pixels * 4 * ((patches + 15) / 16 + (plants ? 15 : 5) + 5 + 10 + 5 + 8);
    p.flops = pixels * (patches * 24.0 + 200);
    p.reference = [=] {
      reference::StepState state;
      const auto grids = reference::step_grids(site->city, site->walls, site->codes, options, forcing);
      const auto planes = reference::step(grids, forcing, options, state);
      return std::vector{planes_of({planes.begin() + kRadiationOutputs, planes.end()}, site->city)};
    };
    p.bind = [=](const Device& device) {
      const auto model = std::make_shared<RadiationModel>(device, scene_of(*site), options);
      model->find_all_sides();
      return CaseRun{[=] { model->step(forcing); },
                     [=] {
                       const auto all = device.download<f32>(model->sides());
                       std::vector<std::vector<double>> planes;
                       for (auto at = all.begin(); at != all.end(); at += site->city.pixels())
                         planes.emplace_back(at, at + site->city.pixels());
                       return std::vector{planes_of(planes, site->city)};
                     }};
    };
    return p;
  };
  return c;
}

/// Shade in stripes; every other wall is lit over its whole height.
struct StripedShade {
  std::vector<float> planes, lit, walls, aspect, ground;
  std::vector<int32_t> cover;

  StripedShade(const CaseSite& site, const std::vector<SurfaceRow>& table) {
    const std::vector<uint8_t> mask = ground_mask(site.city);
    for (size_t p = 0; p < mask.size(); ++p) {
      const float wall = mask[p] ? site.walls.height.pixels()[p] : 0.0f;
      planes.push_back(p / 5 % 3 == 0 ? 0.0f : 1.0f);
      walls.push_back(wall);
      lit.push_back(p % 2 == 0 ? wall : 0.5f * wall);
      aspect.push_back(site.walls.aspect.pixels()[p]);
      ground.push_back(mask[p]);
      for (size_t k = 0; k < table.size() && !site.codes.empty(); ++k)
        if (table[k].code == site.codes[p]) cover.push_back(static_cast<int32_t>(k));
    }
  }
};

std::vector<Array> ground_planes(const City& city, const StripedShade& shade, const StepForcing& forcing,
                                 const RadiationOptions& options) {
  reference::StepGrids grids;
  grids.rows = city.rows;
  grids.cols = city.cols;
  grids.pixel_size_m = city.pixel_size_m;
  const auto reals = [](const std::vector<float>& v) { return reference::Reals(v.begin(), v.end()); };
  grids.buildings = reals(shade.ground);
  grids.wall_height = reals(shade.walls);
  grids.wall_sun = reals(shade.lit);
  grids.wall_aspect_deg = reals(shade.aspect);
  grids.cover = shade.cover;
  reference::StepState state;
  const auto view = reference::ground_of_step(grids, forcing, options, reals(shade.planes), state);
  std::vector<std::vector<double>> planes(view.lup.begin(), view.lup.end());
  planes.insert(planes.end(), view.albedo.begin(), view.albedo.end());
  planes.push_back(view.norm);
  return {planes_of(planes, city)};
}

/// The words that the ground view reads of a city's walls and buildings.
Buffer ground_words(const Device& device, const StripedShade& shade, const Shape& plane, const Buffer& walls,
                    const Buffer& aspect, const Buffer& offsets, const GroundSteps& steps,
                    const GroundReach& reach) {
  const Shape padded{plane[0] + 2 * reach.far, plane[1] + 2 * reach.far};
  const int64_t pitch = padded[1];
  const Buffer geometry = device.allocate<u32>({kernels::kGroundWords, plane[0], plane[1]});
  std::vector<float> grid(static_cast<size_t>(padded.elements()), -1.0f);
  for (int64_t k = 0; k < plane.elements(); ++k)
    grid[static_cast<size_t>((k / plane[1] + reach.far) * pitch + k % plane[1] + reach.far)] =
        shade.ground[static_cast<size_t>(k)];
  device.launch(kernels::ground_geometry(), plane, device.upload(grid), walls, aspect, offsets,
                device.upload(steps.sides), geometry, reach.near, reach.far, pitch);
  return geometry;
}

CaseRun bind_gvf(const Device& device, const SharedSite& site, const StripedShade& shade,
                 const StepForcing& forcing, const RadiationOptions& options) {
  const bool covers = !shade.cover.empty();
  const GroundReach reach = ground_reach(options, site->city.pixel_size_m);
  const Shape plane{site->city.rows, site->city.cols};
  const Shape padded{plane[0] + 2 * reach.far, plane[1] + 2 * reach.far};
  const int64_t pitch = padded[1];
  const auto up = [&](const auto& data) { return device.upload(data); };
  const Buffer planes = up(shade.planes).reshape({1, plane[0], plane[1]}),
               lit = up(shade.lit).reshape({1, plane[0], plane[1]}), walls = up(shade.walls).reshape(plane),
               aspect = up(shade.aspect).reshape(plane);
  const GroundSteps steps = ground_steps(reach, pitch);
  const Buffer offsets = up(steps.offsets),
               table = up(step_table(step_values(forcing, options, nullptr), forcing, options, covers,
                                     nullptr, reach)),
               geometry = ground_words(device, shade, plane, walls, aspect, offsets, steps, reach);
  const auto padded_grid = [&](Buffer grid) {
    device.clear(grid);
    return grid;
  };
  const Buffer light = padded_grid(device.allocate<u32>(padded));
  const Buffer out = device.allocate<f32>({kernels::kGroundPlanes, plane[0], plane[1]});
  const auto flat = [](const Buffer& b) { return b.reshape({b.elements()}); };
  const auto inside = [=](const Buffer& b) { return b.window({reach.far, reach.far}, plane); };
  const Kernel surface = kernels::ground_surface(false, covers), view = kernels::ground_view(covers);
  const auto outputs = [=] {
    const auto all = device.download<f32>(out);
    std::vector<std::vector<double>> split;
    for (auto at = all.begin(); at != all.end(); at += plane.elements())
      split.emplace_back(at, at + plane.elements());
    return std::vector{planes_of(split, site->city)};
  };
  if (!covers)
    return CaseRun{[=] {
                     device.launch(surface, plane, planes, lit, walls, table, inside(light));
                     device.launch(view, plane, geometry, flat(light), offsets, table, out, reach.near,
                                   reach.far, pitch, 1);
                   },
                   outputs};
  const Buffer cover = up(shade.cover).reshape(plane), albedo = padded_grid(device.allocate<f32>(padded)),
               lup = padded_grid(device.allocate<f32>(padded));
  return CaseRun{[=] {
                   device.launch(surface, plane, planes, lit, walls, cover, table, inside(light), inside(lup),
                                 inside(albedo));
                   device.launch(view, plane, geometry, flat(light), flat(lup), flat(albedo), cover, offsets,
                                 table, out, reach.near, reach.far, pitch, 1);
                 },
                 outputs};
}

/// The ground view alone, from given shade: what the ground gives, and the sums over it.
Case gvf_case(bool covers) {
  Case c;
  c.name = covers ? "urban.gvf.cover" : "urban.gvf";
  c.small = {"1x1", "3x40", "33x26"};
  c.bench = {"512x512", "1024x1024"};
  c.reference = c.webgpu = Bound::relative(1e-6);
  c.kernels = [=] {
    return std::vector{kernels::ground_surface(false, covers), kernels::ground_view(covers)};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const SharedSite site = site_of(size, seed, false, covers);
    const StepForcing forcing = noon(seed);
    const RadiationOptions options;
    const auto shade = std::make_shared<const StripedShade>(*site, options.land_cover);
    const double pixels = static_cast<double>(site->city.pixels());
    CaseProblem p;
    p.bytes = pixels * 4 *
              (3 + 2 * (covers ? 3 : 1) + (covers ? 2 : 0) + kernels::kGroundWords + kernels::kGroundPlanes);
    p.flops =
        pixels * kGroundRays * ground_reach(options, site->city.pixel_size_m).far * (covers ? 3.0 : 2.0);
    p.reference = [=] { return ground_planes(site->city, *shade, forcing, options); };
    p.bind = [=](const Device& device) { return bind_gvf(device, site, *shade, forcing, options); };
    return p;
  };
  return c;
}

}  // namespace

void add_radiation_cases(CaseRegistry& registry) {
  for (bool covers : {false, true}) registry.add(gvf_case(covers));
  RadiationOptions options;
  registry.add(step_case("urban.step.anisotropic", options, true, false, true));
  registry.add(step_case("urban.step.anisotropic.cover", options, true, true, false));
  registry.add(step_case("urban.step.anisotropic.bare", options, false, false, true));
  registry.add(parts_case());
  registry.add(sides_case("urban.sides.anisotropic", options, true));
  registry.add(sides_case("urban.sides.anisotropic.bare", options, false));
  options.body = Body::box;
  options.posture = Posture::sitting;
  options.view.patches = SkyPatches::p145;
  registry.add(step_case("urban.step.anisotropic.box", options, true, false, false));
  options = {};
  options.sky = SkyModel::isotropic;
  registry.add(step_case("urban.step.isotropic", options, true, false, true));
  registry.add(sides_case("urban.sides.isotropic", options, true));
  registry.add(sides_case("urban.sides.isotropic.bare", options, false));
  registry.add(step_case("urban.step.isotropic.bare", options, false, true, false));
  options.body = Body::box;
  options.constants = constants_of(Preset::umep);
  registry.add(step_case("urban.step.isotropic.umep", options, true, true, false));
  options.constants = constants_of(Preset::solweig);
  registry.add(step_case("urban.step.isotropic.solweig", options, true, true, false));
}

}  // namespace lockstep::urban
