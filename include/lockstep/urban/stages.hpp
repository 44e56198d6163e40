// Single stages of the model on arrays, in f64 on the host, for comparisons with other programs, as in
// `lockstep urban stage`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/schema.hpp"
#include "lockstep/stage.hpp"

namespace lockstep::urban {

/// An array that a stage reads or writes. `shape` is "()" for a scalar, "(y,x)" for a grid, for which a scalar may be
/// passed, or a literal shape.
struct StageArray {
  std::string name, shape, unit, about;
  bool optional = false;
};

struct Stage {
  std::string name, about;
  std::vector<StageArray> reads, writes;
};
const std::vector<Stage>& urban_stages();

using NamedArrays = std::vector<std::pair<std::string, Array>>;
/// Runs the stage `name`. Throws InputError for an unknown name and for invalid arrays.
NamedArrays run_urban_stage(std::string_view name, const NamedArrays& arrays);

/// The same with arrays from a file and results to a file.
struct StageOptions {
  std::string name;
  std::filesystem::path input, out;  ///< .npz; an empty `out`: not written
};
struct StageOutput {
  std::string name;
  Sizes shape;
  size_t elements = 0;
  double minimum = 0, maximum = 0,
         mean = 0;  ///< NaN is ignored by minimum and maximum and makes the mean NaN
};
struct StageRun {
  std::string stage;
  std::vector<StageOutput> outputs;
  std::vector<StageRecord> host_stages;  ///< "urban.NAME"
};
StageRun run(const StageOptions& options);

void describe(Schema<StageOptions>& s);

}  // namespace lockstep::urban
