// Conjugate gradients on the Schur complement S = U - W V^-1 W^T of the blocks of one set, which no term has
// twice, so that V is their block diagonal. S is never formed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "solve/linear/krylov/conjugate_gradients.hpp"

namespace lockstep::solve {

namespace {

using autodiff::Lowering;

/// The eliminated set, and its slot in each batch (-1: none).
struct Elimination {
  int set = -1;
  std::vector<int> slot;
};

/// Whether no instance has blocks of the set in two slots, and every slot is all in it or all out of it.
std::optional<Elimination> try_set(const Evaluator::State& s, int set) {
  const SetState& blocks = s.sets[size_t(set)];
  Elimination result{set, {}};
  for (const BatchState& batch : s.batches) {
    int slot = -1;
    for (int k = 0; k < int(batch.term->widths().size()); ++k) {
      int64_t inside = 0;
      for (int64_t i = 0; i < batch.n; ++i) {
        const int64_t b = batch.blocks[size_t(k * batch.n + i)];
        inside += b >= blocks.first_block && b < blocks.first_block + blocks.count;
      }
      if (inside == 0) continue;
      if (inside != batch.n || slot >= 0) return {};
      slot = k;
    }
    result.slot.push_back(slot);
  }
  return result;
}

/// The set of the first group of the order, if one is given, else the one with most blocks.
Elimination choose(const Evaluator::State& s, std::span<const int32_t> order) {
  std::optional<Elimination> best;
  if (s.layout && s.layout->split) best = try_set(s, int(s.sets.size()) - 1);
  for (int k = 0; k < int(s.sets.size()) && s.sets.size() > 1 && !s.layout; ++k) {
    if (s.sets[size_t(k)].count == 0 || s.sets[size_t(k)].tangent() > kWidestInverse) continue;
    if (!order.empty() && order[size_t(s.sets[size_t(k)].first_tangent)] != 0) continue;
    if (best && s.sets[size_t(k)].count <= s.sets[size_t(best->set)].count) continue;
    if (const auto found = try_set(s, k)) best = found;
  }
  if (!best)
    throw InputError("no set of blocks that can be eliminated", "solve schur_pcg",
                     "two sets or more, and one that no term has in two slots");
  return *best;
}

uint64_t kept_slots(int eliminated) {
  return eliminated < 0 ? TermDerivatives::kAllSlots : ~TermDerivatives::slot_bit(eliminated);
}

/// Products from the kept slots to the eliminated one, from all to the kept, from the eliminated to the kept.
std::array<SlotMask, 3> masks_of(int eliminated) {
  const uint64_t out = eliminated < 0 ? 0 : TermDerivatives::slot_bit(eliminated), kept = ~out;
  return {SlotMask{kept, out}, SlotMask{TermDerivatives::kAllSlots, kept}, SlotMask{out, kept}};
}

/// Contribution of each instance to the diagonal blocks of S.
class SchurDiagonal {
 public:
  SchurDiagonal(const TermDerivatives& term, Storage real, int slot, Parameters& p)
      : term_(term),
        slot_(slot),
        width_(slot < 0 ? 0 : term.widths()[size_t(slot)]),
        type_(value_type(real)),
        blocks_(p.write("blocks", real, 2)) {
    const int stored = term.stored_count();
    if (stored > 0) jacobian_.emplace(p.read("jacobian", real, 2));
    if (slot >= 0) {
      inverse_.emplace(p.read("inverse", real, 2));
      tangents_.emplace(p.read<i32, 2>("tangents"));
      first_.emplace(p.scalar<i32>("first"));
    }
    for (int k = 0; k < stored; ++k) stored_.push_back(graph_.parameter("j"));
    for (int k = 0; k < width_ * (width_ + 1) / 2; ++k) inverses_.push_back(graph_.parameter("v"));
  }

