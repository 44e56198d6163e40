#include "flow/les/slabs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/kernel/dynamic.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::flow {
namespace {

using parallel::Range;

/// to = from, of which either may be part of a larger buffer.
template <class T>
const Kernel& window_kernel() {
  static const Kernel k =
      kernel(fmt::format("flow.window.{}", name(detail::kType<T>)), [](At<3> at, Parameters& p) {
        const auto from = p.read<T, 4>("from");
        const auto to = p.write<T, 4>("to");
        const Val<i32> z = at.z, y = at.y, x = at.x;
        for_(0, from.size(3), [&](const Val<i32>& n) { to(z, y, x, n) = from(z, y, x, n); });
      });
  return k;
}

void copy_window(const Device& device, const Buffer& from, const Buffer& to) {
  const Shape& s = from.shape();
  device.launch(from.storage() == Storage::f64 ? window_kernel<f64>() : window_kernel<f32>(),
                {s[0], s[1], s[2]}, Arguments().set("from", from).set("to", to));
}

/// Part of a buffer along some axes.
Buffer window_of(const Buffer& b, std::initializer_list<std::pair<int, Range>> parts) {
  Shape first = b.shape(), size = b.shape();
  for (int axis = 0; axis < first.rank(); ++axis) first[axis] = 0;
  for (const auto& [axis, range] : parts) {
    first[axis] = range.begin;
    size[axis] = range.size();
  }
  return b.window(first, size);
}

}  // namespace

Slabs::Slabs(const parallel::Group& group, const Device& device, const FusedShape& shape)
    : group_(group), device_(device), shape_(shape) {
  group.expect_same("slabs of the flow (devices)",
                    fmt::format("{} lines of rows, {} of columns, {} {} {}", shape.rows.lines,
                                shape.columns.lines, shape.paired, shape.turned, shape.pad));
  const int64_t most = std::min(shape.row_groups(), shape.column_groups());
  if (most < group.size())
    throw parallel::GroupError(fmt::format("a flow on {} ranks", group.size()), "flow run",
                               fmt::format("at most {} ranks for this grid", most))
        .on_every_rank();
}

Range Slabs::columns(int rank) const {
  const Range groups = share_of(shape_.column_groups(), rank);
  const int64_t lines = shape_.columns.lines;
  return {groups.begin * lines, std::min(groups.end * lines, shape_.modes.columns())};
}
Range Slabs::rows(int rank) const {
  const Range groups = share_of(shape_.row_groups(), rank);
  return {groups.begin * shape_.rows.lines, groups.end * shape_.rows.lines};
}

void Slabs::exchange(const Window& mine, const Window& theirs) const {
  std::vector<parallel::Slice> sends, receives;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank == group_.rank()) continue;
    const Buffer from = mine(rank), to = theirs(rank);
    sends.push_back({rank, device_.allocate(from.storage(), from.shape())});
    copy_window(device_, from, sends.back().buffer);
    receives.push_back({rank, device_.allocate(to.storage(), to.shape())});
  }
  group_.exchange(device_, sends, receives);
  for (const parallel::Slice& part : receives) copy_window(device_, part.buffer, theirs(part.rank));
}

void Slabs::to_rows(const Buffer& array) const {
  const int me = group_.rank();
  exchange([&](int rank) { return window_of(array, {{1, columns(me)}, {2, rows(rank)}}); },
           [&](int rank) { return window_of(array, {{1, columns(rank)}, {2, rows(me)}}); });
}

void Slabs::to_columns(const Buffer& array) const {
  const int me = group_.rank();
  exchange([&](int rank) { return window_of(array, {{1, columns(rank)}, {2, rows(me)}}); },
           [&](int rank) { return window_of(array, {{1, columns(me)}, {2, rows(rank)}}); });
}

void Slabs::gather_speeds(const Buffer& speeds) const {
  const Shape& s = speeds.shape();
  const Buffer all = speeds.reshape({s[0], 1, s[1], s[2]});
  const auto of = [&](int rank) { return window_of(all, {{2, share_of(shape_.row_groups(), rank)}}); };
  exchange([&](int) { return of(group_.rank()); }, of);
}

void Slabs::gather_columns(const Buffer& spectrum, bool turned) const {
  const auto of = [&](int rank) { return window_of(spectrum, {{turned ? 1 : 2, columns(rank)}}); };
  exchange([&](int) { return of(group_.rank()); }, of);
}

}  // namespace lockstep::flow
