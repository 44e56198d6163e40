#include "lockstep/pde/divided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "pde/divided/joined_rows.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {
namespace {

using parallel::GroupError;
using parallel::Range;

/// Planes of a block, which one rank computes and the fused path sums: by the grid alone, since that decides the bits.
int64_t block_planes(int64_t nz) {
  constexpr int64_t kBlocks = 8, kLeast = 4, kMost = 32;
  return std::clamp((nz + kBlocks - 1) / kBlocks, kLeast, kMost);
}

bool periodic(const Mesh& mesh) { return mesh.boundary.sides[2][0].rule == Rule::periodic; }

/// The gradients of a cell depend on cotangents `reach` away, and on the fields of these.
int64_t halo(const Discretisation& d) { return d.reach[2] + d.forward_reach[2]; }

/// Axes of more cells have rows of their own at both ends (make_operator): parts have as many where the grid has.
int64_t cells_of_short_axis(const Discretisation& d) {
  int radius = 0;
  for (const auto& [key, op] : d.operators)
    if (std::get<3>(key) == 2)
      for (const Tap& t : op.taps) radius = std::max(radius, std::abs(t.offset));
  return 4 * radius + 6;
}

/// The grid of the held planes. Rules at its cut ends act only on cells that are not the rank's own.
std::shared_ptr<const Discretisation> cut(const Discretisation& whole, const Range& held) {
  const int64_t nz = whole.mesh.cells[2];
  const bool around = periodic(whole.mesh) && held != Range{0, nz};
  const bool ends[] = {around || held.begin > 0, around || held.end < nz};
  Mesh mesh = whole.mesh;
  mesh.cells[2] = held.size();
  auto plan = std::make_shared<Plan>(*whole.plan);
  for (size_t end = 0; end < 2; ++end) {
    if (!ends[end]) continue;
    mesh.boundary.sides[2][end] = {Rule::clamp};
    for (FieldInfo& field : plan->fields)
      for (BoundaryConditions& b : field.boundaries) b.sides[2][end] = {Rule::clamp};
  }
  auto part = std::make_shared<Discretisation>(plan, mesh);
  part->profile_axes = whole.profile_axes;  // a cut end names no profile
  return part;
}

/// Planes that lie one after the other in the arrays of their owner and of another rank.
struct Run {
  int owner;
  int64_t from, to, count;  // first plane in the grid, in the other's arrays
};

/// Runs of the planes [begin, end) of a grid of nz planes, which may begin below 0 and end beyond it.
std::vector<Run> runs_of(const Range& range, int64_t nz, const std::function<int(int64_t plane)>& owner) {
  std::vector<Run> runs;
  for (int64_t k = 0; k < range.size(); ++k) {
    const int64_t plane = ((range.begin + k) % nz + nz) % nz;
    const int of = owner(plane);
    if (!runs.empty() && runs.back().owner == of && runs.back().from + runs.back().count == plane)
      ++runs.back().count;
    else
      runs.push_back({of, plane, k, 1});
  }
  return runs;
}

}  // namespace

DividedLoss::DividedLoss(const System& system, const Mesh& mesh, const parallel::Group& group)
    : group_(group),
      whole_(std::make_shared<const Discretisation>(system.plan(), mesh)),
      system_(system.text()) {
  const int64_t nz = mesh.cells[2], planes = block_planes(nz);
  if (whole_->plan->dimensions != 3)
    throw UnsupportedError(fmt::format("a system of {} dimensions over ranks", whole_->plan->dimensions),
                           "pde", "three dimensions, which ranks divide along z");
  blocks_ = (nz + planes - 1) / planes;
  if (blocks_ < group.size())
    throw GroupError(fmt::format("{} planes for {} ranks", nz, group.size()), "pde",
                     fmt::format("at most a rank for each {} planes along z", planes))
        .on_every_rank();
  if (group.size() > 1 && periodic(mesh) && !whole_->wraps[2])
    throw UnsupportedError(fmt::format("{} planes over ranks", nz), "pde",
                           "more planes than a periodic stencil reaches");
  const Range mine = own(), all = held();
  state_ = std::make_shared<Loss::State>();
  state_->d = group.size() > 1 ? cut(*whole_, all) : whole_;
  state_->part =
      std::make_shared<const GridPart>(GridPart{mine.begin - all.begin, mine.size(), planes, whole_});
}

const Mesh& DividedLoss::mesh() const { return whole_->mesh; }

Range DividedLoss::own(int rank) const {
  const int64_t nz = whole_->mesh.cells[2], planes = block_planes(nz);
  const Range blocks = parallel::share(blocks_, rank, group_.size());
  return {blocks.begin * planes, std::min(blocks.end * planes, nz)};
}
Range DividedLoss::own() const { return own(group_.rank()); }

