#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/files/atomic_file.hpp"
#include "core/files/folder_lock.hpp"
#include "core/record/journal.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/zip.hpp"
#include "io/rasters/raster_labels.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/exchange.hpp"
#include "urban/checks/findings.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/pictures/map_style.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

/// In the order of kSkyViewNames.
constexpr std::array<const char*, kSkyViewGrids> kUmepNames = {
    "svf.tif",     "svfE.tif",     "svfS.tif",     "svfW.tif",     "svfN.tif",
    "svfveg.tif",  "svfEveg.tif",  "svfSveg.tif",  "svfWveg.tif",  "svfNveg.tif",
    "svfaveg.tif", "svfEaveg.tif", "svfSaveg.tif", "svfWaveg.tif", "svfNaveg.tif"};
constexpr size_t kBuildingGrids = 5;
/// The states 0 … 3 in each array of shadowmats.npz: 1 = sees the sky.
struct Matrix {
  const char* name;
  std::array<uint8_t, 4> sees;
};
constexpr Matrix kMatrices[] = {
    {"shadowmat", {1, 1, 0, 0}}, {"vegshadowmat", {1, 0, 1, 1}}, {"vbshmat", {1, 1, 1, 0}}};

FolderLock hold(const fs::path& folder) {
  make_output_folder(folder);
  return FolderLock(folder);
}

fs::path grid_file(const fs::path& folder, std::string_view name) {
  for (const char* suffix : {".tif", ".npy"}) {
    fs::path file = folder / (std::string(name) + suffix);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file;
  }
  throw InputError(fmt::format("no {}.tif or .npy", name), folder.string(),
                   "the 15 grids of 'lockstep urban svf'");
}

/// Shares of the sky, up to what rounding leaves of them.
void require_shares(const io::GeoRaster& grid, const std::string& where) {
  constexpr float kRounding = 1e-4f;
  const auto values = grid.values.as<float>();
  for (size_t k = 0; k < values.size(); ++k)
    if (!std::isnan(values[k]) && !(values[k] >= -kRounding && values[k] <= 1 + kRounding))
      throw InputError(fmt::format("a view factor of {:g} at {}", values[k],
                                   index_text(grid.values.shape(), static_cast<int64_t>(k))),
                       where, "shares of the sky from 0 to 1");
}

/// No pixel sees any sky: no view factor of plants can be so everywhere.
bool has_no_sky(const io::GeoRaster& grid) {
  const auto values = grid.values.as<float>();
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v) || v == 0; });
}

void require_size(const io::GeoRaster& grid, const UmepExchange& of, const std::string& where) {
  if (grid.rows != of.rows || grid.cols != of.cols)
    throw InputError(fmt::format("{} x {} cells", grid.rows, grid.cols), where,
                     fmt::format("{} x {} as svf has", of.rows, of.cols));
}

/// A GeoTIFF as bytes, made in a temporary file next to the results.
std::vector<std::byte> tif_of(const fs::path& folder, const io::GeoRaster& grid, const std::string& title) {
  const AtomicPath scratch(folder / "member.tif");
  const fs::path& file = scratch.temporary();
  const auto writer = io::create_labelled_raster(file, grid, {title, "share of sky", {}});
  writer->write(0, 0, grid.rows, grid.cols, grid.values.as<float>().data());
  writer->commit();
  return io::read_file(file, "a GeoTIFF");
}

void write_matrices(const fs::path& states_file, UmepExchange& result, const fs::path& to) {
  const io::NpzArrays arrays = io::read_npz(states_file, {"states", "patches"});
  const Array states = io::find_array(arrays, "states", states_file.string());
  const Array count = io::find_array(arrays, "patches", states_file.string());
  const int patches = count.elements() == 1 ? count.to(Storage::i32).packed().as<int32_t>()[0] : 0;
  if (patches < 1 || states.storage() != Storage::u32 ||
      states.shape() != Sizes{(patches + 15) / 16, result.rows, result.cols})
    throw InputError(fmt::format("sky states of {} patches, {}", patches, to_string(states.shape())),
                     states_file.string(), fmt::format("those of {} x {} cells", result.rows, result.cols));
  const Array packed = states.packed();
  const auto words = packed.as<uint32_t>();
  const auto pixels = size_t(result.rows * result.cols), n = size_t(patches);
  io::NpzArrays out;
  for (const Matrix& matrix : kMatrices) {
    Array array(Storage::u8, {result.rows, result.cols, patches});
    const auto cells = array.mutate<uint8_t>();
    for (size_t pixel = 0; pixel < pixels; ++pixel)
      for (size_t p = 0; p < n; ++p)
        cells[pixel * n + p] = matrix.sees[words[p / 16 * pixels + pixel] >> (2 * (p % 16)) & 3u];
    out.push_back({matrix.name, std::move(array)});
  }
  result.patches = patches;
  io::write_npz(to, out, io::NpzCompression::deflated, {.title = "Sky patches that are seen, by pixel"});
  result.files.push_back(to);
}

