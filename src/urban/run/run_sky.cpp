// A whole run: the 15 grids of sky view factors, written tile by tile.
#include <algorithm>

#include "io/arrays/npy.hpp"
#include "urban/run/city_files.hpp"
#include "urban/run/host_stages.hpp"
#include "urban/run/looks.hpp"
#include "urban/run/outputs.hpp"
#include "urban/sky/sky.hpp"

namespace lockstep::urban {
namespace {

/// The packed sky of the whole raster, gathered tile by tile.
class StateFile {
 public:
  StateFile(int patches, const io::RasterGrid& grid)
      : patches_(patches), words_((patches + 15) / 16), rows_(grid.rows), cols_(grid.cols) {
    states_.resize(static_cast<size_t>(words_ * rows_ * cols_));
  }
  void take(const Tile& tile, const uint32_t* words) {
    for (int64_t word = 0; word < words_; ++word)
      for (int64_t r = 0; r < tile.rows; ++r)
        std::copy_n(words + (word * tile.rows + r) * tile.cols, tile.cols,
                    &states_[static_cast<size_t>((word * rows_ + tile.row + r) * cols_ + tile.col)]);
  }
  void write(const std::filesystem::path& file) const {
    const Array states = Array::view(std::span<const uint32_t>(states_), {words_, rows_, cols_});
    const Array patches = Array::view(std::span<const int32_t>(&patches_, 1), {1});
    io::write_npz(file, {{"states", states}, {"patches", patches}}, io::NpzCompression::deflated);
  }

 private:
  const int32_t patches_;
  const int64_t words_, rows_, cols_;
  std::vector<uint32_t> states_;
};

}  // namespace

SkyRunResult run(Context& context, const SkyRunOptions& options) {
  SkyRunResult result;
  result.patches = patch_count(options.sky.patches);
  result.zenith = options.sky.zenith;
  LoadedCity loaded = host_stage(result.host_stages, "read", [&] { return read_city(options.city); });
  begin(result, loaded);
  Outputs outputs(options.output, loaded.grid, sky_looks());
  const std::vector<float> relief = relief_of(loaded, options.output);
  std::optional<StateFile> states;
  if (options.sky.keep_states) states.emplace(result.patches, loaded.grid);
  TileOptions tiles = options.tiles;
  const std::filesystem::path unfinished = outputs.folder() / ".tiles";
  tiles.resume_folder = options.resume ? unfinished : std::filesystem::path();
  {
    const City city = prepare_city(std::move(loaded.input));
    result.tiles =
        stream_sky(context, city, options.sky, tiles, [&](const Tile& tile, const TileResult& grids) {
          outputs.take(tile, grids);
          if (states) states->take(tile, grids.words());
        });
  }
  host_stage(result.host_stages, "write", [&] {
    finish(result, outputs, names_of(sky_looks()), relief);
    const std::filesystem::path file = outputs.folder() / "sky_states.npz";
    std::error_code ignored;
    if (states) {
      states->write(file);
      result.states = file;
    } else if (std::filesystem::exists(file, ignored)) {
      result.left_over.push_back(file);
    }
  });
  std::error_code ignored;
  std::filesystem::remove_all(unfinished, ignored);
  return result;
}

}  // namespace lockstep::urban
