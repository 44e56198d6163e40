#include "pde/fused/fused.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/variants/memory.hpp"
#include "lockstep/error.hpp"
#include "pde/fused/fused_sweep.hpp"
#include "pde/halves/two_sweeps.hpp"
#include "pde/kernels/two_kernels.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

namespace {

/// By the variants of pde.fused.tile. Large tiles read few cells twice, and one group of them fills a multiprocessor; small grids
/// need small tiles, or most multiprocessors stay idle.
constexpr FusedShape kFusedTiles[] = {
    {16, 8, 1, 8, 1, 4},    // tiny
    {32, 4, 1, 8, 1, 4},    // small
    {32, 4, 2, 8, 1, 2},    // low
    {64, 4, 2, 128, 1, 2},  // middle
    {64, 8, 2, 128, 1, 1},  // lean
    {64, 4, 4, 128, 1, 1},  // tall
    {64, 8, 1, 64, 1, 1},   // steep
    {128, 2, 4, 128, 1, 1}  // broad
};

/// Edges need registers: where a grid has some, a multiprocessor holds one group. Few gradients need few registers.
std::string_view tile_class(const Discretisation& d, size_t outputs) {
  if (d.mesh.order > 2) return "orders 4 to 8";
  const bool edges = !(d.wraps[0] && d.wraps[1] && d.wraps[2]), rows = d.mesh.cells[0] % 128 == 0;
  if (edges) return rows ? "edges, rows of 128" : "edges";
  if (outputs <= 2) return "few gradients";
  return rows ? "gradients, rows of 128" : "gradients";
}

bool fused_fits(const Discretisation& d, const Device& device, const FusedShape& s, const Channels& channels,
                const KernelForm& form) {
  const Limits& limits = device.info().limits;
  return FusedLayout(d, s, channels).bytes(size_of(form.scratch())) <= limits.shared_bytes &&
         s.lanes() <= limits.group_lanes;
}

/// Planes of a chunk: groups run in waves over the multiprocessors, and each also sweeps the planes around
/// its chunk and waits for its first ones.
int choose_chunk(const Discretisation& d, const Device& device, const FusedShape& shape, int64_t members) {
  constexpr int64_t kFirstPlanes = 4;
  if (capabilities_of(device).warp_lanes == 0) return shape.chunk;
  const int64_t nz = d.mesh.cells[2], extra = 2 * d.reach[2] + kFirstPlanes,
                tiles = ((d.mesh.cells[0] + shape.x - 1) / shape.x) *
                        ((d.mesh.cells[1] + shape.tall() - 1) / shape.tall()) * members;
  int64_t best = nz, least = INT64_MAX;
  for (int64_t pieces = 1; pieces <= std::max<int64_t>(nz / 4, 1); ++pieces) {
    const int64_t chunk = (nz + pieces - 1) / pieces, groups = tiles * ((nz + chunk - 1) / chunk),
                  slots = int64_t(std::max(device.info().multiprocessors, 1)) * shape.blocks,
                  time = (groups + slots - 1) / slots * (chunk + extra);
    if (time < least) least = time, best = chunk;
  }
  return int(best);
}

}  // namespace

std::string fused_refusal(const Discretisation& d, const Device& device, const KernelForm& form) {
  const Plan& plan = *d.plan;
  if (plan.dimensions != 3) return "grids of three dimensions only";
  if (!d.pointwise_adjoint) return "the way back needs differences of differences";
  for (int a = 0; a < 3; ++a) {
    if (d.reach[size_t(a)] > d.forward_reach[size_t(a)] || d.reach[size_t(a)] > 2)
      return "a stencil or boundary that reaches too far";
    if (d.mesh.cells[size_t(a)] < 2 * (d.reach[size_t(a)] + d.forward_reach[size_t(a)]) + 2)
      return "a grid that is too small";
  }
  const Channels channels(plan);
  return fused_fits(d, device, kFusedTiles[0], channels, form) ? "" : "too little shared memory";
}

