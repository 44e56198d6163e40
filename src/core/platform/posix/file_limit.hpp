// A file-size limit as an error of the write (EFBIG) instead of a signal that ends the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace lockstep {

/// While one lives, SIGXFSZ does not reach this thread; what the writes meanwhile raised is taken away.
class FileLimitHeld {
 public:
  FileLimitHeld() {
    sigset_t waiting;
    sigpending(&waiting);
    had_one_ = sigismember(&waiting, SIGXFSZ) == 1;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileLimitHeld() {
    const timespec at_once{};
    if (!had_one_) sigtimedwait(&signal_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileLimitHeld(const FileLimitHeld&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool had_one_ = false;
};

}  // namespace lockstep
