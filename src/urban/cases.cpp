// Cases of the urban kernels. Sizes "64x48" are random cities; "goteborg:512x512" is Göteborg and its mirror
// images, where $LOCKSTEP_DATA has its rasters.
#include "urban/radiation/cases.hpp"

#include <bit>
#include <filesystem>
#include <memory>
#include <random>

#include "core/environment/environment.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"
#include "urban/city/random_city.hpp"
#include "urban/comfort/cases.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/reference.hpp"
#include "urban/sky/sky.hpp"
#include "urban/sun/shadows.hpp"
#include "urban/sunlight/facades.hpp"
#include "urban/sunlight/sun_kernels.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep {
namespace {

using namespace urban;
namespace fs = std::filesystem;
constexpr std::string_view kGoteborg = "goteborg:";

/// The raster `name` of Göteborg as .npy or .tif; empty if there is none.
fs::path goteborg_file(const std::string& name) {
  const char* data = environment::text("LOCKSTEP_DATA");
  if (!data) return {};
  for (const char* suffix : {".npy", ".tif"}) {
    const fs::path file = fs::path(data) / "urban/goteborg" / (name + suffix);
    std::error_code error;
    if (fs::exists(file, error)) return file;
  }
  return {};
}
bool has_goteborg() { return !goteborg_file("DSM_KRbig").empty() && !goteborg_file("CDSM_KRbig").empty(); }

Raster read_grid(const fs::path& file) {
  io::RasterReadOptions options;
  options.pixel_size = 1.0;
  return Raster(io::read_raster(file, options).values);
}

CityInput city_of(const std::string& size, uint64_t seed, bool plants) {
  if (size.starts_with(kGoteborg)) {
    const auto shape = parse_shape(size.substr(kGoteborg.size()), 2);
    if (!has_goteborg())
      throw InputError("no rasters of Göteborg", "LOCKSTEP_DATA", "a folder with urban/goteborg");
    CityInput city;
    city.dsm = read_grid(goteborg_file("DSM_KRbig"));
    if (plants) city.cdsm = read_grid(goteborg_file("CDSM_KRbig"));
    return mirrored_city(city, shape[0], shape[1]);
  }
  const auto shape = parse_shape(size, 2);
  return random_city(shape[0], shape[1], seed, {plants, seed % 2 == 0 ? 2.0 : 1.0, 0.02});
}

/// Case fields that all share.
Case urban_case(const std::string& name, std::vector<std::string> small, std::vector<std::string> bench) {
  Case c;
  c.name = name;
  c.small = std::move(small);
  c.bench = std::move(bench);
  return c;
}

std::vector<std::string> bench_sizes() {
  std::vector<std::string> sizes = {"512x512", "1024x1024"};
  if (has_goteborg())
    for (const char* size : {"512x512", "1024x1024"}) sizes.push_back(std::string(kGoteborg) + size);
  return sizes;
}

const std::vector<std::string> kRaySizes = {"1x1", "1x37", "40x3", "33x52", "90x71"};
const std::vector<std::string> kSkySizes = {"1x1", "3x40", "37x29"};

using City_ = std::shared_ptr<const City>;
City_ shared_city(const std::string& size, uint64_t seed, bool plants) {
  return std::make_shared<const City>(prepare_city(city_of(size, seed, plants)));
}

/// A scene with its maxima, resident.
Scene resident_scene(const Device& device, const City& city) {
  const Scene scene = upload_scene(device, {}, city, whole_tile(city));
  build_maxima(device, {}, scene);
  return scene;
}

Array core_array(const City& city, const std::vector<float>& values) {
  return Array::of(values, {city.rows, city.cols});
}

std::vector<float> bits(const std::vector<SkyState>& states, bool (*bit)(SkyState)) {
  std::vector<float> values;
  for (SkyState s : states) values.push_back(bit(s) ? 1.0f : 0.0f);
  return values;
}

/// Shade height and depth of missing pixels are what the kernel starts from: their own (no) height, and 0.
std::vector<float> own_where_missing(const City& city, std::vector<float> values) {
  for (size_t p = 0; p < values.size(); ++p)
    if (city.is_missing(static_cast<int64_t>(p))) values[p] = kNoHeight;
  return values;
}

Case shadow_case(bool plants, bool heights) {
  Case c = urban_case(std::string("urban.shadow") + (plants ? ".plants" : "") + (heights ? ".heights" : ""),
                      kRaySizes, bench_sizes());
  c.kernels = [=] { return std::vector{kernels::shadow(plants, heights)}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, plants);
    const Ray ray = plan_ray(*city, {200.0 + 37.0 * static_cast<double>(seed % 5), 25.0}, {});
    CaseProblem p;
    p.bytes =
        static_cast<double>(city->pixels()) * 4.0 * ((plants ? 6 : 2) + (heights ? (plants ? 2 : 1) : 0));
    p.reference = [=] {
      const auto rays = reference::cast<float>(*city, ray.steps, heights);
      std::vector<float> planes = bits(rays.state, reference::sees_past_buildings);
      const auto append = [&](const std::vector<float>& plane) {
        planes.insert(planes.end(), plane.begin(), plane.end());
      };
      if (plants) {
        append(bits(rays.state, reference::sees_past_vegetation));
        append(bits(rays.state, reference::no_vegetation_before_building));
      }
      if (heights) append(own_where_missing(*city, rays.shade_height));
      if (heights && plants) append(rays.canopy_depth);
      return std::vector{
          Array::of(planes, {kernels::ShadowPlanes{plants, heights}.count(), city->rows, city->cols})};
    };
    p.bind = [=](const Device& device) {
      const Scene scene = resident_scene(device, *city);
      const ShadowBuffers buffers = allocate_shadow(device, {}, ray, *city, scene, heights);
      return CaseRun{[=] { cast_shadow(device, {}, scene, buffers); },
                     [=] { return std::vector{device.download(buffers.planes)}; }};
    };
    return p;
  };
  return c;
}