Array matrix_of(const io::NpzArrays& arrays, const char* name, const UmepExchange& of,
                const std::string& where) {
  const Array& array = io::find_array(arrays, name, where);
  const Sizes& shape = array.shape();
  const bool grid = shape.size() == 3 && shape[0] == of.rows && shape[1] == of.cols;
  const bool known = grid && (shape[2] == 145 || shape[2] == 153 || shape[2] == 305 || shape[2] == 609);
  if (!known)
    throw InputError(fmt::format("{} of shape {}", name, to_string(shape)), where,
                     fmt::format("({}, {}, 145, 153, 305 or 609), a value a patch", of.rows, of.cols));
  return array.to(Storage::boolean).packed();
}

bool is_zero(const Array& array) {
  return std::all_of(array.raw().begin(), array.raw().end(), [](std::byte b) { return b == std::byte{0}; });
}

/// `plants`: whether the archive has grids of them. UMEP fills the matrices of plants with 0 where there are none.
void read_matrices(const fs::path& file, bool plants, UmepExchange& result, const fs::path& to) {
  const io::NpzArrays arrays = io::read_npz(file, {kMatrices[0].name, kMatrices[1].name, kMatrices[2].name});
  std::vector<Array> sees;
  for (const Matrix& matrix : kMatrices) {
    sees.push_back(matrix_of(arrays, matrix.name, result, file.string()));
    if (sees.back().shape() != sees.front().shape())
      throw InputError(fmt::format("{} of shape {}", matrix.name, to_string(sees.back().shape())),
                       file.string(),
                       fmt::format("{} as {}", to_string(sees.front().shape()), kMatrices[0].name));
  }
  plants = plants && !(is_zero(sees[1]) && is_zero(sees[2]));
  const auto patches = size_t(sees[0].shape()[2]), pixels = size_t(result.rows * result.cols);
  Array states(Storage::u32, {int64_t(patches + 15) / 16, result.rows, result.cols});
  const auto words = states.mutate<uint32_t>();
  const auto at = [&](size_t matrix, size_t k) {
    return (matrix > 0 && !plants) || sees[matrix].raw()[k] != std::byte{0};
  };
  for (size_t pixel = 0; pixel < pixels; ++pixel)
    for (size_t p = 0; p < patches; ++p) {
      const size_t k = pixel * patches + p;
      const SkyState state = at(0, k)   ? at(1, k) ? SkyState::sky : SkyState::vegetation
                             : at(2, k) ? SkyState::building
                                        : SkyState::vegetation_before_building;
      words[p / 16 * pixels + pixel] |= uint32_t(state) << (2 * (p % 16));
    }
  result.patches = int(patches);
  const Array count = Array::of(std::vector<int32_t>{result.patches});
  io::write_npz(to, {{"states", states}, {"patches", count}}, io::NpzCompression::deflated,
                {.title = "What each sky patch shows, 2 bits a patch"});
  result.files.push_back(to);
}

bool is_archive(const UmepOptions& o) { return o.from.extension() == ".zip"; }

}  // namespace

UmepExchange to_umep(const fs::path& from, const fs::path& to, double transmissivity) {
  const FolderLock lock = hold(to);
  UmepExchange result;
  // The first file that is written names the run, and with it all inputs.
  for (const std::string_view name : kSkyViewNames) journal::input(grid_file(from, name));
  std::error_code ignored;
  const fs::path states = from / "sky_states.npz";
  const bool has_states = fs::exists(states, ignored);
  if (has_states) journal::input(states);
  std::vector<std::pair<std::string, std::vector<std::byte>>> members;
  io::GeoRaster total, plants;
  for (size_t g = 0; g < kSkyViewGrids; ++g) {
    io::GeoRaster grid = io::read_raster(grid_file(from, kSkyViewNames[g]));
    if (g == 0) result.rows = grid.rows, result.cols = grid.cols;
    require_size(grid, result, fmt::format("{}: {}", from.string(), kSkyViewNames[g]));
    require_shares(grid, fmt::format("{}: {}", from.string(), kSkyViewNames[g]));
    members.push_back({kUmepNames[g], tif_of(to, grid, std::string(kSkyViewNames[g]))});
    if (g == 0) total = std::move(grid);
    if (g == kBuildingGrids) plants = std::move(grid);
  }
  io::write_zip(to / "svfs.zip", members);
  result.files.push_back(to / "svfs.zip");

  const auto sky = total.values.mutate<float>();
  const auto past_plants = plants.values.as<float>();
  for (size_t k = 0; k < sky.size(); ++k)
    sky[k] = float(double(sky[k]) - (1 - double(past_plants[k])) * (1 - transmissivity));
  const fs::path file = to / "SkyViewFactor.tif";
  const auto writer = io::create_labelled_raster(
      file, total,
      {fmt::format("Sky view factor, plants of transmissivity {:g}", transmissivity), "share of sky", {}});
  writer->write(0, 0, total.rows, total.cols, total.values.as<float>().data());
  writer->commit();
  write_style(file, style_of(sky_looks()[0].look, 0, 1));
  result.files.push_back(file);

  if (has_states) write_matrices(states, result, to / "shadowmats.npz");
  return result;
}

