// Points kernels: for z, for y, for x by vectors. Vectors that lie whole in the inner part of the row take a version without
// masks and clamps; the others a general one.
#include "compile/native/peeling.hpp"
#include "compile/wasm/kernel_code.hpp"
#include "compile/wasm/lane_code.hpp"
#include "compile/wasm/lower_op.hpp"

namespace lockstep::compile::wasm {

namespace {

/// Code of larger kernels is made once, for masked vectors only.
constexpr size_t kTwoVersions = 1500;

/// Values that are fixed for the launch.
class LaunchCode : public LaneCode {
 public:
  using LaneCode::LaneCode;

 protected:
  Slot import(ir::Id id) override {
    const ir::Instruction& i = f_[id];
    for (int k = 0; k < i.arg_count(); ++k) slot(i.args[size_t(k)]);
    return pure(id);
  }
};

/// The bound on x as i64: x >= -affine, or x <= -affine.
Value row_limit(Builder& b, LaunchCode& code, const simd::Affine& affine) {
  Value sum = Builder::constant(Type::i64, uint64_t(-affine.constant));
  for (const simd::Affine::Term& t : affine.terms) {
    const Value v = lower_convert(b, code.scalar(t.id), Type::i64);
    sum = t.sign > 0 ? b.sub(sum, v) : b.add(sum, v);
  }
  return sum;
}

/// Vectors that begin at low to high are inner ones.
struct InnerPart {
  Value low, high;
};
InnerPart inner_part(Unit& u, const Divergence& divergence, const simd::Peeling& peeling) {
  Builder& b = u.b();
  const auto number = [](int64_t v) { return Builder::constant(Type::i64, uint64_t(v)); };
  Value low = lower_convert(b, u.box_low(0), Type::i64),
        high = b.sub(lower_convert(b, u.box_high(0), Type::i64), number(kLanes));
  LaunchCode code(u, divergence);
  for (const simd::RowBound& bound : peeling.bounds) {
    const Value limit = row_limit(b, code, bound.affine);
    if (bound.low)
      low = b.max(low, limit);
    else
      high = b.min(high, b.sub(limit, number(kLanes - 1)));
  }
  low = b.min(low, number(INT32_MAX));
  high = b.max(high, number(-1));
  return {lower_convert(b, low, Type::i32), lower_convert(b, high, Type::i32)};
}

}  // namespace

void emit_points(Unit& u) {
  Builder& b = u.b();
  const ir::Function& f = u.f();
  const bool two_versions = f.instructions.size() <= kTwoVersions;
  const simd::Peeling peeling = two_versions ? simd::find_peeling(f) : simd::Peeling();
  const Divergence general(f, ir::LaneScope::row), inner(f, ir::LaneScope::row, &peeling.assumptions);
  InnerPart part;
  if (two_versions) part = inner_part(u, general, peeling);
  const auto version = [&](const Divergence& divergence, const Assumptions* assumptions,
                           const std::array<Value, 3>& coord, const Value& mask) {
    LaneCode code(u, divergence, assumptions);
    code.coord = coord;
    code.run(f.blocks[0], mask);
  };
  const auto vector = [&](const std::array<Value, 3>& at) {
    if (two_versions) {
      b.push(b.and_(b.less_equal(part.low, at[0]), b.less_equal(at[0], part.high)));
      u.body().if_();
      version(inner, &peeling.assumptions, at, {});
      u.body().else_();
    }
    const Value left = b.sub(u.box_high(0), at[0]);
    version(general, nullptr, at, b.less(b.ramp(Builder::i32(0), 1), b.splat(left)));
    if (two_versions) u.body().end();
  };
  counted_loop(b, u.box_low(2), u.box_high(2), 1, [&](const Value& z) {
    counted_loop(b, u.box_low(1), u.box_high(1), 1, [&](const Value& y) {
      counted_loop(b, u.box_low(0), u.box_high(0), kLanes, [&](const Value& x) { vector({x, y, z}); });
    });
  });
}

}  // namespace lockstep::compile::wasm