/// Three positions of the sun whose shadows are drawn by lot.
Case sun_count_case(bool plants) {
  constexpr int kSuns = 3;
  Case c = urban_case(std::string("urban.sun.count") + (plants ? ".plants" : ""), kRaySizes, bench_sizes());
  c.kernels = [=] { return std::vector{kernels::count_sun(plants)}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, false);
    const int64_t planes = kernels::ShadowPlanes{plants, false}.count(), counts = plants ? 2 : 1;
    const size_t pixels = static_cast<size_t>(city->pixels());
    std::mt19937_64 lots(seed);
    auto shadows = std::make_shared<std::vector<std::vector<float>>>(kSuns);
    for (std::vector<float>& shadow : *shadows)
      for (size_t k = 0; k < pixels * static_cast<size_t>(planes); ++k)
        shadow.push_back(static_cast<float>(lots() & 1));
    CaseProblem p;
    p.bytes = kSuns * 4.0 * static_cast<double>(city->pixels() * 3 * counts);
    p.reference = [=] {
      std::vector<uint32_t> seen(pixels * static_cast<size_t>(counts));
      for (const std::vector<float>& shadow : *shadows)
        for (size_t k = 0; k < pixels; ++k) {
          seen[k] += shadow[k] == 1;
          if (plants) seen[pixels + k] += shadow[k] + shadow[pixels + k] == 2;
        }
      return std::vector{Array::of(seen, {counts, city->rows, city->cols})};
    };
    p.bind = [=](const Device& device) {
      std::vector<Buffer> planes_of_suns;
      for (const std::vector<float>& shadow : *shadows)
        planes_of_suns.push_back(
            device.upload(std::span<const float>(shadow), Shape{planes, city->rows, city->cols}));
      const Buffer seen = device.allocate<u32>({counts, city->rows, city->cols});
      const auto count = [=] {
        device.clear(seen);
        for (const Buffer& shadow : planes_of_suns)
          device.launch(kernels::count_sun(plants), Shape{city->rows, city->cols}, shadow, seen);
      };
      return CaseRun{count, [=] { return std::vector{device.download(seen)}; }};
    };
    return p;
  };
  return c;
}

