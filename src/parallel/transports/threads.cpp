// Ranks as threads of one process.
#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {

namespace {
using SteadyClock = std::chrono::steady_clock;
}

class SharedMemory {
 public:
  SharedMemory(int ranks, uint64_t seed)
      : size(ranks), boxes(static_cast<size_t>(ranks)), disturbed_(seed != 0), random_(seed) {}

  struct Letter {
    Bytes data;
    SteadyClock::time_point due;
  };
  /// Messages to one rank, by sender and tag.
  struct Box {
    std::mutex mutex;
    std::map<std::pair<int, Tag>, std::deque<Letter>> letters;
  };

  SteadyClock::time_point due() {
    const SteadyClock::time_point now = SteadyClock::now();
    if (!disturbed_) return now;
    const std::lock_guard lock(mutex_);
    return now + std::chrono::microseconds(random_() % 3000);
  }
  void fail(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = fmt::format("rank {} failed: {}", rank, why);
  }
  void expect_alive() {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw GroupError(failure_, "ranks of one process", "every rank to finish");
  }

  const int size;
  std::vector<Box> boxes;

 private:
  const bool disturbed_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::string failure_;
};

namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<SharedMemory> memory, int rank) : memory_(std::move(memory)), rank_(rank) {}
  std::string name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return memory_->size; }

  void send(int to, Tag tag, Bytes data) override {
    SharedMemory::Box& box = memory_->boxes[static_cast<size_t>(to)];
    const auto due = memory_->due();
    const std::lock_guard lock(box.mutex);
    box.letters[{rank_, tag}].push_back({std::move(data), due});
  }
  std::optional<Message> poll(int from, Tag tag) override {
    SharedMemory::Box& box = memory_->boxes[static_cast<size_t>(rank_)];
    const auto now = SteadyClock::now();
    bool on_its_way = false;
    {
      const std::lock_guard lock(box.mutex);
      for (auto& [key, letters] : box.letters) {
        if (key.second != tag || (from >= 0 && key.first != from) || letters.empty()) continue;
        on_its_way = true;
        if (letters.front().due > now) continue;
        Message message{key.first, std::move(letters.front().data)};
        letters.pop_front();
        return message;
      }
    }
    if (!on_its_way) memory_->expect_alive();  // what a rank sent before it failed still arrives
    return {};
  }
  bool all_sent() override { return true; }

 private:
  const std::shared_ptr<SharedMemory> memory_;
  const int rank_;
};

}  // namespace

std::shared_ptr<SharedMemory> make_shared_memory(int ranks, uint64_t seed) {
  return std::make_shared<SharedMemory>(ranks, seed);
}
std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<SharedMemory> memory, int rank) {
  return std::make_unique<ThreadTransport>(std::move(memory), rank);
}
void fail(SharedMemory& memory, int rank, const std::string& why) { memory.fail(rank, why); }

void run_ranks(int ranks, const GroupOptions& options, uint64_t seed,
               const std::function<void(const Group&)>& work) {
  constexpr int kMostRanks = 1024;
  if (ranks < 1 || ranks > kMostRanks)
    throw InputError(fmt::format("{} ranks", ranks), "ranks", fmt::format("1 to {}", kMostRanks));
  if (ranks == 1) return work(Group());
  const auto memory = make_shared_memory(ranks, seed);
  std::mutex failing;
  std::vector<std::exception_ptr> failures;  // in time
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          work(Group(make_thread_transport(memory, rank), options));
        } catch (const std::exception& error) {
          const std::lock_guard lock(failing);
          failures.push_back(std::current_exception());
          const auto* of_group = dynamic_cast<const GroupError*>(&error);
          if (!of_group || !of_group->everywhere()) memory->fail(rank, error.what());
        }
      });
  }
  if (failures.empty()) return;
  // A rank's own finding, before the errors that it caused in others.
  for (const std::exception_ptr& failure : failures) try {
      std::rethrow_exception(failure);
    } catch (const GroupError&) {}
  std::rethrow_exception(failures.front());
}

void run_ranks(int ranks, const GroupOptions& options, const std::function<void(const Group&)>& work) {
  run_ranks(ranks, options, 0, work);
}

}  // namespace lockstep::parallel
