// Classes of thermal stress, as published, and the wind that the indices are of.
#include <array>
#include <cmath>
#include <limits>

#include "urban/comfort/comfort.hpp"

namespace lockstep::urban {
namespace {

constexpr double kNoUpperBound = std::numeric_limits<double>::infinity();

constexpr StressClass kUtciClasses[] = {
    {"extreme cold stress", -40},          {"very strong cold stress", -27}, {"strong cold stress", -13},
    {"moderate cold stress", 0},           {"slight cold stress", 9},        {"no thermal stress", 26},
    {"moderate heat stress", 32},          {"strong heat stress", 38},       {"very strong heat stress", 46},
    {"extreme heat stress", kNoUpperBound}};
constexpr StressClass kPetClasses[] = {
    {"very cold", 4},      {"cold", 8},  {"cool", 13}, {"slightly cool", 18},      {"comfortable", 23},
    {"slightly warm", 29}, {"warm", 35}, {"hot", 41},  {"very hot", kNoUpperBound}};

}  // namespace

std::span<const StressClass> stress_classes(ComfortIndex index) {
  if (index == ComfortIndex::utci) return kUtciClasses;
  return kPetClasses;
}

int stress_class(ComfortIndex index, double value_c) {
  if (std::isnan(value_c)) return -1;
  const auto classes = stress_classes(index);
  size_t k = 0;
  while (value_c > classes[k].upper_c) ++k;
  return static_cast<int>(k);
}

double wind_at(double height_m, double wind, double measured_at_m) {
  return wind * std::pow(height_m / measured_at_m, 0.2);
}

}  // namespace lockstep::urban
