#include "urban/series/step_store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <sstream>

#include "core/files/atomic_file.hpp"
#include "core/files/folder.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "urban/options/errors.hpp"
#include "urban/tiles/tile_store.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kRunFile = "run.txt", kStateFile = "state.step";
constexpr std::string_view kStepsHeading = "lockstep urban steps 1";

/// Head of a file of the store.
struct StepHead {
  Hash128 key, checksum;
  uint64_t step = 0, first = 0, bytes = 0;
};

/// A file of the store, whole; nothing where there is none, or a link.
std::optional<std::vector<std::byte>> read_whole_file(const fs::path& file) {
  const int descriptor = Folder::of_output(file).open_regular(file.filename().string());
  if (descriptor < 0) return {};
  struct stat status{};
  std::vector<std::byte> bytes;
  const bool known = ::fstat(descriptor, &status) == 0;
  if (known) bytes.resize(static_cast<size_t>(status.st_size));
  const bool whole = known && io::read_at(descriptor, 0, bytes);
  ::close(descriptor);
  return whole ? std::optional(std::move(bytes)) : std::nullopt;
}

/// The data of a file of this key; nothing for any other.
std::optional<std::vector<std::byte>> read_stored(const fs::path& file, const Hash128& key, StepHead& head) {
  auto bytes = read_whole_file(file);
  if (!bytes || bytes->size() < sizeof head) return {};
  std::memcpy(&head, bytes->data(), sizeof head);
  bytes->erase(bytes->begin(), bytes->begin() + sizeof head);
  if (head.key != key || head.bytes != bytes->size() || hash_in_parts(*bytes) != head.checksum) return {};
  return bytes;
}

void write_stored(const fs::path& file, StepHead head, std::span<const std::byte> data) {
  head.checksum = hash_in_parts(data);
  head.bytes = data.size();
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(&head, 1)));
  out.write(data);
  out.commit();
}

/// Names whose hashes differ between two files of keys.
std::vector<std::string> differences(const std::string& a, const std::string& b) {
  const auto lines = [](const std::string& text) {
    std::map<std::string, std::string> hashes;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      const size_t blank = std::min(line.find(' '), line.size());
      hashes[line.substr(std::min(blank + 1, line.size()))] = line.substr(0, blank);
    }
    return hashes;
  };
  const auto ours = lines(a), theirs = lines(b);
  std::vector<std::string> names;
  for (const auto& [name, hash] : ours)
    if (const auto found = theirs.find(name); found == theirs.end() || found->second != hash)
      names.push_back(name);
  return names;
}

}  // namespace

bool StepStore::holds_steps(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kRunFile, ignored);
}

StepStore::StepStore(fs::path folder, const RunKey& key) : folder_(std::move(folder)) {
  key_text_ = fmt::format("{}\n", kStepsHeading);
  for (const auto& [name, text] : key)
    key_text_ += fmt::format("{} {}\n", to_hex(hash128(std::as_bytes(std::span(text)))), name);
  key_ = hash128(std::as_bytes(std::span(key_text_)));
  if (holds_steps(folder_)) {
    const auto bytes = read_whole_file(folder_ / kRunFile).value_or(std::vector<std::byte>());
    const std::string there(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (there != key_text_) {
      const auto names = differences(key_text_, there);
      throw file_error(
          fmt::format("an unfinished run that differs in {}",
                      names.empty() ? std::string("its version") : fmt::format("{}", fmt::join(names, ", "))),
          folder_.string(), "the options and inputs of that run, or another {out}",
          "without {resume} the run starts again");
    }
    StepHead head;
    if (auto state = read_stored(folder_ / kStateFile, key_, head)) {
      kept_ = {head.first, head.step + 1, std::move(*state)};
      first_ = head.first;
    }
  } else {
    write_file(folder_ / kRunFile, key_text_);
  }
  thread_ = std::jthread([this] { work(); });
}

StepStore::~StepStore() { stop(); }

fs::path StepStore::file_of(size_t step) const { return folder_ / fmt::format("{:06}.step", step); }

void StepStore::load(size_t step, std::span<float> values) const {
  StepHead head;
  const auto data = read_stored(file_of(step), key_, head);
  if (!data || head.step != step || data->size() != values.size_bytes())
    throw file_error("a step that cannot be read", file_of(step).string(), "a step of the unfinished run",
                     "without {resume} the run starts again");
  std::memcpy(values.data(), data->data(), data->size());
}

void StepStore::keep(size_t step, std::vector<float> values, std::vector<std::byte> state) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !item_ || failure_; });
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (failure_) std::rethrow_exception(failure_);
  item_.emplace(step, std::move(values), std::move(state));
  changed_.notify_all();
}

void StepStore::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return item_ || stopping_; });
    if (!item_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      write(*item_);
    } catch (...) { failure = std::current_exception(); }
    lock.lock();
    item_.reset();
    failure_ = failure;
    changed_.notify_all();
    if (failure_) return;
  }
}

/// The state comes last: it names the steps before it.
void StepStore::write(const Item& item) {
  if (!first_) first_ = item.step;
  const StepHead head{key_, {}, item.step, *first_, 0};
  write_stored(file_of(item.step), head, std::as_bytes(std::span(item.values)));
  write_stored(folder_ / kStateFile, head, item.state);
}

void StepStore::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StepStore::remove() {
  stop();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace lockstep::urban
