// The periodic terms of the Solar Position Algorithm (NREL/TP-560-34302, tables A4.2 and A4.3).
#pragma once

#include <span>

namespace lockstep::urban::spa {

/// One term a·cos(b + c·jme), jme in Julian ephemeris millennia from J2000; a in 1e-8 rad or 1e-8 au.
struct Term {
  double a, b, c;
};

/// One nutation term: multiples of the five arguments, then a + b·jce (longitude) and c + d·jce (obliquity),
/// 1e-4 arcsec.
struct NutationTerm {
  int multiples[5];
  double a, b, c, d;
};

std::span<const Term> longitude_terms(int power);  // power 0..5
std::span<const Term> latitude_terms(int power);   // power 0..1
std::span<const Term> radius_terms(int power);     // power 0..4
std::span<const NutationTerm> nutation_terms();

}  // namespace lockstep::urban::spa
