// The content of a Problem.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "solve/model/expression_key.hpp"

namespace lockstep::solve {

/// Blocks that were added together. Blocks are numbered over all sets, set after set; so are their numbers
/// in the state and their tangent coordinates.
struct SetState {
  std::string name;
  std::shared_ptr<const TracedManifold> manifold;
  int64_t count = 0, first_block = 0, first_ambient = 0, first_tangent = 0;
  int64_t added = 0;             // blocks that the set ever had: the number of the next one
  std::vector<int64_t> numbers;  // of the blocks, ascending; empty where none was erased

  bool whole() const { return count == added; }  // nothing was erased
  int64_t number(int64_t place) const { return whole() ? place : numbers[size_t(place)]; }
  /// The place of a block by its number. Throws InputError where the set has no such block, or no more.
  int64_t place(int64_t number, const std::string& where) const;
  int ambient() const { return manifold->manifold.ambient; }
  int tangent() const { return manifold->manifold.tangent; }
};

/// Instances that were added together, or loose residuals of one expression.
struct Segment {
  int64_t count = 0;
  std::vector<int32_t> blocks;    // (count, slots): block numbers over all sets
  std::vector<double> data;       // (count, data)
  std::vector<double> constants;  // (count or 1, constants)
  bool own_constants = false;     // one row for each instance
  std::vector<double> weights;    // (count) of a weighted expression
  std::vector<uint8_t> off;       // by instance: disabled or taken out; empty: all count

  bool counts(int64_t instance) const { return off.empty() || off[size_t(instance)] == 0; }
  bool stays(int64_t instance) const { return off.empty() || (off[size_t(instance)] & kGone) == 0; }
  static constexpr uint8_t kDisabled = 1, kGone = 2;
};

class TermDerivatives;
struct KeptTables;

/// Instances of one expression, in the order in which they were added.
struct Batch {
  std::string name;  // of the first term type
  std::shared_ptr<const ExpressionKey> expression;
  std::vector<Segment> segments;
  int64_t instances = 0;  // that count
  /// Where the instances are one part of a whole: the derivatives of the whole, and the part's number on this rank.
  std::shared_ptr<const TermDerivatives> derivatives;
  int part = 0;
};

/// The record of a TermSet.
struct TermRecord {
  std::string name;
  struct Part {  // instances [first, first + count) of a segment
    int32_t batch, segment;
    int64_t first, count;
  };
  std::vector<Part> parts;  // in the order of the instances
  std::vector<int> data;    // datum of the type by its number in the expression
  int type_data = 0;
  bool loose = false;
  std::vector<int> slots = {};  // slot of the type by that of the expression; empty of loose residuals
};

/// Calls f(number in the set, part, instance of the part's segment) in the order of adding, also for those that were removed.
template <class F>
void each_instance(const TermRecord& record, F f) {
  int64_t number = 0;
  for (const TermRecord::Part& part : record.parts)
    for (int64_t i = part.first; i < part.first + part.count; ++i, ++number) f(number, part, i);
}

struct Problem::State {
  const uint64_t number = next_number();  // of the problem, in the handles that it gives
  std::vector<SetState> sets;
  std::vector<double> values;        // (ambient numbers)
  std::vector<uint8_t> fixed;        // by block
  std::vector<uint8_t> held;         // by tangent coordinate; empty where none is held on its own
  std::vector<double> lower, upper;  // by ambient number; empty where nothing is bound
  std::vector<Batch> batches;
  std::unordered_map<std::string, size_t> batch_of;  // by the expression's key
  std::map<int, TermRecord> terms;                   // by number, in the order of adding
  int next_term = 0;
  int64_t blocks = 0, ambient = 0, tangent = 0, rows = 0;
  int host_terms = 0;                // that were added
  std::shared_ptr<KeptTables> kept;  // of the last minimisation

  struct LooseLeaf {
    int32_t block;
    int32_t component;
    int32_t set;
  };
  std::unique_ptr<autodiff::Tape> graph;  // of loose residuals
  std::vector<LooseLeaf> loose_leaves;    // by leaf number
  std::vector<uint32_t> leaf_of;          // 1 + leaf number by ambient number; 0: none yet
  mutable std::atomic<int> uses{0};       // minimisations and evaluations in progress

