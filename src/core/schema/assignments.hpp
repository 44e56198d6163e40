// Texts such as "a=1,b=2.5": names, each once, with the text after the equals sign.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Throws bad_text() for parts without a name or a value (expected: the option's form), and for a name that comes twice.
std::vector<std::pair<std::string, std::string>> assignments_in(const std::string& text);
/// A number written in full, of any size; throws bad_text().
double number_in(const std::string& text);
/// Parts between commas, none of them empty.
std::vector<std::string> parts_in(const std::string& text);

/// The same with numbers, and back.
std::map<std::string, double> read_assignments(const std::string& text);
std::string print_assignments(const std::map<std::string, double>& numbers);

}  // namespace lockstep