  void trace(const Val<i32>& instance) {
    std::optional<Val<i32>> own;  // the eliminated block's place in its set
    if (slot_ >= 0) own.emplace(((*tangents_)(slot_, instance) - *first_) / width_);
    const int stored = term_.stored_count();
    Lowering lower(graph_, type_, [&](uint32_t leaf) {
      return int(leaf) < stored ? jacobian_->load({int(leaf), instance})
                                : inverse_->load({int(leaf) - stored, *own});
    });
    for (const TermDerivatives::SlotClass& c : term_.classes())
      for (size_t rank = 0; rank < c.slots.size(); ++rank) {
        if (c.width > kWidestInverse || !term_.serves(c.slots[rank], kept_slots(slot_))) continue;
        const std::vector<Value> parts = diagonal_of(c.slots[rank], c.width);
        for (size_t part = 0; part < parts.size(); ++part)
          blocks_.store({c.first_diagonal + int(part * c.slots.size() + rank), instance}, lower(parts[part]));
      }
  }

 private:
  /// Product of two columns of J, or the entry of H.
  Value product(int a, int b) {
    const auto entry = [&](int row, int column) { return term_.matrix_entry(graph_, stored_, row, column); };
    if (term_.energy()) return entry(a, b);
    Value sum = entry(0, a) * entry(0, b);
    for (int r = 1; r < term_.rows(); ++r) sum = sum + entry(r, a) * entry(r, b);
    return sum;
  }
  const Value& inverse(int row, int column) const {
    const int low = std::min(row, column), high = std::max(row, column);
    return inverses_[size_t(low * width_ - low * (low - 1) / 2 + high - low)];
  }
  /// Upper triangle of a slot's block of U - W V^-1 W^T.
  std::vector<Value> diagonal_of(int slot, int width) {
    const int at = term_.first_column()[size_t(slot)];
    std::vector<std::vector<Value>> with(static_cast<size_t>(width)), solved(static_cast<size_t>(width));
    for (size_t a = 0; a < with.size(); ++a) {
      for (int e = 0; e < width_; ++e)
        with[a].push_back(product(at + int(a), term_.first_column()[size_t(slot_)] + e));
      for (int e = 0; e < width_; ++e) {
        Value sum = with[a][0] * inverse(0, e);
        for (int f = 1; f < width_; ++f) sum = sum + with[a][size_t(f)] * inverse(f, e);
        solved[a].push_back(sum);
      }
    }
    std::vector<Value> parts;
    for (size_t a = 0; a < with.size(); ++a)
      for (size_t d = a; d < with.size(); ++d) {
        Value sum = product(at + int(a), at + int(d));
        for (size_t e = 0; e < size_t(width_); ++e) sum = sum - solved[a][e] * with[d][e];
        parts.push_back(sum);
      }
    return parts;
  }

  const TermDerivatives& term_;
  int slot_, width_;  // of the eliminated blocks; -1, 0: none
  Type type_;
  AnyGrid blocks_;
  std::optional<AnyGrid> jacobian_, inverse_;
  std::optional<Grid<i32, 2>> tangents_;
  std::optional<Val<i32>> first_;
  autodiff::Tape graph_;
  std::vector<Value> stored_, inverses_;  // leaves, in this order
};

/// Points kernel over instances: `blocks` (diagonal_rows, n); `jacobian` where any is stored; for an
/// eliminated slot `inverse` (parts, blocks), `tangents` (slots, n) and `first`, its set's first tangent
/// coordinate.
Kernel diagonal_kernel(const std::shared_ptr<const TermDerivatives>& term, Storage real, int slot) {
  const std::string variant = fmt::format("{}.{}", name(real), slot);
  return cached_kernel(fmt::format("schur diagonal {} {}", variant, term->key()), [&] {
    return kernel(fmt::format("solve.{}.schur_diagonal.{}", term->name(), variant),
                  [&](At<1> at, Parameters& p) { SchurDiagonal(*term, real, slot, p).trace(at.x); });
  });
}

/// right = wy - g.
Kernel combine_kernel(Storage real) {
  const std::string name = fmt::format("solve.schur_combine.{}", lockstep::name(real));
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid g = p.read("g", real, 1), wy = p.read("wy", real, 1), right = p.write("right", real, 1);
      right.store({at.x}, wy.load({at.x}) - g.load({at.x}));
    });
  });
}

/// q += g.
Kernel add_kernel(Storage real) {
  const std::string name = fmt::format("solve.schur_add.{}", lockstep::name(real));
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid g = p.read("g", real, 1), q = p.read_write("q", real, 1);
      q.store({at.x}, q.load({at.x}) + g.load({at.x}));
    });
  });
}

