#include "pde/halves/two_sweeps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/capabilities.hpp"
#include "lockstep/error.hpp"

namespace lockstep::pde {

namespace {

/// By the variants of pde.two_sweep.tile.
constexpr HalfShape kHalfTiles[] = {
    {16, 4, 1, 64, 1, 1},  // tiny
    {32, 8, 1, 64, 1, 2},  // small
    {32, 8, 2, 64, 1, 1},  // square
    {32, 4, 1, 64, 1, 4},  // flat
    {64, 4, 2, 64, 1, 1}   // broad
};

bool fits(const Discretisation& d, const Device& device, const KernelForm& form, SweepHalf half,
          const std::vector<FieldLevel>& outputs, const HalfShape& shape) {
  return HalfLayout(d, half, outputs, shape).bytes(size_of(form.scratch())) <=
             device.info().limits.shared_bytes &&
         shape.lanes() <= device.info().limits.group_lanes;
}

int64_t tiles(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// Planes of a chunk: groups run in waves over the multiprocessors, and each loads the planes around its
/// chunk first.
int choose_chunk(const Discretisation& d, const Device& device, const HalfShape& shape, int reach,
                 int64_t members) {
  if (capabilities_of(device).warp_lanes == 0) return shape.chunk;
  const int64_t nz = d.mesh.cells[2],
                columns = tiles(d.mesh.cells[0], shape.x) * tiles(d.mesh.cells[1], shape.tall()) * members,
                slots = int64_t(std::max(device.info().multiprocessors, 1)) * shape.blocks;
  int64_t best = nz, least = INT64_MAX;
  for (int64_t pieces = 1; pieces <= std::max<int64_t>(nz / 8, 1); ++pieces) {
    const int64_t chunk = tiles(nz, pieces), groups = columns * tiles(nz, chunk),
                  time = tiles(groups, slots) * (chunk + reach);
    if (time < least) least = time, best = chunk;
  }
  return int(best);
}

}  // namespace

std::string two_sweep_refusal(const Discretisation& d, const Device& device, const KernelForm& form,
                              const std::vector<FieldLevel>& outputs) {
  if (!d.pointwise_adjoint) return "the way back needs differences of differences";
  for (SweepHalf half : {SweepHalf::residual, SweepHalf::adjoint}) {
    if (!fits(d, device, form, half, outputs, kHalfTiles[0])) return "too little shared memory";
  }
  return "";
}

const variants::Computation& half_tile_computation() {
  static const variants::Computation computation({.name = "pde.two_sweep.tile",
                                                  .variants = {"tiny", "small", "square", "flat", "broad"},
                                                  .axes = {"cells"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

HalfShape choose_half(const Discretisation& d, const Device& device, const KernelForm& form, SweepHalf half,
                      const std::vector<FieldLevel>& outputs, int64_t members, bool wide,
                      const LossOptions& options) {
  const int elements = 16 / size_of(form.scratch());
  const bool direct = form.storage == form.scratch() && !form.rows;
  const auto tile = [&](int number) {
    HalfShape s = kHalfTiles[number];
    s.wide = direct && wide && d.mesh.cells[0] % elements == 0 ? elements : 1;
    return s;
  };
  const variants::Axis cells{"cells", double(d.mesh.count())};
  HalfShape shape = tile(
      variants::choose(half_tile_computation(), device, {{}, {&cells, 1}}, options.tile, [&](int number) {
        return std::string(fits(d, device, form, half, outputs, tile(number)) ? ""
                                                                              : "too little shared memory");
      }).variant);
  if (options.tile_x > 0) shape.x = options.tile_x;
  if (options.tile_y > 0) shape.y = options.tile_y;
  if (options.tile_rows > 0) shape.rows = options.tile_rows;
  if (options.groups > 0) shape.blocks = options.groups;
  const int64_t lanes = int64_t(shape.x) * shape.y;
  if (lanes < 1 || lanes > 1024 || (lanes & (lanes - 1)) != 0 || shape.x % shape.wide != 0 || shape.rows > 16)
    throw InputError(fmt::format("a tile of {} x {} lanes, {} rows", shape.x, shape.y, shape.rows),
                     "pde options", "a power of two up to 1024 lanes, 4 or more along x, up to 16 rows");
  shape.chunk = choose_chunk(d, device, shape, d.reach[2], members);
  if (options.chunk > 0) shape.chunk = options.chunk;
  return shape;
}

Shape half_extent(const Discretisation& d, const HalfShape& shape, int64_t members) {
  return {members * tiles(d.mesh.cells[2], shape.chunk), tiles(d.mesh.cells[1], shape.tall()),
          tiles(d.mesh.cells[0], shape.x)};
}

}  // namespace lockstep::pde
