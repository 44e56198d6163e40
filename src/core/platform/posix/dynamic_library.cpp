#include "core/dynamic_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace lockstep {
namespace fs = std::filesystem;
namespace {

void add_paths_of_variable(const char* name, std::vector<fs::path>& folders) {
  const char* text = std::getenv(name);
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) folders.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
}

fs::path own_library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&own_library_folder), &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  const fs::path path = fs::weakly_canonical(info.dli_fname, error);
  return error ? fs::path{} : path.parent_path();
}

}  // namespace

fs::path program_folder() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path{} : path.parent_path();
}

std::vector<fs::path> LibrarySearch::folders_before_system() {
  std::vector<fs::path> folders;
  add_paths_of_variable("LOCKSTEP_LIBRARY_PATH", folders);
  for (const fs::path& base : {program_folder(), own_library_folder()}) {
    if (base.empty()) continue;
    for (const fs::path& folder :
         {base, base.parent_path() / "lib", base.parent_path() / "lib" / "lockstep"}) {
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
    }
  }
  return folders;
}

std::vector<fs::path> LibrarySearch::folders_after_system() const {
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64", "/usr/local/lib"};
  if (python_folders.empty()) return folders;
  std::vector<fs::path> packages;
  add_paths_of_variable("PYTHONPATH", packages);
  std::vector<fs::path> bases = {"/usr/local/lib", "/usr/lib"};
  if (const char* venv = std::getenv("VIRTUAL_ENV")) bases.push_back(fs::path(venv) / "lib");
  if (const char* home = std::getenv("HOME")) bases.push_back(fs::path(home) / ".local" / "lib");
  for (const fs::path& base : bases) {
    std::error_code error;
    for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
      if (!at->path().filename().string().starts_with("python3")) continue;
      packages.push_back(at->path() / "site-packages");
      packages.push_back(at->path() / "dist-packages");
    }
  }
  for (const fs::path& package : packages) {
    for (const std::string& folder : python_folders) {
      std::error_code error;
      if (fs::is_directory(package / folder, error)) folders.push_back(package / folder);
    }
  }
  return folders;
}

DynamicLibrary LibrarySearch::load(std::string* reason) const {
  std::string why;
  const auto open = [&](const std::string& file) {
    DynamicLibrary library;
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      library.handle_ = std::shared_ptr<void>(handle, [](void* h) { ::dlclose(h); });
      library.path_ = file;
    } else if (const char* error = ::dlerror()) {
      why = error;
    }
    return library;
  };
  // A file that exists but does not load (a missing dependency, say) is the reason worth telling.
  std::string found_but_broken;
  const auto open_in = [&](const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
      for (const std::string& name : names) {
        std::error_code error;
        const fs::path file = folder / name;
        if (!fs::exists(file, error)) continue;
        if (DynamicLibrary library = open(file.string())) return library;
        if (found_but_broken.empty()) found_but_broken = why;
      }
    }
    return DynamicLibrary{};
  };
  if (DynamicLibrary library = open_in(folders_before_system())) return library;
  for (const std::string& name : names) {
    if (DynamicLibrary library = open(name)) return library;
  }
  if (DynamicLibrary library = open_in(folders_after_system())) return library;
  if (reason) {
    *reason = !found_but_broken.empty() ? found_but_broken
              : why.empty() ? fmt::format("{} was not found", names.empty() ? "library" : names.front())
                            : why;
  }
  return {};
}

void* DynamicLibrary::symbol(const char* name) const {
  return handle_ ? ::dlsym(handle_.get(), name) : nullptr;
}

}  // namespace lockstep
