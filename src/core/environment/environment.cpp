#include "core/environment/environment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "core/platform/system.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::environment {
namespace {

constexpr Variable kVariables[] = {
#define VARIABLE(name, readers, kind, words, effect) {#name, Readers::readers, Kind::kind, words, effect},
#include "core/environment/variables.def"
#undef VARIABLE
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_count(std::string_view text, int64_t least) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// The expectation of a kind; empty where the text is that.
std::string expected(const Variable& variable, const std::string& text) {
  const std::vector<std::string> words = split(variable.words, ' ');
  const auto known = [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); };
  switch (variable.kind) {
    case Kind::text: return {};
    case Kind::count:
      return is_count(text, 0) ? "" : "N, for a check of every N-th launch; 1 checks all, 0 none";
    case Kind::choice: return known(text) ? "" : fmt::format("{}", fmt::join(words, " or "));
    case Kind::folder: return is_folder(text) ? "" : "a folder that exists";
    case Kind::folders:
      return std::ranges::all_of(split(text, ':'),
                                 [](const std::string& folder) {
                                   return folder.empty() || (folder.starts_with('/') && is_folder(folder));
                                 })
                 ? ""
                 : "absolute folders that exist, separated by ':'";
    case Kind::fault: {
      const std::vector<std::string> parts = split(text, ':');
      const bool right = (parts.size() == 2 || parts.size() == 3) && !parts[0].empty() && known(parts[1]) &&
                         (parts.size() == 2 || is_count(parts[2], 1));
      return right ? "" : "<stage>:<allocation|compile|launch|device_lost>[:<nth>]";
    }
  }
  return {};
}

const char* checked(const Variable& variable) {
  const char* value = std::getenv(variable.name);
  if (!value || !*value) return nullptr;
  if (const std::string wanted = expected(variable, value); !wanted.empty())
    throw InputError(fmt::format("\"{}\"", value), variable.name, wanted);
  return value;
}

void warn_of_unknown() {
  std::vector<std::string> known;
  for (const Variable& variable : kVariables)
    if (variable.readers == Readers::user) known.emplace_back(variable.name);
  for (const std::string& name : platform::environment_names()) {
    if (!name.starts_with("LOCKSTEP_") || name.starts_with("LOCKSTEP_TEST_") ||
        std::ranges::any_of(kVariables, [&](const Variable& v) { return name == v.name; }))
      continue;
    const std::string close = nearest_name(name, known);
    logging::warning("{} is set, but no variable has this name{}", logging::printable(name),
                     close.empty() ? std::string() : fmt::format(": did you mean {}?", close));
  }
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

const char* text(std::string_view name) {
  for (const Variable& variable : kVariables)
    if (name == variable.name) return checked(variable);
  throw InternalError(fmt::format("variable {}", name), "environment", "a row of variables.def");
}

std::vector<std::pair<std::string_view, std::string>> set_by_user() {
  std::vector<std::pair<std::string_view, std::string>> found;
  for (const Variable& variable : kVariables)
    if (variable.readers == Readers::user)
      if (const char* set = text(variable.name)) found.emplace_back(variable.name, set);
  return found;
}

void check() {
  for (const Variable& variable : kVariables)
    if (variable.readers != Readers::system) (void)checked(variable);
  static std::once_flag warned;
  std::call_once(warned, warn_of_unknown);
}

}  // namespace lockstep::environment
