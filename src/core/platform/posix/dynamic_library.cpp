#include "core/dynamic_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>

#include "core/environment/environment.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace fs = std::filesystem;
namespace {

/// Absolute folders of a list; with `own`, one of this project, in which anything else is an error.
void add_paths_of_variable(const char* name, std::vector<fs::path>& folders, bool own = false) {
  const char* text = std::getenv(name);
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    // An empty entry would be the current folder, which holds what was downloaded.
    fs::path folder = rest.substr(0, colon);
    std::error_code error;
    if (own && !folder.empty() && !(folder.is_absolute() && fs::is_directory(folder, error)))
      throw InputError(fmt::format("\"{}\"", folder.string()), name,
                       "absolute folders that exist, separated by ':'");
    if (folder.is_absolute()) folders.push_back(std::move(folder));
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

/// Folders that a list of the dynamic loader names, and those that it includes.
void add_loader_folders(const fs::path& list, int depth, std::vector<fs::path>& folders) {
  std::ifstream file(list);
  for (std::string line; depth < 8 && std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word, pattern;
    if (!(words >> word)) continue;
    if (word != "include") {
      if (word.starts_with('/')) folders.emplace_back(word);
    } else if (words >> pattern) {
      glob_t found{};
      if (pattern.starts_with('/') && ::glob(pattern.c_str(), 0, nullptr, &found) == 0)
        for (size_t k = 0; k < found.gl_pathc; ++k) add_loader_folders(found.gl_pathv[k], depth + 1, folders);
      ::globfree(&found);
    }
  }
}

/// Neither the file nor its folder may be one that anybody can change.
bool is_safe(const fs::path& file, std::string& why) {
  for (const fs::path& path : {file, file.parent_path()}) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return false;
    if ((status.st_mode & S_IWOTH) == 0) continue;
    why = fmt::format("{}: everybody may write to {}", file.string(), path.string());
    return false;
  }
  return true;
}

}  // namespace

fs::path program_folder() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path{} : path.parent_path();
}

void drop_relative_module_paths() {
  for (const environment::Variable& variable : environment::variables()) {
    if (variable.words != "modules") continue;
    const char *name = variable.name, *text = std::getenv(name);
    if (!text || std::string_view(text) == "disable") continue;  // a word of GDAL
    std::string kept;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(':'));
      if (part.starts_with('/')) kept += (kept.empty() ? "" : ":") + std::string(part);
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    if (kept == text) continue;
    logging::warning("{}={}: relative paths are not used", name, text);
    kept.empty() ? ::unsetenv(name) : ::setenv(name, kept.c_str(), 1);
  }
}

std::vector<fs::path> LibrarySearch::folders_before_system() {
  std::vector<fs::path> folders;
  add_paths_of_variable("LOCKSTEP_LIBRARY_PATH", folders, true);
  for (const fs::path& base : {program_folder(), own_library_folder()}) {
    if (base.empty()) continue;
    for (const fs::path& folder :
         {base, base.parent_path() / "lib", base.parent_path() / "lib" / "lockstep"}) {
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
    }
  }
  return folders;
}

std::vector<fs::path> LibrarySearch::system_folders() {
  std::vector<fs::path> folders;
  add_paths_of_variable("LD_LIBRARY_PATH", folders);
  add_loader_folders("/etc/ld.so.conf", 0, folders);
  for (const char* folder :
       {"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/run/opengl-driver/lib", "/usr/lib/wsl/lib"})
    folders.emplace_back(folder);
  return folders;
}

std::vector<fs::path> LibrarySearch::folders_after_system() const {
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64", "/usr/local/lib"};
  if (python_folders.empty()) return folders;
  std::vector<fs::path> packages;
  add_paths_of_variable("PYTHONPATH", packages);
  std::vector<fs::path> bases = {"/usr/local/lib", "/usr/lib"};
  const auto add_base = [&](const char* variable, const char* below) {
    const char* text = std::getenv(variable);
    if (text && fs::path(text).is_absolute()) bases.push_back(fs::path(text) / below);
  };
  add_base("VIRTUAL_ENV", "lib");
  add_base("HOME", ".local/lib");
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
  static std::once_flag once;
  std::call_once(once, drop_relative_module_paths);
  std::string why;
  const auto open = [&](const std::string& file) {
    DynamicLibrary library;
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL))) {
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
        const fs::path file = folder / name;  // the name itself, where it is absolute
        const bool named = !name.empty() && (name[0] == '/' || name.find('/') == name.npos);
        if (!named || !fs::is_regular_file(file, error)) continue;
        if (is_safe(file, why))
          if (DynamicLibrary library = open(file.string())) return library;
        if (found_but_broken.empty()) found_but_broken = why;
      }
    }
    return DynamicLibrary{};
  };
  if (DynamicLibrary library = open_in(folders_before_system())) return library;
  if (DynamicLibrary library = open_in(system_folders())) return library;
  if (DynamicLibrary library = open_in(folders_after_system())) return library;
  if (reason) {
    *reason = !found_but_broken.empty()
                  ? found_but_broken
                  : fmt::format("{}: cannot open shared object file: No such file or directory",
                                names.empty() ? "library" : names.front());
  }
  return {};
}

void* DynamicLibrary::symbol(const char* name) const {
  return handle_ ? ::dlsym(handle_.get(), name) : nullptr;
}

}  // namespace lockstep
