// Errors thrown by Lockstep. Every message states what is wrong, where, and what was expected.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

/// Base class of all errors. `what()` is `<problem> [<where>]: expected <expected>` on one line; the parts are
/// unescaped and may contain any character of a file name.
class Error : public std::runtime_error {
 public:
  Error(std::string_view problem, std::string_view where, std::string_view expected);

  const std::string& problem() const { return problem_; }
  const std::string& where() const { return where_; }
  const std::string& expected() const { return expected_; }
  /// A hint that may help, or empty. Derived classes redeclare with_hint() to keep their type.
  const std::string& hint() const { return hint_; }
  Error& with_hint(std::string hint) {
    hint_ = std::move(hint);
    return *this;
  }

 protected:
  /// For a reason that contains its location: `what()` is then the reason alone.
  explicit Error(const std::string& reason);

 private:
  std::string problem_, where_, expected_, hint_;
};

/// Invalid usage or input: exit code 2.
class InputError : public Error {
 public:
  using Error::Error;
  InputError& with_hint(std::string hint) {
    Error::with_hint(std::move(hint));
    return *this;
  }
};

/// The device or this build does not support the request. The message contains the reason.
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

/// A device failed during execution; a stage then falls back to the CPU. Exit code 3 if fallback is disabled.
class DeviceError : public Error {
 public:
  DeviceError(DeviceFault fault, const std::string& reason) : Error(reason), fault_(fault) {}
  DeviceFault fault() const { return fault_; }

 private:
  DeviceFault fault_;
};

/// A violated invariant of Lockstep itself.
class InternalError : public Error {
 public:
  using Error::Error;
  InternalError& with_hint(std::string hint) {
    Error::with_hint(std::move(hint));
    return *this;
  }
};

}  // namespace lockstep
