#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/series/logs/log_builder.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

using Json = nlohmann::json;
constexpr int kDeepestObject = 16;

struct Member {
  std::string name;
  const Json* value;
};

void flatten(const Json& object, const std::string& prefix, int level, const TextScanner& scan,
             std::vector<Member>& members) {
  if (level == kDeepestObject)
    scan.fail("objects nested too deeply", fmt::format("at most {}", kDeepestObject));
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object())
      flatten(value, name + ".", level + 1, scan, members);
    else
      members.push_back({name, &value});
  }
}

Json object_of(std::string_view line, const TextScanner& scan) {
  try {
    Json json = parse_json(line, scan.where());
    if (json.is_object()) return json;
  } catch (const JsonSyntaxError&) {
    if (line.find("NaN") != line.npos || line.find("Infinity") != line.npos)
      scan.fail("NaN or Infinity, which are not JSON", "finite numbers or null");
    scan.fail("a line that is not JSON", "an object in each line");
  }
  scan.fail("a line that is not a JSON object", "an object in each line");
}

}  // namespace

TrainingLog parse_json_lines_log(std::string_view text, std::string_view where) {
  TextScanner scan(text, std::string(where));
  LogBuilder builder(where);
  std::string step_name;
  while (scan.next_line('\0')) {
    const Json json = object_of(scan.rest_of_line(), scan);
    std::vector<Member> members;
    flatten(json, "", 0, scan, members);
    if (step_name.empty()) {
      std::vector<std::string> names;
      for (const Member& m : members) names.push_back(m.name);
      step_name = step_name_of(names);
      if (step_name.empty())
        scan.fail("an object without a step", "a member step, global_step, iteration, iter or epoch");
    }
    const auto step =
        std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.name == step_name; });
    if (step == members.end())
      scan.fail(fmt::format("an object without '{}'", step_name), "one in each line, as above");
    const double at = step->value->is_number() ? step->value->get<double>() : -1;
    if (!std::isfinite(at) || at < 0)
      scan.fail(fmt::format("'{}' is {}", step_name,
                            shown(step->value->dump(-1, ' ', true, Json::error_handler_t::replace))),
                "a number from 0");
    for (const Member& m : members) {
      if (m.value->is_null() || m.name == step_name) continue;
      if (m.value->is_number())
        builder.add(m.name, at, m.value->get<double>(), scan.line());
      else
        builder.add_flaw(
            m.name,
            fmt::format("'{}' is {}", shown(m.name), m.value->is_string() ? "a text" : m.value->type_name()),
            "a finite number", scan.line());
    }
  }
  if (step_name.empty()) throw InputError("no rows", where, "a log of a training run (JSON lines)");
  return builder.finish(step_name);
}

}  // namespace lockstep::io
