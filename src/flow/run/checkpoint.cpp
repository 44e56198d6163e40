#include "flow/run/checkpoint.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "flow/closures.hpp"
#include "io/arrays/npz_file.hpp"
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
      id.option(option.flag, text_of(option.get(&o)), false, option.effect);
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
                                           const record::Identity& identity, const RunOptions& options,
                                           Series& series) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  constexpr int64_t kLongestIdentity = 1 << 20, kLongestClock = 1 << 12;
  const io::NpzFile file(path);
  const Array saved = file.read("identity", {Storage::u8, 1, {}, kLongestIdentity});
  const std::string_view json(reinterpret_cast<const char*>(saved.data()), size_t(saved.elements()));
  record::require_same(record::Identity::from_json(io::parse_json(json, file.where()), file.where()),
                       identity, file.where());
  series.restore(file);
  // A spectrum has at most four numbers where its field has one.
  const int64_t most = 4 * options.members * options.model.grid.points();
  SolverState state;
  for (const auto& [name, storage, limit] : {std::tuple{"w", options.precision, most},
                                             {"one", options.precision, most},
                                             {"two", options.precision, most},
                                             {"clock", options.precision, kLongestClock},
                                             {"status", Storage::i32, kLongestClock}}) {
    const std::string key = std::string("state_") + name;
    if (!file.has(key)) continue;
    Array array = file.read(key, {storage, -1, {}, limit});
    const bool field = limit == most;  // the clock of a run without an end has an infinite one
    if (const auto at = field ? first_not_finite(array.packed()) : std::nullopt)
      throw InputError(fmt::format("{} is not finite at {}", key, index_text(array.shape(), *at)),
                       file.where(), "finite numbers");
    state.emplace_back(name, std::move(array));
  }
  return state;
}

}  // namespace lockstep::flow
