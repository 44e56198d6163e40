// Doubts about the inputs of a run, collected while they are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

class Findings {
 public:
  enum class Errors { thrown, kept };
  /// `words`: the caller's; without functions those of C++.
  explicit Findings(Errors errors = Errors::thrown, const Wording& words = {});

  /// A text with options in braces.
  std::string spelled(const std::string& text) const { return lockstep::spelled(text, words_); }

  void ok(std::string check, std::optional<double> value, std::string unit, std::string text) {
    rows_.push_back({std::move(check), value, std::move(unit), Verdict::ok, std::move(text)});
  }
  void warn(std::string check, std::optional<double> value, std::string unit, std::string text) {
    rows_.push_back({std::move(check), value, std::move(unit), Verdict::warning, std::move(text)});
  }
  /// Throws the error, or makes it a row.
  template <class E>
  void refuse(std::string check, const E& error) {
    if (errors_ == Errors::thrown) throw error;
    keep(std::move(check), error);
  }
  /// Does a part of the reading. False where it threw an InputError that became a row.
  template <class F>
  bool part(const char* check, F work) {
    if (errors_ == Errors::thrown) {
      work();
      return true;
    }
    try {
      work();
      return true;
    } catch (const InputError& error) { keep(check, error); }
    return false;
  }

  const std::vector<InputCheck>& rows() const { return rows_; }
  std::vector<std::string> warnings() const;
  /// Prints the warnings, also under --quiet.
  void say() const;

 private:
  void keep(std::string check, const InputError& error);

  Errors errors_;
  Wording words_;
  std::vector<InputCheck> rows_;
};

/// A line of warning, also under --quiet.
void say_doubt(const std::string& text);

std::string_view name(Verdict verdict);  ///< "ok", "warning", "error"

}  // namespace lockstep::urban
