// Points kernels: for z, for y, for x by vectors. Vectors that are whole in the inner part of the row take a version without
// masks, clamps and checks, in a loop of their own; the others a general one.
#include "compile/native/peeling.hpp"
#include "compile/wasm/kernel_code.hpp"
#include "compile/wasm/lower_op.hpp"
#include "compile/wasm/row_code.hpp"

namespace lockstep::compile::wasm {

namespace {

/// Code of larger kernels is made once, for masked vectors only.
constexpr size_t kTwoVersions = 1500;

class PointsCode {
 public:
  explicit PointsCode(Unit& unit)
      : u(unit),
        b(unit.b()),
        body(unit.body()),
        f(unit.f()),
        two_versions(f.instructions.size() <= kTwoVersions),
        peeling(two_versions ? simd::find_peeling(f) : simd::Peeling()),
        general(f, ir::LaneScope::row),
        inner(f, ir::LaneScope::row, &peeling.assumptions),
        launch(unit, general) {}

  void emit() {
    const size_t begin = body.code().size();
    counted_loop(b, u.box_low(2), u.box_high(2), 1, [&](const Value& z) {
      counted_loop(b, u.box_low(1), u.box_high(1), 1,
                   [&](const Value& y) { two_versions ? row(y, z) : masked_row(y, z); });
    });
    body.insert(begin, launch.section);
  }

 private:
  Value number(int64_t v) { return Builder::constant(Type::i64, uint64_t(v)); }

  void general_vector(const std::array<Value, 3>& at, Invariants* values) {
    const Value left = b.sub(u.box_high(0), at[0]);
    PointCode code(u, general, nullptr, values, nullptr);
    code.coord = at;
    code.run(f.blocks[0], b.less(b.ramp(Builder::i32(0), 1), b.splat(left)));
  }
  void masked_row(const Value& y, const Value& z) {
    counted_loop(b, u.box_low(0), u.box_high(0), kLanes,
                 [&](const Value& x) { general_vector({x, y, z}, nullptr); });
  }

  /// Vectors that begin at low to high are inner ones, as the launch alone shows: x + affine is 0 or more, or 0 or less.
  void launch_limits(Value& low, Value& high) {
    low = lower_convert(b, u.box_low(0), Type::i64);
    high = b.sub(lower_convert(b, u.box_high(0), Type::i64), number(kLanes));
    for (const simd::RowBound& bound : peeling.bounds) {
      Value limit = number(-bound.affine.constant);
      for (const simd::Affine::Term& t : bound.affine.terms) {
        const Value v = lower_convert(b, launch.value(t.id), Type::i64);
        limit = t.sign > 0 ? b.sub(limit, v) : b.add(limit, v);
      }
      if (bound.low)
        low = b.max(low, limit);
      else
        high = b.min(high, b.sub(limit, number(kLanes - 1)));
    }
  }

  void row(const Value& y, const Value& z) {
    const size_t begin = body.code().size();
    Invariants values(u, general, &launch);
    values.coord = {Value(), y, z};
    RowPlaces places(u, values);
    const Value x = b.variable(Type::i32, false), low = b.variable(Type::i32, false),
                high = b.variable(Type::i32, false);
    const auto step = [&] { b.assign(x, b.add(x, Builder::i32(kLanes))); };
    b.assign(x, u.box_low(0));
    const Label done = body.block();
    b.push(b.less_equal(u.box_high(0), x));
    body.branch_if(done);
    const Label again = body.loop();
    b.push(b.and_(b.less_equal(low, x), b.less_equal(x, high)));
    body.if_();
    const Label next = body.loop();
    PointCode code(u, inner, &peeling.assumptions, &values, &places);
    code.coord = {x, y, z};
    code.run(f.blocks[0], {});
    step();
    b.push(b.less_equal(x, high));
    body.branch_if(next);
    body.end();
    b.push(b.less_equal(u.box_high(0), x));
    body.branch_if(done);
    body.end();
    general_vector({x, y, z}, &values);
    // Tested so that the next x is computed only where it does not overflow.
    b.push(b.less_equal(b.sub(u.box_high(0), x), Builder::i32(kLanes)));
    body.branch_if(done);
    step();
    body.branch(again);
    body.end();
    body.end();
    limits(values, places, low, high);
    body.insert(begin, values.section);
  }

  /// The inner part, computed before the row.
  void limits(Invariants& values, RowPlaces& places, const Value& low, const Value& high) {
    launch.in_section([&] {
      Value least, most;
      launch_limits(least, most);
      launch_low = b.copy(least), launch_high = b.copy(most);
      return Value();
    });
    values.in_section([&] {
      Value least = launch_low, most = launch_high;
      places.narrow(least, most);
      b.assign(low, lower_convert(b, b.min(least, number(INT32_MAX)), Type::i32));
      b.assign(high, lower_convert(b, b.max(most, number(-1)), Type::i32));
      return Value();
    });
  }

  Unit& u;
  Builder& b;
  Body& body;
  const ir::Function& f;
  const bool two_versions;
  const simd::Peeling peeling;
  const Divergence general, inner;
  Invariants launch;
  Value launch_low, launch_high;
};

}  // namespace

void emit_points(Unit& unit) { PointsCode(unit).emit(); }

}  // namespace lockstep::compile::wasm
