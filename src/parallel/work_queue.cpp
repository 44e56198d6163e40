// Numbers assigned by rank 0, in a thread of its own, to whichever rank asks next.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {
namespace {

using QueueClock = std::chrono::steady_clock;

Bytes bytes_of_number(int64_t number) { return bytes_of(std::span<const int64_t>(&number, 1)); }
int64_t number_of(const Bytes& bytes) {
  int64_t number = 0;
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
  return number;
}

/// In place of a number: all are assigned; others have not finished; all have; a rank has finished.
constexpr int64_t kNone = -1, kWait = -2, kAllFinished = -3;
constexpr int64_t kFinished = INT64_MIN;

}  // namespace

struct WorkQueue::State {
  Group group;
  int64_t count = 0;
  std::function<void(int parts)> on_parts;
  std::atomic<int64_t> handed{0};
  std::mutex asking;  // an answer belongs to the rank's last question
  std::exception_ptr failure;
  std::atomic<bool> stopping{false}, own_finished{false};
  std::jthread server;

  int64_t take() {
    const int64_t number = handed.fetch_add(1);
    return number < count ? number : kNone;
  }
  /// Until every rank has finished. Those that wait for the others get responses.
  void serve() {
    Transport& transport = *group.state().transport;
    std::vector<QueueClock::time_point> heard(size_t(group.size()), QueueClock::now());
    std::vector<bool> finished(heard.size(), false);
    finished[0] = true;
    const auto tell_finished = [&](int64_t what) {
      for (size_t r = 1; r < finished.size(); ++r)
        if (finished[r]) transport.send(static_cast<int>(r), Tag::answer, bytes_of_number(what));
    };
    const double sign_s = std::min(1.0, group.options().wait_limit_s / 4);
    QueueClock::time_point signed_at = QueueClock::now();
    for (Pause pause; (std::ranges::count(finished, false) > 0 || !own_finished) && !stopping;) {
      if (std::chrono::duration<double>(QueueClock::now() - signed_at).count() > sign_s) {
        tell_finished(kWait);
        signed_at = QueueClock::now();
      }
      bool busy = false;
      while (const auto question = transport.poll(-1, Tag::ask)) {
        transport.send(question->from, Tag::answer, bytes_of_number(take()));
        heard[size_t(question->from)] = QueueClock::now();
        busy = true;
      }
      while (const auto report = transport.poll(-1, Tag::report)) {
        heard[size_t(report->from)] = QueueClock::now();
        busy = true;
        const int64_t parts = number_of(report->data);
        if (parts == kFinished)
          finished[size_t(report->from)] = true;
        else if (on_parts)
          on_parts(static_cast<int>(parts));
      }
      for (size_t r = 0; r < heard.size(); ++r)
        if (!finished[r] && std::chrono::duration<double>(QueueClock::now() - heard[r]).count() >
                                group.options().wait_limit_s)
          throw GroupError(
              fmt::format("rank {} has not responded for {:g} s", r, group.options().wait_limit_s),
              transport.name(), "a response in that time");
      if (busy)
        pause = {};
      else
        pause.wait();
    }
    if (!stopping) tell_finished(kAllFinished);
  }
};

WorkQueue::WorkQueue(const Group& group, int64_t count, std::function<void(int parts)> on_parts)
    : state_(std::make_unique<State>()) {
  state_->group = group;
  state_->count = count;
  state_->on_parts = std::move(on_parts);
  if (!group.leads() || group.size() == 1) return;
  state_->server = std::jthread([s = state_.get()] {
    try {
      s->serve();
    } catch (...) {
      s->failure = std::current_exception();
      s->handed = s->count;  // nothing more is begun
    }
  });
}

WorkQueue::~WorkQueue() { state_->stopping = true; }

std::optional<int64_t> WorkQueue::next() {
  State& s = *state_;
  int64_t number = kNone;
  if (s.group.leads()) {
    number = s.take();
  } else {
    const std::lock_guard lock(s.asking);
    s.group.state().transport->send(0, Tag::ask, {});
    number = number_of(s.group.state().receive(0, Tag::answer).data);
  }
  return number == kNone ? std::nullopt : std::optional(number);
}

void WorkQueue::report(int parts) {
  if (state_->group.leads()) {
    if (state_->on_parts) state_->on_parts(parts);
  } else {
    state_->group.state().transport->send(0, Tag::report, bytes_of_number(parts));
  }
}

void WorkQueue::finish() {
  State& s = *state_;
  if (!s.group.leads()) {
    s.group.state().transport->send(0, Tag::report, bytes_of_number(kFinished));
    while (number_of(s.group.state().receive(0, Tag::answer).data) != kAllFinished) {}
    return;
  }
  s.own_finished = true;
  if (s.server.joinable()) s.server.join();
  if (s.failure) std::rethrow_exception(s.failure);
}

}  // namespace lockstep::parallel
