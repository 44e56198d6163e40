// Texts of options that stand for more than a number or a name.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::solve {

/// "a=0:10,b=-inf:0", the lower and upper bounds of names.
using Ranges = std::map<std::string, std::pair<double, double>>;
Ranges read_ranges(const std::string& text);
std::string print_ranges(const Ranges& ranges);

/// "b=2*a,c=min(a,1)", formulas of names; commas within brackets are the formula's.
using Formulas = std::map<std::string, std::string>;
Formulas read_formulas(const std::string& text);
std::string print_formulas(const Formulas& formulas);

/// "X,Y,Z", not all 0.
using Direction = std::optional<std::array<double, 3>>;
Direction read_direction(const std::string& text);
std::string print_direction(const Direction& direction);

}  // namespace lockstep::solve