/// Three positions of the sun on points of walls: one a pixel, of drawn heights and directions.
Case facade_sun_case(bool plants) {
  using Rows = kernels::FacadeRows;
  Case c = urban_case(std::string("urban.sun.facade") + (plants ? ".plants" : ""), kRaySizes, bench_sizes());
  c.kernels = [=] { return std::vector{kernels::facade_sun(plants)}; };
  c.dtype = "i32";
  c.make = [=](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, plants);
    const int64_t pixels = city->pixels();
    const auto n = static_cast<size_t>(pixels);
    std::mt19937_64 lots(seed);
    std::vector<int32_t> points(Rows::kCount * n);
    for (size_t k = 0; k < n; ++k) {
      points[Rows::kRow * n + k] = static_cast<int32_t>(static_cast<int64_t>(k) / city->cols);
      points[Rows::kCol * n + k] = static_cast<int32_t>(static_cast<int64_t>(k) % city->cols);
      const float ground = city->dsm.as<float>()[k], above = static_cast<float>(lots() % 128) * 0.25f;
      points[Rows::kHeight * n + k] = std::bit_cast<int32_t>(std::max(ground, 0.0f) + above);
      points[Rows::kAspect * n + k] = std::bit_cast<int32_t>(static_cast<float>(lots() % 720) * 0.5f);
    }
    std::vector<Ray> suns;
    for (const double azimuth : {100.0, 190.0, 275.0})
      suns.push_back(plan_ray(*city, {azimuth + 7 * double(seed % 5), 20.0}, {}));
    CaseProblem p;
    p.bytes = static_cast<double>(pixels) * 3 * 4.0 * (Rows::kCount + 2 + (plants ? 6 : 3));
    p.reference = [=] {
      std::vector<int32_t> seen = points;
      for (const Ray& sun : suns)
        for (size_t k = 0; k < n; ++k) {
          const auto aspect = std::bit_cast<float>(points[Rows::kAspect * n + k]);
          const SkyState state = reference::wall_state<float>(
              *city, sun.steps, static_cast<int64_t>(k), aspect,
              std::bit_cast<float>(points[Rows::kHeight * n + k]), sun.direction.azimuth_deg);
          seen[Rows::kPastBuildings * n + k] += reference::sees_past_buildings(state);
          seen[Rows::kPastPlants * n + k] += state == SkyState::sky;
        }
      return std::vector{Array::of(seen, {Rows::kCount, pixels})};
    };
    p.bind = [=](const Device& device) {
      const Scene s = resident_scene(device, *city);
      const Buffer buffer = device.upload(std::span<const int32_t>(points), Shape{Rows::kCount, pixels});
      std::vector<ShadowBuffers> rays;
      for (const Ray& sun : suns) rays.push_back(allocate_shadow(device, {}, sun, *city, s, false));
      const auto shine = [=] {
        device.clear(buffer.rows(Rows::kPastBuildings, 2));
        for (size_t k = 0; k < suns.size(); ++k)
          cast_facade_sun(device, {}, s, rays[k].rays, buffer, sun_side(suns[k].direction.azimuth_deg));
      };
      return CaseRun{shine, [=] { return std::vector{device.download(buffer)}; }};
    };
    return p;
  };
  return c;
}

Case maxima_case() {
  Case c = urban_case("urban.maxima", kRaySizes, bench_sizes());
  c.kernels = [] {
    return std::vector{kernels::max_along_rows(), kernels::max_along_cols(), kernels::far_max_along_rows(),
                       kernels::far_max_along_cols()};
  };
  c.make = [](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, true);
    const PaddedShape shape(city->rows, city->cols);
    CaseProblem p;
    p.bytes = static_cast<double>(shape.elements()) * 4.0 * 5;
    p.reference = [=] {
      const auto padded = [&](const Array& heights) {
        const std::span<const float> grid = heights.as<float>();
        std::vector<float> out(static_cast<size_t>(shape.elements()), kNoHeight);
        for (int64_t r = 0; r < city->rows; ++r)
          for (int64_t col = 0; col < city->cols; ++col)
            out[static_cast<size_t>(shape.index(r, col))] = grid[static_cast<size_t>(r * city->cols + col)];
        return out;
      };
      const auto box_max = [&](const std::vector<float>& in, int64_t side) {
        std::vector<float> out(in.size(), kNoHeight);
        const int64_t rows = shape.padded_rows(), cols = shape.pitch;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t col = 0; col < cols; ++col)
            for (int64_t y = r; y < std::min(rows, r + side); ++y)
              for (int64_t x = col; x < std::min(cols, col + side); ++x)
                out[static_cast<size_t>(r * cols + col)] =
                    std::max(out[static_cast<size_t>(r * cols + col)], in[static_cast<size_t>(y * cols + x)]);
        return out;
      };
      const std::vector<float> dsm = padded(city->dsm);
      const std::vector<float> canopy = city->has_vegetation() ? padded(city->canopy) : dsm;
      std::vector<float> both = dsm;
      for (size_t k = 0; k < both.size(); ++k) both[k] = std::max(dsm[k], canopy[k]);
      return std::vector{Array::of(box_max(dsm, 8)), Array::of(box_max(both, 32))};
    };
    p.bind = [=](const Device& device) {
      const Scene scene = upload_scene(device, {}, *city, whole_tile(*city));
      return CaseRun{
          [=] { build_maxima(device, {}, scene); },
          [=] { return std::vector{device.download(scene.near_dsm), device.download(scene.far)}; }};
    };
    return p;
  };
  return c;
}

