#include "solve/evaluate/compile_ahead.hpp"

#include <algorithm>

#include "core/platform/parallel.hpp"
#include "device/capabilities.hpp"
#include "device/stages/fault.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve {

struct CompileAhead::Work {
  std::function<void()> work;
  std::string stage;
  bool done = false, waited_for = false;
  std::exception_ptr error;
};

int CompileAhead::threads_for(const DeviceInfo& device) {
  constexpr int64_t kMost = 8;
  if (!kHasThreads) return 0;
  static const int64_t own = std::clamp<int64_t>(platform::available_threads(), 1, kMost);
  if (!capabilities_of(device).vectors) return int(own);
  return device.multiprocessors == 1 ? 0 : int(std::min<int64_t>(own, device.multiprocessors));
}

CompileAhead::~CompileAhead() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    queue_.clear();
  }
  changed_.notify_all();
}

CompileAhead::Handle CompileAhead::add(std::function<void()> work) {
  const auto handle = std::make_shared<Work>();
  handle->work = std::move(work);
  handle->stage = device::current_stage();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(handle);
    if (int(threads_.size()) < most_threads_) threads_.emplace_back([this] { serve(); });
  }
  changed_.notify_one();
  return handle;
}

void CompileAhead::run(UniqueLock<Mutex>& lock, const Handle& handle) {
  ++running_;
  lock.unlock();
  std::exception_ptr error;
  bool of_device = false;
  try {
    const device::StageScope stage(handle->stage);
    handle->work();
  } catch (const DeviceError&) {
    error = std::current_exception();
    of_device = true;
  } catch (...) { error = std::current_exception(); }
  handle->work = {};
  lock.lock();
  handle->error = error;
  handle->done = true;
  if (of_device && !handle->waited_for) failures_.push_back(handle);
  --running_;
  changed_.notify_all();
}

void CompileAhead::serve() {
  UniqueLock<Mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const Handle next = queue_.front();
    queue_.pop_front();
    run(lock, next);
  }
}

void CompileAhead::wait(const Handle& handle) {
  UniqueLock<Mutex> lock(mutex_);
  handle->waited_for = true;
  if (const auto waiting = std::find(queue_.begin(), queue_.end(), handle); waiting != queue_.end()) {
    queue_.erase(waiting);
    run(lock, handle);
  }
  changed_.wait(lock, [&] { return handle->done; });
  if (!handle->error) return;
  std::erase(failures_, handle);
  std::rethrow_exception(handle->error);
}

void CompileAhead::wait_all() {
  UniqueLock<Mutex> lock(mutex_);
  while (!queue_.empty()) {
    const Handle next = queue_.front();
    queue_.pop_front();
    run(lock, next);
  }
  changed_.wait(lock, [&] { return queue_.empty() && running_ == 0; });
}

void CompileAhead::check() {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(failures_.begin(), failures_.end(), [](const Handle& failed) {
    return failed->stage == device::current_stage();
  });
  if (found == failures_.end()) return;
  const std::exception_ptr error = (*found)->error;
  failures_.erase(found);
  std::rethrow_exception(error);
}

}  // namespace lockstep::solve
