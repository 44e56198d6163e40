// A list of buffers and copies of each stage, by what its thread did.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>

#include "core/platform/threads.hpp"
#include "device/stages/stage_scope.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

/// Entries belong to the stage of the thread that makes them. Safe for several threads.
class Ledger {
 public:
  explicit Ledger(std::span<const char* const> stages) : stages_(stages) {}

  void copied(const std::string& what, bool to_device, int64_t bytes, const std::string& reason) {
    add(copies_, {stages_[size_t(stage_now())], what, to_device, bytes, reason},
        [&](const Transfer& t) { return t.what == what && t.to_device == to_device; });
  }
  void held(const std::string& what, const std::string& shape, int64_t bytes, const std::string& stages) {
    add(memory_, {what, shape, bytes, stages},
        [&](const MemoryUse& m) { return m.name == what && m.shape == shape; });
  }

  /// Runs `work` and notes what it copies in one direction; or what it leaves allocated.
  template <class F>
  auto copying(const std::string& what, bool to_device, const std::string& reason, F work) {
    return noting(
        [=](const device::StageScope& s) { return to_device ? s.bytes_to_device : s.bytes_from_device; },
        [&](int64_t bytes) { copied(what, to_device, bytes, reason); }, work);
  }
  template <class F>
  auto holding(const std::string& part, const std::string& stages, F work) {
    return noting([](const device::StageScope& s) { return s.allocated_bytes; },
                  [&](int64_t bytes) { held(part, "", bytes, stages); }, work);
  }
  /// Runs what makes a part, or lets it make tables when first used, and notes what they took.
  template <class F>
  auto made(const std::string& part, const std::string& stages, F make) {
    return holding(part, stages, [&] {
      return copying("tables of the " + part, true, kFixed,
                     [&] { return copying("what the " + part + " reads for them", false, kFixed, make); });
    });
  }

  /// Drops what the stages wrote for which `which` holds, by their numbers.
  template <class Which>
  void forget(Which which) {
    const std::lock_guard lock(mutex_);
    std::erase_if(copies_, [&](const auto& c) { return which(c.first); });
    std::erase_if(memory_, [&](const auto& m) { return which(m.first); });
  }
  void forget_memory(int stage) {
    const std::lock_guard lock(mutex_);
    std::erase_if(memory_, [&](const auto& m) { return m.first == stage; });
  }
  /// Moves all to the result, stage by stage.
  void close(PipelineResult& to) {
    const auto by_stage = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(copies_.begin(), copies_.end(), by_stage);
    std::stable_sort(memory_.begin(), memory_.end(), by_stage);
    for (auto& [stage, copy] : copies_) to.transfers.push_back(std::move(copy));
    for (auto& [stage, use] : memory_) to.memory.push_back(std::move(use));
  }

 private:
  static constexpr const char* kFixed = "fixed by the settings";

  /// Adds to the stage's entry that is the same but for bytes, if there is one.
  template <class Entry, class Same>
  void add(std::vector<std::pair<int, Entry>>& all, std::type_identity_t<Entry> entry, Same same) {
    if (entry.bytes <= 0) return;
    const int stage = stage_now();
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const auto& e) { return e.first == stage && same(e.second); });
    if (at == all.end())
      all.emplace_back(stage, std::move(entry));
    else
      at->second.bytes += entry.bytes;
  }
  int stage_now() const {
    const auto at = std::find(stages_.begin(), stages_.end(), device::current_stage());
    return at == stages_.end() ? 0 : int(at - stages_.begin());
  }
  template <class Count, class Note, class F>
  static auto noting(Count count, Note note, F work) {
    const device::StageScope& scope = *device::current_scope();
    const int64_t was = count(scope);
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      note(count(scope) - was);
    } else {
      auto result = work();
      note(count(scope) - was);
      return result;
    }
  }

  std::span<const char* const> stages_;
  Mutex mutex_;
  std::vector<std::pair<int, Transfer>> copies_;  // with their stages
  std::vector<std::pair<int, MemoryUse>> memory_;
};

/// Stages that ran between two looks at a context's.
inline std::vector<StageUse> stages_since(const std::vector<StageRecord>& before,
                                          const std::vector<StageRecord>& after) {
  std::vector<StageUse> uses;
  for (StageRecord d : after) {
    for (const StageRecord& old : before)
      if (old.stage == d.stage) {
        d.seconds -= old.seconds;
        d.bytes_to_device -= old.bytes_to_device;
        d.bytes_from_device -= old.bytes_from_device;
        d.launches -= old.launches;
        d.runs -= old.runs;
      }
    if (d.runs > 0)
      uses.push_back({d.stage, d.device, d.seconds, d.bytes_to_device, d.bytes_from_device, d.launches});
  }
  return uses;
}

}  // namespace lockstep::flow
