#include "core/files/disk_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "core/files/cache_key.hpp"
#include "core/hash.hpp"
#include "core/platform/posix/file_limit.hpp"
#include "core/reports/log.hpp"

namespace lockstep {
namespace fs = std::filesystem;
namespace {

// An entry is this header, the key's text and the value; the checksum covers all but itself.
constexpr uint32_t kMagic = 0x43534b4c;  // "LKSC"
constexpr uint32_t kVersion = 2;
struct Header {
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  Hash128 checksum;
};
static_assert(sizeof(Header) == 40);
constexpr size_t kChecksummedHeader = sizeof(Header) - sizeof(Hash128);
constexpr auto kTemporaryLifetime = std::chrono::hours(1);

Hash128 checksum_of(const HashKey& key, std::span<const std::byte> entry) {
  const Hash128 head = hash128(key, entry.first(kChecksummedHeader));
  const Hash128 body = hash128(key, entry.subspan(sizeof(Header)));
  const uint64_t both[4] = {head.low, head.high, body.low, body.high};
  return hash128(key, std::as_bytes(std::span(both)));
}

bool is_valid(const HashKey& secret, std::span<const std::byte> entry, std::string_view key) {
  Header header;
  if (entry.size() < sizeof header) return false;
  std::memcpy(&header, entry.data(), sizeof header);
  const uint64_t body = entry.size() - sizeof header;
  return header.magic == kMagic && header.version == kVersion && header.key_bytes == key.size() &&
         header.key_bytes <= body && header.value_bytes == body - header.key_bytes &&
         std::memcmp(entry.data() + sizeof header, key.data(), key.size()) == 0 &&
         header.checksum == checksum_of(secret, entry);
}

// Returns 0 or the error number. A short file leaves `bytes` short, which is_valid() then refuses.
int read_all(const fs::path& path, std::vector<std::byte>& bytes) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat status{};
  int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (!error && !S_ISREG(status.st_mode)) error = EISDIR;
  if (!error) bytes.resize(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (!error && done < bytes.size()) {
    const ssize_t got = ::read(descriptor, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  if (!error)
    ::futimens(descriptor, nullptr);  // Marks the entry as used; a read-only file system may refuse.
  ::close(descriptor);
  return error;
}

int write_all(const fs::path& path, std::span<const std::byte> bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  int error = 0;
  const FileLimitHeld limit;
  while (!error && !bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error = written == 0 ? ENOSPC : errno;
    } else {
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  if (::close(descriptor) != 0 && !error) error = errno;
  return error;
}

}  // namespace

fs::path DiskCache::default_directory() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return fs::path(text ? text : "");
  };
  if (const fs::path own = value("LOCKSTEP_CACHE_DIR"); !own.empty()) return own;
  if (const fs::path xdg = value("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "lockstep";
  if (const fs::path home = value("HOME"); !home.empty()) return home / ".cache" / "lockstep";
  return {};
}

DiskCache& DiskCache::global() {
  static DiskCache instance;
  return instance;
}

DiskCache::DiskCache(fs::path directory, uint64_t limit_bytes)
    : directory_(directory.empty() ? default_directory() : std::move(directory)),
      limit_bytes_(limit_bytes),
      written_since_sweep_(limit_bytes) {  // The first write sweeps what earlier processes left.
  if (directory_.empty())
    state_ = State::off;
  else
    open_folder();
}

void DiskCache::open_folder() {
  if (!directory_.is_absolute()) return latch(State::off, "its name is relative");
  std::string why = why_unsafe(directory_);
  if (const int error = why.empty() ? make_private_folder(directory_) : 0)
    return latch(State::off, "cannot make the folder", error);
  if (why.empty()) why = why_unsafe(directory_);
  if (!why.empty()) return latch(State::off, why);
  if (const auto key = cache_key(directory_))
    key_ = *key;
  else
    latch(State::off, "there is no private key of this user for its entries");
}

fs::path DiskCache::entry_path(std::string_view key) const {
  return directory_ / (to_hex(hash128(key)) + ".entry");
}

void DiskCache::latch(State state, std::string_view what, int error) {
  latch(state, fmt::format("{}: {}", what, std::strerror(error)));
}

void DiskCache::latch(State state, std::string_view why) {
  State before = state_.load();
  while (before < state) {
    if (state_.compare_exchange_weak(before, state)) {
      logging::warning("kernel cache {}: {}; it is {} from now on", directory_.string(), why,
                       state == State::off ? "off" : "read-only");
      return;
    }
  }
}

std::optional<std::vector<std::byte>> DiskCache::get(std::string_view key) {
  if (!can_read()) return std::nullopt;
  const fs::path path = entry_path(key);
  std::vector<std::byte> entry;
  const int error = read_all(path, entry);
  if (error) {
    // A folder in an entry's place concerns that entry alone.
    if (error != ENOENT && error != EISDIR) latch(State::off, "cannot read an entry", error);
    ++misses_;
    return std::nullopt;
  }
  if (!is_valid(key_, entry, key)) {
    logging::warning("kernel cache {}: entry {} is damaged and was dropped", directory_.string(),
                     path.filename().string());
    ::unlink(path.c_str());
    ++damaged_;
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  entry.erase(entry.begin(), entry.begin() + static_cast<ptrdiff_t>(sizeof(Header) + key.size()));
  return entry;
}

void DiskCache::put(std::string_view key, std::span<const std::byte> value) {
  if (!can_write()) return;
  Header header;
  header.key_bytes = key.size();
  header.value_bytes = value.size();
  std::vector<std::byte> entry(sizeof header + key.size() + value.size());
  std::memcpy(entry.data(), &header, sizeof header);
  std::memcpy(entry.data() + sizeof header, key.data(), key.size());
  if (!value.empty()) std::memcpy(entry.data() + sizeof header + key.size(), value.data(), value.size());
  header.checksum = checksum_of(key_, entry);
  std::memcpy(entry.data(), &header, sizeof header);

  static std::atomic<unsigned> counter{0};
  const fs::path path = entry_path(key);
  const fs::path temporary = directory_ / fmt::format("{}-{}.part", ::getpid(), counter.fetch_add(1));
  ::unlink(temporary.c_str());  // A process with this number may have died and left one.
  int error = write_all(temporary, entry);
  if (!error && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error) {
    ::unlink(temporary.c_str());
    if (error == EISDIR) return;  // a folder in the entry's place
    latch(State::read_only, "cannot write an entry", error);
    return;
  }
  ++writes_;
  if (written_since_sweep_.fetch_add(entry.size()) + entry.size() > limit_bytes_ / 16) {
    written_since_sweep_ = 0;
    sweep();
  }
}

void DiskCache::sweep() {
  std::unique_lock lock(sweeping_, std::try_to_lock);
  if (!lock || !can_write()) return;
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t sum = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
    // Another process may delete any of these meanwhile: each error just skips the file.
    std::error_code gone;
    const auto used = at->last_write_time(gone);
    if (gone) continue;
    const uint64_t bytes = at->file_size(gone);
    if (gone) continue;
    if (at->path().extension() == ".entry") {
      entries.push_back({at->path(), used, bytes});
      sum += bytes;
    } else if (at->path().extension() == ".part" && now - used > kTemporaryLifetime) {
      fs::remove(at->path(), gone);
    }
  }
  if (sum <= limit_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  // Going down to 3/4 keeps the next writes from sweeping again at once.
  for (const Entry& entry : entries) {
    if (sum <= limit_bytes_ / 4 * 3) break;
    std::error_code gone;
    if (fs::remove(entry.path, gone)) ++evicted_;
    sum -= entry.bytes;
  }
}

DiskCache::Counters DiskCache::counters() const {
  return {hits_.load(), misses_.load(), writes_.load(), damaged_.load(), evicted_.load()};
}

}  // namespace lockstep
