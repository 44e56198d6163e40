// Diagnosis of a problem at its values, without a minimisation: directions that no residual holds, instances without effect,
// duplicates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

/// An instance, and its line in the file; 0: no file.
struct ReportedInstance {
  std::string terms;
  int64_t instance = 0;
  int64_t line = 0;
};

/// The influence of an instance in the linear least-squares problem at the current values, with losses and weights.
/// At a minimum its residuals are those of the terms; elsewhere they are those after a full step.
struct InstanceInfluence : ReportedInstance {
  /// Mean over its residuals of the diagonal of J (J^T J)^+ J^T: 0 if it has no influence, 1 if nothing else
  /// determines what it measures.
  double leverage = 0;
  int checked = 0;  // directions of its residuals that other instances also determine
  /// Root mean square, over these, of its residuals in units of their standard deviations according to the other
  /// instances (externally studentised); 0 if there are too few.
  double studentized = 0;
  double probability = 1;  // of one at least as large, for normal errors (an F test)
  double cook =
      0;  // Cook's distance: the change of the estimate by its removal, relative to the estimate's uncertainty
};
struct Influence {
  std::vector<InstanceInfluence> instances;  // enabled instances, in the order of adding
  /// Share of half the sum of squares that a full step of the linear problem removes: 0 at a minimum.
  double step_gain = 0;
  int64_t rank = 0, rows = 0;
};
/// In f64; by QR up to some hundred unknowns a piece, beyond that from
/// a sparse factorisation of J^T J. Throws InputError for energies, what is not finite, and
/// factorisations beyond 5e11 operations.
Influence influence_by_instance(const Problem& problem, Context& context);

/// Lists have the first findings, at most `named` of each kind; counts have all.
struct ProblemReport {
  struct Block {
    std::string set;
    int64_t number = 0;
  };
  /// Blocks that residuals connect through free blocks.
  struct Piece {
    int64_t blocks = 0, unknowns = 0;
    Block first;
    bool touches_held = false;  // a residual connects it with a fixed block
    /// Directions of its unknowns along which no residual changes to first order; none: not computed.
    std::optional<int64_t> free_directions;
    bool gauge = false;           // all of its blocks take part: it has a gauge freedom
    std::vector<Block> carriers;  // the blocks with the largest components, if it is not a gauge
    /// |J v| of the direction v that changes residuals least, over that of the direction that changes them most, with unknowns
    /// in units of the lengths of their columns; 1: not computed, or all unknowns are fixed.
    double weakest = 1;
    std::vector<Block>
        weak;  // the blocks with the largest components of that direction, if `weakest` is below 1e-6
  };
  /// A tangent coordinate of a set whose columns of J are much longer or shorter than the median column.
  struct Scale {
    std::string set;
    int coordinate = 0;
    int64_t blocks = 0;  // whose columns are
    double shortest = 0, longest = 0;
  };
  using Instance = ReportedInstance;
  struct Idle : Instance {
    std::string why;
  };
  struct Duplicate : Instance {
    Instance of;
  };

  int64_t blocks = 0, held = 0, unknowns = 0, residuals = 0, instances = 0, energies = 0;
  double cost = 0;
  int64_t piece_count = 0;
  std::vector<Piece> pieces;  // those with free directions first, then with weak ones, then the smallest
  std::optional<int64_t> free_directions;  // of all pieces; none: not computed
  std::string rank_note;                   // why not
  double median_column = 0;
  std::vector<Scale> badly_scaled;
  int64_t idle_count = 0;
  std::vector<Idle> idle;  // instances that depend on no unknown
  int64_t duplicate_count = 0;
  std::vector<Duplicate> duplicates;  // instances with the blocks and data of an earlier one
  std::string influence_note;         // reason why the lists below are not computed
  int64_t outlier_count = 0;
  std::vector<InstanceInfluence>
      outliers;  // improbable at 5 % over all instances (Bonferroni), largest first
  int64_t influential_count = 0;
  std::vector<InstanceInfluence> influential;  // Cook's distance above 1
  int64_t lever_count = 0;
  /// Leverage above 1/2 and three times the mean, or 1, at which an error has no visible effect.
  std::vector<InstanceInfluence> levers;
  double step_gain = 0;  // Influence::step_gain

  /// True if nothing impedes a minimisation: one part, no free or weak directions, bad scaling, idle or duplicate
  /// instances. Influence is not considered.
  bool well() const;
};

/// In f64. Directions are looked for in J by QR and SVD up to some hundred unknowns a piece, beyond that by a sparse
/// factorisation of J^T J, which finds 15 at most. Throws InputError for a problem without blocks or residuals.
ProblemReport diagnose(const Problem& problem, Context& context, int named = 5);
std::string to_text(const ProblemReport& report);
std::string to_json(const ProblemReport& report);

// ── a file's problem ──

/// With a model, the problem of a fit, at its minimum.
struct DoctorRun : FitModel {
  // FitModel::file: g2o, BAL's text format, or with a model a table
  RobustLoss loss;
  int named = 5;
  std::string influence;  // CSV by instance: terms, instance, line, leverage, studentized, cook
};
void describe(Schema<DoctorRun>& schema);
/// Parameters of a fit, and those that its data do not determine.
struct FitReport {
  std::vector<std::string> parameters;
  std::vector<double> values;
  Termination termination = Termination::function_tolerance;
  std::vector<std::string> at_bound, undetermined;  // as FitRunResult has them
  struct Pair {
    std::string first, second;
    double correlation = 0;
  };
  std::vector<Pair> correlated;  // by more than 0.99, largest first
};
struct DoctorResult {
  std::string kind;  // "g2o", "bal" or "fit"
  ProblemReport report;
  std::optional<FitReport> fit;
  std::vector<StageRecord> host_stages;
  std::vector<std::pair<std::string, std::string>> files;  // written: "influence_file"
};
DoctorResult run(Context& context, const DoctorRun& options);
std::string to_json(const DoctorResult& result);
std::string to_text(const DoctorResult& result);

}  // namespace lockstep::solve
