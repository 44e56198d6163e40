// One stage of the urban model by itself, on arrays: for people who compare codes. f64 in and out, on the host.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/arrays/npy.hpp"
#include "lockstep/stage.hpp"

namespace lockstep::urban {

/// An array that a stage reads or writes. `shape`: "()" a scalar; "(y,x)" a grid, for which a scalar stands
/// too; otherwise as written.
struct StageArray {
  std::string name, shape, unit, about;
  bool optional = false;
};

/// The arrays given to a stage.
class StageInput {
 public:
  explicit StageInput(const io::NpzArrays& arrays);
  bool has(std::string_view name) const;
  /// Throws InputError for an absent array, and for one of several elements.
  double scalar(std::string_view name) const;
  double scalar_or(std::string_view name, double otherwise) const {
    return has(name) ? scalar(name) : otherwise;
  }
  /// The elements as f64; one element is repeated. Throws InputError for an absent array and where the shape is
  /// another than that of earlier grids.
  std::vector<double> grid(std::string_view name) const;
  /// The elements as they are, in C order.
  std::vector<double> all(std::string_view name) const;
  const Sizes& shape_of(std::string_view name) const;
  /// The shape of all arrays of `names` with more than one element; () where none has.
  void use_shape_of(const std::vector<StageArray>& names);
  const Sizes& shape() const { return shape_; }
  size_t elements() const;
  /// An output in the shape of the grids.
  Array array(std::vector<double> values) const;

 private:
  const io::NpzArrays& arrays_;
  Sizes shape_ = Sizes(std::vector<int64_t>{});
};

struct Stage {
  std::string name, about;
  std::vector<StageArray> reads, writes;
  std::function<io::NpzArrays(const StageInput&)> run;
};

/// All stages. A new one is an entry here.
const std::vector<Stage>& urban_stages();
/// Those of the radiation: sun, gvf, kside, lside, tmrt, wave_delay, perez.
std::vector<Stage> radiation_stages();
/// utci and pet.
std::vector<Stage> comfort_stages();

/// Runs the stage `name`. Throws InputError for an unknown one and for wrong arrays.
io::NpzArrays run_urban_stage(std::string_view name, const io::NpzArrays& arrays);

struct StageOutput {
  std::string name;
  Sizes shape;
  size_t elements = 0;
  double minimum = 0, maximum = 0, mean = 0;  // NaN counts in the mean alone
};
struct StageRun {
  std::string stage;
  std::vector<StageOutput> outputs;
  std::vector<StageRecord> host_stages;  // "urban.NAME"
};
/// The same from file to file (.npz); an empty `out` writes nothing.
StageRun run_urban_stage(const std::string& name, const std::filesystem::path& input,
                         const std::filesystem::path& out);

/// Members of the program's JSON.
std::string to_json(const StageRun& run);

}  // namespace lockstep::urban
