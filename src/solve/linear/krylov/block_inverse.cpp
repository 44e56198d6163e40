#include "solve/linear/krylov/block_inverse.hpp"

#include <fmt/format.h>

#include <optional>

namespace lockstep::solve {

namespace {

int packed(int w, int row, int column) {
  if (row > column) std::swap(row, column);
  return row * w - row * (row - 1) / 2 + column - row;
}

/// L D L^T of a block and the inverse it gives, as values of a lane. Where a pivot is too small, it and its
/// reciprocal count 0: its direction is left out.
class BlockFactor {
 public:
  /// Entry (row, column) of the block, row <= column, and its damped diagonal.
  using Entry = std::function<AnyVal(int row, int column)>;
  using Diagonal = std::function<AnyVal(int column, const AnyVal& own)>;
  BlockFactor(int width, double least_pivot, const Entry& block, const Diagonal& damped)
      : width_(width), l_(size_t(width * width)), m_(size_t(width * width)), reciprocal_(size_t(width)) {
    factorise(least_pivot, block, damped);
    invert_factor();
  }
  /// Entry of the inverse m^T D^-1 m, row <= column.
  AnyVal inverse(int row, int column) const {
    AnyVal sum = column == row ? reciprocal_[size_t(row)]
                               : rounded_product(m_[at(column, row)], reciprocal_[size_t(column)]);
    for (int k = column + 1; k < width_; ++k)
      sum = fma(rounded_product(m_[at(k, row)], reciprocal_[size_t(k)]), m_[at(k, column)], sum);
    return sum;
  }

 private:
  size_t at(int row, int column) const { return size_t(row * width_ + column); }
  /// Column by column: l, and the reciprocals of the pivots.
  void factorise(double least_pivot, const Entry& block, const Diagonal& damped) {
    std::vector<AnyVal> pivot(static_cast<size_t>(width_));
    const auto less_outer = [&](AnyVal v, int row, int column) {
      for (int k = 0; k < column; ++k)
        v = fma(-rounded_product(l_[at(row, k)], l_[at(column, k)]), pivot[size_t(k)], v);
      return v;
    };
    for (int c = 0; c < width_; ++c) {
      const AnyVal own = block(c, c), whole = damped(c, own), d = less_outer(whole, c, c);
      // A number that nothing depends on (a fixed block) is left out, too.
      const Val<bool> good = rounded_product(whole, least_pivot) < d && own > 0;
      pivot[size_t(c)] = select(good, d, 0);
      reciprocal_[size_t(c)] = select(good, 1 / select(good, d, 1), 0);
      for (int r = c + 1; r < width_; ++r)
        l_[at(r, c)] = rounded_product(less_outer(block(c, r), r, c), reciprocal_[size_t(c)]);
    }
  }
  /// m = l^-1, lower with a diagonal of ones.
  void invert_factor() {
    for (int c = 0; c < width_; ++c)
      for (int r = c + 1; r < width_; ++r) {
        AnyVal v = -l_[at(r, c)];
        for (int k = c + 1; k < r; ++k) v = fma(-l_[at(r, k)], m_[at(k, c)], v);
        m_[at(r, c)] = v;
      }
  }

  int width_;
  std::vector<AnyVal> l_, m_, reciprocal_;
};

Kernel invert_kernel(Storage real, int w) {
  const std::string name = fmt::format("solve.invert_blocks.{}.{}", lockstep::name(real), w);
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid blocks = p.read("blocks", real, 2), damping = p.read("damping", real, 2),
                    parameters = p.read("parameters", real, 1), inverse = p.write("inverse", real, 2);
      const Val<i32> block = at.x;
      const AnyVal lambda = parameters.load({0}), low = parameters.load({3}), high = parameters.load({4});
      const BlockFactor factor(
          w, real == Storage::f64 ? 1e-12 : 1e-6,
          [&](int row, int column) { return blocks.load({block, packed(w, row, column)}); },
          [&](int c, const AnyVal& own) {
            return fma(lambda, min(max(damping.load({block, packed(w, c, c)}), low), high), own);
          });
      for (int row = 0; row < w; ++row)
        for (int column = row; column < w; ++column)
          inverse.store({packed(w, row, column), block}, factor.inverse(row, column));
    });
  });
}

