#include "solve/linear/block_inverse.hpp"

#include <fmt/format.h>

#include "solve/model/traced_buffer.hpp"

namespace lockstep::solve {

using ir::Id;

namespace {

int packed(int w, int row, int column) {
  if (row > column) std::swap(row, column);
  return row * w - row * (row - 1) / 2 + column - row;
}

Kernel invert_kernel(Storage real, int w) {
  const std::string name = fmt::format("solve.invert_blocks.{}.{}", lockstep::name(real), w);
  return cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::points, 1, {}, [=](ir::Builder& b) {
      const TracedBuffer blocks("blocks", real, 2, ir::Access::read),
          damping("damping", real, 2, ir::Access::read), parameters("parameters", real, 1, ir::Access::read),
          inverse("inverse", real, 2, ir::Access::write);
      const Type type = value_type(real);
      const Id block = b.emit(ir::Op::coord, Type::i32, {}, 0), zero = b.number(type, 0),
               one = b.number(type, 1);
      const auto mul = [&](Id x, Id y) { return b.op(ir::Op::fmul, {x, y}, ir::kNoContract); };
      // c - x y
      const auto less = [&](Id c, Id x, Id y) { return b.op(ir::Op::fma, {b.op(ir::Op::fneg, {x}), y, c}); };
      const Id lambda = parameters.load({b.i32(0)}), low = parameters.load({b.i32(3)}),
               high = parameters.load({b.i32(4)});
      // Column by column: l[r][c], and the reciprocals of the pivots.
      std::vector<std::vector<Id>> l(static_cast<size_t>(w), std::vector<Id>(size_t(w), ir::kNone));
      std::vector<Id> pivot(size_t(w), ir::kNone), reciprocal(size_t(w), ir::kNone);
      for (int c = 0; c < w; ++c) {
        const Id own = blocks.load({block, b.i32(packed(w, c, c))});
        const Id bounded = b.op(
            ir::Op::fmin, {b.op(ir::Op::fmax, {damping.load({block, b.i32(packed(w, c, c))}), low}), high});
        const Id damped = b.op(ir::Op::fma, {lambda, bounded, own});
        Id d = damped;
        for (int k = 0; k < c; ++k)
          d = less(d, mul(l[size_t(c)][size_t(k)], l[size_t(c)][size_t(k)]), pivot[size_t(k)]);
        const Id least = mul(damped, b.number(type, real == Storage::f64 ? 1e-12 : 1e-6));
        // A number that nothing depends on (a fixed block) is left out, too.
        const Id good = b.op(ir::Op::band, {b.op(ir::Op::flt, {least, d}), b.op(ir::Op::flt, {zero, own})});
        pivot[size_t(c)] = b.select(good, d, zero);
        reciprocal[size_t(c)] = b.select(good, b.op(ir::Op::fdiv, {one, b.select(good, d, one)}), zero);
        for (int r = c + 1; r < w; ++r) {
          Id v = blocks.load({block, b.i32(packed(w, c, r))});
          for (int k = 0; k < c; ++k)
            v = less(v, mul(l[size_t(r)][size_t(k)], l[size_t(c)][size_t(k)]), pivot[size_t(k)]);
          l[size_t(r)][size_t(c)] = mul(v, reciprocal[size_t(c)]);
        }
      }
      // m = l^-1, lower with a diagonal of ones; the inverse is m^T D^-1 m.
      std::vector<std::vector<Id>> m(static_cast<size_t>(w), std::vector<Id>(size_t(w), ir::kNone));
      for (int c = 0; c < w; ++c)
        for (int r = c + 1; r < w; ++r) {
          Id v = b.op(ir::Op::fneg, {l[size_t(r)][size_t(c)]});
          for (int k = c + 1; k < r; ++k) v = less(v, l[size_t(r)][size_t(k)], m[size_t(k)][size_t(c)]);
          m[size_t(r)][size_t(c)] = v;
        }
      for (int row = 0; row < w; ++row)
        for (int column = row; column < w; ++column) {
          Id sum = column == row ? reciprocal[size_t(row)]
                                 : mul(m[size_t(column)][size_t(row)], reciprocal[size_t(column)]);
          for (int k = column + 1; k < w; ++k)
            sum = b.op(ir::Op::fma, {mul(m[size_t(k)][size_t(row)], reciprocal[size_t(k)]),
                                     m[size_t(k)][size_t(column)], sum});
          inverse.store({b.i32(packed(w, row, column)), block}, sum);
        }
    });
  });
}

