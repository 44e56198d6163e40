// Endings of names of files.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The ending of a name, in small letters, where it is none of `known`; empty where the name has none or none is known.
inline std::string other_ending(const std::filesystem::path& name, const std::vector<std::string>& known) {
  std::string ending = name.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return known.empty() || std::ranges::find(known, ending) != known.end() ? "" : ending;
}

}  // namespace lockstep