namespace {

std::string path_refusal(Path path, const Discretisation& d, const Device& device, const KernelForm& form,
                         const std::vector<FieldLevel>& outputs) {
  return path == Path::fused       ? fused_refusal(d, device, form)
         : path == Path::two_sweep ? two_sweep_refusal(d, device, form, outputs)
                                   : std::string();
}

/// Sweeps pay where planes in shared memory save traffic and there are enough tiles to fill the device: that depends on these.
std::string_view class_of(const Discretisation& d, const KernelForm& form, bool gradients) {
  if (form.storage == Storage::f64) return "f64";
  if (form.rows || form.storage != form.scratch() || d.plan->dimensions != 3)
    return gradients ? "rows or 16 bits" : "rows or 16 bits, no gradients";
  if (d.mesh.order > 4) return gradients ? "orders 6 and 8" : "orders 6 and 8, no gradients";
  return gradients ? "orders 2 and 4" : "orders 2 and 4, no gradients";
}

}  // namespace

const variants::Computation& loss_computation() {
  // Paths sum the loss in orders of their own.
  static const variants::Computation computation({.name = "pde.loss",
                                                  .variants = {"two-kernel", "fused", "two-sweep"},
                                                  .axes = {"cells"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

const variants::Computation& tile_computation() {
  static const variants::Computation computation(
      {.name = "pde.fused.tile",
       .variants = {"tiny", "small", "low", "middle", "lean", "tall", "steep", "broad"},
       .axes = {"cells"},
       .exact = variants::Agreement::bound});
  return computation;
}

Storage sum_storage(const Device& device) { return device.info().limits.f64 ? Storage::f64 : Storage::f32; }

Shape fused_extent(const Discretisation& d, const FusedShape& shape, int64_t members, const GridPart* part) {
  const auto tiles = [](int64_t n, int64_t size) { return (n + size - 1) / size; };
  const auto& n = d.mesh.cells;
  return {members * tiles(part ? part->planes : n[2], shape.chunk), tiles(n[1], shape.tall()),
          tiles(n[0], shape.x)};
}

int64_t path_scratch(Path path, const Discretisation& d, const Device& device, const KernelForm& form,
                     const std::vector<FieldLevel>& outputs, int64_t members, const LossOptions& options) {
  const int64_t residuals = int64_t(d.plan->residuals.size()), number = size_of(sum_storage(device));
  if (path == Path::fused) {
    const FusedShape shape = choose_shape(d, device, form, outputs, members, options);
    return number * residuals * (1 + fused_extent(d, shape, members).elements());
  }
  const Slabs slabs(d, members,
                    path == Path::two_sweep ? d.mesh.cells[2] : choose_slab(d, device, form, options.slab));
  return number * (residuals + slabs.sums.elements()) + size_of(form.scratch()) * slabs.cotangents.elements();
}

Path choose_path(const Discretisation& d, const Device& device, const KernelForm& form,
                 const std::vector<FieldLevel>& outputs, int64_t members, const LossOptions& options) {
  if (options.path != Path::automatic) {
    const std::string why = path_refusal(options.path, d, device, form, outputs);
    if (why.empty()) return options.path;
    throw UnsupportedError(
        fmt::format("the {} path does not support this problem: {}", name(options.path), why), "pde options",
        "a problem that it supports, or the two-kernel path");
  }
  const variants::Axis cells{"cells", double(d.mesh.count())};
  constexpr Path kPaths[] = {Path::two_kernel, Path::fused, Path::two_sweep};
  const variants::Problem problem{class_of(d, form, !outputs.empty()), {&cells, 1}};
  const auto applies = [&](int variant) { return path_refusal(kPaths[variant], d, device, form, outputs); };
  const auto scratch = [&](int variant) {
    return path_scratch(kPaths[variant], d, device, form, outputs, members, options);
  };
  return kPaths[variants::choose(loss_computation(), device, problem, {},
                                 variants::with_memory(loss_computation(), device, applies, scratch))
                    .variant];
}

FusedShape choose_shape(const Discretisation& d, const Device& device, const KernelForm& form,
                        const std::vector<FieldLevel>& outputs, int64_t members, const LossOptions& options) {
  const Channels channels(*d.plan);
  const variants::Axis cells{"cells", double(d.mesh.count())};
  const variants::Problem problem{tile_class(d, outputs.size()), {&cells, 1}};
  FusedShape shape =
      kFusedTiles[variants::choose(tile_computation(), device, problem, options.tile, [&](int tile) {
                    return std::string(fused_fits(d, device, kFusedTiles[tile], channels, form)
                                           ? ""
                                           : "too little shared memory");
                  }).variant];
  // Copies of 16 bytes where every row begins at a multiple of them.
  const int wide = 16 / size_of(form.scratch());
  const bool direct = form.storage == form.scratch() && !form.rows;
  shape.wide = direct && d.mesh.cells[0] % wide == 0 ? wide : 1;
  if (options.tile_x > 0) shape.x = options.tile_x;
  if (options.tile_y > 0) shape.y = options.tile_y;
  if (options.tile_rows > 0) shape.rows = options.tile_rows;
  if (options.groups > 0) shape.blocks = options.groups;
  shape.chunk = choose_chunk(d, device, shape, members);
  if (options.chunk > 0) shape.chunk = options.chunk;
  const int64_t lanes = int64_t(shape.x) * shape.y;
  if (lanes < 1 || lanes > 1024 || (lanes & (lanes - 1)) != 0 || shape.rows > 16)
    throw InputError(fmt::format("a tile of {} x {} lanes, {} rows", shape.x, shape.y, shape.rows),
                     "pde options", "a power of two up to 1024 lanes, up to 16 rows");
  return shape;
}

Kernel fused_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                    std::vector<FieldLevel> outputs, FusedShape shape, Type sum) {
  KernelOptions options;
  options.group = {shape.x, shape.y, 1};
  options.min_blocks = shape.blocks;
  const int levels = int(d->plan->carry.level) + 1;
  const bool whole = d->plan->carry.rows() == 0;
  const std::string part = whole ? "" : fmt::format(".levels{}", levels);
  return kernel(
      fmt::format("pde.fused.{}.{}{}.{}", variant(*d, form), outputs.size(), part, lockstep::name(sum)),
      [&](Group<3> g, Parameters& p) { FusedSweep(p, g, *d, form, outputs, shape, sum).trace(); }, options);
}

FusedLaunches fused_launches(std::shared_ptr<const Discretisation> d, const Device& device,
                             const KernelForm& any_form, const std::vector<FieldLevel>& outputs,
                             const FusedShape& shape, Type sum, Arguments arguments, const Buffer& totals,
                             int64_t members, const GridPart* part, const KernelStore& store) {
  KernelForm form = any_form;
  form.part = part != nullptr;
  std::string key = fmt::format("{} {} {}", form_key("fused", form), int(sum), shape.key());
  for (const FieldLevel& o : outputs) key += fmt::format(" {}:{}", o.field_index, o.level);
  const Kernel& kernel = store(key, [&] { return fused_kernel(d, form, outputs, shape, sum); });
  const Kernel& total = store(fmt::format("total {}", int(sum)), [&] { return total_kernel(sum); });
  const Shape extent = fused_extent(*d, shape, members, part);
  const int64_t residuals = int64_t(d->plan->residuals.size());
  const Buffer partial = device.allocate(totals.storage(), {residuals, extent.elements()});
  set_sweep(arguments, *d, shape.chunk);
  if (part) arguments.set("first_plane", part->first).set("end_plane", part->first + part->planes);
  arguments.set("partial", partial).set("totals", totals);
  return {{kernel, extent, arguments.bind_known(kernel)},
          {total, {residuals}, arguments.bind_known(total)},
          partial};
}

}  // namespace lockstep::pde
