#pragma once

#include "lockstep/case.hpp"
#ifdef LOCKSTEP_HAS_SOLVE_KINDS
#include "solve/kinds/kind_cases.hpp"
#endif

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
#ifdef LOCKSTEP_HAS_SOLVE_KINDS
    solve::add_kind_cases(r);
#endif
    return r;
  }();
  return all;
}

}  // namespace lockstep
