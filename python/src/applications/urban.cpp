// Shadows, walls and sky view factors of cities given as arrays.
#include <nanobind/ndarray.h>

#include "bind.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::urban;

using Grid2 = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Raster raster_of(const std::optional<Grid2>& grid, std::optional<float> nodata) {
  if (!grid) return {};
  const int64_t rows = int64_t(grid->shape(0)), cols = int64_t(grid->shape(1));
  Raster raster(Array::of(std::span(grid->data(), size_t(rows * cols)), {rows, cols}));
  raster.nodata = nodata;
  return raster;
}

nb::object to_numpy(Raster raster) {
  auto* const kept = new Raster(std::move(raster));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Raster*>(p); });
  const size_t shape[] = {size_t(kept->rows()), size_t(kept->cols())};
  return nb::cast(nb::ndarray<nb::numpy, float>(kept->pixels().data(), 2, shape, owner));
}

/// The city of the keywords that every function takes.
CityInput city_of(const std::optional<Grid2>& dsm, const std::optional<Grid2>& dem,
                  const std::optional<Grid2>& cdsm, const std::optional<Grid2>& tdsm, double pixel_size_m,
                  bool canopy_absolute, bool dsm_above_ground, double trunk_ratio,
                  std::optional<float> nodata) {
  CityInput city;
  city.dsm = raster_of(dsm, nodata);
  city.dem = raster_of(dem, nodata);
  city.cdsm = raster_of(cdsm, nodata);
  city.tdsm = raster_of(tdsm, nodata);
  city.pixel_size_m = pixel_size_m;
  city.canopy_heights = canopy_absolute ? CanopyHeights::absolute : CanopyHeights::above_ground;
  city.dsm_heights = dsm_above_ground ? DsmHeights::above_ground : DsmHeights::absolute;
  city.trunk_ratio = trunk_ratio;
  return city;
}

TileOptions tiles_of(int64_t side, int workers) {
  TileOptions tiles;
  tiles.side = side;
  tiles.workers = workers;
  return tiles;
}

nb::dict walls_of(Walls walls) {
  nb::dict d;
  d["wall_height"] = to_numpy(std::move(walls.height));
  d["wall_aspect"] = to_numpy(std::move(walls.aspect));
  return d;
}

void bind_shadows(nb::module_& module) {
  module.def(
      "urban_shadows",
      [](OpenDevice& open, const CityInput& city, double azimuth, double altitude,
         const std::optional<Grid2>& wall_height, const std::optional<Grid2>& wall_aspect, double max_reach,
         int64_t tile, int workers) {
        const Direction sun{azimuth, altitude};
        const RayOptions rays{max_reach};
        const TileOptions tiles = tiles_of(tile, workers);
        const bool with_walls = wall_height.has_value();
        const Walls walls{raster_of(wall_height, {}), raster_of(wall_aspect, {})};
        Shadows shadows;
        WallShadows on_walls;
        {
          const nb::gil_scoped_release free;
          if (with_walls) {
            ShadowsWithWalls both = compute_wall_shadows(*open.context, city, walls, sun, rays, tiles);
            shadows = std::move(both.shadows);
            on_walls = std::move(both.walls);
          } else {
            shadows = compute_shadows(*open.context, city, sun, rays, tiles);
          }
        }
        nb::dict d;
        d["shadow_buildings"] = to_numpy(std::move(shadows.buildings));
        d["shadow_vegetation"] = to_numpy(std::move(shadows.vegetation));
        d["shadow_vegetation_before_buildings"] = to_numpy(std::move(shadows.vegetation_before_buildings));
        if (with_walls) {
          d["wall_sun"] = to_numpy(std::move(on_walls.sun));
          d["wall_shadow"] = to_numpy(std::move(on_walls.shadow));
        }
        return d;
      },
      nb::arg("device"), nb::arg("city"), nb::arg("azimuth"), nb::arg("altitude"),
      nb::arg("wall_height").none(), nb::arg("wall_aspect").none(), nb::arg("max_reach"), nb::arg("tile"),
      nb::arg("workers"));
}

void bind_walls(nb::module_& module) {
  module.def("urban_walls",
             [](OpenDevice& open, const CityInput& city, double minimum_height, int64_t tile, int workers) {
               WallOptions options;
               options.minimum_height_m = minimum_height;
               const TileOptions tiles = tiles_of(tile, workers);
               Walls walls;
               {
                 const nb::gil_scoped_release free;
                 walls = compute_walls(*open.context, city, options, tiles);
               }
               return walls_of(std::move(walls));
             });
}

void bind_sky(nb::module_& module) {
  module.def("urban_svf", [](OpenDevice& open, const CityInput& city, int patches, bool open_zenith,
                             const std::string& annuli, double max_reach, bool keep_states, int64_t tile,
                             int workers) {
    SkyOptions options;
    options.patches = patches == 145   ? SkyPatches::p145
                      : patches == 153 ? SkyPatches::p153
                      : patches == 305 ? SkyPatches::p305
                      : patches == 609 ? SkyPatches::p609
                                       : throw InputError(std::to_string(patches) + " patches",
                                                          "lockstep.urban.svf", "145, 153, 305 or 609");
    options.zenith = open_zenith ? ZenithRule::open : ZenithRule::umep;
    options.edges = annuli == "solweig" ? AnnulusEdges::solweig
                    : annuli == "umep"  ? AnnulusEdges::umep
                                        : AnnulusEdges::centred;
    options.rays.max_reach_m = max_reach;
    options.keep_states = keep_states;
    const TileOptions tiles = tiles_of(tile, workers);
    SkyViewFactors factors;
    {
      const nb::gil_scoped_release free;
      factors = compute_sky_view_factors(*open.context, city, options, tiles);
    }
    nb::dict d;
    for (int k = 0; k < kSkyViewGrids; ++k)
      d[nb::str(std::string(kSkyViewNames[size_t(k)]).c_str())] =
          to_numpy(std::move(factors.grids[size_t(k)]));
    if (keep_states) {
      PackedSky& sky = factors.states;
      const size_t shape[] = {size_t(sky.words_per_pixel()), size_t(sky.rows), size_t(sky.cols)};
      auto* const kept = new std::vector<uint32_t>(std::move(sky.words));
      nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<uint32_t>*>(p); });
      d["sky_states"] = nb::cast(nb::ndarray<nb::numpy, uint32_t>(kept->data(), 3, shape, owner));
    }
    return d;
  });

  module.def("sun_position", [](int year, int month, int day, double hour, double minute, double second,
                                double latitude, double longitude, double elevation) {
    const SunPosition p = sun_position(UtcTime{year, month, day, hour, minute, second},
                                       Observer{latitude, longitude, elevation});
    return std::pair(p.azimuth_deg, p.altitude_deg);
  });
}

}  // namespace

void bind_urban(nb::module_& module) {
  nb::class_<CityInput>(module, "City");
  module.def("city", &city_of, nb::arg("dsm").none(), nb::arg("dem").none(), nb::arg("cdsm").none(),
             nb::arg("tdsm").none(), nb::arg("pixel_size"), nb::arg("canopy_absolute"),
             nb::arg("dsm_above_ground"), nb::arg("trunk_ratio"), nb::arg("nodata").none());
  bind_shadows(module);
  bind_walls(module);
  bind_sky(module);
}

}  // namespace lockstep::python
