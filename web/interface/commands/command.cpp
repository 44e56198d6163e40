#include "command.hpp"

#include <chrono>

#include "../arrays.hpp"
#include "../page_view.hpp"
#include "core/schema/shell_flags.hpp"

namespace lockstep::web {

CallFiles::CallFiles(const Json& request) : given_(named_arrays(request, "files")) {
  for (const auto& [name, array] : given_) files_.given[name] = array.raw();
  platform::memory_files() = &files_;
}
CallFiles::~CallFiles() { platform::memory_files() = nullptr; }

Json CallFiles::written() const {
  std::vector<std::pair<std::string, Array>> all;
  for (const auto& [name, content] : files_.written)
    all.emplace_back(
        name, Array::of(std::vector<uint8_t>(content.begin(), content.end()), {int64_t(content.size())}));
  return handles_of(all);
}

PageProgress page_progress(std::string where) {
  static constexpr std::chrono::milliseconds kBetween{30};
  using Clock = std::chrono::steady_clock;
  return [where = std::move(where), shown = Clock::time_point()](int64_t done, int64_t total) mutable {
    const Clock::time_point now = Clock::now();
    if (now - shown < kBetween) return;
    shown = now;
    const auto see = lockstep_may_wait() ? lockstep_draw : lockstep_frame;
    if (!see(nullptr, 0, uint32_t(done), double(total)))
      throw InputError("a call that onProgress ended", where, "onProgress that does not give false");
  };
}

std::vector<PageCommand>& commands() {
  static std::vector<PageCommand> all;
  return all;
}

namespace {

/// An option as the types of lockstep.d.ts show it.
Json described(const OptionList& list, const Option& o) {
  return {{"name", o.name},
          {"kind", o.kind == Option::Kind::text || o.kind == Option::Kind::choice ? "string"
                   : o.kind == Option::Kind::flag                                 ? "boolean"
                                                                                  : "number"},
          {"input", o.use == Option::Use::input},
          {"folder", is_input_folder(o)},
          {"list", o.list},
          {"parts", o.parts},
          {"choices", o.choices},
          {"required", o.required},
          {"default", list.default_text(o.name)},
          {"help", spelled(o.help, list.in_python(""))}};
}

}  // namespace

void add_command_calls(Calls& calls) {
  calls["commands"] = [](const Json&) {
    Json all = Json::array();
    for (const PageCommand& known : commands())
      all.push_back({{"name", known.command}, {"reports", known.reports}});
    return all;
  };
  calls["options"] = [](const Json& request) {
    const std::string name = text(request, "command");
    Json all = Json::array();
    for (const PageCommand& known : commands())
      if (known.command == name)
        for (const Option& o : known.options->options())
          if (!is_shell_alone(o) && is_on_pages(o)) all.push_back(described(*known.options, o));
    return all;
  };
}

}  // namespace lockstep::web
