// A whole run: the 15 grids of sky view factors, written tile by tile.
#include <algorithm>

#include "core/platform/mapped_file.hpp"
#include "core/reports/host_stage.hpp"
#include "io/arrays/npy.hpp"
#include "urban/checks/sky_record.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/run/files/outputs.hpp"
#include "urban/run/opening.hpp"
#include "urban/sky/sky.hpp"

namespace lockstep::urban {
namespace {

/// The packed sky of the whole raster, gathered tile by tile in a scratch file.
class StateFile {
 public:
  StateFile(const std::filesystem::path& file, int patches, const io::RasterGrid& grid)
      : file_(file),
        patches_(patches),
        shape_{(patches + 15) / 16, grid.rows, grid.cols},
        scratch_(file, shape_[0] * shape_[1] * shape_[2] * int64_t{sizeof(uint32_t)}) {}
  void take(const Tile& tile, const uint32_t* words) {
    uint32_t* const states = reinterpret_cast<uint32_t*>(scratch_.data());
    for (int64_t word = 0; word < shape_[0]; ++word)
      for (int64_t row = 0; row < tile.rows; ++row)
        std::copy_n(words + (word * tile.rows + row) * tile.cols, tile.cols,
                    states + (word * shape_[1] + tile.row + row) * shape_[2] + tile.col);
  }
  std::filesystem::path write() const {
    const Array states = Array::adopt(Storage::u32, shape_, scratch_.data(), nullptr);
    const Array patches = Array::view(std::span<const int32_t>(&patches_, 1), {1});
    io::write_npz(file_, {{"states", states}, {"patches", patches}}, io::NpzCompression::deflated,
                  {.title = "What each sky patch shows, 2 bits a patch"});
    return file_;
  }

 private:
  const std::filesystem::path file_;
  const int32_t patches_;
  const Sizes shape_;
  platform::MappedFile scratch_;
};

SkyRunResult run_opening(OpeningContext opening, const SkyRunOptions& options) {
  SkyRunResult result;
  result.patches = patch_count(options.sky.patches);
  result.zenith = options.sky.zenith;
  LoadedCity loaded =
      host_stage(result.host_stages, "read", [&] { return read_city(options.city, options.tiles); });
  begin(result, loaded);
  Outputs outputs(pictured(options.output, loaded), loaded.grid, sky_looks());
  const std::vector<float> relief = relief_of(loaded.input.dsm, loaded.grid, options.output);
  std::optional<StateFile> states;
  const std::filesystem::path states_file = outputs.folder() / "sky_states.npz";
  if (options.sky.keep_states) states.emplace(states_file, result.patches, loaded.grid);
  TileOptions tiles = options.tiles;
  const std::filesystem::path unfinished = outputs.folder() / ".tiles";
  tiles.resume_folder = options.resume ? unfinished : std::filesystem::path();
  {
    const City city = take_city(loaded);
    write_sky_record(outputs.folder(), city);
    result.tiles =
        stream_sky(opening.wait(), city, options.sky, tiles, [&](const Tile& tile, const TileResult& grids) {
          outputs.take(tile, grids);
          if (states) states->take(tile, grids.words());
        });
  }
  host_stage(result.host_stages, "write", [&] {
    std::vector<std::string> family = names_of(sky_looks());
    if (!states) family.push_back(states_file.stem().string());
    finish(result, outputs, family, relief);
    if (states) result.states = states->write();
  });
  std::error_code ignored;
  std::filesystem::remove_all(unfinished, ignored);
  return result;
}

}  // namespace

SkyRunResult run(Context& context, const SkyRunOptions& options) {
  return run_opening(OpeningContext(context), options);
}
SkyRunResult run(const OpenContext& open, const SkyRunOptions& options) {
  return run_opening(OpeningContext(open), options);
}

}  // namespace lockstep::urban