Kernel precondition_kernel(Storage real, int w, bool step) {
  const std::string name =
      fmt::format("solve.precondition.{}.{}{}", lockstep::name(real), w, step ? ".step" : "");
  KernelOptions options;
  options.group = {256, 1, 1};
  return cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::groups, 1, options, [=](ir::Builder& b) {
      const Type type = value_type(real);
      const TracedBuffer inverse("inverse", real, 2, ir::Access::read);
      std::optional<TracedBuffer> scalars, p, q, x;
      if (step) {
        scalars.emplace("scalars", real, 1, ir::Access::read);
        p.emplace("p", real, 2, ir::Access::read);
        q.emplace("q", real, 2, ir::Access::read);
        x.emplace("x", real, 2, ir::Access::read_write);
      }
      const TracedBuffer r("r", real, 2, step ? ir::Access::read_write : ir::Access::read),
          z("z", real, 2, ir::Access::write), rz("rz", real, 1, ir::Access::write),
          rr("rr", real, 1, ir::Access::write);
      const Group<1> g;
      const Id block = g.global().id(), zero = b.number(type, 0);
      const Id sum_rz = b.variable(zero), sum_rr = b.variable(zero);
      b.if_(b.op(ir::Op::ilt, {block, r.size(0).id()}), [&] {
        std::vector<Id> own;
        for (int c = 0; c < w; ++c) own.push_back(r.load({block, b.i32(c)}));
        if (step) {
          const Id alpha = scalars->load({b.i32(2)}), moves = b.op(ir::Op::fne, {alpha, zero});
          for (int c = 0; c < w; ++c) {
            const Id old = x->load({block, b.i32(c)});
            const Id moved = b.op(ir::Op::fma, {alpha, p->load({block, b.i32(c)}), old});
            x->store({block, b.i32(c)}, b.select(moves, moved, old));
            const Id less =
                b.op(ir::Op::fma, {b.op(ir::Op::fneg, {alpha}), q->load({block, b.i32(c)}), own[size_t(c)]});
            own[size_t(c)] = b.select(moves, less, own[size_t(c)]);
            r.store({block, b.i32(c)}, own[size_t(c)]);
          }
        }
        std::vector<Id> inverse_at(size_t(w * (w + 1) / 2));
        for (int k = 0; k < int(inverse_at.size()); ++k)
          inverse_at[size_t(k)] = inverse.load({b.i32(k), block});
        Id with_z = zero, with_r = zero;
        for (int row = 0; row < w; ++row) {
          Id sum = zero;
          for (int c = 0; c < w; ++c)
            sum = b.op(ir::Op::fma, {inverse_at[size_t(packed(w, row, c))], own[size_t(c)], sum});
          z.store({block, b.i32(row)}, sum);
          with_z = b.op(ir::Op::fma, {own[size_t(row)], sum, with_z});
          with_r = b.op(ir::Op::fma, {own[size_t(row)], own[size_t(row)], with_r});
        }
        b.set(sum_rz, with_z);
        b.set(sum_rr, with_r);
      });
      const Id total_rz = b.emit(ir::Op::group_reduce, type, {b.get(sum_rz)}, uint64_t(ir::Reduction::add)),
               total_rr = b.emit(ir::Op::group_reduce, type, {b.get(sum_rr)}, uint64_t(ir::Reduction::add));
      b.if_(b.op(ir::Op::ieq, {g.lane().id(), b.i32(0)}), [&] {
        rz.store({g.id().id()}, total_rz);
        rr.store({g.id().id()}, total_rr);
      });
    });
  });
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
  device.launch(invert_kernel(part.triangles.storage(), part.width), {part.count}, part.triangles,
                part.damping, parameters, part.inverse);
}

