// Formulas written as text, such as `b1*(1 - exp[-b2*x])`: parsed once, then built into a graph or evaluated.
//
// Numbers (1, .5, 2E-3), names, + - * / with the usual ranks, ^ and ** (right-associative, before a sign:
// -a^2 = -(a^2)), brackets () and [] alike, and the functions of Value graphs (ir/ops.def) by their names, with
// ln, arcsin, arccos, arctan and mod for log, asin, acos, atan and fmod. `log` is the natural logarithm; `pi` is
// a number. faddeeva(x, y) is Re w(x + i|y|): faddeeva.hpp. Shapes of lines are functions of an expression, and of a prefix for the names of their parameters: line_shapes.hpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/autodiff.hpp"

namespace lockstep::solve {

/// A parsed formula; cheap to copy.
class Expression {
 public:
  struct Node;

  /// Throws InputError that gives the column (from 1) and shows the text; `where` names its source.
  static Expression parse(std::string_view text, std::string_view where = "formula");

  /// Free names in the order of their first use; pi is not among them.
  const std::vector<std::string>& names() const { return names_; }
  /// The formula over `leaf(name)`, requested once for each free name.
  autodiff::Value build(autodiff::Tape& graph,
                        const std::function<autodiff::Value(const std::string&)>& leaf) const;
  /// The value on the host. Throws InputError for a name that `values` lacks.
  double evaluate(const std::map<std::string, double>& values) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::shared_ptr<const Node> root_;
};

}  // namespace lockstep::solve
