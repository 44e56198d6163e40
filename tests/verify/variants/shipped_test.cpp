// The shipped table: the orders that were measured, up to the size where they change.
#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "registry.hpp"

namespace lockstep::variants {
namespace {

struct Expected {
  const char* computation;
  DeviceKind kind;
  const char *of, *axis;
  double size;
  const char* first;
};

const Computation& named(const std::vector<Subject>& subjects, std::string_view name) {
  for (const Subject& s : subjects)
    if (s.name() == name) return *s.computation;
  throw std::runtime_error(std::string(name));
}

using Kind = DeviceKind;

void expect_first(const std::vector<Expected>& rows_expected) {
  const std::vector<Subject> subjects = select_variants({});
  for (const Expected& e : rows_expected) {
    const Computation& c = named(subjects, e.computation);
    DeviceInfo device;
    device.kind = e.kind;
    device.description = "a model without a row, driver 1";
    const Axis axis{e.axis, e.size};
    const std::vector<Computation::Row> rows = c.rows(Table::shipped(), false);
    EXPECT_EQ(c.variant(c.ranking(rows, device, Numerics::exact, {e.of, {&axis, 1}}).front()), e.first)
        << e.computation << ' ' << e.of << ' ' << name(e.kind) << ' ' << e.size;
  }
}

TEST(Shipped, ChoosesWhatWasMeasured) {
  expect_first({
      {"primitives.matmul", Kind::cpu, "", "least_side", 47, "columns"},
      {"primitives.matmul", Kind::cpu, "", "least_side", 48, "packed"},
      {"primitives.matmul", Kind::interp, "", "least_side", 48, "packed"},
      {"primitives.matmul", Kind::cuda, "f32", "waves", 0.19, "slim-wide"},
      {"primitives.matmul", Kind::cuda, "f32", "waves", 0.2, "wide-64"},
      {"primitives.matmul", Kind::cuda, "f32", "waves", 0.69, "wide-64"},
      {"primitives.matmul", Kind::cuda, "f32", "waves", 0.7, "wide"},
      {"primitives.matmul", Kind::cuda, "f32", "waves", 1, "wide-64"},
      {"primitives.matmul", Kind::cuda, "f32", "waves", 1.7, "wide"},
      {"primitives.matmul", Kind::cuda, "f64", "waves", 0.09, "slim-wide"},
      {"primitives.matmul", Kind::cuda, "f64", "waves", 23, "tensor-64"},
      {"primitives.matmul", Kind::cuda, "f64", "waves", 24, "tensor-128"},
      {"primitives.matmul", Kind::webgpu, "", "waves", 9, "tiles"},
      {"primitives.matmul.narrow", Kind::cuda, "", "terms", 47, "columns"},
      {"primitives.matmul.narrow", Kind::cuda, "", "terms", 48, "copies"},
      {"primitives.matmul.narrow", Kind::cpu, "", "least_side", 48, "copies"},
      {"primitives.matmul.library", Kind::cuda, "f32", "operations", 2097151, "kernels"},
      {"primitives.matmul.library", Kind::cuda, "f32", "operations", 2097152, "library"},
      {"primitives.matmul.library", Kind::cuda, "f64", "operations", 512000, "library"},
      {"primitives.matmul.library", Kind::cuda, "narrow", "operations", 110592, "library"},
      {"primitives.matmul.library", Kind::cpu, "f32", "operations", 1e12, "kernels"},
      {"primitives.fft", Kind::cpu, "", "points", 64, "lanes"},
      {"primitives.fft", Kind::interp, "", "points", 64, "passes"},
      {"primitives.fft", Kind::cuda, "", "points", 64, "blocks"},
      {"primitives.fft", Kind::webgpu, "", "points", 64, "blocks"},
      {"pde.loss", Kind::cpu, "orders 2 and 4", "cells", 1e7, "two-kernel"},
      {"pde.loss", Kind::webgpu, "orders 2 and 4", "cells", 1e7, "two-kernel"},
      {"pde.loss", Kind::cuda, "orders 2 and 4", "cells", 80. * 80 * 80 - 1, "two-kernel"},
      {"pde.loss", Kind::cuda, "orders 2 and 4", "cells", 80. * 80 * 80, "fused"},
      {"pde.loss", Kind::cuda, "orders 6 and 8", "cells", 64. * 64 * 64 - 1, "two-kernel"},
      {"pde.loss", Kind::cuda, "orders 6 and 8", "cells", 64. * 64 * 64, "two-sweep"},
      {"pde.loss", Kind::cuda, "orders 2 and 4, no gradients", "cells", 80. * 80 * 80 - 1, "two-kernel"},
      {"pde.loss", Kind::cuda, "orders 2 and 4, no gradients", "cells", 80. * 80 * 80, "fused"},
      {"pde.loss", Kind::cuda, "rows or 16 bits", "cells", 1e7, "fused"},
      {"pde.loss", Kind::cuda, "rows or 16 bits, no gradients", "cells", 1e7, "two-kernel"},
      {"pde.loss", Kind::cuda, "f64", "cells", 1e7, "two-kernel"},
      {"pde.trajectory", Kind::cuda, "f32", "cells", 48. * 48 * 48, "sweeps"},
      {"pde.trajectory", Kind::cuda, "f64", "cells", 1e7, "slabs"},
      {"pde.trajectory", Kind::cpu, "f32", "cells", 1e7, "slabs"},
      {"forecast.rollout", Kind::cpu, "one start", "member_bytes", 2 << 20, "one_launch"},
      {"forecast.rollout", Kind::cpu, "many starts", "member_bytes", (2 << 20) + 1, "by_steps"},
      {"forecast.rollout", Kind::cuda, "one start", "groups", 16, "cluster"},
      {"forecast.rollout", Kind::cuda, "many starts", "groups", 15, "cluster"},
      {"forecast.rollout", Kind::cuda, "many starts", "groups", 16, "batch"},
      {"forecast.rollout", Kind::cuda, "two-hot", "groups", 1, "one_launch"},
      {"forecast.rollout", Kind::interp, "one start", "groups", 1, "one_launch"},
      {"flow.step", Kind::cpu, "", "points", 1e6, "vectors"},
      {"flow.step", Kind::interp, "", "points", 1e6, "vectors"},
      {"flow.step", Kind::cuda, "", "points", 1e6, "paired_groups"},
      {"flow.step", Kind::webgpu, "", "points", 1e6, "groups"},
      {"solve.assembly", Kind::cpu, "", "instances", 1023, "plain"},
      {"solve.assembly", Kind::cuda, "", "instances", 1024, "groups"},
      {"solve.sums", Kind::cpu, "", "numbers", 8192, "host"},
      {"solve.sums", Kind::cpu, "", "numbers", 8193, "device"},
      {"forecast.gru", Kind::cuda, "", "sequences", 4, "cluster"},
      {"forecast.gru", Kind::cpu, "", "sequences", 5, "products"},
  });
}

TEST(Shipped, ChoosesTilesThatWereMeasured) {
  expect_first({
      {"pde.fused.tile", Kind::cuda, "orders 4 to 8", "cells", 112. * 112 * 112 - 1, "small"},
      {"pde.fused.tile", Kind::cuda, "orders 4 to 8", "cells", 112. * 112 * 112, "steep"},
      {"pde.fused.tile", Kind::cuda, "edges", "cells", 112. * 112 * 112 - 1, "low"},
      {"pde.fused.tile", Kind::cuda, "edges", "cells", 1e9, "tall"},
      {"pde.fused.tile", Kind::cuda, "edges, rows of 128", "cells", 112. * 112 * 112 - 1, "low"},
      {"pde.fused.tile", Kind::cuda, "edges, rows of 128", "cells", 176. * 176 * 176 - 1, "tall"},
      {"pde.fused.tile", Kind::cuda, "edges, rows of 128", "cells", 176. * 176 * 176, "broad"},
      {"pde.fused.tile", Kind::cuda, "few gradients", "cells", 112. * 112 * 112 - 1, "small"},
      {"pde.fused.tile", Kind::cuda, "few gradients", "cells", 1e9, "lean"},
      {"pde.fused.tile", Kind::cuda, "gradients", "cells", 112. * 112 * 112, "middle"},
      {"pde.fused.tile", Kind::cuda, "gradients", "cells", 176. * 176 * 176, "tall"},
      {"pde.fused.tile", Kind::cpu, "gradients, rows of 128", "cells", 176. * 176 * 176 - 1, "middle"},
      {"pde.fused.tile", Kind::cpu, "gradients, rows of 128", "cells", 176. * 176 * 176, "broad"},
      {"pde.two_sweep.tile", Kind::cuda, "", "cells", 80. * 80 * 80 - 1, "small"},
      {"pde.two_sweep.tile", Kind::cuda, "", "cells", 160. * 160 * 160 - 1, "square"},
      {"pde.two_sweep.tile", Kind::cuda, "", "cells", 160. * 160 * 160, "flat"},
      {"pde.two_sweep.tile", Kind::cuda, "", "cells", 224. * 224 * 224, "broad"},
      {"pde.trajectory.sweep", Kind::cuda, "periodic", "cells", 1e9, "five"},
      {"pde.trajectory.sweep", Kind::cuda, "edges", "cells", 176. * 176 * 176 - 1, "four"},
      {"pde.trajectory.sweep", Kind::cuda, "edges", "cells", 176. * 176 * 176, "two_broad"},
  });
}

// Next in rank, for problems that the first does not apply to.
TEST(Shipped, RanksTheRest) {
  const std::vector<Subject> subjects = select_variants({});
  const auto second = [&](std::string_view computation, std::string_view of, const Axis& axis) {
    const Computation& c = named(subjects, computation);
    DeviceInfo device;
    device.kind = DeviceKind::cuda;
    return c.variant(
        c.ranking(c.rows(Table::shipped(), false), device, Numerics::exact, {of, {&axis, 1}})[1]);
  };
  EXPECT_EQ(second("pde.loss", "orders 2 and 4", {"cells", 80. * 80 * 80}), "two-kernel");
  EXPECT_EQ(second("pde.loss", "orders 2 and 4", {"cells", 128. * 128 * 128}), "two-sweep");
  EXPECT_EQ(second("forecast.rollout", "one start", {"groups", 16}), "by_rows");
  EXPECT_EQ(second("forecast.rollout", "one start", {"groups", 17}), "one_launch");
  EXPECT_EQ(second("primitives.matmul", "f32", {"waves", 1}), "wide");
}

TEST(Shipped, EachComputationFindsARowForEachDevice) {
  for (const Subject& s : select_variants({})) {
    if (!s.computation) continue;
    for (const DeviceKind kind :
         {DeviceKind::cpu, DeviceKind::cuda, DeviceKind::webgpu, DeviceKind::interp}) {
      DeviceInfo device;
      device.kind = kind;
      const std::vector<Computation::Row> rows = s.computation->rows(Table::shipped(), false);
      const size_t all = s.computation->variants().size();
      EXPECT_EQ(s.computation->ranking(rows, device, Numerics::exact, {s.of, {}}).size(), all)
          << s.computation->name();
    }
  }
}

TEST(Shipped, PrefixesSelectComputations) {
  EXPECT_EQ(select_variants({"primitives.fft"}).size(), 1u);
  EXPECT_EQ(select_variants({"pde", "forecast.rollout"}).size(), 16u);
  EXPECT_THROW(select_variants({"pde", "nothing"}), InputError);
}

}  // namespace
}  // namespace lockstep::variants
