#include "parallel/hand_out.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {
namespace {

/// Results of the other ranks, as their number and their bytes; on rank 0.
class ArrivingResults {
 public:
  ArrivingResults(const Group& group, const std::function<void(int64_t, const Bytes&)>& take)
      : group_(group), take_(take) {}

  void send(int64_t number, const Bytes& result) const {
    Bytes message = bytes_of(std::span<const int64_t>(&number, 1));
    message.insert(message.end(), result.begin(), result.end());
    group_.state().transport->send(0, Tag::result, std::move(message));
  }
  void take_own(int64_t number, const Bytes& result) {
    const std::lock_guard lock(taking_);
    take(number, result);
  }
  void take_arrived() {
    const std::lock_guard lock(taking_);
    while (auto message = group_.state().transport->poll(-1, Tag::result)) take(std::move(message->data));
  }
  void wait_for(int64_t count) {
    const std::lock_guard lock(taking_);
    while (taken_ < count) take(group_.state().receive(-1, Tag::result).data);
  }

 private:
  void take(Bytes message) {
    int64_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    message.erase(message.begin(), message.begin() + sizeof number);
    take(number, message);
  }
  void take(int64_t number, const Bytes& result) {
    ++taken_;
    take_(number, result);
  }

  const Group& group_;
  const std::function<void(int64_t, const Bytes&)>& take_;
  std::mutex taking_;
  int64_t taken_ = 0;
};

}  // namespace

void hand_out(const Group& group, int64_t count, const std::function<Bytes(int64_t)>& compute,
              const std::function<void(int64_t, const Bytes&)>& take) {
  ArrivingResults results(group, take);
  WorkQueue queue(group, count, [&](int) { results.take_arrived(); });
  while (const auto number = queue.next()) {
    const Bytes result = compute(*number);
    if (group.leads())
      results.take_own(*number, result);
    else
      results.send(*number, result);
    queue.report(1);
  }
  queue.finish();
  if (group.leads()) results.wait_for(count);
}

}  // namespace lockstep::parallel