/// A block of r before its preconditioner is applied: as it is, or moved along the search direction, and x
/// with it.
class Residual {
 public:
  Residual(Storage real, int w, bool step, Parameters& p)
      : width_(w), r_(step ? p.read_write("r", real, 2) : p.read("r", real, 2)) {
    if (step)
      step_.emplace(Step{p.read("scalars", real, 1), p.read("p", real, 2), p.read("q", real, 2),
                         p.read_write("x", real, 2)});
  }
  Val<i32> blocks() const { return r_.size(0); }
  std::vector<AnyVal> of(const Val<i32>& block) const {
    std::vector<AnyVal> own;
    for (int c = 0; c < width_; ++c) own.push_back(r_.load({block, c}));
    if (!step_) return own;
    const AnyVal alpha = step_->scalars.load({2});
    const Val<bool> moves = alpha != 0;
    std::vector<AnyVal> moved;
    for (int c = 0; c < width_; ++c) {
      const AnyVal old = step_->x.load({block, c});
      step_->x.store({block, c}, select(moves, fma(alpha, step_->p.load({block, c}), old), old));
      moved.push_back(select(moves, fma(-alpha, step_->q.load({block, c}), own[size_t(c)]), own[size_t(c)]));
      r_.store({block, c}, moved.back());
    }
    return moved;
  }

 private:
  struct Step {
    AnyGrid scalars, p, q, x;
  };
  int width_;
  AnyGrid r_;
  std::optional<Step> step_;
};

Kernel precondition_kernel(Storage real, int w, bool step) {
  const std::string name =
      fmt::format("solve.precondition.{}.{}{}", lockstep::name(real), w, step ? ".step" : "");
  const auto trace = [&](Group<1> g, Parameters& p) {
    const AnyGrid inverse = p.read("inverse", real, 2);
    const Residual residual(real, w, step, p);
    const AnyGrid z = p.write("z", real, 2), rz = p.write("rz", real, 1), rr = p.write("rr", real, 1);
    const Val<i32> block = g.global();
    const AnyVal zero = AnyVal::number(value_type(real), 0);
    AnyVar sum_rz = zero, sum_rr = zero;
    if_(block < residual.blocks(), [&] {
      const std::vector<AnyVal> own = residual.of(block);
      std::vector<AnyVal> inverse_at;
      for (int k = 0; k < w * (w + 1) / 2; ++k) inverse_at.push_back(inverse.load({k, block}));
      AnyVal with_z = zero, with_r = zero;
      for (int row = 0; row < w; ++row) {
        AnyVal sum = zero;
        for (int c = 0; c < w; ++c) sum = fma(inverse_at[size_t(packed(w, row, c))], own[size_t(c)], sum);
        z.store({block, row}, sum);
        with_z = fma(own[size_t(row)], sum, with_z);
        with_r = fma(own[size_t(row)], own[size_t(row)], with_r);
      }
      sum_rz = with_z;
      sum_rr = with_r;
    });
    const AnyVal total_rz = group_sum(sum_rz), total_rr = group_sum(sum_rr);
    if_(g.lane() == 0, [&] {
      rz.store({g.id()}, total_rz);
      rr.store({g.id()}, total_rr);
    });
  };
  return cached_kernel(name, [&] { return kernel(name, trace, {{256, 1, 1}, 0}); });
}

/// y = factor inverse x, block by block.
Kernel apply_kernel(Storage real, int w) {
  const std::string name = fmt::format("solve.apply_inverse.{}.{}", lockstep::name(real), w);
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const AnyGrid inverse = p.read("inverse", real, 2), x = p.read("x", real, 2), y = p.write("y", real, 2);
      const AnyVal factor = p.scalar("factor", value_type(real));
      const Val<i32> block = at.x;
      std::vector<AnyVal> own;
      for (int c = 0; c < w; ++c) own.push_back(x.load({block, c}));
      for (int row = 0; row < w; ++row) {
        AnyVal sum = AnyVal::number(value_type(real), 0);
        for (int c = 0; c < w; ++c) sum = fma(inverse.load({packed(w, row, c), block}), own[size_t(c)], sum);
        y.store({block, row}, rounded_product(factor, sum));
      }
    });
  });
}

/// v = 0 where `held` is not 0.
Kernel clear_held_kernel(Storage real) {
  const std::string name = fmt::format("solve.clear_held.{}", lockstep::name(real));
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const auto held = p.read<u32, 1>("held");
      const AnyGrid v = p.read_write("v", real, 1);
      const Val<i32> own = at.x;
      if_(held[own] != 0u, [&] { v.store({own}, AnyVal::number(value_type(real), 0)); });
    });
  });
}

/// The diagonals of blocks, 0 where `held` is not 0.
Kernel leave_out_kernel(Storage real, int w) {
  const std::string name = fmt::format("solve.leave_out_held.{}.{}", lockstep::name(real), w);
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<1> at, Parameters& p) {
      const auto held = p.read<u32, 2>("held");
      const AnyGrid blocks = p.read_write("blocks", real, 2);
      const Val<i32> block = at.x;
      for (int c = 0; c < w; ++c)
        if_(held(block, c) != 0u,
            [&] { blocks.store({block, packed(w, c, c)}, AnyVal::number(value_type(real), 0)); });
    });
  });
}

