#include "core/files/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "lockstep/error.hpp"

namespace lockstep {
namespace fs = std::filesystem;

struct Folder::Handle {
  int descriptor;
  explicit Handle(int d) : descriptor(d) {}
  ~Handle() { ::close(descriptor); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr int kAttempts = 100;

[[noreturn]] void refuse_folder(std::string_view what, const fs::path& path, int error) {
  throw InputError(fmt::format("{}: {}", what, std::strerror(error)), path.string(),
                   "a folder that can be written and has room");
}

/// As FolderLock reads it, with 64 bits that nobody can guess. Long stems are cut: a name holds 255 bytes.
std::string temporary_name(const std::string& stem) {
  uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits)
    throw InternalError("no random numbers", "getrandom", "those of the system");
  return fmt::format(".{}.{}-{:016x}.part", stem.substr(0, 120), ::getpid(), bits);
}

/// Absolute, without "." and the slash at its end; ".." stays, for it means what links make of it.
fs::path whole_name(const fs::path& path) {
  std::error_code ignored;
  fs::path out;
  for (const fs::path& part : fs::absolute(path, ignored))
    if (part != "." && !part.empty()) out /= part;
  return out;
}

/// The rest of `path` after `root`; empty where it is not below it.
fs::path below(const fs::path& root, const fs::path& path) {
  const auto [at, in] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  fs::path rest;
  if (at != root.end()) return rest;
  for (auto part = in; part != path.end(); ++part) rest /= *part;
  return rest;
}

}  // namespace

/// The output folders by absolute name, each with its handle if one is held.
class OutputFolders {
 public:
  static OutputFolders& all() {
    static auto& folders = *new OutputFolders;
    return folders;
  }
  void note(const fs::path& folder, const std::shared_ptr<const Folder::Handle>& handle = nullptr) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const Folder::Handle>& there = folders_[whole_name(folder)];
    if (handle) there = handle;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    folders_.clear();
  }
  /// Opens a folder, link by link refused below the outermost folder of outputs above it.
  Folder open(const fs::path& path) {
    const fs::path whole = whole_name(path);
    Folder at;
    {
      const std::lock_guard lock(mutex_);
      // In the order of names a folder comes before those in it.
      for (const auto& [root, handle] : folders_) {
        if (root != whole && below(root, whole).empty()) continue;
        at.path_ = root;
        at.handle_ = handle.lock();
        break;
      }
    }
    if (at.path_.empty()) return Folder::open(path, true);
    const fs::path root = at.path_;
    if (!at) at = Folder::open(root, true);
    for (const fs::path& part : below(root, whole)) at = at.inside(part, true);
    return at;
  }

 private:
  std::mutex mutex_;
  std::map<fs::path, std::weak_ptr<const Folder::Handle>> folders_;
};

Folder Folder::open(const fs::path& path, bool make) {
  if (make) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) refuse_folder("cannot make the folder", path, error.value());
  }
  const int descriptor = ::open(path.c_str(), kFolder);
  if (descriptor < 0) refuse_folder("cannot open the folder", path, errno);
  Folder folder;
  folder.path_ = path;
  folder.handle_ = std::make_shared<Handle>(descriptor);
  return folder;
}

Folder Folder::of_output(const fs::path& file) {
  return OutputFolders::all().open(file.has_parent_path() ? file.parent_path() : fs::path("."));
}

int Folder::descriptor() const { return handle_->descriptor; }

fs::path Folder::pinned() const {
  const fs::path name = fmt::format("/proc/self/fd/{}", descriptor());
  std::error_code error;
  return fs::exists(name, error) ? name : path_;  // without /proc the name has to do
}

