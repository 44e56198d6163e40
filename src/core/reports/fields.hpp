// Named values of free kind that telemetry lines and trace events carry.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep {

/// One named value. Unsigned values above 2^63-1 are kept as the largest signed one.
struct Field {
  std::string name;
  std::variant<bool, int64_t, double, std::string> value;

  Field(std::string n, bool v) : name(std::move(n)), value(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string n, T v)
      : name(std::move(n)), value(std::in_range<int64_t>(v) ? static_cast<int64_t>(v) : INT64_MAX) {}
  template <std::floating_point T>
  Field(std::string n, T v) : name(std::move(n)), value(static_cast<double>(v)) {}
  Field(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  Field(std::string n, std::string_view v) : name(std::move(n)), value(std::string(v)) {}
  Field(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
};
using Fields = std::vector<Field>;

/// Sets each field as a member of the JSON object. NaN and infinities become null, which is all JSON has for
/// them.
void add_fields(nlohmann::ordered_json& object, const Fields& fields);

}  // namespace lockstep
