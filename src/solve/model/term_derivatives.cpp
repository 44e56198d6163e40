#include "solve/model/term_derivatives.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <unordered_map>

#include "core/hash.hpp"
#include "core/memo.hpp"
#include "solve/model/robust_loss.hpp"

namespace lockstep::solve {

using autodiff::Node;
using autodiff::Op;
using autodiff::Tape;

namespace {
/// Operations of H p times its columns, beyond which H is computed column by column.
constexpr int64_t kMostHessianOperations = 20'000;
}  // namespace

std::vector<Value> rebuild(std::span<const Value> values, Tape& graph,
                           const std::function<Value(uint32_t id)>& replace) {
  if (values.empty()) return {};
  const Tape& from = values[0].graph();
  std::unordered_map<uint32_t, Value> made;
  for (const uint32_t id : autodiff::reachable(values)) {
    if (const Value v = replace(id); v.valid()) {
      made[id] = v;
      continue;
    }
    const Node node = from.node(id);  // a copy: making nodes moves the store
    if (node.op == Op::constant) {
      made[id] = graph.constant(std::bit_cast<double>(node.imm));
    } else if (node.op == Op::leaf) {
      made[id] = Value(&graph, id);
    } else {
      std::vector<Value> args;
      for (const uint32_t a : node.args) args.push_back(made.at(a));
      made[id] = graph.make(node.op, args, int64_t(node.imm));
    }
  }
  std::vector<Value> result;
  for (const Value& v : values) result.push_back(made.at(v.id()));
  return result;
}

std::string TermDerivatives::key_of(const ExpressionKey& expression, std::span<const ConstantUse> constants) {
  std::string key = expression.key;
  for (const ConstantUse& c : constants) {
    key += char('0' + int(c.where));
    if (c.where == ConstantUse::Where::literal)
      key.append(reinterpret_cast<const char*>(&c.value), sizeof c.value);
  }
  return key;
}

std::shared_ptr<const TermDerivatives> TermDerivatives::shared(
    const std::shared_ptr<const ExpressionKey>& expression, std::vector<ConstantUse> constants) {
  static Memo<std::string, std::shared_ptr<const TermDerivatives>> known;
  if (expression->host)  // functions are not shared, regardless of their names
    return std::make_shared<const TermDerivatives>(expression, std::move(constants));
  return known.get(key_of(*expression, constants),
                   [&] { return std::make_shared<const TermDerivatives>(expression, std::move(constants)); });
}

TermDerivatives::TermDerivatives(std::shared_ptr<const ExpressionKey> expression,
                                 std::vector<ConstantUse> constants)
    : expression_(std::move(expression)),
      constants_(std::move(constants)),
      key_(key_of(*expression_, constants_)) {
  name_ = fmt::format("{}.{}", expression_->label, to_hex(hash128(key_)).substr(0, 8));
  for (const auto& slot : expression_->slots) {
    first_column_.push_back(columns_);
    widths_.push_back(slot->manifold.tangent);
    columns_ += widths_.back();
  }
  if (host())
    lay_out_host();
  else
    differentiate();
  order_rows();
  build_free_product();
}

void TermDerivatives::lay_out_host() {
  data_columns_ = expression_->data + int(expression_->weighted);
  for (const ConstantUse& c : constants_) {
    data_columns_ += c.where == ConstantUse::Where::column;
    uniforms_ += c.where == ConstantUse::Where::uniform;
  }
  for (int k = 0; k < rows() * columns_; ++k) entries_.push_back({k, 1});
}

Value TermDerivatives::leaf(Leaf::Kind kind, int slot, int index) {
  for (size_t k = 0; k < leaves_.size(); ++k)
    if (leaves_[k].kind == kind && leaves_[k].slot == slot && leaves_[k].index == index)
      return graph_.leaf_value(uint32_t(k));
  leaves_.push_back({kind, slot, index});
  switch (kind) {
    case Leaf::Kind::component: return graph_.variable(fmt::format("x{}_{}", slot, index));
    case Leaf::Kind::datum: return graph_.parameter(fmt::format("data{}", index));
    case Leaf::Kind::uniform: return graph_.parameter(fmt::format("constant{}", index));
    case Leaf::Kind::direction: return graph_.variable(fmt::format("p{}_{}", slot, index));
  }
  return {};
}

void TermDerivatives::build_inputs(std::vector<Value>& leaf_values, std::vector<Value>& constant_values) {
  data_columns_ = expression_->data + int(expression_->weighted);
  for (const ExpressionKey::Leaf& l : expression_->leaves)
    leaf_values.push_back(l.slot < 0 ? leaf(Leaf::Kind::datum, 0, l.index)
                                     : leaf(Leaf::Kind::component, l.slot, l.index));
  for (const ConstantUse& c : constants_) {
    switch (c.where) {
      case ConstantUse::Where::literal: constant_values.push_back(graph_.constant(c.value)); break;
      case ConstantUse::Where::uniform:
        constant_values.push_back(leaf(Leaf::Kind::uniform, 0, uniforms_++));
        break;
      case ConstantUse::Where::column:
        constant_values.push_back(leaf(Leaf::Kind::datum, 0, data_columns_++));
        break;
    }
  }
}

Value TermDerivatives::weigh(const Value& value) {
  return expression_->weighted ? leaf(Leaf::Kind::datum, 0, expression_->data) * value : value;
}

TermDerivatives::Moved TermDerivatives::move_blocks() {
  Moved moved;
  for (size_t s = 0; s < expression_->slots.size(); ++s) {
    const TracedManifold& m = *expression_->slots[s];
    std::vector<Value> x;
    for (int c = 0; c < m.manifold.ambient; ++c) x.push_back(leaf(Leaf::Kind::component, int(s), c));
    if (m.euclidean) {
      moved.inputs.insert(moved.inputs.end(), x.begin(), x.end());
      moved.blocks.push_back(x);
      continue;
    }
    std::vector<Value> delta;
    for (int c = 0; c < m.manifold.tangent; ++c) {
      delta.push_back(graph_.variable(fmt::format("delta{}_{}", s, c)));
      leaves_.push_back({Leaf::Kind::component, -1, -1});  // gone before anything is lowered
      moved.at_zero[delta.back().id()] = graph_.constant(0);
    }
    std::vector<Value> y = rebuild(m.plus, graph_, [&](uint32_t id) -> Value {
      const Node& node = m.graph->node(id);
      if (node.op != Op::leaf) return {};
      const size_t k = size_t(node.imm);
      return k < x.size() ? x[k] : delta[k - x.size()];
    });
    for (size_t c = 0; c < x.size(); ++c)
      if (y[c].id() != x[c].id()) moved.at_zero[y[c].id()] = x[c];
    moved.inputs.insert(moved.inputs.end(), delta.begin(), delta.end());
    moved.blocks.push_back(std::move(y));
  }
  return moved;
}

std::vector<Value> TermDerivatives::at_delta_zero(const Moved& moved, std::span<const Value> values) {
  return rebuild(values, graph_, [&](uint32_t id) {
    const auto found = moved.at_zero.find(id);
    return found == moved.at_zero.end() ? Value() : found->second;
  });
}

// Residuals are written in y = plus(x, delta), derived to delta, and then taken at delta = 0, where y is x.
void TermDerivatives::differentiate() {
  std::vector<Value> at_x, constants;
  build_inputs(at_x, constants);
  const Moved moved = move_blocks();
  std::vector<Value> at_y;
  for (size_t k = 0; k < at_x.size(); ++k) {
    const ExpressionKey::Leaf& l = expression_->leaves[k];
    at_y.push_back(l.slot < 0 ? at_x[k] : moved.blocks[size_t(l.slot)][size_t(l.index)]);
  }
  const int expression_constants = expression_->constants - expression_->loss_constants;
  const std::span<const Value> numbers = std::span(constants).first(size_t(expression_constants));
  const std::vector<Value> plain = expression_->residuals(graph_, at_x, numbers);
  const std::vector<Value> derived = expression_->residuals(graph_, at_y, numbers);
  if (energy())
    derive_energy(weigh(plain[0]), weigh(derived[0]), moved);
  else
    derive_residuals(plain, derived, moved, std::span(constants).last(size_t(expression_->loss_constants)));
}

void TermDerivatives::derive_energy(const Value& plain, const Value& derived, const Moved& moved) {
  cost_ = plain;
  const std::vector<Value> first = autodiff::gradient(derived, moved.inputs);
  gradient_ = at_delta_zero(moved, first);
  build_hessian(first, moved);
}

void TermDerivatives::derive_residuals(const std::vector<Value>& plain, const std::vector<Value>& derived,
                                       const Moved& moved, std::span<const Value> loss_numbers) {
  Value squares = plain[0] * plain[0];
  for (size_t k = 1; k < plain.size(); ++k) squares = squares + plain[k] * plain[k];
  const bool has_loss = expression_->has_loss() || expression_->weighted;
  const Value rho = weigh(expression_->rho(squares, loss_numbers));
  cost_ = 0.5 * rho;
  plain_ = plain;
  slope_ = has_loss ? autodiff::gradient(rho, {squares})[0] : graph_.constant(1);
  // An expression may fall somewhere, or be convex; a named loss does not, and is not.
  rise_ = expression_->loss_expression ? max(slope_, graph_.constant(0)) : slope_;
  const Value weight = has_loss ? sqrt(rise_) : slope_;
  Value root, along;  // sqrt(D), and what r (r^T J) counts in J, where the loss may be convex
  if (expression_->loss_expression) {
    const Value second = autodiff::gradient(slope_, {squares})[0];
    if (graph_.node(second.id()).op != Op::constant) {
      bend_ = select(slope_ > 0, max(second, graph_.constant(0)), 0);
      const Value ratio = bend_ / select(slope_ > 0, slope_, 1);
      root = sqrt(1 + 2.0 * squares * ratio);
      along = 2.0 * ratio / (1 + root);
    }
  }
  std::vector<Value> seeds;
  for (const Value& r : plain) {
    residuals_.push_back(bend_.valid() ? weight / root * r : weight * r);
    seeds.push_back(slope_ * r);
  }
  gradient_ = at_delta_zero(moved, autodiff::vjp(derived, seeds, moved.inputs));
  derived_ = derived, inputs_ = moved.inputs;
  std::vector<Value> jacobian = at_delta_zero(moved, jacobian_of(derived, moved.inputs));
  if (bend_.valid()) add_along_residuals(jacobian, along);
  for (Value& v : jacobian) v = weight * v;
  store_jacobian(jacobian);
}

void TermDerivatives::add_along_residuals(std::vector<Value>& jacobian, const Value& factor) const {
  const size_t columns = inputs_.size();
  for (size_t c = 0; c < columns; ++c) {
    // The columns of an alias have the same expressions, up to their sign.
    bool negative = false;
    for (size_t r = 0; r < plain_.size() && !negative; ++r)
      negative = graph_.node(jacobian[r * columns + c].id()).op == Op::neg;
    const auto entry = [&](size_t r) {
      const Value& v = jacobian[r * columns + c];
      return negative ? -v : v;
    };
    Value dot = plain_[0] * entry(0);
    for (size_t r = 1; r < plain_.size(); ++r) dot = dot + plain_[r] * entry(r);
    for (size_t r = 0; r < plain_.size(); ++r) {
      const Value sum = entry(r) + factor * plain_[r] * dot;
      jacobian[r * columns + c] = negative ? -sum : sum;
    }
  }
}

// By reverse mode row by row, or forward mode column by column, whichever are fewer.
std::vector<Value> TermDerivatives::jacobian_of(const std::vector<Value>& outputs,
                                                const std::vector<Value>& inputs) {
  const size_t rows = outputs.size();
  std::vector<Value> jacobian(rows * inputs.size());
  if (rows <= inputs.size()) {
    std::vector<Value> seed(rows, graph_.constant(0));
    for (size_t r = 0; r < rows; ++r) {
      seed[r] = graph_.constant(1);
      const std::vector<Value> row = autodiff::vjp(outputs, seed, inputs);
      seed[r] = graph_.constant(0);
      std::copy(row.begin(), row.end(), jacobian.begin() + int64_t(r * inputs.size()));
    }
    return jacobian;
  }
  std::vector<Value> direction(inputs.size(), graph_.constant(0));
  for (size_t c = 0; c < inputs.size(); ++c) {
    direction[c] = graph_.constant(1);
    const std::vector<Value> column = autodiff::jvp(outputs, inputs, direction);
    direction[c] = graph_.constant(0);
    for (size_t r = 0; r < rows; ++r) jacobian[r * inputs.size() + c] = column[r];
  }
  return jacobian;
}

std::vector<Value> TermDerivatives::directions() {
  std::vector<Value> p;
  for (int s = 0; s < int(widths_.size()); ++s)
    for (int c = 0; c < widths_[size_t(s)]; ++c) p.push_back(leaf(Leaf::Kind::direction, s, c));
  return p;
}

// Forward over reverse: one direction as data where all columns as expressions would be too long a kernel.
void TermDerivatives::build_hessian(std::span<const Value> gradient, const Moved& moved) {
  std::vector<Value> product = at_delta_zero(moved, autodiff::jvp(gradient, moved.inputs, directions()));
  if (int64_t(autodiff::reachable(product).size()) * columns_ > kMostHessianOperations) {
    hessian_product_ = std::move(product);
    return;
  }
  std::vector<Value> hessian;
  std::vector<Value> direction(moved.inputs.size(), graph_.constant(0));
  for (size_t c = 0; c < moved.inputs.size(); ++c) {
    direction[c] = graph_.constant(1);
    const std::vector<Value> column = autodiff::jvp(gradient.first(c + 1), moved.inputs, direction);
    direction[c] = graph_.constant(0);
    hessian.insert(hessian.end(), column.begin(), column.end());  // H[0 … c][c]
  }
  hessian = at_delta_zero(moved, hessian);
  for (int row = 0; row < columns_; ++row)
    for (int column = row; column < columns_; ++column)
      stored_.push_back(hessian[size_t(column * (column + 1) / 2 + row)]);
}

void TermDerivatives::store_jacobian(std::span<const Value> jacobian) {
  std::map<uint32_t, int> index;
  for (const Value& v : jacobian) {
    const Node& node = graph_.node(v.id());
    if (node.op == Op::constant) {
      entries_.push_back({-1, std::bit_cast<double>(node.imm)});
      continue;
    }
    const Value positive = node.op == Op::neg ? Value(&graph_, node.args[0]) : v;
    const auto [at, added] = index.try_emplace(positive.id(), int(stored_.size()));
    if (added) stored_.push_back(positive);
    entries_.push_back({at->second, node.op == Op::neg ? -1.0 : 1.0});
  }
}

void TermDerivatives::find_aliases() {
  for (int s = 0; s < int(widths_.size()); ++s) {
    aliases_.push_back({s, 1});
    for (int other = 0; other < s && !energy() && !host() && aliases_.back().slot == s; ++other) {
      if (aliases_[size_t(other)].slot != other || widths_[size_t(other)] != widths_[size_t(s)]) continue;
      for (const int sign : {1, -1}) {
        bool same = true;
        for (int r = 0; r < rows() && same; ++r)
          for (int c = 0; c < widths_[size_t(s)] && same; ++c) {
            const Entry &a = entry(r, first_column_[size_t(other)] + c),
                        &b = entry(r, first_column_[size_t(s)] + c);
            same = a.stored == b.stored && a.factor == sign * b.factor;
          }
        if (same) {
          aliases_.back() = {other, sign};
          break;
        }
      }
    }
  }
}

void TermDerivatives::order_rows() {
  find_aliases();
  std::map<int, SlotClass> by_width;
  for (int s = 0; s < int(widths_.size()); ++s) {
    SlotClass& c = by_width[widths_[size_t(s)]];
    c.width = widths_[size_t(s)];
    if (aliases_[size_t(s)].slot == s) c.slots.push_back(s);
  }
  for (auto& [width, c] : by_width) {
    c.first_row = slot_rows_, c.first_diagonal = diagonal_rows_;
    slot_rows_ += width * int(c.slots.size());
    diagonal_rows_ += diagonal_parts(width) * int(c.slots.size());
    if (!energy() && !host()) {
      const auto value = [&](int row, int column) {
        const Entry& e = entry(row, column);
        return e.stored < 0 ? graph_.constant(e.factor) : e.factor * stored_[size_t(e.stored)];
      };
      for (int a = 0; a < width; ++a)
        for (int b = a; b < (width <= kWidestInverse ? width : a + 1); ++b)
          for (const int s : c.slots) {
            const int first = first_column_[size_t(s)];
            Value sum = value(0, first + a) * value(0, first + b);
            for (int r = 1; r < rows(); ++r) sum = sum + value(r, first + a) * value(r, first + b);
            diagonal_.push_back(sum);
          }
    }
    classes_.push_back(c);
  }
  if (!host()) gradient_ = by_slot_rows(gradient_);
}

std::vector<Value> TermDerivatives::by_slot_rows(const std::vector<Value>& by_column) const {
  std::vector<Value> rows;
  for (const SlotClass& c : classes_)
    for (int k = 0; k < c.width; ++k)
      for (const int s : c.slots) rows.push_back(by_column[size_t(first_column_[size_t(s)] + k)]);
  return rows;
}

void TermDerivatives::build_free_product() {
  if (energy() || host()) return;
  for (const auto& slot : expression_->slots)
    if (!slot->euclidean) return;
  std::vector<Value> t = autodiff::jvp(derived_, inputs_, directions());
  Value dot;  // r^T J p
  for (size_t r = 0; r < t.size() && bend_.valid(); ++r)
    dot = r == 0 ? plain_[r] * t[r] : dot + plain_[r] * t[r];
  for (size_t r = 0; r < t.size(); ++r)
    t[r] = bend_.valid() ? rise_ * t[r] + 2.0 * bend_ * plain_[r] * dot : rise_ * t[r];
  free_product_ = by_slot_rows(autodiff::vjp(derived_, t, inputs_));
}

bool TermDerivatives::serves(int stored_slot, uint64_t slots) const {
  for (int s = 0; s < int(aliases_.size()); ++s)
    if (aliases_[size_t(s)].slot == stored_slot && (slots & slot_bit(s))) return true;
  return false;
}

Value TermDerivatives::matrix_entry(Tape& graph, std::span<const Value> stored, int row, int column) const {
  if (energy()) {
    const int a = std::min(row, column), b = std::max(row, column);
    return stored[size_t(a * columns_ - a * (a - 1) / 2 + b - a)];
  }
  const Entry& e = entry(row, column);
  return e.stored < 0 ? graph.constant(e.factor) : e.factor * stored[size_t(e.stored)];
}

std::unique_ptr<TermDerivatives::Product> TermDerivatives::product(uint64_t inputs, uint64_t outputs) const {
  auto product = std::make_unique<Product>();
  Tape& graph = product->graph;
  std::vector<Value> j, p;
  for (int k = 0; k < stored_count(); ++k) j.push_back(graph.parameter(fmt::format("j{}", k)));
  for (int c = 0; c < columns_; ++c) p.push_back(graph.variable(fmt::format("p{}", c)));
  for (int s = 0; s < int(widths_.size()); ++s)
    for (int c = 0; c < widths_[size_t(s)] && !(inputs & slot_bit(s)); ++c)
      p[size_t(first_column_[size_t(s)] + c)] = graph.constant(0);
  const auto sum_over = [&](int count, const std::function<Value(int)>& term) {
    Value sum = graph.constant(0);
    for (int k = 0; k < count; ++k) sum = sum + term(k);
    return sum;
  };
  const auto times_p = [&](int row) {
    return sum_over(columns_, [&](int c) { return matrix_entry(graph, j, row, c) * p[size_t(c)]; });
  };
  std::vector<Value> t;
  for (int r = 0; r < rows() && !energy(); ++r) t.push_back(times_p(r));
  for (const SlotClass& c : classes_)
    for (int k = 0; k < c.width; ++k)
      for (size_t rank = 0; rank < c.slots.size(); ++rank) {
        if (!serves(c.slots[rank], outputs)) continue;
        const int column = first_column_[size_t(c.slots[rank])] + k;
        product->rows.push_back(c.first_row + k * int(c.slots.size()) + int(rank));
        product->values.push_back(energy() ? times_p(column) : sum_over(rows(), [&](int r) {
          return matrix_entry(graph, j, r, column) * t[size_t(r)];
        }));
      }
  return product;
}

}  // namespace lockstep::solve
