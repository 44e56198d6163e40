// Conjugate gradients on the Schur complement S = U - W V^-1 W^T of the blocks of one set, which no term has
// twice, so that V is their block diagonal. S is never formed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "solve/linear/conjugate_gradients.hpp"
#include "solve/model/traced_buffer.hpp"

namespace lockstep::solve {

namespace {

using ir::Id;

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
    for (int k = 0; k < int(batch.program->widths().size()); ++k) {
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

Elimination choose(const Evaluator::State& s) {
  std::optional<Elimination> best;
  for (int k = 0; k < int(s.sets.size()) && s.sets.size() > 1; ++k) {
    if (s.sets[size_t(k)].count == 0 || s.sets[size_t(k)].tangent() > kWidestInverse) continue;
    if (best && s.sets[size_t(k)].count <= s.sets[size_t(best->set)].count) continue;
    if (const auto found = try_set(s, k)) best = found;
  }
  if (!best)
    throw InputError("no set of blocks that can be eliminated", "solve schur_pcg",
                     "two sets or more, and one that no term has in two slots");
  return *best;
}

uint64_t kept_slots(int eliminated) {
  return eliminated < 0 ? Program::kAllSlots : ~Program::slot_bit(eliminated);
}

/// Products from the kept slots to the eliminated one, from all to the kept, from the eliminated to the kept.
std::array<SlotMask, 3> masks_of(int eliminated) {
  const uint64_t out = eliminated < 0 ? 0 : Program::slot_bit(eliminated), kept = ~out;
  return {SlotMask{kept, out}, SlotMask{Program::kAllSlots, kept}, SlotMask{out, kept}};
}

/// Points kernel over instances: what each adds to the diagonal blocks of S. Arguments: stored Jacobian; for
/// an eliminated slot: inverse (parts, blocks), tangent offsets (slots, n), its set's first tangent
/// coordinate; blocks (diagonal_rows, n).
Kernel diagonal_kernel(std::shared_ptr<const Program> program, Storage real, int slot) {
  const std::string variant = fmt::format("{}.{}", name(real), slot);
  return cached_kernel(fmt::format("schur diagonal {} {}", variant, program->key()), [&] {
    return Kernel::trace(
        fmt::format("solve.{}.schur_diagonal.{}", program->name(), variant), ir::Domain::points, 1, {},
        [program, real, slot](ir::Builder& b) {
          const Program& p = *program;
          const int stored = p.stored_count();
          const int width = slot < 0 ? 0 : p.widths()[size_t(slot)];
          std::optional<TracedBuffer> jacobian, inverse, tangents;
          if (stored > 0) jacobian.emplace("jacobian", real, 2, ir::Access::read);
          Id first = ir::kNone;
          if (slot >= 0) {
            inverse.emplace("inverse", real, 2, ir::Access::read);
            tangents.emplace("tangents", Storage::i32, 2, ir::Access::read);
            first = traced_scalar("first", Type::i32);
          }
          const TracedBuffer blocks("blocks", real, 2, ir::Access::write);
          const Id i = b.emit(ir::Op::coord, Type::i32, {}, 0);
          Id own = ir::kNone;
          if (slot >= 0)
            own = b.op(ir::Op::idiv,
                       {b.op(ir::Op::isub, {tangents->load({b.i32(slot), i}), first}), b.i32(width)});

          autodiff::Graph graph;
          std::vector<Value> j, v;
          for (int k = 0; k < stored; ++k) j.push_back(graph.parameter("j"));
          for (int k = 0; k < width * (width + 1) / 2; ++k) v.push_back(graph.parameter("v"));
          Lowering lower(graph, value_type(real), [&](uint32_t leaf) {
            return int(leaf) < stored ? jacobian->load({b.i32(int(leaf)), i})
                                      : inverse->load({b.i32(int(leaf) - stored), own});
          });
          const auto entry = [&](int row, int column) { return p.matrix_entry(graph, j, row, column); };
          const auto product = [&](int a, int c) {  // of two columns
            if (p.energy()) return entry(a, c);
            Value sum = entry(0, a) * entry(0, c);
            for (int r = 1; r < p.rows(); ++r) sum = sum + entry(r, a) * entry(r, c);
            return sum;
          };
          const auto packed = [&](int row, int column) {
            const int low = std::min(row, column), high = std::max(row, column);
            return low * width - low * (low - 1) / 2 + high - low;
          };
          for (const Program::SlotClass& c : p.classes())
            for (size_t rank = 0; rank < c.slots.size(); ++rank) {
              if (c.width > kWidestInverse || !p.serves(c.slots[rank], kept_slots(slot))) continue;
              const int at = p.first_column()[size_t(c.slots[rank])];
              std::vector<std::vector<Value>> with(size_t(c.width)), solved(size_t(c.width));
              for (int a = 0; a < c.width; ++a) {
                for (int e = 0; e < width; ++e)
                  with[size_t(a)].push_back(product(at + a, p.first_column()[size_t(slot)] + e));
                for (int e = 0; e < width; ++e) {
                  Value sum = with[size_t(a)][0] * v[size_t(packed(0, e))];
                  for (int f = 1; f < width; ++f)
                    sum = sum + with[size_t(a)][size_t(f)] * v[size_t(packed(f, e))];
                  solved[size_t(a)].push_back(sum);
                }
              }
              int part = 0;
              for (int a = 0; a < c.width; ++a)
                for (int d = a; d < c.width; ++d, ++part) {
                  Value sum = product(at + a, at + d);
                  for (int e = 0; e < width; ++e)
                    sum = sum - solved[size_t(a)][size_t(e)] * with[size_t(d)][size_t(e)];
                  blocks.store({b.i32(c.first_diagonal + part * int(c.slots.size()) + int(rank)), i},
                               lower(sum));
                }
            }
        });
  });
}

template <class T>
const Kernel& combine_kernel() {
  static const Kernel k =
      kernel(fmt::format("solve.schur_combine.{}", name(lockstep::detail::kType<T>)),
             [](At<1> at, Grid<T, 1> g, Grid<T, 1> wy, Out<T, 1> right) { right[at] = wy[at] - g[at]; });
  return k;
}
template <class T>
const Kernel& damp_kernel() {
  static const Kernel k =
      kernel(fmt::format("solve.schur_damp.{}", name(lockstep::detail::kType<T>)),
             [](At<1> at, Grid<T, 1> parameters, Grid<T, 1> diagonal, Grid<T, 1> p, InOut<T, 1> q) {
               const Val<T> d = min(max(diagonal[at], parameters[3]), parameters[4]);
               q[at] = fma(parameters[0] * d, p[at], Val<T>(q[at]));
             });
  return k;
}

/// q += g.
template <class T>
const Kernel& add_kernel() {
  static const Kernel k = kernel(fmt::format("solve.schur_add.{}", name(lockstep::detail::kType<T>)),
                                 [](At<1> at, Grid<T, 1> g, InOut<T, 1> q) { q[at] = q[at] + g[at]; });
  return k;
}

class SchurSolver : public LinearSolver {
 public:
  explicit SchurSolver(int max_iterations) : max_iterations_(max_iterations) {}

  void hold(std::vector<uint8_t> held) override { held_.set(std::move(held)); }

  void compile_ahead(const Evaluator& evaluator) const override {
    const Evaluator::State& s = evaluator.internals();
    const Storage real = s.values.real;
    const bool wide = real == Storage::f64;
    const Elimination elimination = choose(s);
    for (const SetState& set : s.sets)
      for (const auto& make : block_kernels(s, set, &set == &s.sets[size_t(elimination.set)]))
        s.compile(make);
    for (size_t k = 0; k < s.batches.size(); ++k) {
      const auto program = s.batches[k].program;
      const int slot = elimination.slot[k];
      if (k > 0 && program == s.batches[k - 1].program) continue;
      s.compile([=] { return diagonal_kernel(program, real, slot); });
      for (const SlotMask& mask : masks_of(slot))
        if (mask.inputs != 0 && mask.outputs != 0)
          s.compile([=] { return product_kernel(program, real, mask); });
    }
    for (const auto& make : ConjugateGradients::kernels(real)) s.compile(make);
    s.compile([wide] { return wide ? combine_kernel<f64>() : combine_kernel<f32>(); });
    s.compile([wide] { return wide ? damp_kernel<f64>() : damp_kernel<f32>(); });
    s.compile([wide] { return wide ? add_kernel<f64>() : add_kernel<f32>(); });
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
    wide_ = s.values.real == Storage::f64;
    elimination_ = choose(s);
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
    cg_ = std::make_unique<ConjugateGradients>(s.device, s.values.real, s.tangent, std::move(kept),
                                               [this](const Buffer& p, const Buffer& q) { multiply(p, q); });
  }

  LinearResult solve(Evaluator& evaluator, double lambda, double forcing, const Buffer& step) override {
    const Evaluator::State& s = *state_;
    const Device& device = s.device;
    s.preparation->check();
    cg_->set_parameters(lambda, forcing, max_iterations_, damping_);
    invert_blocks(device, eliminated_, cg_->parameters());
    find_diagonal();
    for (const BlockPart& part : cg_->parts()) held_.leave_out(part);
    for (const BlockPart& part : cg_->parts()) invert_blocks(device, part, cg_->parameters());

    // Right side: -(g - W V^-1 g_e), 0 at the eliminated blocks.
    device.clear(vector_);
    apply_inverse(device, eliminated_, 1, evaluator.gradient(), vector_);
    s.multiply(vector_, product_, from_eliminated_);
    device.launch(wide_ ? combine_kernel<f64>() : combine_kernel<f32>(), {s.tangent}, s.gradient, product_,
                  right_);
    device.clear(own(right_));
    held_.clear_in(right_);
    LinearResult result = cg_->solve(right_, kept_);
    // Eliminated blocks: -V^-1 (g_e + W^T x).
    device.clear(own(kept_));
    s.multiply(kept_, product_, to_eliminated_);
    add_gradient(product_);
    device.copy(kept_, step);
    apply_inverse(device, eliminated_, -1, product_, step);
    return result;
  }

 private:
  Buffer own(const Buffer& v) const { return v.rows(eliminated_.first_tangent, eliminated_.numbers()); }
  size_t set_at(int64_t first_tangent) const {
    size_t k = 0;
    while (state_->sets[k].first_tangent != first_tangent || state_->sets[k].count == 0) ++k;
    return k;
  }
  int set_width(int64_t first_tangent) const { return state_->sets[set_at(first_tangent)].tangent(); }

  /// product += g.
  void add_gradient(const Buffer& product) const {
    state_->device.launch(wide_ ? add_kernel<f64>() : add_kernel<f32>(), {state_->tangent}, state_->gradient,
                          product);
  }

  void multiply(const Buffer& p, const Buffer& q) const {
    const Evaluator::State& s = *state_;
    s.multiply(p, product_, to_eliminated_);
    s.device.copy(p, vector_);
    apply_inverse(s.device, eliminated_, -1, product_, vector_);
    s.multiply(vector_, q, to_kept_);
    s.device.launch(wide_ ? damp_kernel<f64>() : damp_kernel<f32>(), {s.tangent}, cg_->parameters(),
                    s.diagonal, p, q);
    s.device.clear(own(q));
    held_.clear_in(q);
  }

  void find_diagonal() const {
    const Evaluator::State& s = *state_;
    s.device.clear(schur_diagonal_);
    for (size_t k = 0; k < s.batches.size(); ++k) {
      const BatchState& batch = s.batches[k];
      const int slot = elimination_.slot[k];
      std::vector<Argument> arguments;
      if (batch.program->stored_count() > 0) arguments.push_back(batch.jacobian);
      if (slot >= 0) arguments.insert(arguments.end(), {eliminated_.inverse, batch.tangent_at});
      arguments.push_back(batch.diagonal_slots);
      if (slot >= 0) arguments.push_back(eliminated_.first_tangent);
      s.device.launch_with(diagonal_kernel(batch.program, s.values.real, slot), {batch.n}, arguments, {});
      for (const ClassSums& c : batch.sums) {
        const auto& slots = c.slots.slots;
        if (c.slots.width > kWidestInverse || std::none_of(slots.begin(), slots.end(), [&](int one) {
              return batch.program->serves(one, kept_slots(slot));
            }))
          continue;
        const int parts = diagonal_parts(c.slots.width);
        const int64_t stored = int64_t(slots.size());
        c.gather.add(batch.diagonal_slots.rows(c.slots.first_diagonal, parts * stored)
                         .reshape({parts, stored * batch.n}),
                     parts, false, c.few_diagonal, c.many_diagonal, schur_diagonal_);
      }
    }
  }

  int max_iterations_;
  uint64_t evaluator_id_ = 0;
  const Evaluator::State* state_ = nullptr;
  bool wide_ = true;
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
