// Whole runs of a city, from files to files, and the indices of thermal comfort.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "keywords.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/run/report.hpp"
#include "urban/series/arrays.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::urban;

void take_city(Keywords& k, CityFiles& c) {
  k.take("dsm", c.dsm)
      .take("dem", c.dem)
      .take("cdsm", c.cdsm)
      .take("tdsm", c.tdsm)
      .take("pixel_size", c.pixel_size_m)
      .choose("dsm_heights", c.dsm_heights,
              {{"absolute", DsmHeights::absolute}, {"above_ground", DsmHeights::above_ground}})
      .choose("canopy", c.canopy_heights,
              {{"above_ground", CanopyHeights::above_ground}, {"absolute", CanopyHeights::absolute}})
      .take("trunk_ratio", c.trunk_ratio);
}

void take_patches(Keywords& k, SkyPatches& patches) {
  k.choose("patches", patches,
           {{"145", SkyPatches::p145},
            {"153", SkyPatches::p153},
            {"305", SkyPatches::p305},
            {"609", SkyPatches::p609}});
}

SeriesOptions series_of(Keywords& k) {
  SeriesOptions o;
  take_city(k, o.city);
  std::vector<std::string> outputs, formats;
  std::vector<int64_t> leaf_days;
  k.take("land_cover", o.land_cover)
      .take("wall_height", o.wall_height)
      .take("wall_aspect", o.wall_aspect)
      .take("svf", o.svf_folder)
      .take("parameters", o.parameters)
      .take("weather", o.weather)
      .take("points", o.points)
      .take("start", o.from)
      .take("end", o.to)
      .take("utc_offset", o.utc_offset_h)
      .take("latitude", o.latitude_deg)
      .take("longitude", o.longitude_deg)
      .take("elevation", o.elevation_m)
      .choose(
          "interval", o.interval,
          {{"start", IntervalLabel::start}, {"middle", IntervalLabel::middle}, {"end", IntervalLabel::end}})
      .choose("direct", o.horizontal_direct, {{"normal", false}, {"horizontal", true}})
      .take("wind_height", o.wind_height_m)
      .take("leaf_days", leaf_days)
      .take("evergreen", o.evergreen)
      .take("outputs", outputs)
      .take("formats", formats)
      .take("out", o.folder)
      .take("pictures", o.pictures)
      .take("video", o.video)
      .take("preset", o.preset)
      .take("sky", o.sky)
      .take("body", o.body)
      .take("posture", o.posture)
      .take("substeps", o.substeps)
      .take("max_reach", o.rays.max_reach_m)
      .take("minimum_height", o.walls.minimum_height_m)
      .take("tile", o.tiles.side)
      .take("workers", o.tiles.workers)
      .take("memory", o.tiles.memory_bytes)
      .take("resume", o.resume)
      .progress("progress", o.tiles.on_progress);
  if (!leaf_days.empty()) {
    if (leaf_days.size() != 2)
      throw InputError(fmt::format("{} days", leaf_days.size()), "lockstep.urban, argument leaf_days",
                       "the first and the last day of the year with leaves");
    o.leaf_days = LeafDays{int(leaf_days[0]), int(leaf_days[1])};
  }
  take_patches(k, o.patches);
  if (!outputs.empty()) o.outputs.clear();
  for (const std::string& one : outputs) o.outputs.push_back(parse_series_output(one));
  if (!formats.empty()) o.formats.clear();
  for (const std::string& one : formats) {
    if (one != "nc" && one != "tif" && one != "npy")
      throw InputError(one, "lockstep.urban, argument formats", "nc, tif, npy");
    o.formats.push_back(one == "nc"    ? SeriesFormat::nc
                        : one == "tif" ? SeriesFormat::tif
                                       : SeriesFormat::npy);
  }
  return o;
}

Raster raster_of(const nb::dict& grids, const char* name) {
  if (!grids.contains(name)) return {};
  return Raster(array_of(nb::object(grids[name]), fmt::format("lockstep.urban.run, argument {}", name)));
}

/// Grids by name, f32, of whose heights the options tell the meaning; none: all from files.
SeriesArrays arrays_of(const nb::object& grids_or_none, const CityFiles& files, const std::string& weather) {
  SeriesArrays arrays;
  arrays.weather = weather;
  if (grids_or_none.is_none()) return arrays;
  const nb::dict grids = nb::cast<nb::dict>(grids_or_none);
  CityInput& city = arrays.city;
  city.dsm = raster_of(grids, "dsm");
  city.dem = raster_of(grids, "dem");
  city.cdsm = raster_of(grids, "cdsm");
  city.tdsm = raster_of(grids, "tdsm");
  city.pixel_size_m = files.pixel_size_m.value_or(1);
  city.canopy_heights = files.canopy_heights;
  city.dsm_heights = files.dsm_heights;
  city.trunk_ratio = files.trunk_ratio;
  arrays.land_cover = raster_of(grids, "land_cover");
  if (grids.contains("wall_height") || grids.contains("wall_aspect"))
    arrays.walls = Walls{raster_of(grids, "wall_height"), raster_of(grids, "wall_aspect")};
  return arrays;
}

/// The options and the arrays of a call.
std::pair<SeriesOptions, SeriesArrays> series_given(const nb::dict& given, const nb::object& grids,
                                                    const std::string& weather) {
  Keywords k(given, "lockstep.urban.run");
  SeriesOptions options = series_of(k);
  k.done();
  SeriesArrays arrays = arrays_of(grids, options.city, weather);
  return {std::move(options), std::move(arrays)};
}

