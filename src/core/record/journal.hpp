// Files that this process reads and publishes, its warnings, and values of options that its inputs decided, for the record
// of a run. Off until journal::begin().
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/platform/threads.hpp"

namespace lockstep::journal {

struct Entries {
  std::vector<std::filesystem::path> inputs, outputs;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> found;
};

struct Journal {
  Mutex mutex;
  bool on = false;
  Entries entries;
  std::unordered_set<std::string> inputs,
      outputs;  // the names in the entries, found without comparing thousands
};
inline Journal& journal() {
  static auto* instance = new Journal;  // outlives every static destructor that may still write
  return *instance;
}

inline void begin() {
  std::lock_guard lock(journal().mutex);
  journal().on = true;
  journal().entries = {};
  journal().inputs.clear();
  journal().outputs.clear();
}
inline Entries entries() {
  std::lock_guard lock(journal().mutex);
  return journal().entries;
}

/// Called by everything that opens a file of the user's; absolute, each once.
void note(std::vector<std::filesystem::path> Entries::* list, const std::filesystem::path& file);
inline void input(const std::filesystem::path& file) { note(&Entries::inputs, file); }
inline void output(const std::filesystem::path& file) { note(&Entries::outputs, file); }
inline void warning(std::string_view text) {
  std::lock_guard lock(journal().mutex);
  if (journal().on) journal().entries.warnings.emplace_back(text);
}

/// The value that an option has if it is not given, as the inputs decide it: by the option's name or by that of the first of its
/// group, in the option's own text. Before the first output: the identity of the run contains it.
inline void found(std::string_view option, std::string value) {
  std::lock_guard lock(journal().mutex);
  if (journal().on) journal().entries.found[std::string(option)] = std::move(value);
}
/// Empty: none.
inline std::string found_value(const std::string& option) {
  std::lock_guard lock(journal().mutex);
  const auto found = journal().entries.found.find(option);
  return found == journal().entries.found.end() ? std::string() : found->second;
}

}  // namespace lockstep::journal
