// The kernel language and the primitives on the interpreter inside WebAssembly, against plain C++; and the exceptions of that build.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "lockstep/verify.hpp"
#include "verify/cases/engine_cases.hpp"

namespace {

int failures = 0;
void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAIL  %s\n", what);
  ++failures;
}

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

void language_cases() {
  using namespace lockstep;
  CaseRegistry registry;
  cases::add_language_cases(registry);
  add_primitive_cases(registry);
  const Device interp = Device::open("interp");
  int passed = 0;
  for (const Case& c : registry.all())
    for (const std::string& size : c.small) {
      const VerifyRow row = verify_case(c, size, interp, Against::reference, interp);
      check(row.pass || !row.skipped.empty(), (c.name + " " + size).c_str());
      passed += row.pass;
      if (!row.skipped.empty())
        std::printf("skip  %s %s: %s\n", c.name.c_str(), size.c_str(), row.skipped.c_str());
    }
  check(passed > 0, "some case ran");
  std::printf("%d problems of %zu cases passed on %s\n", passed, registry.all().size(),
              interp.info().description.c_str());
}

}  // namespace

int main() {
  exceptions();
  try {
    language_cases();
  } catch (const std::exception& error) { check(false, error.what()); }
  std::printf("%d failures\n", failures);
  return failures ? 1 : 0;
}
