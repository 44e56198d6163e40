#include "flow/run/checkpoint.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "flow/modes.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

record::Identity identity_of(const RunOptions& options, const Array& initial) {
  RunOptions o = options;
  o.model.constant = constant_of(o.model);
  o.forcing_seed = o.forcing_seed.value_or(o.seed);
  record::Identity id("flow run");
  const OptionList& all = schema_of<RunOptions>();
  for (const Option& option : all.options()) {
    if (option.effect != Effect::result && option.effect != Effect::extent) continue;
    if (option.name == "initial" && !named_initial(o.initial))
      id.array(option.flag, initial);
    else
      id.option(option.flag, text_of(option.get(&o)), false,
                option.effect == Effect::extent ? record::Effect::extent : record::Effect::result);
  }
  return id;
}

void write_checkpoint(const std::filesystem::path& path, const record::Identity& identity,
                      const SolverState& state, const Series& series) {
  io::NpzArrays arrays = series.packed();
  const std::string json = identity.to_json();
  arrays.emplace_back("identity", Array::of(std::vector<uint8_t>(json.begin(), json.end())));
  for (const auto& [name, array] : state) arrays.emplace_back("state_" + name, array);
  io::write_npz(path, arrays);
}

std::optional<SolverState> read_checkpoint(const std::filesystem::path& path,
                                           const record::Identity& identity, Series& series) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string where = path.string();
  const io::NpzArrays arrays = io::read_npz(path);
  const Array& saved = io::find_array(arrays, "identity", where);
  if (saved.storage() != Storage::u8)
    throw InputError("an identity that is no text", where, "a checkpoint of flow run");
  const std::string_view json(reinterpret_cast<const char*>(saved.data()), size_t(saved.elements()));
  record::require_same(record::Identity::from_json(io::parse_json(json, where), where), identity, where);
  series.restore(arrays);
  SolverState state;
  for (const auto& [name, array] : arrays)
    if (name.starts_with("state_")) state.emplace_back(name.substr(6), array);
  return state;
}

}  // namespace lockstep::flow
