// Everything that is computed for one instance of a term, as expressions: cost, residuals, derivatives.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "solve/model/expression_key.hpp"

namespace lockstep::solve {

/// How a number of the expression reaches the kernels.
struct ConstantUse {
  enum class Where : uint8_t {
    literal,  // part of the kernel: equal for all instances, and a number that simplifies (0, 1, 2 …)
    uniform,  // an argument: equal for all instances
    column,   // one for each instance
  };
  Where where = Where::literal;
  double value = 0;  // of a literal
};

/// Blocks up to this width have their whole block of J^T J summed, as preconditioners invert it; of wider ones
/// only the diagonal is, since triangles grow with the square of the width.
inline constexpr int kWidestInverse = 12;
/// Numbers of a block of J^T J that are summed: its upper triangle, row by row, or its diagonal.
constexpr int diagonal_parts(int width) { return width <= kWidestInverse ? width * (width + 1) / 2 : width; }

/// Derivatives are taken to the slots' tangent coordinates, one slot after the other: the columns.
class TermDerivatives {
 public:
  TermDerivatives(std::shared_ptr<const ExpressionKey> expression, std::vector<ConstantUse> constants);
  /// The one of the process for this key, derived when it is first requested: small problems whose expressions
  /// were seen before derive nothing.
  static std::shared_ptr<const TermDerivatives> shared(const std::shared_ptr<const ExpressionKey>& expression,
                                                       std::vector<ConstantUse> constants);
  static std::string key_of(const ExpressionKey& expression, std::span<const ConstantUse> constants);
  TermDerivatives(const TermDerivatives&) = delete;
  TermDerivatives& operator=(const TermDerivatives&) = delete;

  /// The location of the number behind a leaf of graph().
  struct Leaf {
    enum class Kind : uint8_t { component, datum, uniform, direction } kind;
    int slot = 0, index = 0;
  };
  /// An entry of the Jacobian: factor * stored number, or the factor alone where stored < 0.
  struct Entry {
    int stored = -1;
    double factor = 0;
  };
  /// Slots of one tangent size whose derivatives are stored. Row (component c, slot k) of them is first_row +
  /// c * slots.size() + k; rows of their diagonal blocks (diagonal_parts()) count from first_diagonal.
  struct SlotClass {
    int width = 0;
    std::vector<int> slots;
    int first_row = 0, first_diagonal = 0;
  };
  /// The derivatives to a slot are `sign` times those to `slot`, which are stored.
  struct Alias {
    int slot = 0;
    int sign = 1;
  };

