// The page of a comparison: tables, courses and maps in one file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/urban/compare.hpp"

namespace lockstep::urban {

/// Tables of the page as files: "classes" (area by class of stress), "summaries", "largest_changes", in CSV.
std::vector<std::pair<std::string, std::string>> comparison_tables(const CompareResult& result);

std::string comparison_page(const CompareOptions& options, const CompareResult& result);

/// Numbers as tables show them: "−0.42".
std::string shown_number(double value, int decimals);

}  // namespace lockstep::urban
