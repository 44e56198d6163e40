// Diagnosis of a problem at its values, without a minimisation: directions that no residual holds, instances without effect,
// duplicates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// Lists have the first findings, at most `named` of each kind; counts have all.
struct ProblemReport {
  struct Block {
    std::string set;
    int64_t number = 0;
  };
  /// Blocks that residuals connect through blocks that move.
  struct Piece {
    int64_t blocks = 0, unknowns = 0;
    Block first;
    bool touches_held = false;  // a residual connects it with a block that is held
    /// Directions of its unknowns along which no residual changes to first order; none: not computed.
    std::optional<int64_t> free_directions;
    bool gauge = false;           // all of its blocks take part in them: it may move as a whole
    std::vector<Block> carriers;  // the blocks that take part most, where it is no gauge
  };
  /// A tangent coordinate of a set of which columns of J are far longer or shorter than the median column.
  struct Scale {
    std::string set;
    int coordinate = 0;
    int64_t blocks = 0;  // whose columns are
    double shortest = 0, longest = 0;
  };
  struct Instance {
    std::string terms;
    int64_t instance = 0;
  };
  struct Idle : Instance {
    std::string why;
  };
  struct Duplicate : Instance {
    Instance of;
  };

  int64_t blocks = 0, held = 0, unknowns = 0, residuals = 0, instances = 0, energies = 0;
  double cost = 0;
  int64_t piece_count = 0;
  std::vector<Piece> pieces;               // those with free directions first, then the smallest
  std::optional<int64_t> free_directions;  // of all pieces; none: not computed
  std::string rank_note;                   // why not
  double median_column = 0;
  std::vector<Scale> badly_scaled;
  int64_t idle_count = 0;
  std::vector<Idle> idle;  // instances that no unknown changes
  int64_t duplicate_count = 0;
  std::vector<Duplicate> duplicates;  // instances with the blocks and the data of an earlier one

  /// Nothing that a minimisation would stumble over: one piece, nothing free, badly scaled, idle or double.
  bool well() const;
};

/// In f64. Directions are looked for in J by QR and SVD up to some hundred unknowns a piece, beyond that by a sparse
/// factorisation of J^T J, which finds 15 at most. Throws InputError for a problem without blocks or residuals.
ProblemReport diagnose(const Problem& problem, Context& context, int named = 5);
std::string to_text(const ProblemReport& report);
std::string to_json(const ProblemReport& report);

// ── a file's problem ──

struct DoctorRun {
  std::string file;  // g2o, or BAL's text format
  RobustLoss loss;
  int named = 5;
};
void describe(Schema<DoctorRun>& schema);
struct DoctorResult {
  std::string kind;  // "g2o" or "bal"
  ProblemReport report;
  std::vector<StageRecord> host_stages;
};
DoctorResult run(Context& context, const DoctorRun& options);
std::string to_json(const DoctorResult& result);
std::string to_text(const DoctorResult& result);

}  // namespace lockstep::solve
