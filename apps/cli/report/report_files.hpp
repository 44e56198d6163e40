// The files that a report shows: those of its folder, and none that a link there leads to.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/files/folder.hpp"
#include "io/text/input_memory.hpp"

namespace lockstep::cli {

struct ReportEntry {
  Folder folder;
  std::filesystem::path name;
  uintmax_t bytes = 0;
};
/// By suffix, each sorted by name.
using ReportEntries = std::map<std::string, std::vector<ReportEntry>>;

/// Regular files of the folder, and pictures of its folders `summary` and `pictures`. Hidden files and links are left out.
ReportEntries report_entries(const std::filesystem::path& folder);

struct ReportFile {
  std::filesystem::path path;
  std::string bytes;
  io::InputClaim claim;
};
/// Throws InputError where the file became a link or cannot be read.
ReportFile read_report_file(const ReportEntry& entry);

}  // namespace lockstep::cli
