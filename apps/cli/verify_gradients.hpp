// `lockstep verify --gradients`: the derivatives of the kernels that cases launch.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lockstep/differentiate.hpp"

namespace lockstep::cli {

/// JSON has no NaN or infinity: they come as texts.
nlohmann::ordered_json json_number(double value);

class GradientOutcome {
 public:
  void take(const GradientRow& row);
  std::string table() const;
  /// "kernels", "rejected" and "left_out".
  nlohmann::ordered_json json() const {
    return {{"kernels", rows_}, {"rejected", rejected_}, {"left_out", left_out_}};
  }
  int64_t passed = 0, failed = 0;
  size_t rejected() const { return rejected_.size(); }
  size_t left_out() const { return left_out_.size(); }

 private:
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array(), rejected_ = rows_, left_out_ = rows_;
  std::set<std::string> seen_;  // rejected kernels and those left out
  std::string lines_;
};

}  // namespace lockstep::cli
