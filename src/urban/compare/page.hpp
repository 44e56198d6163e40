// The page of a comparison: tables, courses and maps in one file.
#pragma once

#include <string>

#include "lockstep/urban/compare.hpp"

namespace lockstep::urban {

std::string comparison_page(const CompareOptions& options, const CompareResult& result);

/// Numbers as tables show them: "−0.42".
std::string shown_number(double value, int decimals);

}  // namespace lockstep::urban
