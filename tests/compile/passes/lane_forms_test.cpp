// Claims of the analysis about the lanes of a vector, against the values that the interpreter computes for them.
#include <gtest/gtest.h>

#include "helpers.hpp"
#include "ir/divergence.hpp"
#include "lockstep/device.hpp"

namespace lockstep {
namespace {

/// Integers of a lane, stored one a row.
void expressions(const Group<2>& g, const std::function<void(const Val<i32>&)>& store,
                 const std::function<void(const Val<i64>&)>& store_wide) {
  const Val<i32> lane = g.lane(), x = g.local(0), y = g.local(1), group = g.id(0);
  for (const Val<i32>& v : {lane, x}) {
    for (const int by : {3, 4, 8, 16}) {
      store(v / by), store(v % by), store((v + 4) / by), store((v + 4) % by), store((v - 4) / by);
      store((v - 4) % by), store((v * 3) / by), store((v + v % 4) / by);
    }
    store(v & 3), store(v & 7), store((v + 4) & 7), store((v + 8) & 7), store((v - 4) & 7),
        store((v + 2) >> 3);
    store(v - v % 8), store(-v * 5), store(v << 3);
    store(select(v > 5, v, v * 2)), store(select(group > 0, v, v * 2)),
        store(select(group > 0, v, v + group));
    store(select(v > 5, v, v + 3)), store(select(v > 5, group, group + 1));
    store_wide(cast<i64>(v)), store_wide(cast<i64>(v * 1000000000)), store_wide(cast<i64>(v - 4));
    store_wide(cast<i64>(cast<u32>(v) - 4u));
  }
  store(y), store(x + y * 8), store(x * y), store(y / 2 + group);
  const LocalArray<i32> array(2);
  array[0] = lane;
  array[1] = group;
  store(array[0]), store(array[1]);
}

void expect_claims_hold(const std::array<int, 3>& group, int width) {
  const Kernel k = kernel("test.lane_forms",
                          [](Group<2> g, Out<i32, 2> out, Out<i64, 2> wide) {
                            int row = 0, wide_row = 0;
                            const Val<i32> at = g.id(0) * g.lanes() + g.lane();
                            expressions(
                                g, [&](const Val<i32>& v) { out(row++, at) = v; },
                                [&](const Val<i64>& v) { wide(wide_row++, at) = v; });
                          },
                          {group});
  const ir::Function& f = k.function();
  const ir::Divergence forms(f, ir::lane_scope(f, width), nullptr, width);
  const int64_t lanes = group[0] * group[1], rows = count(f, ir::Op::store);
  const Device device = Device::open("interp");
  const Buffer out = device.allocate<i32>({rows, 2 * lanes}), wide = device.allocate<i64>({rows, 2 * lanes});
  device.launch(k, {1, 2}, out, wide);
  const auto narrow_values = device.download<i32>(out);
  const auto wide_values = device.download<i64>(wide);
  int64_t row = 0, wide_row = 0;
  int claims = 0;
  compile::walk(f, 0, [&](uint32_t, size_t, ir::Id id) {
    if (f[id].op != ir::Op::store) return;
    const ir::Id value = f[id].args[1];
    const bool is_narrow = f[value].type == Type::i32;
    const int64_t here = is_narrow ? row++ : wide_row++;
    const ir::Form& form = forms[value];
    if (form.is_varying()) return;
    ++claims;
    const auto of = [&](int64_t lane) {
      const auto at = size_t(here * 2 * lanes + lane);
      return is_narrow ? int64_t(narrow_values[at]) : wide_values[at];
    };
    for (int64_t lane = 0; lane < 2 * lanes; ++lane) {
      if (lane % lanes % width == 0) continue;
      const int64_t distance = of(lane) - of(lane - 1) - (form.is_uniform() ? 0 : form.stride);
      ASSERT_EQ(is_narrow && !form.exact ? int64_t(int32_t(distance)) : distance, 0)
          << ir::print(f, value) << " of lane " << lane << ", groups of " << group[0] << " x " << group[1];
    }
  });
  EXPECT_GT(claims, 10);
}

TEST(LaneForms, ClaimsHoldForEveryVector) {
  for (const auto& group :
       {std::array{8, 1, 1}, {64, 1, 1}, {16, 2, 1}, {4, 4, 1}, {12, 2, 1}, {8, 3, 1}, {20, 1, 1}})
    for (const int width : {4, 8}) expect_claims_hold(group, width);
}

}  // namespace
}  // namespace lockstep
