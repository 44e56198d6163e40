#include <cstdio>
#include <string>

#include "checks.hpp"
#include "lockstep/verify.hpp"
#include "verify/case_results.hpp"
#include "verify/cases/engine_cases.hpp"

namespace lockstep::web_tests {

namespace {

/// How many rows of a table passed, on which device, against what.
struct Table {
  const Device& device;
  Against against;
  int passed = 0;

  void row(CaseResults& results, const Case& c, const std::string& size, const Device& other) {
    const std::string name = c.name + " " + size + " on " + device.info().name;
    try {
      const VerifyRow row = results.verify(device, against, other);
      passed += row.pass;
      check(row.pass || !row.skipped.empty(), name.c_str());
    } catch (const std::exception& error) { check(false, (name + ": " + error.what()).c_str()); }
  }
};

CaseRegistry all_cases() {
  CaseRegistry registry;
  add_engine_cases(registry);
  add_math_cases(registry);
  add_primitive_cases(registry);
  return registry;
}

}  // namespace

void cases() {
  const CaseRegistry registry = all_cases();
  const Device interp = Device::open("interp"), cpu = Device::open("cpu");
  Table of_interp{interp, Against::reference}, of_cpu{cpu, Against::interp};
  for (const Case& c : registry.all())
    for (const std::string& size : c.small) {
      CaseResults results(c, size, 1);
      of_interp.row(results, c, size, interp);
      of_cpu.row(results, c, size, interp);
    }
  for (const Table* table : {&of_interp, &of_cpu}) {
    check(table->passed > 0, "some case ran");
    std::printf("%d problems of %zu cases passed on %s\n", table->passed, registry.all().size(),
                table->device.info().description.c_str());
  }
}

void bench(const char* name, const char* size) {
  const CaseRegistry registry = all_cases();
  const Device cpu = Device::open("cpu");
  for (const Case* c : registry.match(name)) {
    if (c->name != name) continue;
    const BenchRow row = bench_case(*c, size, cpu, 0, {.reference = false});
    std::printf("%s %s: median %.4f ms, least %.4f ms of %d\n", name, size, row.median_ms, row.min_ms,
                row.iterations);
  }
}

}  // namespace lockstep::web_tests
