#include "urban/plant/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/files/atomic_file.hpp"
#include "core/reports/log.hpp"
#include "io/pictures/plot.hpp"
#include "io/vectors/geopackage.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/pictures/map_style.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

/// Canopy and trunk heights as the city's files have them, with the trees.
struct PlantRasters {
  Array canopy, trunk;
};

PlantRasters rasters_with_trees(const PlantOptions& options, const SeriesInputs& inputs,
                                const std::vector<CrownPixel>& crown, const std::vector<PlantedTree>& trees) {
  CityFiles files = options.city;
  if (files.dsm_heights == DsmHeights::absolute) files.dem.clear();
  const CityInput input = read_city(files).input;
  const City& city = inputs.city;
  const Sizes shape{city.rows, city.cols};
  PlantRasters rasters{input.cdsm.empty() ? Array(Storage::f32, shape) : input.cdsm.values,
                       input.tdsm.empty() ? Array(Storage::f32, shape) : input.tdsm.values};
  const auto canopy = rasters.canopy.mutate<float>(), trunk = rasters.trunk.mutate<float>();
  const auto ground = city.dsm.as<float>(), tops = city.canopy.as<float>(), trunks = city.trunk.as<float>();
  const TreeHeights heights{options.city.canopy_heights, city.shift};
  const bool above = options.city.canopy_heights == CanopyHeights::above_ground;
  const auto ratio = static_cast<float>(inputs.parameters.trunk_ratio.value_or(options.city.trunk_ratio));
  // Trunk zones that no file has: what the share of the canopy's height gave.
  for (size_t p = 0; input.tdsm.empty() && p < trunk.size(); ++p)
    if (tops[p] > 0) trunk[p] = above ? canopy[p] * ratio : trunks[p] - city.shift;
  for (const PlantedTree& tree : trees)
    for (const CrownPixel& c : crown) {
      const auto p = static_cast<size_t>((tree.row + c.row) * city.cols + tree.col + c.col);
      canopy[p] = heights.in_file(c.top_m, ground[p]);
      trunk[p] = heights.in_file(c.trunk_m, ground[p]);
    }
  return rasters;
}

io::FeatureLayer layer_of_trees(const PlantOptions& options, const PlantResult& result) {
  io::FeatureLayer layer{"trees", io::Feature::Kind::point, {}, {}};
  std::vector<double> number, gain, total;
  for (const PlantedTree& tree : result.trees) {
    layer.shapes.push_back({{{tree.x, tree.y}}});
    number.push_back(static_cast<double>(number.size() + 1));
    gain.push_back(tree.gain);
    total.push_back(tree.total);
  }
  const auto all = [&](double value) { return std::vector<double>(number.size(), value); };
  layer.columns = {{"tree", number},
                   {"gain", gain},
                   {"total", total},
                   {"height", all(options.species->height_m)},
                   {"trunk", all(options.species->trunk_m)},
                   {"crown", all(options.species->crown_m)}};
  return layer;
}

io::FeatureLayer layer_of_candidates(const PlantResult& result) {
  io::FeatureLayer layer{"candidates", io::Feature::Kind::point, {}, {}};
  std::vector<double> first, last, tree;
  for (const PlantCandidate& c : result.candidates) {
    layer.shapes.push_back({{{c.x, c.y}}});
    first.push_back(c.first_gain);
    last.push_back(c.last_gain);
    tree.push_back(static_cast<double>(c.tree));
  }
  layer.columns = {{"first_gain", first}, {"last_gain", last}, {"tree", tree}};
  return layer;
}

void write_curve(const PlantOptions& options, PlantResult& result) {
  std::string text = "tree,x,y,gain,total\n";
  io::PlotSeries curve{"", {0}, {0}};
  for (size_t k = 0; k < result.trees.size(); ++k) {
    const PlantedTree& tree = result.trees[k];
    text += fmt::format("{},{},{},{:.9g},{:.9g}\n", k + 1, tree.x, tree.y, tree.gain, tree.total);
    curve.x.push_back(static_cast<double>(k + 1));
    curve.y.push_back(tree.total);
  }
  result.curve = options.folder / "curve.csv";
  write_file(result.curve, text);
  if (!options.pictures) return;
  io::PlotOptions plot;
  plot.title = "Gain by trees: " + result.objective;
  plot.x_label = "trees";
  plot.y_label = result.unit == "m2 h" ? "m² h" : result.unit;
  plot.whole_x = true;
  result.curve_picture = options.folder / "curve.png";
  io::write_drawing(result.curve_picture, io::draw_plot(std::vector{curve}, plot));
}

/// With the style of a city's raster of that name.
void write_heights(const fs::path& file, const io::RasterGrid& grid, const Array& heights) {
  io::write_raster(file, grid, heights);
  const std::vector<NamedLook> looks = sample_looks();
  const auto found = std::ranges::find(looks, file.stem().string(), &NamedLook::name);
  float highest = 0;
  for (const float height : heights.as<float>()) highest = std::max(highest, height);
  write_style(file, style_of(found->look, 0, static_cast<double>(highest)));
}

}  // namespace

void write_plants(const PlantOptions& options, const SeriesInputs& inputs,
                  const std::vector<CrownPixel>& crown, PlantResult& result) {
  const PlantRasters rasters = rasters_with_trees(options, inputs, crown, result.trees);
  const std::string ending = options.city.dsm.extension() == ".npy" ? ".npy" : ".tif";
  result.cdsm = options.folder / ("cdsm" + ending);
  result.tdsm = options.folder / ("tdsm" + ending);
  write_heights(result.cdsm, inputs.grid, rasters.canopy);
  write_heights(result.tdsm, inputs.grid, rasters.trunk);
  write_curve(options, result);
  if (const std::string reason = io::gdal_unavailable_reason(); !reason.empty()) {
    result.warnings.push_back(fmt::format("no trees.gpkg, which needs GDAL ({})", reason));
    logging::warning("{}", result.warnings.back());
    return;
  }
  result.places = options.folder / "trees.gpkg";
  io::write_geopackage(result.places, inputs.grid.crs_wkt,
                       std::vector{layer_of_trees(options, result), layer_of_candidates(result)});
}

}  // namespace lockstep::urban
