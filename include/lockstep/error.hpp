// Errors that Lockstep throws. Every message says what, where, and what was expected.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

/// Base of all errors. `what()` reads `<problem> [<where>]: expected <expected>` on one line; the parts keep the
/// characters that names of files may contain.
class Error : public std::runtime_error {
 public:
  Error(std::string_view problem, std::string_view where, std::string_view expected);

  const std::string& problem() const { return problem_; }
  const std::string& where() const { return where_; }
  const std::string& expected() const { return expected_; }
  /// A line that helps to mend the matter, or empty. Derived classes redeclare with_hint() to keep their
  /// type.
  const std::string& hint() const { return hint_; }
  Error& with_hint(std::string hint) {
    hint_ = std::move(hint);
    return *this;
  }

 protected:
  /// A reason that names its own place: `what()` is the reason.
  explicit Error(const std::string& reason);

 private:
  std::string problem_, where_, expected_, hint_;
};

/// Bad usage or bad input: exit code 2.
class InputError : public Error {
 public:
  using Error::Error;
  InputError& with_hint(std::string hint) {
    Error::with_hint(std::move(hint));
    return *this;
  }
};

/// The device, or this build, cannot do what was asked: the reason is part of the message.
class UnsupportedError : public Error {
 public:
  using Error::Error;
  UnsupportedError& with_hint(std::string hint) {
    Error::with_hint(std::move(hint));
    return *this;
  }
};

enum class DeviceFault { allocation, compile, launch, device_lost };
std::string_view name(DeviceFault fault);

/// A device failed while it worked; a stage answers with its CPU fallback. Exit code 3 where that is off.
class DeviceError : public Error {
 public:
  DeviceError(DeviceFault fault, const std::string& reason) : Error(reason), fault_(fault) {}
  DeviceFault fault() const { return fault_; }

 private:
  DeviceFault fault_;
};

/// A broken invariant of Lockstep itself.
class InternalError : public Error {
 public:
  using Error::Error;
  InternalError& with_hint(std::string hint) {
    Error::with_hint(std::move(hint));
    return *this;
  }
};

}  // namespace lockstep
