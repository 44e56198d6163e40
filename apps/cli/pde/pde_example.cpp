// `lockstep pde example`: a shipped equation solved by the gradients of its residual loss, with a picture.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/progress.hpp"
#include "io/arrays/npy.hpp"
#include "io/pictures/map_picture.hpp"
#include "io/pictures/png.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/examples.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct ExampleCommand {
  std::string name, out;
  int64_t cells = 0, levels = 8, windows = 0, iterations = 80;
};

int run(const CommonOptions& common, const ExampleCommand& options) {
  Session session(common);
  const pde::Example example = pde::make_example(options.name, options.cells);
  pde::TrainOptions train;
  train.levels = int(options.levels);
  train.windows = int(options.windows > 0 ? options.windows : 12);
  train.iterations = int(options.iterations);
  const pde::TrainResult result = session.context().stage("pde.example", [&](const Device& device) {
    Progress progress("pde example " + example.name, train.windows, "windows");
    return pde::train(device, example, train, [&] { progress.add(); });
  });
  const int64_t nx = example.mesh.cells[0], ny = example.mesh.cells[1];
  ordered_json document{{"example", example.name},
                        {"description", example.description},
                        {"cells", {ny, nx}},
                        {"levels", options.levels},
                        {"windows", train.windows},
                        {"iterations", result.iterations},
                        {"loss_start", result.losses_first},
                        {"loss", result.losses_last}};
  std::string text = fmt::format(
      "{}: {}\n{} windows of {} levels, {} iterations; loss of the last window {:.4g} -> {:.4g}\n",
      example.name, example.description, train.windows, options.levels, result.iterations,
      result.losses_first.back(), result.losses_last.back());
  session.host_stage("write", [&] {
    const std::filesystem::path folder = options.out;
    std::filesystem::create_directories(folder);
    for (const auto& [name, values] : result.fields) {
      const int64_t components = int64_t(values.size()) / (nx * ny);
      Sizes shape{ny, nx};
      if (components > 1) shape.insert(shape.begin(), components);
      io::write_npy(folder / (name + ".npy"), Array::view(std::span<const double>(values), shape));
    }
    const std::vector<double>& shown = result.fields.at(example.shown);
    // Row 0 of a picture is on top; y points up.
    std::vector<float> picture;
    for (int64_t y = ny; y-- > 0;)
      for (int64_t x = 0; x < nx; ++x) picture.push_back(float(shown[size_t(y * nx + x)]));
    io::MapPictureOptions map;
    map.title = fmt::format("{}: {} ({})", example.name, example.description, example.shown);
    const auto [low, high] = std::minmax_element(picture.begin(), picture.end());
    map.map = *low < -0.05f * *high ? io::ColorMap::balance : io::ColorMap::heat;
    map.pixel_size = 0;  // the examples' lengths have no unit
    const std::filesystem::path file = folder / (example.name + ".png");
    io::write_png(file, io::draw_map(picture, ny, nx, map));
    document["picture"] = file.string();
    text += fmt::format("picture: {}\n", file.string());
  });
  session.finish(std::move(document), text);
  return 0;
}

}  // namespace

void add_pde_example(CommandList& commands, CLI::App& pde) {
  Command& command =
      add_command(commands, pde, "example", "solve a shipped equation by the gradients of its residuals");
  auto options = std::make_shared<ExampleCommand>();
  CLI::App& app = *command.app;
  std::string names;
  for (const std::string& name : pde::example_names()) names += (names.empty() ? "" : ", ") + name;
  add_positional(app, "NAME", options->name, names, true);
  add_file(app, "--out", options->out, "folder for the fields (.npy) and the picture (.png)");
  require(app, "--out");
  add_integer(app, "--cells", options->cells, "cells along each axis (default by the example)", "N", 8, 4096);
  add_integer(app, "--levels", options->levels, "time levels of a window (default 8)", "N", 3, 64);
  add_integer(app, "--windows", options->windows, "windows one after the other (default 12)", "N", 1, 100000);
  add_integer(app, "--iterations", options->iterations, "steps of L-BFGS a window, at most (default 80)", "N",
              1, 100000);
  add_common(command, "lockstep pde example gray_scott --out out");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
