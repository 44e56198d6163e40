#pragma once

#include "lockstep/case.hpp"

namespace lockstep {

/// Every case of every folder, as the program has them.
inline const CaseRegistry& all_cases() {
  static const CaseRegistry all = [] {
    CaseRegistry r;
    add_engine_cases(r);
    add_math_cases(r);
    add_primitive_cases(r);
    add_urban_cases(r);
    add_pde_cases(r);
    add_solve_cases(r);
    return r;
  }();
  return all;
}

}  // namespace lockstep