namespace {

Kernel apply_kernel(Storage real, int w) {
  const std::string name = fmt::format("solve.apply_inverse.{}.{}", lockstep::name(real), w);
  return cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::points, 1, {}, [=](ir::Builder& b) {
      const TracedBuffer inverse("inverse", real, 2, ir::Access::read), x("x", real, 2, ir::Access::read),
          y("y", real, 2, ir::Access::write);
      const Type type = value_type(real);
      const Id scale = traced_scalar("factor", type), block = b.emit(ir::Op::coord, Type::i32, {}, 0);
      std::vector<Id> own;
      for (int c = 0; c < w; ++c) own.push_back(x.load({block, b.i32(c)}));
      for (int row = 0; row < w; ++row) {
        Id sum = b.number(type, 0);
        for (int c = 0; c < w; ++c)
          sum = b.op(ir::Op::fma, {inverse.load({b.i32(packed(w, row, c)), block}), own[size_t(c)], sum});
        y.store({block, b.i32(row)}, b.op(ir::Op::fmul, {scale, sum}, ir::kNoContract));
      }
    });
  });
}

}  // namespace

void apply_inverse(const Device& device, const BlockPart& part, double factor, const Buffer& from,
                   const Buffer& to) {
  const auto own = [&](const Buffer& v) {
    return v.rows(part.first_tangent, part.numbers()).reshape({part.count, part.width});
  };
  device.launch(apply_kernel(from.storage(), part.width), {part.count}, part.inverse, own(from), own(to),
                factor);
}

void precondition(const Device& device, const BlockPart& part, bool step, const Buffer& scalars,
                  const Buffer& p, const Buffer& q, const Buffer& x, const Buffer& r, const Buffer& z,
                  const Buffer& rz, const Buffer& rr) {
  const auto own = [&](const Buffer& v) {
    return v.rows(part.first_tangent, part.numbers()).reshape({part.count, part.width});
  };
  const Kernel kernel = precondition_kernel(r.storage(), part.width, step);
  if (step)
    device.launch(kernel, {part.groups()}, part.inverse, scalars, own(p), own(q), own(x), own(r), own(z), rz,
                  rr);
  else
    device.launch(kernel, {part.groups()}, part.inverse, own(r), own(z), rz, rr);
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
  const std::string name = fmt::format("solve.clear_held.{}", lockstep::name(v.storage()));
  const Kernel kernel = cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::points, 1, {}, [real = v.storage()](ir::Builder& b) {
      const TracedBuffer held("held", Storage::u32, 1, ir::Access::read),
          vector("v", real, 1, ir::Access::read_write);
      const Id at = b.emit(ir::Op::coord, Type::i32, {}, 0);
      b.if_(b.op(ir::Op::ine, {held.load({at}), b.u32(0)}),
            [&] { vector.store({at}, b.number(value_type(real), 0)); });
    });
  });
  device_.launch(kernel, {v.elements()}, flags_, v);
}

void HeldCoordinates::leave_out(const BlockPart& part) const {
  if (!flags_) return;
  const Storage real = part.triangles.storage();
  const int w = part.width;
  const std::string name = fmt::format("solve.leave_out_held.{}.{}", lockstep::name(real), w);
  const Kernel kernel = cached_kernel(name, [&] {
    return Kernel::trace(name, ir::Domain::points, 1, {}, [=](ir::Builder& b) {
      const TracedBuffer held("held", Storage::u32, 2, ir::Access::read),
          blocks("blocks", real, 2, ir::Access::read_write);
      const Id block = b.emit(ir::Op::coord, Type::i32, {}, 0);
      for (int c = 0; c < w; ++c)
        b.if_(b.op(ir::Op::ine, {held.load({block, b.i32(c)}), b.u32(0)}),
              [&] { blocks.store({block, b.i32(packed(w, c, c))}, b.number(value_type(real), 0)); });
    });
  });
  device_.launch(kernel, {part.count},
                 flags_.rows(part.first_tangent, part.numbers()).reshape({part.count, w}), part.triangles);
}

}  // namespace lockstep::solve
