#include "report_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace fs = std::filesystem;
namespace {

void add_entries(const Folder& folder, bool pictures_alone, ReportEntries& entries) {
  std::vector<ReportEntry> here;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.pinned())) {
    const fs::path name = entry.path().filename();
    struct stat status{};
    if (name.string().starts_with(".") || (pictures_alone && name.extension() != ".png") ||
        ::lstat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    here.push_back({folder, name, static_cast<uintmax_t>(status.st_size)});
  }
  std::sort(here.begin(), here.end(),
            [](const ReportEntry& a, const ReportEntry& b) { return a.name < b.name; });
  for (ReportEntry& entry : here) entries[entry.name.extension().string()].push_back(std::move(entry));
}

}  // namespace

ReportEntries report_entries(const fs::path& path) {
  const Folder folder = Folder::open(path);
  ReportEntries entries;
  add_entries(folder, false, entries);
  for (const char* inner : {"summary", "pictures"}) {
    struct stat status{};
    if (::lstat((folder.pinned() / inner).c_str(), &status) == 0 && S_ISDIR(status.st_mode))
      add_entries(folder.inside(inner, false), true, entries);
  }
  return entries;
}

ReportFile read_report_file(const ReportEntry& entry) {
  ReportFile file{entry.folder.path() / entry.name, {}, {}};
  const std::string where = file.path.string();
  const int descriptor = entry.folder.open_regular(entry.name.string());
  if (descriptor < 0)
    throw InputError(fmt::format("cannot read the file: {}", std::strerror(errno)), where,
                     "a file of this folder");
  const std::shared_ptr<void> closer(nullptr, [&](void*) { ::close(descriptor); });
  file.claim = io::InputClaim(static_cast<double>(entry.bytes), "the file", where);
  return io::within_memory(where, [&] {
    file.bytes.resize(entry.bytes);
    if (!io::read_at(descriptor, 0, std::as_writable_bytes(std::span(file.bytes))))
      throw InputError("cannot read the file: it became shorter", where, "a file of this folder");
    return std::move(file);
  });
}

}  // namespace lockstep::cli