UmepExchange from_umep(const fs::path& zip, const fs::path& to, GridFormat format) {
  std::error_code error;
  if (!fs::is_regular_file(zip, error)) throw InputError("no such file", zip.string(), "an svfs.zip");
  const FolderLock lock = hold(to);
  const std::string inside = "/vsizip/{" + fs::absolute(zip).string() + "}/";
  UmepExchange result;
  const fs::path matrices = fs::absolute(zip).parent_path() / "shadowmats.npz";
  const bool has_matrices = fs::exists(matrices, error);
  if (has_matrices) journal::input(matrices);
  io::GeoRaster first;
  bool plants = true, zero = false;
  for (size_t g = 0; g < kSkyViewGrids; ++g) {
    std::optional<io::GeoRaster> read;
    try {
      read = io::read_raster(inside + kUmepNames[g]);
    } catch (const InputError&) {}
    if (g == kBuildingGrids) {
      plants = read.has_value();
      zero = plants && has_no_sky(*read);
    }
    // All grids of plants or none: one that cannot be read is not taken for no plants.
    if (read.has_value() != (g < kBuildingGrids || plants))
      throw InputError(fmt::format("no {}", kUmepNames[read ? kBuildingGrids : g]), zip.string(),
                       "the grids of UMEP's sky view factors");
    const bool absent = g >= kBuildingGrids && (zero || !plants);
    io::GeoRaster grid = absent ? first : std::move(*read);
    if (absent)
      for (float& v : grid.values.mutate<float>()) v = std::isnan(v) ? v : 1.0f;
    if (g == 0) result.rows = grid.rows, result.cols = grid.cols, first = grid;
    require_size(grid, result, fmt::format("{}: {}", zip.string(), kUmepNames[g]));
    require_shares(grid, fmt::format("{}: {}", zip.string(), kUmepNames[g]));
    const fs::path file =
        to / fmt::format("{}.{}", kSkyViewNames[g], format == GridFormat::npy ? "npy" : "tif");
    const Look look = sky_looks()[g].look;
    const auto writer = io::create_labelled_raster(file, grid, {look.title, look.unit, {}});
    writer->write(0, 0, grid.rows, grid.cols, grid.values.as<float>().data());
    writer->commit();
    write_style(file, style_of(look, 0, 1));
    result.files.push_back(file);
  }
  if (zero)
    say_doubt(fmt::format("{}: view factors of plants are 0 everywhere, as of no plants: they become 1",
                          zip.string()));
  if (!plants) logging::info("{} has no grids of plants: they are 1", zip.string());
  if (has_matrices) read_matrices(matrices, plants && !zero, result, to / "sky_states.npz");
  return result;
}

UmepExchange run(const UmepOptions& o) {
  const OptionList& list = schema_of<UmepOptions>();
  list.check(&o);
  const bool archive = is_archive(o);
  std::error_code unknown;
  if (fs::equivalent(archive ? fs::absolute(o.from).parent_path() : o.from, o.folder, unknown))
    throw list.error({OptionError::Kind::invalid, "out", fmt::format("{} holds the input", o.folder.string()),
                      "another folder", ""});
  std::vector<StageRecord> stages;
  UmepExchange result = host_stage(stages, "convert", [&] {
    return archive ? from_umep(o.from, o.folder, o.format) : to_umep(o.from, o.folder, o.transmissivity);
  });
  result.host_stages = std::move(stages);
  return result;
}

void describe(Schema<UmepOptions>& s) {
  using O = UmepOptions;
  s.of("urban::UmepOptions");
  s.option("source", &O::from,
           "results of 'urban svf' (with --save-patches also for shadowmats.npz), or an svfs.zip, optionally "
           "with shadowmats.npz next to it, to convert to a folder for 'urban run --svf'")
      .member("from")
      .flag("FROM")
      .file(Option::Use::input)
      .positional()
      .required();
  s.option("transmissivity", &O::transmissivity, "transmissivity of plants, for SkyViewFactor.tif, the total")
      .at_least(0)
      .at_most(1)
      .shown("T");
  s.option("format", &O::format, "format of the grids from an svfs.zip").effect(Effect::display);
  s.option("out", &O::folder, "folder for the results, created if missing")
      .member("folder")
      .file(Option::Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  s.useless("transmissivity", &is_archive, "a transmissivity for grids that are read",
            "a folder of 'urban svf'");
  s.useless(
      "format", [](const O& o) { return !is_archive(o); }, "a format for UMEP's files, which are GeoTIFF",
      "an svfs.zip");
}

}  // namespace lockstep::urban