  static uint64_t next_number();
  /// Throws InputError while the problem is in use: by a callback, or by a function of a host term.
  void check_unused(const std::string& where) const;
  /// The set of a handle. Throws InputError for a handle of another problem, or none.
  const SetState& set(BlockSet set, const std::string& where) const;
  /// The set a block belongs to.
  const SetState& set_of(int64_t block) const;
  /// The numbers of a block, by its number over all sets.
  std::span<const double> value(int64_t block) const;
  std::span<double> value(int64_t block);
  /// The number of the batch of an expression.
  size_t batch(ExpressionKey&& expression, const std::string& name);
  /// Disables or enables instances; what is gone stays so.
  void mark(const TermRecord::Part& part, int64_t first, int64_t count, uint8_t mark);
  TermSet add(TermRecord&& record) {
    terms.emplace(next_term, std::move(record));
    return {next_term++, number};
  }
  /// Problem::add_terms, with the functions tried on the first `checked` instances.
  TermSet add(const HostTerm& type, std::span<const BlockSet> from, std::span<const int32_t> indices,
              std::span<const double> data, int64_t checked);
  /// Blocks (numbers over all sets) that no instance has leave the problem.
  void erase_blocks(const std::vector<int64_t>& blocks);
  /// Segments and expressions without instances go, where they are most.
  void compact();
  /// Takes a part out of its segment.
  void take_out(const TermRecord::Part& part);
  /// Name and number, within its term set, of the instance of a batch that counts as its `place`th.
  std::pair<std::string, int64_t> origin(size_t batch, int64_t place) const;
  const TermRecord& record(TermSet terms, const std::string& where) const;
  /// Whether tangent coordinate k of a block moves.
  bool moves(int64_t block, int64_t coordinate) const {
    return fixed[size_t(block)] == 0 && (held.empty() || held[size_t(coordinate)] == 0);
  }
  /// Throws InputError where a unit vector among the values has another length.
  void check_unit_vectors() const;
};

/// While one lives, calls that change the problem throw InputError.
class ProblemUse {
 public:
  explicit ProblemUse(const Problem::State& problem) : uses_(problem.uses) { ++uses_; }
  ~ProblemUse() { --uses_; }
  ProblemUse(const ProblemUse&) = delete;
  ProblemUse& operator=(const ProblemUse&) = delete;

 private:
  std::atomic<int>& uses_;
};

/// A term type over the sets of a problem: its expression, and what an instance has of the type's slots and data.
struct TermForm {
  ExpressionKey expression;
  std::vector<int64_t> slots;     // of the type, by slot of the expression
  std::vector<int> data;          // datum of the type, by its number in the expression
  std::vector<double> constants;  // numbers in the expression, then those of the loss
};
/// Throws InputError for types that do not fit the sets.
TermForm term_form(const Problem::State& state, const TermType& type, std::span<const BlockSet> sets,
                   const std::string& where);
/// `number`: of the host term in its problem, from 1 on.
TermForm term_form(const Problem::State& state, const HostTerm& type, std::span<const BlockSet> sets,
                   int number, const std::string& where);
/// Throws InputError unless these are numbers of whole blocks that are finite and on the manifold.
void check_values(const TracedManifold& traced, std::span<const double> values, const std::string& where);
/// Throws InputError unless these are finite data of as many instances.
void check_data(std::span<const double> data, int per_instance, int64_t instances, const std::string& where);
/// Throws InputError unless number `component` of `block` may have these bounds; gives the tangent coordinate that moves it.
int bounded_coordinate(const TracedManifold& traced, const std::string& set, int64_t block, int component,
                       double lower, double upper, const std::string& where);
/// Throws InputError unless these are tangent coordinates.
void check_coordinates(const TracedManifold& traced, const std::string& set, std::span<const int> coordinates,
                       const std::string& where);
/// Throws InputError unless these are one weight, or one by instance.
void check_weights(std::span<const double> weights, int64_t instances, const std::string& where);

}  // namespace lockstep::solve