enum class SkyPart { states, grids, all };

Case sky_case(const std::string& name, SkyPart part, bool plants, SkyPatches patches) {
  Case c =
      urban_case(name, kSkySizes, patches == SkyPatches::p153 ? bench_sizes() : std::vector<std::string>{});
  if (part == SkyPart::states) c.dtype = "u32";
  c.kernels = [=] {
    std::vector<Kernel> list;
    if (part != SkyPart::grids) list.push_back(kernels::sky_states(plants));
    if (part != SkyPart::states) list.push_back(kernels::sky_view(plants));
    return list;
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, plants);
    SkyOptions options;
    options.patches = patches;
    const auto plan = std::make_shared<const SkyPlan>(plan_sky(*city, options));
    const double pixels = static_cast<double>(city->pixels());
    const double inputs = plants ? 12.0 : 4.0, words = 4.0 * plan->words(), grids = 4.0 * (plants ? 15 : 5);
    CaseProblem p;
    p.bytes = pixels * (part == SkyPart::states  ? inputs + words
                        : part == SkyPart::grids ? words + grids
                                                 : inputs + grids);
    p.reference = [=] {
      const PackedSky states = reference::sky_states<float>(*city, plan->sky, options);
      if (part == SkyPart::states)
        return std::vector{Array::of(states.words, {plan->words(), city->rows, city->cols})};
      // The device computes missing pixels too, as open sky: the host masks them.
      City whole = *city;
      for (float& h : whole.dsm.mutate<float>())
        if (h == kNoHeight) h = 0;
      auto all = reference::sky_view<float>(whole, plan->sky, states);
      std::vector<float> values;
      for (size_t g = 0; g < static_cast<size_t>(plants ? kSkyViewGrids : kSectors); ++g)
        values.insert(values.end(), all[g].begin(), all[g].end());
      return std::vector{Array::of(values, {plants ? kSkyViewGrids : kSectors, city->rows, city->cols})};
    };
    p.bind = [=](const Device& device) {
      const Scene scene = resident_scene(device, *city);
      const SkyBuffers buffers = allocate_sky(device, {}, *plan, scene);
      const auto states = [=] { cast_sky(device, {}, *plan, scene, buffers, 0, plan->words()); };
      const auto views = [=] { view_sky(device, {}, *plan, scene, buffers); };
      const Buffer result = part == SkyPart::states ? buffers.states : buffers.grids;
      const auto outputs = [=] { return std::vector{device.download(result)}; };
      if (part == SkyPart::states) return CaseRun{states, outputs};
      if (part == SkyPart::grids) {
        states();
        return CaseRun{views, outputs};
      }
      return CaseRun{[=] {
                       build_maxima(device, {}, scene);
                       states();
                       views();
                     },
                     outputs};
    };
    return p;
  };
  return c;
}

constexpr double kWallLimit = 2.0;

WallScene wall_scene(const Device& device, const City& city) {
  const int side = wall_template_side(city.pixel_size_m, WallFilter::metres);
  return upload_walls(device, {}, city, whole_tile(city), wall_templates(side));
}

Case wall_height_case() {
  Case c = urban_case("urban.walls.height", kRaySizes, bench_sizes());
  c.kernels = [] { return std::vector{kernels::wall_height()}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, false);
    CaseProblem p;
    p.bytes = 8.0 * static_cast<double>(city->pixels());
    p.reference = [=] {
      const auto walls = reference::wall_height<float>(*city, kWallLimit);
      const PaddedShape shape(city->rows, city->cols);
      std::vector<float> padded(static_cast<size_t>(shape.elements()), 0.0f);
      for (int64_t k = 0; k < city->pixels(); ++k)
        padded[static_cast<size_t>(shape.index(k / city->cols, k % city->cols))] =
            walls[static_cast<size_t>(k)];
      return std::vector{Array::of(padded)};
    };
    p.bind = [=](const Device& device) {
      const WallScene scene = wall_scene(device, *city);
      return CaseRun{[=] { find_wall_heights(device, {}, *city, scene, kWallLimit); },
                     [=] { return std::vector{device.download(scene.walls)}; }};
    };
    return p;
  };
  return c;
}

