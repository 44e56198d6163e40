#include "page_context.hpp"

#include <algorithm>

#include "core/reports/log.hpp"

namespace lockstep::web {

std::vector<RefusedDevice> open_first(const std::string& names,
                                      const std::function<void(const std::string&)>& open) {
  std::vector<RefusedDevice> refused;
  for (size_t begin = 0;;) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    try {
      open(name);
      return refused;
    } catch (const UnsupportedError& error) {
      if (end == names.size()) throw;
      refused.push_back({name, error.problem()});
    }
    begin = end + 1;
  }
}

PageContext::PageContext(const Json& request) {
  const auto note = [this](const std::string& line) { notes.push_back(line); };
  refused = open_first(text(request, "device"), [&](const std::string& name) {
    ContextOptions options;
    options.device = name;
    options.on_fallback = note;
    context = std::make_unique<Context>(std::move(options));
  });
  for (const RefusedDevice& device : refused) note(logging::fallback_line(device.name, device.reason));
}

Json PageContext::status() {
  Json fallbacks = Json::object();
  for (const RefusedDevice& device : refused) fallbacks[device.name] = 1;
  for (const auto& [stage, count] : context->fallbacks()) fallbacks[stage] = count;
  // Once a stage has fallen back, the processor: a page claims no more for the adapter than it did.
  const Device& device = context->fallbacks().empty() ? context->device() : context->cpu();
  return {
      {"device", device.info().description}, {"fallbacks", fallbacks}, {"notes", std::exchange(notes, {})}};
}

}  // namespace lockstep::web
