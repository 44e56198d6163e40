// A content-addressed store of compiled kernels in the user's cache folder, shared by concurrent processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/hash.hpp"
#include "core/platform/threads.hpp"

namespace lockstep {

/// Maps a key text (source, flags, compiler, architecture) to bytes. Entries carry a code that only this user can make
/// (cache_key.hpp) and are verified when read: one that is damaged or of another user is deleted and counts as absent.
/// Where others could write to the folder, or its name is relative, the cache is off. Nothing here fails a run: the first I/O error logs one line
/// and switches writing (or the whole cache) off. Thread-safe.
class DiskCache {
 public:
  /// `directory` empty means default_directory(). The least recently used entries go when the sum exceeds the
  /// limit.
  explicit DiskCache(std::filesystem::path directory = {}, uint64_t limit_bytes = uint64_t{1} << 30);

  /// $LOCKSTEP_CACHE_DIR, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep. Empty if there is no home.
  static std::filesystem::path default_directory();
  /// The process's own, at the default place.
  static DiskCache& global();

  std::optional<std::vector<std::byte>> get(std::string_view key);
  void put(std::string_view key, std::span<const std::byte> value);

  /// Deletes least recently used entries and left-over temporary files. put() calls it now and then.
  void sweep();

  struct Counters {
    uint64_t hits = 0, misses = 0, writes = 0, damaged = 0, evicted = 0;
  };
  Counters counters() const;
  bool can_read() const { return state_ != State::off; }
  bool can_write() const { return state_ == State::on; }
  const std::filesystem::path& directory() const { return directory_; }
  /// Where an entry of this key lies.
  std::filesystem::path entry_path(std::string_view key) const;

 private:
  enum class State { on, read_only, off };
  void latch(State state, std::string_view what, int error);
  void latch(State state, std::string_view why);
  void open_folder();

  std::filesystem::path directory_;
  HashKey key_{};
  const uint64_t limit_bytes_;
  std::atomic<State> state_{State::on};
  std::atomic<uint64_t> hits_{0}, misses_{0}, writes_{0}, damaged_{0}, evicted_{0};
  std::atomic<uint64_t> written_since_sweep_;
  Mutex sweeping_;
};

}  // namespace lockstep
