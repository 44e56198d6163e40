// A whole run: the sample city as files.
#include "core/reports/host_stage.hpp"
#include "urban/city/sample_city.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/run/files/outputs.hpp"

namespace lockstep::urban {

SampleRunResult run(const SampleRunOptions& options) {
  SampleRunResult result;
  SampleCityOptions sample;
  sample.rows = result.rows = options.rows;
  sample.cols = result.cols = options.cols;
  sample.pixel_size_m = result.pixel_size_m = options.pixel_size_m;
  sample.seed = result.seed = options.seed;
  const CityInput city =
      host_stage(result.host_stages, "sample", [&] { return make_sample_city(sample, options.on_progress); });
  io::RasterGrid grid;
  grid.rows = options.rows;
  grid.cols = options.cols;
  grid.has_transform = true;
  // A place on the plain of Uppland, so that the sun has the positions that it has over a northern city.
  grid.transform = {674000, options.pixel_size_m, 0, 6580000, 0, -options.pixel_size_m};
  if (options.output.format != GridFormat::npy) grid.crs_wkt = io::crs_from_epsg(options.epsg);
  Outputs outputs(options.output, grid, sample_looks());
  host_stage(result.host_stages, "write", [&] {
    const Raster* const grids[] = {&city.dsm, &city.dem, &city.cdsm, &city.tdsm};
    for (size_t k = 0; k < std::size(grids); ++k) outputs.take(k, grids[k]->pixels());
    finish(result, outputs, names_of(sample_looks()), relief_of(city.dsm, grid, options.output));
  });
  return result;
}

}  // namespace lockstep::urban
