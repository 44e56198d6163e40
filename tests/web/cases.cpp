#include <cstdio>
#include <string>

#include "checks.hpp"
#include "lockstep/verify.hpp"
#include "verify/cases/engine_cases.hpp"

namespace lockstep::web_tests {

namespace {

void run(const CaseRegistry& registry, const Device& device, Against against, const Device& other) {
  int passed = 0;
  for (const Case& c : registry.all())
    for (const std::string& size : c.small) {
      const std::string name = c.name + " " + size + " on " + device.info().name;
      VerifyRow row;
      try {
        row = verify_case(c, size, device, against, other);
      } catch (const std::exception& error) { check(false, (name + ": " + error.what()).c_str()); }
      check(row.pass || !row.skipped.empty(), name.c_str());
      passed += row.pass;
      if (!row.skipped.empty()) std::printf("skip  %s: %s\n", name.c_str(), row.skipped.c_str());
    }
  check(passed > 0, "some case ran");
  std::printf("%d problems of %zu cases passed on %s\n", passed, registry.all().size(),
              device.info().description.c_str());
}

}  // namespace

void cases() {
  CaseRegistry registry;
  lockstep::cases::add_language_cases(registry);
  add_primitive_cases(registry);
  const Device interp = Device::open("interp"), cpu = Device::open("cpu");
  run(registry, interp, Against::reference, interp);
  run(registry, cpu, Against::interp, interp);
}

}  // namespace lockstep::web_tests
