// Models with their columns and parameters, checked, and as graphs: what fits and the search for starts share.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/series/csv.hpp"
#include "lockstep/solve.hpp"
#include "solve/datasets/expression.hpp"

namespace lockstep::solve {

struct FitOptions {
  std::string model;                                        // "a*exp(-b*t) + c"
  std::vector<std::string> x;                               // columns that the model names
  std::string y;                                            // column of the response
  std::string sigma;                                        // column of its standard deviations, or empty
  std::map<std::string, double> initial;                    // of parameters; find_start() gives the others
  std::map<std::string, std::pair<double, double>> bounds;  // lower, upper
  std::map<std::string, std::string> constraints;  // parameters that are formulas of others: b = "2*a"
  std::vector<std::string> shared;                 // parameters that all data sets have in common
  bool absolute_sigma = false;                     // sigma is right as it is: errors are not scaled
  bool profile = false, bands = false;
  std::optional<io::CsvTable> at;  // points of x, and sigma of measurements there
  RobustLoss loss;
  Options options;
  std::vector<std::string> terms;  // names of the data sets' terms; empty: all "fit"
};

/// The parameters of all data sets, separated from the columns. With several sets, a parameter that is not shared
/// is one of each data set, a_1, a_2 …, and initial values, bounds and constraints may name it with or without its number.
/// Throws InputError as fit() does.
class FitSetup {
 public:
  struct DataSet {
    std::vector<const std::vector<double>*> x;
    const std::vector<double>* y = nullptr;
    const std::vector<double>* sigma = nullptr;
    double weight(size_t row) const { return sigma ? 1 / (*sigma)[row] : 1; }
    size_t rows() const { return y->size(); }
  };

  FitSetup(std::span<const io::CsvTable> tables, const FitOptions& options);

  Expression model;
  std::vector<DataSet> sets;
  std::vector<std::string> names;       // all parameters
  std::vector<std::string> parameters;  // those that no constraint gives
  std::map<std::string, double> initial;
  std::map<std::string, std::pair<double, double>> bounds;
  size_t rows = 0;  // of all data sets

  using Leaf = std::function<autodiff::Value(size_t number)>;
  /// The model of a data set over the columns of x and the free parameters.
  autodiff::Value build(autodiff::Tape& graph, size_t set, const Leaf& column, const Leaf& parameter) const;
  /// A parameter over the free ones.
  autodiff::Value build_parameter(autodiff::Tape& graph, const std::string& name,
                                  const Leaf& parameter) const;
  /// Whether every data set has a parameter of this name: its own or a shared one.
  bool is_of_each(const std::string& name) const;
  /// A name as the parameters of a data set have it; empty: there is none.
  std::string resolved(const std::string& name, size_t set) const;
  /// The formula that gives a parameter, or nullptr.
  const std::string* constraint_of(const std::string& name) const;

 private:
  struct Constraint {
    Expression formula;
    size_t set = 0;  // whose parameters it names without their number
  };
  void read_columns(std::span<const io::CsvTable> tables, const FitOptions& options);
  void name_parameters(const FitOptions& options);
  void add_parameter(const std::string& name, bool own);
  void read_constraints(const io::CsvTable& table, const FitOptions& options);
  void check_shared(const FitOptions& options) const;
  void check_cycles() const;
  std::vector<std::string> all_of(const std::string& name, const std::string& what) const;

  std::vector<std::string> x_;
  std::vector<std::string> own_;     // of each data set, without numbers
  std::vector<std::string> common_;  // of all data sets
  std::map<std::string, Constraint> constraints_;
};

/// The model of a data set over leaves: free parameters first, then the columns of x.
struct FitLeaves {
  autodiff::Tape graph;
  autodiff::Value value;

  FitLeaves(const FitSetup& setup, size_t set);
};

}  // namespace lockstep::solve