class SchurSolver : public LinearSolver {
 public:
  explicit SchurSolver(int max_iterations) : max_iterations_(max_iterations) {}

  void hold(std::vector<uint8_t> held) override { held_.set(std::move(held)); }

  void compile_ahead(const Evaluator& evaluator) const override {
    const Evaluator::State& s = evaluator.internals();
    const Storage real = s.values.real;
    const Elimination elimination = choose(s, order_);
    for (const SetState& set : s.sets)
      for (const auto& make : block_kernels(s, set, &set == &s.sets[size_t(elimination.set)]))
        s.compile(make);
    for (size_t k = 0; k < s.batches.size(); ++k) {
      const auto term = s.batches[k].term;
      const int slot = elimination.slot[k];
      if (k > 0 && term == s.batches[k - 1].term) continue;
      s.compile([=] { return diagonal_kernel(term, real, slot); });
      for (const SlotMask& mask : masks_of(slot))
        if (mask.inputs != 0 && mask.outputs != 0 && !term->host())
          s.compile([=] { return product_kernel(term, real, mask); });
    }
    for (const auto& make : ConjugateGradients::kernels(real)) s.compile(make);
    s.compile([=] { return combine_kernel(real); });
    s.compile([=] { return add_kernel(real); });
  }

  void prepare(Evaluator& evaluator) override {
    evaluator.internals().ensure_jacobian();
    const Evaluator::State& s = evaluator.internals();
    held_.upload(s.device, s.tangent);
    if (!cg_ || evaluator_id_ != s.id) build(s);
    held_.leave_out(eliminated_);
  }

  void build(const Evaluator::State& s) {
    evaluator_id_ = s.id;
    state_ = &s;
    elimination_ = choose(s, order_);
    const SetState& set = s.sets[size_t(elimination_.set)];
    to_kept_.clear(), to_eliminated_.clear(), from_eliminated_.clear();
    for (size_t k = 0; k < s.batches.size(); ++k) {
      const std::array<SlotMask, 3> masks = masks_of(elimination_.slot[k]);
      to_eliminated_.push_back(masks[0]);
      to_kept_.push_back(masks[1]);
      from_eliminated_.push_back(masks[2]);
    }
    schur_diagonal_ = s.device.allocate(s.values.real, {s.diagonal_size});
    for (Buffer* b : {&right_, &vector_, &product_, &kept_}) {
      *b = s.device.allocate(s.values.real, {s.tangent});
      s.device.clear(*b);
    }
    std::vector<BlockPart> kept;
    for (BlockPart& part : block_parts(s)) {
      if (part.first_tangent == set.first_tangent && part.width == set.tangent()) {
        eliminated_ = std::move(part);
        continue;
      }
      if (part.width == set_width(part.first_tangent)) {
        const size_t k = set_at(part.first_tangent);
        part.triangles = schur_diagonal_.rows(s.first_diagonal[k], part.triangles.elements())
                             .reshape({part.count, part.triangles.shape()[1]});
      }
      kept.push_back(std::move(part));
    }
    cg_ = std::make_unique<ConjugateGradients>(
        s.device, s.values.real, kept_size(), std::move(kept),
        [this](const Buffer& p, const Buffer& q) { multiply(p, q); }, s.multiplies_on_host());
  }

  LinearResult solve(Evaluator& evaluator, double lambda, double forcing, const Buffer& step) override {
    const Evaluator::State& s = *state_;
    const Device& device = s.device;
    s.ahead->check();
    cg_->set_parameters(lambda, forcing, max_iterations_, damping_);
    invert_blocks(device, eliminated_, cg_->parameters());
    find_diagonal();
    for (const BlockPart& part : cg_->parts()) held_.leave_out(part);
    for (const BlockPart& part : cg_->parts()) invert_blocks(device, part, cg_->parameters());

    // Right side: -(g - W V^-1 g_e), 0 at the eliminated blocks.
    device.clear(vector_);
    apply_inverse(device, eliminated_, 1, evaluator.gradient(), vector_);
    s.multiply(vector_, product_, from_eliminated_);
    device.launch(combine_kernel(s.values.real), {s.tangent},
                  Arguments().set("g", s.gradient).set("wy", product_).set("right", right_));
    device.clear(own(right_));
    held_.clear_in(right_);
    LinearResult result = cg_->solve(right_.rows(0, kept_size()), kept_.rows(0, kept_size()));
    // Eliminated blocks: -V^-1 (g_e + W^T x).
    device.clear(own(kept_));
    s.multiply(kept_, product_, to_eliminated_, false);
    add_gradient(product_);
    device.copy(kept_, step);
    apply_inverse(device, eliminated_, -1, product_, step);
    return result;
  }