Range DividedLoss::held(int rank) const {
  const int64_t nz = whole_->mesh.cells[2], reach = halo(*whole_);
  if (group_.size() == 1) return {0, nz};
  // As many planes as the fused kernel needs, so that the path does not depend on the number of ranks.
  int64_t least = 2 * reach + 2;
  Range range = own(rank);
  range.begin -= reach;
  range.end += reach;
  if (periodic(whole_->mesh)) {
    range.end = std::max(range.end, range.begin + least);
    return range;
  }
  least = std::max(least, cells_of_short_axis(*whole_) + 1);
  range.begin = std::max<int64_t>(range.begin, 0);
  range.end = std::min(std::max(range.end, range.begin + least), nz);
  range.begin = std::max<int64_t>(std::min(range.begin, range.end - least), 0);
  return range;
}
Range DividedLoss::held() const { return held(group_.rank()); }

Buffer DividedLoss::held_profile(const Device& device, const std::string& name, const Buffer& profile) const {
  const auto& names = whole_->plan->profiles;
  const auto found = std::find(names.begin(), names.end(), name);
  const int64_t nz = whole_->mesh.cells[2];
  if (group_.size() == 1 || found == names.end()) return profile;
  const int axis = whole_->profile_axes[size_t(found - names.begin())];
  if (axis == 2) return profile;
  const int64_t along = whole_->mesh.cells[axis == 0 ? 1 : 0];
  if (!profile || profile.elements() != nz * along || !profile.contiguous())
    throw InputError(fmt::format("profile {} of shape {}", name, profile ? to_string(profile.shape()) : "()"),
                     "pde inputs", fmt::format("({}, {}), of the whole side", nz, along));
  const Buffer all = profile.reshape({nz, along}),
               part = device.allocate(profile.storage(), {held().size(), along});
  for (const Run& run : runs_of(held(), nz, [](int64_t) { return 0; }))
    device.copy(all.rows(run.from, run.count), part.rows(run.to, run.count));
  return part;
}

namespace {

template <class Data>
void expect_one_grid(const Data& inputs, bool rows) {
  if (inputs.members == 1 && !rows) return;
  throw UnsupportedError(rows ? "rows over ranks" : fmt::format("{} members over ranks", inputs.members),
                         "pde", "fields of one grid");
}

}  // namespace

Inputs DividedLoss::held_inputs(const Device& device, const Inputs& inputs) const {
  expect_one_grid(inputs, inputs.rows[0] || inputs.rows[1] || inputs.rows[2]);
  Inputs own = inputs;
  for (auto& [name, profile] : own.profiles) profile = held_profile(device, name, profile);
  return own;
}

BoundLoss DividedLoss::bind(const Device& device, const Inputs& inputs, const LossOptions& options) const {
  return Loss(state_).bind(device, held_inputs(device, inputs), options);
}

BoundLoss DividedLoss::bind_trajectory(const Device& device, const TrajectoryInputs& inputs,
                                       const LossOptions& options) const {
  expect_one_grid(inputs, !inputs.rows.empty());
  TrajectoryInputs own = inputs;
  for (auto& [name, profile] : own.profiles) profile = held_profile(device, name, profile);
  for (auto& [name, list] : own.profiles_in_time)
    for (Buffer& profile : list) profile = held_profile(device, name, profile);
  return Loss(state_).bind_trajectory(device, own, options);
}

Buffer DividedLoss::residuals(const Device& device, const Inputs& inputs) const {
  return own_planes(Loss(state_).residuals(device, held_inputs(device, inputs)));
}

DividedLoss::Sums DividedLoss::sums(const BoundLoss& bound) const {
  const BoundLoss::State& s = *bound.state_;
  for (const Launch& l : s.totals_launches) s.device.launch_with(l.kernel, l.extent, l.arguments, {});
  const int64_t residuals = int64_t(s.d->plan->residuals.size());
  Sums sums{residuals * int64_t(s.partials.size()), {}, s.total_scale, {}};
  for (const Buffer& partial : s.partials) {
    const Array numbers = s.device.download(partial).to(Storage::f64).packed();
    sums.values.insert(sums.values.end(), numbers.as<double>().begin(), numbers.as<double>().end());
  }
  // Two kernels and two sweeps sum rows of a plane; a fused tile sums its part of a block.
  const int64_t parts = sums.rows > 0 ? int64_t(sums.values.size()) / sums.rows : 0,
                planes = s.path == Path::fused ? parallel::share(blocks_, group_).size() : own().size();
  sums.order =
      fmt::format("{} sums of a {}, {}", parts / planes, s.path == Path::fused ? "fused block" : "plane",
                  lockstep::name(s.totals.storage()));
  return sums;
}

std::vector<double> joined_rows(const std::vector<parallel::Bytes>& of_ranks, size_t rows) {
  std::vector<double> all;
  for (size_t row = 0; row < rows; ++row)
    for (const parallel::Bytes& data : of_ranks) {
      const size_t count = data.size() / sizeof(double) / rows, before = all.size();
      all.resize(before + count);
      if (count > 0)
        std::memcpy(&all[before], data.data() + row * count * sizeof(double), count * sizeof(double));
    }
  return all;
}

