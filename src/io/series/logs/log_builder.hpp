// Collects the columns of a training log while a reader traverses its records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "io/series/logs/training_log.hpp"

namespace lockstep::io {

class LogBuilder {
 public:
  explicit LogBuilder(std::string_view where) { log_.where = where; }

  /// A value of `column` in record `place`, which errors show as "<file>:<place>".
  void add(std::string_view column, double step, double value, int64_t place);
  /// The entry of `column` in record `place` is not a finite number.
  void add_flaw(std::string_view column, std::string what, std::string expected, int64_t place);
  /// The column exists, whether or not it gets values.
  void name_column(std::string_view column) { column_of(column); }

  /// Throws InputError where no column has a value.
  TrainingLog finish(std::string step_name);
  std::string place_name(int64_t place) const { return log_.where + ":" + std::to_string(place); }

 private:
  LogColumn& column_of(std::string_view name);

  TrainingLog log_;
  size_t bytes_ = 0;
  std::map<std::string, size_t, std::less<>> numbers_;
};

/// The name among `names` that the steps have; empty where there is none.
std::string_view step_name_of(const std::vector<std::string>& names);

}  // namespace lockstep::io
