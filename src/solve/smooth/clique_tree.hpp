// The square-root factor of a least-squares problem as a tree of cliques (the Bayes tree of Kaess et al., IJRR 31, 2012)
// that changes at its top only: cliques from what changed up to the root are eliminated again, what hangs below them stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "solve/linear/cholesky/elimination_order.hpp"

namespace lockstep::solve {

/// 1/2 |J d + r|^2 of some variables' steps d: the lower triangle of [J r]^T [J r], column-major, of this size.
struct QuadraticView {
  std::span<const int32_t> variables;
  const double* gram = nullptr;
  int64_t size = 0;
  const double* scale = nullptr;  // of the coordinates, for judging pivots; null: the gram's diagonal
};

/// A coordinate of a variable whose step is given.
struct HeldStep {
  int32_t coordinate = 0;
  double step = 0;
};

/// Conditional of the pivots given the rows, and what eliminating the pivots says of the rows.
struct Clique {
  std::vector<int32_t> pivots, rows;  // variables
  int64_t pivot_size = 0, size = 0;   // of the front; the last row is that of the right-hand side
  std::vector<double> panel;          // (size, pivot_size): L
  std::vector<double> trailing;       // (size - pivot_size)^2: of the rows, lower triangle
  std::vector<double> scale;          // diagonal of the front without what eliminations took away
  /// A pivot coordinate that is held: its row of the front before it was held.
  struct HeldRow {
    int32_t variable = -1, coordinate = 0;
    std::vector<double> row;  // (size)
  };
  std::vector<HeldRow> held;
  int32_t parent = -1;
  std::vector<int32_t> children;
  QuadraticView left() const { return {rows, trailing.data(), size - pivot_size, scale.data() + pivot_size}; }
};

class CliqueTree {
 public:
  /// A variable with its number of coordinates, 0 where it leaves or is fixed, and the unit of changes of its steps.
  void set_variable(int32_t variable, int32_t width, double unit);
  const std::vector<int32_t>& widths() const { return width_; }
  /// The clique that has it as a pivot; -1: none.
  int32_t clique_of(int32_t variable) const { return clique_of_[size_t(variable)]; }
  /// The last step of a variable.
  std::span<const double> step(int32_t variable) const { return step_[size_t(variable)]; }
  std::span<double> step(int32_t variable) { return step_[size_t(variable)]; }

  /// Coordinates of a variable that are held, from the next elimination of its clique on. Quadratics keep them, so that
  /// what they say of other variables' cliques is the same whether they are held or not.
  void hold(int32_t variable, std::vector<HeldStep> held) { held_[size_t(variable)] = std::move(held); }
  /// The slope of the cost to a held coordinate at the steps, and a bound of its rounding.
  struct Slope {
    double value = 0, rounding = 0;
  };
  Slope held_slope(int32_t variable, int32_t coordinate) const;

  /// The cliques that have one of `pivots` as a pivot or one of `anywhere` at all, and those above them.
  struct Affected {
    std::vector<int32_t> cliques, variables,
        orphans;  // variables: their pivots; orphans: cliques below that stay
  };
  Affected affected(std::span<const int32_t> pivots, std::span<const int32_t> anywhere);

  /// New cliques for the affected ones, not yet part of the tree.
  struct Replacement {
    struct Part {
      Clique clique;
      std::vector<int32_t> inner;    // children among the parts
      std::vector<int32_t> orphans;  // children that stay
      int32_t parent = -1;           // among the parts
      bool leaves = false;           // pivots of group 0, to be taken out of the problem
    };
    std::vector<Part> parts;  // children before parents
    std::optional<int32_t>
        undetermined;  // a variable that has a direction which nothing holds; then nothing is usable
  };
  /// Eliminates `variables` (with groups as elimination_fronts() has them) of the quadratics and the orphans' rest.
  Replacement eliminate(std::span<const int32_t> variables, std::span<const int32_t> groups,
                        std::span<const QuadraticView> quadratics, std::span<const int32_t> orphans);
  /// Puts it in the affected cliques' place. Parts that leave are not put in; the caller keeps what they left.
  void replace(const Affected& affected, Replacement&& replacement);

  /// Steps of all variables of new cliques, and of those below whose rows' steps changed by more than `change` units;
  /// the variables with a new step are appended to `moved`.
  void substitute(double change, std::vector<int32_t>& moved);

  /// Joint covariance of variables, (n, n), row-major; zeros for coordinates that are held.
  std::vector<double> covariance(std::span<const int32_t> variables);

  int64_t clique_count() const { return int64_t(cliques_.size() - free_.size()); }
  /// Bytes of all cliques and variables.
  int64_t bytes() const;

 private:
  void factor(Replacement& replacement, size_t part, const EliminationFront& front,
              std::span<const QuadraticView> quadratics, std::span<const int32_t> orphans);
  void assemble(Clique& clique, const QuadraticView& quadratic);
  void hold_pivots(Clique& clique) const;
  bool solve(const Clique& clique, bool fresh, double change, std::vector<int32_t>& moved);

  std::vector<int32_t> width_, clique_of_;
  std::vector<double> unit_;
  std::vector<std::vector<double>> step_;
  std::vector<std::vector<HeldStep>> held_;
  std::vector<Clique> cliques_;
  std::vector<int32_t> free_, fresh_;  // numbers of cliques: unused, not yet solved for
  // Scratch by variable.
  std::vector<int64_t> position_;
  std::vector<int32_t> local_;
  std::vector<uint8_t> mark_, changed_;
};

}  // namespace lockstep::solve
