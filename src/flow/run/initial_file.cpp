// The initial field of a run: by name, or from a file.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/platform/parallel.hpp"
#include "core/record/journal.hpp"
#include "flow/run/fields.hpp"
#include "io/arrays/frames.hpp"
#include "io/arrays/mat5.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

std::optional<Initial> named_initial(const std::string& text) {
  for (const Choice<Initial>& known : choices(Initial{}))
    if (text == known.name) return known.value;
  return std::nullopt;
}

namespace {

bool is_random(Initial i) { return i == Initial::mcwilliams || i == Initial::noise; }

/// Fields of these members one behind the other; one of all where they are equal.
Array stacked(const RunOptions& options, Initial which, const parallel::Range& members) {
  const BoxGrid& grid = options.model.grid;
  if (options.members == 1 || !is_random(which)) return initial_field(grid, which, options.seed);
  const auto points = static_cast<size_t>(grid.points());
  std::vector<double> all(static_cast<size_t>(members.size()) * points);
  platform::ThreadArena().for_parts(members.size(), [&](int64_t first, int64_t last) {
    for (int64_t m = first; m < last; ++m) {
      const Array one = initial_field(grid, which, options.seed + uint64_t(members.begin + m));
      std::ranges::copy(one.as<double>(), all.begin() + ptrdiff_t(size_t(m) * points));
    }
  });
  return Array::of(std::move(all), {members.size(), grid.ny, grid.nx});
}

}  // namespace

bool has_frames(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".nc" || extension == ".npz" || extension == ".npy";
}

io::NpzArrays read_run(const std::filesystem::path& path, const std::vector<std::string>& names) {
  return path.extension() == ".nc" ? io::read_netcdf(path, names) : io::read_npz(path, names);
}

Array read_vorticity(const std::filesystem::path& path) {
  const std::string where = path.string();
  const auto extension = path.extension().string();
  if (extension == ".npy") return io::read_npy(path);
  if (extension == ".mat") {
    const io::NpzArrays arrays = io::read_mat5(path);
    return io::find_array(arrays, "Omega", where);
  }
  if (extension == ".npz" || extension == ".nc") {
    const io::NpzArrays arrays = read_run(path, {"omega"});
    return io::find_array(arrays, "omega", where);
  }
  throw InputError(fmt::format("a file of kind '{}'", extension), where,
                   ".npz, .nc or .npy with omega, or .mat (version 5) with Omega");
}

namespace {

/// Whether a field of this shape has an axis of members before y and x.
bool has_members(const Sizes& shape, int64_t members) {
  return members > 1 && shape.size() > 2 && shape[shape.size() - 3] == members;
}

/// The vorticity, of a run its last moment alone.
Array last_vorticity(const std::filesystem::path& path, int64_t members) {
  if (!has_frames(path)) return read_vorticity(path);
  const io::FrameFile file(path, "omega");
  const Sizes& shape = file.shape();
  const size_t wanted = has_members(shape, members) ? 3 : 2;
  if (shape.size() <= wanted || shape[0] < 1) return read_vorticity(path);
  return file.frame(shape[0] - 1);
}

/// Recorded as if it had been given; the sizes of a sweep are not.
void note_grid(const RunOptions& options) {
  const OptionList& list = schema_of<RunOptions>();
  if (!options.grid_given) journal::found("ny", list.text(&options, *list.group_of("ny")));
}

}  // namespace

Array load_initial(RunOptions& options) { return load_initial(options, {0, options.members}); }

Array load_initial(RunOptions& options, const parallel::Range& own) {
  if (const auto which = named_initial(options.initial)) {
    note_grid(options);
    return stacked(options, *which, own);
  }
  const std::filesystem::path path = options.initial;
  if (!std::filesystem::exists(path))
    throw schema_of<RunOptions>().error({OptionError::Kind::invalid, "initial",
                                         fmt::format("no initial field or file '{}'", options.initial),
                                         "mcwilliams, vortices, noise, taylor-green, shear or a file", ""});
  Array w = last_vorticity(path, options.members).to(Storage::f64).packed();
  if (w.rank() < 2 || w.rank() > 4)
    throw InputError(fmt::format("vorticity of shape {}", to_string(w.shape())), path.string(), "(ny, nx)");
  const bool members = has_members(w.shape(), options.members);
  while (w.rank() > (members ? 3 : 2)) w = w[w.size(0) - 1].packed();
  const int64_t ny = w.size(-2), nx = w.size(-1);
  BoxGrid& grid = options.model.grid;
  if (options.grid_given && (grid.nx != nx || grid.ny != ny))
    throw InputError(fmt::format("{} x {} points", grid.ny, grid.nx), path.string(),
                     fmt::format("{} x {} as its field", ny, nx));
  grid.nx = nx;
  grid.ny = ny;
  note_grid(options);
  if (const auto at = first_not_finite(w))
    throw InputError(fmt::format("vorticity is not finite at {}", index_text(w.shape(), *at)), path.string(),
                     "finite numbers");
  return w;
}

}  // namespace lockstep::flow