/// The part's numbers of a tangent vector, (count, width).
Buffer own_numbers(const BlockPart& part, const Buffer& v) {
  return v.rows(part.first_tangent, part.numbers()).reshape({part.count, part.width});
}

}  // namespace

std::vector<BlockPart> block_parts(const Evaluator::State& state) {
  std::vector<BlockPart> parts;
  for (size_t k = 0; k < state.sets.size(); ++k) {
    const SetState& set = state.sets[k];
    if (set.count == 0) continue;
    BlockPart part;
    const int width = set.tangent();
    part.first_tangent = set.first_tangent;
    if (width <= kWidestInverse) {
      const int64_t numbers = width * (width + 1) / 2;
      part.width = width, part.count = set.count;
      part.triangles = state.block_diagonal.rows(state.first_diagonal[k], set.count * numbers)
                           .reshape({set.count, numbers});
    } else {
      part.width = 1, part.count = set.count * width;
      part.triangles = state.diagonal.rows(set.first_tangent, part.count).reshape({part.count, 1});
    }
    part.damping = part.triangles;
    part.inverse = state.device.allocate(state.values.real, {part.width * (part.width + 1) / 2, part.count});
    parts.push_back(std::move(part));
  }
  return parts;
}

void invert_blocks(const Device& device, const BlockPart& part, const Buffer& parameters) {
  device.launch(invert_kernel(part.triangles.storage(), part.width), {part.count},
                Arguments()
                    .set("blocks", part.triangles)
                    .set("damping", part.damping)
                    .set("parameters", parameters)
                    .set("inverse", part.inverse));
}

void apply_inverse(const Device& device, const BlockPart& part, double factor, const Buffer& from,
                   const Buffer& to) {
  device.launch(apply_kernel(from.storage(), part.width), {part.count},
                Arguments()
                    .set("inverse", part.inverse)
                    .set("x", own_numbers(part, from))
                    .set("y", own_numbers(part, to))
                    .set("factor", factor));
}

void precondition(const Device& device, const BlockPart& part, bool step, const Buffer& scalars,
                  const Buffer& p, const Buffer& q, const Buffer& x, const Buffer& r, const Buffer& z,
                  const Buffer& rz, const Buffer& rr) {
  Arguments arguments;
  arguments.set("inverse", part.inverse).set("r", own_numbers(part, r)).set("z", own_numbers(part, z));
  arguments.set("rz", rz).set("rr", rr);
  if (step)
    arguments.set("scalars", scalars)
        .set("p", own_numbers(part, p))
        .set("q", own_numbers(part, q))
        .set("x", own_numbers(part, x));
  device.launch(precondition_kernel(r.storage(), part.width, step), {part.groups()}, arguments);
}

std::vector<std::function<Kernel()>> block_kernels(const Evaluator::State& state, const SetState& set,
                                                   bool eliminated) {
  std::vector<std::function<Kernel()>> kernels;
  if (set.count == 0) return kernels;
  const Storage real = state.values.real;
  const int w = set.tangent() <= kWidestInverse ? set.tangent() : 1;
  kernels.push_back([=] { return invert_kernel(real, w); });
  if (eliminated) kernels.push_back([=] { return apply_kernel(real, w); });
  for (const bool step : {false, true})
    if (!eliminated) kernels.push_back([=] { return precondition_kernel(real, w, step); });
  return kernels;
}

void HeldCoordinates::upload(const Device& device, int64_t tangent) {
  if (held_.empty()) return;
  const std::vector<uint32_t> flags(held_.begin(), held_.end());
  if (!flags_ || !device_.same_as(device) || flags_.elements() != tangent) {
    device_ = device;
    flags_ = device.allocate<uint32_t>({tangent});
  }
  device.write(flags_, flags.data(), flags_.bytes());
}

void HeldCoordinates::clear_in(const Buffer& v) const {
  if (!flags_) return;
  device_.launch(clear_held_kernel(v.storage()), {v.elements()}, Arguments().set("held", flags_).set("v", v));
}

void HeldCoordinates::leave_out(const BlockPart& part) const {
  if (!flags_) return;
  device_.launch(leave_out_kernel(part.triangles.storage(), part.width), {part.count},
                 Arguments().set("held", own_numbers(part, flags_)).set("blocks", part.triangles));
}

}  // namespace lockstep::solve
