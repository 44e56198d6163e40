#include "urban/stages/run_stage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/reports/host_stage.hpp"
#include "core/schema/shell_flags.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

constexpr std::string_view kWhere = "urban stage";

StageOutput output_of(const std::string& name, const Array& array) {
  const auto values = array.as<double>();
  StageOutput output{name, array.shape(), values.size(), NAN, NAN, 0};
  for (double v : values) {
    output.minimum = std::fmin(output.minimum, v);
    output.maximum = std::fmax(output.maximum, v);
    output.mean += v;
  }
  output.mean /= static_cast<double>(values.size());
  return output;
}

}  // namespace

StageInput::StageInput(const io::NpzArrays& arrays) : arrays_(arrays) {}

bool StageInput::has(std::string_view name) const {
  return std::any_of(arrays_.begin(), arrays_.end(), [&](const auto& entry) { return entry.first == name; });
}

std::vector<double> StageInput::all(std::string_view name) const {
  const Array values = io::find_array(arrays_, name, kWhere).packed().to(Storage::f64);
  const auto span = values.as<double>();
  return {span.begin(), span.end()};
}

const Sizes& StageInput::shape_of(std::string_view name) const {
  return io::find_array(arrays_, name, kWhere).shape();
}

double StageInput::scalar(std::string_view name) const {
  const std::vector<double> values = all(name);
  if (values.size() != 1)
    throw InputError(fmt::format("array '{}' of shape {}", name, to_string(shape_of(name))), kWhere,
                     "a scalar");
  return values[0];
}

std::vector<double> StageInput::grid(std::string_view name) const {
  std::vector<double> values = all(name);
  if (values.size() == 1) return std::vector<double>(elements(), values[0]);
  if (shape_of(name) != shape_)
    throw InputError(fmt::format("array '{}' of shape {}", name, to_string(shape_of(name))), kWhere,
                     fmt::format("{} as the others, or a scalar", to_string(shape_)));
  return values;
}

void StageInput::use_shape_of(const std::vector<StageArray>& names) {
  for (const StageArray& entry : names) {
    if (entry.shape != "(y,x)" || !has(entry.name)) continue;
    const Array& array = io::find_array(arrays_, entry.name, kWhere);
    if (array.elements() != 1) {
      shape_ = array.shape();
      return;
    }
  }
}

size_t StageInput::elements() const {
  size_t count = 1;
  for (int64_t side : shape_) count *= static_cast<size_t>(side);
  return count;
}

Array StageInput::array(std::vector<double> values) const { return Array::of(std::move(values), shape_); }

namespace {

const std::vector<RunnableStage>& runnable_stages() {
  static const std::vector<RunnableStage> all = [] {
    std::vector<RunnableStage> list = radiation_stages();
    for (RunnableStage& stage : comfort_stages()) list.push_back(std::move(stage));
    return list;
  }();
  return all;
}

const RunnableStage& stage_named(std::string_view name) {
  std::vector<std::string> known;
  for (const RunnableStage& stage : runnable_stages()) {
    if (stage.name == name) return stage;
    known.push_back(stage.name);
  }
  const std::string nearest = nearest_name(std::string(name), known);
  throw InputError(fmt::format("no stage '{}'", name), kWhere, fmt::format("{}", fmt::join(known, ", ")))
      .with_hint(nearest.empty() ? "" : "did you mean " + nearest + "?");
}

io::NpzArrays run_stage(const RunnableStage& stage, const io::NpzArrays& arrays) {
  StageInput input(arrays);
  for (const StageArray& entry : stage.reads)
    if (!entry.optional && !input.has(entry.name)) input.all(entry.name);  // says what is missing
  input.use_shape_of(stage.reads);
  return stage.run(input);
}

std::vector<std::string> names_of(const std::vector<StageArray>& arrays) {
  std::vector<std::string> names;
  for (const StageArray& array : arrays) names.push_back(array.name);
  return names;
}

}  // namespace

const std::vector<Stage>& urban_stages() {
  static const std::vector<Stage> all(runnable_stages().begin(), runnable_stages().end());
  return all;
}

io::NpzArrays run_urban_stage(std::string_view name, const io::NpzArrays& arrays) {
  return run_stage(stage_named(name), arrays);
}

NamedArrays run_urban_stage(std::string_view name, const NamedArrays& arrays) {
  const std::vector<std::string> known = names_of(stage_named(name).reads);
  for (const auto& [array, values] : arrays) {
    if (std::ranges::find(known, array) != known.end()) continue;
    const std::string nearest = nearest_name(array, known);
    throw InputError(fmt::format("no array '{}' of stage {}", array, name), kWhere,
                     fmt::format("{}", fmt::join(known, ", ")))
        .with_hint(nearest.empty() ? "" : "did you mean " + nearest + "?");
  }
  io::NpzArrays given;
  given.assign(arrays.begin(), arrays.end());
  return run_urban_stage(name, given);
}

StageRun run(const StageOptions& options) {
  StageRun run{options.name, {}, {}};
  const RunnableStage& stage = stage_named(options.name);
  const io::NpzArrays given = io::read_npz(options.input, names_of(stage.reads));
  const io::NpzArrays results =
      host_stage(run.host_stages, "urban." + options.name, [&] { return run_stage(stage, given); });
  if (!options.out.empty()) {
    io::NpzLabels labels{"urban stage " + options.name, {}};
    for (const StageArray& array : stage.writes) labels.units.emplace_back(array.name, array.unit);
    io::write_npz(options.out, results, io::NpzCompression::stored, labels);
  }
  for (const auto& [output, array] : results) run.outputs.push_back(output_of(output, array));
  return run;
}

void describe(Schema<StageOptions>& s) {
  s.of("urban::StageOptions");
  s.option("name", &StageOptions::name, "the stage; --list shows all")
      .flag("NAME")
      .file(Option::Use::input)  // documents list it among the inputs
      .positional();
  s.option("input", &StageOptions::input, "arrays of the stage, f64; scalars without axes")
      .flag("IN.npz")
      .file(Option::Use::input)
      .positional();
  s.option("out", &StageOptions::out, "file for the results (.npz)")
      .file(Option::Use::output_file, {".npz"})
      .shown("FILE")
      .effect(Effect::display);
  add_shell_flag(s, "list", "list the arrays of each stage, their shapes and units");
  for (const char* other : {"name", "out"}) s.conflict("list", other);
}

}  // namespace lockstep::urban
