// Points kernels: for z, for y, for x by vectors. Whole vectors take a version without masks, the last one of a row a
// general one.
#include "compile/wasm/kernel_code.hpp"
#include "compile/wasm/lane_code.hpp"

namespace lockstep::compile::wasm {

namespace {
/// Code of larger kernels is made once, for masked vectors only.
constexpr size_t kTwoVersions = 1500;
}  // namespace

void emit_points(Unit& u) {
  Builder& b = u.b();
  const ir::Function& f = u.f();
  const Divergence divergence(f, ir::LaneScope::row);
  const bool two_versions = f.instructions.size() <= kTwoVersions;
  const auto version = [&](const std::array<Value, 3>& coord, const Value& mask) {
    LaneCode code(u, divergence);
    code.coord = coord;
    code.run(f.blocks[0], mask);
  };
  counted_loop(b, u.box_low(2), u.box_high(2), 1, [&](const Value& z) {
    counted_loop(b, u.box_low(1), u.box_high(1), 1, [&](const Value& y) {
      counted_loop(b, u.box_low(0), u.box_high(0), kLanes, [&](const Value& x) {
        const Value left = b.sub(u.box_high(0), x);
        if (two_versions) {
          b.push(b.less(left, Builder::i32(kLanes)));
          u.body().if_();
        }
        version({x, y, z}, b.less(b.ramp(Builder::i32(0), 1), b.splat(left)));
        if (!two_versions) return;
        u.body().else_();
        version({x, y, z}, {});
        u.body().end();
      });
    });
  });
}

}  // namespace lockstep::compile::wasm
