// The exceptions of the WebAssembly build.
#include <exception>
#include <stdexcept>
#include <string>

#include "checks.hpp"

namespace lockstep::web_tests {

namespace {

struct Left {
  virtual ~Left() = default;
  int left = 1;
};
struct Right {
  virtual ~Right() = default;
  int right = 2;
};
struct Both : Left, Right {};

int alive = 0;
struct Counted : std::runtime_error {
  explicit Counted(const char* text) : std::runtime_error(text) { ++alive; }
  Counted(const Counted& other) : std::runtime_error(other) { ++alive; }
  ~Counted() override { --alive; }
};
int unwound = 0;
struct Guard {
  ~Guard() { ++unwound; }
};
[[gnu::noinline]] void deep(int level) {
  const Guard guard;
  if (level == 0) throw Counted("deep");
  deep(level - 1);
}

}  // namespace

void exceptions() {
  try {
    throw 5;
  } catch (double) { check(false, "an int is no double"); } catch (int value) {
    check(value == 5, "the thrown number");
  }
  try {
    throw Both();
  } catch (const Right& right) { check(right.right == 2, "the second base is adjusted"); }
  try {
    deep(2);
  } catch (const std::exception& error) {
    check(std::string(error.what()) == "deep" && unwound == 3 && alive == 1, "frames are unwound");
  }
  check(alive == 0, "a caught exception is destroyed");
  try {
    try {
      throw Counted("again");
    } catch (const std::logic_error&) { check(false, "a runtime_error is no logic_error"); } catch (...) {
      throw;
    }
  } catch (const Counted& error) { check(std::string(error.what()) == "again", "thrown again"); }
  check(alive == 0 && std::uncaught_exceptions() == 0, "nothing is left after a second throw");
  std::exception_ptr kept;
  try {
    throw Counted("kept");
  } catch (...) { kept = std::current_exception(); }
  for (int k = 0; k < 2; ++k) {
    try {
      std::rethrow_exception(kept);
    } catch (const Counted& error) {
      check(std::string(error.what()) == "kept" && alive == 1, "an exception_ptr");
    }
  }
  kept = nullptr;
  check(alive == 0, "the last exception_ptr destroys");
  try {
    try {
      throw 1;
    } catch (int) {
      try {
        throw Counted("inner");
      } catch (const Counted&) {}
      throw std::string("outer");
    }
  } catch (const std::string& text) { check(text == "outer", "thrown from a handler"); }
  check(alive == 0, "an inner exception is destroyed");
}

}  // namespace lockstep::web_tests
