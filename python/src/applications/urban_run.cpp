// Whole runs of a city, from files to files, and the indices of thermal comfort.
#include <fmt/chrono.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/record/record.hpp"
#include "core/reports/summary.hpp"
#include "documents.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "option_values.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/tiled_series.hpp"
#include "urban/series/tiles.hpp"
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
  if (grids.contains("convergence")) arrays.convergence_deg = nb::cast<double>(grids["convergence"]);
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

/// Stages of this run alone: a context adds up over its life.
std::vector<StageRecord> stages_since(const Context& context, const std::vector<StageRecord>& before) {
  std::vector<StageRecord> stages = context.stages();
  for (StageRecord& now : stages)
    for (const StageRecord& then : before)
      if (then.stage == now.stage && then.device == now.device) {
        now.seconds -= then.seconds;
        now.bytes_to_device -= then.bytes_to_device;
        now.bytes_from_device -= then.bytes_from_device;
        now.launches -= then.launches;
        now.fallbacks -= then.fallbacks;
      }
  std::erase_if(stages, [](const StageRecord& s) { return s.launches == 0 && s.fallbacks == 0; });
  return stages;
}

/// A run of files on a device, with the record that the program would write.
SeriesResult recorded_run(OpenDevice& open, const nb::dict& given, const SeriesOptions& options) {
  Context& context = *open.context;
  const DeviceInfo& device = context.device().info();
  const bool exact = context.numerics() == Numerics::exact;
  std::vector<std::string> words = {"urban", "run", "--device=" + device.name};
  if (!exact) words.emplace_back("--numerics=fast");
  {
    const nb::gil_scoped_acquire lock;
    for (std::string& word : words_of(schema_of<SeriesOptions>(), &options, given))
      words.push_back(std::move(word));
  }
  SeriesResult result;
  cli::recorded(words, [&] {
    const std::string started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    const std::vector<StageRecord> before = context.stages();
    RunSummary summary;
    result = run(context, options, SeriesArrays());
    summary.set_device(device.name);
    summary.set_numerics(exact ? "exact" : "fast");
    summary.peak_device_bytes(context.peak_device_bytes());
    for (const StageRecord& stage : result.host_stages) summary.add(stage);
    for (const StageRecord& stage : stages_since(context, before)) summary.add(stage);
    nlohmann::ordered_json document = {{"driver", device.description}, {"started", started}};
    summary.add_to(document);
    cli::note_summary(std::move(document));
  });
  return result;
}

/// Columns by name, each (points, steps).
nb::dict point_values(std::map<std::string, std::vector<double>> columns, size_t points) {
  nb::dict found;
  for (auto& [name, values] : columns) {
    const size_t steps = points ? values.size() / points : 0;
    found[nb::str(name.c_str())] = to_numpy(std::move(values), {points, steps});
  }
  return found;
}

/// A point's values at all steps, (steps, kPointValues).
void take_point(SeriesPointTable& table, size_t point, const nb::object& values) {
  const Array given = array_of(values, "lockstep.urban.run_tiles, values of a point");
  for (size_t step = 0; step < static_cast<size_t>(given.elements()) / kPointValues; ++step)
    table.take(point, step, given.as<float>().data() + step * kPointValues);
}

nb::dict run_series(OpenDevice& open, const nb::dict& given) {
  SeriesResult result = with_series(given, nb::none(), "", [&](const auto& options, const auto&) {
    return recorded_run(open, given, options);
  });
  nb::dict d = nb::cast<nb::dict>(from_document(document_of(result)));
  d["times"] = nb::cast(result.times);
  d["point_values"] = point_values(std::move(result.point_values), result.points.size());
  return d;
}

/// A series open for its tiles, on a device of Python.
struct OpenTiles {
  size_t outputs = 0;
  std::unique_ptr<TiledSeries> series;
};
OpenTiles open_tiles(OpenDevice& open, const nb::dict& given, const nb::object& grids,
                     const std::string& weather) {
  return with_series(given, grids, weather, [&](const auto& options, const auto& arrays) {
    return OpenTiles{options.outputs.size(), std::make_unique<TiledSeries>(*open.context, options, arrays)};
  });
}

/// The JSON of a command on files.
template <class Options, class Work>
nb::object command(const nb::dict& given, const char* call, Work work) {
  const auto progress = progress_of(given);
  return from_document(with_options<Options>(given, call,
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
    return document_of(check(*open.context, options));
  })["checks"];
}
nb::object validation(OpenDevice& open, const nb::dict& given) {
  return command<ValidationOptions>(given, "lockstep.urban.validate", [&](const auto& options) {
    return document_of(validate(*open.context, options));
  });
}
nb::object gates(OpenDevice& open, const nb::dict& given) {
  return command<GateOptions>(given, "lockstep.urban.gates", [&](const auto& options) {
    return document_of(run_gates(*open.context, options));
  });
}
nb::object sample(const nb::dict& given) {
  return command<SampleRunOptions>(given, "lockstep.urban.sample",
                                   [](const auto& options) { return document_of(run(options)); });
}

nb::object umep(const nb::dict& given) {
  return from_document(with_options<UmepOptions>(
      given, "lockstep.urban.umep", [](const auto& options) { return document_of(run(options)); }));
}