Case wall_aspect_case(WallTies ties) {
  const bool middle = ties == WallTies::middle;
  Case c = urban_case(middle ? "urban.walls.aspect" : "urban.walls.aspect.first", kRaySizes,
                      middle ? bench_sizes() : std::vector<std::string>{});
  c.kernels = [=] {
    std::vector<Kernel> list;
    for (double px : {4.0, 2.0, 1.0})
      list.push_back(wall_aspect_kernel(wall_template_side(px, WallFilter::metres), ties));
    return list;
  };
  c.webgpu = c.reference = Bound::absolute(3e-4);  // degrees; atan2 of the slope rounds differently
  c.make = [=](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, false);
    WallOptions options;
    options.ties = ties;
    CaseProblem p;
    p.bytes = 12.0 * static_cast<double>(city->pixels());
    p.reference = [=] {
      const auto walls = reference::wall_height<float>(*city, kWallLimit);
      return std::vector{core_array(*city, reference::wall_aspect<float>(*city, walls, options))};
    };
    p.bind = [=](const Device& device) {
      const WallScene scene = wall_scene(device, *city);
      find_wall_heights(device, {}, *city, scene, kWallLimit);
      return CaseRun{[=] { find_wall_aspects(device, {}, *city, scene, ties); },
                     [=] { return std::vector{device.download(scene.aspect)}; }};
    };
    return p;
  };
  return c;
}

Case wall_shade_case(bool plants) {
  Case c = urban_case(plants ? "urban.walls.shade.plants" : "urban.walls.shade", kRaySizes, bench_sizes());
  c.kernels = [=] { return std::vector{kernels::wall_shade(plants)}; };
  c.make = [=](const std::string& size, uint64_t seed) {
    const City_ city = shared_city(size, seed, plants);
    const double azimuth = 30.0 + 80.0 * static_cast<double>(seed % 5);
    const Ray ray = plan_ray(*city, {azimuth, 25.0}, {});
    struct Grids {
      std::vector<float> walls, aspect;
    };
    const auto grids = std::make_shared<Grids>();
    grids->walls = reference::wall_height<float>(*city, kWallLimit);
    grids->aspect = reference::wall_aspect<float>(*city, grids->walls);
    CaseProblem p;
    p.bytes = 4.0 * static_cast<double>(city->pixels()) * (plants ? 7 : 6);
    p.reference = [=] {
      const auto rays = reference::cast<float>(*city, ray.steps, true);
      const auto lit = reference::shade_walls<float>(*city, rays, grids->walls, grids->aspect, azimuth);
      std::vector<float> planes = lit.sun;
      planes.insert(planes.end(), lit.shadow.begin(), lit.shadow.end());
      return std::vector{Array::of(planes, {2, city->rows, city->cols})};
    };
    p.bind = [=](const Device& device) {
      const Shape core{city->rows, city->cols};
      const Scene scene = resident_scene(device, *city);
      const ShadowBuffers buffers = allocate_shadow(device, {}, ray, *city, scene, true);
      cast_shadow(device, {}, scene, buffers);
      const Buffer walls = device.upload(std::span<const float>(grids->walls), core);
      const Buffer aspect = device.upload(std::span<const float>(grids->aspect), core);
      const Buffer lit = device.allocate<f32>({2, city->rows, city->cols});
      return CaseRun{[=] { shade_walls(device, {}, scene, buffers, walls, aspect, sun_side(azimuth), lit); },
                     [=] { return std::vector{device.download(lit)}; }};
    };
    return p;
  };
  return c;
}

}  // namespace

void add_urban_cases(CaseRegistry& registry) {
  registry.add(maxima_case());
  for (bool heights : {false, true})
    for (bool plants : {false, true}) registry.add(shadow_case(plants, heights));
  for (bool plants : {false, true}) {
    const std::string suffix = plants ? ".plants" : "";
    registry.add(sky_case("urban.svf.states" + suffix, SkyPart::states, plants, SkyPatches::p153));
    registry.add(sky_case("urban.svf.grids" + suffix, SkyPart::grids, plants, SkyPatches::p153));
    registry.add(sky_case("urban.svf.all" + suffix, SkyPart::all, plants, SkyPatches::p153));
  }
  registry.add(sky_case("urban.svf.patches145", SkyPart::all, true, SkyPatches::p145));
  registry.add(sky_case("urban.svf.patches305", SkyPart::all, true, SkyPatches::p305));
  registry.add(sky_case("urban.svf.patches609", SkyPart::all, true, SkyPatches::p609));
  for (bool plants : {false, true}) registry.add(sun_count_case(plants));
  for (bool plants : {false, true}) registry.add(facade_sun_case(plants));
  registry.add(wall_height_case());
  for (WallTies ties : {WallTies::middle, WallTies::first}) registry.add(wall_aspect_case(ties));
  for (bool plants : {false, true}) registry.add(wall_shade_case(plants));
  add_comfort_cases(registry);
  urban::add_radiation_cases(registry);
}

}  // namespace lockstep
