// The cases of `lockstep verify` that this core contains, one row a call, so that a page can draw between them.
#include "calls.hpp"
#include "lockstep/verify.hpp"
#include "objects.hpp"
#include "verify/case_results.hpp"

namespace lockstep {
void add_pde_cases(CaseRegistry& registry);
}

namespace lockstep::web {

namespace {

const CaseRegistry& registry() {
  static const CaseRegistry all = [] {
    CaseRegistry cases;
    add_engine_cases(cases);
    add_math_cases(cases);
    add_primitive_cases(cases);
    add_pde_cases(cases);
    return cases;
  }();
  return all;
}
const Case& case_named(const Json& request) {
  const std::string name = text(request, "case");
  for (const Case& c : registry().all())
    if (c.name == name) return c;
  throw InputError("case " + name, "lockstep.verify", "a name that lockstep.cases() lists");
}

Json cases(const Json&) {
  Json all = Json::array();
  for (const Case& c : registry().all())
    all.push_back({{"name", c.name}, {"dtype", c.dtype}, {"sizes", c.small}, {"benchSizes", c.bench}});
  return all;
}

Json verify(const Json& request) {
  const std::string against = text(request, "against");
  if (against != "interp" && against != "reference")
    throw InputError("against " + against, "lockstep.verify", "interp or reference");
  const Device& device = objects().devices.at(member(request, "device"));
  const Device other = Device::open("interp");
  const VerifyRow row = verify_case(case_named(request), text(request, "size"), device,
                                    against == "interp" ? Against::interp : Against::reference, other);
  const Comparison& c = row.comparison;
  return {{"case", row.name},
          {"size", row.size},
          {"dtype", row.dtype},
          {"elements", c.elements},
          {"differing_bits", c.differing_bits},
          {"differing_elements", c.differing_elements},
          {"max_abs", c.max_abs},
          {"max_ulp", c.max_ulp},
          {"bound", row.bound},
          {"pass", row.pass},
          {"skipped", row.skipped}};
}

Json digest(const Json& request) {
  CaseResults results(case_named(request), text(request, "size"));
  return results.digest(objects().devices.at(member(request, "device")));
}

Json bench(const Json& request) {
  const BenchRow row = bench_case(case_named(request), text(request, "size"),
                                  objects().devices.at(member(request, "device")), 0, {.reference = false});
  return {
      {"case", row.name},      {"size", row.size},     {"dtype", row.dtype}, {"median_ms", row.median_ms},
      {"p95_ms", row.p95_ms},  {"min_ms", row.min_ms}, {"bytes", row.bytes}, {"iterations", row.iterations},
      {"skipped", row.skipped}};
}

}  // namespace

void add_case_calls(Calls& calls) {
  calls["cases"] = cases;
  calls["verify"] = verify;
  calls["digest"] = digest;
  calls["bench"] = bench;
}

}  // namespace lockstep::web
