// Computations with several implementations, and the choice among them (docs/design/variants.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/capabilities.hpp"

namespace lockstep::variants {

class Table;

/// A number that the choice depends on, such as 4096 "cells".
struct Axis {
  std::string_view name;
  double value = 0;
};

/// A problem as the table sees it.
struct Problem {
  std::string_view of{};  // its class, such as "f64": rows of the table may be for one class
  std::span<const Axis> axes{};
};

/// The agreement of all variants of a computation in exact numerics.
enum class Agreement : uint8_t {
  bits,   // results: a user's table may choose
  bound,  // results up to rounding: in exact numerics only the shipped table chooses
};

struct ComputationOptions {
  std::string_view name;                   // "primitives.matmul"
  std::vector<std::string_view> variants;  // the first one applies to every problem
  std::vector<std::string_view> axes{};
  Agreement exact = Agreement::bits;
  bool by_numerics = false;  // which variants there are depends on the numerics: so do measured rows
};

/// A computation by name; lives as long as the process.
class Computation {
 public:
  /// Reads its rows of the shipped and of the user's table; a line tells of rows of the latter that it does not take.
  explicit Computation(ComputationOptions options);
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  std::string_view name() const { return options_.name; }
  const std::vector<std::string_view>& variants() const { return options_.variants; }
  const ComputationOptions& options() const { return options_; }
  std::string_view variant(int number) const { return options_.variants[size_t(number)]; }
  /// The number of a variant. Throws InputError for another name.
  int number(std::string_view variant) const;

  /// All variants, the fastest first as measured on the device's model, else on its kind of device.
  std::span<const int> ranking(const DeviceInfo& device, Numerics numerics, const Problem& problem) const;

  struct Step {
    double from = 0;
    std::vector<int> ranking;
  };
  /// A row of the table in numbers.
  struct Row {
    std::string device, of, axis, numerics;
    bool user = false;
    std::vector<Step> steps;
  };
  /// The rows of a table for this computation. Throws InputError for a name that it does not know.
  std::vector<Row> rows(const Table& table, bool user) const;
  std::span<const int> ranking(std::span<const Row> rows, const DeviceInfo& device, Numerics numerics,
                               const Problem& problem) const;

 private:
  const ComputationOptions options_;
  std::vector<Row> rows_;
};

/// A variant that was preferred and does not apply.
struct Refused {
  int variant = 0;
  std::string reason;
};

struct Choice {
  int variant = 0;
  std::vector<Refused> refused;  // those before it, with the reasons
  std::string reason_of(int number) const {
    for (const Refused& r : refused)
      if (r.variant == number) return r.reason;
    return {};
  }
};

[[noreturn]] void refuse(const Computation& computation, std::string_view variant, const std::string& reason);

/// The variant `asked`, by name; else the fastest that applies. `applies(number)` returns why a variant does not apply, or an
/// empty text. Throws InputError for an unknown name and UnsupportedError, with the reason, where `asked` does not apply.
template <class Applies>
Choice choose(const Computation& computation, const Device& device, const Problem& problem,
              std::string_view asked, const Applies& applies) {
  if (!asked.empty()) {
    const int number = computation.number(asked);
    if (std::string reason = applies(number); !reason.empty()) refuse(computation, asked, reason);
    return {number, {}};
  }
  Choice choice;
  for (const int number : computation.ranking(device.info(), device.numerics(), problem)) {
    choice.variant = number;
    std::string reason = applies(number);
    if (reason.empty()) return choice;
    choice.refused.push_back({number, std::move(reason)});
  }
  choice.variant = 0;
  return choice;
}

}  // namespace lockstep::variants
