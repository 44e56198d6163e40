// Closures: nu_t = C^p width^p rate, one row each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/flow.hpp"

namespace lockstep::flow {

/// Fields made of the spectrum, mode by mode, and transformed to points.
enum class Quantity : uint8_t { u, v, s11, s12, w, wx, wy, laplacian };

/// The quantity that an eddy viscosity is proportional to.
enum class Rate : uint8_t {
  none,
  strain,    ///< |S| = 2 sqrt(S11^2 + S12^2)
  gradient,  ///< |grad w|
};

/// The fields that a rate is made of (les/rates.hpp).
inline std::vector<Quantity> rate_fields(Rate rate) {
  switch (rate) {
    case Rate::strain: return {Quantity::s11, Quantity::s12};
    case Rate::gradient: return {Quantity::wx, Quantity::wy};
    case Rate::none: break;
  }
  return {};
}

struct ClosureRow {
  Closure closure;
  std::string_view name;
  Rate rate = Rate::none;
  int width_power = 2;     ///< p
  double constant = 0.17;  ///< C where none is given
  bool dynamic = false;    ///< C^p is found in each evaluation
  constexpr bool has_constant() const { return rate != Rate::none && !dynamic; }
};

inline constexpr auto kClosures = std::to_array<ClosureRow>({
    {Closure::none, "none"},
    {Closure::smagorinsky, "smagorinsky", Rate::strain, 2, 0.17},
    {Closure::leith, "leith", Rate::gradient, 3, 0.3},
    {Closure::dynamic_smagorinsky, "dynamic-smagorinsky", Rate::strain, 2, 0.17, true},
    {Closure::dynamic_leith, "dynamic-leith", Rate::gradient, 3, 0.3, true},
});

/// The rows are in the order of the enumerators.
constexpr const ClosureRow& row_of(Closure c) { return kClosures[size_t(c)]; }
constexpr bool is_dynamic(Closure c) { return row_of(c).dynamic; }
constexpr int width_power(Closure c) { return row_of(c).width_power; }
inline double constant_of(const Model& m) { return m.constant > 0 ? m.constant : row_of(m.closure).constant; }

}  // namespace lockstep::flow
