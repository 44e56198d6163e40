// Results of a case of one size on each device and of its plain reference, each computed once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/verify.hpp"

namespace lockstep {

/// Why a device does not run a case, else empty.
std::string case_unsupported(const Case& c, const Device& device);
/// The device itself, or one of the same name with the case's lowered limits.
Device case_device(const Case& c, const Device& device);

class CaseResults {
 public:
  /// `c` must outlive this.
  CaseResults(const Case& c, std::string size, uint64_t seed = 1);
  /// As verify_case(). A device is known by its name and numerics.
  VerifyRow verify(const Device& device, Against against, const Device& other);
  /// Of the results on a device (digest.hpp); empty where it does not run the case.
  std::string digest(const Device& device);

 private:
  const CaseProblem& problem();
  const std::vector<Array>& of(const Device& device);

  const Case& case_;
  std::string size_;
  uint64_t seed_;
  std::optional<CaseProblem> problem_;
  std::optional<std::vector<Array>> reference_;
  std::map<std::pair<std::string, Numerics>, std::vector<Array>> devices_;
};

}  // namespace lockstep