DividedLoss::Sums DividedLoss::gather(Sums mine) const {
  if (group_.size() == 1) return mine;
  // One message: the numbers, behind the order of the sums and its length.
  const auto length = uint64_t(mine.order.size());
  parallel::Bytes message = parallel::bytes_of(std::span(&length, 1));
  for (const parallel::Bytes& part :
       {parallel::bytes_of(mine.order), parallel::bytes_of(std::span<const double>(mine.values))})
    message.insert(message.end(), part.begin(), part.end());
  std::vector<parallel::Bytes> from = group_.all_gather(std::move(message));
  bool same = true;
  for (parallel::Bytes& data : from) {
    uint64_t n = 0;
    std::memcpy(&n, data.data(), sizeof n);
    const auto numbers = data.begin() + ptrdiff_t(sizeof n + n);
    same = same && parallel::text_of({data.begin() + sizeof n, numbers}) == mine.order;
    data.erase(data.begin(), numbers);
  }
  // Where two differ, each rank sees one that is not its own.
  if (!same) group_.expect_same("sums of the loss (devices or paths)", mine.order);
  return {mine.rows, joined_rows(from, size_t(mine.rows)), mine.scale, mine.order};
}

std::vector<double> DividedLoss::terms(const Device& device, const Sums& all) const {
  const bool wide = device.info().limits.f64;
  const Storage storage = wide ? Storage::f64 : Storage::f32;
  const int64_t parts = int64_t(all.values.size()) / std::max<int64_t>(all.rows, 1);
  const Array numbers = Array::of(all.values).to(storage);
  const Buffer partial = device.upload(numbers).reshape({all.rows, parts}),
               totals = device.allocate(storage, {all.rows});
  const Kernel total = state_->kernels.get(fmt::format("total {}", int(wide ? Type::f64 : Type::f32)),
                                           [&] { return total_kernel(wide ? Type::f64 : Type::f32); });
  Arguments a;
  a.set("partial", partial).set("totals", totals);
  device.launch_with(total, {all.rows}, a.bind_known(total), {});
  const Array sums = device.download(totals).to(Storage::f64).packed();
  return weighted_terms(*whole_->plan, {sums.as<double>().begin(), sums.as<double>().end()}, all.scale);
}

std::vector<double> DividedLoss::terms(const BoundLoss& bound) const {
  group_.finish_exchange();
  return terms(bound.state_->device, gather(sums(bound)));
}

Buffer DividedLoss::own_planes(const Buffer& array) const {
  Shape first = array.shape(), size = array.shape();
  const int rank = array.shape().rank();
  for (int axis = 0; axis < rank; ++axis) first[axis] = 0;
  first[rank - 3] = state_->part->first;
  size[rank - 3] = state_->part->planes;
  return array.window(first, size);
}

void DividedLoss::refresh(const Device& device, std::span<const Buffer> arrays) const {
  begin_refresh(device, arrays);
  group_.finish_exchange();
}

void DividedLoss::begin_refresh(const Device& device, std::span<const Buffer> arrays) const {
  const int64_t nz = whole_->mesh.cells[2], ny = whole_->mesh.cells[1], nx = whole_->mesh.cells[0],
                planes = held().size(), first = state_->part->first;
  const auto owner = [&](int64_t plane) {
    int rank = 0;
    while (own(rank).end <= plane) ++rank;
    return rank;
  };
  const int me = group_.rank();
  const int64_t own_begin = own().begin;
  std::vector<std::vector<Run>> runs;  // by rank
  for (int r = 0; r < group_.size(); ++r) runs.push_back(runs_of(held(r), nz, owner));
  std::vector<parallel::Slice> sends, receives;
  std::vector<std::pair<Buffer, Buffer>> copies;
  for (const Buffer& array : arrays) {
    if (!array || !array.contiguous() || array.elements() % (planes * ny * nx) != 0)
      throw InputError(fmt::format("an array of shape {}", array ? to_string(array.shape()) : "()"),
                       "pde refresh", fmt::format("(…, {}, {}, {})", planes, ny, nx));
    const int64_t components = array.elements() / (planes * ny * nx);
    const Buffer all = array.reshape({components * planes, ny, nx});
    for (int64_t c = 0; c < components; ++c)
      for (int r = 0; r < group_.size(); ++r)
        for (const Run& run : runs[size_t(r)]) {
          const auto own_rows = [&] {
            return all.rows(c * planes + first + run.from - own_begin, run.count);
          };
          if (r != me && run.owner == me) sends.push_back({r, own_rows()});
          if (r != me) continue;
          const Buffer to = all.rows(c * planes + run.to, run.count);
          if (run.owner != me)
            receives.push_back({run.owner, to});
          else if (run.to != first + run.from - own_begin)
            copies.push_back({own_rows(), to});  // around the end of a periodic axis
        }
  }
  for (const auto& [from, to] : copies) device.copy(from, to);
  group_.begin_exchange(device, sends, receives);
}

}  // namespace lockstep::pde
