// A shipped equation solved by the gradients of its residual loss, with its fields and a picture as files.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/files/folder.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "io/arrays/npy.hpp"
#include "io/pictures/map_picture.hpp"
#include "io/pictures/png.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"
#include "pde/steady.hpp"

namespace lockstep::pde {
namespace {

void write_fields(const ExampleResult& result, const std::filesystem::path& folder) {
  const auto [ny, nx] = result.cells;
  for (const auto& [name, values] : result.train.fields) {
    const int64_t components = int64_t(values.size()) / (nx * ny);
    Sizes shape{ny, nx};
    if (components > 1) shape.insert(shape.begin(), components);
    io::write_npy(folder / (name + ".npy"), Array::view(std::span<const double>(values), shape));
  }
}

void draw(const ExampleResult& result, const std::string& shown) {
  const auto [ny, nx] = result.cells;
  const std::vector<double>& field = result.train.fields.at(shown);
  std::vector<float> picture;  // row 0 of a picture is on top; y points up
  for (int64_t y = ny; y-- > 0;)
    for (int64_t x = 0; x < nx; ++x) picture.push_back(float(field[size_t(y * nx + x)]));
  io::MapPictureOptions map;
  map.title = result.name + ": " + result.description + " (" + shown + ")";
  const auto [low, high] = std::minmax_element(picture.begin(), picture.end());
  map.map = *low < -0.05f * *high ? io::ColorMap::balance : io::ColorMap::heat;
  map.pixel_size = 0;  // the examples' lengths have no unit
  io::write_png(result.picture, io::draw_map(picture, ny, nx, map));
}

OptionError unknown_parameter(const Example& example, const std::string& name) {
  std::string known;
  for (const auto& [parameter, value] : example.parameters)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", parameter, value);
  return schema_of<ExampleOptions>().error({OptionError::Kind::invalid, "parameters",
                                            fmt::format("unknown parameter {}", name),
                                            known.empty() ? "none" : known, ""});
}

}  // namespace

ExampleResult run_example(Context& context, const ExampleOptions& options) {
  schema_of<ExampleOptions>().check(&options);
  Example example = make_example(options.name, options.cells);
  for (const auto& [name, value] : options.parameters) {
    if (!example.parameters.contains(name)) throw unknown_parameter(example, name);
    example.parameters[name] = value;
  }
  ExampleResult result;
  result.name = example.name;
  result.description = example.description;
  result.cells = {example.mesh.cells[1], example.mesh.cells[0]};
  result.levels = example.steady() ? 0 : options.train.levels ? options.train.levels : 8;
  if (options.train.windows) example.windows = options.train.windows;
  const int64_t windows = example.steady() ? int64_t(grids_of(example).size()) : example.windows;
  result.train = context.stage("pde.example", [&](const Device& device) {
    int64_t done = 0;
    return train(device, example, options.train, [&] {
      if (options.progress) options.progress(++done, windows);
    });
  });
  if (options.folder.empty()) return result;
  host_stage(result.host_stages, "write", [&] {
    make_output_folder(options.folder);
    write_fields(result, options.folder);
    result.picture = options.folder / (example.name + ".png");
    draw(result, example.shown);
  });
  return result;
}

nlohmann::ordered_json document_of(const ExampleResult& result) {
  const TrainResult& train = result.train;
  nlohmann::ordered_json json{{"example", result.name},
                              {"description", result.description},
                              {"cells", result.cells},
                              {"levels", result.levels},
                              {"windows", train.windows},
                              {"converged_windows", train.converged},
                              {"converged", result.converged()},
                              {"iterations", train.iterations},
                              {"loss_start", train.losses_first},
                              {"loss", train.losses_last}};
  if (!result.picture.empty()) json["picture"] = result.picture.string();
  return json;
}
std::string to_json(const ExampleResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::pde
