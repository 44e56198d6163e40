#include "lockstep/pde/check.hpp"

#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/pde/documents.hpp"
#include "pde/run/run_parts.hpp"
#include "pde/run/side_values.hpp"

namespace lockstep::pde {

CheckResult run_check(Context& context, const NamedArrays& arrays, const RunOptions& options, uint32_t seed) {
  const FieldsInMemory fields(arrays);
  CheckedArrays checked(fields, options.where);
  check_fields(checked, options.terms);
  const TakenFields taken = take_fields(checked, options.terms);
  const SideValues sides(checked, options, 0);
  const System system = sides.system(options);
  return context.stage("pde.check", [&](const Device& device) {
    const Inputs inputs = upload_inputs(device, taken, options.terms, sides);
    return check(system, mesh_of(options, checked.cells()), device, inputs,
                 {.seed = seed, .path = options.path});
  });
}

nlohmann::ordered_json document_of(const CheckResult& result) {
  nlohmann::ordered_json j{{"passed", result.passed()}, {"checks", nlohmann::ordered_json::array()}};
  for (const CheckRow& row : result.rows) {
    const nlohmann::ordered_json error =
        std::isfinite(row.error) ? nlohmann::ordered_json(row.error) : nlohmann::ordered_json();
    j["checks"].push_back(
        {{"what", row.what}, {"error", error}, {"bound", row.bound}, {"passed", row.passed()}});
  }
  return j;
}
std::string to_json(const CheckResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::pde
