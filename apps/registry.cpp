#include "registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "lockstep/error.hpp"

namespace lockstep {

#define LOCKSTEP_APPLICATION(name) void add_##name##_cases(CaseRegistry& registry);
#include "applications.def"
#undef LOCKSTEP_APPLICATION

void add_gradient_cases(CaseRegistry& registry);
void add_nn_cases(CaseRegistry& registry);
void add_primitive_variants(std::vector<variants::Subject>& subjects);
void add_pde_variants(std::vector<variants::Subject>& subjects);
void add_forecast_variants(std::vector<variants::Subject>& subjects);
void add_flow_variants(std::vector<variants::Subject>& subjects);
void add_solve_variants(std::vector<variants::Subject>& subjects);
void add_urban_variants(std::vector<variants::Subject>& subjects);

const CaseRegistry& all_cases() {
  static const CaseRegistry registry = [] {
    CaseRegistry made;
    add_engine_cases(made);
    add_math_cases(made);
    add_primitive_cases(made);
    add_gradient_cases(made);
    add_nn_cases(made);
#define LOCKSTEP_APPLICATION(name) add_##name##_cases(made);
#include "applications.def"
#undef LOCKSTEP_APPLICATION
    return made;
  }();
  return registry;
}

std::vector<const Case*> select_cases(const std::vector<std::string>& names) {
  std::vector<const Case*> wanted;
  for (const std::string& prefix : names) {
    for (const Case* c : all_cases().match(prefix)) wanted.push_back(c);
  }
  std::vector<const Case*> selected;
  for (const Case& c : all_cases().all()) {
    if (names.empty() || std::find(wanted.begin(), wanted.end(), &c) != wanted.end()) selected.push_back(&c);
  }
  return selected;
}

std::vector<Kernel> all_kernels() {
  std::map<std::string, Kernel> kernels;
  for (const Case& c : all_cases().all()) {
    if (!c.kernels) continue;
    for (const Kernel& kernel : c.kernels()) kernels.emplace(kernel.name(), kernel);
  }
  std::vector<Kernel> list;
  for (auto& [name, kernel] : kernels) list.push_back(kernel);
  return list;
}

std::vector<variants::Subject> select_variants(const std::vector<std::string>& names) {
  std::vector<variants::Subject> all, chosen;
  for (const auto add : {add_primitive_variants, add_pde_variants, add_forecast_variants, add_flow_variants,
                         add_solve_variants, add_urban_variants})
    add(all);
  std::vector<std::string> known;
  for (const variants::Subject& s : all)
    if (known.empty() || known.back() != s.name()) known.emplace_back(s.name());
  for (const std::string& prefix : names)
    if (std::ranges::none_of(known, [&](const std::string& name) { return name.starts_with(prefix); }))
      throw InputError(fmt::format("unknown computation '{}'", prefix), "tune",
                       fmt::format("one of {}, or a prefix", fmt::join(known, ", ")));
  const auto wanted = [&](const variants::Subject& s) {
    return names.empty() || std::ranges::any_of(names, [&](const std::string& prefix) {
             return s.name().starts_with(prefix);
           });
  };
  std::ranges::copy_if(all, std::back_inserter(chosen), wanted);
  return chosen;
}

}  // namespace lockstep