 private:
  /// Numbers of the vectors of conjugate gradients: with parts those that all ranks have, else all, of which the eliminated
  /// ones stay 0.
  int64_t kept_size() const { return state_->parts ? state_->parts->shared().tangent : state_->tangent; }
  Buffer own(const Buffer& v) const { return v.rows(eliminated_.first_tangent, eliminated_.numbers()); }
  size_t set_at(int64_t first_tangent) const {
    size_t k = 0;
    while (state_->sets[k].first_tangent != first_tangent || state_->sets[k].count == 0) ++k;
    return k;
  }
  int set_width(int64_t first_tangent) const { return state_->sets[set_at(first_tangent)].tangent(); }

  /// product += g.
  void add_gradient(const Buffer& product) const {
    state_->device.launch(add_kernel(state_->values.real), {state_->tangent},
                          Arguments().set("g", state_->gradient).set("q", product));
  }

  void multiply(const Buffer& p, const Buffer& q) const {
    const Evaluator::State& s = *state_;
    s.multiply(p, product_, to_eliminated_, false);
    s.device.copy(p, vector_.rows(0, kept_size()));
    apply_inverse(s.device, eliminated_, -1, product_, vector_);
    s.multiply(vector_, q, to_kept_);
    cg_->add_damping(s.diagonal, p, q);
    if (q.elements() == s.tangent) s.device.clear(own(q));
    held_.clear_in(q);
  }

  void find_diagonal() const {
    const Evaluator::State& s = *state_;
    const Buffer sums = s.begin_sum(PartSums::Vector::diagonal, schur_diagonal_);
    for (size_t k = 0; k < s.batches.size(); ++k) {
      const BatchState& batch = s.batches[k];
      const int slot = elimination_.slot[k];
      Arguments arguments;
      arguments.set("blocks", batch.diagonal_slots);
      if (batch.term->stored_count() > 0) arguments.set("jacobian", batch.jacobian);
      if (slot >= 0)
        arguments.set("inverse", eliminated_.inverse)
            .set("tangents", batch.tangent_at)
            .set("first", eliminated_.first_tangent);
      s.device.launch(diagonal_kernel(batch.term, s.values.real, slot), {batch.n}, arguments);
      for (const ClassSums& c : batch.sums) {
        const auto& slots = c.slots.slots;
        if (c.slots.width > kWidestInverse || std::none_of(slots.begin(), slots.end(), [&](int one) {
              return batch.term->serves(one, kept_slots(slot));
            }))
          continue;
        const int parts = diagonal_parts(c.slots.width);
        const int64_t stored = int64_t(slots.size());
        c.gather.add(batch.diagonal_slots.rows(c.slots.first_diagonal, parts * stored)
                         .reshape({parts, stored * batch.n}),
                     parts, false, c.few_diagonal, c.many_diagonal, sums);
      }
    }
    s.end_sum(PartSums::Vector::diagonal, sums, schur_diagonal_);
  }

  int max_iterations_;
  uint64_t evaluator_id_ = 0;
  const Evaluator::State* state_ = nullptr;
  Elimination elimination_;
  std::vector<SlotMask> to_kept_, to_eliminated_, from_eliminated_;
  HeldCoordinates held_;
  Buffer schur_diagonal_, right_, vector_, product_, kept_;
  BlockPart eliminated_;
  std::unique_ptr<ConjugateGradients> cg_;
};

}  // namespace

std::unique_ptr<LinearSolver> make_schur_solver(int max_iterations) {
  return std::make_unique<SchurSolver>(std::max(1, max_iterations));
}

}  // namespace lockstep::solve
