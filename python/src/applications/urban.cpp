// Shadows, walls and sky view factors of cities given as arrays.
#include <nanobind/ndarray.h>

#include "lockstep/urban/comfort.hpp"
#include "option_values.hpp"
#include "urban/run/files/array_place.hpp"
#include "urban_grids.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::urban;

/// Options of the functions on arrays: those of the commands that concern no file.
struct ShadowCall : ShadowRunOptions {};
struct WallCall : WallRunOptions {};
struct SkyCall : SkyRunOptions {};

const std::set<std::string> kFiles = {"dsm",         "pixel_size",  "band", "dem",    "cdsm",     "tdsm",
                                      "wall_height", "wall_aspect", "out",  "format", "pictures", "resume"};

void describe(Schema<ShadowCall>& s) {
  std::set<std::string> without = kFiles;
  without.insert(
      {"at", "utc_offset", "latitude", "longitude", "walls", "minimum_height", "wall_filter", "wall_ties"});
  s.of("urban::ShadowRunOptions");
  s.include_base<ShadowRunOptions>(without);
}
void describe(Schema<WallCall>& s) {
  s.of("urban::WallRunOptions");
  s.include_base<WallRunOptions>(kFiles);
}
void describe(Schema<SkyCall>& s) {
  s.of("urban::SkyRunOptions");
  s.include_base<SkyRunOptions>(kFiles);
}

nb::object to_numpy(Raster raster) {
  auto* const kept = new Raster(std::move(raster));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Raster*>(p); });
  const size_t shape[] = {size_t(kept->rows()), size_t(kept->cols())};
  return nb::cast(nb::ndarray<nb::numpy, float>(kept->pixels().data(), 2, shape, owner));
}

/// Work with a call's options and its city, without the interpreter's lock.
template <class Options, class Work>
auto with_city(const nb::dict& grids, double pixel_size, const nb::dict& options, const char* call,
               Work work) {
  return with_options<Options>(options, call, [&](const Options& o) {
    CityInput city;
    {
      const nb::gil_scoped_acquire lock;
      city = city_of(grids, pixel_size, o.city, call);
    }
    return work(o, city);
  });
}

nb::dict shadows_of(OpenDevice& open, const nb::dict& grids, double pixel_size, const nb::dict& options) {
  constexpr auto kCall = "lockstep.urban.shadows";
  const bool with_walls = grids.contains("wall_height");
  const Walls walls{raster_of(grids, "wall_height", kCall), raster_of(grids, "wall_aspect", kCall)};
  ShadowsWithWalls found =
      with_city<ShadowCall>(grids, pixel_size, options, kCall, [&](const auto& o, const auto& city) {
        const Direction sun{o.azimuth_deg.value_or(0), o.altitude_deg.value_or(0)};
        if (with_walls) return compute_wall_shadows(*open.context, city, walls, sun, o.rays, o.tiles);
        return ShadowsWithWalls{compute_shadows(*open.context, city, sun, o.rays, o.tiles), {}};
      });
  nb::dict d = dict_of("shadow_buildings", to_numpy(std::move(found.shadows.buildings)), "shadow_vegetation",
                       to_numpy(std::move(found.shadows.vegetation)), "shadow_vegetation_before_buildings",
                       to_numpy(std::move(found.shadows.vegetation_before_buildings)));
  if (with_walls) {
    d["wall_sun"] = to_numpy(std::move(found.walls.sun));
    d["wall_shadow"] = to_numpy(std::move(found.walls.shadow));
  }
  return d;
}

nb::dict walls_of(OpenDevice& open, const nb::dict& grids, double pixel_size, const nb::dict& options) {
  constexpr auto kCall = "lockstep.urban.walls";
  Walls walls = with_city<WallCall>(grids, pixel_size, options, kCall, [&](const auto& o, const auto& city) {
    return compute_walls(*open.context, city, o.walls, o.tiles);
  });
  return dict_of("wall_height", to_numpy(std::move(walls.height)), "wall_aspect",
                 to_numpy(std::move(walls.aspect)));
}

nb::dict sky_of(OpenDevice& open, const nb::dict& grids, double pixel_size, const nb::dict& options) {
  constexpr auto kCall = "lockstep.urban.svf";
  SkyViewFactors factors =
      with_city<SkyCall>(grids, pixel_size, options, kCall, [&](const auto& o, const auto& city) {
        return compute_sky_view_factors(*open.context, city, o.sky, o.tiles);
      });
  nb::dict d;
  for (size_t k = 0; k < kSkyViewGrids; ++k)
    d[nb::str(std::string(kSkyViewNames[k]).c_str())] = to_numpy(std::move(factors.grids[k]));
  PackedSky& sky = factors.states;
  if (sky.words.empty()) return d;
  const std::vector<size_t> shape = {size_t(sky.words_per_pixel()), size_t(sky.rows), size_t(sky.cols)};
  d["sky_states"] = python::to_numpy(std::move(sky.words), shape);
  return d;
}

}  // namespace

std::vector<NamedSchema> urban_array_schemas() {
  return {{"urban.compute_shadows", &schema_of<ShadowCall>()},
          {"urban.compute_walls", &schema_of<WallCall>()},
          {"urban.compute_svf", &schema_of<SkyCall>()},
          {"urban.compute_pet", &schema_of<Person>()}};
}

/// A grid of the map: its CRS, its north-west corner and the size of its pixels.
io::RasterGrid grid_of(const std::string& crs, double x, double y, double pixel_size, int64_t rows,
                       int64_t cols) {
  io::RasterGrid grid;
  grid.rows = rows, grid.cols = cols;
  grid.has_transform = true;
  grid.transform = {x, pixel_size, 0, y, 0, -pixel_size};
  grid.crs_wkt = crs;
  return grid;
}

void bind_urban(nb::module_& module) {
  module.def("urban_place", [](const std::string& crs, double x, double y, double pixel_size, int64_t rows,
                               int64_t cols, const std::string& where) {
    const ArrayPlace place = place_of_array(grid_of(crs, x, y, pixel_size, rows, cols), where);
    nb::dict d = dict_of("pixel_size", place.pixel_size_m, "convergence", place.convergence_deg, "doubts",
                         place.doubts);
    if (place.centre) d["latitude"] = place.centre->lat, d["longitude"] = place.centre->lon;
    return d;
  });
  module.def("write_raster", [](const std::string& path, const nb::object& values, const std::string& crs,
                                double x, double y, double pixel_size) {
    const Array heights = array_of(values, "lockstep.urban");
    io::write_raster(path, grid_of(crs, x, y, pixel_size, heights.size(0), heights.size(1)), heights);
  });
  module.def("urban_shadows", &shadows_of);
  module.def("urban_walls", &walls_of);
  module.def("urban_svf", &sky_of);
  module.def("sun_position", [](int year, int month, int day, double hour, double minute, double second,
                                double latitude, double longitude, double elevation) {
    const SunPosition p = sun_position(UtcTime{year, month, day, hour, minute, second},
                                       Observer{latitude, longitude, elevation});
    return std::pair(p.azimuth_deg, p.altitude_deg);
  });
}

}  // namespace lockstep::python
