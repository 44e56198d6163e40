#include "registry.hpp"

#include <algorithm>
#include <map>

#ifdef LOCKSTEP_HAS_SOLVE_KINDS
#include "solve/kinds/kind_cases.hpp"
#endif

namespace lockstep::cli {

const CaseRegistry& all_cases() {
  static const CaseRegistry registry = [] {
    CaseRegistry made;
    add_engine_cases(made);
    add_math_cases(made);
    add_primitive_cases(made);
    add_urban_cases(made);
#ifdef LOCKSTEP_HAS_PDE
    add_pde_cases(made);
#endif
    add_solve_cases(made);
#ifdef LOCKSTEP_HAS_SOLVE_KINDS
    solve::add_kind_cases(made);
#endif
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

}  // namespace lockstep::cli
