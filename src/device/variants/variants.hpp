// Computations with several implementations, and the choice among them (docs/design/variants.md).
#pragma once

#include <atomic>
#include <memory>
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

/// A variant that this process took.
struct Chosen {
  std::string computation, variant;
  std::string by;  // "the call", or the row: "the shipped table for cuda", "the user's table for NVIDIA H200"
  friend auto operator<=>(const Chosen&, const Chosen&) = default;
};
/// Each once, sorted, since forget_chosen().
std::vector<Chosen> chosen();
void forget_chosen();

/// A computation by name; lives as long as the process.
class Computation {
 public:
  /// Reads its rows of the shipped and of the user's table. A line reports rows of the latter that it rejects.
  explicit Computation(ComputationOptions options);
  ~Computation();
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
  /// The row that is closest to the device and the problem, and its ranking there.
  const Row& closest(std::span<const Row> rows, const DeviceInfo& device, Numerics numerics,
                     const Problem& problem) const;
  static std::span<const int> ranking(const Row& row, const Problem& problem);
  const std::vector<Row>& rows() const { return rows_; }

  /// Notes a variant for chosen(): by a row of rows(), or null where the call named it.
  void note(int variant, const Row* row) const {
    std::atomic<uint32_t>& taken = taken_[row ? size_t(row - rows_.data()) + 1 : 0];
    const uint32_t bit = uint32_t(1) << variant;  // one load where it is known: small products ask often
    if (!(taken.load(std::memory_order_relaxed) & bit)) taken.fetch_or(bit, std::memory_order_relaxed);
  }

 private:
  friend std::vector<Chosen> chosen();
  friend void forget_chosen();
  const ComputationOptions options_;
  std::vector<Row> rows_;
  std::unique_ptr<std::atomic<uint32_t>[]> taken_;  // bits of variants: of those named, then of each row
};

/// Numbers that were measured on a device, as many as the caller expects: of the user's row that is closest to it, else of the
/// shipped one.
std::vector<double> measured(std::string_view name, const DeviceInfo& device, size_t count);

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

struct AlwaysApplies {
  std::string operator()(int) const { return {}; }
};

/// The variant `asked`, by name; else the fastest that applies. `applies(number)` returns why a variant does not apply, or an
/// empty text. Throws InputError for an unknown name and UnsupportedError, with the reason, where `asked` does not apply.
template <class Applies = AlwaysApplies>
Choice choose(const Computation& computation, const DeviceInfo& device, Numerics numerics,
              const Problem& problem, std::string_view asked = {}, const Applies& applies = {}) {
  Choice choice;
  if (!asked.empty()) {
    choice.variant = computation.number(asked);
    if (std::string reason = applies(choice.variant); !reason.empty()) refuse(computation, asked, reason);
    computation.note(choice.variant, nullptr);
    return choice;
  }
  const Computation::Row& row = computation.closest(computation.rows(), device, numerics, problem);
  for (const int number : Computation::ranking(row, problem)) {
    std::string reason = applies(number);
    if (reason.empty()) {
      choice.variant = number;
      break;
    }
    choice.refused.push_back({number, std::move(reason)});
  }
  computation.note(choice.variant, &row);
  return choice;
}
template <class Applies = AlwaysApplies>
Choice choose(const Computation& computation, const Device& device, const Problem& problem,
              std::string_view asked = {}, const Applies& applies = {}) {
  return choose(computation, device.info(), device.numerics(), problem, asked, applies);
}

}  // namespace lockstep::variants