Folder Folder::inside(const fs::path& name, bool make) const {
  const fs::path whole = path_ / name;
  if (name.empty() || name == ".." || name.has_parent_path())
    throw InputError("a name that is outside of the folder", whole.string(), "the name of a folder in it");
  int descriptor = ::openat(this->descriptor(), name.c_str(), kFolder | O_NOFOLLOW);
  if (descriptor < 0 && errno == ENOENT && make) {
    if (::mkdirat(this->descriptor(), name.c_str(), 0777) != 0 && errno != EEXIST)
      refuse_folder("cannot make the folder", whole, errno);
    descriptor = ::openat(this->descriptor(), name.c_str(), kFolder | O_NOFOLLOW);
  }
  if (descriptor < 0) {
    const int error = errno;
    struct stat status{};
    if (::fstatat(this->descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode))
      throw InputError("a link where results go", whole.string(),
                       "a folder: links below --out are not followed");
    refuse_folder("cannot make the folder", whole, error);
  }
  Folder folder;
  folder.path_ = whole;
  folder.handle_ = std::make_shared<Handle>(descriptor);
  return folder;
}

Folder Folder::make_private(const std::string& stem, std::string& name) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    name = temporary_name(stem);
    if (::mkdirat(descriptor(), name.c_str(), 0700) == 0) return inside(name, false);
    if (errno != EEXIST) break;
  }
  refuse_folder("cannot create the file", path_ / stem, errno);
}

int Folder::make_temporary(const std::string& stem, std::string& name) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    name = temporary_name(stem);
    const int file =
        ::openat(descriptor(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

int Folder::open_regular(const std::string& name) const {
  // Without O_NONBLOCK a pipe would keep the opening waiting.
  const int file = ::openat(descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || (::fstat(file, &status) == 0 && S_ISREG(status.st_mode))) return file;
  ::close(file);
  errno = EINVAL;
  return -1;
}

void Folder::remove(const std::string& name) const {
  if (::unlinkat(descriptor(), name.c_str(), 0) == 0 || errno != EISDIR) return;
  std::error_code ignored;
  fs::remove_all(pinned() / name, ignored);
}

void make_output_folder(const fs::path& folder) {
  const Folder made = OutputFolders::all().open(folder);
  OutputFolders::all().note(folder);
}
void note_output_folder(const fs::path& folder) { OutputFolders::all().note(folder); }
void hold_output_folder(const Folder& folder) { OutputFolders::all().note(folder.path(), folder.handle_); }
void forget_output_folders() { OutputFolders::all().forget(); }

namespace {

/// The open folders of inputs by absolute name.
struct InputFolders {
  std::mutex mutex;
  std::multimap<fs::path, const Folder*> open;
  static InputFolders& all() {
    static auto& folders = *new InputFolders;
    return folders;
  }
};

}  // namespace

InputFolder::InputFolder(const fs::path& path) : folder_(Folder::open(path)), whole_(whole_name(path)) {
  InputFolders& all = InputFolders::all();
  const std::lock_guard lock(all.mutex);
  all.open.emplace(whole_, &folder_);
}

InputFolder::~InputFolder() {
  InputFolders& all = InputFolders::all();
  const std::lock_guard lock(all.mutex);
  const auto [first, last] = all.open.equal_range(whole_);
  all.open.erase(std::find_if(first, last, [&](const auto& own) { return own.second == &folder_; }));
}

fs::path InputFolder::name_of(const fs::path& file) {
  InputFolders& all = InputFolders::all();
  const std::lock_guard lock(all.mutex);
  if (all.open.empty()) return file;
  const fs::path whole = whole_name(file);
  const auto found = all.open.find(whole.parent_path());
  if (found == all.open.end()) return file;
  const Folder& folder = *found->second;
  struct stat status{};
  if (::fstatat(folder.descriptor(), whole.filename().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(status.st_mode))
    throw InputError("a link in a folder of inputs", file.string(), "a file: links in it are not followed");
  return folder.pinned() / whole.filename();
}

ScratchFile::ScratchFile(const fs::path& target) {
  const Folder folder = Folder::of_output(target);
  descriptor_ = ::openat(folder.descriptor(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  std::string name;  // a file system without such files
  descriptor_ = folder.make_temporary(target.filename().string(), name);
  if (descriptor_ < 0) refuse_folder("cannot create the file", target, errno);
  ::unlinkat(folder.descriptor(), name.c_str(), 0);
}

ScratchFile::~ScratchFile() { ::close(descriptor_); }

}  // namespace lockstep
