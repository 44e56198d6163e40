#include "flow/run/checkpoint.hpp"

#include <fmt/format.h>

#include <sstream>

#include "flow/modes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

std::string settings_text(const RunOptions& o, int64_t interval) {
  const Model& m = o.model;
  std::string text;
  const auto line = [&](const char* name, const auto& value) { text += fmt::format("{}={}\n", name, value); };
  line("n", fmt::format("{}x{}", m.grid.ny, m.grid.nx));
  line("box", fmt::format("{},{}", m.grid.lx, m.grid.ly));
  line("ic", o.initial);
  line("seed", o.seed);
  line("ensemble", o.members);
  line("precision", name(o.precision));
  line("nu", m.viscosity);
  line("integrator", name(o.stepping.integrator));
  line("dt", o.stepping.dt);
  line("cfl", o.stepping.cfl);
  line("dealias", name(m.dealias));
  line("advection", m.advection == Advection::flux ? "flux" : "stress");
  line("closure", fmt::format("{}:{}", name(m.closure), constant_of(m)));
  line("closure-form", m.form == ClosureForm::simple ? "simple" : "divergence");
  line("averaging", m.averaging == Averaging::local ? "local" : "global");
  line("forcing", fmt::format("{}:{},{}", name(m.forcing.kind), m.forcing.wavenumber, m.forcing.amount));
  line("drag", m.drag);
  line("beta", m.beta);
  line("hyper", fmt::format("{},{}", m.hyper_viscosity, m.hyper_power));
  line("hypo", fmt::format("{},{}", m.hypo_viscosity, m.hypo_power));
  line("save-every", interval);
  line("history-every", o.history_every);
  return text;
}

void write_checkpoint(const std::filesystem::path& path, const std::string& settings,
                      const SolverState& state, const Series& series) {
  io::NpzArrays arrays = series.packed();
  arrays.emplace_back("settings", Array::of(std::vector<uint8_t>(settings.begin(), settings.end())));
  for (const auto& [name, array] : state) arrays.emplace_back("state_" + name, array);
  io::write_npz(path, arrays);
}

std::optional<SolverState> read_checkpoint(const std::filesystem::path& path, const std::string& settings,
                                           Series& series) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string where = path.string();
  const io::NpzArrays arrays = io::read_npz(path);
  const Array& saved = io::find_array(arrays, "settings", where);
  if (saved.storage() != Storage::u8)
    throw InputError("settings that are no text", where, "a checkpoint of flow run");
  std::istringstream had({reinterpret_cast<const char*>(saved.data()), size_t(saved.elements())}),
      has(settings);
  for (std::string before, now; std::getline(has, now);) {
    if (!std::getline(had, before)) before = "nothing";
    if (before != now)
      throw InputError(fmt::format("a checkpoint of other settings: {}", before), where, now)
          .with_hint("give another --checkpoint, or remove the file to begin anew");
  }
  series.restore(arrays);
  SolverState state;
  for (const auto& [name, array] : arrays)
    if (name.starts_with("state_")) state.emplace_back(name.substr(6), array);
  return state;
}

}  // namespace lockstep::flow
