// Whole runs of a city, from files to files, and the indices of thermal comfort.
#include "lockstep/urban/report.hpp"
#include "option_values.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/series/arrays.hpp"
#include "urban_grids.hpp"

namespace lockstep::python {
namespace {

using namespace lockstep::urban;

/// Grids by name, f32, of whose heights the options say the meaning; none: all from files.
SeriesArrays arrays_of(const nb::object& grids_or_none, const CityFiles& files, const std::string& weather) {
  constexpr auto kCall = "lockstep.urban.run";
  SeriesArrays arrays;
  arrays.weather = weather;
  if (grids_or_none.is_none()) return arrays;
  const nb::dict grids = nb::cast<nb::dict>(grids_or_none);
  arrays.city = city_of(grids, files.pixel_size_m.value_or(1), files, kCall);
  arrays.land_cover = raster_of(grids, "land_cover", kCall);
  if (grids.contains("wall_height") || grids.contains("wall_aspect"))
    arrays.walls = Walls{raster_of(grids, "wall_height", kCall), raster_of(grids, "wall_aspect", kCall)};
  return arrays;
}

/// Work on a series with arrays in memory, without the interpreter's lock.
template <class Work>
auto with_series(const nb::dict& given, const nb::object& grids, const std::string& weather, Work work) {
  const auto progress = progress_of(given);
  const auto go = [&](SeriesOptions& options) {
    options.tiles.on_progress = progress;
    options.words = schema_of<SeriesOptions>().in_python("lockstep.urban.run");
    SeriesArrays arrays;
    {
      const nb::gil_scoped_acquire lock;
      arrays = arrays_of(grids, options.city, weather);
    }
    return work(options, arrays);
  };
  return with_options<SeriesOptions>(given, "lockstep.urban.run", go, {"progress"},
                                     {"dsm", "weather", "out"});
}

/// A run in memory: its times, and (times, outputs, rows, cols).
nb::tuple compute_run(OpenDevice& open, const nb::dict& given, const nb::object& grids,
                      const std::string& weather) {
  size_t outputs = 0;
  SeriesGrids found = with_series(given, grids, weather, [&](const auto& options, const auto& arrays) {
    outputs = options.outputs.size();
    return compute(*open.context, options, arrays);
  });
  const std::vector<size_t> shape = {found.times.size(), outputs, size_t(found.rows), size_t(found.cols)};
  return nb::make_tuple(found.times, to_numpy(std::move(found.values), shape));
}

nb::dict run_series(OpenDevice& open, const nb::dict& given, const nb::object& grids,
                    const std::string& weather) {
  SeriesResult result = with_series(given, grids, weather, [&](const auto& options, const auto& arrays) {
    return run(*open.context, options, arrays);
  });
  nb::dict d = nb::cast<nb::dict>(from_json(to_json(result)));
  d["times"] = nb::cast(result.times);
  nb::dict points;
  for (auto& [name, values] : result.point_values) {
    const size_t n = result.points.size(), steps = n ? values.size() / n : 0;
    points[nb::str(name.c_str())] = to_numpy(std::move(values), {n, steps});
  }
  d["point_values"] = points;
  return d;
}

/// The JSON of a command on files.
template <class Options, class Work>
nb::object command(const nb::dict& given, const char* call, Work work) {
  const auto progress = progress_of(given);
  return from_json(with_options<Options>(given, call,
                                         [&](Options& options) {
                                           const auto attend = [&](SeriesOptions& series) {
                                             series.tiles.on_progress = progress;
                                             series.words = schema_of<SeriesOptions>().in_python(call);
                                           };
                                           if constexpr (requires { options.series; })
                                             attend(options.series);
                                           else if constexpr (requires { options.tiles; })
                                             attend(options);
                                           else
                                             options.on_progress = progress;
                                           return work(options);
                                         },
                                         {"progress"}));
}

nb::object input_checks(OpenDevice& open, const nb::dict& given) {
  return command<CheckOptions>(given, "lockstep.urban.check", [&](const auto& options) {
    return to_json(check(*open.context, options));
  })["checks"];
}
nb::object validation(OpenDevice& open, const nb::dict& given) {
  return command<ValidationOptions>(given, "lockstep.urban.validate", [&](const auto& options) {
    return to_json(validate(*open.context, options));
  });
}
nb::object gates(OpenDevice& open, const nb::dict& given) {
  return command<GateOptions>(given, "lockstep.urban.gates", [&](const auto& options) {
    return to_json(run_gates(*open.context, options));
  });
}
nb::object sample(const nb::dict& given) {
  return command<SampleRunOptions>(given, "lockstep.urban.sample",
                                   [](const auto& options) { return to_json(run(options)); });
}

nb::object umep(const nb::dict& given) {
  return from_json(with_options<UmepOptions>(given, "lockstep.urban.umep",
                                             [](const auto& options) { return to_json(run(options)); }));
}

nb::object sunlight(OpenDevice& open, const nb::dict& given) {
  const auto progress = progress_of(given);
  return from_json(with_options<SunlightOptions>(given, "lockstep.urban.sun",
                                                 [&](SunlightOptions& options) {
                                                   options.tiles.on_progress = progress;
                                                   return to_json(run(*open.context, options));
                                                 },
                                                 {"progress"}));
}
nb::object comparison(const nb::dict& given) {
  return from_json(with_options<CompareOptions>(
      given, "lockstep.urban.compare", [](const auto& options) { return to_json(compare(options)); }));
}

nb::object statistics_of_areas(const nb::dict& given) {
  return from_json(with_options<AreaStatisticsOptions>(
      given, "lockstep.urban.stats", [](const auto& options) { return to_json(area_statistics(options)); }));
}

/// A stage's results by name, of arrays by name.
nb::dict stage(const std::string& name, const nb::dict& arrays) {
  NamedArrays given;
  for (const auto& [key, value] : arrays) {
    const std::string array = nb::cast<std::string>(key);
    given.emplace_back(array, array_of(nb::borrow(value), "lockstep.urban.stage, array " + array));
  }
  nb::dict d;
  for (const auto& [result, array] : freely([&] { return run_urban_stage(name, given); }))
    d[nb::str(result.c_str())] = to_numpy(array);
  return d;
}

Person person_of(const nb::dict& given) {
  Person person;
  fill_options(schema_of<Person>(), &person, given, "lockstep.urban.pet");
  return person;
}

/// Tmrt as a grid on the device: what a step of a run does.
template <class F>
nb::object grid_index(OpenDevice& open, const char* stage, const nb::object& tmrt, F work) {
  const Array given = array_of(tmrt, "lockstep.urban, argument tmrt");
  const Array found = freely([&] {
    return open.context->stage(stage, [&](const Device& device) {
      const Buffer from = device.upload(given.reshape({given.elements()}));
      const Buffer to = device.allocate<f32>({given.elements()});
      work(device, from, to);
      return device.download(to);
    });
  });
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
  module.def("urban_umep", &umep);
  module.def("urban_compare", &comparison);
  module.def("urban_sun", &sunlight);
  module.def("urban_stats", &statistics_of_areas);
  module.def("urban_stage", &stage);
  module.def("urban_stages",
             []() -> nb::object { return from_json(to_json(urban_stages()))["stages_of_urban"]; });
  module.def("utci", &utci);
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
