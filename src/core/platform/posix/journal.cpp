#include "core/record/journal.hpp"

#include <algorithm>
#include <system_error>

#include "core/files/output_files.hpp"

namespace lockstep {

namespace fs = std::filesystem;

void journal::note(std::vector<fs::path> Entries::* list, const fs::path& file) {
  std::error_code error;
  const fs::path whole = fs::absolute(file, error).lexically_normal();
  std::lock_guard lock(journal().mutex);
  auto& all = journal().entries.*list;
  if (journal().on && std::find(all.begin(), all.end(), whole) == all.end()) all.push_back(whole);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace lockstep