  const ExpressionKey& expression() const { return *expression_; }
  const std::string& key() const { return key_; }    // of expression and constants: equal keys, equal kernels
  const std::string& name() const { return name_; }  // for kernels: a label and a part of the key's hash
  const autodiff::Tape& graph() const { return graph_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  int data_columns() const { return data_columns_; }  // data, a weight, then constants that are columns
  const std::vector<ConstantUse>& constants() const { return constants_; }
  int uniforms() const { return uniforms_; }

  int rows() const { return energy() ? columns_ : expression_->rows; }  // of the Jacobian, or of the Hessian
  int columns() const { return columns_; }
  bool energy() const { return expression_->energy; }
  /// The residuals are a function on the host: all entries of J are stored, row by row, and nothing is an expression.
  bool host() const { return expression_->host != nullptr; }
  const std::vector<int>& widths() const { return widths_; }
  const std::vector<int>& first_column() const { return first_column_; }
  const std::vector<SlotClass>& classes() const { return classes_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  int slot_rows() const { return slot_rows_; }  // rows of all classes
  int diagonal_rows() const { return diagonal_rows_; }

  /// 1/2 rho(|r|^2), or the energy.
  const Value& cost() const { return cost_; }
  /// Triggs' correction, R and S, such that S^T R is the gradient and S^T S = rho' J^T J + 2 max(rho'', 0) J^T r r^T J:
  /// with D = 1 + 2 s max(rho'', 0) / rho',  R = sqrt(rho' / D) r  and  S = sqrt(rho') (J + (sqrt(D) - 1) / s r r^T J).
  /// Named losses are concave: D = 1. residuals() is R.
  const std::vector<Value>& residuals() const { return residuals_; }
  /// r, and rho'(|r|^2) times the instance's weight; not for energies.
  const std::vector<Value>& plain() const { return plain_; }
  const Value& slope() const { return slope_; }
  /// By slot_rows().
  const std::vector<Value>& gradient() const { return gradient_; }
  /// The different numbers of the Jacobian S; of an energy, the upper
  /// triangle of its Hessian, row by row, or nothing where hessian_product() stands for it.
  const std::vector<Value>& stored() const { return stored_; }
  /// How many numbers of an instance are stored.
  int stored_count() const {
    if (host()) return rows() * columns_;
    return hessian_product_.empty() ? int(stored_.size()) : columns_ * (columns_ + 1) / 2;
  }
  /// H p of an energy by column, with p in leaves of kind `direction` (slot and component); where the
  /// entries of H as expressions would be too many operations, else empty.
  const std::vector<Value>& hessian_product() const { return hessian_product_; }
  const Entry& entry(int row, int column) const { return entries_[size_t(row * columns_ + column)]; }
  /// The same of H where the term is an energy.
  Entry matrix_place(int row, int column) const {
    const int a = std::min(row, column), b = std::max(row, column);
    return energy() ? Entry{a * columns_ - a * (a - 1) / 2 + b - a, 1} : entry(row, column);
  }
  /// Blocks of J^T J on the diagonal, by diagonal_rows(); not for energies.
  const std::vector<Value>& diagonal() const { return diagonal_; }

  /// J^T (J p) by slot_rows(), with J from the state instead of stored numbers and p in leaves of kind
  /// `direction`; where all slots are Euclidean and the term is no energy, else empty.
  const std::vector<Value>& free_product() const { return free_product_; }

  /// J^T (J p), or H p: leaves are the stored numbers, then p by column. p is taken as 0 outside of the slots
  /// `inputs`; only what slots `outputs` need is there. Sets of slots have bit min(slot, 63).
  struct Product {
    autodiff::Tape graph;
    std::vector<int> rows;  // of slot_rows()
    std::vector<Value> values;
  };
  std::unique_ptr<Product> product(uint64_t inputs, uint64_t outputs) const;
  static constexpr uint64_t kAllSlots = ~uint64_t(0);
  static uint64_t slot_bit(int slot) { return uint64_t(1) << std::min(slot, 63); }
  /// Whether derivatives to a stored slot are those of one of `slots`, itself or by alias.
  bool serves(int stored_slot, uint64_t slots) const;
  /// Entry (row, column) of J, or H, where the stored numbers are `stored`.
  Value matrix_entry(autodiff::Tape& graph, std::span<const Value> stored, int row, int column) const;

 private:
  Value leaf(Leaf::Kind kind, int slot, int index);
  void build_inputs(std::vector<Value>& leaf_values, std::vector<Value>& constant_values);
  /// The slots' blocks moved along delta.
  struct Moved {
    std::vector<Value> inputs;                    // what is derived to, by column
    std::vector<std::vector<Value>> blocks;       // y = plus(x, delta), by slot
    std::unordered_map<uint32_t, Value> at_zero;  // node: what it is at delta = 0
  };
  Moved move_blocks();
  std::vector<Value> at_delta_zero(const Moved& moved, std::span<const Value> values);
  void differentiate();
  void lay_out_host();
  void derive_energy(const Value& plain, const Value& derived, const Moved& moved);
  void derive_residuals(const std::vector<Value>& plain, const std::vector<Value>& derived,
                        const Moved& moved, std::span<const Value> loss_numbers);
  /// J + factor r r^T J.
  void add_along_residuals(std::vector<Value>& jacobian, const Value& factor) const;
  /// Times the instance's weight, where there is one.
  Value weigh(const Value& value);
  std::vector<Value> jacobian_of(const std::vector<Value>& outputs, const std::vector<Value>& inputs);
  void build_hessian(std::span<const Value> gradient, const Moved& moved);
  std::vector<Value> directions();
  void store_jacobian(std::span<const Value> jacobian);
  void find_aliases();
  void order_rows();
  std::vector<Value> by_slot_rows(const std::vector<Value>& by_column) const;
  void build_free_product();

  std::shared_ptr<const ExpressionKey> expression_;
  std::vector<ConstantUse> constants_;
  std::string key_, name_;
  autodiff::Tape graph_;
  std::vector<Leaf> leaves_;
  int data_columns_ = 0, uniforms_ = 0, columns_ = 0, slot_rows_ = 0, diagonal_rows_ = 0;
  std::vector<int> widths_, first_column_;
  std::vector<SlotClass> classes_;
  std::vector<Alias> aliases_;
  Value cost_;
  std::vector<Value> plain_, residuals_, gradient_, stored_, diagonal_, free_product_, hessian_product_;
  std::vector<Entry> entries_;
  std::vector<Value> derived_, inputs_;  // residuals and what they are derived to
  Value slope_, rise_;                   // rho'; max(rho', 0)
  Value bend_;  // max(rho'', 0) where rho' > 0, else 0; not valid where it is 0 everywhere
};

/// `values` again in `graph`, where `replace` gives what stands for a node (an empty Value: the node stays).
std::vector<Value> rebuild(std::span<const Value> values, autodiff::Tape& graph,
                           const std::function<Value(uint32_t id)>& replace);

}  // namespace lockstep::solve
