// The core as pages see it: calls with JSON objects in and out, handles for objects inside. For any input of a page, the
// answer is a result or an error; errors are objects with the parts of the program's own (what, where, expected, hint).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::web {

using Json = nlohmann::ordered_json;
using Call = std::function<Json(const Json&)>;

/// Calls by their names. Each file of this folder adds its own.
using Calls = std::map<std::string, Call>;
void add_device_calls(Calls& calls);
void add_kernel_calls(Calls& calls);
void add_case_calls(Calls& calls);
void add_residual_calls(Calls& calls);
void add_mesh_calls(Calls& calls);
void add_array_calls(Calls& calls);
void add_turbulence_calls(Calls& calls);
void add_city_calls(Calls& calls);
void add_loss_calls(Calls& calls);
void add_forecast_calls(Calls& calls);
void add_command_calls(Calls& calls);
void add_flow_commands(Calls& calls);
void add_forecast_commands(Calls& calls);
void add_solve_calls(Calls& calls);
void add_study_calls(Calls& calls);

/// Runs one call; the answer is {"result": …} or {"error": {…}}.
std::string answer(const Calls& calls, const std::string& request);

/// Objects by numbers that are given once and never again.
template <class T>
class Handles {
 public:
  explicit Handles(std::string what) : what_(std::move(what)) {}
  uint32_t add(T object) {
    all_.emplace(++last_, std::move(object));
    return last_;
  }
  T& at(const Json& number) {
    const auto found = number.is_number_integer() ? all_.find(number.get<int64_t>()) : all_.end();
    if (found == all_.end())
      throw InputError("no " + what_, "lockstep.js", "one that is open: " + what_ + "s end with dispose()");
    return found->second;
  }
  void remove(const Json& number) {
    if (number.is_number_integer()) all_.erase(number.get<int64_t>());
  }
  size_t size() const { return all_.size(); }

 private:
  std::string what_;
  std::map<int64_t, T> all_;
  uint32_t last_ = 0;
};

/// A member of a request. Throws InputError where it is missing or of another kind.
const Json& member(const Json& request, const char* name);
std::string text(const Json& request, const char* name);
/// A whole number of a range.
int64_t whole(const Json& request, const char* name, int64_t low, int64_t high);
/// An array of whole numbers, at most `most` of them.
std::vector<int64_t> wholes(const Json& request, const char* name, size_t most);

/// Memory of the core that the page allocated, as the members `address` and `bytes` name it. Throws InputError unless all of it
/// is there, and where `bytes` is not that many.
char* page_memory(const Json& request, int64_t bytes);
/// Memory of any length, which the page frees after the call.
std::string_view page_bytes(const Json& request);

/// A number as JSON holds it to the last bit: "f" and 16 hexadecimal digits of an f64, "i" or "u" and decimal digits, or a
/// bool.
struct Number {
  enum class Kind : uint8_t { floating, whole, natural, boolean } kind;
  double f64 = 0;
  int64_t i64 = 0;
  uint64_t u64 = 0;
};
Number number_of(const Json& value);

}  // namespace lockstep::web
