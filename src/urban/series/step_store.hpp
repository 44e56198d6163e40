// Finished steps of a run of one tile on disk, so that a killed run continues behind them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/hash.hpp"

namespace lockstep::urban {

/// All that the bits of a run depend on: names for messages, and texts.
using RunKey = std::vector<std::pair<std::string, std::string>>;

/// A folder with the run's key, a file a step, and the state behind the last of them. Each file appears whole or not at all.
/// Files are written by a thread of the store.
class StepStore {
 public:
  /// Throws OptionError, naming what differs, where the folder holds the steps of another run.
  StepStore(std::filesystem::path folder, const RunKey& key);
  ~StepStore();
  StepStore(const StepStore&) = delete;
  StepStore& operator=(const StepStore&) = delete;

  /// Whether a folder holds steps.
  static bool holds_steps(const std::filesystem::path& folder);

  /// Steps of an earlier run, from `first` to before `behind`, and the state behind them.
  struct Kept {
    size_t first = 0, behind = 0;
    std::vector<std::byte> state;
  };
  const Kept& kept() const { return kept_; }
  /// Throws InputError for a step that is damaged.
  void load(size_t step, std::span<float> values) const;

  /// Steps come in order. Waits while the one before is being written. Throws what writing it threw.
  void keep(size_t step, std::vector<float> values, std::vector<std::byte> state);
  /// Seconds for which keep() waited.
  double wait_seconds() const { return wait_seconds_; }
  /// Ends the thread and removes the folder.
  void remove();

 private:
  struct Item {
    size_t step;
    std::vector<float> values;
    std::vector<std::byte> state;
  };
  void work();
  void write(const Item& item);
  void stop();
  std::filesystem::path file_of(size_t step) const;

  const std::filesystem::path folder_;
  Hash128 key_;
  std::string key_text_;
  Kept kept_;
  std::optional<size_t> first_;  // of the steps of this folder
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Item> item_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  double wait_seconds_ = 0;
  std::jthread thread_;
};

}  // namespace lockstep::urban