nb::object sunlight(OpenDevice& open, const nb::dict& given) {
  const auto progress = progress_of(given);
  return from_document(with_options<SunlightOptions>(given, "lockstep.urban.sun",
                                                     [&](SunlightOptions& options) {
                                                       options.tiles.on_progress = progress;
                                                       return document_of(run(*open.context, options));
                                                     },
                                                     {"progress"}));
}
nb::object planting(OpenDevice& open, const nb::dict& given) {
  return command<PlantOptions>(given, "lockstep.urban.plant", [&](const auto& options) {
    return document_of(plant(*open.context, options));
  });
}
nb::object comparison(const nb::dict& given) {
  return from_document(with_options<CompareOptions>(
      given, "lockstep.urban.compare", [](const auto& options) { return document_of(compare(options)); }));
}

nb::object statistics_of_areas(const nb::dict& given) {
  return from_document(with_options<AreaStatisticsOptions>(
      given, "lockstep.urban.stats",
      [](const auto& options) { return document_of(area_statistics(options)); }));
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

/// Wind at the height of the index, of air whose options are checked.
template <class Options>
double checked_wind(const nb::dict& air, const char* call, double height_m) {
  return with_options<Options>(air, call, [&](const Options& o) {
    schema_of<Options>().check(&o);
    return o.wind_height_m ? wind_at(height_m, o.wind, *o.wind_height_m) : o.wind;
  });
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

void bind_tiles(nb::module_& module) {
  nb::class_<SeriesPointTable>(module, "UrbanPoints")
      .def("take", &take_point)
      .def("write", [](const SeriesPointTable& table, const std::string& file) { table.write(file); })
      .def("values", [](const SeriesPointTable& table, size_t points) {
        std::map<std::string, std::vector<double>> columns;
        table.fill(columns);
        return point_values(std::move(columns), points);
      });
  nb::class_<OpenTiles>(module, "UrbanTiles")
      .def(
          "__init__",
          [](OpenTiles* self, OpenDevice& open, const nb::dict& given, const nb::object& grids,
             const std::string& weather) { new (self) OpenTiles(open_tiles(open, given, grids, weather)); },
          nb::arg("device"), nb::arg("options"), nb::arg("grids").none(), nb::arg("weather"),
          nb::keep_alive<1, 2>())
      .def_prop_ro("key", [](const OpenTiles& t) { return t.series->key(); })
      .def_prop_ro("times", [](const OpenTiles& t) { return t.series->times(); })
      .def_prop_ro("shape",
                   [](const OpenTiles& t) { return nb::make_tuple(t.series->rows(), t.series->cols()); })
      .def_prop_ro("tiles",
                   [](const OpenTiles& t) {
                     nb::list all;
                     for (const Tile& tile : t.series->tiles())
                       all.append(nb::make_tuple(tile.row, tile.col, tile.rows, tile.cols));
                     return all;
                   })
      .def_prop_ro("points",
                   [](const OpenTiles& t) {
                     nb::list all;
                     for (const SeriesPoint& p : t.series->points()) {
                       nb::dict point;
                       point["id"] = p.id;
                       point["x"] = p.x;
                       point["y"] = p.y;
                       point["row"] = p.row;
                       point["col"] = p.col;
                       all.append(point);
                     }
                     return all;
                   })
      .def_prop_ro_static("point_values", [](const nb::object&) { return kPointValues; })
      .def("point_table", [](const OpenTiles& t) { return t.series->point_table(); })
      .def("compute", [](const OpenTiles& t, size_t number) {
        TiledSeries::Values values = freely([&] { return t.series->compute(number); });
        const Tile& tile = t.series->tiles()[number];
        const size_t steps = t.series->times().size(), points = values.points.size() / (steps * kPointValues);
        return nb::make_tuple(
            to_numpy(std::move(values.grids), {steps, t.outputs, size_t(tile.rows), size_t(tile.cols)}),
            to_numpy(std::move(values.points), {steps, points, kPointValues}));
      });
}

}  // namespace

void bind_urban_run(nb::module_& module) {
  module.def("urban_run", &run_series);
  bind_tiles(module);
  module.def("urban_compute", &compute_run, nb::arg("device"), nb::arg("options"), nb::arg("grids").none(),
             nb::arg("weather"));
  module.def("urban_validate", &validation);
  module.def("urban_gates", &gates);
  module.def("urban_check", &input_checks);
  module.def("urban_sample", &sample);
  module.def("urban_umep", &umep);
  module.def("urban_compare", &comparison);
  module.def("urban_sun", &sunlight);
  module.def("urban_plant", &planting);
  module.def("urban_stats", &statistics_of_areas);
  module.def("urban_stage", &stage);
  module.def("urban_stages",
             []() -> nb::object { return from_document(document_of(urban_stages()))["stages_of_urban"]; });
  module.def("utci", &utci);
  module.def("pet", [](double ta, double rh, double tmrt, double wind, const nb::dict& person) {
    return pet(ta, rh, tmrt, wind, person_of(person));
  });
  module.def("utci_wind", [](const nb::dict& air) {
    return checked_wind<UtciOptions>(air, "lockstep.urban.utci", kUtciWindHeight);
  });
  module.def("pet_wind", [](const nb::dict& air) {
    return checked_wind<PetOptions>(air, "lockstep.urban.pet", kPetWindHeight);
  });
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
