#include "core/record/journal.hpp"

#include <system_error>

#include "core/files/output_files.hpp"

namespace lockstep {

namespace fs = std::filesystem;

void journal::note(std::vector<fs::path> Entries::* list, const fs::path& file) {
  std::error_code error;
  const fs::path whole = fs::absolute(file, error).lexically_normal();
  Journal& here = journal();
  std::lock_guard lock(here.mutex);
  auto& names = list == &Entries::outputs ? here.outputs : here.inputs;
  if (here.on && names.insert(whole.string()).second) (here.entries.*list).push_back(whole);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace lockstep
