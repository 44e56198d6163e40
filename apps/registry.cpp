#include "registry.hpp"

#include <algorithm>
#include <map>

namespace lockstep {

#define LOCKSTEP_APPLICATION(name) void add_##name##_cases(CaseRegistry& registry);
#include "applications.def"
#undef LOCKSTEP_APPLICATION

void add_nn_cases(CaseRegistry& registry);

const CaseRegistry& all_cases() {
  static const CaseRegistry registry = [] {
    CaseRegistry made;
    add_engine_cases(made);
    add_math_cases(made);
    add_primitive_cases(made);
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

}  // namespace lockstep