/// A run in memory: its times, and (times, outputs, rows, cols).
nb::tuple compute_run(OpenDevice& open, const nb::dict& given, const nb::object& grids,
                      const std::string& weather) {
  const std::pair<SeriesOptions, SeriesArrays> call = series_given(given, grids, weather);
  SeriesGrids found = freely([&] { return compute(*open.context, call.first, call.second); });
  const std::vector<size_t> shape = {found.times.size(), call.first.outputs.size(), size_t(found.rows),
                                     size_t(found.cols)};
  return nb::make_tuple(found.times, to_numpy(std::move(found.values), shape));
}

nb::dict run_series(OpenDevice& open, const nb::dict& given, const nb::object& grids,
                    const std::string& weather) {
  const std::pair<SeriesOptions, SeriesArrays> call = series_given(given, grids, weather);
  SeriesResult result = freely([&] { return run(*open.context, call.first, call.second); });
  nb::dict d = nb::cast<nb::dict>(from_json(json_text(to_json(result))));
  d["times"] = nb::cast(result.times);
  nb::dict points;
  for (auto& [name, values] : result.point_values) {
    const size_t n = result.points.size(), steps = n ? values.size() / n : 0;
    points[nb::str(name.c_str())] = to_numpy(std::move(values), {n, steps});
  }
  d["point_values"] = points;
  return d;
}

nb::object input_checks(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.urban.check");
  const SeriesOptions options = series_of(k);
  k.done();
  return from_json(freely([&] { return json_text(to_json(check(*open.context, options))["checks"]); }));
}

nb::object validation(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.urban.validate");
  ValidationOptions o;
  o.series = series_of(k);
  k.take("measured", o.measured).take("measured_utc_offset", o.measured_utc_offset_h).done();
  return from_json(freely([&] { return json_text(to_json(validate(*open.context, o))); }));
}

nb::object gates(OpenDevice& open, const nb::dict& given) {
  Keywords k(given, "lockstep.urban.gates");
  const SeriesOptions options = series_of(k);
  k.done();
  return from_json(freely([&] { return json_text(to_json(run_gates(*open.context, options))); }));
}

nb::object sample(const nb::dict& given) {
  Keywords k(given, "lockstep.urban.sample");
  SampleRunOptions o;
  k.take("out", o.output.folder)
      .choose("format", o.output.format, {{"tif", GridFormat::tif}, {"npy", GridFormat::npy}})
      .take("pictures", o.output.pictures)
      .take("rows", o.rows)
      .take("cols", o.cols)
      .take("pixel_size", o.pixel_size_m)
      .take("seed", o.seed)
      .take("epsg", o.epsg)
      .progress("progress", o.on_progress)
      .done();
  return from_json(freely([&] { return json_text(to_json(run(o))); }));
}

Person person_of(const nb::dict& given) {
  Keywords k(given, "lockstep.urban.pet");
  Person p;
  k.take("mass", p.mass_kg)
      .take("age", p.age_years)
      .take("height", p.height_m)
      .take("activity", p.activity_w)
      .take("clothing", p.clothing_clo)
      .choose("sex", p.sex, {{"male", Sex::male}, {"female", Sex::female}})
      .done();
  check(p);
  return p;
}

/// Tmrt as a grid on the device: what a step of a run does.
template <class F>
nb::object grid_index(OpenDevice& open, const char* stage, const nb::object& tmrt, F work) {
  const Array given = array_of(tmrt, "lockstep.urban, argument tmrt");
  Array found;
  {
    const nb::gil_scoped_release free;
    found = open.context->stage(stage, [&](const Device& device) {
      const Buffer from = device.upload(given.reshape({given.elements()}));
      const Buffer to = device.allocate<f32>({given.elements()});
      work(device, from, to);
      return device.download(to);
    });
  }
  return to_numpy(found.reshape(given.shape()));
}

}  // namespace

void bind_urban_run(nb::module_& module) {
  module.def("urban_run", &run_series, nb::arg("device"), nb::arg("options"), nb::arg("grids").none(),
             nb::arg("weather"));
  module.def("urban_compute", &compute_run, nb::arg("device"), nb::arg("options"), nb::arg("grids").none(),
             nb::arg("weather"));
  module.def("urban_validate", &validation);
  module.def("urban_gates", &gates);
  module.def("urban_check", &input_checks);
  module.def("urban_sample", &sample);
  module.def("utci", &utci);
  module.def("utci_is_fitted", &utci_is_fitted);
  module.def("pet", [](double ta, double rh, double tmrt, double wind, const nb::dict& person) {
    return pet(ta, rh, tmrt, wind, person_of(person));
  });
  module.def("wind_at", &wind_at);
  module.def("utci_grid", [](OpenDevice& open, double ta, double rh, double wind, const nb::object& tmrt) {
    const UtciStep step(ta, rh, wind);
    return grid_index(open, "urban.utci", tmrt,
                      [&](const Device& device, const Buffer& from, const Buffer& to) {
                        utci_grid(device, Stream(), step, from, to);
                      });
  });
  module.def("pet_grid", [](OpenDevice& open, double ta, double rh, const nb::object& tmrt, double wind,
                            const nb::dict& person) {
    const PetStep step(ta, rh, wind, person_of(person));
    return grid_index(open, "urban.pet", tmrt,
                      [&](const Device& device, const Buffer& from, const Buffer& to) {
                        pet_grid(device, Stream(), step, from, to);
                      });
  });
  module.def("stress_class", [](const std::string& index, double value) {
    const ComfortIndex which = index == "pet" ? ComfortIndex::pet : ComfortIndex::utci;
    const int place = stress_class(which, value);
    return place < 0 ? std::string() : std::string(stress_classes(which)[size_t(place)].name);
  });
}

}  // namespace lockstep::python
