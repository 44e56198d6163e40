// Diagnosis of a problem at its current values, without a minimisation: directions that no residual determines, instances
// without effect, duplicates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

/// An instance and its line in the file, from 1; 0: no file.
struct ReportedInstance {
  std::string terms;
  int64_t instance = 0;
  int64_t line = 0;
};

/// The influence of an instance in the linearised least-squares problem at the current values, with losses and weights.
/// Residuals are those after a full step; at a minimum, they are those of the terms.
struct InstanceInfluence : ReportedInstance {
  /// Mean over its residuals of the diagonal of J (J^T J)^+ J^T: 0 if it has no influence, 1 if nothing else
  /// determines what it measures.
  double leverage = 0;
  int checked = 0;  // number of directions of its residuals that other instances also determine
  /// Root mean square over these directions of the externally studentised residuals, which are in units of their standard
  /// deviations according to the other instances; 0 if there are too few.
  double studentized = 0;
  double probability = 1;  // of a value of `studentized` at least as large, for normal errors (F test)
  double cook =
      0;  // Cook's distance: change of the estimate by its removal, relative to the uncertainty of the estimate
};
struct Influence {
  std::vector<InstanceInfluence> instances;  // enabled instances, in the order of adding
  /// Share of the cost (half the sum of squares) that a full step of the linearised problem removes: 0 at a minimum.
  double step_gain = 0;
  int64_t rank = 0, rows = 0;
};
/// The influence of every enabled instance, in f64: by QR of J for connected parts of up to some hundred unknowns, for
/// larger ones by a sparse factorisation of J^T J. Throws InputError for energies, residuals or derivatives that are not
/// finite, and factorisations of more than 5e11 operations.
Influence influence_by_instance(const Problem& problem, Context& context);

/// The findings of diagnose(). Lists contain at most `named` findings of each kind; counts include all.
struct ProblemReport {
  struct Block {
    std::string set;
    int64_t number = 0;
  };
  /// A connected part of the problem: blocks that residuals connect through free blocks.
  struct Piece {
    int64_t blocks = 0, unknowns = 0;
    Block first;
    bool touches_held = false;  // a residual connects it with a fixed block
    /// Number of directions of its unknowns along which no residual changes to first order; none: not computed.
    std::optional<int64_t> free_directions;
    bool gauge = false;  // the free directions involve all its blocks: a gauge freedom
    std::vector<Block>
        carriers;  // blocks with the largest components of the free directions, if not a gauge freedom
    /// |J v| of the direction v that changes residuals least, divided by that of the direction that changes them most, with
    /// unknowns in units of the lengths of their columns; 1: not computed, or all unknowns are fixed.
    double weakest = 1;
    std::vector<Block>
        weak;  // blocks with the largest components of the weakest direction, if `weakest` is below 1e-6
  };
  /// A tangent coordinate of a set whose columns of J are much longer or shorter than the median column.
  struct Scale {
    std::string set;
    int coordinate = 0;
    int64_t blocks = 0;  // number of blocks with such a column
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
  std::vector<Piece>
      pieces;  // first those with free directions, then those with weak ones, then the smallest
  std::optional<int64_t> free_directions;  // of all pieces; none: not computed
  std::string rank_note;                   // reason why free_directions is not computed
  double median_column = 0;
  std::vector<Scale> badly_scaled;
  int64_t idle_count = 0;
  std::vector<Idle> idle;  // instances that depend on no unknown
  int64_t duplicate_count = 0;
  std::vector<Duplicate> duplicates;  // instances with the blocks and data of an earlier one
  std::string influence_note;         // reason why the lists below are not computed
  int64_t outlier_count = 0;
  /// Instances whose probability is below 5 % over all instances (Bonferroni), largest residuals first.
  std::vector<InstanceInfluence> outliers;
  int64_t influential_count = 0;
  std::vector<InstanceInfluence> influential;  // Cook's distance above 1
  int64_t lever_count = 0;
  /// Instances with leverage above 1/2 and above three times the mean (Huber 1981), or 1, so that an error cannot be seen
  /// in their residuals.
  std::vector<InstanceInfluence> levers;
  double step_gain = 0;  // Influence::step_gain

  /// True if nothing impedes a minimisation: there is one connected part, and there are no free or weak directions, badly
  /// scaled unknowns, idle or duplicate instances. Influence is not considered.
  bool well() const;
};

/// Diagnoses a problem, in f64. Free directions are computed by QR and SVD of J for connected parts of up to some hundred
/// unknowns; for larger ones by a sparse factorisation of J^T J, which finds at most 15. Throws InputError for a problem
/// without blocks or residuals.
ProblemReport diagnose(const Problem& problem, Context& context, int named = 5);
std::string to_text(const ProblemReport& report);
std::string to_json(const ProblemReport& report);

// ── a file's problem ──

/// The problem of a file, or, with a model, that of a fit at its minimum.
struct DoctorRun : FitModel {
  // FitModel::file is a g2o file, a BAL text file or, with a model, a table.
  RobustLoss loss;
  int named = 5;
  std::string
      influence;  // CSV file with a row per instance: terms, instance, line, leverage, studentized, cook
};
void describe(Schema<DoctorRun>& schema);
/// The parameters of a fit, and which of them its data do not determine.
struct FitReport {
  std::vector<std::string> parameters;
  std::vector<double> values;
  Termination termination = Termination::function_tolerance;
  std::vector<std::string> at_bound, undetermined;  // as FitRunResult has them
  struct Pair {
    std::string first, second;
    double correlation = 0;
  };
  std::vector<Pair> correlated;  // pairs with a correlation above 0.99 in magnitude, largest first
};
struct DoctorResult {
  std::string kind;  // "g2o", "bal" or "fit"
  ProblemReport report;
  std::optional<FitReport> fit;
  std::vector<StageRecord> host_stages;
  std::vector<std::pair<std::string, std::string>> files;  // written: "influence_file"
};
/// Throws InputError for an invalid file, model or option.
DoctorResult run(Context& context, const DoctorRun& options);
std::string to_json(const DoctorResult& result);
std::string to_text(const DoctorResult& result);

}  // namespace lockstep::solve
