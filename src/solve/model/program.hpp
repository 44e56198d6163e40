// Everything that is computed for one instance of a topology, as expressions: cost, residuals, derivatives.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "solve/model/topology.hpp"

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
class Program {
 public:
  Program(std::shared_ptr<const Topology> topology, std::vector<ConstantUse> constants);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Where the number behind a leaf of graph() stands.
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

  const Topology& topology() const { return *topology_; }
  const std::string& key() const { return key_; }    // of topology and constants: equal keys, equal kernels
  const std::string& name() const { return name_; }  // for kernels: a label and a part of the key's hash
  const autodiff::Graph& graph() const { return graph_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  int data_columns() const { return data_columns_; }  // data, then constants that are columns
  const std::vector<ConstantUse>& constants() const { return constants_; }
  int uniforms() const { return uniforms_; }

  int rows() const { return energy() ? columns_ : topology_->rows; }  // of the Jacobian, or of the Hessian
  int columns() const { return columns_; }
  bool energy() const { return topology_->energy; }
  const std::vector<int>& widths() const { return widths_; }
  const std::vector<int>& first_column() const { return first_column_; }
  const std::vector<SlotClass>& classes() const { return classes_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  int slot_rows() const { return slot_rows_; }  // rows of all classes
  int diagonal_rows() const { return diagonal_rows_; }

  /// 1/2 rho(|r|^2), or the energy.
  const Value& cost() const { return cost_; }
  /// sqrt(rho') r. As every loss is concave, the second-order term of Triggs' correction is 0.
  const std::vector<Value>& residuals() const { return residuals_; }
  /// By slot_rows().
  const std::vector<Value>& gradient() const { return gradient_; }
  /// The different numbers of the Jacobian (sqrt(rho') times the residuals'); of an energy, the upper
  /// triangle of its Hessian, row by row, or nothing where hessian_product() stands for it.
  const std::vector<Value>& stored() const { return stored_; }
  /// How many numbers of an instance are stored.
  int stored_count() const {
    return hessian_product_.empty() ? int(stored_.size()) : columns_ * (columns_ + 1) / 2;
  }
  /// H p of an energy by column, with p in leaves of kind `direction` (slot and component); where the
  /// entries of H as expressions would be too many operations, else empty.
  const std::vector<Value>& hessian_product() const { return hessian_product_; }
  const Entry& entry(int row, int column) const { return entries_[size_t(row * columns_ + column)]; }
  /// Blocks of J^T J on the diagonal, by diagonal_rows(); not for energies.
  const std::vector<Value>& diagonal() const { return diagonal_; }

  /// J^T (J p) by slot_rows(), with J from the state instead of stored numbers and p in leaves of kind
  /// `direction`; where all slots are Euclidean and the program is no energy, else empty.
  const std::vector<Value>& free_product() const { return free_product_; }

  /// J^T (J p), or H p: leaves are the stored numbers, then p by column. p is taken as 0 outside of the slots
  /// `inputs`; only what slots `outputs` need is there. Sets of slots have bit min(slot, 63).
  struct Product {
    autodiff::Graph graph;
    std::vector<int> rows;  // of slot_rows()
    std::vector<Value> values;
  };
  std::unique_ptr<Product> product(uint64_t inputs, uint64_t outputs) const;
  static constexpr uint64_t kAllSlots = ~uint64_t(0);
  static uint64_t slot_bit(int slot) { return uint64_t(1) << std::min(slot, 63); }
  /// Whether derivatives to a stored slot are those of one of `slots`, itself or by alias.
  bool serves(int stored_slot, uint64_t slots) const;
  /// Entry (row, column) of J, or H, where the stored numbers are `stored`.
  Value matrix_entry(autodiff::Graph& graph, std::span<const Value> stored, int row, int column) const;

 private:
  Value leaf(Leaf::Kind kind, int slot, int index);
  void build_inputs(std::vector<Value>& leaf_values, std::vector<Value>& constant_values);
  void differentiate();
  void build_hessian(std::span<const Value> gradient, std::span<const Value> inputs,
                     const std::function<std::vector<Value>(std::span<const Value>)>& at_delta_zero);
  std::vector<Value> directions();
  void store_jacobian(std::span<const Value> jacobian);
  void find_aliases();
  void order_rows();
  std::vector<Value> by_slot_rows(const std::vector<Value>& by_column) const;
  void build_free_product();

  std::shared_ptr<const Topology> topology_;
  std::vector<ConstantUse> constants_;
  std::string key_, name_;
  autodiff::Graph graph_;
  std::vector<Leaf> leaves_;
  int data_columns_ = 0, uniforms_ = 0, columns_ = 0, slot_rows_ = 0, diagonal_rows_ = 0;
  std::vector<int> widths_, first_column_;
  std::vector<SlotClass> classes_;
  std::vector<Alias> aliases_;
  Value cost_;
  std::vector<Value> residuals_, gradient_, stored_, diagonal_, free_product_, hessian_product_;
  std::vector<Entry> entries_;
  std::vector<Value> derived_, inputs_;  // residuals and what they are derived to
  Value slope_;                          // rho'
};

/// `values` again in `graph`, where `replace` gives what stands for a node (an empty Value: the node stays).
std::vector<Value> rebuild(std::span<const Value> values, autodiff::Graph& graph,
                           const std::function<Value(uint32_t id)>& replace);

}  // namespace lockstep::solve
